"""Totals on their way to the client: integers that are not zero, and where they stand."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from geodp.lattice import add_up

__all__ = ["Totals", "dense", "plus", "sparse"]

Ints = NDArray[np.int64]
_UNLISTED = -1


class Totals:
    """Vectors of integers, without their zeros.

    Attributes
    ----------
    parts : dict of str to (int, int64 array, int64 array)
        Length of each vector (-1 where it is not listed), positions that are not zero, and what stands there.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: dict[str, tuple[int, Ints, Ints]]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return "<Totals>"

    def __sizeof__(self) -> int:
        return sum(where.nbytes + what.nbytes for _, where, what in self.parts.values())


def sparse(counted: Sequence[Mapping[str, Ints]]) -> Totals:
    """Return what several counters counted, as one."""
    parts = {}
    for number, vectors in enumerate(counted):
        if "key" in vectors:  # of a domain that nobody lists: these are its entries already
            parts[f"{number}/count"] = (_UNLISTED, vectors["key"], vectors["count"])
            continue
        for name, vector in vectors.items():
            where = np.flatnonzero(vector)
            parts[f"{number}/{name}"] = (len(vector), where, vector[where])
    return Totals(parts)


def plus(terms: Sequence[Totals]) -> Totals:
    """Return the exact sum."""
    return Totals({name: _sum([term.parts[name] for term in terms]) for name in terms[0].parts})


def _sum(vectors: Sequence[tuple[int, Ints, Ints]]) -> tuple[int, Ints, Ints]:
    where = np.concatenate([where for _, where, _ in vectors])
    what = np.concatenate([what for _, _, what in vectors])
    places, of_entry = np.unique(where, return_inverse=True)
    return vectors[0][0], places, add_up(of_entry, what, len(places))


def dense(totals: Totals, n_counters: int) -> list[dict[str, Ints]]:
    """Return the vectors of each counter, zeros and all."""
    counted: list[dict[str, Ints]] = [{} for _ in range(n_counters)]
    for name, (size, where, what) in totals.parts.items():
        number, _, quantity = name.partition("/")
        if size == _UNLISTED:
            counted[int(number)] = {"key": where, "count": what}
            continue
        vector = np.zeros(size, np.int64)
        vector[where] = what
        counted[int(number)][quantity] = vector
    return counted
