"""Whole numbers: checked against the rule in Python's unbounded integers."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp.estimators import to_integers


def by_hand(x, order):
    """The rule of the docstring, cell by cell, without numpy."""
    parts = [round(Fraction(float(x[i])) * 2**20) for i in order]
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + part)
    rounded = [(end + 2**19) // 2**20 for end in ends]
    result = [0] * len(x)
    for start in range(0, len(parts), 64):
        block = range(start, min(start + 64, len(parts)))
        units = rounded[block[-1] + 1] - rounded[start] - sum(parts[i] // 2**20 for i in block)
        assert 0 <= units <= sum(parts[i] % 2**20 > 0 for i in block)
        largest = sorted(block, key=lambda i: (-(parts[i] % 2**20), i))[:units]
        for i in block:
            result[order[i]] = parts[i] // 2**20 + (i in largest)
    return result


counts = st.one_of(
    st.just(0.0),
    st.floats(0, 1),
    st.floats(0, 5),
    st.integers(0, 40).map(lambda k: k / 8),
    st.floats(0, 1e6),
    st.integers(0, 2**62).map(float),
)


@given(st.lists(counts, max_size=200), st.randoms(use_true_random=False))
def test_the_rule_exactly(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    found = to_integers(np.array(values, dtype=float), np.array(order, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == by_hand(values, order)


@pytest.mark.parametrize("whole", [0, 1, 2, 7, 2**40])
def test_half_a_unit_is_rounded_up_wherever_it_stands(whole):
    """Half-even rounding would give 0 for 0.5 and 2 for 1.5, and is no rule that moves with its number."""
    assert to_integers(np.array([whole + 0.5])).tolist() == [whole + 1]
    assert to_integers(np.array([0.25, whole + 0.25])).sum() == whole + 1


@given(st.lists(st.floats(0, 3), min_size=1, max_size=400), st.integers(0, 6), st.integers(0, 6))
def test_runs_of_whole_blocks_and_the_total_move_by_at_most_one(values, first, last):
    x = np.array(values)
    found = to_integers(x)
    assert (found >= 0).all()
    assert (np.abs(found - x) < 1 + 1e-6).all()
    assert abs(found.sum() - x.sum()) <= 1
    start, end = 64 * min(first, last), 64 * (max(first, last) + 1)
    if end <= len(x):
        assert abs(found[start:end].sum() - x[start:end].sum()) <= 1


@given(st.lists(st.integers(0, 2**62), max_size=100))
def test_whole_numbers_stay(values):
    x = np.array(values, dtype=np.float64)
    assert to_integers(x).tolist() == [int(value) for value in x]


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_every_length(n):
    x = np.full(n, 0.5)
    assert to_integers(x).tolist() == by_hand(x, range(n))


def test_a_thousand_small_cells_do_not_vanish():
    assert to_integers(np.full(1000, 0.3)).sum() == 300


def test_beyond_int64_saturates():
    huge = to_integers(np.array([2.0**63, 1e300, np.inf, 2.0**62]))
    assert huge.tolist() == [2**63 - 1024] * 3 + [2**62]


def test_negative_numbers_become_zero():
    assert to_integers(np.array([-0.7, -3.0, 1.0])).tolist() == [0, 0, 1]


def test_units_go_to_the_largest_remainders_and_ties_to_the_earlier_cell():
    assert to_integers(np.array([0.2, 0.9, 0.6, 0.3])).tolist() == [0, 1, 1, 0]
    assert to_integers(np.array([0.5, 0.5])).tolist() == [1, 0]
    assert to_integers(np.array([0.5, 0.5]), np.array([1, 0])).tolist() == [0, 1]


def test_floors_are_taken_in_the_lattice_of_the_rule():
    assert floor(1 - 2.0**-30) == 0
    assert to_integers(np.array([1 - 2.0**-30])).tolist() == [1]
