"""What a cell's neighbours say about it, without its own noise.

Means over rings of cells around each cell (the parent without the child that holds the cell, the
grandparent without the parent, ...; and stretches of the space-filling curve without the cell) are
independent of the cell's noise. A regression of the noisy counts on them therefore predicts the true
counts: the noise on the left-hand side is unbiased and belongs to nobody on the right.
"""

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.nesting import group_sums, lift

__all__ = ["predict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST_BLOCKS = 16
_WINDOWS = (2, 8, 32)
_ROWS = 1 << 18
# Values so far above the noise need no neighbours; without a limit, one of them would drown the rest.
_LARGEST = 2.0**20


def predict(
    noisy: Floats, first: Floats, std: float, siblings: tuple[Ints, ...], extra: tuple[Floats, ...] = ()
) -> Floats:
    """Return a linear prediction of each cell's count from other cells.

    Parameters
    ----------
    noisy, first : float64 arrays (n,)
        Along a space-filling curve: noisy counts, and a first estimate that depends on the cell's own
        noisy count only.
    std : float
        Standard deviation of the noise.
    siblings : tuple of int64 arrays (n,)
        Nested parent numbers, finest first.
    extra : tuple of float64 arrays (n,)
        Further covariates that are independent of the cells' noise.

    Returns
    -------
    float64 array (n,)
        In whole multiples of ``std / 2**20``, so that the last bits of a sum decide no grouping.
    """
    limit = _LARGEST * max(std, 1.0)
    maps = [np.clip(first, -limit, limit), np.clip(noisy, -limit, limit)]
    covariates = [ring for values in maps for ring in _rings(values, siblings)]
    covariates += [window for values in maps for window in _windows(values)]
    covariates += [np.clip(values, -limit, limit) for values in extra]
    grain = std / 2.0**20
    weight = 1 / (std**2 + np.maximum(covariates[0], 0))
    return np.rint(_regress(covariates, maps[1], weight) / grain) * grain


def _rings(values: Floats, siblings: tuple[Ints, ...]) -> list[Floats]:
    """Mean over each parent without the child that holds the cell, one array per level."""
    rings: list[Floats] = []
    total: Floats = values
    number: Floats = np.ones(len(values))
    child: Ints | None = None
    for parent in siblings:
        blocks = int(parent.max()) + 1
        if blocks < _FEWEST_BLOCKS:
            break
        above = parent if child is None else lift(parent, child, len(total))
        totals, numbers = group_sums(above, total, blocks), group_sums(above, number, blocks)
        others = numbers[above] - number
        mean = np.where(others > 0, (totals[above] - total) / np.maximum(others, 1), 0.0)
        rings.append(mean if child is None else mean[child])
        total, number, child = totals, numbers, parent
    return rings


def _windows(values: Floats) -> list[Floats]:
    """Mean over stretches of the curve on both sides, each without the stretch inside it."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    windows: list[Floats] = []
    inner, least = values, 0
    for reach in _WINDOWS:
        total = _stretch(running, reach)
        window = total - inner
        _divide(window, least, reach)
        windows.append(window)
        inner, least = total, reach
    return windows


def _stretch(running: Floats, reach: int) -> Floats:
    """Sum from ``reach`` places before to ``reach`` places after each, given the running sums."""
    size = len(running) - 1
    sums = np.full(size, running[-1])
    sums[: max(size - reach, 0)] = running[reach + 1 :]
    sums[reach:] -= running[: max(size - reach, 0)]
    return sums


def _divide(window: Floats, inner: int, outer: int) -> None:
    """Divide each sum by its number of places more than ``inner`` and at most ``outer`` away; 0 of them leave it.

    Only near the ends of the curve are there fewer than 2 (outer - inner): millions of numbers need no array.
    """
    size, left = len(window), min(outer, len(window))
    right = max(size - outer, left)
    window[left:right] /= 2 * (outer - inner)
    ends = np.concatenate([np.arange(left), np.arange(right, size)])
    reached = [np.minimum(ends, far) + np.minimum(size - 1 - ends, far) for far in (inner, outer)]
    window[ends] /= np.maximum(reached[1] - reached[0], 1)


def _regress(covariates: list[Floats], target: Floats, weight: Floats) -> Floats:
    """Weighted least squares with a standard normal prior on every slope, fitted values for all rows.

    Slopes of means on means are of order one, so the prior costs nothing where data speak and keeps
    empty or repeated covariates from blowing up. At most 2**18 evenly spaced rows set the slopes.
    """
    every = slice(None, None, -(-len(target) // _ROWS))
    columns = [np.ones(len(target[every])), *(values[every] for values in covariates)]
    size, weighted = len(columns), [column * weight[every] for column in columns]
    gram = np.diag(np.r_[1e-9 * weighted[0].sum(), np.ones(size - 1)])
    for i in range(size):
        for j in range(i + 1):
            gram[i, j] += np.einsum("i,i->", weighted[i], columns[j])
            gram[j, i] = gram[i, j]
    slopes = _solve(gram, np.array([np.einsum("i,i->", column, target[every]) for column in weighted]))
    fitted, term = np.full(len(target), slopes[0]), np.empty(len(target))
    for slope, values in zip(slopes[1:], covariates, strict=True):
        fitted += np.multiply(slope, values, out=term)
    return fitted


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive definite system by elimination, in an order of operations that never varies."""
    work = np.column_stack([matrix, right])
    size = len(right)
    for i in range(size):
        work[i + 1 :] -= (work[i + 1 :, i] / work[i, i])[:, None] * work[i]
    solution = np.zeros(size)
    for i in reversed(range(size)):
        solution[i] = (work[i, -1] - (work[i, i + 1 : -1] * solution[i + 1 :]).sum()) / work[i, i]
    return solution
