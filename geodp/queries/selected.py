"""``cells="select"``: only cells that hold somebody can appear, for a delta of its own.

Keys nobody is in get no noise and are never released. That a key is there at all tells that somebody is in
it, so a key that one subject alone is in must nearly never pass: with c' keys of one subject, m rows in each, the
threshold is the smallest integer T with 1 - (1 - P(m + X >= T))^c' <= delta_select. The release is (eps,
delta_noise + delta_select)-DP, under either neighboring relation, and delta_select-approximately rho-zCDP;
PRIVACY.md has the proof. A threshold for one cell alone would be passed 4 to 15 times as often as
declared at c = 4 to 16.

Of delta the selection has all under Laplace noise, which needs none, and half under Gaussian.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from geodp.mechanisms.laws import Law
from geodp.queries.base import Floats, Ints
from geodp.queries.unlisted import Unlisted

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = ["Selected", "selection_threshold"]


@dataclass(frozen=True)
class Selected(Unlisted):
    """Counts of cells that hold somebody, from a threshold up that hides who is alone.

    Examples
    --------
    >>> Selected().selection(Fraction(1, 10**6), "gaussian")
    Fraction(1, 2000000)
    """

    def selection(self, delta: Fraction, mechanism: str) -> Fraction:
        """Return the selection's part of delta: all under Laplace noise, half under Gaussian."""
        return delta if mechanism == "laplace" else delta / 2

    def threshold(self, plan: "Plan") -> int:
        """Return the smallest threshold that the selection's delta allows."""
        policy = plan.policy
        keys = min(policy.cap, plan.layout.n_keys)
        delta = self.selection(plan.delta, plan.mechanism)
        return selection_threshold(plan.measurements[0].law, delta, keys, policy.rows_per_cell)

    def released(self, plan: "Plan") -> str:
        """Say which cells are released."""
        return f"only those that hold somebody and measure {self.threshold(plan):,} or more are released"

    def smooth(self, plan: "Plan", measured: Ints) -> Floats:
        """Return the measurement: what was not released got no noise, so no prior can be fitted."""
        return measured.astype(np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON."""
        return {"query": self.word}


@lru_cache(maxsize=256)
def selection_threshold(law: Law, delta: Fraction, keys: int, rows_per_cell: int) -> int:
    """Return the smallest T >= 1 with P(any of ``keys`` draws has rows_per_cell + X >= T) <= ``delta``.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> [selection_threshold(DiscreteLaplace(4.0), Fraction(1, 10**6), keys, 1) for keys in (1, 4)]
    [54, 60]
    """
    return max(1, rows_per_cell + law.quantile_sf(delta, keys))
