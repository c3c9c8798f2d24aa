"""A ledger as its users see it: terms, debits, replays, refusals, statements."""

import hashlib
import json
import math
import pickle
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geodp import ledger as module
from geodp import tables
from geodp.accounting import NOTHING, Charge
from geodp.blobs import pack, unpack
from geodp.errors import BudgetExceeded, IncompleteRelease, LedgerError
from geodp.ledger import Ledger, default_ledger, require_ledger

TENTH = Charge(Fraction(1, 10))
COLUMNS = {
    "count": np.array([3, 0, 5]),
    "noisy_count": np.array([4, -2, 5]),
    "lower": np.array([-8.0, np.nan, np.inf]),
    "edge": np.array([True, False, True]),
}


@pytest.fixture
def ledger(path):
    return Ledger(path, eps=3, delta=1e-5)


def fingerprint(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def release(ledger, label, charge=TENTH, key="{}", columns=COLUMNS, **more):
    return ledger.store(ledger.debit(label, key, charge, {}, **more), columns)


# --- terms -------------------------------------------------------------------------------------------


def test_a_ledger_is_opened_again_by_its_path(path):
    made = Ledger(path, eps=3, delta=1e-5, unit="rider", neighboring="replace_one", control="DPIA-2026-14")
    again = Ledger(str(path))
    assert again.ceiling == made.ceiling
    assert (again.unit, again.neighboring, again.control) == ("rider", "replace_one", "DPIA-2026-14")
    assert repr(again) == repr(made)


def test_repeating_the_terms_is_fine_however_they_are_written(path):
    Ledger(path, eps=3, delta=1e-5, tiers={"public": 0.1, "partner": "0.5"}, population=50_000)
    Ledger(path, eps="3.0", delta=Fraction(1, 10**5), tiers={"partner": Fraction(1, 2), "public": "1e-1"})


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("eps", 5, "eps 3, not 5"),
        ("delta", 1e-6, "delta 1e-05, not 1e-06"),
        ("accountant", "basic", "accountant 'both', not 'basic'"),
        ("selection", 1e-6, "selection 0, not 1e-06"),
        ("unit", "driver", "unit 'rider', not 'driver'"),
        ("neighboring", "replace_one", "neighboring 'add_remove_one', not 'replace_one'"),
        ("control", "other", "control None, not 'other'"),
        ("max_eps_per_release", 2, "max_eps_per_release 1, not 2"),
        ("population", 1000, "population None, not 1000"),
        ("tiers", {"a": 1}, "tiers {}, not {a: 1}"),
    ],
)
def test_a_mismatch_names_the_field_and_both_values(path, field, value, shown):
    Ledger(path, eps=3, delta=1e-5, unit="rider", max_eps_per_release=1)
    with pytest.raises(LedgerError, match="ledger was created with") as error:
        Ledger(path, **{field: value})
    assert shown in str(error.value)


@pytest.mark.parametrize(
    ("terms", "error", "says"),
    [
        ({"eps": 0}, ValueError, "eps must be greater than 0"),
        ({"eps": "lots"}, ValueError, "eps must be a number"),
        ({"eps": True}, TypeError, "eps must be a number"),
        ({"eps": 1, "delta": 0.01}, ValueError, "swapped"),
        ({"eps": 1, "delta": 1e-3, "population": 1000}, ValueError, r"delta_for\(1000\)"),
        ({"eps": 1, "delta": 1e-5, "population": 0}, ValueError, "population must be"),
        ({"eps": 1, "accountant": "pld"}, ValueError, "accountant must be"),
        ({"eps": 1, "neighboring": "swap"}, ValueError, "neighboring must be"),
        ({"eps": 1, "unit": "two\nlines"}, ValueError, "unit must be a printable"),
        ({"eps": 1, "max_eps_per_release": -1}, ValueError, "max_eps_per_release must be greater"),
        ({"eps": 1, "tiers": {"a": 0.1, "b": "1/10"}}, ValueError, "tiers must differ"),
        ({"eps": 1, "tiers": [0.1]}, TypeError, "tiers must map"),
    ],
)
def test_terms_that_make_no_sense_make_no_file(path, terms, error, says):
    with pytest.raises(error, match=says):
        Ledger(path, **terms)
    assert not path.exists()


@pytest.mark.parametrize("place", [":memory:", "mysql://host/db", "sqlite:///x.db"])
def test_places_that_are_no_ledger(place):
    with pytest.raises(ValueError, match="ledger"):
        Ledger(place, eps=1)


@pytest.mark.parametrize("place", [None, 3, b"x", ""])
def test_a_place_is_a_path_or_a_url(place):
    with pytest.raises((TypeError, ValueError), match="path or a postgresql"):
        Ledger(place, eps=1)


def test_a_wrong_path_does_not_make_a_fresh_budget(path):
    with pytest.raises(LedgerError, match=r"there is no ledger at .*city.ledger. Create one"):
        Ledger(path)
    assert not path.exists()


# --- debits ------------------------------------------------------------------------------------------


def test_opendp_2131_ten_tenths_and_not_eleven(path):
    ledger = Ledger(path, eps=1.0)
    for night in range(10):
        release(ledger, f"night {night}")
    with pytest.raises(BudgetExceeded):
        release(ledger, "night 10")
    assert ledger.spent()["eps"] == 1.0
    assert ledger.remaining()["eps"] == 0.0


def test_the_refusal_says_what_is_held_spent_left_and_asked(path):
    ledger = Ledger(path, eps=3)
    ledger.debit("a", "{}", Charge(Fraction(5, 2)), {})
    with pytest.raises(BudgetExceeded) as error:
        ledger.debit("b", "{}", Charge(Fraction(1)), {})
    assert str(error.value) == (
        "city.ledger holds eps 3; spent 2.5, left 0.5, asked 1. "
        "Nothing was released or spent. Fits: eps <= 0.5."
    )
    assert error.value.spent["eps"] == 2.5
    assert error.value.left["eps"] == 0.5
    assert error.value.asked == {"eps": 1.0, "delta": 0.0, "rho": 0.5}


def test_the_refusal_speaks_for_both_books(ledger):
    ledger.debit("a", "{}", Charge(Fraction(5, 2), Fraction(1, 10**6), Fraction(1, 5)), {})
    with pytest.raises(
        BudgetExceeded, match=r"holds eps 3; .* Its zCDP book holds rho 0.210876; spent 0.2"
    ) as e:
        ledger.check(Charge(Fraction(1), Fraction(1, 10**6), Fraction(1, 20)))
    assert str(e.value).endswith("Fits: eps <= 0.5, or rho <= 0.0108765.")
    with pytest.raises(BudgetExceeded, match="holds delta 5e-06; spent 1e-06, left 4e-06, asked 5e-06"):
        ledger.check(Charge(Fraction(1, 4), Fraction(5, 10**6)))


@settings(max_examples=40)
@given(st.fractions(min_value=Fraction(1, 100), max_value=3))
def test_what_fits_according_to_the_refusal_does_fit(folder, first):
    ledger = Ledger(folder / f"{uuid4()}.ledger", eps=3, delta=1e-5)
    ledger.debit("a", "{}", Charge(first), {})
    with pytest.raises(BudgetExceeded) as error:
        ledger.check(Charge(Fraction(4)))
    said = str(error.value).rpartition("Fits: eps <= ")[2].rstrip(".")
    if said and "more fits" not in said:
        ledger.check(Charge(Fraction(said)))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("b", "{}", Charge(Fraction(4)), {}), BudgetExceeded),
        (("a", "{}", TENTH, {}), IncompleteRelease),
        (("a", '{"cap": 5}', TENTH, {}), LedgerError),
        (("done", "{}", TENTH, {}), LedgerError),
        (("b", "{}", TENTH, {"unit": "driver"}), LedgerError),
        (("b", "{}", TENTH, {"neighboring": "replace_one"}), LedgerError),
        (("b", "{}", TENTH, {"x": math.nan}), ValueError),
        (("b", "{}", NOTHING, {}), ValueError),
        (("b", "{}", 0.1, {}), TypeError),
        (("", "{}", TENTH, {}), ValueError),
        (("two\nlines", "{}", TENTH, {}), ValueError),
        (("nul\0", "{}", TENTH, {}), ValueError),
        (("lone \ud800", "{}", TENTH, {}), ValueError),
        ((" outer ", "{}", TENTH, {}), ValueError),
        (("x" * 201, "{}", TENTH, {}), ValueError),
        ((None, "{}", TENTH, {}), TypeError),
    ],
)
def test_pipelinedp_164_pydp_263_a_refused_release_leaves_the_file_byte_identical(path, arguments, error):
    ledger = Ledger(path, eps=3, unit="rider")
    ledger.debit("a", "{}", TENTH, {})
    release(ledger, "done")
    before, spent = fingerprint(path), ledger.spent()
    with pytest.raises(error):
        ledger.debit(*arguments)
    assert fingerprint(path) == before
    assert ledger.spent() == spent
    assert list(path.parent.iterdir()) == [path]  # no journal left


def test_pipelinedp_164_what_fails_after_the_debit_stays_spent(ledger):
    entry = ledger.debit("a", "{}", TENTH, {})
    with pytest.raises(TypeError, match="bools, ints, floats or texts"):
        ledger.store(entry, {"count": np.array([object()])})
    assert ledger.spent()["eps"] == 0.1
    with pytest.raises(IncompleteRelease):
        ledger.stored("a", "{}")


def test_an_interrupt_before_the_commit_spends_nothing(ledger, path, monkeypatch):
    before = fingerprint(path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "reserve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.debit("a", "{}", TENTH, {})
    monkeypatch.undo()
    assert fingerprint(path) == before
    assert ledger.debit("a", "{}", TENTH, {}) == 1


# --- controls ----------------------------------------------------------------------------------------


def test_no_single_release_may_cost_more_than_the_control_allows(path):
    ledger = Ledger(path, eps=3, control="DPIA-2026-14", max_eps_per_release=1)
    assert release(ledger, "a", Charge(Fraction(1)))["control"] == "DPIA-2026-14"
    with pytest.raises(BudgetExceeded) as error:
        ledger.check(Charge(Fraction("1.01")))
    assert str(error.value) == (
        "city.ledger allows at most eps 1 for one release (control DPIA-2026-14), asked 1.01. "
        "Nothing was released or spent."
    )
    with pytest.raises(ValueError, match="at most eps 1 for one release"):
        ledger.split(1)
    assert ledger.split(2).eps == 1


def test_tiers_fix_the_eps_of_a_release(path):
    ledger = Ledger(path, eps=3, tiers={"public": 0.1, "partner": 0.5})
    assert ledger.tiers == {"public": Fraction(1, 10), "partner": Fraction(1, 2)}
    assert release(ledger, "a", Charge(ledger.tiers["partner"]))["tier"] == "partner"
    assert ledger.releases()["tier"].tolist() == ["partner"]
    with pytest.raises(
        BudgetExceeded, match=r"allows a release eps 0.1 \(public\) or 0.5 \(partner\), asked 0.2"
    ):
        ledger.debit("b", "{}", Charge(Fraction(1, 5)), {})


def test_a_reviewers_reason_is_kept(ledger):
    assert release(ledger, "a", reason="asked for by the council")["reason"] == "asked for by the council"
    assert ledger.record("a")["ledger"]["reason"] == "asked for by the council"
    assert ledger.releases()["reason"].tolist() == ["asked for by the council"]


def test_the_policy_is_compared(path):
    ledger = Ledger(path, eps=3, unit="rider")
    ledger.check_policy(unit="rider", neighboring="add_remove_one")
    with pytest.raises(LedgerError, match="is kept for unit 'rider', the release is for 'row'"):
        ledger.check_policy(unit="row", neighboring="add_remove_one")


# --- labels and replays ------------------------------------------------------------------------------


def test_a_label_is_released_once_and_replayed_for_nothing(ledger, path):
    part = release(ledger, "2026-11-30 nightly", key='{"cap": 4}')
    before = fingerprint(path)
    stored = Ledger(path).stored("2026-11-30 nightly", '{"cap": 4}')
    assert stored.entry == part
    assert list(stored.columns) == list(COLUMNS)
    for name, values in COLUMNS.items():
        assert stored.columns[name].dtype == values.dtype
        np.testing.assert_array_equal(stored.columns[name], values)
    assert fingerprint(path) == before
    assert ledger.stored("another", "{}") is None


def test_the_file_itself_refuses_a_label_or_an_entry_that_serves_twice(ledger, path):
    """Whatever program writes it: one label is one release, and one debit pays for one."""
    release(ledger, "a")
    release(ledger, "b")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    for change in (
        "label = 'a' WHERE label = 'b'",
        "entry = 1 WHERE label = 'b'",
        "entry = 99",
        "state = 'free'",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"UPDATE geodp_releases SET {change}")
        connection.rollback()
    connection.close()
    assert ledger.verify()["problem"].str.contains("paid for").sum() == 0


def test_the_same_label_with_other_arguments_is_an_error(ledger):
    release(ledger, "a", key='{"cap": 4, "eps": "1"}')
    with pytest.raises(LedgerError, match=r"has 'a' with other arguments \(cap\). Use a new label"):
        ledger.stored("a", '{"cap": 5, "eps": "1"}')
    with pytest.raises(LedgerError, match=r"has 'a' with other arguments\. Use"):
        ledger.stored("a", "not json")


def test_a_label_left_incomplete_is_paid_again_on_request_only(ledger):
    first = ledger.debit("a", "{}", TENTH, {})
    with pytest.raises(IncompleteRelease, match=r"'a' was paid for at .*Z \(entry 1\)"):
        ledger.stored("a", "{}")
    assert ledger.stored("a", "{}", retry=True) is None
    second = ledger.debit("a", "{}", TENTH, {}, retry=True)
    assert ledger.spent()["eps"] == 0.2
    assert ledger.releases()["state"].tolist() == ["abandoned", "reserved"]
    with pytest.raises(LedgerError, match=r"entry 1 .* replaced by a retry"):
        ledger.store(first, COLUMNS)  # the slow first attempt must not be handed out as well
    ledger.store(second, COLUMNS)
    assert ledger.stored("a", "{}", retry=True).entry["entry"] == 2
    with pytest.raises(LedgerError, match="holds the release 'a' already"):
        ledger.debit("a", "{}", TENTH, {}, retry=True)
    with pytest.raises(LedgerError, match="was stored before"):
        ledger.store(second, COLUMNS)


@pytest.mark.parametrize(
    "label", ["'); DROP TABLE geodp_entries; --", 'a" OR "1"="1', ":entry", "%s {0} ?", "Zürich ⌂"]
)
def test_a_label_is_only_ever_a_name(ledger, label):
    release(ledger, label, key=label)
    assert ledger.stored(label, label).entry["label"] == label
    assert ledger.releases()["label"].tolist() == [label]
    assert ledger.stored("' OR ''='", "{}") is None


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
        st.one_of(
            st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9).map(lambda v: np.array(v, "int64")),
            st.lists(st.floats(), max_size=9).map(lambda v: np.array(v, "float64")),
            st.lists(st.booleans(), max_size=9).map(lambda v: np.array(v, "bool")),
            st.lists(st.integers(0, 255), max_size=9).map(lambda v: np.array(v, "uint8")),
            st.lists(st.floats(width=32), max_size=9).map(lambda v: np.array(v, ">f4")),
            st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=9).map(
                lambda v: np.array(v, dtype=object)
            ),
        ),
        max_size=5,
    )
)
def test_columns_come_back_bit_for_bit(columns):
    back = unpack(pack(columns))
    assert list(back) == list(columns)
    for name, values in columns.items():
        assert back[name].dtype == values.dtype.newbyteorder("=")
        if values.dtype != object:
            values = values.astype(values.dtype.newbyteorder("="))
            assert back[name].tobytes() == values.tobytes()
        assert len(back[name]) == len(values)


@pytest.mark.parametrize("blob", [b"", b"nonsense", pack({})[:-2], pack({"a": np.array([1])})[:-9]])
def test_damaged_columns_are_refused(blob):
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(blob)


def test_columns_have_one_dimension():
    with pytest.raises(ValueError, match="one dimension"):
        pack({"a": np.zeros((2, 2))})


# --- statements --------------------------------------------------------------------------------------


def test_the_frame_of_releases_has_the_same_dtypes_when_empty(ledger):
    empty = ledger.releases()
    release(ledger, "a")
    ledger.debit("b", "{}", Charge(Fraction(1), Fraction(1, 10**6)), {})
    full = ledger.releases()
    pd.testing.assert_series_equal(empty.dtypes, full.dtypes)
    assert empty.index.dtype == full.index.dtype == "int64"
    assert full.index.tolist() == [1, 2]
    assert full["state"].tolist() == ["released", "reserved"]
    assert full["eps_spent"].tolist() == [0.1, 1.1]
    assert math.isinf(full.loc[2, "rho_spent"])
    assert str(full["time"].dt.tz) == "UTC"


def test_the_record_is_what_was_debited_and_the_ledgers_part(ledger):
    entry = ledger.debit("a", "{}", TENTH, {"cap": 4, "mechanism": "laplace"})
    part = ledger.store(entry, COLUMNS)
    assert ledger.record("a") == {"cap": 4, "mechanism": "laplace", "ledger": part}
    assert part["spent"] == {"eps": 0.1, "delta": 0, "rho": 0.005}
    assert part["ceiling"] == {"eps": 3, "delta": 1e-05, "rho": 0.21087653642928464}
    assert len(json.dumps(part)) < 600
    with pytest.raises(LedgerError, match="has no release 'b'"):
        ledger.record("b")


def test_a_clock_that_was_set_back_changes_nothing(ledger, monkeypatch):
    release(ledger, "a")
    monkeypatch.setattr(tables, "now", lambda: "1999-01-01T00:00:00.000000Z")
    release(ledger, "b")
    monkeypatch.undo()
    release(ledger, "c")
    assert ledger.releases()["label"].tolist() == ["a", "b", "c"]
    assert ledger.spent()["eps"] == 0.3
    assert ledger.verify()["problem"].str.contains("measurements").all()


def test_the_repr_shows_path_ceiling_and_spend(ledger, path):
    release(ledger, "a")
    assert repr(ledger) == (
        "Ledger('city.ledger', eps=3, delta=1e-05, accountant='both'): "
        "spent eps 0.1, delta 0, rho 0.005; 1 debit"
    )
    path.unlink()
    assert repr(ledger).endswith("cannot be read")


def test_a_pickled_ledger_is_its_path(ledger, path):
    release(ledger, "a")
    again = pickle.loads(pickle.dumps(ledger))
    assert again.spent() == ledger.spent()
    assert again.stored("a", "{}") is not None


def test_a_file_swapped_for_another_ledger_is_noticed(ledger, path):
    path.unlink()
    Ledger(path, eps=3, delta=1e-5)
    with pytest.raises(LedgerError, match="is not the ledger that was opened"):
        ledger.debit("a", "{}", TENTH, {})
    with pytest.raises(LedgerError, match="is not the ledger that was opened"):
        ledger.spent()


def test_the_plot_shows_shares_of_the_ceilings(path):
    pytest.importorskip("matplotlib").use("Agg")
    for number, terms in enumerate([{"delta": 1e-5}, {}, {"delta": 1e-5, "accountant": "zcdp"}]):
        ledger = Ledger(path.with_name(f"{number}.ledger"), eps=3, **terms)
        ledger.plot()
        ledger.debit("a", "{}", Charge(Fraction(1, 10), Fraction(0), Fraction(1, 200)), {})
        labels = [line.get_label() for line in ledger.plot().get_lines()]
        assert labels[:-1] == [["eps", "delta", "rho"], ["eps"], ["rho"]][number]
    pytest.importorskip("matplotlib.pyplot").close("all")


# --- require_ledger ----------------------------------------------------------------------------------


def test_unledgered_releases_become_an_error(monkeypatch, ledger, path):
    monkeypatch.delenv("GEODP_LEDGER", raising=False)
    monkeypatch.setattr(module, "_required", False)
    assert default_ledger() is None
    require_ledger()
    with pytest.raises(LedgerError, match="names no ledger, and one is required"):
        default_ledger()
    monkeypatch.setenv("GEODP_LEDGER", str(path))
    assert default_ledger().name == "city.ledger"
    require_ledger(False)
    assert default_ledger().name == "city.ledger"
    monkeypatch.setenv("GEODP_LEDGER", str(path) + ".gone")
    with pytest.raises(LedgerError, match="there is no ledger at"):
        default_ledger()


# --- threads -----------------------------------------------------------------------------------------


def test_a_debit_that_waited_sees_what_was_spent_meanwhile(ledger, path):
    """It asks for the lock while somebody else holds it, and must not go by what it had read before."""
    most = Charge(Fraction(2))
    with ThreadPoolExecutor(1) as pool:
        with ledger._storage.transaction(write=True) as connection:
            waiting = pool.submit(Ledger(path).debit, "late", "{}", most, {})
            while not waiting.running():
                time.sleep(0.01)
            time.sleep(0.2)
            row = {"label": "first", "record": "{}", "reason": None}
            number = tables.append(ledger._storage, connection, ledger._terms, row, most)
            tables.reserve(connection, "first", "{}", number)
        with pytest.raises(BudgetExceeded):
            waiting.result()
    assert ledger.spent()["eps"] == 2


@settings(max_examples=12)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=24), st.booleans())
def test_threads_share_one_budget(folder, hundredths, gaussian):
    ledger = Ledger(folder / f"{uuid4()}.ledger", eps=1, delta=1e-5)

    def charge(n):
        return (
            Charge(Fraction(n, 100), Fraction(n, 10**8), Fraction(n, 2000))
            if gaussian
            else Charge(Fraction(n, 100))
        )

    def attempt(job):
        try:
            return ledger.debit(f"release {job[0]}", "{}", charge(job[1]), {})
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(4) as pool:
        entries = list(pool.map(attempt, enumerate(hundredths)))
    won = [charge(n) for n, entry in zip(hundredths, entries, strict=True) if entry is not None]
    assert sorted(entry for entry in entries if entry is not None) == list(range(1, len(won) + 1))
    total = sum(won, NOTHING)
    assert ledger.spent()["eps"] == float(total.eps)
    assert total == NOTHING or ledger.ceiling.allows(total)
    for n, entry in zip(hundredths, entries, strict=True):
        assert entry is not None or not ledger.ceiling.allows(total + charge(n))


def test_threads_with_one_label_pay_once(ledger):
    def attempt(_):
        try:
            return ledger.debit("the same", "{}", TENTH, {})
        except IncompleteRelease:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert [entry for entry in pool.map(attempt, range(16)) if entry] == [1]
    assert ledger.spent()["eps"] == 0.1
