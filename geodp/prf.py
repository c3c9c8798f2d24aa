"""A keyed pseudo-random function over whole arrays: SipHash-2-4 in numpy.

Which cells a subject keeps under the cap must not depend on any other subject, on row order or on
partitions. So the choice is not drawn from a stream but computed, by a function of the release's own
secret key, the subject and the cell. (Aumasson and Bernstein, 2012: "SipHash: a fast short-input PRF".)
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["siphash"]

Words = NDArray[np.uint64]

# Small enough that the state of one chunk stays in the processor's cache.
_CHUNK = 1 << 16


def siphash(key: bytes, *words: Words) -> Words:
    """Return SipHash-2-4 of messages made of whole 64-bit words.

    Parameters
    ----------
    key : bytes
        16 secret bytes.
    *words : uint64 arrays, each shape (n,)
        The message of element i is ``words[0][i], words[1][i], ...`` in little-endian bytes.

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
    out = np.empty(len(words[0]), np.uint64)
    for part in _chunks(len(out)):
        out[part] = _hash([word[part] for word in words], key)
    return out


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


def _hash(words: list[Words], key: bytes) -> Words:
    k0, k1 = (np.uint64(int.from_bytes(part, "little")) for part in (key[:8], key[8:]))
    n = len(words[0])
    state = [
        np.full(n, k0 ^ np.uint64(0x736F6D6570736575)),
        np.full(n, k1 ^ np.uint64(0x646F72616E646F6D)),
        np.full(n, k0 ^ np.uint64(0x6C7967656E657261)),
        np.full(n, k1 ^ np.uint64(0x7465646279746573)),
    ]
    length = np.full(n, np.uint64(((8 * len(words)) & 0xFF) << 56))
    for word in [*words, length]:
        state[3] ^= word
        _round(state)
        _round(state)
        state[0] ^= word
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(state: list[Words]) -> None:
    a, b, c, d = state
    a += b
    c += d
    b, d = _rotate(b, 13), _rotate(d, 16)
    b ^= a
    d ^= c
    a = _rotate(a, 32)
    c += b
    a += d
    b, d = _rotate(b, 17), _rotate(d, 21)
    b ^= c
    d ^= a
    state[:] = a, b, _rotate(c, 32), d


def _rotate(word: Words, by: int) -> Words:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))
