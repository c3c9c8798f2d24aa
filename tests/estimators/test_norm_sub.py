"""Totals without negative numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp.estimators.norm_sub import clamp, keep_total, norm_sub

numbers = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=30)


def test_by_hand():
    assert norm_sub(np.array([5.0, 1.0, -3.0]), 4.0).tolist() == [4.0, 0.0, 0.0]
    assert norm_sub(np.array([5.0, 3.0, -3.0]), 6.0).tolist() == [4.0, 2.0, 0.0]
    assert norm_sub(np.array([1.0, 1.0]), 6.0).tolist() == [3.0, 3.0]
    assert norm_sub(np.array([1.0, 1.0]), 0.0).tolist() == [0.0, 0.0]
    assert norm_sub(np.array([1.0, 1.0]), -2.0).tolist() == [0.0, 0.0]
    assert norm_sub(np.zeros(0), 3.0).tolist() == []
    assert clamp(np.array([-2.0, 3.0])).tolist() == [0.0, 3.0]


@given(numbers, st.floats(0.1, 500))
def test_it_is_the_projection_on_the_simplex(values, total):
    x = np.array(values)
    found = norm_sub(x, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    # Optimal exactly if one constant was added to every positive cell, and would leave the others below 0.
    shift = (found - x)[found > 0]
    assert shift == pytest.approx(shift[0], abs=1e-9)
    assert (x[found == 0] + shift[0] <= 1e-9).all()


def test_keep_total_does_nothing_inside_and_the_least_outside():
    x = np.array([4.0, 1.0, 0.0])
    assert keep_total(x, 6.0, 1.0) is x
    assert keep_total(x, 2.0, 1.0).tolist() == [3.0, 0.0, 0.0]
    assert keep_total(x, 9.0, 1.0).tolist() == [6.4, 1.6, 0.0]
    assert keep_total(x, -9.0, 1.0).tolist() == [1.0, 0.0, 0.0]


def test_keep_total_adds_a_constant_where_a_factor_would_be_above_two():
    x = np.array([4.0, 1.0, 0.0])
    assert keep_total(x, 11.0, 1.0).tolist() == [8.0, 2.0, 0.0]
    assert keep_total(x, 14.0, 1.0) == pytest.approx(x + 8 / 3)
    assert keep_total(np.zeros(3), 7.0, 1.0).tolist() == [2.0, 2.0, 2.0]


@given(numbers, st.floats(-500, 500), st.floats(0.1, 50))
def test_keep_total_keeps_it(values, total, std):
    found = keep_total(np.maximum(np.array(values), 0), total, std)
    assert (found >= 0).all()
    assert abs(found.sum() - max(total, 0)) <= std * (1 + 1e-9)
