"""The law of sums of noise: against brute-force convolution, bounds, and a planted normal approximation."""

import math

import numpy as np
import pytest

from geodp.convolved import NoiseSum
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian

NARROW = [
    DiscreteLaplace(0.3),
    DiscreteLaplace(2.5),
    RoundedGaussian(0.3),
    RoundedGaussian(0.99),
    RoundedGaussian(1.0),
]
WIDE = [DiscreteLaplace(8.0), RoundedGaussian(8.449357778662121), RoundedGaussian(1.7)]


def law_of_sum(law, n):
    """The exact law of n draws by convolution: probabilities of -m..m."""
    reach = int(60 * law.std) + 30
    one = law.pmf(np.arange(-reach, reach + 1))
    out = np.array([1.0])
    for _ in range(n):
        out = np.convolve(out, one)
    return out


def brute_halfwidth(law, n, level):
    pmf = law_of_sum(law, n)
    middle = len(pmf) // 2
    inside = pmf[middle] + 2 * np.concatenate([[0.0], np.cumsum(pmf[middle + 1 :])])
    return int(np.argmax(inside >= level - 1e-13))


@pytest.mark.parametrize("law", NARROW + WIDE, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_halfwidths_are_those_of_the_convolution(law, n):
    for level in (0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        assert NoiseSum(law, ((1, n),)).halfwidth(level) == brute_halfwidth(law, n, level)


def test_the_normal_approximation_would_be_caught():
    law, wrong = DiscreteLaplace(8.0), 0
    for n in (2, 3, 9):
        normal = math.ceil(2.5758 * law.std * math.sqrt(n))
        wrong += normal != brute_halfwidth(law, n, 0.99)
    assert wrong == 3


@pytest.mark.parametrize("law", [DiscreteLaplace(4.0), RoundedGaussian(8.45), RoundedGaussian(0.7)], ids=str)
@pytest.mark.parametrize("n", [10**3, 5 * 10**6])
def test_many_draws_have_normal_quantiles(law, n):
    # The next term of the Edgeworth series is below kurtosis / (24 n) of a standard deviation.
    h = NoiseSum(law, ((1, n),)).halfwidth(0.95)
    std = law.std * math.sqrt(n)
    assert abs(h - 1.959964 * std) <= 1 + 0.5 * std / n


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(2.0**50), RoundedGaussian(2.0**50), DiscreteLaplace(1e6)], ids=str
)
@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_the_widest_laws_scale(law, n):
    small = type(law)(1000.0)
    ratio = NoiseSum(law, ((1, n),)).halfwidth(0.95) / NoiseSum(small, ((1, n),)).halfwidth(0.95)
    assert ratio == pytest.approx(law.std / small.std, rel=2e-3)


def weighted_pmf(law, numerators):
    """The exact law of a sum with whole weights."""
    reach = int(60 * law.std) + 30
    k = np.arange(-reach, reach + 1)
    out = np.array([1.0])
    for a in numerators:
        one = np.zeros(2 * a * reach + 1)
        one[a * (k + reach)] = law.pmf(k)
        out = np.convolve(out, one)
    return out


@pytest.mark.parametrize("law", [DiscreteLaplace(2.5), RoundedGaussian(1.3), DiscreteLaplace(0.4)], ids=str)
@pytest.mark.parametrize("numerators", [[1], [4], [1, 4], [3, 3, 4], [1, 2, 3, 4, 4, 4]])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_weighted_intervals_are_exact_on_their_lattice(law, numerators, level):
    pmf = weighted_pmf(law, numerators)
    middle = len(pmf) // 2
    inside = pmf[middle] + 2 * np.concatenate([[0.0], np.cumsum(pmf[middle + 1 :])])
    noise = NoiseSum.of_weights(law, np.array(numerators), 4)
    exact = int(np.argmax(inside >= level - 1e-13))
    assert noise.halfwidth(level) * 4 == exact
    assert noise.std == pytest.approx(math.sqrt(law.std**2 * sum(a * a for a in numerators)) / 4)


def test_few_wide_draws_are_blurred_on_the_safe_side():
    law = DiscreteLaplace(30_000.0)
    noise = NoiseSum(law, ((1, 2),))
    assert noise._lattice_series(noise._reach()) is None
    # The sum of two Laplace draws: P(|S| > x) = (1 + x / 2b) e^(-x / b), continuous.
    x = float(noise.halfwidth(0.95)) / law.scale
    assert 0 <= 1 - (1 + x / 2) * math.exp(-x) - 0.95 < 3e-4


@pytest.mark.parametrize("law", [DiscreteLaplace(3000.0), RoundedGaussian(3000.0)], ids=str)
def test_wide_weighted_sums_are_blurred_on_the_safe_side(law):
    noise = NoiseSum(law, ((3, 2), (256, 5)), 256)
    assert noise._lattice_series(noise._reach()) is None
    # Nearly the sum of five draws alone: the other two change its variance by 5e-5 of it.
    five = NoiseSum(law, ((1, 5),))
    assert 0 < noise.halfwidth(0.95) - five.halfwidth(0.95) < 4e-3 * five.std


def test_no_noise_has_no_width():
    assert NoiseSum(RoundedGaussian(0.01), ((1, 100),)).halfwidth(0.95) == 0
    assert NoiseSum(DiscreteLaplace(0.01), ((1, 2), (2, 9)), 2).halfwidth(0.95) == 0


@pytest.mark.sampled(rate=1e-7)
def test_the_interval_covers_as_stated():
    """Sampled: 4,000 sums; false alarm below 1e-7 (5.4 standard deviations of a binomial)."""
    law, n, trials = DiscreteLaplace(3.0), 12, 4000
    sums = law.sample(n * trials).reshape(trials, n).sum(axis=1)
    h = int(NoiseSum(law, ((1, n),)).halfwidth(0.9))
    spread = 5.4 * math.sqrt(trials * 0.9 * 0.1)
    inside = (np.abs(sums) <= h).sum()
    pmf = law_of_sum(law, n)
    middle = len(pmf) // 2
    assert abs(inside - trials * pmf[middle - h : middle + h + 1].sum()) < spread
    assert (
        abs((np.abs(sums) <= h * 0.8).sum() - 0.9 * trials) > spread
    )  # planted: an interval a fifth too narrow
