"""Neighbours in domains as small as can be, each with an event whose probabilities are known beforehand.

The event is the one that tells most, or nearly; what is bounded from its counts is then what a release really gives
away. A second event is learned from a quarter of the releases, of all their numbers, and counted in the rest.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import geopandas as gpd
import numpy as np
from comparing_neighbours import facts
from shapely import Point

import geodp
from geodp.mechanisms import DiscreteLaplace

ONE_CELL = {"bounds": (0, 0, 1, 1), "grid": "square:1", "return_geometry": False}
TWO_CELLS = {**ONE_CELL, "bounds": (0, 0, 2, 1)}


def people(*rows):
    """Rows of (rider, number of the cell, value), in cells of one degree side by side."""
    riders, cells, values = zip(*rows, strict=True) if rows else ((), (), ())
    table = {"rider": np.array(riders, dtype=object), "v": np.array(values, float)}
    points = gpd.GeoSeries([Point(cell + 0.5, 0.5) for cell in cells], crs=4326)
    return gpd.GeoDataFrame(table, geometry=points, crs=4326)


NOBODY = people()
ME = people(("me", 0, 1.0))


def plan_of(eps, delta=0, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return geodp.plan(eps, delta, **{"subject": "rider", "cap": 1, **ONE_CELL, **more})


def law(plan, name="count"):
    return next(m.law for m in plan.measurements if m.name == name)


def tail(noise, k):
    """P(X >= k)."""
    return float(noise.sf(k - 1))


def reaches(column, least, row=0):
    """The event that a number of the release is at least so large."""
    return lambda found: bool(found[column].iloc[row] >= least)


def seen(found):
    """Return a release as numbers: every column of every row, of all views."""
    frames = found.values() if isinstance(found, dict) else [found]
    numbers = [
        frame.drop(columns=["edge", "geometry"], errors="ignore").to_numpy(np.float64) for frame in frames
    ]
    return np.concatenate([values.ravel() for values in numbers])


def seen_if_there(found):
    """Return a release of at most one row as numbers: whether it is there, and what it says."""
    return np.concatenate([[1.0], seen(found)]) if len(found) else np.zeros(6)


@dataclass(frozen=True)
class Audit:
    """Two neighbours, how they are released, and an event that was fixed beforehand.

    Attributes
    ----------
    plan : Plan or JointPlan
    one, other : GeoDataFrame
    event : callable
        A release to whether the event happened.
    p, q : float
        Its exact probabilities in ``one`` and in ``other``.
    n : int
        Releases of each.
    numbers : callable
        A release to all that is learned from.
    listed : bool
        Whether which rows there are is decided by the plan.
    """

    plan: object
    one: gpd.GeoDataFrame
    other: gpd.GeoDataFrame
    event: Callable
    p: float
    q: float
    n: int = 1400
    numbers: Callable = seen
    listed: bool = True

    def released(self, rows):
        """Return a release, and all of it that must never differ: order, keys, dtypes, columns, record, warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = self.plan.release(rows)
        frames = found.values() if isinstance(found, dict) else [found]
        fixed = [facts(frame, listed=self.listed) for frame in frames]
        return found, [fixed, [str(warning.message) for warning in caught]]

    def run(self):
        """Return of both data sets whether the event happened, and all numbers, release by release.

        Every fifth pair is looked at from all sides.
        """
        expected = self.released(self.other)[1]
        happened, numbers = ([], []), ([], [])
        for i in range(self.n):
            for side, rows in enumerate((self.one, self.other)):
                found, fixed = self.released(rows) if i % 5 == 0 else (self.plan.release(rows), expected)
                assert fixed == expected
                happened[side].append(self.event(found))
                numbers[side].append(self.numbers(found))
        return [(np.array(a), np.array(b)) for a, b in zip(happened, numbers, strict=True)]


# Discrete Laplace noise ------------------------------------------------------------------------------------


def count_of_one():
    """The tight case: at 1 and above, every release is e^eps times as likely."""
    plan = plan_of(2)
    noise = law(plan)
    return Audit(plan, ME, NOBODY, reaches("noisy_count", 1), tail(noise, 0), tail(noise, 1), 6000)


def shown_from(plan, column, least):
    """Return what a column of one cell shows where ``least`` was measured, and from which measurement on it does.

    It is a function of the measurement that never falls, so an event of it is one of the measurement.
    """
    k = np.arange(-80, 81)
    shown = np.array([plan.query.columns(plan, {"count": np.array([i])})[column][0] for i in k])
    assert (np.diff(shown) >= 0).all()
    return float(shown[k == least][0]), int(k[shown >= shown[k == least][0]].min())


def count_in_two_cells():
    plan = plan_of(3, cap=2, **TWO_CELLS)
    noise, me = law(plan), people(("me", 0, 1.0), ("me", 1, 1.0))
    event = lambda found: bool((found["noisy_count"] >= 1).all())  # noqa: E731
    return Audit(plan, me, NOBODY, event, tail(noise, 0) ** 2, tail(noise, 1) ** 2)


def one_replaced():
    """A subject is in another cell instead: one count falls, one rises."""
    plan = plan_of(3, neighboring="replace_one", **TWO_CELLS)
    noise, there = law(plan), people(("me", 1, 1.0))
    event = lambda found: bool(found["noisy_count"].iloc[0] >= 1 > found["noisy_count"].iloc[1])  # noqa: E731
    return Audit(plan, ME, there, event, tail(noise, 0) ** 2, tail(noise, 1) ** 2)


def sum_of_one():
    """A value beyond its bound counts as the bound; from there on all releases tell the same."""
    plan = plan_of(3, query=geodp.Sum("v", (0, 4)))
    (m,) = plan.measurements
    me = people(("me", 0, 1e300))
    return Audit(plan, me, NOBODY, reaches("noisy_sum", 4), tail(m.law, 0), tail(m.law, int(m.l1)))


def mean_of_one():
    """The count and the sum of values, which is centred on 0 here, at their most."""
    plan = plan_of(3, query=geodp.Mean("v", (-1, 1)))
    n, s = plan.measurements
    count, value = reaches("noisy_count", 1), reaches("noisy_sum", 1)
    p, q = tail(n.law, 0) * tail(s.law, 0), tail(n.law, 1) * tail(s.law, int(s.l1))
    return Audit(plan, people(("me", 0, 5.0)), NOBODY, lambda found: count(found) and value(found), p, q)


def weighted_and_rescaled():
    """The map has 95 % of eps; the two totals behind it show in the estimate only, and in what is learned."""
    plan = plan_of(3, contribution="weighted", rescale=4, bounds=(0, 0, 4, 1), mechanism="laplace")
    noise = law(plan)
    return Audit(plan, ME, NOBODY, reaches("noisy_weighted_count", 1), tail(noise, 0), tail(noise, 64))


def sparse():
    """That a row is there is itself what tells most."""
    plan = plan_of(2, cells="sparse", threshold=1)
    there = lambda found: len(found) == 1  # noqa: E731
    noise = law(plan)
    return Audit(plan, ME, NOBODY, there, tail(noise, 0), tail(noise, 1), 1400, seen_if_there, listed=False)


def cap_on_the_way():
    """With one cell in the domain all caps mean the same noise, of the 95 % of eps that stage 1 leaves."""
    plan = plan_of(2, cap="auto")
    noise = DiscreteLaplace(plan.options[0].scale)
    assert {option.scale for option in plan.options} == {noise.scale}
    numbers = lambda found: np.append(seen(found), found.attrs["geodp"]["cap"])  # noqa: E731
    return Audit(plan, ME, NOBODY, reaches("noisy_count", 1), tail(noise, 0), tail(noise, 1), 1400, numbers)


def two_views():
    view = {"return_geometry": False}
    common = {"subject": "rider", "cap": 1, "bounds": (0, 0, 1, 1), "grid": "square:1"}
    plan = geodp.plan_together({"a": view, "b": {**view, "grid": "box"}}, 2, weights=[5, 6], **common)
    a, b = (part.measurements[0].law for part in plan.parts)
    one = reaches("noisy_count", 1)
    event = lambda found: one(found["a"]) and one(found["b"])  # noqa: E731
    return Audit(plan, ME, NOBODY, event, tail(a, 0) * tail(b, 0), tail(a, 1) * tail(b, 1), 1100)


LAPLACE = {
    "count, one cell": count_of_one,
    "count, two cells": count_in_two_cells,
    "count, replaced": one_replaced,
    "sum": sum_of_one,
    "mean": mean_of_one,
    "weighted, rescaled": weighted_and_rescaled,
    "sparse": sparse,
    'cap="auto"': cap_on_the_way,
    "two views": two_views,
}


# Gaussian noise --------------------------------------------------------------------------------------------


def gaussian_count():
    """Ten rows of one subject in one cell: ten steps of a fine enough lattice."""
    plan = plan_of(20, "1e-6", mechanism="gaussian", rows_per_cell=10)
    noise, me = law(plan), people(*[("me", 0, 1.0)] * 12)
    return Audit(plan, me, NOBODY, reaches("noisy_count", 5), tail(noise, -5), tail(noise, 5), 5000)


def gaussian_sum():
    """A sum clipped to less than one value, against one of the other sign."""
    query = geodp.Sum("v", (-4, 4), clip=1)
    plan = plan_of(20, "1e-6", mechanism="gaussian", query=query, neighboring="replace_one")
    (m,) = plan.measurements
    noise, steps = m.law, int(m.l1) // 8
    one, other = people(("me", 0, 4.0)), people(("you", 0, -4.0))
    return Audit(plan, one, other, reaches("noisy_sum", 0), tail(noise, -steps), tail(noise, steps), 1800)


def gaussian_views():
    """Two views whose shares of 1/sigma² add up: only both together tell all of mu."""
    common = {"subject": "rider", "cap": 1, "bounds": (0, 0, 1, 1), "grid": "square:1", "rows_per_cell": 10}
    views = {"a": {"return_geometry": False}, "b": {"return_geometry": False, "grid": "box"}}
    plan = geodp.plan_together(views, 20, "1e-6", mechanism="gaussian", **common)
    a, b = (part.measurements[0].law for part in plan.parts)
    assert a == b
    total = lambda found: int(found["a"]["noisy_count"].iloc[0] + found["b"]["noisy_count"].iloc[0])  # noqa: E731
    k = np.arange(-200, 201)
    both = np.convolve(a.pmf(k), b.pmf(k))
    p, q = (float(both[np.arange(-400, 401) >= least].sum()) for least in (-10, 10))
    me = people(*[("me", 0, 1.0)] * 10)
    return Audit(plan, me, NOBODY, lambda found: total(found) >= 10, p, q, 900)


GAUSSIAN = {"count": gaussian_count, "clipped sum, replaced": gaussian_sum, "two views": gaussian_views}


# Chosen cells ----------------------------------------------------------------------------------------------


def selected(mechanism):
    """A subject alone in two cells, which only show where it is; a delta large enough to be counted."""
    eps, delta = ("0.5", "0.3") if mechanism == "laplace" else (1, "0.4")
    more = {"cells": "select", "cap": 2, "population": 2, "mechanism": mechanism}
    plan = plan_of(eps, delta, **more, **TWO_CELLS)
    me, there = people(("me", 0, 1.0), ("me", 1, 1.0)), lambda found: len(found) > 0
    p = 1 - (1 - tail(law(plan), plan.threshold - 1)) ** 2
    numbers = lambda found: np.array([len(found), found["noisy_count"].sum()], float)  # noqa: E731
    return Audit(plan, me, NOBODY, there, p, 0.0, 1600, numbers, listed=False)
