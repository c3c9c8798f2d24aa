"""Sums: bounds derived and counted out, the lattice, the clip and the columns."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import geodp
from geodp import testing
from geodp.sensitivity import bounded_sums, counts

NYC = (-74.3, 40.4, -73.6, 41.0)
WHERE = {"subject": "rider", "cap": 3, "bounds": NYC, "grid": "h3:5"}


def vectors(low, high, cap, n_keys):
    """All extreme vectors of one subject: in each of at most ``cap`` keys the lowest or the highest sum."""
    for vector in itertools.product({0, low, high}, repeat=n_keys):
        if sum(v != 0 for v in vector) <= cap:
            yield vector


def largest(low, high, cap, n_keys, neighboring):
    """Count out the largest L1 and squared L2 between neighbours; both are convex, so extremes suffice."""
    mine = list(vectors(low, high, cap, n_keys))
    other = mine if neighboring == "replace_one" else [(0,) * n_keys]
    moved = [[a - b for a, b in zip(v, w, strict=True)] for v in mine for w in other]
    return max(sum(map(abs, m)) for m in moved), max(sum(d * d for d in m) for m in moved)


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 0), (-5, 5), (-1, 10), (-7, 10), (-9, 2)])
def test_bounds_of_sums_are_the_largest_over_all_pairs(low, high, neighboring):
    for cap, n_keys in itertools.product(range(1, 5), range(1, 5)):
        found = bounded_sums(low, high, cap, 1, n_keys, neighboring)
        assert (found.l1, found.l2_squared) == largest(low, high, cap, n_keys, neighboring)


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
def test_sums_of_ones_have_the_bounds_of_counts(neighboring):
    for cap, rows, n_keys in itertools.product(range(1, 9), (1, 3), (1, 5, 9, 100)):
        assert bounded_sums(0, 1, cap, rows, n_keys, neighboring) == counts(cap, rows, n_keys, neighboring)


def test_values_of_ten_to_twenty_move_by_twenty():
    plan = geodp.plan(1, query=geodp.Sum("minutes", (10, 20)), **WHERE | {"cap": 1})
    assert plan.l1 == 20


def test_a_clip_is_the_sensitivity():
    for kind, norm in (("laplace", "l1"), ("gaussian", "l2")):
        plan = geodp.plan(1, 1e-6, query=geodp.Sum("minutes", (0, 120), clip=60), mechanism=kind, **WHERE)
        assert getattr(plan, norm) == 60


def test_a_clip_above_all_records_changes_nothing(trips):
    def noisy(clip):
        with testing.noiseless():
            return geodp.sum(trips, "minutes", 1, value_bounds=(0, 120), clip=clip, **WHERE)["noisy_sum"]

    pd.testing.assert_series_equal(noisy(None), noisy(10**9))
    pd.testing.assert_series_equal(noisy(None), noisy(360))


def test_one_wild_value_counts_as_the_bound(trips):
    """smartnoise #622: what is measured is the clipped copy."""
    trips.loc[0, "minutes"] = 1e300
    trips["rider"] = range(len(trips))
    with testing.noiseless():
        total = geodp.sum(trips, "minutes", 1, value_bounds=(0, 120), **WHERE | {"cap": 1})
    assert total["noisy_sum"].sum() == pytest.approx(trips["minutes"].clip(0, 120).sum(), abs=0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_one_sign_are_shown_with_that_sign(trips, sign):
    trips["minutes"] *= sign
    bounds = (0, 120) if sign > 0 else (-120, 0)
    total = geodp.sum(trips, "minutes", 0.5, value_bounds=bounds, **WHERE)
    assert (sign * total["sum"] >= 0).all()
    assert (total["lower"] <= total["noisy_sum"]).all()
    assert (total["noisy_sum"] <= total["upper"]).all()
    assert not np.signbit(total["sum"][total["sum"] == 0]).any()


def test_signed_sums_are_shown_as_measured(trips):
    total = geodp.sum(trips, "minutes", 0.5, value_bounds=(-1, 120), **WHERE)
    pd.testing.assert_series_equal(total["sum"], total["noisy_sum"], check_names=False)


@pytest.mark.parametrize(
    ("bounds", "clip", "error", "word"),
    [
        (np.array([0, 1]), None, TypeError, "ndarray"),
        (pd.Series([0, 1]), None, TypeError, "Series"),
        (pd.Index([0, 1]), None, TypeError, "Index"),
        ((1, 1), None, ValueError, "low below high"),
        ((2, 1), None, ValueError, "low below high"),
        ((0, float("nan")), None, ValueError, "finite"),
        ((0, float("inf")), None, ValueError, "finite"),
        ((0, 1, 2), None, ValueError, "two numbers"),
        ("01", None, ValueError, "two numbers"),
        ((0, True), None, TypeError, "bool"),
        ((0, "1e101"), None, ValueError, "1e100"),
        ((0, "1e-101"), None, ValueError, "1e-100"),
        ((0, 1), 0, ValueError, "greater than 0"),
        ((0, 1), -1, ValueError, "greater than 0"),
        ((0, 10**9), 1, ValueError, "millionth"),
    ],
)
def test_bad_bounds_are_refused_before_any_data(bounds, clip, error, word):
    with pytest.raises(error, match=word):
        geodp.Sum("minutes", bounds, clip)


@pytest.mark.parametrize("bounds", [("-1e100", "1e100"), (0, "1e-100"), ("1e99", "1e100")])
@pytest.mark.parametrize("call", [geodp.sum, geodp.mean])
def test_extreme_bounds_give_finite_numbers(trips, bounds, call):
    trips.loc[:5, "minutes"] = [1e308, -1e308, 0.0, -0.0, 5e-324, np.inf]
    frame = call(trips, "minutes", 1, 1e-6, value_bounds=bounds, return_geometry=False, **WHERE)
    numbers = frame.drop(columns="edge").to_numpy(np.float64)
    assert np.isfinite(numbers).all()


def test_a_clip_at_the_smallest_ratio_neither_wraps_nor_fails(trips):
    """Records of 2**41 steps each, many in one cell: clipped to 2**20 steps, and never past them."""
    trips["rider"], trips["minutes"] = "one", 1e12
    query = geodp.Sum("minutes", (0, 2**20), clip=1)
    plan = geodp.plan(1, query=query, **WHERE | {"rows_per_cell": 400})
    with testing.noiseless():
        total = plan.release(trips)["noisy_sum"].sum()
    assert Fraction(0) < Fraction(total) <= 1
