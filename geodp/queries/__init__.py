"""What can be asked: each query is one module, and all go through the same Plan and release."""

from geodp.queries.base import Layout, Measurement, Quantity, Query, Rows
from geodp.queries.count import Count

__all__ = ["Count", "Layout", "Measurement", "Quantity", "Query", "Rows"]
