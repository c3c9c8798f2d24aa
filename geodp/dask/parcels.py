"""Rows on their way to the worker that sees all rows of their subject.

A parcel holds the placed rows of some subjects as numbers: who, which key, and how often the same
contribution occurs. Two reductions make it small, and neither can change the result of a release:

* Equal rows become one entry with a multiplicity. What a pair counts of them is decided when all of its
  rows are together; for counts, more than ``rows_per_cell`` of them are never needed.
* Where keys are sampled under a cap, a key that some row reached inside the box, and that comes after
  ``cap`` such keys of the same subject already, comes after them in the whole too. Keys that were only
  reached by clamping stay, because a row elsewhere may have reached them from inside.

Ids travel in full and are compared in full. A keyed hash only says which worker a subject goes to, so two
subjects with one hash become neighbours, never one subject. Texts lie in one buffer of pyarrow, not in an object
each: that travels at a tenth of the cost, and is numbered faster.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.contribution import Pairs, distinct_pairs, runs, within_cap
from geodp.prf import siphash
from geodp.queries import Rows
from geodp.subjects import Subjects, numbered
from geodp.texts import numbered_texts

__all__ = ["Parcel", "buckets", "canonical", "join", "pack", "reduced", "split"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_OBJECT_BYTES = 64


class Parcel:
    """Distinct contributions of some subjects, sorted by subject and key.

    Attributes
    ----------
    ids : int64, object or pyarrow's text array, shape (n_subjects,)
        The subjects' ids, as :func:`canonical` has them.
    subject, key, times : integer arrays, shape (n,)
        Position in ``ids``, public key, and how many rows contribute just this.
    inside : bool array, shape (n,)
        Whether some row of the subject reached the key without being clamped.
    values : integer array, shape (n, d)
        What each of the rows contributes.
    """

    __slots__ = ("ids", "inside", "key", "subject", "times", "values")

    def __init__(
        self, ids: Any, subject: Any, key: Any, times: Any, inside: NDArray[np.bool_], values: Any
    ) -> None:
        self.ids = ids
        self.subject, self.key, self.times = _narrow(subject), _narrow(key), _narrow(times)
        self.inside, self.values = inside, _narrow(values)

    def __repr__(self) -> str:
        return "<Parcel>"

    def __sizeof__(self) -> int:
        arrays = (self.subject, self.key, self.times, self.inside, self.values)
        of_ids = _OBJECT_BYTES * len(self.ids) if self.ids.dtype == object else self.ids.nbytes
        return sum(array.nbytes for array in arrays) + of_ids

    def rows(self) -> Rows:
        """Return every row again, as a query tallies them."""
        times = self.times.astype(np.int64)
        subject, key, values = (x.astype(np.int64) for x in (self.subject, self.key, self.values))
        return Rows(
            _subjects(self.ids),
            np.repeat(subject, times),
            np.repeat(key, times),
            np.repeat(self.inside, times),
            np.repeat(values, times, axis=0),
        )

    def numbered_from(self, first: int) -> "Parcel":
        """Return the parcel of rows that are their own subjects, numbered over the whole."""
        return Parcel(self.ids + first, self.subject, self.key, self.times, self.inside, self.values)


def pack(rows: Rows, n_keys: int, rows_per_cell: int) -> Parcel:
    """Return placed rows as a parcel; where rows carry no values, each pair is there once."""
    ids = canonical(rows.subjects.ids)
    if rows.values.shape[1]:
        return Parcel(ids, rows.subject, rows.key, np.ones_like(rows.key), rows.inside, rows.values)
    pairs = distinct_pairs(rows.subject, rows.key, rows.inside, n_keys, rows_per_cell)
    return Parcel(ids, pairs.subject, pairs.key, pairs.rows, pairs.inside, rows.values[: len(pairs.key)])


def reduced(parcel: Parcel, rows_per_cell: int, cap: int | None, secret: bytes) -> Parcel:
    """Return the parcel with equal rows as one, and without keys that the cap is sure to drop.

    Parameters
    ----------
    parcel : Parcel
    rows_per_cell : int
        The most rows of one subject that count in one key.
    cap : int or None
        The most keys of one subject in any later sample of them; ``None`` where none is drawn.
    secret : bytes
        The release's 16 bytes.
    """
    order = _order(parcel)
    subject, key, values = (x[order] for x in (parcel.subject, parcel.key, parcel.values))
    pairs, of_row = _pairs(subject, key, parcel.inside[order])
    keep = np.ones(len(pairs.key), bool)
    if cap is not None:
        keep = within_cap(pairs, cap, _subjects(parcel.ids), secret) | ~pairs.inside
    rows = np.flatnonzero(keep[of_row])
    entry = rows[_starts(of_row[rows], *values[rows].T)]
    times = _summed(parcel.times[order][rows], np.searchsorted(rows, entry))
    if not values.shape[1]:
        times = np.minimum(times, rows_per_cell)
    first, lengths = runs(subject[entry])
    numbers = np.repeat(np.arange(len(first)), lengths)
    ids = parcel.ids[subject[entry][first]]
    return Parcel(ids, numbers, key[entry], times, pairs.inside[of_row[entry]], values[entry])


def _order(parcel: Parcel) -> Ints:
    """Return the rows in the order of subject, key and values."""
    subject, key, values = parcel.subject.astype(np.int64), parcel.key.astype(np.int64), parcel.values
    n_subjects, n_keys = (int(column.max()) + 1 if len(column) else 0 for column in (subject, key))
    if n_subjects * n_keys >= 2**63:
        return np.lexsort((*values.T, key, subject))
    pair = subject * n_keys + key
    return np.lexsort((*values.T, pair)) if values.shape[1] else np.argsort(pair, kind="stable")


def _pairs(subject: Ints, key: Ints, inside: NDArray[np.bool_]) -> tuple[Pairs, Ints]:
    """Return the distinct pairs of sorted rows, and which of them each row has."""
    starts = _starts(subject, key)
    lengths = np.diff(starts, append=len(key))
    reached = np.logical_or.reduceat(inside, starts) if len(starts) else inside
    pairs = Pairs(subject[starts].astype(np.int64), key[starts].astype(np.int64), lengths, reached)
    return pairs, np.repeat(np.arange(len(starts)), lengths)


def _starts(*sorted_columns: Any) -> Ints:
    changes = np.zeros(len(sorted_columns[0]), bool)
    changes[:1] = True
    for column in sorted_columns:
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)


def _summed(numbers: Any, starts: Ints) -> Ints:
    return np.add.reduceat(numbers.astype(np.int64), starts) if len(starts) else starts


def _subjects(ids: Any) -> Subjects:
    return Subjects(np.zeros(0, np.int64), ids)


def join(parcels: Sequence[Parcel]) -> Parcel:
    """Return the rows of all parcels in one, their subjects matched exactly."""
    numbers, ids = _matched([parcel.ids for parcel in parcels])
    starts = np.cumsum([0, *(len(parcel.ids) for parcel in parcels)])
    subject = [numbers[first:][parcel.subject] for first, parcel in zip(starts, parcels, strict=False)]
    parts = ("key", "times", "inside", "values")
    key, times, inside, values = (np.concatenate([getattr(p, part) for p in parcels]) for part in parts)
    return Parcel(ids, np.concatenate(subject), key, times, inside, values)


def _matched(every: Sequence[Any]) -> tuple[Ints, Any]:
    """Return the number of each id over several arrays, and the distinct ids."""
    if all(ids.dtype == np.int64 for ids in every):
        return numbered(np.concatenate(every))
    if all(_is_text(ids) for ids in every):
        texts = pd.concat([pd.Series(ids) for ids in every], ignore_index=True).array
        found = numbered_texts(texts)
        if found is not None:
            # Numbers go by first appearance: each is first seen where it is the highest so far.
            highest = np.maximum.accumulate(found[0])
            return found[0], texts.take(np.flatnonzero(np.diff(highest, prepend=-1)))
    numbers, ids = numbered(np.concatenate([np.asarray(ids, object) for ids in every]))
    return numbers, canonical(ids)


def split(parcel: Parcel, bucket: Ints, n: int) -> list[Parcel]:
    """Return ``n`` parcels: the subjects of bucket 0, 1, ..."""
    by_bucket = np.argsort(bucket, kind="stable")
    renumbered = np.empty(len(bucket), np.int64)
    sizes = np.bincount(bucket, minlength=n)
    firsts = np.cumsum(sizes) - sizes
    renumbered[by_bucket] = np.arange(len(bucket)) - np.repeat(firsts, sizes)
    of_row = bucket[parcel.subject]
    order = np.argsort(of_row, kind="stable")
    ends = np.cumsum(np.bincount(of_row, minlength=n))
    return [
        _taken(parcel, by_bucket[first : first + size], renumbered, order[end - rows : end])
        for first, size, end, rows in zip(firsts, sizes, ends, np.diff(ends, prepend=0), strict=True)
    ]


def _taken(parcel: Parcel, subjects: Ints, renumbered: Ints, rows: Ints) -> Parcel:
    return Parcel(
        parcel.ids[subjects],
        renumbered[parcel.subject[rows]],
        parcel.key[rows],
        parcel.times[rows],
        parcel.inside[rows],
        parcel.values[rows],
    )


def canonical(ids: Any) -> Any:
    """Return ids in one form, whatever the dtype they came in: int64 where all fit, text, else plain objects."""
    if ids.dtype.kind in "iu" and (ids.dtype != np.uint64 or not len(ids) or ids.max() < 2**63):
        return np.asarray(ids, np.int64)
    kind = pd.api.types.infer_dtype(ids, skipna=False) if ids.dtype == object else ""
    if kind == "string":
        return _text(ids)
    listed = ids.tolist()
    if kind == "integer":
        listed = [int(value) for value in listed]
        if all(-(2**63) <= value < 2**63 for value in listed):
            return np.array(listed, np.int64)
    out = np.empty(len(listed), object)
    out[:] = listed
    return out


def _text(ids: Any) -> Any:
    try:
        return pd.array(ids, dtype=pd.StringDtype("pyarrow"))
    except (UnicodeError, ValueError):
        return ids  # half a surrogate pair is a legal id and no legal UTF-8


def _is_text(ids: Any) -> bool:
    return isinstance(ids.dtype, pd.StringDtype)


def buckets(ids: Any, secret: bytes) -> Words:
    """Return a keyed hash of each id, equal for equal ids in whatever array they stand."""
    if ids.dtype == np.int64:
        return siphash(secret, ids.view(np.uint64))
    if _is_text(ids):
        return _of_texts(np.asarray(ids, object), secret.hex()[:16])
    number = np.array([type(value) is int and -(2**63) <= value < 2**63 for value in ids], bool)
    words = np.empty(len(ids), np.uint64)
    words[number] = siphash(secret, ids[number].astype(np.int64).view(np.uint64))
    words[~number] = _of_texts(_strings(map(str, ids[~number])), secret.hex()[:16])
    return words


def _of_texts(texts: NDArray[np.object_], key: str) -> Words:
    try:
        return pd.util.hash_array(texts, hash_key=key, categorize=False)
    except UnicodeError:
        # Escaping keeps ids without half a surrogate pair as they are.
        escaped = _strings(text.encode("utf-8", "backslashreplace").decode() for text in texts)
        return pd.util.hash_array(escaped, hash_key=key, categorize=False)


def _strings(texts: Iterable[str]) -> NDArray[np.object_]:
    listed = list(texts)
    out = np.empty(len(listed), object)
    out[:] = listed
    return out


def _narrow(numbers: Any) -> Any:
    """Return integers in 32 bits where they fit: parcels travel, and wait in memory."""
    if numbers.dtype != np.int64 or not numbers.size:
        return numbers
    if numbers.min() >= -(2**31) and numbers.max() < 2**31:
        return numbers.astype(np.int32)
    return numbers
