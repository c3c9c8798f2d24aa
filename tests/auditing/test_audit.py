"""The curator's look: it says all that a release keeps to itself, and no release can reach it."""

import ast
import dataclasses
import inspect
import json
import logging
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from shapely import LineString, Point, box

import geodp
from geodp import auditing

NYC = (-74.3, 40.4, -73.6, 41.0)
BOX = (-74.1, 40.6, -73.9, 40.8)
WHERE = {"subject": "rider", "bounds": BOX, "grid": "h3:6"}
HERE = Point(-74.0, 40.7)


def frame(rows, **columns):
    return gpd.GeoDataFrame(
        {"rider": [r for r, _ in rows], **columns}, geometry=[p for _, p in rows], crs=4326
    )


def left_out(audit):
    return dict(audit.left_out)


def test_every_reason_is_counted():
    """lonboard #146, pg_diffix #25: what releases leave out silently is said here."""
    rows = frame(
        [
            ("a", HERE),
            ("a", None),
            ("a", Point()),
            ("b", LineString([(0, 0), (1, 1)])),
            ("b", Point(float("nan"), float("nan"))),
            ("b", Point(float("inf"), 1)),
            ("c", Point(0, 95)),
            (None, HERE),
            (float("nan"), HERE),
            ("d", Point(10, 60)),
        ],
        hour=[1, 1, 1, 1, 1, 1, 1, 1, 1, 30],
        minutes=[1.0, np.nan, 2, 3, 4, 5, 6, 7, 500, 8],
    )
    audit = geodp.audit(
        rows, **WHERE, outside="drop", by={"hour": range(24)}, value="minutes", value_bounds=(0, 120)
    )
    assert left_out(audit) == {
        "have no usable subject id": 2,
        "have no geometry": 1,
        "are not points": 1,
        "are empty": 1,
        "have coordinates that are not finite": 2,
        "lie beyond a pole, or are lost in reprojection": 1,
        "have none of the levels": 1,
        "have no usable minutes": 1,
        "have a minutes beyond value_bounds, and move to them": 1,
    }
    assert (audit.rows, audit.placed, audit.subjects) == (10, 1, 1)


def shifted(crs):
    rng = np.random.default_rng(1)
    points = gpd.GeoSeries(
        gpd.points_from_xy(rng.normal(-74, 0.03, 50), rng.normal(40.7, 0.03, 50)), crs=4326
    )
    points = points.to_crs(crs)
    return gpd.GeoDataFrame({"rider": [f"r{i % 7}" for i in range(50)]}, geometry=points)


@pytest.mark.parametrize("crs", [4326, 3857, 2263])
def test_swapped_axes_are_said_loudly(crs):
    """h3-py #70, gis.se 254869: nearly everything lies outside, and inside once x and y are exchanged."""
    right = shifted(crs)
    swapped = right.set_geometry(gpd.GeoSeries(shapely.points(right.geometry.y, right.geometry.x), crs=crs))
    audit = geodp.audit(swapped, **WHERE)
    assert audit.warnings[0].startswith("AXES SWAPPED? 100.0 %")
    assert str(audit).splitlines()[1].split()[:2] == ["LOOK", "AXES"]
    assert not any("AXES" in text for text in geodp.audit(right, **WHERE).warnings)
    elsewhere = right.set_geometry(right.geometry.translate(3e6 if crs != 4326 else 30))
    assert "is it the right box" in geodp.audit(elsewhere, **WHERE).warnings[0]


def test_swapped_axes_beyond_a_pole_are_said_too():
    """San Francisco swapped has latitude -122: unusable, not merely outside."""
    swapped = frame([("a", Point(37.77, -122.42))] * 9)
    audit = geodp.audit(swapped, subject="rider", bounds=(-123, 37, -122, 38), grid="h3:6")
    assert audit.warnings[0].startswith("AXES SWAPPED?")


def test_swapped_axes_are_seen_with_zones_and_across_180():
    zones = gpd.GeoDataFrame({"z": ["x"]}, geometry=[box(-74.1, 40.6, -73.9, 40.8)], crs=4326)
    swapped = frame([("a", Point(40.7, -74.0))] * 3)
    assert "AXES" in geodp.audit(swapped, subject="rider", grid=geodp.Zones(zones, key="z")).warnings[0]
    fiji = frame([("a", Point(-17.5, 179.9 - 180)), ("a", Point(-16.9, 0.5))])
    assert geodp.audit(fiji, subject="rider", bounds=(179, -18, -179, -16), grid="h3:5").outside == 1


def test_what_caps_keep_is_right_by_hand():
    """Three riders in 1, 2 and 6 cells: 9 pairs, of which a cap of 1, 2, 4, 8 keeps 3, 5, 7, 9."""
    spots = [Point(-74.25 + 0.1 * i, 40.7) for i in range(6)]
    rows = frame([("a", spots[0])] * 3 + [("b", p) for p in spots[:2]] + [("c", p) for p in spots])
    audit = geodp.audit(rows, subject="rider", cap=3, bounds=NYC, grid="h3:6")
    assert [(k.cap, round(k.pairs * 9), round(k.subjects * 3)) for k in audit.kept] == [
        (1, 3, 1),
        (2, 5, 2),
        (3, 6, 2),
        (4, 7, 2),
        (8, 9, 3),
    ]
    assert audit.cell_counts == ((1, 1), (2, 1), (6, 1))
    assert audit.cells.largest == 6
    assert audit.subject_rows.largest == 6
    assert audit.pair_rows.largest == 3
    assert "cap 3 <-" in str(audit)


def test_norms_are_those_of_a_subject_before_any_clip():
    spots = [Point(-74.25 + 0.1 * i, 40.7) for i in range(2)]
    rows = frame(
        [("a", spots[0]), ("a", spots[0]), ("a", spots[1]), ("b", spots[1])], minutes=[1, 2, 4, 5000]
    )
    audit = geodp.audit(
        rows, subject="rider", bounds=NYC, grid="h3:6", value="minutes", value_bounds=(0, 100)
    )
    norms = dict(audit.norms)
    assert norms["values"].largest == 5000
    assert norms["L1 norms"].largest == 100
    assert norms["L2 norms"].median == 5
    assert norms["L1 norms"].median == 7


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"bounds": (-74.0, 40.0, -73.0, 41.0)}, "bounds (west)"),
        ({"bounds": (-74.0, 40.7, -73.5, 40.75)}, "bounds (west, south, east, north)"),
        ({"by": {"hour": [3, 1, 2]}}, "levels of hour"),
        ({"value": "minutes", "value_bounds": (10, 30)}, "value_bounds (low, high)"),
        ({"value": "minutes", "value_bounds": (0, 30)}, "value_bounds (high)"),
    ],
)
def test_it_says_when_an_argument_equals_the_extent_of_the_data(arguments, text):
    """diffprivlib #20: total_bounds, unique() and max() are where such arguments come from."""
    rows = frame(
        [("a", Point(-74.0, 40.75)), ("b", Point(-73.5, 40.7)), ("c", Point(-73.7, 40.72))],
        hour=[1, 2, 3],
        minutes=[10, 20, 30],
    )
    found = geodp.audit(rows, **{"subject": "rider", "bounds": NYC, "grid": "h3:5", **arguments}).warnings
    assert any(text in warning and "taken from the rows" in warning for warning in found)
    safe = {"by": {"hour": range(24)}, "value": "minutes", "value_bounds": (0, 120)}
    assert geodp.audit(rows, subject="rider", bounds=(-75, 40, -73, 41), grid="h3:5", **safe).warnings == ()


def test_delta_and_population_are_held_against_the_number_found(trips):
    audit = geodp.audit(trips, **{**WHERE, "bounds": NYC}, delta=1e-3, population=30)
    assert audit.people_at_delta == pytest.approx(0.04)
    assert any("more than the declared 30" in text for text in audit.warnings)
    assert any("not below 1/40" in text for text in geodp.audit(trips, **WHERE, delta=0.1).warnings)
    assert "0.04 people" in str(audit)


def test_without_a_subject_and_without_rows(trips):
    audit = geodp.audit(trips)
    assert (audit.unit, audit.subjects, audit.outside) == ("row", 400, None)
    empty = geodp.audit(
        trips.iloc[:0], **WHERE, by={"hour": range(24)}, value="minutes", value_bounds=(0, 1), delta=0.1
    )
    assert (empty.rows, empty.cells, empty.kept) == (0, None, ())
    for audit in (empty, geodp.audit(trips.iloc[:1].assign(rider=None), **WHERE)):
        json.dumps(audit.to_dict())
        assert str(audit)


def test_it_is_marked_frozen_and_plain(trips):
    audit = trips.dp.audit(**WHERE, cap=4)
    assert str(audit).startswith("Audit: RAW DATA, NOT FOR PUBLICATION")
    assert "NOT FOR PUBLICATION" in audit._repr_html_()
    assert "not covered by eps" in str(audit)
    assert "choose_cap" in str(audit)
    assert "<script" not in audit._repr_html_()
    assert audit.to_dict()["publication"] == "raw data, not for publication"
    assert json.loads(json.dumps(audit.to_dict()))["rows"] == 400
    with pytest.raises(dataclasses.FrozenInstanceError):
        audit.rows = 1


def test_the_picture_is_marked_too(trips):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    for rows in (trips, trips.iloc[:0]):
        drawn = rows.dp.audit(**WHERE).plot()
        assert "NOT FOR PUBLICATION" in drawn.get_suptitle()
        drawn.draw_without_rendering()
        plt.close(drawn)


def test_names_from_the_frame_are_escaped(trips):
    renamed = trips.rename(columns={"rider": "<b>r"})
    assert "<b>r" not in renamed.dp.audit(**{**WHERE, "subject": "<b>r"})._repr_html_()


def test_a_view_looks_with_its_own_policy(trips):
    for cap in (4, "auto"):
        view = trips.dp(**WHERE, cap=cap)
        assert view.audit(delta=1e-3) == trips.dp.audit(**WHERE, cap=cap, delta=1e-3)
    assert view.audit().cap is None
    assert trips.dp.audit(**WHERE) == geodp.audit(trips, **WHERE)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"value": "rider"}, TypeError, "numbers"),
        ({"value": "nothing"}, ValueError, "nothing"),
        ({"subject": "nobody"}, ValueError, "nobody"),
        ({"bounds": np.array(NYC)}, TypeError, "numpy array"),
        ({"by": {"hour": ["7"]}}, TypeError, "hour"),
        ({"delta": 2}, ValueError, "delta"),
    ],
)
def test_bad_arguments_are_refused_without_a_value_of_a_row(trips, arguments, error, text):
    with pytest.raises(error, match=text) as caught:
        geodp.audit(trips, **{**WHERE, **arguments})
    assert not any(rider in str(caught.value) for rider in trips["rider"])


def test_odd_values_in_columns_do_not_stop_it(trips):
    odd = trips.assign(day=[["x"]] * 200 + [None] * 100 + ["mon"] * 100)
    audit = geodp.audit(odd, **WHERE, by={"day": ["mon", "tue"]})
    assert left_out(audit)["have none of the levels"] == 300
    assert not any("levels" in text for text in audit.warnings)


def test_both_doors_have_the_same_signature():
    flat = list(inspect.signature(geodp.audit).parameters.values())[1:]
    door = list(inspect.signature(geodp.accessor.Accessor.audit).parameters.values())[1:]
    assert [(p.name, p.default, p.annotation) for p in flat] == [
        (p.name, p.default, p.annotation) for p in door
    ]


def test_it_leaves_no_trace(trips, tmp_path, caplog):
    ledger = geodp.Ledger(tmp_path / "l", eps=1)
    before = (tmp_path / "l").read_bytes()
    copy = trips.copy()
    with caplog.at_level(logging.DEBUG, logger="geodp"):
        trips.dp(**WHERE, cap=4, ledger=ledger).audit(delta=1e-3)
    assert not [record for record in caplog.records if record.name.startswith("geodp")]
    assert trips.attrs == {}
    pd.testing.assert_frame_equal(pd.DataFrame(trips), pd.DataFrame(copy))
    assert (tmp_path / "l").read_bytes() == before


def test_no_release_calls_it(trips, monkeypatch):
    """Every kind of release works where looking is an error."""

    def forbidden(*_, **__):
        raise AssertionError("a release looked at raw data")

    for name in ("audit", "look", "_measured"):
        monkeypatch.setattr(auditing, name, forbidden)
    view = trips.dp(**WHERE, cap=4)
    view.heatmap(1)
    view.sum("minutes", 1, value_bounds=(0, 120))
    view.mean("minutes", 1, value_bounds=(0, 120))
    view.centroid(1)
    trips.dp.heatmap(1, **WHERE, cap="auto")
    geodp.choose_cap(trips, 1, **WHERE)
    geodp.release_together(trips, {"a": geodp.Count()}, 1, **WHERE, cap=4)
    with pytest.raises(AssertionError):
        view.audit()


def test_only_the_doors_import_it():
    """No module of a release names the module, so that nothing can come to depend on it."""
    doors = {"__init__.py", "accessor.py", "views.py", "auditing.py"}
    for path in Path(geodp.__file__).parent.rglob("*.py"):
        if (path.name in doors and path.parent.name == "geodp") or path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            )
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            assert not any("auditing" in name for name in [module, *names]), path


@pytest.mark.parametrize("grid", ["h3:7", "square:0.02"])
def test_cells_too_many_to_list_are_looked_at_all_the_same(trips, monkeypatch, grid):
    asked = {"subject": "rider", "bounds": NYC, "grid": grid, "by": {"hour": range(20)}, "cap": 3}
    asked |= {"value": "minutes", "value_bounds": (0, 120), "delta": 1e-6}
    listed = geodp.audit(trips, **asked)
    monkeypatch.setattr("geodp.plans.MAX_CELLS", 10)
    assert geodp.audit(trips, **asked).to_dict() == listed.to_dict()


def test_a_look_at_the_whole_world_at_the_finest_resolution(trips):
    fine = geodp.audit(trips, subject="rider", grid="h3:15", bounds=(-180, -90, 180, 90))
    assert (fine.rows, fine.placed) == (len(trips), len(trips))
