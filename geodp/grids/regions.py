"""The region of a projected CRS that a box of degrees becomes, and the squares it touches.

The border of the box is curved in the CRS. It is walked in steps of less than half a square, with as
much slack as the curve bends between two steps, so every square that the border touches is found; the
squares inside are stretches of rows between the border's crossings.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pyproj import CRS, Transformer
from pyproj.enums import TransformDirection
from pyproj.exceptions import ProjError

from geodp.bounds import Box
from geodp.grids.lattice import Floats, Ints, Lattice
from geodp.grids.ordered import distinct
from geodp.grids.runs import Runs

__all__ = ["complete", "key", "numbers", "outside", "pieces", "project", "walk"]

_NEGATIVE = 1 << 30
_ROUGH = 65
_HAIR = 1e-9  # degrees; a seam itself would be shown on one side of the map only
_SAME_PLACE = 1e-5  # degrees between a point and itself, projected and back

Side = tuple[float, float, float, float]


@lru_cache(maxsize=8)
def _transformer(crs: str) -> Transformer:
    return Transformer.from_crs(4326, CRS.from_user_input(crs), always_xy=True)


def project(crs: str, x: Floats, y: Floats, *, back: bool = False) -> tuple[Floats, Floats]:
    """Return coordinates in the CRS of longitudes and latitudes, or the way back; inf where there are none."""
    way = TransformDirection.INVERSE if back else TransformDirection.FORWARD
    first, second = _transformer(crs).transform(x, y, direction=way)
    return np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)


def outside(crs: str, box: Box) -> str:
    """Return the error for bounds that the CRS cannot show."""
    return (
        f"bounds {box.to_list()} reach beyond what {crs} can show. Choose bounds inside its area of use, "
        "or a CRS made for these bounds."
    )


def pieces(crs: str, box: Box) -> Iterator[list[Side]]:
    """Yield parts of the box that the CRS shows in one piece, as closed walks of four sides."""
    seams = _seams(crs, box)
    lons = sorted({box.west, *seams, box.east}) if box.east > box.west else [box.west, box.east]
    for west, east in pairwise(lons):
        if east - west > 2.0 * _HAIR:
            west, east = west + _HAIR * (west in seams), east - _HAIR * (east in seams)
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
    return sorted(lon for lon in far if box.west <= lon <= box.east)


def walk(side: Side, share: Floats) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes at the given shares, 0 to 1, of a side."""
    west, south, east, north = side
    return west + (east - west) * share, south + (north - south) * share


class _Path(NamedTuple):
    """Points along a side in the CRS, close enough for the lattice, and how far it bends between two."""

    x: Floats
    y: Floats
    slack: float


def _path(lattice: Lattice, crs: str, side: Side, box: Box) -> _Path:
    """Walk a side in steps of less than half a cell."""
    share = np.linspace(0.0, 1.0, _ROUGH)
    step = float(lattice.size) / 4.0
    for _ in range(6):
        x, y = _checked(crs, *walk(side, share), box)
        length = np.hypot(np.diff(x), np.diff(y))
        if length.max() <= 2.0 * step:
            return _Path(x, y, _bend(x, y))
        along = np.concatenate([[0.0], np.cumsum(length)])
        n = int(along[-1] / step) + _ROUGH
        share = np.interp(np.linspace(0.0, along[-1], n), along, share)
    raise ValueError(outside(crs, box))


def _checked(crs: str, lon: Floats, lat: Floats, box: Box) -> tuple[Floats, Floats]:
    """Project points that must come back where they were."""
    try:
        x, y = project(crs, lon, lat)
        back_lon, back_lat = project(crs, x, y, back=True)
    except ProjError:
        raise ValueError(outside(crs, box)) from None
    with np.errstate(invalid="ignore"):
        turn = np.abs(np.remainder(back_lon - lon + 180.0, 360.0) - 180.0) * np.cos(np.radians(lat))
        same = (turn < _SAME_PLACE) & (np.abs(back_lat - lat) < _SAME_PLACE)
    if not same.all():
        raise ValueError(outside(crs, box))
    return x, y


def _bend(x: Floats, y: Floats) -> float:
    """Return how far the curve may leave its chords: the height of any three points in a row, and 1 mm."""
    dx, dy = np.diff(x), np.diff(y)
    twice = np.abs(dx[:-1] * dy[1:] - dy[:-1] * dx[1:])
    base = np.hypot(x[2:] - x[:-2], y[2:] - y[:-2])
    return 1e-3 + float(np.max(twice / np.maximum(base, 1e-9), initial=0.0))


def complete(lattice: Lattice, crs: str, box: Box) -> tuple[Runs, Ints, Ints]:
    """Return the keys of all squares that a point of the box can fall in.

    Returns
    -------
    keys : Runs
        All squares.
    outer, border : int64 arrays
        Those where the map of the box may end; those that its border runs through. Ascending.

    Raises
    ------
    ValueError
        The CRS cannot show the box.
    """
    lon, lat = np.meshgrid(np.linspace(box.west, box.east, 17), np.linspace(box.south, box.north, 17))
    _checked(crs, lon.ravel(), lat.ravel(), box)
    none = np.empty(0, dtype=np.int64)
    outer, border = [none], [none]
    first, last = [none], [none]
    for piece in pieces(crs, box):
        paths = [_path(lattice, crs, side, box) for side in piece]
        touched = [_touched(lattice, path) for path in paths]
        outer += touched
        border += [keys for side, keys in zip(piece, touched, strict=True) if _is_border(side, box)]
        for low, high in _inside(
            lattice, *(np.concatenate([path[axis] for path in paths]) for axis in (0, 1))
        ):
            first.append(low)
            last.append(high)
    ends = distinct(outer)
    keys = Runs.of(np.concatenate([ends, *first]), np.concatenate([ends, *last]))
    return keys, ends, distinct(border)


def _is_border(side: Side, box: Box) -> bool:
    west, south, east, north = side
    if south == north and (west != east or box.west == box.east):
        return -90.0 < south == box.south or box.north == north < 90.0
    return not box.is_circle and min(abs(west - box.west), abs(west - box.east)) <= _HAIR


def _touched(lattice: Lattice, path: _Path) -> Ints:
    """Return the squares within the slack of a path, and both others where it crosses near a corner."""
    found = []
    for up in (-path.slack, path.slack):
        for right in (-path.slack, path.slack):
            rows, cols = lattice.number(path.y + up), lattice.number(path.x + right)
            found += [key(rows, cols), key(rows[1:], cols[:-1]), key(rows[:-1], cols[1:])]
    return distinct(found)


def _inside(lattice: Lattice, x: Floats, y: Floats) -> list[tuple[Ints, Ints]]:
    """Return first and last keys of the squares whose centres a closed path goes around.

    Row by row, between the path's crossings; in a row, columns on either side of 0 have keys of their own.
    """
    size = float(lattice.size)
    x, y = np.append(x, x[:1]), np.append(y, y[:1])
    row = np.floor(y / size - 0.5)
    cross = np.flatnonzero(row[1:] != row[:-1])
    rows = np.maximum(row[cross], row[cross + 1])
    share = ((rows + 0.5) * size - y[cross]) / (y[cross + 1] - y[cross])
    at = x[cross] + (x[cross + 1] - x[cross]) * share
    order = np.lexsort((at, rows))
    rows, at = rows[order][::2], at[order]
    west, east = np.ceil(at[::2] / size - 0.5), np.floor(at[1::2] / size - 0.5)
    up, down = (west <= east) & (east >= 0), (west <= east) & (west < 0)
    return [
        (key(rows[up], np.maximum(west[up], 0)), key(rows[up], east[up])),
        (key(rows[down], np.minimum(east[down], -1)), key(rows[down], west[down])),
    ]


def key(rows: Floats, cols: Floats) -> Ints:
    """Pack whole coordinates so that numbers sort as ids do: N or E up, then S or W away from 0.

    Neighbours in a row, on one side of 0, have successive keys.
    """
    packed = [np.where(part < 0, _NEGATIVE - part, part).astype(np.int64) for part in (rows, cols)]
    return (packed[0] << 32) | packed[1]


def numbers(keys: Ints) -> tuple[Ints, Ints]:
    """Return the whole coordinates, rows and columns, that :func:`key` packed."""
    parts = keys >> 32, keys & 0xFFFFFFFF
    rows, cols = (np.where(part >= _NEGATIVE, _NEGATIVE - part, part) for part in parts)
    return rows, cols
