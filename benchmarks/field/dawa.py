"""DAWA (Li, Hay and Miklau, VLDB 2014): a private partition of the Hilbert curve, then bucket totals.

Stage 1 (a quarter of eps) finds the cheapest partition into buckets of 2^k cells whose starts are
multiples of half their length; a bucket costs its noisy L1 deviation from its mean plus the noise
of its total. Stage 2 measures bucket totals (identity workload).
"""

import math
from functools import cache

import numpy as np
from field.noise import Array, measure, smaller_noise
from numpy.typing import NDArray

from geodp.grids.lattice import hilbert


def dawa(rng: np.random.Generator, counts: Array, side: int, cap: int, eps: float, delta: float) -> Array:
    """Return the map of noisy bucket means."""
    order, shape, values = _curve(side), 0.25 * eps, eps - 0.25 * eps
    along = counts[order]
    std = smaller_noise(values, delta, float(cap), float(cap)).std
    starts = np.array(_partition(rng, along, 4 * cap / shape, std / math.sqrt(2)))
    totals, _ = measure(rng, np.add.reduceat(along, starts), values, delta, float(cap), float(cap))
    widths = np.diff([*starts, len(along)])
    result = np.empty(len(along))
    result[order] = np.repeat(np.maximum(totals, 0) / widths, widths)
    return result


@cache
def _curve(side: int) -> NDArray[np.int64]:
    row, col = np.divmod(np.arange(side * side), side)
    return np.argsort(hilbert(row, col), kind="stable")


def _partition(rng: np.random.Generator, along: Array, scale: float, bias: float) -> list[int]:
    """Return the starts of the buckets of least noisy cost, by dynamic programming."""
    n = len(along)
    longest = min(10, int(math.log2(n)))
    costs = [_costs(rng, along, k, scale * (longest + 1), bias) for k in range(longest + 1)]
    best, choice = [0.0] * (n + 1), [0] * (n + 1)
    for end in range(1, n + 1):
        least, chosen = math.inf, 0
        for k, (step, cost) in enumerate(costs):
            start = end - (1 << k)
            if start < 0:
                break
            if start % step == 0 and best[start] + cost[start // step] < least:
                least, chosen = best[start] + cost[start // step], start
        best[end], choice[end] = least, chosen
    starts, end = [], n
    while end > 0:
        end = choice[end]
        starts.append(end)
    return starts[::-1]


def _costs(
    rng: np.random.Generator, along: Array, k: int, scale: float, bias: float
) -> tuple[int, list[float]]:
    """Return the step between starts and the noisy cost of each bucket of 2^k cells."""
    length, step = 1 << k, max(1, (1 << k) // 2)
    buckets = np.lib.stride_tricks.sliding_window_view(along, length)[::step]
    deviation = np.abs(buckets - buckets.mean(axis=1, keepdims=True)).sum(axis=1)
    if k:
        deviation = deviation + rng.laplace(0, scale, len(deviation))
    return step, np.maximum(deviation + bias, 0).tolist()
