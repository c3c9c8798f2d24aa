"""How much one subject may count: distinct (subject, key) pairs, then at most ``cap`` of them.

A key is a cell, or a cell and a time slot, of the public domain. The cap that is enforced here is the
number that the noise is scaled to, so nothing after this module may add a pair.

Which keys a subject keeps depends on that subject's own rows and the release's secret key alone: keys
reached inside the box come before keys reached only by clamping, then the lowest pseudo-random
priorities win. For any fixed secret key, one subject more or less therefore changes that subject's
own pairs and no others, which is what the sensitivities are proved from. (Single rows in overlapping zones
are known by their position; for them it holds over the secret: PRIVACY.md, section 4.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from geodp.chunks import each, slices
from geodp.grids.ordered import distinct, places
from geodp.prf import siphash
from geodp.subjects import Subjects

__all__ = ["Pairs", "choose_rows", "distinct_pairs", "kept_pairs", "may_count", "runs", "within_cap"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# So many pairs, of whole subjects, are bounded at a time.
_CHUNK = 1 << 16
_BITS = 63
_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F))


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
    inside: Flags

    def take(self, keep: Flags | slice) -> "Pairs":
        """Return the pairs where ``keep`` holds."""
        return Pairs(self.subject[keep], self.key[keep], self.rows[keep], self.inside[keep])

    @classmethod
    def joined(cls, parts: "Sequence[Pairs]") -> "Pairs":
        """Return the pairs of all parts, one part after the other."""
        columns = zip(*((part.subject, part.key, part.rows, part.inside) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def distinct_pairs(subject: Ints, key: Ints, inside: Flags, n_keys: int, rows_per_cell: int) -> Pairs:
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
    packed = _Packed(subject, key, inside, n_keys)
    return Pairs.joined(each(lambda part: packed.pairs(part, rows_per_cell), packed.by_subjects()))


def kept_pairs(
    subject: Ints,
    key: Ints,
    inside: Flags,
    n_keys: int,
    rows_per_cell: int,
    cap: int,
    subjects: Subjects,
    secret: bytes,
) -> Pairs:
    """Return the distinct pairs that :func:`within_cap` keeps, without ever holding all others at once.

    Parameters are those of :func:`distinct_pairs` and :func:`within_cap`.
    """
    packed = _Packed(subject, key, inside, n_keys)

    def kept(part: slice) -> Pairs:
        pairs = packed.pairs(part, rows_per_cell)
        return pairs.take(within_cap(pairs, cap, subjects, secret))

    return Pairs.joined(each(kept, packed.by_subjects()))


class _Packed:
    """Rows as one integer each, sorted: subject, key, and whether clamped in the lowest bit.

    The first row of a pair is so an inside one if any is.
    """

    def __init__(self, subject: Ints, key: Ints, inside: Flags, n_keys: int) -> None:
        self._keys: Ints | None = None
        highest = int(subject.max(initial=0))
        if highest.bit_length() + n_keys.bit_length() >= _BITS:
            # Numbers of a domain that nobody lists: only as many as there are rows occur.
            self._keys = distinct([key])
            key, n_keys = places(key, self._keys), len(self._keys)
        self._shift = n_keys.bit_length() + 1
        if highest.bit_length() + self._shift > _BITS:
            raise OverflowError("more subjects and keys than one integer tells apart")
        self._rows = np.empty(len(subject), np.int64)

        def pack(part: slice) -> None:
            rows = self._rows[part]
            np.left_shift(subject[part], self._shift, out=rows)
            rows |= key[part] << 1
            rows |= ~inside[part]

        each(pack, slices(len(subject)))
        self._rows.sort()

    def by_subjects(self) -> list[slice]:
        """Return parts of the rows that split no subject."""
        firsts = self._rows[::_CHUNK] >> self._shift << self._shift
        cuts = distinct([np.searchsorted(self._rows, firsts)]).tolist() or [0]
        return [slice(*ends) for ends in pairwise([*cuts, len(self._rows)])]

    def pairs(self, part: slice, rows_per_cell: int) -> Pairs:
        """Return the distinct pairs of some rows."""
        packed = self._rows[part]
        starts = _starts(packed >> 1)
        first = packed[starts]
        key = (first & ((1 << self._shift) - 1)) >> 1
        return Pairs(
            first >> self._shift,
            key if self._keys is None else self._keys[key],
            np.minimum(np.diff(starts, append=len(packed)), rows_per_cell),
            (first & 1) == 0,
        )


def within_cap(pairs: Pairs, cap: int, subjects: Subjects, secret: bytes) -> Flags:
    """Mark the pairs to keep: at most ``cap`` of each subject.

    Only subjects above the cap are ranked: for all others nothing has to be chosen.
    """
    starts, lengths = runs(pairs.subject)
    ends = starts + lengths

    def marked(part: slice) -> Flags:
        some = pairs.take(slice(starts[part.start], ends[part.stop - 1]))
        return _within_cap(some, lengths[part], cap, subjects, secret)

    return np.concatenate([np.zeros(0, bool), *each(marked, _even(lengths))])


def _even(lengths: Ints) -> list[slice]:
    """Return parts of the runs that hold about as many pairs each."""
    cuts = distinct([np.searchsorted(np.cumsum(lengths), np.arange(0, lengths.sum(), _CHUNK))]).tolist()
    return [slice(*ends) for ends in pairwise([*cuts, len(lengths)])]


def _within_cap(pairs: Pairs, lengths: Ints, cap: int, subjects: Subjects, secret: bytes) -> Flags:
    over = lengths > cap
    ranked = np.repeat(over, lengths)
    keep = ~ranked
    first = (np.cumsum(lengths) - lengths)[over]
    digest = subjects.digests(pairs.subject[first], secret)
    priority = siphash(secret, digest, pairs.key[ranked].view(np.uint64), times=lengths[over])
    keep[ranked] = _lowest(priority, ~pairs.inside[ranked], lengths[over], cap)
    return keep


def may_count(
    subject: Ints,
    key: Ints,
    inside: Flags,
    n_keys: int,
    cap: int,
    subjects: Subjects,
    secret: bytes,
) -> Ints:
    """Return the rows, in their order, of all pairs that the cap keeps, and of a few others as whole pairs.

    The cap keeps the same pairs of these rows as of all rows. So whatever is done row by row can be left
    undone for pairs that it drops anyway.
    """
    times = np.bincount(subject)
    if times[times > cap].sum() <= len(subject) / 2:
        return np.arange(len(subject))
    kept = kept_pairs(subject, key, inside, n_keys, 1, cap, subjects, secret)
    bits = min(24, max(10, len(kept.key).bit_length() + 3))
    marks = np.zeros(1 << bits, bool)
    marks[_slot(kept.subject, kept.key, bits)] = True
    parts = slices(len(subject))
    marked = each(lambda part: marks[_slot(subject[part], key[part], bits)], parts)
    return np.flatnonzero(np.concatenate(marked))


def _slot(subject: Ints, key: Ints, bits: int) -> NDArray[np.uint64]:
    """Return a place for each pair in a table of 2**bits; pairs that share one are told apart later."""
    mixed = subject.view(np.uint64) * _ODD[0] ^ key.view(np.uint64)
    return (mixed * _ODD[1]) >> np.uint64(64 - bits)


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
    """Return the order of rows by the columns, the first one leading; equal rows keep theirs.

    Columns are packed into one integer as far as they fit, and so is each row's position: sorting values is
    many times faster than sorting positions.
    """
    lows = [int(column.min(initial=0)) for column in columns]
    sizes = [
        (int(column.max(initial=0)) - low).bit_length() for column, low in zip(columns, lows, strict=True)
    ]
    position = len(columns[0]).bit_length()
    if sum(sizes) > _BITS:
        return np.lexsort(columns[::-1])
    packed = np.zeros(len(columns[0]), np.int64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        packed <<= size
        packed |= column - low
    if sum(sizes) + position > _BITS:
        return np.argsort(packed, kind="stable")
    packed <<= position
    packed |= np.arange(len(packed))
    packed.sort()
    return packed & ((1 << position) - 1)


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


def _lowest(priority: NDArray[np.uint64], clamped: Flags, lengths: Ints, cap: int) -> Flags:
    """Mark the ``cap`` lowest of each run, inside keys first.

    A tie, which 63 bits make a curiosity, goes to the lower key.
    """
    rank = (priority >> np.uint64(1)) | (clamped.astype(np.uint64) << np.uint64(63))
    keep = np.zeros(len(rank), bool)
    some, left = _short_list(rank, lengths, cap)
    keep[some] = _first_of_runs(rank[some], left, cap)
    return keep


def _short_list(rank: NDArray[np.uint64], lengths: Ints, cap: int) -> tuple[Ints, Ints]:
    """Return elements among which are the ``cap`` lowest of each run, and how many there are of each run.

    Where ranks are spread evenly, few lie above the bound and a run seldom has less than ``cap`` below it;
    then all of it stays.
    """
    if not len(lengths):
        return lengths, lengths
    share = np.minimum((cap + 4 * cap**0.5 + 4) / lengths, 1.0)
    bound = (share * 2.0**62).astype(np.uint64) << np.uint64(1)
    low = rank < np.repeat(bound, lengths)
    starts = np.cumsum(lengths) - lengths
    found = np.add.reduceat(low, starts, dtype=np.int64)
    short = (found < cap) | (share == 1.0)
    low |= np.repeat(short, lengths)
    return np.flatnonzero(low), np.where(short, lengths, found)


def _first_of_runs(rank: NDArray[np.uint64], lengths: Ints, cap: int) -> Flags:
    """Mark the ``cap`` lowest of each run.

    Runs of one length form the rows of a matrix, so that sorting is done by short rows and not over
    everything at once.
    """
    keep = np.zeros(len(rank), bool)
    by_length = np.argsort(lengths, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[by_length]
    for first, count in zip(*runs(lengths[by_length]), strict=True):
        length = lengths[by_length[first]]
        rows = starts[first : first + count, None] + np.arange(length)
        lowest = np.argsort(rank[rows], axis=1, kind="stable")[:, :cap]
        keep[np.take_along_axis(rows, lowest, axis=1)] = True
    return keep
