"""release_together: one plan, one mechanism, one debit, one guarantee on every frame."""

import inspect
import json
import warnings
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
from shapely import Point, box

import geodp
from geodp import testing
from geodp.queries import Centroid, Count, Mean, Sum

NYC = (-74.3, 40.4, -73.6, 41.0)
WHO = {"subject": "rider", "cap": 4, "bounds": NYC, "grid": "h3:6"}
VIEWS = {
    "coarse": Count(),
    "fine": {"grid": "h3:7", "cap": 8},
    "by hour": {"by": {"hour": range(24)}, "estimator": "clamp", "return_geometry": False},
    "dwell": Mean("minutes", value_bounds=(0, 120)),
    "middle": {"query": Centroid(), "grid": "box"},
}


@pytest.fixture
def ledger(tmp_path):
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, delta=1e-5)


def together(trips, views=None, eps=1, delta=1e-6, weights=None, **more):
    return geodp.release_together(trips, views or VIEWS, eps, delta, weights, **{**WHO, **more})


def test_each_view_is_what_its_own_call_would_return(trips):
    with testing.noiseless():
        frames = together(trips, mechanism="laplace")
        alone = {
            "coarse": trips.dp.heatmap(1, **WHO),
            "fine": trips.dp.heatmap(1, **{**WHO, "grid": "h3:7", "cap": 8}),
            "by hour": trips.dp.heatmap(
                1, **WHO, by={"hour": range(24)}, estimator="clamp", return_geometry=False
            ),
        }
    assert list(frames) == list(VIEWS)
    for name, frame in alone.items():
        same = ["noisy_count", "edge"]
        assert frames[name][same].equals(frame[same])
        assert list(frames[name].columns) == list(frame.columns)
        assert frames[name].index.equals(frame.index)
    assert isinstance(frames["middle"], gpd.GeoDataFrame)
    assert not isinstance(frames["by hour"], gpd.GeoDataFrame)


def test_every_frame_names_the_joint_guarantee(trips):
    for name, frame in together(trips).items():
        record = geodp.record(frame)
        assert record["guarantee"] == "(1, 1e-06)-DP for one rider more or less"
        assert record["spent"]["eps"] == 1
        assert record["joint"] == {"view": name, "of": 5, "weight": "1/5"}
        assert len(json.dumps({k: v for k, v in record.items() if k != "ledger"})) < 2000


def test_one_debit_and_a_replay_that_reads_nothing(trips, ledger, monkeypatch):
    from geodp import together as module

    frames = together(trips, ledger=ledger, label="night 1")
    assert len(ledger.releases()) == 1
    assert ledger.spent()["eps"] == 1
    assert ledger.verify().empty
    assert all(ledger.verify(frame).empty for frame in frames.values())
    record = ledger.record("night 1")
    assert record["query"] == "together"
    assert set(record["views"]) == set(VIEWS)
    assert {m["name"] for m in record["measurements"]} >= {"coarse/count", "dwell/sum", "dwell/count"}

    def read(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr(module, "tally", read)
    with pytest.warns(geodp.ReplayWarning):
        again = together(trips, ledger=ledger, label="night 1")
    for name, frame in frames.items():
        assert again[name].equals(frame)
        assert again[name].attrs == frame.attrs
    with pytest.raises(geodp.LedgerError, match="other arguments"):
        together(trips, weights=[1, 1, 1, 1, 2], ledger=ledger, label="night 1")
    with pytest.raises(AssertionError, match="rows were read"):
        together(trips, ledger=ledger, label="night 2")
    assert ledger.spent()["eps"] == 1


def test_verify_sees_numbers_of_another_view(trips, ledger):
    frames = together(trips, {"a": Count(), "b": Count()}, ledger=ledger, label="x")
    swapped = frames["a"].copy()
    swapped["noisy_count"] = frames["b"]["noisy_count"]
    assert not ledger.verify(swapped).empty
    assert not frames["a"]["noisy_count"].equals(frames["b"]["noisy_count"])


def test_what_does_not_fit_is_refused_whole(trips, ledger):
    with pytest.raises(geodp.BudgetExceeded):
        together(trips, eps=4, ledger=ledger, label="a")
    assert ledger.releases().empty


def test_a_failure_in_one_view_spends_nothing(trips, ledger, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret row")

    monkeypatch.setattr(Mean, "tally", fail)
    with pytest.raises(geodp.GeoDPError, match="nothing was spent") as caught:
        together(trips, ledger=ledger, label="a")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert ledger.releases().empty


def test_one_view_alone_has_the_noise_of_its_own_plan():
    joint = geodp.plan_together({"only": Count()}, 1, 1e-6, **WHO)
    plan = geodp.plan(1, 1e-6, **WHO)
    assert joint["only"].scale == plan.scale
    assert joint.charge == plan.charge
    assert "1 views" not in str(joint)


def test_one_mechanism_for_all_although_views_alone_would_differ():
    views = {"few": {"cap": 1}, "many": {"cap": 64}}
    alone = [geodp.plan(1, 1e-6, **{**WHO, **view}).mechanism for view in views.values()]
    assert alone == ["laplace", "gaussian"]
    for weights in ([1, 1], [100, 1], [1, 100]):
        joint = geodp.plan_together(views, 1, 1e-6, weights, **WHO)
        assert {part.mechanism for part in joint.parts} == {joint.mechanism}
        assert "over all 2 views" in joint["few"].choice.because
    assert geodp.plan_together(views, 1, 1e-6, [100, 1], **WHO).mechanism == "laplace"
    assert geodp.plan_together(views, 1, 1e-6, [1, 100], **WHO).mechanism == "gaussian"
    assert geodp.plan_together(views, 1, **WHO).mechanism == "laplace"
    assert geodp.plan_together(views, 1, **WHO).charge.delta == 0
    assert geodp.plan_together(views, 1, 1e-6, **WHO, mechanism="gaussian").mechanism == "gaussian"
    assert geodp.plan_together(views, 1, 1e-6, **WHO, criterion="max_error").mechanism == "gaussian"


def test_together_is_cheaper_than_one_by_one():
    """Four equal Gaussian views cost the rho of one; one by one at a quarter each they have more noise."""
    views = {name: {"cap": 64} for name in "abcd"}
    joint = geodp.plan_together(views, 1, 1e-6, **WHO)
    one = geodp.plan(1, 1e-6, **{**WHO, "cap": 64})
    quarter = geodp.plan("0.25", "0.25e-6", **{**WHO, "cap": 64})
    assert joint["a"].noise_std == pytest.approx(2 * one.noise_std, rel=1e-3)
    assert joint["a"].noise_std < 0.6 * quarter.noise_std
    assert abs(float(joint.charge.rho / one.charge.rho) - 1) < 1e-9


def test_a_budget_of_a_series_pays(trips, tmp_path):
    ledger = geodp.Ledger(tmp_path / "series", eps=1, delta=1e-5)
    budget = ledger.split(3, l1=64, l2=8)
    for night in range(3):
        together(trips, {"a": Count(), "b": {"grid": "h3:5"}}, budget, 0, ledger=ledger, label=f"n{night}")
    with pytest.raises(geodp.BudgetExceeded):
        together(trips, {"a": Count(), "b": {"grid": "h3:5"}}, budget, 0, ledger=ledger, label="n3")
    assert ledger.verify().empty


def test_plans_mappings_and_queries_are_the_same_thing(trips):
    query = Sum("minutes", value_bounds=(0, 120))
    plan = geodp.plan(7, query=query, **WHO, estimator="clamp")
    a = geodp.plan_together({"v": {"query": query, "estimator": "clamp"}, "w": Count()}, 1, **WHO)
    b = geodp.plan_together({"v": plan, "w": geodp.plan(3, **WHO)}, 1)
    assert a == b
    assert a.key == b.key
    assert hash(a) == hash(b)
    assert a.charge.eps == 1


@pytest.mark.parametrize("ways", [{"strategy": "levels"}, {"contribution": "weighted"}, {"rescale": True}])
def test_plans_of_other_ways_keep_them(trips, ways):
    plan = geodp.plan(1, 1e-6, **WHO, **ways)
    joint = geodp.plan_together({"a": plan, "b": plan}, 1, 1e-6, mechanism=plan.mechanism)
    assert geodp.plan_together({"a": plan, "b": plan}, 1, 1e-6)["a"].query == joint["a"].query
    assert type(joint["a"].query) is type(plan.query)
    assert [m.name for m in joint["a"].measurements] == [m.name for m in plan.measurements]
    with testing.noiseless():
        a, alone = joint.release(trips)["a"], plan.release(trips)
    measured = [column for column in alone if column.startswith("noisy")]
    assert a[measured].equals(alone[measured])
    geodp.record(a)


def test_plans_that_leave_cells_out_are_refused():
    plan = geodp.plan(1, 1e-6, **WHO, cells="sparse")
    with pytest.raises(ValueError, match="all cells"):
        geodp.plan_together({"a": plan}, 1, 1e-6)


def test_zones_stand_beside_bounds(trips):
    zones = gpd.GeoDataFrame({"borough": ["x"]}, geometry=[box(-74.1, 40.6, -73.8, 40.9)], crs=4326)
    frames = together(trips, {"zones": {"grid": geodp.Zones(zones, key="borough")}, "cells": Count()})
    assert frames["zones"].index.tolist() == ["x"]
    assert "edge" not in frames["zones"]


def test_weights_by_name_or_in_order():
    a = geodp.plan_together(VIEWS, 1, 1e-6, [1, 2, 3, 4, 5], **WHO)
    b = geodp.plan_together(
        VIEWS, 1, 1e-6, dict(zip(VIEWS, ["0.1", 0.2, Fraction(3, 10), 0.4, 0.5], strict=True)), **WHO
    )
    assert a == b
    assert sum(a.weights) == 1


def test_the_page_says_what_it_is():
    joint = geodp.plan_together(VIEWS, 1, 1e-6, **WHO)
    for part in ("Joint plan: 5 views", "one rider more or less", "eps 1, delta 1e-06", "by hour", "20"):
        assert part in str(joint)
    assert len(joint._repr_html_()) < 4096
    assert "<script" not in joint._repr_html_()
    json.dumps(joint.to_dict())


OTHER = geodp.plan(1, subject="driver", cap=4, bounds=NYC, grid="h3:6")
SWAPPED = geodp.plan(1, neighboring="replace_one", **WHO)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"views": {}}, ValueError, "views"),
        ({"views": [Count()]}, TypeError, "views"),
        ({"views": {1: Count()}}, TypeError, "names"),
        ({"views": {"": Count()}}, ValueError, "names"),
        ({"views": {"a\n": Count()}}, ValueError, "names"),
        ({"views": {"a" * 41: Count()}}, ValueError, "names"),
        ({"views": {"a": "count"}}, TypeError, "query"),
        ({"views": {"a": {"query": "count"}}}, TypeError, "query"),
        ({"views": {"a": {"gird": "h3:7"}}}, ValueError, "gird"),
        ({"views": {"a": {"subject": "driver"}}}, ValueError, "once, for all"),
        ({"views": {"a": {"neighboring": "replace_one"}}}, ValueError, "once, for all"),
        ({"views": {"a": {"mechanism": "gaussian"}}}, ValueError, "once, for all"),
        ({"views": {"a": {"cap": "auto"}}}, ValueError, "choose_cap"),
        ({"cap": "auto"}, ValueError, "choose_cap"),
        ({"views": {"a": OTHER}}, ValueError, "subject"),
        ({"views": {"a": SWAPPED}}, geodp.LedgerError, "neighboring"),
        ({"weights": [1]}, ValueError, "weights"),
        ({"weights": [1, 0]}, ValueError, "weights"),
        ({"weights": [1, float("nan")]}, ValueError, "weights"),
        ({"weights": {"a": 1, "x": 2}}, ValueError, "weights"),
        ({"weights": np.array([1.0, 2.0])}, ValueError, "weights"),
        ({"eps": 0}, ValueError, "eps"),
        ({"delta": 0.5}, ValueError, "delta"),
        ({"mechanism": "gaussian", "delta": 0}, ValueError, "delta"),
        ({"mechanism": "median"}, ValueError, "mechanism"),
        ({"views": {"a": Mean("nothing", value_bounds=(0, 1)), "b": Count()}}, ValueError, "nothing"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_spent(trips, ledger, change, error, text):
    arguments = {"views": {"a": Count(), "b": Count()}, **WHO, "eps": 1, "delta": 1e-6, **change}
    with pytest.raises(error, match=text):
        geodp.release_together(trips, **arguments, ledger=ledger, label="a")
    assert ledger.releases().empty


def test_views_that_protect_different_people_are_refused():
    with pytest.raises(ValueError, match="different people"):
        geodp.plan_together({"a": geodp.plan(1, **WHO), "b": OTHER}, 1)
    with pytest.raises(ValueError, match="different people"):
        geodp.plan_together({"a": geodp.plan(1, **WHO), "b": SWAPPED}, 1)
    auto = geodp.plan(1, **{**WHO, "cap": "auto"})
    with pytest.raises(ValueError, match="choose_cap"):
        geodp.plan_together({"a": auto}, 1)


def test_rows_without_a_subject_warn_once(trips):
    with pytest.warns(geodp.PrivacyUnitWarning) as caught:
        geodp.plan_together({"a": Count(), "b": {"grid": "h3:5"}}, 1, bounds=NYC, grid="h3:6")
    assert len(caught) == 1


def test_everything_but_the_numbers_is_identical_whatever_the_rows(trips):
    strange = trips.head(2).copy()
    strange.geometry = [None, Point(float("nan"), 1)]
    seen = []
    for rows in (trips, trips.iloc[:0], strange):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frames = together(rows)
        shapes = [
            (name, f.attrs, list(f.columns), [str(t) for t in f.dtypes], f.index.tolist())
            for name, f in frames.items()
        ]
        seen.append((shapes, [str(w.message) for w in caught]))
    assert seen[0] == seen[1] == seen[2]


def test_planning_and_releasing_take_the_same_arguments():
    plan, release = (inspect.signature(f).parameters for f in (geodp.plan_together, geodp.release_together))
    books = ["gdf", "ledger", "label", "retry", "reason", "progress"]
    assert list(plan) == [name for name in release if name not in books]
    for name, parameter in plan.items():
        assert (parameter.default, parameter.annotation) == (release[name].default, release[name].annotation)
