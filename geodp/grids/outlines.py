"""Outlines that every map draws right: cut at the 180th meridian, closed over the poles, valid.

A ring whose longitudes jump from 179 to -179 is a valid polygon that smears over the whole map. Such
rings (a handful, found by their width) are unrolled along the shorter way round, closed over the pole
if they go around it, and clipped by windows of the map. Everything else is built in bulk.
"""

from collections.abc import Iterator

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
    for number in np.flatnonzero(width > 180.0):
        shapes[number] = cut(coords[starts[number] : starts[number] + sizes[number]])
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
    parts = [part for turn in (range(1) if turns else range(-2, 3)) for part in _clip(shape, turn, windows)]
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


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


def _clip(
    shape: BaseGeometry, turn: int, windows: tuple[tuple[float, float], ...]
) -> Iterator[shapely.Polygon]:
    shift = 360.0 * turn
    for west, east in windows:
        inside = shapely.intersection(shape, shapely.box(west + shift, -90.0, east + shift, 90.0))
        for part in shapely.get_parts(inside):
            if part.geom_type == "Polygon" and part.area > 0:
                yield orient(shapely.transform(part, lambda xy: xy - np.array([shift, 0.0])))
