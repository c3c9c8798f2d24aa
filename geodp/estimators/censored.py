"""Counts of the cells that passed a threshold, from those cells and from how many did not.

Where a map returns only noisy counts of at least T, the rest of its public cells are known too: each
lies below T. That is one more bin of the histogram that the prior is fitted to, and by far the fullest. Without it
the few that chance carried over the threshold would be taken at their word.
"""

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.priors import Floats, Ints, Likelihood, NoiseLaw, bin_probability, mean_rule, noise_std

__all__ = ["posterior_means"]

_BIN, _STEP = 8, 5
_CUT, _BEYOND = 14, 4
_ITERATIONS = 200
_TINY = 1e-300


def posterior_means(noisy: NDArray[np.int64], law: NoiseLaw, threshold: int, n: int) -> Floats:
    """Return the posterior mean of every returned cell's count.

    Parameters
    ----------
    noisy : int64 array (k,)
        Noisy counts, all at least ``threshold``.
    law : NoiseLaw
        Exact law of the integer noise.
    threshold : int
        What a noisy count had to reach.
    n : int
        Number of public cells; the other ``n - k`` are known to lie below.

    Returns
    -------
    float64 array (k,)
        At least 0, never falling in the noisy count, which it meets 14 standard deviations above
        the threshold.

    Notes
    -----
    The prior has its mass on 0 and on multiples of a fifth of the noise's standard deviation, and is fitted
    by EM. Counts so small that they never pass look like 0 from here, and are left where the start puts
    them: all cells that did not pass at 0, and one more for each that did, spread evenly.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> posterior_means(np.array([30, 31, 90]), DiscreteLaplace(2.0), 30, 10**6).round().tolist()
    [27.0, 27.0, 90.0]
    """
    if not len(noisy):
        return np.empty(0, dtype=np.float64)
    values = noisy.astype(np.float64)
    likelihood = _above(law, threshold)
    below = np.maximum(law.cdf(threshold - 1 - likelihood.support.astype(np.int64)), _TINY)
    histogram = np.bincount(likelihood.bins(values), minlength=len(likelihood.middle) + 1)[:-1]
    prior = _fit(likelihood, below, histogram, max(n - len(noisy), 0))
    return mean_rule(likelihood, prior[None, :])(likelihood, values)[0]


def _above(law: NoiseLaw, threshold: int) -> Likelihood:
    """Return the likelihood of binned noisy counts from the threshold up."""
    std = noise_std(law)
    width, step = max(1, round(std / _BIN)), max(1, round(std / _STEP))
    bins = max(2, -int(-_CUT * std // width))
    low = threshold + width * np.arange(bins, dtype=np.int64)
    top = threshold + bins * width
    support = step * np.arange(int((top + _BEYOND * std) // step) + 2, dtype=np.int64)
    table = bin_probability(law, low[:, None] - support, width)
    middle = np.asarray(low + (width - 1) / 2, dtype=np.float64)
    points = support.astype(np.float64)
    return Likelihood(std, float(width), float(top), middle, points, np.maximum(table, _TINY))


def _fit(likelihood: Likelihood, below: Floats, histogram: Ints, others: int) -> Floats:
    """Return the prior by EM over the bins and the one censored bin."""
    seen = int(histogram.sum())
    total = float(seen + others)
    prior = np.full(len(below), max(seen, 1) / (total + 1) / (len(below) - 1))
    prior[0] = max(1 - prior[1:].sum(), _TINY)
    if not total:  # every public cell is so full that it is taken at its word
        return np.asarray(prior / prior.sum())
    weight, rest = histogram / total, others / total
    for _ in range(_ITERATIONS):
        before = prior
        mixture = np.maximum(np.einsum("ij,j->i", likelihood.table, prior), _TINY)
        passed = np.einsum("ij,i->j", likelihood.table, weight / mixture)
        prior = prior * (passed + rest * below / max(float((below * prior).sum()), _TINY))
        if np.abs(prior - before).sum() < 1e-9 * seen / total:
            break
    return np.asarray(prior / prior.sum())
