"""What the curator sees of the raw data: numbers, warnings, a page and a picture, and nothing to publish."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geodp.pages import rows_html, rows_text
from geodp.wording import figure, people, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NOT_FOR_PUBLICATION", "Audit", "Kept", "Spread", "spread"]

NOT_FOR_PUBLICATION = "raw data, not for publication"
_NOT_COVERED = (
    "a cap, box, resolution, level or clip that is chosen after this look at the same data is not covered by "
    "eps. geodp.choose_cap chooses a cap privately; another month's data may be looked at freely."
)


@dataclass(frozen=True)
class Spread:
    """How a number spreads over subjects: mean, quantiles, and the largest."""

    mean: float
    median: float
    p90: float
    p99: float
    largest: float

    def __str__(self) -> str:
        return (
            f"mean {figure(self.mean)}, median {figure(self.median)}, 90 % up to {figure(self.p90)}, "
            f"99 % up to {figure(self.p99)}, largest {figure(self.largest)}"
        )


def spread(values: NDArray[Any]) -> Spread | None:
    """Return how values spread, None if there are none.

    Examples
    --------
    >>> print(spread(np.array([1, 1, 2, 40])))
    mean 11, median 1, 90 % up to 40, 99 % up to 40, largest 40
    """
    if not len(values):
        return None
    median, p90, p99 = np.quantile(values, (0.5, 0.9, 0.99), method="inverted_cdf")
    return Spread(float(np.mean(values)), float(median), float(p90), float(p99), float(np.max(values)))


@dataclass(frozen=True)
class Kept:
    """What a cap would keep.

    Attributes
    ----------
    cap : int
    pairs : float
        Share of the distinct (subject, cell) pairs that are counted, 0 to 1.
    subjects : float
        Share of the subjects that lose nothing.
    """

    cap: int
    pairs: float
    subjects: float


@dataclass(frozen=True, repr=False)
class Audit:
    """The curator's private look at raw data; made by ``gdf.dp.audit(...)``. Never publish any of it.

    Attributes
    ----------
    warnings : tuple of str
        What should be looked into before a release, worst first.
    unit, grid, bounds : str
        Whose the rows are, and where they were looked at.
    rows, placed : int
        Rows of the frame; rows with a subject, a slot, a value and a cell.
    left_out : tuple of (str, int)
        Why rows are left out or moved, and how many; a row may have several reasons.
    outside : float or None
        Share of the points outside the box, or outside all zones; None for the whole world.
    subjects : int
        Distinct subjects with a cell.
    cells : Spread or None
        Distinct cells of the domain (with ``by``: cells and slots) per subject.
    cell_counts : tuple of (int, int)
        Number of cells, and number of subjects in exactly so many.
    kept : tuple of Kept
        What caps of 1, 2, 4, ... keep.
    cap : int or None
        The cap that was given.
    subject_rows, pair_rows : Spread or None
        Rows per subject, and per subject and cell.
    norms : tuple of (str, Spread)
        With ``value``: values, and the L1 and L2 norms of each subject's sums before any cap or clip.
    delta, people_at_delta : float or None
        The given delta, and delta times the number of subjects.
    """

    warnings: tuple[str, ...]
    unit: str
    grid: str
    bounds: str
    rows: int
    placed: int
    left_out: tuple[tuple[str, int], ...]
    outside: float | None
    subjects: int
    cells: Spread | None
    cell_counts: tuple[tuple[int, int], ...]
    kept: tuple[Kept, ...]
    cap: int | None
    subject_rows: Spread | None
    pair_rows: Spread | None
    norms: tuple[tuple[str, Spread], ...]
    delta: float | None
    people_at_delta: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain JSON, marked as raw data."""
        return {"publication": NOT_FOR_PUBLICATION, **asdict(self)}

    def plot(self) -> "Figure":
        """Draw cells per subject, and what each cap keeps (needs the extra ``plot``)."""
        import matplotlib.pyplot as plt

        drawn, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
        number, subjects = zip(*self.cell_counts, strict=True) if self.cell_counts else ((), ())
        left.bar(number, subjects)
        left.set(xlabel="distinct cells", ylabel=people(self.unit))
        for name, label in (("pairs", "cells counted"), ("subjects", f"{people(self.unit)} kept whole")):
            right.plot(
                [kept.cap for kept in self.kept],
                [100 * getattr(kept, name) for kept in self.kept],
                marker=".",
                label=label,
            )
        right.set_xscale("log", base=2)
        right.set(xlabel="cap", ylabel="per cent", ylim=(0, 105))
        right.legend()
        drawn.suptitle(NOT_FOR_PUBLICATION.upper(), color="firebrick")
        return drawn

    def __str__(self) -> str:
        return rows_text(_page(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return rows_html(_page(self))


def _page(audit: Audit) -> list[tuple[str, ...]]:
    page: list[tuple[str, ...]] = [("", f"Audit: {NOT_FOR_PUBLICATION.upper()}")]
    page += [("LOOK", text) for text in audit.warnings]
    page += [("rows", f"{audit.rows:,}, of which {audit.placed:,} have a cell")]
    page += [("", f"{number:,} {reason} ({_share(number, audit.rows)})") for reason, number in audit.left_out]
    page += [("where", f"{audit.grid}, {audit.bounds}{_outside(audit)}")]
    page += _subjects(audit)
    page += [(name, str(found)) for name, found in audit.norms]
    page += [("delta", _delta(audit))] if audit.delta is not None else []
    return [*page, ("remember", _NOT_COVERED)]


def _subjects(audit: Audit) -> list[tuple[str, ...]]:
    who = people(audit.unit)
    rows: list[tuple[str, ...]] = [("subjects", f"{audit.subjects:,} {who} with a cell")]
    if audit.cells is None:
        return rows
    rows += [("cells each", str(audit.cells)), ("rows each", str(audit.subject_rows))]
    rows += [("per cell", f"rows of one {shown(audit.unit)} in one cell: {audit.pair_rows}")]
    for kept in audit.kept:
        mark = " <-" if kept.cap == audit.cap else ""
        rows.append(
            (
                f"cap {kept.cap}{mark}",
                f"keeps {100 * kept.pairs:.1f} % of cells, {100 * kept.subjects:.1f} % of {who} whole",
            )
        )
    return rows


def _outside(audit: Audit) -> str:
    return "" if audit.outside is None else f"; {100 * audit.outside:.1f} % of the points lie outside"


def _delta(audit: Audit) -> str:
    return f"{audit.delta:g}; times {audit.subjects:,} subjects: {audit.people_at_delta:.2g} people may lose protection"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"
