"""UG and AG: uniform and adaptive grids (Qardaji, Yang and Li, ICDE 2013), c = 10, alpha = 1/2, c2 = 5.

Both papers take the number of points as known; so do we, to their advantage. One subject moves any sum of
cells by up to the cap, so coarse cells have L1 = L2 = cap.
"""

import math
from itertools import pairwise

import numpy as np
from field.noise import Array, measure, smaller_noise
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ug(rng: np.random.Generator, counts: Array, side: int, cap: int, eps: float, delta: float) -> Array:
    """Return the map of a uniform grid of sqrt(N eps / 10) cells a side, each spread over its area."""
    parts = _parts(counts.sum(), _effective(eps, delta, cap), side)
    edges = _edges(side, parts)
    l2 = math.sqrt(cap) if parts == side else float(cap)
    noisy, _ = measure(rng, _block_sums(counts.reshape(side, side), edges, edges), eps, delta, float(cap), l2)
    return _spread(np.maximum(noisy, 0), edges, edges).ravel()


def ag(rng: np.random.Generator, counts: Array, side: int, cap: int, eps: float, delta: float) -> Array:
    """Return the map of a coarse grid whose cells are split again by their own noisy counts."""
    half, small = eps / 2, delta / 2
    effective = 2 * _effective(half, small, cap)
    parts = min(max(10, math.ceil(math.sqrt(counts.sum() * effective / 10) / 4)), side)
    edges, table = _edges(side, parts), counts.reshape(side, side)
    coarse, coarse_std = measure(rng, _block_sums(table, edges, edges), half, small, float(cap), float(cap))
    result = np.zeros((side, side))
    for i, (top, bottom) in enumerate(pairwise(edges.tolist())):
        for j, (left, right) in enumerate(pairwise(edges.tolist())):
            block = table[top:bottom, left:right]
            pieces = math.ceil(math.sqrt(max(coarse[i, j], 0) * effective / 2 / 5))
            rows, cols = (_edges(size, min(max(pieces, 1), size)) for size in block.shape)
            fine, std = measure(rng, _block_sums(block, rows, cols), half, small, float(cap), float(cap))
            weight = fine.size * std**2 / (fine.size * std**2 + coarse_std**2)
            gap = weight * (coarse[i, j] - fine.sum())
            result[top:bottom, left:right] = _spread(np.maximum(fine + gap / fine.size, 0), rows, cols)
    return result.ravel()


def _effective(eps: float, delta: float, cap: int) -> float:
    """The eps at which continuous Laplace noise of scale 1/eps has the standard deviation we pay for."""
    return math.sqrt(2) / smaller_noise(eps, delta, float(cap), float(cap)).std


def _parts(total: float, effective: float, side: int) -> int:
    return int(np.clip(math.ceil(math.sqrt(total * effective / 10)), 1, side))


def _edges(size: int, parts: int) -> Ints:
    return np.unique(np.round(np.linspace(0, size, parts + 1)).astype(np.int64))


def _block_sums(table: Array, rows: Ints, cols: Ints) -> Array:
    return np.add.reduceat(np.add.reduceat(table, rows[:-1], axis=0), cols[:-1], axis=1)


def _spread(totals: Array, rows: Ints, cols: Ints) -> Array:
    """Spread each block's total evenly over its cells."""
    heights, widths = np.diff(rows), np.diff(cols)
    density = totals / (heights[:, None] * widths[None, :])
    return np.repeat(np.repeat(density, heights, axis=0), widths, axis=1)
