"""What can be asked: each query is one module, and all go through the same Plan and release."""

from geodp.queries.base import Layout, Measurement, Quantity, Query, Rows
from geodp.queries.centroids import Centroid
from geodp.queries.count import Count
from geodp.queries.means import Mean
from geodp.queries.sums import Sum

__all__ = ["Centroid", "Count", "Layout", "Mean", "Measurement", "Quantity", "Query", "Rows", "Sum"]
