"""Nobody listens: pipes that are closed, disks that are full, and streams that were never open.

The exit code says of stdout that it was not written; a release is paid for, written and kept all the same, and no
traceback appears. Most commands run in a fork, which ends as Python does: it flushes both streams, and makes the exit
code 120 if one of them fails.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pytest
from commands import ASKED, WHERE, WHO

import geodp
from geodp import cli, progress
from geodp.cli import main

HERE = {**os.environ, "PYTHONPATH": str(Path(geodp.__file__).parent.parent)}
COMMANDS = {
    "plan": ["plan", *ASKED],
    "heatmap": ["heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED, "--ledger", "city.ledger"],
    "audit": ["audit", "trips.parquet", *WHO, *WHERE],
    "ledger show": ["ledger", "show", "city.ledger"],
    "ledger verify": ["ledger", "verify", "city.ledger"],
    "show": ["show", "old.geojson"],
}


def unread():
    """Return the end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full():
    return os.open("/dev/full", os.O_WRONLY)


def closed():
    return None


def good():
    return os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


LOST = [(closed, good), (unread, good), (full, good), (closed, closed), (unread, unread), (full, full)]
UNSEEN = [(good, closed), (good, unread), (good, full)]


def opened_anew(number, place):
    """Put a file in the place of a standard stream, and return Python's stream for it."""
    found = place()
    if found is None:
        os.close(number)
        return None
    os.dup2(found, number)
    os.close(found)
    return open(number, "w", closefd=False)


def forked(arguments, out, err):
    """Run a command in a child with these streams; return its exit code and what is in the good one."""
    Path("said").write_text("")
    child = os.fork()
    if child == 0:
        code = 99
        try:
            sys.stderr, sys.stdout = opened_anew(2, err), opened_anew(1, out)
            code = main(arguments)
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OSError:
            code = 120
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), Path("said").read_text()


@pytest.fixture
def old(run, ledger):
    """The folder, its ledger, and a file released before."""
    done = run("heatmap", "trips.parquet", "-o", "old.geojson", *ASKED)
    assert done.code == 0
    return ledger


def typed(command, more):
    label = ["--label", "2026-11-30"] if command == "heatmap" else []
    return [*COMMANDS[command], *label, *more]


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("out", "err"), LOST, ids=lambda place: place.__name__)
def test_a_result_that_nobody_gets_is_5(old, command, more, out, err):
    code, said = forked(typed(command, more), out, err)
    silent = command == "heatmap" and not more  # its result is the file
    assert code == (0 if silent else 5), said
    assert "Traceback" not in said
    if err is good and not silent:
        assert said.splitlines()[-1].startswith("geodp: done, but stdout ")
    assert command != "heatmap" or kept(old)


def kept(path):
    """Whether the release of tonight is written, paid for once, and the one that the ledger keeps."""
    book, released = geodp.Ledger(path), geodp.read_release("heat.geojson")
    assert book.releases()["state"].tolist() == ["released"]
    assert book.record("2026-11-30")["ledger"] == geodp.record(released)["ledger"]
    assert book.spent()["eps"] == 1
    return book.verify().empty


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("out", "err"), UNSEEN, ids=lambda place: place.__name__)
def test_progress_that_nobody_sees_changes_nothing(old, command, more, out, err):
    code, said = forked(typed(command, more), out, err)
    assert code == 0
    assert bool(said) == (command != "heatmap" or bool(more))
    assert not more or json.loads(said)["status"] == "done"
    assert command != "heatmap" or kept(old)


@pytest.mark.parametrize(("out", "err"), [*LOST, *UNSEEN], ids=lambda place: place.__name__)
def test_a_failure_keeps_its_own_exit_code(old, out, err):
    asked = ["heatmap", "nowhere.parquet", "-o", "heat.csv", *ASKED, "--json"]
    assert forked(asked, out, err)[0] == 4
    assert forked([*asked, "--eps", "none"], out, err)[0] == 2
    over = [*asked, "--eps", "9", "--ledger", "city.ledger", "--label", "a"]
    assert forked(over, out, err)[0] == 3
    assert geodp.Ledger(old).spent()["eps"] == 0


@pytest.mark.parametrize("out", [closed, unread, full])
def test_problems_of_a_ledger_are_4_whoever_listens(old, monkeypatch, out):
    problems = pd.DataFrame({"entry": [1], "problem": ["its cost is another"]})
    monkeypatch.setattr(geodp.Ledger, "verify", lambda *given: problems)
    assert forked(["ledger", "verify", "city.ledger"], out, good)[0] == 4


@pytest.mark.parametrize("asked", [["--help"], ["--version"], ["heatmap", "--help"]], ids=" ".join)
@pytest.mark.parametrize("out", [unread, full])
def test_help_that_nobody_reads(old, asked, out):
    code, said = forked(asked, out, good)
    assert code == 5
    assert said.startswith("geodp: done, but stdout could not be written")


def test_a_ledger_is_created_whoever_listens(old):
    assert forked(["ledger", "create", "new.ledger", "--eps", "1"], unread, unread)[0] == 5
    assert geodp.Ledger("new.ledger").ceiling.eps == 1


@pytest.mark.parametrize(
    ("streams", "code"),
    [("| true", 5), (">&-", 5), (">/dev/full", 5), (">&- 2>&-", 5), ("2>&1 | true", 5), ("2>/dev/full", 0)],
)
def test_the_shell_sees_the_same(old, streams, code):
    """The end of a real process, which flushes once more."""
    asked = " ".join(typed("heatmap", ["--json"]))
    words = f"set -o pipefail; {sys.executable} -m geodp {asked} {streams}"
    done = subprocess.run(["bash", "-c", words], env=HERE, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert kept(old)


def test_no_file_takes_the_place_of_a_closed_stream(old):
    """Whatever a library prints on stderr would be written into it."""
    child = os.fork()
    if child == 0:
        number = 99
        try:
            os.closerange(0, 3)
            cli._occupy()
            number = os.open("heat.csv", os.O_WRONLY | os.O_CREAT)
            os.write(2, b"a library has a word to say")
        finally:
            os._exit(number)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) >= 3
    assert Path("heat.csv").read_text() == ""


class Gone:
    """A terminal that was there a moment ago."""

    encoding = "utf-8"

    def isatty(self):
        return True

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("stream", [Gone(), None])
def test_bars_that_nobody_sees_lose_no_release(old, trips, monkeypatch, stream):
    """Outlines are drawn, and their bar with them, after the release was paid for."""
    book = geodp.Ledger(old)
    asked = {"subject": "rider", "cap": 3, "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:7"}
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        frame = geodp.heatmap(trips, 1, ledger=book, label="tonight", **asked)
    assert isinstance(frame, gpd.GeoDataFrame)
    assert book.releases()["state"].tolist() == ["released"]
    assert book.verify(frame).empty


@pytest.mark.usefixtures("at_once")
def test_bars_of_a_command_that_nobody_sees(old, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", Gone())
        code = main([*typed("heatmap", []), "--grid", "h3:7"])
    assert code == 0
    assert kept(old)


def test_a_stdout_that_takes_ascii_only_gets_escapes(old):
    done = subprocess.run(
        [sys.executable, "-m", "geodp", "heatmap", "trips.parquet", "-o", "heät.csv", *ASKED, "--json"],
        env={**HERE, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert Path(json.loads(done.stdout)["output"][0]).name == "heät.csv"
