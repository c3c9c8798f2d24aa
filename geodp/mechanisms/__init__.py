"""Noise: how much (calibration), which (choice), of what law (laws), drawn how (noise).

Everything here is about numbers alone; nothing knows of maps or people.
"""

from geodp.mechanisms.arrays import NoisyArray, gaussian, laplace
from geodp.mechanisms.calibration import (
    classic_gaussian_sigma,
    gaussian_delta,
    gaussian_sigma,
    laplace_scale,
    sigma_from_zcdp,
    zcdp_epsilon,
    zcdp_epsilon_textbook,
    zcdp_rho,
    zcdp_rho_from_epsilon,
)
from geodp.mechanisms.choice import MechanismChoice, choose_mechanism
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian
from geodp.mechanisms.noise import discrete_laplace, rounded_gaussian

__all__ = [
    "DiscreteLaplace",
    "Law",
    "MechanismChoice",
    "NoisyArray",
    "RoundedGaussian",
    "choose_mechanism",
    "classic_gaussian_sigma",
    "discrete_laplace",
    "gaussian",
    "gaussian_delta",
    "gaussian_sigma",
    "laplace",
    "laplace_scale",
    "rounded_gaussian",
    "sigma_from_zcdp",
    "zcdp_epsilon",
    "zcdp_epsilon_textbook",
    "zcdp_rho",
    "zcdp_rho_from_epsilon",
]
