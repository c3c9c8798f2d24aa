"""Squares in metres of a projected CRS, all listed or numbered only."""

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyproj import CRS
from pyproj.exceptions import CRSError

from geodp.bounds import Box
from geodp.chunks import each, slices
from geodp.grids.base import Domain
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import Floats, Ints, square_hierarchy
from geodp.grids.ranked import RankedDomain
from geodp.grids.regions import numbers
from geodp.grids.sheets import Sheet
from geodp.progress import current
from geodp.wording import brief

if TYPE_CHECKING:
    from geodp.grids.square import Square

__all__ = ["ProjectedDomain", "RankedProjected", "canonical", "ranked_projected"]


def canonical(crs: Any) -> str:
    """Return one text for a projected CRS in metres, such as ``"EPSG:3035"``.

    Raises
    ------
    ValueError
        The CRS is unknown, not projected, or not in metres.
    """
    if isinstance(crs, bool) or crs is NotImplemented:
        raise TypeError(f"crs must be an EPSG code or anything pyproj.CRS takes, got {brief(crs)}.")
    try:
        known = CRS.from_user_input(crs)
    except (CRSError, UnicodeError):
        raise ValueError(
            f"crs={brief(crs)} is no CRS that pyproj knows; type an EPSG code, crs=3035."
        ) from None
    if not known.is_projected:
        raise ValueError(
            f"crs={brief(crs)} is not projected ({known.name}), so it has no metres. Square(cell_size) without "
            "crs is in degrees; for metres name a projected CRS, for example 3035 in Europe or the UTM zone."
        )
    units = {axis.unit_name for axis in known.axis_info[:2] if axis.unit_conversion_factor != 1.0}
    if units:
        raise ValueError(
            f"crs={brief(crs)} is in {', '.join(sorted(units))}, not metres; name a CRS in metres."
        )
    authority = known.to_authority(min_confidence=100)
    return _registered(*authority) if authority else str(known.to_string())


def _registered(authority: str, code: str) -> str:
    """Return a CRS as its register writes it: PROJ also reads ``EPSG:03857`` and ``EPSG:3857.0``."""
    return f"{authority}:{CRS.from_authority(authority, code).to_json_dict()['id']['code']}"


class ProjectedDomain(Domain):
    """The squares of a projected CRS that a box of degrees touches, in the order of their ids."""

    def __init__(self, grid: "Square", box: Box) -> None:
        self.grid: Square = grid
        self.box = box
        self._sheet = _sheet(grid, box)
        self._all = np.arange(self._sheet.keys.size)

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return len(self._all)

    @cached_property
    def index(self) -> pd.Index:
        """Ids such as ``CRS3035RES1000mN2599000E4695000``, ascending; named ``square_1000m``."""
        return pd.Index(self._sheet.ids(self._all), dtype="str", name=self._sheet.name)

    @cached_property
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box runs through, shape (n_cells,)."""
        flags = self._sheet.on_edge(self._all)
        flags.flags.writeable = False
        return flags

    @property
    def area_km2(self) -> float:
        """Mean area on the ground of up to 64 cells spread over the domain, in square kilometres."""
        return self._sheet.area_km2

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        See :meth:`geodp.grids.base.Domain.locate`.
        """
        return _located(self._sheet, lon, lat)

    def geometry(self) -> NDArray[np.object_]:
        """Return the outlines, shape (n_cells,): the squares in degrees, valid and counter-clockwise."""
        return self._shapes.copy()

    def hierarchy(self) -> Hierarchy:
        """Return blocks of 2 x 2 to 32 x 32 squares, coarse blocks, and the order along Hilbert's curve."""
        return self._hierarchy

    @cached_property
    def _shapes(self) -> NDArray[np.object_]:
        done = [np.empty(0, dtype=object)]
        for part in slices(self.n_cells):
            current().reach(part.start / self.n_cells)
            done.append(self._sheet.outlines(self._all[part]))
        return np.concatenate(done)

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return square_hierarchy(*numbers(self._sheet.keys.values(self._all)))


class RankedProjected(RankedDomain):
    """The same squares in the same order, by number: kept as stretches of rows."""

    def __init__(self, grid: "Square", box: Box) -> None:
        self.grid: Square = grid
        self.box = box
        self._sheet = _sheet(grid, box)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self._sheet.keys.size

    @property
    def name(self) -> str:
        """Name of the index."""
        return self._sheet.name

    @property
    def area_km2(self) -> float:
        """Mean area on the ground of up to 64 cells spread over the domain, in square kilometres."""
        return self._sheet.area_km2

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers."""
        return _located(self._sheet, lon, lat)

    def contains(self, cells: Ints) -> NDArray[np.bool_]:
        """Tell that all numbers are cells of the domain."""
        return cells >= 0

    def ids(self, cells: Ints) -> NDArray[np.str_]:
        """Return ids such as ``CRS3035RES1000mN2599000E4695000``."""
        return np.array(self._sheet.ids(cells), dtype=np.str_)

    def numbers(self, ids: NDArray[np.object_]) -> Ints:
        """Return the cells that have these ids."""
        return self._sheet.numbers(ids)

    def outlines(self, cells: Ints) -> NDArray[np.object_]:
        """Return the outlines of cells."""
        return self._sheet.outlines(cells)

    def on_edge(self, cells: Ints) -> NDArray[np.bool_]:
        """Tell which cells the border of the box runs through."""
        return self._sheet.on_edge(cells)


@lru_cache(maxsize=4)
def _sheet(grid: "Square", box: Box) -> Sheet:
    return Sheet(grid, box)


@lru_cache(maxsize=8)
def ranked_projected(grid: "Square", box: Box) -> RankedProjected:
    """Return the numbered squares of a box; built once and shared."""
    return RankedProjected(grid, box)


def _located(sheet: Sheet, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
    cells = np.empty(len(lon), dtype=np.int64)

    def locate(part: slice) -> None:
        cells[part] = sheet.locate(lon[part], lat[part])

    each(locate, slices(len(lon)))
    rows = np.flatnonzero(cells >= 0)
    return rows, (cells if len(rows) == len(cells) else cells[rows])
