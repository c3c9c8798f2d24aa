"""Sets of whole numbers as stretches without gaps: a region's squares take memory for its border, not its area."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Runs:
    """Whole numbers in ascending order, each once; the n-th is found and counted by arithmetic.

    Attributes
    ----------
    first, last : int64 arrays, shape (n,)
        Both ends of each stretch, ascending; between two stretches a number is missing.

    Examples
    --------
    >>> runs = Runs.of(np.array([7, 1, 2]), np.array([8, 3, 5]))
    >>> runs.values(np.arange(runs.size)).tolist()
    [1, 2, 3, 4, 5, 7, 8]
    >>> runs.places(np.array([7, 6, 1])).tolist()
    [5, -1, 0]
    """

    first: Ints
    last: Ints

    @classmethod
    def of(cls, first: Ints, last: Ints) -> "Runs":
        """Return the numbers from each first to its last; stretches may touch and overlap, in any order."""
        some = last >= first
        order = np.argsort(first[some], kind="stable")
        first, last = first[some][order], np.maximum.accumulate(last[some][order])
        apart = np.flatnonzero(first[1:] > last[:-1] + 1)
        starts, ends = np.append(-1, apart) + 1, np.append(apart, len(first) - 1)
        return cls(first[starts[: len(first)]], last[ends[: len(first)]])

    @cached_property
    def _before(self) -> Ints:
        """How many numbers come before each stretch, and how many there are."""
        return np.concatenate([[0], np.cumsum(self.last - self.first + 1)])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(self._before[-1])

    def values(self, places: Ints) -> Ints:
        """Return the numbers at some places, counted from 0; nothing is checked."""
        run = np.searchsorted(self._before, places, side="right") - 1
        return self.first[run] + (places - self._before[run])

    def places(self, values: Ints) -> Ints:
        """Return where numbers stand, -1 where there is none."""
        if not self.size:
            return np.full(len(values), -1, dtype=np.int64)
        run = np.searchsorted(self.first, values, side="right") - 1
        found = values - self.first[run] + self._before[run]
        return np.where((run >= 0) & (values <= self.last[run]), found, -1)
