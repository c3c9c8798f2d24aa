"""Whatever the rows, everything but the numbers is identical; and no order of rows matters."""

import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import LineString, Point

import geodp
from geodp import testing
from geodp.grids.whole import Whole

BOX = (-74.1, 40.6, -73.9, 40.8)
ACROSS = (179.5, -17.0, -179.5, -16.0)
ZONES = geodp.Zones(
    gpd.GeoDataFrame(
        {"zone": [3, 1]},
        geometry=gpd.GeoSeries.from_wkt(
            ["POLYGON((-74.1 40.6, -74 40.6, -74 40.8, -74.1 40.8, -74.1 40.6))"] * 2, crs=4326
        ),
        crs=4326,
    ),
    "zone",
    "count",
)
GRIDS = {
    "h3": {"grid": "h3:6", "bounds": BOX},
    "h3 at a pole": {"grid": "h3:2", "bounds": (-180, 85, 180, 90)},
    "square across 180": {"grid": "square:0.25", "bounds": ACROSS},
    "zones": {"grid": ZONES},
    "box": {"grid": Whole(), "bounds": BOX},
}
QUERIES = {
    "count": (geodp.Count(), ["count", "estimate", "noisy_count", "lower", "upper"]),
    "sum": (geodp.Sum("v", (0, 9)), ["sum", "noisy_sum", "lower", "upper"]),
    "signed sum": (geodp.Sum("v", (-9, 9), clip=5), ["sum", "noisy_sum", "lower", "upper"]),
    "mean": (geodp.Mean("v", (0, 9)), ["mean", "lower", "upper", "count", "noisy_sum", "noisy_count"]),
    "centroid": (geodp.Centroid(), ["lon", "lat", "error_m", "count", "noisy_count"]),
}
HOSTILE = [Point(-74, 40.7), Point(180, -16.5), Point(0, 90), Point(-74.05, 40.6), Point(541, -90)]
HOSTILE += [None, Point(), Point(np.nan, np.nan), LineString([(0, 0), (1, 1)]), Point(0, 95)]
VALUES = [1.0, -1e300, np.inf, np.nan, 9.0]


def frame(n, seed=0):
    """``n`` rows of a few people; the first ones hold everything odd."""
    rng = np.random.default_rng(seed)
    points = (HOSTILE + [Point(*xy) for xy in rng.uniform((-74.1, 40.6), (-73.9, 40.8), (50, 2))])[:n]
    return gpd.GeoDataFrame(
        {
            "rider": pd.Series([["a", 1, None, 2.5, "b"][i % 5] for i in range(len(points))], dtype=object),
            "v": np.array([VALUES[i % 5] for i in range(len(points))], dtype=np.float64),
            "geometry": gpd.GeoSeries(points, crs=4326),
        },
        crs=4326,
    )


def everything_but(numbers, found):
    """Return all that may not depend on rows, as text."""
    masked = pd.DataFrame(found).drop(columns=numbers)
    if "lon" in numbers:
        masked = masked.drop(columns="geometry")
    else:
        masked["geometry"] = found.geometry.to_wkb()
    return json.dumps(
        {
            "rest": masked.to_csv(),
            "index": [found.index.name, str(found.index.dtype), *map(str, found.index)],
            "columns": list(found.columns),
            "dtypes": [str(t) for t in found.dtypes],
            "kinds": sorted(set(map(str, found.geom_type))),
            "attrs": found.attrs,
            "crs": str(found.crs),
        }
    )


@pytest.mark.parametrize("where", GRIDS)
@pytest.mark.parametrize("name", QUERIES)
def test_everything_but_the_numbers_is_identical_between_any_two_frames(name, where):
    query, numbers = QUERIES[name]
    plan = geodp.plan(1, 1e-6, query=query, subject="rider", cap=2, rows_per_cell=2, **GRIDS[where])
    seen = []
    for n in (60, 10, 1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = plan.release(frame(n))
        seen.append((everything_but(numbers, found), [str(w.message) for w in caught]))
        for column in numbers:
            assert np.isfinite(found[column].astype(float)).all()
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("where", GRIDS)
@pytest.mark.parametrize("name", QUERIES)
def test_no_order_of_rows_nor_index_nor_foreign_column_matters(name, where):
    """Also where a subject has more rows and more cells than count, and rows that are equal."""
    query, _ = QUERIES[name]
    plan = geodp.plan(1, 1e-6, query=query, subject="rider", cap=2, rows_per_cell=2, **GRIDS[where])
    rows = pd.concat([frame(60), frame(60), frame(40, 1)], ignore_index=True)
    order = np.random.default_rng(2).permutation(len(rows))
    other = rows.iloc[order].set_index(pd.Index([f"secret{i}" for i in range(len(rows))]))
    other["count"], other.attrs["x"] = 1.0, object()
    with testing.noiseless(3):
        a, b = plan.release(rows), plan.release(other)
    pd.testing.assert_frame_equal(pd.DataFrame(a), pd.DataFrame(b), check_exact=True)
    assert a.attrs == b.attrs
    assert list(b.attrs) == ["geodp"]


def test_a_choice_of_the_first_rows_would_be_seen(monkeypatch):
    """The planted bug of the test above: the rows that come first count."""
    from geodp import contribution

    def first(priority, clamped, lengths, cap):
        rank = np.arange(len(priority)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return rank < cap

    monkeypatch.setattr(contribution, "_lowest", first)
    monkeypatch.setattr(contribution, "_sorted_by", lambda who, *rest: np.argsort(who, kind="stable"))
    plan = geodp.plan(1, query=geodp.Sum("v", (0, 9)), subject="rider", cap=2, **GRIDS["box"])
    rows = frame(60)
    rows["rider"], rows["v"] = "a", np.arange(len(rows)) % 9
    with testing.noiseless():
        a, b = plan.release(rows), plan.release(rows.iloc[::-1])
    assert a["noisy_sum"].iloc[0] != b["noisy_sum"].iloc[0]
