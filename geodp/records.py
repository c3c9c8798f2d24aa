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
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import pandas as pd

from geodp._version import __version__
from geodp.errors import NotARelease
from geodp.exact import plain
from geodp.mechanisms.choice import Figures
from geodp.pages import reason
from geodp.queries import Query
from geodp.seals import digest_of_plan, problem_of, seal
from geodp.testing import OS_ENTROPY
from geodp.wording import bounded, shown

if TYPE_CHECKING:
    from geodp.grids import Grid
    from geodp.ledger import Stored
    from geodp.paying import Payable
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["guarantee", "plan_record", "record", "release_record", "replayed_record", "sealed"]

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
        "rows": None
        if plan.threshold is not None
        else digest_of_plan(plan)
        if plan.ways.cells == "all"
        else None,
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


def replayed_record(stored: "Stored") -> dict[str, Any]:
    """Return the record of a release that comes out of a ledger: as it was paid for, versions and all."""
    return sealed({**stored.record, "noise": OS_ENTROPY, "ledger": stored.entry})


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with a checksum of its own: against slips, not against forgers."""
    return {**facts, "seal": seal(facts)}


def guarantee(plan: "Payable", room: int = 40) -> str:
    """Say the guarantee as a sentence, such as ``"(1, 0)-DP for one rider more or less"``."""
    charge = plan.charge
    change = "more or less" if plan.policy.neighboring == "add_remove_one" else "replaced by another"
    return f"({plain(charge.eps)}, {plain(charge.delta)})-DP for one {shown(plan.policy.unit, room)} {change}"


def record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the release record of a frame, if the frame still is that release.

    Columns, dtypes, rows with their ids and order, and the distance of the interval's ends are held
    against the record; outlines may be missing, since they follow from the ids. Numbers are compared by
    ``ledger.verify(frame)``: a record that knew them would depend on the rows. So would one that knew which
    cells a sparse or selected release holds: rows that were taken out of one are seen by ``ledger.verify`` too.

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
    problem = problem_of(frame, found)
    if problem is not None:
        raise NotARelease(
            f"this frame is no longer the release that its record describes: {problem}. Keep the released frame "
            "and derive others from it; geodp.explain and ledger.record(label) take the record itself."
        )
    return copy.deepcopy(found)


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
    exact |= {"delta_select": _exact(charge.delta_select)} if charge.delta_select else {}
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
