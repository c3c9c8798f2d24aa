"""Files of points for the command line, read without a word about what their rows hold.

What a library says of a file it cannot read may quote it, so errors name the file and what was looked for,
never what was found. Only the columns that a release needs are read. Ids of a text file stay the text they
are: read as numbers, ``007`` and ``7`` would become one person, whose rows two people could move.

No row may decide how another is read, so the kind of a column is what the file declares, or what a call says.
Columns of whole numbers keep their gaps as gaps: as floats, ids from 2**53 up would be none any more. GeoJSON,
which declares nothing, is read feature by feature, CSV line by line, and a format whose types would be guessed from
rows is refused.
"""

import io
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import geopandas as gpd
import numpy as np
import pandas as pd

from geodp.errors import GeoDPError
from geodp.features import is_geojson, read_features
from geodp.fileparts import columns_of, dataset_of, is_moment, is_plain, points_of, sound_streams, table_of
from geodp.silence import quiet
from geodp.textlines import single_lines
from geodp.wording import brief

__all__ = ["BadInput", "guarded", "is_local", "is_parquet", "is_text", "read_points", "read_polygons"]

T = TypeVar("T")

_PARQUET = (".parquet", ".geoparquet", ".pq")
_DECLARED = frozenset(
    {"FlatGeobuf", "GPKG", "ESRI Shapefile", "OpenFileGDB", "SQLite", "PostgreSQL", "Arrow"}
)
_TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


class BadInput(GeoDPError):
    """A file is missing, cannot be read, or lacks what was asked of it."""


def read_points(
    path: str,
    columns: Mapping[str, str],
    *,
    lon: str | None = None,
    lat: str | None = None,
    crs: str | None = None,
    layer: str | None = None,
) -> gpd.GeoDataFrame:
    """Read points, and only the columns that are asked for.

    Parameters
    ----------
    path : str
        A file that pyogrio reads, GeoParquet (a file or a folder of them), or CSV, each line of which is a
        row. Anything that GDAL opens by name (``https://``, ``/vsizip/``) is passed on to it.
    columns : mapping of str to {"text", "number"}
        Columns to read; the kind counts for CSV and GeoJSON, where nothing else says it.
    lon, lat : str, optional
        Columns of longitudes and latitudes (or of x and y in ``crs``), in CSV and in Parquet without
        geometry.
    crs : str, optional
        The CRS of ``lon`` and ``lat``, EPSG:4326 if left out; or of a file that states none.
    layer : str, optional
        Which layer of a file with several.

    Raises
    ------
    BadInput
        There is no such file, layer or column, or it cannot be read.
    """
    if is_local(path) and not Path(path).exists():
        raise BadInput(f"{path}: there is no such file.")
    if lon is not None and lat is not None:
        kinds = {**columns, **{name: "number" for name in (lon, lat) if name not in columns}}
        table = _read_text(path, kinds) if is_text(path) else _read_table(path, kinds)
        points = gpd.points_from_xy(_numbers(table[lon]), _numbers(table[lat]))
        return gpd.GeoDataFrame(table[list(columns)], geometry=points, crs=crs or 4326)
    if is_text(path):
        raise BadInput(f"{path}: a CSV needs --lon and --lat, the columns that hold the coordinates.")
    if is_parquet(path):
        frame = _read_parquet(path, columns)
    elif is_geojson(path) and is_local(path):
        frame = guarded(path, lambda: read_features(path, columns))
    else:
        frame = _read_layer(path, columns, layer)
    return _in_crs(frame, path, crs)


def read_polygons(path: str, layer: str | None = None) -> gpd.GeoDataFrame:
    """Read public zones, all columns of them.

    Raises
    ------
    BadInput
        There is no such file, or it cannot be read.
    """
    if is_local(path) and not Path(path).exists():
        raise BadInput(f"{path}: there is no such file.")
    if is_parquet(path):
        return guarded(path, lambda: gpd.read_parquet(path))
    return guarded(path, lambda: gpd.read_file(path, engine="pyogrio", **_layer(layer)))


def is_local(path: str) -> bool:
    """Whether a path names something on this machine, and nothing that GDAL opens by a name of its own."""
    return "://" not in path and not path.startswith("/vsi")


def is_parquet(path: str) -> bool:
    """Whether a path is GeoParquet, by its name; a folder is if it holds such files."""
    place = Path(path)
    return place.name.lower().endswith(_PARQUET) or (
        place.is_dir() and any(file.suffix.lower() in _PARQUET for file in place.iterdir())
    )


def is_text(path: str) -> bool:
    """Whether a path is a CSV or TSV, by its name."""
    return _separator(path) is not None


def guarded(path: str, work: Callable[[], T]) -> T:
    """Do what reads a file; of a failure say which file it was, and nothing that a library said."""
    why = "it cannot be read: it is damaged, no such format is known here, or it may not be opened"
    try:
        with quiet(), _unlogged():
            return work()
    except (BadInput, KeyboardInterrupt):
        raise
    except ImportError as error:
        why = f"reading it needs {error.name or 'another package'}; pip install 'geodp[parquet]' has what is needed"
    except MemoryError:
        why = "there is not enough memory to read it"
    except Exception:
        pass
    # Outside every handler, so that nothing of the library's own words comes along as a context.
    raise BadInput(f"{path}: {why}.")


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep out what GDAL logs, which may quote rows."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _read_text(path: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return columns of a CSV; fields that hold no number of a number's column become NaN."""
    _require(path, kinds, list(guarded(path, lambda: _parsed(path, nrows=0)).columns), show=False)
    table = guarded(path, lambda: _parsed(path, usecols=list(kinds)))
    for name, kind in kinds.items():
        if kind == "number":
            table[name] = _numbers(table[name])
    return table


def _parsed(path: str, **more: Any) -> pd.DataFrame:
    """Return fields as text, and empty ones as NaN; the first line that is not empty names the columns."""
    separator = str(_separator(path))
    with single_lines(path, separator) as lines:
        table: pd.DataFrame = pd.read_csv(
            lines,
            sep=separator,
            dtype=object,
            index_col=False,
            # While it looks whether a line is blank pandas forgets blanks where its buffer ends: what the next row
            # is would depend on the lengths of those before. A blank line is a row of empty fields, nobody's.
            skip_blank_lines=False,
            keep_default_na=False,
            na_values=[""],
            on_bad_lines="skip",
            encoding="utf-8",
            encoding_errors="surrogateescape",
            **more,
        )
    return table


def _separator(path: str) -> str | None:
    return next((sep for end, sep in _TEXT.items() if Path(path).name.lower().endswith(end)), None)


def _numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    # Whether -0 keeps its sign depends on the other fields; + 0.0 takes it away.
    return pd.to_numeric(column, errors="coerce").astype(np.float64) + 0.0


def _read_table(path: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return columns of a file whose geometry, if it has one, is not asked for."""
    if not is_parquet(path):
        raise BadInput(f"{path}: --lon and --lat go with CSV and Parquet; this format holds its own points.")
    _check_parquet(path, kinds)
    return guarded(path, lambda: _columns(path, list(kinds)))


def _read_parquet(path: str, columns: Mapping[str, str]) -> gpd.GeoDataFrame:
    geometry = guarded(path, lambda: _geo(dataset_of(path).schema).get("primary_column"))
    if geometry is None:
        raise BadInput(f"{path}: this Parquet has no geometry. Name its coordinates with --lon and --lat.")
    _check_parquet(path, columns, geometry)
    head = guarded(path, lambda: _head(dataset_of(path).schema, geometry))

    def work() -> gpd.GeoDataFrame:
        if _encoding(dataset_of(path).schema, geometry) == "point":
            points = gpd.read_parquet(path, columns=[geometry]).geometry.array
            return gpd.GeoDataFrame(_columns(path, list(columns)), geometry=points, crs=head.crs)
        table = table_of(path, list({**columns, geometry: ""}))
        places = points_of(table.column(geometry))
        return gpd.GeoDataFrame(columns_of(table, list(columns)), geometry=places, crs=head.crs)

    if guarded(path, lambda: _encoding(dataset_of(path).schema, geometry)) not in ("WKB", "point"):
        raise BadInput(f"{path}: its geometries are declared to be no points.")
    return guarded(path, work)


def _encoding(schema: Any, geometry: str) -> str:
    return str(_geo(schema)["columns"][geometry]["encoding"])


def _head(schema: Any, geometry: str) -> gpd.GeoDataFrame:
    """Return what geopandas makes of a file of this schema without rows, for its CRS."""
    import pyarrow.parquet

    empty = io.BytesIO()
    pyarrow.parquet.write_table(schema.empty_table(), empty)
    return gpd.read_parquet(empty, columns=[geometry])


def _geo(schema: Any) -> dict[str, Any]:
    """Return what GeoParquet says of its geometry, from the head of a file."""
    import json

    found: dict[str, Any] = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
    return found


def _check_parquet(path: str, columns: Mapping[str, str], geometry: str | None = None) -> None:
    """Raise where a column is missing, or where one of several files is of another kind: its rows would be lost."""

    def facts(schema: Any) -> list[Any]:
        types = [str(schema.field(name).type) if name in schema.names else "" for name in columns]
        place = _geo(schema).get("columns", {}).get(geometry, {}) if geometry is not None else {}
        # A CRS that is left out is another than one that is null.
        return [[kind.removeprefix("large_") for kind in types], place.get("crs", ""), place.get("encoding")]

    def odd() -> str | None:
        files = list(dataset_of(path).get_fragments())
        kinds = [facts(file.physical_schema) for file in files]
        return next(
            (str(file.path) for file, kind in zip(files, kinds, strict=True) if kind != kinds[0]), None
        )

    _require(path, columns, guarded(path, lambda: list(dataset_of(path).schema.names)))
    types = guarded(path, lambda: {name: dataset_of(path).schema.field(name).type for name in columns})
    for name, kind in types.items():
        if not is_plain(kind) and not is_moment(kind):
            raise BadInput(
                f"{path}: column {brief(name)} is of type {kind}; texts, numbers, booleans and timestamps can be read."
            )
    found = guarded(path, odd)
    if found is not None:
        raise BadInput(
            f"{found}: its columns, their types or its CRS are not those of the other files in {path}."
        )


def _columns(path: str, names: list[str]) -> pd.DataFrame:
    return columns_of(table_of(path, names), names)


def _read_layer(path: str, columns: Mapping[str, str], layer: str | None) -> gpd.GeoDataFrame:
    import pyogrio

    facts = guarded(path, lambda: pyogrio.read_info(path, **_layer(layer)))
    if facts["driver"] not in _DECLARED:
        raise BadInput(
            f"{path}: {facts['driver']} does not declare types of columns; they would be guessed from all rows, and "
            "one row could change how another is read. Write GeoPackage, FlatGeobuf, GeoParquet, GeoJSON or CSV."
        )
    _require(path, columns, list(facts["fields"]))
    _refuse_moments(
        path,
        [
            name
            for name, kind in zip(facts["fields"], facts["dtypes"], strict=True)
            if name in columns and str(kind).startswith("datetime")
        ],
    )
    with sound_streams():
        about, table = guarded(path, lambda: pyogrio.read_arrow(path, columns=list(columns), **_layer(layer)))
    if about["geometry_type"] is None:
        raise BadInput(f"{path}: this file has no geometry.")
    # Besides moments these are clock times, lists and bytes.
    _refuse_moments(path, [name for name in columns if not is_plain(table.schema.field(name).type)])

    def work() -> gpd.GeoDataFrame:
        places = points_of(table.column(table.num_columns - 1))
        return gpd.GeoDataFrame(columns_of(table, list(columns)), geometry=places, crs=about["crs"])

    return guarded(path, work)


def _refuse_moments(path: str, names: list[str]) -> None:
    """Raise where GDAL would look at all rows to say what a column is: its time zone, or that it is text."""
    for name in names:
        raise BadInput(
            f"{path}: column {brief(name)} holds dates, times, lists or bytes, whose type depends on the rows in this "
            "format. Write it as a column of text or of numbers, or write GeoParquet."
        )


def _layer(layer: str | None) -> dict[str, Any]:
    return {} if layer is None else {"layer": layer}


def _require(path: str, wanted: Mapping[str, str], found: list[str], *, show: bool = True) -> None:
    """Raise where a column is missing; the first line of a CSV is not shown, as it may be a row."""
    for name in wanted:
        if name not in found:
            having = ", ".join(brief(column) for column in found[:20])
            hint = f"; it has {having}" if show else " in its first line"
            raise BadInput(f"{path} has no column {brief(name)}{hint}.")


def _in_crs(frame: gpd.GeoDataFrame, path: str, crs: str | None) -> gpd.GeoDataFrame:
    if frame.crs is None and crs is None:
        raise BadInput(
            f"{path} has no CRS. Longitude and latitude in degrees: --crs 4326. Anything else: its EPSG code."
        )
    if frame.crs is None:
        return frame.set_crs(crs)
    if crs is not None and not frame.crs.equals(crs, ignore_axis_order=True):
        raise BadInput(f"{path} states another CRS than --crs {crs}. Leave --crs out, or correct the file.")
    return frame
