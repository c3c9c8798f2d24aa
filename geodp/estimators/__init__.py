"""Estimators: from noisy counts to the numbers on the map. Post-processing: free, and blind to the data.

Everything here is a deterministic function of the released noisy counts and of public facts: the law
of the noise and how the cells lie together. Differential privacy is closed under such functions
(Dwork and Roth 2014, proposition 2.1), so estimates cost no budget and need no proof of their own.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.integers import to_integers
from geodp.estimators.norm_sub import clamp, keep_total, norm_sub
from geodp.estimators.planning import LevelShares, budget_shares, expected_error, signal
from geodp.estimators.priors import Likelihood, NoiseLaw, Rule, mean_rule, median_rule, noise_std
from geodp.estimators.pyramid import Measured, reconcile
from geodp.estimators.shrink import spatial_posterior
from geodp.grids.hierarchy import Hierarchy
from geodp.wording import brief

__all__ = [
    "ESTIMATORS",
    "LevelShares",
    "Measured",
    "NoiseLaw",
    "budget_shares",
    "estimate",
    "expected_error",
    "signal",
    "to_integers",
]

ESTIMATORS = ("clamp", "median", "norm_sub", "pyramid", "shrink")

# Below, there are too few cells to learn from: shrinking was measured to lose against clamping.
_FEWEST_CELLS = 50
# Noise this small hardly moves a whole number. On a small map, rounding estimates back to integers within
# regional totals then costs more (up to 7 % in L2) than shrinking gains (2 to 4 %).
_SMALL_NOISE, _SMALL_MAP = 0.75, 1024


def estimate(
    noisy: NDArray[np.int64],
    law: NoiseLaw,
    estimator: str,
    hierarchy: Hierarchy,
    measured: Sequence[Measured | None] = (),
) -> NDArray[np.float64]:
    """Return the estimate of every cell's count from the noisy counts of all cells.

    Parameters
    ----------
    noisy : int64 array (n,)
        Noisy counts of the complete public domain.
    law : NoiseLaw
        Exact law of the integer noise in each of them.
    estimator : {"pyramid", "shrink", "median", "norm_sub", "clamp"}
        ``"pyramid"``: spatial empirical Bayes, reconciled over coarse blocks. ``"shrink"``: the same
        without blocks. ``"median"``: posterior medians, for crisp hotspots; its total is not kept.
        ``"norm_sub"``: non-negative least squares to the noisy total. ``"clamp"``: negatives to zero.
        Decided by public facts alone: below 50 cells (below 1,024 where the noise has a standard
        deviation under 0.75) the first two give clamping with the total kept, and below 50
        ``"median"`` gives clamping; below 600 one prior serves all cells.
    hierarchy : Hierarchy
        How the cells lie together.
    measured : sequence of Measured or None, optional
        Separately measured block totals, one for each of ``hierarchy.blocks``; only for ``"pyramid"``.

    Returns
    -------
    float64 array (n,)
        At least 0. For pyramid, shrink and norm_sub the total lies within one standard deviation
        (``law.std * sqrt(n)``, less with measured levels) of ``max(noisy.sum(), 0)``.

    Raises
    ------
    ValueError
        Unknown estimator, a wrong number of measured levels, or levels for another estimator than ``"pyramid"``.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> noisy = np.array([4, -1, 0, 2])
    >>> estimate(noisy, DiscreteLaplace(1.0), "clamp", Hierarchy()).tolist()
    [4.0, 0.0, 0.0, 2.0]
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {brief(estimator)}.")
    if measured and estimator != "pyramid":
        raise ValueError(f'measured levels are for estimator="pyramid", got {brief(estimator)}.')
    if measured and len(measured) != len(hierarchy.blocks):
        raise ValueError(
            f"measured must hold one measured level (or None) for each of the {len(hierarchy.blocks)} "
            f"block levels, got {len(measured)}."
        )
    values = np.asarray(noisy, dtype=np.float64)
    total, std = float(values.sum()), noise_std(law) * float(np.sqrt(len(values)))
    with np.errstate(all="ignore"):
        if estimator == "clamp" or (estimator == "median" and len(values) < _FEWEST_CELLS):
            return clamp(values)
        if estimator == "median":
            return _cells(values, law, hierarchy, None, median_rule)
        if estimator == "norm_sub":
            return norm_sub(values, total)
        if len(values) < _FEWEST_CELLS or (len(values) < _SMALL_MAP and law.std < _SMALL_NOISE):
            return keep_total(clamp(values), total, std)
        cells = _cells(values, law, hierarchy, measured if estimator == "pyramid" else None)
        return keep_total(cells, total, std)


def _cells(
    noisy: NDArray[np.float64],
    law: NoiseLaw,
    hierarchy: Hierarchy,
    measured: Sequence[Measured | None] | None,
    make_rule: Callable[[Likelihood, NDArray[np.float64]], Rule] = mean_rule,
) -> NDArray[np.float64]:
    """Return spatial posteriors, reconciled over blocks unless ``measured`` is None."""
    order = hierarchy.order
    if order is not None:
        siblings, blocks = (
            tuple(level[order] for level in levels) for levels in (hierarchy.siblings, hierarchy.blocks)
        )
        values = np.empty_like(noisy)
        values[order] = _cells(noisy[order], law, Hierarchy(siblings, blocks), measured, make_rule)
        return values
    pairs = zip(hierarchy.blocks, measured or (), strict=bool(measured))
    extra = tuple((level.noisy / np.bincount(block))[block] for block, level in pairs if level is not None)
    value, variance = spatial_posterior(noisy, law, hierarchy.siblings, extra, make_rule)
    if measured is None or not hierarchy.blocks:
        return value
    return reconcile(noisy, noise_std(law), value, variance, hierarchy.blocks, measured)
