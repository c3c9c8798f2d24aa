"""Files that cannot be read, written, locked or trusted: a clear error, and no release."""

import os
import shutil
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from running import run

from geodp.accounting import Charge
from geodp.errors import LedgerError
from geodp.ledger import Ledger
from geodp.storage import SQLite

TENTH = Charge(Fraction(1, 10))


@pytest.fixture
def ledger(path):
    made = Ledger(path, eps=3, delta=1e-5, timeout=0.05)
    made.store(made.debit("a", "{}", TENTH, {}), {"count": np.arange(2000)})
    return made


def altered(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_read_only(ledger, path, folder):
    for place in (folder, path):
        os.chmod(place, 0o555 if place == folder else 0o444)
    spent, error = run("unprivileged", path)
    os.chmod(folder, 0o755)
    assert spent == "0.1"
    assert error == "city.ledger is read-only. Nothing was released or spent."
    assert ledger.spent()["eps"] == 0.1


def test_full(ledger, monkeypatch):
    opened = SQLite._open

    def small(storage, create):
        connection = opened(storage, create)
        connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size for the least
        return connection

    monkeypatch.setattr(SQLite, "_open", small)

    def until_full():
        for night in range(1000):
            ledger.debit(f"night {night}", "{}", Charge(Fraction(1, 10**6)), {"x": "y" * 3000})

    with pytest.raises(LedgerError, match=r"cannot grow: the disk is full\. Nothing was released or spent"):
        until_full()
    monkeypatch.undo()
    spent = ledger.spent()
    assert len(ledger.releases()) == round((spent["eps"] - 0.1) * 10**6) + 1
    assert ledger.debit("afterwards", "{}", TENTH, {})


def test_locked_too_long(ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match=r"locked by another process for more than 0.05 s\. Nothing was"):
        ledger.debit("b", "{}", TENTH, {})
    other.execute("ROLLBACK")
    other.close()
    assert ledger.debit("b", "{}", TENTH, {}) == 2


def test_a_reader_that_does_not_let_go_blocks_the_commit_and_nothing_is_spent(ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM geodp_entries").fetchall()
    with pytest.raises(LedgerError, match="locked by another process"):
        ledger.debit("b", "{}", TENTH, {})
    other.execute("ROLLBACK")
    other.close()
    assert ledger.spent()["eps"] == 0.1


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 40, b"PK\3\4"])
def test_not_a_ledger(path, content):
    path.write_bytes(content)
    for terms in ({}, {"eps": 3}):
        with pytest.raises(LedgerError, match="is not a ledger"):
            Ledger(path, **terms)
    assert path.read_bytes() == content


def test_another_programs_database(path):
    altered(path, "CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="database of another program"):
        Ledger(path, eps=3)
    assert path.read_bytes() == before


def test_an_empty_file_is_no_ledger_until_it_is_given_a_ceiling(path):
    path.touch()
    with pytest.raises(LedgerError, match="is no ledger yet"):
        Ledger(path)
    assert Ledger(path, eps=3).spent()["eps"] == 0.0


@pytest.mark.parametrize("place", ["", "missing/city.ledger"])
def test_places_that_cannot_be_opened(folder, place):
    with pytest.raises(LedgerError):
        Ledger(folder / place, eps=3)


@pytest.mark.parametrize("name", ["a b.ledger", "50%?mode=memory#x.ledger", "città.ledger", "a&b='\".ledger"])
def test_any_file_name_is_just_a_name(folder, name):
    Ledger(folder / name, eps=3).debit("a", "{}", TENTH, {})
    assert [place.name for place in folder.iterdir()] == [name]
    assert Ledger(folder / name).spent()["eps"] == 0.1


def test_a_newer_format_is_refused(ledger, path):
    altered(path, "UPDATE geodp_ledger SET value = '2' WHERE name = 'format'")
    for attempt in (lambda: Ledger(path), lambda: ledger.debit("b", "{}", TENTH, {}), ledger.spent):
        with pytest.raises(LedgerError, match=r"newer geodp \(format 2; this one reads 1\)"):
            attempt()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE geodp_ledger SET value = 'many' WHERE name = 'eps'",
        "UPDATE geodp_ledger SET value = '1/0' WHERE name = 'eps'",
        "DELETE FROM geodp_ledger WHERE name = 'neighboring'",
        "UPDATE geodp_entries SET total = 'gone'",
        "UPDATE geodp_entries SET total = '{}'",
        "DROP TABLE geodp_entries",
    ],
)
def test_what_cannot_be_read_is_never_taken_for_nothing_spent(ledger, path, statement):
    altered(path, statement)
    with pytest.raises(LedgerError):
        ledger.debit("b", "{}", TENTH, {})
    with pytest.raises(LedgerError):
        ledger.spent()


def test_corrupt_pages_never_lead_to_a_release_that_was_not_paid(ledger, path):
    sound = path.read_bytes()
    rng = np.random.default_rng(3)
    for start in range(0, len(sound), 997):
        broken = bytearray(sound)
        broken[start : start + 64] = rng.bytes(64)
        path.write_bytes(broken)
        spent = None
        try:
            ledger.debit("b", "{}", TENTH, {})
            spent = ledger.spent()["eps"]
        except LedgerError:
            pass
        # Either an error, or a debit on top of what was spent before.
        assert spent in (None, 0.2)


def test_columns_that_rotted_are_not_replayed(ledger, path):
    altered(path, "UPDATE geodp_releases SET data = zeroblob(length(data))")
    with pytest.raises(LedgerError, match="stored as 'a' is not what was stored"):
        ledger.stored("a", "{}")


def test_a_copy_of_the_one_file_is_the_whole_ledger(ledger, path):
    copy = path.with_name("copy.ledger")
    shutil.copy(path, copy)
    assert list(path.parent.iterdir()) != []
    assert Ledger(copy).spent() == ledger.spent()
    assert sorted(place.name for place in path.parent.iterdir()) == ["city.ledger", "copy.ledger"]


def test_a_ledger_that_someone_set_to_wal_still_counts(ledger, path):
    altered(path, "PRAGMA journal_mode = WAL")
    assert ledger.debit("b", "{}", TENTH, {}) == 2
    assert ledger.spent()["eps"] == 0.2


def test_every_commit_is_flushed_to_the_disk(path):
    with SQLite(path, 1.0).transaction(write=True, create=True) as connection:
        assert connection.execute("PRAGMA synchronous") == [(3,)]
        assert connection.execute("PRAGMA journal_mode") == [("delete",)]
