"""Outlines and rows of a map as one block of bytes that a page can hold: quantised, differenced, compressed.

A map of 100,000 hexagons is 41 MB of GeoJSON and 1 MB of this. Each cell is written once, however many slots it
has. Numbers are whole: places count steps of a power of ten of a degree, at most a thousandth of the smallest cell.
Lists are written as differences, without signs, and byte by byte: first the lowest byte of every number, then the
next one, since most of the high bytes are then the same and cost nothing.
"""

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

__all__ = ["Shapes", "differences", "extent", "packed", "shapes_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Section = NDArray[np.uint8] | NDArray[np.int32]

_MOST_DIGITS = 7  # of a degree: 1 cm, and 180 degrees still fit into 32 bits
_STEPS_A_CELL = 1_000
_STEPS_A_ZONE = 20_000
_CORNERS_OF_A_CELL = 12


@dataclass(frozen=True, eq=False)
class Shapes:
    """Outlines as rings of corners; a point is a ring of one.

    Attributes
    ----------
    rings : int64 array, shape (n_shapes,)
        Number of rings of each shape: exteriors and holes, which an even-odd rule tells apart.
    corners : int64 array, shape (n_rings,)
        Number of corners of each ring; the last is not the first again.
    lon, lat : int64 arrays, shape (n_corners,)
        In units of ``10**-digits`` degrees.
    digits : int
        Decimals of a degree.
    """

    rings: Ints
    corners: Ints
    lon: Ints
    lat: Ints
    digits: int

    def sections(self) -> dict[str, Section]:
        """Return what :func:`packed` writes."""
        return {
            "rings": self.rings.astype(np.int32),
            "corners": self.corners.astype(np.int32),
            "lon": differences(self.lon),
            "lat": differences(self.lat),
        }


def shapes_of(outlines: NDArray[np.object_]) -> Shapes:
    """Return polygons or points, in degrees, as rings; what is null or empty has none.

    Examples
    --------
    >>> shapes = shapes_of(np.array([shapely.box(0, 0, 1, 1), None], dtype=object))
    >>> shapes.rings.tolist(), shapes.corners.tolist(), shapes.digits, sorted(set(shapes.lon.tolist()))
    ([1, 0], [4], 3, [0, 1000])
    """
    rings, of_shape = _rings(outlines)
    corners, of_ring = shapely.get_coordinates(rings, return_index=True)
    digits = _digits(outlines)
    places = np.rint(corners * 10.0**digits).astype(np.int64)
    kept = _changed(places, of_ring)
    # Shapes are never lost: a ring smaller than a step stays as its first corner.
    places, of_ring = places[kept], of_ring[kept]
    return Shapes(
        rings=np.bincount(of_shape, minlength=len(outlines)).astype(np.int64),
        corners=np.bincount(of_ring, minlength=len(rings)).astype(np.int64),
        lon=places[:, 0],
        lat=places[:, 1],
        digits=digits,
    )


def extent(shapes: Shapes) -> tuple[float, float, float, float] | None:
    """Return west, south, east and north of all shapes, in degrees; east is above 180 across the 180th meridian.

    The box starts where the widest stretch of longitudes without shapes ends. None where nothing is drawn.

    Examples
    --------
    >>> fiji = shapely.union_all([shapely.box(179, -18, 180, -17), shapely.box(-180, -18, -178, -17)])
    >>> extent(shapes_of(np.array([fiji], dtype=object)))
    (179.0, -18.0, 182.0, -17.0)
    """
    if not len(shapes.lon):
        return None
    starts = np.concatenate([[0], np.cumsum(shapes.corners)[:-1]])
    west, east = (end.reduceat(shapes.lon, starts) for end in (np.minimum, np.maximum))
    order = np.argsort(west, kind="stable")
    west, reached = west[order], np.maximum.accumulate(east[order])
    turn = 360 * 10**shapes.digits
    gaps = np.append(west[1:], west[0] + turn) - reached
    widest = int(np.argmax(gaps))
    unit = 10.0**shapes.digits
    if gaps[widest] <= 0:
        first, last = -180 * 10**shapes.digits, 180 * 10**shapes.digits
    else:
        first, last = int(np.append(west, west[0] + turn)[widest + 1]), int(reached[widest])
        first, last = (first - turn, last) if widest == len(west) - 1 else (first, last + turn)
    return first / unit, float(shapes.lat.min() / unit), last / unit, float(shapes.lat.max() / unit)


def differences(numbers: Ints) -> NDArray[np.int32]:
    """Return each number less the one before it, modulo 2^32."""
    return np.diff(numbers, prepend=np.int64(0)).astype(np.int32)


def packed(facts: Mapping[str, Any], sections: Mapping[str, Section]) -> bytes:
    """Return compressed bytes: the length of a JSON text (4 bytes, low first), the text, and the sections.

    The JSON is ``facts`` with ``"sections"``: name, bytes a number and count of each, in order. Numbers of 4 bytes
    have no sign: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...

    Examples
    --------
    >>> block = zlib.decompress(packed({"a": 1}, {"b": np.array([0, -1, 300], dtype=np.int32)}))
    >>> block[4:-12].decode(), list(block[-12:])
    ('{"a":1,"sections":[["b",4,3]]}', [0, 1, 88, 0, 0, 2, 0, 0, 0, 0, 0, 0])
    """
    listed = [[name, numbers.dtype.itemsize, len(numbers)] for name, numbers in sections.items()]
    text = json.dumps({**facts, "sections": listed}, allow_nan=False, separators=(",", ":")).encode()
    body = b"".join(_planes(numbers) for numbers in sections.values())
    return zlib.compress(len(text).to_bytes(4, "little") + text + body, 9)


def _planes(numbers: Section) -> bytes:
    if numbers.dtype == np.uint8:
        return numbers.tobytes()
    unsigned = ((numbers << 1) ^ (numbers >> 31)).astype("<u4")
    return unsigned.view(np.uint8).reshape(-1, 4).T.tobytes()


def _rings(outlines: NDArray[np.object_]) -> tuple[NDArray[np.object_], Ints]:
    """Return all rings, or points, and the shape that each belongs to."""
    parts, of_shape = shapely.get_parts(outlines, return_index=True)
    filled = ~shapely.is_empty(parts)
    parts, of_shape = parts[filled], of_shape[filled]
    flat = shapely.get_dimensions(parts) == 2
    if not flat.any():
        return parts, of_shape
    rings, of_part = shapely.get_rings(parts[flat], return_index=True)
    return rings, of_shape[flat][of_part]


def _digits(outlines: NDArray[np.object_]) -> int:
    """Return the decimals that show the smallest shape well."""
    boxes = shapely.bounds(outlines)
    sides = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    sides = sides[sides > 0]
    if not len(sides):
        return _MOST_DIGITS
    plain = np.median(shapely.get_num_coordinates(outlines)) <= _CORNERS_OF_A_CELL
    step = float(sides.min()) / (_STEPS_A_CELL if plain else _STEPS_A_ZONE)
    return min(max(math.ceil(-math.log10(step) - 1e-9), 0), _MOST_DIGITS)


def _changed(places: Ints, of_ring: Ints) -> NDArray[np.bool_]:
    """Return which corners differ from the one before in their ring, the last from the first too."""
    before = np.ones(len(places), dtype=bool)
    before[1:] = (places[1:] != places[:-1]).any(axis=1) | (of_ring[1:] != of_ring[:-1])
    firsts = np.flatnonzero(np.diff(of_ring, prepend=-1))
    lasts = np.append(firsts[1:], len(places)) - 1 if len(places) else firsts
    closing = (places[lasts] == places[firsts]).all(axis=1) & (lasts > firsts)
    before[lasts[closing]] = False
    return before
