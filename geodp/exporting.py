"""GeoJSON with the record inside: RFC 7946, strict JSON, written whole or not at all."""

import json
import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geodp.records import record
from geodp.schemas import SCHEMA, id_columns, schema_of
from geodp.testing import NOT_PRIVATE, OS_ENTROPY

__all__ = ["to_geojson"]

_CHUNK = 50_000
_DIGITS = 7  # of a degree: 1 cm


def to_geojson(frame: gpd.GeoDataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a release as RFC 7946 GeoJSON, with its record as the foreign member ``"geodp"``.

    Another one, ``"geodp_frame"``, says for :func:`geodp.read_release` which properties are ids, and of what kind.

    Longitude and latitude with 7 decimals, exteriors counter-clockwise, no ``crs`` member, no NaN. The ids
    of the index are the features' ids and stand among the properties under the index's name as well; rows
    of several slots have the id ``cell/slot``. The file appears when it is complete: a reader never sees
    half of it, and a failure leaves the old one.

    Parameters
    ----------
    frame : GeoDataFrame
        A release with outlines.
    path : path
        Where to write; an existing file is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NotARelease
        The frame is not, or no longer, the release that its record describes.
    TypeError
        The frame has no geometry.

    Examples
    --------
    >>> import geodp, tempfile
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"rider": ["a", "b"]}, geometry=places, crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.25")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = json.loads(to_geojson(heat, Path(folder) / "heat.geojson").read_text())
    >>> list(written), len(written["features"]), written["geodp"]["guarantee"]
    (['type', 'geodp', 'geodp_frame', 'features'], 16, '(1, 0)-DP for one rider more or less')
    """
    facts = record(frame)
    if not isinstance(frame, gpd.GeoDataFrame):
        raise TypeError(
            "this frame has no outlines: release it with return_geometry=True, or join it to its zones."
        )
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        # Half a surrogate pair, which a column's name may hold, becomes JSON's own escape for it.
        with part.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            _write(file, frame, facts)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _write(file: TextIO, frame: gpd.GeoDataFrame, facts: dict[str, Any]) -> None:
    members: dict[str, Any] = {"type": "FeatureCollection"}
    if facts["noise"] != OS_ENTROPY:
        members[NOT_PRIVATE] = f"noise: {facts['noise']}. A test release; it protects nobody."
    members["geodp"] = facts
    members[SCHEMA] = schema_of(frame)
    file.write(_json(members)[:-1] + ', "features": [')
    between = "\n"
    for start in range(0, len(frame), _CHUNK):
        for feature in _features(frame.iloc[start : start + _CHUNK]):
            file.write(between + feature)
            between = ",\n"
    file.write("\n]}\n")


def _features(rows: gpd.GeoDataFrame) -> Iterator[str]:
    geometry = _geometry(rows)
    ids = [_plain(value) for value in rows.index.tolist()]
    names = id_columns(rows)
    levels = [rows.index.get_level_values(i).tolist() for i in range(rows.index.nlevels)]
    data = rows.drop(columns=rows.geometry.name)
    columns = {
        **dict(zip(names, levels, strict=True)),
        **{str(name): column.tolist() for name, column in data.items()},
    }
    for position, (identity, outline) in enumerate(zip(ids, geometry, strict=True)):
        properties = {name: _plain(values[position]) for name, values in columns.items()}
        yield (
            f'{{"type": "Feature", "id": {_json(identity)}, "properties": {_json(properties)}, '
            f'"geometry": {outline or "null"}}}'
        )


def _geometry(rows: gpd.GeoDataFrame) -> list[str | None]:
    """Return GeoJSON texts in degrees; exteriors counter-clockwise, holes clockwise."""
    shapes = rows.geometry if rows.crs is None else rows.geometry.to_crs(4326)
    outlines: NDArray[np.object_] = np.asarray(shapes.array, dtype=object)
    # GEOS's normal form has clockwise exteriors and counter-clockwise holes: all rings the other way.
    turned = shapely.reverse(shapely.normalize(shapely.force_2d(outlines)))
    texts: list[str | None] = shapely.to_geojson(shapely.transform(turned, _rounded)).tolist()
    return texts


def _rounded(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(xy, _DIGITS)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value that strict JSON can hold; ids of several levels joined by slashes."""
    if isinstance(value, tuple):
        return "/".join(str(_plain(part)) for part in value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        # Readers keep numbers as doubles.
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return str(value)
