"""Exit codes, one line for each error, nothing of the rows, and no half files."""

import json
import os
import sys
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest
import shapely
from commands import ASKED, NYC, WHERE, WHO

from geodp.cli import main
from geodp.cli.failures import failure

EPS = ["--eps", "1", "--delta", "1e-6"]


def line(outcome):
    """Return the one line of an error, whose text is no traceback."""
    lines = [text for text in outcome.err.splitlines() if "warning:" not in text and ": reading" not in text]
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("geodp: ")
    assert "Traceback" not in outcome.err
    return lines[0]


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ([*WHERE, *EPS], "--subject is required"),
        ([*WHO, *EPS], "--bounds is required"),
        (["--subject", "rider", *WHERE, *EPS], "cap is required"),
        ([*WHO, *WHERE], "Missing option '--eps'"),
        ([*ASKED, "--eps", "none"], "eps"),
        ([*ASKED, "--eps", "0"], "eps"),
        ([*ASKED, "--delta", "0.5"], "delta"),
        ([*ASKED, "--cap", "few"], "cap"),
        ([*ASKED, "--bounds", "1,2,3"], "four numbers"),
        ([*ASKED, "--bounds", "-74,41,-73,40"], "south above north"),
        ([*ASKED, "--grid", "h4:8"], "h4:8"),
        ([*ASKED, "--grid", "h3:15"], "5,000,000"),
        ([*ASKED, "--by", "hour"], "names no levels"),
        ([*ASKED, "--by", "hour=1", "--by", "hour=2"], "twice"),
        ([*ASKED, "--by", "hour=0:900000"], "levels"),
        ([*ASKED, "--sum", "minutes"], "--value-bounds"),
        ([*ASKED, "--value-bounds", "0,1"], "--value-bounds"),
        ([*ASKED, "--sum", "minutes", "--value-bounds", "0,1", "--centroid"], "choose one"),
        ([*ASKED, "--label", "tonight"], "ledger"),
        ([*ASKED, "--lon", "x"], "--lat"),
        ([*ASKED, "--zone-key", "zone"], "--zones"),
        ([*ASKED, "--colour", "red"], "--colour"),
        ([*ASKED, "--rescale", "some"], "some"),
    ],
)
def test_bad_arguments_are_2_and_read_nothing(run, folder, asked, word):
    done = run("heatmap", "trips.parquet", "-o", "heat.geojson", *asked)
    assert done.code == 2
    assert word in line(done)
    assert "reading" not in done.err or "--lat" in word
    assert not os.path.exists("heat.geojson")


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ([], "--output is required"),
        (["-o", "heat.shp"], "names no format"),
        (["-o", "nowhere/heat.csv"], "no such folder"),
        (["-o", "/dev/null.csv/heat.csv"], "no such folder"),
        (["-o", "folder.csv"], "no plain file"),
    ],
)
def test_outputs_are_judged_before_anything_is_spent(run, ledger, output, word):
    os.mkdir("folder.csv")
    done = run("heatmap", "trips.parquet", *output, *ASKED, "--ledger", "city.ledger", "--label", "a")
    assert done.code == 2
    assert word in line(done)
    assert run("ledger", "show", "city.ledger", "--json").facts["releases"] == []


@pytest.mark.parametrize(
    ("name", "more", "word"),
    [
        ("nowhere.parquet", [], "no such file"),
        ("broken.parquet", [], "cannot be read"),
        ("broken.gpkg", [], "cannot be read"),
        ("broken.geojson", [], "cannot be read"),
        ("trips.csv", [], "--lon and --lat"),
        ("table.parquet", [], "--lon and --lat"),
        ("trips.gpkg", ["--lon", "a", "--lat", "b"], "--lon and --lat"),
        ("trips.gpkg", ["--layer", "other"], "cannot be read"),
        ("trips.parquet", ["--subject", "person"], "has no column 'person'"),
        ("trips.parquet", ["--subject", "minutes2"], "has no column"),
        ("trips.parquet", ["--by", "day=1,2"], "has no column 'day'"),
        ("trips.parquet", ["--by", "hour=a,b"], "no row would match"),
        ("trips.parquet", ["--sum", "rider", "--value-bounds", "0,1"], "numbers"),
        ("bare.parquet", [], "--crs 4326"),
        ("trips.parquet", ["--crs", "3035"], "another CRS"),
    ],
)
def test_bad_input_is_4_and_names_the_file(run, folder, trips, name, more, word):
    for broken in ("broken.parquet", "broken.gpkg", "broken.geojson"):
        Path(broken).write_text('{"type": "Feature", "r07": secret')
    trips.set_crs(None, allow_override=True).to_parquet("bare.parquet")
    done = run("heatmap", name, "-o", "heat.geojson", *ASKED, *more)
    assert done.code == 4, done.err
    assert word in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert "secret" not in done.err
    assert not os.path.exists("heat.geojson")


def test_a_csv_without_a_first_line_of_names_does_not_show_its_first_row(run, folder):
    Path("bare.csv").write_text("r07,-73.99,40.71\nr08,-73.98,40.72\n")
    done = run("heatmap", "bare.csv", "-o", "heat.csv", *ASKED, "--lon", "lon", "--lat", "lat")
    assert done.code == 4
    assert "has no column 'rider'" in done.err
    assert not any(secret in done.err for secret in ("r07", "73.99", "40.71"))


def test_values_of_rows_are_in_no_message(run, folder, trips, monkeypatch):
    """Whatever a library says about a row it cannot handle stays inside."""

    def talkative(*args, **more):
        print_to = pd.errors.ParserError("could not convert 'r07' at -73.99")
        raise print_to

    monkeypatch.setattr(gpd, "read_parquet", talkative)
    monkeypatch.setattr(pyogrio, "read_arrow", talkative)
    monkeypatch.setattr(pd, "read_csv", talkative)
    for file, more in (
        ("trips.parquet", []),
        ("trips.gpkg", []),
        ("trips.csv", ["--lon", "lon", "--lat", "lat"]),
    ):
        done = run("heatmap", file, "-o", "heat.csv", *ASKED, *more)
        assert done.code == 4
        assert "r07" not in done.err + done.out
    told = failure(KeyError("r07"))
    assert (told.code, "r07" in str(told), "KeyError" in str(told)) == (1, False, True)


def test_rows_of_no_use_raise_nothing(run, folder, trips):
    odd = trips.astype({"rider": object})
    odd.loc[0, "geometry"] = shapely.LineString([(0, 0), (1, 1)])
    odd.loc[1, "geometry"] = None
    odd.loc[2, "rider"] = None
    odd.to_parquet("odd.parquet")
    assert run("heatmap", "odd.parquet", "-o", "heat.csv", *ASKED).code == 0


def test_errors_are_facts_in_json(run, folder):
    done = run("heatmap", "nowhere.parquet", "-o", "heat.csv", *ASKED, "--json")
    assert done.code == 4
    assert done.facts == {"status": "failed", "code": 4, "error": "nowhere.parquet: there is no such file."}
    assert run("heatmap", "--json").facts["code"] == 2


@pytest.mark.parametrize("suffix", ["geojson", "gpkg", "fgb", "parquet", "csv", "png"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(run, ledger, monkeypatch, suffix):
    name = f"heat.{suffix}"
    Path(name).write_text("yesterday")
    before = sorted(os.listdir())

    def full(*args, **more):
        raise OSError(28, "No space left on device")

    asked = [
        "heatmap",
        "trips.parquet",
        "-o",
        name,
        *ASKED,
        "--ledger",
        "city.ledger",
        "--label",
        "2026-11-30",
    ]
    with monkeypatch.context() as patched:
        patched.setattr("geodp.writing.os.fsync", full)
        done = run(*asked)
    assert done.code == 1
    said = done.err.splitlines()[-1]
    assert f"{name} could not be written (No space left on device)" in said
    assert (
        'stored in city.ledger: the same command with label "2026-11-30" writes it again, at no cost' in said
    )
    assert Path(name).read_text() == "yesterday"
    assert sorted(os.listdir()) == before
    again = run(*asked)
    assert again.code == 0, again.err
    assert "data not read, nothing spent" in again.err
    assert os.path.getsize(name) > 100


def test_a_write_that_fails_without_a_ledger_says_that_the_release_is_lost(run, folder, monkeypatch):
    monkeypatch.setattr("geodp.writing.os.fsync", lambda number: (_ for _ in ()).throw(OSError(5, "broken")))
    done = run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED)
    assert done.code == 1
    assert "The release is lost" in done.err


def test_an_interrupt_is_130(run, folder, monkeypatch):
    def interrupted(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(gpd, "read_parquet", interrupted)
    done = run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED)
    assert done.code == 130
    assert not os.path.exists("heat.csv")


def test_without_click_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    assert main(["--version"]) == 2
    assert capsys.readouterr().err == "geodp: the command line needs click: pip install 'geodp[cli]'\n"


def test_a_record_that_was_changed_is_not_explained(run, folder):
    assert run("heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED).code == 0
    text = Path("heat.geojson").read_text()
    Path("heat.geojson").write_text(text.replace('"cap": 3', '"cap": 1'))
    changed = run("show", "heat.geojson")
    assert changed.code == 4
    assert "its record was changed" in changed.err
    assert run("show", "trips.geojson").code == 4
    assert run("show", "trips.csv").code == 4
    assert run("show", "nowhere.gpkg").code == 4
    assert json.loads(text)["geodp"]["cap"] == 3
    assert NYC


def test_an_output_never_replaces_what_the_command_reads(run, folder, ledger):
    (folder / "link.parquet").symlink_to("trips.parquet")
    before = (folder / "trips.parquet").read_bytes()
    for output in ("trips.parquet", "./trips.parquet", "link.parquet"):
        done = run("heatmap", "trips.parquet", "-o", output, *ASKED)
        assert done.code == 2
        assert "would be overwritten" in line(done)
    (folder / "city.geojson").write_bytes(ledger.read_bytes())
    asked = ["--ledger", "city.geojson", "--label", "tonight"]
    assert run("heatmap", "trips.parquet", "-o", "city.geojson", *ASKED, *asked).code == 2
    assert (folder / "trips.parquet").read_bytes() == before
