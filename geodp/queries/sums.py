"""Sums of a column per key, on an integer lattice, with each subject's whole vector bounded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.contribution import Pairs, choose_rows, distinct_pairs, may_count, within_cap
from geodp.estimators import estimate
from geodp.exact import exact, exact_positive, plain
from geodp.lattice import add_up, clip_l1, clip_l2, exponent, to_steps, whole_steps
from geodp.queries.base import Floats, Ints, Layout, Quantity, Query, Rows
from geodp.queries.count import interval
from geodp.sensitivity import Norms, bounded_sums
from geodp.wording import at_most, brief

if TYPE_CHECKING:
    from geodp.grids import Domain
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Sum", "chosen_pairs", "parse_value_bounds"]

# Within these, squares of values and of counts times values are finite doubles.
_LARGEST, _NARROWEST = Fraction(10**100), Fraction(1, 10**100)
_SMALLEST_CLIP = Fraction(1, 2**20)


@dataclass(frozen=True)
class Sum(Query):
    """The sum of a column per key.

    Parameters
    ----------
    column : str
        Numeric column of the frame. Rows without a finite value are left out.
    value_bounds : two numbers
        Public (low, high) that each record is clamped to, in the column's unit; low < high.
    clip : number, optional
        Bound on the norm of one subject's whole vector of sums: L2 under Gaussian noise, L1 under Laplace.
        By default what the cap implies, m·B·sqrt(c) or m·B·c with B = max(abs(low), abs(high)), which never
        changes a value.

    Examples
    --------
    >>> Sum("minutes", value_bounds=(0, 120)).to_dict()
    {'query': 'sum', 'column': 'minutes', 'value_bounds': [0, 120], 'clip': None}
    """

    word: ClassVar[str] = "sum"
    column: str
    value_bounds: tuple[Any, Any]
    clip: Any = None
    low: Fraction = field(init=False, repr=False)
    high: Fraction = field(init=False, repr=False)

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count."""
        return False

    def __post_init__(self) -> None:
        low, high = parse_value_bounds(self.value_bounds)
        clip = None if self.clip is None else exact_positive(self.clip, "clip")
        for name, value in (("low", low), ("high", high), ("clip", clip), ("value_bounds", (low, high))):
            object.__setattr__(self, name, value)
        if not isinstance(self.column, str):
            raise TypeError(f"column must be the name of a column, got {type(self.column).__name__}.")
        if clip is not None and clip > _LARGEST:
            raise ValueError("clip must be at most 1e100. Use another unit.")
        if clip is not None and clip < self.largest * _SMALLEST_CLIP:
            raise ValueError(
                f"clip={plain(clip)} is less than a millionth of value_bounds; narrow value_bounds first."
            )

    @property
    def reads(self) -> str:
        """The column that is added up."""
        return self.column

    @property
    def largest(self) -> Fraction:
        """Largest absolute value of a record."""
        return max(abs(self.low), abs(self.high))

    @property
    def j(self) -> int:
        """The lattice step is 2**-j: at least 2**20 steps to the clip and to the largest record."""
        return exponent(self.largest if self.clip is None else min(self.clip, self.largest))

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the one vector of sums."""
        return (Quantity("sum", layout.n_keys, self._norms(layout, mechanism), Fraction(2) ** -self.j),)

    def integers(self, values: Floats | None, lon: Floats, lat: Floats, cell: Ints, domain: "Domain") -> Ints:
        """Clamp each record and round it toward zero to lattice steps."""
        assert values is not None
        return to_steps(values, self.low, self.high, Fraction(0), self.j)[:, None]

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Add up the rows that count, clip each subject's vector, and add up the subjects."""
        pairs, sums = chosen_pairs(rows, layout, secret)
        amounts = sums[:, 0]
        if self.clip is not None:
            clipped = clip_l1 if mechanism == "laplace" else clip_l2
            # No subject reaches 2**62 steps, so a larger clip changes nothing and stays out of the doubles.
            amounts = clipped(pairs.subject, amounts, min(whole_steps(self.clip, self.j), 2**62))
        return {"sum": add_up(pairs.key, amounts, layout.n_keys)}

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return sum, noisy_sum, lower and upper, in the column's unit."""
        (measurement,) = plan.measurements
        measured = noisy["sum"]
        step = float(measurement.quantity.step)
        lower, upper = interval(measured, measurement.law.halfwidth(0.95))
        return {
            "sum": self._shown(plan, measured) * step,
            "noisy_sum": measured * step,
            "lower": lower * step,
            "upper": upper * step,
        }

    def counted(self, policy: "Policy") -> str:
        """Say what is added up, and how it is bounded."""
        low, high = plain(self.low), plain(self.high)
        return (
            f"{self.column}, each record between {low} and {high}, at most {policy.rows_per_cell} of one "
            f"{policy.unit} in a cell and {at_most(policy.cap)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON.

        Returns
        -------
        dict
            The word of the query and its arguments, as the record has them.
        """
        return {
            "query": self.word,
            "column": self.column,
            "value_bounds": [plain(self.low), plain(self.high)],
            "clip": None if self.clip is None else plain(self.clip),
        }

    def _shown(self, plan: "Plan", measured: Ints) -> Floats:
        """Estimate sums that have one sign; what can be of either sign is shown as measured."""
        (measurement,) = plan.measurements
        sign = 1 if self.low >= 0 else -1
        if sign < 0 < self.high:
            return measured.astype(np.float64)
        found = estimate(sign * measured, measurement.law, plan.estimator, plan.layout.hierarchy())
        # A sum of nothing is 0 and not -0.
        return sign * found + 0.0

    def _norms(self, layout: Layout, mechanism: str) -> Norms:
        """Take the cap's bound, and the clip's where that is smaller."""
        low, high = (
            whole_steps(end, self.j) for end in (min(self.low, Fraction(0)), max(self.high, Fraction(0)))
        )
        norms = bounded_sums(
            low,
            high,
            layout.policy.cap,
            layout.policy.rows_per_cell,
            layout.n_keys,
            layout.policy.neighboring,
        )
        if self.clip is None:
            return norms
        clipped = self._clip_norms(layout)
        if mechanism == "laplace":
            return Norms(min(norms.l1, clipped.l1), norms.l2_squared)
        return Norms(norms.l1, min(norms.l2_squared, clipped.l2_squared))

    def _clip_norms(self, layout: Layout) -> Norms:
        """Return what a clip to norm C allows; proved in PRIVACY.md, table "sums"."""
        bound = Fraction(whole_steps(self.clip, self.j))
        if layout.policy.neighboring == "add_remove_one":
            return Norms(bound, bound**2)
        one_sign = self.low >= 0 or self.high <= 0
        if one_sign and layout.n_keys == 1:
            return Norms(bound, bound**2)
        return Norms(2 * bound, (2 if one_sign else 4) * bound**2)


def parse_value_bounds(value_bounds: object) -> tuple[Fraction, Fraction]:
    """Return the public bounds of a column's values, exactly.

    Raises
    ------
    TypeError
        An array, a Series or an Index: those come out of frames.
    ValueError
        Not two numbers, low not below high, beyond 1e100 or nearer to each other than 1e-100.
    """
    if isinstance(value_bounds, np.ndarray | pd.Series | pd.Index):
        raise TypeError(
            f"value_bounds is a {type(value_bounds).__name__}. Bounds taken from the rows would show their "
            "extremes. Type two public numbers: value_bounds=(0, 120)."
        )
    if not isinstance(value_bounds, tuple | list) or len(value_bounds) != 2:
        raise ValueError(f"value_bounds must be two numbers (low, high), got {brief(value_bounds)}.")
    if any(isinstance(value, np.generic) for value in value_bounds):
        raise TypeError(
            "value_bounds holds numpy numbers, as gdf[column].max() gives: bounds taken from the rows would show "
            "their extremes. Type two public numbers: value_bounds=(0, 120)."
        )
    low, high = (exact(value, "value_bounds") for value in value_bounds)
    if not low < high:
        raise ValueError(f"value_bounds must have low below high, got {brief(value_bounds)}.")
    if max(-low, high) > _LARGEST or high - low < _NARROWEST:
        raise ValueError(
            f"value_bounds must lie within ±1e100 and 1e-100 apart, got {brief(value_bounds)}. Use another unit."
        )
    return low, high


def chosen_pairs(rows: Rows, layout: Layout, secret: bytes) -> tuple[Pairs, Ints]:
    """Return the kept pairs and, for each, the sum of the values of its rows that count.

    Counts and sums of one release use the same rows and the same cells.
    """
    rows, policy = _that_may_count(rows, layout, secret), layout.policy
    chosen = choose_rows(rows.subject, rows.key, rows.values, policy.rows_per_cell, rows.subjects, secret)
    pairs = _pairs_of(rows, chosen, layout)
    pair_of_row = np.repeat(np.arange(len(pairs.key)), pairs.rows)
    sums = np.column_stack([add_up(pair_of_row, column[chosen], len(pairs.key)) for column in rows.values.T])
    keep = within_cap(pairs, policy.cap, rows.subjects, secret)
    return pairs.take(keep), sums[keep]


def _that_may_count(rows: Rows, layout: Layout, secret: bytes) -> Rows:
    """Return the rows without most of those whose cells the cap drops: the work of choosing rows is saved there."""
    subject, key, inside = rows.subject, rows.key, rows.inside
    some = may_count(subject, key, inside, layout.n_keys, layout.policy.cap, rows.subjects, secret)
    if len(some) == len(key):
        return rows
    return Rows(rows.subjects, subject[some], key[some], inside[some], rows.values[some])


def _pairs_of(rows: Rows, chosen: Ints, layout: Layout) -> Pairs:
    """Return the distinct pairs, in the order of the chosen rows, which is sorted already.

    Only where a pair may have left out the one row that was not clamped, all rows have to be looked at.
    """
    if len(chosen) < len(rows.inside) and not rows.inside.all():
        return distinct_pairs(rows.subject, rows.key, rows.inside, layout.n_keys, layout.policy.rows_per_cell)
    subject, key = rows.subject[chosen], rows.key[chosen]
    first = np.flatnonzero((np.diff(subject, prepend=-1) != 0) | (np.diff(key, prepend=-1) != 0))
    times = np.diff(first, append=len(chosen))
    inside = np.logical_or.reduceat(rows.inside[chosen], first) if len(first) else rows.inside[:0]
    return Pairs(subject[first], key[first], times, inside)
