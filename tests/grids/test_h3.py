import h3
import numpy as np
import pandas as pd
import pytest
import shapely
from grid_strategies import boxes, points_anywhere, points_in
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from geodp.bounds import WORLD, Box, clamp, wrap
from geodp.grids import H3, finest_h3

NYC = Box.parse((-74.3, 40.4, -73.6, 41.0))


def cell_of(domain, lon, lat):
    rows, cells = domain.locate(wrap(np.atleast_1d(np.float64(lon))), np.atleast_1d(np.float64(lat)))
    assert rows.tolist() == list(range(np.size(lon)))
    return domain.index[cells]


def feasible(box, resolution, limit=1000):
    grid = H3(resolution).fitting(box, limit)
    assume(grid is not None)
    return grid.domain(box)


@settings(max_examples=80)
@given(boxes(), st.integers(0, 15), st.integers(0, 2**32))
def test_every_point_of_a_box_has_its_cell_in_the_domain(box, resolution, seed):
    domain = feasible(box, resolution)
    lon, lat = points_in(box, np.random.default_rng(seed), 100)
    rows, cells = domain.locate(lon, lat)
    assert rows.tolist() == list(range(len(lon)))
    there = [h3.latlng_to_cell(y, x, domain.grid.resolution) for x, y in zip(lon, lat, strict=True)]
    assert domain.index[cells].tolist() == there


@settings(max_examples=40)
@given(boxes(), st.integers(0, 15), st.integers(0, 2**32))
def test_clamped_points_fall_into_edge_cells(box, resolution, seed):
    domain = feasible(box, resolution)
    lon, lat, inside = clamp(*points_anywhere(np.random.default_rng(seed)), box)
    rows, cells = domain.locate(lon, lat)
    assert len(rows) == len(lon)
    assert domain.edge[cells[~inside]].all()


@settings(max_examples=40)
@given(boxes(), st.integers(0, 15))
def test_the_estimate_is_right_within_a_factor_of_two(box, resolution):
    # Over a pole, where the domain may hold a whole ring too many, and for a handful, off by a few.
    domain = feasible(box, resolution)
    estimate = domain.grid.estimate(box)
    assert domain.n_cells <= 2 * estimate + 8
    assert estimate <= 2 * domain.n_cells + 8


@pytest.mark.parametrize("resolution", range(4))
def test_no_cell_that_reaches_into_a_box_is_missing_on_coarse_grids(resolution):
    # Brute force: a fine lattice of points over boxes whose borders cut the bows of cell edges.
    rng = np.random.default_rng(resolution)
    for _ in range(25):
        west, south = rng.uniform(-180, 180), rng.uniform(-88, 84)
        box = Box.parse((west, south, west + rng.uniform(1, 60), min(90, south + rng.uniform(0.5, 20))))
        lon, lat = np.meshgrid(np.linspace(box.west, box.east, 50), np.linspace(box.south, box.north, 50))
        lon, lat, _ = clamp(wrap(lon.ravel()), lat.ravel(), box)
        assert len(H3(resolution).domain(box).locate(lon, lat)[0]) == lon.size


def test_a_domain_without_its_border_cells_would_be_caught():
    domain = H3(6).domain(NYC)
    kept = domain.cells[~domain.edge]
    lon, lat = points_in(NYC, np.random.default_rng(0))
    found = np.array([h3.str_to_int(h3.latlng_to_cell(y, x, 6)) for x, y in zip(lon, lat, strict=True)])
    assert not np.isin(found, kept).all()


def test_geojson2h3_25_the_world_has_all_cells():
    domain = H3(2).domain(Box.parse((-180, -90, 180, 90)))
    assert domain.n_cells == H3(2).estimate(WORLD) == 5882
    assert set(domain.index) == {c for base in h3.get_res0_cells() for c in h3.cell_to_children(base, 2)}
    assert not domain.edge.any()


@pytest.mark.parametrize(
    "bounds", [(-180, -90, 180, 0), (-180, 20, 180, 60), (-179, -90, 179, 90), (10, -80, 5, 80)]
)
def test_boxes_wider_than_half_the_earth_are_not_its_other_side(bounds):
    box = Box.parse(bounds)
    domain = H3(2).domain(box)
    centres = np.array([h3.cell_to_latlng(cell) for cell in h3.uncompact_cells(h3.get_res0_cells(), 2)])
    *_, inside = clamp(wrap(centres[:, 1]), centres[:, 0], box)
    assert inside.sum() <= domain.n_cells <= inside.sum() + domain.edge.sum()


def test_tobler_146_no_gaps_along_the_edge():
    domain = H3(8).domain(NYC)
    assert domain.n_cells == 5495
    side = np.linspace(0, 1, 4000)
    lon, lat = -74.3 + 0.7 * side, 40.4 + 0.6 * side
    lons = np.concatenate([lon, lon, np.full(4000, -74.3), np.full(4000, -73.6)])
    lats = np.concatenate([np.full(4000, 40.4), np.full(4000, 41.0), lat, lat])
    lons, lats, _ = clamp(lons, lats, NYC)
    rows, cells = domain.locate(lons, lats)
    assert len(rows) == len(lons)
    assert domain.edge[cells].all()


def test_h3_1052_overlap_misses_a_cell_on_coarse_grids():
    domain = H3(0).domain(Box.parse((32.77, 52.40, 34.05, 53.69)))
    assert "8011fffffffffff" in domain.index


@pytest.mark.parametrize("resolution", range(6, 12))
@pytest.mark.parametrize("bounds", [(-74.0, 40.7, -73.9992, 40.7006), (0, 0, 1e-9, 1e-9), (5, 5, 5, 5)])
def test_h3_456_540_never_empty(resolution, bounds):
    box = Box.parse(bounds)
    domain = H3(resolution).domain(box)
    assert domain.n_cells >= 1
    assert domain.edge.any()
    assert len(domain.locate(np.array([box.west]), np.array([box.south]))[0]) == 1
    assert np.isfinite(domain.area_km2)


def test_h3_pandas_35_cells_at_the_180th_meridian():
    domain = H3(4).domain(Box.parse((179, -18, -179, -16)))
    cells = cell_of(domain, [179.98, -179.98], [-16.9, -16.9])
    shape = pd.Series(domain.geometry(), index=domain.index)[cells[0]]
    assert shape.geom_type == "MultiPolygon"
    assert shape.intersects(shapely.Point(179.98, -16.9))
    domain = H3(3).domain(Box.parse((170, -20, 180, 20)))
    assert shapely.is_valid(domain.geometry()).all()
    assert width(domain.geometry()) < 5


@pytest.mark.parametrize("resolution", range(4))
def test_outlines_tile_the_earth(resolution):
    shapes = H3(resolution).domain(WORLD).geometry()
    assert shapely.is_valid(shapes).all()
    assert width(shapes) <= 180
    assert shapely.area(shapes).sum() == pytest.approx(360 * 180, abs=1e-6)
    parts = shapely.get_parts(shapes)
    assert shapely.is_ccw(shapely.get_exterior_ring(parts)).all()
    low, high = shapely.total_bounds(shapes)[:2], shapely.total_bounds(shapes)[2:]
    assert low.tolist() == [-180, -90]
    assert high.tolist() == [180, 90]


@pytest.mark.parametrize("resolution", range(16))
@pytest.mark.parametrize("pole", [-90, 90])
def test_outlines_at_the_poles(pole, resolution):
    size = 20 / 2.6**resolution
    box = Box.parse((-180, min(pole, 90 - size), 180, max(pole, size - 90)))
    domain = H3(resolution).domain(box)
    (polar,) = cell_of(domain, 77.0, pole)
    shapes = pd.Series(domain.geometry(), index=domain.index)
    assert shapely.is_valid(shapes.values).all()
    assert width(shapes.values) <= 180
    assert shapes[polar].bounds[1 if pole < 0 else 3] == pole


def test_antimeridian_201_the_southern_most_cells():
    cell = h3.latlng_to_cell(-90, 0, 15)
    lat, lon = h3.cell_to_latlng("8ff29380e0d0cc4")
    domain = H3(15).domain(Box.parse((lon, lat, lon, lat)))
    assert "8ff29380e0d0cc4" in domain.index
    poles = H3(15).domain(Box.parse((0, -90, 0, -90)))
    assert cell in poles.index
    for found in (domain, poles):
        assert shapely.is_valid(found.geometry()).all()
        assert shapely.area(found.geometry()).min() > 0


@pytest.mark.parametrize("resolution", [0, 3, 6])
def test_cuts_agree_with_the_antimeridian_package(resolution):
    antimeridian = pytest.importorskip("antimeridian")
    domain = H3(resolution).domain(Box.parse((179.9, 10, -179.9, 14)))
    for cell, shape in zip(domain.index, domain.geometry(), strict=True):
        ring = [(lon, lat) for lat, lon in h3.cell_to_boundary(cell)]
        other = antimeridian.fix_polygon(shapely.Polygon(ring), great_circle=False)
        assert shapely.symmetric_difference(shape, other).area < 1e-6


def test_points_lie_in_their_outlines():
    # Straight sides against arcs: at resolution 5 and 41° N, below a thousandth of a cell.
    domain = H3(5).domain(NYC)
    lon, lat = points_in(NYC, np.random.default_rng(5))
    _, cells = domain.locate(lon, lat)
    shapes = domain.geometry()[cells]
    assert shapely.distance(shapes, shapely.points(lon, lat)).max() < 1e-4


def test_h3_py_429_cells_come_from_coordinates_not_from_parents():
    box = Box.parse((-82, 29, -81, 31))
    lat, lon = 29.99311, -81.33093
    (coarse,) = cell_of(H3(3).domain(box), lon, lat)
    assert coarse == h3.latlng_to_cell(lat, lon, 3)
    assert coarse != h3.cell_to_parent(h3.latlng_to_cell(lat, lon, 12), 3)


def test_scikit_mobility_178_equal_between_runs():
    from geodp.grids.h3 import H3Domain

    first, second = H3Domain(H3(8), NYC), H3Domain(H3(8), NYC)
    pd.testing.assert_index_equal(first.index, second.index, exact=True)
    assert H3(8).domain(NYC) is H3(8).domain(Box.parse([-74.3, 40.4, -73.6, 41.0]))


def test_ids_are_sorted_15_character_strings():
    index = H3(8).domain(NYC).index
    assert index.name == "h3_08"
    assert index.is_monotonic_increasing
    assert index.is_unique
    assert index.str.fullmatch("[0-9a-f]{15}").all()
    assert all(h3.is_valid_cell(cell) and h3.get_resolution(cell) == 8 for cell in index)


def test_points_outside_the_domain_are_left_out():
    rows, cells = H3(8).domain(NYC).locate(np.array([0.0, -74.0, 100.0]), np.array([0.0, 40.7, -40.0]))
    assert rows.tolist() == [1]
    assert rows.dtype == cells.dtype == np.int64
    rows, cells = H3(8).domain(NYC).locate(np.empty(0), np.empty(0))
    assert len(rows) == len(cells) == 0
    assert rows.dtype == cells.dtype == np.int64


@pytest.mark.parametrize("resolution", [1, 5, 8])
def test_siblings_and_blocks_are_h3_parents(resolution):
    box = NYC if resolution > 5 else Box.parse((-100, 20, -60, 60))
    domain = H3(resolution).domain(box)
    hierarchy = domain.hierarchy()
    assert hierarchy.order is None
    assert len(hierarchy.siblings) == min(5, resolution)
    for level, numbers in enumerate(hierarchy.siblings, 1):
        parents = [h3.cell_to_parent(cell, resolution - level) for cell in domain.index]
        assert numbers.tolist() == pd.factorize(np.array(parents, dtype=object))[0].tolist()
    for fine, coarse in zip(hierarchy.blocks, hierarchy.blocks[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1


def test_the_finest_grid_that_fits():
    assert finest_h3(NYC) == H3(8)
    assert finest_h3(WORLD) == H3(2)
    assert finest_h3(Box.parse((5, 5, 5, 5))) == H3(15)
    assert finest_h3(WORLD, limit=1) == H3(0)
    assert H3(12).fitting(NYC, 5_000_000) == H3(11)
    assert H3(5).fitting(NYC, 5_000_000) == H3(5)
    assert H3(5).fitting(WORLD, 10) is None


def test_huge_domains_are_estimated_not_built():
    assert H3(15).estimate(WORLD) == h3.get_num_cells(15)
    assert H3(12).estimate(NYC) == pytest.approx(12_800_000, rel=0.05)


@pytest.mark.parametrize("bad", [-1, 16])
def test_resolutions_out_of_range(bad):
    with pytest.raises(ValueError, match="resolution must be from 0 to 15"):
        H3(bad)


@pytest.mark.parametrize("bad", [8.0, "8", True, None])
def test_resolutions_that_are_none(bad):
    with pytest.raises(TypeError, match="resolution must be an int"):
        H3(bad)


def width(shapes):
    bounds = shapely.bounds(shapely.get_parts(np.array(shapes)))
    return (bounds[:, 2] - bounds[:, 0]).max()
