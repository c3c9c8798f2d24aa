"""perturb with a ledger: noted before it is drawn, once for each label, and never called (eps, delta)."""

import inspect
import json
import math
import os
import signal
import subprocess
import sys
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal
from shapely import Point, Polygon

import geodp
from geodp import ledger as ledger_module
from geodp import locations
from geodp.accessor import Accessor
from geodp.errors import IncompleteRelease, LedgerError, NotARelease, PrivacyUnitWarning, ReplayWarning
from geodp.explaining import explain
from geodp.ledger import Ledger, require_ledger
from geodp.locations import perturb
from geodp.policy import EACH_ROW
from geodp.records import record
from geodp.testing import noiseless, seeded

OURS = {"subject": "rider", "max_reports": 2}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "city.ledger", eps=1, delta=1e-6)


@pytest.fixture
def reports():
    points = [
        Point(-9.14, 38.7),
        None,
        Point(179.999, -16.9),
        Point(),
        Point(0, 90),
        Point(1, 1),
        Point(2, 2),
    ]
    who = ["ana", "ana", "ben", "ben", "cat", None, "ana"]
    return gpd.GeoDataFrame({"rider": who}, geometry=gpd.GeoSeries(points, crs=4326), crs=4326)


def fail(*_, **__):
    raise AssertionError("must not be reached")


def test_the_same_label_returns_the_stored_points_without_data_or_noise(reports, ledger, monkeypatch):
    first = perturb(reports, 5, **OURS, ledger=ledger, label="a")
    assert first.geometry.notna().tolist() == [True, False, True, False, True, False, True]
    assert ledger.metric_spent() == {"eps_per_km": 10}
    for name in ("lonlat", "subjects", "displace", "snap", "move_inside"):
        monkeypatch.setattr(locations, name, fail)
    other = reports.set_geometry(gpd.GeoSeries([Point(50, 50)] * len(reports), crs=4326))
    with pytest.warns(ReplayWarning, match='"a": stored release of .*data not read, nothing spent'):
        again = perturb(other.iloc[:3], 5, **OURS, ledger=ledger, label="a")
    assert_geodataframe_equal(first, again)
    assert shapely.to_wkb(first.geometry.array).tolist() == shapely.to_wkb(again.geometry.array).tolist()
    assert first.attrs == again.attrs
    assert ledger.metric_spent() == {"eps_per_km": 10}
    assert ledger.verify().empty
    assert ledger.verify(again).empty


@pytest.mark.sampled(rate=1e-9)
def test_a_new_label_draws_anew_and_adds_up(reports, ledger):
    results = [perturb(reports, "0.1", **OURS, ledger=ledger, label=f"night {i}") for i in range(3)]
    assert not results[0].geometry.equals(results[1].geometry)
    assert ledger.metric_spent() == {"eps_per_km": 0.6}
    assert [moved.attrs["geodp"]["ledger"]["metric_spent"]["eps_per_km"] for moved in results] == [
        0.2,
        0.4,
        0.6,
    ]
    assert ledger.spent() == {"eps": 0, "delta": 0, "rho": 0}
    assert ledger.releases()["kind"].tolist() == ["metric"] * 3


def test_points_and_maps_share_a_ledger_but_not_its_books(reports, ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        perturb(reports, 1000, **OURS, ledger=ledger, label="points")
        reports.dp.heatmap(
            1, subject="rider", cap=1, bounds=(-10, 38, -8, 39), grid="h3:4", ledger=ledger, label="map"
        )
    assert ledger.remaining()["eps"] == 0
    perturb(reports, 1, **OURS, ledger=ledger, label="more points")  # costs no eps, so none need be left
    assert ledger.metric_spent() == {"eps_per_km": 2002}
    with pytest.raises(LedgerError, match="'map' with other arguments"):
        perturb(reports, 1, **OURS, ledger=ledger, label="map")
    assert ledger.verify().empty


REGION = Polygon([(-10, 38), (-8, 38), (-8, 40), (-10, 40)])


@pytest.mark.parametrize(
    "other",
    [
        {"eps_per_km": 6},
        {"snap_m": 2},
        {"max_reports": 1},
        {"subject": "driver"},
        {"remap": REGION},
    ],
)
def test_a_label_belongs_to_its_arguments(reports, ledger, other, monkeypatch):
    reports["driver"] = reports["rider"]
    given = {"eps_per_km": 5, **OURS, "ledger": ledger, "label": "a"}
    perturb(reports, **given)
    monkeypatch.setattr(locations, "lonlat", fail)
    with pytest.raises(LedgerError, match=rf"other arguments \({next(iter(other))}\)"):
        perturb(reports, **{**given, **other})
    for same in ({"eps_per_km": "5.0"}, {"snap_m": 1.0}, {"reason": "again"}):
        with pytest.warns(ReplayWarning):
            perturb(reports, **{**given, **same})


def test_equal_regions_replay_and_the_remap_is_kept(reports, ledger):
    given = {"eps_per_km": 5, **OURS, "ledger": ledger, "label": "a"}
    first = perturb(reports, remap=REGION, **given)
    with pytest.warns(ReplayWarning):
        again = perturb(reports, remap=gpd.GeoSeries([REGION], crs=4326), **given)
    assert first.attrs == again.attrs


@pytest.mark.parametrize("stage", ["displace", "snap"])
def test_nothing_is_drawn_before_the_note_is_committed(reports, ledger, monkeypatch, stage):
    """At the draw another connection already sees the note; what fails there leaves it incomplete."""

    def stop(*_):
        assert Ledger(ledger._storage.path).metric_spent() == {"eps_per_km": 10}
        raise KeyboardInterrupt

    monkeypatch.setattr(locations, stage, stop)
    with pytest.raises(KeyboardInterrupt):
        perturb(reports, 5, **OURS, ledger=ledger, label="a")
    monkeypatch.undo()
    with pytest.raises(IncompleteRelease, match="was noted at"):
        perturb(reports, 5, **OURS, ledger=ledger, label="a")
    assert ledger.metric_spent() == {"eps_per_km": 10}
    moved = perturb(reports, 5, **OURS, ledger=ledger, label="a", retry=True)
    assert ledger.metric_spent() == {"eps_per_km": 20}
    assert ledger.verify(moved).empty
    assert ledger.releases()["state"].tolist() == ["abandoned", "released"]


def test_what_fails_before_the_note_leaves_nothing(reports, ledger, monkeypatch):
    def stop(_):
        raise ValueError("POINT (12.3456 7.8)")

    monkeypatch.setattr(locations, "lonlat", stop)
    with pytest.raises(geodp.GeoDPError, match="placing the points failed; nothing was spent") as error:
        perturb(reports, 5, **OURS, ledger=ledger, label="a")
    assert error.value.__context__ is None
    monkeypatch.undo()
    assert ledger.releases().empty
    perturb(reports, 5, **OURS, ledger=ledger, label="a")


def test_points_that_could_not_be_stored_are_not_handed_out(reports, ledger, monkeypatch):
    monkeypatch.setattr(Ledger, "store", fail)
    with pytest.raises(AssertionError):
        perturb(reports, 5, **OURS, ledger=ledger, label="a")
    monkeypatch.undo()
    with pytest.raises(IncompleteRelease):
        perturb(reports, 5, **OURS, ledger=ledger, label="a")


CHILD = """
import os, signal, sys
import geopandas as gpd
from geodp import locations
from geodp.ledger import Ledger

if sys.argv[2] == "store":
    Ledger.store = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
else:
    locations.displace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
people = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0], [0]), crs=4326)
locations.perturb(people, 5, subject="rider", max_reports=1, ledger=Ledger(sys.argv[1]), label="a")
"""


@pytest.mark.parametrize("step", ["draw", "store"])
def test_killed_between_note_and_store(ledger, step):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, ledger._storage.url, step],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    people = gpd.GeoDataFrame({"rider": ["a"]}, geometry=[Point(0, 0)], crs=4326)
    given = {"subject": "rider", "max_reports": 1, "ledger": ledger, "label": "a"}
    with pytest.raises(IncompleteRelease):
        perturb(people, 5, **given)
    assert ledger.metric_spent() == {"eps_per_km": 5}
    assert perturb(people, 5, **given, retry=True).attrs["geodp"]["ledger"]["entry"] == 2


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({**OURS}, ValueError, "label is required"),
        ({"label": "a"}, ValueError, "name whose a report is"),
        ({"label": "a", "subject": EACH_ROW}, ValueError, "name whose a report is"),
        ({"label": "a", "subject": "rider"}, ValueError, "max_reports is required"),
        ({**OURS, "label": "a", "keep": ["rider"]}, ValueError, "keep cannot be used with a ledger"),
        ({**OURS, "label": " a"}, ValueError, "printable"),
        ({**OURS, "label": 3}, TypeError, "label must be a str"),
    ],
)
def test_what_a_ledger_does_not_take(reports, ledger, given, error, words, monkeypatch):
    monkeypatch.setattr(locations, "lonlat", fail)
    with pytest.raises(error, match=words):
        perturb(reports, 1, ledger=ledger, **given)
    assert ledger.releases().empty


def test_another_unit_is_refused_before_data_are_read(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "lonlat", fail)
    ledger = Ledger(tmp_path / "a.ledger", eps=1, unit="driver", neighboring="replace_one")
    with pytest.raises(LedgerError, match="is kept for unit 'driver', the release is for 'rider'"):
        perturb(reports, 1, **OURS, ledger=ledger, label="a")
    monkeypatch.undo()
    reports = reports.rename(columns={"rider": "driver"})
    perturb(reports, 1, subject="driver", max_reports=1, ledger=ledger, label="a")


@pytest.mark.parametrize("mode", [noiseless, lambda: seeded(1)])
def test_a_test_release_is_never_put_into_a_ledger(reports, ledger, mode):
    with mode(), pytest.raises(ValueError, match="never put into a ledger"):
        perturb(reports, 1, **OURS, ledger=ledger, label="a")


def test_a_label_without_a_ledger_is_refused(reports):
    with pytest.raises(ValueError, match="give ledger="):
        perturb(reports, 1, **OURS, label="a")
    assert perturb(reports, 1, **OURS).attrs["geodp"]["ledger"] is None


def test_a_required_ledger_is_required_here_too(reports, ledger, monkeypatch):
    monkeypatch.setattr(ledger_module, "_required", False)
    require_ledger()
    with pytest.raises(LedgerError, match="one is required"):
        perturb(reports, 1, **OURS)
    perturb(reports, 1, **OURS, ledger=ledger, label="a")
    monkeypatch.setenv("GEODP_LEDGER", ledger._storage.url)
    with pytest.raises(ValueError, match="label is required"):
        perturb(reports, 1, **OURS)
    assert reports.dp.perturb(1, **OURS, label="b").attrs["geodp"]["ledger"]["entry"] == 2
    monkeypatch.setenv("GEODP_LEDGER", ledger._storage.url + ".gone")
    with pytest.raises(LedgerError, match="there is no ledger"):
        perturb(reports, 1, **OURS, label="c")


def test_neighbours_have_the_same_record_up_to_the_time(reports, tmp_path):
    other = reports.set_geometry(gpd.GeoSeries([Point(50, 50)] * len(reports), crs=4326))
    found = []
    for number, people in enumerate((reports, other)):
        ledger = Ledger(tmp_path / f"{number}.ledger", eps=1)
        facts = perturb(people, 1, **OURS, ledger=ledger, label="a", reason="council").attrs["geodp"]
        part = {k: v for k, v in facts["ledger"].items() if k not in ("name", "id", "time")}
        found.append({**facts, "seal": None, "ledger": part})
    assert found[0] == found[1]
    assert found[0]["ledger"]["reason"] == "council"


# --- the frame and its record ------------------------------------------------------------------------


def test_changed_points_are_found(reports, ledger, tmp_path):
    moved = perturb(reports, 1, **OURS, ledger=ledger, label="a")
    moved.to_parquet(tmp_path / "a.parquet")
    assert ledger.verify(gpd.read_parquet(tmp_path / "a.parquet")).empty
    nudged = moved.copy()
    nudged.loc[0, "geometry"] = Point(np.nextafter(moved.geometry.x[0], 90), moved.geometry.y[0])
    assert ledger.verify(nudged)["problem"].tolist() == ["column 'lon' differs from what was released"]
    hidden = moved.copy()
    hidden.loc[0, "geometry"] = None
    assert len(ledger.verify(hidden)) == 2
    assert ledger.verify(moved.iloc[1:])["problem"].str.contains("7 were released").all()
    bare = pd.DataFrame({"rider": ["x"] * 7})
    texts = pd.DataFrame({"geometry": ["POINT (0 0)"] * 7})
    for lost in (bare, texts):
        lost.attrs = moved.attrs
        assert len(ledger.verify(lost)) == 2
    assert record(moved) == moved.attrs["geodp"]
    forged = moved.copy()
    forged.attrs["geodp"] = {**moved.attrs["geodp"], "eps_per_km": 0.1}
    for changed in (forged, moved.iloc[1:], moved.assign(rider="x"), pd.concat([moved, moved])):
        with pytest.raises(NotARelease):
            record(changed)


def test_what_the_ledger_holds_can_be_explained(reports, ledger):
    moved = perturb(reports, 5, **OURS, ledger=ledger, label="a")
    held = ledger.record("a")
    assert held["ledger"] == moved.attrs["geodp"]["ledger"]
    for text in (explain(moved), explain(held)):
        assert "not (eps, delta)-differential privacy" in text
        assert "entry 1 of city.ledger" in text
        assert "10 per km" in text
    assert explain(perturb(reports, 5, **OURS, keep=["rider"]))


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f6b2", '"', "\n"])
def test_the_record_stays_small_with_names_of_any_length(letter):
    name, kept = letter * 5000, letter * 499 + "k"
    people = gpd.GeoDataFrame({name: ["a"], kept: [1]}, geometry=[Point(0, 0)], crs=4326)
    facts = perturb(
        people,
        "0.123456789012345678901234567890",
        subject=name,
        max_reports=10**9,
        snap_m=1.25,
        remap=REGION,
        keep=[kept],
    ).attrs["geodp"]
    assert len(json.dumps(facts)) < 2000
    assert facts["unit"] != name
    with pytest.raises(ValueError, match="max_reports"):
        perturb(people, 1, subject=name, max_reports=10**9 + 1)


def test_two_long_names_are_two_labels_arguments(ledger):
    names = ["x" * 5000, "x" * 5001]
    people = gpd.GeoDataFrame({name: ["a"] for name in names}, geometry=[Point(0, 0)], crs=4326)
    perturb(people, 1, subject=names[0], max_reports=1, ledger=ledger, label="a")
    with pytest.raises(LedgerError, match=r"other arguments \(subject\)"):
        perturb(people, 1, subject=names[1], max_reports=1, ledger=ledger, label="a")


def test_amounts_without_end_are_noted_rounded_up(reports, ledger):
    eps = "0." + "3" * 900
    facts = perturb(reports, eps, subject="rider", max_reports=3, ledger=ledger, label="a").attrs["geodp"]
    assert len(json.dumps(facts)) < 2000
    assert 1 <= ledger.metric_spent()["eps_per_km"] <= math.nextafter(1, 2)
    assert ledger.verify().empty


# --- the accessor ------------------------------------------------------------------------------------


def parameters(call, *without):
    found = inspect.signature(call).parameters
    return {name: (p.kind, p.default) for name, p in found.items() if name not in without}


def test_the_accessor_has_the_functions_signature():
    assert parameters(Accessor.perturb, "self") == parameters(geodp.perturb, "gdf")
    assert geodp.perturb is perturb
    assert geodp.radius_quantile_m(1, 0.5) < geodp.expected_displacement_m(1)


def test_the_accessor_forwards_every_argument(reports, ledger):
    given = {"snap_m": 10, "remap": REGION, **OURS, "ledger": ledger, "label": "a", "reason": "council"}
    moved = reports.dp.perturb(3, **given)
    with pytest.warns(ReplayWarning):
        again = perturb(reports, 3, **given)
    assert_geodataframe_equal(moved, again)
    assert moved.attrs == again.attrs
    with seeded(1):
        kept = reports.dp.perturb(3, subject=EACH_ROW, keep=["rider"])
    with seeded(1):
        assert_geodataframe_equal(kept, perturb(reports, 3, subject=EACH_ROW, keep=["rider"]))


def test_the_warning_names_the_users_line(reports):
    for call in (lambda: perturb(reports, 1), lambda: reports.dp.perturb(1)):
        with pytest.warns(PrivacyUnitWarning) as caught:
            call()
        assert caught[0].filename == __file__


def test_a_view_has_no_perturb(reports):
    """Cap, box and grid of a view bound what cells show; none of them bounds a report."""
    view = reports.dp(subject="rider", cap=1, bounds=(-10, 38, -8, 39), grid="h3:4")
    assert not hasattr(view, "perturb")
