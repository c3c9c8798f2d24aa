"""The law of a sum of many independent draws of one noise, for the interval around a total.

A sum of n draws has the n-th power of their characteristic function. Its distribution is read off the
Fourier series on a circle so long that what wraps around it, bounded by Chernoff, is below 1e-16: no
normal approximation is made, however many draws there are. Sums with weights, and sums of few very wide
draws, are blurred by a Gaussian 20,000 times narrower than they are, and the interval is widened by what
the blur can hide: it is then never too narrow, and less than 0.04 % of a standard deviation too wide.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geodp.mechanisms.laws import DiscreteLaplace, Law

__all__ = ["NoiseSum"]

Floats = NDArray[np.float64]

_NOTHING = 46.0  # exp(-46) is 1e-20
_SLACK = 1e-12  # what rounding can add up to; decided on the wide side
_MOST_TERMS = 1 << 18
_CHUNK = 1 << 16
_BLUR = 1 / 20_000
_BLUR_REACH = 7.2  # P(|N(0, 1)| > 7.2) is 6e-13


@dataclass(frozen=True)
class NoiseSum:
    """The sum of weighted independent draws of one law.

    Parameters
    ----------
    law : Law
        Of each draw, in lattice steps.
    parts : tuple of (float, int)
        Pairs of a weight in (0, 1] and how many draws have it.

    Examples
    --------
    >>> NoiseSum(DiscreteLaplace(4.0), ((1.0, 100),)).halfwidth(0.95)
    111
    """

    law: Law
    parts: tuple[tuple[float, int], ...]

    @classmethod
    def of_weights(cls, law: Law, numerators: NDArray[np.int64], denominator: int) -> "NoiseSum":
        """Return the sum with weights ``numerators / denominator``, all of them above 0."""
        values, counts = np.unique(numerators, return_counts=True)
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        return cls(law, tuple((value / denominator, count) for value, count in pairs))

    @property
    def std(self) -> float:
        """Standard deviation."""
        return self.law.std * math.sqrt(sum(count * weight**2 for weight, count in self.parts))

    def halfwidth(self, level: float | Fraction) -> float:
        """Return h with P(|S| <= h) >= ``level``: the smallest integer where all weights are 1.

        Probabilities are computed within 1e-12 and decided on the wide side. Where the sum is blurred,
        h is up to 0.04 % of a standard deviation larger than need be.
        """
        target = float(level) + _SLACK
        if self.std == 0:
            return 0
        if self.parts == ((1.0, 1),):
            return self.law.halfwidth(level)
        whole = all(weight == 1 for weight, _ in self.parts)
        reach = self._reach()
        if whole:
            series = self._lattice_series(reach)
            if series is not None:
                return _smallest(series, target, round(2 * self.std))
        blur = self.std * _BLUR
        y = _least(self._blurred_series(reach, blur), target, self.std)
        h = y + _BLUR_REACH * blur
        return math.floor(h) if whole else h

    def log_cf(self, t: Floats) -> Floats:
        """Return the logarithm of the characteristic function at ``t``."""
        total = np.zeros_like(t)
        for weight, count in self.parts:
            total += count * _log_cf(self.law, t * weight)
        return total

    def _reach(self) -> float:
        """Return x with P(|S| >= x) < 1e-16, by Chernoff's bound."""
        widest = 0.98 / self.law.scale if isinstance(self.law, DiscreteLaplace) else 20.0
        thetas = np.append(np.linspace(0.5, 14, 109) / self.std, np.linspace(0.05, 1, 20) * widest)
        thetas = thetas[thetas <= widest]
        log_mgf = sum(count * _log_mgf(self.law, thetas * weight) for weight, count in self.parts)
        return float(np.min((log_mgf + 38) / thetas)) + 2

    def _lattice_series(self, reach: float) -> "_Series | None":
        """Return P(|S| <= h) for integers h; None if it takes too many terms."""
        around = 2 * math.ceil(reach)
        last = self._last_term(2 * math.pi / around, around // 2)
        if last is None:
            return None
        j = np.arange(1, last + 1, dtype=np.float64)
        terms = np.exp(self.log_cf(2 * np.pi * j / around)) * np.where(2 * j == around, 1, 2)
        half = np.pi * j / around
        return _Series(half, terms / np.sin(half) / around, 1 / around)

    def _last_term(self, step: float, most: int) -> int | None:
        """Return from which term on the series is below 1e-20; characteristic functions fall on [0, pi]."""
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if self.log_cf(np.array([middle * step]))[0] < -_NOTHING:
                high = middle
            else:
                low = middle + 1
        return low if low <= _MOST_TERMS else None

    def _blurred_series(self, reach: float, blur: float) -> "_Series":
        """Return P(|S + V| <= y) for real y, V normal with standard deviation ``blur``."""
        around = 2 * (reach + _BLUR_REACH * blur)
        last = math.ceil(math.sqrt(2 * _NOTHING) / blur * around / (2 * math.pi))
        parts = []
        for start in range(1, last + 1, _CHUNK):
            t = np.arange(start, min(start + _CHUNK, last + 1), dtype=np.float64) * (2 * math.pi / around)
            t, log_terms = self._that_matter(t, blur)
            parts.append((t, 4 / around * np.exp(log_terms) / t))
        t, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return _Series(t, weights, 2 / around, integers=False)

    def _that_matter(self, t: Floats, blur: float) -> tuple[Floats, Floats]:
        """Return where the blurred characteristic function is above 1e-20, and its logarithm there.

        No factor exceeds 1, so what a few of them have made small can be left out before the others.
        """
        total: Floats = -((blur * t) ** 2) / 2
        for weight, count in sorted(self.parts, key=lambda part: -part[1]):
            total = total + count * _log_cf(self.law, t * weight)
            t, total = t[total > -_NOTHING], total[total > -_NOTHING]
        return t, total


@dataclass(frozen=True)
class _Series:
    """P(|S| <= h) as a sine series: in 2h + 1 for integers h, in y for reals."""

    angle: Floats
    weight: Floats
    slope: float
    integers: bool = True

    def __call__(self, h: float) -> float:
        x = 2 * h + 1 if self.integers else h
        return float(self.slope * x + self.weight @ np.sin(self.angle * x))


def _smallest(series: _Series, target: float, guess: int) -> int:
    """Return the smallest integer h >= 0 at which an increasing series reaches ``target``."""
    if series(0) >= target:
        return 0
    low, high = 0, max(guess, 1)
    while series(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if series(middle) >= target else (middle, high)
    return high


def _least(series: _Series, target: float, std: float) -> float:
    """Return a real at which an increasing series reaches ``target``, within 1e-6 std of the least."""
    from scipy.optimize import brentq

    high = 2 * std
    while series(high) < target:
        high *= 1.5
    return float(brentq(lambda y: series(y) - target, 0.0, high, xtol=5e-7 * std)) + 5e-7 * std


def _log_cf(law: Law, t: Floats) -> Floats:
    """Logarithm of one draw's characteristic function, keeping its precision near 0."""
    around = t if t.size == 0 or t.max() <= np.pi else np.remainder(t + np.pi, 2 * np.pi) - np.pi
    if isinstance(law, DiscreteLaplace):
        out: Floats = -np.log1p(2 * law.std**2 * np.sin(around / 2) ** 2)
        return out
    if law.scale < 1:
        return np.log1p(-4 * _over_pairs(law, lambda k: np.sin(k * around / 2)))
    # Poisson summation: the Gaussian times the uniform law of rounding, and its images at 2 pi m.
    images = np.zeros_like(around)
    for m in (-2, -1, 1, 2):
        moved = around + 2 * np.pi * m
        sign = 1 if m % 2 == 0 else -1
        images += sign * around / moved * np.exp(-(law.scale**2) * (moved**2 - around**2) / 2)
    return -((law.scale * around) ** 2) / 2 + _log_sinc(around / 2) + np.log1p(images)


def _log_sinc(x: Floats) -> Floats:
    small = np.abs(x) < 0.05
    safe = np.where(small, 1.0, x)
    series = -(x**2) / 6 - x**4 / 180 - x**6 / 2835 - x**8 / 37800
    out: Floats = np.where(small, series, np.log(np.abs(np.sin(safe) / safe)))
    return out


def _log_mgf(law: Law, theta: Floats) -> Floats:
    """Logarithm of one draw's moment generating function, or a little more."""
    if isinstance(law, DiscreteLaplace):
        out: Floats = -np.log1p(-2 * law.std**2 * np.sinh(theta / 2) ** 2)
        return out
    if law.scale < 1:
        return np.log1p(4 * _over_pairs(law, lambda k: np.sinh(k * theta / 2)))
    return (law.scale**2 + 1 / 12) * theta**2 / 2 + 8 * math.exp(-2 * (math.pi * law.scale) ** 2)


def _over_pairs(law: Law, wave: Callable[[int], Floats]) -> Floats:
    """Add up the squares of ``wave`` over k >= 1 under a narrow law, of which 11 integers are enough."""
    k = np.arange(1, 12)
    return np.asarray(
        sum(p * wave(i) ** 2 for i, p in zip(k.tolist(), law.pmf(k).tolist(), strict=True) if p)
    )
