"""The record: what it holds, how long it gets, and which frames it still describes."""

import json
import re

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from kinds_of_releases import copies
from shapely import Point

import geodp
from geodp import testing
from geodp.records import release_record

# Small populations keep these pages short; that such maps are warned of is tested in test_calls.py.
pytestmark = pytest.mark.filterwarnings("ignore:This map would be:geodp.NoiseWarning")

BOX = (-74.3, 40.4, -73.6, 41.0)
KEYS = {
    *("mechanism", "scale", "std", "asked", "spent", "eps", "delta", "l1", "l2", "cap", "rows_per_cell"),
    *("neighboring", "unit", "bounds", "grid", "estimator", "rho", "guarantee", "noise", "version"),
    *("laplace", "gaussian", "because", "crossover_cap", "libraries", "ledger"),
}
ODD = ['<script>alert("x")</script>', "a\nchosen  Laplace", "é\u202e" * 40, "x" * 3000, "\"}],'", "\ud800"]


@pytest.fixture
def releases():
    return copies()


def test_every_release_is_described_by_its_record(releases):
    for name, frame in releases.items():
        found = geodp.record(frame)
        assert found["columns"] is not None, name
        assert found == frame.attrs["geodp"]
        assert found.keys() >= KEYS, name
        assert len(json.dumps(found)) < 2000, name
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert found["mechanism"] in ("laplace", "gaussian")


def test_a_record_is_a_copy(releases):
    geodp.record(releases["count"])["asked"]["eps"] = 100
    assert geodp.record(releases["count"])["asked"]["eps"] == 1


def test_records_survive_geoparquet_with_and_without_geometry(releases, tmp_path):
    for frame in releases.values():
        frame.to_parquet(tmp_path / "a.parquet")
        assert geodp.record(gpd.read_parquet(tmp_path / "a.parquet")) == geodp.record(frame)
        assert geodp.record(pd.read_parquet(tmp_path / "a.parquet")) == geodp.record(frame)
        bare = pd.DataFrame(frame.drop(columns="geometry"))
        bare.attrs = frame.attrs
        bare.to_parquet(tmp_path / "b.parquet")
        assert geodp.record(pd.read_parquet(tmp_path / "b.parquet")) == geodp.record(frame)


@pytest.mark.parametrize(
    "keys",
    [
        pd.Categorical(["b", "a", "c"], categories=["c", "b", "a"], ordered=True),
        pd.to_datetime(["2026-01-01", "2025-01-01", "2024-01-01"]),
        [1.5, 2.5, 0.5],
        ["zone / 1", "zone\n2", "z3"],
    ],
)
def test_zone_keys_of_any_dtype_survive_geoparquet(trips, keys, tmp_path):
    squares = [shapely.box(-74.3 + 0.2 * i, 40.4, -74.1 + 0.2 * i, 41.0) for i in range(3)]
    zones = geodp.Zones(gpd.GeoDataFrame({"key": keys}, geometry=squares, crs=4326), "key")
    heat = trips.dp.heatmap(1, subject="rider", cap=1, grid=zones)
    heat.to_parquet(tmp_path / "zones.parquet")
    assert geodp.record(gpd.read_parquet(tmp_path / "zones.parquet")) == heat.attrs["geodp"]


def bare(frame):
    """Without outlines, so that pandas can calculate with it; the attributes stay."""
    out = pd.DataFrame(frame.drop(columns="geometry"))
    out.attrs = frame.attrs
    return out


def keeping(frame, change):
    """Apply a change and drag the record along, as pandas does or does not."""
    out = change(frame)
    out.attrs = frame.attrs
    return out


CHANGES = {
    "concat": lambda f: pd.concat([f, f]),
    "one row less": lambda f: f.iloc[1:],
    "filtered": lambda f: f[np.arange(len(f)) % 2 == 0],
    "no rows": lambda f: f.iloc[:0],
    "another order": lambda f: f.iloc[::-1],
    "one row twice": lambda f: f.iloc[[0, 0, *range(2, len(f))]],
    "a fresh index": lambda f: f.reset_index(drop=True),
    "index as column": lambda f: f.reset_index(),
    "another index name": lambda f: f.rename_axis([f"{n}x" for n in f.index.names]),
    "extra column": lambda f: f.assign(share=0.5),
    "missing column": lambda f: f.drop(columns=f.columns[0]),
    "renamed column": lambda f: f.rename(columns={f.columns[0]: "cases"}),
    "column twice": lambda f: pd.concat([f, f.iloc[:, [0]]], axis=1),
    "as text": lambda f: f.astype({f.columns[0]: str}),
}


@pytest.mark.parametrize("kind", ["count", "slots", "sum", "mean", "centroid", "zones", "weighted"])
@pytest.mark.parametrize("change", CHANGES)
def test_changed_frames_are_no_releases(releases, kind, change):
    frame = bare(releases[kind])
    geodp.record(frame)
    with pytest.raises(geodp.NotARelease, match="no longer the release"):
        geodp.record(keeping(frame, CHANGES[change]))


@pytest.mark.parametrize("kind", ["count", "dropped", "sum", "weighted"])
@pytest.mark.parametrize("change", [lambda f: 2 * f, lambda f: f + f, lambda f: f - f, lambda f: f // 3])
def test_arithmetic_is_noticed_by_the_interval(releases, kind, change):
    frame = bare(releases[kind])
    numbers = [name for name in frame.columns if name != "edge"]
    changed = frame.copy()
    changed[numbers] = change(frame[numbers]).astype(frame[numbers].dtypes)
    with pytest.raises(geodp.NotARelease, match="is not where the noise puts it"):
        geodp.record(keeping(frame, lambda f: changed))


@pytest.mark.parametrize(
    "tampered", [{"eps": 0.01}, {"noise": "none"}, {"n_cells": 3}, {"more": 1}, {"seal": "x"}]
)
def test_changed_records_are_noticed(releases, tampered):
    frame = releases["count"]
    frame.attrs["geodp"] = {**frame.attrs["geodp"], **tampered}
    with pytest.raises(geodp.NotARelease, match="record was changed"):
        geodp.record(frame)


@pytest.mark.parametrize("key", ["seal", "columns", "measurements", "rows", "query", "cells"])
def test_records_with_gaps_are_noticed(releases, key):
    frame = releases["count"]
    frame.attrs["geodp"] = {k: v for k, v in frame.attrs["geodp"].items() if k != key}
    with pytest.raises(geodp.NotARelease, match="record was changed"):
        geodp.record(frame)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(), gpd.GeoDataFrame(geometry=[Point(0, 0)], crs=4326), None, 7]
)
def test_frames_without_a_record(frame):
    with pytest.raises(geodp.NotARelease, match="carries no geodp record"):
        geodp.record(frame)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("query", ["count", "sum", "mean", "centroid"])
def test_records_stay_short_and_plain_whatever_the_names(name, query):
    made = {
        "count": geodp.Count(),
        "sum": geodp.Sum(name, value_bounds=(-1 / 3, "120.123456789")),
        "mean": geodp.Mean(name, value_bounds=(-1 / 3, "120.123456789")),
        "centroid": geodp.Centroid(),
    }[query]
    plan = geodp.plan(
        "1.2345678901234567890123456789",
        "1e-7",
        query=made,
        subject=name,
        cap=1000,
        population=12345,
        bounds=(-74.123456789012, 40.123456789012, -73.123456789012, 41.123456789012),
        grid="h3:5",
        by={f"{name}{i}": range(3) for i in range(3)},
        mechanism="gaussian",
    )
    found = release_record(plan, testing.OS_ENTROPY, None)
    text = json.dumps(found, allow_nan=False)
    assert len(text) < 2048
    assert json.loads(text) == found
    assert len(plan._repr_html_().encode()) < 4000


def test_long_names_are_told_apart():
    places = {"bounds": BOX, "grid": "h3:5"}
    a, b = (geodp.plan(1, subject="x" * 3000 + end, cap=1, **places).to_dict() for end in "ab")
    assert a["unit"] != b["unit"]
    assert a["unit"].startswith("xxx")


def test_long_grid_names_and_digits_stay_short():
    digits = "0.5" + "1234567890" * 40
    plan = geodp.plan(digits, subject="rider", cap=1, bounds=BOX, grid="h3:5")
    assert plan.to_dict()["charge"] is None
    assert len(json.dumps(plan.to_dict())) < 1900


def test_measurements_recompute_the_charge(releases):
    from geodp.accounting import Charge
    from geodp.reconcile import cost_problem

    for frame in releases.values():
        found = geodp.record(frame)
        assert cost_problem(Charge.from_dict(found["charge"]), found["measurements"]) is None


def test_both_mechanisms_are_in_the_unit_of_the_result(releases):
    found = geodp.record(releases["sum"])
    chosen = found[found["mechanism"]]
    assert chosen["std"] == pytest.approx(found["std"], rel=1e-5)
    assert chosen["scale"] == pytest.approx(found["scale"], rel=1e-5)


def test_the_plan_knows_the_record_before_any_data(trips):
    plan = geodp.plan(1, 1e-6, subject="rider", cap=4, bounds=BOX, grid="h3:6")
    found = geodp.record(plan.release(trips))
    assert {
        **plan.to_dict(),
        "noise": "operating-system entropy",
        "ledger": None,
        "seal": found["seal"],
    } == found


def test_records_of_any_two_data_sets_are_equal(trips):
    view = {"subject": "rider", "cap": 2, "bounds": BOX, "grid": "h3:6"}
    far = trips.assign(rider="one").set_geometry(gpd.points_from_xy([10.0] * 400, [60.0] * 400, crs=4326))
    for call in (
        lambda f: f.dp.heatmap(1, 1e-6, **view),
        lambda f: f.dp.mean("minutes", 1, 1e-6, value_bounds=(0, 120), by={"hour": range(24)}, **view),
        lambda f: f.dp.centroid(1, 1e-6, **view),
    ):
        whole, none, one, other = (call(f) for f in (trips, trips.iloc[:0], trips.iloc[:1], far))
        assert geodp.record(whole) == geodp.record(none) == geodp.record(one) == geodp.record(other)


def test_test_releases_say_so(trips):
    for context, noise in ((testing.noiseless(), "none (test)"), (testing.seeded(1), "seeded (test)")):
        with context:
            heat = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:6")
        assert geodp.record(heat)["noise"] == noise


def test_moved_points_have_a_record_too(trips, tmp_path):
    moved = trips.dp.perturb(eps_per_km=1, subject="rider", max_reports=2, keep=["minutes"])
    assert geodp.record(moved)["guarantee"] == "geo-indistinguishability"
    moved.to_parquet(tmp_path / "moved.parquet")
    assert geodp.record(gpd.read_parquet(tmp_path / "moved.parquet")) == geodp.record(moved)
    for change in (lambda f: f.iloc[1:], lambda f: f.assign(x=1), lambda f: f.drop(columns="minutes")):
        with pytest.raises(geodp.NotARelease):
            geodp.record(change(moved))


def test_the_ledgers_part_stands_apart(trips, tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3, delta=1e-5, control="DPIA-2026-14")
    view = trips.dp(subject="rider", cap=1, bounds=BOX, grid="h3:6", ledger=ledger)
    found = geodp.record(view.heatmap(1, 1e-6, label="2026-11-30 nightly"))
    assert found["ledger"]["label"] == "2026-11-30 nightly"
    assert found["ledger"]["control"] == "DPIA-2026-14"
    assert found["ledger"]["ceiling"]["eps"] == 3
    assert len(json.dumps(found)) < 2048
    plain = view.plan(1, 1e-6).to_dict()
    assert {key: found[key] for key in plain} == plain
    assert re.fullmatch("[0-9a-f]{16}", found["seal"])


@pytest.mark.parametrize("cells", ["sparse", "select"])
def test_released_cells_alone_are_described_too(trips, tmp_path, cells):
    trips["rider"] = [f"r{i}" for i in range(len(trips))]
    view = trips.dp(subject="rider", cap=1, bounds=BOX, grid="h3:7")
    heat = view.heatmap(1, 1e-6, mechanism="laplace", cells=cells, grid="h3:5")
    found = geodp.record(heat)
    assert (found["cells"], found["rows"]) == (cells, None)
    assert len(json.dumps(found)) < 2000
    heat.to_parquet(tmp_path / "some.parquet")
    assert geodp.record(gpd.read_parquet(tmp_path / "some.parquet")) == found
    assert "which cells there are is part of what is protected" in " ".join(geodp.explain(heat).split())
    assert len(json.loads(geodp.to_geojson(heat, tmp_path / "a").read_text())["features"]) == len(heat)
    with pytest.raises(geodp.NotARelease, match="only some cells"):
        geodp.total(heat, BOX)
    with pytest.raises(geodp.NotARelease, match="no longer"):
        geodp.record(heat.assign(lower=heat["lower"] - 1))
