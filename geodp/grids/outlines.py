"""Outlines that every map draws right: cut at the 180th meridian, closed over the poles, valid.

A ring whose longitudes jump from 179 to -179 is a valid polygon that smears over the whole map. Such
rings (a handful, found by their width) are unrolled along the shorter way round, closed over the pole
if they go around it, and clipped by windows of the map. Everything else is built in bulk.
"""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry
from shapely.geometry.polygon import orient

__all__ = ["cut", "polygons", "unroll"]

# Parts of a cell over a pole may not share a border, or their multipolygon is invalid: a hair (0.1 mm
# at the equator, nothing at a pole) lies between them.
_HAIR = 1e-9
_FULL = ((-180.0, 180.0),)
_HALVES = ((-180.0, 0.0), (_HAIR, 180.0))


def polygons(coords: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return one valid polygon or multipolygon for each ring.

    Parameters
    ----------
    coords : float64 array, shape (m, 2)
        Longitude and latitude of all rings' vertices, one ring after the other, not closed.
    sizes : int64 array, shape (n,)
        Number of vertices of each ring, at least 3; they add up to m.

    Returns
    -------
    object array, shape (n,)
        Rings keep their direction, except those wider than 180°, which are cut and run
        counter-clockwise.

    Examples
    --------
    >>> ring = np.array([[179.0, 0.0], [-179.0, 0.0], [-179.0, 1.0], [179.0, 1.0]])
    >>> [part.bounds for part in polygons(ring, np.array([4]))[0].geoms]
    [(179.0, 0.0, 180.0, 1.0), (-180.0, 0.0, -179.0, 1.0)]
    """
    if not len(sizes):
        return np.empty(0, dtype=object)
    starts = np.cumsum(sizes) - sizes
    closed = np.concatenate([[0], np.cumsum(sizes + 1)])
    vertex = np.arange(closed[-1]) - np.repeat(np.arange(len(sizes)), sizes + 1)
    vertex[closed[1:] - 1] = starts
    offsets = (closed, np.arange(len(sizes) + 1))
    shapes = np.asarray(
        shapely.from_ragged_array(shapely.GeometryType.POLYGON, coords[vertex], offsets), dtype=object
    )
    lon = coords[:, 0]
    width = np.maximum.reduceat(lon, starts) - np.minimum.reduceat(lon, starts)
    wide = np.flatnonzero(width > 180.0)
    if len(wide):
        shapes[wide] = _cut_many(shapes[wide])
    return shapes


def cut(ring: NDArray[np.float64]) -> BaseGeometry:
    """Return the area inside a ring that crosses the 180th meridian or goes around a pole.

    Parameters
    ----------
    ring : float64 array, shape (k, 2)
        Longitude and latitude, not closed; each step takes the shorter way round.
    """
    path, turns = unroll(ring)
    shape: BaseGeometry = shapely.Polygon(path)
    if not shape.is_valid:
        shape = shapely.make_valid(shape)
    low, _, high, _ = shape.bounds
    windows = _HALVES if high - low > 180.0 else _FULL
    whole: BaseGeometry = _clipped(np.array([shape]), range(1) if turns else range(-2, 3), windows)[0]
    return whole


def unroll(ring: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return the ring without jumps in longitude, and how many turns it makes around the Earth.

    A ring that goes around a pole (-1 or 1 turns) comes back as three rounds closed along that pole,
    so that the middle of it is free of seams.
    """
    steps = np.diff(ring[:, 0], append=ring[:1, 0])
    offset = np.cumsum(-360.0 * np.rint(steps / 360.0))
    path = ring.copy()
    path[1:, 0] += offset[:-1]
    turns = round(offset[-1] / 360.0)
    if not turns:
        return path, 0
    pole = 90.0 if path[:, 1].mean() > 0 else -90.0
    rounds = [path + np.array([360.0 * turns * times, 0.0]) for times in (-1, 0, 1)]
    ends = [[rounds[-1][-1, 0], pole], [rounds[0][0, 0], pole]]
    return np.concatenate([*rounds, ends]), turns


def _cut_many(rings: NDArray[np.object_]) -> NDArray[np.object_]:
    """Do as :func:`cut` does for closed rings; those that cross 180 and are as narrow as most go in bulk."""
    coords, ring = shapely.get_coordinates(rings, return_index=True)
    # The last vertex of a ring is its first again, so the step into it closes the ring.
    steps = np.diff(coords[:, 0], prepend=0.0)
    starts = np.searchsorted(ring, np.arange(len(rings)))
    steps[starts] = 0.0
    turned = np.cumsum(np.rint(steps / 360.0))
    turned -= turned[starts][ring]
    coords[:, 0] -= 360.0 * turned
    around = turned[np.append(starts[1:], len(coords)) - 1] != 0
    shapes = rings.copy()
    shapes[~around] = shapely.set_coordinates(shapes[~around], coords[~around[ring]])
    west, _, east, _ = shapely.bounds(shapes).T
    plain = ~around & (east - west <= 180.0) & shapely.is_valid(shapes)
    shapes[plain] = _clipped(shapes[plain], range(-2, 3), _FULL)
    for number in np.flatnonzero(~plain):
        shapes[number] = cut(shapely.get_coordinates(rings[number])[:-1])
    return shapes


def _clipped(
    shapes: NDArray[np.object_], turns: range, windows: tuple[tuple[float, float], ...]
) -> NDArray[np.object_]:
    """Return what of each shape lies in windows of the map, each turn of it moved home."""
    pieces = [_clip(shapes, 360.0 * turn, *window) for turn in turns for window in windows]
    parts = np.concatenate([part for part, _ in pieces])
    owner = np.concatenate([whose for _, whose in pieces])
    order = np.argsort(owner, kind="stable")
    parts, owner = parts[order], owner[order]
    joined = np.full(len(shapes), shapely.MultiPolygon(), dtype=object)
    found, place = np.unique(owner, return_inverse=True)
    if len(found):
        joined[found] = shapely.multipolygons(parts, indices=place)
    alone = np.bincount(owner, minlength=len(shapes)) == 1
    joined[alone] = parts[alone[owner]]
    return joined


def _clip(
    shapes: NDArray[np.object_], shift: float, west: float, east: float
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the polygons inside one window, counter-clockwise, and which shape each is of."""
    inside = shapely.intersection(shapes, shapely.box(west + shift, -90.0, east + shift, 90.0))
    parts, owner = shapely.get_parts(inside, return_index=True)
    kept = (shapely.get_type_id(parts) == shapely.GeometryType.POLYGON) & (shapely.area(parts) > 0)
    parts, owner = parts[kept], owner[kept]
    moved = np.asarray(shapely.transform(parts, lambda xy: xy - np.array([shift, 0.0])), dtype=object)
    clockwise = ~shapely.is_ccw(shapely.get_exterior_ring(moved)) | (
        shapely.get_num_interior_rings(moved) > 0
    )
    moved[clockwise] = [orient(part) for part in moved[clockwise]]
    return moved, owner
