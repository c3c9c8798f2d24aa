"""Reconciliation over coarse blocks: cells that are right one by one, and regions that are right too.

Cell estimates lean on priors, and a prior that is a little too high or low for a region shifts the
whole region. Totals of coarse blocks show it: sums of the same noisy counts (which cost nothing), or
totals that were measured by themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.nesting import group_sums, lift
from geodp.estimators.priors import NoiseLaw

__all__ = ["Measured", "reconcile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST_BLOCKS = 16
_SPREAD = 2.0  # of what cells lean on priors, at least: the cells of one block are off together
_TINY = 1e-300
_NEWTON = 12
_DUST = 1e-12  # of its play: less is nothing to take from


@dataclass(frozen=True)
class Measured:
    """Noisy totals of the blocks of one level, and the law of their noise."""

    noisy: NDArray[np.int64]
    law: NoiseLaw


@dataclass(frozen=True)
class _Level:
    """What is known of each block.

    Its estimate, how far that may be off (``own``: by the noise of its cells; ``lean``: by the priors it
    leans on), the unbiased total of its noisy counts and that one's variance.
    """

    estimate: Floats
    own: Floats
    lean: Floats
    total: Floats
    variance: Floats

    @property
    def play(self) -> Floats:
        return self.own + self.lean

    def gathered(self, parent: Ints) -> "_Level":
        size = int(parent.max()) + 1
        return _Level(*(group_sums(parent, part, size) for part in vars(self).values()))


def reconcile(
    noisy: Floats,
    std: float,
    estimate: Floats,
    variance: Floats,
    blocks: tuple[Ints, ...],
    measured: Sequence[Measured | None] = (),
) -> Floats:
    """Return cell estimates that agree with what coarse blocks say, >= 0.

    Parameters
    ----------
    noisy, estimate, variance : float64 arrays (n,)
        Noisy counts, and the cells' estimates with their posterior variances.
    std : float
        Standard deviation of a cell's noise.
    blocks : tuple of int64 arrays (n,)
        Nested blockings, finest first.
    measured : sequence of Measured or None, as long as ``blocks``
        Separately measured totals; ``None`` for levels without.

    Notes
    -----
    Upward, each block's estimate M with play W moves to M + W/(W + vt) (t - M), where (t, vt) is the
    empirical-Bayes estimate of the block from its unbiased total. At the top the total of the map is
    settled by inverse variance. Downward, children add up to their block.

    Where blocks are only sums of the same noisy counts, the play of a cell is u = v (1 - v/std^2), v its
    posterior variance: what its prior, not its own noisy count, decides. A cell that stands far above
    the noise is its own witness (v = std^2) and takes no part; spreading corrections by v makes heavy
    cells pay for the noise of their empty neighbours. Separate measurements do know more than the
    cells, so there the play is v plus a multiple of u, at least 2 and fitted for each level, because
    cells of one block are off together.
    """
    levels = list(measured) or [None] * len(blocks)
    known = any(level is not None for level in levels)
    lean = np.maximum(variance * (1 - variance / std**2), 1e-9 * std**2)
    own, lean = (variance, _SPREAD * lean) if known else (np.zeros_like(variance), lean)
    level = _Level(estimate, own, lean, noisy, np.full(len(noisy), std**2))
    path = [level]
    parents: list[Ints] = []
    child: Ints | None = None
    for block, measurement in zip(blocks, levels, strict=True):
        parents.append(block if child is None else lift(block, child, len(level.estimate)))
        level = _updated(level.gathered(parents[-1]), measurement)
        path.append(level)
        child = block
    target = np.array([_grand_total(level)])
    top = np.zeros(len(level.estimate), dtype=np.int64)
    for below, parent in zip(reversed(path), reversed([*parents, top]), strict=True):
        target = distribute(below.estimate, below.play, parent, target)
    return target


def distribute(estimate: Floats, play: Floats, parent: Ints, target: Floats) -> Floats:
    """Move estimates so that the children of each block add up to its target.

    Upward by shares of the play. Downward to ``m / (1 + lam play / m)`` with one lam >= 0 for the block:
    no estimate turns negative, and none becomes zero that was not.
    """
    size = len(target)
    gap = target - group_sums(parent, estimate, size)
    room = np.maximum(group_sums(parent, play, size), _TINY)
    moved = estimate + play * (np.maximum(gap, 0) / room)[parent]
    low = np.flatnonzero((gap < 0)[parent] & (estimate > _DUST * play))
    if len(low):
        moved[low] = _lowered(estimate[low], play[low] / estimate[low], parent[low], target)
    return np.asarray(moved)


def _lowered(estimate: Floats, ratio: Floats, parent: Ints, target: Floats) -> Floats:
    """Solve sum m / (1 + lam ratio) = target, by Newton's method on the reciprocal, nearly straight in lam."""
    size = len(target)
    lam = np.zeros(size)
    goal = np.maximum(target, 1e-6 * group_sums(parent, estimate, size))
    for _ in range(_NEWTON):
        divisor = 1 + lam[parent] * ratio
        shrunk = estimate / divisor
        total = group_sums(parent, shrunk, size)
        if (total <= (1 + 1e-6) * goal).all():
            break
        slope = np.maximum(group_sums(parent, shrunk * ratio / divisor, size), _TINY)
        lam += np.maximum(total - goal, 0) / slope * (total / np.maximum(goal, _TINY))
    shrunk = estimate / (1 + lam[parent] * ratio)
    scale = target / np.maximum(group_sums(parent, shrunk, size), _TINY)
    return np.asarray(shrunk * scale[parent])


def _updated(level: _Level, measurement: Measured | None) -> _Level:
    """Combine the children's estimates with the block totals' own evidence."""
    total, variance, lean = level.total, level.variance, level.lean
    if measurement is not None:
        noise = measurement.law.std**2
        share = variance / (variance + noise)
        lean = lean * _stretch(measurement.noisy - level.estimate, level, noise)
        total, variance = share * measurement.noisy + (1 - share) * total, share * noise
    target, doubt = _block_posterior(total, variance)
    play = level.own + lean
    gain = play / (play + np.maximum(doubt, 1e-4 * variance))
    estimate = np.maximum(level.estimate + gain * (target - level.estimate), 0)
    rest = 1 - gain
    return _Level(estimate, level.own * rest, np.maximum(lean * rest, 1e-9 * variance), total, variance)


def _stretch(gap: Floats, level: _Level, noise: float) -> float:
    """How many times more than assumed the estimates lean off, at least 1: weighted least squares."""
    weight = level.lean / (noise + level.play) ** 2
    excess = (weight * (gap**2 - noise - level.own)).sum()
    return max(float(excess / np.maximum((weight * level.lean).sum(), _TINY)), 1.0)


def _block_posterior(total: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Empirical-Bayes estimates of block totals from unbiased ones with Gaussian noise."""
    if len(total) < _FEWEST_BLOCKS:
        return np.maximum(total, 0), variance
    std = np.sqrt(variance)
    typical = float(np.median(std))
    support = np.arange(92) * (typical / 5)
    table = np.exp(-0.5 * ((total[:, None] - support) / std[:, None]) ** 2) + _TINY
    prior = _fit(table[total < 14 * typical], len(support))
    posterior = table * prior
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = np.einsum("ij,j->i", posterior, support)
    off = support - mean[:, None]
    spread = np.einsum("ij,ij,ij->i", posterior, off, off)
    share = np.clip((total - 10 * typical) / (3 * typical), 0, 1)
    value = np.maximum((1 - share) * mean + share * total, 0)
    return value, np.where(total > 10 * typical, variance, spread)


def _fit(table: Floats, points: int) -> Floats:
    prior = np.full(points, 0.1 / (points - 1))
    prior[0] = 0.9
    for _ in range(500 if len(table) else 0):
        mixture = np.einsum("ij,j->i", table, prior)
        prior = prior * np.einsum("ij,i->j", table, 1 / mixture) / len(table)
    return np.asarray(prior / prior.sum())


def _grand_total(level: _Level) -> float:
    """Return the map's total by inverse variance, within one std of the noisy total."""
    total, std = float(level.total.sum()), float(np.sqrt(level.variance.sum()))
    estimate, play = float(level.estimate.sum()), float(level.play.sum())
    settled = estimate + play / (play + std**2) * (total - estimate)
    return max(min(max(settled, max(total, 0.0) - std), max(total, 0.0) + std), 0.0)
