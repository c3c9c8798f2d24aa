"""Squares in metres of a projected CRS: which of them a box of degrees touches, and how they look on it.

The border of a box is curved in the CRS. It is walked in steps of less than half a cell, with as much
slack as the curve bends between two steps, so every square that the border touches is found; the
squares inside are filled row by row between the border's crossings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Geod, Transformer
from pyproj.enums import TransformDirection
from pyproj.exceptions import CRSError, ProjError

from geodp.bounds import Box, wrap
from geodp.grids.base import Domain
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import Floats, Ints, Lattice, square_hierarchy
from geodp.grids.outlines import polygons

if TYPE_CHECKING:
    from geodp.grids.square import Square

__all__ = ["ProjectedDomain", "canonical", "estimate"]

_CHUNK = 1 << 16
_NEGATIVE = 1 << 30
_ROUGH = 65
_LARGE = 10_000  # metres; sides of larger cells are drawn in eight steps
_SAME_PLACE = 1e-6  # degrees between a point and itself, projected and back

Side = tuple[float, float, float, float]


def canonical(crs: Any) -> str:
    """Return one text for a projected CRS in metres, such as ``"EPSG:3035"``.

    Raises
    ------
    ValueError
        The CRS is unknown, not projected, or not in metres.
    """
    if isinstance(crs, bool):
        raise TypeError("crs must be an EPSG code or anything pyproj.CRS takes, got a bool.")
    try:
        known = CRS.from_user_input(crs)
    except CRSError:
        raise ValueError(f"crs={crs!r} is no CRS that pyproj knows; type an EPSG code, crs=3035.") from None
    if not known.is_projected:
        raise ValueError(
            f"crs={crs!r} is not projected ({known.name}), so it has no metres. Square(cell_size) without "
            "crs is in degrees; for metres name a projected CRS, for example 3035 in Europe or the UTM zone."
        )
    units = {axis.unit_name for axis in known.axis_info[:2] if axis.unit_conversion_factor != 1.0}
    if units:
        raise ValueError(f"crs={crs!r} is in {', '.join(sorted(units))}, not metres; name a CRS in metres.")
    authority = known.to_authority(min_confidence=100)
    return ":".join(authority) if authority else str(known.to_string())


def estimate(size: Fraction, crs: str, box: Box) -> int:
    """Return about how many squares a box holds: area, half-way around, and one."""
    side, cells = float(size), 1.0
    for piece in _pieces(crs, box):
        x, y = np.concatenate([_project(crs, *_walk(edge, np.linspace(0, 1, _ROUGH))) for edge in piece], 1)
        area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2.0
        around = np.sum(np.hypot(np.diff(x, append=x[:1]), np.diff(y, append=y[:1])))
        # Mean number of squares that a convex region thrown on a lattice meets (Santaló 1976, III.7).
        cells += area / side**2 + 2.0 / np.pi * around / side
    return round(float(cells))


class ProjectedDomain(Domain):
    """The squares of a projected CRS that a box of degrees touches, in the order of their ids."""

    def __init__(self, grid: "Square", box: Box) -> None:
        if grid.crs is None:
            raise TypeError("squares of degrees have no projected domain")
        self.grid: Square = grid
        self.box = box
        self._crs = grid.crs
        self._lattice = Lattice(grid.cell_size)
        self._keys, border = _complete(self._lattice, grid.crs, box)
        self._keys.flags.writeable = False
        self._edge = _is_in(self._keys, border)
        self._edge.flags.writeable = False

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return len(self._keys)

    @cached_property
    def index(self) -> pd.Index:
        """Ids such as ``CRS3035RES1000mN2599000E4695000``, ascending; named ``square_1000m``."""
        start = f"CRS{_short(self._crs)}RES{self.grid.size_text}m"
        rows, cols = _numbers(self._keys)
        row_texts = _labels(self._lattice, rows, "NS", self._crs)
        col_texts = _labels(self._lattice, cols, "EW", self._crs)
        texts = [start + row + col for row, col in zip(row_texts, col_texts, strict=True)]
        return pd.Index(texts, dtype="str", name=f"square_{self.grid.size_text}m")

    @property
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box runs through, shape (n_cells,)."""
        return self._edge

    @cached_property
    def area_km2(self) -> float:
        """Mean area on the ground of up to 64 cells spread over the domain, in square kilometres."""
        some = np.unique(np.linspace(0, self.n_cells - 1, 64).astype(np.int64))
        geod = Geod(ellps="WGS84")
        areas = [abs(geod.geometry_area_perimeter(shape)[0]) for shape in self._outlines(self._keys[some])]
        return float(np.mean(areas)) / 1e6

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        See :meth:`geodp.grids.base.Domain.locate`.
        """
        cells = np.full(len(lon), -1, dtype=np.int64)
        for start in range(0, len(lon), _CHUNK):
            part = slice(start, start + _CHUNK)
            x, y = _project(self._crs, lon[part], lat[part])
            sound = np.isfinite(x) & np.isfinite(y)
            keys = _key(self._lattice.number(y[sound]), self._lattice.number(x[sound]))
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            cells[part][sound] = np.where(self._keys[places] == keys, places, -1)
        rows = np.flatnonzero(cells >= 0)
        return rows, (cells if len(rows) == len(cells) else cells[rows])

    def geometry(self) -> NDArray[np.object_]:
        """Return the outlines, shape (n_cells,): the squares in degrees, valid and counter-clockwise."""
        return self._shapes.copy()

    def hierarchy(self) -> Hierarchy:
        """Return blocks of 2 x 2 to 32 x 32 squares, coarse blocks, and the order along Hilbert's curve."""
        return self._hierarchy

    @cached_property
    def _shapes(self) -> NDArray[np.object_]:
        chunks = [self._keys[start : start + _CHUNK] for start in range(0, self.n_cells, _CHUNK)]
        return np.concatenate([self._outlines(keys) for keys in chunks])

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return square_hierarchy(*_numbers(self._keys))

    def _outlines(self, keys: Ints) -> NDArray[np.object_]:
        rows, cols = _numbers(keys)
        steps = 8 if self.grid.cell_size >= _LARGE else 1
        x, y = _square(self._lattice, rows, cols, steps)
        lon, lat = _project(self._crs, x.ravel(), y.ravel(), back=True)
        lon, lat = wrap(lon), np.clip(lat, -90.0, 90.0)
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
            raise ValueError(_outside(self._crs, self.box))
        shapes = polygons(*_open_poles(lon, lat, 4 * steps))
        return _counter_clockwise(shapes)


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


@lru_cache(maxsize=8)
def _transformer(crs: str) -> Transformer:
    return Transformer.from_crs(4326, CRS.from_user_input(crs), always_xy=True)


def _project(crs: str, x: Floats, y: Floats, *, back: bool = False) -> tuple[Floats, Floats]:
    way = TransformDirection.INVERSE if back else TransformDirection.FORWARD
    first, second = _transformer(crs).transform(x, y, direction=way)
    return np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)


def _short(crs: str) -> str:
    """Return the CRS for an id: the EPSG code, else the name without signs that files dislike."""
    text = crs.removeprefix("EPSG:")
    return text if text.isalnum() else "".join(letter for letter in text if letter.isalnum())


def _outside(crs: str, box: Box) -> str:
    return (
        f"bounds {box.to_list()} reach beyond what {crs} can show. Choose bounds inside its area of use, "
        "or a CRS made for these bounds."
    )


def _pieces(crs: str, box: Box) -> Iterator[list[Side]]:
    """Yield parts of the box that the CRS shows in one piece, as closed walks of four sides."""
    lons = [box.west, *_seams(crs, box), box.east]
    for west, east in pairwise(lons):
        yield [
            (west, box.south, east, box.south),
            (east, box.south, east, box.north),
            (east, box.north, west, box.north),
            (west, box.north, west, box.south),
        ]


def _seams(crs: str, box: Box) -> list[float]:
    """Return where in the box the map may end: 180 and the far side of the CRS's own meridian."""
    operation = CRS.from_user_input(crs).coordinate_operation
    named = [param.value for param in operation.params if "ongitude" in param.name] if operation else []
    far = {float(str(lon)) + 180.0 + turn for lon in [0.0, *named] for turn in (-360.0, 0.0, 360.0)}
    return sorted(lon for lon in far if box.west < lon < box.east)


def _walk(side: Side, share: Floats) -> tuple[Floats, Floats]:
    west, south, east, north = side
    return west + (east - west) * share, south + (north - south) * share


@dataclass(frozen=True, eq=False)
class _Path:
    """Points along a side in the CRS, close enough for the lattice, and how far it bends between two."""

    x: Floats
    y: Floats
    slack: float


def _path(lattice: Lattice, crs: str, side: Side, box: Box) -> _Path:
    """Walk a side in steps of less than half a cell."""
    share = np.linspace(0.0, 1.0, _ROUGH)
    step = float(lattice.size) / 4.0
    for _ in range(6):
        x, y = _checked(crs, *_walk(side, share), box)
        length = np.hypot(np.diff(x), np.diff(y))
        if length.max() <= 2.0 * step:
            return _Path(x, y, _bend(x, y))
        along = np.concatenate([[0.0], np.cumsum(length)])
        n = int(along[-1] / step) + _ROUGH
        share = np.interp(np.linspace(0.0, along[-1], n), along, share)
    raise ValueError(_outside(crs, box))


def _checked(crs: str, lon: Floats, lat: Floats, box: Box) -> tuple[Floats, Floats]:
    """Project points that must come back where they were."""
    try:
        x, y = _project(crs, lon, lat)
        back_lon, back_lat = _project(crs, x, y, back=True)
    except ProjError:
        raise ValueError(_outside(crs, box)) from None
    with np.errstate(invalid="ignore"):
        turn = np.abs(np.remainder(back_lon - lon + 180.0, 360.0) - 180.0) * np.cos(np.radians(lat))
        same = (turn < _SAME_PLACE) & (np.abs(back_lat - lat) < _SAME_PLACE)
    if not same.all():
        raise ValueError(_outside(crs, box))
    return x, y


def _bend(x: Floats, y: Floats) -> float:
    """Return how far the curve may leave its chords: the height of any three points in a row, and 0.1 mm."""
    dx, dy = np.diff(x), np.diff(y)
    twice = np.abs(dx[:-1] * dy[1:] - dy[:-1] * dx[1:])
    base = np.hypot(x[2:] - x[:-2], y[2:] - y[:-2])
    return 1e-4 + float(np.max(twice / np.maximum(base, 1e-9), initial=0.0))


def _complete(lattice: Lattice, crs: str, box: Box) -> tuple[Ints, Ints]:
    """Return all squares that a point of the box can fall in, and those on its border, ascending."""
    lon, lat = np.meshgrid(np.linspace(box.west, box.east, 17), np.linspace(box.south, box.north, 17))
    _checked(crs, lon.ravel(), lat.ravel(), box)
    cells, border = [], []
    for piece in _pieces(crs, box):
        paths = [_path(lattice, crs, side, box) for side in piece]
        for side, path in zip(piece, paths, strict=True):
            touched = _touched(lattice, path)
            cells.append(touched)
            if _is_border(side, box):
                border.append(touched)
        cells.append(
            _inside(lattice, np.concatenate([p.x for p in paths]), np.concatenate([p.y for p in paths]))
        )
    keys = _distinct(cells)
    _check_digits(lattice, crs, keys, box)
    return keys, _distinct(border)


def _is_border(side: Side, box: Box) -> bool:
    west, south, east, north = side
    if south == north and (west != east or box.west == box.east):
        return abs(south) < 90.0
    return not box.is_circle and west in (box.west, box.east)


def _touched(lattice: Lattice, path: _Path) -> Ints:
    """Return the squares within the slack of a path, and both others where it crosses near a corner."""
    found = []
    for up in (-path.slack, path.slack):
        for right in (-path.slack, path.slack):
            rows, cols = lattice.number(path.y + up), lattice.number(path.x + right)
            found += [_key(rows, cols), _key(rows[1:], cols[:-1]), _key(rows[:-1], cols[1:])]
    return _distinct(found)


def _inside(lattice: Lattice, x: Floats, y: Floats) -> Ints:
    """Return the squares whose centres a closed path goes around: row by row, between its crossings."""
    size = float(lattice.size)
    x, y = np.append(x, x[:1]), np.append(y, y[:1])
    row = np.floor(y / size - 0.5)
    cross = np.flatnonzero(row[1:] != row[:-1])
    rows = np.maximum(row[cross], row[cross + 1])
    share = ((rows + 0.5) * size - y[cross]) / (y[cross + 1] - y[cross])
    at = x[cross] + (x[cross + 1] - x[cross]) * share
    order = np.lexsort((at, rows))
    rows, at = rows[order][::2], at[order]
    first, last = np.ceil(at[::2] / size - 0.5), np.floor(at[1::2] / size - 0.5)
    count = np.maximum(last - first + 1, 0).astype(np.int64)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return _key(np.repeat(rows, count), np.repeat(first, count) + offset)


def _key(rows: Floats, cols: Floats) -> Ints:
    """Pack whole coordinates so that numbers sort as ids do: N or E up, then S or W away from 0."""
    packed = [np.where(part < 0, _NEGATIVE - part, part).astype(np.int64) for part in (rows, cols)]
    return (packed[0] << 32) | packed[1]


def _numbers(keys: Ints) -> tuple[Ints, Ints]:
    parts = keys >> 32, keys & 0xFFFFFFFF
    rows, cols = (np.where(part >= _NEGATIVE, _NEGATIVE - part, part) for part in parts)
    return rows, cols


def _distinct(parts: list[Ints]) -> Ints:
    keys = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    return np.asarray(keys[np.diff(keys, prepend=-1) != 0])


def _is_in(keys: Ints, among: Ints) -> NDArray[np.bool_]:
    if not len(among):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(among[np.minimum(np.searchsorted(among, keys), len(among) - 1)] == keys)


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
    reach = np.abs(np.concatenate([_project(crs, *_walk(side, share)) for side in sides], axis=1))
    return max(7, len(str(int(np.max(reach[np.isfinite(reach)], initial=0.0)))))


def _check_digits(lattice: Lattice, crs: str, keys: Ints, box: Box) -> None:
    largest = max(int(np.abs(part).max()) for part in _numbers(keys))
    if len(str(int(largest * lattice.size))) > _digits(crs):
        raise ValueError(_outside(crs, box))


def _labels(lattice: Lattice, numbers: Ints, signs: str, crs: str) -> list[str]:
    some, place = np.unique(numbers, return_inverse=True)
    width = _digits(crs)
    texts = np.array(
        [signs[number < 0] + lattice.label(number, width) for number in some.tolist()], dtype=object
    )
    return list(texts[place])
