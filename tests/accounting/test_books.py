"""Exact sums, the two books, splits and deltas, without any file."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geodp.accounting import (
    NOTHING,
    Budget,
    Charge,
    amount,
    amounts,
    ceiling,
    delta_for,
    down,
    left_amounts,
    split,
    up,
)
from geodp.exact import exact
from geodp.mechanisms.calibration import rho_of, scale_for, sigma_for_rho, zcdp_epsilon, zcdp_rho_from_epsilon

TENTH = Charge(Fraction(1, 10))


def spend(held, charges):
    """Debit in order, as a ledger does, and return the total and how many were let through."""
    total, passed = NOTHING, 0
    for charge in charges:
        if held.allows(total + charge):
            total, passed = total + charge, passed + 1
    return total, passed


# --- charges -----------------------------------------------------------------------------------------


def test_a_pure_charge_counts_half_its_square():
    assert TENTH.rho == Fraction(1, 200)
    assert 0 <= Charge(Fraction(1, 3)).rho - Fraction(1, 18) < Fraction(1, 10**60)


def test_rho_of_an_approximate_charge_is_not_guessed():
    assert Charge(Fraction(1), Fraction(1, 10**6)).rho is None
    assert (Charge(Fraction(1), Fraction(1, 10**6)) + TENTH).rho is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"eps": Fraction(-1)},
        {"eps": Fraction(1), "delta": Fraction(-1)},
        {"eps": Fraction(1), "rho": Fraction(-1)},
    ],
)
def test_negative_amounts_are_refused(wrong):
    with pytest.raises(ValueError, match="at least 0"):
        Charge(**wrong)


def test_selection_is_a_part_of_delta():
    with pytest.raises(ValueError, match="part of delta"):
        Charge(Fraction(1), Fraction(1, 10**6), Fraction(1), Fraction(1, 10**5))


@pytest.mark.parametrize(
    "charge",
    [
        TENTH,
        Charge(Fraction(1), Fraction(1, 10**6)),
        Charge(Fraction(1), Fraction(1, 10**6), Fraction(1, 7), Fraction(1, 10**7)),
    ],
)
def test_a_charge_survives_as_text(charge):
    assert Charge.from_dict(charge.to_dict()) == charge


def test_many_unlike_fractions_cannot_grow_a_total_without_end():
    total, exactly = NOTHING, Fraction(0)
    for k in range(1001, 1201):
        total, exactly = total + Charge(Fraction(1, k)), exactly + Fraction(1, k)
    assert total.eps.denominator <= 10**100
    assert exactly <= total.eps <= exactly * (1 + Fraction(1, 10**50))


# --- book A ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["both", "basic"])
@pytest.mark.parametrize("delta", [0, "1e-5"])
def test_opendp_2131_attribution_77_ten_tenths_fill_one(accountant, delta):
    held = ceiling(1.0, delta, accountant)
    total, passed = spend(held, [TENTH] * 11)
    assert passed == 10
    assert total.eps == 1


def test_opendp_2131_three_tenths_fill_three_tenths():
    assert spend(ceiling(0.3), [TENTH] * 4)[1] == 3


def test_delta_has_its_own_ceiling():
    # eps is small enough never to matter; ten 1e-6 fit in 1e-5, half of them in half of it
    charges = [Charge(Fraction(1, 10**6), Fraction(1, 10**6))] * 11
    assert spend(ceiling(1, "1e-5", "basic"), charges)[1] == 10
    assert spend(ceiling(1, "1e-5", "both"), charges)[1] == 5
    assert spend(ceiling(1, 0), charges)[1] == 0


# --- book B ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accountant", "share", "delta"), [("zcdp", 0, 1e-5), ("both", 0, 5e-6), ("both", 1e-6, 4e-6)]
)
def test_what_the_zcdp_book_holds_is_the_largest_rho_rounded_down(accountant, share, delta):
    held = ceiling(3, 1e-5, accountant, share)
    assert Fraction(zcdp_rho_from_epsilon(3, delta)) <= held.rho
    assert zcdp_epsilon(held.rho * (1 - Fraction(1, 10**16)), delta) <= 3
    assert zcdp_epsilon(held.rho * (1 + Fraction(1, 10**12)), delta) > 3


def test_zcdp_alone_would_refuse_a_single_pure_release():
    assert not ceiling(3, 1e-5, "zcdp").allows(Charge(Fraction(1)))
    assert ceiling(3, 1e-5, "both").allows(Charge(Fraction(1)))
    assert spend(ceiling(1, 1e-5, "zcdp"), [TENTH] * 11)[1] < 10


def test_the_second_book_costs_three_to_four_percent_in_sigma():
    ratio = math.sqrt(ceiling(3, 1e-5, "zcdp").rho / ceiling(3, 1e-5, "both").rho)
    assert 1.03 < ratio < 1.04


def test_a_charge_without_rho_closes_the_zcdp_book_for_good():
    held = ceiling(1, 1e-5)
    total = Charge(Fraction(1, 2), Fraction(1, 10**6))
    assert held.allows(total)
    assert not held.fits_zcdp(total)
    assert held.left(total).rho == 0


def test_selection_spends_its_own_share():
    held = ceiling(3, 1e-5, "zcdp", 2e-6)
    one = Charge(Fraction(1), Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 10**6))
    assert spend(held, [one] * 3)[1] == 2
    assert spend(ceiling(3, 1e-5, "zcdp"), [one])[1] == 0


def test_a_series_that_passed_one_book_goes_on_in_the_other():
    held = ceiling(3, 1e-5)
    gaussian = Charge(Fraction(1, 4), Fraction(1, 10**8), Fraction(1, 1000))
    total, passed = spend(held, [gaussian] * 1000)
    assert passed == math.floor(held.rho * 1000) > 12  # twelve is where book A ends
    assert not held.fits_basic(total)
    assert held.left(total).eps == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1, 0, "zcdp"), "needs a delta"),
        ((1, 1e-5, "rdp"), "accountant must be"),
        ((1, 1e-5, "both", 5e-6), "selection must be below"),
        ((1, 0, "both", 1e-6), "no such book"),
        ((1, 1e-5, "basic", 1e-6), "no such book"),
        ((0,), "eps must be greater than 0"),
        ((1, 1), "delta must be"),
        ((float("nan"),), "finite"),
    ],
)
def test_ceilings_that_make_no_sense_are_refused(arguments, error):
    with pytest.raises(ValueError, match=error):
        ceiling(*arguments)


CHARGES = st.builds(
    lambda eps, delta, rho, pure: (
        Charge(Fraction(eps, 100))
        if pure
        else Charge(Fraction(eps, 100), Fraction(delta, 10**8), Fraction(rho, 10**4))
    ),
    st.integers(1, 120),
    st.integers(1, 300),
    st.integers(1, 900),
    st.booleans(),
)


@settings(max_examples=50)
@given(st.lists(CHARGES, max_size=40), st.sampled_from(["both", "basic", "zcdp"]))
@example([TENTH] * 11, "both")
def test_every_path_ends_inside_a_book_and_sums_only_grow(charges, accountant):
    held = ceiling(1, 1e-5, accountant)
    total, refused = NOTHING, []
    for charge in charges:
        if held.allows(total + charge):
            grown = total + charge
            assert grown.eps >= total.eps
            assert grown.delta >= total.delta
            total = grown
        else:
            refused.append(charge)
    assert total == NOTHING or held.allows(total)
    assert not any(held.allows(total + charge) for charge in refused)  # what was refused stays refused
    # Inside A at the end means inside A all along (PRIVACY.md): both books are closed downwards.
    half = Charge(total.eps / 2, total.delta / 2, None if total.rho is None else total.rho / 2)
    assert held.fits_basic(half) >= held.fits_basic(total)
    assert held.fits_zcdp(half) >= held.fits_zcdp(total)


# --- split -------------------------------------------------------------------------------------------


def paid(budget, l1, l2_squared):
    """Charge what a release with this budget really costs, once its noise is a double."""
    if budget.mechanism == "laplace":
        assert Fraction(scale_for(l1, budget.eps)) * budget.eps >= l1
        return Charge(budget.eps)
    return Charge(budget.eps, budget.delta, rho_of(l2_squared, sigma_for_rho(l2_squared, budget.rho)))


@settings(max_examples=50)
@given(
    st.integers(1, 400),
    st.sampled_from(["both", "basic", "zcdp"]),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(5), Fraction(20)]),
    st.sampled_from([Fraction(0), Fraction(1, 10**5), Fraction(1, 10**10)]),
    st.integers(1, 30),
    st.lists(CHARGES, max_size=3),
)
@example(365, "both", Fraction(5), Fraction(1, 10**6), 1, [])
@example(1, "both", Fraction(20), Fraction(1, 10**5), 1, [])
def test_exactly_k_releases_fit(k, accountant, eps, delta, cap, before):
    if accountant == "zcdp" and delta == 0:
        return
    held = ceiling(eps, delta, accountant)
    spent, _ = spend(held, before)
    if not held.left(spent).eps and not held.left(spent).rho:
        with pytest.raises(ValueError, match="nothing is left"):
            split(held, spent, k, cap, math.sqrt(cap))
        return
    budget = split(held, spent, k, cap, math.sqrt(cap))
    one = paid(budget, Fraction(cap), Fraction(cap))
    total = spent
    for _ in range(min(k, 50)):
        total = total + one
        assert held.allows(total)
    assert held.allows(spent + times(one, k))
    assert not held.allows(spent + times(one, k + 1))
    # And at a cap the budget was not made for.
    assert held.allows(spent + times(paid(budget, Fraction(7), Fraction(7)), k))
    assert not held.allows(spent + times(paid(budget, Fraction(7), Fraction(7)), k + 1))


def times(charge, k):
    return Charge(charge.eps * k, charge.delta * k, charge.rho * k, charge.delta_select * k)


@pytest.mark.parametrize("k", [1, 3, 7, 365])
def test_a_budget_charged_as_it_stands_fits_k_times_too(k):
    for held in (ceiling(3, 1e-5), ceiling(3, 1e-5, "zcdp"), ceiling(3)):
        budget = split(held, NOTHING, k)
        one = Charge(budget.eps, budget.delta, budget.rho)
        assert spend(held, [one] * (k + 1))[1] == k


def test_split_takes_the_quietest_offer():
    held = ceiling(3, 1e-5)
    few, many = split(held, NOTHING, 2), split(held, NOTHING, 365)
    assert (few.mechanism, few.book, few.eps) == ("laplace", "basic", Fraction(3, 2))
    assert (many.mechanism, many.book) == ("gaussian", "zcdp")
    assert split(held, NOTHING, 2, 30, math.sqrt(30)).mechanism == "gaussian"
    assert split(ceiling(3, 1e-5, "basic"), NOTHING, 365).book == "basic"
    assert split(ceiling(3), NOTHING, 365) == Budget(
        Fraction(3, 365), Fraction(0), Charge(Fraction(3, 365)).rho, "laplace", "basic"
    )


def test_split_after_everything_is_spent():
    with pytest.raises(ValueError, match="nothing is left"):
        split(ceiling(1), Charge(Fraction(1)), 3)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, 10**10])
def test_split_wants_a_count(wrong):
    with pytest.raises((TypeError, ValueError), match="k must be"):
        split(ceiling(1), NOTHING, wrong)


def test_a_budget_prints_what_it_buys():
    assert str(split(ceiling(3), NOTHING, 2)) == (
        "Budget of one release: laplace, eps 1.5, delta 0, rho 1.125; the basic book pays"
    )


# --- numbers for people ------------------------------------------------------------------------------


@given(st.fractions(min_value=0, max_value=100))
def test_smartnoise_621_what_was_spent_is_rounded_up_and_what_is_left_down(number):
    assert exact(up(number), "spent") >= number
    assert exact(down(number), "left") <= number
    assert up(number) - down(number) <= 2 * math.ulp(float(number))
    assert Fraction(amount(number)) >= number
    assert Fraction(amount(number, floor=True)) <= number


@settings(max_examples=50)
@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=3),
    st.fractions(min_value=0, max_value=Fraction(1, 10**6)),
)
def test_smartnoise_621_statements_never_say_too_little(eps, delta):
    charge = Charge(eps, delta, eps**2)
    shown = amounts(charge)
    for name in ("eps", "delta", "rho"):
        assert exact(shown[name], name) >= getattr(charge, name)
    held = ceiling(4, "1e-4")
    left = left_amounts(held, charge)
    assert exact(left["eps"], "eps") <= held.eps - eps
    assert exact(left["delta"], "delta") <= held.delta / 2 - delta


@settings(max_examples=50)
@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1), min_size=1, max_size=20))
def test_smartnoise_621_the_odometer_is_monotone(steps):
    total, shown = NOTHING, {"eps": 0.0, "delta": 0.0, "rho": 0.0}
    for step in steps:
        total = total + Charge(step)
        now = amounts(total)
        assert all(now[name] >= shown[name] for name in now)
        shown = now


def test_typed_amounts_show_as_they_were_typed():
    total = TENTH + TENTH + TENTH
    assert amounts(total)["eps"] == 0.3
    assert left_amounts(ceiling(1), total)["eps"] == 0.7
    assert amount(Fraction(1, 10**6)) == "1e-06"
    assert (amount(Fraction(2, 3)), amount(Fraction(2, 3), floor=True)) == ("0.666667", "0.666666")


def test_a_book_that_is_not_kept_shows_as_nan():
    assert math.isnan(left_amounts(ceiling(1), NOTHING)["rho"])
    assert math.isnan(left_amounts(ceiling(1, 1e-5, "zcdp"), NOTHING)["eps"])


# --- delta_for ---------------------------------------------------------------------------------------


@given(st.integers(1, 10**12))
@example(1)
@example(10**4)
@example(3 * 10**4)
def test_delta_for_is_not_above_the_formula(population):
    delta = delta_for(population)
    for reading in (Fraction(delta), exact(delta, "delta")):
        assert reading <= Fraction(1, 10**6)
        assert reading <= Fraction(1, 100 * population)
        assert reading**10 * population**11 <= 1
        assert reading < Fraction(1, population)
    best = min(Fraction(1, 10**6), Fraction(1, 100 * population))
    assert Fraction(delta) >= best * (1 - Fraction(1, 10**15))


@pytest.mark.parametrize("wrong", [0, -5, 2.5, True, "1000", None, 10**13])
def test_delta_for_wants_a_number_of_people(wrong):
    with pytest.raises((TypeError, ValueError), match="population must be"):
        delta_for(wrong)
