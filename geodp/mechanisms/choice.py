"""Which noise, and why: discrete Laplace against rounded Gaussian, by figures that go on record.

Laplace noise grows with the L1 sensitivity (the cap), Gaussian noise with the L2 (its root), so the
Gaussian wins from some cap on. Where depends on eps and delta; it is computed from the laws that are
drawn, not from the textbook sigma.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from geodp.exact import exact_delta, exact_positive, sqrt_up, whole
from geodp.mechanisms.calibration import (
    NO_DELTA,
    classic_sigma_for,
    gaussian_delta,
    rho_of,
    scale_for,
    sigma_for,
    sigma_for_rho,
)
from geodp.mechanisms.figures import Figures, Mechanism, MechanismChoice, quotient
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian, gaussian_std, laplace_std
from geodp.mechanisms.noise import MAX_SCALE
from geodp.wording import brief

__all__ = ["Figures", "MechanismChoice", "choose_mechanism", "crossover_cap", "decide"]

_MECHANISMS = ("auto", "gaussian", "laplace")
_CRITERIA = ("std", "max_error")
_ACCOUNTANTS = (None, "basic", "both", "zcdp")
_NAMES = {"laplace": "Laplace", "gaussian": "the Gaussian"}
_MAX_CAP = 10_000


def choose_mechanism(
    l1: object,
    l2: object,
    eps: object,
    delta: object = 0,
    *,
    cells: int | None = None,
    criterion: str = "std",
    population: int | None = None,
    releases: int = 1,
    accountant: str | None = None,
) -> MechanismChoice:
    """Return the better of discrete Laplace and rounded Gaussian noise for an integer query, with reasons.

    Parameters
    ----------
    l1, l2 : numbers
        Sensitivities in steps (counts: people), greater than 0, ``l2 <= l1``. With cap c and one
        subject more or less: c and sqrt(c).
    eps : number
        Greater than 0.
    delta : number, default 0
        At least 0, below 1, and below 1 / ``population``. With 0 only Laplace is possible.
    cells : int, optional
        Number of released integers: for the expected largest error.
    criterion : {"std", "max_error"}
        Compare standard deviations, or expected largest errors over all ``cells``.
    population : int, optional
        A public number of subjects, declared, never counted from the data.
    releases : int, default 1
        With more than one, mechanisms are compared at equal rho, since a series adds up rho: the
        Gaussian wins whenever there is a delta.
    accountant : {None, "basic", "both", "zcdp"}
        "zcdp" compares at equal rho too; the others leave it to ``releases``.

    Returns
    -------
    MechanismChoice

    Raises
    ------
    TypeError, ValueError
        An argument is out of range, or both scales would exceed 2^50 steps.

    Examples
    --------
    >>> choice = choose_mechanism(4, 2, 1, 1e-6)
    >>> choice.mechanism, choice.spent_delta, choice.crossover_cap
    ('laplace', Fraction(0, 1), 9)
    >>> choose_mechanism(4, 2, 1).lost
    'no delta was authorised'
    """
    first, second = exact_positive(l1, "l1"), exact_positive(l2, "l2")
    if second > first * (1 + Fraction(1, 10**9)):
        raise ValueError(f"l2 must be at most l1, got {brief(l2)} and {brief(l1)}. Were they swapped?")
    return decide(
        first,
        second**2,
        exact_positive(eps, "eps"),
        exact_delta(delta),
        criterion=criterion,
        cells=cells,
        releases=releases,
        accountant=accountant,
        population=population,
    )


def decide(
    l1: Fraction,
    l2_squared: Fraction,
    eps: Fraction,
    delta: Fraction,
    *,
    mechanism: str = "auto",
    criterion: str = "std",
    cells: int | None = None,
    releases: int = 1,
    accountant: str | None = None,
    population: int | None = None,
    rho: Fraction | None = None,
) -> MechanismChoice:
    """Return :func:`choose_mechanism` for exact arguments, as plans call it.

    ``mechanism`` names one, or "auto". ``rho`` (from a ledger's split) calibrates the Gaussian to
    that cost instead of to (eps, delta).
    """
    _check_words(mechanism, criterion, cells, accountant)
    whole(releases, "releases", 1)
    _check_population(delta, population)
    if delta == 0 and mechanism == "gaussian":
        raise ValueError(NO_DELTA)
    laplace = _laplace_figures(l1, eps, cells)
    gaussian = None if delta == 0 else _gaussian_figures(l2_squared, eps, delta, rho, cells)
    series = releases > 1 or accountant == "zcdp"
    winner = _winner(mechanism, laplace, gaussian, criterion, series)
    because, lost = _reasons(winner, laplace, gaussian, criterion, cells, series, mechanism, delta)
    if (laplace if winner == "laplace" else gaussian) is None:
        raise _too_large(l1, l2_squared, eps, winner)
    classic = None if delta == 0 else classic_sigma_for(l2_squared, eps, delta)
    return MechanismChoice(
        mechanism=winner,
        laplace=laplace,
        gaussian=gaussian,
        because=because,
        lost=lost,
        eps=eps,
        delta=delta,
        l1=l1,
        l2_squared=l2_squared,
        named=mechanism != "auto",
        criterion=criterion,
        cells=cells,
        releases=releases,
        accountant=accountant,
        population=population,
        crossover_cap=crossover_cap(eps, delta, l2_squared / l1),
        textbook_crossover=_textbook_crossover(delta),
        classic_sigma=classic,
        classic_delta=None if classic is None else _classic_delta(l2_squared, classic, eps),
    )


@lru_cache(maxsize=256)
def crossover_cap(eps: Fraction, delta: Fraction, per_cell: Fraction = Fraction(1)) -> int | None:
    """Return the smallest cap c from which the Gaussian has the smaller standard deviation.

    One subject more or less changes c cells by ``per_cell`` steps each: L1 = c * per_cell, L2 =
    sqrt(c) * per_cell. None without delta, or if there is none up to 10,000.
    """
    if delta == 0:
        return None
    caps = np.arange(1, _MAX_CAP + 1)
    scales = np.asarray(float(per_cell / eps) * caps, dtype=np.float64)
    sigmas = sigma_for(per_cell**2, eps, delta) * np.sqrt(caps)
    wins = np.flatnonzero(gaussian_std(sigmas) < laplace_std(scales))
    return int(caps[wins[0]]) if len(wins) else None


def _laplace_figures(l1: Fraction, eps: Fraction, cells: int | None) -> Figures | None:
    scale = scale_for(l1, eps)
    return None if scale > MAX_SCALE else _figures(DiscreteLaplace(scale), eps**2 / 2, cells)


def _gaussian_figures(
    l2_squared: Fraction, eps: Fraction, delta: Fraction, rho: Fraction | None, cells: int | None
) -> Figures | None:
    sigma = sigma_for(l2_squared, eps, delta) if rho is None else sigma_for_rho(l2_squared, rho)
    return None if sigma > MAX_SCALE else _figures(RoundedGaussian(sigma), rho_of(l2_squared, sigma), cells)


def _figures(law: Law, rho: Fraction, cells: int | None) -> Figures:
    return Figures(law, law.halfwidth("0.95"), None if cells is None else law.expected_max(cells), rho)


def _winner(
    mechanism: str, laplace: Figures | None, gaussian: Figures | None, criterion: str, series: bool
) -> Mechanism:
    if mechanism == "laplace" or gaussian is None:
        return "laplace"
    if mechanism == "gaussian" or laplace is None or series:
        return "gaussian"
    return "gaussian" if _by(gaussian, criterion) < _by(laplace, criterion) else "laplace"


def _reasons(
    winner: Mechanism,
    laplace: Figures | None,
    gaussian: Figures | None,
    criterion: str,
    cells: int | None,
    series: bool,
    mechanism: str,
    delta: Fraction,
) -> tuple[str, str]:
    """Return why one mechanism was taken, and why the other was not."""
    best, other = (laplace, gaussian) if winner == "laplace" else (gaussian, laplace)
    if delta == 0 and mechanism == "auto":
        return "only Laplace noise is private without a delta", "no delta was authorised"
    if mechanism != "auto":
        return f"{_NAMES[winner]} was named", "no delta was authorised" if delta == 0 else "not named"
    if best is None or other is None:
        return "the only one whose scale fits", "its scale would exceed 2^50 steps"
    if series:
        return "smaller standard deviation at equal rho, which a series adds up", "costs more rho"
    a, b = _by(best, criterion), _by(other, criterion)
    what = "standard deviation" if criterion == "std" else f"expected largest error over {cells:,} cells"
    return (
        f"smaller {what} at equal (eps, delta): {a:.3g} against {b:.3g}",
        f"its {what} is {_times(b, a)}",
    )


def _by(figures: Figures, criterion: str) -> float:
    if criterion == "std":
        return figures.std
    assert figures.worst is not None
    return figures.worst


def _times(large: float, small: float) -> str:
    ratio = quotient(large, small)
    return "much larger" if ratio is None else f"{ratio:.3g} times as large"


def _textbook_crossover(delta: Fraction) -> int | None:
    if delta == 0:
        return None
    log = math.log(5 * delta.denominator) - math.log(4 * delta.numerator)
    return max(1, math.floor(log) + 1)


@lru_cache(maxsize=256)
def _classic_delta(l2_squared: Fraction, sigma: float, eps: Fraction) -> float:
    return gaussian_delta(1, Fraction(sigma) / Fraction(sqrt_up(l2_squared)), eps)


def _check_words(mechanism: str, criterion: str, cells: int | None, accountant: str | None) -> None:
    choices: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "mechanism": (mechanism, _MECHANISMS),
        "criterion": (criterion, _CRITERIA),
        "accountant": (accountant, _ACCOUNTANTS),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {brief(value)}.")
    if cells is not None:
        whole(cells, "cells", 1)
    elif criterion == "max_error":
        raise ValueError('criterion="max_error" needs cells, the number of released integers.')


def _check_population(delta: Fraction, population: int | None) -> None:
    if population is None:
        return
    if delta * whole(population, "population", 1) >= 1:
        raise ValueError(
            f"delta must be below 1/population, got {float(delta):g} for {population:,} people: such a "
            "release may publish one of them outright. geodp.delta_for(population) gives a safe one."
        )


def _too_large(l1: Fraction, l2_squared: Fraction, eps: Fraction, winner: Mechanism) -> ValueError:
    size = float(l1) if winner == "laplace" else math.sqrt(l2_squared)
    return ValueError(
        f"eps {float(eps):.3g} needs {winner} noise above 2^50 steps at a sensitivity of {size:.3g}: it "
        "would drown any count. Raise eps, or lower the cap or the number of steps. Nothing was spent."
    )
