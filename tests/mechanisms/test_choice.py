"""Choices: figures, crossovers and reasons."""

import json
import math
from fractions import Fraction

import pytest

from geodp.mechanisms import DiscreteLaplace, RoundedGaussian, choose_mechanism, gaussian_sigma
from geodp.mechanisms.choice import crossover_cap, decide

MILLIONTH = Fraction(1, 10**6)


def by_cap(cap, eps=1, delta=1e-6, **options):
    return choose_mechanism(cap, math.sqrt(cap), eps, delta, **options)


@pytest.mark.parametrize(("eps", "cap"), [(0.1, 7), (0.5, 9), (1, 9), (2, 10), (4, 12), (8, 15)])
def test_crossover_is_computed_with_the_laws_that_are_drawn(eps, cap):
    assert by_cap(1, eps).crossover_cap == cap
    assert by_cap(cap - 1, eps).mechanism == "laplace"
    assert by_cap(cap, eps).mechanism == "gaussian"
    assert by_cap(1, eps).textbook_crossover == 15  # ln(1.25e6) = 14.04


def test_crossover_counts_rows_per_cell():
    # Three rows in a cell: the same laws, three times as wide, so that rounding matters less.
    assert crossover_cap(Fraction(8), MILLIONTH, Fraction(3)) == 14
    assert choose_mechanism(12, 6, 8, 1e-6).crossover_cap == crossover_cap(
        Fraction(8), MILLIONTH, Fraction(3)
    )


def test_the_page_of_a_plan():
    choice = by_cap(4, cells=5495)
    assert choice.laplace.std == pytest.approx(5.64, abs=0.005)
    assert choice.gaussian.std == pytest.approx(8.45, abs=0.005)
    assert choice.classic_sigma == pytest.approx(10.60, abs=0.005)
    assert (choice.laplace.halfwidth, choice.gaussian.halfwidth) == (12, 17)
    assert (round(choice.laplace.worst), round(choice.gaussian.worst)) == (37, 33)
    assert choice.laplace.rho == Fraction(1, 2)
    assert float(choice.gaussian.rho) == pytest.approx(0.028, abs=5e-4)
    assert "5.64 against 8.45" in choice.because
    assert "1.5 times" in choice.lost


def test_laplace_spends_no_delta_and_the_gaussian_spends_all():
    assert (by_cap(4).spent_eps, by_cap(4).spent_delta) == (1, 0)
    assert by_cap(16).spent_delta == MILLIONTH
    assert by_cap(16).law == RoundedGaussian(gaussian_sigma(4, 1, 1e-6))
    assert by_cap(4).law == DiscreteLaplace(4.0)


def test_without_delta_only_laplace():
    choice = by_cap(100, delta=0)
    assert choice.mechanism == "laplace"
    assert choice.lost == "no delta was authorised"
    assert (
        choice.gaussian is choice.crossover_cap is choice.classic_sigma is choice.textbook_crossover is None
    )
    assert json.loads(json.dumps(choice.to_dict()))["gaussian"] is None


def test_max_error_looks_at_the_whole_map():
    assert by_cap(4, cells=5495).mechanism == "laplace"
    choice = by_cap(4, cells=5495, criterion="max_error")
    assert choice.mechanism == "gaussian"
    assert "5,495 cells" in choice.because
    with pytest.raises(ValueError, match="needs cells"):
        by_cap(4, criterion="max_error")


@pytest.mark.parametrize("options", [{"releases": 2}, {"accountant": "zcdp"}])
def test_a_series_pays_in_rho(options):
    assert by_cap(1, **options).mechanism == "gaussian"
    assert "rho" in by_cap(1, **options).because
    assert by_cap(1, delta=0, **options).mechanism == "laplace"


@pytest.mark.parametrize("accountant", [None, "basic", "both"])
def test_one_release_is_compared_at_equal_eps(accountant):
    assert by_cap(1, accountant=accountant).mechanism == "laplace"


def test_population_is_declared_and_bounds_delta():
    assert by_cap(4, population=10_000).expected_people == pytest.approx(0.01)
    for population in (10**6, 10**9):
        with pytest.raises(ValueError, match=r"below 1/population.*delta_for"):
            by_cap(4, population=population)
    assert by_cap(4, population=10**6 - 1).population == 10**6 - 1


def test_the_textbook_sigma_is_shown_and_labelled():
    assert by_cap(4).classic_is_private
    far = by_cap(4, eps=50)
    assert far.classic_delta == pytest.approx(0.2474, abs=5e-5)
    assert far.to_dict()["classic"]["private"] is False


def test_named_mechanisms_say_so():
    parts = (Fraction(4), Fraction(4), Fraction(1))
    choice = decide(*parts, MILLIONTH, mechanism="gaussian")
    assert (choice.mechanism, choice.named, choice.because) == ("gaussian", True, "the Gaussian was named")
    assert decide(*parts, MILLIONTH, mechanism="laplace").spent_delta == 0
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        decide(*parts, Fraction(0), mechanism="gaussian")


def test_a_budget_calibrates_to_its_rho():
    choice = decide(
        Fraction(4), Fraction(4), Fraction(1), MILLIONTH, mechanism="gaussian", rho=Fraction(1, 8)
    )
    assert choice.law == RoundedGaussian(4.0)
    assert choice.rho == Fraction(1, 8)


def test_velox_13785_scales_beyond_2_to_the_50():
    with pytest.raises(ValueError, match=r"Nothing was spent"):
        choose_mechanism(1, 1, 1e-16)
    with pytest.raises(ValueError, match=r"Nothing was spent"):
        choose_mechanism(1, 1, 1e-16, 1e-30)
    # the one that fits is taken: 2^53 steps of Laplace, 2^42 of Gaussian
    assert choose_mechanism(2**53, 2**26.5, 1, 1e-6).mechanism == "gaussian"
    assert choose_mechanism(2**53, 2**26.5, 1, 1e-6).lost == "its scale would exceed 2^50 steps"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, True, 1e-400, None, "one"])
@pytest.mark.parametrize("place", ["l1", "l2", "eps"])
def test_jax_privacy_394_refused_at_the_door(place, bad):
    with pytest.raises((TypeError, ValueError)):
        choose_mechanism(**({"l1": 4, "l2": 2, "eps": 1, "delta": 1e-6} | {place: bad}))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, True, 1.0, None, "one"])
def test_jax_privacy_394_delta_refused_at_the_door(bad):
    with pytest.raises((TypeError, ValueError)):
        choose_mechanism(4, 2, 1, bad)


@pytest.mark.parametrize(
    "options",
    [
        {"cells": 0},
        {"cells": 2.5},
        {"releases": 0},
        {"population": 0},
        {"criterion": "mean"},
        {"accountant": "rdp"},
    ],
)
def test_bad_options(options):
    with pytest.raises((TypeError, ValueError)):
        by_cap(4, **options)


def test_swapped_sensitivities():
    with pytest.raises(ValueError, match="swapped"):
        choose_mechanism(2, 4, 1)


def test_to_dict_is_plain_json_and_small():
    choice = by_cap(4, cells=5495, population=1000)
    text = json.dumps(choice.to_dict(), allow_nan=False)
    assert json.loads(text) == choice.to_dict()
    assert len(text) < 1200
    assert hash(choice) == hash(by_cap(4, cells=5495, population=1000))


@pytest.mark.parametrize("eps", ["1e-6", "1e3", "1e5", "1e9"])
def test_far_out_choices_are_finite_json(eps):
    json.dumps(choose_mechanism(4, 2, eps, 1e-6, cells=100).to_dict(), allow_nan=False)
