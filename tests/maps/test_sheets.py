"""How maps lie on the sheet: in one piece across the 180th meridian, from above around a pole, and true in shape."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from released_maps import release

import geodp
from geodp.bounds import Box
from geodp.grids import H3
from geodp.maps.sheets import Sheet, box_outline, lay_out, window


def outlines(bounds, resolution):
    return H3(resolution).domain(Box.parse(bounds)).geometry()


def test_cells_across_the_meridian_are_drawn_in_one_piece():
    # H3-Pandas #35: cells at the 180th meridian smear over the map.
    shapes = outlines((170, -20, -170, 20), 3)
    sheet = lay_out(shapes)
    placed = sheet.place(shapes)
    west, _, east, _ = shapely.bounds(placed).T
    assert 165 < west.min() < east.max() < 195
    assert (east - west).max() < 3
    assert shapely.is_valid(placed).all()
    assert (shapely.get_num_geometries(placed) == 1).all()
    assert np.allclose(shapely.area(placed), shapely.area(shapes))
    assert shapely.area(shapely.union_all(placed)) == pytest.approx(shapely.area(placed).sum(), rel=1e-9)


def test_a_map_that_does_not_cross_is_left_as_it_is():
    shapes = outlines((-74.3, 40.4, -73.6, 41.0), 6)
    sheet = lay_out(shapes)
    assert sheet == Sheet() or (sheet.west, sheet.pole) == (-180.0, 0)
    assert shapely.equals(sheet.place(shapes), shapes).all()


def test_the_world_keeps_its_usual_frame():
    shapes = outlines((-180, -90, 180, 90), 1)
    sheet = lay_out(shapes)
    assert (sheet.west, sheet.pole) == (-180.0, 0)


@pytest.mark.parametrize("side", [1, -1])
def test_a_pole_is_seen_from_above(side):
    bounds = (-180, 60, 180, 90) if side > 0 else (-180, -90, 180, -60)
    shapes = outlines(bounds, 2)
    sheet = lay_out(shapes)
    assert sheet.pole == side
    placed = sheet.place(shapes)
    assert shapely.is_valid(placed).all()
    assert (shapely.get_num_geometries(placed) == 1).all()
    west, south, east, north = shapely.bounds(placed).T
    # No cell is a band around the world, and the one at the pole holds it.
    assert np.maximum(east - west, north - south).max() < 8
    assert shapely.contains(placed, shapely.Point(0, 0)).sum() == 1
    assert shapely.area(shapely.union_all(placed)) == pytest.approx(shapely.area(placed).sum(), rel=1e-3)


def test_the_cell_at_a_pole_in_the_finest_grid():
    # antimeridian #201
    shapes = np.array([H3(15).domain(Box.parse((-180, -90, 180, -89.999995))).geometry()[0]])
    sheet = lay_out(shapes)
    placed = sheet.place(shapes)
    assert sheet.pole == -1
    assert np.abs(shapely.bounds(placed)).max() < 1e-4


def test_east_is_clockwise_in_the_south_and_the_other_way_in_the_north():
    for pole, sign in ((1, 1), (-1, -1)):
        sheet = Sheet(pole=pole)
        middle, east = sheet.xy(np.array([[0.0, 80.0 * pole], [90.0, 80.0 * pole]]))
        assert np.allclose(middle, (0, -sign * 10))
        assert np.allclose(east, (10, 0))


def test_north_is_as_long_as_east_on_the_ground():
    assert Sheet().aspect((10, 59, 12, 61)) == pytest.approx(2.0)
    assert Sheet().aspect((10, -1, 12, 1)) == pytest.approx(1.0)
    assert Sheet().aspect((-180, -90, 180, 90)) == 1.0
    assert Sheet().aspect((0, 88, 1, 90)) < 12
    assert Sheet(pole=1).aspect((-30, -30, 30, 30)) == 1.0


@given(
    start=st.integers(-180, 179),
    arcs=st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), min_size=1, max_size=6),
)
def test_a_narrow_map_anywhere_is_in_one_piece(start, arcs):
    """Arcs within 130 degrees of a start: the window holds them all and is no wider than they reach."""
    west = np.array([(start + offset + 180) % 360 - 180 for offset, _ in arcs], dtype=float)
    east = west + np.array([width for _, width in arcs])
    pieces = [(w, min(e, 180.0)) for w, e in zip(west, east, strict=True)]
    pieces += [(-180.0, e - 360) for e in east if e > 180]
    lows, highs = (np.array(side) for side in zip(*pieces, strict=True))
    first, width = window(lows, highs)
    turned = np.where(lows < first - 1e-6, lows + 360, lows)
    reach = (turned + (highs - lows)).max() - turned.min()
    assert turned.min() >= first - 1e-9
    assert reach <= width + 1e-9
    assert width <= highs.max() - lows.min() + 1e-9
    if highs.max() - lows.min() > 180:
        assert width <= 130


def test_nothing_at_all_is_the_world():
    assert lay_out(np.array([], dtype=object)).pole == 0
    assert lay_out(np.array([None, shapely.Point()], dtype=object)).west == -180.0


def test_the_box_of_a_record_is_cut_like_the_cells():
    fiji = box_outline(geodp.record(release("count", "fiji")))
    assert sorted(part.bounds for part in shapely.get_parts(fiji)) == [
        (-180.0, -20.0, -176.0, -15.0),
        (176.0, -20.0, 180.0, -15.0),
    ]
    assert [shape.bounds for shape in box_outline(geodp.record(release("count")))] == [(0.0, 0.0, 4.0, 4.0)]
    assert len(box_outline(geodp.record(release("count", "zones")))) == 0
    assert len(box_outline({"bounds": [1, 1, 1, 2]})) == 0
