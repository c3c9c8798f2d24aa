"""The table of plans: one row for each combination, free and from arguments alone."""

import math

import numpy as np
import pandas as pd
import pytest

import geodp

BOX = (-74.3, 40.4, -73.6, 41.0)
WHO = {"subject": "rider", "bounds": BOX}


def test_sparse_and_selected_cells_are_compared_too():
    setting = {"subject": "rider", "bounds": BOX, "grid": "h3:12", "population": 10**5}
    refused = geodp.compare_plans([1], 1e-8, cap=[1, 4], **{**setting, "grid": ["h3:8", "h3:12"]})
    assert refused["problem"].str.contains("sparse").tolist() == [False, True, False, True]
    assert refused["threshold"].isna().all()
    for cells in ("sparse", "select"):
        table = geodp.compare_plans([0.5, 1], 1e-8, cap=[1, 4], cells=cells, **setting)
        assert (table["problem"] == "").all()
        assert table[["noise_share", "readable"]].isna().all(axis=None)
        for row in table.itertuples():
            plan = geodp.plan(row.eps, 1e-8, cap=row.cap, cells=cells, **setting)
            assert (row.threshold, row.cells) == (plan.threshold, plan.n_cells)
    fewer = geodp.compare_plans(1, cap=[1, 4], cells="sparse", phantoms=100, **setting)
    assert (
        fewer["threshold"] < geodp.compare_plans(1, cap=[1, 4], cells="sparse", **setting)["threshold"]
    ).all()
    given = geodp.compare_plans(1, cap=[1, 4], cells="sparse", threshold=7, **{**setting, "grid": "h3:5"})
    assert given["threshold"].tolist() == [7, 7]


def test_one_row_for_each_combination_in_order():
    table = geodp.compare_plans([0.5, 1], [0, 1e-6], cap=[1, 16], grid=["h3:5", "h3:6"], **WHO)
    assert len(table) == 16
    assert table["eps"].tolist() == [0.5] * 8 + [1.0] * 8
    assert table["grid"].tolist() == ["h3:5", "h3:6"] * 8
    assert set(table.loc[table["delta"] == 0, "mechanism"]) == {"laplace"}
    assert set(table.loc[(table["delta"] > 0) & (table["cap"] == 16), "mechanism"]) == {"gaussian"}
    assert (table["problem"] == "").all()


def test_every_row_is_what_the_plan_says():
    table = geodp.compare_plans(1, 1e-6, cap=[1, 4], grid="h3:6", population=10_000, **WHO)
    for row in table.itertuples():
        plan = geodp.plan(1, 1e-6, cap=row.cap, grid="h3:6", population=10_000, **WHO)
        assert (row.cells, row.mechanism, row.std) == (plan.n_cells, plan.mechanism, plan.noise_std)
        assert row.halfwidth == plan.measurements[0].law.halfwidth("0.95")
        assert row.rho == float(plan.charge.rho)
        assert row.spent_delta == 0
        assert row.worst == plan.choice.figures.worst


def test_combinations_that_make_no_plan_say_why():
    table = geodp.compare_plans([1, -1], cap=1, grid=["h3:6", "h3:13"], **WHO)
    assert table["problem"].tolist()[0] == ""
    assert '"h3:11" fits' in table["problem"][1]
    assert "eps must be greater than 0" in table["problem"][2]
    assert table["std"].isna().tolist() == [False, True, True, True]
    assert table["mechanism"].tolist() == ["laplace", "", "", ""]


def test_nothing_but_problems_is_an_error():
    with pytest.raises(ValueError, match="h3:11"):
        geodp.compare_plans(1, cap=[1, 2], grid="h3:13", **WHO)
    with pytest.raises(ValueError, match="empty"):
        geodp.compare_plans([], cap=1, grid="h3:6", **WHO)
    with pytest.raises(TypeError):
        geodp.compare_plans([True], cap=1, grid="h3:6", **WHO)
    with pytest.raises(TypeError, match="auto"):
        geodp.compare_plans(1, cap=["auto", 1], grid="h3:6", **WHO)


def test_dtypes_are_the_same_with_and_without_problems():
    fine = geodp.compare_plans(1, cap=1, grid="h3:6", **WHO)
    mixed = geodp.compare_plans(1, cap=1, grid=["h3:6", "h3:13"], **WHO)
    pd.testing.assert_series_equal(fine.dtypes, mixed.dtypes)
    assert fine["noise_share"].isna().all()


def test_a_range_an_array_and_a_budget_are_taken(tmp_path):
    assert len(geodp.compare_plans(np.array([0.5, 1.0]), cap=range(1, 4), grid="h3:5", **WHO)) == 6
    ledger = geodp.Ledger(tmp_path / "a", eps=3, delta=1e-5)
    table = geodp.compare_plans([ledger.split(10)], cap=4, grid="h3:5", **WHO)
    assert table["eps"][0] == float(ledger.split(10).eps)


def test_the_noise_share_is_the_expected_l1_error():
    table = geodp.compare_plans(1, cap=4, grid="h3:6", population=1000, **WHO)
    law = geodp.plan(1, cap=4, grid="h3:6", **WHO).measurements[0].law
    k = np.arange(-2000, 2001)
    expected = table["cells"][0] * float((law.pmf(k) * np.abs(k)).sum()) / 1000
    assert table["noise_share"][0] == pytest.approx(expected, rel=1e-3)
    twice = geodp.compare_plans(1, cap=4, grid="h3:6", population=1000, cells_each=2, **WHO)
    assert twice["noise_share"][0] == pytest.approx(expected / 2, rel=1e-3)
    capped = geodp.compare_plans(1, cap=4, grid="h3:6", population=1000, cells_each=100, **WHO)
    assert capped["noise_share"][0] == pytest.approx(expected / 4, rel=1e-3)


def test_readable_is_the_share_of_an_exponential_above_the_halfwidth():
    table = geodp.compare_plans(1, cap=4, grid="h3:6", population=50_000, **WHO)
    mean = 50_000 / table["cells"][0]
    assert table["readable"][0] == pytest.approx(math.exp(-12 / mean))


def test_weighted_counts_are_compared_in_people():
    weighted = geodp.compare_plans(
        1, 1e-6, cap=16, grid="h3:6", population=9000, contribution="weighted", **WHO
    )
    sampled = geodp.compare_plans(1, 1e-6, cap=16, grid="h3:6", population=9000, **WHO)
    for name in ("std", "halfwidth", "noise_share", "readable"):
        assert weighted[name][0] == pytest.approx(sampled[name][0], rel=0.05), name


def test_each_warning_is_given_once():
    with pytest.warns(geodp.BoundsWarning) as caught:
        geodp.compare_plans([0.5, 1], subject="rider", cap=[1, 2], grid=["h3:1", "h3:2"])
    assert len(caught) == 1
