"""How far one subject moves the penalties, by brute force in exact rationals."""

import itertools
from fractions import Fraction

import geopandas as gpd
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

import geodp
from geodp.policy import Policy
from geodp.quantiles import keys_per_subject, penalties, selection
from geodp.release import place

BOX = (-74.1, 40.6, -73.9, 40.8)

caps = st.lists(st.integers(1, 12), min_size=1, max_size=5, unique=True).map(lambda c: tuple(sorted(c)))
quantiles = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)


def choice(neighboring, candidates=(1, 2, 4), quantile="0.9", eps=1):
    policy = Policy(subject="rider", cap="auto", bounds=BOX, grid="h3:6", neighboring=neighboring)
    return selection(policy, eps, candidates, quantile, None)


def changes(before, after, candidates, quantile):
    a, b = (penalties(np.array(lengths, int), candidates, quantile) for lengths in (before, after))
    return [y - x for x, y in zip(a, b, strict=True)]


@given(st.lists(st.integers(1, 15), max_size=12), st.integers(1, 15), caps, quantiles)
def test_one_more_subject_stays_within_the_reach(people, mine, candidates, quantile):
    moved = changes(people, [*people, mine], candidates, quantile)
    assert max(moved) - min(moved) <= choice("add_remove_one", candidates, quantile).reach
    assert max(map(abs, moved)) <= max(quantile, 1 - quantile) <= 1


@given(st.lists(st.integers(1, 15), max_size=12), st.integers(0, 15), st.integers(0, 15), caps, quantiles)
def test_one_exchanged_subject_stays_within_the_reach(people, mine, other, candidates, quantile):
    """Also one exchanged for a subject that is nowhere in the domain, which is one less."""
    before, after = ([*people, *([k] if k else [])] for k in (mine, other))
    moved = changes(before, after, candidates, quantile)
    assert max(moved) - min(moved) <= choice("replace_one", candidates, quantile).reach


@given(st.lists(st.integers(1, 15), max_size=12), caps, quantiles)
def test_some_candidate_is_always_right_and_it_is_the_quantile(people, candidates, quantile):
    found = penalties(np.array(people, int), candidates, quantile)
    assert min(found) == 0
    best = candidates[found.index(0)]
    wanted = quantile * len(people)
    within = sum(k <= best for k in people)
    assert within >= wanted or best == candidates[-1]
    below = [c for c in candidates if c < best]
    assert not below or sum(k <= below[-1] for k in people) < wanted


def test_the_reach_is_attained():
    """Half of the people in one cell, half in many; one more in many: left candidates rise, others fall."""
    people = [1] * 10 + [9] * 10
    moved = changes(people, [*people, 20], (1, 2, 30), Fraction(1, 2))
    assert max(moved) - min(moved) == Fraction(1, 2) < choice("add_remove_one", (1, 2, 30), "0.5").reach
    people = [1, 2, 3, 4]
    moved = changes(people, [*people, 9], (1, 2, 3, 4, 9), Fraction(1, 2))
    assert max(moved) - min(moved) == choice("add_remove_one", (1, 2, 3, 4, 9), "0.5").reach == 1
    moved = changes([1, 1, 3, 3, 4], [1, 1, 3, 3, 1], (1, 2, 3, 4), Fraction(1, 2))
    assert max(moved) - min(moved) <= choice("replace_one", (1, 2, 3, 4), "0.5").reach == 2


def law_of(planned, people):
    """Return the probability of each candidate, at 30 digits."""
    scale = Fraction(planned.scale)
    found = penalties(np.array(people, int), planned.candidates, planned.quantile)
    with mpmath.workdps(30):
        weights = [mpmath.exp(-mpmath.mpf((d / scale).numerator) / (d / scale).denominator) for d in found]
        return [w / sum(weights) for w in weights]


def worst_ratio(neighboring, candidates, quantile, eps, n=5, kinds=(1, 2, 3, 5)):
    """Return the largest log-ratio of the law over all data sets of up to n people, at 30 digits."""
    planned = choice(neighboring, candidates, quantile, eps)

    def law(people):
        return law_of(planned, people)

    worst = mpmath.mpf(0)
    for size in range(n):
        for people in itertools.combinations_with_replacement(kinds, size):
            grown = [law([*people, k]) for k in kinds]
            one = [(law(people), p) for p in grown]
            pairs = one if neighboring == "add_remove_one" else list(itertools.permutations(grown, 2))
            for a, b in pairs:
                worst = max(worst, *(abs(mpmath.log(x / y)) for x, y in zip(a, b, strict=True)))
    return worst


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("quantile", ["0.1", "0.5", "0.9"])
@pytest.mark.parametrize("eps", ["0.05", "3"])
def test_the_law_of_all_small_data_sets_is_eps_private(neighboring, quantile, eps):
    worst = worst_ratio(neighboring, (1, 2, 4), quantile, eps)
    assert 0.2 * float(Fraction(eps)) < worst <= float(Fraction(eps)) * (1 + 1e-12)


def test_many_candidates_need_the_whole_reach_of_an_exchange():
    """One penalty falls, all others rise: with a reach of 1 the ratio would be nearly twice eps."""
    eps, candidates = Fraction(1, 10), tuple(range(1, 61))
    planned = choice("replace_one", candidates, "0.5", eps)
    people = [1] * 9 + [2] + [60] * 10
    moved = changes(people, [1, *people[:-1]], candidates, Fraction(1, 2))
    assert max(moved) - min(moved) == planned.reach == 2
    before, after = law_of(planned, people), law_of(planned, [1, *people[:-1]])
    worst = max(abs(mpmath.log(x / y)) for x, y in zip(before, after, strict=True))
    assert 0.95 * eps < worst <= mpmath.mpf(eps.numerator) / eps.denominator


def test_a_planted_fault_is_seen(monkeypatch):
    """Half the reach is not private: the check above sees it."""
    from geodp.quantiles import Selection

    honest = Selection.reach.fget
    monkeypatch.setattr(Selection, "reach", property(lambda self: honest(self) / 4))
    assert worst_ratio("add_remove_one", (1, 2, 4), "0.9", "0.05") > 0.05


def test_kept_contributions_would_not_do():
    """One subject in 64 cells moves what a cap of 64 keeps by 64, which is why that is no score here."""
    people = [1, 1, 2]
    kept = [sum(min(k, c) for k in people) for c in (1, 64)]
    more = [sum(min(k, c) for k in [*people, 64]) for c in (1, 64)]
    assert max(b - a for a, b in zip(kept, more, strict=True)) == 64


def frame(rows):
    return gpd.GeoDataFrame({"rider": [r for r, _ in rows]}, geometry=[p for _, p in rows], crs=4326)


def lengths(rows, **where):
    plan = geodp.plan(1, subject="rider", cap=1, **{"bounds": BOX, "grid": "h3:6", **where})
    return sorted(keys_per_subject(place(plan, frame(rows)), plan.layout).tolist())


def test_only_distinct_cells_of_the_domain_count():
    """google dp PR #31: what lies outside must not count; nor do repeated rows, nor rows without an id."""
    here, there, far = Point(-74.0, 40.7), Point(-73.92, 40.78), Point(10, 60)
    rows = [("a", here)] * 9 + [("a", far)] + [("b", here), ("b", there)] + [(None, there), ("c", far)]
    assert lengths(rows, outside="drop") == [1, 2]
    assert lengths([], outside="drop") == []
    assert lengths([("a", None), ("b", Point())]) == []
