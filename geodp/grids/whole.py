"""The whole box as one cell: for a total, or one centroid of everybody."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geodp.bounds import Box
from geodp.grids.base import Domain, Grid
from geodp.grids.hierarchy import Hierarchy

if TYPE_CHECKING:
    from geodp.grids.lattice import Floats, Ints

__all__ = ["Whole"]

# Parts of a multipolygon may not share an edge; a hair of 0.1 mm lies between them.
_HAIR = 1e-9


@dataclass(frozen=True)
class Whole(Grid):
    """One cell that is the box itself; ``grid="box"``.

    Examples
    --------
    >>> Whole().domain(Box.parse((0, 0, 1, 1))).index.tolist()
    ['box']
    """

    @property
    def name(self) -> str:
        """Canonical text."""
        return "box"

    def estimate(self, box: Box) -> int:
        """Return 1."""
        return 1

    def fitting(self, box: Box, limit: int) -> "Grid | None":
        """Return the grid itself."""
        return self

    def domain(self, box: Box) -> "WholeDomain":
        """Return the one-cell domain."""
        if box.west == box.east or box.south == box.north:
            raise ValueError(
                'grid="box" needs bounds with an area; west and east, or south and north, are equal.'
            )
        return _domain(self, box)


class WholeDomain(Domain):
    """A box as its own only cell."""

    def __init__(self, grid: Whole, box: Box) -> None:
        self.grid, self.box = grid, box

    @property
    def index(self) -> pd.Index:
        """The id ``"box"``."""
        return pd.Index(["box"], name="box")

    @property
    def edge(self) -> NDArray[np.bool_]:
        """The cell holds everybody outside, unless there is no outside."""
        return np.array([not self.box.is_world])

    @property
    def area_km2(self) -> float:
        """Area of the box."""
        return self.box.area_km2

    def locate(self, lon: "Floats", lat: "Floats") -> tuple["Ints", "Ints"]:
        """Put every point into the one cell; whoever is still outside was clamped or dropped before."""
        return np.arange(len(lon), dtype=np.int64), np.zeros(len(lon), np.int64)

    def geometry(self) -> NDArray[np.object_]:
        """Return the box, cut at the 180th meridian, no part wider than 180 degrees."""
        return self._outline

    def hierarchy(self) -> Hierarchy:
        """Return an empty neighbourhood."""
        return Hierarchy()

    @cached_property
    def _outline(self) -> NDArray[np.object_]:
        outline = np.empty(1, dtype=object)
        outline[0] = _drawn(self.box)
        return outline


def _drawn(box: Box) -> shapely.Geometry:
    """Return the box cut at the 180th meridian, and in the middle of what is wider than 180 degrees."""
    arcs = [(box.west, min(box.east, 180.0)), *([(-180.0, box.east_end)] if box.wraps else [])]
    pieces = []
    for west, east in arcs:
        middle = (west + east) / 2
        halves = [(west, middle), (middle + _HAIR, east)] if east - west > 180 else [(west, east)]
        pieces += [shapely.box(start, box.south, end, box.north) for start, end in halves]
    return pieces[0] if len(pieces) == 1 else shapely.MultiPolygon(pieces)


@lru_cache(maxsize=32)
def _domain(grid: Whole, box: Box) -> WholeDomain:
    return WholeDomain(grid, box)
