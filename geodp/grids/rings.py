"""Polygons as people write them across the 180th meridian and around a pole, cut into plain ones.

Two habits are read: rings that jump from 179 to -179, and rings that go on beyond 180. Both are followed
along the Earth, the short way from vertex to vertex, and then cut at the meridian, so that what is
located and what is drawn are the same polygons. Vertices keep the values they were given.
"""

import numpy as np
import shapely
from numpy.typing import NDArray

__all__ = ["FARTHEST", "cut_at_180", "halved", "is_plain"]

FARTHEST = 540.0
"""Longitudes further from 0 are no longitudes."""

# An edge of 200° could be a wide zone or one across the 180th meridian; one of 358° is no wide zone.
_CLEARLY_AROUND = 270.0
_HAIR = 1e-9

_Ring = NDArray[np.float64]


def is_plain(polygons: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return which polygons lie in [-180, 180] and are at most 180° wide, and so need no cut.

    Parameters
    ----------
    polygons : object array of shapely polygons, shape (n,)

    Examples
    --------
    >>> is_plain(np.array([shapely.box(0, 0, 1, 1), shapely.box(179, 0, 181, 1)])).tolist()
    [True, False]
    """
    west, _, east, _ = shapely.bounds(polygons).T
    plain: NDArray[np.bool_] = (west >= -180.0) & (east <= 180.0) & (east - west <= 180.0)
    return plain


def cut_at_180(zone: shapely.Geometry) -> shapely.Geometry:
    """Return a polygon or multipolygon with every part inside [-180, 180].

    Parameters
    ----------
    zone : shapely Polygon or MultiPolygon
        Degrees, longitudes in [-540, 540]; two-dimensional.

    Returns
    -------
    shapely Polygon or MultiPolygon
        No part is wider than 180°, except that a zone around a pole is one part from -180 to 180.

    Raises
    ------
    ValueError
        The rest of a sentence that begins with the zone: it is wider than 180°, it is unclear which way
        round an edge goes, or it is not a valid polygon.

    Examples
    --------
    >>> [part.bounds for part in cut_at_180(shapely.box(179, 0, 182, 1)).geoms]
    [(179.0, 0.0, 180.0, 1.0), (-180.0, 0.0, -178.0, 1.0)]
    """
    try:
        pieces = [piece for part in shapely.get_parts(zone) if not part.is_empty for piece in _cut(part)]
    except shapely.GEOSException:
        raise ValueError("is not a valid polygon; repair it with zones.make_valid().") from None
    return pieces[0] if len(pieces) == 1 else shapely.MultiPolygon(pieces)


def halved(zone: shapely.Geometry) -> shapely.Geometry:
    """Return a zone around a pole for drawing, in a western and an eastern half.

    Parts of a multipolygon may not share an edge, so a hair of 0.1 mm lies between the halves.

    Examples
    --------
    >>> [part.bounds for part in halved(shapely.box(-180, 60, 180, 90)).geoms]
    [(-180.0, 60.0, 0.0, 90.0), (1e-09, 60.0, 180.0, 90.0)]
    """
    boxes = [shapely.box(-180.0, -90.0, 0.0, 90.0), shapely.box(_HAIR, -90.0, 180.0, 90.0)]
    return shapely.MultiPolygon([part for box in boxes for part in _pieces(shapely.intersection(zone, box))])


def _cut(polygon: shapely.Polygon) -> list[shapely.Polygon]:
    outer, turns = _follow(polygon.exterior)
    holes = [_follow(ring) for ring in polygon.interiors]
    if turns:
        return _around_pole(outer, holes)
    if any(hole_turns for _, hole_turns in holes):
        raise ValueError("is not a valid polygon: a hole goes around the Earth and its outline does not.")
    whole = shapely.Polygon(outer, [_beside(ring, outer) for ring, _ in holes])
    west, _, east, _ = whole.bounds
    if east - west > 180.0 or whole.area == 0.0:
        raise ValueError("is wider than 180 degrees of longitude; cut it into narrower zones or parts.")
    if not whole.is_valid:
        raise ValueError(f"is not a valid polygon ({shapely.is_valid_reason(whole)}).")
    return _strips(whole)


def _follow(ring: shapely.LinearRing) -> tuple[_Ring, int]:
    """Return the ring's vertices with longitudes counted on, and how often it goes around the Earth."""
    xy = shapely.get_coordinates(ring)[:-1]
    lat = xy[:, 1]
    # A run of vertices along a pole is one place; only its ends say from where to where it leads.
    inner = (np.abs(lat) == 90.0) & (lat == np.roll(lat, 1)) & (lat == np.roll(lat, -1))
    if inner.all():
        raise ValueError("is not a valid polygon: it has no area.")
    xy = np.concatenate([xy[~inner], xy[~inner][:1]])
    steps = np.diff(xy[:, 0])
    jumps = np.where(np.abs(steps) > 180.0, np.rint(steps / 360.0), 0.0)
    if (unclear := (jumps != 0) & (np.abs(steps - 360.0 * jumps) > 360.0 - _CLEARLY_AROUND)).any():
        raise ValueError(
            f"has an edge of {abs(float(steps[unclear][0])):g} degrees of longitude: wider than 180 degrees, "
            "or across the 180th meridian? Cut it into narrower parts, or write it beyond 180 (179 to 181)."
        )
    xy[1:, 0] -= 360.0 * np.cumsum(jumps)
    return xy, round((xy[-1, 0] - xy[0, 0]) / 360.0)


def _beside(ring: _Ring, outer: _Ring) -> _Ring:
    """Return a hole moved by whole turns to where its outline is."""
    middle = (ring[:, 0].min() + ring[:, 0].max() - outer[:, 0].min() - outer[:, 0].max()) / 2
    moved: _Ring = ring - np.array([360.0 * np.rint(middle / 360.0), 0.0])
    return moved


def _strips(whole: shapely.Polygon) -> list[shapely.Polygon]:
    """Return the polygons of ``whole`` in each turn of the Earth, moved to [-180, 180]."""
    west, _, east, _ = whole.bounds
    pieces: list[shapely.Polygon] = []
    for turn in range(int(np.floor((west + 180.0) / 360.0)), int(np.ceil((east - 180.0) / 360.0)) + 1):
        middle = 360.0 * turn
        strip = shapely.box(middle - 180.0, -90.0, middle + 180.0, 90.0)
        pieces += [_moved(part, middle) for part in _pieces(shapely.intersection(whole, strip))]
    return pieces


def _pieces(shape: shapely.Geometry) -> list[shapely.Polygon]:
    """Return the polygons of an overlay, which may also leave points and lines."""
    return [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon" and part.area > 0]


def _moved(part: shapely.Polygon, middle: float) -> shapely.Polygon:
    def move(xy: _Ring) -> _Ring:
        x = xy[:, 0] - middle
        # The overlay may leave a cut a hair beside the meridian, where points on it would fall through.
        on_cut = np.abs(np.abs(x) - 180.0) < 1e-12
        return np.column_stack([np.where(on_cut, np.copysign(180.0, x), x), xy[:, 1]])

    return shapely.transform(part, move)


def _around_pole(outer: _Ring, holes: list[tuple[_Ring, int]]) -> list[shapely.Polygon]:
    """Return a zone whose outline goes around the Earth: everything from it to the nearer pole."""
    low, high = outer[:, 1].min(), outer[:, 1].max()
    if low < 0.0 < high:
        raise ValueError("goes around the Earth and crosses the equator: it is wider than 180 degrees.")
    pole = 90.0 if low >= 0.0 else -90.0
    zone = _cap(outer, pole)
    for ring, turns in holes:
        zone = shapely.difference(zone, _cap(ring, pole) if turns else _turned(shapely.Polygon(ring)))
    return _pieces(zone)


def _cap(ring: _Ring, pole: float) -> shapely.Geometry:
    # From the vertex nearest to the pole a straight line leads there without crossing the ring.
    turn = 360.0 * np.rint((ring[-1, 0] - ring[0, 0]) / 360.0)
    nearest = int(np.argmin(np.abs(pole - ring[:-1, 1])))
    path = np.concatenate([ring[nearest:-1], ring[: nearest + 1] + np.array([turn, 0.0])])
    path[:, 0] -= 360.0 * np.floor((path[0, 0] + 180.0) / 360.0)
    # Both ends are one vertex, bit for bit, or a hair of a gap stays open between them.
    path[0, 0] = path[-1, 0] - turn
    closed = shapely.Polygon(np.concatenate([path, [[path[-1, 0], pole], [path[0, 0], pole]]]))
    if not closed.is_valid:
        raise ValueError(f"is not a valid polygon ({shapely.is_valid_reason(closed)}).")
    return _turned(closed)


def _turned(polygon: shapely.Polygon) -> shapely.Geometry:
    return shapely.union_all(_strips(polygon))
