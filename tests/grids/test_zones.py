"""Zones: which zone a point belongs to, and what is fixed when zones are named."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations

import geopandas as gpd
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, MultiPolygon, Point, Polygon, box

from geodp.bounds import WORLD, Box
from geodp.grids import zones as zones_module
from geodp.grids.adjacency import areas_km2
from geodp.grids.zones import Zones

SQUARES = [box(0, 0, 1, 1), box(1, 0, 2, 1), box(0, 1, 1, 2), box(1, 1, 2, 2)]


def frame(shapes, keys=None, name="zone_id", crs=4326):
    keys = list(range(len(shapes))) if keys is None else keys
    return gpd.GeoDataFrame({name: keys}, geometry=list(shapes), crs=crs)


def located(zones, *points):
    """The keys of the zones that each point is counted in."""
    lon, lat = np.array(points, dtype=float).reshape(-1, 2).T.copy()
    rows, cells = zones.domain().locate(lon, lat)
    assert rows.dtype == cells.dtype == np.int64
    return [zones.index[cells[rows == row]].tolist() for row in range(len(lon))]


# ---------------------------------------------------------------- one point, one zone


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_geopandas_1265_border_points_count_once_whatever_the_row_order(order):
    shuffled = frame(SQUARES, ["a", "b", "c", "d"]).iloc[list(order)]
    zones = Zones(shuffled, key="zone_id")
    assert located(zones, (1, 1), (1, 0.5), (0.5, 1), (1.5, 1), (2, 2)) == [["a"], ["a"], ["a"], ["b"], ["d"]]
    assert zones == Zones(frame(SQUARES, ["a", "b", "c", "d"]), key="zone_id")


def test_count_counts_every_zone_that_is_touched():
    zones = Zones(frame(SQUARES, list("abcd")), key="zone_id", overlap="count")
    assert located(zones, (1, 1), (1, 0.5), (0.5, 0.5), (3, 3)) == [list("abcd"), list("ab"), ["a"], []]


def test_an_ordered_category_sets_the_priority():
    keys = pd.Categorical(["low", "high"], categories=["high", "low"], ordered=True)
    zones = Zones(frame([box(0, 0, 2, 1), box(1, 0, 3, 1)], keys), key="zone_id")
    assert zones.index.tolist() == ["high", "low"]
    assert located(zones, (1.5, 0.5)) == [["high"]]


def test_holes_and_parts():
    ring = Polygon(box(0, 0, 9, 9).exterior, [box(3, 3, 6, 6).exterior])
    pair = MultiPolygon([box(20, 0, 21, 1), box(30, 0, 31, 1)])
    zones = Zones(frame([ring, pair, box(4, 4, 5, 5)], ["ring", "pair", "core"]), key="zone_id")
    found = located(zones, (1, 1), (3, 4), (3.5, 3.5), (4.5, 4.5), (20.5, 0.5), (30.5, 0.5), (25, 0.5))
    assert found == [["ring"], ["ring"], [], ["core"], ["pair"], ["pair"], []]


corner = st.integers(0, 8).map(lambda v: v / 2)


@st.composite
def rectangles(draw):
    x, y = draw(corner), draw(corner)
    return box(x, y, x + draw(st.integers(1, 6)) / 2, y + draw(st.integers(1, 6)) / 2)


@st.composite
def triangles(draw):
    shape = Polygon([(draw(corner), draw(corner)) for _ in range(3)])
    return shape if shape.is_valid and shape.area > 0 else box(0, 0, 1, 1)


@st.composite
def framed(draw):
    outer = draw(rectangles())
    inner = shapely.box(*outer.buffer(-0.2).bounds)
    return outer.difference(inner) if inner.area > 0 else outer


layers = st.lists(st.one_of(rectangles(), triangles(), framed()), min_size=1, max_size=8)
spots = st.lists(st.tuples(st.integers(-2, 30), st.integers(-2, 30)), min_size=0, max_size=25)


@given(layers, spots, st.randoms(use_true_random=False), st.sampled_from(["first", "count"]))
def test_overlapping_touching_nested_zones_against_shapely(shapes, places, shuffle, overlap):
    keys = list(range(len(shapes)))
    shuffle.shuffle(keys)
    zones = Zones(frame(shapes, keys), key="zone_id", overlap=overlap)
    points = [(x / 4, y / 4) for x, y in places]
    touched = [
        sorted(k for k, shape in zip(keys, shapes, strict=True) if shape.intersects(Point(p))) for p in points
    ]
    assert located(zones, *points) == (touched if overlap == "count" else [keys[:1] for keys in touched])


@given(layers, spots)
def test_first_picks_one_of_count(shapes, places):
    points = np.array([(x / 4, y / 4) for x, y in places]).reshape(-1, 2)
    rows, cells = Zones(frame(shapes), "zone_id").domain().locate(*points.T.copy())
    every, all_cells = Zones(frame(shapes), "zone_id", "count").domain().locate(*points.T.copy())
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == np.unique(every).tolist()
    assert set(zip(rows, cells, strict=True)) <= set(zip(every, all_cells, strict=True))
    assert len(set(zip(every, all_cells, strict=True))) == len(every)


@pytest.mark.parametrize("overlap", ["first", "count"])
def test_chunks_and_threads_change_nothing(monkeypatch, overlap):
    rng = np.random.default_rng(4)
    lon, lat = rng.integers(-4, 24, 2000) / 8, rng.integers(-4, 24, 2000) / 8
    zones = Zones(frame([*SQUARES, box(0.5, 0.5, 1.5, 1.5)]), "zone_id", overlap)
    whole = zones.domain().locate(lon, lat)
    monkeypatch.setattr(zones_module, "_CHUNK", 7)
    np.testing.assert_array_equal(whole, zones.domain().locate(lon, lat))
    fresh = zones_module.ZoneDomain(zones)
    with ThreadPoolExecutor(4) as pool:
        for some in pool.map(lambda _: fresh.locate(lon, lat), range(4)):
            np.testing.assert_array_equal(whole, some)


def test_nobody_at_all():
    rows, cells = Zones(frame(SQUARES), "zone_id").domain().locate(np.empty(0), np.empty(0))
    assert len(rows) == len(cells) == 0
    assert located(Zones(frame(SQUARES), "zone_id"), (-100, -50)) == [[]]


# ---------------------------------------------------------------- the domain


def test_opendp_1964_every_zone_is_a_cell():
    zones = Zones(frame(SQUARES[:3], [3, 1, 2]), key="zone_id")
    domain = zones.domain(Box.parse((0, 0, 1, 1)))
    _, cells = domain.locate(np.array([0.5]), np.array([0.5]))
    assert np.bincount(cells, minlength=domain.n_cells).tolist() == [0, 0, 1]
    assert domain.index.equals(pd.Index([1, 2, 3], name="zone_id"))
    assert domain is zones.domain() is Zones(frame(SQUARES[:3], [3, 1, 2]), key="zone_id").domain(WORLD)
    assert domain.edge.tolist() == [False] * 3
    assert domain.box == WORLD
    assert (zones.needs_bounds, zones.estimate(WORLD), zones.fitting(WORLD, 1)) == (False, 3, None)


def test_geometry_is_that_of_the_zones_in_key_order_and_read_only():
    zones = Zones(frame(SQUARES, [4, 3, 2, 1]), key="zone_id")
    outlines = zones.domain().geometry()
    assert shapely.equals_exact(outlines, SQUARES[::-1]).all()
    with pytest.raises(ValueError, match="read-only"):
        outlines[0] = None


def test_area_is_that_of_the_ellipsoid():
    geod = pyproj.Geod(ellps="WGS84")
    cells = [box(0, 0, 1, 1), box(-74, 40, -73.5, 41), Polygon([(10, 60), (30, 62), (20, 75)])]
    exact = [abs(geod.geometry_area_perimeter(shapely.segmentize(cell, 0.001))[0]) / 1e6 for cell in cells]
    domain = Zones(frame(cells), "zone_id").domain()
    assert domain.area_km2 == pytest.approx(np.mean(exact), rel=0.001)
    assert areas_km2(np.array(cells[:2])) == pytest.approx(exact[:2], rel=1e-7)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 64, 65, 300, 1100])
def test_hierarchy_is_dense_nested_and_blind_to_row_order(n):
    rng = np.random.default_rng(n)
    x, y = rng.uniform(-10, 10, n), rng.uniform(40, 50, n)
    zones = frame([box(a, b, a + 0.1, b + 0.1) for a, b in zip(x, y, strict=True)])
    found = Zones(zones, "zone_id").domain().hierarchy()
    again = Zones(zones.sample(frac=1, random_state=1), "zone_id").domain().hierarchy()
    assert sorted(found.order) == list(range(n))
    for levels in (found.siblings, found.blocks):
        for level in levels:
            assert level.dtype == np.int64
            assert np.unique(level).tolist() == list(range(level.max() + 1))
        for fine, coarse in pairwise(levels):
            assert len(set(zip(fine, coarse, strict=True))) == fine.max() + 1
    assert len(found.siblings) == sum(4**level < n for level in range(5))
    assert [int(level.max()) + 1 for level in found.blocks] == [b for b in (256, 64, 16) if 4 * b <= n]
    for one, other in zip((*found.siblings, *found.blocks), (*again.siblings, *again.blocks), strict=True):
        np.testing.assert_array_equal(one, other)


def test_siblings_are_close():
    x, y = (v.ravel() for v in np.meshgrid(np.arange(16), np.arange(16)))
    zones = frame([box(a, b, a + 1, b + 1) for a, b in zip(x, y, strict=True)])
    group = Zones(zones, "zone_id").domain().hierarchy().siblings[0]
    spread = [np.ptp(x[group == g]) + np.ptp(y[group == g]) for g in range(group.max() + 1)]
    assert np.mean(spread) <= 2.5  # a 2 x 2 block has 2, four zones at random about 20


# ---------------------------------------------------------------- frozen, comparable


def test_later_edits_of_the_frame_change_nothing():
    mine = frame(SQUARES)
    zones = Zones(mine, "zone_id")
    before = zones.digest
    mine.loc[0, "zone_id"] = 99
    mine.loc[0, "geometry"] = box(50, 50, 51, 51)
    del mine["zone_id"]
    assert located(zones, (0.5, 0.5), (50.5, 50.5)) == [[0], []]
    assert zones.index.tolist() == [0, 1, 2, 3]
    assert zones == Zones(frame(SQUARES), "zone_id")
    assert zones.digest == before
    with pytest.raises(AttributeError):
        zones.overlap = "count"


def test_digest_covers_keys_outlines_names_dtypes_and_overlap():
    base = Zones(frame(SQUARES), "zone_id")
    moved = [box(0, 0, 1, 1.0000001), *SQUARES[1:]]
    others = [
        Zones(frame(SQUARES, ["0", "1", "2", "3"]), "zone_id"),
        Zones(frame(SQUARES, np.arange(4, dtype=np.int32)), "zone_id"),
        Zones(frame(SQUARES, [0, 1, 2, 4]), "zone_id"),
        Zones(frame(SQUARES, [1, 0, 2, 3]), "zone_id"),
        Zones(frame(SQUARES, name="id"), "id"),
        Zones(frame(SQUARES, pd.Categorical([0, 1, 2, 3])), "zone_id"),
        Zones(frame(SQUARES, pd.Categorical([0, 1, 2, 3], categories=[0, 1, 2, 3, 4])), "zone_id"),
        Zones(frame(SQUARES, pd.Categorical([0, 1, 2, 3], ordered=True)), "zone_id"),
        Zones(frame(moved), "zone_id"),
        Zones(frame(SQUARES), "zone_id", overlap="count"),
        Zones(frame(SQUARES), "zone_id", overlap="raise"),
        Zones(frame(SQUARES[:3]), "zone_id"),
    ]
    assert len({base, *others}) == len(others) + 1
    assert base != "zones:zone_id"


def test_equal_zones_are_equal_whatever_the_frame_around_them():
    base = Zones(frame(SQUARES), "zone_id")
    raised = shapely.force_3d(np.array(SQUARES), 7.0)
    extra = frame(SQUARES).assign(note=list("wxyz")).iloc[::-1]
    as_index = frame(SQUARES).set_index("zone_id")
    renamed = frame(SQUARES).rename_geometry("shape")
    same = [Zones(extra, "zone_id"), Zones(as_index, "zone_id"), Zones(as_index), Zones(renamed, "zone_id")]
    same += [Zones(frame(raised), "zone_id"), Zones(frame(SQUARES, crs="OGC:CRS84"), "zone_id")]
    assert {hash(zones) for zones in same} == {hash(base)}
    assert all(zones == base for zones in same)


def test_digest_is_the_same_for_ever():
    zones = Zones(frame(SQUARES, [0, 1, 2, 3]), "zone_id")
    assert zones.digest == "81096b6d7c8cd9cc2a253fde6b5076f0725f3cd0ef425fc11b4b577926449d40"
    assert zones.to_dict() == {
        "grid": "zones:zone_id",
        "key": "zone_id",
        "overlap": "first",
        "n": 4,
        "digest": zones.digest,
    }
    assert repr(zones) == f"<Zones: 4 zones, key='zone_id', overlap='first', digest='{zones.digest[:12]}'>"


def test_pickling():
    zones = Zones(frame(SQUARES), "zone_id", overlap="count")
    again = pickle.loads(pickle.dumps(zones))
    assert again == zones
    assert hash(again) == hash(zones)
    assert located(again, (1, 1)) == [[0, 1, 2, 3]]
    assert pickle.loads(pickle.dumps(zones.domain())) is zones.domain()


# ---------------------------------------------------------------- overlap="raise"


def test_raise_allows_shared_borders_and_slivers():
    Zones(frame(SQUARES), "zone_id", overlap="raise")
    hair = [box(0, 0, 1 + 1e-9, 1), box(1, 0, 2, 1)]
    assert located(Zones(frame(hair), "zone_id", overlap="raise"), (1 + 5e-10, 0.5)) == [[0]]


def test_raise_judges_projected_borders_where_they_are_straight():
    # A long border beside two short ones: in degrees its ends alone leave a sliver 200 m wide.
    meshed = [
        box(0, 0, 400_000, 400_000),
        box(400_000, 0, 600_000, 200_000),
        box(400_000, 200_000, 600_000, 400_000),
    ]
    shifted = [shapely.affinity.translate(shape, 5_000_000, 3_000_000) for shape in meshed]
    Zones(frame(shifted, crs=3035), "zone_id", overlap="raise")


@pytest.mark.parametrize(
    "shapes",
    [
        [box(5, 5, 6, 6), box(0, 0, 1, 1), box(0.9, 0.9, 2, 2)],
        [box(50, 5, 60, 6), box(0, 0, 9, 9).difference(box(1, 1, 3, 3)), box(2, 2, 4, 4)],
        [box(50, 5, 60, 6), box(0, 0, 9, 9), box(1, 1, 3, 3)],
        [box(5, 5, 6, 6), box(0, 0, 1, 1), box(0, 0, 1, 1)],
        [box(5, 5, 6, 6), box(179, 0, 181, 1), box(-179.5, 0, -178, 1)],
    ],
    ids=["partly", "into a hole", "nested", "equal", "across 180"],
)
def test_raise_names_both_zones(shapes):
    with pytest.raises(ValueError, match="zones 'b' and 'c' overlap"):
        Zones(frame(shapes, list("abc")), "zone_id", overlap="raise")


# ---------------------------------------------------------------- refused

BOWTIE = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
with np.errstate(invalid="ignore"):
    NOT_A_NUMBER = Polygon([(0, 0), (np.nan, 0), (1, 1)])
UNUSABLE = {
    "no geometry": None,
    "empty": Polygon(),
    "not a polygon": LineString([(0, 0), (1, 1)]),
    "not a polygon or": Point(0, 0),
    "not a polygon or multipolygon": shapely.GeometryCollection([box(0, 0, 1, 1)]),
    "not a valid polygon": BOWTIE,
    "valid polygon": MultiPolygon([box(0, 0, 2, 2), box(1, 1, 3, 3)]),
    "not finite": Polygon([(0, 0), (np.inf, 0), (1, 1)]),
    "is not fin": NOT_A_NUMBER,
    "beyond latitude 90": box(0, 80, 1, 91),
    "longitude 540": box(541, 0, 542, 1),
    "wider than 180": box(-100, 0, 100, 1),
    "than 180 degrees": box(-180, -90, 180, 90),
    "180 degrees of longitude": shapely.segmentize(box(-95, 0, 95, 1), 10.0),
}


@pytest.mark.parametrize("overlap", ["first", "count", "raise"])
@pytest.mark.parametrize("words", UNUSABLE)
def test_unusable_zones_are_named(words, overlap):
    shapes = [box(10, 10, 11, 11), UNUSABLE[words], box(20, 20, 21, 21)]
    with pytest.raises(ValueError, match=f"^zone 'Río B' .*{words}"):
        Zones(frame(shapes, ["a", "Río B", "c"]), "zone_id", overlap)


def test_geometries_that_are_no_polygons_are_refused_in_any_crs():
    with pytest.raises(ValueError, match=r"^zone 7 .*beyond latitude 90.*NAD83"):
        Zones(
            frame([box(0, 0, 1, 1), box(500_000, 4_000_000, 500_100, 4_000_100)], [6, 7], crs=4269), "zone_id"
        )


def test_frames_that_are_no_zones():
    with pytest.raises(TypeError, match="needs a GeoDataFrame of polygons, got DataFrame"):
        Zones(pd.DataFrame({"zone_id": [1]}), "zone_id")
    with pytest.raises(ValueError, match="no rows"):
        Zones(frame([]), "zone_id")
    with pytest.raises(ValueError, match=r"set_crs\(4326\)"):
        Zones(frame(SQUARES, crs=None), "zone_id")
    with pytest.raises(ValueError, match="set_geometry"):
        Zones(gpd.GeoDataFrame({"zone_id": [1]}), "zone_id")
    with pytest.raises(ValueError, match="overlap='all'; choose one of 'first', 'count', 'raise'"):
        Zones(frame(SQUARES), "zone_id", overlap="all")
