"""Who a row belongs to: exact subject numbers, and nothing that could merge two people.

An id is a string or an integer. An integral float below 2**53 counts as an integer, because pandas
turns an integer column with gaps into floats. Everything else (missing, NaN, booleans, other floats,
containers) is no id, and its row is left out. ``1`` and ``"1"`` are two subjects, ``1`` and ``1.0`` one.
Ids are compared exactly, never by a hash: two people in one key would move two cells at cap 1.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.prf import siphash
from geodp.texts import digests, numbered_texts, plain_texts

__all__ = ["Subjects", "check_subject_dtype", "each_row", "numbered", "subjects"]

_EXACT_FLOAT = float(2**53)


@dataclass(frozen=True)
class Subjects:
    """Subject numbers of the rows, and the ids they stand for.

    Attributes
    ----------
    codes : int64 array, shape (n_rows,)
        Subject number of each row, -1 where the row has no usable id.
    ids : array, shape (n_subjects,)
        The distinct ids. Numbers follow first appearance and mean nothing outside this object.
    """

    codes: NDArray[np.int64]
    ids: Any

    def digests(self, numbers: NDArray[np.int64], key: bytes) -> NDArray[np.uint64]:
        """Return a keyed 64-bit digest of each subject's id, the same in every partition.

        A collision costs nothing: it makes two subjects' choices alike, not dependent on each other.
        """
        ids = np.asarray(self.ids[numbers])
        if ids.dtype.kind in "iu" and ids.dtype != np.uint64:
            return _number_digests(ids.astype(np.int64), key)
        numeric = np.array([_fits(value) for value in ids], dtype=bool)
        out = np.empty(len(ids), np.uint64)
        out[numeric] = _number_digests(np.array(ids[numeric], dtype=np.int64), key)
        out[~numeric] = digests(ids[~numeric], key)
        return out


def check_subject_dtype(dtype: Any, name: Hashable) -> None:
    """Raise a TypeError where a column of this dtype cannot hold ids.

    The dtype alone decides; what single rows hold never raises.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        check_subject_dtype(dtype.categories.dtype, name)
        return
    if isinstance(dtype, pd.SparseDtype):
        check_subject_dtype(dtype.subtype, name)
        return
    if pd.api.types.is_bool_dtype(dtype) or not (
        pd.api.types.is_integer_dtype(dtype)
        or pd.api.types.is_float_dtype(dtype)
        or pd.api.types.is_string_dtype(dtype)
        or pd.api.types.is_object_dtype(dtype)
    ):
        raise TypeError(
            f"subject={name!r} has dtype {dtype}; a subject id is a string or an int. "
            f"Name the column that says whose a row is, or convert it: gdf[{name!r}].astype(str)."
        )


def each_row(n_rows: int) -> Subjects:
    """Return subjects where every row is its own."""
    numbers = np.arange(n_rows, dtype=np.int64)
    return Subjects(numbers, numbers)


def subjects(column: "pd.Series[Any]") -> Subjects:
    """Number the subjects of a column, exactly.

    Parameters
    ----------
    column : Series, shape (n_rows,)
        Ids; its dtype has passed :func:`check_subject_dtype`.

    Returns
    -------
    Subjects
        Codes (int64, -1 for no id) and the distinct ids.

    Examples
    --------
    >>> subjects(pd.Series(["u1", None, "u2", "u1"])).codes.tolist()
    [0, -1, 1, 0]
    """
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(column.array.to_dense())
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _of_categories(column)
    if pd.api.types.is_integer_dtype(column.dtype):
        codes, ids = pd.factorize(column)
        return Subjects(codes.astype(np.int64), np.asarray(ids))
    if pd.api.types.is_float_dtype(column.dtype):
        return _of_floats(column)
    if column.dtype != object and getattr(column.dtype, "storage", None) != "python":
        return _of_texts(column.array)
    return _of_objects(np.asarray(column.array, dtype=object))


def _of_texts(column: Any) -> Subjects:
    made = numbered_texts(column)
    if made is None:
        codes, ids = pd.factorize(column)
        made = codes.astype(np.int64), plain_texts(ids)
    return Subjects(*made)


def _of_floats(column: "pd.Series[Any]") -> Subjects:
    """Number integral floats; a narrow float has merged neighbouring integers before its own 2**53."""
    held: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    values = column.to_numpy(dtype=held, na_value=np.nan)
    usable = (np.abs(values) < _exact_below(held)) & (values == np.floor(values))
    codes, ids = pd.factorize(np.where(usable, values, 0).astype(np.int64))
    return Subjects(np.where(usable, codes, -1).astype(np.int64), np.asarray(ids))


def _exact_below(dtype: Any) -> float:
    return min(2.0 ** (np.finfo(dtype).nmant + 1), _EXACT_FLOAT)


def _of_categories(column: "pd.Series[Any]") -> Subjects:
    categories = subjects(pd.Series(column.cat.categories))
    lookup = np.append(categories.codes, -1)
    return Subjects(lookup[column.cat.codes.to_numpy()].astype(np.int64), categories.ids)


def _of_objects(values: NDArray[np.object_]) -> Subjects:
    if not set(map(type, values)) <= {str, type(None)}:
        plain = np.empty(len(values), dtype=object)
        plain[:] = [_canonical(value) for value in values]
        values = plain
    return Subjects(*numbered(values))


def numbered(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the number of each id, -1 for None, and the distinct ids; compared whole."""
    if ids.dtype != object:
        codes, distinct = pd.factorize(ids)
        return codes.astype(np.int64), np.asarray(distinct)
    # Before 3.1 pandas compares arrays of nothing but text up to the first NUL only; a None prevents that.
    codes, distinct = pd.factorize(np.append(ids, [None]))
    return codes[:-1].astype(np.int64), np.asarray(distinct, dtype=object)


def _canonical(value: object) -> str | int | None:
    """Return the id as a plain str or int; None for what is no id.

    The methods of str and int are called by name, because a subclass may have others of its own.
    """
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return _integral(value, _exact_below(value.dtype))
    return _integral(value, _EXACT_FLOAT) if isinstance(value, float) else None


def _integral(value: Any, below: float) -> int | None:
    return int(value) if abs(value) < below and value == int(value) else None


def _fits(value: str | int) -> bool:
    return not isinstance(value, str) and -(2**63) <= value < 2**63


def _number_digests(ids: NDArray[np.int64], key: bytes) -> NDArray[np.uint64]:
    return siphash(key, ids.view(np.uint64))
