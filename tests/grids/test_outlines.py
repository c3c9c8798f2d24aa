"""Outlines across the 180th meridian: cut in bulk exactly as one by one, and of the right area."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import MultiPolygon

from geodp.grids.outlines import cut, polygons


@st.composite
def rings(draw):
    """Stars of 3 to 8 corners, mostly across 180, in both directions, some with a vertex on it or no area."""
    k = draw(st.integers(3, 8))
    middle = draw(st.sampled_from([180.0, 180.0, 179.9, -175.0, 20.0]))
    lat = draw(st.floats(-80, 80))
    reach = 10 ** draw(st.floats(-3, 2))
    angles = np.sort(draw(st.lists(st.floats(0, 6.28), min_size=k, max_size=k, unique=True)))
    turn = draw(st.sampled_from([1, -1, 0]))
    angles = draw(st.permutations(angles.tolist())) if turn == 0 else angles[::turn]
    lon = (middle + reach * np.cos(angles) + 180) % 360 - 180
    if draw(st.booleans()):
        lon[0] = draw(st.sampled_from([-180.0, 180.0]))
    return np.column_stack([lon, np.clip(lat + reach * np.sin(angles), -90, 90)])


@settings(max_examples=300)
@given(st.lists(rings(), min_size=1, max_size=12))
def test_many_rings_at_once_are_cut_as_each_alone(drawn):
    shapes = polygons(np.concatenate(drawn), np.array([len(ring) for ring in drawn]))
    for ring, shape in zip(drawn, shapes, strict=True):
        if np.ptp(ring[:, 0]) > 180:
            assert shapely.to_wkb(shape) == shapely.to_wkb(cut(ring))
            assert abs(shapely.bounds(shape)).max(initial=0, where=~np.isnan(shapely.bounds(shape))) <= 180


@pytest.mark.parametrize("direction", [1, -1])
def test_a_square_across_180_keeps_its_area_and_runs_counter_clockwise(direction):
    ring = np.array([[179.0, 0.0], [-178.0, 0.0], [-178.0, 1.0], [179.0, 1.0]])[::direction]
    far = np.array([[10.0, 0.0], [11.0, 0.0], [11.0, 1.0]])
    plain, across = polygons(np.concatenate([far, ring]), np.array([3, 4]))
    assert plain.equals(shapely.Polygon(far))
    assert isinstance(across, MultiPolygon)
    assert [part.area for part in across.geoms] == [1.0, 2.0] or [part.area for part in across.geoms] == [
        2.0,
        1.0,
    ]
    assert all(part.exterior.is_ccw for part in across.geoms)


def test_a_sliver_across_180_has_no_area_and_takes_no_other_with_it():
    sliver = np.array([[179.0, 0.0], [-179.0, 0.0], [180.0, 0.0]])
    square = np.array([[179.0, 0.0], [-179.0, 0.0], [-179.0, 1.0], [179.0, 1.0]])
    lost, kept, lost_too = polygons(np.concatenate([sliver, square, sliver]), np.array([3, 4, 3]))
    assert (lost.area, kept.area, lost_too.area) == (0, 2, 0)
    assert lost.geom_type == "MultiPolygon"
