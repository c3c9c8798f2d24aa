"""What a web page holds of a map: outlines, words, and for each row only the number of its words.

Rows of equal numbers share a line of words, a class and marks, so each of them costs the page one small number.
Nothing goes in but released numbers, ids, and words made of them and of the record.
"""

import math
from collections.abc import Mapping
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.maps import words
from geodp.maps.coasts import coastline
from geodp.maps.held import Held
from geodp.maps.packing import Section, Shapes, differences, extent, packed, shapes_of
from geodp.maps.pictures import Picture
from geodp.wording import shown

__all__ = ["page_data"]

Ints = NDArray[np.int64]

_UNTOLD = 255
_MERCATOR_ENDS = 85.0  # degrees of latitude
_WORLD = (-180.0, -60.0, 180.0, 75.0)


def page_data(picture: Picture, *, coastlines: bool, mercator: bool = False) -> bytes:
    """Return the block of a page, as ``unpack.js`` reads it.

    Parameters
    ----------
    picture : Picture
        What the map shows; its frame has outlines.
    coastlines : bool
        Whether to put coastlines in.
    mercator : bool, default False
        Whether a base map dictates the projection.

    Raises
    ------
    ValueError
        A base map, and cells beyond its end near a pole.
    """
    frame = picture.rows.frame
    assert isinstance(frame, gpd.GeoDataFrame)
    shape_of_row, first = _places(frame, picture.rows.facts)
    outlines = frame.geometry if frame.crs is None else frame.geometry.to_crs(4326)
    shapes = shapes_of(np.asarray(outlines.array, dtype=object)[first])
    view = _view(shapes, picture.rows.facts)
    polar = max(-view[1], view[3]) > _MERCATOR_ENDS
    if polar and mercator:
        raise ValueError(
            "tiles end at 85 degrees of latitude, and cells lie beyond: leave tiles out, and the map shows the poles."
        )
    slot_of_row, slots = _slots(frame, picture.rows.facts)
    kind_of_row, kinds = _kinds(picture)
    facts = {
        "names": words.row_names(frame.index.get_level_values(0)[first]),
        "points": bool(shapes.corners.max(initial=0) == 1),
        "digits": shapes.digits,
        "slots": slots,
        "words": kinds.pop("words"),
        "projection": "plate" if polar else "mercator",
        "view": view,
    }
    order = np.lexsort((shape_of_row, slot_of_row))
    n_slots = math.prod(len(slot["labels"]) for slot in slots)
    sections: dict[str, Section] = {
        **shapes.sections(),
        "slotSizes": np.bincount(slot_of_row, minlength=n_slots).astype(np.int32),
        "shapeOfRow": differences(shape_of_row[order]),
        "kindOfRow": kind_of_row[order].astype(np.int32),
        **kinds,
    }
    coast = coastline(view) if coastlines else None
    return packed(facts | _coast_facts(coast), sections | _coast_sections(coast))


def _places(frame: gpd.GeoDataFrame, facts: Mapping[str, Any]) -> tuple[Ints, Ints]:
    """Return the shape of each row, and the first row of each shape: a cell's slots share its outline."""
    if facts["query"] in ("centroid", "perturb"):
        every = np.arange(len(frame), dtype=np.int64)
        return every, every
    codes, _ = pd.factorize(frame.index.get_level_values(0))
    return codes.astype(np.int64), np.unique(codes, return_index=True)[1].astype(np.int64)


def _slots(frame: pd.DataFrame, facts: Mapping[str, Any]) -> tuple[Ints, list[dict[str, Any]]]:
    """Return the number of each row's slot, and the names and labels that the numbers stand for."""
    number = np.zeros(len(frame), dtype=np.int64)
    slots = []
    for level in range(1, frame.index.nlevels if len(frame) else 1):
        values = frame.index.get_level_values(level)
        codes, levels = _level(values, given=facts["cells"] == "all")
        number = number * len(levels) + codes
        slots.append({"name": shown(str(values.name)), "labels": [shown(str(label)) for label in levels]})
    return number, slots


def _level(values: pd.Index, given: bool) -> tuple[Ints, pd.Index]:
    """Return the codes of a slot's labels: as they were given, which is how rows come if all were released."""
    try:
        codes, levels = pd.factorize(values, sort=not given)
    except TypeError:
        codes, levels = pd.factorize(values)
    return codes.astype(np.int64), pd.Index(levels)


def _kinds(picture: Picture) -> tuple[Ints, dict[str, Any]]:
    """Return the kind of each row, and what is said and drawn of each kind."""
    rows, classes = picture.rows, picture.classes
    numbers = rows.frame.select_dtypes(["number", "bool"]).drop(columns="estimate", errors="ignore")
    said = numbers.reset_index(drop=True).assign(drawn=classes, told=picture.told)
    groups = said.groupby(list(said.columns), sort=False, dropna=False)
    kind = np.asarray(groups.ngroup(), dtype=np.int64)
    first = np.unique(kind, return_index=True)[1]
    part = Held(rows.frame.iloc[first], rows.facts, False)
    reach = {"reachOfKind": _metres(part.frame["error_m"])} if "error_m" in part.frame else {}
    return kind, reach | {
        "words": words.tooltips(part, picture.told[first]),
        "classOfKind": np.where(classes < 0, _UNTOLD, classes)[first].astype(np.uint8),
        "edgeOfKind": picture.edge[first].astype(np.uint8),
    }


def _metres(reach: "pd.Series[float]") -> NDArray[np.int32]:
    """Return distances in whole metres, none shorter than it is, and none longer than half the globe."""
    return np.ceil(np.minimum(reach.to_numpy(dtype=np.float64), 2e7)).astype(np.int32)


def _view(shapes: Shapes, facts: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return what to show first: the cells; the box that was asked for of mean places, or where no cell is."""
    box = facts.get("bounds")
    if box is None or (facts["query"] != "centroid" and len(shapes.lon)):
        return extent(shapes) or _WORLD
    west, south, east, north = map(float, box)
    return west, south, east + 360 if east < west else east, north


def _coast_facts(coast: Shapes | None) -> dict[str, Any]:
    return {"coastDigits": coast.digits} if coast else {}


def _coast_sections(coast: Shapes | None) -> dict[str, Section]:
    if coast is None:
        return {}
    return {f"coast{name.capitalize()}": numbers for name, numbers in coast.sections().items()}
