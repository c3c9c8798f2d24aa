"""A keyed pseudo-random function over whole arrays: SipHash-2-4 in numpy.

Which cells a subject keeps under the cap must not depend on any other subject, on row order or on
partitions. So the choice is not drawn from a stream but computed, by a function of the release's own
secret key, the subject and the cell. (Aumasson and Bernstein, 2012: "SipHash: a fast short-input PRF".)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["siphash"]

Words = NDArray[np.uint64]

# Small enough that the state of one chunk stays in the processor's cache.
_CHUNK = 1 << 15
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash(key: bytes, *words: Words, times: NDArray[np.int64] | None = None) -> Words:
    """Return SipHash-2-4 of messages made of whole 64-bit words.

    Parameters
    ----------
    key : bytes
        16 secret bytes.
    *words : uint64 arrays, each shape (n,)
        The message of element i is ``words[0][i], words[1][i], ...`` in little-endian bytes.
    times : int64 array, shape (m,), optional
        Then the first word has m elements that stand for so many messages each, n in all: what messages
        begin with in common is worked through once.

    Returns
    -------
    uint64 array, shape (n,)

    Examples
    --------
    The vector of the paper for the message 00 01 .. 07 under the key 00 01 .. 0f:

    >>> message = np.array([0x0706050403020100], np.uint64)
    >>> hex(siphash(bytes(range(16)), message)[0])
    '0x93f5f5799a932462'
    """
    if len(key) != 16:
        raise ValueError(f"key must have 16 bytes, got {len(key)}.")
    if times is None:
        out = np.empty(len(words[0]), np.uint64)
        for start in range(0, len(out), _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = _hash(_begun(key, len(out[part])), [word[part] for word in words], len(words))
        return out
    state = _begun(key, len(times))
    _absorb(state, words[0])
    return _hash(np.repeat(state, times, axis=1), words[1:], len(words))


def _begun(key: bytes, n: int) -> Words:
    """Return the state before any word, shape (5, n); the last row is scratch."""
    halves = [int.from_bytes(part, "little") for part in (key[:8], key[8:])] * 2
    state = np.empty((5, n), np.uint64)
    for row, half, start in zip(state, halves, _START, strict=False):
        row[:] = half ^ start
    return state


def _hash(state: Words, words: Sequence[Words], length: int) -> Words:
    """Return the hash of messages of ``length`` words, of which the last ones have not been absorbed."""
    for word in words:
        _absorb(state, word)
    _absorb(state, np.uint64(((8 * length) & 0xFF) << 56))
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(state)
    hashed: Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return hashed


def _absorb(state: Words, word: "Words | np.uint64") -> None:
    state[3] ^= word
    _round(state)
    _round(state)
    state[0] ^= word


def _round(state: Words) -> None:
    a, b, c, d, spare = state
    a += b
    c += d
    _rotate(b, 13, spare)
    _rotate(d, 16, spare)
    b ^= a
    d ^= c
    _rotate(a, 32, spare)
    c += b
    a += d
    _rotate(b, 17, spare)
    _rotate(d, 21, spare)
    b ^= c
    d ^= a
    _rotate(c, 32, spare)


def _rotate(word: Words, by: int, spare: Words) -> None:
    """Rotate in place: numpy's time goes into new arrays more than into bits."""
    np.right_shift(word, np.uint64(64 - by), out=spare)
    np.left_shift(word, np.uint64(by), out=word)
    np.bitwise_or(word, spare, out=word)
