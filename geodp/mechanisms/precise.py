"""As many digits as a question needs, without disturbing anybody else's.

``mpmath`` keeps its working precision in one global object, so two threads that calibrate at the same
time would change each other's digits in the middle of a computation. Each thread gets a context of
its own here, and the user's ``mpmath.mp`` is never touched.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

__all__ = ["erfc", "fraction", "precision", "real"]

_LOCAL = threading.local()


@contextmanager
def precision(digits: int) -> Iterator[Any]:
    """Lend this thread's mpmath context, working with ``digits`` decimal digits."""
    mp = _context()
    before = mp.prec
    mp.dps = digits
    try:
        yield mp
    finally:
        mp.prec = before


def real(mp: Any, number: Fraction | float) -> Any:
    """Return a fraction or double as a real of the context, rounded at its last digit."""
    exact = Fraction(number)
    return mp.mpf(exact.numerator) / exact.denominator


def fraction(number: Any) -> Fraction:
    """Return the exact value of a real of any context."""
    sign, mantissa, exponent, _ = number._mpf_
    value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -value if sign else value


def erfc(mp: Any, x: Any) -> Any:
    """Return the complementary error function, also beyond 1e100, where mpmath's own overflows."""
    if abs(x) < 1e100:
        return mp.erfc(x)
    return mp.mpf(2) if x < 0 else mp.exp(-x * x) / (x * mp.sqrt(mp.pi))


def _context() -> Any:
    if not hasattr(_LOCAL, "context"):
        from mpmath import MPContext

        _LOCAL.context = MPContext()
    return _LOCAL.context
