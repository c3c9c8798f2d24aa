"""Counts measured on several levels at once: cells, and totals of coarse blocks of them.

The budget is split; the map is reconciled over the blocks, which gets regions right at some cost per
cell. A block sum of capped cells moves by up to the cap, so coarse levels have L2 = c, not sqrt(c).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geodp.estimators import Measured, estimate, to_integers
from geodp.estimators.planning import LevelShares
from geodp.lattice import add_up
from geodp.queries.base import Ints, Layout, Quantity, Query, Rows
from geodp.queries.count import Count, interval
from geodp.sensitivity import Norms

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["LevelsCount", "block_norms"]


@dataclass(frozen=True)
class LevelsCount(Query):
    """Counts of cells and of coarse blocks; :attr:`shares` are decided on the plan.

    Attributes
    ----------
    shares : LevelShares
        Part of the budget for the cells, and for each block level, finest first; 0 drops a level.
    """

    word: ClassVar[str] = "count"
    shares: LevelShares

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count."""
        return False

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the cells, then every measured block level."""
        (cells,) = Count().quantities(layout, mechanism)
        leading = Quantity("count", cells.size, cells.norms, share=self.shares.cells)
        return (leading, *(self._level(layout, i, share) for i, share in self._measured()))

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Count the cells, and add those same counts up over blocks."""
        tallies = Count().tally(rows, layout, mechanism, secret)
        blocks = layout.hierarchy().blocks
        for i, _ in self._measured():
            tallies[_name(i)] = add_up(blocks[i], tallies["count"], int(blocks[i].max()) + 1)
        return tallies

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return the columns of a count; measurement and interval are those of the cells."""
        laws = {m.name: m.law for m in plan.measurements}
        hierarchy = plan.layout.hierarchy()
        levels = [
            Measured(noisy[_name(i)], laws[_name(i)]) if share else None
            for i, share in enumerate(self.shares.blocks)
        ]
        smooth = estimate(noisy["count"], laws["count"], "pyramid", hierarchy, levels)
        lower, upper = interval(noisy["count"], laws["count"].halfwidth(0.95))
        return {
            "count": to_integers(smooth, hierarchy.order),
            "estimate": smooth,
            "noisy_count": noisy["count"],
            "lower": lower,
            "upper": upper,
        }

    def counted(self, policy: "Policy") -> str:
        """Say what a count counts."""
        return Count().counted(policy)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON."""
        shares = [str(self.shares.cells), *(str(share) for share in self.shares.blocks)]
        return {"query": self.word, "level_shares": shares}

    def _measured(self) -> list[tuple[int, Fraction]]:
        return [(i, share) for i, share in enumerate(self.shares.blocks) if share]

    def _level(self, layout: Layout, i: int, share: Fraction) -> Quantity:
        sizes = np.bincount(layout.hierarchy().blocks[i])
        return Quantity(_name(i), len(sizes), block_norms(layout, int(sizes.max())), share=share)


def block_norms(layout: Layout, largest: int) -> Norms:
    """Return the sensitivities of sums over blocks of at most ``largest`` keys.

    A subject in c' = q·B + r keys fills q blocks and r keys of another at worst: L1 = c'm and
    L2² = m²(q·B² + r²). Under ``replace_one`` L1 and L2² double: block sums are not negative, so the old
    and the new subject are furthest apart in different blocks.
    """
    policy = layout.policy
    m, keys = policy.rows_per_cell, min(policy.cap, layout.n_keys)
    full, rest = divmod(keys, largest)
    twice = 2 if policy.neighboring == "replace_one" else 1
    return Norms(Fraction(twice * m * keys), Fraction(twice * m**2 * (full * largest**2 + rest**2)))


def _name(level: int) -> str:
    return f"blocks {level}"
