"""What a choice between mechanisms rests on: frozen figures that go on a plan and on record."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from geodp.exact import plain
from geodp.mechanisms.laws import Law

__all__ = ["Figures", "Mechanism", "MechanismChoice", "quotient"]

Mechanism = Literal["laplace", "gaussian"]


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

    Examples
    --------
    >>> from geodp.mechanisms import choose_mechanism
    >>> choice = choose_mechanism(4, 2, 1, 1e-6)
    >>> choice.mechanism, round(choice.std, 2), choice.spent_delta
    ('laplace', 5.64, Fraction(0, 1))
    >>> choice.to_dict()["mechanism"]
    'laplace'
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
        """Return plain JSON: both mechanisms, their ratios (Gaussian over Laplace), crossovers, reasons.

        Returns
        -------
        dict
            What the record of a release says of the choice, and more.
        """
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
        return {k: quotient(over[k], under[k]) for k in ("std", "halfwidth_95", "expected_max", "rho")}

    def _classic(self) -> dict[str, Any] | None:
        if self.classic_sigma is None:
            return None
        return {
            "sigma": self.classic_sigma,
            "delta": self.classic_delta,
            "private": self.classic_is_private,
        }


def quotient(over: float | None, under: float | None) -> float | None:
    """Quotient of two figures, None where there is none to show (nothing below, or beyond all doubles)."""
    if over is None or not under:
        return None
    ratio = over / under
    return ratio if math.isfinite(ratio) else None
