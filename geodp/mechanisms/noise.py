"""Exact integer noise: inversion with lazy precision.

An integer X with P(|X| >= k) = S(k) is drawn by comparing a uniform U with the numbers S(k). The
first 63 bits of U nearly always decide: the inverse of S, computed in doubles, lands well inside
one integer, and neither the unknown further bits nor the error of ``log`` and ``ndtri`` can change
that. The rare draws near a border get 64 more bits and as many digits as those can use, again and
again until the comparison is decided. Apart from the error guard, which is measured
(``benchmarks/noise.py``) and not proven, the law is exact, tails included; integers have no low bits
that could tell anything.

Bits come from the operating system, anew for every call. No buffer survives a call: after a fork,
two children would publish the same noise.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geodp.exact import ceil_double, exact_positive, whole
from geodp.mechanisms.precise import erfc, precision, real

__all__ = [
    "GUARD",
    "MAX_NOISE",
    "MAX_SCALE",
    "Bits",
    "Inversion",
    "add_saturating",
    "discrete_laplace",
    "double_scale",
    "draw",
    "gaussian_inversion",
    "gaussian_tail_inversion",
    "laplace_inversion",
    "laplace_tail_inversion",
    "rounded_gaussian",
    "system_bits",
]

Bits = Callable[[int], NDArray[np.uint64]]
"""Returns that many fresh, independent, uniform 64-bit words."""

MAX_SCALE = 2.0**50
MAX_NOISE = 2**62

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]

# Relative to |position| + scale. At least 1000 times the largest error measured against 60 digits.
GUARD = 2.0**-40
# What the unknown further bits can move a position whose 63 bits are at least _FEW, over the scale:
# at most 1.2533 / _FEW (Mills' ratio at 0), and 1 / _FEW for the logarithm.
_FEW = 2**44
_WIDTH = 2.0**-43
_MOST = 2**40  # draws at once: more fit into no memory
_CHUNK = 1 << 14  # words; the arrays of a chunk stay in the processor's cache


@dataclass(frozen=True)
class Inversion:
    """A law on 0, 1, 2, ... seen from both sides.

    Attributes
    ----------
    scale : float
        Its natural length, in steps.
    offset : float
        Length that cancels in ``position``, so that its error is larger by that much; infinite if
        ``position`` is only a guess.
    digits : int
        Digits that ``survival`` loses.
    position : callable
        Uniforms in (0, 1], an array, to real positions; the floor is the integer.
    position_of_log : callable
        The same for one uniform given by its logarithm.
    survival : callable
        ``(mp, k)`` to P(magnitude >= k) for k >= 1, in the precision of ``mp``.
    """

    scale: float
    position: Callable[[_Floats], _Floats]
    position_of_log: Callable[[float], float]
    survival: Callable[[Any, int], Any]
    offset: float = 0.0
    digits: int = 0


def rounded_gaussian(sigma: object, size: int) -> _Integers:
    """Return ``floor(sigma * N + 1/2)`` for independent standard normal N, drawn exactly.

    Added to integers, this is a rounding (post-processing) of Gaussian noise on real numbers, so it
    has all of that mechanism's guarantees, and no low bits.

    Parameters
    ----------
    sigma : number
        Standard deviation before rounding, greater than 0 and at most 2^50. A double is taken as it is.
    size : int
        How many, at least 0.

    Returns
    -------
    int64 array, shape (size,)
        Clamped to +-2^62.

    Raises
    ------
    TypeError, ValueError
        ``sigma`` or ``size`` is out of range; nothing was drawn.

    Examples
    --------
    >>> rounded_gaussian(4.5, 3).dtype
    dtype('int64')
    """
    return draw(
        gaussian_inversion(double_scale(sigma, "sigma")), whole(size, "size", 0, _MOST), symmetric=True
    )


def discrete_laplace(scale: object, size: int) -> _Integers:
    """Return integers with P(k) proportional to ``exp(-|k| / scale)``, drawn exactly.

    Parameters
    ----------
    scale : number
        Greater than 0 and at most 2^50. A double is taken as it is.
    size : int
        How many, at least 0.

    Returns
    -------
    int64 array, shape (size,)
        Clamped to +-2^62.

    Raises
    ------
    TypeError, ValueError
        ``scale`` or ``size`` is out of range; nothing was drawn.

    Examples
    --------
    >>> discrete_laplace(1e-3, 3)
    array([0, 0, 0])
    """
    return draw(
        laplace_inversion(double_scale(scale, "scale")), whole(size, "size", 0, _MOST), symmetric=True
    )


def double_scale(value: object, name: str) -> float:
    """Return a scale of noise as a double: a float as it is, anything else rounded up.

    Raises
    ------
    ValueError
        Not greater than 0, or above 2^50, where sums of counts and noise would leave 64 bits.
    """
    number = exact_positive(value, name)
    double = float(value) if isinstance(value, float) else ceil_double(number)
    if double > MAX_SCALE:
        raise ValueError(
            f"{name} must be at most 2^50 steps, got {double:.3g}: such noise would drown any count. "
            "Raise eps, or lower the cap or the number of steps."
        )
    return double


def system_bits(count: int) -> NDArray[np.uint64]:
    """Return ``count`` fresh words from the operating system."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def draw(law: Inversion, size: int, *, symmetric: bool, bits: Bits | None = None) -> _Integers:
    """Return ``size`` exact draws, shape (size,); ``symmetric`` gives each a random sign."""
    source = bits or system_bits
    out = np.empty(size, dtype=np.int64)
    with np.errstate(all="ignore"):
        for start in range(0, size, _CHUNK):
            part = out[start : start + _CHUNK]
            words = source(len(part))
            part[:] = _magnitudes(law, (words >> np.uint64(1)).view(np.int64), source)
            if symmetric:
                part *= 1 - 2 * (words & np.uint64(1)).view(np.int64)
    return out


def add_saturating(values: _Integers, noise: _Integers) -> _Integers:
    """Return ``values + noise``, stopping at +-(2^63 - 1) instead of wrapping around."""
    top = np.iinfo(np.int64).max
    total: _Integers = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    total[wrapped] = np.where(noise[wrapped] > 0, top, -top)
    np.maximum(total, -top, out=total)
    return total


def laplace_inversion(scale: float) -> Inversion:
    """Magnitude of the discrete Laplace: S(k) = 2 q^k / (1 + q) for k >= 1, with q = exp(-1 / scale)."""
    inverse = _reciprocal(scale)
    shift = math.log1p(math.expm1(-inverse) / 2)

    def survival(mp: Any, k: int) -> Any:
        length = real(mp, scale)
        return 2 * mp.exp(-k / length) / (1 + mp.exp(-1 / length))

    return Inversion(
        scale=scale,
        position=lambda u: (np.log(u) + shift) * -scale,
        position_of_log=lambda log_u: (log_u + shift) * -scale,
        survival=survival,
        digits=_order(inverse),
    )


def gaussian_inversion(sigma: float) -> Inversion:
    """Magnitude of the rounded Gaussian: S(k) = 2 Phi(-(k - 1/2) / sigma) for k >= 1."""
    from scipy.special import ndtri, ndtri_exp

    return Inversion(
        scale=sigma,
        position=lambda u: ndtri(u * 0.5) * -sigma + 0.5,
        position_of_log=lambda log_u: float(ndtri_exp(log_u - math.log(2))) * -sigma + 0.5,
        survival=lambda mp, k: _two_tails(mp, k, sigma),
        digits=2 * _order(_reciprocal(sigma)),
    )


def laplace_tail_inversion(scale: float) -> Inversion:
    """X - t given X >= t >= 1 for the discrete Laplace, whatever t: S(k) = q^k."""
    return Inversion(
        scale=scale,
        position=lambda u: np.log(u) * -scale,
        position_of_log=lambda log_u: log_u * -scale,
        survival=lambda mp, k: mp.exp(-k / real(mp, scale)),
        digits=_order(_reciprocal(scale)),
    )


def gaussian_tail_inversion(sigma: float, threshold: int) -> Inversion:
    """X - t given X >= t >= 1 for the rounded Gaussian: S(k) = P(X >= t + k) / P(X >= t)."""
    from scipy.special import log_ndtr, ndtri_exp

    log_top = float(log_ndtr(-(threshold - 0.5) * _reciprocal(sigma)))
    start = threshold - 0.5
    return Inversion(
        scale=sigma,
        position=lambda u: ndtri_exp(np.log(u) + log_top) * -sigma - start,
        position_of_log=lambda log_u: float(ndtri_exp(log_u + log_top)) * -sigma - start,
        survival=lambda mp, k: _two_tails(mp, threshold + k, sigma) / _two_tails(mp, threshold, sigma),
        # Beyond 24 sigma ndtri_exp loses digits: an infinite offset leaves every draw to the slow path.
        offset=float(threshold) if log_top > -300 else math.inf,
        digits=2 * _order(_reciprocal(sigma)) + 2 * _order(float(threshold)),
    )


def _magnitudes(law: Inversion, words: _Integers, bits: Bits) -> _Integers:
    """Return the integers that 63-bit ``words`` name, fetching more bits for those left undecided."""
    uniform = words.astype(np.float64)
    uniform += 0.5
    uniform *= 2.0**-63
    at = law.position(uniform)
    found = np.floor(at)
    # How far each end of the integer is from the nearer end of what the draw may still be.
    room = 0.5 - np.abs(at - found - 0.5)
    at *= GUARD
    at += (law.offset + law.scale) * GUARD + law.scale * _WIDTH
    open_ = (room <= at) | (words < _FEW)
    out = np.minimum(found, float(MAX_NOISE)).astype(np.int64)
    for i in np.flatnonzero(open_).tolist():
        out[i] = _decide(law, int(words[i]), bits)
    return out


def _decide(law: Inversion, word: int, bits: Bits) -> int:
    """Return the integer of one draw whose first 63 bits are ``word``, with as many bits as it takes."""
    number, size = word, 63
    while True:
        number, size = number << 64 | int(bits(1)[0]), size + 64
        found = _place(law, number, size)
        if found is not None:
            return min(found, MAX_NOISE)


def _place(law: Inversion, number: int, size: int) -> int | None:
    """Return k if all U from ``number / 2^size`` to ``(number + 1) / 2^size`` name it, else None."""
    if number == 0:  # open towards infinity
        return None
    digits = int(number.bit_length() * 0.302) + law.digits + 40
    with precision(digits) as mp:
        low, high = mp.ldexp(number, -size), mp.ldexp(number + 1, -size)
        slack = mp.mpf(10) ** (law.digits + 20 - digits)

        def reaches(k: int) -> bool | None:
            border = law.survival(mp, k) if k > 0 else mp.mpf(2)
            if high <= border * (1 - slack):
                return True
            return False if low >= border * (1 + slack) else None

        log_u = math.log(2 * number + 1) - (size + 1) * math.log(2)
        return _search(reaches, max(0, math.floor(law.position_of_log(log_u))))


def _search(reaches: Callable[[int], bool | None], guess: int) -> int | None:
    """Return the largest k that the draw reaches, from a guess; None if one comparison is open."""
    low, high, step = guess, guess + 1, 1
    while not (answer := reaches(low)):
        if answer is None:
            return None
        low, high, step = max(0, low - step), low, 2 * step
    while answer := reaches(high):
        low, high, step = high, high + step, 2 * step
    while answer is not None and high - low > 1:
        middle = (low + high) // 2
        answer = reaches(middle)
        low, high = (middle, high) if answer else (low, middle)
    return None if answer is None else low


def _two_tails(mp: Any, k: int, sigma: float) -> Any:
    return erfc(mp, (2 * k - 1) / (real(mp, sigma) * mp.sqrt(8)))


def _reciprocal(scale: float) -> float:
    """Return 1 / scale, at most the largest double."""
    return min(1 / scale, 1.7976931348623157e308)


def _order(number: float) -> int:
    """Digits before the point, at least 0."""
    return max(0, math.ceil(math.log10(number))) if number > 0 else 0
