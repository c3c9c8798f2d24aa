"""Seeded noise for benchmarks only. Releases draw theirs from the operating system (geodp.mechanisms)."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from geodp.mechanisms.calibration import gaussian_sigma, laplace_scale
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian

Array = NDArray[np.float64]


@cache
def smaller_noise(eps: float, delta: float, l1: float, l2: float) -> Law:
    """Return the law of smaller standard deviation at (eps, delta): Laplace for l1 or Gaussian for l2."""
    laplace, gaussian = (
        DiscreteLaplace(laplace_scale(l1, eps)),
        RoundedGaussian(gaussian_sigma(l2, eps, delta)),
    )
    return laplace if laplace.std <= gaussian.std else gaussian


def draw(law: Law, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
    """Return draws of the law from a seeded generator, as floats."""
    if law.kind == "gaussian":
        return np.rint(law.scale * rng.standard_normal(size))
    p = -math.expm1(-1 / law.scale)
    return rng.geometric(p, size).astype(float) - rng.geometric(p, size)


def measure(
    rng: np.random.Generator, true: Array, eps: float, delta: float, l1: float, l2: float
) -> tuple[Array, float]:
    """Return noisy numbers and the standard deviation of their noise."""
    law = smaller_noise(eps, delta, l1, l2)
    return true + draw(law, rng, true.shape), law.std
