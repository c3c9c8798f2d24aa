"""Notes: guarantees per kilometre in the same ledger, in neither of its books."""

import json
import math
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geodp.accounting import Charge
from geodp.errors import BudgetExceeded, IncompleteRelease, LedgerError
from geodp.exact import tidy
from geodp.ledger import Ledger
from geodp.metric import GUARANTEE, metric_terms, worst_per_km

TENTH = Charge(Fraction(1, 10))
POINTS = {"lon": np.array([-9.14, math.nan, 179.9]), "lat": np.array([38.7, math.nan, -16.0])}


def terms(eps=Fraction(1, 10), reports=1, **more):
    return {"guarantee": GUARANTEE, "metric": metric_terms(Fraction(eps), reports), **more}


def noted(ledger, label, record=None, key="{}", **more):
    return ledger.store(ledger.note(label, key, record or terms(), **more), POINTS)


@pytest.fixture
def ledger(path):
    return Ledger(path, eps=3, delta=1e-5)


def altered(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)


def test_a_note_costs_nothing_in_either_book(ledger):
    ledger.debit("map", "{}", TENTH, {})
    before = ledger.spent(), ledger.remaining(), ledger.split(7)
    part = noted(ledger, "points", terms("1/3", 2))
    assert (ledger.spent(), ledger.remaining(), ledger.split(7)) == before
    assert part["metric_spent"] == {"eps_per_km": pytest.approx(2 / 3)}
    assert not {"spent", "ceiling", "accountant", "tier"} & set(part)
    ledger.debit("map 2", "{}", TENTH, {})
    assert ledger.spent()["eps"] == 0.2
    assert ledger.metric_spent() == part["metric_spent"]


def test_per_kilometre_is_added_exactly_and_shown_rounded_up(ledger):
    assert ledger.metric_spent() == {"eps_per_km": 0}
    for night in range(3):
        noted(ledger, f"night {night}", terms("0.1"))
    assert ledger.metric_spent() == {"eps_per_km": 0.3}
    noted(ledger, "third", terms("1/3", 5))
    assert Fraction(repr(ledger.metric_spent()["eps_per_km"])) >= Fraction(3, 10) + Fraction(5, 3)
    assert ledger.metric_spent()["eps_per_km"] == pytest.approx(0.3 + 5 / 3)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.fractions(min_value=Fraction(1, 10**6), max_value=1000), st.integers(1, 9)), max_size=6
    )
)
def test_the_sum_is_that_of_the_worst_of_each(folder, calls):
    ledger = Ledger(folder / f"{len(list(folder.iterdir()))}.ledger", eps=1)
    for number, (eps, reports) in enumerate(calls):
        noted(ledger, f"call {number}", terms(eps, reports))
    total = sum((eps * reports for eps, reports in calls), Fraction(0))
    found = ledger.metric_spent()["eps_per_km"]
    assert Fraction(repr(float(found))) >= total
    assert found <= math.nextafter(float(total), math.inf)
    assert ledger.verify().empty


def test_amounts_of_a_thousand_digits_are_rounded_up_and_stay_short():
    eps = Fraction(10**999 + 7, 10**998 + 9)
    assert len(json.dumps(metric_terms(eps, 3))) < 200
    assert eps < Fraction(metric_terms(eps, 3)["eps_per_km"]) < eps * (1 + Fraction(1, 10**50))
    assert 3 * eps < worst_per_km(terms(eps, 3))
    assert tidy(Fraction(1, 3)) == Fraction(1, 3)


def test_an_exhausted_ledger_still_takes_notes(path):
    ledger = Ledger(
        path, eps="0.1", control="DPIA-2026-14", max_eps_per_release="0.1", tiers={"public": "0.1"}
    )
    ledger.debit("map", "{}", TENTH, {})
    with pytest.raises(BudgetExceeded):
        ledger.debit("map 2", "{}", TENTH, {})
    part = noted(ledger, "points", terms(5, 1), reason="asked for by the council")
    assert (part["control"], part["reason"]) == ("DPIA-2026-14", "asked for by the council")
    assert ledger.verify()["entry"].tolist() == [1, 1]  # the map's own: no measurements, never stored


def test_the_unit_is_compared_and_the_relation_is_not(path):
    ledger = Ledger(path, eps=3, unit="rider", neighboring="replace_one")
    noted(ledger, "points", terms(unit="rider"))
    with pytest.raises(LedgerError, match="is kept for unit 'rider', the release is for 'driver'"):
        ledger.note("other", "{}", terms(unit="driver"))


@pytest.mark.parametrize("unit", ["r" * 150, "é" * 150, "\U0001f6b2" * 40])
def test_a_long_unit_is_the_same_however_a_record_cuts_it(path, unit):
    from geodp.wording import bounded

    ledger = Ledger(path, eps=3, unit=unit)
    for room in (200, 40, 20):
        noted(ledger, f"points {room}", terms(unit=bounded(unit, room)))
        ledger.debit(f"map {room}", "{}", TENTH, {"unit": bounded(unit, room)})
    with pytest.raises(LedgerError, match="is kept for unit"):
        ledger.note("other", "{}", terms(unit=bounded(unit + "s", 40)))


def test_a_note_is_never_a_debit_nor_a_debit_a_note(ledger, path):
    before = path.read_bytes()
    for record in (terms(), {"guarantee": GUARANTEE}, {"metric": {}}):
        with pytest.raises(ValueError, match=r"is no \(eps, delta\)"):
            ledger.debit("a", "{}", TENTH, record)
    for record in (
        {},
        {"guarantee": "(1, 0)-DP for one rider more or less"},
        {"guarantee": "(1, 0)-DP for one rider more or less", "metric": metric_terms(Fraction(1), 1)},
        {"guarantee": GUARANTEE},
        terms(reports=None),
        terms(reports=0),
        terms(eps=0),
        terms(eps=-1),
    ):
        with pytest.raises(ValueError, match="note"):
            ledger.note("a", "{}", record)
    assert path.read_bytes() == before


def test_labels_are_shared_with_debits(ledger):
    ledger.store(ledger.debit("map", "{}", TENTH, {}), {"count": np.array([1])})
    noted(ledger, "points", key='{"eps_per_km": "1"}')
    with pytest.raises(LedgerError, match="holds the release 'map' already"):
        ledger.note("map", "{}", terms())
    with pytest.raises(LedgerError, match="holds the release 'points' already"):
        ledger.debit("points", '{"eps_per_km": "1"}', TENTH, {}, retry=True)
    with pytest.raises(LedgerError, match=r"other arguments \(eps_per_km\)"):
        ledger.note("points", '{"eps_per_km": "2"}', terms())
    with pytest.raises(ValueError, match="printable"):
        ledger.note("two\nlines", "{}", terms())


def test_a_note_left_incomplete_is_noted_again_on_request_only(ledger):
    first = ledger.note("a", "{}", terms("1/2"))
    with pytest.raises(
        IncompleteRelease, match=r"'a' was noted at .*Z \(entry 1\).*retry=True notes it again"
    ):
        ledger.stored("a", "{}")
    with pytest.raises(IncompleteRelease):
        ledger.note("a", "{}", terms("1/2"))
    assert ledger.stored("a", "{}", retry=True) is None
    second = ledger.note("a", "{}", terms("1/2"), retry=True)
    with pytest.raises(LedgerError, match=r"entry 1 .* replaced by a retry"):
        ledger.store(first, POINTS)
    ledger.store(second, POINTS)
    assert ledger.metric_spent() == {"eps_per_km": 1}  # the first may be out already: both count
    assert ledger.releases()["state"].tolist() == ["abandoned", "released"]
    assert ledger.verify().empty


def test_points_come_back_bit_for_bit(ledger, path):
    part = noted(ledger, "a")
    found = Ledger(path).stored("a", "{}")
    assert found.entry == part
    for name, values in POINTS.items():
        assert found.columns[name].dtype == np.float64
        assert found.columns[name].tobytes() == values.tobytes()
    assert ledger.record("a") == {**terms(), "ledger": part}


def test_the_frame_of_releases_tells_kinds_apart(ledger):
    empty = ledger.releases()
    ledger.debit("map", "{}", TENTH, {})
    noted(ledger, "points", terms("0.5", 3))
    ledger.debit("map 2", "{}", TENTH, {})
    full = ledger.releases()
    assert (empty.dtypes == full.dtypes).all()
    assert full["kind"].tolist() == ["release", "metric", "release"]
    assert full["eps"].isna().tolist() == full["rho"].isna().tolist() == [False, True, False]
    assert full["eps_per_km"].isna().tolist() == [True, False, True]
    assert full.loc[2, "eps_per_km"] == 1.5
    assert full["eps_spent"].tolist() == [0.1, 0.1, 0.2]
    assert full["eps_per_km_spent"].tolist()[1:] == [1.5, 1.5]
    assert repr(ledger).endswith("spent eps 0.2, delta 0, rho 0.01; 2 debits, 1 note")


def test_the_plot_takes_notes(ledger):
    pytest.importorskip("matplotlib").use("Agg")
    noted(ledger, "points")
    ledger.debit("map", "{}", TENTH, {})
    assert len(ledger.plot().get_lines()) == 4  # eps, delta, rho and the ceiling
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_threads_with_one_label_note_once(ledger):
    def attempt(_):
        try:
            return ledger.note("the same", "{}", terms())
        except IncompleteRelease:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert [entry for entry in pool.map(attempt, range(16)) if entry] == [1]
    assert ledger.metric_spent() == {"eps_per_km": 0.1}


def killed_at_statement(step, ledger, label):
    """Note and store in a child that is killed as SQLite is about to run its ``step``-th statement."""
    child = os.fork()
    if child == 0:
        connect, seen = sqlite3.connect, [0]

        def counted(_):
            seen[0] += 1
            if seen[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

        def traced(*args, **kwargs):
            connection = connect(*args, **kwargs)
            connection.set_trace_callback(counted)
            return connection

        sqlite3.connect = traced
        try:
            noted(ledger, label)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_killed_at_every_statement_of_a_note(ledger):
    """Whatever the moment: noted and reserved together, or neither; never stored without a note."""
    ends, step = [], 1
    while killed_at_statement(step, ledger, f"points {step}"):
        ends.append(ledger.releases().set_index("label")["state"].get(f"points {step}", "unknown"))
        if ends[-1] == "reserved":
            with pytest.raises(IncompleteRelease):
                ledger.stored(f"points {step}", "{}")
        else:
            assert ledger.stored(f"points {step}", "{}") is None
        step += 1
    assert ends == sorted(ends, reverse=True)
    assert set(ends) == {"unknown", "reserved"}
    assert ledger.metric_spent() == {
        "eps_per_km": (ends.count("reserved") + 1) / 10
    }  # and the last, which lived
    assert ledger.spent()["eps"] == 0
    assert ledger.verify()["problem"].str.contains("no release is stored").sum() == ends.count("reserved")


# --- verify ------------------------------------------------------------------------------------------


def test_a_sound_ledger_with_notes_has_no_problems(ledger):
    noted(ledger, "a")
    noted(ledger, "b", terms("1/3", 4))
    assert ledger.verify().empty


CHEAP = '{"eps_per_km": "1/100"}'


@pytest.mark.parametrize(
    ("problem", "statement"),
    [
        ("another eps_per_km than was noted", f"UPDATE geodp_entries SET charge = '{CHEAP}' WHERE id = 2"),
        ("is not the sum", f"UPDATE geodp_entries SET charge = '{CHEAP}' WHERE id = 2"),
        ("checksum does not match", "UPDATE geodp_entries SET kind = 'release' WHERE id = 2"),
        ("cannot be read", "UPDATE geodp_entries SET kind = 'release' WHERE id = 2"),
        ("no guarantee per kilometre", "UPDATE geodp_entries SET record = '{}' WHERE id = 2"),
        ("checksum does not match", "UPDATE geodp_entries SET kind = 'metric' WHERE id = 1"),
        ("cannot be read", "UPDATE geodp_entries SET kind = 'metric' WHERE id = 1"),
        ("amounts cannot be read", "UPDATE geodp_entries SET charge = '[]' WHERE id = 2"),
        ("its release is missing", "DELETE FROM geodp_releases WHERE entry = 2"),
        ("do not match their checksum", "UPDATE geodp_releases SET data = zeroblob(9) WHERE entry = 2"),
        ("no release is stored", "UPDATE geodp_releases SET state = 'reserved' WHERE entry = 2"),
        ("entry 2 is missing", "DELETE FROM geodp_entries WHERE id = 2"),
    ],
)
def test_planted_damage_is_found(ledger, path, problem, statement):
    ledger.store(ledger.debit("map", "{}", TENTH, {}), {"count": np.array([1])})
    noted(ledger, "points", terms("1/10", 2))
    noted(ledger, "more")
    altered(path, statement)
    assert ledger.verify()["problem"].str.contains(problem).any()


def test_a_kind_that_there_is_none_of_is_refused_by_the_file(ledger, path):
    noted(ledger, "points")
    with pytest.raises(sqlite3.IntegrityError):
        altered(path, "UPDATE geodp_entries SET kind = 'free'")
