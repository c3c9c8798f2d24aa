"""Privacy of a law, computed: log-ratios and hockey-stick sums with 60 digits, and bounds on what is left out.

Masses are taken from the survival function that the sampler inverts, so what is attacked is the law that is
drawn. All functions want the caller's ``mp.workdps``.

Both laws are log-concave (an integral of a log-concave density over [k - 1/2, k + 1/2], and e^(-|k|/b)), so the
ratio of masses P(k) / P(k - s) falls in k for s > 0. A hockey-stick sum is therefore a sum from below up to one
threshold, found by bisection, and equal to two values of the distribution function: nothing is cut off.
"""

from fractions import Fraction
from functools import cache

from mpmath import mp, mpf


def real(number):
    number = Fraction(number)
    return mpf(number.numerator) / number.denominator


@cache
def _survival(law, k, digits):
    return law._inversion().survival(mp, k)


def at_least(law, k):
    """P(X >= k), from the survival function of the magnitude that the sampler inverts."""
    half = _survival(law, k if k >= 1 else 1 - k, mp.dps) / 2
    return half if k >= 1 else 1 - half


def mass(law, k):
    """P(X = k)."""
    k = abs(k)
    return 1 - _survival(law, 1, mp.dps) if k == 0 else at_least(law, k) - at_least(law, k + 1)


def defined(law, k):
    """P(X = k) by the definition of the law, whatever the library says."""
    if law.kind == "laplace":
        q = mp.exp(-1 / real(law.scale))
        return (1 - q) / (1 + q) * q ** abs(k)
    low, high = ((abs(k) + end) / real(law.scale) / mp.sqrt(2) for end in (mpf(-1) / 2, mpf(1) / 2))
    return mp.erf(high) if k == 0 else (mp.erfc(low) - mp.erfc(high)) / 2


def threshold(law, shift, odds):
    """Return the largest k with P(X = k) > odds · P(X = k - shift): the ratio falls in k, from above odds."""

    def beyond(k):
        return mass(law, k) > odds * mass(law, k - shift)

    near = _guess(law, shift, odds)
    low, high, step = near - 1, near + 1, 1
    while not beyond(low):
        low, step = low - step, 2 * step
    while beyond(high):
        high, step = high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) else (low, middle)
    return low


def _guess(law, shift, odds):
    """Where densities, instead of masses, have this ratio."""
    if law.kind == "laplace":
        return 0
    return int(mp.floor(shift / mpf(2) - real(law.scale) ** 2 * mp.log(odds) / shift))


def hockey_stick(law, shift, eps):
    """Return the exact sum over k of max(0, P(X = k) - e^eps P(X + shift = k))."""
    odds = mp.exp(real(eps))
    if shift == 0 or (law.kind == "laplace" and Fraction(shift) / Fraction(law.scale) <= Fraction(eps)):
        return mpf(0)
    top = threshold(law, shift, odds)
    return at_least(law, -top) - odds * at_least(law, shift - top)


def hockey_stick_of_two(first, one, second, other, eps, reach):
    """Return the same for two independent coordinates, moved by ``one`` and ``other``, and what may be missing.

    The sum runs over the first coordinate up to ``reach``; what lies beyond is at most its probability.
    """
    odds, total = mp.exp(real(eps)), mpf(0)
    for k in range(-reach, reach + 1):
        here, there = mass(first, k), odds * mass(first, k - one)
        top = threshold(second, other, there / here)
        total += here * at_least(second, -top) - there * at_least(second, other - top)
    return total, 2 * at_least(first, reach + 1)


def renyi(law, shift, order, reach):
    """Return the Renyi divergence of X from X + shift of an order above 1, with a bound on what is left out.

    With P/Q the ratio of masses, terms are P(k) (P/Q)^(order - 1). Above ``reach`` >= shift the ratio is at most 1.
    Below -reach it is e^(shift/b) for the Laplace law; for the Gaussian it is at most that of the densities at
    the upper end of the interval of k, whose sum is a Gaussian integral again.
    """
    order = mpf(order)
    total = at_least(law, reach + 1)
    for k in range(-reach, reach + 1):
        total += mass(law, k) ** order / mass(law, k - shift) ** (order - 1)
    scale = real(law.scale)
    if law.kind == "laplace":
        below = at_least(law, reach + 1) * mp.exp((order - 1) * shift / scale)
    else:
        fall = (order - 1) * shift / scale**2
        ends = mp.exp(fall * (shift / mpf(2) + 1) + (fall * scale) ** 2 / 2)
        below = ends * mp.erfc((reach + mpf(1) / 2 - fall * scale**2) / scale / mp.sqrt(2)) / 2
    return mp.log(total + below) / (order - 1)
