"""What a map draws: the geometry of the rows in degrees, or a word on where to get it."""

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.maps.held import Held
from geodp.maps.sheets import box_outline

__all__ = ["are_points", "in_view", "outlines"]

Shapes = NDArray[np.object_]


def outlines(rows: Held) -> Shapes:
    """Return the geometries of the rows, in degrees.

    Raises
    ------
    TypeError
        The frame has none.
    """
    frame, facts = rows.frame, rows.facts
    if not isinstance(frame, gpd.GeoDataFrame) or frame.active_geometry_name is None:
        how = (
            "join it to its zones, gpd.GeoDataFrame(heat, geometry=zones.set_index(key).geometry)"
            if str(facts.get("grid", "")).startswith("zones") and not facts.get("by")
            else "release it with return_geometry=True, which is the default and costs nothing"
        )
        raise TypeError(f"this frame has no outlines to draw: {how}.")
    shapes = frame.geometry if frame.crs is None else frame.geometry.to_crs(4326)
    found: Shapes = np.asarray(shapes.array, dtype=object)
    return found


def are_points(shapes: Shapes) -> bool:
    """Tell whether all geometries are points."""
    kinds = np.unique(shapely.get_type_id(shapes[~shapely.is_missing(shapes)]))
    return bool(kinds.tolist() == [shapely.GeometryType.POINT])


def in_view(rows: Held, shapes: Shapes) -> Shapes:
    """Return what has to be in view: the cells; of places, or where no cell is, the box that was asked for as well."""
    if len(shapes) and not are_points(shapes):
        return shapes
    found: Shapes = np.concatenate([shapes, box_outline(rows.facts)])
    return found
