"""Which cells a public region covers, and how much of them.

Regions are taken as people give them: in any CRS, across the 180th meridian either way. Shares are whole
256ths of a cell, so that a weighted sum of integers stays on a lattice.
"""

from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import Box

__all__ = ["PARTS", "by_area", "by_centre", "region_shape"]

PARTS = 256

Ints = NDArray[np.int64]
Shapes = NDArray[np.object_]


def region_shape(region: Any) -> shapely.Geometry | None:
    """Return the region as one geometry in degrees, inside [-180, 180]; None if it is ids or a mask."""
    if isinstance(region, Box):
        return _box(region)
    if isinstance(region, tuple) and len(region) == 4 and all(map(_is_number, region)):
        # A region is public, so that numbers out of numpy are as good as typed ones.
        return _box(Box.parse([v.item() if isinstance(v, np.generic) else v for v in region]))
    if isinstance(region, shapely.Geometry):
        return _plain([region])
    if isinstance(region, gpd.GeoDataFrame | gpd.GeoSeries):
        if region.crs is None:
            raise ValueError("the region has no CRS. Longitude/latitude in degrees: region.set_crs(4326).")
        shapes = region.geometry.to_crs(4326)
        return _plain([shape for shape in shapes if shape is not None and not shape.is_empty])
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _box(box: Box) -> shapely.Geometry:
    west, east = shapely.box(box.west, box.south, min(box.east, 180), box.north), None
    if box.east > 180:
        east = shapely.box(-180, box.south, box.east - 360, box.north)
    return west if east is None else shapely.union(west, east)


def _plain(shapes: list[shapely.Geometry]) -> shapely.Geometry:
    """Return the union of polygons, cut at the 180th meridian."""
    from geodp.grids.rings import cut_at_180, is_plain

    if not shapes:
        raise ValueError("the region is empty.")
    if any(not isinstance(shape, shapely.Polygon | shapely.MultiPolygon) for shape in shapes):
        raise TypeError("a region is made of polygons; lines and points have no area.")
    flat = np.asarray(shapely.force_2d(shapes), dtype=object)
    bounds = shapely.total_bounds(flat)
    if not (np.abs(bounds[[0, 2]]) <= 540).all() or not (np.abs(bounds[[1, 3]]) <= 90).all():
        raise ValueError(
            "the region does not lie in degrees of longitude and latitude. A GeoSeries says its CRS: "
            "gpd.GeoSeries([region], crs=<its EPSG code>)."
        )
    plain = is_plain(flat)
    try:
        cut = [shape if ok else cut_at_180(shape) for shape, ok in zip(flat, plain, strict=True)]
    except ValueError as problem:
        raise ValueError(f"the region {problem}") from None
    union: shapely.Geometry = shapely.union_all(cut)
    return union


def by_centre(outlines: Shapes, region: shapely.Geometry) -> Ints:
    """Return 256 for cells whose centre lies in the region or on its border, 0 for others."""
    shapely.prepare(region)
    lon, lat = _centres(outlines)
    return PARTS * shapely.intersects_xy(region, lon, lat).astype(np.int64)


def _centres(outlines: Shapes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centre of each cell; pieces on both sides of the 180th meridian are put together."""
    shapes = outlines.copy()
    west, _, east, _ = shapely.bounds(shapes).T
    torn = np.flatnonzero(east - west > 180)
    shapes[torn] = shapely.transform(shapes[torn], _eastward)
    centre = shapely.get_coordinates(shapely.centroid(shapes))
    return (centre[:, 0] + 180) % 360 - 180, centre[:, 1]


def _eastward(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.where(xy[:, 0] < 0, xy[:, 0] + 360, xy[:, 0]), xy[:, 1]])


def by_area(outlines: Shapes, region: shapely.Geometry) -> Ints:
    """Return the covered share of each cell in 256ths, rounded to the nearest."""
    shapely.prepare(region)
    share = PARTS * shapely.covers(region, outlines).astype(np.int64)
    border = np.flatnonzero(shapely.intersects(region, outlines) & (share == 0))
    inside = _areas(shapely.intersection(outlines[border], region))
    share[border] = np.rint(PARTS * inside / _areas(outlines[border]))
    return share


def _areas(shapes: Shapes) -> NDArray[np.float64]:
    """Return areas on the sphere, up to a factor: in longitude and the sine of latitude."""

    def equal_area(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([xy[:, 0], np.degrees(np.sin(np.radians(xy[:, 1])))])

    areas: NDArray[np.float64] = shapely.area(shapely.transform(shapes, equal_area))
    return areas
