"""Means of a column per key: a centred sum and a count of the same rows, in one joint release."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geodp.estimators import estimate, to_integers
from geodp.estimators.ratios import fieller, shrunk_ratio
from geodp.exact import plain
from geodp.lattice import add_up, exponent, to_steps, whole_steps
from geodp.queries.base import Floats, Ints, Layout, Quantity, Query, Rows
from geodp.queries.sums import chosen_pairs, parse_value_bounds
from geodp.sensitivity import counts, signed_sums
from geodp.wording import at_most

if TYPE_CHECKING:
    from geodp.grids import Domain
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Mean", "shares"]


@dataclass(frozen=True)
class Mean(Query):
    """The mean of a column per key.

    Records are centred on the middle of their bounds, which halves what one of them can move. The mean
    is ``middle + S/N`` of the noisy centred sum and the noisy count, drawn towards the noisy overall mean
    where the cell is mostly noise.

    Parameters
    ----------
    column : str
        Numeric column of the frame. Rows without a finite value are left out.
    value_bounds : two numbers
        Public (low, high) that each record is clamped to; low < high.

    Examples
    --------
    >>> Mean("minutes", value_bounds=(0, 120)).middle
    Fraction(60, 1)
    >>> Mean("minutes", value_bounds=(0, 120)).to_dict()
    {'query': 'mean', 'column': 'minutes', 'value_bounds': [0, 120]}
    """

    word: ClassVar[str] = "mean"
    column: str
    value_bounds: tuple[Any, Any]
    low: Fraction = field(init=False, repr=False)
    high: Fraction = field(init=False, repr=False)

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count."""
        return False

    def __post_init__(self) -> None:
        low, high = parse_value_bounds(self.value_bounds)
        for name, value in (("low", low), ("high", high), ("value_bounds", (low, high))):
            object.__setattr__(self, name, value)
        if not isinstance(self.column, str):
            raise TypeError(f"column must be the name of a column, got {type(self.column).__name__}.")

    @property
    def reads(self) -> str:
        """The column that is averaged."""
        return self.column

    @property
    def middle(self) -> Fraction:
        """The middle of the bounds."""
        return (self.low + self.high) / 2

    @property
    def half_range(self) -> Fraction:
        """Half the distance of the bounds: the most a centred record can be."""
        return (self.high - self.low) / 2

    @property
    def j(self) -> int:
        """The lattice step of the sum is 2**-j."""
        return exponent(self.half_range)

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the centred sum and the count, with the split that makes the mean's error small."""
        policy, n_keys = layout.policy, layout.n_keys
        common = (policy.cap, policy.rows_per_cell, n_keys, policy.neighboring)
        of_sum, of_count = shares(mechanism)
        return (
            Quantity("count", n_keys, counts(*common), share=of_count),
            Quantity(
                "sum",
                n_keys,
                signed_sums(whole_steps(self.half_range, self.j), *common),
                Fraction(2) ** -self.j,
                of_sum,
            ),
        )

    def integers(self, values: Floats | None, lon: Floats, lat: Floats, cell: Ints, domain: "Domain") -> Ints:
        """Clamp, centre and round each record toward zero to lattice steps."""
        assert values is not None
        return to_steps(values, self.low, self.high, self.middle, self.j)[:, None]

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Add up centred values and rows over the same sampled rows."""
        pairs, sums = chosen_pairs(rows, layout, secret)
        return {
            "count": add_up(pairs.key, pairs.rows, layout.n_keys),
            "sum": add_up(pairs.key, sums[:, 0], layout.n_keys),
        }

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return mean, lower, upper, count, noisy_sum and noisy_count."""
        n, s = plan.measurements
        middle, half = float(self.middle), float(self.half_range)
        measured = noisy["count"]
        centred = noisy["sum"].astype(np.float64) * float(s.quantity.step)
        smooth = estimate(measured, n.law, plan.estimator, plan.layout.hierarchy())
        mean = shrunk_ratio(centred, measured, smooth, s.law.std * float(s.quantity.step), n.law.std, half)
        lower, upper = fieller(noisy["sum"], measured, s.law, n.law, float(s.quantity.step), half)
        return {
            # Drawn towards the others no further than the cell's own measurement allows.
            "mean": self._within(middle + np.clip(mean, lower, upper)),
            "lower": self._within(middle + lower),
            "upper": self._within(middle + upper),
            "count": to_integers(smooth, plan.layout.hierarchy().order),
            "noisy_sum": centred + middle * measured,
            "noisy_count": measured,
        }

    def counted(self, policy: "Policy") -> str:
        """Say what is averaged, and over what."""
        return (
            f"mean {self.column} of records between {plain(self.low)} and {plain(self.high)}, at most "
            f"{policy.rows_per_cell} of one {policy.unit} in a cell and {at_most(policy.cap)}"
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
        }

    def _within(self, values: Floats) -> Floats:
        return np.clip(values, float(self.low), float(self.high))


def shares(mechanism: str, axes: int = 1) -> tuple[Fraction, Fraction]:
    """Return the parts of the budget for the centred sum and for the count.

    The variance of S/N at n subjects is ``(var_S + |r|² var_N) / n²`` with r the centred mean, of which
    nothing is known but that it lies in its bounds: |r|² is h²/3 on average, along a line of half-length h
    as well as over a square of half-diagonal h. Noise goes with the sensitivities: 1 for the count; for a
    sum of d ``axes`` h in L2, and h·sqrt(d) in L1. So with a the sum's share, Laplace noise (shares of eps)
    costs ``d²/a² + (1/3)/(1 - a)²``, least at a/(1 - a) = (3d²)^(1/3); Gaussian noise (shares of 1/sigma²)
    costs ``d/a + (1/3)/(1 - a)``, least at sqrt(3d).

    Examples
    --------
    >>> shares("laplace"), shares("gaussian", axes=2)
    ((Fraction(59, 100), Fraction(41, 100)), (Fraction(71, 100), Fraction(29, 100)))
    """
    ratio = math.sqrt(3 * axes) if mechanism == "gaussian" else (3 * axes**2) ** (1 / 3)
    of_sum = Fraction(round(100 * ratio / (1 + ratio)), 100)
    return of_sum, 1 - of_sum
