"""Sensitivity by brute force: neighbours in, exact integers out, never further apart than the plan says.

And data independence: whatever the rows, everything but the numbers is identical.
"""

import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point

import geodp
from geodp import testing

BOX = (-74.1, 40.6, -73.9, 40.8)
ACROSS = (179.5, -17.0, -179.5, -16.0)
POLE = (-180, 88, 180, 90)

GRIDS = {
    "h3": ("h3:6", BOX),
    "h3 across 180": ("h3:5", ACROSS),
    "h3 at a pole": ("h3:3", POLE),
    "square": ("square:0.05", BOX),
    "square across 180": ("square:0.25", ACROSS),
    "metres": ("square:5000@32618", BOX),
}

odd_geometry = st.sampled_from(
    [
        None,
        Point(),
        Point(np.nan, np.nan),
        Point(np.inf, 0),
        shapely.LineString([(0, 0), (1, 1)]),
        Point(0, 95),
    ]
)
odd_id = st.sampled_from([None, np.nan, True, 2.5, ("a",)])


def places(box):
    """Points inside, on corners and edges, outside, wrapped and unusable."""
    west, south, east, north = box
    east = east + 360 if east < west else east
    inside = st.builds(Point, st.floats(west, east), st.floats(south, north))
    border = st.builds(
        Point,
        st.sampled_from([west, east, (west + east) / 2]),
        st.sampled_from([south, north, (south + north) / 2]),
    )
    outside = st.builds(Point, st.floats(-180, 360), st.floats(-90, 90))
    turned = st.builds(lambda p: Point(p.x + 360, p.y, 7.0), inside)
    return st.one_of(inside, border, outside, turned, odd_geometry)


def one_person(box):
    return st.lists(places(box), min_size=0, max_size=6)


def frame(people):
    """Rows of all people, interleaved so that nobody's rows are together."""
    rows = [(i, who, place) for who, places in people for i, place in enumerate(places)]
    rows.sort(key=lambda row: (row[0], str(row[1])))
    return gpd.GeoDataFrame(
        {
            "rider": pd.Series([who for _, who, _ in rows], dtype=object),
            "geometry": gpd.GeoSeries([p for *_, p in rows], crs=4326),
        },
        crs=4326,
    )


@st.composite
def neighbours(draw, box):
    people = [(f"p{i}", draw(one_person(box))) for i in range(draw(st.integers(0, 4)))]
    people += [(draw(odd_id), draw(one_person(box)))]
    mine, other = draw(one_person(box)), draw(one_person(box))
    return people, ("me", mine), ("me", other)


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("where", GRIDS)
@settings(max_examples=40)
@given(st.data())
def test_counts_of_neighbours_differ_within_l1_and_l2(where, neighboring, data):
    grid, box = GRIDS[where]
    people, me, other = data.draw(neighbours(box))
    plan = geodp.plan(
        1,
        1e-6,
        subject="rider",
        cap=data.draw(st.integers(1, 5)),
        rows_per_cell=data.draw(st.integers(1, 3)),
        bounds=box,
        grid=grid,
        neighboring=neighboring,
        outside=data.draw(st.sampled_from(["clamp", "drop"])),
        return_geometry=False,
    )
    with testing.noiseless(key=data.draw(st.integers(0, 3))):
        a = plan.release(frame([*people, me]))["noisy_count"].to_numpy()
        swapped = [*people, other] if neighboring == "replace_one" else people
        b = plan.release(frame(swapped))["noisy_count"].to_numpy()
    difference = [abs(int(x) - int(y)) for x, y in zip(a, b, strict=True)]
    assert sum(difference) <= plan.l1
    assert sum(d * d for d in difference) <= plan.measurements[0].l2_squared


def everything_but_numbers(heat):
    """Return all that may not depend on rows, as text."""
    numbers = ["count", "estimate", "noisy_count", "lower", "upper"]
    masked = heat.drop(columns=numbers)
    return json.dumps(
        {
            "json": masked.to_json(),
            "index": [heat.index.name, str(heat.index.dtype), *map(str, heat.index)],
            "columns": list(heat.columns),
            "dtypes": [str(t) for t in heat.dtypes],
            "attrs": heat.attrs,
            "crs": str(heat.crs),
        }
    )


@pytest.mark.parametrize("where", GRIDS)
@settings(max_examples=10)
@given(st.data())
def test_everything_but_the_numbers_is_identical_between_any_two_frames(where, data):
    grid, box = GRIDS[where]
    people, me, _ = data.draw(neighbours(box))
    seen = []
    for rows in (people, [*people, me], []):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            heat = frame(rows).dp.heatmap(1, 1e-6, subject="rider", cap=2, bounds=box, grid=grid)
        seen.append((everything_but_numbers(heat), [str(w.message) for w in caught]))
    assert seen[0] == seen[1] == seen[2]


@settings(max_examples=20)
@given(st.data())
def test_row_order_and_foreign_columns_and_index_change_nothing(data):
    people, me, _ = data.draw(neighbours(BOX))
    rows = frame([*people, me])
    order = data.draw(st.permutations(range(len(rows))))
    other = rows.iloc[order].set_index(pd.Index([f"secret{i}" for i in range(len(rows))]))
    other["count"] = 1.0
    other.attrs["x"] = object()
    with testing.noiseless():
        a = rows.dp.heatmap(1, subject="rider", cap=2, bounds=BOX, grid="h3:6")
        b = other.dp.heatmap(1, subject="rider", cap=2, bounds=BOX, grid="h3:6")
    pd.testing.assert_frame_equal(pd.DataFrame(a), pd.DataFrame(b))


def test_a_planted_fault_is_seen(monkeypatch):
    """A cap that is one too high is caught by the brute-force comparison above."""
    from geodp.queries import count

    honest = count.within_cap
    monkeypatch.setattr(count, "within_cap", lambda pairs, cap, *rest: honest(pairs, cap + 1, *rest))
    plan = geodp.plan(1, subject="rider", cap=1, bounds=BOX, grid="h3:6", return_geometry=False)
    me = ("me", [Point(-74.05, 40.65), Point(-73.95, 40.75)])
    with testing.noiseless():
        counts = plan.release(frame([me]))["noisy_count"]
    assert counts.abs().sum() > plan.l1
