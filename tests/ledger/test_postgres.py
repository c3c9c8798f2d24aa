"""The same ledger on a real PostgreSQL server, which these tests start and stop themselves."""

import glob
import os
import pickle
import pwd
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from running import check_soak, run, soaked

from geodp.accounting import Charge
from geodp.errors import BudgetExceeded, IncompleteRelease, LedgerError
from geodp.ledger import Ledger

sqlalchemy = pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

TENTH = Charge(Fraction(1, 10))


def binaries():
    """Return the folder with initdb and postgres, if this machine has them."""
    known = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next((place for place in [*known, found and str(Path(found).parent)] if place), None)


@pytest.fixture(scope="module")
def server():
    """A server on a Unix socket in a temporary folder, as a user without privileges; no network."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="geodp-pg-"))
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        account = next((a for a in pwd.getpwall() if a.pw_name in ("postgres", "nobody")), None)
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def program(name, *arguments):
        subprocess.run(
            [f"{programs}/{name}", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=folder,
            timeout=60,
            **user,
        )

    data = str(folder / "data")
    program("initdb", "-D", data, "-U", "geodp", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    program("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield folder
    finally:
        program("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def url(server, request):
    """The URL of a fresh database."""
    name = "geodp_" + "".join(c for c in request.node.name if c.isalnum())[-40:].lower()
    execute(server, "postgres", f"CREATE DATABASE {name}")
    return f"postgresql://geodp@/{name}?host={server}"


def execute(server, database, statement):
    engine = sqlalchemy.create_engine(
        f"postgresql+psycopg://geodp@/{database}?host={server}",
        isolation_level="AUTOCOMMIT",
        poolclass=sqlalchemy.pool.NullPool,
    )
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(statement))


def test_the_same_ledger_on_a_server(url):
    ledger = Ledger(url, eps=1, delta=1e-5, unit="rider", control="DPIA-2026-14")
    columns = {"count": np.arange(5), "zone": np.array(["a", "ä", "", "d", "e"], dtype=object)}
    part = ledger.store(
        ledger.debit("2026-11-30 '; --", '{"cap": 4}', TENTH, {"cap": 4}, reason="ok"), columns
    )
    assert part["name"] == ledger.name
    again = Ledger(url)
    assert again.ceiling == ledger.ceiling
    stored = again.stored("2026-11-30 '; --", '{"cap": 4}')
    assert stored.entry == part
    assert stored.columns["count"].tolist() == list(range(5))
    assert stored.columns["zone"].tolist() == columns["zone"].tolist()
    assert again.record("2026-11-30 '; --") == {"cap": 4, "ledger": part}
    assert again.releases()["state"].tolist() == ["released"]
    with pytest.raises(LedgerError, match="with other arguments"):
        again.stored("2026-11-30 '; --", "{}")
    with pytest.raises(LedgerError, match="created with eps 1, not 2"):
        Ledger(url, eps=2)
    assert again.verify()["problem"].str.contains("measurements").tolist() == [True]


def test_ten_tenths_and_not_eleven_on_a_server(url):
    ledger = Ledger(url, eps=1)
    for night in range(10):
        ledger.debit(f"night {night}", "{}", TENTH, {})
    with pytest.raises(BudgetExceeded, match=r"holds eps 1; spent 1, left 0, asked 0.1"):
        ledger.debit("night 10", "{}", TENTH, {})
    with pytest.raises(IncompleteRelease):
        ledger.stored("night 3", "{}")
    assert ledger.spent()["eps"] == 1.0


def test_a_database_without_a_ledger(url):
    with pytest.raises(LedgerError, match="is no ledger yet"):
        Ledger(url)


def test_processes_racing_on_a_server(url, server):
    fits = [3, 7]
    urls = []
    for number, fit in enumerate(fits):
        name = f"race_{number}"
        execute(server, "postgres", f"CREATE DATABASE {name}")
        urls.append(f"postgresql://geodp@/{name}?host={server}")
        Ledger(urls[-1], eps=f"{fit / 10 + 0.05:.2f}")
    results = run("race", urls[0], 8, *urls[1:])
    assert results == [{"won": fit, "refused": 8 - fit, "failed": 0} for fit in fits]


def test_everyone_creates_it_at_once(url):
    with ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda _: Ledger(url, eps=1), range(6)))
    assert len({ledger._terms.identity for ledger in ledgers}) == 1


def test_killed_on_the_way_to_a_server(url):
    Ledger(url, eps=1000)
    rounds = run("kill", url, "line", 24)
    states = Ledger(url).releases().set_index("label")["state"]
    before = 1
    for one in rounds:
        new, before = round(one["spent"] * 10) - before, round(one["spent"] * 10)
        assert (one["label"] in states.index) == (new == 1)
        assert "paid" not in one["said"] or new == 1
        assert "handed out" not in one["said"] or states[one["label"]] == "released"
    assert all(one["died"] for one in rounds)
    assert {(), ("paid",)} <= {tuple(one["said"]) for one in rounds}


def test_locked_too_long_on_a_server(url):
    ledger = Ledger(url, eps=1, timeout=0.1)
    with Ledger(url)._storage.transaction(write=True), pytest.raises(LedgerError, match="locked by another"):
        ledger.debit("a", "{}", TENTH, {})
    assert ledger.debit("a", "{}", TENTH, {}) == 1


def test_a_read_only_server(url, server):
    ledger = Ledger(url, eps=1)
    execute(server, ledger.name, f"ALTER DATABASE {ledger.name} SET default_transaction_read_only = on")
    with pytest.raises(LedgerError, match=r"is read-only\. Nothing was released or spent"):
        ledger.debit("a", "{}", TENTH, {})
    assert ledger.spent()["eps"] == 0.0


def test_commits_are_durable_even_where_the_server_says_otherwise(url, server):
    ledger = Ledger(url, eps=1)
    execute(server, ledger.name, f"ALTER DATABASE {ledger.name} SET synchronous_commit = off")
    with ledger._storage.transaction(write=True) as connection:
        assert connection.execute("SHOW synchronous_commit") == [("on",)]


def test_a_server_that_is_not_there():
    with pytest.raises(LedgerError, match=r"failed \(.*Nothing was released or spent") as error:
        Ledger("postgresql://someone:secret@/nowhere?host=/nonexistent", eps=1, timeout=2)
    assert "secret" not in str(error.value)


def test_a_password_is_neither_shown_nor_pickled(url):
    ledger = Ledger(url.replace("geodp@", "geodp:secret@"), eps=1)
    assert "secret" not in repr(ledger)
    with pytest.raises(TypeError, match="holds a password"):
        pickle.dumps(ledger)
    assert pickle.loads(pickle.dumps(Ledger(url))).spent() == ledger.spent()


@pytest.mark.audit
def test_releases_with_kills_on_a_server(url):
    check_soak(soaked("--releases", 100, "--workers", 6, "--every", 0.2, "--place", url), 3)
