"""Which cells can be told from zero: a rule over all cells at once, from the record and the frame alone.

At a marginal 95 %, some 220 of 10,000 empty cells pass. So a cell is shown as data where its measurement passes what
the largest noise of all K public cells (and slots) reaches with probability 5 % only: with 95 % nothing empty is
shown at all. The Benjamini-Hochberg rule shows more cells and lets 5 % of those shown be empty, on average.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.exact import exact
from geodp.maps.held import Held, held
from geodp.mechanisms.laws import Law
from geodp.policy import one_of
from geodp.seals import law_of_measurement

__all__ = [
    "RULES",
    "Measured",
    "benjamini_hochberg",
    "least_told",
    "measured",
    "parse_level",
    "readable",
    "told",
]

RULES = ("simultaneous", "fdr")

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def readable(frame: pd.DataFrame, *, rule: str = "simultaneous", level: object = 0.95) -> "pd.Series[bool]":
    """Return which rows of a release can be told from zero.

    Parameters
    ----------
    frame : GeoDataFrame or DataFrame
        A release, or rows of one. It may have been read back from GeoParquet, and needs no outlines.
    rule : {"simultaneous", "fdr"}
        ``"simultaneous"``: with probability ``level`` no empty cell of the whole map passes. ``"fdr"``: of the
        cells that pass, at most ``1 - level`` are empty, on average (Benjamini and Hochberg 1995); it needs the
        whole release, which cannot be checked where only some cells are released.
    level : float, default 0.95
        Above 0 and below 1.

    Returns
    -------
    Series of bool
        On the frame's index, named ``"readable"``. Of counts and sums: the measurement (``noisy_count``,
        ``noisy_sum``) against zero, on both sides where values can have either sign. Of means: the count, and
        the interval must not be wider than half the value bounds. Of centroids: the count. Cells released with
        ``cells="select"`` hold somebody, so all pass.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.
    TypeError, ValueError
        A bad rule or level, ``"fdr"`` of only some rows, or a release of moved points, which counts nothing.

    Notes
    -----
    K is the number of public cells and slots, taken from the record, so rows may be picked before or after.
    With X the noise, a cell passes the first rule if it measures t or more, t the least integer with
    ``1 - (1 - P(X >= t))^K <= 1 - level``, decided with 50 digits. The second one takes the cells with the i
    smallest ``p = P(X >= measured)``, i the largest with ``p_(i) <= (1 - level)·i/K``; noise is independent
    between cells, so the expected share of empty ones is at most ``1 - level``.

    Examples
    --------
    >>> import geopandas as gpd
    >>> import geodp
    >>> points = gpd.GeoSeries(gpd.points_from_xy([0.5] * 5000, [0.5] * 5000), crs=4326)
    >>> trips = gpd.GeoDataFrame({"rider": range(5000)}, geometry=points)
    >>> heat = trips.dp.heatmap(1, subject="rider", cap=1, bounds=(0, 0, 2, 1), grid="square:1")
    >>> bool(readable(heat).iloc[0])
    True
    """
    shown = told(held(frame), rule=rule, level=level)
    return pd.Series(shown, index=frame.index, name="readable")


def told(rows: Held, *, rule: str = "simultaneous", level: object = 0.95, column: str | None = None) -> Bools:
    """Return which rows can be told from zero; a mean's ``column`` other than the mean has its count's rule."""
    target = parse_level(rule, level)
    facts = rows.facts
    if facts["query"] == "perturb":
        raise ValueError(
            "moved points are single positions and count nothing, so there is nothing to tell from zero."
        )
    found = measured(facts)
    if found is None or facts["cells"] == "select":
        return np.ones(len(rows.frame), dtype=bool)
    values = found.steps(rows.frame)
    if rule == "simultaneous":
        passed = found.passed(values, found.bar(target))
    else:
        if not rows.whole:
            raise ValueError(
                'rule="fdr" compares all cells of the release, and these are some of its rows. Mark first, then '
                'choose: heat[geodp.readable(heat, rule="fdr")].'
            )
        passed = benjamini_hochberg(found.log_p(values), found.size, 1 - target)
    if facts["query"] == "mean" and column in (None, "mean", "lower", "upper"):
        passed = passed & _narrow(rows)
    return passed


def least_told(rows: Held, shown: Bools, *, rule: str, level: object) -> float | None:
    """Return the least measurement that is told from zero, in its own unit; None where nothing was or need be."""
    found = measured(rows.facts)
    if found is None or rows.facts["cells"] == "select":
        return None
    if rule == "simultaneous":
        return found.bar(parse_level(rule, level)) * float(found.step)
    values = np.abs(found.steps(rows.frame)[shown])
    return float(values.min()) * float(found.step) if len(values) else None


@dataclass(frozen=True)
class Measured:
    """What a release measured in each cell, as far as it can be told from zero.

    Attributes
    ----------
    column : str
        The measured column.
    law : Law
        Its noise, in steps.
    step : Fraction
        Size of a step in the column's unit.
    size : int
        Number of public cells and slots, K.
    sign : int
        1 or -1 where no value has another sign, 0 where values have both.
    """

    column: str
    law: Law
    step: Fraction
    size: int
    sign: int

    def steps(self, frame: pd.DataFrame) -> Floats:
        """Return the measurements in steps."""
        values = frame[self.column].to_numpy(dtype=np.float64)
        out: Floats = np.rint(values / float(self.step))
        return out

    def bar(self, level: Fraction) -> int:
        """Return what nothing empty passes, with probability ``level``, in steps."""
        if self.sign:
            return self.law.quantile_sf(1 - level, self.size)
        return self.law.halfwidth(level, self.size) + 1

    def passed(self, steps: Floats, bar: int) -> Bools:
        """Return which measurements reach the bar."""
        out: Bools = (np.abs(steps) if not self.sign else self.sign * steps) >= bar
        return out

    def log_p(self, steps: Floats) -> Floats:
        """Return the logarithms of the probabilities that noise alone reaches the measurements."""
        if self.sign:
            return self.law.log_sf(self.sign * steps - 1)
        return np.minimum(0.0, math.log(2) + self.law.log_sf(np.abs(steps) - 1))

    def halfwidth(self, level: object = "0.95") -> float:
        """Return how far the noise of one cell reaches, in the column's unit."""
        return self.law.halfwidth(level) * float(self.step)


def measured(facts: Mapping[str, Any]) -> Measured | None:
    """Return what can be told from zero in a release; None for a centroid of a public number of people.

    Examples
    --------
    >>> import geodp
    >>> plan = geodp.plan(1, subject="rider", cap=4, bounds=(0, 0, 1, 1), grid="square:0.1")
    >>> found = measured(plan.to_dict())
    >>> found.column, found.size, found.bar(Fraction(95, 100))
    ('noisy_count', 100, 28)
    """
    names = {"weighted_count": "noisy_weighted_count", "sum": "noisy_sum"}
    column = names.get(facts["query"], "noisy_count")
    wanted = "sum" if column == "noisy_sum" else "count"
    part = next((part for part in facts["measurements"] if part["name"] == wanted), None)
    if part is None:
        return None
    sign = 1
    if column == "noisy_sum":
        low, high = facts["value_bounds"]
        sign = 1 if low >= 0 else -1 if high <= 0 else 0
    return Measured(column, law_of_measurement(part), Fraction(part["step"]), part["size"], sign)


def parse_level(rule: str, level: object) -> Fraction:
    """Return the level, exactly; raise where it or the rule is none."""
    one_of(rule, "rule", RULES)
    target = exact(level, "level")
    if not 0 < target < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level!r}.")
    return target


def _narrow(rows: Held) -> Bools:
    """Return which means are known to better than half of what they can be at all."""
    low, high = rows.facts["value_bounds"]
    width = (rows.frame["upper"] - rows.frame["lower"]).to_numpy(dtype=np.float64)
    out: Bools = width <= (high - low) / 2
    return out


def benjamini_hochberg(log_p: Floats, size: int, share: Fraction) -> Bools:
    """Return which hypotheses are rejected at a false discovery rate; those not listed count as not rejected.

    Cells below a public threshold are not listed: then the critical values are cut at the threshold's own
    probability, and a step-up rule with smaller critical values keeps the rate.
    """
    if not len(log_p):
        return np.zeros(0, dtype=bool)
    ranked = np.sort(log_p)
    bars = math.log(float(share)) + np.log(np.arange(1, len(ranked) + 1)) - math.log(size)
    below = np.flatnonzero(ranked <= bars)
    if not len(below):
        return np.zeros(len(log_p), dtype=bool)
    out: Bools = log_p <= ranked[below[-1]]
    return out
