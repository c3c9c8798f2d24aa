"""``cells="sparse"``: equal in law to the listed release, cut at the threshold."""

import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy.stats import binom, chi2

import geodp
from geodp import testing
from geodp.grids import ranked as ranking
from geodp.grids.ranked import RankedH3
from geodp.queries import sparse as module

BOX = (-74.1, 40.6, -73.9, 40.8)
WORLD = (-180, -90, 180, 90)
SETTING = {"subject": "rider", "cap": 2, "bounds": BOX, "grid": "h3:6", "cells": "sparse"}
ENTROPY = testing.Mode(testing.OS_ENTROPY, bytes(16))


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    n = 600
    return frame(rng.integers(0, 60, n), rng.normal(-74, 0.04, n), rng.normal(40.7, 0.04, n))


def frame(riders, lon, lat):
    hours = (np.arange(len(lon)) * 7) % 3
    points = gpd.points_from_xy(lon, lat)
    return gpd.GeoDataFrame({"rider": riders, "hour": hours}, geometry=points, crs=4326)


@pytest.fixture
def numbered(monkeypatch):
    """Make small boxes large: numbers of a superset, most of them outside the domain."""
    monkeypatch.setattr(ranking, "LISTED", 0)
    monkeypatch.setattr(ranking, "_COVER", 4)
    ranking._ranked_h3.cache_clear()
    yield
    ranking._ranked_h3.cache_clear()


# The law ---------------------------------------------------------------------------------------------------


def outcomes(plan, exact, times, draw=None):
    """Draw many releases; return noisy counts by key, shape (times, n_keys), NaN where nothing was released."""
    n = plan.layout.n_keys
    table = np.full((times, n), np.nan)
    for i in range(times):
        noisy = (draw or plan.query.draw)(plan, exact, ENTROPY)
        table[i, noisy["key"]] = noisy["count"]
    return table


def least_p_value(table, truth, law, threshold):
    """Hold what was released, key by key, against the law of truth + X cut at the threshold."""
    worst = 1.0
    for key, count in enumerate(truth):
        values = np.arange(threshold, threshold + 400)
        expected = np.append(law.pmf(values - count), law.cdf(threshold - 1 - count)) * len(table)
        seen = table[:, key]
        found = np.append([(seen == v).sum() for v in values], np.isnan(seen).sum())
        worst = min(worst, lumped(found, expected))
    return worst


def lumped(found, expected, least=8):
    """Chi-square over bins, small ones thrown together from the largest value down."""
    order = np.argsort(-expected, kind="stable")
    found, expected = found[order], expected[order]
    keep = max(1, int((expected >= least).sum()))
    found = np.append(found[:keep], found[keep:].sum())
    expected = np.append(expected[:keep], expected[keep:].sum())
    some = expected > 1e-12
    if found[~some].sum():
        return 0.0
    return chi2.sf(((found - expected)[some] ** 2 / expected[some]).sum(), max(1, some.sum() - 1))


def joint_p_value(table, truth, law, threshold):
    """Hold which keys were released together against independent ones."""
    p = law.sf(threshold - 1 - np.array(truth))
    code = (~np.isnan(table)) @ (1 << np.arange(len(truth)))
    sets = (np.arange(2 ** len(truth))[:, None] >> np.arange(len(truth))) & 1
    expected = np.prod(np.where(sets, p, 1 - p), axis=1) * len(table)
    return lumped(np.bincount(code, minlength=len(expected)), expected)


def small_plan(mechanism, threshold, eps, **more):
    setting = {**SETTING, "bounds": (0, 0, 2, 2), "grid": "square:1", **more}
    return geodp.plan(eps, 1e-6, mechanism=mechanism, threshold=threshold, **setting)


SMALL = [("laplace", 1, 1.0), ("laplace", 4, 0.7), ("gaussian", 2, 3.0), ("gaussian", 9, 1.0)]


@pytest.mark.sampled(rate=1e-7)
@pytest.mark.parametrize(("mechanism", "threshold", "eps"), SMALL)
def test_a_small_map_has_exactly_the_law_of_the_listed_release_cut(mechanism, threshold, eps):
    # False alarms: 1e-9 for each of five chi-squares.
    plan = small_plan(mechanism, threshold, eps)
    law, truth = plan.measurements[0].law, [0, 3, 0, 7]
    table = outcomes(plan, {"key": np.array([1, 3]), "count": np.array([3, 7])}, 4000)
    assert least_p_value(table, truth, law, threshold) > 1e-9
    assert joint_p_value(table, truth, law, threshold) > 1e-9


def occupied_hits_kept(plan, exact, mode):
    """Planted: hits on cells that hold somebody are taken for empty cells' own."""
    noisy = plan.query.draw(plan, {"key": exact["key"][:0], "count": exact["count"][:0]}, mode)
    own = module.Unlisted.draw(plan.query, plan, exact, mode)
    fresh = ~np.isin(own["key"], noisy["key"])
    return {name: np.concatenate([noisy[name], own[name][fresh]]) for name in ("key", "count")}


def values_at_the_threshold(plan, exact, mode):
    """Planted: empty cells are released at the threshold itself."""
    noisy = plan.query.draw(plan, exact, mode)
    empty = ~np.isin(noisy["key"], exact["key"])
    return {**noisy, "count": np.where(empty, plan.threshold, noisy["count"])}


def one_more(plan, exact, mode):
    """Planted: empty cells must pass a threshold one higher."""
    noisy = plan.query.draw(plan, exact, mode)
    kept = np.isin(noisy["key"], exact["key"]) | (noisy["count"] > plan.threshold)
    return {name: values[kept] for name, values in noisy.items()}


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.parametrize("planted", [occupied_hits_kept, values_at_the_threshold, one_more])
def test_planted_faults_are_seen_at_the_same_size(planted):
    plan = small_plan("laplace", 4, 0.7)
    law, truth = plan.measurements[0].law, [0, 3, 0, 7]
    exact = {"key": np.array([1, 3]), "count": np.array([3, 7])}
    table = outcomes(plan, exact, 4000, planted)
    assert least_p_value(table, truth, law, 4) < 1e-9


@pytest.mark.sampled(rate=1e-8)
@pytest.mark.parametrize(
    ("bounds", "grid"), [(BOX, "h3:6"), ((179.5, -17, -179.5, -16), "h3:5"), ((-180, 88, 180, 90), "h3:4")]
)
def test_empty_cells_pass_as_often_as_listed_ones_in_superset_and_domain(numbered, bounds, grid):
    # False alarms: 1e-9 each side of the total, 1e-9 for evenness over cells.
    setting = {**SETTING, "bounds": bounds, "grid": grid, "threshold": 3}
    plan = geodp.plan(1.0, **setting)
    domain = plan.layout.domain
    assert not domain.exact
    listed = geodp.grids.grid(grid).domain(plan.policy.bounds)
    assert domain.n_cells > 1.3 * listed.n_cells
    nobody = {"key": np.empty(0, np.int64), "count": np.empty(0, np.int64)}
    times = 150
    keys = np.concatenate([plan.query.draw(plan, nobody, ENTROPY)["key"] for _ in range(times)])
    places = listed.index.get_indexer(domain.ids(keys))
    assert (places >= 0).all()
    p, trials = float(plan.measurements[0].law.sf(2)), times * listed.n_cells
    assert min(binom.sf(len(keys) - 1, trials, p), binom.cdf(len(keys), trials, p)) > 1e-9
    found = np.bincount(places, minlength=listed.n_cells)
    spread = ((found - times * p) ** 2 / (times * p * (1 - p))).sum()
    assert chi2.sf(spread, listed.n_cells) > 1e-9


@pytest.mark.sampled(rate=1e-9)
def test_hits_outside_the_domain_would_be_seen(numbered, monkeypatch):
    plan = geodp.plan(1.0, **SETTING, threshold=1)
    monkeypatch.setattr(RankedH3, "contains", lambda self, cells: cells >= 0)
    keys = plan.query.draw(plan, {"key": np.empty(0, np.int64), "count": np.empty(0, np.int64)}, ENTROPY)[
        "key"
    ]
    listed = geodp.H3(6).domain(plan.policy.bounds).index
    assert (listed.get_indexer(plan.layout.domain.ids(keys)) < 0).any()


@pytest.mark.sampled(rate=1e-7)
def test_the_whole_world_has_the_law_of_the_listed_release_cut():
    # False alarms: 1e-9 (122 cells, three of them with people), 1e-9 for evenness.
    plan = geodp.plan(
        1.0, subject="rider", cap=2, bounds=(-180, -90, 180, 90), grid="h3:0", cells="sparse", threshold=3
    )
    law, truth = plan.measurements[0].law, np.zeros(122, int)
    truth[[4, 50, 121]] = [1, 6, 30]
    exact = {"key": np.flatnonzero(truth), "count": truth[truth > 0]}
    table = outcomes(plan, exact, 1500)
    assert least_p_value(table[:, [4, 50, 121]], [1, 6, 30], law, 3) > 1e-9
    found, p = (~np.isnan(table[:, truth == 0])).sum(axis=0), float(law.sf(2))
    assert chi2.sf(((found - 1500 * p) ** 2 / (1500 * p * (1 - p))).sum(), len(found)) > 1e-9


@pytest.mark.sampled(rate=3e-9)
def test_times_and_cells_are_numbered_together(rows):
    # False alarms: 1e-9 over 3 slots.
    plan = geodp.plan(1.0, **SETTING, by={"hour": range(3)}, threshold=2)
    assert plan.layout.n_keys == 3 * plan.n_cells
    nobody = {"key": np.empty(0, np.int64), "count": np.empty(0, np.int64)}
    keys = np.concatenate([plan.query.draw(plan, nobody, ENTROPY)["key"] for _ in range(200)])
    p = float(plan.measurements[0].law.sf(1))
    expected = 200 * plan.n_cells * p
    found = np.bincount(keys % 3, minlength=3)
    assert chi2.sf(((found - expected) ** 2 / (expected * (1 - p))).sum(), 3) > 1e-9
    heat = plan.release(rows)
    assert heat.index.names == ["h3_06", "hour"]


@pytest.mark.parametrize("grid", ["h3:6", "square:0.05", "square:5000@32618"])
def test_equality_with_the_listed_release_without_noise(rows, numbered, grid):
    with testing.noiseless(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for by in (None, {"hour": range(3)}):
            setting = {**SETTING, "cap": 50, "mechanism": "laplace", "by": by, "grid": grid}
            listed = geodp.heatmap(rows, 1000, **{**setting, "cells": "all"})
            numbered_map = geodp.heatmap(rows, 1000, **setting, threshold=3, estimator="clamp")
            kept = listed[listed["noisy_count"] >= 3]
            assert numbered_map.index.tolist() == kept.index.tolist()
            assert numbered_map["noisy_count"].tolist() == kept["noisy_count"].tolist()
            assert numbered_map["edge"].tolist() == kept["edge"].tolist()
            assert shapely.equals(numbered_map.geometry.array, kept.geometry.array).all()
            for level in range(listed.index.nlevels):
                a, b = (index.get_level_values(level) for index in (numbered_map.index, kept.index))
                assert (a.dtype, a.name) == (b.dtype, b.name)


# What rows can tell ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", ["sparse", "select"])
@pytest.mark.parametrize("by", [None, {"hour": range(3)}])
@pytest.mark.parametrize("grid", ["h3:6", "square:0.05", "square:5000@32618"])
def test_all_but_rows_and_numbers_is_the_same_for_any_two_frames(rows, cells, by, grid):
    odd = rows.copy()
    odd["rider"] = pd.Series([None, True, 2.5, ("a",), np.nan] * 120, dtype=object)
    lines = rows.copy()
    lines.geometry = [
        shapely.LineString([(0, 0), (1, 1)]),
        None,
        shapely.Point(),
        shapely.Point(np.nan, 0),
    ] * 150
    seen = []
    for people in (rows, rows.iloc[:0], rows.iloc[::-1].set_index(np.arange(600) + 5), odd, lines):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            heat = geodp.heatmap(people, 1.0, 1e-6, **{**SETTING, "cells": cells, "grid": grid}, by=by)
        levels = [heat.index.get_level_values(i) for i in range(heat.index.nlevels)]
        facts = [list(heat.columns), [str(t) for t in heat.dtypes], str(heat.crs), heat.attrs]
        facts += [[(level.name, str(level.dtype)) for level in levels], [str(w.message) for w in caught]]
        seen.append(json.dumps(facts))
        assert geodp.record(heat)["cells"] == cells
    assert len(set(seen)) == 1


def test_empty_results_work_everywhere(rows, tmp_path):
    for more in ({}, {"by": {"hour": range(3)}}, {"grid": "square:0.05"}, {"return_geometry": False}):
        heat = geodp.heatmap(rows, 0.01, **{**SETTING, **more}, threshold=10**6)
        assert len(heat) == 0
        assert heat["count"].dtype == heat["noisy_count"].dtype == np.int64
        assert heat["estimate"].dtype == np.float64
        assert geodp.record(heat)["threshold"] == 10**6
        if "return_geometry" in more:
            continue
        assert heat.crs == 4326
        heat.to_parquet(tmp_path / "heat.parquet")
        back = gpd.read_parquet(tmp_path / "heat.parquet")
        assert geodp.record(back) == geodp.record(heat)
        assert heat.to_crs(3857).total_bounds.shape == (4,)


# The plan --------------------------------------------------------------------------------------------------


def test_a_trillion_cells_are_planned_at_once():
    with pytest.warns(geodp.BoundsWarning):
        plan = geodp.plan(1.0, subject="rider", cap=1, grid="h3:12", cells="sparse")
    law = plan.measurements[0].law
    assert plan.n_cells == 1_660_954_464_122
    assert (
        float(law.sf(plan.threshold - 1)) * plan.n_cells
        <= 1
        < float(law.sf(plan.threshold - 2)) * plan.n_cells
    )
    assert f"{plan.threshold} or more" in str(plan)
    assert "empty ones expected" in str(plan)
    assert plan.to_dict()["threshold"] == plan.threshold
    with pytest.raises(ValueError, match="never lists them"):
        _ = plan.index


def test_phantoms_and_threshold_are_public_and_part_of_the_key():
    plans = [geodp.plan(1.0, **SETTING, **more) for more in ({}, {"phantoms": 5}, {"threshold": 7})]
    assert len({plan.key for plan in plans}) == 3
    assert plans[1].threshold < plans[0].threshold
    assert plans[2].threshold == 7
    assert geodp.plan(1.0, **SETTING, phantoms="0.5") == geodp.plan(1.0, **SETTING, phantoms=0.5)


def test_the_noise_is_that_of_the_listed_release(rows):
    for more in ({}, {"grid": "square:1", "bounds": (0, 0, 1, 2), "cap": 9}):
        a, b = (geodp.plan(1.0, 1e-6, **{**SETTING, **more, "cells": cells}) for cells in ("all", "sparse"))
        assert a.measurements == b.measurements
        assert a.charge == b.charge


def test_intervals_hold_for_all_public_keys_at_once():
    plan = geodp.plan(1.0, **SETTING, threshold=1)
    law, h = plan.measurements[0].law, plan.measurements[0].law.halfwidth("0.95", plan.layout.n_keys)
    assert (1 - 2 * float(law.sf(h))) ** plan.layout.n_keys >= 0.95
    assert (1 - 2 * float(law.sf(h - 1))) ** plan.layout.n_keys < 0.95
    heat = plan.release(frame(["a"], [-74.0], [40.7]))
    assert (heat["upper"] - heat["noisy_count"]).eq(h).all()
    assert (heat["noisy_count"] - heat["lower"]).eq(h).all()


@pytest.mark.parametrize("grid", ["h3:5", "square:0.5"])
def test_a_map_all_of_whose_cells_are_full(grid):
    """Nothing is left to fit a prior to; every count is taken at its word."""
    rng = np.random.default_rng(0)
    crowd = frame(range(20_000), rng.uniform(-74.2, -73.8, 20_000), rng.uniform(40.5, 41, 20_000))
    heat = geodp.heatmap(
        crowd, 1.0, subject="rider", cap=1, bounds=(-74.05, 40.68, -73.9, 40.82), grid=grid, cells="sparse"
    )
    assert len(heat) >= 1
    assert (heat["estimate"] == heat["noisy_count"]).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"contribution": "weighted"}, "sample"),
        ({"strategy": "levels"}, "flat"),
        ({"rescale": True}, "rescaled"),
        ({"estimator": "norm_sub"}, "leave estimator out"),
        ({"cap": "auto"}, "choose_cap"),
        ({"grid": "box"}, "leave cells out"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": 2, "phantoms": 2}, "give one"),
        ({"phantoms": 0}, "phantoms"),
        ({"cells": "all", "threshold": 4}, 'cells="sparse"'),
        ({"cells": "select", "phantoms": 4}, 'cells="sparse"'),
        ({"query": geodp.Mean("hour", (0, 2))}, "heatmaps"),
        ({"bounds": None, "grid": "h3:12", "threshold": 3}, "Raise threshold"),
        ({"bounds": None, "grid": "h3:15", "by": {"hour": range(1000)}}, "can be numbered"),
        ({"cells": "some"}, "select"),
    ],
)
def test_what_does_not_go_together_says_so(given, words):
    with pytest.raises(ValueError, match=words):
        geodp.plan(1.0, 1e-6, **{**SETTING, **given})


def test_a_domain_too_large_points_to_sparse_cells():
    setting = {"subject": "rider", "cap": 1, "bounds": (-74.3, 40.4, -73.6, 41.0)}
    with pytest.raises(ValueError, match=r'Or keep it with cells="sparse"'):
        geodp.plan(1, **setting, grid="h3:12")
    with pytest.raises(ValueError, match="more than 5,000,000") as caught:
        geodp.plan(1, **setting, grid="h3:12", contribution="weighted")
    assert "sparse" not in str(caught.value)
    with pytest.raises(ValueError, match="more than 5,000,000") as caught:
        geodp.plan_together({"fine": {"grid": "h3:12"}}, 1, **setting)
    with pytest.raises(ValueError, match="more than 5,000,000") as too_many:
        geodp.plan(1, **{**setting, "bounds": (-120, 30, -70, 45)}, grid=geodp.Square("1e-7"))
    with pytest.raises(ValueError, match="can be numbered"):
        geodp.plan(1, **{**setting, "bounds": (-120, 30, -70, 45)}, grid=geodp.Square("1e-7"), cells="sparse")
    assert "sparse" not in str(too_many.value)


# The map ---------------------------------------------------------------------------------------------------


def test_count_is_the_posterior_mean_behind_the_threshold():
    from geodp.estimators.censored import posterior_means

    rng = np.random.default_rng(2)
    law = geodp.plan(1.0, **SETTING).measurements[0].law
    truth = (rng.pareto(1.2, 30_000) * 3).astype(int)
    noisy = truth + rng.integers(-8, 9, len(truth))
    kept = noisy >= 9
    means = posterior_means(noisy[kept], law, 9, 10**6)
    order = np.argsort(noisy[kept], kind="stable")
    assert (np.diff(means[order]) >= -1e-9).all()
    assert means.min() >= 0
    assert (means[noisy[kept] > 9 + 15 * law.std] == noisy[kept][noisy[kept] > 9 + 15 * law.std]).all()
    # All empty: a million cells explain a few at the threshold, and a few among ten do not need explaining.
    assert posterior_means(np.full(100, 12), law, 12, 40_000).max() < 6
    assert len(posterior_means(np.empty(0, np.int64), law, 9, 10)) == 0


def test_the_map_column_is_whole_and_close_to_its_estimate(rows):
    heat = geodp.heatmap(rows, 2.0, **SETTING, threshold=2)
    assert (heat["count"] >= 0).all()
    assert ((heat["count"] - heat["estimate"]).abs() < 1).all()
    clamp = geodp.heatmap(rows, 2.0, **SETTING, threshold=2, estimator="clamp")
    assert (clamp["count"] == clamp["noisy_count"]).all()


# The books -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", ["sparse", "select"])
@pytest.mark.parametrize("by", [None, {"hour": range(3)}])
@pytest.mark.parametrize("grid", ["h3:6", "square:0.05", "square:5000@32618"])
def test_a_replay_is_the_same_frame_and_reads_no_rows(rows, tmp_path, cells, by, grid):
    ledger = geodp.Ledger(tmp_path / "books.ledger", eps=5, delta=1e-4, unit="rider")
    setting = {**SETTING, "cells": cells, "by": by, "grid": grid}
    first = geodp.heatmap(rows, 2.0, 1e-5, **setting, ledger=ledger, label="a")
    with pytest.warns(geodp.ReplayWarning):
        again = geodp.heatmap(rows.iloc[:0], 2.0, 1e-5, **setting, ledger=ledger, label="a")
    pd.testing.assert_frame_equal(pd.DataFrame(first), pd.DataFrame(again))
    assert first.attrs == again.attrs
    assert ledger.verify().empty
    assert ledger.verify(again).empty
    if len(first):
        moved = first.set_index(first.index[::-1])
        moved.attrs = first.attrs
        assert len(first) == 1 or not ledger.verify(moved).empty


def test_a_cap_can_be_chosen_for_a_domain_nobody_lists(rows):
    setting = {"subject": "rider", "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:13"}
    with testing.noiseless():
        cap = geodp.choose_cap(rows, 1.0, **setting)
    assert cap.record["n_cells"] > 10**8
    assert len(geodp.heatmap(rows, 1.0, **setting, cap=cap, cells="sparse", phantoms="1e-9")) == 0


@pytest.mark.parametrize("cells", ["sparse", "select"])
def test_partitions_give_what_memory_gives(rows, cells):
    dask_geopandas = pytest.importorskip("dask_geopandas")
    pytest.importorskip("geodp.dask")
    parts = dask_geopandas.from_geopandas(rows, npartitions=4)
    setting = {**SETTING, "grid": "h3:9", "cells": cells, "by": {"hour": range(3)}}
    setting |= {"threshold": 2} if cells == "sparse" else {}
    with testing.noiseless(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (geodp.heatmap(points, 100, 1e-6, **setting, mechanism="laplace") for points in (rows, parts))
    pd.testing.assert_frame_equal(pd.DataFrame(a), pd.DataFrame(b))
