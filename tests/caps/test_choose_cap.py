"""choose_cap: a release of its own, with its own entry, and nothing of the rows but the cap."""

import inspect
import json
import pickle
import warnings

import h3
import numpy as np
import pandas as pd
import pytest
from shapely import Point

import geodp
from geodp import caps, testing
from geodp.caps import ChosenCap, choose_cap

NYC = (-74.3, 40.4, -73.6, 41.0)
WHERE = {"subject": "rider", "bounds": NYC, "grid": "h3:7"}


@pytest.fixture
def ledger(tmp_path):
    return geodp.Ledger(tmp_path / "city.ledger", eps=1, delta=1e-5)


@pytest.fixture
def poisoned(monkeypatch):
    """Rows that may not be looked at any more once ``poisoned()`` was called."""

    def read(*_):
        raise AssertionError("rows were read")

    return lambda: monkeypatch.setattr(caps, "placed", read)


def cells_of_riders(trips):
    """Return distinct cells per rider by other means: h3's own function, and pandas."""
    box = trips.geometry.x.clip(NYC[0], NYC[2]), trips.geometry.y.clip(NYC[1], NYC[3])
    cell = [h3.latlng_to_cell(y, x, 7) for x, y in zip(*box, strict=True)]
    return trips.assign(cell=cell).groupby("rider")["cell"].nunique()


def test_it_finds_the_quantile_without_noise(trips):
    cells = cells_of_riders(trips)
    for quantile in (0.05, 0.24, 0.51, 0.99):
        wanted = next(c for c in range(1, 99) if (cells <= c).sum() >= quantile * len(cells))
        with testing.noiseless():
            assert choose_cap(trips, 1, range(1, 100), quantile=quantile, **WHERE) == wanted
    with testing.noiseless():
        assert choose_cap(trips, 1, (3, 5), quantile=0.9, **WHERE) == 5


def test_slots_count_as_keys(trips):
    with testing.noiseless():
        flat = choose_cap(trips, 1, range(1, 30), quantile=0.5, **WHERE)
        by_hour = choose_cap(trips, 1, range(1, 30), quantile=0.5, by={"hour": range(24)}, **WHERE)
    assert by_hour > flat


def test_a_generous_eps_is_nearly_always_right_and_a_tiny_one_is_a_lottery(trips):
    """At scale 0.0011 a candidate one person off is exp(-900) behind; at 1e-6 all 7 are alike."""
    with testing.noiseless():
        right = choose_cap(trips, 1, quantile=0.55, **WHERE)
    assert {choose_cap(trips, 1000, quantile=0.55, **WHERE) for _ in range(20)} == {right}
    # P(one given candidate in none of 400 draws) is (6/7)^400 < 1e-26.
    plan = [choose_cap(trips, 1e-6, **WHERE) for _ in range(400)]
    assert set(plan) == {1, 2, 4, 8, 16, 32, 64}


def test_the_result_is_an_int_with_a_record(trips):
    chosen = choose_cap(trips, 0.5, **WHERE)
    assert isinstance(chosen, ChosenCap)
    assert chosen.cap in chosen.candidates
    assert type(chosen.cap) is int
    assert chosen.record["cap"] == chosen
    assert chosen.record["guarantee"] == "(0.5, 0)-DP for one rider more or less"
    assert chosen.record["ledger"] is None
    assert json.loads(json.dumps(chosen.record)) == chosen.record
    assert len(json.dumps(chosen.record)) < 2000
    assert geodp.plan(1, cap=chosen, **WHERE) == geodp.plan(1, cap=chosen.cap, **WHERE)
    assert pickle.loads(pickle.dumps(chosen)).record == chosen.record
    chosen.record["cap"] = 99
    assert chosen.record["cap"] == chosen
    with pytest.raises(AttributeError, match="fixed"):
        chosen.candidates = (1,)


def test_seeded_draws_repeat_and_say_so(trips):
    def draws():
        with testing.seeded(5):
            return [choose_cap(trips, 1e-6, **WHERE) for _ in range(8)]

    assert draws() == draws()
    assert draws()[0].record["noise"] == "seeded (test)"


def test_it_has_an_entry_of_its_own_and_is_replayed_without_reading(trips, ledger, poisoned):
    chosen = choose_cap(trips, 0.25, **WHERE, ledger=ledger, label="cap 2026")
    assert ledger.spent()["eps"] == 0.25
    assert ledger.spent()["rho"] == 0.25**2 / 8
    assert ledger.verify().empty
    assert ledger.record("cap 2026")["candidates"] == [1, 2, 4, 8, 16, 32, 64]
    poisoned()
    with pytest.warns(geodp.ReplayWarning, match="data not read"):
        again = choose_cap(trips, 0.25, **WHERE, ledger=ledger, label="cap 2026")
    assert (again, again.record) == (chosen, chosen.record)
    with pytest.raises(geodp.LedgerError, match="other arguments"):
        choose_cap(trips, 0.25, (1, 2), **WHERE, ledger=ledger, label="cap 2026")
    with pytest.raises(geodp.LedgerError, match="other arguments"):
        choose_cap(trips, 0.25, quantile=0.5, **WHERE, ledger=ledger, label="cap 2026")
    assert ledger.spent()["eps"] == 0.25


def test_a_price_that_is_too_low_is_refused(trips, ledger, monkeypatch):
    from geodp.accounting import Charge
    from geodp.quantiles import Selection

    monkeypatch.setattr(Selection, "charge", property(lambda self: Charge(self.eps / 2)))
    with pytest.raises(geodp.LedgerError, match="costs"):
        choose_cap(trips, 0.25, **WHERE, ledger=ledger, label="cheap")
    assert ledger.releases().empty


def test_what_does_not_fit_is_refused_before_rows_are_read(trips, ledger, poisoned):
    poisoned()
    with pytest.raises(geodp.BudgetExceeded):
        choose_cap(trips, 2, **WHERE, ledger=ledger, label="a")
    assert ledger.releases().empty


def test_inside_testing_no_ledger_is_touched(trips, ledger):
    with testing.noiseless(), pytest.raises(ValueError, match="never put into a ledger"):
        choose_cap(trips, 0.1, **WHERE, ledger=ledger, label="a")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"candidates": np.array([1, 2])}, TypeError, "candidates"),
        ({"candidates": pd.Series([1, 2])}, TypeError, "candidates"),
        ({"candidates": ()}, ValueError, "candidates"),
        ({"candidates": (2, 1)}, ValueError, "rise"),
        ({"candidates": (1, 1)}, ValueError, "rise"),
        ({"candidates": (0, 1)}, ValueError, "at least 1"),
        ({"candidates": (1.0, 2)}, TypeError, "int"),
        ({"candidates": range(1, 200)}, ValueError, "100"),
        ({"quantile": 0}, ValueError, "quantile"),
        ({"quantile": 1}, ValueError, "quantile"),
        ({"quantile": float("nan")}, ValueError, "quantile"),
        ({"eps": 0}, ValueError, "eps"),
        ({"eps": True}, TypeError, "eps"),
        ({"subject": None}, ValueError, "subject"),
        ({"subject": geodp.EACH_ROW}, ValueError, "subject"),
        ({"subject": "nobody"}, ValueError, "nobody"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_spent(trips, ledger, change, error, text):
    arguments = {"eps": 0.1, **WHERE, "ledger": ledger, "label": "a", **change}
    with pytest.raises(error, match=text):
        choose_cap(trips, **arguments)
    assert ledger.releases().empty


def test_a_budget_of_a_series_is_refused(trips, ledger):
    with pytest.raises(TypeError, match="chosen once"):
        choose_cap(trips, ledger.split(3), **WHERE)


def test_everything_but_the_cap_is_the_same_whatever_the_rows(trips):
    empty, one = trips.iloc[:0], trips.iloc[:1].copy()
    one.geometry = [Point(float("nan"), float("nan"))]
    seen = []
    for rows in (trips, empty, one):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record = choose_cap(rows, 0.1, **WHERE).record
        record.pop("cap")
        record.pop("seal")
        seen.append((record, [str(w.message) for w in caught]))
    assert seen[0] == seen[1] == seen[2]


def test_signature_starts_as_in_the_rules():
    assert list(inspect.signature(geodp.choose_cap).parameters)[:3] == ["gdf", "eps", "candidates"]
