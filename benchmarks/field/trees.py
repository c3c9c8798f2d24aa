"""Trees: HB (Qardaji, Yang and Li, VLDB 2013) and PrivTree (Zhang, Xiao and Xie, SIGMOD 2016)."""

import math

import numpy as np
from field.noise import Array, measure

from geodp.estimators.norm_sub import norm_sub

HB_BRANCHING = {32: 8, 64: 8, 128: 16, 256: 16}  # a side, as the paper's rule gives for two levels


def hb(rng: np.random.Generator, counts: Array, side: int, cap: int, eps: float, delta: float) -> Array:
    """Return cells and one coarser level at half the budget each, made consistent and non-negative.

    Consistency by weighted least squares (Hay et al., VLDB 2010), then a projection of each family of
    children on their parent's total, which does better than cutting negatives off.
    """
    branching = HB_BRANCHING[side]
    table = counts.reshape(side, side)
    cells, std = measure(rng, table, eps / 2, delta / 2, float(cap), math.sqrt(cap))
    blocks, block_std = measure(rng, pooled(table, branching), eps / 2, delta / 2, float(cap), float(cap))
    below = branching**2 * std**2
    weight = below / (below + block_std**2)
    total = weight * blocks + (1 - weight) * pooled(cells, branching)
    total = norm_sub(total.ravel(), max(float(total.sum()), 0.0)).reshape(total.shape)
    families = _families(cells, branching)
    return _from_families(_on_simplex(families, total.ravel()), side, branching).ravel()


def privtree(rng: np.random.Generator, counts: Array, side: int, cap: int, eps: float, delta: float) -> Array:
    """Return the leaves of a quadtree that splits while a decaying noisy score stays above 0.

    beta = 4, theta = 0, half of eps for the shape of the tree (pure), half with all of delta for leaf counts.
    """
    fanout = 4
    scale = (2 * fanout - 1) / (fanout - 1) * cap / (eps / 2)
    decay = scale * math.log(fanout)
    levels = [counts.reshape(side, side)]
    while len(levels[-1]) > 1:
        levels.append(pooled(levels[-1], 2))
    result, active = np.zeros((side, side)), np.ones((1, 1), dtype=bool)
    for depth, table in enumerate(reversed(levels)):
        score = np.maximum(table - depth * decay, -decay) + rng.laplace(0, scale, table.shape)
        split = active & (score > 0) & (len(table) < side)
        noisy, _ = measure(rng, table, eps / 2, delta, float(cap), float(cap))
        width = side // len(table)
        result += enlarged(np.where(active & ~split, np.maximum(noisy, 0) / width**2, 0.0), width)
        active = enlarged(split, 2)
    return result.ravel()


def pooled(table: Array, width: int) -> Array:
    """Return sums of blocks of ``width`` x ``width``."""
    size = len(table) // width
    return table.reshape(size, width, size, width).sum(axis=(1, 3))


def enlarged(table: Array, width: int) -> Array:
    """Return each entry repeated over a block of ``width`` x ``width``."""
    return np.repeat(np.repeat(table, width, axis=0), width, axis=1)


def _families(table: Array, width: int) -> Array:
    size = len(table) // width
    return table.reshape(size, width, size, width).transpose(0, 2, 1, 3).reshape(size * size, width * width)


def _from_families(families: Array, side: int, width: int) -> Array:
    size = side // width
    return families.reshape(size, size, width, width).transpose(0, 2, 1, 3).reshape(side, side)


def _on_simplex(families: Array, totals: Array) -> Array:
    """Project each row on the non-negative numbers that add up to its total."""
    falling = -np.sort(-families, axis=1)
    shift = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, families.shape[1] + 1)
    last = (falling > shift).sum(axis=1) - 1
    chosen = shift[np.arange(len(families)), np.maximum(last, 0)]
    return np.where(totals[:, None] > 0, np.maximum(families - chosen[:, None], 0), 0.0)
