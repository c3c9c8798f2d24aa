"""Bars in memory show stages and percentages and nothing else; an interrupt leaves no release half paid."""

import re
import signal
import subprocess
import sys

import pandas as pd
import pytest

import geodp
from geodp import chunks, progress, release
from geodp.grids import h3, sheets

NYC = (-74.3, 40.4, -73.6, 41.0)
WHO = {"subject": "rider", "bounds": NYC, "grid": "h3:7"}
SETTING = {**WHO, "cap": 2}
VIEWS = {"few": {"grid": "h3:5"}, "many": {"grid": "h3:7"}}

CALLS = {
    "heatmap": lambda gdf, **bars: geodp.heatmap(gdf, 1, **SETTING, **bars),
    "accessor": lambda gdf, **bars: gdf.dp.heatmap(1, **SETTING, **bars),
    "view": lambda gdf, **bars: gdf.dp(**SETTING).heatmap(1, **bars),
    "mean": lambda gdf, **bars: geodp.mean(gdf, "minutes", 1, value_bounds=(0, 120), **SETTING, **bars),
    "plan": lambda gdf, **bars: geodp.plan(1, **SETTING).release(gdf, **bars),
    "auto": lambda gdf, **bars: geodp.heatmap(gdf, 1, cap="auto", **WHO, **bars),
    "auto plan": lambda gdf, **bars: geodp.plan(1, cap="auto", **WHO).release(gdf, **bars),
    "cap": lambda gdf, **bars: geodp.choose_cap(gdf, 1, **WHO, **bars),
    "together": lambda gdf, **bars: geodp.release_together(gdf, VIEWS, 1, **SETTING, **bars),
    "joint plan": lambda gdf, **bars: geodp.plan_together(VIEWS, 1, **SETTING).release(gdf, **bars),
}


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)


@pytest.fixture
def _anew():
    """Forget domains, so that outlines have to be drawn."""
    h3._domain.cache_clear()
    yield
    h3._domain.cache_clear()


@pytest.fixture
def _in_parts(monkeypatch):
    """Place 400 rows in many parts, by two threads."""
    monkeypatch.setattr(release, "slices", lambda n: chunks.slices(n, 7))
    monkeypatch.setattr(chunks, "cores", lambda: 2)


@pytest.mark.usefixtures("_anew", "_in_parts", "at_once")
@pytest.mark.parametrize("call", CALLS)
def test_bars_show_stages_and_percentages_only(trips, capsys, call):
    CALLS[call](trips)
    shown = [text for text in re.split(r"[\r\n]+", capsys.readouterr().err) if text.strip()]
    assert any(text.startswith("placing points:") for text in shown)
    assert call == "cap" or any(text.startswith("drawing outlines:") for text in shown)
    assert all(re.fullmatch(r"(placing points|drawing outlines): +\d+%\|[^|]*\| *", text) for text in shown)


@pytest.mark.usefixtures("_anew", "_in_parts", "at_once")
@pytest.mark.parametrize("call", CALLS)
def test_progress_false_silences_them(trips, capsys, call):
    CALLS[call](trips, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress must be True or False"):
        CALLS[call](trips, progress=None)


METRES = {"subject": "rider", "cap": 2, "bounds": NYC, "grid": "square:500@32618"}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "call",
    [
        lambda gdf, **bars: geodp.heatmap(gdf, 1, **METRES, cells="sparse", **bars),
        lambda gdf, **bars: gdf.dp.heatmap(1, **METRES, cells="sparse", **bars),
        lambda gdf, **bars: gdf.dp(**METRES).heatmap(1, cells="sparse", **bars),
    ],
)
@pytest.mark.parametrize("shown", [True, False])
def test_the_bar_of_a_plan_is_the_release_s(trips, capsys, monkeypatch, call, shown):
    sheets.ranked_projected.cache_clear()
    monkeypatch.setattr(sheets, "slices", lambda n: chunks.slices(n, 100))
    call(trips, progress=shown)
    assert ("checking outlines" in capsys.readouterr().err) == shown


@pytest.mark.usefixtures("at_once")
def test_a_bar_of_points_looks_the_same_whoever_is_there(trips, capsys):
    """As many updates for one row as for 400: nothing counts rows."""
    shown = []
    for rows in (trips.iloc[:1], trips):
        geodp.heatmap(rows, 1, **SETTING, return_geometry=False)
        shown.append(capsys.readouterr().err)
    assert shown[0] == shown[1] != ""


def test_what_is_quick_shows_nothing_and_loads_nothing():
    code = (
        "import sys, geopandas as gpd, geodp; p = gpd.points_from_xy([-74.0], [40.7]);"
        "f = gpd.GeoDataFrame({'rider': ['a']}, geometry=p, crs=4326);"
        f"geodp.heatmap(f, 1, **{SETTING!r}); print('tqdm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_no_stage_is_on_after_one_that_failed():
    def failing():
        with progress.stage("placing points"):
            assert progress.current()._words == "placing points"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert progress.current()._words is None


@pytest.fixture
def book(tmp_path):
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, delta=1e-5, unit="rider")


def interrupted(*_):
    """Do what Ctrl-C does, from whatever thread."""
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("_in_parts")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("where", ["geodp.release.clamp", "geodp.grids.h3._locate", "geodp.release.subjects"])
def test_an_interrupt_while_points_are_placed_spends_nothing(trips, book, monkeypatch, threads, where):
    monkeypatch.setattr(chunks, "cores", lambda: threads)
    with monkeypatch.context() as patched:
        patched.setattr(where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 0
    assert len(book.releases()) == 0
    geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 1


@pytest.mark.usefixtures("_anew")
def test_an_interrupt_while_outlines_are_drawn_loses_nothing(trips, book, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(h3, "polygons", interrupted)
        with pytest.raises(KeyboardInterrupt):
            geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 1
    assert book.releases()["state"].tolist() == ["released"]
    with pytest.warns(geodp.ReplayWarning):
        again = geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    assert again.geometry.is_valid.all()
    assert book.spent()["eps"] == 1
    assert book.verify().empty


def test_an_interrupt_between_payment_and_release_stays_spent_and_the_label_says_so(trips, book, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(release, "drawn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 1
    assert book.releases()["state"].tolist() == ["reserved"]
    with pytest.raises(geodp.IncompleteRelease):
        geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today")
    geodp.heatmap(trips, 1, **SETTING, ledger=book, label="today", retry=True)
    assert book.spent()["eps"] == 2


# Parts ------------------------------------------------------------------------------------------------------

BOX = (-74.05, 40.65, -73.9, 40.85)
WAYS = [
    {"grid": "h3:8", "bounds": BOX},
    {"grid": "h3:8", "bounds": BOX, "outside": "drop", "by": {"hour": range(20)}},
    {"grid": "square:0.01", "bounds": BOX},
    {"grid": "square:500@32618", "bounds": BOX},
    {"grid": "h3:10", "bounds": BOX, "cells": "sparse"},
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_parts_and_threads_change_no_bit(trips, monkeypatch, way, threads):
    trips.loc[trips.index[::7], "geometry"] = None
    trips.loc[trips.index[::11], "rider"] = None
    with geodp.testing.noiseless(5):
        whole = geodp.heatmap(trips, 1, subject="rider", cap=3, **way)
        monkeypatch.setattr(release, "slices", lambda n: chunks.slices(n, 13))
        monkeypatch.setattr(chunks, "cores", lambda: threads)
        parts = geodp.heatmap(trips, 1, subject="rider", cap=3, **way)
    pd.testing.assert_frame_equal(pd.DataFrame(whole), pd.DataFrame(parts), check_exact=True)
