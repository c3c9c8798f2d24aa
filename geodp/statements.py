"""Statements of account: what a ledger shows to people, from its rows alone."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from geodp import tables
from geodp.accounting import Ceiling, Charge, amount, amounts, down, up
from geodp.exact import plain
from geodp.terms import Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["describe", "draw", "ledger_part", "metric_amounts", "release_frame"]


def describe(name: str, held: Ceiling) -> str:
    """Return the ledger's ceiling in one line, as its repr begins."""
    amounts_held = f"eps={amount(held.eps)}, delta={amount(held.delta)}"
    return f"Ledger({name!r}, {amounts_held}, accountant={held.accountant!r})"


def ledger_part(name: str, terms: Terms, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ledger's part of a record, from the entry alone, so that a replay repeats it."""
    total = json.loads(row["total"])
    spent = {"metric_spent": _finite(metric_amounts(tables.metric_of(total)))}
    part = {
        "name": name,
        "id": terms.identity,
        "entry": row["id"],
        "label": row["label"],
        "time": row["time"],
        **(spent if row["kind"] == tables.METRIC else _books(terms.ceiling, Charge.from_dict(total))),
        "control": terms.control,
        "tier": row["tier"],
        "reason": row["reason"],
    }
    return {field: value for field, value in part.items() if value is not None}


def metric_amounts(metric: Fraction) -> dict[str, float]:
    """Return what is allowed per kilometre, for people, rounded up."""
    return {"eps_per_km": up(metric)}


def release_frame(rows: list[dict[str, Any]], states: Mapping[int, str]) -> pd.DataFrame:
    """Return one row for each entry; the dtypes are the same when there are none."""
    texts = {name: [row[name] for row in rows] for name in ("label", "kind", "tier", "reason")}
    texts["state"] = [states.get(row["id"], "abandoned") for row in rows]
    columns: dict[str, Any] = {
        name: pd.array(texts[name], dtype="string") for name in ("label", "kind", "state", "tier", "reason")
    }
    columns["time"] = _times([row["time"] for row in rows])
    for field, suffix in (("charge", ""), ("total", "_spent")):
        costs = [_cost(json.loads(row[field])) for row in rows]
        for name in ("eps", "delta", "rho", "eps_per_km"):
            values = [cost.get(name, math.nan) for cost in costs]
            columns[f"{name}{suffix}"] = pd.Series(values, dtype="float64").array
    index = pd.Index([row["id"] for row in rows], dtype="int64", name="entry")
    return pd.DataFrame(columns, index=index)


def _times(texts: list[str]) -> pd.DatetimeIndex:
    """Return moments in microseconds: clocks can be centuries off, where nanoseconds end in 2262."""
    moments = [datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None) for text in texts]
    return pd.DatetimeIndex(np.array(moments, dtype="datetime64[us]")).tz_localize("UTC")


def _cost(texts: Mapping[str, Any]) -> dict[str, float]:
    """Return a charge, a note or a total for people; a note has no eps, a charge nothing per kilometre."""
    charged = amounts(Charge.from_dict(texts)) if "eps" in texts else {}
    return charged | (metric_amounts(tables.metric_of(texts)) if "eps_per_km" in texts else {})


def _books(held: Ceiling, total: Charge) -> dict[str, Any]:
    ceiling = {"eps": down(held.eps), "delta": down(held.delta)}
    return {
        "accountant": held.accountant,
        "spent": _finite(amounts(total)),
        "ceiling": _finite(ceiling if held.rho is None else ceiling | {"rho": down(held.rho)}),
    }


def draw(releases: pd.DataFrame, held: Ceiling, name: str, ax: "Axes | None") -> "Axes":
    """Draw the share of each ceiling that was spent; by entry, since clocks can be set back."""
    import matplotlib.pyplot as plt

    axes = plt.subplots()[1] if ax is None else ax
    limits = {"eps": held.eps, "delta": held.basic_delta} if held.basic_delta is not None else {}
    for field, limit in (limits | {"rho": held.rho}).items():
        if limit:
            share = releases[f"{field}_spent"] / float(limit)
            axes.step(releases.index, share, where="post", marker=".", label=field)
    axes.axhline(1.0, color="grey", linestyle="--")
    axes.set(xlabel="ledger entry", ylabel="share of the ceiling", title=name)
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: plain(value) for name, value in values.items() if value != float("inf")}
