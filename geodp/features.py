"""Points from GeoJSON, every value in the type that its own feature gives it.

GeoJSON declares no columns. A reader that makes some has to look at all features first: one id that is a text
would turn everybody's numbers into texts, ``1`` and ``"1"`` into one person, and one gap integers into floats
that cannot tell large ids apart. Here nothing about a feature depends on another one, and nothing in it raises.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

__all__ = ["is_geojson", "read_features"]

_WHOLE = (".geojson", ".json")
_LINES = (".geojsonl", ".geojsons", ".ndjson")
_DIGITS = 4000  # Python refuses to read longer whole numbers


def is_geojson(path: str) -> bool:
    """Whether a path is GeoJSON, as one document or line by line, by its name."""
    return Path(path).name.lower().endswith((*_WHOLE, *_LINES))


def read_features(path: str, kinds: Mapping[str, str]) -> gpd.GeoDataFrame:
    """Read the points of a file; what is no Point has no place.

    Parameters
    ----------
    path : str
        A FeatureCollection, one Feature, or a Feature on each line.
    kinds : mapping of str to {"text", "number"}
        Properties to read. Numbers become float64, whatever else stands there NaN; the rest stays as it is.

    Returns
    -------
    GeoDataFrame
        In EPSG:4326, or what the older member ``crs`` names. A property that no feature has is a column of None.

    Raises
    ------
    ValueError
        It is no such file.
    """
    features, crs = _parsed(path)
    properties = [_part(feature, "properties") for feature in features]
    columns = {name: _column([found.get(name) for found in properties], kind) for name, kind in kinds.items()}
    places = [_place(_part(feature, "geometry")) for feature in features]
    x, y = (_floats([place[axis] for place in places]) for axis in (0, 1))
    return gpd.GeoDataFrame(
        pd.DataFrame(columns, index=range(len(features))), geometry=gpd.points_from_xy(x, y), crs=crs
    )


def _parsed(path: str) -> tuple[list[Any], str]:
    text = Path(path).read_text(encoding="utf-8-sig")
    if Path(path).name.lower().endswith(_LINES):
        # No splitlines: what Unicode calls the end of a line may stand in a text of JSON.
        return [_line(line) for line in text.split("\n") if line.strip("\x1e \t")], "EPSG:4326"
    document = json.loads(text, parse_int=_whole)
    if document["type"] == "Feature":
        return [document], "EPSG:4326"
    if document["type"] != "FeatureCollection":
        raise ValueError("neither a FeatureCollection nor a Feature")
    return list(document["features"]), _crs(document)


def _line(text: str) -> Any:
    """Return what one line holds; a broken one is a feature without anything."""
    try:
        return json.loads(text.strip("\x1e \t"), parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _crs(document: Mapping[str, Any]) -> str:
    name = _part(_part(document, "crs"), "properties").get("name", "CRS84")
    return "EPSG:4326" if str(name).endswith("CRS84") else str(name)


def _part(whole: Any, name: str) -> dict[str, Any]:
    part = whole.get(name) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def _place(geometry: dict[str, Any]) -> tuple[Any, Any]:
    found = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(found, list) or len(found) < 2:
        return None, None
    return found[0], found[1]


def _column(values: list[Any], kind: str) -> "pd.Series[Any]":
    return _floats(values) if kind == "number" else pd.Series(values, dtype=object)


def _floats(values: list[Any]) -> "pd.Series[Any]":
    return pd.Series(np.fromiter(map(_float, values), dtype=np.float64, count=len(values)))


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS else float("nan")
