"""Priors on exact integer noise."""

import numpy as np
import pytest

from geodp.estimators.priors import (
    build_likelihood,
    fit_prior,
    mean_rule,
    median_rule,
    noise_std,
    tilt,
)
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian

LAWS = [
    DiscreteLaplace(0.3),
    DiscreteLaplace(4.0),
    DiscreteLaplace(150.0),
    RoundedGaussian(0.4),
    RoundedGaussian(8.45),
]
EXTREMES = [RoundedGaussian(1e-3), DiscreteLaplace(1e-3), RoundedGaussian(2.0**50), DiscreteLaplace(2.0**50)]


@pytest.mark.parametrize("law", [*LAWS, *EXTREMES], ids=str)
def test_the_table_holds_probabilities_of_the_integer_law(law):
    likelihood = build_likelihood(law)
    table = likelihood.table
    assert (table > 0).all()
    assert (table.sum(axis=0) <= 1 + 1e-9).all()
    # All but the part above the cut is there.
    assert table[:, 0].sum() == pytest.approx(1 - float(law.sf(int(likelihood.cut) - 1)), abs=1e-12)


@pytest.mark.parametrize("law", LAWS[:3], ids=str)
def test_bins_add_up_the_exact_probabilities(law):
    likelihood = build_likelihood(law)
    width = int(likelihood.width)
    for i in (1, 5, len(likelihood.middle) - 1):
        first = round(likelihood.middle[i] - (width - 1) / 2)
        for j in (0, 3, len(likelihood.support) - 1):
            k = np.arange(first, first + width) - int(likelihood.support[j])
            assert likelihood.table[i, j] == pytest.approx(float(law.pmf(k).sum()), rel=1e-9)


def test_bins_of_noisy_counts():
    likelihood = build_likelihood(DiscreteLaplace(4.0))  # std 5.6: bins of one integer
    assert likelihood.width == 1
    assert likelihood.bins(np.array([-1e9, likelihood.middle[0], 0.0, likelihood.cut, 1e18])).tolist() == [
        0,
        0,
        -round(likelihood.middle[0]),
        len(likelihood.middle),
        len(likelihood.middle),
    ]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_rules_never_fall_in_the_noisy_count_and_end_in_the_identity(law):
    likelihood = build_likelihood(law)
    noisy = np.arange(-40 * int(law.std + 1), 40 * int(law.std + 1)).astype(float)
    prior = np.random.default_rng(1).dirichlet(np.full(len(likelihood.support), 0.1))
    for make in (mean_rule, median_rule):
        value, variance = make(likelihood, np.array([prior]))(likelihood, noisy)
        assert (value >= 0).all()
        assert (np.diff(value) >= 0).all()
        assert (variance >= 0).all()
        high = noisy >= likelihood.cut
        assert value[high].tolist() == noisy[high].tolist()
        assert variance[high] == pytest.approx(likelihood.std**2)


def test_posterior_by_hand():
    law = DiscreteLaplace(2.0)
    likelihood = build_likelihood(law)
    prior = np.zeros(len(likelihood.support))
    prior[[0, 4]] = 0.5  # a count is 0 or 4
    p = np.exp(-0.5)
    for y, odds in ((0, p**4), (1, p**2), (2, 1.0), (4, p**-4)):
        (value,), (variance,) = mean_rule(likelihood, np.array([prior]))(likelihood, np.array([float(y)]))
        assert value == pytest.approx(4 * odds / (1 + odds))
        assert variance == pytest.approx(16 * odds / (1 + odds) ** 2)
        (median,), _ = median_rule(likelihood, np.array([prior]))(likelihood, np.array([float(y)]))
        assert median == (0 if odds < 1 else 4) or odds == 1


def test_em_climbs_and_finds_a_point_mass():
    law, rng = RoundedGaussian(2.0), np.random.default_rng(2)
    likelihood = build_likelihood(law)
    noisy = 10 + np.rint(2 * rng.standard_normal(20_000))
    histogram = np.bincount(likelihood.bins(noisy), minlength=len(likelihood.middle) + 1)[:-1]

    def fit(prior):
        return float((histogram * np.log(likelihood.table @ prior)).sum())

    priors = [fit_prior(likelihood, histogram, None, steps) for steps in (0, 1, 10, 100, 1000)]
    fits = [fit(prior) for prior in priors]
    assert fits == sorted(fits)
    assert priors[-1].sum() == pytest.approx(1)
    assert priors[-1] @ likelihood.support == pytest.approx(10, abs=0.05)
    assert priors[-1][9:12].sum() > 0.95


def test_exact_integer_noise_leaves_an_empty_map_empty():
    """A continuous likelihood on integer noise inflates totals by half; the exact one does not."""
    law = DiscreteLaplace(1.0)
    likelihood = build_likelihood(law)
    k = np.arange(-30, 31)
    histogram = np.rint(1e6 * law.pmf(k)).astype(int)
    counts = np.bincount(likelihood.bins(k.astype(float)), histogram, minlength=len(likelihood.middle) + 1)
    prior = fit_prior(likelihood, counts[:-1].astype(np.int64), None, 1000)
    assert prior @ likelihood.support < 0.01


def test_no_counts_leave_the_start():
    likelihood = build_likelihood(DiscreteLaplace(1.0))
    nothing = np.zeros(len(likelihood.middle), dtype=np.int64)
    assert fit_prior(likelihood, nothing, None, 10)[0] == 0.9


def test_tilt_reaches_the_mean_and_keeps_zeros():
    support, prior = np.arange(10.0), np.r_[0.9, np.full(9, 0.1 / 9)]
    prior[5] = 0
    for mean in (1e-6, 0.3, 2.0, 8.5):
        tilted = tilt(prior, support, mean)
        assert tilted.sum() == pytest.approx(1)
        assert tilted @ support == pytest.approx(mean, rel=1e-6)
        assert tilted[5] < 1e-12


def test_the_standard_deviation_stays_away_from_zero():
    assert RoundedGaussian(1e-3).std < 1e-100
    assert noise_std(RoundedGaussian(1e-3)) == 2.0**-20
