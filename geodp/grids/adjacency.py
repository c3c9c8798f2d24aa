"""How polygons lie together: size and neighbourhood, from public outlines alone."""

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.grids.hierarchy import Hierarchy

__all__ = ["areas_km2", "neighbourhood"]

_SEMI_MAJOR_KM, _ECCENTRICITY = 6378.137, 0.0818191908426215  # WGS84
_BLOCKS = (256, 64, 16)


def areas_km2(shapes: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return areas on the WGS84 ellipsoid in square kilometres.

    Parameters
    ----------
    shapes : object array of shapely geometries, shape (n,)
        EPSG:4326, edges straight in degrees. Exact along meridians and parallels (Snyder 1987, equation
        3-12), within 0.1 % on slanting edges.

    Examples
    --------
    >>> areas_km2(np.array([shapely.box(-180, -90, 180, 90)])).round(-4).tolist()
    [510070000.0]
    """
    areas: NDArray[np.float64] = shapely.area(
        shapely.transform(shapely.segmentize(shapes, 1.0), _on_cylinder)
    )
    return areas


def neighbourhood(shapes: NDArray[np.object_]) -> Hierarchy:
    """Return groups of neighbours: runs of equal length along a Hilbert curve through the shapes.

    Parameters
    ----------
    shapes : object array of shapely (multi)polygons, shape (n,)
        EPSG:4326, cut at the 180th meridian.

    Returns
    -------
    Hierarchy
        ``siblings`` in runs of 4, 16, 64, 256 and 1,024 shapes as far as there are that many; ``blocks``
        of 256, 64 and 16 where a block has at least four shapes; ``order`` along the curve.

    Examples
    --------
    >>> row = np.array([shapely.box(x, 0, x + 1, 1) for x in range(8)])
    >>> neighbourhood(row).siblings[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    n = len(shapes)
    order = _walk(shapely.point_on_surface(shapes))
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    siblings = tuple(place // 4**level for level in range(1, 6) if 4 ** (level - 1) < n)
    blocks = tuple(place * count // n for count in _BLOCKS if 4 * count <= n)
    return Hierarchy(siblings, blocks, order)


def _walk(points: NDArray[np.object_]) -> NDArray[np.int64]:
    x, y = shapely.get_x(points), shapely.get_y(points)
    # The walk starts behind the widest gap of longitudes, so that it may run across the 180th meridian.
    around = np.sort(x)
    gaps = np.diff(around, append=around[0] + 360.0)
    start = around[(int(np.argmax(gaps)) + 1) % len(around)]
    unrolled = gpd.GeoSeries(shapely.points(np.where(x < start, x + 360.0, x), y))
    along = unrolled.hilbert_distance(level=16).to_numpy()
    return np.argsort(along, kind="stable").astype(np.int64)


def _on_cylinder(lonlat: NDArray[np.float64]) -> NDArray[np.float64]:
    e, sine = _ECCENTRICITY, np.sin(np.radians(lonlat[:, 1]))
    q = (1 - e * e) * (sine / (1 - (e * sine) ** 2) + np.arctanh(e * sine) / e)
    return _SEMI_MAJOR_KM * np.column_stack([np.radians(lonlat[:, 0]), q / 2])
