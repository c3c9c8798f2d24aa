"""What several releases cost together, under every rule in use: for planning, never for enforcement.

Basic composition and zCDP are also what a ledger enforces. Renyi DP and privacy loss distributions are
tighter, but their bounds hold for a series that was fixed beforehand, not for one in which a release
is chosen after seeing the last. They come from dp-accounting (the extra ``accounting``).
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, Protocol

import pandas as pd

from geodp.accounting import NOTHING, Charge, amount, up
from geodp.exact import ceil_double, exact_delta, floor_double, sqrt_up
from geodp.wording import brief

__all__ = ["Costed", "Measured", "compose"]

# Above this many lattice steps a Laplace law is replaced by a coarser one, which is never more private.
_MOST_STEPS = 1024
_MISSING = 'needs dp-accounting: pip install "geodp[accounting]"'

Part = tuple[str, float, int]


class Measured(Protocol):
    """One noisy vector: its mechanism, sensitivities and scale in the same lattice steps."""

    @property
    def mechanism(self) -> str: ...  # noqa: D102
    @property
    def l1(self) -> Fraction: ...  # noqa: D102
    @property
    def l2_squared(self) -> Fraction: ...  # noqa: D102
    @property
    def scale(self) -> float: ...  # noqa: D102


class Costed(Protocol):
    """A plan, as far as its cost goes."""

    @property
    def charge(self) -> Charge: ...  # noqa: D102
    @property
    def measurements(self) -> Iterable[Measured]: ...  # noqa: D102


def compose(releases: Iterable["Costed | Charge"], delta: object) -> pd.DataFrame:
    """Return what the releases cost together at ``delta``, one row for each way of accounting.

    Parameters
    ----------
    releases : iterable of Plan or Charge
        Plans may repeat (``[plan] * 365``). Of a bare charge only its amounts are known, so its
        rows can be looser than those of the plan behind it.
    delta : number
        The delta at which the other rules state their eps; at least 0 and below 1e-3.

    Returns
    -------
    DataFrame
        Index ``accountant``: ``basic``, ``zcdp`` (Canonne, Kamath and Steinke 2020), ``zcdp_textbook``
        (Bun and Steinke 2016), ``rdp`` and ``pld``. Columns ``eps`` (float64, rounded up; infinite
        where the rule says nothing at this delta, NaN where dp-accounting is not installed), ``delta``
        (float64) and ``note`` (str). The row ``basic`` has the delta that the releases add up to.

    Raises
    ------
    ValueError
        ``delta`` is out of range (eps and delta swapped?), or there are no releases.

    Notes
    -----
    A pure release counts eps²/2 in zCDP and randomised response, its worst case, in Renyi DP.

    Examples
    --------
    >>> table = compose([Charge(Fraction(1, 10))] * 10, 1e-6)
    >>> table["eps"].round(3).to_dict()["zcdp"]
    1.472
    """
    if not isinstance(releases, Iterable):
        raise TypeError(f"compose takes a list of plans and charges, got {type(releases).__name__}.")
    items, charges = [], []
    for item in releases:  # one by one: a range of a trillion numbers is refused at the first
        charges.append(_charge(item))
        items.append(item)
    if not items:
        raise ValueError("compose needs at least one plan or charge.")
    target = _target(delta)
    total = reduce(add, charges, NOTHING)
    parts: Counter[Part] = Counter(part for item in items for part in _parts(item))
    rows = {"basic": _basic(total, target)} | _zcdp(total, target) | _numeric(parts, total, target)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["eps", "delta", "note"])
    return table.rename_axis("accountant")


def _target(delta: object) -> Fraction:
    target = exact_delta(delta)
    if target >= Fraction(1, 1000):
        raise ValueError(
            f"delta must be below 1e-3, got {brief(delta)}; the order is compose(releases, delta)."
        )
    return target


def _charge(item: "Costed | Charge") -> Charge:
    charge = item if isinstance(item, Charge) else getattr(item, "charge", None)
    if not isinstance(charge, Charge):
        raise TypeError(f"compose takes plans and charges, got {type(item).__name__}.")
    return charge


def _basic(total: Charge, target: Fraction) -> tuple[float, float, str]:
    over = total.delta > target
    note = f"its deltas add up to more than {amount(target)}" if over else ""
    return up(total.eps), up(total.delta), note


def _zcdp(total: Charge, target: Fraction) -> dict[str, tuple[float, float, str]]:
    from geodp.mechanisms.calibration import zcdp_epsilon, zcdp_epsilon_textbook

    rules = {"zcdp": zcdp_epsilon, "zcdp_textbook": zcdp_epsilon_textbook}
    left = target - total.delta_select
    if total.rho is None or left <= 0:
        reason = "a charge without rho" if total.rho is None else _no_delta(total)
        return {name: (math.inf, up(target), reason) for name in rules}
    return {name: (rule(total.rho, left), up(target), "") for name, rule in rules.items()}


def _no_delta(total: Charge) -> str:
    return "partition selection takes the whole delta" if total.delta_select else "no eps at delta 0"


def _parts(item: "Costed | Charge") -> list[Part]:
    """Turn an item into (kind, parameter, lattice steps), so that equal parts are counted once."""
    if not isinstance(item, Charge):
        return [_part(measurement) for measurement in item.measurements]
    if item.rho is not None and item.delta > 0:
        return [("rho", ceil_double(item.rho), 0)]
    return [("pure", ceil_double(item.eps), 0)] if item.delta == 0 else [("unknown", 0.0, 0)]


def _part(measurement: Measured) -> Part:
    if measurement.mechanism == "gaussian":
        mu = Fraction(measurement.l2_squared) / Fraction(measurement.scale) ** 2
        return "gaussian", floor_double(1 / Fraction(sqrt_up(mu))), 0
    if measurement.mechanism != "laplace":
        return "pure", ceil_double(Fraction(measurement.l1) / Fraction(measurement.scale)), 0
    return _lattice(Fraction(measurement.l1), Fraction(measurement.scale))


def _lattice(l1: Fraction, scale: Fraction) -> Part:
    """Return the discrete Laplace law, with at most 1024 steps to its sensitivity.

    A geometric number is m times its quotient by m plus an independent remainder; hence the law of scale
    b is a post-processing of the one of scale b/m on every m-th step, which has the same l1/b.
    """
    steps = math.ceil(l1)
    m = -(-steps // _MOST_STEPS)
    return "laplace", ceil_double(m / scale), -(-steps // m)


def _numeric(parts: Counter[Part], total: Charge, target: Fraction) -> dict[str, tuple[float, float, str]]:
    left = target - total.delta_select
    if left <= 0 or any(kind == "unknown" for kind, _, _ in parts):
        reason = _no_delta(total) if left <= 0 else "a charge without rho"
        return {name: (math.inf, up(target), reason) for name in ("rdp", "pld")}
    try:
        import dp_accounting  # noqa: F401
    except ImportError:
        return {name: (math.nan, up(target), _MISSING) for name in ("rdp", "pld")}
    at = floor_double(left)
    # rho-zCDP alone does not say what the loss distribution is.
    note = "bare charges with a delta taken as Gaussian" if any(kind == "rho" for kind, _, _ in parts) else ""
    return {"rdp": (_rdp(parts, at), up(target), ""), "pld": (_pld(parts, at), up(target), note)}


def _rdp(parts: Counter[Part], delta: float) -> float:
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.rdp import RdpAccountant

    # The sensitivities carry the neighboring relation already; this one makes the response a swap of two.
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    for (kind, parameter, steps), count in parts.items():
        if kind == "gaussian":
            event: Any = dp_event.GaussianDpEvent(parameter)
        elif kind == "rho":
            event = dp_event.ZCDpEvent(parameter)
        else:
            event = _randomized_response(parameter * steps if kind == "laplace" else parameter)
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def _randomized_response(eps: float) -> Any:
    from dp_accounting import dp_event

    return dp_event.RandomizedResponseDpEvent(2 * math.exp(-eps) / (1 + math.exp(-eps)), 2)


def _pld(parts: Counter[Part], delta: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity()
    for (kind, parameter, steps), count in parts.items():
        if kind == "gaussian":
            total = total.compose(pld.from_gaussian_mechanism(parameter / math.sqrt(count)))
        elif kind == "rho":
            total = total.compose(pld.from_gaussian_mechanism(1 / math.sqrt(2 * parameter * count)))
        elif kind == "laplace":
            total = total.compose(pld.from_discrete_laplace_mechanism(parameter, steps).self_compose(count))
        else:
            total = total.compose(_pure(parameter).self_compose(count))
    return float(total.get_epsilon_for_delta(delta))


def _pure(eps: float) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    return privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(eps, 0.0))
