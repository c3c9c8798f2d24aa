"""Numbers for all descendants of some H3 cells, and back: arithmetic on the digits of an index.

A cell of resolution R below an ancestor is named by its digits, one of 0 to 6 for each resolution. Below
a pentagon one branch is missing: the first digit that is not 0 cannot be 1 (Uber's H3 calls it the deleted
k axis). With descendants numbered in the order of their digits, which is the order of their indexes, a
number and a cell follow from each other exactly, and nothing has to be listed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import h3.api.basic_int as h3
import numpy as np
from numpy.typing import NDArray

from geodp.grids.ordered import places

__all__ = ["Descendants"]

Cells = NDArray[np.uint64]
Ints = NDArray[np.int64]

_MOST = 15
_DIGIT = 3


@dataclass(frozen=True, eq=False)
class Descendants:
    """All cells of one resolution below some coarser cells, numbered from 0 in the order of their ids.

    Attributes
    ----------
    ancestors : uint64 array, shape (n,)
        Coarser cells, all of one resolution, ascending, each once.
    resolution : int
        Of the descendants; not below that of the ancestors.
    starts : int64 array, shape (n + 1,)
        Number of the first descendant of each ancestor, and how many there are in all.

    Examples
    --------
    >>> world = Descendants.of(h3.get_res0_cells(), 12)
    >>> world.size == h3.get_num_cells(12)
    True
    """

    ancestors: Cells
    resolution: int
    starts: Ints

    @classmethod
    def of(cls, ancestors: Iterable[int], resolution: int) -> "Descendants":
        """Return the descendants of cells of one resolution, given in any order."""
        cells = np.array(sorted(ancestors), dtype=np.uint64)
        depth = resolution - h3.get_resolution(int(cells[0]))
        sizes = [_below_pentagon(depth) if h3.is_pentagon(cell) else 7**depth for cell in cells.tolist()]
        return cls(cells, resolution, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    @property
    def size(self) -> int:
        """How many descendants there are."""
        return int(self.starts[-1])

    def numbers(self, cells: Cells) -> Ints:
        """Return the numbers of cells of the resolution, -1 for those below none of the ancestors."""
        unused = np.uint64((1 << self._low + _DIGIT * self._depth) - 1)
        above = (cells & ~_RESOLUTION) | np.uint64(self._coarse << 52) | unused
        ancestor = places(above, self.ancestors)
        number = np.zeros(len(cells), dtype=np.int64)
        for level in range(self._depth - 1, -1, -1):
            number *= 7
            number += (cells >> np.uint64(self._low + _DIGIT * level)).view(np.int64) & 7
        below_pentagon = np.flatnonzero(self._pentagon[ancestor] & (number > 0))
        number[below_pentagon] += _shift(number[below_pentagon], _SEVENS)
        return np.where(ancestor >= 0, self.starts[ancestor] + number, -1)

    def cells(self, numbers: Ints) -> Cells:
        """Return the cells of numbers from 0 to ``size - 1``."""
        ancestor = np.searchsorted(self.starts, numbers, side="right") - 1
        rest = numbers - self.starts[ancestor]
        below_pentagon = np.flatnonzero(self._pentagon[ancestor] & (rest > 0))
        rest[below_pentagon] -= _shift(rest[below_pentagon], _PENTAGONS)
        digits = np.zeros(len(numbers), dtype=np.uint64)
        for level in range(self._depth):
            rest, digit = np.divmod(rest, 7)
            digits |= digit.view(np.uint64) << np.uint64(self._low + _DIGIT * level)
        open_ = np.uint64(((1 << _DIGIT * self._depth) - 1) << self._low)
        return (self.ancestors[ancestor] & ~(_RESOLUTION | open_)) | self._fine | digits

    @property
    def _coarse(self) -> int:
        return int(h3.get_resolution(int(self.ancestors[0])))

    @property
    def _fine(self) -> np.uint64:
        return np.uint64(self.resolution << 52)

    @property
    def _depth(self) -> int:
        return self.resolution - self._coarse

    @property
    def _low(self) -> int:
        """Bits below the last digit in use."""
        return _DIGIT * (_MOST - self.resolution)

    @property
    def _pentagon(self) -> NDArray[np.bool_]:
        pentagon: NDArray[np.bool_] = np.diff(self.starts) < 7**self._depth
        return pentagon


def _below_pentagon(depth: int) -> int:
    """Return how many descendants a pentagon has: itself below itself, and five hexagons at each step."""
    return int(1 + 5 * (7**depth - 1) // 6)


def _shift(numbers: Ints, steps: Ints) -> Ints:
    """Return the way from digits read in base 7 to a number among a pentagon's descendants.

    With r digits after the first that is not 0, the digits d... mean d * 7^r + ..., and before it come the
    descendants of the pentagon r steps up and those of d - 2 hexagons. ``steps`` tells r from either side.
    """
    r = np.searchsorted(steps, numbers, side="right") - 1
    return _PENTAGONS[r] - 2 * _SEVENS[r]


_RESOLUTION = np.uint64(0xF << 52)
_SEVENS = np.array([7**r for r in range(_MOST + 1)], dtype=np.int64)
_PENTAGONS = np.array([_below_pentagon(r) for r in range(_MOST + 1)], dtype=np.int64)
