"""The exponential mechanism in integers: brackets that hold, and a law that is exact to the last bit asked."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geodp.mechanisms.noise import system_bits
from geodp.selecting import choose, exp_bounds

ONES = 2**64 - 1


def words(*given):
    """Return a source that yields the given words, then fails: no test may draw more than it says."""
    left = list(given)

    def bits(n):
        return np.array([left.pop(0) for _ in range(n)], np.uint64)

    return bits


def real(number):
    return mpmath.mpf(number.numerator) / number.denominator


def cumulative(penalties):
    """Return the borders of the law at 80 digits."""
    with mpmath.workdps(80):
        weights = [mpmath.exp(-real(p)) for p in penalties]
        return [sum(weights[: j + 1]) / sum(weights) for j in range(len(weights))]


fractions = st.builds(Fraction, st.integers(0, 10**12), st.integers(1, 10**10))


@given(fractions, st.integers(8, 400))
def test_bounds_hold_and_are_tight(r, bits):
    low, high = exp_bounds(r, bits)
    with mpmath.workdps(200 + int(float(r))):
        exact = mpmath.exp(-real(r)) * mpmath.mpf(2) ** bits if r < 10**5 else mpmath.mpf(0)
    assert low <= exact <= high
    assert high - low <= 2


@pytest.mark.parametrize(
    "r", [Fraction(0), Fraction(10**400), Fraction(1, 10**400), Fraction(1, 2), Fraction(745)]
)
def test_bounds_at_the_ends(r):
    low, high = exp_bounds(r, 64)
    assert 0 <= low <= high <= low + 2
    if r == 10**400:
        assert (low, high) == (0, 1)
    if r < Fraction(1, 10**300):
        assert low >= 2**64 - 2
        assert high >= 2**64 - 1


LAWS = [
    [Fraction(0)],
    [Fraction(0), Fraction(0)],
    [Fraction(1, 3), Fraction(0), Fraction(7, 5), Fraction(2)],
    [Fraction(40), Fraction(0), Fraction(1, 10**9)],
    [Fraction(k, 36) for k in (180, 20, 0, 99, 200, 340, 0)],
    [Fraction(0), Fraction(200), Fraction(300)],
]


@pytest.mark.parametrize("penalties", LAWS)
def test_every_border_of_the_law_lies_where_it_should_to_the_last_bit(penalties):
    """What lies below a border by one part in 2^64, or in 2^128, is the candidate's; above, the next one's."""
    borders = cumulative(penalties)
    for j, border in enumerate(borders[:-1]):
        with mpmath.workdps(80):
            word = int(mpmath.floor(border * 2**64))
            inner = int(mpmath.floor((border * 2**64 - word) * 2**64))
        if 0 < word <= ONES:
            assert choose(penalties, words(word - 1, 0, 0)) <= j
        if word < ONES:
            assert choose(penalties, words(word + 1, 0, 0)) > j
        if word <= ONES and 1 < inner < ONES:
            assert choose(penalties, words(word, inner - 1, 0, 0)) <= j
            assert choose(penalties, words(word, inner + 1, 0, 0)) > j


@given(
    st.lists(fractions.map(lambda f: f % 50), min_size=1, max_size=9),
    st.integers(0, ONES),
    st.integers(0, ONES),
)
def test_any_draw_is_what_the_real_numbers_say(penalties, first, second):
    with mpmath.workdps(80):
        u = (mpmath.mpf(first) + mpmath.mpf(second) / 2**64) / 2**64
        expected = next(
            (j for j, border in enumerate(cumulative(penalties)) if u < border), len(penalties) - 1
        )
    assert choose(penalties, words(first, second, 0, 0)) == expected


@given(st.lists(fractions, min_size=1, max_size=9), fractions, st.integers(0, 2**32))
def test_only_differences_of_penalties_matter(penalties, shift, seed):
    rng = np.random.default_rng(seed)
    draws = [int(w) for w in rng.integers(0, 2**64, 4, np.uint64)]
    assert choose(penalties, words(*draws)) == choose([p + shift for p in penalties], words(*draws))


def frequencies(penalties, drawn):
    borders = cumulative(penalties)
    p = np.diff([0.0, *map(float, borders)])
    seen = np.bincount(drawn, minlength=len(p))
    return float(((seen - len(drawn) * p) ** 2 / (len(drawn) * p)).sum())


# 8,000 draws over 4 candidates: chi-square with 3 degrees of freedom passes 37 with probability 5e-8.
LIMIT, DRAWS = 37.0, 8_000
LAW = [Fraction(1, 3), Fraction(0), Fraction(7, 5), Fraction(2)]


@pytest.mark.sampled(rate=5e-8)
def test_frequencies_from_the_operating_system():
    assert frequencies(LAW, [choose(LAW, system_bits) for _ in range(DRAWS)]) < LIMIT


@pytest.mark.sampled(rate=1e-12)
def test_a_planted_fault_is_seen():
    """A scale of two thirds is far beyond the limit."""
    wrong = [p / Fraction(2, 3) for p in LAW]
    assert frequencies(LAW, [choose(wrong, system_bits) for _ in range(DRAWS)]) > LIMIT


@settings(max_examples=20)
@given(st.integers(1, 10**9))
def test_one_word_is_nearly_always_enough(seed):
    rng = np.random.default_rng(seed)
    assert choose(LAWS[4], words(int(rng.integers(0, 2**63)))) in range(7)
