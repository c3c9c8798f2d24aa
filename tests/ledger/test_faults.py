"""What else can go wrong around a ledger: limits, links, folders, full disks, forks, clocks and other versions.

Kills, races and broken pages are in test_crash.py and test_broken_files.py. Here whole releases meet them.
"""

import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from functools import partial

import geopandas as gpd
import numpy as np
import pytest
from child import forked

import geodp
from geodp.accounting import Charge
from geodp.errors import GeoDPError, IncompleteRelease, LedgerError
from geodp.ledger import Ledger

TENTH = Charge(Fraction(1, 10))
PLAN = geodp.plan("0.1", subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
POINTS = gpd.GeoDataFrame(
    {"rider": ["a", "b"]}, geometry=gpd.points_from_xy([0.1, 0.9], [0.1, 0.9]), crs=4326
)


@pytest.fixture
def ledger(path):
    return Ledger(path, eps=3, timeout=5)


def released(book, label, **more):
    return PLAN.release(POINTS, ledger=book, label=label, **more)["noisy_count"].tolist()


# --- where the file is -----------------------------------------------------------------------------------


def test_a_link_and_its_file_are_one_ledger(ledger, path):
    link = path.with_name("link.ledger")
    link.symlink_to(path)
    first = released(ledger, "a")
    again = Ledger(link)
    assert again.name == "link.ledger"
    with pytest.warns(geodp.ReplayWarning):
        assert released(again, "a") == first
    released(again, "b")
    assert ledger.spent()["eps"] == 0.2
    assert sorted(place.name for place in path.parent.iterdir()) == ["city.ledger", "link.ledger"]


def test_a_debit_through_a_link_survives_a_kill_like_any_other(ledger, path):
    """SQLite puts its journal beside the file itself, where whoever opens the file finds it."""
    link = path.with_name("link.ledger")
    link.symlink_to(path)

    def killed(say):
        with Ledger(link)._storage.transaction(write=True) as connection:
            connection.execute("UPDATE geodp_ledger SET value = '1000' WHERE name = 'eps'")
            connection.execute("PRAGMA cache_spill = ON")
            os.kill(os.getpid(), signal.SIGKILL)

    status, _ = forked(killed)
    assert os.WIFSIGNALED(status)
    assert ledger.spent()["eps"] == 0.0
    assert Ledger(path).ceiling.eps == 3
    assert Ledger(link).verify().empty


@pytest.mark.parametrize("kind", ["nothing", "a loop"])
def test_a_link_to_nothing_is_no_ledger(path, kind):
    path.symlink_to(path.with_name("gone") if kind == "nothing" else path)
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger(path)


@pytest.mark.parametrize("terms", [{}, {"eps": 3}])
def test_a_folder_is_no_ledger(folder, terms):
    with pytest.raises(LedgerError, match="is a folder, not a ledger"):
        Ledger(folder, **terms)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/zero"])
def test_a_device_is_no_ledger(device):
    for terms in ({}, {"eps": 3}):
        with pytest.raises(LedgerError):
            Ledger(device, timeout=0.1, **terms)


def test_a_ledger_that_was_deleted_or_moved_meanwhile_pays_for_nothing(ledger, path):
    drawn = []
    released(ledger, "a")
    shutil.move(path, path.with_name("elsewhere"))
    for call in (lambda: released(ledger, "b"), lambda: released(ledger, "a"), ledger.spent, ledger.releases):
        with pytest.raises(LedgerError, match="no ledger at"):
            drawn.append(call())
    assert drawn == []
    assert not path.exists()  # no fresh budget appears in its place
    path.with_name("elsewhere").rename(path)
    assert ledger.spent()["eps"] == 0.1


def test_a_ledger_deleted_between_check_and_debit_pays_for_nothing(ledger, path, monkeypatch):
    from geodp import release

    tally = release.tally

    def deleting(*given):
        path.unlink()
        return tally(*given)

    monkeypatch.setattr(release, "tally", deleting)
    monkeypatch.setattr(release, "drawn", lambda *given: pytest.fail("noise was drawn"))
    with pytest.raises(LedgerError, match="no ledger at"):
        released(ledger, "a")


# --- disks ------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        pytest.skip("a small disk needs the right to mount one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full(tiny_disk):
    """Releases until the disk is full: the last debit is there as a whole or not at all, and the sums are exact."""
    book, handed_out = Ledger(tiny_disk / "city.ledger", eps=1000), []
    wide = geodp.plan("0.1", subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.02")
    nights = (wide.release(POINTS, ledger=book, label=f"night {night}") for night in range(1000))
    with pytest.raises(LedgerError, match="disk is full"):
        handed_out.extend(nights)
    assert 0 < len(handed_out) < 1000
    (tiny_disk / "rubbish").unlink(missing_ok=True)
    states = book.releases()["state"].value_counts().to_dict()
    assert states["released"] == len(handed_out)
    assert states.get("reserved", 0) in (0, 1)
    assert book.spent()["eps"] == pytest.approx(0.1 * sum(states.values()))
    assert book.verify()["problem"].str.startswith("paid for, but no release").sum() == states.get(
        "reserved", 0
    )
    shutil.copy(tiny_disk / "city.ledger", tiny_disk.parent / "larger.ledger")
    assert released(Ledger(tiny_disk.parent / "larger.ledger"), "afterwards")


def test_a_journal_of_another_ledger_is_not_taken_over(ledger, path):
    """A stray journal beside a ledger is no journal of it."""
    released(ledger, "a")
    path.with_name("city.ledger-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    assert ledger.spent()["eps"] == 0.1
    assert released(ledger, "b")
    assert ledger.verify().empty


# --- processes, threads, memory ---------------------------------------------------------------------------


def test_children_of_one_process_pay_once_each_and_draw_different_noise(ledger):
    released(ledger, "before the fork")
    outcomes = []

    def releasing(label, say):
        say(json.dumps(released(ledger, label)))

    for label in ("a", "b", "c"):
        status, said = forked(partial(releasing, label))
        assert status == 0
        outcomes.append(tuple(json.loads(said[0])))
    assert len(set(outcomes)) == 3  # 4 cells of scale 10: equal by chance once in a million
    assert ledger.spent()["eps"] == 0.4


def test_a_pool_of_threads_pays_for_each_label_once(ledger):
    before = threading.active_count()
    with ThreadPoolExecutor(6) as pool:
        labels = [f"night {i % 6}" for i in range(6)]
        found = list(pool.map(lambda label: (label, released(ledger, label)), labels))
    assert ledger.spent()["eps"] == pytest.approx(0.6)
    assert len({tuple(numbers) for _, numbers in found}) == 6
    assert threading.active_count() <= before + 8  # the library's own pool at most
    gc.collect()


def memory_limited(place, megabytes):
    """Release in a child that may have so much more memory than it has; return its status, and what it says."""

    def action(say):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        limit = size + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(5)  # Python's Thread.start waits for ever for a thread that died before it began
        rng = np.random.default_rng(1)
        try:
            places = gpd.points_from_xy(rng.uniform(0, 1, 100_000), rng.uniform(0, 1, 100_000))
            rows = gpd.GeoDataFrame({"rider": np.arange(100_000) % 977}, geometry=places, crs=4326)
            wide = geodp.plan("0.1", subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.004")
            wide.release(rows, ledger=Ledger(place), label=f"{megabytes} MB")
            say("released")
        except MemoryError:
            say("no memory")
        except GeoDPError as error:
            say("no memory" if "memory" in str(error) else f"blamed another cause: {error}")

    return forked(action)


def test_a_release_that_runs_out_of_memory_is_unpaid_or_stays_paid(ledger, path):
    """At any step: before the debit nothing is spent; after it the label says that it was paid for."""
    outcomes = {}
    for megabytes in (0, 8, 16, 24, 32, 48, 64, 96, 4000):
        status, said = memory_limited(path, megabytes)
        outcomes[f"{megabytes} MB"] = said[-1] if said else f"ended with {status}"
    states = ledger.releases().set_index("label")["state"].to_dict()
    for label, outcome in outcomes.items():
        assert (outcome == "released") == (states.get(label) == "released"), (label, outcome, states)
        assert states.get(label) in (None, "reserved", "released")
        assert not outcome.startswith("blamed"), outcome
    assert outcomes["4000 MB"] == "released"
    assert "released" not in outcomes["0 MB"]
    assert ledger.spent()["eps"] == pytest.approx(0.1 * len(states))
    assert ledger.verify()["problem"].str.startswith("paid for, but no release").all()


# Python swallows an interrupt that comes in a callback of the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_in_a_release_is_unpaid_or_stays_paid(ledger):
    """Ctrl-C at a random moment: what was handed out is paid for and stored."""
    rng = np.random.default_rng(7)
    for night in range(30):
        label, handed_out = f"night {night}", None
        timer = threading.Timer(float(rng.uniform(0, 0.03)), signal.raise_signal, [signal.SIGINT])
        with contextlib.suppress(KeyboardInterrupt):
            timer.start()
            handed_out = released(ledger, label)
            timer.join()
            time.sleep(0.001)  # the interrupt comes within this block, if only now
        states = ledger.releases().set_index("label")["state"]
        if handed_out is not None:
            assert states[label] == "released"
        elif states.get(label) == "reserved":
            with pytest.raises(IncompleteRelease):
                released(ledger, label)
        if night % 6 == 5:
            assert ledger.spent()["eps"] == pytest.approx(0.1 * len(states))


# --- clocks and versions ----------------------------------------------------------------------------------


def test_a_clock_far_away_changes_nothing_but_times(ledger, monkeypatch):
    from geodp import tables

    for moment in (
        "1969-12-31T23:59:59.000000Z",
        "9999-12-31T23:59:59.999999Z",
        "2026-11-30T00:00:00.000000Z",
    ):
        monkeypatch.setattr(tables, "now", lambda moment=moment: moment)
        released(ledger, moment[:4])
    assert ledger.releases()["label"].tolist() == ["1969", "9999", "2026"]
    assert ledger.spent()["eps"] == pytest.approx(0.3)
    assert ledger.verify().empty


def altered(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("version", "word"), [("2", "newer geodp"), ("0", "does not know"), ("1.5", "does not know")]
)
def test_a_ledger_that_another_version_changed_while_it_was_open(ledger, path, version, word):
    """Two versions of geodp on one file: the one that cannot read it any more neither pays nor releases."""
    first = released(ledger, "a")
    altered(path, f"UPDATE geodp_ledger SET value = '{version}' WHERE name = 'format'")
    for call in (
        lambda: released(ledger, "b"),
        lambda: released(ledger, "a"),
        ledger.spent,
        lambda: Ledger(path),
    ):
        with pytest.raises(LedgerError, match=word):
            call()
    altered(path, "UPDATE geodp_ledger SET value = '1' WHERE name = 'format'")
    with pytest.warns(geodp.ReplayWarning):
        assert released(ledger, "a") == first
    assert ledger.spent()["eps"] == 0.1


def test_a_ledger_without_a_format_is_none(ledger, path):
    altered(path, "DELETE FROM geodp_ledger WHERE name = 'format'")
    with pytest.raises(LedgerError, match="does not know"):
        released(ledger, "a")


def test_columns_and_terms_that_a_later_version_added_do_no_harm(ledger, path):
    """The same format with more in it: what this version does not read it leaves alone."""
    released(ledger, "a")
    altered(path, "ALTER TABLE geodp_entries ADD COLUMN colour TEXT")
    altered(path, "CREATE TABLE geodp_more (name TEXT)")
    assert released(ledger, "b")
    assert ledger.verify().empty
    altered(path, "INSERT INTO geodp_ledger VALUES ('colour', 'red')")
    assert released(ledger, "c")
    assert ledger.verify().empty


def test_a_table_that_lacks_a_column_is_an_error_before_anything_is_spent(ledger, path):
    released(ledger, "a")
    altered(path, "ALTER TABLE geodp_entries DROP COLUMN tier")
    with pytest.raises(LedgerError, match=r"Nothing was released or spent"):
        released(ledger, "b")
    altered(path, "ALTER TABLE geodp_entries ADD COLUMN tier TEXT")
    assert ledger.spent()["eps"] == 0.1


def test_a_release_of_another_version_is_replayed_with_its_own_record(ledger, path):
    """The record says which version drew the numbers; an update of geodp does not change that."""
    first = released(ledger, "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        ((text,),) = connection.execute("SELECT record FROM geodp_entries").fetchall()
        older = json.dumps({**json.loads(text), "version": "0.0.1", "of old": True}, sort_keys=True)
        connection.execute("UPDATE geodp_entries SET record = ?", (older,))
    with pytest.warns(geodp.ReplayWarning):
        frame = PLAN.release(POINTS, ledger=ledger, label="a")
    assert frame["noisy_count"].tolist() == first
    assert frame.attrs["geodp"]["version"] == "0.0.1"
