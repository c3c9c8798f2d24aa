"""What every grid offers: a public name, a size before it is built, and a complete domain of cells."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.bounds import Box
from geodp.grids.hierarchy import Hierarchy

__all__ = ["Domain", "Grid", "located"]


def located(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the points that have a cell, where -1 is none, and those cells.

    Examples
    --------
    >>> [part.tolist() for part in located(np.array([7, -1, 3]))]
    [[0, 2], [7, 3]]
    """
    rows = np.flatnonzero(cells >= 0)
    return rows, (cells if len(rows) == len(cells) else cells[rows])


class Domain(ABC):
    """All cells of one grid inside one box, in the public order of their ids.

    Nothing here has seen a row. ``locate`` is the only method that is handed coordinates of people,
    and it keeps nothing of them.
    """

    grid: "Grid"
    box: Box
    # Whether locating points in many parts costs no more than locating all at once.
    splits: bool = True

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return len(self.index)

    @property
    @abstractmethod
    def index(self) -> pd.Index:
        """Cell ids, unique, sorted, named after the grid."""

    @property
    @abstractmethod
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box touches, shape (n_cells,)."""

    @property
    @abstractmethod
    def area_km2(self) -> float:
        """Mean area of a cell in square kilometres, for people reading a plan."""

    @abstractmethod
    def locate(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        Parameters
        ----------
        lon, lat : float64 arrays, shape (n,)
            Finite degrees, longitudes in [-180, 180), latitudes in [-90, 90].

        Returns
        -------
        rows, cells : int64 arrays, shape (k,)
            ``cells[i]`` in [0, n_cells) is the cell of point ``rows[i]``. A point in no cell is left
            out; a point can appear more than once only where zones overlap and each is counted.
        """

    @abstractmethod
    def geometry(self) -> NDArray[np.object_]:
        """Return the outlines, shape (n_cells,): valid EPSG:4326 (multi)polygons, none wider than 180°."""

    @abstractmethod
    def hierarchy(self) -> Hierarchy:
        """Return the public neighbourhood of the cells."""


class Grid(ABC):
    """A public way of dividing the Earth. Subclasses are frozen and hashable dataclasses."""

    needs_bounds: bool = True

    @property
    @abstractmethod
    def name(self) -> str:
        """Canonical text of the grid, such as ``"h3:8"``; equal grids have equal names."""

    @abstractmethod
    def estimate(self, box: Box) -> int:
        """Return about how many cells ``box`` holds, at once and without listing them."""

    @abstractmethod
    def fitting(self, box: Box, limit: int) -> "Grid | None":
        """Return the finest grid of this kind, not finer than this one, with at most ``limit`` cells."""

    @abstractmethod
    def domain(self, box: Box) -> Domain:
        """Return the complete domain of cells in ``box``; built once and shared."""

    def to_dict(self) -> dict[str, Any]:
        """Return the grid as plain JSON for plans and records."""
        return {"grid": self.name}
