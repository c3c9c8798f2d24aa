"""What a file has to say of a frame beside its record, so that it comes back as it was: ids, their kinds, and order.

Without rows a file shows neither; and no format but Parquet tells ids from columns, or keeps each kind of slot.
All of it follows from the plan, or for columns that moved points keep from the dtypes of those.
"""

import re
from collections.abc import Mapping
from typing import Any

import geopandas as gpd
import pandas as pd

__all__ = ["SCHEMA", "id_columns", "restored", "schema_of"]

SCHEMA = "geodp_frame"

# What is put back into these kinds; mixed slots, categories, and texts of pandas 2 stay what the file makes of them.
_KINDS = re.compile(r"(?i:u?int\d+|float\d+)|bool|boolean|str|string|(datetime|timedelta)64\[.+\]")


def schema_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return ids as ``[column in the file, dtype, name]``, and all columns as ``[name, dtype]``, in order.

    Examples
    --------
    >>> schema_of(pd.DataFrame({"count": [1]}, index=pd.Index([7], name="zone")))
    {'index': [['zone', 'int64', 'zone']], 'columns': [['count', 'int64']]}
    """
    levels = [frame.index.get_level_values(i) for i in range(frame.index.nlevels)]
    index = [
        [column, str(_plain(level.dtype)), level.name]
        for column, level in zip(id_columns(frame), levels, strict=True)
    ]
    return {"index": index, "columns": [[str(name), str(dtype)] for name, dtype in frame.dtypes.items()]}


def id_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that ids have in a file; ids without a name are called ``id``, or what is still free.

    Examples
    --------
    >>> id_columns(pd.DataFrame({"ID": ["a"]}))
    ['id_1']
    """
    taken = {str(name).casefold() for name in frame.columns}
    free = next(name for name in ("id", *(f"id_{i}" for i in range(1, len(taken) + 2))) if name not in taken)
    return [free if name is None else str(name) for name in frame.index.names]


def restored(table: gpd.GeoDataFrame, schema: Mapping[str, Any]) -> gpd.GeoDataFrame:
    """Put the ids of a file back into the index, and all columns into the kinds and the order that they had.

    Raises
    ------
    KeyError, TypeError, ValueError
        The file's columns are not those of the schema.
    """
    outline = table.geometry.name
    kinds = {str(column): str(dtype) for column, dtype, *_ in [*schema["index"], *schema["columns"]]}
    places = [outline if dtype == "geometry" else str(name) for name, dtype in schema["columns"]]
    if len(table) == 0:  # GeoJSON without features has no columns
        missing = [name for name, dtype in kinds.items() if dtype != "geometry" and name not in table]
        table = table.assign(**{name: pd.Series([], dtype=object) for name in missing})
    columns = {name: _in_kind(table[name], dtype) for name, dtype in kinds.items() if dtype != "geometry"}
    frame = table.assign(**columns).set_index([column for column, *_ in schema["index"]])[places]
    frame.index.names = [name for *_, name in schema["index"]]
    return frame


def _plain(dtype: Any) -> Any:
    return dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype


def _in_kind(values: "pd.Series[Any]", dtype: str) -> "pd.Series[Any]":
    if not _KINDS.fullmatch(dtype):
        return values
    if dtype.startswith("timedelta"):
        values = pd.to_timedelta(values)
    elif dtype.startswith("datetime"):
        values = pd.to_datetime(values, utc="," in dtype)
    kind: Any = dtype
    return values.astype(kind)
