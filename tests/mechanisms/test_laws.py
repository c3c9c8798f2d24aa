"""Laws against 60-digit sums written here; what privacy they give is computed in ``tests/attacks``."""

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from mpmath import mp, mpf

from geodp.mechanisms import DiscreteLaplace, RoundedGaussian
from geodp.mechanisms.laws import law_of

SCALES = [1e-3, 0.05, 0.3, 1.0, 4.5, 31.9, 32.0, 1000.0, 1e6, 2.0**50]
LAWS = [law for s in SCALES for law in (DiscreteLaplace(s), RoundedGaussian(s))]
SMALL = [law for law in LAWS if law.scale <= 40]


def tail(law, k):
    """P(X >= k) in the current precision."""
    if k < 1:
        return 1 - tail(law, 1 - k)
    if law.kind == "laplace":
        q = mp.exp(-1 / mpf(law.scale))
        return q**k / (1 + q)
    return mp.erfc((k - mpf(1) / 2) / mpf(law.sigma) / mp.sqrt(2)) / 2


def mass(law, k):
    k = abs(k)
    if law.kind == "laplace":
        q = mp.exp(-1 / mpf(law.scale))
        return (1 - q) / (1 + q) * q**k
    return tail(law, k) - tail(law, k + 1)


def points(law):
    far = [
        int(sign * x * law.scale) + d
        for x in (0, 0.2, 1, 3, 10, 25, 37)
        for sign in (-1, 1)
        for d in (-1, 0, 1)
    ]
    return sorted(set(far))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_probabilities_keep_their_relative_precision_in_both_tails(law):
    at = points(law)
    with mp.workdps(60):
        for k, log_pmf, log_sf, cdf in zip(at, law.log_pmf(at), law.log_sf(at), law.cdf(at), strict=True):
            assert abs(mp.log(mass(law, k)) - mpf(log_pmf)) <= 1e-12 * max(1, abs(log_pmf))
            assert abs(mp.log(tail(law, k + 1)) - mpf(log_sf)) <= 1e-12 * max(1, abs(log_sf))
            if tail(law, -k) > 1e-300:
                assert abs(cdf / tail(law, -k) - 1) < 1e-12
        assert law.p_zero == pytest.approx(float(mass(law, 0)), rel=1e-14)
    np.testing.assert_allclose(law.pmf(at), np.exp(law.log_pmf(at)))
    np.testing.assert_allclose(law.sf(at), np.exp(law.log_sf(at)))


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_masses_add_up_to_one_and_give_the_std(law):
    k = np.arange(-4000, 4001)
    assert math.fsum(law.pmf(k)) == pytest.approx(1, abs=1e-13)
    assert math.sqrt(math.fsum(k.astype(float) ** 2 * law.pmf(k))) == pytest.approx(
        law.std, rel=1e-12, abs=1e-200
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, "0.9999999999999999999"])
def test_halfwidth_is_the_smallest(law, level):
    h = law.halfwidth(level)
    with mp.workdps(60):
        outside = 1 - mpf(str(level))
        assert 2 * tail(law, h + 1) <= outside
        assert h == 0 or 2 * tail(law, h) > outside


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("p", ["1e-300", 1e-9, 0.05, 0.4999, 0.5, 0.7, 0.999999])
@pytest.mark.parametrize("n", [1, 16, 10**6])
def test_quantile_is_the_smallest(law, p, n):
    t = law.quantile_sf(p, n)
    with mp.workdps(340):
        most = 1 - (1 - mpf(str(p))) ** (mpf(1) / n)
        assert tail(law, t) <= most < tail(law, t - 1)


def test_simultaneous_halfwidth():
    law = DiscreteLaplace(4.0)
    h = law.halfwidth(0.95, n=5495)
    assert (1 - 2 * law.sf(h)) ** 5495 >= 0.95 > (1 - 2 * law.sf(h - 1)) ** 5495


@pytest.mark.parametrize("law", [*SMALL, DiscreteLaplace(1000.0), RoundedGaussian(1000.0)], ids=str)
@pytest.mark.parametrize("n", [1, 100, 10**12])
def test_expected_max(law, n):
    t = np.arange(0, max(100, int(120 * law.scale)))
    with np.errstate(divide="ignore"):
        exact = math.fsum(-np.expm1(n * np.log1p(-np.minimum(2 * law.sf(t), 1))))
    assert law.expected_max(n) == pytest.approx(exact, rel=1e-6, abs=1e-12)


def test_expected_max_scales_up():
    for make in (DiscreteLaplace, RoundedGaussian):
        assert make(2.0**40).expected_max(5_000_000) == pytest.approx(
            make(2.0**12).expected_max(5_000_000) * 2.0**28, rel=1e-4
        )


def test_laws_are_frozen_values():
    assert DiscreteLaplace(2.0) == DiscreteLaplace(2.0) != DiscreteLaplace(3.0)
    assert len({RoundedGaussian(2.0), RoundedGaussian(2.0), DiscreteLaplace(2.0)}) == 2
    with pytest.raises(FrozenInstanceError):
        DiscreteLaplace(2.0).scale = 3.0
    law = law_of("gaussian", 2)
    assert law == RoundedGaussian(2.0)
    assert type(law.scale) is float
    assert pickle.loads(pickle.dumps(law)) == law
    with pytest.raises(ValueError, match="laplace"):
        law_of("cauchy", 1.0)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, True, None, 2.0**50 * 1.001, "1e40"])
@pytest.mark.parametrize("make", [DiscreteLaplace, RoundedGaussian])
def test_a_law_refuses_scales_out_of_range(make, bad):
    with pytest.raises((TypeError, ValueError)):
        make(bad)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-9])
def test_tiny_scales_are_all_zeros(scale):
    for law in (DiscreteLaplace(scale), RoundedGaussian(scale)):
        assert law.p_zero == 1
        assert law.std == law.halfwidth(0.999999) == law.expected_max(10**6) == 0
        assert law.pmf([0, 1, -1]).tolist() == [1, 0, 0]
        assert law.sf([-1, 0, 5]).tolist() == [1, 0, 0]


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, math.nan, True])
def test_levels_are_probabilities(bad):
    with pytest.raises((TypeError, ValueError)):
        DiscreteLaplace(1.0).halfwidth(bad)
    with pytest.raises((TypeError, ValueError)):
        DiscreteLaplace(1.0).quantile_sf(bad)
