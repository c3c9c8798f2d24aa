"""Lower bounds on eps, delta and mu from counted releases, at a stated confidence.

An event that was fixed before the releases happened k times in n releases of one data set, and j times in m of its
neighbour. Clopper-Pearson bounds are exact: the probability of the event lies below (above) them with
the probability asked, whatever it is. From p >= a and q <= b follow eps >= ln((a - delta)/b), delta >= a - e^eps b, and
for a mechanism that is mu-GDP (Dong, Roth and Su 2022) mu >= z(1 - b) - z(1 - a).

A bound exceeds the truth with at most the probability ALARM, so one above the claim is a violation, not bad luck.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, binom

ALARM = 1e-6  # of all bounds of one audit together
UNLUCKY = 1e-8  # that a bound is lower than `sure` says, each way


def at_least(k, n, alarm):
    """Return the lower Clopper-Pearson bound of a probability."""
    return float(beta.ppf(alarm, k, n - k + 1)) if k else 0.0


def at_most(k, n, alarm):
    """Return the upper Clopper-Pearson bound of a probability."""
    return float(beta.isf(alarm, k + 1, n - k)) if k < n else 1.0


@dataclass(frozen=True)
class Bounds:
    """What an event's probability is at least in one data set and at most in the other."""

    p: float
    q: float

    def eps(self, delta=0.0):
        return math.log((self.p - float(delta)) / self.q) if self.p > delta else -math.inf

    def delta(self, eps):
        return self.p - math.exp(float(eps)) * self.q

    @property
    def mu(self):
        return float(ndtri(1 - self.q) - ndtri(1 - self.p))


def bounds(one, other, alarm=ALARM):
    """Return the bounds of an event from whether it happened, release by release, in both data sets."""
    return Bounds(
        at_least(int(np.sum(one)), len(one), alarm / 2), at_most(int(np.sum(other)), len(other), alarm / 2)
    )


def sure(n, p, q, alarm=ALARM, unlucky=UNLUCKY):
    """Return bounds that n releases of each reach, where the event's probabilities are p and q.

    They fail to with probability 2·``unlucky`` at most: counts are binomial, and bounds grow with k and fall with j.
    """
    k, j = int(binom.ppf(unlucky, n, p)), int(binom.isf(unlucky, n, q))
    return Bounds(at_least(k, n, alarm / 2), at_most(j, n, alarm / 2))


def trained(one, other):
    """Return an event that tells two samples of releases apart: a linear discriminant and a threshold.

    Parameters
    ----------
    one, other : float arrays, shape (n, d)
        Releases as numbers; used for nothing else afterwards.

    Returns
    -------
    callable
        Releases, shape (m, d), to whether the event happened.
    """
    spread = np.cov(one, rowvar=False) + np.cov(other, rowvar=False)
    size = np.trace(np.atleast_2d(spread)) / one.shape[1]
    spread = np.atleast_2d(spread) + (1e-12 * size + 1e-300) * np.eye(one.shape[1])
    weights = np.linalg.lstsq(spread, one.mean(axis=0) - other.mean(axis=0), rcond=None)[0]
    scores = np.sort(np.concatenate([one @ weights, other @ weights]))
    places = np.unique(scores[np.linspace(0, len(scores) - 1, 60).astype(int)])
    best = max(places, key=lambda t: bounds(one @ weights >= t, other @ weights >= t, 0.01).eps())
    return lambda found: found @ weights >= best
