"""Squares in metres of a projected CRS, all of them listed."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyproj import CRS
from pyproj.exceptions import CRSError

from geodp.bounds import Box
from geodp.chunks import slices
from geodp.grids.base import Domain
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import Floats, Ints, square_hierarchy
from geodp.grids.regions import numbers
from geodp.grids.sheets import ranked_projected
from geodp.progress import current
from geodp.wording import brief

if TYPE_CHECKING:
    from geodp.grids.square import Square

__all__ = ["ProjectedDomain", "canonical"]


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
        self._numbered = ranked_projected(grid, box)
        self._all = np.arange(self._numbered.n_cells)

    @property
    def n_cells(self) -> int:
        """Number of cells, empty or not."""
        return len(self._all)

    @cached_property
    def index(self) -> pd.Index:
        """Ids such as ``CRS3035RES1000mN2599000E4695000``, ascending; named ``square_1000m``."""
        return pd.Index(self._numbered.texts(self._all), dtype="str", name=self._numbered.name)

    @cached_property
    def edge(self) -> NDArray[np.bool_]:
        """Which cells the border of the box runs through, shape (n_cells,)."""
        flags = self._numbered.on_edge(self._all)
        flags.flags.writeable = False
        return flags

    @property
    def area_km2(self) -> float:
        """Mean area on the ground of up to 64 cells spread over the domain, in square kilometres."""
        return self._numbered.area_km2

    def locate(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the points that fall into a cell, and those cells' numbers.

        See :meth:`geodp.grids.base.Domain.locate`.
        """
        return self._numbered.locate(lon, lat)

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
            done.append(self._numbered.outlines(self._all[part]))
        return np.concatenate(done)

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return square_hierarchy(*numbers(self._numbered.keys.values(self._all)))
