"""Noise for a query that geodp does not have: a vector of yours, with sensitivities that you state.

Everything else in geodp derives its sensitivities from what the code enforces. Here the caller vouches
for them, and the record says so. No ledger pays for it: where one is required it is refused.
"""

import math
import warnings
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geodp._version import __version__
from geodp.errors import NoiseWarning
from geodp.exact import exact_delta, exact_positive, plain, sqrt_up
from geodp.mechanisms.calibration import NO_DELTA, rho_of, scale_for, sigma_for
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian
from geodp.mechanisms.noise import add_saturating
from geodp.wording import brief

__all__ = ["NoisyArray", "gaussian", "laplace"]

Neighboring = Literal["add_remove_one", "replace_one"]
_RELATIONS = {"add_remove_one": "one subject more or less", "replace_one": "one subject replaced"}
_TOP = 2**63 - 1


class NoisyArray(np.ndarray[Any, np.dtype[Any]]):
    """A noisy array and the record of its release.

    An ordinary numpy array in every other way. What is computed from it (slices, sums, copies) is no
    longer the release, and its ``record`` is None.

    Attributes
    ----------
    record : mapping or None
        Plain JSON, read only: mechanism, scale, std, stated sensitivities and relation, guarantee.

    Examples
    --------
    >>> noisy = laplace([120, 7, 0], l1=1, eps=1.0)
    >>> type(noisy).__name__, noisy.record["guarantee"]
    ('NoisyArray', '(1, 0)-DP for one subject more or less, if the stated l1 is true')
    >>> (noisy + 1).record is None
    True
    """

    record: Mapping[str, Any] | None

    def __array_finalize__(self, obj: object) -> None:
        self.record = None


def laplace(
    values: ArrayLike,
    l1: object,
    eps: object,
    *,
    neighboring: Neighboring = "add_remove_one",
    lattice: object | None = None,
) -> NoisyArray:
    r"""Return ``values`` plus discrete Laplace noise: (eps, 0)-private if ``l1`` is true.

    Parameters
    ----------
    values : array_like of integers, or of floats with ``lattice``
        The exact aggregate, of a shape that does not depend on the data.
    l1 : number
        Largest L1 distance between the aggregates of two neighbouring data sets, greater than 0.
        You state it; nothing can check it.
    eps : number
        Greater than 0.
    neighboring : {"add_remove_one", "replace_one"}
        The relation that ``l1`` was derived for; it goes on record.
    lattice : number, optional
        For real values: a power of two, the step they are rounded to before the noise.

    Returns
    -------
    NoisyArray
        int64 of the shape of ``values``, stopping at +-(2^63 - 1) instead of wrapping around; with
        ``lattice`` float64, multiples of the step. ``.record`` says what was done.

    Raises
    ------
    TypeError
        Real values without ``lattice``, or values that are no numbers.
    ValueError
        An argument is out of range, or the scale would exceed 2^50 steps.
    LedgerError
        This process makes no release without a ledger, and this one takes none.

    Warns
    -----
    NoiseWarning
        More than half of the noise will be 0.

    Notes
    -----
    Rounding to multiples of ``lattice`` = s can move two neighbouring aggregates apart. Nearest rounding
    r has \|r(x) - x\| <= s/2, so \|r(x) - r(y)\| <= \|x - y\| + s for each of the n numbers, and the L1
    sensitivity becomes at most ``l1 + n * s``. That is what the noise is scaled to: choose s small
    against l1 / n. NaN counts as 0, infinities as the largest integers: an exception would
    tell something about the data.

    Examples
    --------
    >>> noisy = laplace([10, 0, 3], l1=2, eps=1)
    >>> noisy.dtype, noisy.record["scale"]
    (dtype('int64'), 2.0)
    """
    stated, wanted = exact_positive(l1, "l1"), exact_positive(eps, "eps")
    whole_values, step = _integers(values, lattice)
    steps = stated if step is None else stated / step + whole_values.size
    law = DiscreteLaplace(scale_for(steps, wanted))
    record = {
        **_record(law, neighboring, step, whole_values.shape),
        "l1": plain(stated),
        "charged_l1": plain(steps * (step or 1)),
        "eps": plain(wanted),
        "delta": 0,
        "rho": plain(wanted**2 / 2),
        "guarantee": _guarantee(wanted, Fraction(0), neighboring, "l1"),
    }
    return _release(whole_values, law, step, record)


def gaussian(
    values: ArrayLike,
    l2: object,
    eps: object,
    delta: object,
    *,
    neighboring: Neighboring = "add_remove_one",
    lattice: object | None = None,
) -> NoisyArray:
    r"""Return ``values`` plus rounded Gaussian noise: (eps, delta)-private if ``l2`` is true.

    Parameters
    ----------
    values, neighboring, lattice
        As for :func:`laplace`.
    l2 : number
        Largest L2 distance between the aggregates of two neighbouring data sets, greater than 0.
        You state it; nothing can check it.
    eps : number
        Greater than 0.
    delta : number
        Greater than 0 and below 1.

    Returns
    -------
    NoisyArray
        As for :func:`laplace`.

    Raises
    ------
    TypeError, ValueError
        As for :func:`laplace`, or ``delta`` is 0.
    LedgerError
        As for :func:`laplace`.

    Warns
    -----
    NoiseWarning
        More than half of the noise will be 0.

    Notes
    -----
    With ``lattice`` = s and n numbers, r the nearest rounding and \|r(x) - x\| <= s/2 for each:
    \|\|r(x) - r(y)\|\|_2 <= \|\|x - y\|\|_2 + \|\|(r(x) - x) - (r(y) - y)\|\|_2 <= l2 + s sqrt(n),
    which is what the noise is scaled to. Rounding toward zero would not help: it shrinks norms, not
    differences.

    Examples
    --------
    >>> noisy = gaussian([0.25, 1.5], l2=1, eps=1, delta=1e-6, lattice=2**-10)
    >>> bool((noisy * 1024 == np.rint(noisy * 1024)).all())
    True
    """
    stated, wanted = exact_positive(l2, "l2"), exact_positive(eps, "eps")
    probability = _delta(delta)
    whole_values, step = _integers(values, lattice)
    steps = stated if step is None else stated / step + Fraction(sqrt_up(Fraction(whole_values.size)))
    law = RoundedGaussian(sigma_for(steps**2, wanted, probability))
    record = {
        **_record(law, neighboring, step, whole_values.shape),
        "l2": plain(stated),
        "charged_l2": plain(steps * (step or 1)),
        "eps": plain(wanted),
        "delta": plain(probability),
        "rho": plain(rho_of(steps**2, law.sigma)),
        "guarantee": _guarantee(wanted, probability, neighboring, "l2"),
    }
    return _release(whole_values, law, step, record)


def _release(
    values: NDArray[np.int64], law: Law, step: Fraction | None, record: dict[str, Any]
) -> NoisyArray:
    _check_uncounted(law)
    if law.p_zero > 0.5:
        warnings.warn(
            f"{law.p_zero:.3g} of the noise will be 0: this eps publishes most numbers as they are.",
            NoiseWarning,
            stacklevel=3,
        )
    noisy = add_saturating(values.ravel(), law.sample(values.size)).reshape(values.shape)
    out = noisy if step is None else noisy * float(step)
    result = np.asarray(out).view(NoisyArray)  # numpy makes a scalar of what has no dimension
    result.record = MappingProxyType(record)
    return result


def _check_uncounted(law: Law) -> None:
    from geodp.ledger import check_uncounted  # it is built upon this package

    check_uncounted(
        f"mechanisms.{law.kind} takes no ledger (geodp.heatmap, sum, mean and centroid do; or debit a ledger "
        "yourself and draw where none is required)"
    )


def _integers(values: ArrayLike, lattice: object | None) -> tuple[NDArray[np.int64], Fraction | None]:
    """Return the values in steps, and the step (None for integers as they are)."""
    array = _array(values)
    if lattice is not None:
        step = _power_of_two(lattice)
        return _round(array, step), step
    if array.dtype.kind == "u":
        return np.minimum(array.astype(np.uint64), np.uint64(_TOP)).astype(np.int64), None
    if array.dtype.kind == "i":
        return array.astype(np.int64), None
    raise TypeError(
        f"values must be integers, got dtype {array.dtype}. For real numbers give lattice=, a power of two "
        "that they are rounded to (2**-10 for thousandths): noise on bare doubles leaks in its low bits."
    )


def _array(values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (MemoryError, OverflowError):  # a range of a trillion, or nothing that has a size
        pass
    raise ValueError("values do not fit into an array.")


def _round(array: NDArray[Any], step: Fraction) -> NDArray[np.int64]:
    """Nearest multiples of the step; exact, since a power of two only moves the exponent."""
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise TypeError(f"values must be integers or doubles, got dtype {array.dtype}.")
    if array.dtype.kind in "iu":
        return _round_integers(_integers(array, None)[0], step)
    top = 2.0**62
    with np.errstate(all="ignore"):
        steps = np.nan_to_num(array.astype(np.float64) / float(step), nan=0.0, posinf=top, neginf=-top)
        return cast(NDArray[np.int64], np.clip(np.rint(steps), -top, top).astype(np.int64))


def _round_integers(values: NDArray[np.int64], step: Fraction) -> NDArray[np.int64]:
    """Nearest multiples of the step, in integers: doubles would merge those above 2^53."""
    top = 2**62
    if step > 1:
        shift = min(step.numerator.bit_length() - 1, 63)
        half = (values >> (shift - 1)) & 1
        return (values >> shift) + half
    shift = step.denominator.bit_length() - 1
    most = top >> shift if shift < 63 else 0
    return np.clip(values, -most, most) << min(shift, 62)


def _power_of_two(lattice: object) -> Fraction:
    step = exact_positive(lattice, "lattice")
    top, bottom = step.numerator, step.denominator
    if top & (top - 1) or bottom & (bottom - 1) or not 2.0**-500 <= step <= 2.0**500:
        near = math.floor(math.log2(top) - math.log2(bottom))
        raise ValueError(
            f"lattice must be a power of two (so that rounding is exact), such as 2**{near}, got {brief(lattice)}."
        )
    return step


def _delta(delta: object) -> Fraction:
    number = exact_delta(delta)
    if number == 0:
        raise ValueError(NO_DELTA)
    return number


def _record(law: Law, neighboring: str, step: Fraction | None, shape: tuple[int, ...]) -> dict[str, Any]:
    if neighboring not in _RELATIONS:
        raise ValueError(
            f"neighboring must be one of {', '.join(map(repr, _RELATIONS))}, got {brief(neighboring)}."
        )
    return {
        "mechanism": law.kind,
        "scale": law.scale,
        "std": law.std,
        "lattice": None if step is None else plain(step),
        "shape": list(shape),
        "neighboring": neighboring,
        "sensitivity": "stated by the caller",
        "noise": "operating-system entropy",
        "ledger": None,
        "version": __version__,
    }


def _guarantee(eps: Fraction, delta: Fraction, neighboring: str, norm: str) -> str:
    return f"({plain(eps)}, {plain(delta)})-DP for {_RELATIONS[neighboring]}, if the stated {norm} is true"
