"""Sets of whole numbers as stretches, against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geodp.grids.runs import Runs

STRETCHES = st.lists(st.tuples(st.integers(-40, 40), st.integers(-2, 6)), max_size=12)


def whole(values):
    return np.array(list(values), dtype=np.int64)


@given(STRETCHES)
def test_runs_are_the_sorted_set(stretches):
    runs = Runs.of(whole(a for a, _ in stretches), whole(a + b for a, b in stretches))
    numbers = sorted({number for a, b in stretches for number in range(a, a + b + 1)})
    assert runs.size == len(numbers)
    assert runs.values(np.arange(runs.size)).tolist() == numbers
    among = dict(zip(numbers, range(len(numbers)), strict=True))
    asked = range(-45, 50)
    assert runs.places(whole(asked)).tolist() == [among.get(number, -1) for number in asked]
    assert (runs.first[1:] > runs.last[:-1] + 1).all()  # a number is missing between two stretches


def test_nothing_is_a_set_too():
    runs = Runs.of(whole([]), whole([]))
    assert runs.size == 0
    assert runs.places(whole([3])).tolist() == [-1]
    assert runs.values(whole([])).tolist() == []
