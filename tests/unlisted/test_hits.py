"""Gaps between hits: their law at its very borders, and the joint law of what comes out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

from geodp.mechanisms import hits as module
from geodp.mechanisms.hits import gap_inversion, hits
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian
from geodp.mechanisms.noise import draw
from geodp.mechanisms.precise import fraction, precision

LAWS = [DiscreteLaplace(4.0), DiscreteLaplace(0.3), RoundedGaussian(8.45), RoundedGaussian(0.4)]


def miss(mp, law, threshold):
    """P(X < threshold) by the definition of the law, not by the code under test."""
    if isinstance(law, DiscreteLaplace):
        q = mp.exp(-1 / mp.mpf(law.scale))
        return 1 - q**threshold / (1 + q)
    return 1 - mp.erfc((threshold - mp.mpf(0.5)) / (mp.mpf(law.sigma) * mp.sqrt(2))) / 2


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("threshold", [1, 2, 5, 12])
def test_the_law_of_a_gap_is_exact_at_its_borders(law, threshold):
    """Words on either side of (1 - p)^k fall on either side of k: the inverse is exact, not nearly so."""
    if gap_inversion(law, threshold) is None:
        return
    with precision(400) as mp:
        q = miss(mp, law, threshold)
        for k in [1, 2, 3, 7, 50, 1000, min(2**62, int(2 / (1 - q))), min(2**62, int(20 / (1 - q)))]:
            border = int(fraction(q**k) * 2**63)
            for word, reaches in ((border - 1, True), (border + 1, False)):
                if not 2 <= word < 2**63:
                    continue
                words = iter([np.array([word << 1], np.uint64), *[np.full(1, 2**63, np.uint64)] * 9])
                (gap,) = draw(
                    gap_inversion(law, threshold), 1, symmetric=False, bits=lambda n, w=words: next(w)
                )
                assert (gap >= k) is np.bool_(reaches)


def test_a_rate_that_forgets_the_logarithm_is_seen_at_the_borders():
    """Planted: exp(-pk) instead of (1 - p)^k."""
    law, threshold, k = DiscreteLaplace(4.0), 5, 50
    with precision(80) as mp:
        q = miss(mp, law, threshold)
        wrong, right = mp.exp((q - 1) * k), q**k
        assert abs(int(fraction(wrong) * 2**63) - int(fraction(right) * 2**63)) > 2**40


def patterns(law, threshold, n, times, find=hits):
    """Count which subsets of n places are hit."""
    found = np.zeros(2**n, np.int64)
    for _ in range(times):
        found[int((1 << find(law, threshold, n)).sum())] += 1
    return found


def surprise(found, p, n):
    """Return the p-value of the subsets against independent hits."""
    sizes = np.array([bin(s).count("1") for s in range(2**n)])
    expected = found.sum() * p**sizes * (1 - p) ** (n - sizes)
    return chi2.sf(((found - expected) ** 2 / expected).sum(), 2**n - 1)


@pytest.mark.sampled(rate=3e-8)
@pytest.mark.parametrize("law", [DiscreteLaplace(2.0), RoundedGaussian(1.5)], ids=repr)
def test_subsets_of_places_have_the_law_of_separate_draws(law):
    # False alarms: 1e-8 each (chi-square over 16 subsets, at least 40 expected in each).
    p = float(law.sf(0))
    assert surprise(patterns(law, 1, 4, 12_000), p, 4) > 1e-8


@pytest.mark.sampled(rate=1e-9)
def test_planted_faults_in_the_gaps_are_seen():
    law = DiscreteLaplace(2.0)
    p = float(law.sf(0))

    def one_place_late(law, threshold, n, bits=None):
        at = np.cumsum(draw(gap_inversion(law, threshold), n + 1, symmetric=False) + 1)
        return at[at < n]

    assert surprise(patterns(law, 1, 4, 4000, one_place_late), p, 4) < 1e-8
    one_off = lambda law, threshold, n: hits(law, threshold + 1, n)  # noqa: E731
    assert surprise(patterns(law, 1, 4, 4000, one_off), p, 4) < 1e-8


@pytest.mark.sampled(rate=2e-9)
@pytest.mark.parametrize(("n", "threshold"), [(10**6, 20), (10**12, 75), (5 * 10**14, 100), (2**56, 120)])
def test_the_number_of_hits_is_binomial_in_chunks_of_any_size(monkeypatch, n, threshold):
    # False alarms: 1e-9 each side.
    law = DiscreteLaplace(4.0)
    monkeypatch.setattr(module, "_CHUNK", 512)
    found = hits(law, threshold, n)
    assert (np.diff(found) > 0).all()
    assert found.min(initial=0) >= 0
    assert found.max(initial=0) < n
    p = float(law.sf(threshold - 1))
    assert binom.sf(len(found) - 1, n, p) > 1e-9
    assert binom.cdf(len(found), n, p) > 1e-9


@pytest.mark.sampled(rate=3e-8)
def test_hits_lie_evenly_over_all_places():
    # False alarms: 1e-8 (chi-square over 20 twentieths).
    n = 10**12
    found = hits(DiscreteLaplace(4.0), 75, n)
    counts = np.bincount(found // (n // 20), minlength=20)
    expected = len(found) / 20
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 19) > 1e-8


def test_what_cannot_happen_is_not_looked_for():
    assert len(hits(DiscreteLaplace(1.0), 10**6, 2**56)) == 0
    assert gap_inversion(RoundedGaussian(1.0), 40) is None


def test_the_same_words_give_the_same_hits():
    def words():
        generator = np.random.Generator(np.random.PCG64(7))
        return lambda n: generator.integers(0, 2**64, n, dtype=np.uint64)

    a, b = (hits(RoundedGaussian(3.0), 9, 10**6, words()) for _ in range(2))
    assert a.tolist() == b.tolist()


@pytest.mark.sampled(rate=1e-20)
def test_every_call_has_its_own_words():
    a, b = (hits(DiscreteLaplace(4.0), 40, 10**7).tolist() for _ in range(2))
    assert a != b


def test_thresholds_meet_the_expected_number_exactly():
    """The smallest T with n P(X >= T) <= phantoms, at 50 digits."""
    for law, phantoms, n in itertools.product(
        LAWS, [Fraction(1), Fraction(1, 10), Fraction(50)], [10**4, 10**12]
    ):
        t = law.quantile_sf(phantoms / n)
        with precision(60) as mp:
            assert n * (1 - miss(mp, law, t)) <= float(phantoms)
            assert n * (1 - miss(mp, law, t - 1)) > float(phantoms)
