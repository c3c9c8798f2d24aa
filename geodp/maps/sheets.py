"""How places lie on the sheet: unrolled across the 180th meridian, and seen from above around a pole.

Released outlines are cut at the 180th meridian, as files want them. A map of Fiji drawn from such outlines is a band
around the world; here it is drawn on longitudes that run on past 180, with the halves of a cell joined. A map
that goes around a pole is drawn in the azimuthal equidistant projection, in degrees from the pole.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import Box
from geodp.grids.whole import Whole

__all__ = ["Sheet", "box_outline", "lay_out", "turned_sheet", "window"]

Floats = NDArray[np.float64]
Shapes = NDArray[np.object_]
Bounds = tuple[float, float, float, float]

_HAIR = 1e-6
_WORTH_TURNING = 0.75
_POLAR, _AT_THE_POLE = 45.0, 88.0
_STEP = 2.0
_JOIN = 1e-9
_STEEPEST = 85.0


@dataclass(frozen=True, eq=False)
class Sheet:
    """A plane to draw on.

    Attributes
    ----------
    west : float
        Where longitudes start: those west of it have 360 added.
    pole : {0, 1, -1}
        0: x and y are longitude and latitude. 1 or -1: degrees from that pole, ``centre`` pointing down (up in
        the south).
    centre : float
        Longitude in the middle.
    """

    west: float = -180.0
    pole: int = 0
    centre: float = 0.0

    def place(self, shapes: Shapes) -> Shapes:
        """Return shapes of longitude and latitude in the sheet's coordinates; what 180 or a pole cut is joined."""
        moved: Shapes = np.asarray(shapely.force_2d(shapes), dtype=object)
        if self.pole:
            moved = shapely.transform(shapely.segmentize(moved, _STEP), self._from_above)
            return _joined(moved, np.ones(len(moved), dtype=bool))
        if self.west == -180.0:
            return moved
        moved = shapely.transform(moved, self._turned)
        west, _, east, _ = shapely.bounds(moved).reshape(-1, 4).T
        return _joined(moved, (west < 180.0) & (east > 180.0))

    def xy(self, lonlat: Floats) -> Floats:
        """Return places of longitude and latitude, shape (n, 2), in the sheet's coordinates."""
        return self._from_above(lonlat) if self.pole else self._turned(lonlat)

    def aspect(self, bounds: Bounds) -> float:
        """Return how much longer a unit of y is drawn than one of x, for bounds in the sheet's coordinates."""
        if self.pole:
            return 1.0
        _, south, _, north = bounds
        middle = min(abs(south + north) / 2, _STEEPEST)
        return 1.0 if north - south > 90 else 1 / math.cos(math.radians(middle))

    def _turned(self, lonlat: Floats) -> Floats:
        lon = lonlat[:, 0]
        return np.column_stack([np.where(lon < self.west - _HAIR, lon + 360.0, lon), lonlat[:, 1]])

    def _from_above(self, lonlat: Floats) -> Floats:
        angle, away = np.radians(lonlat[:, 0] - self.centre), 90.0 - self.pole * lonlat[:, 1]
        return np.column_stack([away * np.sin(angle), -self.pole * away * np.cos(angle)])


def lay_out(shapes: Shapes) -> Sheet:
    """Return the plane that shapes of longitude and latitude are drawn on.

    Parameters
    ----------
    shapes : object array, shape (n,)
        Geometries in degrees, cut at the 180th meridian; None and empty ones are left out.

    Returns
    -------
    Sheet
        Starting west of the widest gap if that makes the map narrower by a quarter or more; around a pole if all
        lies poleward of 45 degrees and more than half around it, or at it.

    Examples
    --------
    >>> fiji = np.array([shapely.box(177, -19, 180, -16), shapely.box(-180, -19, -178, -16)])
    >>> sheet = lay_out(fiji)
    >>> [shape.bounds for shape in sheet.place(fiji)]
    [(177.0, -19.0, 180.0, -16.0), (180.0, -19.0, 182.0, -16.0)]
    """
    west, south, east, north = _extents(shapes)
    if not len(west):
        return Sheet()
    start, width = window(west, east)
    pole = 1 if south.min() >= _POLAR else -1 if north.max() <= -_POLAR else 0
    farthest = north.max() if pole > 0 else -south.min()
    if pole and (width > 180.0 or farthest > _AT_THE_POLE):
        return Sheet(start, pole, 0.0 if width >= 359.0 else start + width / 2)
    return Sheet(start)


def turned_sheet(shapes: Shapes) -> Sheet:
    """Return the plane of longitudes and latitudes alone, as web maps have it, also around a pole."""
    west, _, east, _ = _extents(shapes)
    return Sheet(window(west, east)[0]) if len(west) else Sheet()


def window(west: Floats, east: Floats) -> tuple[float, float]:
    """Return where to start, and the width, of the longitudes that hold all arcs.

    Examples
    --------
    >>> window(np.array([177.0, -180.0]), np.array([180.0, -178.0]))
    (177.0, 5.0)
    >>> window(np.array([-180.0, 10.0]), np.array([-20.0, 180.0]))
    (-180.0, 360.0)
    """
    order = np.argsort(west)
    starts, reach = west[order], np.maximum.accumulate(east[order])
    gaps = np.append(starts[1:], starts[0] + 360.0) - reach
    widest = int(np.argmax(gaps))
    plain = float(reach[-1] - starts[0])
    if gaps[widest] < _HAIR or 360.0 - gaps[widest] > _WORTH_TURNING * plain:
        return -180.0, plain
    start = starts[(widest + 1) % len(starts)]
    return float(start), float(360.0 - gaps[widest])


def box_outline(facts: Mapping[str, Any]) -> Shapes:
    """Return the public box of a release, cut like the cells are; nothing where it has none, or none with an area.

    Examples
    --------
    >>> [shape.bounds for shape in shapely.get_parts(box_outline({"bounds": [176, -20, -176, -15]}))]
    [(176.0, -20.0, 180.0, -15.0), (-180.0, -20.0, -176.0, -15.0)]
    """
    if facts.get("bounds") is None:
        return np.empty(0, dtype=object)
    box = Box.parse(tuple(facts["bounds"]))
    if box.west == box.east or box.south == box.north:
        return np.empty(0, dtype=object)
    return Whole().domain(box).geometry()


def _extents(shapes: Shapes) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the bounds of all parts."""
    present = shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))]
    west, south, east, north = shapely.bounds(shapely.get_parts(present)).reshape(-1, 4).T
    return west, south, east, north


def _joined(shapes: Shapes, candidates: NDArray[np.bool_]) -> Shapes:
    """Join the parts of polygons that a cut had split."""
    several = (shapely.get_type_id(shapes) == shapely.GeometryType.MULTIPOLYGON) & candidates
    for row in np.flatnonzero(several):
        shapes[row] = shapely.union_all(shapely.get_parts(shapes[row]), grid_size=_JOIN)
    return shapes
