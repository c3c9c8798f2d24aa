"""``cells="sparse"``: the dense map's cells from a threshold up, empty ones included, without visiting the rest.

Let the listed release add noise X_i to every key i of the domain, and keep the keys with noisy count >= T.
Here keys that somebody is in get their noise one by one; of all numbers of the public superset, those with noise
>= T alone are found by exact gaps, and hits on keys that somebody is in, or outside the domain, are thrown away; the
rest get their values from the law of X given X >= T. For every key apart, and so for all together, that is
the same law: PRIVACY.md has the proof. So it is the listed release, post-processed, and costs what that costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from geodp.exact import plain
from geodp.grids.ordered import is_in
from geodp.mechanisms.hits import hits
from geodp.mechanisms.laws import Law
from geodp.queries.base import Floats, Ints
from geodp.queries.unlisted import Unlisted, _ranked

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.testing import Mode

__all__ = ["Sparse", "expected_phantoms"]

_ONE = Fraction(1)


@dataclass(frozen=True)
class Sparse(Unlisted):
    """Counts from a threshold up.

    Parameters
    ----------
    at_least : int, optional
        The threshold, as typed.
    phantoms : Fraction, default 1
        Otherwise the least threshold that empty cells of the whole domain are expected to pass at most so often.

    Examples
    --------
    >>> Sparse(12).to_dict()
    {'query': 'count', 'at_least': 12}
    """

    at_least: int | None = None
    phantoms: Fraction = _ONE

    def threshold(self, plan: "Plan") -> int:
        """Return the typed threshold, or the one that the expected number of phantoms asks for."""
        if self.at_least is not None:
            return self.at_least
        return _threshold(plan.measurements[0].law, self.phantoms, plan.layout.n_keys)

    def released(self, plan: "Plan") -> str:
        """Say which cells are released, and how many of them will be empty."""
        law, threshold = plan.measurements[0].law, self.threshold(plan)
        expected = expected_phantoms(law, threshold, plan.layout.n_keys)
        return (
            f"only those measured at {threshold:,} or more are released, {expected:,.2g} empty ones expected"
        )

    def draw(self, plan: "Plan", exact: Mapping[str, Ints], mode: "Mode") -> dict[str, Ints]:
        """Return all keys whose noisy count reaches the threshold, ascending, and those counts."""
        occupied = super().draw(plan, exact, mode)
        if mode.silent:
            return occupied
        law, threshold = plan.measurements[0].law, self.threshold(plan)
        found = hits(law, threshold, plan.layout.n_keys, mode.bits)
        empty = found[~is_in(found, exact["key"])]
        empty = empty[_ranked(plan.layout).contains(empty // plan.layout.n_slots)]
        noise = law.sample_tail(len(empty), threshold, mode.bits)
        key = np.concatenate([occupied["key"], empty])
        order = np.argsort(key)
        return {"key": key[order], "count": np.concatenate([occupied["count"], noise])[order]}

    def smooth(self, plan: "Plan", measured: Ints) -> Floats:
        """Return posterior means; all cells that were not released lie below the threshold."""
        from geodp.estimators.censored import posterior_means

        if plan.ways.estimator == "clamp":
            return measured.astype(np.float64)
        law = plan.measurements[0].law
        return posterior_means(measured, law, self.threshold(plan), plan.layout.n_keys)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON."""
        if self.at_least is not None:
            return {"query": self.word, "at_least": self.at_least}
        return {"query": self.word, "phantoms": plain(self.phantoms)}


def expected_phantoms(law: Law, threshold: int, n_keys: int) -> float:
    """Return how many empty keys are expected to pass a threshold at most, if all keys are empty."""
    return float(law.sf(threshold - 1)) * n_keys


@lru_cache(maxsize=256)
def _threshold(law: Law, phantoms: Fraction, n_keys: int) -> int:
    share = phantoms / n_keys
    return 1 if share >= Fraction(1, 2) else max(1, law.quantile_sf(share))
