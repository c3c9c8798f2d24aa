"""How many subjects (or rows) there are in each key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geodp.contribution import distinct_pairs
from geodp.estimators import estimate, to_integers
from geodp.queries.base import Ints, Layout, Quantity, Query, Rows, sampled_pairs
from geodp.queries.rescaling import NO_RESCALING, Rescaling
from geodp.sensitivity import counts

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Count", "interval"]


@dataclass(frozen=True)
class Count(Query):
    """Distinct subjects per key; with ``rows_per_cell=m`` up to m rows of each.

    Parameters
    ----------
    rescaling : Rescaling
        Whether the map is scaled to a separately measured total.

    Examples
    --------
    >>> Count().to_dict()
    {'query': 'count'}
    """

    word: ClassVar[str] = "count"
    rescaling: Rescaling = NO_RESCALING

    def __post_init__(self) -> None:
        if not isinstance(self.rescaling, Rescaling):
            raise TypeError("Count() takes no arguments here; scale a map with heatmap(..., rescale=True).")

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count, but for a rescaled total."""
        return bool(self.rescaling)

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the counts, and the total that rescaling measures."""
        policy = layout.policy
        norms = counts(policy.cap, policy.rows_per_cell, layout.n_keys, policy.neighboring)
        leading = Quantity("count", layout.n_keys, norms, share=self.rescaling.left)
        if not self.rescaling:
            return (leading,)
        (share,) = self.rescaling.shares(1)
        return (leading, self.rescaling.total(layout, share))

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Count distinct pairs, at most ``cap`` of each subject."""
        policy = layout.policy
        kept = sampled_pairs(rows, layout, secret)
        weights = kept.rows if policy.rows_per_cell > 1 else None
        tallies = {"count": np.bincount(kept.key, weights, layout.n_keys).astype(np.int64)}
        if self.rescaling:
            pairs = distinct_pairs(rows.subject, rows.key, rows.inside, layout.n_keys, policy.rows_per_cell)
            tallies["total"] = self.rescaling.tally(pairs, policy.rows_per_cell)
        return tallies

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return count, estimate, noisy_count, lower and upper."""
        law, measured = plan.measurements[0].law, noisy["count"]
        hierarchy = plan.layout.hierarchy()
        smooth = estimate(measured, law, plan.estimator, hierarchy)
        if self.rescaling:
            std = law.std * math.sqrt(len(measured))
            smooth = smooth * self.rescaling.factor(plan, noisy["total"], float(smooth.sum()), std)
        lower, upper = interval(measured, law.halfwidth(0.95))
        return {
            "count": to_integers(smooth, hierarchy.order),
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

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON.

        Returns
        -------
        dict
            The word of the query and its arguments, as the record has them.
        """
        return {"query": self.word, **self.rescaling.to_dict()}


def interval(measured: Ints, halfwidth: int) -> tuple[Ints, Ints]:
    """Return the ends of the noise interval, uncut, saturating where int64 ends."""
    top = np.iinfo(np.int64).max
    lower = np.where(measured < halfwidth - top, -top, measured - halfwidth)
    upper = np.where(measured > top - halfwidth, top, measured + halfwidth)
    return lower, upper
