"""Which noise, and why: discrete Laplace against rounded Gaussian, by figures that go on record.

Laplace noise grows with the L1 sensitivity (the cap), Gaussian noise with the L2 (its root), so the
Gaussian wins from some cap on. Where depends on eps and delta; it is computed from the laws that are
drawn, not from the textbook sigma.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from geodp.exact import exact_delta, exact_positive, plain, whole
from geodp.mechanisms.calibration import (
    NO_DELTA,
    classic_sigma_for,
    gaussian_delta,
    rho_of,
    scale_for,
    sigma_for,
    sigma_for_rho,
)
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian, gaussian_std, laplace_std
from geodp.mechanisms.noise import MAX_SCALE

__all__ = ["Figures", "MechanismChoice", "choose_mechanism", "crossover_cap", "decide"]

Mechanism = Literal["laplace", "gaussian"]
_MECHANISMS = ("auto", "gaussian", "laplace")
_CRITERIA = ("std", "max_error")
_ACCOUNTANTS = (None, "basic", "both", "zcdp")
_NAMES = {"laplace": "Laplace", "gaussian": "the Gaussian"}
_MAX_CAP = 10_000


@dataclass(frozen=True)
class Figures:
    """What one mechanism would do at the asked (eps, delta), in lattice steps.

    Attributes
    ----------
    law : Law
        The noise itself.
    halfwidth : int
        Smallest h with at least 95 % of the noise within +-h.
    worst : float or None
        Expected largest error over all cells, None if their number is not given.
    rho : Fraction
        Cost under zCDP, rounded up.
    """

    law: Law
    halfwidth: int
    worst: float | None
    rho: Fraction

    @property
    def std(self) -> float:
        """Standard deviation of the integer noise."""
        return self.law.std

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "scale": self.law.scale,
            "std": self.std,
            "halfwidth_95": self.halfwidth,
            "expected_max": self.worst,
            "rho": plain(self.rho),
        }


@dataclass(frozen=True)
class MechanismChoice:
    """A mechanism, the one it was preferred to, and the reasons.

    Attributes
    ----------
    mechanism : "laplace" or "gaussian"
    laplace, gaussian : Figures or None
        None where the mechanism is not possible: Gaussian without delta, a scale above 2^50 steps.
    because, lost : str
        Why this one; why not the other.
    eps, delta, l1, l2_squared : Fraction
        As asked. ``spent_eps`` and ``spent_delta`` are what the chosen mechanism needs of it.
    named : bool
        The mechanism was asked for by name.
    criterion, cells, releases, accountant, population
        As asked.
    crossover_cap : int or None
        Smallest cap from which the Gaussian has the smaller standard deviation, one subject added or
        removed; None without delta or beyond 10,000.
    textbook_crossover : int or None
        The same by the textbook sigma: smallest cap above ln(1.25 / delta).
    classic_sigma, classic_delta : float or None
        The textbook sigma, for reference, and the delta it really delivers.
    """

    mechanism: Mechanism
    laplace: Figures | None
    gaussian: Figures | None
    because: str
    lost: str
    eps: Fraction
    delta: Fraction
    l1: Fraction
    l2_squared: Fraction
    named: bool
    criterion: str
    cells: int | None
    releases: int
    accountant: str | None
    population: int | None
    crossover_cap: int | None
    textbook_crossover: int | None
    classic_sigma: float | None
    classic_delta: float | None

    @property
    def figures(self) -> Figures:
        """Figures of the chosen mechanism."""
        chosen = self.laplace if self.mechanism == "laplace" else self.gaussian
        assert chosen is not None
        return chosen

    @property
    def law(self) -> Law:
        """Law of the chosen noise."""
        return self.figures.law

    @property
    def std(self) -> float:
        """Standard deviation of the chosen noise, in steps."""
        return self.law.std

    @property
    def rho(self) -> Fraction:
        """Cost of the chosen mechanism under zCDP."""
        return self.figures.rho

    @property
    def spent_eps(self) -> Fraction:
        """What the release costs in eps."""
        return self.eps

    @property
    def spent_delta(self) -> Fraction:
        """What the release costs in delta: 0 for Laplace, which needs none."""
        return Fraction(0) if self.mechanism == "laplace" else self.delta

    @property
    def classic_is_private(self) -> bool | None:
        """Whether the textbook sigma keeps the asked delta; None without delta."""
        return None if self.classic_delta is None else Fraction(self.classic_delta) <= self.delta

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: both mechanisms, their ratios (Gaussian over Laplace), crossovers, reasons."""
        return {
            "mechanism": self.mechanism,
            "scale": self.law.scale,
            "std": self.std,
            "because": self.because,
            "lost": self.lost,
            "named": self.named,
            "criterion": self.criterion,
            "asked": {"eps": plain(self.eps), "delta": plain(self.delta)},
            "spent": {"eps": plain(self.spent_eps), "delta": plain(self.spent_delta)},
            "l1": plain(self.l1),
            "l2": math.sqrt(self.l2_squared),
            "cells": self.cells,
            "releases": self.releases,
            "accountant": self.accountant,
            "laplace": self.laplace and self.laplace.to_dict(),
            "gaussian": self.gaussian and self.gaussian.to_dict(),
            "ratio": self._ratios(),
            "crossover_cap": self.crossover_cap,
            "textbook_crossover": self.textbook_crossover,
            "classic": self._classic(),
            "population": self.population,
            "expected_people": self.expected_people,
        }

    @property
    def expected_people(self) -> float | None:
        """Asked delta times the declared population: people it may cost, on average, if it is spent."""
        return None if self.population is None else float(self.delta * self.population)

    def _ratios(self) -> dict[str, float | None] | None:
        if self.laplace is None or self.gaussian is None:
            return None
        over, under = self.gaussian.to_dict(), self.laplace.to_dict()
        return {k: _ratio(over[k], under[k]) for k in ("std", "halfwidth_95", "expected_max", "rho")}

    def _classic(self) -> dict[str, Any] | None:
        if self.classic_sigma is None:
            return None
        return {
            "sigma": self.classic_sigma,
            "delta": self.classic_delta,
            "private": self.classic_is_private,
        }


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
        raise ValueError(f"l2 must be at most l1, got {l2!r} and {l1!r}. Were they swapped?")
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
    ratio = _ratio(large, small)
    return "much larger" if ratio is None else f"{ratio:.3g} times as large"


def _ratio(over: float | None, under: float | None) -> float | None:
    """Quotient of two figures, None where there is none to show (nothing below, or beyond all doubles)."""
    if over is None or not under:
        return None
    quotient = over / under
    return quotient if math.isfinite(quotient) else None


def _textbook_crossover(delta: Fraction) -> int | None:
    if delta == 0:
        return None
    log = math.log(5 * delta.denominator) - math.log(4 * delta.numerator)
    return max(1, math.floor(log) + 1)


@lru_cache(maxsize=256)
def _classic_delta(l2_squared: Fraction, sigma: float, eps: Fraction) -> float:
    return gaussian_delta(1, Fraction(sigma) / Fraction(math.sqrt(l2_squared)), eps)


def _check_words(mechanism: str, criterion: str, cells: int | None, accountant: str | None) -> None:
    choices: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "mechanism": (mechanism, _MECHANISMS),
        "criterion": (criterion, _CRITERIA),
        "accountant": (accountant, _ACCOUNTANTS),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
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
