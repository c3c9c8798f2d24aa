"""One subject with more rows, cells and slots than count: the bound of the plan holds all the same.

The neighbours of ``tests/attacks`` are drawn; this one is built so that every limit binds.
"""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import Point

import geodp
from geodp import release, testing

BOX = (0.0, -2.0, 4.0, 2.0)  # sixteen squares
QUERIES = {
    "count": (geodp.Count(), (0,)),
    "sum": (geodp.Sum("v", (0, 120)), (120, 1e300)),
    "sum, skewed": (geodp.Sum("v", (-1, 10)), (10, 1e300)),
    "sum, clipped": (geodp.Sum("v", (0, 120), clip=50), (120, 1e300)),
    "mean": (geodp.Mean("v", (0, 120)), (0, 120, 1e300)),
    "centroid": (geodp.Centroid(), (0,)),
}
BY = {"hour": [0, 1, 2]}


def tallied(plan, rows):
    """Return the exact totals; inside a test block, so that an error of the code is seen as what it is."""
    with testing.noiseless():
        return release.tally(plan, rows, testing.current())


def crowd(value):
    """Four rows in the north-east of each of nine squares, in each of three hours."""
    cells = [(i % 4 + 0.999, i // 4 - 1.001) for i in range(9)] * 4
    return gpd.GeoDataFrame(
        {"rider": "me", "v": float(value), "hour": np.repeat(np.arange(3.0), len(cells))},
        geometry=[Point(*xy) for xy in cells] * 3,
        crs=4326,
    )


def others(n):
    """People of one row each, whom no limit concerns; with many of them rows are bounded in another way."""
    return crowd(1.0).iloc[np.arange(n) % 36].assign(rider=[f"p{i}" for i in range(n)])


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("by", [None, BY], ids=["cells", "cells and slots"])
@pytest.mark.parametrize("company", [0, 400], ids=["alone", "among many"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_crowd_of_one_stays_within_what_the_plan_claims(name, company, by, mechanism, neighboring):
    query, values = QUERIES[name]
    people = others(company)
    for cap, rows_per_cell in ((1, 1), (2, 3)):
        plan = geodp.plan(
            1,
            1e-6,
            query=query,
            by=by,
            mechanism=mechanism,
            subject="rider",
            cap=cap,
            rows_per_cell=rows_per_cell,
            neighboring=neighboring,
            bounds=BOX,
            grid="square:1",
        )
        for value in values:
            found = tallied(plan, pd.concat([crowd(value), people]))
            without = tallied(plan, people)
            for m in plan.measurements:
                moved = [
                    abs(a - b) for a, b in zip(found[m.name].tolist(), without[m.name].tolist(), strict=True)
                ]
                assert sum(moved) <= m.l1
                assert sum(d * d for d in moved) <= m.l2_squared


@pytest.mark.parametrize("rows_per_cell", [1, 3])
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_counts_of_a_crowd_are_exactly_cap_and_rows(cap, rows_per_cell):
    plan = geodp.plan(
        1, subject="rider", cap=cap, rows_per_cell=rows_per_cell, bounds=BOX, grid="square:1", by=BY
    )
    (counts,) = tallied(plan, crowd(0)).values()
    assert np.sort(counts).tolist() == [0] * (48 - cap) + [rows_per_cell] * cap


@pytest.mark.parametrize("query", [geodp.Sum("v", (0, 120)), geodp.Mean("v", (0, 120))], ids=["sum", "mean"])
def test_rows_without_a_number_do_not_count(query):
    """NaN and infinities are no values; a huge number is one, and counts as the bound."""
    rows = crowd(60).iloc[:4]
    rows["v"] = [np.nan, np.inf, -np.inf, 1e300]
    rows["rider"] = ["a", "b", "c", "d"]
    plan = geodp.plan(1, query=query, subject="rider", cap=1, bounds=BOX, grid="square:1")
    found = tallied(plan, rows)
    largest = plan.query.high - getattr(plan.query, "middle", 0)
    assert sum(found["sum"].tolist()) == largest * 2**plan.query.j
    assert found.get("count", np.array([1])).sum() == 1


def test_rows_without_an_id_do_not_count():
    rows = crowd(0).assign(rider=[None, np.nan, True, 2.5, ("a",), "x"] * 18)
    plan = geodp.plan(1, subject="rider", cap=3, bounds=BOX, grid="square:1")
    (counts,) = tallied(plan, rows).values()
    assert counts.sum() == 3
