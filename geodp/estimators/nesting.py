"""Sums over nested groups of cells."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_sums", "lift"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def group_sums(group: Ints, values: Floats, groups: int) -> Floats:
    """Return the sum of ``values`` in each group; one loop in index order, so the bits never vary."""
    return np.bincount(group, values, minlength=groups).astype(np.float64, copy=False)


def lift(parent: Ints, child: Ints, children: int) -> Ints:
    """Return the parent of each child group, from the parents and children of the cells.

    Examples
    --------
    >>> lift(np.array([0, 0, 1]), np.array([1, 0, 2]), 3).tolist()
    [0, 0, 1]
    """
    above = np.zeros(children, dtype=np.int64)
    above[child] = parent
    return above
