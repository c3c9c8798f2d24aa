"""Real values as integers: a public step, rounding toward zero, clipping and sums without rounding error.

A sum in floating point depends on the order of its rows, and its low bits tell of them. Here values
become whole steps of 2**-j first; everything after that is integer arithmetic.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geodp.contribution import runs

__all__ = ["add_up", "clip_l1", "clip_l2", "exponent", "to_steps", "whole_steps"]

Ints = NDArray[np.int64]
_HALF = 20


def exponent(bound: Fraction) -> int:
    """Return the j for which ``bound`` spans at least 2**20 steps of 2**-j, and fewer than 2**21.

    Examples
    --------
    >>> exponent(Fraction(120))
    14
    """
    j = 20 - math.floor(math.log2(bound))
    while bound * Fraction(2) ** j < 2**20:
        j += 1
    while bound * Fraction(2) ** (j - 1) >= 2**20:
        j -= 1
    return j


def whole_steps(value: Fraction, j: int) -> int:
    """Return ``value`` in steps of 2**-j, rounded toward zero."""
    return math.trunc(value * Fraction(2) ** j)


def to_steps(values: NDArray[np.float64], low: Fraction, high: Fraction, middle: Fraction, j: int) -> Ints:
    """Clamp to [low, high], subtract the middle, and round toward zero to steps of 2**-j.

    The magnitude never grows, and the ends hold exactly, whatever doubles do in between.
    """
    clamped = np.clip(values, float(low), float(high)) - float(middle)
    steps = np.trunc(np.ldexp(clamped, j)).astype(np.int64)
    return np.clip(steps, whole_steps(low - middle, j), whole_steps(high - middle, j))


def add_up(key: Ints, values: Ints, n_keys: int) -> Ints:
    """Return the exact sum of ``values`` for each key.

    Both halves of every value are added in doubles whose partial sums stay below 2**53 for up to 2**33
    rows, which is exact and much faster than adding integers one at a time.
    """
    high, low = values >> _HALF, values & ((1 << _HALF) - 1)
    upper = np.bincount(key, high, n_keys).astype(np.int64)
    return (upper << _HALF) + np.bincount(key, low, n_keys).astype(np.int64)


def clip_l2(subject: Ints, values: Ints, bound: int) -> Ints:
    """Scale each subject's values down to L2 norm ``bound``, in integers.

    Parameters
    ----------
    subject : int64 array, shape (n,), sorted
    values : int64 array, shape (n,)
    bound : int

    Returns
    -------
    int64 array, shape (n,)
        sign·floor(abs(z)·C / ceil(sqrt(sum z²))) for subjects above the bound C, the values themselves
        for all others. Floors only shrink, so the norm holds by construction.
    """
    return _clip(subject, values, bound, squared=True)


def clip_l1(subject: Ints, values: Ints, bound: int) -> Ints:
    """Scale each subject's values down to L1 norm ``bound``, in integers; see :func:`clip_l2`."""
    return _clip(subject, values, bound, squared=False)


def _clip(subject: Ints, values: Ints, bound: int, squared: bool) -> Ints:
    starts, lengths = runs(subject)
    size = np.abs(values)
    # A double is enough to find everybody who may be above; whoever is near is then looked at exactly.
    rough = size.astype(np.float64) ** (2 if squared else 1)
    totals = np.add.reduceat(rough, starts) if len(starts) else rough
    near = totals > (1 - 1e-9) * float(bound) ** (2 if squared else 1)
    out = values.copy()
    for start, length in zip(starts[near], lengths[near], strict=True):
        part = slice(start, start + length)
        out[part] = _clip_one([int(v) for v in values[part]], bound, squared)
    return out


def _clip_one(values: list[int], bound: int, squared: bool) -> list[int]:
    if squared:
        total = sum(v * v for v in values)
        if total <= bound * bound:
            return values
        norm = math.isqrt(total - 1) + 1
    else:
        norm = sum(abs(v) for v in values)
        if norm <= bound:
            return values
    return [(abs(v) * bound // norm) * (1 if v >= 0 else -1) for v in values]
