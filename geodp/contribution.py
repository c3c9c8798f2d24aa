"""How much one subject may count: distinct (subject, key) pairs, then at most ``cap`` of them.

A key is a cell, or a cell and a time slot, of the public domain. The cap that is enforced here is the
number that the noise is scaled to, so nothing after this module may add a pair.

Which keys a subject keeps depends on that subject's own rows and the release's secret key alone: keys
reached inside the box come before keys reached only by clamping, then the lowest pseudo-random
priorities win. For any fixed secret key, one subject more or less therefore changes that subject's
own pairs and no others, which is what the sensitivities are proved from. (Single rows in overlapping zones
are known by their position; for them it holds over the secret: PRIVACY.md, section 4.)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geodp.prf import siphash
from geodp.subjects import Subjects

__all__ = ["Pairs", "choose_rows", "distinct_pairs", "runs", "within_cap"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Distinct (subject, key) pairs, sorted by subject and then key.

    Attributes
    ----------
    subject, key : int64 arrays, shape (n_pairs,)
        Subject numbers, and numbers of public keys.
    rows : int64 array, shape (n_pairs,)
        How many rows of the subject count in the key, from 1 to ``rows_per_cell``.
    inside : bool array, shape (n_pairs,)
        Whether some row reached the key without being clamped to the box.
    """

    subject: Ints
    key: Ints
    rows: Ints
    inside: NDArray[np.bool_]

    def take(self, keep: NDArray[np.bool_]) -> "Pairs":
        """Return the pairs where ``keep`` holds."""
        return Pairs(self.subject[keep], self.key[keep], self.rows[keep], self.inside[keep])


def distinct_pairs(
    subject: Ints, key: Ints, inside: NDArray[np.bool_], n_keys: int, rows_per_cell: int
) -> Pairs:
    """Return the distinct pairs of rows, each with its number of rows up to ``rows_per_cell``.

    Parameters
    ----------
    subject, key : int64 arrays, shape (n_rows,)
        Subject and key of each row, neither negative.
    inside : bool array, shape (n_rows,)
        False where the row was clamped to the box.
    n_keys : int
        Number of public keys.
    rows_per_cell : int
        The most rows of one subject that count in one key.
    """
    n_subjects = int(subject.max()) + 1 if len(subject) else 0
    if n_subjects * n_keys < 2**62:
        # The clamped flag is the lowest bit: the first row of a run is an inside one if any is.
        packed = np.sort(((subject * n_keys + key) << 1) | ~inside)
        pair, clamped = packed >> 1, (packed & 1).astype(bool)
        starts = _starts(pair)
        subject, key = np.divmod(pair[starts], max(n_keys, 1))
        first_inside = ~clamped[starts]
    else:
        order = np.lexsort((~inside, key, subject))
        subject, key, inside = subject[order], key[order], inside[order]
        starts = _starts(subject, key)
        subject, key, first_inside = subject[starts], key[starts], inside[starts]
    rows = np.minimum(np.diff(starts, append=len(inside)), rows_per_cell)
    return Pairs(subject, key, rows, first_inside)


def within_cap(pairs: Pairs, cap: int, subjects: Subjects, secret: bytes) -> NDArray[np.bool_]:
    """Mark the pairs to keep: at most ``cap`` of each subject.

    Only subjects above the cap are ranked: for all others nothing has to be chosen.
    """
    starts, lengths = runs(pairs.subject)
    over = lengths > cap
    ranked = np.repeat(over, lengths)
    keep = ~ranked
    digest = np.repeat(subjects.digests(pairs.subject[starts[over]], secret), lengths[over])
    priority = siphash(secret, digest, pairs.key[ranked].view(np.uint64))
    keep[ranked] = _lowest(priority, ~pairs.inside[ranked], lengths[over], cap)
    return keep


def choose_rows(
    subject: Ints, key: Ints, values: Ints, rows_per_cell: int, subjects: Subjects, secret: bytes
) -> Ints:
    """Return the rows that count where a pair has more than ``rows_per_cell`` of them.

    Every row of such a pair has the same chance. Pairs with fewer rows keep all of them, unranked.

    Parameters
    ----------
    subject, key : int64 arrays, shape (n_rows,)
    values : int64 array, shape (n_rows, d)
        What the rows contribute. It decides the priority, together with a number that tells equal
        rows of a pair apart, so that neither the order of rows nor their index can matter.

    Returns
    -------
    int64 array
        Positions of the chosen rows, sorted by subject and key.
    """
    order = _sorted_by(subject, key)
    starts = _starts(subject[order], key[order])
    lengths = np.diff(starts, append=len(order))
    crowded = lengths > rows_per_cell
    ranked = np.repeat(crowded, lengths)
    rows = order[ranked]
    pair = np.repeat(np.arange(len(starts)), lengths)[ranked]
    rows = rows[_sorted_by(pair, *values[rows].T)]
    priority = _row_priority(subject[rows], key[rows], values[rows], subjects, secret)
    unclamped = np.zeros(len(rows), bool)
    lowest = _lowest(priority, unclamped, lengths[crowded], rows_per_cell)
    order[ranked] = rows
    keep = ~ranked
    keep[ranked] = lowest
    return order[keep]


def runs(sorted_values: Ints) -> tuple[Ints, Ints]:
    """Return where each run of equal values starts, and how long it is."""
    starts = _starts(sorted_values)
    return starts, np.diff(starts, append=len(sorted_values))


def _starts(*sorted_columns: Ints) -> Ints:
    """Return the positions where a row differs from the one before it."""
    changes = np.zeros(len(sorted_columns[0]), bool)
    changes[:1] = True
    for column in sorted_columns:
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)


def _sorted_by(*columns: Ints) -> Ints:
    """Return the order of rows by the columns, the first one leading; equal rows lie as the sort leaves them.

    One sort of one packed integer is several times faster than a sort by columns, where they fit.
    """
    ends = [(int(column.min()), int(column.max())) if len(column) else (0, 0) for column in columns]
    if math.prod(high - low + 1 for low, high in ends) >= 2**63:
        return np.lexsort(columns[::-1])
    packed = np.zeros(len(columns[0]), np.int64)
    for column, (low, high) in zip(columns, ends, strict=True):
        packed = packed * (high - low + 1) + (column - low)
    return np.argsort(packed)


def _row_priority(
    subject: Ints, key: Ints, values: Ints, subjects: Subjects, secret: bytes
) -> NDArray[np.uint64]:
    """Return a priority for each of the rows, which are sorted by subject, key and values."""
    first, times = runs(subject)
    digest = np.repeat(subjects.digests(subject[first], secret), times)
    equal = _starts(subject, key, *values.T)
    nth = np.arange(len(key)) - np.repeat(equal, np.diff(equal, append=len(key)))
    words = [np.ascontiguousarray(column).view(np.uint64) for column in (key, *values.T, nth)]
    return siphash(secret, digest, *words)


def _lowest(
    priority: NDArray[np.uint64], clamped: NDArray[np.bool_], lengths: Ints, cap: int
) -> NDArray[np.bool_]:
    """Mark the ``cap`` lowest of each run, inside keys first.

    Runs of one length form the rows of a matrix, so that sorting is done by short rows and not over
    everything at once. A tie, which 63 bits make a curiosity, goes to the lower key.
    """
    rank = (priority >> np.uint64(1)) | (clamped.astype(np.uint64) << np.uint64(63))
    keep = np.zeros(len(rank), bool)
    by_length = np.argsort(lengths, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[by_length]
    for first, count in zip(*runs(lengths[by_length]), strict=True):
        length = lengths[by_length[first]]
        rows = starts[first : first + count, None] + np.arange(length)
        lowest = np.argsort(rank[rows], axis=1, kind="stable")[:, :cap]
        keep[np.take_along_axis(rows, lowest, axis=1)] = True
    return keep
