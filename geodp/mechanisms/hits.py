"""Which of very many empty cells pass a threshold by their noise alone, without visiting them.

Each of n places is a hit with probability p = P(X >= T), independently. The number of misses before the next
hit is geometric, P(gap >= k) = (1 - p)^k, so hits are found by jumping from one to the next: the count, the
places and that they are distinct come out with exactly the joint law of n separate draws. A gap is
floor(log U / log1p(-p)), with as many bits and digits as it takes (:mod:`geodp.mechanisms.noise`).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geodp.mechanisms.laws import Law
from geodp.mechanisms.noise import MAX_NOISE, Bits, Inversion, draw
from geodp.mechanisms.precise import precision

__all__ = ["MOST_PLACES", "gap_inversion", "hits"]

MOST_PLACES = 2**56
_NEVER = 1e-280  # less than MOST_PLACES of these are less than 2**-870
_DIGITS = 50
_LOST = 8  # a tail above _NEVER is at most 645 b or 36 sigma away, so exp and erfc lose four digits there
_CHUNK = 1 << 18


def hits(law: Law, threshold: int, n: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """Return the places from 0 to ``n - 1`` whose noise reaches ``threshold``, ascending.

    Parameters
    ----------
    law : Law
        The noise of every place.
    threshold : int
        At least 1.
    n : int
        At most 2^56. Time and memory grow with the number of hits, n times P(X >= threshold).
    bits : callable, optional
        Replaces the operating system's entropy in tests.

    Returns
    -------
    int64 array

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> hits(DiscreteLaplace(1e-3), 1, 10**12)
    array([], dtype=int64)
    """
    inversion = gap_inversion(law, threshold)
    if inversion is None:
        return np.empty(0, dtype=np.int64)
    found, last = [], -1
    most = min(_CHUNK, (2**62 - n) // (n + 1) - 1)
    while True:
        expected = (n - last) / inversion.scale
        gaps = draw(inversion, max(8, min(most, int(1.1 * expected) + 8)), symmetric=False, bits=bits)
        at = last + np.cumsum(np.minimum(gaps, n) + 1)
        found.append(at[at < n])
        if at[-1] >= n:
            return np.concatenate(found)
        last = int(at[-1])


@lru_cache(maxsize=64)
def gap_inversion(law: Law, threshold: int) -> Inversion | None:
    """Return how the misses before a hit are drawn, S(k) = (1 - P(X >= threshold))^k; None for never."""
    with precision(_DIGITS) as mp:
        rate = -mp.log1p(-law._tail(mp, threshold))
        if rate < _NEVER:
            return None
        scale = float(1 / rate)

    def survival(mp: Any, k: int) -> Any:
        # Whatever leads beyond all places is one gap: else a rare hit would be searched for among 1e200.
        return mp.exp(k * mp.log1p(-law._tail(mp, threshold))) if k <= MAX_NOISE else mp.mpf(0)

    return Inversion(
        scale=scale,
        position=lambda u: np.minimum(np.log(u) * -scale, float(MAX_NOISE)),
        position_of_log=lambda log_u: min(log_u * -scale, float(MAX_NOISE)),
        survival=survival,
        digits=_LOST,
    )
