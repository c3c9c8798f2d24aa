"""Scaling a capped map up to a total of its own: opt-in, and bounded by a public number of keys.

The cap drops people's keys beyond it, so the map's total is too small. A separately noised total of
min(k, k_max) keys per subject, for a small share of the budget, says by how much. Without ``k_max`` that
total would have no bounded sensitivity.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from geodp.contribution import Pairs, runs
from geodp.queries.base import Ints, Layout, Quantity
from geodp.sensitivity import Norms

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = ["NO_RESCALING", "Rescaling"]

_SHARE = Fraction(1, 20)
_READABLE = 3


@dataclass(frozen=True)
class Rescaling:
    """Whether, and up to how many keys of one subject, the total is measured.

    Attributes
    ----------
    k_max : int
        Public bound on a subject's keys in the total; 0 switches rescaling off.
    """

    k_max: int = 0

    def __bool__(self) -> bool:
        return self.k_max > 0

    @property
    def left(self) -> Fraction:
        """Share of the budget that stays with the map."""
        return 1 - _SHARE if self else Fraction(1)

    def shares(self, parts: int) -> tuple[Fraction, ...]:
        """Return the shares of the ``parts`` numbers that rescaling measures."""
        return (_SHARE / parts,) * parts

    def total(self, layout: Layout, share: Fraction) -> Quantity:
        """Return the total as a quantity: one subject moves it by at most m·min(k_max, K)."""
        most = Fraction(layout.policy.rows_per_cell * min(self.k_max, layout.n_keys))
        return Quantity("total", 1, Norms(most, most**2), share=share)

    def tally(self, pairs: Pairs, rows_per_cell: int) -> Ints:
        """Return the sum over subjects of min(rows that count, m·k_max)."""
        starts, _ = runs(pairs.subject)
        held = np.add.reduceat(pairs.rows, starts) if len(starts) else pairs.rows
        return np.array([np.minimum(held, rows_per_cell * self.k_max).sum()], np.int64)

    def factor(self, plan: "Plan", noisy_total: Ints, kept: float, std_kept: float) -> float:
        """Return by how much to scale: 1 where either total is lost in its noise, never below 1."""
        total = next(m for m in plan.measurements if m.name == "total")
        measured = float(noisy_total[0])
        if measured < _READABLE * total.law.std or kept < _READABLE * std_kept:
            return 1.0
        return float(np.clip(measured / kept, 1.0, self.k_max))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, empty where rescaling is off."""
        return {"rescaled_to": f"min(cells, {self.k_max}) of each subject"} if self else {}


NO_RESCALING = Rescaling()
