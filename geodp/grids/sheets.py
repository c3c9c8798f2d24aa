"""Squares in metres of a projected CRS by number: which one a point falls in, ids, and outlines in degrees."""

from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Geod

from geodp.bounds import Box, wrap
from geodp.chunks import each, slices
from geodp.grids.base import located
from geodp.grids.lattice import Floats, Ints, Lattice, parted
from geodp.grids.ordered import is_in
from geodp.grids.outlines import polygons
from geodp.grids.ranked import RankedDomain
from geodp.grids.regions import complete, key, numbers, outside, pieces, project, walk
from geodp.progress import stage

if TYPE_CHECKING:
    from geodp.grids.square import Square

__all__ = ["RankedProjected", "estimate", "rankable", "ranked_projected"]

_ROUGH = 65
_LARGE = 10_000  # metres; sides of larger cells are drawn in eight steps
_BORDER = 5_000_000


def estimate(size: Fraction, crs: str, box: Box) -> int:
    """Return about how many squares a box holds: area, half-way around, and one.

    Raises
    ------
    ValueError
        The CRS cannot show the box.
    """
    side, cells = float(size), 1.0
    for area, around in _measures(crs, box):
        # Mean number of squares that a convex region thrown on a lattice meets (Santaló 1976, III.7).
        cells += area / side**2 + 2.0 / np.pi * around / side
    return round(float(cells))


@lru_cache(maxsize=16)
def _measures(crs: str, box: Box) -> list[tuple[float, float]]:
    """Return the area and the circumference of the pieces of a box."""
    found = []
    for piece in pieces(crs, box):
        x, y = np.concatenate([project(crs, *walk(edge, np.linspace(0, 1, _ROUGH))) for edge in piece], 1)
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(outside(crs, box))
        area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2.0
        found.append(
            (float(area), float(np.sum(np.hypot(np.diff(x, append=x[:1]), np.diff(y, append=y[:1])))))
        )
    return found


class RankedProjected(RankedDomain):
    """The squares that a box of degrees touches, numbered in the order of their ids.

    They are kept as stretches of rows: memory and time grow with the border of the box, not with its area.

    Attributes
    ----------
    keys : Runs
        The squares: see :func:`geodp.grids.regions.key`.

    Raises
    ------
    ValueError
        The CRS cannot show the box, or its border alone has more than five million squares.
    """

    def __init__(self, grid: "Square", box: Box) -> None:
        if grid.crs is None:
            raise TypeError("squares of degrees have no projected domain")
        self.grid: Square = grid
        self.box = box
        self._crs, self._lattice = grid.crs, Lattice(grid.cell_size)
        self._head = f"CRS{_short(grid.crs)}RES{grid.size_text}m"
        _check_border(grid, box)
        self.keys, outer, self._border = complete(self._lattice, grid.crs, box)
        _check_digits(self._lattice, grid.crs, np.append(self.keys.first, self.keys.last), box)
        # Now, not when a release is paid for and drawn: every outline can be had.
        if not self._can_draw(outer):
            raise ValueError(outside(grid.crs, box))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.keys.size

    @property
    def name(self) -> str:
        """Name of the index."""
        return f"square_{self.grid.size_text}m"

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers."""
        cells = np.full(len(lon), -1, dtype=np.int64)

        def locate(part: slice) -> None:
            x, y = project(self._crs, lon[part], lat[part])
            sound = np.isfinite(x) & np.isfinite(y)
            keys = key(self._lattice.number(y[sound]), self._lattice.number(x[sound]))
            cells[part][sound] = self.keys.places(keys)

        each(locate, slices(len(lon)))
        return located(cells)

    def contains(self, cells: Ints) -> NDArray[np.bool_]:
        """Tell that all numbers are cells of the domain."""
        return cells >= 0

    def texts(self, cells: Ints) -> list[str]:
        """Return ids such as ``CRS3035RES1000mN2599000E4695000``."""
        rows, cols = numbers(self.keys.values(cells))
        row_texts = _labels(self._lattice, rows, "NS", self._crs)
        col_texts = _labels(self._lattice, cols, "EW", self._crs)
        return [self._head + row + col for row, col in zip(row_texts, col_texts, strict=True)]

    def ids(self, cells: Ints) -> NDArray[np.str_]:
        """Return ids such as ``CRS3035RES1000mN2599000E4695000``."""
        return np.array(self.texts(cells), dtype=np.str_)

    def numbers(self, ids: NDArray[np.object_]) -> Ints:
        """Return the cells that have these ids."""
        pairs = [parted(text[len(self._head) :]) for text in ids]
        squares = np.array(
            [[self._lattice.labelled(part) for part in pair] for pair in pairs], dtype=np.float64
        )
        rows, cols = squares.reshape(-1, 2).T
        return self.keys.places(key(rows, cols))

    def outlines(self, cells: Ints) -> NDArray[np.object_]:
        """Return the squares in degrees, valid and counter-clockwise."""
        return self._outlines(self.keys.values(cells))

    def on_edge(self, cells: Ints) -> NDArray[np.bool_]:
        """Tell which squares the border of the box runs through."""
        return is_in(self.keys.values(cells), self._border)

    @cached_property
    def area_km2(self) -> float:
        """Mean area on the ground of up to 64 squares spread over the domain, in square kilometres."""
        some = np.unique(np.linspace(0, self.keys.size - 1, 64).astype(np.int64))
        geod = Geod(ellps="WGS84")
        areas = [abs(geod.geometry_area_perimeter(shape)[0]) for shape in self.outlines(some)]
        return float(np.mean(areas)) / 1e6

    def _can_draw(self, keys: Ints) -> bool:
        with stage("checking outlines") as bar:
            for part in slices(len(keys)):
                bar.reach(part.start / len(keys))
                if not (shapely.area(self._outlines(keys[part])) > 0).all():
                    return False
        return True

    def _outlines(self, keys: Ints) -> NDArray[np.object_]:
        rows, cols = numbers(keys)
        steps = 8 if self._lattice.size >= _LARGE else 1
        x, y = _square(self._lattice, rows, cols, steps)
        lon, lat = self._back(x.ravel(), y.ravel())
        lon, lat = wrap(lon), np.clip(lat, -90.0, 90.0)
        shapes = polygons(*_open_poles(lon, lat, 4 * steps))
        return _counter_clockwise(shapes)

    def _back(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return longitudes and latitudes; corners beyond the end of the map are pulled to it."""
        lon, lat = project(self._crs, x, y, back=True)
        lost = ~(np.isfinite(lon) & np.isfinite(lat))
        if lost.any():
            (left, low), (right, high) = self._extent
            lon[lost], lat[lost] = project(
                self._crs, np.clip(x[lost], left, right), np.clip(y[lost], low, high), back=True
            )
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
            raise ValueError(outside(self._crs, self.box))
        return lon, lat

    @cached_property
    def _extent(self) -> tuple[Floats, Floats]:
        share = np.linspace(0.0, 1.0, _ROUGH)
        sides = [side for piece in pieces(self._crs, self.box) for side in piece]
        xy = np.concatenate([project(self._crs, *walk(side, share)) for side in sides], axis=1)
        return xy.min(axis=1), xy.max(axis=1)


@lru_cache(maxsize=8)
def ranked_projected(grid: "Square", box: Box) -> RankedProjected:
    """Return the numbered squares of a box; built once and shared."""
    return RankedProjected(grid, box)


def _square(lattice: Lattice, rows: Ints, cols: Ints, steps: int) -> tuple[Floats, Floats]:
    """Return the outlines in the CRS, shape (n, 4 * steps), counter-clockwise from the south-west."""
    south, north = (lattice.corner((rows + shift).astype(np.float64)) for shift in (0, 1))
    west, east = (lattice.corner((cols + shift).astype(np.float64)) for shift in (0, 1))
    share = np.arange(steps) / steps
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    sides = [
        np.stack([here[:, None] + (there - here)[:, None] * share for here, there in zip(*ends, strict=True)])
        for ends in pairwise(corners)
    ]
    x, y = np.concatenate(sides, axis=2)
    return x, y


def _open_poles(lon: Floats, lat: Floats, size: int) -> tuple[Floats, Ints]:
    """Give a vertex on a pole both its neighbours' longitudes: it is a line on the map."""
    lon, lat = lon.reshape(-1, size), lat.reshape(-1, size)
    pole = np.abs(lat) > 90.0 - 1e-9
    before, after = np.roll(lon, 1, axis=1), np.roll(lon, -1, axis=1)
    first = np.stack([np.where(pole, before, lon), lat], axis=2)
    second = np.stack([after, lat], axis=2)
    coords = np.stack([first, second], axis=2).reshape(-1, 2)
    keep = np.stack([np.ones_like(pole), pole], axis=2)
    return coords[keep.ravel()], keep.sum(axis=(1, 2))


def _counter_clockwise(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    for number in np.flatnonzero(~shapely.is_valid(shapes)):
        parts = shapely.get_parts(shapely.make_valid(shapes[number]))
        areal = [part for part in shapely.get_parts(parts) if part.geom_type == "Polygon"]
        shapes[number] = areal[0] if len(areal) == 1 else shapely.MultiPolygon(areal)
    single = np.flatnonzero(shapely.get_type_id(shapes) == 3)
    turned = single[~shapely.is_ccw(shapely.get_exterior_ring(shapes[single]))]
    shapes[turned] = shapely.reverse(shapes[turned])
    return shapes


def _short(crs: str) -> str:
    """Return the CRS for an id: the EPSG code, else the name without signs that files dislike."""
    text = crs.removeprefix("EPSG:")
    return text if text.isalnum() else "".join(letter for letter in text if letter.isalnum())


@lru_cache(maxsize=8)
def _digits(crs: str) -> int:
    """Return the digits before the point that coordinates of the CRS need: seven, as INSPIRE writes."""
    area = CRS.from_user_input(crs).area_of_use
    if area is None:
        return 8
    share = np.linspace(0.0, 1.0, _ROUGH)
    east = area.east if area.east >= area.west else area.east + 360.0
    sides = [(area.west, lat, east, lat) for lat in (area.south, area.north)]
    sides += [(lon, area.south, lon, area.north) for lon in (area.west, east)]
    reach = np.abs(np.concatenate([project(crs, *walk(side, share)) for side in sides], axis=1))
    return max(7, len(str(int(np.max(reach[np.isfinite(reach)], initial=0.0)))))


def rankable(grid: "Square", box: Box) -> "Square | None":
    """Return the finest of 1, 2, 5, 10, ... times these squares whose border in a box is not too long to number."""
    from geodp.grids.square import coarser

    return next((one for one in coarser(grid) if _around(one, box) <= _BORDER), None)


def _around(grid: "Square", box: Box) -> float:
    return sum(around for _, around in _measures(str(grid.crs), box)) / float(grid.cell_size)


def _check_border(grid: "Square", box: Box) -> None:
    around = _around(grid, box)
    if around > _BORDER:
        fits = rankable(grid, box)
        larger = "larger cells" if fits is None else f'larger cells ("{fits.name}" fits)'
        raise ValueError(
            f'the border of bounds {box.to_list()} runs through about {around:,.0f} cells of "{grid.name}", more than '
            f"{_BORDER:,}. Choose {larger} or smaller bounds."
        )


def _check_digits(lattice: Lattice, crs: str, keys: Ints, box: Box) -> None:
    largest = max(int(np.abs(part).max()) for part in numbers(keys))
    if len(str(int(largest * lattice.size))) > _digits(crs):
        raise ValueError(outside(crs, box))


def _labels(lattice: Lattice, lines: Ints, signs: str, crs: str) -> list[str]:
    some, place = np.unique(lines, return_inverse=True)
    width = _digits(crs)
    texts = [signs[number < 0] + lattice.label(number, width) for number in some.tolist()]
    return list(np.array(texts, dtype=object)[place])
