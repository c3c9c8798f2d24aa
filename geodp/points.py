"""From a frame's geometry to longitudes and latitudes, with one rule for what is no place.

What cannot be placed (null, empty, not a Point, NaN or infinite, a latitude beyond a pole, or lost in
reprojection) is marked, never reported: whether a row is usable is a fact about somebody.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import wrap
from geodp.chunks import each, slices

__all__ = ["check_points", "lonlat", "reader"]

Floats = NDArray[np.float64]
Placed = tuple[Floats, Floats, NDArray[np.bool_]]


def check_points(gdf: object) -> gpd.GeoDataFrame:
    """Return ``gdf`` if its schema can hold points to be mapped; rows are not looked at.

    Raises
    ------
    TypeError
        Not a GeoDataFrame.
    ValueError
        No active geometry column, or no CRS.
    """
    if not isinstance(gdf, gpd.GeoDataFrame):
        _refuse_partitions(type(gdf))
        raise TypeError(
            f"geodp needs a GeoDataFrame, got {type(gdf).__name__}. Make one: "
            'gpd.GeoDataFrame(df, geometry=gpd.points_from_xy(df["lon"], df["lat"]), crs=4326)'
        )
    if list(gdf.columns).count(gdf.active_geometry_name) != 1:  # it can get lost when columns are renamed
        raise ValueError('the frame has no active geometry. Name it: gdf.set_geometry("geometry").')
    if gdf.crs is None:
        raise ValueError(
            "the frame has no CRS. Longitude/latitude in degrees: gdf.set_crs(4326). Anything else: "
            "gdf.set_crs(<its EPSG code>). Nothing was spent."
        )
    _check_crs(gdf.crs)
    return gdf


def _refuse_partitions(kind: type) -> None:
    """Say what dask's own frames lack, and what those of dask-geopandas are good for."""
    package = kind.__module__.partition(".")[0]
    if package == "dask":
        raise TypeError(
            f"this is a {kind.__name__} of dask, which has no geometry. Releases take a dask-geopandas GeoDataFrame: "
            'dask_geopandas.from_dask_dataframe(ddf, geometry=dask_geopandas.points_from_xy(ddf, "lon", "lat"))'
            ".set_crs(4326), after import geodp.dask."
        )
    if package == "dask_geopandas" or kind.__module__.startswith("geodp.dask"):
        raise TypeError(
            "this is a frame in dask partitions. Releases take a dask-geopandas GeoDataFrame after import geodp.dask; "
            "all else looks at rows in memory: ddf.get_partition(0).compute()."
        )


def _check_crs(crs: Any) -> None:
    """Raise where coordinates of this CRS are no places on Earth; from the CRS alone."""
    if is_lonlat(crs):
        return
    failed = not (crs.is_geographic or crs.is_projected)
    with suppress(Exception):
        _to_lonlat(crs)
        if not failed:
            return
    raise ValueError(
        f"the frame's CRS {crs.name!r} cannot be turned into longitude and latitude. Points need a geographic or "
        "projected CRS, such as gdf.to_crs(4326)."
    )


@lru_cache(maxsize=16)
def _to_lonlat(crs: Any) -> Any:
    from pyproj import Transformer

    return Transformer.from_crs(crs, 4326, always_xy=True)


def lonlat(gdf: gpd.GeoDataFrame) -> Placed:
    """Return wrapped longitudes, latitudes and which rows are usable points.

    Parameters
    ----------
    gdf : GeoDataFrame, n rows
        Any CRS; Z is ignored.

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        Degrees in EPSG:4326, longitudes in [-180, 180). Where ``usable`` is False the values mean nothing.
    usable : bool array, shape (n,)
    """
    read = reader(gdf)
    columns = zip(*each(read, slices(len(gdf)) or [slice(0, 0)]), strict=True)
    lon, lat, usable = map(np.concatenate, columns)
    return lon, lat, usable


def reader(gdf: gpd.GeoDataFrame) -> Callable[[slice], Placed]:
    """Return what reads some rows as :func:`lonlat` reads all of them."""
    geometry = np.asarray(gdf.geometry.array)
    crs = None if is_lonlat(gdf.crs) else gdf.crs
    return lambda part: _lonlat(geometry[part], crs)


def is_lonlat(crs: Any) -> bool:
    """Whether a CRS is EPSG:4326 in longitude, latitude order (OGC:CRS84 included)."""
    return bool(crs.equals(4326, ignore_axis_order=True))


def _lonlat(geometry: NDArray[np.object_], crs: Any) -> Placed:
    x, y = _coordinates(geometry)
    if crs is not None:
        x, y = _project(x, y, crs)
    usable = np.isfinite(x) & (np.abs(y) <= 90)
    if not usable.all():
        x, y = np.where(usable, x, 0.0), np.where(usable, y, 0.0)
    return wrap(x), y, usable


def _coordinates(geometry: NDArray[np.object_]) -> tuple[Floats, Floats]:
    """Return x and y; null, empty, POINT (NaN NaN) and whatever is not a Point all end as NaN."""
    try:
        return shapely.get_x(geometry), shapely.get_y(geometry)
    except shapely.GEOSException:
        # Some versions of GEOS have no coordinates for an empty point, not even NaN.
        points = geometry.copy()
        points[shapely.is_empty(geometry)] = None
        return shapely.get_x(points), shapely.get_y(points)


def _project(x: Floats, y: Floats, crs: Any) -> tuple[Floats, Floats]:
    lon, lat = _to_lonlat(crs).transform(x, y, errcheck=False)
    return np.asarray(lon, np.float64), np.asarray(lat, np.float64)
