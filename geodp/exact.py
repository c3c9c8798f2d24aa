"""Numbers as they were typed: exact rationals at the door, doubles on the safe side at the end.

A double near ``L1 / eps`` lies below it for half of all inputs, and a release drawn with that scale
would cost more than the ledger charges. So what the user types becomes a ``Fraction`` once, and
every double that leaves this module is rounded towards more privacy by its caller's choice of
:func:`ceil_double` or :func:`floor_double`.
"""

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from geodp.wording import brief

__all__ = [
    "UNREADABLE",
    "ceil_double",
    "exact",
    "exact_delta",
    "exact_positive",
    "floor_double",
    "plain",
    "round_up",
    "sqrt_up",
    "tidy",
    "whole",
    "written",
]

# What comes of reading texts, numbers and bytes that are not what they should be.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)

# No double and no sensible decimal lies outside; without a limit "1e-999999999" would fill the memory.
_MAX_EXPONENT = 400
_MAX_DIGITS = 1000
_REACH = 10**_MAX_EXPONENT
_MAX_BITS = 14_000  # of numerator and denominator: 4,214 digits, and Python writes at most 4,300
_MAX_WRITTEN = 10_000
_WRITTEN = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d{1,3})?(/\d+)?", re.ASCII)
# Typed amounts have denominators far below this.
_LONGEST = 10**100


def exact(value: object, name: str) -> Fraction:
    """Return the number that was typed, exactly.

    Parameters
    ----------
    value : int, float, str, Decimal, Fraction or numpy scalar
        A float counts as its shortest decimal form (0.1 is one tenth), a narrower numpy float as
        its exact value; strings, decimals and fractions are taken as they are.
    name : str
        The argument's name, for the error.

    Raises
    ------
    TypeError
        ``value`` is not a single number (booleans and arrays are none).
    ValueError
        ``value`` is NaN, infinite, not a number in words, or beyond 1e400.

    Examples
    --------
    >>> exact(0.1, "eps")
    Fraction(1, 10)
    """
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number, got a boolean.")
    if isinstance(value, str):
        return _parse(value, name)
    if isinstance(value, Decimal):
        return _decimal(value, name)
    if isinstance(value, Rational):
        # numpy integers are rationals too; their parts must become Python's, which never overflow.
        return _within(Fraction(int(value.numerator), int(value.denominator)), name)
    if isinstance(value, float):
        _finite(float(value), name)
        return Fraction(repr(float(value)))
    if isinstance(value, np.floating):
        _finite(value, name)
        return _within(Fraction(*value.as_integer_ratio()), name)
    raise TypeError(f"{name} must be a number, got {_kind(value)}.")


def written(value: object) -> Fraction:
    """Return a number as geodp itself writes it into ledgers and records: ``"1/3"``, ``"0.1"``, 3, 2.5.

    Raises
    ------
    TypeError, ValueError
        Anything else. ``"1e999999999"`` in a file would otherwise take hours.

    Examples
    --------
    >>> written("1/3"), written(2.5)
    (Fraction(1, 3), Fraction(5, 2))
    """
    if isinstance(value, str):
        if len(value) > _MAX_WRITTEN or not _WRITTEN.fullmatch(value):
            raise ValueError("no number is written there.")
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("no number is written there.")
    return Fraction(value)


def exact_positive(value: object, name: str) -> Fraction:
    """Return :func:`exact` of ``value``, which must be greater than zero."""
    number = exact(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, got {brief(value)}.")
    return number


def exact_delta(value: object, name: str = "delta") -> Fraction:
    """Return :func:`exact` of a probability, ``0 <= value < 1``."""
    number = exact(value, name)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {brief(value)}.")
    return number


def whole(value: object, name: str, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int of at least ``low`` and at most ``high`` (or 1e400).

    An integral float is refused as well: a cap of 4.0 is a slip worth showing.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int, got {_kind(value)}.")
    number = int(value)
    if number < low or number > (_REACH if high is None else high):
        wanted = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {wanted}, got {brief(number)}.")
    return number


def ceil_double(number: Fraction) -> float:
    """Return the smallest double that is not below ``number``."""
    near = _nearest(number)
    return near if math.isinf(near) or Fraction(near) >= number else math.nextafter(near, math.inf)


def floor_double(number: Fraction) -> float:
    """Return the largest double that is not above ``number``."""
    near = _nearest(number)
    if math.isinf(near):
        near = math.copysign(1.7976931348623157e308, near)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def sqrt_up(number: Fraction) -> float:
    """Return the smallest double whose square is not below ``number`` (which is at least 0)."""
    shift = max(0, 256 - number.numerator.bit_length() + number.denominator.bit_length())
    shift += shift % 2
    root = math.isqrt((number.numerator << shift) // number.denominator)
    near = _nearest(Fraction(root, 1 << (shift // 2)))
    while Fraction(near) ** 2 < number:
        near = math.nextafter(near, math.inf)
    while near > 0 and Fraction(math.nextafter(near, 0.0)) ** 2 >= number:
        near = math.nextafter(near, 0.0)
    return near


def round_up(number: Fraction, digits: int = 40) -> Fraction:
    """Return the smallest decimal of ``digits`` significant digits that is not below ``number >= 0``."""
    if number == 0:
        return number
    size = len(str(number.numerator)) - len(str(number.denominator))
    scale = Fraction(10) ** (digits - size)
    return Fraction(math.ceil(number * scale)) / scale


def plain(number: Fraction | float | int) -> int | float:
    """Return the plain JSON number nearest to ``number``: an int when whole, otherwise a float.

    Examples
    --------
    >>> plain(Fraction(1)), plain(Fraction(1, 10))
    (1, 0.1)
    """
    if math.isinf(_nearest(number)) or number != number:
        raise ValueError("a record holds finite numbers only, below 1.8e308.")
    return int(number) if number == int(number) and -(2**53) < number < 2**53 else float(number)


def _parse(text: str, name: str) -> Fraction:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"{name} must be a number, got a text of {len(text)} characters.")
    top, slash, bottom = text.partition("/")
    number = _decimal(_to_decimal(top, text, name), name)
    if not slash:
        return number
    divisor = _decimal(_to_decimal(bottom, text, name), name)
    if divisor == 0:
        raise ValueError(f"{name} must be a number, got {brief(text)}.")
    return _within(number / divisor, name)


def _to_decimal(part: str, text: str, name: str) -> Decimal:
    try:
        return Decimal(part.strip())
    except InvalidOperation:
        raise ValueError(f"{name} must be a number, got {brief(text)}.") from None


def _decimal(value: Decimal, name: str) -> Fraction:
    if not value.is_finite():
        raise ValueError(f"{name} must be finite, got {value}.")
    if (value and abs(value.adjusted()) > _MAX_EXPONENT) or len(value.as_tuple().digits) > _MAX_DIGITS:
        raise ValueError(f"{name} must lie within 1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT}.")
    return Fraction(value)


def _within(number: Fraction, name: str) -> Fraction:
    """Hold fractions and whole numbers to the limits of decimals; beyond, arithmetic takes minutes."""
    parts = (abs(number.numerator), number.denominator)
    longest = max(part.bit_length() for part in parts)
    if longest > _MAX_BITS or (number and not 1 <= parts[0] * _REACH // parts[1] <= _REACH**2):
        raise ValueError(f"{name} must lie within 1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT}.")
    return number


def _finite(value: "float | np.floating[Any]", name: str) -> None:
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")


def _nearest(number: Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def tidy(number: Fraction) -> Fraction:
    """Return the number, rounded up to 60 digits if it is longer than anybody types.

    A thousand unlike fractions so cannot make a running total grow without end.

    Examples
    --------
    >>> tidy(Fraction(1, 3))
    Fraction(1, 3)
    """
    return number if number.denominator < _LONGEST else round_up(number, 60)
