"""The record of a release: what an auditor needs, and nothing that depends on rows.

The plan's part is a function of the plan, so it is equal between neighbours; the ledger's part (entry,
label, time, spend, ceiling) stands apart under ``"ledger"``. What can grow with the arguments (names,
levels, zones) is kept by number and digest, so that the plan's part stays under 2 kB.

The record describes the frame as well: its columns and a digest of its ids. :func:`record` holds a
frame against it, so that a record that was dragged along by pandas does not vouch for other numbers.
"""

import copy
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, Inexact, localcontext
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol

import geopandas as gpd
import numpy as np
import pandas as pd

from geodp._version import __version__
from geodp.errors import NotARelease
from geodp.exact import plain
from geodp.mechanisms.choice import Figures
from geodp.mechanisms.laws import Law, law_of
from geodp.pages import reason
from geodp.queries import Query
from geodp.wording import bounded, shown

if TYPE_CHECKING:
    from geodp.accounting import Charge
    from geodp.bounds import Box
    from geodp.grids import Grid
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Payable", "guarantee", "law_of_measurement", "plan_record", "record", "release_record", "sealed"]

_ROOMS = (200, 40, 20)
_MOST_CHARGE = 300
_MOST_BYTES = 1900  # with the noise and the seal below 2 kB
_LIBRARIES = ("geopandas", "h3", "numpy", "pandas", "shapely")
_RELEASED: Mapping[str, Mapping[str, str]] = {
    "count": {"int64": "count noisy_count lower upper", "float64": "estimate"},
    "weighted_count": {"int64": "weighted_count", "float64": "estimate noisy_weighted_count lower upper"},
    "sum": {"float64": "sum noisy_sum lower upper"},
    "mean": {"float64": "mean lower upper noisy_sum", "int64": "count noisy_count"},
    "centroid": {"float64": "lon lat error_m", "int64": "count noisy_count"},
}


class Payable(Protocol):
    """What a ledger pays for: one plan, or several under one budget."""

    @property
    def policy(self) -> "Policy": ...  # noqa: D102
    @property
    def charge(self) -> "Charge": ...  # noqa: D102
    @property
    def key(self) -> str: ...  # noqa: D102
    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


def plan_record(plan: "Plan") -> dict[str, Any]:
    """Return the plan's part of the record as plain JSON; names are cut where it would grow too long."""
    facts: dict[str, Any] = {}
    for room in _ROOMS:
        facts = _facts(plan, room)
        if len(json.dumps(facts)) <= _MOST_BYTES:
            return facts
    return {**facts, "counted": bounded(facts["counted"], 90), "libraries": None}


def _facts(plan: "Plan", room: int) -> dict[str, Any]:
    policy, charge = plan.policy, plan.charge
    return {
        "version": __version__,
        **_query(plan.query, room),
        "counted": _counted(plan, min(room, 40)),
        "guarantee": guarantee(plan, min(room, 40)),
        "unit": bounded(policy.unit, room),
        "neighboring": policy.neighboring,
        "cap": policy.cap,
        "rows_per_cell": policy.rows_per_cell,
        "contribution": policy.contribution,
        **({} if policy.population is None else {"population": policy.population}),
        "bounds": None if policy.bounds is None else policy.bounds.to_list(),
        **({} if policy.bounds is None else {"outside": policy.outside}),
        **_grid(policy.grid, min(room, 60)),
        "by": _by(plan),
        "n_cells": plan.n_cells,
        "rows": None if plan.threshold is not None else _digest_of_plan(plan),
        "columns": _columns(plan),
        "asked": {"eps": plain(plan.eps), "delta": plain(plan.delta)},
        "spent": {"eps": plain(charge.eps), "delta": plain(charge.delta), "rho": _plain(charge.rho)},
        "eps": plain(charge.eps),
        "delta": plain(charge.delta),
        "rho": _plain(charge.rho),
        "mechanism": plan.mechanism,
        "scale": plan.scale,
        "std": plan.noise_std,
        "l1": plan.l1,
        "l2": plan.l2,
        **_choice(plan),
        "estimator": plan.estimator,
        "cells": plan.ways.cells,
        **({} if plan.threshold is None else {"threshold": plan.threshold}),
        "charge": _charge(plan),
        "measurements": [measurement.to_dict() for measurement in plan.measurements],
        "libraries": _libraries(),
    }


def release_record(plan: "Plan", noise: str, entry: dict[str, Any] | None) -> dict[str, Any]:
    """Return the record of a released frame: the plan's part, the noise, and the ledger's part."""
    return sealed({**plan_record(plan), "noise": noise, "ledger": entry})


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with a checksum of its own: against slips, not against forgers."""
    return {**facts, "seal": _seal(facts)}


def guarantee(plan: Payable, room: int = 40) -> str:
    """Say the guarantee as a sentence, such as ``"(1, 0)-DP for one rider more or less"``."""
    charge = plan.charge
    change = "more or less" if plan.policy.neighboring == "add_remove_one" else "replaced by another"
    return f"({plain(charge.eps)}, {plain(charge.delta)})-DP for one {shown(plan.policy.unit, room)} {change}"


def record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the release record of a frame, if the frame still is that release.

    Columns, dtypes, rows with their ids and order, and the distance of the interval's ends are held
    against the record; outlines may be missing, since they follow from the ids. Numbers are compared by
    ``ledger.verify(frame)``: a record that knew them would depend on the rows.

    Parameters
    ----------
    frame : GeoDataFrame or DataFrame
        What a geodp call returned, or what was read back from GeoParquet.

    Returns
    -------
    dict
        Plain JSON, a copy.

    Raises
    ------
    NotARelease
        There is no record, it was changed, or columns, rows, index or numbers were changed since.

    Examples
    --------
    >>> record(pd.DataFrame({"count": [1]}))
    Traceback (most recent call last):
        ...
    geodp.errors.NotARelease: this frame carries no geodp record. GeoParquet keeps it; other formats drop it: \
geodp.to_geojson writes it into GeoJSON, and ledger.record(label) always has it.
    """
    found = getattr(frame, "attrs", {}).get("geodp")
    if not isinstance(found, dict) or "guarantee" not in found:
        raise NotARelease(
            "this frame carries no geodp record. GeoParquet keeps it; other formats drop it: geodp.to_geojson "
            "writes it into GeoJSON, and ledger.record(label) always has it."
        )
    try:
        problem = _points_problem(frame, found) if found.get("query") == "perturb" else _problem(frame, found)
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "its record was changed"
    if problem is not None:
        raise NotARelease(
            f"this frame is no longer the release that its record describes: {problem}. Keep the released frame "
            "and derive others from it; geodp.explain and ledger.record(label) take the record itself."
        )
    return copy.deepcopy(found)


def law_of_measurement(facts: Mapping[str, Any]) -> Law:
    """Return the noise of one of a record's ``measurements``, in lattice steps."""
    return law_of(facts["mechanism"], facts["scale"])


def _query(query: Query, room: int) -> dict[str, Any]:
    return {
        name: bounded(value, room) if isinstance(value, str) else value
        for name, value in query.to_dict().items()
        if value is not None
    }


def _counted(plan: "Plan", room: int) -> str:
    """Say what is counted, with long names cut."""
    query: Any = plan.query
    policy, column = plan.policy, plan.query.reads
    if column is not None:
        query = replace(query, column=shown(column, room))
    return bounded(query.counted(_with_short_name(policy, room)), 300)


def _with_short_name(policy: "Policy", room: int) -> "Policy":
    return policy if policy.by_row else replace(policy, subject=shown(policy.unit, room))


def _grid(grid: "Grid", room: int) -> dict[str, Any]:
    """Return the grid's name; what zones add to it stands apart, because a query has an ``n`` too."""
    facts = grid.to_dict()
    name = {"grid": bounded(facts.pop("grid"), room + 6)}
    if not facts:
        return name
    return {**name, "zones": {"n": facts["n"], "overlap": facts["overlap"], "digest": facts["digest"][:32]}}


def _by(plan: "Plan") -> dict[str, Any]:
    facts = plan.slots.to_dict()
    if len(json.dumps(facts)) <= 160:
        return facts
    return {"columns": len(plan.slots.names), "slots": len(plan.slots), "digest": facts["digest"]}


def _columns(plan: "Plan") -> dict[str, list[str]] | None:
    """Return the released columns by dtype; None for a kind that is not written down here."""
    found = _RELEASED.get(plan.query.word)
    if found is None:
        return None
    columns = {dtype: names.split() for dtype, names in found.items()}
    if getattr(plan.query, "n", None) is not None:
        del columns["int64"]
    if plan.policy.outside == "clamp" and plan.policy.bounds is not None:
        columns["bool"] = ["edge"]
    return columns


def _choice(plan: "Plan") -> dict[str, Any]:
    """Return both mechanisms' noise in the unit of the result, and why one of them was taken."""
    choice, step = plan.choice, float(plan.measurements[0].quantity.step)

    def noise(figures: Figures | None) -> dict[str, float] | None:
        if figures is None:
            return None
        return {"scale": _short(figures.law.scale * step), "std": _short(figures.std * step)}

    return {
        "laplace": noise(choice.laplace),
        "gaussian": noise(choice.gaussian),
        "crossover_cap": choice.crossover_cap,
        "because": reason(plan),
        "mechanism_asked": plan.ways.mechanism,
        "criterion": plan.ways.criterion,
    }


def _charge(plan: "Plan") -> dict[str, str] | None:
    """Return the exact cost; None where somebody typed hundreds of digits, which the ledger keeps anyway."""
    charge = plan.charge
    exact = {"eps": _exact(charge.eps), "delta": _exact(charge.delta)}
    exact |= {} if charge.rho is None else {"rho": _exact(charge.rho)}
    return exact if sum(map(len, exact.values())) <= _MOST_CHARGE else None


def _exact(number: Fraction) -> str:
    """Return the shortest exact text: a decimal or a fraction."""
    ratio = str(number)
    with localcontext(prec=_MOST_CHARGE) as context:
        decimal = str(Decimal(number.numerator) / Decimal(number.denominator))
        return ratio if context.flags[Inexact] else min(ratio, decimal, key=len)


def _plain(rho: Fraction | None) -> int | float | None:
    return None if rho is None else plain(rho)


def _short(number: float) -> float:
    return float(f"{number:.6g}")


@lru_cache(maxsize=1)
def _libraries() -> str:
    """Return the versions of what a release is computed with."""
    found = [f"python {platform.python_version()}"]
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def _digest_of_plan(plan: "Plan") -> str:
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


def _seal(facts: Mapping[str, Any]) -> str:
    body = {name: value for name, value in facts.items() if name != "seal"}
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def _problem(frame: pd.DataFrame, facts: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a frame, or with its record; None if nothing is."""
    if facts["seal"] != _seal(facts):
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
    if facts["seal"] != _seal(facts):
        return "its record was changed"
    kept = facts["keep"]
    names = [str(name) for name, dtype in frame.dtypes.items() if str(dtype) != "geometry"]
    if isinstance(kept, list) and [name for name in names if name != "geometry"] != kept:
        return "its columns are not the ones that were kept"
    fresh = frame.index.nlevels == 1 and frame.index.equals(pd.RangeIndex(len(frame)))
    return None if fresh else "its rows are others, in another order, or under another index"
