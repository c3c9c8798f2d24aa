"""What a ledger was created with: its ceiling and controls.

The terms are fixed when the ledger is made, and kept as exact text. Whoever opens it later may repeat
them, and then they have to agree.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geodp.accounting import Ceiling, Charge, amount, ceiling
from geodp.errors import LedgerError
from geodp.exact import exact, exact_positive, whole, written
from geodp.wording import brief

__all__ = ["FORMAT", "Terms", "check_agreement", "make_terms"]

FORMAT = 1  # of the tables and of the blobs; raised when an older geodp could misread them

NEIGHBORING = ("add_remove_one", "replace_one")


@dataclass(frozen=True)
class Terms:
    """The fixed part of a ledger; ``identity`` is drawn at creation and tells two ledgers apart."""

    identity: str
    created: str
    ceiling: Ceiling
    neighboring: str
    unit: str | None = None
    control: str | None = None
    max_eps: Fraction | None = None
    population: int | None = None
    tiers: tuple[tuple[str, Fraction], ...] = ()

    def tier_of(self, charge: Charge) -> str | None:
        """Return the tier whose eps the charge has; None if it has none."""
        return next((name for name, eps in self.tiers if eps == charge.eps), None)

    def objection(self, charge: Charge) -> str | None:
        """Return what the controls say against one release of this cost; None if nothing."""
        asked = amount(charge.eps)
        if self.max_eps is not None and charge.eps > self.max_eps:
            most = amount(self.max_eps, floor=True)
            return f"allows at most eps {most} for one release{self._by()}, asked {asked}"
        if self.tiers and self.tier_of(charge) is None:
            known = " or ".join(f"{amount(eps)} ({name})" for name, eps in self.tiers)
            return f"allows a release eps {known}{self._by()}, asked {asked}"
        return None

    def to_rows(self) -> dict[str, str]:
        """Return the terms as names and exact texts; what was not declared is left out."""
        held = self.ceiling
        rows: dict[str, Any] = {
            "format": FORMAT,
            "identity": self.identity,
            "created": self.created,
            "eps": held.eps,
            "delta": held.delta,
            "accountant": held.accountant,
            "selection": held.selection,
            "rho": held.rho,
            "neighboring": self.neighboring,
            "unit": self.unit,
            "control": self.control,
            "max_eps_per_release": self.max_eps,
            "population": self.population,
        }
        rows |= {f"tier {name}": eps for name, eps in self.tiers}
        return {name: str(value) for name, value in rows.items() if value is not None}

    @classmethod
    def from_rows(cls, rows: Mapping[str, str]) -> "Terms":
        """Return the terms that :meth:`to_rows` wrote."""
        rho, most, population = (rows.get(name) for name in ("rho", "max_eps_per_release", "population"))
        held = Ceiling(
            written(rows["eps"]),
            written(rows["delta"]),
            rows["accountant"],
            written(rows["selection"]),
            None if rho is None else written(rho),
        )
        tiers = {name[5:]: written(eps) for name, eps in rows.items() if name.startswith("tier ")}
        return cls(
            rows["identity"],
            rows["created"],
            held,
            rows["neighboring"],
            rows.get("unit"),
            rows.get("control"),
            None if most is None else written(most),
            None if population is None else int(population),
            _ordered(tiers),
        )

    def _by(self) -> str:
        return f" (control {self.control})" if self.control else ""


def make_terms(given: Mapping[str, Any], created: str) -> Terms:
    """Return the terms of a new ledger from the arguments that were given; ``eps`` is required.

    Raises
    ------
    ValueError
        An amount is out of range, delta is 1/population or more, or two tiers have the same eps.
    """
    held = ceiling(
        given["eps"],
        given.get("delta", 0),
        given.get("accountant", "both"),
        given.get("selection", 0),
    )
    population = given.get("population")
    _check_delta(held.delta, population)
    most = given.get("max_eps_per_release")
    return Terms(
        secrets.token_hex(8),
        created,
        held,
        _neighboring(given.get("neighboring", "add_remove_one")),
        _word(given.get("unit"), "unit"),
        _word(given.get("control"), "control"),
        None if most is None else exact_positive(most, "max_eps_per_release"),
        population,
        _tiers(given.get("tiers")),
    )


def check_agreement(terms: Terms, given: Mapping[str, Any], name: str) -> None:
    """Raise LedgerError, with the field and both values, unless ``given`` repeats the terms."""
    stored = terms.to_rows()
    for field, value in given.items():
        if field == "tiers":
            held, said = dict(terms.tiers), dict(_tiers(value))
        else:
            held, said = _readable(stored.get(field)), _readable(value)
        if held != said:
            raise LedgerError(
                f"{name} was created with {field} {_shown(held)}, not {_shown(said)}. "
                f"Leave {field} out to open it as it is; a new ceiling needs a new ledger."
            )


def _readable(value: object) -> Any:
    """Read numbers exactly, so that 3, 3.0 and "3" agree; leave words as they are."""
    try:
        return exact(value, "value")
    except (TypeError, ValueError):
        return value


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_shown(eps)}" for name, eps in value.items()) + "}"
    return amount(value) if isinstance(value, Fraction) else brief(value)


def _check_delta(delta: Fraction, population: object) -> None:
    if population is not None:
        size = whole(population, "population", 1)
        if delta >= Fraction(1, size):
            raise ValueError(
                f"delta must be below 1/population = {amount(Fraction(1, size))}, got {amount(delta)}: "
                f"geodp.delta_for({size}) gives one."
            )
    elif delta >= Fraction(1, 1000):
        raise ValueError(
            f"delta must be below 1e-3, got {amount(delta)} (eps and delta swapped?). A larger one needs "
            "a declared population=."
        )


def _neighboring(value: object) -> str:
    if value not in NEIGHBORING:
        raise ValueError(f"neighboring must be 'add_remove_one' or 'replace_one', got {brief(value)}.")
    return str(value)


def _word(value: object, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 200:
        raise ValueError(f"{name} must be a printable text of 1 to 200 characters, got {brief(value)}.")
    return value


def _tiers(value: object) -> tuple[tuple[str, Fraction], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"tiers must map names to eps, such as {{'public': 0.1}}, got {brief(value)}.")
    tiers = {_word(name, "tiers") or "": exact_positive(eps, "tiers") for name, eps in value.items()}
    if len(set(tiers.values())) < len(tiers):
        raise ValueError("tiers must differ in eps: a release belongs to the tier whose eps it has.")
    return _ordered(tiers)


def _ordered(tiers: Mapping[str, Fraction]) -> tuple[tuple[str, Fraction], ...]:
    return tuple(sorted(tiers.items(), key=lambda tier: (tier[1], tier[0])))
