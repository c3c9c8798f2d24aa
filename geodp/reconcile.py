"""Reconciliation: whether a ledger agrees with itself, its records, and what was published.

Costs are recomputed from the measurements in each record, by the mechanisms' theorems and not by the
code that set the price. What is noted per kilometre has no price: there the terms have to agree.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely

from geodp import tables
from geodp.accounting import NOTHING, SLACK, Charge, amount
from geodp.blobs import checksum, unpack
from geodp.errors import NotARelease
from geodp.exact import UNREADABLE, sqrt_up, tidy, written
from geodp.metric import worst_per_km
from geodp.storage import Connection, Storage
from geodp.terms import Terms

if TYPE_CHECKING:
    from geodp.ledger import Stored

__all__ = ["cost_problem", "label_of", "price_problem", "verify_frame", "verify_ledger"]

Problem = tuple[int | None, str | None, str]


def verify_ledger(storage: Storage, connection: Connection, terms: Terms) -> pd.DataFrame:
    """Return every disagreement inside the ledger."""
    rows, held = tables.entries(connection), tables.releases(connection)
    problems: list[Problem] = [(None, None, line) for line in storage.check(connection)]
    problems += _chain_problems(rows, terms)
    problems += _price_problems(rows)
    problems += _match_problems(rows, held)
    problems += _blob_problems(connection, held)
    return _table(problems)


def label_of(frame: pd.DataFrame) -> str:
    """Return the ledger label that a frame's record names."""
    part = (frame.attrs.get("geodp") or {}).get("ledger")
    if not isinstance(part, Mapping) or not isinstance(part.get("label"), str):
        raise NotARelease("this frame names no ledger label; verify(frame) takes a release with its attrs.")
    return str(part["label"])


def verify_frame(frame: pd.DataFrame, stored: "Stored") -> pd.DataFrame:
    """Return every disagreement between a released frame and what is stored under its label."""
    named, held = frame.attrs["geodp"]["ledger"], stored.entry
    found = [
        f"the frame's record has another {name}" for name in ("id", "entry") if named.get(name) != held[name]
    ]
    # A joint release stores each view's columns as "view/column", and a cap that was chosen as "stage 1/cap".
    view = frame.attrs["geodp"].get("joint", {}).get("view", "")
    if frame.attrs["geodp"].get("query") == "perturb":
        frame = _positions(frame)
    for name, values in stored.columns.items():
        part, _, column = name.rpartition("/")
        problem = _column_problem(frame, column, values) if part == view else None
        found += [problem] if problem else []
    return _table([(held["entry"], held["label"], problem) for problem in found])


def cost_problem(charge: Charge, measurements: Iterable[Mapping[str, Any]]) -> str | None:
    """Return what is wrong with the price of these measurements; None if it is right.

    With eps_l the sum of l1/b over the Laplace parts, eps_x that of reach/b over the exponential ones and
    mu² the sum of l2²/sigma² over the Gaussian ones, the release is (eps_l + eps_x + e, delta(mu, e))-DP for
    every e (Balle and Wang 2018) and (eps_l²/2 + eps_x²/8 + mu²/2)-zCDP (Cesar and Rogers 2021).
    """
    eps_l, eps_x, mu_squared = Fraction(0), Fraction(0), Fraction(0)
    for one in measurements:
        scale = written(one["scale"])
        if one["mechanism"] == "gaussian":
            mu_squared += written(one["l2_squared"]) / scale**2
        elif one["mechanism"] == "exponential":
            eps_x += written(one["l1"]) / scale
        else:
            eps_l += written(one["l1"]) / scale
    rho = (eps_l**2 + eps_x**2 / 4 + mu_squared) / 2
    eps = eps_l + eps_x
    if charge.rho is not None and charge.rho < rho:
        return f"was charged rho {amount(charge.rho)}, costs {amount(rho)}"
    if charge.eps < eps:
        return f"was charged eps {amount(charge.eps)}, costs {amount(eps)}"
    return _delta_problem(charge, charge.eps - eps, mu_squared)


def price_problem(charge: Charge, record: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the price of a recorded release, the choice of its rows included."""
    measurements: list[Mapping[str, Any]] = record.get("measurements") or []
    problem = cost_problem(charge, measurements)
    if problem is not None or record.get("cells") != "select":
        return problem
    return _selection_problem(charge, record, measurements[0])


def _selection_problem(charge: Charge, record: Mapping[str, Any], count: Mapping[str, Any]) -> str | None:
    """Recompute the probability that a key which one subject alone is in passes the threshold.

    1 - (1 - P(m + X >= T))^c' over the c' keys of the subject, m rows in each; PRIVACY.md has the proof.
    """
    from geodp.mechanisms.laws import law_of

    law = law_of(count["mechanism"], float(count["scale"]))
    keys, reach = min(record["cap"], count["size"]), record["threshold"] - record["rows_per_cell"]
    one = float(law.sf(reach - 1))
    costs = -math.expm1(keys * math.log1p(-one)) if one < 1 else 1.0
    if Fraction(costs) > charge.delta_select * SLACK:
        return f"was charged delta {amount(charge.delta_select)} for its choice of cells, costs {costs:.6g}"
    return None


def _delta_problem(charge: Charge, eps: Fraction, mu_squared: Fraction) -> str | None:
    from geodp.mechanisms.calibration import gaussian_delta

    if mu_squared == 0:
        return None
    asked = charge.delta - charge.delta_select
    costs = gaussian_delta(sqrt_up(mu_squared), 1, eps) if eps > 0 else 1.0
    if Fraction(costs) > asked * SLACK:
        return f"was charged delta {amount(asked)}, costs {costs:.6g} at its eps"
    return None


def _chain_problems(rows: list[tables.Row], terms: Terms) -> Iterator[Problem]:
    """Numbers without gaps, checksums that follow each other, totals that are the sums."""
    before, total, metric = terms.identity, NOTHING, Fraction(0)
    for number, row in enumerate(rows, 1):
        where = (row["id"], row["label"])
        if row["id"] != number:
            yield (*where, f"entry {number} is missing")
            return
        if not _is_whole(row, before):
            yield (*where, "the entry's checksum does not match")
        try:
            charge, per_km = _cost(row)
            said = json.loads(row["total"])
            found = Charge.from_dict(said), tables.metric_of(said)
        except UNREADABLE:
            yield (*where, "the entry's amounts cannot be read")
            return
        before, total, metric = row["digest"], total + charge, tidy(metric + per_km)
        if found != (total, metric):
            yield (*where, "the running total is not the sum of the entries")
        if not terms.ceiling.allows(total):
            yield (*where, "what was spent is above the ceiling")


def _is_whole(row: tables.Row, before: Any) -> bool:
    try:
        return bool(row["digest"] == tables.digest_of(row, before))
    except UNREADABLE:  # bytes, which no entry holds
        return False


def _cost(row: tables.Row) -> tuple[Charge, Fraction]:
    """Return what an entry adds to the books, and per kilometre; each kind adds to one of them."""
    cost = json.loads(row["charge"])
    if row["kind"] == tables.METRIC:
        return NOTHING, written(cost["eps_per_km"])
    return Charge.from_dict(cost), Fraction(0)


def _price_problems(rows: list[tables.Row]) -> Iterator[Problem]:
    for row in rows:
        problems = _note_problems if row["kind"] == tables.METRIC else _debit_problems
        try:
            found = list(problems(json.loads(row["charge"]), json.loads(row["record"])))
        except UNREADABLE:
            found = ["the record or what was charged for it cannot be read"]
        for problem in found:
            yield row["id"], row["label"], problem


def _debit_problems(cost: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    charge, said = Charge.from_dict(cost), record.get("charge")
    if said is not None and Charge.from_dict(said) != charge:
        yield "the record states another charge than was debited"
    problem = _priced(charge, record)
    if problem:
        yield problem


def _note_problems(cost: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    """Compare what was noted with the guarantee that the record states; there is no (eps, delta) in it."""
    try:
        worst = worst_per_km(record)
    except UNREADABLE:
        yield "the record states no guarantee per kilometre"
        return
    if set(cost) != {"eps_per_km"}:
        yield "a note costs nothing but eps_per_km"
    if tables.metric_of(cost) != worst:
        yield "the record states another eps_per_km than was noted"


def _priced(charge: Charge, record: Mapping[str, Any]) -> str | None:
    if not record.get("measurements"):
        return "the record lists no measurements, so its cost cannot be recomputed"
    try:
        return price_problem(charge, record)
    except UNREADABLE:
        return "the record's measurements cannot be read"


def _match_problems(rows: list[tables.Row], held: list[tables.Row]) -> Iterator[Problem]:
    """Each label has one release, and it is its last entry that pays for it."""
    paying = {row["label"]: row["id"] for row in rows}
    for release in held:
        number, label = release["entry"], release["label"]
        if paying.pop(label, None) != number:
            yield number, label, "the release is not paid by the last entry of its label"
        if release["state"] == "reserved":
            yield number, label, "paid for, but no release is stored (in progress, or stopped)"
    for label, number in paying.items():
        yield number, label, "paid for, but its release is missing"


def _blob_problems(connection: Connection, held: list[tables.Row]) -> Iterator[Problem]:
    for release in held:
        if release["state"] != "released":
            continue
        stored = tables.release(connection, release["label"]) or {}
        try:
            blob = tables.data_of(stored)
            if checksum(blob) == release["digest"]:
                unpack(blob)
                continue
            problem = "the stored columns do not match their checksum"
        except UNREADABLE as error:
            problem = str(error)
        yield release["entry"], release["label"], problem


def _positions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that a ledger keeps of moved points; NaN where there is none."""
    if "geometry" not in frame.columns:
        return frame
    points = np.array(frame["geometry"].array, dtype=object)
    points[~shapely.is_valid_input(points)] = None
    return pd.DataFrame({"lon": shapely.get_x(points), "lat": shapely.get_y(points)})


def _column_problem(frame: pd.DataFrame, name: str, values: np.ndarray[Any, Any]) -> str | None:
    if name in frame.columns:
        found = frame[name].to_numpy()
    elif name in frame.index.names:
        found = frame.index.get_level_values(name).to_numpy()
    else:
        return f"column {name!r} is missing from the frame"
    if len(found) != len(values):
        return f"column {name!r} has {len(found)} rows, {len(values)} were released"
    same = (found == values) | (pd.isna(found) & pd.isna(values))
    return None if bool(np.all(same)) else f"column {name!r} differs from what was released"


def _table(problems: list[Problem]) -> pd.DataFrame:
    # In a damaged file numbers and labels can be anything.
    sound = [
        (where if isinstance(where, int) else None, label if isinstance(label, str) else None, text)
        for where, label, text in problems
    ]
    numbers, labels, texts = zip(*sound, strict=True) if sound else ((), (), ())
    return pd.DataFrame(
        {
            "entry": pd.array(list(numbers), dtype="Int64"),
            "label": pd.array(list(labels), dtype="string"),
            "problem": pd.array(list(texts), dtype="string"),
        }
    )
