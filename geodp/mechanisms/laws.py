"""The laws of the noise: what is drawn, and everything a plan or an interval needs to know of it.

Both laws live on the integers and are symmetric. Probabilities keep their relative precision in both
tails; integers that decide something (thresholds, half-widths) are decided with 50 digits.
A law is a frozen value: comparable, hashable, and without any state of a generator.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geodp.exact import exact, whole
from geodp.mechanisms.noise import (
    Bits,
    Inversion,
    double_scale,
    draw,
    gaussian_inversion,
    gaussian_tail_inversion,
    laplace_inversion,
    laplace_tail_inversion,
)
from geodp.mechanisms.precise import precision, real
from geodp.wording import brief

__all__ = ["DiscreteLaplace", "Law", "RoundedGaussian", "gaussian_std", "laplace_std", "law_of"]

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_DIGITS = 50


class Law(ABC):
    """A symmetric law on the integers, in steps of the lattice the noise lives on.

    Examples
    --------
    >>> law = DiscreteLaplace(4.0)
    >>> law.kind, law.scale, round(law.std, 3), round(law.p_zero, 3)
    ('laplace', 4.0, 5.642, 0.124)
    >>> [round(float(law.pmf(2)), 4), round(float(law.sf(2)), 4), round(float(law.cdf(2)), 4)]
    [0.0754, 0.2656, 0.7344]
    >>> [round(float(law.log_pmf(1000)), 1), round(float(law.log_sf(1000)), 1)]  # far below the smallest double
    [-252.1, -250.8]
    >>> law.halfwidth(0.95), law.halfwidth(0.95, n=5495), law.quantile_sf(0.01, n=5495)
    (12, 46, 51)
    >>> round(law.expected_max(5495), 1)
    36.7
    >>> law.sample(3).dtype, bool((law.sample_tail(3, 40) >= 40).all())
    (dtype('int64'), True)
    """

    kind: ClassVar[Literal["laplace", "gaussian"]]

    if TYPE_CHECKING:  # a real property would become the default of a dataclass field of that name

        @property
        def scale(self) -> float:
            """The parameter: b of the discrete Laplace, sigma of the rounded Gaussian."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation of the integer itself."""

    @property
    @abstractmethod
    def p_zero(self) -> float:
        """P(X = 0)."""

    @abstractmethod
    def log_sf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X > k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """

    @abstractmethod
    def log_pmf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X = k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """

    @abstractmethod
    def _inversion(self) -> Inversion:
        """Return how magnitudes are drawn."""

    @abstractmethod
    def _tail_inversion(self, threshold: int) -> Inversion:
        """Return how X - threshold is drawn given X >= threshold >= 1."""

    @abstractmethod
    def _upper(self, p: float) -> float:
        """Return a real x with P(X >= x) about ``p`` <= 1/2."""

    def pmf(self, k: ArrayLike) -> _Floats:
        """Return P(X = k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``, 0 to 1.
        """
        return np.exp(self.log_pmf(k))

    def sf(self, k: ArrayLike) -> _Floats:
        """Return P(X > k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``, 0 to 1.
        """
        return np.exp(self.log_sf(k))

    def cdf(self, k: ArrayLike) -> _Floats:
        """Return P(X <= k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``, 0 to 1.
        """
        return np.exp(self.log_sf(-_points(k) - 1))

    def halfwidth(self, level: object, n: int = 1) -> int:
        """Return the smallest h with P(all of ``n`` independent draws lie within +-h) >= ``level``.

        Parameters
        ----------
        level : number
            Above 0 and below 1.
        n : int, default 1
            At least 1.

        Returns
        -------
        int
            In steps; decided with 50 digits.

        Raises
        ------
        TypeError, ValueError
            ``level`` or ``n`` is out of range.
        """
        target, count = _probability(level, "level"), whole(n, "n", 1)
        with precision(_DIGITS + len(str(target.denominator))) as mp:
            p = -mp.expm1(mp.log(real(mp, target)) / count) / 2
            return self._first(lambda t: self._tail(mp, t) <= p, float(p)) - 1

    def quantile_sf(self, p: object, n: int = 1) -> int:
        """Return the smallest t with P(the largest of ``n`` independent draws >= t) <= ``p``.

        Parameters
        ----------
        p : number
            Above 0 and below 1.
        n : int, default 1
            At least 1.

        Returns
        -------
        int
            In steps; decided with 50 digits.

        Raises
        ------
        TypeError, ValueError
            ``p`` or ``n`` is out of range.
        """
        target, count = _probability(p, "p"), whole(n, "n", 1)
        with precision(_DIGITS + len(str(target.denominator))) as mp:
            single = -mp.expm1(mp.log1p(-real(mp, target)) / count)
            if single < 0.5:
                return self._first(lambda t: self._tail(mp, t) <= single, float(single))
            # P(X >= t) = 1 - P(X >= 1 - t), so look for the last s = 1 - t that is likely enough.
            return 2 - self._first(lambda s: self._tail(mp, s) < 1 - single, float(1 - single))

    def expected_max(self, n: int) -> float:
        """Return the expected largest magnitude of ``n`` independent draws.

        Parameters
        ----------
        n : int
            1 to 1e15.

        Returns
        -------
        float
            In steps: the sum over t >= 1 of ``1 - (1 - P(|X| >= t))^n``, to the last term for small scales, by the
            midpoint rule (relative error below 1e-6) for large ones.

        Raises
        ------
        TypeError, ValueError
            ``n`` is out of range.
        """
        return _expected_max(self, whole(n, "n", 1, 10**15))

    def sample(self, size: int, bits: Bits | None = None) -> _Integers:
        """Return ``size`` independent exact draws.

        Parameters
        ----------
        size : int
            At least 0.
        bits : callable, optional
            Replaces the operating system's entropy in tests.

        Returns
        -------
        ndarray of int64, shape (size,)
            In steps, clamped to +-2^62.
        """
        return draw(self._inversion(), whole(size, "size", 0), symmetric=True, bits=bits)

    def sample_tail(self, size: int, threshold: int, bits: Bits | None = None) -> _Integers:
        """Return ``size`` independent exact draws of X given X >= ``threshold``.

        Parameters
        ----------
        size : int
            At least 0.
        threshold : int
            From -2^62 to 2^62.
        bits : callable, optional
            Replaces the operating system's entropy in tests.

        Returns
        -------
        ndarray of int64, shape (size,)
            In steps, none below ``threshold``.
        """
        count, floor = whole(size, "size", 0), whole(threshold, "threshold", -(2**62), 2**62)
        if floor <= 0:
            return self._redraw(count, floor, bits)
        return floor + draw(self._tail_inversion(floor), count, symmetric=False, bits=bits)

    def _redraw(self, size: int, threshold: int, bits: Bits | None) -> _Integers:
        """Draw until enough pass; at least half of all draws do when ``threshold`` <= 0."""
        kept = np.empty(0, dtype=np.int64)
        while len(kept) < size:
            fresh = draw(self._inversion(), size + 16, symmetric=True, bits=bits)
            kept = np.concatenate([kept, fresh[fresh >= threshold]])
        return kept[:size]

    def _tail(self, mp: Any, t: int) -> Any:
        """P(X >= t) in the precision of ``mp``, t >= 1; 1 below (only compared with less than 1/2)."""
        return self._inversion().survival(mp, t) / 2 if t >= 1 else mp.mpf(1)

    def _first(self, holds: Callable[[int], bool], p: float) -> int:
        """Return the smallest t >= 1 from which a condition holds, looking first near P(X >= t) = p."""
        guess = max(1, math.ceil(self._upper(max(p, 5e-324))))
        low, high, step = guess - 1, guess, 1
        while low > 0 and holds(low):
            low, high, step = max(0, low - step), low, 2 * step
        while not holds(high):
            low, high, step = high, high + step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """Integers with P(k) = (1 - q) / (1 + q) * q^|k|, q = exp(-1 / scale).

    Parameters
    ----------
    scale : float
        In steps, greater than 0 and at most 2^50; a query with L1 sensitivity ``l1`` is then
        ``l1 / scale``-private.

    Examples
    --------
    >>> law = DiscreteLaplace(4.0)
    >>> round(law.std, 2), law.halfwidth(0.95)
    (5.64, 12)
    """

    scale: float
    kind: ClassVar[Literal["laplace"]] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", double_scale(self.scale, "scale"))

    @cached_property
    def std(self) -> float:
        """Standard deviation, sqrt(2 q) / (1 - q)."""
        return float(laplace_std(np.array(self.scale)))

    @property
    def p_zero(self) -> float:
        """P(X = 0) = (1 - q) / (1 + q)."""
        return math.tanh(self._inverse / 2)

    def log_pmf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X = k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """
        with np.errstate(over="ignore"):
            return math.log(self.p_zero) - np.abs(_points(k)) / self.scale

    def log_sf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X > k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """
        above = _points(k) + 1
        beyond = np.where(above >= 1, above, 1 - above)
        with np.errstate(over="ignore"):
            log_tail = -beyond / self.scale - math.log1p(math.exp(-self._inverse))
        return np.where(above >= 1, log_tail, np.log1p(-np.exp(log_tail)))

    @property
    def _inverse(self) -> float:
        return 1 / self.scale

    def _inversion(self) -> Inversion:
        return laplace_inversion(self.scale)

    def _tail_inversion(self, threshold: int) -> Inversion:
        return laplace_tail_inversion(self.scale)

    def _upper(self, p: float) -> float:
        return -self.scale * (math.log(p) + math.log1p(math.exp(-self._inverse)))


@dataclass(frozen=True)
class RoundedGaussian(Law):
    """Integers floor(sigma * N + 1/2): P(k) = Phi((k + 1/2) / sigma) - Phi((k - 1/2) / sigma).

    Parameters
    ----------
    sigma : float
        In steps, greater than 0 and at most 2^50.

    Examples
    --------
    >>> law = RoundedGaussian(8.449357778662121)
    >>> round(law.std, 2), law.halfwidth(0.95)
    (8.45, 17)
    """

    sigma: float
    kind: ClassVar[Literal["gaussian"]] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", double_scale(self.sigma, "sigma"))

    @property
    def scale(self) -> float:
        """The parameter sigma."""
        return self.sigma

    @cached_property
    def std(self) -> float:
        """Standard deviation of the integer: above sigma, by rounding."""
        return float(gaussian_std(np.array([self.sigma]))[0])

    @property
    def p_zero(self) -> float:
        """P(X = 0)."""
        return math.erf(1 / (self.sigma * math.sqrt(8)))

    def log_pmf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X = k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """
        from scipy.special import log_ndtr

        away = np.abs(_points(k))
        if self.sigma >= 32:
            return _log_density(away / self.sigma, 0.5 / self.sigma)
        with np.errstate(over="ignore", invalid="ignore"):
            near, far = log_ndtr(-(away - 0.5) / self.sigma), log_ndtr(-(away + 0.5) / self.sigma)
            tail = near + np.log(-np.expm1(far - near))
        tail = np.where(np.isneginf(near), near, tail)
        return np.where(away == 0, math.log(self.p_zero), tail)

    def log_sf(self, k: ArrayLike) -> _Floats:
        """Return ln P(X > k) for integers ``k``, elementwise.

        Parameters
        ----------
        k : int or array_like of int

        Returns
        -------
        ndarray of float64
            Of the shape of ``k``; keeps its relative precision in both tails.
        """
        from scipy.special import log_ndtr

        with np.errstate(over="ignore"):
            return np.asarray(log_ndtr(-(_points(k) + 0.5) / self.sigma), dtype=np.float64)

    def _inversion(self) -> Inversion:
        return gaussian_inversion(self.sigma)

    def _tail_inversion(self, threshold: int) -> Inversion:
        return gaussian_tail_inversion(self.sigma, threshold)

    def _upper(self, p: float) -> float:
        from scipy.special import ndtri

        return 0.5 - self.sigma * float(ndtri(p))


def law_of(kind: str, scale: float) -> Law:
    """Return the law a record names: ``kind`` "laplace" or "gaussian" and its scale in steps."""
    laws: dict[str, type[DiscreteLaplace | RoundedGaussian]] = {
        "laplace": DiscreteLaplace,
        "gaussian": RoundedGaussian,
    }
    if kind not in laws:
        raise ValueError(f'a law is "laplace" or "gaussian", got {brief(kind)}.')
    return laws[kind](scale)


def laplace_std(scale: _Floats) -> _Floats:
    """Return the standard deviations of discrete Laplace laws, elementwise."""
    with np.errstate(over="ignore"):
        inverse = 1 / scale
    out: _Floats = math.sqrt(2) * np.exp(-inverse / 2) / -np.expm1(-inverse)
    return out


def gaussian_std(sigma: _Floats) -> _Floats:
    """Return the standard deviations of rounded Gaussian laws, shape (n,).

    sqrt(sigma^2 + 1/12) from sigma 2 on (Poisson summation: what is left out is below 1e-32 of it);
    below, the sum of (2 t - 1) P(|X| >= t) over t = 1, ..., 80.
    """
    from scipy.special import ndtr

    out: _Floats = np.sqrt(sigma**2 + 1 / 12)
    small = np.flatnonzero(sigma < 2)
    t = np.arange(1, 81)
    with np.errstate(over="ignore"):
        out[small] = np.sqrt(2 * (ndtr(-(t - 0.5) / sigma[small, None]) * (2 * t - 1)).sum(axis=1))
    return out


def _log_density(at: _Floats, half: float) -> _Floats:
    """Log of the normal measure of ``at`` +- ``half``, which is at most 1/64, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    # The density over its value at the near end, at the nodes of [at - half, at + half].
    tilt = np.multiply.outer(at * half, nodes + 1) + (half * nodes) ** 2 / 2
    measure = half * (np.exp(-tilt) * weights).sum(axis=-1)
    log_measure: _Floats = np.log(measure) + at * half - at**2 / 2 - math.log(2 * math.pi) / 2
    return log_measure


_DIRECT = 1 << 16


@lru_cache(maxsize=1024)
def _expected_max(law: Law, n: int) -> float:
    last = law._upper(1e-18 / n) + 2
    step = max(1.0, last / _DIRECT)
    start = 0.0 if step == 1 else (step - 1) / 2  # midpoints of [1/2, 1/2 + step], ... less 1
    return float(_exceeds(law, np.arange(start, last, step), n).sum() * step)


def _exceeds(law: Law, k: _Floats, n: int) -> _Floats:
    """P(the largest of n magnitudes exceeds k), k >= 0."""
    one: _Floats = np.minimum(1.0, 2 * law.sf(k))
    out: _Floats = -np.expm1(n * np.log1p(-one))
    return out


def _points(k: ArrayLike) -> _Floats:
    return np.asarray(k, dtype=np.float64)


def _probability(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {brief(value)}.")
    return number
