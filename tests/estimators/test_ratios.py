"""Ratios of noisy sums and counts: intervals that hold, exactly counted; estimates that stay finite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geodp.estimators import ratios
from geodp.estimators.ratios import fieller, shrunk_ratio
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian

HALF = 60.0
STEP = 2.0**-14
UNIT = HALF / STEP

LAWS = {
    "laplace, eps 1": (DiscreteLaplace(UNIT / 0.59), DiscreteLaplace(1 / 0.41)),
    "laplace, eps 0.1": (DiscreteLaplace(UNIT / 0.059), DiscreteLaplace(1 / 0.041)),
    "laplace, eps 8": (DiscreteLaplace(UNIT / 4.7), DiscreteLaplace(1 / 3.3)),
    "gaussian, eps 1": (RoundedGaussian(UNIT * 4.7), RoundedGaussian(6.2)),
    "gaussian, eps 8": (RoundedGaussian(UNIT * 0.7), RoundedGaussian(0.9)),
    "coarse lattice": (DiscreteLaplace(2.5), DiscreteLaplace(0.7)),
    "hardly any count noise": (RoundedGaussian(UNIT), RoundedGaussian(0.25)),
}


def coverage(law_s, law_n, step, s, n):
    """Return the exact probability, but for 1e-9, that the interval of a cell holds s·step/n.

    For each noisy count the ends grow with the noisy sum, so the sums whose interval holds the ratio are
    a run of integers, whose ends are found by bisection.
    """
    true = s * step / n
    end = law_n.halfwidth(1 - 1e-10)
    noise = np.arange(-end, end + 1)
    reach = 4 * law_s.halfwidth(1 - 1e-10) + int(2 * abs(true) / step * end) + 10

    def first(holds):
        low, high = np.full(len(noise), s - reach), np.full(len(noise), s + reach)
        while (low < high).any():
            middle = (low + high) // 2
            found = holds(*fieller(middle, n + noise, law_s, law_n, step, HALF))
            low, high = np.where(found, low, np.minimum(middle + 1, high)), np.where(found, middle, high)
        return low

    start = first(lambda lower, upper: upper >= true)
    stop = first(lambda lower, upper: lower > true)
    held = np.where(stop > start, law_s.cdf(stop - 1 - s) - law_s.cdf(start - 1 - s), 0)
    return float((law_n.pmf(noise) * held).sum())


@pytest.mark.parametrize("ratio", [-1.0, -0.6, 0.0, 0.37])
@pytest.mark.parametrize("name", LAWS)
def test_intervals_hold_the_ratio_in_95_percent(name, ratio):
    law_s, law_n = LAWS[name]
    step = HALF / 40 if name == "coarse lattice" else STEP
    for n in (1, 5, 30, 200, 10**6):
        s = int(ratio * HALF * n / step)
        assert coverage(law_s, law_n, step, s, n) >= 0.95 - 1e-8


def test_the_count_of_coverage_sees_an_interval_too_narrow(monkeypatch):
    honest = ratios._quantiles
    monkeypatch.setattr(ratios, "_quantiles", lambda r, a, b, c, level: honest(r, a, b, c, 0.93))
    ratios._reach.cache_clear()
    law_s, law_n = LAWS["gaussian, eps 1"]
    try:
        assert coverage(law_s, law_n, STEP, int(-0.6 * UNIT * 1000), 1000) < 0.95
    finally:
        ratios._reach.cache_clear()


@pytest.mark.parametrize("name", ["laplace, eps 1", "gaussian, eps 1", "gaussian, eps 8"])
@pytest.mark.parametrize("ratio", [-0.6, 0.0, 0.5])
def test_intervals_are_hardly_wider_than_they_must_be(name, ratio):
    """At the true sums: within 5 % of twice the quantile of the noise there, over n; no step of a grid.

    The quantile is that of 400,000 draws, whose own error is below 1 %: far within the rest.
    """
    law_s, law_n = LAWS[name]
    rng = np.random.PCG64(5)
    draws = [
        law.sample(400_000, lambda k: np.random.Generator(rng).integers(0, 2**64, k, np.uint64))
        for law in (law_s, law_n)
    ]
    ideal = np.quantile(np.abs(draws[0] * STEP - ratio * HALF * draws[1]), 0.95)
    for n in (200, 1000, 10_000):
        s = np.array([int(ratio * UNIT * n)])
        lower, upper = fieller(s, np.array([n]), law_s, law_n, STEP, HALF)
        assert upper - lower <= 2 * 1.05 * ideal / n + 2.5 * STEP


def test_precise_cells_have_precise_intervals():
    law_s, law_n = LAWS["gaussian, eps 8"]
    n = np.array([10**9])
    lower, upper = fieller(n * 1000, n, law_s, law_n, STEP, HALF)
    assert upper - lower < 3 * STEP
    assert lower <= 1000 * STEP <= upper


@pytest.mark.parametrize("name", LAWS)
def test_cells_lost_in_their_noise_say_nothing(name):
    law_s, law_n = LAWS[name]
    n = np.array([-(2**62), -1, 0, law_n.halfwidth(0.95)])
    lower, upper = fieller(np.array([7, -(2**62), 0, 2**62]), n, law_s, law_n, STEP, HALF)
    assert (lower == -HALF).all()
    assert (upper == HALF).all()


@pytest.mark.parametrize("name", [name for name in LAWS if "coarse" not in name])
def test_few_cells_are_lost_to_the_slope_of_the_line(name):
    """Everything where N is above its noise has an interval: the line is no steeper than that noise."""
    law_s, law_n = LAWS[name]
    assert ratios._reach(law_s, law_n, STEP, HALF, 0.95)[2] <= max(1.5, 1.1 * law_n.halfwidth(0.95))


noisy = st.integers(-(2**62), 2**62) | st.integers(-30, 300)
cells = st.lists(st.tuples(noisy, noisy, st.floats(0, 1e6) | st.just(0.0)), min_size=1, max_size=30)


@settings(max_examples=150)
@given(cells, st.sampled_from(sorted(LAWS)))
def test_estimates_and_ends_are_finite_and_in_order(rows, name):
    law_s, law_n = LAWS[name]
    s, n = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    smooth = np.array([row[2] for row in rows])
    found = shrunk_ratio(s * STEP, n, smooth, law_s.std * STEP, law_n.std, HALF)
    lower, upper = fieller(s, n, law_s, law_n, STEP, HALF)
    for values in (found, lower, upper):
        assert np.isfinite(values).all()
        assert (np.abs(values) <= HALF).all()
    assert (lower <= upper).all()


def test_a_noise_that_underflows_divides_nothing_by_zero():
    found = shrunk_ratio(np.zeros(3), np.array([0, 0, 5]), np.array([0.0, 0.0, 5.0]), 0.0, 0.0, HALF)
    assert np.isfinite(found).all()


def test_empty_cells_have_the_overall_ratio_and_large_ones_their_own():
    """No noise here: 990 empty cells beside ten of 10,000 rows at a ratio of -58."""
    n = np.array([10_000] * 10 + [0] * 990)
    s = -58.0 * n
    s[0] = 20.0 * n[0]
    found = shrunk_ratio(s, n, n.astype(float), 100.0, 3.0, HALF)
    overall = s.sum() / n.sum()
    np.testing.assert_allclose(found[10:], overall)
    np.testing.assert_allclose(found[:10], s[:10] / 10_000, atol=0.01)


@pytest.mark.sampled(rate=1e-30)
def test_without_anybody_the_ratio_is_the_middle():
    law = LAWS["laplace, eps 1"][1]
    n = law.sample(5000)
    n -= int(n.sum() > 0)
    assert (shrunk_ratio(np.zeros(5000), n, np.zeros(5000), 100.0, law.std, HALF) == 0).all()


def test_one_well_measured_cell_is_not_drawn_to_the_middle():
    found = shrunk_ratio(
        np.array([5000.0]), np.array([1000]), np.array([1000.0]), 100.0, 3.0, HALF, overall=0.0
    )
    assert abs(found[0] - 5) < 0.01
