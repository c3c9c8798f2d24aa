"""True outlines of cells whose edges are arcs of great circles, tested against boxes of degrees.

On a map of longitude and latitude an arc bows away from the straight line between its ends; a thin
slice of the cell can lie in a box that the straight outline misses. The outlines here are followed in
short steps, and whatever the steps may still bow is added to the box.
"""

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.grids.outlines import unroll

__all__ = ["Arcs", "Rectangle"]

Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Arcs:
    """True outlines of some cells: polygons of short steps along great circles, and their boxes.

    ``slack`` and ``rise`` bound, in degrees of longitude and latitude, what the steps may still bow.
    """

    shapes: NDArray[np.object_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    slack: NDArray[np.float64]
    rise: NDArray[np.float64]

    @classmethod
    def of(cls, coords: NDArray[np.float64], sizes: NDArray[np.int64], steps: int) -> "Arcs":
        """Return the outlines of rings of vertices (as in :func:`geodp.grids.outlines.polygons`).

        Parameters
        ----------
        coords : float64 array, shape (m, 2)
            Longitude and latitude of all vertices, rings not closed.
        sizes : int64 array, shape (n,)
            Number of vertices of each ring.
        steps : int
            Straight steps along each edge.
        """
        starts = np.cumsum(sizes) - sizes
        following = np.arange(1, len(coords) + 1)
        following[starts + sizes - 1] = starts
        path, arcs = _great_circles(coords, coords[following], steps)
        first = np.repeat(coords[starts, 0], sizes * steps)
        path[:, 0] = first + (path[:, 0] - first + 180.0) % 360.0 - 180.0
        rings = shapely.linearrings(path, indices=np.repeat(np.arange(len(sizes)), sizes * steps))
        shapes = np.asarray(shapely.polygons(rings), dtype=object)
        low, high = np.minimum.reduceat(path, starts * steps), np.maximum.reduceat(path, starts * steps)
        step = np.maximum.reduceat(arcs, starts) / steps
        slack = _slack(step, np.maximum(-low[:, 1], high[:, 1]))
        # No place on a step is farther than half of it from one of its ends, in latitude neither.
        rise = np.minimum(slack, np.degrees(step) / 2.0 + 1e-9)
        for wide in np.flatnonzero(high[:, 0] - low[:, 0] > 180.0):
            shapes[wide] = shapely.Polygon(unroll(shapely.get_coordinates(shapes[wide])[:-1])[0])
            low[wide, 0], low[wide, 1], high[wide, 0], high[wide, 1] = shapes[wide].bounds
        return cls(shapes, low, high, slack, rise)

    def touch(self, rectangle: Rectangle) -> NDArray[np.bool_]:
        """Tell which cells touch a rectangle of at most 90° of longitude; in doubt they do."""
        west, south, east, north = rectangle
        turn = 360.0 * np.rint(((west + east) - (self.low[:, 0] + self.high[:, 0])) / 720.0)
        box = np.column_stack([west - turn - self.slack, south - self.rise])
        top = np.column_stack([east - turn + self.slack, north + self.rise])
        near: NDArray[np.bool_] = np.all((box <= self.high) & (top >= self.low), axis=1)
        some = np.flatnonzero(near)
        near[some] = shapely.intersects(self.shapes[some], shapely.box(*box[some].T, *top[some].T))
        return near


def _great_circles(
    coords: NDArray[np.float64], following: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``steps`` points from each vertex towards the next, and how long the arcs are in radians."""
    here, there = _vectors(coords), _vectors(following)
    arcs = 2.0 * np.arcsin(np.minimum(np.linalg.norm(there - here, axis=1) / 2.0, 1.0))
    if steps == 1:
        return coords.copy(), arcs
    share = (np.arange(steps) / steps)[:, None]
    points = here[:, None] * (1.0 - share) + there[:, None] * share
    lon = np.degrees(np.arctan2(points[..., 1], points[..., 0]))
    lat = np.degrees(np.arctan2(points[..., 2], np.hypot(points[..., 0], points[..., 1])))
    return np.column_stack([lon.ravel(), lat.ravel()]), arcs


def _vectors(coords: NDArray[np.float64]) -> NDArray[np.float64]:
    lon, lat = np.radians(coords).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def _slack(step: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound, in degrees, how far a great circle leaves a straight step in longitude and latitude.

    A step of s radians bows by s²/8 tan(lat) in latitude and s²/8 tan(lat)/cos(lat) in longitude;
    twice that (steps are not quite even), and 0.1 mm for the arithmetic.
    """
    lat = np.radians(np.minimum(lat, 90.0 - 1e-10))
    return np.degrees(step**2 / 4.0 * np.tan(lat) / np.cos(lat)) + 1e-9
