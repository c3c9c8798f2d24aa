"""Empirical Bayes for one number: what noisy counts say about the counts they came from.

Nothing is assumed about the counts but that they are not negative. Their distribution, the prior, is
fitted to the noisy numbers by the EM algorithm for the nonparametric maximum likelihood estimate
(Kiefer and Wolfowitz 1956), with the *exact* law of the integer noise: a continuous likelihood on
integer noise inflates totals by half on sparse maps.

Products of small matrices go through ``np.einsum``, whose plain loops give the same bits for any
number of threads, and never through BLAS, whose sums depend on it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Likelihood",
    "NoiseLaw",
    "Rule",
    "bin_probability",
    "build_likelihood",
    "fit_prior",
    "mean_rule",
    "median_rule",
    "noise_std",
    "tilt",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# In standard deviations of the noise: bins and steps of the prior, the point above which a noisy count
# is its own estimate, and how far below 0 noise reaches.
_BIN, _STEP = 8, 5
_CUT, _BLEND = 14, (4, 3)
_REACH = {"gaussian": 8, "laplace": 14}
_TINY = 1e-300
_LEAST_STD = 2.0**-20


class NoiseLaw(Protocol):
    """What an estimator needs to know of the noise: a symmetric law on the integers."""

    @property
    def kind(self) -> str:
        """``"laplace"`` or ``"gaussian"``."""

    @property
    def std(self) -> float:
        """Standard deviation."""

    def cdf(self, k: Ints, /) -> Floats:
        """P(X <= k), elementwise."""


@dataclass(frozen=True)
class Likelihood:
    """The noise law on a grid: P(noisy count in bin i | count = support[j]).

    Attributes
    ----------
    std : float
        Standard deviation of the noise.
    width : float
        Integers in one bin.
    cut : float
        Noisy counts above lie in no bin; they are their own estimates.
    middle : float64 array (bins,)
        Middles of the bins.
    support : float64 array (points,)
        The counts a prior may put weight on, from 0.
    table : float64 array (bins, points)
    """

    std: float
    width: float
    cut: float
    middle: Floats
    support: Floats
    table: Floats

    def bins(self, noisy: Floats) -> NDArray[np.int32]:
        """Return the bin of each noisy count; ``len(middle)`` stands for all above the cut."""
        edge = self.middle[0] - self.width / 2
        places = np.clip(np.floor((noisy - edge) / self.width), 0, len(self.middle))
        return np.asarray(places.astype(np.int32))


@dataclass(frozen=True)
class Rule:
    """Estimates and their variances at the middles of the bins, for one or several priors.

    Attributes
    ----------
    value, variance : float64 arrays (priors, bins)
    """

    value: Floats
    variance: Floats

    def __call__(
        self, likelihood: Likelihood, noisy: Floats, which: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """Return estimate and variance for each noisy count, under prior ``which[i]`` (the only one)."""
        place = np.clip((noisy - likelihood.middle[0]) / likelihood.width, 0, len(likelihood.middle) - 1)
        low = np.minimum(place.astype(np.int64), len(likelihood.middle) - 2)
        place -= low
        if which is not None:
            low += which * len(likelihood.middle)
        value, variance = (_between(table.ravel(), low, place) for table in (self.value, self.variance))
        above = np.flatnonzero(noisy >= likelihood.cut)
        value[above], variance[above] = noisy[above], likelihood.std**2
        return value, variance


def noise_std(law: NoiseLaw) -> float:
    """Return the standard deviation, kept away from 0: a law that is all but zero rounds to exactly 0."""
    return max(float(law.std), _LEAST_STD)


def build_likelihood(law: NoiseLaw) -> Likelihood:
    """Return the likelihood of binned noisy counts, exact for every bin and point."""
    std = noise_std(law)
    width, step = max(1, round(std / _BIN)), max(1, round(std / _STEP))
    above, below = (max(1, -int(-reach * std // width)) for reach in (_CUT, _REACH[law.kind]))
    low = -below * width + np.arange(above + below, dtype=np.int64) * width
    support = step * np.arange(int((above * width + 4 * std) // step) + 2, dtype=np.int64)
    table = bin_probability(law, low[:, None] - support, width)
    # All that lies farther down belongs to the lowest bin.
    table[0] = law.cdf(low[0] + width - 1 - support)
    middle = np.asarray(low + (width - 1) / 2, dtype=np.float64)
    cut, points = float(above * width), support.astype(np.float64)
    return Likelihood(std, float(width), cut, middle, points, np.maximum(table, _TINY))


def fit_prior(likelihood: Likelihood, histogram: Ints, start: Floats | None, iterations: int) -> Floats:
    """Return the prior after some EM steps from ``start`` (90 % at zero, the rest spread evenly).

    Parameters
    ----------
    likelihood : Likelihood
    histogram : int64 array (bins,)
        Number of noisy counts in each bin.
    start : float64 array (points,) or None
    iterations : int
        At most so many steps; fewer than convergence needs keep the fit near ``start``, which is what
        protects small groups from overfitting.
    """
    prior = _mostly_zero(len(likelihood.support)) if start is None else start
    seen = np.flatnonzero(histogram)
    if not len(seen):
        return prior
    table, weight = likelihood.table[seen], histogram[seen] / histogram.sum()
    for _ in range(iterations):
        before, mixture = prior, np.einsum("ij,j->i", table, prior)
        prior = prior * np.einsum("ij,i->j", table, weight / np.maximum(mixture, _TINY))
        if np.abs(prior - before).sum() < 1e-7:
            break
    return np.asarray(prior / prior.sum())


def tilt(prior: Floats, support: Floats, mean: float) -> Floats:
    """Return the prior nearest to ``prior`` (in relative entropy) with a given mean: prior x exp(t support).

    Examples
    --------
    >>> tilt(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 0.25).round(3).tolist()
    [0.75, 0.25]
    """
    logs, unit = np.log(np.maximum(prior, _TINY)), support / support[-1]
    low, high = -1e4, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        tilted = np.exp(logs + middle * unit - (logs + middle * unit).max())
        tilted /= tilted.sum()
        low, high = (middle, high) if (tilted * support).sum() < mean else (low, middle)
    return np.asarray(tilted)


def mean_rule(likelihood: Likelihood, priors: Floats) -> Rule:
    """Return posterior means (never falling in the noisy count) and variances, (priors, bins) each."""
    means, variances = [], []
    for prior in priors:
        posterior = _posterior(likelihood, prior)
        mean = np.einsum("ij,j->i", posterior, likelihood.support)
        off = likelihood.support - mean[:, None]
        means.append(_rising(likelihood, mean))
        spread = np.einsum("ij,ij,ij->i", posterior, off, off)
        variances.append(np.where(likelihood.middle > _knee(likelihood), likelihood.std**2, spread))
    return Rule(np.array(means), np.array(variances))


def median_rule(likelihood: Likelihood, priors: Floats) -> Rule:
    """Return posterior medians, (priors, bins): crisper than means, most cells exactly zero."""
    medians = []
    for prior in priors:
        below = np.cumsum(_posterior(likelihood, prior), axis=1) < 0.5
        place = np.minimum(below.sum(axis=1), len(likelihood.support) - 1)
        medians.append(_rising(likelihood, likelihood.support[place]))
    return Rule(np.array(medians), mean_rule(likelihood, priors).variance)


def bin_probability(law: NoiseLaw, first: Ints, width: int) -> Floats:
    """Return P(first <= X < first + width), from the tail on the near side so that no digits cancel."""
    last = first + (width - 1)
    left = law.cdf(last) - law.cdf(first - 1)
    right = law.cdf(-first) - law.cdf(-last - 1)
    return np.where(first > 0, right, left)


def _mostly_zero(points: int) -> Floats:
    prior = np.full(points, 0.1 / (points - 1))
    prior[0] = 0.9
    return prior


def _posterior(likelihood: Likelihood, prior: Floats) -> Floats:
    joint = likelihood.table * prior
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY))


def _between(table: Floats, low: Ints, fraction: Floats) -> Floats:
    """Linear interpolation in a flattened table."""
    start = table[low]
    return start + fraction * (table[low + 1] - start)


def _knee(likelihood: Likelihood) -> float:
    return likelihood.cut - _BLEND[0] * likelihood.std


def _rising(likelihood: Likelihood, value: Floats) -> Floats:
    """Blend into the noisy count itself on the way to the cut, never falling, never above the cut."""
    share = np.clip((likelihood.middle - _knee(likelihood)) / (_BLEND[1] * likelihood.std), 0, 1)
    blended = np.maximum.accumulate(value + share * (likelihood.middle - value))
    return np.asarray(np.clip(blended, 0, likelihood.cut))
