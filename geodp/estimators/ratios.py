"""From a noisy sum and a noisy count to a mean: post-processing with an interval that holds.

``S`` and ``N`` are measured with independent integer noise. A cell whose count is lost in its noise says
nothing about its mean, so its estimate is the overall mean, and its interval the whole range.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from geodp.mechanisms.laws import Law

__all__ = ["fieller", "shrunk_ratio"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CHUNK = 1 << 16
_KNOTS = 129
_NODES = 401
_VOICES = 3
# Far below any spread that matters, and far above where squares of it underflow.
_LEAST = 1e-200


def shrunk_ratio(
    s: Floats,
    n: Ints,
    smooth: Floats,
    std_s: float,
    std_n: float,
    half_range: float,
    overall: float | None = None,
) -> Floats:
    """Return the ratio of each cell, drawn towards the overall ratio by how much of it is noise.

    Parameters
    ----------
    s, n : arrays, shape (k,)
        Noisy centred sums, in the value's unit, and noisy counts.
    smooth : float64 array, shape (k,)
        Non-negative estimates of the counts, M.
    std_s, std_n : float
        Standard deviations of the noise of ``s`` and ``n``.
    half_range : float
        Ratios lie in [-half_range, half_range].
    overall : float, optional
        What an empty cell's ratio is; by default that of all cells together.

    Returns
    -------
    float64 array, shape (k,)
        ``g + M(S - gN)/(M² + v/t²)``, finite everywhere: g the overall ratio, v the noise variance of
        S - gN, t² the variance of the ratios between cells, estimated by moments.
    """
    if overall is None:
        overall = _overall(s, n, std_n, half_range)
    residual = s - overall * n
    noise = max(std_s**2 + overall**2 * std_n**2, _LEAST)
    between = _between(residual, smooth, noise, half_range)
    ratio = overall + smooth * residual / (smooth**2 + noise / between)
    return np.clip(ratio, -half_range, half_range)


def fieller(
    s: Ints, n: Ints, law_s: Law, law_n: Law, step: float, half_range: float, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ends of the noise interval of each ratio, from the exact joint law.

    A ratio r is kept while ``|S - rN|`` is no larger than t(r), the ``level`` quantile of ``|X_S - r X_N|``,
    which is the noise that is there at the true ratio (Fieller 1954). The interval spans all kept r in
    [-half_range, half_range], and a step more for the rounding of records. It is everything where N is
    not above its own noise, and one end of the range where no r is kept.

    Parameters
    ----------
    s, n : int64 arrays, shape (k,)
        Noisy sums, in lattice steps, and noisy counts.
    law_s, law_n : Law
        The noise of each.
    step : float
        Lattice step of the sums, in the value's unit.
    half_range : float
        Ratios lie in [-half_range, half_range].
    level : float
        Least probability, over the noise, that the interval holds the true ratio.
    """
    ratios, reach, steepest = _reach(law_s, law_n, step, half_range, level)
    total, count = s.astype(np.float64) * step, n.astype(np.float64)
    lower, upper = np.full(len(s), -half_range), np.full(len(s), half_range)
    sure = np.flatnonzero(n > max(law_n.halfwidth(level), steepest))
    for start in range(0, len(sure), _CHUNK):
        part = sure[start : start + _CHUNK]
        upper[part] = _last_kept(total[part], count[part], ratios, reach) + step
        lower[part] = -_last_kept(-total[part], count[part], ratios, reach) - step
    return np.maximum(lower, -half_range), np.minimum(upper, half_range)


def _overall(s: Floats, n: Ints, std_n: float, half_range: float) -> float:
    total = float(n.sum(dtype=np.float64))
    if total <= 2 * std_n * np.sqrt(len(n)):
        return 0.0
    return float(np.clip(s.sum() / total, -half_range, half_range))


def _between(residual: Floats, smooth: Floats, noise: float, half_range: float) -> float:
    """Estimate the variance of ratios between cells, each cell weighted by what it tells of it.

    A few cells tell too little, so the guess of a third of the range is one more voice, worth three cells.
    """
    guess = (half_range / 3) ** 2
    trust = smooth / (smooth**2 + noise / guess)
    told = float(np.sum(trust**2 * (residual**2 - noise))) + _VOICES * guess
    found = told / (float(np.sum((trust * smooth) ** 2)) + _VOICES)
    return float(np.clip(found, (half_range / 50) ** 2, half_range**2))


def _last_kept(s: Floats, n: Floats, ratios: Floats, reach: Floats) -> Floats:
    """Return the largest r with ``r·n - reach(r) <= s``; the left side grows with r."""
    low, high = np.zeros(len(s), np.int64), np.full(len(s), len(ratios) - 1)
    for _ in range(len(ratios).bit_length()):
        middle = (low + high + 1) // 2
        kept = ratios[middle] * n - reach[middle] <= s
        low, high = np.where(kept, middle, low), np.where(kept, high, middle - 1)
        high = np.maximum(high, low)
    after = np.minimum(low + 1, len(ratios) - 1)
    gap = np.where(after > low, ratios[after] - ratios[low], 1.0)
    rise = n - (reach[after] - reach[low]) / gap
    beyond = (s - (ratios[low] * n - reach[low])) / rise
    return ratios[low] + np.clip(beyond, 0.0, ratios[after] - ratios[low])


@lru_cache(maxsize=16)
def _reach(
    law_s: Law, law_n: Law, step: float, half_range: float, level: float
) -> tuple[Floats, Floats, float]:
    """Return knots over [-half_range, half_range], a line through them that t(r) stays below, and its slope.

    t grows with the magnitude of r, but for the last steps of the lattice, of which two are added. So a
    line through the value that the next knot has is never below t between two knots.
    """
    ratios = np.linspace(0.0, half_range, _KNOTS)
    reach = _quantiles(ratios, law_s, law_n, step, level) + 2 * step
    reach = np.append(reach[1:], reach[-1])
    reach = np.maximum.accumulate(reach)
    steepest = float(np.max(np.diff(reach) / np.diff(ratios)))
    mirrored = np.concatenate([-ratios[:0:-1], ratios]), np.concatenate([reach[:0:-1], reach])
    return *mirrored, steepest


def _quantiles(ratios: Floats, law_s: Law, law_n: Law, step: float, level: float) -> Floats:
    """Return, for each ratio >= 0, a t with P(|X_S·step - r·X_N| <= t) >= ``level``."""
    nodes, mass = _nodes(law_n)
    each = 1 - (1 - level) / 2
    high = step * law_s.halfwidth(each) + ratios * law_n.halfwidth(each)
    low = high / 8
    for _ in range(14):
        middle = (low + high) / 2
        shift = ratios[:, None] * nodes
        up, down = np.floor((middle[:, None] + shift) / step), np.ceil((shift - middle[:, None]) / step)
        inside = ((law_s.cdf(up) - law_s.cdf(down - 1)) * mass).sum(axis=1)
        low, high = np.where(inside < level, middle, low), np.where(inside < level, high, middle)
    return high


def _nodes(law: Law) -> tuple[Floats, Floats]:
    """Return points and masses of the law; a large support is grouped, each group at its outer end."""
    end = law.halfwidth(1 - 1e-9)
    stride = max(1, -(-2 * end // _NODES))
    positive = np.arange(1, end + stride, stride)
    mass = law.sf(positive - 1) - law.sf(positive + stride - 1)
    outer = positive + stride - 1
    nodes = np.concatenate([-outer[::-1], [0], outer]).astype(np.float64)
    return nodes, np.concatenate([mass[::-1], [law.p_zero], mass])
