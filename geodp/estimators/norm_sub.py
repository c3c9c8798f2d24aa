"""Totals: negative numbers out, without the mass that cutting them would add."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["clamp", "keep_total", "norm_sub"]

Floats = NDArray[np.float64]


def clamp(noisy: Floats) -> Floats:
    """Return ``max(noisy, 0)``: simple, and far too much in total on a sparse map."""
    return np.maximum(noisy, 0.0)


def norm_sub(values: Floats, total: float) -> Floats:
    """Return the non-negative numbers nearest to ``values`` (least squares) that add up to ``total``.

    One constant is added to all and negative results become zero (the projection on a simplex, Held,
    Wolfe and Crowder 1974; for private histograms Kairouz et al. 2016). All zero if ``total <= 0``.

    Examples
    --------
    >>> norm_sub(np.array([5.0, 1.0, -3.0]), 4.0).tolist()
    [4.0, 0.0, 0.0]
    """
    if total <= 0 or not len(values):
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    shift = (total - np.cumsum(falling)) / np.arange(1, len(values) + 1)
    positive = falling + shift > 0
    positive[0] = True  # in exact arithmetic it is
    last = np.flatnonzero(positive)[-1]
    return np.asarray(np.maximum(values + shift[last], 0.0))


def keep_total(values: Floats, noisy_total: float, std: float) -> Floats:
    """Bring the total of non-negative estimates within one std of the noisy total (at least 0).

    Downward by :func:`norm_sub`. Upward by one factor, or, where that would be above 2 and blow up a few
    cells, by one constant for all.

    Parameters
    ----------
    values : float64 array (n,)
    noisy_total : float
    std : float
        Standard deviation of the noisy total.
    """
    centre, total = max(noisy_total, 0.0), float(values.sum())
    if total > centre + std:
        return norm_sub(values, centre + std)
    wanted = centre - std
    if total >= wanted or not len(values):
        return values
    if wanted <= 2 * total:
        return np.asarray(values * (wanted / total))
    return np.asarray(values + (wanted - total) / len(values))
