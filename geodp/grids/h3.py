"""H3 cells: hexagons of sixteen sizes, listed completely for any box.

H3's own fills leave cells out: the world box comes back empty, a box wider than 180° as the other
side of the planet, and the ``overlap`` fill takes cell edges as straight in longitude and latitude.
A cell left out would drop its people without a word, so the border of the box is walked as well, and
every neighbour of a cell on it is tested with its true outline (arcs of great circles).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise, repeat

import h3.api.basic_int as h3
import h3.api.numpy_int as h3_arrays
import numpy as np
import pandas as pd
from h3 import H3BaseException
from numpy.typing import NDArray

from geodp.bounds import EARTH_RADIUS_KM, Box, wrap
from geodp.chunks import slices
from geodp.exact import whole
from geodp.grids.arcs import Arcs, Rectangle
from geodp.grids.base import Domain, Grid, located
from geodp.grids.hierarchy import Hierarchy, block_levels, dense
from geodp.grids.lookup import Lookup
from geodp.grids.ordered import distinct, is_in
from geodp.grids.outlines import polygons
from geodp.progress import current

__all__ = ["H3", "H3Domain", "finest_h3"]

_CHUNK = 1 << 16
_POLAR = 89.0

Cells = NDArray[np.uint64]


@dataclass(frozen=True)
class H3(Grid):
    """H3 cells of one resolution.

    Parameters
    ----------
    resolution : int
        0 (continents) to 15 (square metres).

    Examples
    --------
    >>> H3(8).name
    'h3:8'
    >>> H3(2).domain(Box.parse((-180, -90, 180, 90))).n_cells
    5882
    """

    resolution: int

    def __post_init__(self) -> None:
        whole(self.resolution, "resolution", 0, 15)

    @property
    def name(self) -> str:
        """The grid as text, ``"h3:8"``."""
        return f"h3:{self.resolution}"

    def estimate(self, box: Box) -> int:
        """Return about how many cells ``box`` holds, within a factor of two and at once.

        A convex region of area A and perimeter P thrown on cells of area a and perimeter p meets
        A/a + 1 + P p / (2 pi a) of them on average (Santaló 1976, "Integral Geometry", III.7).
        """
        if box.is_world:
            return int(h3.get_num_cells(self.resolution))
        cell = 1.0 / _density(self.resolution, box)
        around = 6.0 * math.sqrt(cell * 2.0 / (3.0 * math.sqrt(3.0)))
        cells = box.area_km2 / cell + 1.0 + box.perimeter_km * around / (2.0 * math.pi * cell)
        return int(min(round(cells), h3.get_num_cells(self.resolution)))

    def fitting(self, box: Box, limit: int) -> "H3 | None":
        """Return the finest resolution, not finer than this one, with about ``limit`` cells at most."""
        for resolution in range(self.resolution, -1, -1):
            grid = H3(resolution)
            if grid.estimate(box) <= limit:
                return grid
        return None

    def domain(self, box: Box) -> "H3Domain":
        """Return all cells that a point of ``box`` can fall in, empty or not."""
        return _domain(self, box)


class H3Domain(Domain):
    """The cells of one resolution in a box, in the order of their ids.

    Attributes
    ----------
    cells : uint64 array, shape (n_cells,)
        The ids as integers, ascending.
    """

    def __init__(self, grid: H3, box: Box) -> None:
        self.grid: H3 = grid
        self.box = box
        self.cells = _complete(grid.resolution, box)
        self.cells.flags.writeable = False

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return len(self.cells)

    @cached_property
    def index(self) -> pd.Index:
        """Ids as strings of 15 lower-case hexadecimal digits, ascending; named ``h3_08``."""
        return pd.Index(_texts(self.cells), dtype="str", name=f"h3_{self.grid.resolution:02d}")

    @cached_property
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box runs through, shape (n_cells,)."""
        sides = _sides(self.box)
        on = _around(self.grid.resolution, sides)
        flags = is_in(self.cells, on[_meets(self.grid.resolution, on, sides)])
        flags |= is_in(self.cells, _sampled(self.grid.resolution, sides))
        flags.flags.writeable = False
        return flags

    @cached_property
    def area_km2(self) -> float:
        """Mean area of up to 64 cells spread over the domain, in square kilometres."""
        some = self.cells[np.linspace(0, len(self.cells) - 1, 64).astype(np.int64)]
        return float(np.mean([h3.cell_area(cell, "km^2") for cell in np.unique(some).tolist()]))

    def locate(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        Always from the coordinates at this resolution: a cell's parent is not the coarser cell of
        the point. See :meth:`geodp.grids.base.Domain.locate`.
        """
        numbers = np.empty(len(lon), dtype=np.int64)
        for part in slices(len(lon)):
            numbers[part] = self._lookup.numbers(_locate(lon[part], lat[part], self.grid.resolution))
        return located(numbers)

    def geometry(self) -> NDArray[np.object_]:
        """Return the outlines, shape (n_cells,): valid, counter-clockwise, none wider than 180°.

        Edges are drawn straight in longitude and latitude, H3's own are arcs: a point may lie
        outside the outline of its cell by up to 2 % of a cell's width at resolution 0, 0.1 % at 3.
        """
        return self._outlines.copy()

    def hierarchy(self) -> Hierarchy:
        """Return H3's own parents; the index runs along H3's curve already."""
        return self._hierarchy

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.cells, self.grid.resolution)

    @cached_property
    def _outlines(self) -> NDArray[np.object_]:
        parts = [polygons(coords, sizes) for coords, sizes in _boundaries(self.cells)]
        return np.concatenate(parts)

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        resolution = self.grid.resolution
        parents = {coarse: dense(_parent(self.cells, coarse)) for coarse in range(resolution - 1, -1, -1)}
        counts = {coarse: int(numbers[-1]) + 1 for coarse, numbers in parents.items()}
        return Hierarchy(
            siblings=tuple(parents[coarse] for coarse in list(parents)[:5]),
            blocks=tuple(parents[coarse] for coarse in block_levels(counts, self.n_cells)),
        )


def finest_h3(box: Box, limit: int = 10_000) -> H3:
    """Return the finest H3 resolution with at most ``limit`` cells in ``box``, decided by the box alone.

    Parameters
    ----------
    box : Box
    limit : int
        At least 1; the continents of resolution 0 are returned even where they are more.

    Examples
    --------
    >>> finest_h3(Box.parse((-74.3, 40.4, -73.6, 41.0)))
    H3(resolution=8)
    """
    whole(limit, "limit", 1)
    for resolution in range(15, 0, -1):
        grid = H3(resolution)
        if grid.estimate(box) <= 2 * limit and grid.domain(box).n_cells <= limit:
            return grid
    return H3(0)


@lru_cache(maxsize=4)
def _domain(grid: H3, box: Box) -> H3Domain:
    return H3Domain(grid, box)


def _density(resolution: int, box: Box) -> float:
    """Return the mean number of cells per square kilometre, from 16 places of the box."""
    shares = [0.125, 0.375, 0.625, 0.875]
    south, north = math.sin(math.radians(box.south)), math.sin(math.radians(box.north))
    lats = [math.degrees(math.asin(south + (north - south) * share)) for share in shares]
    lons = wrap(np.array([box.west + (box.east - box.west) * share for share in shares])).tolist()
    cells = {h3.latlng_to_cell(lat, lon, resolution) for lat in lats for lon in lons}
    return float(np.mean([1.0 / h3.cell_area(cell, "km^2") for cell in cells]))


def _complete(resolution: int, box: Box) -> Cells:
    """Return every cell that a point of the box can fall in, ascending."""
    if box.is_world:
        return distinct(_children_of_all(resolution))
    strips = _strips(box)
    inner = [_fill(strip, resolution) for strip in strips if not _is_thin(strip, resolution)]
    border = [(west, lat, east, lat) for west, _, east, _ in strips for lat in (box.south, box.north)]
    border += [(lon, box.south, lon, box.north) for strip in strips for lon in (strip[0], strip[2])]
    known = distinct([*inner, _sampled(resolution, border)])
    near = distinct([_around(resolution, border), _by_the_poles(resolution, box)])
    # By the border the outline alone decides, so that a cell can be told to belong without a list.
    return distinct([known[~is_in(known, near)], *_meeting(resolution, box, near, known)])


def _by_the_poles(resolution: int, box: Box) -> Cells:
    """Return the cells about a pole that the outline may leave in doubt; all cells of resolution 0."""
    if resolution == 0:
        return distinct(_children_of_all(0))
    found = [np.empty(0, dtype=np.uint64)]
    for lat in (-90.0, 90.0):
        if _is_polar(resolution, box):
            pole = h3.latlng_to_cell(lat, 0.0, resolution)
            found.append(np.fromiter(h3.grid_disk(pole, 4), dtype=np.uint64))
    return distinct(found)


def _is_polar(resolution: int, box: Box) -> bool:
    return max(-box.south, box.north) > _POLAR - 4.0 * math.degrees(_edge_km(resolution) / EARTH_RADIUS_KM)


def _meeting(resolution: int, box: Box, near: Cells, known: Cells) -> list[Cells]:
    """Return the cells of ``near`` that touch the box; by a pole also those next to them, and so on."""
    strips = _strips(box)
    met = [near[_meets(resolution, near, strips)]]
    while _is_polar(resolution, box) and len(met[-1]):
        seen = distinct([near, known])
        near = distinct([np.fromiter(_discs(met[-1]), dtype=np.uint64), near])
        fresh = near[~is_in(near, seen)]
        met.append(fresh[_meets(resolution, fresh, strips)])
    return met


def _children_of_all(resolution: int) -> list[Cells]:
    return [_children(cell, resolution) for cell in h3.get_res0_cells()]


def _children(cell: int, resolution: int) -> Cells:
    return np.asarray(h3_arrays.cell_to_children(cell, resolution), dtype=np.uint64)


def _strips(box: Box) -> list[Rectangle]:
    """Cut the box into strips of at most 90° of longitude, also at 180: H3 misreads wider ones."""
    inner = [lon for lon in range(-90, 541, 90) if box.west < lon < box.east]
    lons = [box.west, *map(float, inner), box.east]
    return [(west, box.south, east, box.north) for west, east in pairwise(lons)]


def _sides(box: Box) -> list[Rectangle]:
    """Return the border of the box as lines of at most 90°; poles and the whole circle have none."""
    lats = [box.south] * (box.south > -90.0) + [box.north] * (box.north < 90.0)
    sides = [(west, lat, east, lat) for west, _, east, _ in _strips(box) for lat in lats]
    if not box.is_circle:
        sides += [(lon, box.south, lon, box.north) for lon in (box.west, box.east)]
    return sides


def _edge_km(resolution: int) -> float:
    return float(h3.average_hexagon_edge_length(resolution, "km"))


def _is_thin(strip: Rectangle, resolution: int) -> bool:
    """Tell whether no cell can hide inside, away from the border."""
    west, south, east, north = strip
    widest = 0.0 if south < 0.0 < north else min(abs(south), abs(north))
    width = np.radians(east - west) * np.cos(np.radians(widest)) * EARTH_RADIUS_KM
    height = np.radians(north - south) * EARTH_RADIUS_KM
    return bool(min(width, height) < _edge_km(resolution) / 8.0)


def _fill(strip: Rectangle, resolution: int) -> Cells:
    west, south, east, north = strip
    if west >= 180.0:
        west, east = west - 360.0, east - 360.0
    # H3 sets memory aside for a square of the strip's degrees, taken at the equator: by the poles, where
    # a strip is short in kilometres, that takes far longer (0.6 ns a cell) than spreading (5 µs a cell).
    cell = float(h3.average_hexagon_area(resolution, "km^2"))
    square = (math.radians(max(east - west, north - south)) * EARTH_RADIUS_KM) ** 2
    if square * 6e-10 > Box(west, south, east, north).area_km2 * 5e-6 + 0.01 * cell:
        return _flood((west, south, east, north), resolution)
    shape = h3_arrays.LatLngPoly([(south, west), (south, east), (north, east), (north, west)])
    try:
        cells = h3_arrays.h3shape_to_cells_experimental(shape, resolution, "overlap")
    except (MemoryError, H3BaseException):
        return _flood((west, south, east, north), resolution)
    return np.asarray(cells, dtype=np.uint64)


def _flood(strip: Rectangle, resolution: int) -> Cells:
    """Return the cells with their centres in a strip, spreading from its border to neighbours."""
    west, south, east, north = strip
    lines = [(west, lat, east, lat) for lat in (south, north)] + [
        (lon, south, lon, north) for lon in (west, east)
    ]
    fresh = set(_sampled(resolution, lines).tolist())
    cells: set[int] = set()
    while fresh:
        cells |= fresh
        around = set(chain.from_iterable(map(h3.grid_disk, fresh, repeat(1)))) - cells
        centres = {cell: h3.cell_to_latlng(cell) for cell in around}
        fresh = {c for c, (lat, lon) in centres.items() if south <= lat <= north and west <= lon <= east}
    return np.fromiter(cells, dtype=np.uint64, count=len(cells))


def _sampled(resolution: int, lines: list[Rectangle]) -> Cells:
    """Return the cells of points along lines, four points to a cell edge; ascending."""
    found = [np.empty(0, dtype=np.uint64)]
    for west, south, east, north in lines:
        across = np.radians(east - west) * np.cos(np.radians(south)) if south == north else 0.0
        length = max(across, np.radians(north - south)) * EARTH_RADIUS_KM
        n = 2 + int(4.0 * length / _edge_km(resolution))
        for start in range(0, n, _CHUNK):
            steps = np.arange(start, min(n, start + _CHUNK)) / (n - 1)
            lon = np.minimum(west + (east - west) * steps, east)
            lat = np.minimum(south + (north - south) * steps, north)
            found.append(distinct([_locate(wrap(lon), lat, resolution)]))
    return distinct(found)


def _around(resolution: int, lines: list[Rectangle]) -> Cells:
    """Return all cells that lines can touch: no two cells that are not neighbours are so close."""
    return distinct([np.fromiter(_discs(_sampled(resolution, lines)), dtype=np.uint64)])


def _discs(cells: Cells) -> Iterator[int]:
    """Yield cells and their neighbours, most of them several times."""
    return chain.from_iterable(map(h3.grid_disk, cells.tolist(), repeat(1)))


def _meets(resolution: int, cells: Cells, rectangles: list[Rectangle]) -> NDArray[np.bool_]:
    """Tell which cells touch any rectangle of at most 90° of longitude; in doubt they do.

    Each cell's answer is its own: it does not depend on the cells it is asked with.
    """
    touch = [np.empty(0, dtype=np.bool_)]
    for coords, sizes in _boundaries(cells):
        polar = np.maximum.reduceat(np.abs(coords[:, 1]), np.cumsum(sizes) - sizes) > _POLAR
        answer = np.zeros(len(sizes), dtype=np.bool_)
        for some, steps in ((polar, 16), (~polar, 16 if resolution < 3 else 4 if resolution < 6 else 1)):
            if some.any() and rectangles:
                arcs = Arcs.of(coords[np.repeat(some, sizes)], sizes[some], steps)
                answer[some] = np.any([arcs.touch(rectangle) for rectangle in rectangles], axis=0)
        touch.append(answer)
    return np.concatenate(touch)


def _locate(lon: NDArray[np.float64], lat: NDArray[np.float64], resolution: int) -> Cells:
    cells = map(h3.latlng_to_cell, lat.tolist(), lon.tolist(), repeat(resolution))
    return np.fromiter(cells, dtype=np.uint64, count=len(lon))


def _boundaries(cells: Cells) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Yield the outlines in chunks: longitudes and latitudes of all vertices, and how many each has."""
    for part in slices(len(cells), _CHUNK // 4):
        current().reach(part.start / len(cells))
        rings = list(map(h3.cell_to_boundary, cells[part].tolist()))
        sizes = np.fromiter(map(len, rings), dtype=np.int64, count=len(rings))
        flat = chain.from_iterable(chain.from_iterable(rings))
        lat_lon = np.fromiter(flat, dtype=np.float64, count=2 * int(sizes.sum()))
        yield np.ascontiguousarray(lat_lon.reshape(-1, 2)[:, ::-1]), sizes


def _parent(cells: Cells, resolution: int) -> Cells:
    """Return H3's parents by their bits: the resolution in bits 52-55, three bits a digit below."""
    unused = np.uint64((1 << 3 * (15 - resolution)) - 1)
    return (cells & np.uint64(~(0xF << 52) & 0xFFFFFFFFFFFFFFFF)) | np.uint64(resolution << 52) | unused


def _texts(cells: Cells) -> list[str]:
    """Return the ids as H3 writes them, 15 hexadecimal digits."""
    digits = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)
    text = digits[cells.astype(">u8").view(np.uint8)].view(np.uint8).reshape(-1, 16)[:, 1:]
    joined = text.tobytes().decode("ascii")
    return [joined[start : start + 15] for start in range(0, len(joined), 15)]
