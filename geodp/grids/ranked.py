"""Domains too large to list: cells by number, in a public superset that is numbered without being listed.

Every cell of a box has a number below ``n_cells``, and a number becomes a cell again by arithmetic. For
squares, for the whole world, and for boxes of few cells, the numbers are those of the domain's own cells.
For H3 in a larger box they are those of all descendants of a coarse cover of the box; which of them belong to
the domain is told cell by cell, by the rule that the listed domain is made with.

Why no cell is missing: with d the distance of neighbouring centres, the centres of a cell's descendants lie
within (1/sqrt(7) + 1/7 + ...) d = 0.608 d of its own, and no descendant reaches farther than that (at depth n
its circumradius is 7^(-n/2) d/sqrt(3)). So if a descendant of B meets the box in a point of the coarse cell
A, the centres of A and B are at most (0.608 + 0.577) d apart. Cells that are not neighbours are sqrt(3) d
apart: B is A, or next to it, and one ring around the cover has it. The slack of 46 % is more than H3's
cells are distorted.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NoReturn

import h3.api.basic_int as h3
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import EARTH_RADIUS_KM, WORLD, Box
from geodp.chunks import slices
from geodp.grids.base import Domain, Grid, located
from geodp.grids.digits import Descendants
from geodp.grids.h3 import (
    H3,
    Cells,
    _boundaries,
    _children_of_all,
    _discs,
    _locate,
    _meets,
    _sides,
    _strips,
    _texts,
)
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import Floats, Ints, parted
from geodp.grids.ordered import distinct
from geodp.grids.outlines import polygons
from geodp.grids.square import Square, _Axis, _columns, _east, _rows, _west, _westward
from geodp.progress import current

__all__ = ["LISTED", "RankedDomain", "can_rank", "rankable", "ranked"]

LISTED = 50_000
_COVER = 4_000

Texts = NDArray[np.str_]
Flags = NDArray[np.bool_]


class RankedDomain(Domain):
    """Cells of a box by number; nothing is ever listed.

    Attributes
    ----------
    exact : bool
        Whether all numbers are cells of the domain; otherwise ``n_cells`` is an upper bound, as public.
    """

    exact: bool = True

    @property
    def index(self) -> NoReturn:
        """Not listed: raises."""
        raise self._unlisted()

    @property
    def edge(self) -> NoReturn:
        """Not listed: raises."""
        raise self._unlisted()

    def geometry(self) -> NoReturn:
        """Not listed: raises."""
        raise self._unlisted()

    def hierarchy(self) -> Hierarchy:
        """Return no neighbourhood: what borrows from neighbours needs all cells."""
        return Hierarchy()

    def _unlisted(self) -> ValueError:
        return ValueError(
            f"this map has {'' if self.exact else 'up to '}{self.n_cells:,} cells and never lists them: which "
            'of them are released is part of the private result. With cells="all" there is an index.'
        )

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the index."""

    @abstractmethod
    def contains(self, cells: Ints) -> Flags:
        """Tell which numbers are cells of the domain, each by itself."""

    @abstractmethod
    def ids(self, cells: Ints) -> Texts:
        """Return the ids of cells, the same as in the listed domain; they rise with the numbers."""

    @abstractmethod
    def numbers(self, ids: NDArray[np.object_]) -> Ints:
        """Return the cells that have these ids."""

    @abstractmethod
    def outlines(self, cells: Ints) -> NDArray[np.object_]:
        """Return the outlines of cells, as :meth:`Domain.geometry` would."""

    @abstractmethod
    def on_edge(self, cells: Ints) -> Flags:
        """Tell which cells the border of the box runs through."""


def can_rank(grid: Grid) -> bool:
    """Tell whether the cells of a grid can be numbered without being listed."""
    return isinstance(grid, H3 | Square)


def rankable(grid: Grid, box: Box | None) -> Grid | None:
    """Return the grid, or the finest coarser one whose cells in a box can be numbered; None if there is none."""
    if not can_rank(grid):
        return None
    if isinstance(grid, Square) and grid.crs is not None:
        from geodp.grids import sheets

        return sheets.rankable(grid, box or WORLD)
    return grid


def ranked(grid: Grid, box: Box | None) -> RankedDomain:
    """Return the numbered domain of a grid in a box.

    Raises
    ------
    ValueError
        The grid is neither H3 nor squares.
    """
    if isinstance(grid, H3):
        return _ranked_h3(grid, box or WORLD)
    if isinstance(grid, Square) and grid.crs is None:
        return _ranked_squares(grid, box or WORLD)
    if isinstance(grid, Square):
        from geodp.grids.sheets import ranked_projected

        return ranked_projected(grid, box or WORLD)
    raise ValueError(
        f'cells="sparse" and cells="select" are for H3 cells and squares; grid="{grid.name}" is '
        "listed anyway: leave cells out."
    )


class RankedH3(RankedDomain):
    """The cells of one resolution below a coarse cover of the box."""

    def __init__(self, grid: H3, box: Box) -> None:
        self.grid: H3 = grid
        self.box = box
        self.exact, self._below = _superset(grid, box)
        # Outside the superset's own cells, every different cell is drawn: once for all points.
        self.splits = self.exact

    @property
    def n_cells(self) -> int:
        """Number of numbers: of cells, or an upper bound of it."""
        return self._below.size

    @property
    def name(self) -> str:
        """Name of the index."""
        return f"h3_{self.grid.resolution:02d}"

    @cached_property
    def area_km2(self) -> float:
        """Mean area of up to 64 cells spread over the numbers, in square kilometres."""
        some = np.unique(np.linspace(0, self.n_cells - 1, 64).astype(np.int64))
        return float(np.mean([h3.cell_area(cell, "km^2") for cell in self._below.cells(some).tolist()]))

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers."""
        numbers = np.empty(len(lon), dtype=np.int64)
        for part in slices(len(lon)):
            numbers[part] = self._below.numbers(_locate(lon[part], lat[part], self.grid.resolution))
            if not self.splits:
                current().reach(part.stop / len(lon))
        some = distinct([numbers])
        inside = some[self.contains(some)]
        if len(inside) < len(some):
            place = np.minimum(np.searchsorted(inside, numbers), len(inside) - 1)
            numbers = np.where(inside[place] == numbers, numbers, -1) if len(inside) else numbers * 0 - 1
        return located(numbers)

    def contains(self, cells: Ints) -> Flags:
        """Tell which numbers are cells of the domain: those whose outline meets the box."""
        belongs = cells >= 0
        if self.exact:
            return belongs
        known = np.flatnonzero(belongs)
        h3_cells = self._below.cells(cells[known])
        # A cell with its centre in the box meets it; only the others have to be drawn.
        belongs[known] = _centred(h3_cells, self.box)
        open_ = known[~belongs[known]]
        belongs[open_] = _meets(self.grid.resolution, self._below.cells(cells[open_]), _strips(self.box))
        return belongs

    def ids(self, cells: Ints) -> Texts:
        """Return strings of 15 lower-case hexadecimal digits."""
        return np.array(_texts(self._below.cells(cells)), dtype="U15")

    def numbers(self, ids: NDArray[np.object_]) -> Ints:
        """Return the cells that have these ids."""
        cells = np.fromiter((int(text, 16) for text in ids), dtype=np.uint64, count=len(ids))
        return self._below.numbers(cells)

    def outlines(self, cells: Ints) -> NDArray[np.object_]:
        """Return the outlines of cells."""
        parts = [polygons(coords, sizes) for coords, sizes in _boundaries(self._below.cells(cells))]
        return np.concatenate([np.empty(0, dtype=object), *parts])

    def on_edge(self, cells: Ints) -> Flags:
        """Tell which cells the border of the box runs through."""
        return _meets(self.grid.resolution, self._below.cells(cells), _sides(self.box))


class RankedSquares(RankedDomain):
    """The squares of degrees in a box, row by row in the order of their ids."""

    def __init__(self, grid: Square, box: Box) -> None:
        self.grid: Square = grid
        self.box = box
        self._rows, self._cols = _Labels(_rows(grid, box)), _Labels(_columns(grid, box))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self._rows.axis.size * self._cols.axis.size

    @property
    def name(self) -> str:
        """Name of the index."""
        return f"square_{self.grid.size_text}"

    @cached_property
    def area_km2(self) -> float:
        """Mean area of the cells on the mean sphere, in square kilometres."""
        (south, north), (west, east) = self._rows.extents(), self._cols.extents()
        rise = np.sum(np.sin(np.radians(north)) - np.sin(np.radians(south)))
        return float(rise * np.sum(np.radians(east - west)) * EARTH_RADIUS_KM**2 / self.n_cells)

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers."""
        row = self._rows.axis.place(lat)
        col = self._cols.axis.place(_westward(lon, self.box))
        inside = (row >= 0) & (row < self._rows.axis.size) & (col >= 0) & (col < self._cols.axis.size)
        rows = np.flatnonzero(inside)
        row, col = (
            labels.of_places(places[rows]) for labels, places in ((self._rows, row), (self._cols, col))
        )
        return rows, row * self._cols.axis.size + col

    def contains(self, cells: Ints) -> Flags:
        """Tell that all numbers are cells of the domain."""
        return cells >= 0

    def ids(self, cells: Ints) -> Texts:
        """Return ids such as ``CRS4326RES0.01N40.50W074.30``."""
        row, col = self._split(cells)
        rows, cols = self._rows.texts(row, "NS", 2), self._cols.texts(col, "EW", 3)
        return np.array([self._head + row + col for row, col in zip(rows, cols, strict=True)], dtype=np.str_)

    def numbers(self, ids: NDArray[np.object_]) -> Ints:
        """Return the cells that have these ids."""
        pairs = [parted(text[len(self._head) :]) for text in ids]
        row = self._rows.of_texts([row for row, _ in pairs])
        col = self._cols.of_texts([col for _, col in pairs])
        return row * self._cols.axis.size + col

    def outlines(self, cells: Ints) -> NDArray[np.object_]:
        """Return the outlines of cells."""
        row, col = self._split(cells)
        (south, north), (west, east) = self._rows.corners(row), self._cols.corners(col)
        return np.asarray(shapely.box(west, south, east, north), dtype=object)

    def on_edge(self, cells: Ints) -> Flags:
        """Tell which cells the border of the box runs through."""
        row, col = self._split(cells)
        lats = [self.box.south] * (self.box.south > -90.0) + [self.box.north] * (self.box.north < 90.0)
        lons = [] if self.box.is_circle else [_west(self.box), _east(self.box)]
        return self._rows.at(row, lats) | self._cols.at(col, lons)

    @property
    def _head(self) -> str:
        return f"CRS4326RES{self.grid.size_text}"

    def _split(self, cells: Ints) -> tuple[Ints, Ints]:
        row, col = np.divmod(cells, self._cols.axis.size)
        return row, col


@dataclass(frozen=True)
class _Labels:
    """The squares of one axis in the order of their labels: N or E up, then S or W away from 0."""

    axis: _Axis

    @cached_property
    def _parts(self) -> list[tuple[int, int, int]]:
        """Stretches of squares: first, step and how many."""
        up = [(max(low, 0), high) for low, high in self.axis.runs if high >= 0]
        down = [(low, min(high, -1)) for low, high in self.axis.runs if low < 0]
        return [
            *((low, 1, high - low + 1) for low, high in sorted(up)),
            *((high, -1, high - low + 1) for low, high in sorted(down, reverse=True)),
        ]

    def squares(self, ranks: Ints) -> Ints:
        """Return the squares' numbers on the lattice."""
        first, step, size = (np.array(column, dtype=np.int64) for column in zip(*self._parts, strict=True))
        starts = np.cumsum(size) - size
        part = np.searchsorted(starts, ranks, side="right") - 1
        found: Ints = first[part] + step[part] * (ranks - starts[part])
        return found

    def ranks(self, squares: Ints) -> Ints:
        """Return the places of squares in the order of their labels, -1 where there is none."""
        found, start = np.full(len(squares), -1, dtype=np.int64), 0
        for first, step, size in self._parts:
            at = (squares - first) * step
            within = (at >= 0) & (at < size)
            found[within], start = start + at[within], start + size
        return found

    def of_places(self, places: Ints) -> Ints:
        """Return the ranks of places counted from the west or south of the box."""
        (first, last), *other = self.axis.runs
        squares = first + places
        if other:
            squares = np.where(squares > last, other[0][0] + squares - last - 1, squares)
        return self.ranks(squares)

    def corners(self, ranks: Ints) -> tuple[Floats, Floats]:
        """Return both ends of the squares, cut at the end of the world."""
        squares = self.squares(ranks).astype(np.float64)
        ends = self.axis.lattice.corner(squares), self.axis.lattice.corner(squares + 1.0)
        return np.maximum(ends[0], -self.axis.limit), np.minimum(ends[1], self.axis.limit)

    def extents(self) -> tuple[Floats, Floats]:
        """Return both ends of the runs."""
        low, high = (np.array(ends, dtype=np.float64) for ends in zip(*self.axis.runs, strict=True))
        ends = self.axis.lattice.corner(low), self.axis.lattice.corner(high + 1.0)
        return np.maximum(ends[0], -self.axis.limit), np.minimum(ends[1], self.axis.limit)

    def at(self, ranks: Ints, values: list[float]) -> Flags:
        """Tell which squares hold one of some coordinates."""
        marked = self.of_places(self.axis.place(np.array(values, dtype=np.float64)))
        return np.isin(ranks, marked)

    def texts(self, ranks: Ints, signs: str, width: int) -> list[str]:
        """Return the labels, with their letter."""
        squares = self.squares(ranks).tolist()
        width = self.axis.width(width)
        return [signs[number < 0] + self.axis.lattice.label(number, width) for number in squares]

    def of_texts(self, texts: list[str]) -> Ints:
        """Return the ranks that have these labels."""
        return self.ranks(np.array([self.axis.lattice.labelled(text) for text in texts], dtype=np.int64))


@lru_cache(maxsize=8)
def _ranked_h3(grid: H3, box: Box) -> RankedH3:
    return RankedH3(grid, box)


@lru_cache(maxsize=8)
def _ranked_squares(grid: Square, box: Box) -> RankedSquares:
    return RankedSquares(grid, box)


def _superset(grid: H3, box: Box) -> tuple[bool, Descendants]:
    """Return whether it is the domain itself, and the numbered cells."""
    if box.is_world:
        return True, Descendants.of(h3.get_res0_cells(), grid.resolution)
    if grid.estimate(box) <= LISTED:
        return True, Descendants.of(grid.domain(box).cells.tolist(), grid.resolution)
    cover = grid.fitting(box, _COVER) or H3(0)
    cells = distinct(_children_of_all(0)) if cover.resolution == 0 else cover.domain(box).cells
    padded: Cells = distinct([np.fromiter(_discs(cells), dtype=np.uint64)])
    return False, Descendants.of(padded.tolist(), grid.resolution)


def _centred(cells: Cells, box: Box) -> Flags:
    """Tell which cells have their centre in the box."""
    found = list(map(h3.cell_to_latlng, cells.tolist()))
    lat, lon = np.array(found, dtype=np.float64).reshape(-1, 2).T
    east = np.mod(lon - box.west, 360.0) <= box.east - box.west
    flags: Flags = (lat >= box.south) & (lat <= box.north) & (east | box.is_circle)
    return flags
