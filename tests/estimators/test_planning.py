"""Shares and figures from public numbers."""

from fractions import Fraction

import numpy as np
import pytest

from geodp.estimators import budget_shares, expected_error, signal
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian


def test_shares_by_hand():
    shares = budget_shares(8.45, "gaussian", 4, 65536, (256, 64, 16))
    assert shares.cells == Fraction(75, 100)
    assert shares.blocks == (Fraction(50, 1000), Fraction(75, 1000), Fraction(125, 1000))
    assert shares.dropped == ()


def test_precise_cells_get_more():
    assert budget_shares(0.5, "laplace", 1, 10**6, (16,)).cells == Fraction(9, 10)
    assert budget_shares(1.5, "laplace", 1, 10**6, (16,)).cells == Fraction(75, 100)


def test_a_level_as_noisy_as_its_cells_is_dropped_and_the_rest_stretched():
    shares = budget_shares(8.45, "gaussian", 4, 16384, (1024, 64, 16))
    # 16 cells a block: a block's noise, c / share, would be above that of 16 cells, 16 / share of the cells.
    assert shares.dropped == (0,)
    assert shares.cells + sum(shares.blocks) == 1
    assert shares.cells > Fraction(75, 100)


@pytest.mark.parametrize("cap", [1, 4, 64, 10**6])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("counts", [(), (16,), (64, 16), (256, 64, 16)])
def test_shares_always_add_up_to_one(cap, kind, counts):
    for std in (0.1, 1.0, 1e3):
        shares = budget_shares(std, kind, cap, 10_000, counts)
        assert shares.cells + sum(shares.blocks) == 1
        assert len(shares.blocks) == len(counts)
        assert shares.cells >= Fraction(74, 100)
        assert all(share >= 0 for share in shares.blocks)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(0.2),
        DiscreteLaplace(4.0),
        DiscreteLaplace(3e5),
        RoundedGaussian(0.3),
        RoundedGaussian(8.45),
        RoundedGaussian(1e6),
    ],
    ids=str,
)
def test_expected_error_is_the_mean_size_of_the_noise(law):
    if isinstance(law, DiscreteLaplace):
        size = 1 / np.sinh(1 / law.scale)
    elif law.scale < 100:
        k = np.arange(1, int(50 * law.scale) + 5)
        size = 2 * (k * law.pmf(k)).sum()
    else:
        size = law.scale * np.sqrt(2 / np.pi)
    assert expected_error(law, 1000, 500.0) == pytest.approx(2 * size, rel=1e-3)


def test_nothing_to_share_the_error_with():
    assert expected_error(DiscreteLaplace(1.0), 10, 0) == float("inf")


def test_signal_by_hand():
    law = RoundedGaussian(10.0)
    assert signal(np.zeros(5, dtype=np.int64), law) == 0
    assert signal(np.full(100, 10), law) == pytest.approx(0, abs=1e-2)
    assert signal(np.full(100, 20), law) == pytest.approx(0.75, abs=1e-3)
    assert signal(np.full(3, 2**62), law) == pytest.approx(1)
    assert signal(np.zeros(0, dtype=np.int64), law) == 0
