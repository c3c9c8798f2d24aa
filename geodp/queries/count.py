"""How many subjects (or rows) there are in each key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geodp.contribution import distinct_pairs, within_cap
from geodp.estimators import estimate, to_integers
from geodp.queries.base import Ints, Layout, Quantity, Query, Rows
from geodp.sensitivity import counts

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Count", "interval"]


@dataclass(frozen=True)
class Count(Query):
    """Distinct subjects per key; with ``rows_per_cell=m`` up to m rows of each.

    Examples
    --------
    >>> Count()
    Count()
    """

    word: ClassVar[str] = "count"

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the one vector of counts."""
        policy = layout.policy
        norms = counts(policy.cap, policy.rows_per_cell, layout.n_keys, policy.neighboring)
        return (Quantity("count", layout.n_keys, norms),)

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Count distinct pairs, at most ``cap`` of each subject."""
        policy = layout.policy
        pairs = distinct_pairs(rows.subject, rows.key, rows.inside, layout.n_keys, policy.rows_per_cell)
        kept = pairs.take(within_cap(pairs, policy.cap, rows.subjects, secret))
        weights = kept.rows if policy.rows_per_cell > 1 else None
        return {"count": np.bincount(kept.key, weights, layout.n_keys).astype(np.int64)}

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return count, estimate, noisy_count, lower and upper."""
        (measurement,) = plan.measurements
        measured = noisy["count"]
        smooth = estimate(measured, measurement.law, plan.estimator, plan.layout.hierarchy())
        lower, upper = interval(measured, measurement.law.halfwidth(0.95))
        return {
            "count": to_integers(smooth, plan.layout.hierarchy().order),
            "estimate": smooth,
            "noisy_count": measured,
            "lower": lower,
            "upper": upper,
        }

    def counted(self, policy: "Policy") -> str:
        """Say what a count counts, and that it is not trips."""
        if policy.by_row:
            return "rows, each its own subject"
        times = "once in each" if policy.rows_per_cell == 1 else f"up to {policy.rows_per_cell} rows in each"
        cells = "1 cell" if policy.cap == 1 else f"{policy.cap} cells"
        return f"distinct {policy.unit}s, each in at most {cells}, {times}; not trips"


def interval(measured: Ints, halfwidth: int) -> tuple[Ints, Ints]:
    """Return the ends of the noise interval, uncut, saturating where int64 ends."""
    top = np.iinfo(np.int64).max
    lower = np.where(measured < halfwidth - top, -top, measured - halfwidth)
    upper = np.where(measured > top - halfwidth, top, measured + halfwidth)
    return lower, upper
