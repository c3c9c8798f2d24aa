"""The slots of a release, and which of them a map shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.maps.held import Held
from geodp.wording import shown

__all__ = ["Slot", "asks_for_one", "slots_of"]


@dataclass(frozen=True, eq=False)
class Slot:
    """One slot of a release.

    Attributes
    ----------
    name : str
        Such as ``"hour=7"``, or ``"hour=7, day=mon"``; empty where a release has no slots.
    value : object
        The level, or a tuple of levels.
    rows : bool array
        Which rows of the frame belong to it.
    """

    name: str
    value: Any
    rows: NDArray[np.bool_]


def slots_of(rows: Held, slot: Any = None) -> list[Slot]:
    """Return the slots that were asked for, in the order of the levels; all of them for None.

    Raises
    ------
    ValueError
        The release has no slots, or none of that name; or a tuple of another length.
    """
    index: Any = rows.frame.index
    if index.nlevels == 1:
        if slot is not None:
            raise ValueError(f"slot={slot!r}: these rows have no slots, which come from by={{...}}.")
        return [Slot("", None, np.ones(len(index), dtype=bool))]
    names = [str(name) for name in index.names[1:]]
    asked = _by_name(names, slot)
    wanted = {name: _listed(value) for name, value in asked.items()}
    if rows.facts["cells"] == "all":
        _check(index, wanted)
    held = index.droplevel(0)
    kept = np.ones(len(index), dtype=bool)
    for name, values in wanted.items():
        kept &= np.asarray(index.get_level_values(name).isin(values))
    if not kept.any():
        return [_empty(asked, kept)]
    found = _ordered(held[kept], rows)
    codes = found.get_indexer(held)
    return [
        Slot(_name(names, value), value, kept & (codes == number))
        for number, value in enumerate(found.tolist())
    ]


def asks_for_one(rows: Held, slot: Any) -> bool:
    """Tell whether one map was asked for: a release without slots, or one level of every column of ``by``."""
    index: Any = rows.frame.index
    if index.nlevels == 1:
        return True
    asked = _by_name([str(name) for name in index.names[1:]], slot)
    return len(asked) == index.nlevels - 1 and not any(_is_list(value) for value in asked.values())


def _by_name(names: list[str], slot: Any) -> dict[str, Any]:
    """Return what was asked for of each column."""
    if slot is None:
        return {}
    if isinstance(slot, Mapping):
        unknown = [name for name in slot if name not in names]
        if unknown:
            raise ValueError(f"slot names {unknown[0]!r}; the release has {', '.join(map(repr, names))}.")
        return dict(slot)
    values = slot if isinstance(slot, tuple) else (slot,)
    if len(values) != len(names):
        raise ValueError(
            f"slot={slot!r} must name a level of each of {', '.join(map(repr, names))}, or be a mapping, "
            f"slot={{{names[0]!r}: ...}}."
        )
    return dict(zip(names, values, strict=True))


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _empty(asked: Mapping[str, Any], kept: NDArray[np.bool_]) -> Slot:
    """Return a slot of no rows: where only some cells are released, a level may have none, and is not listed."""
    name = ", ".join(f"{shown(name)}={shown(str(value))}" for name, value in asked.items())
    return Slot(name, tuple(asked.values()), kept)


def _listed(value: Any) -> list[Any]:
    return list(value) if _is_list(value) else [value]


def _check(index: pd.Index, wanted: Mapping[str, list[Any]]) -> None:
    for name, values in wanted.items():
        held = index.get_level_values(name)
        for value in values:
            if not bool((held == value).any()):
                levels = ", ".join(repr(level) for level in held.unique()[:12].tolist())
                raise ValueError(f"slot: {name} has no level {value!r} here; there are {levels}.")


def _ordered(slots: pd.Index, rows: Held) -> pd.Index:
    """Return each slot once: in the order of the levels, which the rows of a full map have, else sorted."""
    found = slots.unique()
    if rows.whole and rows.facts["cells"] == "all":
        return found
    try:
        return found.sort_values()
    except TypeError:
        return found


def _name(names: list[str], value: Any) -> str:
    values = value if isinstance(value, tuple) else (value,)
    return ", ".join(f"{shown(name)}={shown(str(part))}" for name, part in zip(names, values, strict=True))
