"""How much noise: scales from (eps, delta) or rho and back, each on the safe side.

A double near the right sigma is not enough: half of all doubles near it lie below, and the release
would then cost more than its ledger entry says. So every root found here is only a candidate. What
is returned has been checked, or evaluated afresh, with as many digits as the question needs
(``mpmath``), and rounded towards more noise or a larger cost.

Functions without an underscore in ``__all__`` take anything :func:`geodp.exact.exact` takes.
Those ending in ``_for`` and ``_of`` take exact fractions; plans and ledgers call them.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from geodp.exact import ceil_double, exact, exact_delta, exact_positive, floor_double, round_up, sqrt_up
from geodp.mechanisms.precise import erfc, fraction, precision, real
from geodp.wording import brief

__all__ = [
    "NO_DELTA",
    "classic_gaussian_sigma",
    "classic_sigma_for",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_sigma",
    "laplace_scale",
    "rho_for",
    "rho_of",
    "scale_for",
    "sigma_for",
    "sigma_for_rho",
    "sigma_from_zcdp",
    "zcdp_epsilon",
    "zcdp_epsilon_textbook",
    "zcdp_rho",
    "zcdp_rho_from_epsilon",
]

_DIGITS = 50  # of a result; what cancels on the way comes on top
_MARGIN = 1 + Fraction(1, 10**12)
_MAX_STEPS = 2000
_SMALLEST, _LARGEST = Fraction(5e-324), Fraction(1.7976931348623157e308)
_BELOW_DOUBLES = -1100  # a binary exponent below that of any double
NO_DELTA = (
    "delta must be greater than 0 for Gaussian noise, got 0: no amount of it is purely "
    'eps-private. Give a delta (geodp.delta_for(population)), or use mechanism="laplace".'
)
_NO_DELTA_ZCDP = (
    "delta must be greater than 0 to turn rho into eps, got 0: zCDP gives no finite eps at delta 0. "
    "Give a delta (geodp.delta_for(population))."
)


def gaussian_sigma(l2: object, eps: object, delta: object) -> float:
    r"""Return the standard deviation of Gaussian noise that makes a query (eps, delta)-private.

    Parameters
    ----------
    l2 : number
        L2 sensitivity of the query, greater than 0, in the query's own units.
    eps : number
        Greater than 0.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    float
        In the units of ``l2``; at least the smallest sigma that suffices, and at most 2e-12 of it more.

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range; ``delta`` is 0.

    Notes
    -----
    The smallest sigma with :math:`\Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon \Phi(-\mu/2 -
    \varepsilon/\mu) \le \delta`, where :math:`\mu` = l2 / sigma: necessary and sufficient at every
    eps (Balle and Wang 2018, theorem 8). For counts the noise is rounded, which costs nothing.

    Examples
    --------
    >>> round(gaussian_sigma(1, 1, 1e-6), 6)
    4.224679
    """
    return sigma_for(
        exact_positive(l2, "l2") ** 2, exact_positive(eps, "eps"), _delta_above_zero(delta, NO_DELTA)
    )


def classic_gaussian_sigma(l2: object, eps: object, delta: object) -> float:
    """Return the textbook sigma, ``l2 * sqrt(2 ln(1.25 / delta)) / eps``, proved for ``eps <= 1`` only.

    For comparison with :func:`gaussian_sigma`, whose result is smaller and holds at every eps.

    Parameters
    ----------
    l2 : number
        L2 sensitivity of the query, greater than 0, in the query's own units.
    eps : number
        Greater than 0 and at most 1.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    float
        In the units of ``l2``, rounded up (Dwork and Roth 2014, theorem A.1).

    Raises
    ------
    ValueError
        ``eps`` is above 1: at (50, 1e-6) the formula delivers a delta of 0.25.

    Examples
    --------
    >>> round(classic_gaussian_sigma(1, 1, 1e-6), 6)
    5.298803
    """
    square, wanted = exact_positive(l2, "l2") ** 2, exact_positive(eps, "eps")
    probability = _delta_above_zero(delta, NO_DELTA)
    if wanted > 1:
        raise ValueError(
            f"eps must be at most 1 for the textbook formula, got {brief(eps)}: beyond, it is not private. "
            "Use gaussian_sigma, which holds at every eps."
        )
    return classic_sigma_for(square, wanted, probability)


def laplace_scale(l1: object, eps: object) -> float:
    """Return the scale of eps-private Laplace noise: the smallest double b with ``b * eps >= l1`` exactly.

    Parameters
    ----------
    l1 : number
        L1 sensitivity of the query, greater than 0.
    eps : number
        Greater than 0.

    Returns
    -------
    float
        In the units of ``l1`` (Dwork, McSherry, Nissim and Smith 2006).

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range.

    Examples
    --------
    >>> laplace_scale(4, 0.5)
    8.0
    """
    return scale_for(exact_positive(l1, "l1"), exact_positive(eps, "eps"))


def gaussian_delta(l2: object, sigma: object, eps: object) -> float:
    """Return the delta that Gaussian noise of ``sigma`` delivers at ``eps``, rounded up.

    Parameters
    ----------
    l2, sigma : numbers
        L2 sensitivity and standard deviation, in the same units, greater than 0.
    eps : number
        At least 0.

    Returns
    -------
    float
        In (0, 1]: the left side of the inequality in :func:`gaussian_sigma`.

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range.

    Examples
    --------
    >>> f"{gaussian_delta(1, gaussian_sigma(1, 1, 1e-6), 1):.9g}"
    '1e-06'
    """
    square, width, wanted = exact_positive(l2, "l2") ** 2, exact_positive(sigma, "sigma"), exact(eps, "eps")
    if wanted < 0:
        raise ValueError(f"eps must be at least 0, got {brief(eps)}.")
    size = _magnitude(square / width**2) / 2
    with precision(_DIGITS + int(4 * abs(size)) + 3 * _magnitude(1 + wanted)) as mp:
        mu = mp.sqrt(real(mp, square)) / real(mp, width)
        stick = _hockey_stick(mp, mu, real(mp, wanted))
        reached = fraction(stick) if mp.mag(stick) > _BELOW_DOUBLES else Fraction(0)
        return ceil_double(min(Fraction(1), max(_SMALLEST, reached)))


def sigma_from_zcdp(l2: object, rho: object) -> float:
    """Return the smallest double sigma with ``l2**2 / (2 sigma**2) <= rho`` exactly.

    Parameters
    ----------
    l2 : number
        L2 sensitivity of the query, greater than 0.
    rho : number
        Greater than 0.

    Returns
    -------
    float
        In the units of ``l2``. Gaussian noise of that standard deviation is rho-zCDP (Bun and Steinke 2016,
        proposition 1.6).

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range.

    Examples
    --------
    >>> sigma_from_zcdp(2, 0.5)
    2.0
    """
    return sigma_for_rho(exact_positive(l2, "l2") ** 2, exact_positive(rho, "rho"))


def zcdp_rho(l2: object, sigma: object) -> float:
    """Return ``l2**2 / (2 sigma**2)``, the zCDP cost of Gaussian noise, rounded up to a double.

    Parameters
    ----------
    l2, sigma : numbers
        L2 sensitivity and standard deviation, in the same units, greater than 0.

    Returns
    -------
    float
        rho (Bun and Steinke 2016, proposition 1.6).

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range.

    Examples
    --------
    >>> zcdp_rho(2, 4)
    0.125
    """
    return ceil_double(exact_positive(l2, "l2") ** 2 / (2 * exact_positive(sigma, "sigma") ** 2))


def zcdp_epsilon(rho: object, delta: object) -> float:
    r"""Return the eps at which rho-zCDP gives (eps, delta)-privacy, rounded up.

    Parameters
    ----------
    rho : number
        At least 0.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    float
        At least 0; within 1e-25 relative of the smallest that the bound gives, before rounding.

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range; ``delta`` is 0.

    Notes
    -----
    The smallest over :math:`\alpha > 1` of :math:`\alpha\rho + \ln(1 - 1/\alpha) + \ln(1/(\alpha
    \delta)) / (\alpha - 1)`, cut at 0 (Canonne, Kamath and Steinke 2020, proposition 12). Every
    alpha is valid; the best solves :math:`(\alpha - 1)^2 \rho = \ln(1/(\alpha\delta))`.

    Examples
    --------
    >>> round(zcdp_epsilon("293764/114921", 1e-10), 7)
    17.1435507
    """
    cost = _not_negative(rho, "rho")
    return ceil_double(epsilon_of(cost, _delta_above_zero(delta, _NO_DELTA_ZCDP)))


def zcdp_epsilon_textbook(rho: object, delta: object) -> float:
    """Return ``rho + 2 sqrt(rho ln(1 / delta))``, a looser eps than :func:`zcdp_epsilon`, rounded up.

    Parameters
    ----------
    rho : number
        At least 0.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    float
        At least 0. For comparison (Bun and Steinke 2016, proposition 1.3).

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range; ``delta`` is 0.

    Examples
    --------
    >>> round(zcdp_epsilon_textbook(0.5, 1e-6), 6)
    5.756522
    """
    cost = _not_negative(rho, "rho")
    probability = _delta_above_zero(delta, _NO_DELTA_ZCDP)
    with precision(_DIGITS) as mp:
        return ceil_double(
            cost + fraction(_upward(mp, 2 * mp.sqrt(-real(mp, cost) * mp.log(real(mp, probability)))))
        )


def zcdp_rho_from_epsilon(eps: object, delta: object) -> float:
    """Return the largest rho with ``zcdp_epsilon(rho, delta) <= eps``, rounded down.

    Parameters
    ----------
    eps : number
        Greater than 0.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    float
        What may be spent in rho under a ceiling of (eps, delta).

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range; ``delta`` is 0.

    Examples
    --------
    >>> round(zcdp_rho_from_epsilon(3, 1e-5), 3)
    0.224
    """
    return floor_double(rho_for(exact_positive(eps, "eps"), _delta_above_zero(delta, _NO_DELTA_ZCDP)))


def sigma_for(l2_squared: Fraction, eps: Fraction, delta: Fraction) -> float:
    """Return :func:`gaussian_sigma` for the exact square of the L2 sensitivity."""
    mu = _largest_mu(eps, delta)
    return _root(l2_squared * (_MARGIN / mu) ** 2)


def classic_sigma_for(l2_squared: Fraction, eps: Fraction, delta: Fraction) -> float:
    """Return the textbook sigma at any eps; above 1 it is a figure to show, not a calibration."""
    with precision(_DIGITS) as mp:
        root = mp.sqrt(real(mp, 2 * l2_squared) * mp.log(real(mp, Fraction(5, 4) / delta)))
        return ceil_double(fraction(_upward(mp, root)) / eps)


def scale_for(l1: Fraction, eps: Fraction) -> float:
    """Return :func:`laplace_scale` for exact arguments."""
    return ceil_double(_within_doubles(l1 / eps, _LARGEST, "the Laplace scale"))


def sigma_for_rho(l2_squared: Fraction, rho: Fraction) -> float:
    """Return :func:`sigma_from_zcdp` for the exact square of the L2 sensitivity."""
    return _root(l2_squared / (2 * rho))


def rho_of(l2_squared: Fraction, sigma: float) -> Fraction:
    """Return the zCDP cost of the double ``sigma``, exact up to 40 digits and rounded up there."""
    return round_up(l2_squared / (2 * Fraction(sigma) ** 2))


@lru_cache(maxsize=1024)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return :func:`zcdp_epsilon` rounded up at 40 digits instead of to a double."""
    if rho == 0:
        return Fraction(0)
    with precision(_DIGITS + _magnitude(rho) + _magnitude(delta)) as mp:
        cost, log_delta = real(mp, rho), mp.log(real(mp, delta))
        order = _best_order(mp, lambda x: x * x * cost + mp.log1p(x) + log_delta)
        first, second = (1 + order) * cost, mp.log1p(1 / order)
        eps = first - second - (log_delta + mp.log1p(order)) / order
        error = (first + second + order * cost) * mp.mpf(10) ** (8 - _DIGITS)
        return round_up(max(Fraction(0), fraction(eps + error)))


@lru_cache(maxsize=1024)
def rho_for(eps: Fraction, delta: Fraction) -> Fraction:
    """Return :func:`zcdp_rho_from_epsilon` as a fraction of 40 digits, rounded down."""
    with precision(_DIGITS + _magnitude(eps) + _magnitude(delta)) as mp:
        wanted, log_delta = real(mp, eps), mp.log(real(mp, delta))

        def excess(x: Any) -> Any:
            return wanted + mp.log1p(1 / x) + (log_delta + mp.log1p(x)) * (2 * x + 1) / (x * x)

        order = _best_order(mp, excess)
        rho = (wanted + mp.log1p(1 / order) + (log_delta + mp.log1p(order)) / order) / (1 + order)
        return _round_down(fraction(rho))


@lru_cache(maxsize=512)
def _largest_mu(eps: Fraction, delta: Fraction) -> Fraction:
    """Return the largest l2 / sigma that (eps, delta) allows, within 1e-13 of it.

    With r = sqrt(2 eps) and mu = r e^u the two arguments of Phi are r sinh(u) and -r cosh(u), so
    nothing cancels whatever the size of eps. ln delta is concave in u and its slope is
    mu phi(r sinh(u)) / delta: Newton from the left converges and never passes the root.
    """
    digits = _DIGITS + 2 * _magnitude(eps) + _magnitude(1 - delta)
    with precision(digits) as mp:
        cost, target = real(mp, eps), mp.log(real(mp, delta))
        root = mp.sqrt(2 * cost)
        u = mp.asinh(-mp.sqrt(-2 * target) / root)
        for _ in range(_MAX_STEPS):
            reached = _hockey_stick(mp, root * mp.exp(u), cost)
            slope = root * mp.exp(u) * mp.npdf(root * mp.sinh(u)) / reached
            step = (target - mp.log(reached)) / slope
            u += step
            if abs(step) < mp.mpf(10) ** -30:
                break
        mu = root * mp.exp(u)
        if _hockey_stick(mp, mu * (1 - mp.mpf(10) ** -13), cost) > real(mp, delta):
            raise ArithmeticError("no sigma was found for this eps and delta; nothing was released.")
        return fraction(mu)


def _hockey_stick(mp: Any, mu: Any, eps: Any) -> Any:
    """Compute delta of the Gaussian mechanism with l2 / sigma = mu, in the caller's precision."""
    low, high = eps / mu - mu / 2, eps / mu + mu / 2
    half = mp.sqrt(mp.mpf(2))
    return (erfc(mp, low / half) - mp.exp(eps) * erfc(mp, high / half)) / 2


def _best_order(mp: Any, function: Any) -> Any:
    """Root in x = alpha - 1 of an increasing function, near enough for a minimum: 1e-25 relative."""
    low, high = mp.mpf(-1), mp.mpf(1)  # of log2 x
    while function(mp.mpf(2) ** low) > 0:
        low *= 2
    while function(mp.mpf(2) ** high) < 0:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if function(mp.mpf(2) ** middle) > 0 else (middle, high)
    return mp.mpf(2) ** high


def _upward(mp: Any, number: Any) -> Any:
    """Move a result upward by far more than its rounding errors and far less than its last shown digit."""
    return number + abs(number) * mp.mpf(10) ** (8 - _DIGITS)


def _round_down(number: Fraction) -> Fraction:
    """Fraction of 40 digits below ``number``, by enough that the way back to eps does not exceed it."""
    lower = number * (1 - Fraction(1, 10**38))
    scale = Fraction(10) ** (40 - _magnitude_signed(lower))
    return Fraction(math.floor(lower * scale)) / scale


def _magnitude(number: Fraction) -> int:
    """Roughly how many decimal digits ``number`` lies from 1, either way."""
    return abs(_magnitude_signed(number))


def _magnitude_signed(number: Fraction) -> int:
    return len(str(abs(number.numerator))) - len(str(number.denominator))


def _delta_above_zero(delta: object, message: str) -> Fraction:
    number = exact_delta(delta)
    if number == 0:
        raise ValueError(message)
    return number


def _not_negative(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {brief(value)}.")
    return number


def _root(square: Fraction) -> float:
    """Return the smallest double sigma whose square is not below ``square``."""
    return sqrt_up(_within_doubles(square, _LARGEST**2, "sigma"))


def _within_doubles(number: Fraction, largest: Fraction, name: str) -> Fraction:
    if number > largest:
        raise ValueError(f"{name} would exceed every double: the sensitivity is too large for this eps.")
    return number
