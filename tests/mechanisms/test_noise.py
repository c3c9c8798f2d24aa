"""Samplers: bit by bit against 80 digits, then by what comes out."""

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from geodp.mechanisms import DiscreteLaplace, RoundedGaussian, discrete_laplace, noise, rounded_gaussian

SCALES = [1e-3, 0.05, 0.3, 1.0, 4.5, 100.0, 2.0**20, 2.0**50]
LAWS = [law for s in SCALES for law in (DiscreteLaplace(s), RoundedGaussian(s))]
ONES = 2**64 - 1


def feed(*words):
    """Bits that hand out these words first, then real ones; ``taken`` counts all."""
    queue = list(words)

    def bits(count):
        bits.taken += count
        fresh = noise.system_bits(count).copy()
        for i in range(min(count, len(queue))):
            fresh[i] = queue.pop(0)
        return fresh

    bits.taken = 0
    return bits


def survival(law, k):
    """P(|X| >= k), k >= 1, written independently of the sampler."""
    if law.kind == "laplace":
        q = mp.exp(-1 / mpf(law.scale))
        return 2 * q**k / (1 + q)
    return mp.erfc((k - mpf(1) / 2) / mpf(law.scale) / mp.sqrt(2))


def magnitude(law, uniform):
    """Largest k with uniform < S(k), by bisection on integers."""
    low, high = 0, 1
    while uniform < survival(law, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if uniform < survival(law, middle) else (low, middle)
    return low


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_words_name_the_integers_that_80_digits_give(law):
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 60, dtype=np.uint64)
    words[30:] >>= rng.integers(0, 45, 30).astype(np.uint64)  # small ones: the tails
    drawn = law.sample(60, feed(*words.tolist()))
    with mp.workdps(80):
        for word, x in zip(words.tolist(), drawn.tolist(), strict=True):
            # The word leaves an interval of width 2^-63; the draw must lie between what its ends name.
            most = magnitude(law, mpf(max(word >> 1, 2**-20)) / 2**63)
            assert magnitude(law, mpf((word >> 1) + 1) / 2**63) <= abs(x) <= most or word >> 1 == 0
            assert x == 0 or (x < 0) == bool(word & 1)


def border(law, k, words):
    """The first 63 + 64 * words bits of S(k)."""
    with mp.workdps(200):
        bits = int(mp.floor(survival(law, k) * mpf(2) ** (63 + 64 * words)))
    return [bits >> (64 * words), *((bits >> (64 * (words - 1 - i))) & ONES for i in range(words))]


BORDERS = [(DiscreteLaplace(4.5), 3), (DiscreteLaplace(0.3), 1), (DiscreteLaplace(2.0**40), 2**40 + 12345)]
BORDERS += [(RoundedGaussian(4.5), 3), (RoundedGaussian(0.3), 1), (RoundedGaussian(2.0**40), 2**40 + 12345)]


@pytest.mark.parametrize(("law", "k"), BORDERS, ids=str)
def test_further_bits_decide_at_a_border(law, k):
    first, second, third = border(law, k, 2)
    # The first word is the same every time: only the bits behind it tell k from k - 1.
    for more, expected, taken in (
        ([second - 1], k, 2),
        ([second + 1], k - 1, 2),
        ([second, third - 1], k, 3),
        ([second, third + 1], k - 1, 3),
    ):
        for sign in (0, 1):
            bits = feed(first << 1 | sign, *more)
            assert law.sample(1, bits).tolist() == [-expected if sign else expected]
            assert bits.taken == taken


def test_a_sampler_without_further_bits_would_be_caught(monkeypatch):
    law, k = BORDERS[3]
    first, second, _ = border(law, k, 2)
    monkeypatch.setattr(noise, "_decide", lambda law, word, bits: k)  # planted: never asks
    assert law.sample(1, feed(first << 1, second + 1)).tolist() != [k - 1]


@pytest.mark.sampled(rate=1e-60)
def test_ordinary_words_need_no_more_bits():
    bits = feed()
    RoundedGaussian(4.5).sample(100_000, bits)
    # Below 2^44 of 2^63, or within the guard: 3e-6 of all draws; 40 of 100,000 has odds below 1e-60.
    assert 100_000 <= bits.taken < 100_040


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_all_zeros_reach_into_the_tail_and_all_ones_stay_at_zero(law):
    deep = abs(int(law.sample(1, feed(0, 0))[0]))
    with mp.workdps(80):
        # at least the 2^-127 quantile, unless (odds 2^-30) the next word starts with 30 zeros too
        assert deep >= magnitude(law, mpf(2) ** -126)
        assert deep <= magnitude(law, mpf(2) ** -160)
    near = law.sample(1, feed(ONES, ONES, ONES)).tolist()
    with mp.workdps(80):
        assert near == [-magnitude(law, 1 - mpf(2) ** -191)]


def test_noise_is_clamped_where_no_one_will_ever_be():
    law = DiscreteLaplace(2.0**50)
    assert law.sample(1, feed(*[0] * 100)).tolist() == [2**62]
    assert law.sample(1, feed(1, *[0] * 100)).tolist() == [-(2**62)]


def binomial_alarm(law, drawn, alpha=1e-8):
    """Whether some integer, or a tail, comes up too often or too rarely: exact binomial per bin.

    ``alpha`` is the false-alarm rate of the whole call (Bonferroni).
    """
    reach = law.quantile_sf(50 / len(drawn))
    k = np.arange(-reach, reach + 1)
    counts = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    p = np.concatenate([law.cdf([-reach - 1]), law.pmf(k), law.sf([reach])])
    fewer, more = stats.binom.cdf(counts, len(drawn), p), stats.binom.sf(counts - 1, len(drawn), p)
    return bool((np.minimum(fewer, more) * 2 * len(p) < alpha).any())


SAMPLED = [law for law in LAWS if law.scale <= 100]


@pytest.mark.sampled(rate=8e-9)
@pytest.mark.parametrize("law", SAMPLED, ids=str)
def test_frequencies(law):
    # False alarms: 12 laws at 8e-9 each, below 1e-7 in all.
    assert not binomial_alarm(law, law.sample(400_000), alpha=8e-9)


@pytest.mark.sampled(rate=1e-12)
def test_frequencies_catch_planted_bugs():
    law = DiscreteLaplace(4.5)
    drawn = law.sample(400_000)
    assert binomial_alarm(DiscreteLaplace(4.5 * 1.1), drawn)  # a scale 10 % off
    signed_zero = np.where((drawn == 0) & (np.arange(len(drawn)) % 2 == 0), 1, drawn)
    assert binomial_alarm(law, signed_zero)  # zero counted once per sign
    assert binomial_alarm(law, np.abs(drawn))  # a lost sign
    gaussian = RoundedGaussian(4.5)
    truncated = np.trunc(np.random.default_rng(3).normal(0, 4.5, 400_000)).astype(int)
    assert binomial_alarm(gaussian, truncated)  # rounded toward zero


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.parametrize("threshold", [-3, 0, 1, 7, 20])
@pytest.mark.parametrize("law", [DiscreteLaplace(4.5), RoundedGaussian(4.5), DiscreteLaplace(0.3)], ids=str)
def test_tail_draws_follow_the_conditional_law(law, threshold):
    drawn = law.sample_tail(20_000, threshold)
    assert drawn.min() >= threshold
    k = np.arange(threshold, threshold + 30)
    p = np.minimum(1, np.exp(law.log_pmf(k) - law.log_sf(threshold - 1)))
    counts = (drawn[:, None] == k).sum(axis=0)
    fewer, more = stats.binom.cdf(counts, 20_000, p), stats.binom.sf(counts - 1, 20_000, p)
    assert np.minimum(fewer, more).min() > 1e-11  # 15 cases of 60 tails: false alarms below 1e-8
    # planted: the unconditional law is caught
    if threshold > 0:
        off = law.pmf(k)
        assert (
            min(stats.binom.sf(counts - 1, 20_000, off).min(), stats.binom.cdf(counts, 20_000, off).min())
            < 1e-11
        )


@pytest.mark.parametrize(
    ("law", "t", "k"),
    [(DiscreteLaplace(4.5), 20, 3), (RoundedGaussian(4.5), 20, 2), (RoundedGaussian(1.0), 60, 1)],
    ids=str,
)
def test_further_bits_decide_in_the_tail(law, t, k):
    with mp.workdps(1000):
        share = survival(law, t + k) / survival(law, t)
        bits = int(mp.floor(share * mpf(2) ** 127))
    first, second = bits >> 64, bits & ONES
    assert law.sample_tail(1, t, feed(first << 1, second - 1)).tolist() == [t + k]
    assert law.sample_tail(1, t, feed(first << 1, second + 1)).tolist() == [t + k - 1]


def test_the_guard_is_wide():
    # benchmarks/noise.py --guard measures 1e6 points and asks for 1000 times; a few points here.
    rng = np.random.default_rng(0)
    words = np.concatenate([rng.integers(1, 2**63, 500), np.exp2(rng.uniform(0, 63, 500)).astype(np.int64)])
    for scale in (0.3, 4.5, 2.0**50):
        law = noise.gaussian_inversion(scale)
        with mp.workdps(60):
            for word, at in zip(words.tolist(), law.position((words + 0.5) * 2.0**-63).tolist(), strict=True):
                x = (mpf(at) - mpf(1) / 2) / scale
                error = abs(mp.erfc(x / mp.sqrt(2)) - mpf(2 * word + 1) / mpf(2) ** 64) / 2 / mp.npdf(x)
                assert error * scale * 1000 < noise.GUARD * (at + scale)


@pytest.mark.parametrize("size", [0, 1, noise._CHUNK - 1, noise._CHUNK, 2 * noise._CHUNK + 3])
def test_every_draw_has_bytes_of_its_own(size, monkeypatch):
    asked = []
    monkeypatch.setattr(noise.os, "urandom", lambda n: asked.append(n) or random_bytes(n))
    random_bytes = os.getrandom if hasattr(os, "getrandom") else os.urandom
    assert len(discrete_laplace(4.5, size)) == size
    assert sum(asked) >= 8 * size
    assert sum(asked) <= 8 * size + 8 * 40


def test_privcount_no_global_generator_is_touched():
    python, legacy = random.getstate(), np.random.get_state()
    rounded_gaussian(2.0, 1000)
    discrete_laplace(2.0, 1000)
    assert random.getstate() == python
    after = np.random.get_state()
    assert after[0] == legacy[0]
    np.testing.assert_array_equal(after[1], legacy[1])
    assert after[2:] == legacy[2:]


@pytest.mark.sampled(rate=1e-60)
def test_diffprivlib_31_seeding_changes_nothing():
    draws = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        draws.append(rounded_gaussian(1e6, 20).tolist())
    assert draws[0] != draws[1]


@pytest.mark.sampled(rate=1e-40)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_children_of_a_fork_draw_differently():
    script = (
        "import os\n"
        "from geodp.mechanisms import noise\n"
        "noise.discrete_laplace(1e9, 5)\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        os.write(1, repr(noise.discrete_laplace(1e9, 5).tolist()).encode() + b'\\n')\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    lines = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout.split(
        b"\n"
    )
    assert len(lines) == 3
    assert lines[0] != lines[1]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, None, "x", 2.0**50 * 1.01, 1e300, [1.0]])
@pytest.mark.parametrize("draw", [rounded_gaussian, discrete_laplace])
def test_bad_scales_are_refused_before_drawing(draw, bad, monkeypatch):
    monkeypatch.setattr(noise.os, "urandom", lambda n: pytest.fail("drew"))
    with pytest.raises((TypeError, ValueError)):
        draw(bad, 5)


@pytest.mark.parametrize("size", [-1, 2.5, True, None, "3"])
def test_bad_sizes(size):
    with pytest.raises((TypeError, ValueError)):
        rounded_gaussian(1.0, size)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**62), 2**62)), min_size=1))
@example([(2**63 - 1, 1), (2**63 - 5, 2**62), (-(2**63), -1), (-(2**63), 0), (5 - 2**63, -(2**62)), (7, -9)])
def test_velox_13785_sums_stop_instead_of_wrapping(pairs):
    values, drawn = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    top = 2**63 - 1
    expected = [max(-top, min(top, int(v) + int(n))) for v, n in zip(values, drawn, strict=True)]
    assert noise.add_saturating(values, drawn).tolist() == expected
