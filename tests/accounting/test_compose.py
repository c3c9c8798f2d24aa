"""The table of what a series costs under each rule, against closed forms."""

import builtins
import math
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from geodp.accounting import Charge
from geodp.composition import compose
from geodp.mechanisms.calibration import gaussian_delta, rho_of, sigma_for

ROWS = ["basic", "zcdp", "zcdp_textbook", "rdp", "pld"]


@dataclass
class Measurement:
    mechanism: str
    l1: Fraction
    l2_squared: Fraction
    scale: float
    name: str = "count"


@dataclass
class Plan:
    charge: Charge
    measurements: list = field(default_factory=list)


def gaussian(eps="1/10", delta="1/100000000", cap=4):
    sigma = sigma_for(Fraction(cap), Fraction(eps), Fraction(delta))
    return Plan(
        Charge(Fraction(eps), Fraction(delta), rho_of(Fraction(cap), sigma)),
        [Measurement("gaussian", Fraction(cap), Fraction(cap), sigma)],
    )


def laplace(eps="1/10", cap=4):
    return Plan(
        Charge(Fraction(eps)),
        [Measurement("laplace", Fraction(cap), Fraction(cap), float(cap / Fraction(eps)))],
    )


def test_one_row_for_each_rule():
    table = compose([laplace()], 1e-6)
    assert list(table.index) == ROWS
    assert table.index.name == "accountant"
    assert list(table.columns) == ["eps", "delta", "note"]
    assert table["eps"].dtype == table["delta"].dtype == "float64"


def test_a_year_of_gaussians_against_the_closed_form():
    plan = gaussian()
    table = compose([plan] * 365, 1e-6)
    eps = table["eps"]
    assert eps["basic"] == 36.5
    assert table.loc["basic", "delta"] == 3.65e-06
    assert "add up to more than 1e-06" in table.loc["basic", "note"]
    assert eps["pld"] < eps["rdp"] <= eps["zcdp"] * (1 + 1e-3) < eps["zcdp_textbook"]
    sigma = plan.measurements[0].scale / math.sqrt(365)
    assert gaussian_delta(2, sigma, eps["pld"]) == pytest.approx(1e-6, rel=0.01)


def test_census_certificate_through_zcdp():
    # rho of the 2020 Census redistricting persons file and its published eps at delta 1e-10
    table = compose([Charge(Fraction(20), Fraction(1, 10**10), Fraction(293764, 114921))], 1e-10)
    assert table.loc["zcdp", "eps"] == pytest.approx(17.1435507, abs=5e-8)


def test_a_pure_release_is_never_worse_than_its_eps_where_the_rule_can_tell():
    table = compose([laplace("1")], 1e-6)
    assert table.loc["basic", "eps"] == 1.0
    assert table.loc["pld", "eps"] == pytest.approx(1.0, abs=1e-3)
    assert table.loc["rdp", "eps"] == pytest.approx(1.0, abs=0.01)


def test_the_discrete_law_counts_and_not_its_continuous_limit():
    # With l1 = 1 the discrete Laplace is randomised response: delta(0) = tanh(1/2) = 0.4621, the
    # continuous law's is 1 - exp(-1/2) = 0.3935. Many small releases show the difference.
    table = compose([laplace("1/10", cap=1)] * 100, 1e-6)
    continuous = compose([laplace("1/10", cap=2048)] * 100, 1e-6)
    assert table.loc["pld", "eps"] > continuous.loc["pld", "eps"] * 1.01


def test_a_fine_lattice_is_replaced_by_a_coarser_law_of_the_same_eps():
    fine, coarse = (compose([laplace("1", cap)], 1e-6).loc["pld", "eps"] for cap in (2**20, 1024))
    assert fine == pytest.approx(coarse, rel=1e-6)


def test_mixed_and_joint_measurements_add_up():
    joint = Plan(gaussian().charge + laplace().charge, [*gaussian().measurements, *laplace().measurements])
    apart = compose([gaussian(), laplace()], 1e-6)
    assert compose([joint], 1e-6)["eps"].to_dict() == pytest.approx(apart["eps"].to_dict())


def test_bare_charges_are_counted_by_what_is_known_of_them():
    plan = gaussian()
    bare, full = compose([plan.charge] * 10, 1e-6), compose([plan] * 10, 1e-6)
    assert bare.loc[["basic", "zcdp"], "eps"].equals(full.loc[["basic", "zcdp"], "eps"])
    assert bare.loc["rdp", "eps"] >= full.loc["rdp", "eps"] * (1 - 1e-9)
    assert "taken as Gaussian" in bare.loc["pld", "note"]
    pure = compose([Charge(Fraction(1, 10))] * 10, 1e-6)
    assert pure.loc["pld", "eps"] <= 1.0 + 1e-3


def test_without_rho_only_basic_composition_speaks():
    table = compose([Charge(Fraction(1), Fraction(1, 10**7))], 1e-6)
    assert table["eps"].tolist() == [1.0, *[math.inf] * 4]
    assert (table["note"][1:] == "a charge without rho").all()


def test_selection_is_taken_off_the_delta():
    select = Charge(Fraction(1), Fraction(1, 10**7), Fraction(1, 100), Fraction(1, 10**7))
    full, less = (
        compose([select], 1e-6),
        compose([Charge(Fraction(1), Fraction(1, 10**7), Fraction(1, 100))], 9e-7),
    )
    assert full.loc["zcdp", "eps"] == less.loc["zcdp", "eps"]
    assert math.isinf(compose([select], 1e-7).loc["zcdp", "eps"])


def test_delta_zero_leaves_basic_composition():
    table = compose([laplace()], 0)
    assert table.loc["basic", "eps"] == 0.1
    assert math.isinf(table.loc["pld", "eps"])


@pytest.mark.parametrize("wrong", [1, 1.0, 0.5, 1e-3, -1e-6, float("nan")])
def test_delta_misuse_is_refused(wrong):
    with pytest.raises(ValueError, match="delta must be"):
        compose([laplace()], wrong)


def test_what_is_composed_must_have_a_cost():
    with pytest.raises(TypeError, match="plans and charges, got int"):
        compose([1], 1e-6)
    with pytest.raises(ValueError, match="at least one"):
        compose([], 1e-6)


def test_without_dp_accounting_the_rows_say_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    table = compose([laplace()], 1e-6)
    assert table["eps"].notna().tolist() == [True, True, True, False, False]
    assert "geodp[accounting]" in table.loc["pld", "note"]
