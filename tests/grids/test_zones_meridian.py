"""Zones across the 180th meridian, around poles, and in other reference systems."""

from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from shapely import MultiPolygon, Polygon, box

from geodp.bounds import wrap
from geodp.grids.rings import cut_at_180, is_plain
from geodp.grids.tiles import build_tiles, candidates
from geodp.grids.zones import Zones

DATA = Path(__file__).parents[1] / "data"


def frame(shapes, crs=4326):
    return gpd.GeoDataFrame(
        {"zone_id": [f"z{i}" for i in range(len(shapes))]}, geometry=list(shapes), crs=crs
    )


def located(zones, lon, lat):
    lon, lat = np.atleast_1d(np.asarray(lon, dtype=float)), np.atleast_1d(np.asarray(lat, dtype=float))
    rows, cells = zones.domain().locate(wrap(lon), lat)
    found = np.full(len(lon), "", dtype=object)
    found[rows] = zones.index[cells]
    return found.tolist()


JUMPING = Polygon([(179, -17), (-179, -17), (-179, -16), (179, -16)])
HABITS = {
    "jumping": JUMPING,
    "jumping the other way round": Polygon(JUMPING.exterior.coords[::-1]),
    "jumping from the west": Polygon([(-179, -16), (179, -16), (179, -17), (-179, -17)]),
    "with vertices on 180": Polygon(
        [(179, -17), (180, -17), (-180, -17), (-179, -17), (-179, -16), (179, -16)]
    ),
    "beyond 180": box(179, -17, 181, -16),
    "beyond -180": box(-181, -17, -179, -16),
    "cut already": MultiPolygon([box(179, -17, 180, -16), box(-180, -17, -179, -16)]),
}


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("overlap", ["first", "count", "raise"])
def test_every_habit_is_the_same_zone(habit, overlap):
    zones = Zones(
        frame([HABITS[habit], box(178, -17, 179, -16), box(-179, -17, -178, -16)]), "zone_id", overlap
    )
    lon = [179.99, -179.99, 180.0, -180.0, 180.01, 179.5, -179.5, 178.5, -178.5, 0.0, 177.0]
    assert located(zones, lon, np.full(11, -16.5)) == ["z0"] * 7 + ["z1", "z2", "", ""]
    outline = zones.domain().geometry()[0]
    assert outline.is_valid
    assert sorted(part.bounds for part in outline.geoms) == [(-180, -17, -179, -16), (179, -17, 180, -16)]
    assert zones.domain().area_km2 == pytest.approx(11_820 * 4 / 3, rel=0.01)


def test_longitudes_up_to_540():
    zones = Zones(frame([box(359, 0, 361, 1), box(520, 10, 540, 11), box(-540, 20, -539, 21)]), "zone_id")
    assert located(zones, [0.5, -0.5, 179.0, 180.0, -179.5], [0.5, 0.5, 10.5, 10.5, 10.5]) == [
        *["z0", "z0", "z1", "z1"],
        "",
    ]
    assert located(zones, [180.0, -179.5, 179.5], [20.5, 20.5, 20.5]) == ["z2", "z2", ""]
    assert zones.domain().geometry()[1].bounds == (160, 10, 180, 11)


def test_holes_go_with_their_zone():
    outline = [(170, 0), (-170, 0), (-170, 10), (170, 10)]
    for hole in ([(178, 2), (-178, 2), (-178, 4), (178, 4)], [(178, 2), (182, 2), (182, 4), (178, 4)]):
        zones = Zones(frame([Polygon(outline, [hole])]), "zone_id")
        assert located(zones, [179, -179, 180, 175, -175], [3, 3, 3, 3, 3]) == ["", "", "", "z0", "z0"]
    east = Zones(frame([Polygon(outline, [[(-175, 2), (-174, 2), (-174, 4), (-175, 4)]])]), "zone_id")
    assert located(east, [-174.5, -176, 175], [3, 3, 3]) == ["", "z0", "z0"]


def test_cut_vertices_keep_their_bits_and_borders_their_points():
    rng = np.random.default_rng(8)
    west, east = rng.uniform(150, 180, 50), rng.uniform(-180, -150, 50)
    for a, b in zip(west, east, strict=True):
        for zone in (Polygon([(a, 0), (b, 0), (b, 1), (a, 1)]), box(a, 0, b + 360.0, 1)):
            outline = cut_at_180(zone)
            assert {a, b, 180.0, -180.0} == set(shapely.get_coordinates(outline)[:, 0].tolist())


@given(
    st.integers(100, 179),
    st.integers(-179, -100),
    st.integers(-80, 70),
    st.integers(1, 10),
    st.lists(st.tuples(st.integers(-180, 179), st.integers(-90, 90)), max_size=20),
)
def test_both_habits_against_plain_arithmetic(west, east, south, height, places):
    assume(east + 360 - west <= 90)
    corners = [(west, south), (east, south), (east, south + height), (west, south + height)]
    jumping = Zones(frame([Polygon(corners)]), "zone_id")
    beyond = Zones(frame([box(west, south, east + 360, south + height)]), "zone_id")
    lon, lat = np.array(places, dtype=float).reshape(-1, 2).T
    inside = ((lon >= west) | (lon <= east)) & (lat >= south) & (lat <= south + height)
    expected = np.where(inside, "z0", "").tolist()
    assert located(jumping, lon, lat) == located(beyond, lon, lat) == expected


def test_trends_earth_27_fiji_quakes_beyond_180():
    quakes = pd.read_csv(DATA / "fiji_quakes.csv")
    zones = [box(160 + 5 * i, -40 + 10 * j, 165 + 5 * i, -30 + 10 * j) for i in range(6) for j in range(4)]
    crossing = [box(178, -40, 182, 0)]
    domain = Zones(frame([*crossing, *zones]), "zone_id", overlap="count").domain()
    rows, cells = domain.locate(wrap(quakes["long"].to_numpy(float)), quakes["lat"].to_numpy(float))
    counts = pd.Series(np.bincount(cells, minlength=domain.n_cells), index=domain.index)
    assert counts["z0"] == quakes["long"].between(178, 182).sum() > 300
    assert np.unique(rows).size == 1000
    for number, zone in enumerate(zones, start=1):
        assert counts[f"z{number}"] == shapely.intersects_xy(zone, quakes["long"], quakes["lat"]).sum()


@pytest.mark.parametrize("width", [181, 200, 269])
def test_edges_that_could_go_either_way_are_refused(width):
    with pytest.raises(ValueError, match=f"zone 'z0' has an edge of {width} degrees .*beyond 180"):
        Zones(frame([box(-90, 0, -90 + width, 1)]), "zone_id")


@pytest.mark.parametrize("seed", range(4))
def test_a_coverage_across_180_loses_and_doubles_nobody(seed):
    rng = np.random.default_rng(seed)
    extent = box(165, -25, 195, 5)
    seeds = shapely.multipoints(rng.uniform([165, -25], [195, 5], (150, 2)))
    plane = shapely.intersection(shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=extent)), extent)
    jumping = shapely.transform(plane, lambda xy: np.column_stack([wrap(xy[:, 0]), xy[:, 1]]))
    lon, lat = rng.uniform(165, 195, 3000), rng.uniform(-25, 5, 3000)
    expected = shapely.STRtree(plane).query(shapely.points(lon, lat), predicate="intersects")
    for habit in (plane, jumping):
        keyed = gpd.GeoDataFrame({"zone_id": range(len(plane))}, geometry=habit, crs=4326)
        domain = Zones(keyed, "zone_id", overlap="raise").domain()
        np.testing.assert_array_equal(domain.locate(wrap(lon), lat), expected)
        corners = np.unique(shapely.get_coordinates(plane), axis=0)
        rows, _ = domain.locate(wrap(corners[:, 0]), corners[:, 1].copy())
        assert rows.tolist() == list(range(len(corners)))
        assert shapely.union_all(domain.geometry()).area == pytest.approx(900)


def test_neighbours_across_180_are_siblings():
    row = [box(177.5 + i, 0, 178.5 + i, 1) for i in range(4)] + [box(30 + i, 0, 31 + i, 1) for i in range(12)]
    group = Zones(frame(row), "zone_id").domain().hierarchy().siblings[0]
    zones = sorted(range(16), key=lambda i: f"z{i}")
    assert len({int(group[zones.index(i)]) for i in range(4)}) == 1


# ---------------------------------------------------------------- poles


def circle(lat, n=36, start=0.0):
    lon = wrap(start + np.arange(n) * 360.0 / n)
    return Polygon(np.column_stack([lon, np.full(n, lat)]))


def capped(lat, pole):
    """A zone drawn down to its pole, as shapefiles of Antarctica are."""
    lon = np.linspace(-180, 180, 37)
    return Polygon([*zip(lon, np.full(37, lat), strict=True), (180, pole), (-180, pole)])


@pytest.mark.parametrize("sign", [1, -1])
def test_zones_around_a_pole(sign):
    wiggly = Polygon(
        [(lon, sign * (70 + 5 * (i % 2))) for i, lon in enumerate(wrap(np.arange(5.3, 365, 10.0)))]
    )
    for zone in (
        circle(sign * 70.0),
        circle(sign * 70.0, start=3.7),
        wiggly,
        capped(sign * 70.0, sign * 90.0),
    ):
        zones = Zones(frame([zone]), "zone_id", overlap="raise")
        lon = np.array([0.0, 5.3, 123.0, 180.0, -180.0, -90.0, 77.0, 77.0])
        lat = sign * np.array([80.0, 80.0, 80.0, 80.0, 80.0, 90.0, 90.0, -90.0])
        assert located(zones, lon, lat) == ["z0"] * 7 + [""]
        assert located(zones, lon, np.full(8, sign * 60.0)) == [""] * 8
        outline = zones.domain().geometry()[0]
        assert outline.is_valid
        assert all(part.bounds[2] - part.bounds[0] <= 180.0 for part in outline.geoms)


@pytest.mark.parametrize("seed", range(5))
def test_stars_around_a_pole_against_their_plain_unrolled_outline(seed):
    rng = np.random.default_rng(seed)
    steps = rng.dirichlet(np.full(40, 3.0)) * 360.0
    lon, lat = rng.uniform(-180, 180) + np.cumsum(steps), rng.uniform(55, 75, 40)
    zone = Polygon(np.column_stack([wrap(lon), lat]))
    lon, lat = np.append(lon, lon[0] + 360.0), np.append(lat, lat[0])
    at, height = rng.uniform(-180, 180, 4000), rng.uniform(50, 90, 4000)
    inside = height > np.interp(lon[0] + (at - lon[0]) % 360.0, lon, lat)
    assert located(Zones(frame([zone]), "zone_id"), at, height) == np.where(inside, "z0", "").tolist()
    vertices = shapely.get_coordinates(cut_at_180(zone))
    # No slit a hair wide stays where the ring was closed: no two vertices differ by rounding only.
    assert len(np.unique(vertices, axis=0)) == len(np.unique(vertices.round(9), axis=0))


def test_a_ring_around_a_pole_with_a_hole_over_it_and_one_beside_it():
    beside = [(10, 65), (12, 65), (12, 67), (10, 67)]
    ring = Polygon(circle(60.0).exterior, [circle(80.0, start=5.0).exterior, beside])
    zones = Zones(frame([ring]), "zone_id")
    assert located(zones, [0, 11, 179, 180, 0, 0, 50], [70, 66, 70, 70, 85, 90, 80]) == [
        *["z0", "", "z0", "z0"],
        *["", "", "z0"],
    ]


def test_polar_projection():
    disc = shapely.Point(0, 0).buffer(2_000_000)
    zones = Zones(
        frame([disc, disc.buffer(1_000_000).difference(disc)], crs=3031), "zone_id", overlap="raise"
    )
    assert located(zones, [0, 90, 180, -90, 10, 10], [-85, -80, -75, -90, -68, -50]) == [
        *["z0", "z0", "z0", "z0", "z1"],
        "",
    ]


def test_wedges_meet_at_the_pole():
    wedges = Zones(frame([box(lon, 80, lon + 90, 90) for lon in (-180, -90, 0, 90)]), "zone_id")
    assert located(wedges, [-100, 100, 33, 33], [90, 90, 90, 85]) == ["z0", "z0", "z0", "z2"]
    every = Zones(frame([box(lon, 80, lon + 90, 90) for lon in (-180, -90, 0, 90)]), "zone_id", "count")
    assert every.domain().locate(np.array([33.0]), np.array([90.0]))[1].tolist() == [0, 1, 2, 3]


def test_around_the_earth_but_over_no_pole():
    with pytest.raises(ValueError, match=r"zone 'z0' .*crosses the equator"):
        Zones(
            frame([Polygon([(lon, 5.0 * (-1) ** i) for i, lon in enumerate(range(-180, 180, 20))])]),
            "zone_id",
        )
    with pytest.raises(ValueError, match=r"zone 'z0' .*a hole goes around"):
        Zones(frame([Polygon(JUMPING.exterior, [circle(-16.5).exterior])]), "zone_id")


# ---------------------------------------------------------------- reference systems


@pytest.mark.parametrize("crs", [5070, 2263, 3857, 4269, 32618])
def test_geoparquet_io_537_zones_of_any_crs(crs):
    cells = [
        box(-74.0 + 0.1 * i, 40.6 + 0.1 * j, -73.9 + 0.1 * i, 40.7 + 0.1 * j)
        for i in range(3)
        for j in range(3)
    ]
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(-74.05, -73.65, 3000), rng.uniform(40.55, 40.95, 3000)
    plain = frame(cells)
    assert located(Zones(plain.to_crs(crs), "zone_id"), lon, lat) == located(
        Zones(plain, "zone_id"), lon, lat
    )


def test_a_projection_across_the_meridian():
    pacific = frame([box(-250_000, -2_000_000, 250_000, -1_000_000)], crs="EPSG:3832")
    pacific["geometry"] = pacific.translate(xoff=30 * 111_319.49)  # centred on 180 (PDC Mercator: 150 E)
    zones = Zones(pacific, "zone_id", overlap="raise")
    assert located(zones, [179.99, -179.99, 180.0, 170.0], [-15.0] * 4) == ["z0", "z0", "z0", ""]


def test_what_a_projection_cannot_place():
    far = frame([box(0, 0, 1e9, 1e9)], crs=5070)
    with pytest.raises(ValueError, match=r"zone 'z0' .*NAD83 / Conus Albers; is that its CRS\?"):
        Zones(far, "zone_id")


def test_tobler_194_polygon_z():
    flat, raised = box(0, 0, 1, 1), shapely.force_3d(box(0, 0, 1, 1), 12.5)
    assert Zones(frame([raised]), "zone_id") == Zones(frame([flat]), "zone_id")
    assert not shapely.has_z(Zones(frame([raised]), "zone_id").domain().geometry()).any()
    assert located(Zones(frame([shapely.force_3d(JUMPING)]), "zone_id"), [180.0], [-16.5]) == ["z0"]


# ---------------------------------------------------------------- the parts below


def test_plain_polygons_are_left_alone():
    rng = np.random.default_rng(2)
    zones = np.array([box(x, y, x + 1, y + 1) for x, y in rng.uniform((-180, -89), (179, 89), (50, 2))])
    assert is_plain(zones).all()
    for zone in zones:
        assert shapely.equals(cut_at_180(zone), zone)


edges = st.integers(-6, 6)


@given(
    st.lists(st.tuples(edges, edges, st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40),
    st.lists(st.tuples(edges, edges), max_size=40),
)
def test_candidates_are_the_closed_boxes_around_a_point(boxes, points):
    bounds = np.array([(x, y, x + w, y + h) for x, y, w, h in boxes], dtype=float) / 3
    x, y = np.array(points, dtype=float).reshape(-1, 2).T / 3
    rows, members = candidates(build_tiles(bounds), x, y)
    expected = {
        (i, j)
        for i in range(len(x))
        for j, (w, s, e, n) in enumerate(bounds)
        if w <= x[i] <= e and s <= y[i] <= n
    }
    found = list(zip(rows.tolist(), members.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_boxes_on_top_of_each_other_stop_splitting(shift):
    tiles = build_tiles(np.array([0.0, 0.0, 1.0, 1.0]) + shift * np.arange(1000)[:, None])
    assert len(tiles.member) <= 80_000
    rows, _ = candidates(tiles, np.array([1.0, 0.5, 9.0]), np.array([1.0, 0.5, 9.0]))
    assert np.bincount(rows, minlength=3).tolist() == ([1000, 1000, 0] if not shift else [1000, 501, 0])
