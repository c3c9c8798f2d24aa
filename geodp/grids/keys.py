"""Names of zones: which keys a zone may have, their public order, and their lasting text."""

import datetime
import decimal
import hashlib
import uuid
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.names import TAKEN_NAMES

__all__ = ["key_digest", "public_order", "zone_keys"]

_LASTING = (
    *(str, bool, int, float, np.generic, decimal.Decimal),
    *(datetime.date, datetime.timedelta, uuid.UUID),
)


def zone_keys(frame: pd.DataFrame, key: str | None) -> pd.Index:
    """Return a copy of the keys in their own dtype, in the frame's order, named.

    Parameters
    ----------
    frame : DataFrame
        The zones.
    key : str or None
        A column or the index by name; None is the index, called ``"zone"`` if it has no name.

    Raises
    ------
    TypeError
        ``key`` or the index's name is no string, the index has several levels, or keys have no lasting text.
    ValueError
        No such column, a name that a result has use for, null keys, or keys that are not unique.

    Examples
    --------
    >>> zone_keys(pd.DataFrame({"zone_id": ["b", "a"]}), "zone_id").tolist()
    ['b', 'a']
    """
    keys = _column(frame, key)
    if keys.nlevels > 1:
        raise TypeError("zones need one key, the frame's index has several levels; name a column: key=...")
    _check_name(keys.name)
    if keys.hasnans:
        row = int(np.argmax(keys.isna()))
        raise ValueError(f"zone key {keys.name!r} is null in row {row} of the zones; give every zone a key.")
    if not keys.is_unique:
        twice = keys[keys.duplicated()].tolist()[0]
        raise ValueError(f"zone key {keys.name!r} has {twice!r} more than once; dissolve or rename.")
    if not all(isinstance(value, _LASTING) for value in keys.tolist()):
        raise TypeError(f"zone key {keys.name!r} must hold integers, strings, dates, categories or floats.")
    return keys


def public_order(keys: pd.Index) -> NDArray[np.int64]:
    """Return the positions of unique keys in ascending order (of the categories, if categorical).

    Keys that cannot be compared, such as 1 and "1", go by the name of their type, then by value.

    Examples
    --------
    >>> public_order(pd.Index(["b", 2, "a", 1], dtype=object)).tolist()
    [3, 1, 2, 0]
    """
    try:
        return np.asarray(keys.argsort(), dtype=np.int64)
    except TypeError:
        values = keys.tolist()
    try:
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, values[i]))
    except TypeError:
        raise TypeError(f"zone key {keys.name!r} cannot be put in order; use integers or strings.") from None
    return np.asarray(order, dtype=np.int64)


def key_digest(keys: pd.Index) -> str:
    """Return the SHA-256 of name, dtype (with its categories) and keys in their order.

    Examples
    --------
    >>> key_digest(pd.Index([1, 2], name="a")) == key_digest(pd.Index(["1", "2"], name="a"))
    False
    """
    kind: list[Any] = [keys.name, str(keys.dtype)]
    if isinstance(keys.dtype, pd.CategoricalDtype):
        kind += [keys.dtype.ordered, str(keys.dtype.categories.dtype)]
        kind += map(_text, keys.dtype.categories.tolist())
    texts = [repr(kind), *map(_text, keys.tolist())]
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def _column(frame: pd.DataFrame, key: str | None) -> pd.Index:
    index: pd.Index = frame.index.copy()
    if key is None:
        return index.rename("zone") if index.nlevels == 1 and index.name is None else index
    if not isinstance(key, str):
        raise TypeError(f"key must be the name of one column, got {type(key).__name__}.")
    if key in frame.columns:
        if isinstance(column := frame[key], pd.DataFrame):
            raise ValueError(f"the zones have more than one column {key!r}.")
        named: pd.Index = pd.Index(column.array.copy(), dtype=column.dtype, name=key)
        return named
    if key == index.name:
        return index
    raise ValueError(f"the zones have no column {key!r}; they have {', '.join(map(repr, frame.columns))}.")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the key's name must be a string, got {type(name).__name__}; rename the index.")
    if name.casefold() in TAKEN_NAMES:
        raise ValueError(f"zone key {name!r} is called like a column of the result; rename it.")
    if name.casefold() == "fid":
        raise ValueError(
            "zone key 'fid' vanishes from GeoPackage files, where it numbers the rows; rename it."
        )


def _text(value: object) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{type(plain).__name__}:{plain!r}"
