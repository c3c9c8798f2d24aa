"""Coastlines for orientation, cut to what a map shows: Natural Earth's, which are in the public domain.

They are coarse (1:50 million, or 1:110 million for large parts of the world), so a page draws them only while a
pixel is not much smaller than their error.
"""

import json
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from geodp.maps.packing import Shapes

__all__ = ["coastline"]

Box = tuple[float, float, float, float]

_WORTH = 1.5  # degrees: below, the lines are off by more than they say
_FINE = 60.0  # degrees: up to here the finer lines
_MARGIN = 1.5  # of the box, on every side


def coastline(view: Box) -> Shapes | None:
    """Return the coast in a box and around it, each line a shape of one open ring; None where it says nothing.

    Parameters
    ----------
    view : tuple of float
        West, south, east, north in degrees; east may be above 180.

    Examples
    --------
    >>> coastline((-74.3, 40.4, -73.6, 41.0)) is None
    True
    >>> lines = coastline((177, -20, 182, -15))
    >>> len(lines.rings) > 3, lines.digits
    (True, 3)
    """
    west, south, east, north = view
    size = max(east - west, north - south)
    if size < _WORTH:
        return None
    scale, digits = ("50m", 3) if size <= _FINE else ("110m", 2)
    lines = [part for line in _lines(scale) for part in _inside(line, view, _MARGIN * size)]
    if not lines:
        return None
    places = np.rint(np.concatenate(lines) * 10.0**digits).astype(np.int64)
    return Shapes(
        rings=np.ones(len(lines), dtype=np.int64),
        corners=np.array([len(line) for line in lines], dtype=np.int64),
        lon=places[:, 0],
        lat=places[:, 1],
        digits=digits,
    )


@cache
def _lines(scale: str) -> tuple[NDArray[np.float64], ...]:
    """Return the arcs of a TopoJSON file in degrees: steps from place to place, in whole units."""
    text = files("geodp.maps").joinpath(f"assets/vendor/world-atlas/land-{scale}.json").read_text("utf-8")
    held = json.loads(text)
    unit, origin = (np.asarray(held["transform"][name]) for name in ("scale", "translate"))
    return tuple(np.cumsum(np.asarray(arc), axis=0) * unit + origin for arc in held["arcs"])


def _inside(line: NDArray[np.float64], view: Box, margin: float) -> list[NDArray[np.float64]]:
    """Return the stretches of a line near a box, and none of the cuts along the 180th meridian and the pole."""
    west, south, east, north = view
    lon, lat = line.T
    near = (lat >= south - margin) & (lat <= north + margin)
    near &= (lon - west + margin) % 360 <= min(east - west + 2 * margin, 360)
    cut = (np.abs(lon) > 179.99) | (lat < -89.9)
    across = np.abs(np.diff(lon)) > 180
    kept = (near[1:] | near[:-1]) & ~(cut[1:] & cut[:-1]) & ~across
    turns = np.flatnonzero(np.diff(kept, prepend=False, append=False))
    return [line[first : last + 1] for first, last in zip(turns[::2], turns[1::2], strict=True)]
