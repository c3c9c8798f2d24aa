"""Guarantees per kilometre, and why a ledger keeps them apart from (eps, delta).

Geo-indistinguishability bounds how much a report tells of two places by ``exp(eps_per_km * d)``, d the
kilometres between them. It has no eps until somebody says how far apart the places are, and it does not
hide that somebody was there at all, so neither of a ledger's books can hold it.

What adds up is the loss per kilometre. Notes that allow a subject ``w_1, w_2, ...`` per kilometre, each for
all of that subject's reports in one call, allow ``(w_1 + w_2 + ...) * d`` together, d the farthest that
any of the subject's positions lies from where it might have been instead: the factors of independent draws
multiply, also when a later call was chosen after seeing an earlier one.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from geodp.exact import tidy, written

__all__ = ["GUARANTEE", "is_metric", "metric_terms", "worst_per_km"]

GUARANTEE = "geo-indistinguishability"


def metric_terms(eps_per_km: Fraction, reports: int | None) -> dict[str, Any]:
    """Return the exact terms of one call, as its record holds them; ``reports`` is per subject.

    Examples
    --------
    >>> metric_terms(Fraction(1, 3), 2)
    {'eps_per_km': '1/3', 'reports': 2}
    """
    return {"eps_per_km": str(tidy(eps_per_km)), "reports": reports}


def is_metric(record: Mapping[str, Any]) -> bool:
    """Whether a record claims a guarantee per kilometre."""
    return "metric" in record or record.get("guarantee") == GUARANTEE


def worst_per_km(record: Mapping[str, Any]) -> Fraction:
    """Return what one subject's reports of a call allow per kilometre together, from its record.

    Raises
    ------
    ValueError
        The record claims another guarantee, or limits no subject's reports.

    Examples
    --------
    >>> worst_per_km({"guarantee": GUARANTEE, "metric": metric_terms(Fraction(1, 3), 2)})
    Fraction(2, 3)
    """
    terms = record.get("metric")
    if record.get("guarantee") != GUARANTEE or not isinstance(terms, Mapping):
        raise ValueError(f"a note keeps releases whose guarantee is {GUARANTEE}; debit keeps the others.")
    eps, reports = written(terms["eps_per_km"]), terms["reports"]
    if not isinstance(reports, int) or reports < 1 or eps <= 0:
        raise ValueError("a note needs the most reports of one subject: without it no sum of notes holds.")
    return tidy(eps * reports)
