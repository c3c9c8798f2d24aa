"""Square cells: of degrees, aligned at (0, 0), or of metres of a projected CRS, aligned at its origin.

The origin is the grid's own, never the data's or the box's, so that two maps of one grid share their
cells. Cells are cut at the 180th meridian and the poles. The box's closing border belongs to its last
row and column. Ids name the south-west corner and the size, as INSPIRE grids do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geodp.bounds import EARTH_RADIUS_KM, Box
from geodp.chunks import each, slices
from geodp.exact import ceil_double, exact_positive
from geodp.grids.base import Domain, Grid, located
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import Floats, Ints, Lattice, decimal_places, square_hierarchy

__all__ = ["Square", "SquareDomain", "coarser"]

_LARGEST = {False: 90, True: 10_000_000}
_SMALLEST = {False: Fraction(1, 10**7), True: Fraction(1, 10)}
_PLACES = {False: 12, True: 6}


@dataclass(frozen=True, init=False, repr=False)
class Square(Grid):
    """Square cells of a typed size.

    Parameters
    ----------
    cell_size : number or str
        Side in degrees; with ``crs``, in metres of that CRS. A float counts as its shortest decimal.
    crs : optional
        A projected CRS in metres: an EPSG code or anything ``pyproj.CRS`` takes. Metres of a CRS are
        metres on the ground only as far as it is true to scale: in web Mercator (3857) at 45.8° N,
        1000 of them are 0.70 km.

    Raises
    ------
    ValueError
        The size is not positive, not a short decimal, or too large for degrees; the CRS is
        geographic, not in metres or unknown.

    Examples
    --------
    >>> Square(0.01).name, Square("1000", crs=3035).name
    ('square:0.01', 'square:1000m@3035')
    >>> Square(0.01).domain(Box.parse((-74.3, 40.5, -73.7, 40.95))).n_cells
    2700
    """

    cell_size: Fraction
    crs: str | None

    def __init__(self, cell_size: int | float | str | Decimal | Fraction, crs: Any = None) -> None:
        size = exact_positive(cell_size, "cell_size")
        _check_size(size, crs)
        object.__setattr__(self, "cell_size", size)
        object.__setattr__(self, "crs", None if crs is None else _canonical(crs))

    def __repr__(self) -> str:
        crs = "" if self.crs is None else f", crs={self.crs!r}"
        return f"Square({self.size_text}{crs})"

    @property
    def size_text(self) -> str:
        """The size as the shortest decimal."""
        lattice = Lattice(self.cell_size)
        return lattice.label(1, 1)

    @property
    def name(self) -> str:
        """The grid as text, ``"square:0.01"`` or ``"square:1000m@3035"``."""
        if self.crs is None:
            return f"square:{self.size_text}"
        return f"square:{self.size_text}m@{self.crs.removeprefix('EPSG:')}"

    def estimate(self, box: Box) -> int:
        """Return how many cells ``box`` holds: exact in degrees, nearly so in metres."""
        if self.crs is None:
            return _rows(self, box).size * _columns(self, box).size
        from geodp.grids.sheets import estimate

        return estimate(self.cell_size, self.crs, box)

    def fitting(self, box: Box, limit: int) -> "Square | None":
        """Return the finest of 1, 2, 5, 10, 20, ... times this size with at most ``limit`` cells."""
        return next((grid for grid in coarser(self) if grid.estimate(box) <= limit), None)

    def domain(self, box: Box) -> Domain:
        """Return all cells that a point of ``box`` can fall in, empty or not."""
        return _domain(self, box)


def coarser(grid: Square) -> Iterator[Square]:
    """Yield squares of 1, 2, 5, 10, 20, ... times this size."""
    for power in range(12):
        for factor in (1, 2, 5):
            size = grid.cell_size * factor * 10**power
            if size > _LARGEST[grid.crs is not None]:
                return
            yield Square(size, grid.crs)


@dataclass(frozen=True)
class _Axis:
    """The rows or columns of a box: one run of squares, or two where the box crosses 180.

    ``close`` is the coordinate of a closing border that lies on a corner: it belongs to the last square.
    """

    lattice: Lattice
    runs: tuple[tuple[int, int], ...]
    close: float | None
    limit: float

    @property
    def size(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def width(self, least: int) -> int:
        """Return the digits of labels: a square that is cut at a pole can have a corner beyond it, with one more."""
        return max(least, self.lattice.width(number for run in self.runs for number in run))

    def numbers(self) -> Ints:
        """Return the squares in the order of the box, from west to east or south to north."""
        return np.concatenate([np.arange(first, last + 1) for first, last in self.runs])

    def order(self) -> Ints:
        """Return the places of the box in the order of their labels: N or E up, then S or W away from 0."""
        numbers = self.numbers()
        return np.lexsort((np.abs(numbers), numbers < 0))

    def corners(self) -> tuple[Floats, Floats]:
        """Return both ends of the squares, cut at the end of the world."""
        numbers = self.numbers().astype(np.float64)
        ends = self.lattice.corner(numbers), self.lattice.corner(numbers + 1.0)
        return np.maximum(ends[0], -self.limit), np.minimum(ends[1], self.limit)

    def place(self, value: Floats) -> Ints:
        """Return the place of each coordinate in the box, anything outside 0..size-1 if there is none."""
        number = self.lattice.number(value)
        if self.close is not None:
            number -= value == self.close
        if len(self.runs) == 1:
            return (number - self.runs[0][0]).astype(np.int64)
        (first, last), (other, end) = self.runs
        beyond = np.where(number <= end, number - other + (last - first + 1), -1.0)
        return np.where(number >= first, number - first, beyond).astype(np.int64)


class SquareDomain(Domain):
    """The squares of degrees in a box: all rows times all columns."""

    def __init__(self, grid: Square, box: Box) -> None:
        self.grid: Square = grid
        self.box = box
        self._rows = _rows(grid, box)
        self._cols = _columns(grid, box)
        self._row_order, self._col_order = self._rows.order(), self._cols.order()

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return self._rows.size * self._cols.size

    @cached_property
    def index(self) -> pd.Index:
        """Ids such as ``CRS4326RES0.01N40.50W074.30``, ascending; named ``square_0.01``."""
        size = self.grid.size_text
        rows = [f"CRS4326RES{size}{label}" for label in _labels(self._rows, self._row_order, "NS", 2)]
        cols = _labels(self._cols, self._col_order, "EW", 3)
        return pd.Index([row + col for row in rows for col in cols], dtype="str", name=f"square_{size}")

    @cached_property
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box runs through, shape (n_cells,)."""
        rows = np.zeros(self._rows.size, dtype=np.bool_)
        cols = np.zeros(self._cols.size, dtype=np.bool_)
        rows[0] |= self.box.south > -90.0
        rows[-1] |= self.box.north < 90.0
        if not self.box.is_circle:
            cols[self._cols.place(np.array([_west(self.box), _east(self.box)]))] = True
        flags: NDArray[np.bool_] = (rows[self._row_order][:, None] | cols[self._col_order]).ravel()
        flags.flags.writeable = False
        return flags

    @cached_property
    def area_km2(self) -> float:
        """Mean area of the cells on the mean sphere, in square kilometres."""
        (south, north), (west, east) = self._rows.corners(), self._cols.corners()
        rise = np.sin(np.radians(north)) - np.sin(np.radians(south))
        return float(rise.mean() * np.radians(east - west).mean() * EARTH_RADIUS_KM**2)

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        See :meth:`geodp.grids.base.Domain.locate`.
        """
        cells = np.empty(len(lon), dtype=np.int64)
        row_starts = _inverse(self._row_order) * self._cols.size
        col_places = _inverse(self._col_order)

        def locate(part: slice) -> None:
            row = self._rows.place(lat[part])
            col = self._cols.place(_westward(lon[part], self.box))
            inside = (row >= 0) & (row < len(row_starts)) & (col >= 0) & (col < len(col_places))
            if inside.all():
                cells[part] = row_starts[row] + col_places[col]
            else:
                cells[part] = -1
                cells[part][inside] = row_starts[row[inside]] + col_places[col[inside]]

        each(locate, slices(len(lon)))
        return located(cells)

    def geometry(self) -> NDArray[np.object_]:
        """Return the outlines, shape (n_cells,): valid and counter-clockwise, exactly the located squares."""
        return self._outlines.copy()

    def hierarchy(self) -> Hierarchy:
        """Return blocks of 2 x 2 to 32 x 32 squares, coarse blocks, and the order along Hilbert's curve."""
        return self._hierarchy

    @cached_property
    def _outlines(self) -> NDArray[np.object_]:
        south, north = (ends[self._row_order][:, None] for ends in self._rows.corners())
        west, east = (ends[self._col_order][None, :] for ends in self._cols.corners())
        return np.asarray(shapely.box(west, south, east, north), dtype=object).ravel()

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        # Places in the box count on across 180; blocks keep to the lattice through the first number.
        rows = self._row_order + self._rows.runs[0][0]
        cols = self._col_order + self._cols.runs[0][0]
        return square_hierarchy(np.repeat(rows, len(cols)), np.tile(cols, len(rows)))


@lru_cache(maxsize=4)
def _domain(grid: Square, box: Box) -> Domain:
    if grid.crs is None:
        return SquareDomain(grid, box)
    from geodp.grids.projected import ProjectedDomain

    return ProjectedDomain(grid, box)


def _rows(grid: Square, box: Box) -> _Axis:
    lattice = Lattice(grid.cell_size)
    first, last, close = _run(lattice, box.south, box.north)
    if float(lattice.corner(np.array([float(first)]))[0]) == 90.0:
        first, last, close = first - 1, first - 1, 90.0
    return _Axis(lattice, ((first, last),), close, 90.0)


def _columns(grid: Square, box: Box) -> _Axis:
    lattice = Lattice(grid.cell_size)
    if box.east <= 180.0:
        first, last, close = _run(lattice, box.west, box.east)
        return _Axis(lattice, ((first, last),), close, 180.0)
    first, ultimate, _ = _run(lattice, box.west, 180.0)
    start, last, close = _run(lattice, -180.0, box.east_end)
    if last >= first:
        return _Axis(lattice, ((start, ultimate),), None, 180.0)
    return _Axis(lattice, ((first, ultimate), (start, last)), close, 180.0)


def _run(lattice: Lattice, low: float, high: float) -> tuple[int, int, float | None]:
    """Return the first and last square between two borders, and the closing border if it is a corner."""
    ends = lattice.number(np.array([low, high]))
    first, last = int(ends[0]), int(ends[1])
    if last > first and float(lattice.corner(ends[1:])[0]) == high:
        return first, last - 1, high
    return first, last, None


def _west(box: Box) -> float:
    return box.west


def _east(box: Box) -> float:
    return 180.0 if box.east == 180.0 else box.east_end


def _westward(lon: Floats, box: Box) -> Floats:
    """Read -180 as 180 where the box ends there: they are one place, and the closing border's."""
    if box.east == 180.0 and not box.is_circle:
        return np.where(lon == -180.0, 180.0, lon)
    return lon


def _inverse(order: Ints) -> Ints:
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _labels(axis: _Axis, order: Ints, signs: str, width: int) -> list[str]:
    numbers = axis.numbers()[order].tolist()
    width = axis.width(width)
    return [signs[number < 0] + axis.lattice.label(number, width) for number in numbers]


def _check_size(size: Fraction, crs: Any) -> None:
    metric = crs is not None
    unit = "metres" if metric else "degrees"
    if size > _LARGEST[metric]:
        large = f"{ceil_double(size):g}"
        hint = "" if metric else f" Metres need a projected CRS: Square({large}, crs=<its EPSG code>)."
        raise ValueError(f"cell_size={large} {unit} is more than {_LARGEST[metric]:,}.{hint}")
    places = decimal_places(size)
    if size < _SMALLEST[metric] or places is None or places > _PLACES[metric]:
        raise ValueError(
            f"cell_size={float(size):g} {unit} must be at least {float(_SMALLEST[metric]):g} "
            f"and have at most {_PLACES[metric]} decimals, so that corners are exact."
        )


def _canonical(crs: Any) -> str:
    from geodp.grids.projected import canonical

    return canonical(crs)
