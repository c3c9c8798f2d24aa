"""Releases come back from files as what they were, or not at all."""

import json
from datetime import date, timedelta

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest
from kinds_of_releases import copies, made

import geodp
from geodp.writing import write

KINDS = sorted(made())
ENDINGS = ["geojson", "gpkg", "parquet", "fgb"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_from_every_format(kind, ending, tmp_path):
    frame = copies()[kind]
    back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
    assert geodp.record(back) == geodp.record(frame)
    assert back.index.names == frame.index.names
    plain = pd.DataFrame(frame.drop(columns="geometry"))
    pd.testing.assert_frame_equal(pd.DataFrame(back.drop(columns="geometry")), plain)
    assert list(back.columns) == list(frame.columns)
    assert back.crs == frame.crs
    assert back.geometry.geom_equals_exact(frame.geometry, 1e-6).all() or ending in ("geojson", "gpkg", "fgb")


@pytest.mark.parametrize("cells", ["sparse", "select"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_releases_of_some_cells_come_back(cells, ending, tmp_path):
    points = gpd.GeoDataFrame(
        {"rider": range(300)}, geometry=gpd.points_from_xy([-73.97] * 300, [40.75] * 300), crs=4326
    )
    frame = points.dp(subject="rider", cap=1, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:9").heatmap(
        1, 1e-6, cells=cells
    )
    back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
    assert back["noisy_count"].to_dict() == frame["noisy_count"].to_dict()


def test_what_was_changed_or_never_was_a_release_is_refused(tmp_path):
    frame = copies()["count"]
    path = geodp.to_geojson(frame, tmp_path / "heat.geojson")
    whole = json.loads(path.read_text())
    fewer = {**whole, "features": whole["features"][1:]}
    louder = {**whole, "geodp": {**whole["geodp"], "eps": 9}}
    other = {**whole, "features": [{**f, "properties": {"n": 1}} for f in whole["features"]]}
    for wrong in (fewer, louder, other):
        path.write_text(json.dumps(wrong))
        with pytest.raises(geodp.NotARelease):
            geodp.read_release(path)
    frame.to_file(path)
    with pytest.raises(geodp.NotARelease, match="no geodp record"):
        geodp.read_release(path)
    with pytest.raises(FileNotFoundError):
        geodp.read_release(tmp_path / "none.geojson")
    (tmp_path / "heat.csv").write_text("a\n")
    with pytest.raises(ValueError, match="comes back from"):
        geodp.read_release(tmp_path / "heat.csv")


def test_a_test_release_stays_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GEODP_TESTING", "1")
    points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    with geodp.testing.noiseless():
        frame = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    for ending in ENDINGS:
        back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
        assert geodp.record(back)["noise"] == "none (test)"


BOX = (-74.3, 40.4, -73.6, 41.0)
SOME = {"subject": "rider", "cap": 1, "bounds": BOX, "cells": "sparse"}
TIMES = [pd.Timestamp("2026-11-30 08:00"), pd.Timestamp("2026-11-30 09:00")]
SLOTS = {
    "text": ["7", "8"],
    "number": [7, 8],
    "float": [0.5, 1.5],
    "flag": [False, True],
    "time": TIMES,
    "zoned": [time.tz_localize("Europe/Berlin") for time in TIMES],
    "span": [timedelta(hours=1), timedelta(minutes=90)],
}


@pytest.fixture
def riders():
    """Sixty people in one cell, and one without a place."""
    places = gpd.points_from_xy([-73.97] * 61, [40.75] * 61)
    table = {
        "rider": [f"r{i}" for i in range(61)],
        "id": range(61),
        "minutes": [1.5] * 61,
        "day": ["mon"] * 61,
    }
    frame = gpd.GeoDataFrame(table, geometry=places, crs=4326)
    frame.loc[60, "geometry"] = None
    return frame


def same(back, frame):
    """Whether nothing differs: ids with their kinds and names, columns, order, CRS, and which rows have a place."""
    pd.testing.assert_frame_equal(
        pd.DataFrame(back.drop(columns="geometry")), pd.DataFrame(frame.drop(columns="geometry"))
    )
    pd.testing.assert_index_equal(back.columns, frame.columns)
    assert type(back.index) is type(frame.index)
    assert back.crs == frame.crs
    assert back.geometry.isna().tolist() == frame.geometry.isna().tolist()
    return geodp.record(back) == geodp.record(frame)


@pytest.mark.parametrize(
    "by", [None, {"hour": range(3)}, {"late": [False, True], "day": ["mon", "tue"]}], ids=str
)
@pytest.mark.parametrize("grid", ["h3:7", "square:0.01", "square:1000@32618"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_some_cells_come_back_the_same_even_if_there_are_none(riders, tmp_path, grid, by, ending):
    rows = riders.assign(hour=1, late=True)
    for many, threshold in (
        (rows, 20),
        (rows.iloc[:0], 500),
    ):  # of noise this is exp(-40), and exp(-500) a cell
        frame = geodp.heatmap(many, 1, **SOME, threshold=threshold, grid=grid, by=by)
        back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
        assert (len(frame) == 0) == (threshold == 500)
        assert same(back, frame)


@pytest.mark.parametrize("kind", SLOTS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_slots_come_back_in_their_kinds(riders, tmp_path, kind, ending):
    rows = riders.assign(slot=SLOTS[kind][:1] * 61)
    frame = geodp.heatmap(rows, 1, subject="rider", cap=1, bounds=BOX, grid="h3:4", by={"slot": SLOTS[kind]})
    assert same(geodp.read_release(write(frame, tmp_path / f"heat.{ending}")), frame)


MOVED = {
    "some": (slice(None), []),
    "kept": (slice(None), ["id", "minutes", "day"]),
    "nobody": (slice(0, 0), []),
    "nobody, kept": (slice(0, 0), ["id", "minutes", "day"]),
    "nowhere": (slice(60, 61), []),
}


@pytest.mark.parametrize("kind", MOVED)
@pytest.mark.parametrize("ending", [*ENDINGS, "csv", "html", "png"])
def test_moved_points_are_written_in_every_format(riders, tmp_path, kind, ending):
    """Those that were not published have no place, and FlatGeobuf's index takes none of these."""
    rows, keep = MOVED[kind]
    frame = geodp.perturb(riders.iloc[rows], 5, subject="rider", max_reports=1, keep=keep)
    path = write(frame, tmp_path / f"moved.{ending}")
    if ending in ENDINGS:
        assert same(geodp.read_release(path), frame)
    else:
        assert path.stat().st_size > 0


@pytest.mark.parametrize("ending", ["csv", "html", "png"])
def test_a_release_of_no_cell_is_written_in_every_format(riders, tmp_path, ending):
    frame = geodp.heatmap(
        riders.assign(hour=1).iloc[:0], 1, **SOME, threshold=500, grid="h3:7", by={"hour": range(3)}
    )
    path = write(frame, tmp_path / f"heat.{ending}")
    assert path.stat().st_size > 0
    assert ending != "csv" or pd.read_csv(path).columns[:2].tolist() == ["h3_07", "hour"]


def test_days_come_back_as_days(riders, tmp_path):
    """Where a format keeps them; GeoJSON has texts, which are no days, and says so."""
    days = [date(2026, 11, 30), date(2026, 12, 1)]
    rows = riders.assign(day=pd.Series(days[:1] * 61, dtype=object))
    frame = geodp.heatmap(rows, 1, subject="rider", cap=1, bounds=BOX, grid="h3:4", by={"day": days})
    assert geodp.read_release(write(frame, tmp_path / "heat.parquet")).index.equals(frame.index)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_before_that_say_less_come_back_too(tmp_path, ending, monkeypatch):
    frame = copies()["slots"]
    monkeypatch.setattr("geodp.exporting.SCHEMA", "other")
    monkeypatch.setattr("geodp.writing.SCHEMA", "other")
    back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
    assert geodp.record(back) == geodp.record(frame)
    assert back.index.names == frame.index.names


@pytest.mark.parametrize(
    "schema",
    [7, "x", [], {}, {"index": 1, "columns": []}, {"index": [], "columns": []}]
    + [
        {"index": [["h3_06", kind, "h3_06"]], "columns": [["geometry", "geometry"]]}
        for kind in ("int64", "category", "datetime64[x]", "object", "(", None)
    ]
    + [{"index": [["gone", "str", "gone"]], "columns": [["count", "int64"], ["geometry", "geometry"]]}],
    ids=str,
)
def test_what_a_file_says_of_its_frame_is_data(tmp_path, schema):
    """It is held against the record like the rest: an error of ours, or the release."""
    path = geodp.to_geojson(copies()["count"], tmp_path / "heat.geojson")
    path.write_text(json.dumps({**json.loads(path.read_text()), "geodp_frame": schema}))
    with pytest.raises(geodp.NotARelease):
        geodp.read_release(path)


def test_cells_keep_the_index_of_their_places_in_flatgeobuf(tmp_path):
    path = write(copies()["count"], tmp_path / "heat.fgb")
    assert pyogrio.read_info(path)["capabilities"]["fast_spatial_filter"]
