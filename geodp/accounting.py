"""What releases cost together: charges, ceilings, and the two books that a ledger keeps.

Amounts are exact rationals, so ten spends of 0.1 fill 1.0 and the eleventh does not fit. A ceiling
(E, D) is watched by two books, both valid when each release is chosen after seeing the earlier ones:

* book A, basic composition: the eps add up to at most E, the delta to at most D/2;
* book B, zero-concentrated DP: the rho add up to at most the largest rho whose tight conversion at
  delta D/2 (less a declared share for partition selection) stays within E.

A release is allowed when after it at least one of them still fits. The sums only grow, so whatever
was released in the end fits A or fits B; stopped at A, and stopped at B, the series is (E, D/2)-DP
each, and the two events add up to (E, D). With D = 0 there is book A alone. PRIVACY.md has the proof.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from geodp.exact import (
    exact,
    exact_delta,
    exact_positive,
    floor_double,
    plain,
    round_up,
    sqrt_up,
    tidy,
    whole,
    written,
)
from geodp.wording import brief

__all__ = [
    "ACCOUNTANTS",
    "NOTHING",
    "SLACK",
    "Budget",
    "Ceiling",
    "Charge",
    "amount",
    "amounts",
    "ceiling",
    "delta_for",
    "down",
    "left_amounts",
    "split",
    "up",
]

ACCOUNTANTS = ("both", "basic", "zcdp")

# Prices are computed again in double precision; a debit may differ from them by this much.
SLACK = 1 + Fraction(1, 10**9)
_LARGEST = Fraction("1.7976931348623157e308")  # as it prints

# Every rho is a multiple of 1e-60, so that sums of them are exact and no rounding adds up: at least 40
# digits for all but absurd ones.
_GRID = 10**60


@dataclass(frozen=True)
class Charge:
    """What one release costs.

    Parameters
    ----------
    eps, delta : Fraction
        The release is (eps, delta)-DP. ``delta`` is the whole of it, selection included.
    rho : Fraction, optional
        The release is rho-zCDP, up to ``delta_select``. Rounded up to a multiple of 1e-60. Left out, it is
        eps²/2 for a pure release (Bun and Steinke 2016, proposition 1.4) and unknown for any other;
        a charge without it closes book B.
    delta_select : Fraction
        The part of ``delta`` that a partition selection spends; never converted into rho.

    Raises
    ------
    ValueError
        An amount is negative, or ``delta_select`` exceeds ``delta``.

    Examples
    --------
    >>> charge = Charge(Fraction(1, 10), Fraction(0))
    >>> charge.rho
    Fraction(1, 200)
    >>> charge.to_dict()
    {'eps': '1/10', 'delta': '0', 'rho': '1/200'}
    >>> Charge.from_dict(charge.to_dict()) == charge
    True
    """

    eps: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    delta_select: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("eps", "delta", "delta_select"):
            object.__setattr__(self, name, _not_negative(getattr(self, name), name))
        if self.delta_select > self.delta:
            raise ValueError("delta_select is a part of delta and cannot exceed it.")
        rho = self.eps**2 / 2 if self.rho is None and self.delta == 0 else self.rho
        if rho is not None:
            object.__setattr__(self, "rho", _grid_up(_not_negative(rho, "rho")))

    def __add__(self, other: "Charge") -> "Charge":
        """Return what both cost together."""
        rho = None if self.rho is None or other.rho is None else self.rho + other.rho
        select = tidy(self.delta_select + other.delta_select)
        return Charge(tidy(self.eps + other.eps), tidy(self.delta + other.delta), rho, select)

    def to_dict(self) -> dict[str, str | None]:
        """Return the amounts as exact texts, such as ``{"eps": "1", "delta": "1/1000000", ...}``.

        Returns
        -------
        dict
            ``eps``, ``delta``, ``rho`` (text or None) and, unless it is 0, ``delta_select``.
        """
        texts = {"eps": str(self.eps), "delta": str(self.delta)}
        rho = {"rho": None if self.rho is None else str(self.rho)}
        return texts | rho | ({"delta_select": str(self.delta_select)} if self.delta_select else {})

    @classmethod
    def from_dict(cls, texts: Mapping[str, Any]) -> "Charge":
        """Return the charge that :meth:`to_dict` wrote.

        Parameters
        ----------
        texts : mapping
            Exact amounts by name.

        Returns
        -------
        Charge
            Equal to the one that was written.
        """
        rho = texts.get("rho")
        return cls(
            written(texts["eps"]),
            written(texts["delta"]),
            None if rho is None else written(rho),
            written(texts.get("delta_select", 0)),
        )


@dataclass(frozen=True)
class Budget:
    """What each of several equal releases may spend; every release accepts it in place of ``eps``.

    Made by :meth:`geodp.Ledger.split`.

    Parameters
    ----------
    eps, delta : Fraction
        What each release is charged in book A. For the Laplace mechanism ``delta`` is 0, and its
        scale is calibrated to ``eps``.
    rho : Fraction
        What Gaussian noise is calibrated to: ``l2**2 / (2 sigma**2) <= rho``, whichever book pays.
    mechanism : str
        ``"laplace"`` or ``"gaussian"``; part of the budget, because the count holds for it alone.
    book : str
        Which book pays: ``"basic"`` or ``"zcdp"``.

    Raises
    ------
    ValueError
        An amount is not above 0, or ``rho`` costs more than the (eps, delta) that it claims.

    Examples
    --------
    >>> import geodp, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> print(geodp.Ledger(folder.name + "/city.ledger", eps=3).split(30))
    Budget of one release: laplace, eps 0.1, delta 0, rho 0.005; the basic book pays
    >>> folder.cleanup()
    """

    eps: Fraction
    delta: Fraction
    rho: Fraction
    mechanism: str
    book: str = "basic"

    def __post_init__(self) -> None:
        for name in ("eps", "delta", "rho"):
            object.__setattr__(self, name, exact(getattr(self, name), name))
        if self.mechanism not in ("laplace", "gaussian") or self.eps <= 0 or self.rho <= 0:
            raise ValueError(
                "a Budget is made by ledger.split(k): eps and rho above 0, mechanism laplace or gaussian."
            )
        if self.mechanism == "gaussian":
            self._check_gaussian()

    def _check_gaussian(self) -> None:
        """Refuse a rho whose noise would not deliver the (eps, delta) that is charged and claimed."""
        from geodp.mechanisms.calibration import gaussian_delta

        costs = gaussian_delta(sqrt_up(2 * self.rho), 1, self.eps)
        if Fraction(costs) > self.delta * SLACK:
            raise ValueError(
                f"rho {amount(self.rho)} costs delta {costs:.3g} at eps {amount(self.eps)}, more than "
                f"{amount(self.delta)}. A Budget is made by ledger.split(k)."
            )

    def __str__(self) -> str:
        amounts = f"eps {amount(self.eps)}, delta {amount(self.delta)}, rho {amount(self.rho)}"
        return f"Budget of one release: {self.mechanism}, {amounts}; the {self.book} book pays"


@dataclass(frozen=True)
class Ceiling:
    """How much may be spent in all, and by which books; made by :func:`ceiling`.

    Attributes
    ----------
    eps, delta : Fraction
        The guarantee of the whole series.
    accountant : str
        ``"both"``, ``"basic"`` or ``"zcdp"``.
    selection : Fraction
        The part of delta set aside for partition selection in book B.
    rho : Fraction or None
        What book B holds, rounded down; None if there is no book B.
    """

    eps: Fraction
    delta: Fraction
    accountant: str
    selection: Fraction
    rho: Fraction | None

    @property
    def basic_delta(self) -> Fraction | None:
        """The delta that book A holds; None if there is no book A."""
        if self.accountant == "zcdp":
            return None
        return self.delta if self.rho is None else self.delta / 2

    def fits_basic(self, total: Charge) -> bool:
        """Whether book A holds ``total``."""
        delta = self.basic_delta
        return delta is not None and total.eps <= self.eps and total.delta <= delta

    def fits_zcdp(self, total: Charge) -> bool:
        """Whether book B holds ``total``."""
        if self.rho is None or total.rho is None:
            return False
        return total.rho <= self.rho and total.delta_select <= self.selection

    def allows(self, total: Charge) -> bool:
        """Whether at least one book holds ``total``."""
        return self.fits_basic(total) or self.fits_zcdp(total)

    def left(self, spent: Charge) -> Charge:
        """Return what each book still holds after ``spent``; 0 in a book that is closed for good."""
        basic = self.basic_delta if self.fits_basic(spent) else None
        eps = Fraction(0) if basic is None else self.eps - spent.eps
        delta = Fraction(0) if basic is None else basic - spent.delta
        open_b = self.rho is not None and spent.rho is not None and self.fits_zcdp(spent)
        rho = self.rho - spent.rho if open_b and self.rho is not None and spent.rho is not None else 0
        return Charge(eps, delta, _grid_down(Fraction(rho)))


def ceiling(eps: object, delta: object = 0, accountant: str = "both", selection: object = 0) -> Ceiling:
    """Return the :class:`Ceiling` for (eps, delta), its zCDP side computed and rounded down.

    Parameters
    ----------
    eps, delta : number
        The guarantee of the series; ``delta`` at least 0 and below 1.
    accountant : {"both", "basic", "zcdp"}
        Which books are kept.
    selection : number
        The part of delta that partition selections may spend in book B.

    Raises
    ------
    ValueError
        ``accountant`` is unknown, is ``"zcdp"`` with delta 0, or ``selection`` leaves book B no delta.

    Examples
    --------
    >>> amount(ceiling(3, "1e-5").rho)
    '0.210877'
    """
    from geodp.mechanisms.calibration import rho_for

    total, loss = exact_positive(eps, "eps"), exact_delta(delta)
    share = exact_delta(selection, "selection")
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"accountant must be 'both', 'basic' or 'zcdp', got {brief(accountant)}.")
    if accountant == "zcdp" and loss == 0:
        raise ValueError("accountant='zcdp' needs a delta above 0; with delta 0 use 'both' or 'basic'.")
    if accountant == "basic" or loss == 0:
        if share:
            raise ValueError("selection is a share of the zCDP book's delta; this ledger has no such book.")
        return Ceiling(total, loss, accountant, share, None)
    part = loss / 2 if accountant == "both" else loss
    if share >= part:
        raise ValueError(f"selection must be below {amount(part)}, the zCDP book's delta.")
    return Ceiling(total, loss, accountant, share, rho_for(total, part - share))


def split(held: Ceiling, spent: Charge, k: int, l1: object = 1, l2: object = 1) -> Budget:
    """Return the budget of which exactly ``k`` releases fit into what is left, and ``k + 1`` do not.

    Parameters
    ----------
    held : Ceiling
        The ceiling.
    spent : Charge
        What was spent before.
    k : int
        How many releases, 1 to 1e9.
    l1, l2 : number
        The sensitivities of one release (a cap of c cells: c and sqrt(c)); they decide which
        mechanism, and under ``"both"`` which book, gives less noise. The count holds for any.

    Returns
    -------
    Budget
        The quietest of: Laplace at eps/k, Gaussian at (eps/k, delta/k), Gaussian at rho/k.

    Raises
    ------
    ValueError
        Nothing is left to split.

    Notes
    -----
    Why k + 1 do not fit either book under ``"both"``: if book A pays, its eps is filled exactly, and
    its noise being the smaller means that k releases pass book B too (Laplace: l1 >= l2, so
    rho/k <= l2² (eps/k)²/(4 l1²) < (eps/k)²/2; Gaussian: the smaller sigma costs the larger rho). If
    book B pays, each release is charged delta/k in book A, which k fill.
    """
    number = whole(k, "k", 1, 10**9)
    ratios = (exact_positive(l1, "l1"), exact_positive(l2, "l2"))
    if ratios[0] < ratios[1]:
        raise ValueError("l1 is never below l2; give split(k, l1=..., l2=...) as a plan shows them.")
    left = held.left(spent)
    offers = [*_basic_offers(left, number, *ratios), *_zcdp_offers(held, left, number, ratios[1])]
    if not offers:
        raise ValueError("nothing is left to split.")
    return min(offers, key=lambda offer: offer[0])[1]


def delta_for(population: int) -> float:
    """Return a delta for a population of ``population`` subjects.

    Parameters
    ----------
    population : int
        A *declared*, public number of subjects, 1 to 1e12; never a count of rows.

    Returns
    -------
    float
        The largest double not above min(1e-6, N^-1.1, 1/(100 N)), neither as a double nor as it
        prints. It is below 1/N by construction.

    Examples
    --------
    >>> delta_for(8_400_000)
    1.1904761904761903e-09
    >>> delta_for(1000)
    1e-06
    """
    size = whole(population, "population", 1, 10**12)
    # N^-1.1 is the smallest of the three only beyond 1e20 subjects.
    limit = min(Fraction(1, 10**6), Fraction(1, 100 * size))
    return min(down(limit), floor_double(limit))


def up(number: Fraction) -> float:
    """Return the smallest double that reads (prints) as at least ``number``.

    A double that was typed counts as its shortest decimal, here and at the door, so three spends of
    0.1 show as 0.3 and not as 0.30000000000000004.
    """
    if number > _LARGEST:
        return math.inf
    near = float(number)
    return near if Fraction(repr(near)) >= number else math.nextafter(near, math.inf)


def down(number: Fraction) -> float:
    """Return the largest double that reads (prints) as at most ``number``."""
    near = float(min(number, _LARGEST))
    return near if Fraction(repr(near)) <= number else math.nextafter(near, -math.inf)


def amount(number: Fraction, *, floor: bool = False) -> str:
    """Return ``number`` for a message: as typed when short, else 6 digits rounded up (or down)."""
    short = _decimal(number, 12, ROUND_FLOOR)
    if Fraction(short) != number:
        short = _decimal(number, 6, ROUND_FLOOR if floor else ROUND_CEILING)
    return repr(plain(float(short))) if math.isfinite(float(short)) else str(short)


def amounts(charge: Charge) -> dict[str, float]:
    """Return a cost for people, rounded up; a rho that is not known is infinite."""
    rho = math.inf if charge.rho is None else up(charge.rho)
    return {"eps": up(charge.eps), "delta": up(charge.delta), "rho": rho}


def left_amounts(held: Ceiling, spent: Charge) -> dict[str, float]:
    """Return what is left for people, rounded down; NaN where the ceiling has no such book."""
    left = held.left(spent)
    basic = {"eps": math.nan, "delta": math.nan}
    if held.basic_delta is not None:
        basic = {"eps": down(left.eps), "delta": down(left.delta)}
    return basic | {"rho": math.nan if held.rho is None else down(left.rho or Fraction(0))}


def _basic_offers(left: Charge, k: int, l1: Fraction, l2: Fraction) -> list[tuple[float, Budget]]:
    from geodp.mechanisms.calibration import sigma_for, sigma_for_rho

    if left.eps == 0:
        return []
    eps, delta = left.eps / k, left.delta / k
    pure = Budget(eps, Fraction(0), _grid_up(eps**2 / 2), "laplace")
    offers = [(math.sqrt(2) * float(l1 / eps), pure)]
    if delta > 0:
        # Sigma is proportional to l2, so rho says the same for any sensitivity.
        rho = _grid_down(1 / (2 * Fraction(sigma_for(Fraction(1), eps, delta)) ** 2))
        if rho > 0:
            offers.append((sigma_for_rho(l2**2, rho), Budget(eps, delta, rho, "gaussian")))
    return offers


def _zcdp_offers(held: Ceiling, left: Charge, k: int, l2: Fraction) -> list[tuple[float, Budget]]:
    from geodp.mechanisms.calibration import epsilon_of, sigma_for_rho

    rho = _grid_down((left.rho or Fraction(0)) / k)
    if rho == 0:
        return []
    # The label in book A: the whole of its delta over k, so that more than k cannot fit there.
    delta = (held.delta if held.basic_delta is None else held.basic_delta) / k
    eps = round_up(epsilon_of(rho, delta), 12)
    return [(sigma_for_rho(l2**2, rho), Budget(eps, delta, rho, "gaussian", "zcdp"))]


def _grid_up(number: Fraction) -> Fraction:
    return Fraction(math.ceil(number * _GRID), _GRID)


def _grid_down(number: Fraction) -> Fraction:
    return Fraction(math.floor(number * _GRID), _GRID)


def _not_negative(value: object, name: str) -> Fraction:
    number = value if isinstance(value, Fraction) else exact(value, name)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {amount(number)}.")
    return number


def _decimal(number: Fraction, digits: int, rounding: str) -> Decimal:
    context = Context(prec=digits, rounding=rounding)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


NOTHING = Charge(Fraction(0))
