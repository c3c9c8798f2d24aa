"""What is asked of the points, without data and without budget."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.contribution import Pairs, kept_pairs
from geodp.grids.hierarchy import Hierarchy
from geodp.mechanisms.laws import Law
from geodp.mechanisms.noise import add_saturating
from geodp.sensitivity import Norms
from geodp.subjects import Subjects

if TYPE_CHECKING:
    from geodp.grids import Domain, Grid
    from geodp.plans import Plan
    from geodp.policy import Policy
    from geodp.testing import Mode

__all__ = ["Layout", "Measurement", "Quantity", "Query", "Rows", "sampled_pairs"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """The public shape that sensitivities are derived from.

    Attributes
    ----------
    policy : Policy
        Who is protected, with bounds and grid settled.
    domain : Domain
        The cells.
    n_slots : int
        Slots of each cell; 1 without ``by``.
    """

    policy: "Policy"
    domain: "Domain"
    n_slots: int

    @property
    def n_keys(self) -> int:
        """Number of (cell, slot) keys."""
        return self.domain.n_cells * self.n_slots

    def hierarchy(self) -> Hierarchy:
        """Return the neighbourhood of the keys: that of their cells, within one slot."""
        return _within_slots(self.domain.hierarchy(), self.domain.n_cells, self.n_slots)


def _within_slots(cells: Hierarchy, n_cells: int, n_slots: int) -> Hierarchy:
    """Repeat a neighbourhood of cells for every slot; keys are numbered cell by cell."""
    if n_slots == 1:
        return cells
    slot = np.arange(n_slots, dtype=np.int64)
    curve = np.arange(n_cells, dtype=np.int64) if cells.order is None else cells.order
    return Hierarchy(
        tuple((group[:, None] * n_slots + slot).ravel() for group in cells.siblings),
        tuple((block[:, None] * n_slots + slot).ravel() for block in cells.blocks),
        (curve * n_slots + slot[:, None]).ravel(),
    )


@dataclass(frozen=True)
class Quantity:
    """One vector of integers that a query measures, before any budget is given to it.

    Attributes
    ----------
    name : str
        What is measured, such as ``"count"``.
    size : int
        Length of the vector.
    norms : Norms
        Its sensitivities, in lattice steps.
    step : Fraction
        Size of a lattice step in the user's unit; 1 for counts.
    share : Fraction
        Part of the budget, in (0, 1]; all shares of a query add up to 1. Of eps under Laplace noise,
        of 1/sigma² under Gaussian.
    """

    name: str
    size: int
    norms: Norms
    step: Fraction = Fraction(1)
    share: Fraction = Fraction(1)


@dataclass(frozen=True)
class Measurement:
    """A quantity with its noise: what a release draws, and what a ledger can check.

    Attributes
    ----------
    quantity : Quantity
        What is measured, and how far one subject can move it.
    law : Law
        The noise, in lattice steps.
    """

    quantity: Quantity
    law: Law

    @property
    def name(self) -> str:
        """The quantity's name."""
        return self.quantity.name

    @property
    def mechanism(self) -> str:
        """``"laplace"`` or ``"gaussian"``."""
        return self.law.kind

    @property
    def scale(self) -> float:
        """B of the Laplace or sigma of the Gaussian, in lattice steps."""
        return self.law.scale

    @property
    def l1(self) -> Fraction:
        """L1 sensitivity in lattice steps."""
        return self.quantity.norms.l1

    @property
    def l2_squared(self) -> Fraction:
        """Square of the L2 sensitivity, in squared lattice steps."""
        return self.quantity.norms.l2_squared

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement as plain JSON, exact enough to recompute its cost."""
        return {
            "name": self.name,
            "l1": str(self.l1),
            "l2_squared": str(self.l2_squared),
            "mechanism": self.mechanism,
            "scale": self.scale,
            "step": str(self.quantity.step),
            "size": self.quantity.size,
        }


@dataclass(frozen=True)
class Rows:
    """Rows that have a place in the domain, as numbers.

    Attributes
    ----------
    subjects : Subjects
        Whose rows there are.
    subject, key : int64 arrays, shape (n,)
        Subject and (cell, slot) of each row, neither negative.
    inside : bool array, shape (n,)
        False where the row was clamped to the box.
    values : int64 array, shape (n, d)
        What the row contributes, in lattice steps; d is 0 for counts.
    """

    subjects: Subjects
    subject: Ints
    key: Ints
    inside: NDArray[np.bool_]
    values: Ints


def sampled_pairs(rows: Rows, layout: Layout, secret: bytes) -> Pairs:
    """Return the distinct pairs of rows, at most ``cap`` of each subject."""
    policy = layout.policy
    return kept_pairs(
        rows.subject,
        rows.key,
        rows.inside,
        layout.n_keys,
        policy.rows_per_cell,
        policy.cap,
        rows.subjects,
        secret,
    )


class Query(ABC):
    """What is asked. Subclasses are frozen dataclasses, and hold neither data nor budget."""

    word: ClassVar[str]

    @property
    def reads(self) -> str | None:
        """The column of values that the query reads, if any."""
        return None

    @property
    def takes_all_keys(self) -> bool:
        """Whether keys beyond a subject's sample under the cap matter, too."""
        return True

    def default_grid(self) -> "Grid | None":
        """Return the grid where none was given; ``None`` means the finest H3 of at most 10,000 cells."""
        return None

    def mechanism(self, asked: str, delta: Fraction) -> str:
        """Return the mechanism to choose from; a query made for one of them fixes ``"auto"``."""
        return asked

    @abstractmethod
    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return what is measured, the leading quantity first."""

    @abstractmethod
    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Bound every subject's contribution and add up, exactly; one vector for each quantity."""

    def threshold(self, plan: "Plan") -> int | None:
        """Return the least noisy count that is released; ``None`` where all rows are, by a public list."""
        return None

    def released(self, plan: "Plan") -> str:
        """Say which cells are released."""
        return "all released, empty or not"

    def selection(self, delta: Fraction, mechanism: str) -> Fraction:
        """Return the part of delta that choosing the rows costs."""
        return Fraction(0)

    @abstractmethod
    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Make the released columns from the noisy integers: post-processing, blind to the data."""

    def draw(self, plan: "Plan", exact: Mapping[str, Ints], mode: "Mode") -> dict[str, Ints]:
        """Add the noise of every measurement; saturates where int64 ends, so that nothing wraps."""
        if mode.silent:
            return {m.name: exact[m.name] for m in plan.measurements}
        return {
            m.name: add_saturating(exact[m.name], m.law.sample(m.quantity.size, mode.bits))
            for m in plan.measurements
        }

    def rows(
        self, plan: "Plan", columns: Mapping[str, NDArray[Any]]
    ) -> tuple[pd.Index, dict[str, NDArray[Any]]]:
        """Return the index of the released frame, and the columns that are not part of it."""
        return plan.index, dict(columns)

    def edge(self, plan: "Plan", columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return which rows lie on the border of the box."""
        return np.repeat(plan.layout.domain.edge, len(plan.slots))

    def geometry(self, layout: Layout, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.object_]:
        """Return the geometry of each released row: the outline of its cell."""
        outlines = layout.domain.geometry()
        return np.repeat(outlines, layout.n_slots) if layout.n_slots > 1 else outlines

    @abstractmethod
    def counted(self, policy: "Policy") -> str:
        """Say in words what one unit of the result is."""

    def integers(self, values: Floats | None, lon: Floats, lat: Floats, cell: Ints, domain: "Domain") -> Ints:
        """Return what each row contributes, in lattice steps, shape (n, d)."""
        return np.zeros((len(cell), 0), np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON.

        Returns
        -------
        dict
            The word of the query and its arguments, as the record has them.
        """
        return {"query": self.word}
