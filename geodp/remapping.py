"""Noised points brought back into a public region: post-processing, so it costs nothing.

The region must be public, like bounds: a coastline or a city limit, never an outline of the points.
"""

import math
from hashlib import sha256
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import wrap

__all__ = ["move_inside", "parse_region"]

Floats = NDArray[np.float64]

# Degrees, about a metre: how far inside the border a point is put, so that rounding cannot undo it.
_INSET = 1e-5


def parse_region(remap: Any) -> tuple[Any, str]:
    """Return the region as one geometry in longitude and latitude, and a digest of it.

    Parameters
    ----------
    remap : Polygon, MultiPolygon, GeoSeries or GeoDataFrame
        Any CRS; bare geometries are in longitude and latitude. Across the 180th meridian they may be cut
        there or run on beyond 180.

    Raises
    ------
    TypeError
        Not polygons by type.
    ValueError
        No CRS, no polygons, other geometries among them, or invalid ones.
    """
    if isinstance(remap, gpd.GeoDataFrame | gpd.GeoSeries):
        if remap.crs is None:
            raise ValueError("remap has no CRS. Longitude/latitude in degrees: remap.set_crs(4326).")
        parts = np.asarray(remap.geometry.to_crs(4326).array, dtype=object)
    elif isinstance(remap, shapely.Polygon | shapely.MultiPolygon):
        parts = np.array([remap], dtype=object)
    else:
        raise TypeError(
            f"remap must be a polygon, or a GeoSeries or GeoDataFrame of them, got {type(remap).__name__}."
        )
    if not (len(parts) and np.isin(shapely.get_type_id(parts), (3, 6)).all() and shapely.area(parts).all()):
        raise ValueError("remap must hold polygons with an area, and nothing else.")
    if not shapely.is_valid(parts).all() or not np.isfinite(shapely.total_bounds(parts)).all():
        raise ValueError("remap has an invalid polygon; repair it: remap.make_valid().")
    region = shapely.normalize(shapely.union_all(shapely.force_2d(parts)))
    return region, sha256(shapely.to_wkb(region)).hexdigest()[:16]


def move_inside(lon: Floats, lat: Floats, region: Any) -> tuple[Floats, Floats]:
    """Move what lies outside to the nearest place of the region.

    Nearest is meant in degrees with longitudes scaled at the region's middle latitude: right for a city or
    a country, rough for a continent; any rule would do for privacy, since it reads noised points only.

    Parameters
    ----------
    lon, lat : float64 arrays, shape (n,)
        Degrees, longitudes in [-180, 180).
    region : polygon or multipolygon
        From :func:`parse_region`.

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        Points that were inside keep their bits. The others lie about a metre inside the border, unless the
        region is thinner than that.
    """
    south, north = shapely.bounds(region)[[1, 3]]
    scale = np.array([max(math.cos(math.radians((south + north) / 2)), 0.01), 1.0])
    world = shapely.union_all([_shifted(region, turn) for turn in (-360.0, 0.0, 360.0)])
    shapely.prepare(world)
    out = np.flatnonzero(~shapely.intersects_xy(world, lon, lat))
    # From outside the nearest place lies on a border, and lines are indexed where polygons are searched.
    target = shapely.transform(shapely.boundary(_shrunk(world)), lambda xy: xy * scale)
    shapely.prepare(target)
    ways = shapely.shortest_line(target, shapely.points(lon[out] * scale[0], lat[out]))
    places = shapely.get_coordinates(ways)[::2] / scale
    lon, lat = lon.copy(), lat.copy()
    lon[out], lat[out] = wrap(places[:, 0]), places[:, 1]
    return lon, lat


def _shifted(region: Any, turn: float) -> Any:
    return shapely.transform(region, lambda xy: xy + np.array([turn, 0.0]))


def _shrunk(region: Any) -> Any:
    """Return the region without a margin of a metre; parts too thin for one stay as they are."""
    parts = shapely.get_parts(region)
    inner = shapely.buffer(parts, -_INSET, join_style="mitre")
    return shapely.union_all(np.where(shapely.is_empty(inner), parts, inner))
