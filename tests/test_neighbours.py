"""Sensitivity by brute force: neighbours in, exact integers out, never further apart than the plan says.

Every query on every kind of grid, in Python integers, with hostile rows; and the other way round, pairs of
neighbours that reach the bound, so that a claim too large is seen as well.
"""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString, Point, box

import geodp
from geodp import release, testing
from geodp.grids.whole import Whole

BOX = (-74.1, 40.6, -73.9, 40.8)
ACROSS = (179.5, -17.0, -179.5, -16.0)
POLE = (-180, 88, 180, 90)
WIDE = (100.0, -10.0, -50.0, 10.0)


def zones(overlap, shapes):
    keys = [f"z{i}" for i in range(len(shapes))]
    return geodp.Zones(gpd.GeoDataFrame({"zone": keys}, geometry=shapes, crs=4326), "zone", overlap)


OVERLAPPING = [
    box(-74.1, 40.6, -74.0, 40.7),
    box(-74.0, 40.6, -73.9, 40.7),
    box(-74.05, 40.6, -73.95, 40.8),
    box(-74.1, 40.6, -73.9, 40.8),
]
DATELINE = [box(179.6, -17, 180.4, -16.5), box(-180, -16.5, -179.5, -16), box(179.5, -17, 180, -16)]

GRIDS = {
    "h3": ("h3:6", BOX),
    "h3 across 180": ("h3:5", ACROSS),
    "h3 at a pole": ("h3:3", POLE),
    "square": ("square:0.05", BOX),
    "square across 180": ("square:0.25", ACROSS),
    "metres": ("square:5000@32618", BOX),
    "zones": (zones("first", OVERLAPPING), None),
    "zones, each counts": (zones("count", OVERLAPPING), None),
    "zones across 180": (zones("count", DATELINE), None),
    "box": (Whole(), BOX),
    "wide box across 180": (Whole(), WIDE),
}

QUERIES = {
    "count": geodp.Count(),
    "sum": geodp.Sum("v", (0, 120)),
    "sum above zero": geodp.Sum("v", (10, 20)),
    "sum below zero": geodp.Sum("v", ("-0.3", "-0.1")),
    "sum, signed": geodp.Sum("v", (-5, 5)),
    "sum, skewed": geodp.Sum("v", (-1, 10)),
    "sum, clipped": geodp.Sum("v", (0, 120), clip=50),
    "sum, signed and clipped": geodp.Sum("v", (-5, 5), clip="7.3"),
    "sum below zero, clipped": geodp.Sum("v", (-9, -1), clip=11),
    "sum, clip far above": geodp.Sum("v", (0, 1), clip=10**9),
    "mean": geodp.Mean("v", (0, 120)),
    "mean, signed": geodp.Mean("v", (Fraction(-1, 3), 100)),
    "centroid": geodp.Centroid(),
    "centroid of n": geodp.Centroid(n=7),
}

UNUSABLE = [
    None,
    Point(),
    Point(np.nan, np.nan),
    Point(np.inf, 0),
    LineString([(0, 0), (1, 1)]),
    Point(0, 95),
]
VALUES = [0.0, -0.0, 5e-324, 1.0, -1.0, 0.3, 7.5, 15.0, 120.0, -0.2, -5.0, 1e300, -1e300]
VALUES += [math.nextafter(120, 0), math.nextafter(0.3, 1), np.inf, -np.inf, np.nan, None]
OTHERS = ["p0", "p1", "1", 1, 1.0, 2**70, None, np.nan, True, 2.5, ("a",)]
HOURS = [0, 1, 2, 7, None]


@lru_cache
def places(where):
    """Points inside, on corners and edges, at poles, on the 180th meridian, outside, wrapped and unusable."""
    west, south, east, north = GRIDS[where][1] or (ACROSS if "180" in where else BOX)
    east = east + 360 if east < west else east
    rng = np.random.default_rng(0)
    inside = [Point(*xy) for xy in rng.uniform((west, south), (east, north), (12, 2))]
    lines = [(west, (west + east) / 2, east), (south, (south + north) / 2, north)]
    border = [Point(x, y) for x, y in itertools.product(*lines)]
    turned = [Point(p.x + 360, p.y, 7.0) for p in inside[:3]]
    far = [Point(x, y) for x, y in itertools.product((-180, 180, 0, 541), (-90, 0, 90))]
    return [*inside, *border, *turned, *far, *UNUSABLE]


def rows_of_one(where):
    pool = st.sampled_from(places(where))
    return st.lists(st.tuples(pool, st.sampled_from(VALUES), st.sampled_from(HOURS)), max_size=6)


def frame(people):
    """Rows of all people, interleaved so that nobody's rows are together."""
    rows = [(i, who, *row) for who, rows in people for i, row in enumerate(rows)]
    rows.sort(key=lambda row: (row[0], str(row[1])))
    table = pd.DataFrame(rows, columns=["i", "rider", "geometry", "v", "hour"], dtype=object)
    return gpd.GeoDataFrame(
        {
            "rider": table["rider"],
            "v": table["v"].astype(np.float64),
            "hour": table["hour"].astype(np.float64),
            "geometry": gpd.GeoSeries(list(table["geometry"]), crs=4326),
        },
        crs=4326,
    )


@st.composite
def neighbours(draw, where):
    others = draw(st.lists(st.sampled_from(OTHERS), max_size=4))
    people = [(who, draw(rows_of_one(where))) for who in others]
    mine, instead = draw(rows_of_one(where)), draw(rows_of_one(where))
    return people, ("me", mine), ("you", instead)


def planned(query, where, **more):
    grid, bounds = GRIDS[where]
    given = {"bounds": bounds, "grid": grid, "subject": "rider"} | more
    return geodp.plan(1, 1e-6, query=query, return_geometry=False, **given)


def secret(number):
    return testing.Mode("none (test)", number.to_bytes(16, "little"), silent=True)


def assert_within(plan, one, other, mode):
    """Compare the exact tallies of two frames with every claim of the plan, in Python integers."""
    a, b = (release.tally(plan, rows, mode) for rows in (one, other))
    for m in plan.measurements:
        assert len(a[m.name]) == len(b[m.name]) == m.quantity.size
        moved = [abs(x - y) for x, y in zip(a[m.name].tolist(), b[m.name].tolist(), strict=True)]
        assert sum(moved) <= m.l1
        assert sum(d * d for d in moved) <= m.l2_squared


@pytest.mark.parametrize("where", GRIDS)
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=10)
@given(st.data())
def test_tallies_of_neighbours_differ_within_l1_and_l2(name, where, data):
    query = QUERIES[name]
    fixed = name == "centroid of n"
    if fixed and "box" not in where:
        return
    cap, rows_per_cell = (1, 1) if fixed else data.draw(st.tuples(st.integers(1, 4), st.integers(1, 3)))
    by = None if fixed else data.draw(st.sampled_from([None, {"hour": [0, 1, 2]}]))
    neighboring = data.draw(st.sampled_from(["add_remove_one", "replace_one"]))
    plan = planned(
        query,
        where,
        cap=cap,
        rows_per_cell=rows_per_cell,
        by=by,
        neighboring=neighboring,
        mechanism=data.draw(st.sampled_from(["laplace", "gaussian"])),
        outside=data.draw(st.sampled_from(["clamp", "drop"])),
    )
    people, me, you = data.draw(neighbours(where))
    instead = [you] if neighboring == "replace_one" else []
    mode = secret(data.draw(st.integers(0, 3)))
    assert_within(plan, frame([*people, me]), frame([*people, *instead]), mode)


@pytest.mark.parametrize("where", ["square", "zones, each counts", "box"])
@pytest.mark.parametrize("name", ["count", "sum, skewed", "mean", "centroid"])
@settings(max_examples=15)
@given(st.data())
def test_single_rows_as_subjects(name, where, data):
    neighboring = data.draw(st.sampled_from(["add_remove_one", "replace_one"]))
    cap = {"cap": data.draw(st.integers(1, 3))} if "each" in where else {}
    plan = planned(QUERIES[name], where, subject=geodp.EACH_ROW, neighboring=neighboring, **cap)
    # A row's choice goes by its number, so the row that comes and goes is the last one.
    rows = data.draw(rows_of_one(where))
    more = data.draw(st.tuples(rows_of_one(where), rows_of_one(where)))
    last = [row[:1] if neighboring == "replace_one" else row[: 1 - i] for i, row in enumerate(more)]
    one, other = (frame([("x", [*rows, *end])]) for end in last)
    assert_within(plan, one, other, secret(0))


# Tightness: the largest step of the values, at places far apart or shared, attains what is claimed.

NEAR_THE_EQUATOR = (0.0, -2.0, 4.0, 2.0)  # sixteen cells, as square on the ground as can be
CORNER = {"sw": -0.5, "ne": 0.4999999}


def corner(cell, way):
    x, y = cell % 4, cell // 4
    return Point(x + 0.5 + CORNER[way], y - 2 + 0.5 + CORNER[way])


def extreme(cells, value, way, rows):
    return [(corner(cell, way), value, 0) for cell in cells for _ in range(rows)]


PAIRS = {
    "one more": ("add_remove_one", range(3), None),
    "in other places": ("replace_one", range(3), range(8, 11)),
    "in the same places": ("replace_one", range(3), range(3)),
}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("name", [n for n in QUERIES if n not in ("centroid of n", "sum, clip far above")])
def test_the_bounds_are_attained(name, neighboring, rows, mechanism):
    """Some pair moves as far as is claimed, in L1 or in L2 by what the mechanism pays for."""
    plan = planned(
        QUERIES[name],
        "square",
        cap=3,
        rows_per_cell=rows,
        bounds=NEAR_THE_EQUATOR,
        grid="square:1",
        neighboring=neighboring,
        mechanism=mechanism,
    )
    low, high = getattr(plan.query, "value_bounds", (0, 1))
    far, near = (float(high), float(low)) if abs(high) >= abs(low) else (float(low), float(high))
    best = dict.fromkeys((m.name for m in plan.measurements), 0.0)
    for relation, mine, instead in PAIRS.values():
        if relation != neighboring:
            continue
        for value in (near, far):
            one = frame([("me", extreme(mine, far, "ne", rows))])
            other = frame([] if instead is None else [("you", extreme(instead, value, "sw", rows))])
            assert_within(plan, one, other, secret(0))
            for m in plan.measurements:
                best[m.name] = max(best[m.name], reached(m, plan, one, other))
    # Clips and corners lose a unit of their lattice to rounding, and cells are not exactly square.
    assert all(value > 1 - 2e-4 for value in best.values()), best


def reached(m, plan, one, other):
    """Return how much of its claim a pair reaches: of L1 under Laplace, of squared L2 under Gaussian noise."""
    a, b = (release.tally(plan, rows, secret(0))[m.name].tolist() for rows in (one, other))
    moved = [abs(x - y) for x, y in zip(a, b, strict=True)]
    if m.mechanism == "laplace":
        return float(sum(moved) / m.l1)
    return float(sum(d * d for d in moved) / m.l2_squared)


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
def test_the_bound_of_a_centroid_over_the_box_is_attained(neighboring):
    """Half the diagonal over n, or all of it: from the middle to a corner, or from corner to corner."""
    plan = planned(
        geodp.Centroid(n=7),
        "box",
        cap=1,
        bounds=(0.0, -1.0, 2.0, 1.0),
        neighboring=neighboring,
        mechanism="gaussian",
    )
    corners = [[("me", [(Point(2, 1), 1.0, 0)])], [("you", [(Point(0, -1), 1.0, 0)])]]
    one, other = frame(corners[0]), frame(corners[1] if neighboring == "replace_one" else [])
    assert_within(plan, one, other, secret(0))
    assert reached(plan.measurements[0], plan, one, other) > 1 - 1e-5


@pytest.mark.parametrize(
    ("module", "function", "fault", "name"),
    [
        ("contribution", "_within_cap", lambda pairs, *rest: np.ones(len(pairs.key), bool), "count"),
        ("contribution", "_within_cap", lambda pairs, *rest: np.ones(len(pairs.key), bool), "sum"),
        ("contribution", "_within_cap", lambda pairs, *rest: np.ones(len(pairs.key), bool), "mean"),
        ("queries.sums", "clip_l1", lambda subject, values, bound: values, "sum, clipped"),
        ("queries.sums", "whole_steps", lambda value, j: math.trunc(value * 2**j * Fraction(99, 100)), "sum"),
        ("queries.centroids", "_within_unit", lambda steps: steps * 2, "centroid"),
    ],
)
def test_planted_faults_are_seen(monkeypatch, module, function, fault, name):
    monkeypatch.setattr(f"geodp.{module}.{function}", fault)
    plan = planned(
        QUERIES[name], "square", cap=1, bounds=NEAR_THE_EQUATOR, grid="square:1", mechanism="laplace"
    )
    crowd = frame([("me", extreme(range(3), 120.0, "sw", 1))])
    with pytest.raises(AssertionError):
        assert_within(plan, crowd, frame([]), secret(0))


def test_a_row_too_many_is_seen(monkeypatch):
    """Rows of a pair beyond the limit that are added up all the same are caught."""
    from geodp.queries import sums

    honest = sums.choose_rows
    monkeypatch.setattr(sums, "choose_rows", lambda s, k, v, m, *rest: honest(s, k, 2 * v, m, *rest))
    monkeypatch.setattr(
        sums, "add_up", lambda key, values, n: np.bincount(key, 2 * values, n).astype(np.int64)
    )
    plan = planned(QUERIES["mean"], "square", cap=1, mechanism="laplace")
    with pytest.raises(AssertionError):
        assert_within(plan, frame([("me", [(Point(-74, 40.7), 120.0, 0)])]), frame([]), secret(0))
