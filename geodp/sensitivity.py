"""How far one subject can move a released vector: L1 and L2, derived from the cap that is enforced.

Notation as in PRIVACY.md, where each line is proved: ``c`` keys a subject may count in, ``m`` rows in
each, ``K`` keys in the domain. L2 is carried squared, because its square is rational and itself is not.
"""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["NEIGHBORING", "Norms", "bounded_sums", "counts", "signed_sums"]

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


def bounded_sums(low: int, high: int, cap: int, rows_per_cell: int, n_keys: int, neighboring: str) -> Norms:
    """Return the sensitivities of sums of values in [low, high], which holds 0, under a cap.

    A subject's sum in one key lies in m·[low, high]. One subject more or less so moves at most c' keys by
    mB, B = max(-low, high). Replacing one moves up to t shared keys by mW, W = high - low, and c' - t keys
    of each by mB; t is at least 2c' - K. L1 is largest where least is shared, because W <= 2B, and L2²
    where all or the least is. Values of one sign (W = B) so give what counts give, and symmetric bounds
    (W = 2B) twice both norms.

    Examples
    --------
    >>> bounded_sums(0, 120, 4, 1, 5495, "add_remove_one")
    Norms(l1=Fraction(480, 1), l2_squared=Fraction(57600, 1))
    """
    largest, width = max(-low, high), high - low
    keys, rows = min(cap, n_keys), rows_per_cell
    if neighboring == "add_remove_one":
        return Norms(Fraction(keys * rows * largest), Fraction(keys * (rows * largest) ** 2))
    shared = max(0, 2 * keys - n_keys)
    alone = 2 * (keys - shared)
    l1 = shared * width + alone * largest
    l2_squared = max(keys * width**2, shared * width**2 + alone * largest**2)
    return Norms(Fraction(rows * l1), Fraction(rows**2 * l2_squared))


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
