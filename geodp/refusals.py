"""How a ledger says no: what it holds, what was spent, left and asked, and what would still fit."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from geodp.accounting import Ceiling, Charge, amount, amounts, left_amounts
from geodp.errors import BudgetExceeded, IncompleteRelease, LedgerError
from geodp.exact import UNREADABLE
from geodp.terms import Terms

__all__ = ["incomplete", "other_arguments", "other_relation", "refusal"]


def refusal(name: str, terms: Terms, spent: Charge, charge: Charge) -> BudgetExceeded:
    """Return the error for a release that the controls or the books refuse."""
    held = terms.ceiling
    objection = terms.objection(charge)
    said = f"{objection}." if objection else _shortages(held, spent, charge)
    fits = "" if objection else f" {_fits(terms, spent, charge)}"
    return BudgetExceeded(
        f"{name} {said} Nothing was released or spent.{fits}",
        spent=amounts(spent),
        asked=amounts(charge),
        left=left_amounts(held, spent),
    )


def _shortages(held: Ceiling, spent: Charge, charge: Charge) -> str:
    """Say for each book what it lacks, the one with eps and delta first."""
    said = []
    if held.basic_delta is not None:
        over = spent.eps + charge.eps > held.eps
        name = "eps" if over else "delta"
        limit = held.eps if over else held.basic_delta
        said.append(_shortage(name, limit, getattr(spent, name), getattr(charge, name)))
    if held.rho is not None:
        said.append(_zcdp_shortage(held, spent, charge))
    return " Its zCDP book ".join(said)


def _zcdp_shortage(held: Ceiling, spent: Charge, charge: Charge) -> str:
    if charge.rho is None or spent.rho is None or held.rho is None:
        return "cannot take a release whose rho is not known."
    if spent.rho + charge.rho > held.rho:
        return _shortage("rho", held.rho, spent.rho, charge.rho)
    return _shortage("selection delta", held.selection, spent.delta_select, charge.delta_select)


def _shortage(name: str, limit: Fraction, spent: Fraction, asked: Fraction) -> str:
    holds, left = (amount(part, floor=True) for part in (limit, max(limit - spent, Fraction(0))))
    return f"holds {name} {holds}; spent {amount(spent)}, left {left}, asked {amount(asked)}."


def _fits(terms: Terms, spent: Charge, charge: Charge) -> str:
    """Say what would still fit, of the kind that was asked for."""
    held, left = terms.ceiling, terms.ceiling.left(spent)
    # No smaller rho makes up for a selection that book B has no share for.
    unselected = held.rho is not None and spent.delta_select + charge.delta_select > held.selection
    rho = Fraction(0) if unselected or left.rho is None else left.rho
    if charge.delta == 0:
        # A pure eps costs eps²/2 in the zCDP book.
        root = Fraction(math.isqrt(math.floor(2 * rho * 10**40)), 10**20)
        options = {"eps": max(left.eps, root)}
    else:
        enough = left.delta >= charge.delta
        options = {"eps": left.eps if enough else Fraction(0), "rho": rho}
    if terms.max_eps is not None:
        options["eps"] = min(options["eps"], terms.max_eps)
    offers = [f"{name} <= {amount(value, floor=True)}" for name, value in options.items() if value > 0]
    if unselected and held.allows(spent + replace(charge, delta_select=Fraction(0))):
        offers += [
            'cells="sparse", which selects nothing',
            "a ledger that was opened with a larger selection=",
        ]
    return f"Fits: {', or '.join(offers)}." if offers else "Nothing more fits."


def incomplete(name: str, part: Mapping[str, Any]) -> IncompleteRelease:
    """Return the error for a label that was paid for and never stored."""
    done, again = ("noted", "notes it") if "metric_spent" in part else ("paid for", "pays")
    return IncompleteRelease(
        f"{name}: {part['label']!r} was {done} at {part['time']} (entry {part['entry']}), but its release "
        f"was never stored: another process is at work on it, or one was stopped. retry=True {again} again."
    )


def other_arguments(name: str, label: str, held: str, key: str) -> LedgerError:
    """Return the error for a label that belongs to other arguments, and name those that differ."""
    return LedgerError(
        f"{name} has {label!r} with other arguments{_differing(held, key)}. Use a new label. "
        "Nothing was released or spent."
    )


def other_relation(name: str, field: str, held: str, said: object) -> LedgerError:
    """Return the error for a release that protects something else than the ledger does."""
    return LedgerError(
        f"{name} is kept for {field} {held!r}, the release is for {said!r}. Nothing was released or spent."
    )


def _differing(held: str, key: str) -> str:
    try:
        old, new = json.loads(held), json.loads(key)
        names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    except UNREADABLE:
        return ""
    return f" ({', '.join(names)})" if names else ""
