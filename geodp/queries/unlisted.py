"""Counts of a domain that nobody lists: which rows are released is part of the private result.

Keys are numbers of a :class:`geodp.grids.ranked.RankedDomain`, so tallies hold only keys that somebody is
in. What is stored of a release is its ids, so a replay needs no row and no numbering.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.contribution import runs
from geodp.estimators import to_integers
from geodp.grids.ranked import RankedDomain
from geodp.mechanisms.noise import add_saturating
from geodp.queries.base import Floats, Ints, Layout, Quantity, Query, Rows, sampled_pairs
from geodp.queries.count import Count, interval
from geodp.sensitivity import counts

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.policy import Policy
    from geodp.testing import Mode

__all__ = ["ESTIMATORS", "SLOT", "Unlisted"]

ESTIMATORS = ("pyramid", "clamp")
SLOT = "rows/slot"
_COLUMNS = ("count", "estimate", "noisy_count", "lower", "upper")


@dataclass(frozen=True)
class Unlisted(Query):
    """Counts of which only those at or above a public threshold are released."""

    word: ClassVar[str] = "count"

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count."""
        return False

    @abstractmethod
    def threshold(self, plan: "Plan") -> int:
        """Return the least noisy count that is released, at least 1."""

    @abstractmethod
    def smooth(self, plan: "Plan", measured: Ints) -> Floats:
        """Return what the map shows, from the noisy counts that were released."""

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the counts of all keys, listed or not."""
        policy = layout.policy
        norms = counts(policy.cap, policy.rows_per_cell, layout.n_keys, policy.neighboring)
        return (Quantity("count", layout.n_keys, norms),)

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Count distinct pairs, at most ``cap`` of each subject: keys that somebody is in, ascending, and counts."""
        kept = sampled_pairs(rows, layout, secret)
        order = np.argsort(kept.key, kind="stable")
        key = kept.key[order]
        starts, lengths = runs(key)
        if layout.policy.rows_per_cell > 1 and len(starts):
            lengths = np.add.reduceat(kept.rows[order], starts)
        return {"key": key[starts], "count": lengths.astype(np.int64)}

    def draw(self, plan: "Plan", exact: Mapping[str, Ints], mode: "Mode") -> dict[str, Ints]:
        """Add noise to every key that somebody is in, and keep what reaches the threshold."""
        law, key, count = plan.measurements[0].law, exact["key"], exact["count"]
        noisy = count if mode.silent else add_saturating(count, law.sample(len(count), mode.bits))
        passed = noisy >= self.threshold(plan)
        return {"key": key[passed], "count": noisy[passed]}

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return count, estimate, noisy_count, lower and upper, behind what names the rows.

        Ids and slots are what a replay is made from; the slots' levels are what a ledger compares. The
        interval holds for all public keys at once: a cell is looked at because its noise was high.
        """
        layout, measured = plan.layout, noisy["count"]
        domain = _ranked(layout)
        cell, slot = np.divmod(noisy["key"], layout.n_slots)
        smooth = self.smooth(plan, measured)
        lower, upper = interval(measured, plan.measurements[0].law.halfwidth("0.95", layout.n_keys))
        return {
            domain.name: domain.ids(cell),
            **({SLOT: slot, **plan.slots.plain_values(slot)} if plan.slots.names else {}),
            "count": to_integers(smooth),
            "estimate": smooth,
            "noisy_count": measured,
            "lower": lower,
            "upper": upper,
        }

    def rows(
        self, plan: "Plan", columns: Mapping[str, NDArray[Any]]
    ) -> tuple[pd.Index, dict[str, NDArray[Any]]]:
        """Return the index made of ids and slots, and the columns that are left."""
        name = _ranked(plan.layout).name
        cells = pd.Index(np.asarray(columns[name], dtype=object), dtype="str", name=name)
        index = plan.slots.index_of(cells, columns[SLOT]) if plan.slots.names else cells
        data = {key: columns[key] for key in _COLUMNS}
        return index, data

    def edge(self, plan: "Plan", columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return which rows lie on the border of the box."""
        domain = _ranked(plan.layout)
        return domain.on_edge(domain.numbers(columns[domain.name]))

    def geometry(self, layout: Layout, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.object_]:
        """Return the outline of each row's cell."""
        domain = _ranked(layout)
        return domain.outlines(domain.numbers(columns[domain.name]))

    def counted(self, policy: "Policy") -> str:
        """Say what a count counts."""
        return Count().counted(policy)


def _ranked(layout: Layout) -> RankedDomain:
    domain = layout.domain
    assert isinstance(domain, RankedDomain)
    return domain
