"""How cells lie together: the public neighbourhood that estimators may borrow strength from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hierarchy"]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nested groupings of a domain's cells, decided from the grid and the box alone.

    Attributes
    ----------
    siblings : tuple of int64 arrays, each (n_cells,)
        Parent number (dense, from 0) of each cell at one to five coarser levels, finest first.
        Empty where cells have no public neighbourhood (zones).
    blocks : tuple of int64 arrays, each (n_cells,)
        Nested coarse blockings of about 256, 64 and 16 blocks, finest first, numbers dense from 0.
        Empty where the domain is too small for any.
    order : int64 array (n_cells,) or None
        The cells along a space-filling curve; ``None`` where the index already runs along one.
    """

    siblings: tuple[NDArray[np.int64], ...] = ()
    blocks: tuple[NDArray[np.int64], ...] = ()
    order: NDArray[np.int64] | None = None
