import math
from decimal import Decimal
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp.bounds import WORLD, Box, clamp, unwrap, wrap

FIJI = (165, -40, 190, -10)


@pytest.mark.parametrize(
    "bounds",
    [
        (-74.3, 40.5, -73.7, 40.95),
        [-74.3, 40.5, -73.7, 40.95],
        ("-74.3", "40.5", "-73.7", "40.95"),
        tuple(Decimal(text) for text in ("-74.3", "40.5", "-73.7", "40.95")),
        (Fraction(-743, 10), 40.5, -73.7, 40.95),
        (285.7, 40.5, 286.3, 40.95),
    ],
)
def test_one_box_however_it_is_typed(bounds):
    assert Box.parse(bounds) == Box(-74.3, 40.5, -73.7, 40.95)


@pytest.mark.parametrize(
    ("bounds", "box"),
    [
        ((170, -20, -170, 20), Box(170, -20, 190, 20)),
        ((170, -20, 190, 20), Box(170, -20, 190, 20)),
        ((-190, -20, -170, 20), Box(170, -20, 190, 20)),
        ((180, -5, -170, 5), Box(-180, -5, -170, 5)),
        ((170, -5, 180, 5), Box(170, -5, 180, 5)),
        ((350, 0, 10, 1), Box(-10, 0, 10, 1)),
        ((180, 0, -180, 0), Box(-180, 0, -180, 0)),
        ((5, 5, 5, 5), Box(5, 5, 5, 5)),
        ((0, -90, 360, 90), WORLD),
        ((-74.3, -90, 285.7, 90), WORLD),
    ],
)
def test_boxes_across_the_180th_meridian_and_around_the_earth(bounds, box):
    assert Box.parse(bounds) == box
    assert Box.parse(box) is box


def test_the_east_border_keeps_the_typed_double():
    box = Box.parse((100, -20, -74.3, 20))
    assert box.wraps
    assert box.east_end == -74.3
    assert clamp(np.array([-74.3]), np.array([0.0]), box)[2].all()


@pytest.mark.parametrize("what", ["array", "series", "index", "frame", "geoseries"])
def test_extents_out_of_frames_are_refused_by_type(what):
    numbers = np.array([-74.3, 40.4, -73.6, 41.0])
    points = gpd.GeoSeries(gpd.points_from_xy(numbers, numbers), crs=4326)
    bounds = {
        "array": points.total_bounds,
        "series": pd.Series(numbers),
        "index": pd.Index(numbers),
        "frame": points.bounds,
        "geoseries": points,
    }[what]
    with pytest.raises(TypeError, match=r"Type four numbers: bounds=\(west, south, east, north\)"):
        Box.parse(bounds)


@pytest.mark.parametrize("bad", [math.nan, math.inf, "nan", "east", "", 1e400])
@pytest.mark.parametrize("place", range(4))
def test_numbers_that_are_none(bad, place):
    bounds = [0, 0, 1, 1]
    bounds[place] = bad
    with pytest.raises(ValueError, match="bounds"):
        Box.parse(tuple(bounds))


@pytest.mark.parametrize("bad", [True, None, [1], 1j])
def test_things_that_are_no_numbers(bad):
    with pytest.raises(TypeError, match="bounds must be a number"):
        Box.parse((0, 0, bad, 1))


def test_numpy_numbers_are_refused_because_they_come_out_of_frames():
    with pytest.raises(TypeError, match="total_bounds"):
        Box.parse(tuple(np.array([0.0, 0.0, 1.0, 1.0])))


@pytest.mark.parametrize("bad", ["0,0,1,1", None, {"west": 0}, {0, 1, 2, 3}, 4])
def test_things_that_are_no_four_numbers(bad):
    with pytest.raises(TypeError, match="four numbers"):
        Box.parse(bad)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, 0, 1), "got 3"),
        ((0, 0, 1, 1, 1), "got 5"),
        ((0, 2, 1, 1), "south above north"),
        ((0, -90.1, 1, 1), "latitudes outside"),
        ((0, 0, 1, 91), "latitudes outside"),
        ((-400, 0, 1, 1), "longitudes out of range"),
        ((0, 0, 541, 1), "longitudes out of range"),
        ((-180, 0, 180.001, 1), "wider than 360"),
    ],
)
def test_boxes_that_are_none(bounds, words):
    with pytest.raises(ValueError, match=words):
        Box.parse(bounds)


def test_swapped_numbers_show_in_the_centre():
    assert Box.parse((-74.3, 40.4, -73.6, 41.0)).centre_words() == "40.7 N 74.0 W"
    assert Box.parse((40.4, -74.3, 41.0, -73.6)).centre_words() == "74.0 S 40.7 E"
    assert Box.parse((170, -20, -170, 20)).centre_words() == "0.0 N 180.0 E"
    assert Box.parse((175, -20, -165, 20)).centre_words() == "0.0 N 175.0 W"


def test_area_and_perimeter():
    assert WORLD.area_km2 == pytest.approx(510_065_000, rel=1e-4)
    assert WORLD.perimeter_km == 0
    assert Box.parse((0, 0, 1, 1)).perimeter_km == pytest.approx(4 * 111.19, rel=1e-3)


@given(st.lists(st.floats(-180, 180, exclude_max=True), max_size=20))
def test_wrap_keeps_the_bits_of_what_is_inside(values):
    lon = np.array(values, dtype=np.float64)
    assert wrap(lon).tobytes() == lon.tobytes()


@given(st.floats(-1e15, 1e15), st.integers(-3, 3))
def test_wrap_is_exact_and_one_rule_for_every_habit(lon, turns):
    wrapped = wrap(np.array([lon]))[0]
    assert -180 <= wrapped < 180
    assert (Fraction(float(wrapped)) - Fraction(lon)) % 360 == 0
    whole = float(round(lon) % 360)
    assert wrap(np.array([whole + 360 * turns]))[0] == wrap(np.array([whole]))[0]


def test_trends_earth_27_both_sides_of_180_are_one_place():
    assert wrap(np.array([180.0, -180.0, 540.0])).tolist() == [-180.0] * 3
    assert wrap(np.array([180.5]))[0] == -179.5
    lon, _, inside = clamp(wrap(np.array([180.1, -179.9])), np.zeros(2), Box.parse((170, -5, -170, 5)))
    assert inside.all()
    np.testing.assert_allclose(lon, -179.9)


def test_unwrap_counts_on_from_the_west():
    assert unwrap(np.array([165.0, -175.0, 179.0]), Box.parse(FIJI)).tolist() == [165.0, 185.0, 179.0]


@pytest.mark.parametrize(
    ("lon", "lat", "moved"),
    [
        (-75.0, 40.0, (-74.0, 40.5)),
        (-72.0, 42.0, (-73.0, 41.0)),
        (106.0, 40.7, (-73.0, 40.7)),
        (107.0, 40.7, (-74.0, 40.7)),
        (106.5, 40.7, (-74.0, 40.7)),
        (-180.0, 40.7, (-74.0, 40.7)),
        (-73.5, 90.0, (-73.5, 41.0)),
    ],
)
def test_clamp_goes_to_the_nearer_border_and_ties_go_west(lon, lat, moved):
    box = Box.parse((-74, 40.5, -73, 41))
    new_lon, new_lat, inside = clamp(np.array([lon]), np.array([lat]), box)
    assert (new_lon[0], new_lat[0]) == moved
    assert not inside[0]


@pytest.mark.parametrize(("lon", "moved"), [(165.0, 170.0), (-165.0, -170.0), (0.0, 170.0), (10.0, 170.0)])
def test_clamp_into_a_box_across_180(lon, moved):
    assert clamp(np.array([lon]), np.zeros(1), Box.parse((170, -5, -170, 5)))[0][0] == moved


def test_a_box_up_to_180_ends_at_180():
    box = Box.parse((170, -5, 180, 5))
    lon, _, inside = clamp(np.array([-180.0, 175.0, -179.0]), np.zeros(3), box)
    assert inside.tolist() == [True, True, False]
    assert lon.tolist() == [-180.0, 175.0, -180.0]


@given(st.data())
def test_clamped_points_lie_in_the_box_and_inside_ones_keep_their_bits(data):
    west, south = data.draw(st.floats(-180, 180)), data.draw(st.floats(-90, 90))
    box = Box.parse((west, south, west + data.draw(st.floats(0, 359)), data.draw(st.floats(south, 90))))
    lon = wrap(np.array(data.draw(st.lists(st.floats(-400, 400), min_size=1, max_size=20))))
    lat = np.full(len(lon), data.draw(st.floats(-90, 90)))
    new_lon, new_lat, inside = clamp(lon, lat, box)
    assert clamp(new_lon, new_lat, box)[2].all()
    assert new_lon[inside].tobytes() == lon[inside].tobytes()
    assert new_lat[inside].tobytes() == lat[inside].tobytes()
    assert ((new_lon >= -180) & (new_lon < 180)).all()


@pytest.mark.parametrize("side", ["west", "east"])
@given(st.decimals(-180, 180, places=6), st.decimals("0.001", 359, places=6))
def test_points_typed_like_the_border_are_inside(side, west, width):
    box = Box.parse((west, -1, west + width if west + width < 540 else west, 1))
    point = float(west) if side == "west" else float(west + width)
    _, _, inside = clamp(wrap(np.array([point])), np.zeros(1), box)
    if -180 <= point < 180:
        assert inside.all()
