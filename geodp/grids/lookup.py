"""Which cell of a list an H3 index is, by its digits: a table or two instead of a search.

Below its base cell an H3 index is a row of digits of three bits, all ones where the resolution has ended.
So the last few digits number the cells of a block, and a table for each block that the list reaches finds a
cell at once; a search in millions of sorted cells takes twenty steps that miss the cache.
"""

import numpy as np
from numpy.typing import NDArray

from geodp.grids.ordered import distinct, places

__all__ = ["Lookup"]

Cells = NDArray[np.uint64]
Ints = NDArray[np.int64]

_DIGITS = (4, 3, 2, 1, 0)
_LEAST = 1 << 16
_MOST_BLOCKS = 1 << 20


class Lookup:
    """Finds cells of one resolution in a list.

    Parameters
    ----------
    cells : uint64 array, shape (n,)
        H3 cells of one resolution, ascending.
    resolution : int

    Examples
    --------
    >>> import h3.api.numpy_int as h3
    >>> cells = np.sort(h3.cell_to_children(h3.latlng_to_cell(40.7, -74.0, 5), 6))
    >>> Lookup(cells[1:], 6).numbers(cells[:3]).tolist()
    [-1, 0, 1]
    """

    def __init__(self, cells: Cells, resolution: int) -> None:
        self._unused = np.uint64(3 * (15 - resolution))
        digits = (cells >> self._unused).astype(np.int64)
        for n in (n for n in _DIGITS if n <= resolution):
            self._bits = 3 * n
            self._blocks = distinct([digits >> self._bits])
            size = len(self._blocks) << self._bits
            # A thin list of cells reaches many blocks and fills none.
            if size <= 8 * len(cells) + _LEAST:
                break
        first, last = int(self._blocks[0]), int(self._blocks[-1])
        self._first = first
        self._nth: Ints | None = None
        if last - first < max(_MOST_BLOCKS, 4 * len(self._blocks)):
            # One more at the end stands for all that lies beyond.
            self._nth = np.full(last - first + 2, -1, np.int64)
            self._nth[self._blocks - first] = np.arange(len(self._blocks))
        self._numbers = np.full(size, -1, np.int32)
        self._numbers[self._place(digits)] = np.arange(len(cells), dtype=np.int32)

    def numbers(self, cells: Cells) -> Ints:
        """Return where cells of this resolution stand in the list, -1 where they do not."""
        place = self._place((cells >> self._unused).astype(np.int64))
        found = self._numbers[place].astype(np.int64)
        found[place < 0] = -1
        return found

    def _place(self, digits: Ints) -> Ints:
        """Return places in the table, negative where no cell of the list lies in the block."""
        block = self._block(digits >> self._bits)
        return (block << self._bits) | (digits & ((1 << self._bits) - 1))

    def _block(self, block: Ints) -> Ints:
        if self._nth is None:
            return places(block, self._blocks)
        beyond = len(self._nth) - 1
        at = block - self._first
        at[(at < 0) | (at > beyond)] = beyond
        return self._nth[at]
