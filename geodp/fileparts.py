"""Points and columns of what Arrow holds of a file, where no value in a row can raise or change another row.

Libraries decode a column of geometries at once and stop at the first that is malformed: a line of one point, a ring
that is not closed, a curve. Here only what says it is a point is decoded, and what cannot be decoded has no place.
Deeper geometries are never followed, so nesting cannot exhaust the stack either. A text that is not UTF-8 is a gap.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import shapely

__all__ = [
    "columns_of",
    "dataset_of",
    "is_moment",
    "is_plain",
    "points_of",
    "sound_streams",
    "table_of",
]

_OTHER = shapely.LineString()  # stands for whatever is no point; it is left out as one
_POINT, _KINDS = 1, 17  # numbers of OGC 06-103r4, table 7; thousands and the highest bits say Z, M and SRID
_FLAGS = 0x0FFF_FFFF


def dataset_of(path: str) -> Any:
    """Return a Parquet file or a folder of them, of which only the heads are read."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path, format="parquet")


def table_of(path: str, names: list[str]) -> Any:
    """Return columns of Parquet as Arrow holds them."""
    import pyarrow.dataset

    # Told so, pyarrow keeps its own kind of index. For that of the schema it would convert all texts, and stop at one
    # that is not UTF-8.
    schema = dataset_of(path).schema
    indexed = [name for name in names if pyarrow.types.is_dictionary(schema.field(name).type)]
    kind = pyarrow.dataset.ParquetFileFormat(dictionary_columns=indexed)
    return pyarrow.dataset.dataset(path, format=kind).to_table(columns=names)


@contextmanager
def sound_streams() -> Iterator[None]:
    """Let GDAL hand over FlatGeobuf as it does other formats.

    Its own way there (seen in 3.9 and 3.12) counts the bytes of geometries from 0 again after a row without one, so
    that the rows behind it get other places, or the process ends.
    """
    import pyogrio

    name = "OGR_FLATGEOBUF_STREAM_BASE_IMPL"
    before = pyogrio.get_gdal_config_option(name)
    pyogrio.set_gdal_config_options({name: "YES"})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({name: before})


def points_of(column: Any) -> "np.ndarray[Any, Any]":
    """Return geometries of a column of WKB: points, None for what is missing or malformed, empty lines for others."""
    import pyarrow
    import pyarrow.compute

    if isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    column = column.cast(pyarrow.large_binary())
    heads = pyarrow.compute.binary_slice(column, 0, 5).to_numpy(zero_copy_only=False)
    codes, found = pd.factorize(heads)
    kinds = np.array([*map(_kind, found), 0])[codes]
    encoded = column.to_numpy(zero_copy_only=False).copy()
    encoded[kinds != _POINT] = None
    places = np.array(shapely.from_wkb(encoded, on_invalid="ignore"), dtype=object).reshape(len(encoded))
    places[kinds > _POINT] = _OTHER
    return places


def _kind(head: bytes) -> int:
    """Return which kind of geometry a WKB begins; 0 for none."""
    if len(head) < 5 or head[0] not in (0, 1):
        return 0
    kind = (struct.unpack("<I" if head[0] else ">I", head[1:])[0] & _FLAGS) % 1000
    return kind if kind <= _KINDS else 0


def columns_of(table: Any, names: list[str]) -> pd.DataFrame:
    """Return columns in the dtypes of a schema, whichever values are missing or no text."""
    import pyarrow

    columns = [_plain(table.column(table.schema.names.index(name))) for name in names]
    if not columns:
        return pd.DataFrame(index=range(table.num_rows))
    chosen = pyarrow.table(columns, names=names)
    frame: pd.DataFrame = chosen.to_pandas(types_mapper=_nullable().get, ignore_metadata=True)
    return frame


def is_plain(kind: Any) -> bool:
    """Whether an Arrow type holds texts, numbers or truths, or indexes some."""
    import pyarrow.types as types

    held = kind.value_type if types.is_dictionary(kind) else kind
    return str(held) in ("string", "large_string", "string_view", "null", "bool") or (
        types.is_integer(held) or types.is_floating(held)
    )


def is_moment(kind: Any) -> bool:
    """Whether an Arrow type holds moments or durations, which a schema gives one unit and one zone."""
    import pyarrow.types as types

    return bool(types.is_timestamp(kind) or types.is_duration(kind))


def _plain(column: Any) -> Any:
    """Return a column without an index, whose duplicates would raise, and without texts that are none."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type) == "string_view":
        column = column.cast(pyarrow.large_string())
    return _decodable(column) if "string" in str(column.type) else column


def _decodable(column: Any) -> Any:
    import pyarrow
    import pyarrow.compute

    try:
        column.validate(full=True)
        return column
    except pyarrow.ArrowInvalid:
        pass
    whole = column.cast(pyarrow.large_binary()).to_pylist()
    return pyarrow.compute.if_else(pyarrow.array(map(_is_text, whole)), column, None)


def _is_text(value: bytes | None) -> bool:
    try:
        return value is not None and value.decode() is not None
    except UnicodeDecodeError:
        return False


def _nullable() -> dict[Any, Any]:
    """Return the dtypes that keep whole numbers and booleans as they are where some are missing."""
    import pyarrow

    return {
        pyarrow.bool_(): pd.BooleanDtype(),
        pyarrow.int8(): pd.Int8Dtype(),
        pyarrow.int16(): pd.Int16Dtype(),
        pyarrow.int32(): pd.Int32Dtype(),
        pyarrow.int64(): pd.Int64Dtype(),
        pyarrow.uint8(): pd.UInt8Dtype(),
        pyarrow.uint16(): pd.UInt16Dtype(),
        pyarrow.uint32(): pd.UInt32Dtype(),
        pyarrow.uint64(): pd.UInt64Dtype(),
    }
