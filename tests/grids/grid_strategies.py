"""Boxes and points for every grid's tests: tiny and wide, at the poles and across the 180th meridian."""

import numpy as np
from hypothesis import strategies as st

from geodp.bounds import Box, clamp, wrap

_SIZES = st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 3.0, 40.0, 200.0, 359.0])


@st.composite
def boxes(draw, lat_limit=90.0):
    west = draw(st.floats(-180, 180))
    width = min(draw(_SIZES) * draw(st.floats(0.5, 1.0)), 360.0)
    if draw(st.booleans()):
        west = draw(st.sampled_from([-180.0, 0.0, 180.0 - width, 179.9999]))
    south = draw(st.floats(-lat_limit, lat_limit))
    north = min(lat_limit, south + draw(_SIZES))
    kind = draw(st.integers(0, 5))
    south = -lat_limit if kind == 0 else south
    north = lat_limit if kind == 1 else north
    if kind == 2:
        west, width = -180.0, 360.0
    return Box.parse((west, south, west + width, north))


def points_in(box, rng, n=200):
    """Points inside, along all four sides and in the corners, wrapped and clamped as a release does."""
    share = rng.random((6, n))
    lon, lat = box.west + (box.east - box.west) * share[0], box.south + (box.north - box.south) * share[1]
    lons = [lon, np.full(n, box.west), np.full(n, box.east), box.west + (box.east - box.west) * share[2]]
    lats = [lat, box.south + (box.north - box.south) * share[3], lat, np.full(n, box.south)]
    lons += [box.west + (box.east - box.west) * share[4], np.array([box.west, box.east] * 2)]
    lats += [np.full(n, box.north), np.array([box.south, box.south, box.north, box.north])]
    lon, lat, _ = clamp(wrap(np.concatenate(lons)), np.concatenate(lats), box)
    return lon, lat


def points_anywhere(rng, n=300):
    """Points all over the Earth."""
    return rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
