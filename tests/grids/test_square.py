from decimal import Decimal
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from grid_strategies import boxes, points_anywhere, points_in
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from geodp.bounds import WORLD, Box, clamp, wrap
from geodp.grids import H3, Square, grid
from geodp.grids.lattice import Lattice, hilbert

CITY = Box.parse((-74.3, 40.5, -73.7, 40.95))
SIZES = ["0.01", "0.1", "0.25", "1", "7", "11", "90"]


@settings(max_examples=150)
@given(boxes(), st.sampled_from(SIZES), st.integers(0, 2**32))
def test_every_point_of_a_box_is_in_the_square_that_is_drawn_there(box, size, seed):
    square = Square(size)
    assume(square.estimate(box) <= 3000)
    domain = square.domain(box)
    assert domain.n_cells == square.estimate(box)
    lon, lat = points_in(box, np.random.default_rng(seed), 50)
    rows, cells = domain.locate(lon, lat)
    assert rows.tolist() == list(range(len(lon)))
    west, south, east, north = shapely.bounds(domain.geometry()[cells]).T
    # Half-open squares, but for the closing border, where 180 and -180 are one place.
    assert ((lon >= west) | (lon == -180)).all()
    assert ((lat >= south) & ((lat < north) | (lat == box.north))).all()
    assert ((lon < east) | (lon == box.east_end)).all()


@settings(max_examples=80)
@given(boxes(), st.sampled_from(SIZES), st.integers(0, 2**32))
def test_clamped_points_fall_into_edge_squares(box, size, seed):
    square = Square(size)
    assume(square.estimate(box) <= 3000)
    lon, lat, inside = clamp(*points_anywhere(np.random.default_rng(seed)), box)
    rows, cells = square.domain(box).locate(lon, lat)
    assert len(rows) == len(lon)
    assert square.domain(box).edge[cells[~inside]].all()


@settings(max_examples=80)
@given(boxes(), st.sampled_from(SIZES))
def test_squares_tile_the_box_and_their_ids_sort(box, size):
    square = Square(size)
    assume(square.estimate(box) <= 3000)
    domain = square.domain(box)
    shapes = domain.geometry()
    assert domain.index.is_monotonic_increasing
    assert domain.index.is_unique
    assert shapely.is_valid(shapes).all()
    assert shapely.is_ccw(shapely.get_exterior_ring(shapes)).all()
    assert (shapely.area(shapes) > 0).all()
    assert shapely.union_all(shapes).area == pytest.approx(shapely.area(shapes).sum())


def test_geopandas_2062_the_step_that_does_not_divide_the_extent():
    domain = Square(0.01).domain(CITY)
    assert domain.n_cells == 60 * 45
    rows, cells = domain.locate(np.array([-73.7, -74.3, -73.7]), np.array([40.95, 40.95, 40.5]))
    assert rows.tolist() == [0, 1, 2]
    assert domain.index[cells].tolist() == [
        "CRS4326RES0.01N40.94W073.71",
        "CRS4326RES0.01N40.94W074.30",
        "CRS4326RES0.01N40.50W073.71",
    ]
    assert domain.index.name == "square_0.01"


@pytest.mark.parametrize("size", ["0.01", "0.1", "0.07", "0.003"])
def test_typed_corners_belong_to_the_square_that_starts_there(size):
    step = Fraction(size)
    lattice = Lattice(step)
    numbers = np.arange(-int(180 / step), int(180 / step))
    corners = np.array([float(Fraction(int(number)) * step) for number in numbers])
    assert lattice.number(corners).tolist() == numbers.tolist()
    assert lattice.corner(numbers.astype(float)).tobytes() == corners.tobytes()
    assert lattice.number(np.nextafter(corners, -np.inf)).tolist() == (numbers - 1).tolist()


@pytest.mark.parametrize("size", [0.01, "0.01", Decimal("0.010"), Fraction(1, 100), "1e-2"])
def test_one_grid_however_its_size_is_typed(size):
    assert Square(size) == Square("0.01")
    assert hash(Square(size)) == hash(Square("0.01"))
    assert Square(size).name == "square:0.01"


@pytest.mark.parametrize(("size", "cells"), [(0.5, 40 * 80), (7, 4 * 6)])
def test_boxes_across_180(size, cells):
    domain = Square(size).domain(Box.parse((170, -20, -170, 20)))
    bounds = shapely.bounds(domain.geometry())
    assert domain.n_cells == cells
    assert (bounds[:, 2] - bounds[:, 0]).max() <= size
    assert bounds[:, 2].max() == 180
    assert bounds[:, 0].min() == -180


def test_the_world_closes_at_180_and_the_north_pole():
    domain = Square(1).domain(WORLD)
    assert domain.n_cells == 360 * 180
    _, cells = domain.locate(np.array([-180.0, -180.0]), np.array([90.0, -90.0]))
    assert domain.index[cells].tolist() == ["CRS4326RES1N89W180", "CRS4326RES1S90W180"]
    assert not domain.edge.any()


@pytest.mark.parametrize("bounds", [(0, 0, 1e-9, 1e-9), (5, 5, 5, 5), (5, 90, 5, 90), (180, -90, 180, -90)])
def test_never_empty(bounds):
    box = Box.parse(bounds)
    domain = Square(5).domain(box)
    assert domain.n_cells == 1
    assert domain.geometry()[0].area > 0
    assert domain.locate(np.array([box.west]), np.array([box.south]))[1].tolist() == [0]


def test_trends_earth_27_one_wrap_rule_for_every_grid(quakes):
    box = Box.parse((165, -40, 189, -10))
    lon, lat, inside = clamp(wrap(quakes["long"].to_numpy()), quakes["lat"].to_numpy(), box)
    assert inside.all()
    for public in (H3(3), Square(1), Square(100_000, crs=3832)):
        rows, _ = public.domain(box).locate(lon, lat)
        assert len(rows) == 1000
    east, west = (
        Square(1).domain(box).locate(wrap(np.array([x])), np.zeros(1) - 20)[1] for x in (180.1, -179.9)
    )
    assert east.tolist() == west.tolist()


def test_towns_on_both_sides_of_180(towns):
    box = Box.parse((170, -60, -170, 75))
    lon, lat, inside = clamp(wrap(towns["longitude"].to_numpy()), towns["latitude"].to_numpy(), box)
    assert inside.all()
    domain = Square(2).domain(box)
    _, cells = domain.locate(lon, lat)
    west, south, east, north = shapely.bounds(domain.geometry()[cells]).T
    assert ((west <= lon) & (lon < east) & (south <= lat) & (lat < north)).all()


# Squares of a projected CRS


PLACES = [
    ((10, 45, 11, 46), 5000, 3035),
    ((-74.3, 40.4, -73.6, 41.0), 2000, 32618),
    ((10, 45, 10.02, 45.01), "250", "EPSG:3857"),
    ((170, -20, -170, 20), 200_000, 3832),
    ((170, -20, -170, 20), 200_000, 3857),
    ((-180, 60, 180, 90), 400_000, 3413),
    ((-180, -90, 180, -60), 400_000, 3031),
    ((-180, -90, 180, 90), 500_000, 6933),
    ((10, 45, 10, 45), 1000, 3035),
    ((10, 45, 10, 46), 1000, 3035),
    ((150, -80, 160, -75), 150_000, "+proj=laea +lat_0=-77 +lon_0=155 +units=m +datum=WGS84"),
]


@pytest.mark.parametrize(("bounds", "size", "crs"), PLACES)
def test_projected_squares_hold_every_point(bounds, size, crs):
    box = Box.parse(bounds)
    square = Square(size, crs=crs)
    domain = square.domain(box)
    rng = np.random.default_rng(3)
    lon, lat = points_in(box, rng, 3000)
    rows, cells = domain.locate(lon, lat)
    assert rows.tolist() == list(range(len(lon)))
    out_lon, out_lat, inside = clamp(*points_anywhere(rng), box)
    clamped, edges = domain.locate(out_lon, out_lat)
    assert len(clamped) == len(out_lon)
    assert domain.edge[edges[~inside]].all()
    shapes = domain.geometry()
    assert shapely.is_valid(shapes).all()
    parts = shapely.bounds(shapely.get_parts(shapes))
    assert (parts[:, 2] - parts[:, 0]).max() <= 180
    assert shapely.is_ccw(shapely.get_exterior_ring(shapely.get_parts(shapes))).all()
    # Eight straight steps a side leave less than a thousandth of a side beside the curve.
    away = shapely.distance(shapes[cells], shapely.points(lon, lat)) * np.cos(np.radians(lat)) * 111_000
    assert away.max() < float(size) / 500
    assert domain.index.is_monotonic_increasing
    assert domain.index.is_unique
    estimate = square.estimate(box)
    assert estimate <= 2 * domain.n_cells
    assert domain.n_cells <= 2 * estimate


def test_projected_ids_name_corner_and_size():
    domain = Square(1000, crs=3035).domain(Box.parse((4.4, 52.0, 4.6, 52.1)))
    assert domain.index.name == "square_1000m"
    assert domain.index.str.fullmatch(r"CRS3035RES1000mN\d{7}E\d{7}").all()
    corner = gpd.GeoSeries.from_xy([4.5], [52.05], crs=4326).to_crs(3035)[0]
    _, cells = domain.locate(np.array([4.5]), np.array([52.05]))
    want = f"CRS3035RES1000mN{int(corner.y // 1000) * 1000}E{int(corner.x // 1000) * 1000}"
    assert domain.index[cells[0]] == want


def test_gis_se_469712_a_kilometre_of_web_mercator_is_shorter_on_the_ground():
    box = Box.parse((10, 45.7, 10.2, 45.9))
    assert Square(1000, crs=3857).domain(box).area_km2 == pytest.approx(0.70**2, rel=0.01)
    assert Square(1000, crs=3035).domain(box).area_km2 == pytest.approx(1, rel=0.001)
    with pytest.raises(ValueError, match=r"Metres need a projected CRS: Square\(1000, crs=<its EPSG code>\)"):
        Square(1000)


@pytest.mark.parametrize(
    ("crs", "words"),
    [(4326, "not projected"), ("OGC:CRS84", "not projected"), (4978, "not projected"), (2263, "US survey foot"),
     (999_999, "no CRS that pyproj knows"), ("nowhere", "no CRS that pyproj knows")],
)  # fmt: skip
def test_crs_without_metres(crs, words):
    with pytest.raises(ValueError, match=words):
        Square(1000, crs=crs)


@pytest.mark.parametrize(
    ("crs", "bounds"), [(3035, (-180, -90, 180, 90)), (3857, (0, 0, 1, 90)), (32618, (0, 0, 150, 1))]
)
def test_boxes_that_a_crs_cannot_show(crs, bounds):
    with pytest.raises(ValueError, match="reach beyond what EPSG"):
        Square(100_000, crs=crs).domain(Box.parse(bounds))


@pytest.mark.parametrize("bad", [0, -1, "1/3", 1 / 3, 1e-9, 91, "x", float("nan"), float("inf")])
def test_sizes_that_make_no_squares(bad):
    with pytest.raises(ValueError, match="cell_size"):
        Square(bad)


@pytest.mark.parametrize("bad", [None, True, [1], np.array([1.0])])
def test_sizes_that_are_no_numbers(bad):
    with pytest.raises(TypeError, match="cell_size must be a number"):
        Square(bad)


def test_fitting_coarsens_by_one_two_five():
    assert Square("0.0001").fitting(CITY, 5_000_000) == Square("0.0005")
    assert Square("0.01").fitting(CITY, 5_000_000) == Square("0.01")
    assert Square(50, crs=3035).fitting(Box.parse((5, 45, 10, 50)), 5_000_000) == Square(250, crs=3035)
    assert Square(50).fitting(WORLD, 1) is None


# Hierarchy


@pytest.mark.parametrize(
    ("public", "bounds"),
    [
        (Square("0.01"), CITY.to_list()),
        (Square(1), (170, -20, -170, 20)),
        (Square(5000, crs=3035), (10, 45, 12, 47)),
    ],
)
def test_siblings_are_aligned_blocks_and_blocks_nest(public, bounds):
    domain = public.domain(Box.parse(bounds))
    hierarchy = domain.hierarchy()
    assert len(hierarchy.siblings) == 5
    for side, numbers in zip((2, 4, 8, 16, 32), hierarchy.siblings, strict=True):
        assert sorted(set(numbers.tolist())) == list(range(numbers.max() + 1))
        assert np.bincount(numbers).max() <= side * side
    assert 2 <= len(hierarchy.blocks) <= 3
    for fine, coarse in zip(hierarchy.blocks, hierarchy.blocks[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1
    assert sorted(hierarchy.order.tolist()) == list(range(domain.n_cells))


def test_blocks_are_aligned_to_the_grid_not_to_the_box():
    square = Square("0.01")
    domain = square.domain(Box.parse((-74.29, 40.51, -73.7, 40.95)))
    corner = shapely.bounds(domain.geometry())[:, :2]
    numbers = np.rint(corner / 0.01).astype(int) >> 1
    key = pd.Series(list(map(tuple, numbers)))
    assert key.groupby(domain.hierarchy().siblings[0]).nunique().eq(1).all()


@pytest.mark.parametrize("side", [1, 2, 8, 16, 32])
def test_the_order_runs_from_neighbour_to_neighbour(side):
    rows, cols = np.divmod(np.arange(side * side), side)
    order = np.argsort(hilbert(rows, cols))
    steps = np.abs(np.diff(rows[order])) + np.abs(np.diff(cols[order]))
    assert (steps == 1).all()


# Names


@pytest.mark.parametrize(
    ("spec", "public"),
    [("h3:8", H3(8)), (" H3:08 ", H3(8)), ("square:0.01", Square(0.01)), ("square:1e-2", Square(0.01)),
     ("square:1000@3035", Square(1000, crs=3035)), ("square:1000m@EPSG:3035", Square(1000, crs=3035))],
)  # fmt: skip
def test_names_of_grids(spec, public):
    assert grid(spec) == public
    assert grid(public) is public
    assert grid(public.name) == public
    assert public.to_dict() == {"grid": public.name}


@pytest.mark.parametrize("spec", ["", "h3", "h3:", "h3:x", "h3:-1", "hex:8", "square", "square:", "8"])
def test_names_of_no_grid_list_what_is_allowed(spec):
    with pytest.raises(ValueError, match='is not one of "h3:8"'):
        grid(spec)


@pytest.mark.parametrize("spec", [8, None, ("h3", 8), H3])
def test_things_that_are_no_grid(spec):
    with pytest.raises(TypeError, match='grid must be "h3:8"'):
        grid(spec)


def test_metres_in_a_name_need_their_crs():
    with pytest.raises(ValueError, match=r'"square:500@<EPSG code>"'):
        grid("square:500m")


@pytest.mark.parametrize("spec", ["h3:5", "square:0.1", "square:10000@3035"])
def test_domains_make_geodataframes(spec):
    domain = grid(spec).domain(Box.parse((4, 50, 6, 52)))
    frame = gpd.GeoDataFrame(index=domain.index, geometry=domain.geometry(), crs=4326)
    assert frame.is_valid.all()
    assert len(frame) == domain.n_cells
    assert domain.edge.dtype == bool
    assert domain.edge.shape == (domain.n_cells,)
    rows, cells = domain.locate(np.empty(0), np.empty(0))
    assert rows.dtype == cells.dtype == np.int64
    shapes = domain.geometry()
    shapes[0] = None
    assert domain.geometry()[0] is not None


@pytest.fixture(scope="module")
def quakes(data):
    return pd.read_csv(data / "fiji_quakes.csv")


@pytest.fixture(scope="module")
def towns(data):
    return pd.read_csv(data / "pacific_towns.csv")


@pytest.fixture(scope="module")
def data(request):
    return request.config.rootpath / "tests" / "data"
