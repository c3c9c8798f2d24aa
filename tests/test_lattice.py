"""The lattice against Python's own integers: sums, clips and rounding, exact to the last unit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geodp import lattice
from geodp.lattice import add_up, clip_l1, clip_l2, exponent, to_steps, whole_steps

TOP = 2**63 - 1

small = st.integers(-9, 9)
steps = st.integers(-(2**41), 2**41)
any_size = st.integers(-TOP, TOP)


def ints(values):
    return np.array(values, dtype=np.int64)


def saturated(total):
    return max(-TOP, min(TOP, total))


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(small, steps))))
@example([(0, -1)])
@example([(0, -(2**20)), (0, 2**20 - 1)])
def test_sums_are_those_of_python(rows):
    expected = [sum(v for k, v in rows if k == key) for key in range(5)]
    assert add_up(ints([k for k, _ in rows]), ints([v for _, v in rows]), 5).tolist() == expected


@given(st.lists(st.integers(-1, 1), min_size=1, max_size=200), st.integers(0, 2**20))
def test_sums_of_the_largest_values_whose_total_fits(signs, less):
    values = [sign * (2**62 // len(signs) - less) for sign in signs]
    assert add_up(ints([0] * len(values)), ints(values), 1).tolist() == [sum(values)]


@given(st.lists(st.one_of(any_size, st.sampled_from([TOP, -TOP, 2**62, -(2**62)])), max_size=50))
@example([TOP, 1])
@example([-TOP, -1])
@example([2**62, 2**62])
@example([-(2**62), -(2**62)])
@example([TOP, TOP, -TOP, -TOP])
def test_sums_saturate_and_never_wrap(values):
    assert add_up(ints([0] * len(values)), ints(values), 1).tolist() == [saturated(sum(values))]


def test_saturation_in_one_key_leaves_the_others_alone():
    assert add_up(ints([0, 0, 2, 1]), ints([TOP, TOP, -5, -(2**20)]), 4).tolist() == [TOP, -(2**20), -5, 0]


def by_rule(subject, values, bound, squared):
    """RULES: z = sign·floor(|z|·C / ceil(sqrt(sum z²))), or / sum |z|, above the bound; else unchanged."""
    out = []
    for who, value in zip(subject, values, strict=True):
        mine = [v for s, v in zip(subject, values, strict=True) if s == who]
        total = sum(v * v if squared else abs(v) for v in mine)
        norm = math.isqrt(total - 1) + 1 if squared and total else total
        shrunk = abs(value) if norm <= bound else abs(value) * bound // norm
        out.append(int(math.copysign(1, value)) * shrunk)
    return out


vectors = st.lists(st.lists(st.one_of(small, steps, any_size), min_size=1, max_size=5), max_size=4)
bounds = st.one_of(st.integers(1, 30), st.integers(2**20, 2**21), st.integers(2**61, 2**62))


@given(vectors, bounds)
@example([[3, 4]], 5)
@example([[3, 4]], 4)
@example([[TOP, -TOP, TOP]], 1)
@example([[0, 0]], 1)
def test_clips_follow_the_formula_and_hold_the_norm(people, bound):
    subject = [who for who, vector in enumerate(people) for _ in vector]
    values = [v for vector in people for v in vector]
    for clip, squared in ((clip_l2, True), (clip_l1, False)):
        got = clip(ints(subject), ints(values), bound).tolist()
        assert got == by_rule(subject, values, bound, squared)
        for who in range(len(people)):
            mine = [v for s, v in zip(subject, got, strict=True) if s == who]
            assert sum(v * v for v in mine) <= bound**2 if squared else sum(map(abs, mine)) <= bound


@given(st.lists(any_size, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_a_clip_does_not_depend_on_the_order_of_cells(values, random):
    shuffled = values[:]
    random.shuffle(shuffled)
    for clip in (clip_l1, clip_l2):
        a, b = (clip(ints([0] * len(v)), ints(v), 2**20).tolist() for v in (values, shuffled))
        assert sorted(a) == sorted(b)


def test_a_vector_at_the_bound_is_kept_and_one_step_more_is_not():
    """A double cannot tell 2**62 from 2**62 + 1: the exact look decides."""
    at, above = ints([2**61, 2**61]), ints([2**61, 2**61 + 1])
    assert clip_l1(ints([0, 0]), at, 2**62).tolist() == at.tolist()
    assert sum(clip_l1(ints([0, 0]), above, 2**62).tolist()) <= 2**62 < sum(above.tolist())


def test_a_planted_rounding_to_nearest_breaks_the_norm(monkeypatch):
    monkeypatch.setattr(lattice, "_root_up", lambda total: round(math.sqrt(total)))
    clipped = clip_l2(ints([0] * 3), ints([1000, 1000, 1414]), 1999)
    assert sum(v * v for v in clipped.tolist()) <= 1999**2
    clipped = clip_l2(ints([0] * 2), ints([2, 1]), 2)
    assert sum(v * v for v in clipped.tolist()) > 4


LIMITS = {
    "tenths": (Fraction(1, 10), Fraction(3, 10)),
    "minutes": (Fraction(0), Fraction(120)),
    "huge": (Fraction(-(10**12)), Fraction(10**12)),
    "tiny": (Fraction(1, 10**12), Fraction(3, 10**12)),
    "above zero": (Fraction(10), Fraction(20)),
    "below zero": (Fraction(-7), Fraction(-2)),
    "far away": (Fraction(10**15), Fraction(10**15) + Fraction(1, 1000)),
    "thirds": (Fraction(-1, 3), Fraction(2, 3)),
    "largest": (Fraction(-(10**100)), Fraction(10**100)),
}


def around(value):
    near = float(value)
    return [near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("centred", [False, True])
@settings(max_examples=50)
@given(data=st.data())
def test_no_record_reaches_beyond_what_its_bounds_allow(name, centred, data):
    low, high = LIMITS[name]
    middle = (low + high) / 2 if centred else Fraction(0)
    largest = max(abs(low - middle), abs(high - middle))
    j = exponent(largest)
    odd = [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 1.7976931348623157e308, *around(low), *around(high)]
    values = data.draw(st.lists(st.one_of(st.sampled_from(odd), st.floats(-1e308, 1e308)), min_size=1))
    got = to_steps(np.array(values), low, high, middle, j).tolist()
    assert all(abs(v) <= whole_steps(largest, j) for v in got)
    assert all(whole_steps(low - middle, j) <= v <= whole_steps(high - middle, j) for v in got)
    for value, step in zip(values, got, strict=True):
        exact = (min(max(Fraction(value), low), high) - middle) * Fraction(2) ** j
        # The subtraction of the middle is in doubles: an error of an ulp of the value, in steps.
        slack = Fraction(math.ulp(max(abs(float(low)), abs(float(high))))) * Fraction(2) ** j
        assert abs(step) <= abs(exact) + slack
        assert abs(step - exact) < 1 + slack


def test_the_ends_are_whole_and_signed():
    low, high = LIMITS["above zero"]
    assert to_steps(np.array([-1e300, 15.0, 1e300]), low, high, Fraction(0), 16).tolist() == [
        10 << 16,
        15 << 16,
        20 << 16,
    ]
    low, high = LIMITS["below zero"]
    assert to_steps(np.array([-1e300, 0.0]), low, high, Fraction(0), 18).tolist() == [-7 << 18, -2 << 18]


@given(st.fractions(min_value=Fraction(1, 10**100), max_value=10**100))
@example(Fraction(1))
@example(Fraction(2**20))
@example(Fraction(10**100))
@example(Fraction(2**64 - 1, 2**64))
def test_a_bound_spans_between_one_and_two_million_steps(bound):
    assert 2**20 <= bound * Fraction(2) ** exponent(bound) < 2**21
    assert 2**20 <= whole_steps(bound, exponent(bound)) < 2**21
