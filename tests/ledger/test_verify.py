"""Reconciliation finds what was planted, and nothing else."""

import json
import math
import sqlite3
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import geodp
from geodp.accounting import NOTHING, Charge, ceiling, split
from geodp.errors import IncompleteRelease, LedgerError, NotARelease
from geodp.ledger import Ledger
from geodp.mechanisms.calibration import rho_of, scale_for, sigma_for, sigma_for_rho
from geodp.reconcile import cost_problem, price_problem

COLUMNS = {"count": np.array([3, 0, 5]), "lower": np.array([1.5, math.nan, 0.0])}


def measurement(mechanism, cap, scale):
    return {
        "name": "count",
        "mechanism": mechanism,
        "l1": str(cap),
        "l2_squared": str(cap),
        "scale": scale,
        "size": 3,
    }


def laplace(eps="1/10", cap=4):
    return Charge(Fraction(eps)), [measurement("laplace", cap, scale_for(Fraction(cap), Fraction(eps)))]


def gaussian(eps="1/10", delta="1/1000000", cap=4):
    sigma = sigma_for(Fraction(cap), Fraction(eps), Fraction(delta))
    charge = Charge(Fraction(eps), Fraction(delta), rho_of(Fraction(cap), sigma))
    return charge, [measurement("gaussian", cap, sigma)]


@pytest.fixture
def ledger(path):
    made = Ledger(path, eps=3, delta=1e-4)
    for number, (charge, measurements) in enumerate([laplace(), gaussian(), laplace("1")]):
        record = {"charge": charge.to_dict(), "measurements": measurements}
        made.store(made.debit(f"night {number}", "{}", charge, record), COLUMNS)
    return made


def altered(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def found(ledger):
    table = ledger.verify()
    return list(zip(table["entry"], table["problem"], strict=True))


# --- costs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1, 4, 7])
@pytest.mark.parametrize("eps", ["1/10", "1", "7/3", "20"])
@pytest.mark.parametrize("delta", ["1/100000", "1/1000000000000"])
def test_right_prices_pass(cap, eps, delta):
    assert cost_problem(*laplace(eps, cap)) is None
    assert cost_problem(*gaussian(eps, delta, cap)) is None
    joint = [laplace(eps, cap), gaussian(eps, delta, cap)]
    assert cost_problem(joint[0][0] + joint[1][0], joint[0][1] + joint[1][1]) is None


def test_the_price_of_a_split_budget_passes():
    for held in (ceiling(3, 1e-5), ceiling(3, 1e-5, "basic"), ceiling(3, 1e-5, "zcdp"), ceiling(3)):
        for k in (1, 2, 50, 365):
            budget = split(held, NOTHING, k)
            if budget.mechanism == "laplace":
                scale = scale_for(Fraction(4), budget.eps)
                assert cost_problem(Charge(budget.eps), [measurement("laplace", 4, scale)]) is None
                continue
            sigma = sigma_for_rho(Fraction(4), budget.rho)
            charge = Charge(budget.eps, budget.delta, rho_of(Fraction(4), sigma))
            assert cost_problem(charge, [measurement("gaussian", 4, sigma)]) is None


@pytest.mark.parametrize("made", [laplace, gaussian])
def test_noise_that_is_a_millionth_too_small_is_found(made):
    charge, (one,) = made()
    assert cost_problem(charge, [one | {"scale": one["scale"] * (1 - 1e-6)}])
    assert cost_problem(charge, [one | {"l1": "4.00001", "l2_squared": "4.00001"}])
    assert cost_problem(charge, [one, one])


def test_a_laplace_paid_in_rho_alone_is_found():
    """Its rho is right, and its eps a tenth of what the noise costs."""
    charge, measurements = laplace()
    cheap = Charge(charge.eps / 10, Fraction(0), charge.rho)
    assert "charged eps 0.01, costs 0.1" in cost_problem(cheap, measurements)


def test_a_gaussian_paid_in_eps_or_rho_alone_is_found():
    charge, measurements = gaussian()
    assert "delta" in cost_problem(Charge(charge.eps, Fraction(0), charge.rho), measurements)
    assert "rho" in cost_problem(Charge(charge.eps, charge.delta, charge.rho / 2), measurements)
    select = Charge(charge.eps, charge.delta, charge.rho, charge.delta / 2)
    assert "delta" in cost_problem(select, measurements)  # selection's half cannot pay for the noise


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("cap", [1, 4, 16])
def test_the_choice_of_cells_has_a_price_of_its_own(cap, rows, mechanism, neighboring):
    plan = geodp.plan(
        1,
        1e-6,
        subject="rider",
        cap=cap,
        rows_per_cell=rows,
        bounds=(-74.3, 40.4, -73.6, 41.0),
        grid="h3:8",
        cells="select",
        mechanism=mechanism,
        neighboring=neighboring,
    )
    record = plan.to_dict()
    assert price_problem(plan.charge, record) is None
    lower = record | {"threshold": record["threshold"] - 1}
    assert "choice of cells" in price_problem(plan.charge, lower)
    assert "choice of cells" in price_problem(Charge(1, plan.delta, plan.charge.rho, 0), record)


def test_a_ledger_refuses_a_selection_below_its_price(tmp_path):
    plan = geodp.plan(
        1, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8", cells="select"
    )
    held = Ledger(tmp_path / "city.ledger", eps=3, delta=1e-5, unit="rider")
    cheap = plan.to_dict() | {"threshold": 12}
    with pytest.raises(LedgerError, match="choice of cells"):
        held.debit("tonight", plan.key, plan.charge, cheap)
    assert held.spent()["eps"] == 0


# --- the ledger itself -------------------------------------------------------------------------------


def test_a_sound_ledger_has_no_problems(ledger):
    table = ledger.verify()
    assert table.empty
    assert table.dtypes.astype(str).tolist() == ["Int64", "string", "string"]


def test_a_retry_is_no_problem_and_an_open_reservation_is_shown(ledger):
    charge, measurements = laplace()
    record = {"measurements": measurements}
    ledger.debit("late", "{}", charge, record)
    assert found(ledger) == [(4, "paid for, but no release is stored (in progress, or stopped)")]
    ledger.store(ledger.debit("late", "{}", charge, record, retry=True), COLUMNS)
    assert ledger.verify().empty


NOTHING_SPENT = '{"eps": "0", "delta": "0", "rho": "0"}'


@pytest.mark.parametrize(
    ("entry", "problem", "statement"),
    [
        (3, "entry 2 is missing", "DELETE FROM geodp_entries WHERE id = 2"),
        (2, "its release is missing", "DELETE FROM geodp_releases WHERE entry = 2"),
        (2, "lists no measurements", "UPDATE geodp_entries SET record = '{}' WHERE id = 2"),
        (1, "checksum does not match", "UPDATE geodp_entries SET time = '1999-01-01' WHERE id = 1"),
        (3, "is not the sum", f"UPDATE geodp_entries SET total = '{NOTHING_SPENT}' WHERE id = 3"),
        (1, "do not match their checksum", "UPDATE geodp_releases SET data = zeroblob(9) WHERE entry = 1"),
        (1, "not paid by the last entry", "UPDATE geodp_releases SET label = 'other' WHERE entry = 1"),
        (1, "no release is stored", "UPDATE geodp_releases SET state = 'reserved' WHERE entry = 1"),
    ],
)
def test_planted_damage_is_found(ledger, path, entry, problem, statement):
    altered(path, "PRAGMA foreign_keys = OFF", statement)
    assert any(number == entry and problem in text for number, text in found(ledger))


@pytest.fixture
def unchecked_prices(monkeypatch):
    """Let debits through that a geodp without the check at the door would have made."""
    monkeypatch.setattr("geodp.ledger._check_price", lambda charge, record: None)


@pytest.mark.usefixtures("unchecked_prices")
def test_a_cheaper_charge_with_matching_record_is_found_by_its_measurements(path):
    ledger = Ledger(path, eps=3)
    charge, measurements = laplace("1")
    cheap = Charge(charge.eps / 2)
    ledger.store(
        ledger.debit("a", "{}", cheap, {"charge": cheap.to_dict(), "measurements": measurements}), COLUMNS
    )
    ledger.store(ledger.debit("b", "{}", cheap, {"charge": charge.to_dict(), "measurements": [{}]}), COLUMNS)
    problems = dict(found(ledger)[:1]), [text for number, text in found(ledger) if number == 2]
    assert problems[0][1].startswith("was charged rho 0.125, costs 0.")
    assert problems[1] == [
        "the record states another charge than was debited",
        "the record's measurements cannot be read",
    ]


def test_a_raised_ceiling_is_noticed_by_who_had_it_open(ledger, path):
    altered(path, "UPDATE geodp_ledger SET value = '1' WHERE name = 'eps'")
    assert any("above the ceiling" in text for _, text in found(Ledger(path)))


# --- frames ------------------------------------------------------------------------------------------


@pytest.fixture
def frame(ledger):
    made = pd.DataFrame({**COLUMNS, "geometry": ["a", "b", "c"]})
    made.attrs["geodp"] = {"ledger": ledger.record("night 1")["ledger"]}
    return made


def test_a_frame_is_compared_with_what_was_stored(ledger, frame):
    assert ledger.verify(frame).empty
    frame.loc[1, "count"] = 7
    table = ledger.verify(frame)
    assert table["problem"].tolist() == ["column 'count' differs from what was released"]
    assert (table["entry"].tolist(), table["label"].tolist()) == ([2], ["night 1"])


def test_a_frame_that_lost_rows_columns_or_its_record(ledger, frame):
    short = frame.iloc[:2].drop(columns="lower")
    assert ledger.verify(short)["problem"].tolist() == [
        "column 'count' has 2 rows, 3 were released",
        "column 'lower' is missing from the frame",
    ]
    assert ledger.verify(frame.set_index("count")).empty
    frame.attrs["geodp"] = json.loads(json.dumps(frame.attrs["geodp"]))
    frame.attrs["geodp"]["ledger"]["entry"] = 1
    assert ledger.verify(frame)["problem"].tolist() == ["the frame's record has another entry"]
    for attrs in ({}, {"geodp": None}, {"geodp": {"ledger": None}}, {"geodp": {"ledger": {"label": 3}}}):
        frame.attrs = attrs
        with pytest.raises(NotARelease, match="names no ledger label"):
            ledger.verify(frame)


def test_a_frame_of_a_label_that_was_never_stored(ledger, frame):
    ledger.debit("late", "{}", *laplace()[:1], {})
    frame.attrs["geodp"]["ledger"]["label"] = "late"
    with pytest.raises(IncompleteRelease):
        ledger.verify(frame)
