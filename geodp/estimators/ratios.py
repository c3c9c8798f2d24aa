"""From a noisy sum and a noisy count to a mean: post-processing with an interval that holds.

``S`` and ``N`` are measured with independent integer noise. A cell whose count is lost in its noise says
nothing about its mean, so its estimate is the overall mean, and its interval the whole range.
"""

import numpy as np
from numpy.typing import NDArray

from geodp.mechanisms.laws import Law

__all__ = ["fieller", "shrunk_ratio"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CHUNK = 1 << 14
_RATIOS = 129
_NODES = 2001


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
        Non-negative estimates of the counts.
    std_s, std_n : float
        Standard deviations of the noise of ``s`` and ``n``.
    half_range : float
        Ratios lie in [-half_range, half_range].
    overall : float, optional
        What an empty cell's ratio is; by default that of all cells together.

    Returns
    -------
    float64 array, shape (k,)
        ``g + N(S - gN)/(N² + v/t²)``, finite everywhere: g the overall ratio, v the noise variance of
        S - gN, t² the variance of the ratios between cells, estimated by moments.
    """
    if overall is None:
        overall = _overall(s, n, std_n, half_range)
    residual = s - overall * n
    noise = std_s**2 + overall**2 * std_n**2
    mass = float(np.sum(smooth**2))
    spread = float(np.sum(residual**2)) - len(s) * noise
    between = np.clip(spread / mass if mass > 0 else 0.0, (half_range / 50) ** 2, half_range**2)
    ratio = overall + smooth * residual / (smooth**2 + noise / between)
    return np.clip(ratio, -half_range, half_range)


def fieller(
    s: Ints, n: Ints, law_s: Law, law_n: Law, step: float, half_range: float, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ends of the noise interval of each ratio, from the exact joint law.

    A ratio r is kept while ``|S - rN|`` is no larger than the ``level`` quantile of ``|X_S - r X_N|``, the
    noise that is there at the true ratio (Fieller 1954). The interval spans all kept r in
    [-half_range, half_range] and is everything where N is not above its own noise.

    Parameters
    ----------
    s, n : int64 arrays, shape (k,)
        Noisy sums, in lattice steps, and noisy counts.
    law_s, law_n : Law
        The noise of each.
    step : float
        Lattice step of the sums, in the value's unit.
    """
    ratios = np.linspace(-half_range, half_range, 2 * _RATIOS - 1)
    reach = _reach(ratios[_RATIOS - 1 :], law_s, law_n, step, level)
    # A ratio between two grid points has at most the reach of the outer one, so the inner one borrows it.
    reach = np.append(reach[1:], reach[-1])
    reach = np.concatenate([reach[:0:-1], reach])
    gap = ratios[1] - ratios[0]
    lower, upper = np.full(len(s), -half_range), np.full(len(s), half_range)
    sure = np.flatnonzero(n > law_n.halfwidth(level))
    for start in range(0, len(sure), _CHUNK):
        part = sure[start : start + _CHUNK]
        distance = np.abs(s[part, None] * step - ratios * n[part, None])
        kept = distance <= reach + gap * n[part, None]
        some = kept.any(axis=1)
        first, last = kept.argmax(axis=1), len(ratios) - 1 - kept[:, ::-1].argmax(axis=1)
        centre = np.clip(s[part] * step / n[part], -half_range, half_range)
        lower[part] = np.where(some, np.minimum(ratios[first], centre), centre)
        upper[part] = np.where(some, np.maximum(ratios[last], centre), centre)
    return lower, upper


def _overall(s: Floats, n: Ints, std_n: float, half_range: float) -> float:
    total = float(n.sum())
    if total <= 2 * std_n * np.sqrt(len(n)):
        return 0.0
    return float(np.clip(s.sum() / total, -half_range, half_range))


def _reach(ratios: Floats, law_s: Law, law_n: Law, step: float, level: float) -> Floats:
    """Return, for each ratio >= 0, a t with P(|X_S·step - r·X_N| <= t) >= ``level``."""
    nodes, mass = _nodes(law_n)
    low = np.zeros(len(ratios))
    high = step * law_s.halfwidth(1 - (1 - level) / 2) + ratios * law_n.halfwidth(1 - (1 - level) / 2)
    for _ in range(50):
        middle = (low + high) / 2
        shift = ratios[:, None] * nodes
        up = np.floor((middle[:, None] + shift) / step)
        down = np.ceil((shift - middle[:, None]) / step)
        chance = law_s.cdf(up.astype(np.int64)) - law_s.cdf(down.astype(np.int64) - 1)
        inside = (chance * mass).sum(axis=1)
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
