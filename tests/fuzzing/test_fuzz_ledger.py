"""Every method of a ledger, with arguments of every kind: what raises has spent nothing."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hostile import TRICKS, arguments, judged, junk, much, some
from hypothesis import given
from hypothesis import strategies as st

import geodp
from geodp.accounting import Charge
from geodp.ledger import require_ledger

TENTH = Charge(Fraction(1, 10))
RECORD = {"unit": "rider", "neighboring": "add_remove_one", "measurements": []}
METRIC = {"guarantee": "geo-indistinguishability", "metric": {"eps_per_km": "1/3", "reports": 2}}
NAMES = st.one_of(st.sampled_from(["tonight", *TRICKS]), st.integers(0, 10**9).map(str))
METHODS = {
    "check": ({"charge": TENTH}, {}),
    "check_policy": ({"unit": "rider", "neighboring": "add_remove_one"}, {}),
    "debit": (
        {"label": "a", "key": "{}", "charge": TENTH, "record": RECORD},
        {"retry": [True, False], "reason": [None, "ok", *TRICKS], "label": TRICKS, "key": TRICKS},
    ),
    "note": (
        {"label": "a", "key": "{}", "record": METRIC},
        {"retry": [True, False], "reason": [None, "ok", *TRICKS], "label": TRICKS, "key": TRICKS},
    ),
    "stored": ({"label": "a", "key": "{}"}, {"retry": [True, False], "label": TRICKS}),
    "store": ({"entry": 1, "columns": {"count": np.arange(3)}}, {"entry": [2, 10**6]}),
    "record": ({"label": "a"}, {"label": TRICKS}),
    "split": ({"k": 3}, {"l1": [4], "l2": [2]}),
    "verify": ({}, {"frame": []}),
}


@pytest.fixture(scope="module")
def book(folder):
    made = geodp.Ledger(folder / "fuzzed.ledger", eps=10**9, delta="1e-4")
    made.store(made.debit("a", "{}", TENTH, RECORD), {"count": np.arange(3)})
    made.debit("b", "{}", TENTH, RECORD)
    return made


def standing(book):
    return book.remaining(), book.metric_spent(), len(book.releases()), len(book.verify())


def used(data, book, name):
    asked = data.draw(arguments(*METHODS[name]))
    if "label" in asked and data.draw(st.booleans()):
        asked["label"] = data.draw(NAMES)
    before = standing(book)
    _, error = judged(getattr(book, name), **asked)
    if error is not None or name not in ("debit", "note", "store"):
        assert standing(book) == before
    else:
        assert standing(book)[2] >= before[2]


@pytest.mark.parametrize("name", METHODS)
@some(20)
@given(data=st.data())
def test_methods(book, name, data):
    used(data, book, name)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", METHODS)
@much(150)
@given(data=st.data())
def test_many_methods(book, name, data):
    used(data, book, name)


TERMS = {
    "eps": [3, "1/3"],
    "delta": [0, 1e-5],
    "accountant": ["both", "basic", "zcdp"],
    "selection": [0, 1e-7],
    "unit": ["rider", *TRICKS],
    "neighboring": ["add_remove_one", "replace_one"],
    "control": ["DPIA-2026-14", *TRICKS],
    "max_eps_per_release": [1],
    "population": [1000],
    "tiers": [{"public": 0.1, "partner": 0.5}, {text: i + 1 for i, text in enumerate(TRICKS)}],
    "timeout": [1.0],
}


def opened(data, folder, number):
    path = folder / f"{number}.ledger"
    asked = data.draw(arguments({"eps": 3}, TERMS))
    path.unlink(missing_ok=True)
    book, error = judged(geodp.Ledger, path, **asked)
    if error is not None:
        assert not path.exists() or path.stat().st_size == 0
        return
    again = geodp.Ledger(path)
    assert again.ceiling == book.ceiling
    assert (again.unit, again.control, again.tiers) == (book.unit, book.control, book.tiers)
    assert isinstance(repr(again), str)


@some(60)
@given(data=st.data())
def test_terms(data, folder):
    opened(data, folder, 1)


@pytest.mark.fuzz
@much(300)
@given(data=st.data())
def test_many_terms(data, folder):
    opened(data, folder, 2)


PLACES = [text for text in TRICKS if "://" not in text]


@pytest.mark.fuzz
@much(100)
@given(place=st.one_of(junk(), st.sampled_from(PLACES)), eps=st.sampled_from([None, 3]))
def test_many_places(place, eps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "://" not in str(type(place)) and not (isinstance(place, str) and "://" in place):
        judged(geodp.Ledger, place, eps=eps, timeout=0.1)


@pytest.mark.parametrize("place", PLACES)
def test_tricks_in_a_path_are_names_of_files(place, tmp_path, monkeypatch):
    """Whatever a path is called, it is that file, or an error; nothing else is made, and nothing run."""
    monkeypatch.chdir(tmp_path)
    if place.startswith(("/", "..")):
        place = f"deep/er/{place.lstrip('/')}"
    book, _ = judged(geodp.Ledger, place, eps=3)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == (book is not None)
    assert not any(path.name == "geodp-escaped" for path in tmp_path.parent.rglob("*"))


@some(40)
@given(value=junk())
def test_requiring_a_ledger(value):
    with warnings.catch_warnings():
        judged(require_ledger, value)
    require_ledger(False)
