"""Points from GeoJSON, every value in the type that its own feature gives it.

GeoJSON declares no columns. A reader that makes some has to look at all features first: one id that is a text
would turn everybody's numbers into texts, ``1`` and ``"1"`` into one person, and one gap integers into floats
that cannot tell large ids apart. Here nothing about a feature depends on another one, and nothing in it raises.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from geodp.brackets import PIECE, apart

__all__ = ["is_geojson", "read_features"]

_WHOLE = (".geojson", ".json")
_LINES = (".geojsonl", ".geojsons", ".ndjson")
_DIGITS = 4000  # Python refuses to read longer whole numbers
_RAW = re.compile("[\udc80-\udcff]")  # what a byte that is not UTF-8 is read as
_ESCAPED = re.compile(r"\\u[dD][cC][89a-fA-F]")  # what may stand for the same in JSON


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
    text, clean = _text(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    if Path(path).name.lower().endswith(_LINES):
        # No splitlines: what Unicode calls the end of a line may stand in a text of JSON.
        lines = [line.strip("\x1e \t") for line in text.split("\n") if line.strip("\x1e \t")]
        return list(map(_plain if clean and not _ESCAPED.search(text) else _line, lines)), "EPSG:4326"
    document, pieces = None, None
    if clean:
        with suppress(RecursionError):
            document = json.loads(text, parse_int=_whole)
    if document is None:
        rest, pieces = apart(text)
        document = json.loads(rest, parse_int=_whole)
    if document["type"] == "Feature":
        return [document], "EPSG:4326"
    if document["type"] != "FeatureCollection":
        raise ValueError("neither a FeatureCollection nor a Feature")
    features = list(document["features"])
    if pieces is None:
        return list(map(_unmixed, features) if _ESCAPED.search(text) else features), _crs(document)
    # No deeper in the stack than above, where two brackets are around it: what is read of a feature must not depend
    # on which way was taken.
    return [_line(pieces[each[PIECE]]) if isinstance(each, dict) else None for each in features], _crs(
        document
    )


def _text(encoded: bytes) -> tuple[str, bool]:
    """Return a text, bytes that are not UTF-8 as the CSV reader has them, and whether there are none."""
    try:
        return encoded.decode(), True
    except UnicodeDecodeError:
        return encoded.decode(errors="surrogateescape"), False


def _plain(text: str) -> Any:
    """Return what one line of UTF-8 holds; a broken one is a feature without anything."""
    try:
        return json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _line(text: str) -> Any:
    """Return what one line of any bytes and escapes holds, parsed no deeper in the stack than a plain one."""
    raw = not text.isascii() and _RAW.search(text) is not None
    escaped = _ESCAPED.search(text) is not None
    try:
        found = None if raw and escaped else json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    return _unmixed(found) if escaped else found


def _unmixed(feature: Any) -> Any:
    """Take away texts whose escapes stand for what other bytes are read as: two ids would become one."""
    properties = _part(feature, "properties")
    for name, value in properties.items():
        if isinstance(value, str) and _RAW.search(value):
            properties[name] = None
    return feature


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
