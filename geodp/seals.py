"""Whether a frame still is what its record describes: checksums of records, digests of ids, and shapes.

Checksums are against slips, not against forgers: who wants to lie can write both. The digests are of public
ids, and the interval's ends lie at a public distance, so nothing here depends on rows.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd

from geodp.mechanisms.laws import Law, law_of
from geodp.wording import shown

if TYPE_CHECKING:
    from geodp.bounds import Box
    from geodp.grids import Grid
    from geodp.plans import Plan

__all__ = ["digest_of_plan", "law_of_measurement", "problem_of", "problem_of_part", "seal"]


def law_of_measurement(facts: Mapping[str, Any]) -> Law:
    """Return the noise of one of a record's ``measurements``, in lattice steps."""
    return law_of(facts["mechanism"], facts["scale"])


def problem_of(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a frame, or with its record; None if nothing is."""
    try:
        return _points_problem(frame, facts) if facts.get("query") == "perturb" else _problem(frame, facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "its record was changed"


def problem_of_part(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    """Return what is wrong with some rows of a release, in any order; None if nothing is.

    Which rows there should be is known as a whole only, so ids are held against nothing but each other.
    """
    try:
        if facts["seal"] != seal(facts):
            return "its record was changed"
        if not (frame.index.is_unique and frame.index.names[0] is not None):
            return "its index is not the release's"
        if facts["cells"] == "all" and facts["query"] != "centroid":
            size = facts["measurements"][0]["size"]
            if len(frame) > size:
                return f"it has {len(frame):,} rows of {size:,}"
        return _columns_problem(frame, facts["columns"]) or _numbers_problem(frame, facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "its record was changed"


def digest_of_plan(plan: "Plan") -> str:
    """Return the digest of the rows that a plan releases: cells, slots, and their order."""
    policy = plan.policy
    slots = pd.Index([]) if not plan.slots.names else plan.slots.index(pd.Index([0]))
    return _digest(_digest_of_cells(policy.grid, policy.bounds, plan.layout.domain.index), slots)


_cells_seen: dict[tuple["Grid", "Box | None"], str] = {}


def _digest_of_cells(grid: "Grid", box: "Box | None", cells: pd.Index) -> str:
    """Return the digest of a domain's ids; kept for the domains in use, as millions of ids take a while."""
    if (grid, box) not in _cells_seen:
        if len(_cells_seen) >= 8:
            _cells_seen.clear()
        _cells_seen[grid, box] = _digest_of_index(cells)
    return _cells_seen[grid, box]


def _digest(cells: str, slots: pd.Index) -> str:
    levels = [slots.get_level_values(i) for i in range(1, slots.nlevels)]
    return sha256("".join([cells, *map(_digest_of_index, levels)]).encode()).hexdigest()[:16]


def _digest_of_index(index: pd.Index) -> str:
    """Return the SHA-256 of an index's name, kind and values: the same before a file and after it."""
    if isinstance(index.dtype, pd.CategoricalDtype):
        index = pd.Index(index.astype(index.dtype.categories.dtype), name=index.name)
    head = repr((index.name, pd.api.types.infer_dtype(index, skipna=False)))
    text = "\0".join([head, *map(str, index.tolist())])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_frame(frame: pd.DataFrame, n_cells: int) -> str | None:
    """Return the digest of the frame's rows; None if they are not every cell with every slot."""
    index = frame.index
    if index.nlevels == 1:
        return _digest(_digest_of_index(index), pd.Index([])) if len(index) == n_cells else None
    if n_cells == 0 or len(index) % n_cells:
        return None
    n_slots = len(index) // n_cells
    cell, slots = index.get_level_values(0), index[:n_slots]
    first = cell[::n_slots]
    if not (cell == first.repeat(n_slots)).all():
        return None
    for level in range(1, index.nlevels):
        each = index.get_level_values(level)
        if not (each == each[:n_slots].take(np.tile(np.arange(n_slots), n_cells))).all():
            return None
    return _digest(_digest_of_index(first), slots)


def seal(facts: Mapping[str, Any]) -> str:
    """Return the checksum of a record without its own."""
    body = {name: value for name, value in facts.items() if name != "seal"}
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def _problem(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    if facts["seal"] != seal(facts):
        return "its record was changed"
    return (
        _columns_problem(frame, facts["columns"])
        or _rows_problem(frame, facts)
        or _numbers_problem(frame, facts)
    )


def _columns_problem(frame: pd.DataFrame, recorded: Mapping[str, list[str]] | None) -> str | None:
    if recorded is None:
        return None
    expected = {name: dtype for dtype, names in recorded.items() for name in names}
    outlines = [name for name, dtype in frame.dtypes.items() if isinstance(dtype, gpd.array.GeometryDtype)]
    outline = outlines[0] if outlines else "geometry"
    found = [(str(name), str(dtype)) for name, dtype in frame.dtypes.items() if name != outline]
    dtypes = dict(found)
    if missing := [name for name in expected if name not in dtypes]:
        return f"it has no column {missing[0]!r}"
    if extra := [name for name in dtypes if name not in expected]:
        return f"column '{shown(extra[0])}' is not part of it"
    if len(found) != len(expected):
        return "it has a column twice"
    if changed := [name for name in expected if dtypes[name] != expected[name]]:
        return f"column {changed[0]!r} is {dtypes[changed[0]]}, was {expected[changed[0]]}"
    return None


def _rows_problem(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    if facts["cells"] != "all":
        return _unlisted_problem(frame, facts["threshold"])
    size = facts["measurements"][0]["size"] if facts["query"] != "centroid" else None
    if size is not None and len(frame) != size:
        return f"it has {len(frame):,} rows of {size:,}"
    if _digest_of_frame(frame, facts["n_cells"]) != facts["rows"]:
        return "its rows are others, in another order, or under another index"
    return None


def _unlisted_problem(frame: pd.DataFrame, threshold: int) -> str | None:
    """Which rows there are is private output; but they are in order, and reach the threshold."""
    index = frame.index
    if not (index.is_unique and index.get_level_values(0).is_monotonic_increasing):
        return "its rows are in another order, or double"
    return "a count lies below the threshold" if (frame["noisy_count"] < threshold).any() else None


def _numbers_problem(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    """Hold the interval against the noise: sums, differences and multiples of releases do not fit it."""
    if facts["query"] not in ("count", "weighted_count", "sum") or facts["columns"] is None:
        return None
    measured, leading = f"noisy_{facts['query']}", facts["measurements"][0]
    top, bottom = leading["step"].split("/") if "/" in leading["step"] else (leading["step"], 1)
    at_once = 1 if facts["cells"] == "all" else leading["size"]
    reach = law_of_measurement(leading).halfwidth("0.95", at_once) * int(top) / int(bottom)
    values = frame[measured].to_numpy(np.float64)
    slack = np.where(np.abs(values) < 2.0**61, 1e-9 * (np.abs(values) + reach), np.inf)  # ends saturate above
    for end, distance in (("lower", -reach), ("upper", reach)):
        if (np.abs(frame[end].to_numpy(np.float64) - values - distance) > slack).any():
            return f"{end!r} is not where the noise puts it around {measured!r}"
    return None


def _points_problem(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    """Moved points are row by row, under a fresh index, with nothing but the columns that were kept."""
    if facts["seal"] != seal(facts):
        return "its record was changed"
    kept = facts["keep"]
    names = [str(name) for name, dtype in frame.dtypes.items() if str(dtype) != "geometry"]
    if isinstance(kept, list) and [name for name in names if name != "geometry"] != kept:
        return "its columns are not the ones that were kept"
    fresh = frame.index.nlevels == 1 and frame.index.equals(pd.RangeIndex(len(frame)))
    return None if fresh else "its rows are others, in another order, or under another index"
