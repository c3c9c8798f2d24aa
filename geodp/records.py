"""The record of a release: what an auditor needs, and nothing that depends on rows.

The plan's part is a function of the plan, so it is equal between neighbours; the ledger's part (entry,
label, time, spend, ceiling) stands apart under ``"ledger"``.
"""

from typing import TYPE_CHECKING, Any

import pandas as pd

from geodp._version import __version__
from geodp.errors import NotARelease
from geodp.exact import plain

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = ["guarantee", "plan_record", "record", "release_record"]


def plan_record(plan: "Plan") -> dict[str, Any]:
    """Return the plan's part of the record as plain JSON."""
    policy, charge = plan.policy, plan.charge
    return {
        "version": __version__,
        **plan.query.to_dict(),
        "counted": plan.query.counted(policy),
        "guarantee": guarantee(plan),
        "unit": policy.unit,
        "neighboring": policy.neighboring,
        "cap": policy.cap,
        "rows_per_cell": policy.rows_per_cell,
        "contribution": policy.contribution,
        "population": policy.population,
        "bounds": None if policy.bounds is None else policy.bounds.to_list(),
        "outside": None if policy.bounds is None else policy.outside,
        **policy.grid.to_dict(),
        "by": plan.slots.to_dict(),
        "n_cells": plan.n_cells,
        "asked": {"eps": plain(plan.eps), "delta": plain(plan.delta)},
        "spent": {"eps": plain(charge.eps), "delta": plain(charge.delta), "rho": plain(charge.rho)},
        "eps": plain(charge.eps),
        "delta": plain(charge.delta),
        "rho": plain(charge.rho),
        "mechanism": plan.mechanism,
        "scale": plan.scale,
        "std": plan.noise_std,
        "l1": plan.l1,
        "l2": plan.l2,
        "because": plan.choice.because,
        "mechanism_asked": plan.ways.mechanism,
        "criterion": plan.ways.criterion,
        "estimator": plan.estimator,
        "cells": plan.ways.cells,
        "charge": {"eps": str(charge.eps), "delta": str(charge.delta), "rho": str(charge.rho)},
        "measurements": [measurement.to_dict() for measurement in plan.measurements],
    }


def release_record(plan: "Plan", noise: str, entry: dict[str, Any] | None) -> dict[str, Any]:
    """Return the record of a released frame: the plan's part, the noise, and the ledger's part."""
    return {**plan_record(plan), "noise": noise, "ledger": entry}


def guarantee(plan: "Plan") -> str:
    """Say the guarantee as a sentence, such as ``"(1, 0)-DP for one rider more or less"``."""
    charge = plan.charge
    change = "more or less" if plan.policy.neighboring == "add_remove_one" else "replaced by another"
    return f"({plain(charge.eps)}, {plain(charge.delta)})-DP for one {plan.policy.unit} {change}"


def record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the release record of a frame, if the frame still is that release.

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
        There is no record, or columns, rows or index were changed since.
    """
    found = getattr(frame, "attrs", {}).get("geodp")
    if not isinstance(found, dict) or "guarantee" not in found:
        raise NotARelease(
            "this frame carries no geodp record. GeoParquet keeps it; other formats drop it: geodp.to_geojson "
            "writes it into GeoJSON, and ledger.record(label) always has it."
        )
    return dict(found)
