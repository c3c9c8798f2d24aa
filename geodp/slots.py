"""Time slots and other public categories: levels that are given, never read from the rows."""

import math
from collections.abc import Iterable, Mapping, Set, Sized
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.names import TAKEN_NAMES, check_text
from geodp.subjects import subjects
from geodp.wording import brief

__all__ = ["Slots", "slots"]

_MAX_SLOTS = 100_000
_LEVELS = (str, bool, int, float, Decimal, date, timedelta, type(pd.NaT), type(pd.NA))


@dataclass(frozen=True)
class Slots:
    """The public levels a map is split by, in the order given.

    Attributes
    ----------
    names : tuple of str
        Columns of the frame.
    levels : tuple of tuples
        The levels of each column.
    kinds : tuple of tuples of str
        Type of each level: ``1``, ``1.0`` and ``True`` are equal to Python and are three levels here.
    """

    names: tuple[str, ...] = ()
    levels: tuple[tuple[Any, ...], ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        """Number of slots of one cell: all combinations of levels."""
        return _size(self.levels)

    def index(self, cells: pd.Index) -> pd.Index:
        """Return the index of the result: cells alone, or every cell with every slot."""
        if not self.names:
            return cells
        return pd.MultiIndex.from_product([cells, *self._level_indexes()], names=[cells.name, *self.names])

    def index_of(self, cells: pd.Index, codes: NDArray[np.int64]) -> pd.Index:
        """Return the index of single rows: a cell and the number of a slot each."""
        levels = self._level_indexes()
        places = np.unravel_index(codes, [len(level) for level in levels])
        taken = [level.take(place) for level, place in zip(levels, places, strict=True)]
        return pd.MultiIndex.from_arrays([cells, *taken], names=[cells.name, *self.names])

    def plain_values(self, codes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the levels of some slots by column, where they are flags, numbers or texts."""
        index = self.index_of(pd.RangeIndex(len(codes)), codes)
        values = {name: index.get_level_values(name).to_numpy() for name in self.names}
        return {
            name: found
            for (name, found), levels in zip(values.items(), self.levels, strict=True)
            if found.dtype.kind in "biuf" or all(isinstance(level, str) for level in levels)
        }

    def check(self, dtypes: Mapping[str, Any]) -> None:
        """Raise where a column is missing, or its dtype cannot hold the levels."""
        for name, levels in zip(self.names, self._level_indexes(), strict=True):
            if name not in dtypes:
                raise ValueError(f"by names a column {name!r} that the frame does not have.")
            _check_dtype(name, levels, dtypes[name])

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Return the slot number of each row, -1 where a value is none of the levels."""
        code = np.zeros(len(frame), np.int64)
        usable = np.ones(len(frame), bool)
        for name, levels in zip(self.names, self._level_indexes(), strict=True):
            found = _positions(levels, frame[name])
            usable &= found >= 0
            code = code * len(levels) + found
        return np.where(usable, code, -1)

    def to_dict(self) -> dict[str, Any]:
        """Return names, sizes and a digest of the levels, as plain JSON of bounded size."""
        if not self.names:
            return {}
        text = repr([[(type(value).__name__, str(value)) for value in levels] for levels in self.levels])
        sizes = {name: len(levels) for name, levels in zip(self.names, self.levels, strict=True)}
        return {"levels": sizes, "digest": sha256(text.encode()).hexdigest()[:16]}

    def _level_indexes(self) -> list[pd.Index]:
        return [
            pd.Index(list(levels), name=name) for name, levels in zip(self.names, self.levels, strict=True)
        ]


def slots(by: object) -> Slots:
    """Return the slots that ``by`` asks for.

    Parameters
    ----------
    by : mapping of str to a finite sequence of levels, or None

    Raises
    ------
    TypeError
        Not a mapping, or levels that are a Series, an Index or an array: those come out of frames.
    ValueError
        No levels, duplicate levels, null levels, or more than 100,000 slots.

    Examples
    --------
    >>> len(slots({"hour": range(24), "weekend": [False, True]}))
    48
    """
    if by is None:
        return Slots()
    if isinstance(by, Slots):
        return by
    if not isinstance(by, Mapping) or not by:
        raise TypeError(f'by must name columns and their levels, by={{"hour": range(24)}}, got {brief(by)}.')
    names = tuple(_name(name) for name in by)
    levels = tuple(_levels(name, by[name]) for name in names)
    if _size(levels) > _MAX_SLOTS:
        raise ValueError(f"by has {_size(levels):,} slots, more than {_MAX_SLOTS:,}.")
    return Slots(names, levels, tuple(tuple(type(value).__name__ for value in part) for part in levels))


def _size(levels: tuple[tuple[Any, ...], ...]) -> int:
    """Return the number of combinations; 64 bits would wrap, and four columns of 65,536 levels make no slot."""
    return math.prod(map(len, levels))


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"by must be keyed by column names, got {brief(name)}.")
    if name.casefold() in TAKEN_NAMES:
        raise ValueError(
            f"by names a column {name!r}, which is called like a column of the result; rename it."
        )
    return name


def _levels(name: str, levels: object) -> tuple[Any, ...]:
    if isinstance(levels, pd.Series | np.ndarray | str | bytes):
        raise TypeError(
            f"by={{{name!r}: ...}} got {type(levels).__name__}. Levels are public and typed, such as range(24); "
            "levels taken from the rows would show who is in them."
        )
    if isinstance(levels, Set):
        raise TypeError(f"by={{{name!r}: ...}} got a set, which has no order; list the levels.")
    if not isinstance(levels, Iterable) or not isinstance(levels, Sized):
        raise TypeError(f"by={{{name!r}: ...}} must list its levels, got {type(levels).__name__}.")
    values: tuple[Any, ...] = tuple(islice(levels, _MAX_SLOTS + 1))
    if len(values) > _MAX_SLOTS:
        raise ValueError(f"by={{{name!r}: ...}} has more than {_MAX_SLOTS:,} levels.")
    if any(isinstance(value, np.generic) for value in values):
        raise TypeError(
            f"by={{{name!r}: ...}} holds numpy values, as gdf[{name!r}].unique() gives. Levels are public and typed, "
            "such as range(24); levels taken from the rows would show who is in them."
        )
    if not all(value is None or isinstance(value, _LEVELS) for value in values):
        raise TypeError(f"by={{{name!r}: ...}} must list texts, numbers, dates or times.")
    if not values:
        raise ValueError(f"by={{{name!r}: ...}} has no levels.")
    for value in values:
        if isinstance(value, str):
            check_text(value, f"a level of by={{{name!r}: ...}}")
    index = pd.Index(list(values))
    if index.hasnans:
        raise ValueError(f"by={{{name!r}: ...}} has a missing level; rows without a value are left out.")
    if not index.is_unique:
        raise ValueError(f"by={{{name!r}: ...}} has duplicate levels.")
    return values


def _positions(levels: pd.Index, column: "pd.Series[Any]") -> NDArray[np.int64]:
    """Return the level of each row, -1 for none; a row that cannot even be compared is none."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        found = np.append(_positions(levels, pd.Series(column.cat.categories)), -1)
        return found[column.cat.codes.to_numpy()].astype(np.int64)
    if isinstance(column.dtype, pd.SparseDtype):
        return _positions(levels, pd.Series(column.array.to_dense()))
    if _kind(column.dtype) in ("time", "duration") and _kind(levels.dtype) == _kind(column.dtype):
        return _positions_in_time(levels, column)
    lookup = {value: position for position, value in enumerate(levels)}
    if _kind(column.dtype) == "text":
        texts = subjects(column)
        return np.array([*(_found(lookup, text) for text in texts.ids), -1], dtype=np.int64)[texts.codes]
    if column.dtype != object:
        return levels.get_indexer(pd.Index(column)).astype(np.int64)
    return np.array([_found(lookup, value) for value in column], dtype=np.int64)


def _positions_in_time(levels: pd.Index, column: "pd.Series[Any]") -> NDArray[np.int64]:
    """Compare whole numbers of the column's own unit: converting a row's far date would raise."""
    if (_zone(levels.dtype) is None) != (_zone(column.dtype) is None):
        return np.full(len(column), -1, dtype=np.int64)
    held, typed = _instants(column), _instants(pd.Series(levels))
    cast = typed.astype(held.dtype)
    exact = cast.astype(typed.dtype) == typed
    # A level that the column's unit cannot say matches no row, so it gets a number that no time has.
    numbers = np.where(exact, cast.astype(np.int64), np.iinfo(np.int64).min + 1 + np.arange(len(cast)))
    found = pd.Index(numbers).get_indexer(pd.Index(held.astype(np.int64))).astype(np.int64)
    return np.where(np.isnat(held), -1, found)


def _instants(column: "pd.Series[Any]") -> NDArray[Any]:
    """Return times in UTC, or durations, as numpy has them, in the unit they are kept in."""
    if isinstance(column.dtype, pd.ArrowDtype):
        unit, zone = column.dtype.pyarrow_dtype.unit, _zone(column.dtype)
        kind = "timedelta64" if _kind(column.dtype) == "duration" else "datetime64"
        plain: Any = f"{kind}[{unit}, {zone}]" if zone else f"{kind}[{unit}]"
        column = column.astype(plain)
    if _zone(column.dtype) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return column.to_numpy()


def _zone(dtype: Any) -> Any:
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def _found(lookup: Mapping[Any, int], value: object) -> int:
    try:
        return lookup.get(value, -1)
    except Exception:
        return -1


def _check_dtype(name: str, levels: pd.Index, dtype: Any) -> None:
    """Levels of the wrong kind would match no row, and the map would be pure noise."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    asked = _kind(levels.dtype)
    if asked == "object":
        inferred = pd.api.types.infer_dtype(levels)
        asked = {"string": "text", "integer": "number", "floating": "number"}.get(inferred, inferred)
    held = _kind(dtype)
    if held != "object" and asked != held and not asked.startswith("mixed"):
        raise TypeError(
            f"by={{{name!r}: ...}} has levels of kind {asked} and the column has dtype {dtype} ({held}): "
            "no row would match. Give levels of the column's kind."
        )
    if asked == held == "time":
        _check_zone(name, levels, dtype)


def _check_zone(name: str, levels: pd.Index, dtype: Any) -> None:
    if (_zone(levels.dtype) is None) != (_zone(dtype) is None):
        aware, naive = ("column", "levels") if _zone(dtype) is not None else ("levels", "column")
        raise TypeError(
            f"by={{{name!r}: ...}}: the {aware} have a time zone and the {naive} have none, so no row would match."
        )


def _kind(dtype: Any) -> str:
    kinds = {
        "bool": pd.api.types.is_bool_dtype,
        "number": pd.api.types.is_numeric_dtype,
        "time": pd.api.types.is_datetime64_any_dtype,
        "duration": pd.api.types.is_timedelta64_dtype,
        "object": pd.api.types.is_object_dtype,
        "text": pd.api.types.is_string_dtype,
    }
    return next((kind for kind, holds in kinds.items() if holds(dtype)), str(dtype))
