"""Where two releases differ by more than their noise: an exact rule over all cells, free of budget.

Of counts and sums the measurements are compared, ``noisy_count`` and ``noisy_sum``: their difference is off by the
sum of two independent noises, whose law is known; what a cap kept of a person in one and not in the other
is a difference too. Of means the intervals are, each widened until all of both maps hold at once.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.estimators.ratios import fieller
from geodp.maps.held import Held
from geodp.maps.rules import benjamini_hochberg, measured, parse_level
from geodp.mechanisms.laws import Law
from geodp.seals import law_of_measurement

__all__ = ["Change", "TwoNoises", "change", "check_comparable"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_SAME = (
    "query",
    "column",
    "value_bounds",
    "unit",
    "cap",
    "rows_per_cell",
    "contribution",
    "grid",
    "zones",
    "bounds",
    "outside",
    "by",
    "cells",
)
_GROUPS = 4000
_BEYOND = Fraction(1, 10**18)
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Change:
    """What changed from one release to another, row by row.

    Attributes
    ----------
    index : Index
        Rows of either.
    values : float64 array
        Of the second less of the first; where only one is known, the least it can be in size.
    told : bool array
        Where the two differ by more than their noise.
    bar : float or None
        The least difference that is told; None for means, whose intervals differ.
    known : bool
        Whether all rows are in both.
    """

    index: pd.Index
    values: Floats
    told: Bools
    bar: float | None
    known: bool


def check_comparable(a: Held, b: Held) -> None:
    """Raise unless two releases say the same about the same cells.

    Raises
    ------
    ValueError
        They count differently, in other places, or are places or moved points.
    """
    for rows in (a, b):
        if rows.facts["query"] not in ("count", "weighted_count", "sum", "mean"):
            raise ValueError(
                "compare_maps compares counts, sums and means; places have no difference to colour."
            )
    for name in _SAME:
        one, other = a.facts.get(name), b.facts.get(name)
        if one != other:
            raise ValueError(
                f"the releases do not measure the same: {name} is {one!r} in the first, {other!r} in the second."
            )


def change(a: Held, b: Held, *, rule: str = "simultaneous", level: object = 0.95) -> Change:
    """Return the differences of two comparable releases, and which can be told from none.

    Parameters
    ----------
    a, b : Held
        Rows of two releases of the same measurement, with noise of their own.
    rule, level
        As in :func:`geodp.readable`, about the hypothesis that the capped number of a cell is the same in both.

    Notes
    -----
    Noises X and Y are independent and symmetric, so with p = P(X + Y >= t) all K differences of cells whose capped
    numbers are the same stay below t with probability (1 - 2p)^K or more. Which cells a cap keeps is drawn anew in
    each release, so that capped numbers of the same data may differ: that is told as any other difference.
    Of cells below a public threshold only that is known, so the difference is taken to be as small as that allows.
    """
    target = parse_level(rule, level)
    if a.facts["query"] == "mean":
        return _of_means(a, b, rule, target)
    one, other = measured(a.facts), measured(b.facts)
    assert one is not None
    assert other is not None
    noises = TwoNoises(one.law, float(one.step), other.law, float(other.step))
    index, values, known = _differences(a, b, one.column)
    if rule == "simultaneous":
        bar = noises.bar(target, one.size)
        return Change(index, values, np.abs(values) >= bar - noises.step / 4, bar, known)
    if not (a.whole and b.whole):
        raise ValueError('rule="fdr" compares all cells of both releases, and these are some of their rows.')
    told = benjamini_hochberg(noises.log_p(np.abs(values)), one.size, 1 - target)
    least = float(np.abs(values[told]).min()) if told.any() else None
    return Change(index, values, told, least, known)


@dataclass(frozen=True)
class TwoNoises:
    """The sum of two independent noises, each with a lattice step of its own.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> TwoNoises(DiscreteLaplace(4.0), 1.0, DiscreteLaplace(4.0), 1.0).bar(Fraction(95, 100), 1)
    17.0
    """

    first: Law
    first_step: float
    second: Law
    second_step: float

    @property
    def step(self) -> float:
        """The lattice of the sum: both steps are powers of two, or 1."""
        return min(self.first_step, self.second_step)

    def sf(self, t: Floats) -> Floats:
        """Return P(X + Y >= t), t > 0, or a little more: wide noise is grouped, each group at its upper end."""
        nodes, mass, beyond = self._nodes()
        out = np.empty(len(t))
        rows = max(1, _AT_ONCE // len(nodes))
        for start in range(0, len(t), rows):
            part = t[start : start + rows, None]
            least = np.ceil((part - nodes) / self.second_step - 1e-6)
            out[start : start + rows] = self.second.sf(least - 1) @ mass
        return np.minimum(1.0, out + beyond)

    def log_p(self, sizes: Floats) -> Floats:
        """Return the logarithms of P(|X + Y| >= size)."""
        distinct, place = np.unique(sizes, return_inverse=True)
        p = np.where(distinct > 0, 2 * self.sf(np.maximum(distinct, self.step)), 1.0)
        out: Floats = np.log(np.minimum(p, 1.0))[place]
        return out

    def bar(self, level: Fraction, size: int) -> float:
        """Return the least t that no |X + Y| of ``size`` cells reaches, with probability ``level``."""
        single = -math.expm1(math.log(float(level)) / size) / 2
        low, high = 0, 1
        while self.sf(np.array([high * self.step]))[0] > single:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            above = self.sf(np.array([middle * self.step]))[0] > single
            low, high = (middle, high) if above else (low, middle)
        return high * self.step

    def _nodes(self) -> tuple[Floats, Floats, float]:
        """Return places and masses of X, and what lies beyond them; groups sit at their upper ends."""
        end = self.first.quantile_sf(_BEYOND)
        stride = max(1, -(-2 * end // _GROUPS))
        upper = np.arange(-end, end + stride, stride, dtype=np.float64)
        mass = self.first.sf(upper - stride) - self.first.sf(upper)
        return upper * self.first_step, mass, 2 * float(_BEYOND)


def _differences(a: Held, b: Held, column: str) -> tuple[pd.Index, Floats, bool]:
    """Return the rows of either, the differences there, and whether both sides of all of them are known."""
    index = a.frame.index
    unlisted = a.facts["cells"] != "all"
    if not index.equals(b.frame.index):
        index = index.union(b.frame.index) if unlisted else index.intersection(b.frame.index, sort=False)
    first, second = (_numbers(rows.frame[column].reindex(index)) for rows in (a, b))
    values = second - first
    if unlisted:
        gone = np.minimum(0.0, b.facts["threshold"] - 1 - first)
        come = np.maximum(0.0, second - a.facts["threshold"] + 1)
        values = np.where(np.isnan(second), gone, np.where(np.isnan(first), come, values))
    known = not (np.isnan(first).any() or np.isnan(second).any())
    return index, values, known


def _numbers(column: "pd.Series[Any]") -> Floats:
    out: Floats = column.to_numpy(dtype=np.float64)
    return out


def _of_means(a: Held, b: Held, rule: str, target: Fraction) -> Change:
    if rule != "simultaneous":
        raise ValueError('means are compared by intervals that all hold at once, rule="simultaneous".')
    index = a.frame.index.intersection(b.frame.index, sort=False)
    one, other = a.frame.loc[index], b.frame.loc[index]
    size = a.facts["measurements"][0]["size"]
    # Each of 2K intervals holds with the 2K-th root of the level, and they are independent.
    each = float(target) ** (1 / (2 * size))
    low_a, high_a = _interval(one, a.facts, each)
    low_b, high_b = _interval(other, b.facts, each)
    values = (other["mean"] - one["mean"]).to_numpy(dtype=np.float64)
    return Change(index, values, (low_b > high_a) | (low_a > high_b), None, True)


def _interval(frame: pd.DataFrame, facts: Any, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval around each centred mean."""
    parts = {part["name"]: part for part in facts["measurements"]}
    low, high = facts["value_bounds"]
    step = float(Fraction(parts["sum"]["step"]))
    count = frame["noisy_count"].to_numpy(dtype=np.int64)
    centred = frame["noisy_sum"].to_numpy(dtype=np.float64) - (low + high) / 2 * count
    laws = law_of_measurement(parts["sum"]), law_of_measurement(parts["count"])
    return fieller(np.rint(centred / step).astype(np.int64), count, *laws, step, (high - low) / 2, level)
