"""Numbers as typed: exact in, safe side out."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp.exact import ceil_double, exact, floor_double, plain, round_up, sqrt_up, whole

positive = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        ("1e-6", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(13421773, 134217728)),
        (np.int32(3), Fraction(3)),
        (10**400, Fraction(10**400)),
    ],
)
def test_what_is_typed_is_what_counts(typed, meant):
    assert exact(typed, "eps") == meant


@pytest.mark.parametrize(
    "bad", ["", "x", "1/0", "nan", "inf", "1e999999999", "9" * 2000, Decimal("nan"), math.inf, math.nan]
)
def test_texts_and_floats_that_are_no_numbers(bad):
    with pytest.raises(ValueError, match="eps"):
        exact(bad, "eps")


@pytest.mark.parametrize("bad", [None, True, np.True_, [1], (1,), np.array([1.0]), 1j, object()])
def test_things_that_are_no_numbers(bad):
    with pytest.raises(TypeError, match="eps"):
        exact(bad, "eps")


@given(positive)
def test_doubles_bracket_the_number_tightly(q):
    low, high = floor_double(q), ceil_double(q)
    assert Fraction(low) <= q <= Fraction(high)
    assert high <= math.nextafter(low, math.inf)


@given(positive)
def test_the_root_is_the_smallest_double_that_is_enough(q):
    root = sqrt_up(q)
    assert Fraction(root) ** 2 >= q > Fraction(math.nextafter(root, 0)) ** 2


@given(positive, st.integers(1, 40))
def test_rounding_up_is_up_short_and_close(q, digits):
    up = round_up(q, digits)
    assert q <= up <= q * (1 + Fraction(10) ** (1 - digits))


def test_numbers_beyond_doubles():
    assert ceil_double(Fraction(10**400)) == math.inf
    assert floor_double(Fraction(10**400)) == pytest.approx(1.797e308, rel=1e-3)
    assert ceil_double(Fraction(1, 10**400)) == 5e-324
    assert floor_double(Fraction(1, 10**400)) == 0.0


@pytest.mark.parametrize("bad", [2.0, "2", True, None])
def test_whole_numbers_are_ints(bad):
    with pytest.raises(TypeError, match="cap"):
        whole(bad, "cap", 1)


def test_plain_numbers_for_json():
    assert [plain(x) for x in (Fraction(2), 2.0, Fraction(1, 4), 10**20)] == [2, 2, 0.25, 1e20]
    with pytest.raises(ValueError, match="finite"):
        plain(math.inf)
