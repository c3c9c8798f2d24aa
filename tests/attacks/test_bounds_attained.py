"""The other way round: pairs of neighbours that reach what is claimed, and planted faults that pass it.

Without these a claim that is too large by a bug would never be seen; it would only drown the map in noise.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from attacked_frames import Schema, frame
from attacked_plans import QUERIES, UNIT, planned
from comparing_neighbours import MECHANISMS, RELATIONS, assert_within, entries, moves, secret
from shapely import Point

import geodp
from geodp.quantiles import penalties, selection
from geodp.queries.centroids import Frames

NEAR_THE_EQUATOR = {
    "bounds": (0.0, -2.0, 4.0, 2.0),
    "grid": "square:1",
}  # sixteen cells, square on the ground
CORNER = {"sw": -0.5, "ne": 0.4999999}
SCHEMA = Schema("square")
NAMES = [name for name in QUERIES if name not in ("centroid of n", "sum, clip far above", "levels")]

# Clips and corners lose a unit of their lattice to rounding, and cells are not exactly square.
ALMOST = Fraction(9998, 10_000)
# What is claimed and not reached. Kept mass is cut at sqrt(c·k_max), here sqrt(18) of 64: a subject in k_max keys
# keeps k_max·isqrt(4096 c / k_max) = 270 of 271 under Gaussian weights. Under Laplace weights it keeps 64 c = 192, so
# that bound is wider than it need be by sqrt(k_max / c).
SHORT = {
    ("weighted, rescaled", "gaussian", "kept"): Fraction(270, 271) ** 2,
    ("weighted, rescaled", "laplace", "kept"): Fraction(192, 271),
}


def corner(cell, way):
    x, y = cell % 4, cell // 4
    return Point(x + 0.5 + CORNER[way], y - 2 + 0.5 + CORNER[way])


def one(who, cells, value, way, rows):
    return (
        []
        if cells is None
        else [(who, [(corner(cell, way), value, 0) for cell in cells for _ in range(rows)])]
    )


# Cells of the subject before and after; six cells are more than the cap of three, and as many as k_max.
PAIRS = {
    "add_remove_one": [(range(3), None), (range(6), None)],
    "replace_one": [(range(3), range(8, 11)), (range(3), range(3)), (range(6), None)],
}


def reached(m, before, after):
    """Return how much of its claim a pair reaches: of L1 under Laplace, of squared L2 under Gaussian noise."""
    moved = moves(before[m.name], after[m.name])
    return (
        Fraction(sum(moved)) / m.l1 if m.mechanism == "laplace" else sum(d * d for d in moved) / m.l2_squared
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_some_pair_moves_as_far_as_is_claimed(name, neighboring, rows, mechanism):
    """In L1 or in L2, by what the mechanism pays for, each measurement apart."""
    plan = planned(
        name, cap=3, rows_per_cell=rows, neighboring=neighboring, mechanism=mechanism, **NEAR_THE_EQUATOR
    )
    low, high = getattr(plan.query, "value_bounds", (0, 1))
    far, near = (float(high), float(low)) if abs(high) >= abs(low) else (float(low), float(high))
    best = {m.name: Fraction(0) for m in plan.measurements}
    for mine, instead in PAIRS[neighboring]:
        for value in (near, far):
            before = entries(plan, frame(one("me", mine, far, "ne", rows), SCHEMA), secret(0))
            after = entries(plan, frame(one("you", instead, value, "sw", rows), SCHEMA), secret(0))
            assert_within(plan, before, after)
            for m in plan.measurements:
                best[m.name] = max(best[m.name], reached(m, before, after))
    for measurement, share in best.items():
        short = SHORT.get((name, mechanism, measurement))
        assert share > ALMOST if short is None else share == short


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_totals_of_blocks_move_as_far_as_is_claimed(neighboring, mechanism):
    """All cells of one subject in one block, the other's in another: L2 is the cap itself, not its root."""
    plan = planned("levels", cap=3, neighboring=neighboring, mechanism=mechanism, outside="drop")
    blocks = [m for m in plan.measurements if m.name.startswith("blocks")]
    assert blocks
    middles = shapely.centroid(plan.layout.domain.geometry())
    for m in blocks:
        block = plan.layout.hierarchy().blocks[int(m.name.split()[1])]
        # Cells on the border of the box may have their middle outside.
        whole = [np.flatnonzero((block == b) & ~plan.layout.domain.edge)[:3] for b in range(block.max() + 1)]
        mine, other, *_ = (cells for cells in whole if len(cells) == 3)
        before = frame([("me", [(middles[i], 1.0, 0) for i in mine])], SCHEMA)
        after = frame(
            [("you", [(middles[i], 1.0, 0) for i in other])] * (neighboring == "replace_one"), SCHEMA
        )
        counted = [entries(plan, rows, secret(0)) for rows in (before, after)]
        assert_within(plan, *counted)
        assert reached(m, *counted) == 1
        assert reached(plan.measurements[0], *counted) == 1


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_the_bound_of_a_centroid_over_the_box_is_attained(neighboring):
    """Half the diagonal over n, or all of it: from the middle to a corner, or from corner to corner."""
    plan = planned(
        "centroid of n",
        "box",
        cap=1,
        bounds=(0.0, -1.0, 2.0, 1.0),
        neighboring=neighboring,
        mechanism="gaussian",
    )
    ends = [[(who, [(Point(*xy), 1.0, 0)])] for who, xy in (("me", (2, 1)), ("you", (0, -1)))]
    before, after = ends if neighboring == "replace_one" else (ends[0], [])
    counted = [entries(plan, frame(rows, SCHEMA), secret(0)) for rows in (before, after)]
    assert_within(plan, *counted)
    assert reached(plan.measurements[0], *counted) > 1 - Fraction(1, 10**5)


def test_a_place_is_held_within_its_unit(monkeypatch):
    """Should a half-diagonal ever be a hair too short, a corner still counts as no more than 1.

    Rounding of doubles does not get there: of two whole numbers below a and b, a² + b² = 2^40, none exceeds them by
    the 5e-7 of a step that it would take.
    """
    honest = Frames.radius.func
    monkeypatch.setattr(Frames, "radius", property(lambda self: honest(self) * (1 - 1e-5)))
    plan = planned("centroid", cap=1, **NEAR_THE_EQUATOR)
    for way in CORNER:
        moved = entries(plan, frame(one("me", [5], 0.0, way, 1), SCHEMA), secret(0))["place"]
        assert (UNIT - 3) ** 2 < sum(d * d for d in moved.values()) <= UNIT**2


# Pairs of data sets, by the number of keys of each person, that pull some penalty up and another one down.
REACHED = {
    "add_remove_one": ([1, 2, 3, 4], [1, 2, 3, 4, 9]),
    "replace_one": ([1, 1, 4, 4, 9, 9], [1, 4, 4, 9, 9, 9]),
}


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_the_reach_of_a_chosen_cap_is_attained(neighboring):
    policy = geodp.Policy(subject="rider", cap="auto", neighboring=neighboring, **NEAR_THE_EQUATOR)
    chosen = selection(policy, 1, (1, 2, 3, 4, 9, 20), Fraction(1, 2), None)
    a, b = (penalties(np.array(keys), chosen.candidates, chosen.quantile) for keys in REACHED[neighboring])
    moved = [y - x for x, y in zip(a, b, strict=True)]
    assert max(moved) - min(moved) == chosen.reach


# Planted faults --------------------------------------------------------------------------------------------

everything = lambda priority, *rest: np.ones(len(priority), bool)  # noqa: E731
FAULTS = {
    "no cap on counts": ("contribution", "_lowest", everything, "count"),
    "no cap on sums": ("contribution", "_lowest", everything, "sum"),
    "no cap on the count of a mean": ("contribution", "_lowest", everything, "mean"),
    "no cap on unlisted cells": ("contribution", "_lowest", everything, "sparse"),
    "no cap on levels": ("contribution", "_lowest", everything, "levels"),
    "no clip": ("queries.sums", "clip_l1", lambda subject, values, bound: values, "sum, clipped"),
    "steps of the bound rounded down": (
        "queries.sums",
        "whole_steps",
        lambda value, j: math.trunc(value * 2**j * Fraction(99, 100)),
        "sum",
    ),
    "places beyond the unit": ("queries.centroids", "_within_unit", lambda steps: steps * 2, "centroid"),
    "weights of one": ("queries.weighted", "weights", lambda k, *rest: np.full(len(k), 64), "weighted"),
    "any total": (
        "queries.rescaling",
        "Rescaling.tally",
        lambda self, pairs, rows: np.array([pairs.rows.sum()], np.int64),
        "rescaled",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen(monkeypatch, fault):
    module, function, planted, name = FAULTS[fault]
    owner = __import__(f"geodp.{module}", fromlist=["x"])
    for part in function.split(".")[:-1]:
        owner = getattr(owner, part)
    where = {} if name == "levels" else NEAR_THE_EQUATOR
    monkeypatch.setattr(owner, function.split(".")[-1], planted)
    plan = planned(name, cap=1, mechanism="laplace", **where)
    places = [corner(i, "sw") for i in range(9)]
    if name == "levels":
        places = shapely.centroid(plan.layout.domain.geometry())[200:209]
    crowd = frame([("me", [(place, 120.0, 0) for place in places])], SCHEMA)
    with pytest.raises(AssertionError):
        assert_within(plan, entries(plan, crowd, secret(0)), entries(plan, frame([], SCHEMA), secret(0)))


def test_a_claim_twice_too_large_is_seen(monkeypatch):
    """The bounds said anew in these tests leave no room for it."""
    from geodp.queries import count
    from geodp.sensitivity import Norms, counts

    def twice(*arguments):
        norms = counts(*arguments)
        return Norms(2 * norms.l1, 4 * norms.l2_squared)

    monkeypatch.setattr(count, "counts", twice)
    plan = planned("count", cap=3, **NEAR_THE_EQUATOR)
    nobody = entries(plan, frame([], SCHEMA), secret(0))
    with pytest.raises(AssertionError):
        assert_within(plan, nobody, nobody)


def test_a_row_too_many_is_seen(monkeypatch):
    """Rows of a pair beyond the limit that are added up all the same are caught."""
    from geodp.queries import sums

    honest = sums.choose_rows
    monkeypatch.setattr(sums, "choose_rows", lambda s, k, v, m, *rest: honest(s, k, 2 * v, m, *rest))
    monkeypatch.setattr(
        sums, "add_up", lambda key, values, n: np.bincount(key, 2 * values, n).astype(np.int64)
    )
    plan = planned("mean", cap=1, mechanism="laplace")
    me = frame([("me", [(Point(-74, 40.7), 120.0, 0)])], SCHEMA)
    with pytest.raises(AssertionError):
        assert_within(plan, entries(plan, me, secret(0)), entries(plan, frame([], SCHEMA), secret(0)))


def test_two_people_in_one_key_are_seen(monkeypatch):
    """Ids by their text: 1 and "1" share one cap, and without "1" another cell of 1 counts."""
    plan = planned("count", cap=1, **NEAR_THE_EQUATOR)
    others = [(1, [(corner(0, "sw"), 1.0, 0)])]
    rows = [
        frame([*others, ("1", [(corner(i, "sw"), 1.0, 0) for i in (1, 2, 3)])], SCHEMA),
        frame(others, SCHEMA),
    ]

    def seen():
        for key in range(20):
            assert_within(plan, *(entries(plan, people, secret(key)) for people in rows))

    seen()
    from geodp import release
    from geodp.subjects import subjects

    monkeypatch.setattr(release, "subjects", lambda column: subjects(column.astype(str)))
    with pytest.raises(AssertionError):
        seen()
