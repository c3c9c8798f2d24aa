"""The exponential mechanism over a few public candidates, drawn exactly, in integers only.

Candidate j is chosen with probability exp(-r_j) / (exp(-r_1) + ... + exp(-r_m)), where r_j is a rational
penalty: its score, over a scale. No such number is a double or a sum of doubles, so none is used. A
uniform U in [0, 1) of which 64 bits are known is compared with the borders of the candidates, and the
borders are known only as brackets of integers, each proved. Where the brackets leave a comparison open,
64 more bits are drawn and all brackets narrowed, until every comparison is decided. What is returned is then
what the real U and the real borders would have given: the law is exact, whatever the brackets were.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose", "exp_bounds"]

Bits = Callable[[int], NDArray[np.uint64]]


def choose(penalties: Sequence[Fraction], bits: Bits) -> int:
    """Return a position j, drawn with probability proportional to exp(-penalties[j]), exactly.

    Parameters
    ----------
    penalties : sequence of Fraction
        At least one, none negative.
    bits : callable
        Returns that many fresh, independent, uniform 64-bit words.

    Returns
    -------
    int
        From 0 to ``len(penalties) - 1``; every position is possible.

    Examples
    --------
    >>> choose([Fraction(10**9), Fraction(0)], lambda n: np.zeros(n, np.uint64) + np.uint64(2**63))
    1
    """
    least = min(penalties)
    number, size = 0, 0
    while True:
        number, size = number << 64 | int(bits(1)[0]), size + 64
        found = _place([penalty - least for penalty in penalties], number, size)
        if found is not None:
            return found


def exp_bounds(r: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with ``low <= exp(-r) * 2**bits <= high``, for r >= 0.

    Notes
    -----
    With t = r / 2^k <= 1/2 the terms t^n / n! fall and alternate, so the series lies within its last term of
    its sum. Each term is a floor of the one before it, times t / n: its error is at most half of that one's
    plus 1, so below 2. Then k squarings, each rounded outward, lead back to exp(-r). They double a relative
    error, which is what the further k + 16 bits are for; the bounds hold without them.

    Examples
    --------
    >>> exp_bounds(Fraction(1), 20), round(math.exp(-1) * 2**20, 2)
    ((385749, 385750), 385749.55)
    """
    if r == 0:
        return 1 << bits, 1 << bits
    halvings = math.ceil(2 * r).bit_length()
    work = bits + halvings + 16
    low, high = _series(r / (1 << halvings), work)
    for _ in range(halvings):
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    return low >> (work - bits), -(-high >> (work - bits))


def _series(t: Fraction, work: int) -> tuple[int, int]:
    """Bracket exp(-t), 0 <= t <= 1/2, in units of 2**-work."""
    term, total, n = 1 << work, 0, 0
    while term:
        total += -term if n % 2 else term
        n += 1
        term = term * t.numerator // (t.denominator * n)
    # n terms off by less than 2 each; the rest of the series is less than the first term left out, below 2.
    slack = 2 * n + 2
    return max(0, total - slack), min(1 << work, total + slack)


def _place(penalties: Sequence[Fraction], number: int, size: int) -> int | None:
    """Return the position that all U from ``number / 2^size`` to ``(number + 1) / 2^size`` name, else None.

    U names the first j with U * (w_1 + ... + w_m) < w_1 + ... + w_j, and the last one if there is none.
    """
    bounds = [exp_bounds(penalty, size) for penalty in penalties]
    lows, highs = (list(accumulate(side)) for side in zip(*bounds, strict=True))
    for j in range(len(penalties) - 1):
        if (number + 1) * highs[-1] <= lows[j] << size:
            return j
        if number * lows[-1] < highs[j] << size:
            return None
    return len(penalties) - 1
