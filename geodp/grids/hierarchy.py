"""How cells lie together: the public neighbourhood that estimators may borrow strength from."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hierarchy", "block_levels", "dense"]

_BLOCKS = (256, 64, 16)


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


def block_levels(counts: Mapping[int, int], n_cells: int) -> list[int]:
    """Choose the levels that come nearest to 256, 64 and 16 blocks, finest first.

    Parameters
    ----------
    counts : mapping of int to int
        Number of blocks at each level.
    n_cells : int
        Levels with fewer than four cells to a block, or fewer than four blocks, are no use.

    Examples
    --------
    >>> block_levels({7: 838, 6: 135, 5: 22, 4: 5}, 5495)
    [6, 5]
    """
    usable = {level: count for level, count in counts.items() if 4 <= count <= n_cells / 4}
    nearest = [min(usable, key=lambda level: abs(log(usable[level] / aim))) for aim in _BLOCKS if usable]
    return list(dict.fromkeys(nearest))


def dense(groups: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the numbers of sorted groups, from 0.

    Examples
    --------
    >>> dense(np.array([5, 5, 9, 12, 12], dtype=np.uint64)).tolist()
    [0, 0, 1, 2, 2]
    """
    return np.cumsum(np.diff(groups, prepend=groups[:1]) != 0, dtype=np.int64)
