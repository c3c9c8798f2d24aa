"""The privacy of what is drawn, computed: rationals where there are any, 60 digits elsewhere, tails bounded.

Nothing is sampled here. The masses come from the survival function that the sampler inverts; the first test
holds the sampler's own words against it. Never above the claim, not far below it either, and a scale 1 % too small
is seen by every one of these computations.
"""

import math
from fractions import Fraction
from itertools import accumulate, pairwise, product

import numpy as np
import pytest
from attacked_plans import planned
from exact_deltas import at_least, defined, hockey_stick, hockey_stick_of_two, mass, real, renyi
from mpmath import mp, mpf

import geodp
from geodp.mechanisms import DiscreteLaplace, RoundedGaussian, gaussian_sigma, laplace_scale, noise
from geodp.mechanisms.calibration import scale_for, sigma_for
from geodp.mechanisms.hits import gap_inversion
from geodp.mechanisms.laws import law_of
from geodp.queries.selected import selection_threshold

DIGITS = mpf(10) ** -50  # what sixty digits have to spare
SMALLER = 0.99


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mp.workdps(60):
        yield


def too_small(law):
    """The planted fault: a scale of which 1 % is missing."""
    return law_of(law.kind, law.scale * SMALLER)


# The law that is drawn -------------------------------------------------------------------------------------

DRAWN = [DiscreteLaplace(0.3), DiscreteLaplace(4.0), RoundedGaussian(0.6), RoundedGaussian(8.45)]


def words_that_reach(law, most):
    """Return, for k = 1..most, how many of 2^63 words name at least k, by bisection on the sampler itself.

    Further words, where the sampler asks for them, are one and the same.
    """
    low, high = np.zeros(most, np.int64), np.full(most, 2**63 - 1)
    k = np.arange(1, most + 1)
    while (high - low).max() > 1:
        middle = low + (high - low) // 2
        first = iter([middle.view(np.uint64) << np.uint64(1)])
        found = noise.draw(
            law._inversion(),
            most,
            symmetric=False,
            bits=lambda n, first=first: next(first, np.full(n, 2**63, np.uint64)),
        )
        low, high = np.where(found >= k, middle, low), np.where(found >= k, high, middle)
    return high.tolist()


@pytest.mark.parametrize("law", DRAWN, ids=str)
def test_every_integer_has_as_many_words_as_its_probability_is_large(law):
    """Of the sampler itself, not of a formula: each border lies within one word of 2^63 of where it should."""
    most = law.quantile_sf(2.0**-38)
    found = words_that_reach(law, most)
    right = suffix_sums([2 * defined(law, k) for k in range(9 * most)])
    for k, words in enumerate(found, 1):
        assert abs(words - right[k] * mpf(2) ** 63) < 2
        assert abs(right[k] / law._inversion().survival(mp, k) - 1) < mpf(10) ** -15
    # So do the ratios: from counted words alone, what a shift by one changes.
    counts = [a - b for a, b in pairwise(found) if a - b > 2**30]
    if law.kind == "laplace":
        ratios = [float(mp.log(mpf(a) / b)) for a, b in pairwise(counts)]
        np.testing.assert_allclose(ratios, 1 / law.scale, rtol=1e-8)
    too_few = words_that_reach(too_small(law), most)
    assert abs(too_few[0] - right[1] * mpf(2) ** 63) > 2**50


def suffix_sums(masses):
    """Return the sums from each place on, the smallest terms first."""
    return list(accumulate(reversed(masses)))[::-1]


@pytest.mark.parametrize(
    "law", [*DRAWN, DiscreteLaplace(1e6), RoundedGaussian(1e6), RoundedGaussian(2.0**50)], ids=str
)
def test_masses_are_those_of_the_definition(law):
    for k in {0, 1, 2, 7, *(round(x * law.scale) for x in (0.1, 0.5, 1, 3, 9))}:
        assert abs(mass(law, k) / defined(law, k) - 1) < mpf(10) ** -20
        assert mass(law, k) == mass(law, -k)


# One coordinate --------------------------------------------------------------------------------------------

LAPLACE = list(product([1, 2, 7, 64, 10**6], ["0.001", "0.1", "1", "5", "40"]))


@pytest.mark.parametrize(("l1", "eps"), LAPLACE)
def test_discrete_laplace_costs_eps_and_no_less(l1, eps):
    """All ratios of all shifts: exactly d/b, as a fraction, and attained; by masses too, far into both tails."""
    law = DiscreteLaplace(laplace_scale(l1, eps))
    assert Fraction(eps) * Fraction(1 - 1e-15) < Fraction(l1) / Fraction(law.scale) <= Fraction(eps)
    places = sorted({round(x * law.scale) + d for x in (-60, -9, -1, 0, 1, 9, 60) for d in (-1, 0, 1)})
    for k, d in product(places, {1, (l1 + 1) // 2, l1}):
        assert abs(mp.log(mass(law, k) / mass(law, k + d))) <= real(eps) + DIGITS
    assert abs(mp.log(mass(law, 0) / mass(law, l1))) >= real(eps) * (1 - mpf(10) ** -12)
    assert mp.log(mass(too_small(law), 0) / mass(too_small(law), l1)) > real(eps)
    assert hockey_stick(too_small(law), l1, Fraction(eps)) > 0
    assert hockey_stick(law, l1, Fraction(eps) * Fraction(99, 100)) > 0


GAUSSIAN = list(product([1, 2, 5, 20, 2**20], ["0.01", "0.5", "1", "4", "10"], ["1e-3", "1e-6", "1e-12"]))


@pytest.mark.parametrize(("l2", "eps", "delta"), GAUSSIAN)
def test_rounded_gaussian_costs_delta_and_little_less(l2, eps, delta):
    """The whole sum over the integers, for every shift up to the sensitivity; it grows with the shift."""
    law = RoundedGaussian(gaussian_sigma(l2, eps, delta))
    shifts = range(1, l2 + 1) if l2 <= 20 else [1, l2 // 2, l2 - 1, l2]
    spent = [hockey_stick(law, s, Fraction(eps)) for s in shifts]
    assert spent == sorted(spent)
    assert 0 < spent[-1] <= real(delta)
    # Rounding takes away something, less where sigma is large; on a fine lattice nothing.
    for sigma, share in ((3, "0.75"), (30, "0.99"), (2**17, "0.9999999")):
        assert law.sigma < sigma or spent[-1] > real(delta) * mpf(share)
    if law.sigma > 3:
        assert hockey_stick(too_small(law), l2, Fraction(eps)) > real(delta)


@pytest.mark.parametrize("order", ["1.001", "1.5", "2", "5", "40"])
@pytest.mark.parametrize(("l2", "sigma"), [(1, 0.4), (1, 4.2), (2, 8.45), (5, 2.0)])
def test_rounded_gaussian_is_rho_zcdp(l2, sigma, order):
    """What the ledger's second book adds up: Renyi divergences of all orders below order·rho."""
    law, rho = RoundedGaussian(sigma), Fraction(l2**2, 2) / Fraction(sigma) ** 2
    reach = math.ceil(16 * sigma + float(order) * l2) + 20
    spent = renyi(law, l2, order, reach)
    assert spent <= real(order) * real(rho)
    if sigma > 3:
        assert spent > real(order) * real(rho) * mpf("0.98")
        assert renyi(too_small(law), l2, order, reach) > real(order) * real(rho)


@pytest.mark.parametrize("order", ["1.001", "2", "40"])
@pytest.mark.parametrize(("l1", "eps"), [(1, "0.1"), (4, "1"), (3, "6")])
def test_discrete_laplace_is_half_eps_squared_zcdp(l1, eps, order):
    law = DiscreteLaplace(laplace_scale(l1, eps))
    spent = renyi(law, l1, order, math.ceil(60 * law.scale) + l1)
    assert 0 < spent <= real(order) * real(eps) ** 2 / 2
    # Near order 1, for small eps, nothing is given away.
    if (eps, order) == ("0.1", "1.001"):
        assert spent > real(order) * real(eps) ** 2 / 2 * mpf("0.97")


# Several coordinates, lattices and shares: what real plans draw -------------------------------------------


def pairs_of(plan):
    """The two measurements of a plan whose cap is 1, and how far one subject moves both at once."""
    first, second = plan.measurements
    return first.law, math.isqrt(int(first.l2_squared)), second.law, math.isqrt(int(second.l2_squared))


def at(name, where="box", **more):
    return planned(name, where, cap=1, mechanism="gaussian", **more)


def joint(weights):
    views = {"a": planned("count", "zones that touch", cap=1), "b": planned("count", "box", cap=1)}
    return geodp.plan_together(views, 1, "1e-6", weights, mechanism="gaussian")


# Two measurements of one release, each moved by one subject as far as it can be.
TOGETHER = {
    "views": lambda: joint([1, 1]),
    "views by weight": lambda: joint([1, 3]),
    "views by odd weights": lambda: joint(["0.07", 1]),
    "views of several rows": lambda: geodp.plan_together(
        {"a": planned("count", "box", cap=1, rows_per_cell=3), "b": planned("count", "box", cap=1)},
        1,
        "1e-6",
        mechanism="gaussian",
    ),
    "sum on its lattice with a count": lambda: at("mean"),
    "several rows of both": lambda: at("mean", rows_per_cell=4),
    "count and total": lambda: at("rescaled", "square"),
    "cells and blocks": lambda: at("levels", "h3 at a pole"),
    "a whole bound in two views": lambda: geodp.plan_together(
        {"a": planned("sum", "box", cap=1), "b": planned("count", "box", cap=1)},
        1,
        "1e-6",
        mechanism="gaussian",
    ),
}


@pytest.mark.parametrize("what", TOGETHER)
def test_two_measurements_together_cost_delta_and_little_less(what):
    plan = TOGETHER[what]()
    laws = pairs_of(plan)
    eps, delta = plan.charge.eps, plan.charge.delta
    reach = math.ceil(10 * min(laws[0].scale, laws[2].scale))
    one, other = (laws[:2], laws[2:]) if laws[0].scale <= laws[2].scale else (laws[2:], laws[:2])
    spent, missing = hockey_stick_of_two(*one, *other, eps, reach)
    assert missing < real(delta) * mpf(10) ** -15
    assert real(delta) * mpf("0.9") < spent + missing <= real(delta)
    worse, _ = hockey_stick_of_two(too_small(one[0]), one[1], too_small(other[0]), other[1], eps, reach)
    assert worse > real(delta)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("eps", "delta"), [("0.5", "1e-4"), ("1", "1e-6"), ("3", "1e-9")])
def test_one_subject_in_two_cells_costs_delta_whichever_way_it_moves(rows, eps, delta):
    """All shifts of two counts that the cap and the rows allow: the longest one costs most."""
    law = RoundedGaussian(sigma_for(Fraction(2 * rows**2), Fraction(eps), Fraction(delta)))
    reach = math.ceil(15 * law.sigma)
    spent = {
        (s, t): hockey_stick_of_two(law, s, law, t, Fraction(eps), reach)
        for s, t in product(range(1, rows + 1), repeat=2)
        if s <= t
    }
    assert max(spent, key=spent.get) == (rows, rows)
    assert real(delta) * mpf("0.75") < sum(spent[rows, rows]) <= real(delta)
    small = too_small(law)
    assert hockey_stick_of_two(small, rows, small, rows, Fraction(eps), reach)[0] > real(delta)


@pytest.mark.parametrize("name", ["count", "sum", "mean", "rescaled", "weighted, rescaled", "centroid"])
@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
def test_all_measurements_together_cost_eps_under_laplace_noise(name, neighboring):
    """A ratio of products of masses is at most the sum of L1/b: a fraction, and within 1e-12 of eps."""
    plan = planned(name, cap=3, mechanism="laplace", neighboring=neighboring)
    spent = sum(m.l1 / Fraction(m.scale) for m in plan.measurements)
    assert 1 - Fraction(1, 10**12) < spent <= plan.charge.eps == 1
    assert sum(m.l1 / Fraction(m.scale * SMALLER) for m in plan.measurements) > 1


# The clamp -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "l1"), [(2.0**50, 2**50), (2.0**50, 40 * 2**50), (2.0**40, 2**44)])
def test_clamping_noise_at_2_to_the_62_costs_less_than_1e_1700(scale, l1):
    """Clamped noise is no function of exact noise added to a count: near ±2^62 it reaches what others do not.

    Of q + X with X cut to ±M, the values above M + q - l1 and the lowest ones tell neighbours apart. All of that has
    at most the probability 2 P(X >= M - l1), which is what (eps, 0) is missed by at most.
    """
    law, most = DiscreteLaplace(scale), noise.MAX_NOISE
    beyond = 2 * at_least(law, most - l1)
    eps = real(Fraction(l1) / Fraction(scale))
    # The atoms themselves, one by one: the top one of the higher neighbour, and what the lower one cannot reach.
    top = at_least(law, most) - mp.exp(eps) * mass(law, most - l1)
    unreached = at_least(law, most - l1 + 1)
    assert max(mpf(0), top) + unreached <= beyond
    assert 0 < beyond < mpf(10) ** -1700
    assert noise.MAX_SCALE == 2.0**50


def test_clamping_gaussian_noise_costs_nothing_that_could_be_written_down():
    assert 2 * at_least(RoundedGaussian(2.0**50), noise.MAX_NOISE - 40 * 2**50) < mpf(10) ** -3_000_000


# Cells that are chosen -------------------------------------------------------------------------------------


def absent(law, count, t):
    """P(a key with this count is not released)."""
    return 1 - at_least(law, t - count)


def cut(law, count, t, most):
    """P(not released), P(noisy = t), ..., P(noisy > most)."""
    values = [mass(law, v - count) for v in range(t, most + 1)]
    return [absent(law, count, t), *values, at_least(law, most + 1 - count)]


def selected(law, t, alone, shared, m, others, eps):
    """Return the hockey-stick sums, both ways, of a subject with m rows in some cells alone, in one cell with others.

    Whatever shows a cell that it is alone in has probability 0 without it.
    """
    odds, hidden = mp.exp(real(eps)), absent(law, m, t) ** alone
    most = t + m + others + math.ceil((150 if law.kind == "laplace" else 18) * law.scale)
    mine, theirs = ([mpf(1)], [mpf(1)])
    if shared:
        mine, theirs = cut(law, others + m, t, most), cut(law, others, t, most)
    there = sum(max(mpf(0), hidden * p - odds * q) for p, q in zip(mine, theirs, strict=True))
    back = sum(max(mpf(0), q - odds * hidden * p) for p, q in zip(mine, theirs, strict=True))
    return 1 - hidden + there, back


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("cap", "rows"), [(1, 1), (2, 1), (2, 3), (5, 2)])
@pytest.mark.parametrize("eps", ["0.5", "1"])
def test_a_selection_costs_no_more_than_declared(mechanism, cap, rows, eps):
    """Alone in all its cells, or in all but one that others are in too, near the threshold, below and above it."""
    delta = Fraction(1, 10**6)
    more = {"bounds": (0, 0, 4, 4), "grid": "square:1", "rows_per_cell": rows}
    plan = geodp.plan(eps, delta, subject="rider", cap=cap, cells="select", mechanism=mechanism, **more)
    law, t = plan.measurements[0].law, plan.threshold
    select = plan.charge.delta_select
    alone = selected(law, t, cap, 0, rows, 0, Fraction(eps))
    spent = 1 - (1 - at_least(law, t - rows)) ** cap
    assert abs(alone[0] - spent) < DIGITS
    assert spent <= real(select) < 1 - (1 - at_least(law, t - 1 - rows)) ** cap
    for others in (1, t // 2, t - rows, t, 3 * t):
        assert max(selected(law, t, cap - 1, 1, rows, others, Fraction(eps))) <= real(delta)
    # Planted: noise 1 % too small under the same threshold, and the threshold of one cell.
    small = too_small(law)
    if mechanism == "laplace":
        assert max(selected(small, t, cap - 1, 1, rows, 3 * t, Fraction(eps))) > (
            0 if cap > 1 else real(delta)
        )
    if cap > 2:
        assert selected(law, selection_threshold(law, select, 1, rows), cap, 0, rows, 0, Fraction(eps))[
            0
        ] > real(select)


@pytest.mark.parametrize("threshold", [1, 4, 30])
@pytest.mark.parametrize(("l1", "eps"), [(1, "1"), (4, "0.5")])
def test_a_map_cut_at_a_threshold_costs_eps_and_no_less(l1, eps, threshold):
    """Of every count: absence and every value, in both directions; above the threshold eps is attained."""
    law = DiscreteLaplace(laplace_scale(l1, eps))
    most = threshold + math.ceil(70 * law.scale)
    worst = mpf(0)
    for count in (0, 1, threshold, threshold + 5):
        for p, q in zip(cut(law, count + l1, threshold, most), cut(law, count, threshold, most), strict=True):
            worst = max(worst, abs(mp.log(p / q)))
    assert real(eps) * (1 - mpf(10) ** -12) <= worst <= real(eps) + DIGITS


@pytest.mark.parametrize("threshold", [1, 4, 30])
@pytest.mark.parametrize("law", [DiscreteLaplace(4.0), RoundedGaussian(8.45), RoundedGaussian(2.0)], ids=str)
def test_what_sparse_maps_draw_of_empty_cells_is_the_listed_map_cut(law, threshold):
    """By the two functions that are inverted: a hit's probability times the law of its value is the mass itself."""
    mp.dps = 120
    gap, value = gap_inversion(law, threshold), law._tail_inversion(threshold)
    p = 1 - gap.survival(mp, 1)
    assert abs(p / at_least(law, threshold) - 1) < mpf(10) ** -30
    assert abs(gap.survival(mp, 1000) / (1 - at_least(law, threshold)) ** 1000 - 1) < mpf(10) ** -30
    for k in range(1, 40):
        drawn = p * (value.survival(mp, k) - value.survival(mp, k + 1))
        assert abs(drawn / mass(law, threshold + k) - 1) < mpf(10) ** -12


# Typed numbers ---------------------------------------------------------------------------------------------


def test_a_scale_divided_in_doubles_would_cost_more_than_eps():
    """Planted: fl(L1 / eps) lies below L1 / eps for about half of all inputs."""
    typed = [(l1, Fraction(k, 100)) for l1 in (1, 3, 7) for k in range(1, 200)]
    above = [Fraction(l1) / Fraction(l1 / float(eps)) > eps for l1, eps in typed]
    assert 0.3 < sum(above) / len(above) < 0.7
    assert all(Fraction(l1) / Fraction(scale_for(Fraction(l1), eps)) <= eps for l1, eps in typed)
