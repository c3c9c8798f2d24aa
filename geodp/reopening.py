"""Releases that come back from files: the record, and the frame it belongs to.

A record travels inside the file, in the place that each format has for it. What is read is held against the record
before it is handed out, so a table that was edited on the way does not come back as a release.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import geopandas as gpd

from geodp.errors import NotARelease
from geodp.records import record
from geodp.schemas import SCHEMA, restored
from geodp.seals import seal
from geodp.testing import NOT_PRIVATE

__all__ = ["read_release", "recorded"]

_HEAD = 1 << 16
_LINE = 1 << 26
_CARRY = "GeoJSON, GeoPackage, FlatGeobuf, GeoParquet, HTML and PNG that geodp wrote"


def read_release(path: str | os.PathLike[str]) -> gpd.GeoDataFrame:
    """Read a release from a file that geodp wrote, with its record.

    Parameters
    ----------
    path : path
        GeoJSON of :func:`geodp.to_geojson`; GeoJSON, GeoPackage or FlatGeobuf of the command line; GeoParquet of
        either, or of ``frame.to_parquet``.

    Returns
    -------
    GeoDataFrame
        The release: index, columns and ``attrs["geodp"]`` as it was made; outlines as the file has them.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    NotARelease
        The file has no record, or its rows are not, or no longer, what its record describes.
    ValueError
        The extension names no format that holds a whole release.

    Examples
    --------
    >>> import geodp, tempfile
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"rider": ["a", "b"]}, geometry=places, crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.25")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = read_release(geodp.to_geojson(heat, Path(folder) / "heat.geojson"))
    >>> again["count"].equals(heat["count"]), geodp.record(again) == geodp.record(heat)
    (True, True)
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file.")
    suffix = source.suffix.lower()
    if suffix != ".parquet" and (suffix not in _RECORDS or suffix in (".html", ".png")):
        raise ValueError(f"{source.name}: a release comes back from .geojson, .gpkg, .fgb and .parquet.")
    with _readable(source):
        frame = gpd.read_parquet(source) if suffix == ".parquet" else _of_table(source, suffix)
    record(frame)
    return frame


def recorded(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record that a file other than GeoParquet carries, if it is whole."""
    source = Path(path)
    find = _RECORDS.get(source.suffix.lower())
    with _readable(source):
        facts = None if find is None else find(source)
    if not isinstance(facts, dict):
        raise NotARelease(
            f"{source} carries no geodp record. {_CARRY} have it; geodp show LEDGER LABEL finds it in a ledger."
        )
    if facts.get("seal") != seal(facts):
        raise NotARelease(f"{source}: its record was changed.")
    return facts


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """Turn what a driver or a parser raises into one sentence: what it says of a broken file holds pieces of it."""
    try:
        yield
    except (NotARelease, ImportError, MemoryError):
        raise
    except Exception:
        raise NotARelease(
            f"{source} cannot be read; it is damaged, or something else than its name says."
        ) from None


def _of_table(source: Path, suffix: str) -> gpd.GeoDataFrame:
    facts = recorded(source)
    schema = _SCHEMAS[suffix](source)
    table = gpd.read_file(source, engine="pyogrio")
    try:
        frame = (
            _older(table, facts, source) if schema is None else restored(table, schema).astype(_dtypes(facts))
        )
    except (KeyError, TypeError, ValueError):
        raise NotARelease("this file's columns are not those of its record.") from None
    if suffix == ".fgb" and not facts.get("by"):
        # FlatGeobuf's spatial index puts rows into an order of its own; ids were sorted.
        frame = frame.sort_index()
    if facts.get("query") == "perturb":
        frame = frame.reset_index(drop=True)
    frame.attrs["geodp"] = dict(facts)
    return frame


def _dtypes(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: dtype for dtype, names in (facts.get("columns") or {}).items() for name in names}


def _older(table: gpd.GeoDataFrame, facts: Mapping[str, Any], source: Path) -> gpd.GeoDataFrame:
    """Do the same for a file that does not say which columns are ids: those that the record does not name."""
    dtypes, outline = _dtypes(facts), table.geometry.name
    kept = [name for name in table.columns if name in dtypes or name == outline]
    names = _names(source, set(dtypes)) if source.suffix.lower() in (".geojson", ".json") else None
    ids = [name for name in table.columns if name not in (*kept, NOT_PRIVATE)] if names is None else names
    return table.set_index(ids)[kept].astype(dtypes)


def _names(path: Path, columns: set[str]) -> list[str] | None:
    """Return the names of the ids in a GeoJSON file: properties of the first feature that are no columns."""
    with path.open(encoding="utf-8") as file:
        _, found, rest = file.read(2 * _HEAD).partition('"features": [')
    if not found or not rest.strip().startswith("{"):
        return None
    feature, _ = json.JSONDecoder().raw_decode(rest.strip())
    return [name for name in feature["properties"] if name not in columns]


def _schema_of_geojson(path: Path) -> Any:
    """Return what stands behind the record on the first line."""
    with path.open(encoding="utf-8") as file:
        _, found, rest = file.readline(_LINE).partition('"geodp": ')
    end = json.JSONDecoder().raw_decode(rest)[1] if found else 0
    _, found, rest = rest[end:].partition(f'"{SCHEMA}": ')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None


def _schema_of_layer(path: Path) -> Any:
    return json.loads(_texts_of_layer(path).get(SCHEMA, "null"))


_SCHEMAS: Mapping[str, Callable[[Path], Any]] = {
    ".geojson": _schema_of_geojson,
    ".json": _schema_of_geojson,
    ".gpkg": _schema_of_layer,
    ".fgb": _schema_of_layer,
}


def _of_geojson(path: Path) -> Any:
    """Return the record, which stands before the features, without reading all of them."""
    with path.open(encoding="utf-8") as file:
        head = file.read(_HEAD)
    _, found, rest = head.partition('"geodp": ')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None


def _of_html(path: Path) -> Any:
    """Return the record, which stands in an element of its own; anything else in a page is escaped."""
    _, found, rest = path.read_text(encoding="utf-8").partition('id="geodp-record">')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None


def _of_png(path: Path) -> Any:
    from PIL import Image

    with Image.open(path) as picture:
        return json.loads(picture.info.get("Description", "null"))


def _of_layer(path: Path) -> Any:
    return json.loads(_texts_of_layer(path).get("geodp", "null"))


def _texts_of_layer(path: Path) -> dict[str, str]:
    import pyogrio

    info = pyogrio.read_info(path)
    return {**(info.get("dataset_metadata") or {}), **(info.get("layer_metadata") or {})}


_RECORDS: Mapping[str, Callable[[Path], Any]] = {
    ".geojson": _of_geojson,
    ".json": _of_geojson,
    ".html": _of_html,
    ".png": _of_png,
    ".gpkg": _of_layer,
    ".fgb": _of_layer,
}
