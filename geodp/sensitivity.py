"""How far one subject can move a released vector: L1 and L2, derived from the cap that is enforced.

Notation as in PRIVACY.md, where each line is proved: ``c`` keys a subject may count in, ``m`` rows in
each, ``K`` keys in the domain. L2 is carried squared, because its square is rational and itself is not.
"""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["NEIGHBORING", "Norms", "counts", "signed_sums"]

NEIGHBORING = ("add_remove_one", "replace_one")


@dataclass(frozen=True)
class Norms:
    """The largest change of a vector between neighbours, in lattice steps.

    Attributes
    ----------
    l1 : Fraction
        Sum of absolute changes.
    l2_squared : Fraction
        Sum of squared changes.
    """

    l1: Fraction
    l2_squared: Fraction


def counts(cap: int, rows_per_cell: int, n_keys: int, neighboring: str) -> Norms:
    """Return the sensitivities of counts per key.

    Under ``add_remove_one`` at most ``min(c, K)`` counts move, by at most ``m`` each; under
    ``replace_one`` the old and the new subject together reach ``min(2c, K)`` keys, and where they
    share one its count moves by at most ``m`` all the same.

    Examples
    --------
    >>> counts(4, 1, 5495, "add_remove_one")
    Norms(l1=Fraction(4, 1), l2_squared=Fraction(4, 1))
    """
    touched = _touched(cap, n_keys, neighboring)
    return Norms(Fraction(rows_per_cell * touched), Fraction(rows_per_cell**2 * touched))


def signed_sums(bound: int, cap: int, rows_per_cell: int, n_keys: int, neighboring: str) -> Norms:
    """Return the sensitivities of sums of values in [-bound, bound].

    Under ``replace_one`` the old and the new subject can sit in the same keys with opposite signs,
    so both norms double; the square of L2 grows by four, not by two.
    """
    one = counts(cap, rows_per_cell, n_keys, "add_remove_one")
    reach = bound * (2 if neighboring == "replace_one" else 1)
    return Norms(reach * one.l1, reach**2 * one.l2_squared)


def _touched(cap: int, n_keys: int, neighboring: str) -> int:
    return min(2 * cap if neighboring == "replace_one" else cap, n_keys)
