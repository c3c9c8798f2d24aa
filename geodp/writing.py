"""Files of a release, by extension: each appears when it is complete, and a failure leaves the old one.

The record goes along where the format has a place for it: in GeoJSON, GeoParquet, GeoPackage, FlatGeobuf, HTML
and PNG. CSV has none; the ledger keeps it.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd

from geodp.exporting import to_geojson
from geodp.records import record
from geodp.schemas import SCHEMA, id_columns, schema_of
from geodp.testing import NOT_PRIVATE, OS_ENTROPY

__all__ = ["FORMATS", "check_output", "check_place", "replaced", "write"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the beginning of one
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def write(frame: gpd.GeoDataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a release in the format of the extension, whole or not at all; see :data:`FORMATS`.

    Parameters
    ----------
    frame : GeoDataFrame
        A release.
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
    ValueError
        No such format, or a place where no file can be written.

    Examples
    --------
    >>> import geodp
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"rider": ["a", "b"]}, geometry=places, crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.read_csv(write(heat, Path(folder) / "heat.csv")).shape
    (4, 7)
    """
    target = check_output(path)
    facts = record(frame)
    with replaced(target) as part:
        FORMATS[target.suffix.lower()](frame, part, facts)
    return target


def check_output(path: str | os.PathLike[str]) -> Path:
    """Return the file to write, links followed; raise before anything is spent where it cannot be written.

    Raises
    ------
    ValueError
        The extension names no format, a package is missing, the folder is not there or not writable, or
        something that is no plain file has that name.
    """
    target = Path(os.path.realpath(path))
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{target.name}: the extension names no format. Formats: {', '.join(FORMATS)}.")
    for ending, package, extra in ((".parquet", "pyarrow", "parquet"), (".png", "matplotlib", "plot")):
        if suffix == ending and find_spec(package) is None:
            raise ValueError(f"{target.name}: writing it needs {package}: pip install 'geodp[{extra}]'.")
    return check_place(target)


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the file to write, links followed, whatever its extension.

    Raises
    ------
    ValueError
        The folder is not there or not writable, or something that is no plain file has that name.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise ValueError(f"{target.parent}: there is no such folder to write {target.name} into.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: this is no plain file; it is not replaced.")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{target.parent}: {target.name} cannot be written into this folder.")
    return target


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Give a place to write to that becomes ``target`` at the end, or disappears if something fails.

    The place is a folder of its own next to the target, since drivers leave files of their own beside theirs,
    and name layers after them.
    """
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        part = Path(folder) / target.name
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)


def _geopackage(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    table = _table(frame, facts)
    for name in table.columns.drop(table.geometry.name):
        if isinstance(table[name].dtype, pd.DatetimeTZDtype):
            table[name] = table[name].dt.tz_convert("UTC")  # the only zone that the format's rules allow
    table.to_file(path, driver="GPKG", engine="pyogrio", layer=path.stem, layer_metadata=_texts(frame, facts))


def _flatgeobuf(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    # The spatial index reorders rows, and takes none without a place, such as a report that was not published.
    # Cells can be sorted again; the order of typed slots would be lost.
    indexed = "YES" if frame.index.nlevels == 1 and not frame.geometry.isna().any() else "NO"
    _table(frame, facts).to_file(
        path,
        driver="FlatGeobuf",
        engine="pyogrio",
        layer=path.stem,
        layer_metadata=_texts(frame, facts),
        SPATIAL_INDEX=indexed,
    )


def _geoparquet(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    frame.to_parquet(path)


def _csv(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    table = _table(frame, facts)
    plain = pd.DataFrame(table.drop(columns=table.geometry.name)).rename(columns=_inert)
    for name, kind in plain.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind):
            plain[name] = plain[name].map(_inert)
    plain.to_csv(path, index=False, lineterminator="\n")


def _inert(value: Any) -> Any:
    """Put an apostrophe before a key, level or name that a spreadsheet would take for a formula and run."""
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def _html(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    from geodp.maps.webpage import to_html

    to_html(frame, path)


def _png(frame: gpd.GeoDataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    from geodp.maps.plotting import figure_of

    figure_of(frame).savefig(path, dpi=150, metadata={"Description": _json(facts)})


# What can be written, by extension.
FORMATS: Mapping[str, Callable[[gpd.GeoDataFrame, Path, Mapping[str, Any]], object]] = {
    ".geojson": lambda frame, path, facts: to_geojson(frame, path),
    ".json": lambda frame, path, facts: to_geojson(frame, path),
    ".gpkg": _geopackage,
    ".fgb": _flatgeobuf,
    ".parquet": _geoparquet,
    ".csv": _csv,
    ".html": _html,
    ".png": _png,
}


def _table(frame: gpd.GeoDataFrame, facts: Mapping[str, Any]) -> gpd.GeoDataFrame:
    """Return the ids as columns, of kinds that every format holds; test releases say that they are."""
    names = id_columns(frame)
    table = frame.reset_index(names=names)
    for name in names:
        if isinstance(table[name].dtype, pd.CategoricalDtype):
            table[name] = table[name].astype(table[name].cat.categories.dtype)
        if table[name].dtype.kind == "m":
            table[name] = table[name].astype(str)
    if facts["noise"] != OS_ENTROPY:
        table.insert(0, NOT_PRIVATE, facts["noise"])
    return table


def _texts(frame: gpd.GeoDataFrame, facts: Mapping[str, Any]) -> dict[str, str]:
    return {"geodp": _json(facts), SCHEMA: _json(schema_of(frame))}


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, allow_nan=False)
