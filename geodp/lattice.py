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
_LOW = (1 << _HALF) - 1
_TOP = 2**63 - 1
_TOP_HALF = 1 << (63 - _HALF)


def exponent(bound: Fraction) -> int:
    """Return the j for which ``bound`` spans at least 2**20 steps of 2**-j, and fewer than 2**21.

    Examples
    --------
    >>> exponent(Fraction(120))
    14
    """
    j = 20 + bound.denominator.bit_length() - bound.numerator.bit_length()
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
    """Return the exact sum of ``values`` for each key, held within ±(2**63 - 1).

    Both halves of every value are added in doubles, which is much faster than adding integers one at a
    time, and exact while no partial sum of a half reaches 2**53: for up to 2**32 rows of less than 2**41
    steps each, and for any values whose magnitudes add up to less than 2**63.
    """
    low = np.bincount(key, values & _LOW, n_keys).astype(np.int64)
    high = np.bincount(key, values >> _HALF, n_keys).astype(np.int64) + (low >> _HALF)
    total = (high << _HALF) + (low & _LOW)
    total = np.where(high < -_TOP_HALF, -_TOP, np.where(high >= _TOP_HALF, _TOP, total))
    return np.maximum(total, -_TOP)


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
    if not len(starts):
        return values
    # A double is enough to find everybody who may be above; whoever is near is then looked at exactly.
    power = 2 if squared else 1
    rough = np.add.reduceat(np.abs(values).astype(np.float64) ** power, starts)
    near = rough > (1 - 1e-6) * float(bound) ** power
    mine = np.repeat(near, lengths)
    size = np.abs(values[mine]).astype(object)
    norms = _norms(size, lengths[near], squared)
    shrunk = size * bound // np.repeat(np.maximum(norms, bound), lengths[near])
    out = values.copy()
    out[mine] = np.sign(values[mine]) * shrunk.astype(np.int64)
    return out


def _norms(size: NDArray[np.object_], lengths: Ints, squared: bool) -> NDArray[np.object_]:
    """Return the norm of each run, rounded up, in Python integers: squares do not fit into 64 bits."""
    if not len(lengths):
        return np.zeros(0, object)
    totals = np.add.reduceat(size * size if squared else size, np.cumsum(lengths) - lengths)
    return np.array([_root_up(total) for total in totals], dtype=object) if squared else totals


def _root_up(total: int) -> int:
    return math.isqrt(total - 1) + 1 if total else 0
