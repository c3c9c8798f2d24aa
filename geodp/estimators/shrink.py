"""Spatial empirical Bayes: each cell against the cells that its neighbourhood makes it resemble.

1. One prior for the whole map gives a first estimate of every cell.
2. A regression on the neighbours (see :mod:`geodp.estimators.covariates`) predicts every cell from others.
3. Cells are grouped by that prediction: the lower half, the next quarter, the next eighth, ... Each group
   gets a prior of its own, and each cell the posterior mean under the priors of its group and,
   the nearer it lies to the next group, of that one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.covariates import predict
from geodp.estimators.priors import (
    Likelihood,
    NoiseLaw,
    Rule,
    build_likelihood,
    fit_prior,
    mean_rule,
    tilt,
)

__all__ = ["spatial_posterior"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST_CELLS = 600
_FEWEST_PARENTS = 16
_SMALLEST_GROUP = 150
_PARTS = 8  # of a group, each with its own blend of two priors
_LONG, _SHORT = 2000, 25  # EM steps for the one prior of the map, and for those of groups


def spatial_posterior(
    noisy: Floats,
    law: NoiseLaw,
    siblings: tuple[Ints, ...],
    extra: tuple[Floats, ...] = (),
    make_rule: Callable[[Likelihood, Floats], Rule] = mean_rule,
) -> tuple[Floats, Floats]:
    """Return an estimate (float64, >= 0) and a posterior variance for each cell.

    Parameters
    ----------
    noisy : float64 array (n,)
    law : NoiseLaw
    siblings : tuple of int64 arrays (n,)
        Nested parent numbers, finest first, for cells along a space-filling curve. Below 600 cells,
        or without siblings, one prior serves all cells.
    extra : tuple of float64 arrays (n,)
        Further covariates, such as separately measured block means.
    make_rule : callable
        :func:`mean_rule` or :func:`median_rule`.
    """
    likelihood = build_likelihood(law)
    bins, n_bins = likelihood.bins(noisy), len(likelihood.middle)
    prior = fit_prior(likelihood, np.bincount(bins, minlength=n_bins + 1)[:n_bins], None, _LONG)
    alone = np.array([prior])
    if len(noisy) < _FEWEST_CELLS or not _usable(siblings):
        return make_rule(likelihood, alone)(likelihood, noisy)
    first, _ = mean_rule(likelihood, alone)(likelihood, noisy)
    prediction = predict(noisy, first, likelihood.std, siblings, extra)
    parts = _cut(prediction)
    priors = _group_priors(likelihood, prior, noisy, prediction, bins, parts // _PARTS)
    rule = _blend(make_rule(likelihood, priors))
    return rule(likelihood, noisy, parts)


def _usable(siblings: tuple[Ints, ...]) -> bool:
    return bool(siblings) and int(siblings[0].max()) >= _FEWEST_PARENTS - 1


def _cut(prediction: Floats) -> Ints:
    """Return the part of each cell: eighths of halving groups, numbered from below.

    Parts are cut by value at ranks, so equal predictions are never split, in whatever order they come.
    """
    n = len(prediction)
    edges = [0]
    while (n - edges[-1]) // 2 > _SMALLEST_GROUP:
        edges.append(edges[-1] + (n - edges[-1] + 1) // 2)
    sizes = np.diff([*edges, n])
    starts = np.concatenate(
        [edge + size * np.arange(_PARTS) // _PARTS for edge, size in zip(edges, sizes, strict=True)]
    )
    cuts = np.sort(prediction)[starts[1:]]
    return np.searchsorted(cuts, prediction, side="right")


def _group_priors(
    likelihood: Likelihood,
    prior: Floats,
    noisy: Floats,
    prediction: Floats,
    bins: NDArray[np.int32],
    group: Ints,
) -> Floats:
    """Fit one prior per group, shape (groups, points).

    Each fit starts from the map's prior tilted to the mean that the group should have, halfway between
    its noisy and its predicted mean: a short EM from the map's own prior would leave the emptiest
    group too full, and a long one overfits.
    """
    groups, n_bins = int(group.max()) + 1, len(likelihood.middle)
    table = np.bincount(group * (n_bins + 1) + bins, minlength=groups * (n_bins + 1))
    histograms = table.reshape(groups, n_bins + 1)[:, :n_bins]
    inside = bins < n_bins
    means = np.bincount(group[inside], (noisy[inside] + prediction[inside]) / 2, minlength=groups)
    priors: list[Floats] = []
    for histogram, mean in zip(histograms, means, strict=True):
        number = int(histogram.sum())
        if not number:  # ties left the group empty, or all of it lies above the cut
            priors.append(priors[-1] if priors else prior)
            continue
        least = 0.05 * likelihood.std / np.sqrt(number)
        start = tilt(prior, likelihood.support, max(mean / number, least))
        priors.append(fit_prior(likelihood, histogram, start, _SHORT))
    return np.array(priors)


def _blend(rule: Rule) -> Rule:
    """Return the rules of the parts: each group's rule, blended with the neighbour's that is nearer."""
    group, part = np.divmod(np.arange(len(rule.value) * _PARTS), _PARTS)
    place = (part + 0.5) / _PARTS
    other = np.clip(np.where(place < 0.5, group - 1, group + 1), 0, len(rule.value) - 1)
    share = np.abs(place - 0.5)[:, None]
    value, variance = (
        (1 - share) * table[group] + share * table[other] for table in (rule.value, rule.variance)
    )
    return Rule(value, variance)
