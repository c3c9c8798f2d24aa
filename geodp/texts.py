"""Columns of text as 64-bit words: numbered by whole arrays, and digested under a key.

pandas numbers a column of text value by value. Here every text becomes a few integers, a hash of them is
numbered instead, and then every row is compared, word by word, with the text that its number stands for. Only
if all agree are the numbers taken: two ids are never merged, and where hashes collide, pandas is asked.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.chunks import each, slices
from geodp.prf import siphash

__all__ = ["digests", "numbered_texts", "plain_texts"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
T = TypeVar("T")

# Longer texts are left to pandas: a pass over the rows for each word no longer pays.
_MOST_WORDS = 16
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << 8 * left) - 1 for left in range(9)], np.uint64)
# What a message of words ends with, so that texts, long integers and single words never make the same one.
_TEXT, _INTEGER = 1 << 63, 3 << 62


def numbered_texts(column: Any) -> tuple[Ints, NDArray[np.object_]] | None:
    """Return the number of each text, -1 where there is none, and the distinct texts by first appearance.

    Parameters
    ----------
    column : pandas array, shape (n,)
        Text that pyarrow holds.

    Returns
    -------
    codes : int64 array, shape (n,)
    texts : object array, shape (n_distinct,)
        ``None`` instead of both where this way does not pay, and where hashes collided.

    Examples
    --------
    >>> codes, texts = numbered_texts(pd.array(["rider 1", "rider 2", None, "rider 1"], dtype="string[pyarrow]"))
    >>> codes.tolist(), texts.tolist()
    ([0, 1, -1, 0], ['rider 1', 'rider 2'])
    """
    pieces = _pieces(column)
    if pieces is None:
        return None
    n_words = max(1, *(piece.n_words for piece in pieces), 1)
    if n_words > _MOST_WORDS:
        return None
    hashes = np.concatenate(_of_each(lambda piece: piece.hashes(n_words), pieces))
    codes = _numbers(hashes, pieces)
    first = _first(codes)
    known = _known(pieces, first, n_words)
    if not all(_of_each(lambda piece: piece.agrees(codes, known), pieces)):
        return None
    return codes, plain_texts(column.take(first))


def plain_texts(column: Any) -> NDArray[np.object_]:
    """Return Arrow's texts as Python's; bytes that are no UTF-8 become lone surrogates, so that ids stay apart.

    Examples
    --------
    >>> plain_texts(pd.array(["rider 1", "rider 2"], dtype="string[pyarrow]")).tolist()
    ['rider 1', 'rider 2']
    """
    import pyarrow as pa

    held = pa.array(column)
    try:
        held.validate(full=True)
        return np.asarray(column, dtype=object)
    except pa.ArrowInvalid:
        # What it says quotes the text.
        pass
    texts = [
        one and one.decode("utf-8", "surrogateescape") for one in held.cast(pa.large_binary()).to_pylist()
    ]
    return np.array(texts, dtype=object)


class _Piece:
    """Some rows of a column of text, as pyarrow lays them out: all bytes, and where each text begins.

    Attributes
    ----------
    rows : slice
        Which rows of the column.
    missing : bool array, shape (n,)
    """

    def __init__(self, rows: slice, offsets: Any, data: Any, missing: NDArray[np.bool_]) -> None:
        self.rows, self.missing = rows, missing
        self._offsets = offsets
        # The word that begins at each byte.
        self._at = np.ndarray((data.size - 7,), "<u8", data, strides=(1,))

    @property
    def n_words(self) -> int:
        """Words that the longest text fills."""
        return -(-int(np.diff(self._offsets).max(initial=0)) // 8)

    def words(self, n_words: int, rows: "Ints | slice" = slice(None)) -> Iterator[Words]:
        """Yield the lengths of texts in bytes, then their words, filled up with zeros."""
        starts, ends = (side[rows].astype(np.int64) for side in (self._offsets[:-1], self._offsets[1:]))
        lengths = ends - starts
        yield lengths.astype(np.uint64)
        steps = np.diff(starts)
        even = int(steps[0]) if len(steps) and (steps == steps[0]).all() else 0
        for nth in range(n_words):
            yield self._word(starts + 8 * nth, lengths - 8 * nth, even)

    def _word(self, at: Ints, left: Ints, even: int) -> Words:
        """Return the words at some bytes, of which only so many belong to the text."""
        words: Words
        last = len(self._at) - 1
        if at.max(initial=0) > last:
            beyond = (8 * np.clip(at - last, 0, 7)).astype(np.uint64)
            words = np.right_shift(self._at[np.minimum(at, last)], beyond)
        else:
            words = self._at[at[0] : at[-1] + 1 : even] if even > 0 else self._at[at]
        if left.min(initial=8) < 8:
            words = np.bitwise_and(words, _MASKS[np.clip(left, 0, 8)])
        return words

    def hashes(self, n_words: int) -> Words:
        """Return a hash of each text."""
        mixed, *words = self.words(n_words)
        for word in words:
            mixed ^= word
            mixed *= _ODD
            mixed ^= mixed >> np.uint64(29)
        return mixed

    def agrees(self, codes: Ints, known: Sequence[Words]) -> bool:
        """Tell whether every text is the one that its number stands for."""
        mine = self.words(len(known) - 1)
        numbers = codes[self.rows]
        return all(
            bool(((table[numbers] == word) | self.missing).all())
            for table, word in zip(known, mine, strict=True)
        )


def _pieces(column: Any) -> list[_Piece] | None:
    """Return the column in pieces that stay in the cache; ``None`` where it is not laid out as expected."""
    import pyarrow as pa

    whole = pa.array(column)
    pieces, start = [], 0
    for chunk in whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]:
        kind = {pa.string(): np.int32, pa.large_string(): np.int64}.get(chunk.type)
        data = chunk.buffers()[-1]
        if kind is None or data is None or data.size < 8:
            return None
        offsets = np.frombuffer(chunk.buffers()[1], kind)[chunk.offset :]
        missing = chunk.is_null().to_numpy(zero_copy_only=False)
        for part in slices(len(chunk)):
            rows = slice(start + part.start, start + part.stop)
            own = offsets[part.start : part.stop + 1]
            pieces.append(_Piece(rows, own, data, missing[part]))
        start += len(chunk)
    return pieces or None


def _of_each(work: Callable[[_Piece], T], pieces: Sequence[_Piece]) -> list[T]:
    return each(lambda part: work(pieces[part.start]), slices(len(pieces), 1))


def _numbers(hashes: Words, pieces: Sequence[_Piece]) -> Ints:
    """Return numbers by first appearance, -1 where no text is."""
    missing = np.concatenate([piece.missing for piece in pieces])
    values: Any = hashes
    if missing.any():
        values = pd.arrays.IntegerArray(hashes, missing)
    return np.asarray(pd.factorize(values)[0], np.int64)


def _first(codes: Ints) -> Ints:
    """Return where each number appears first; they are numbered by that."""
    found, seen = [np.empty(0, np.int64)], 0
    for part in slices(len(codes)):
        fresh = np.flatnonzero(codes[part] >= seen)
        if len(fresh):
            numbers, where = np.unique(codes[part][fresh], return_index=True)
            found.append(part.start + fresh[where])
            seen = int(numbers[-1]) + 1
    return np.concatenate(found)


def _known(pieces: Sequence[_Piece], first: Ints, n_words: int) -> list[Words]:
    """Return lengths and words of the distinct texts."""
    ends = np.searchsorted(first, [piece.rows.stop for piece in pieces])
    starts = [0, *ends[:-1]]
    parts = [
        list(piece.words(n_words, first[start:end] - piece.rows.start))
        for piece, start, end in zip(pieces, starts, ends, strict=True)
        if end > start
    ]
    # One more, for rows whose number -1 stands for none.
    none = np.zeros(1, np.uint64)
    return [np.concatenate([*(part[nth] for part in parts), none]) for nth in range(n_words + 1)]


def digests(ids: NDArray[np.object_], key: bytes) -> Words:
    """Return 64 keyed bits of each id: text, or an integer of any length.

    Parameters
    ----------
    ids : object array of str and int, shape (n,)
    key : bytes
        16 secret bytes.

    Returns
    -------
    uint64 array, shape (n,)
        SipHash of the bytes in words, filled up with zeros, and of their number and kind in a last word.
    """
    encoded = [_encoded(one) for one in ids]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    is_text = np.fromiter((isinstance(one, str) for one in ids), bool, len(encoded))
    kind = np.where(is_text, np.uint64(_TEXT), np.uint64(_INTEGER))
    n_words = np.maximum(1, -(-lengths // 8))
    out = np.empty(len(encoded), np.uint64)
    for n in np.unique(n_words).tolist():
        some = np.flatnonzero(n_words == n)
        filled = b"".join([encoded[i].ljust(8 * n, b"\0") for i in some.tolist()])
        words = np.frombuffer(filled, "<u8").reshape(-1, n)
        out[some] = siphash(key, *words.T, np.bitwise_or(kind[some], lengths[some].view(np.uint64)))
    return out


def _encoded(one: str | int) -> bytes:
    if isinstance(one, str):
        return one.encode("utf-8", "surrogatepass")
    number = int(one)
    return number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
