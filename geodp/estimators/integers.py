"""Whole numbers for the map, without moving mass from one region to another."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["to_integers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BITS = 20
_BLOCK = 64
_LARGEST = float(2**63 - 1024)  # the largest double that int64 holds


def to_integers(x: Floats, order: Ints | None = None) -> Ints:
    """Return non-negative integers near ``x`` whose regional totals are those of ``x``.

    Along a space-filling curve, each block of 64 cells receives the rounded running total at its end
    less that at its start. Inside a block every cell gets its floor, and the units that are left go to
    the largest remainders (ties to the earlier cell). So the total of any run of whole blocks, and of
    the map, moves by at most 1, and every cell by less than 1. Rounding each cell by itself would turn a
    thousand cells of 0.3 into nothing.

    Parameters
    ----------
    x : float64 array (n,)
        At least 0; values beyond int64 saturate. Taken in multiples of 2**-20.
    order : int64 array (n,), optional
        The cells along the curve; the index order by default.

    Returns
    -------
    int64 array (n,)

    Examples
    --------
    >>> to_integers(np.array([0.3, 0.3, 0.4, 2.6, 0.4])).tolist()
    [0, 0, 1, 3, 0]
    """
    along = np.minimum(np.maximum(x if order is None else x[order], 0.0), _LARGEST)
    whole = np.floor(along)
    parts = np.rint((along - whole) * 2.0**_BITS).astype(np.int64)
    integers = whole.astype(np.int64) + (parts >> _BITS)
    integers += _units(parts & ((1 << _BITS) - 1))
    if order is None:
        return integers
    result = np.empty_like(integers)
    result[order] = integers
    return result


def _units(parts: Ints) -> Ints:
    """Return 1 for the cells that are rounded up, from their remainders in 2**-20.

    Whole parts drop out of the differences of the rounded running total, so it runs over the
    remainders alone: exact, and without overflow for any number of cells. It never falls, and a block
    cannot be owed more units than it has cells with a remainder: no unit is ever taken back.
    """
    n = len(parts)
    blocks = -(-n // _BLOCK)
    padded = np.zeros(blocks * _BLOCK, dtype=np.int64)
    padded[:n] = parts
    table = padded.reshape(blocks, _BLOCK)
    running = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
    owed = np.diff((running + (1 << (_BITS - 1))) >> _BITS)
    # One key per cell, larger for a larger remainder and, among equals, for the earlier cell.
    keys = ((table << 6) + np.arange(_BLOCK - 1, -1, -1)).astype(np.int32)
    ranked = np.sort(keys, axis=1)
    least = np.where(
        owed > 0, ranked[np.arange(blocks), _BLOCK - np.maximum(owed, 1)], np.iinfo(np.int32).max
    )
    return (keys >= least[:, None]).ravel()[:n].astype(np.int64)
