"""``cells="select"``: no more than the declared delta is spent, whoever is alone and however neighbours differ."""

import warnings
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
from scipy.stats import binom

import geodp
from geodp import testing
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian
from geodp.mechanisms.precise import precision
from geodp.queries.selected import selection_threshold

BOX = (-74.1, 40.6, -73.9, 40.8)
SETTING = {"subject": "rider", "cap": 2, "bounds": BOX, "grid": "h3:6", "cells": "select"}
ENTROPY = testing.Mode(testing.OS_ENTROPY, bytes(16))
TOP = 700


def passing(mp, law, t):
    """P(X >= t), t >= 1, by the definition of the law."""
    if isinstance(law, DiscreteLaplace):
        q = mp.exp(-1 / mp.mpf(law.scale))
        return q**t / (1 + q)
    return mp.erfc((t - mp.mpf(0.5)) / (mp.mpf(law.sigma) * mp.sqrt(2))) / 2


def spent(law, t, keys, rows):
    """1 - (1 - P(m + X >= T))^c with 60 digits, as a double."""
    with precision(60) as mp:
        return float(-mp.expm1(keys * mp.log1p(-passing(mp, law, t - rows))))


def laws_of(cap, eps, rows=1):
    return [
        geodp.plan(eps, 1e-6, **{**SETTING, "cap": cap, "rows_per_cell": rows}, mechanism=m)
        .measurements[0]
        .law
        for m in ("laplace", "gaussian")
    ]


@pytest.mark.parametrize("cap", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10**10), Fraction(7, 10**4)])
def test_the_threshold_is_the_smallest_that_spends_no_more_than_delta(cap, rows, delta):
    for law in laws_of(cap, 1.0, rows):
        t = selection_threshold(law, delta, cap, rows)
        assert spent(law, t, cap, rows) <= delta < spent(law, t - 1, cap, rows)


@pytest.mark.parametrize("cap", [4, 8, 16])
def test_the_rule_for_one_cell_would_spend_4_to_15_times_the_delta(cap):
    """What this threshold is not: planted, the one-cell rule fails the test above."""
    delta, ratios = Fraction(1, 10**6), []
    for law in (
        DiscreteLaplace(float(cap)),
        RoundedGaussian(laws_of(cap, 1.0)[1].sigma),
        DiscreteLaplace(40.0 * cap),
    ):
        for rows in (1, 2):
            one_cell = selection_threshold(law, delta, 1, rows)
            ratios.append(spent(law, one_cell, cap, rows) / float(delta))
    assert min(ratios) > 0.5 * cap  # integers: the threshold for one cell may leave some of its delta
    assert max(ratios) <= cap
    assert max(ratios) > 0.9 * cap


@pytest.mark.sampled(rate=2e-9)
def test_a_subject_alone_is_released_no_more_often_than_declared():
    # False alarm: 1e-9. Planted: with the one-cell threshold the same test fails.
    plan = geodp.plan(
        4.0, Fraction(8, 10**4), **{**SETTING, "cap": 16, "grid": "square:0.02"}, mechanism="laplace"
    )
    exact = {"key": np.arange(16), "count": np.ones(16, np.int64)}
    delta, times = float(plan.charge.delta_select), 30_000

    def releases(t):
        law = plan.measurements[0].law
        return int((1 + law.sample(16 * times).reshape(times, 16) >= t).any(axis=1).sum())

    assert binom.sf(releases(plan.threshold) - 1, times, delta) > 1e-9
    one_cell = selection_threshold(plan.measurements[0].law, plan.charge.delta_select, 1, 1)
    assert binom.sf(releases(one_cell) - 1, times, delta) < 1e-9
    assert len(plan.query.draw(plan, exact, ENTROPY)["key"]) <= 16


# The whole guarantee, computed exactly on maps of three cells ----------------------------------------------


def cell_law(law, count, t):
    """P(not released), P(noisy = T), P(noisy = T + 1), ...: certain to be absent where nobody is."""
    values = np.arange(t, t + TOP)
    if count == 0:
        return np.append(1.0, np.zeros(TOP))
    return np.append(law.cdf(t - 1 - count), law.pmf(values - count))


def hockey_stick(law, t, mine, theirs, eps):
    """Sum of max(0, P - e^eps Q) over all releases of three cells; only two of them may differ in law and matter."""
    p, q = ([cell_law(law, count, t) for count in counts] for counts in (mine, theirs))
    beyond = 0.0
    for i in range(3):  # released with certainty only on one side: Q is 0 there
        if theirs[i] == 0 and mine[i] > 0:
            others = [j for j in range(3) if j < i and theirs[j] == 0 and mine[j] > 0]
            beyond += (1 - p[i][0]) * np.prod([p[j][0] for j in others])
    both = [i for i in range(3) if mine[i] > 0 and theirs[i] > 0 and mine[i] != theirs[i]]
    alone_p = np.prod([p[i][0] for i in range(3) if theirs[i] == 0])
    alone_q = np.prod([q[i][0] for i in range(3) if mine[i] == 0])
    a, b = np.array([alone_p]), np.array([alone_q])
    for i in both:
        a, b = np.outer(a, p[i]).ravel(), np.outer(b, q[i]).ravel()
    return beyond + np.maximum(0, a - np.exp(eps) * b).sum()


NEIGHBOURS = {
    "add_remove_one": [
        ((1, 1, 0), (0, 0, 0)),
        ((1, 2, 0), (0, 1, 0)),
        ((6, 1, 0), (5, 0, 0)),
        ((9, 40, 0), (8, 39, 0)),
    ],
    "replace_one": [
        ((1, 1, 0), (0, 1, 1)),
        ((1, 2, 0), (0, 2, 1)),
        ((1, 5, 0), (0, 4, 1)),
        ((6, 1, 0), (5, 0, 1)),
        ((1, 1, 0), (0, 0, 1)),
        ((20, 1, 3), (19, 0, 4)),
    ],
}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighboring", list(NEIGHBOURS))
@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_the_release_is_private_at_its_declared_eps_and_delta(mechanism, neighboring, eps):
    delta = Fraction(5, 10**4)
    plan = geodp.plan(eps, delta, **SETTING, neighboring=neighboring, mechanism=mechanism)
    law, worst = plan.measurements[0].law, 0.0
    for one, other in NEIGHBOURS[neighboring]:
        for mine, theirs in ((one, other), (other, one)):
            worst = max(worst, hockey_stick(law, plan.threshold, mine, theirs, eps))
    assert worst <= float(delta) * (1 + 1e-9)
    # With some power: a subject who is alone takes it up; the two parts of delta are rarely both needed.
    assert worst > (0.8 if mechanism == "laplace" else 0.2) * float(delta)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_threshold_for_one_cell_breaks_the_declared_delta(mechanism):
    """Planted, seen by the same exact computation."""
    delta = Fraction(5, 10**4)
    plan = geodp.plan(0.5, delta, **SETTING, mechanism=mechanism)
    law = plan.measurements[0].law
    one_cell = selection_threshold(law, plan.query.selection(delta, mechanism), 1, 1)
    alone = hockey_stick(law, one_cell, (1, 1, 0), (0, 0, 0), 0.5)
    assert alone > 1.2 * float(plan.charge.delta_select)


def test_replacing_changes_the_noise_and_not_the_rule():
    one, other = (geodp.plan(1.0, 1e-6, **SETTING, neighboring=n) for n in NEIGHBOURS)
    assert other.l1 == 2 * one.l1
    for plan in (one, other):
        t = selection_threshold(plan.measurements[0].law, plan.charge.delta_select, 2, 1)
        assert plan.threshold == t


# What it costs ---------------------------------------------------------------------------------------------


def test_delta_is_split_under_gaussian_noise_and_all_selections_under_laplace():
    gaussian, laplace = (geodp.plan(1.0, 1e-6, **SETTING, mechanism=m) for m in ("gaussian", "laplace"))
    assert gaussian.charge.delta == laplace.charge.delta == Fraction(1, 10**6)
    assert gaussian.charge.delta_select == Fraction(1, 2 * 10**6)
    assert laplace.charge.delta_select == Fraction(1, 10**6)
    halved = geodp.plan(1.0, Fraction(1, 2 * 10**6), **{**SETTING, "cells": "all"}, mechanism="gaussian")
    assert gaussian.scale == halved.scale
    assert gaussian.charge.rho == halved.charge.rho
    assert laplace.scale == geodp.plan(1.0, **{**SETTING, "cells": "all"}).scale
    assert laplace.charge.rho == Fraction(1, 2)


def test_without_a_delta_there_is_no_selection():
    with pytest.raises(ValueError, match='cells="sparse"'):
        geodp.plan(1.0, **SETTING)


def test_a_budget_holds_no_delta_for_it(tmp_path):
    ledger = geodp.Ledger(tmp_path / "books.ledger", eps=3, delta=1e-5, unit="rider")
    with pytest.raises(ValueError, match="type eps and delta"):
        geodp.plan(ledger.split(4), **SETTING)


def test_a_ledger_pays_for_it_from_the_share_declared(tmp_path):
    people = frame(np.repeat(np.arange(300), 2), 7)
    ledger = geodp.Ledger(tmp_path / "a.ledger", eps=1, delta=1e-4, selection=2e-5, unit="rider")
    for label in ("a", "b", "c"):
        geodp.heatmap(people, 0.3, 1e-5, **SETTING, mechanism="gaussian", ledger=ledger, label=label)
    assert ledger.verify().empty


# What is released ------------------------------------------------------------------------------------------


def frame(riders, seed=0):
    rng = np.random.default_rng(seed)
    lon, lat = rng.normal(-74, 0.03, len(riders)), rng.normal(40.7, 0.03, len(riders))
    hours = np.arange(len(riders)) % 3
    return gpd.GeoDataFrame({"rider": riders, "hour": hours}, geometry=gpd.points_from_xy(lon, lat), crs=4326)


def test_a_zcdp_book_without_a_share_for_it_says_what_to_do(tmp_path):
    """No smaller eps would fit, so none is offered."""
    people = frame(["a"])
    ledger = geodp.Ledger(tmp_path / "a.ledger", eps=3, delta=1e-4, accountant="zcdp", unit="rider")
    with pytest.raises(
        geodp.BudgetExceeded, match=r'selection delta 0.*Fits: cells="sparse".*larger selection='
    ) as refused:
        geodp.heatmap(people, 0.3, 1e-5, **SETTING, mechanism="gaussian", ledger=ledger, label="a")
    assert "rho <=" not in str(refused.value)
    with pytest.raises(geodp.BudgetExceeded, match=r"rho .* Nothing more fits\."):
        geodp.heatmap(people, 9, 1e-5, **SETTING, mechanism="gaussian", ledger=ledger, label="a")
    both = geodp.Ledger(tmp_path / "b.ledger", eps=3, delta=1e-4, unit="rider")
    with pytest.raises(geodp.BudgetExceeded, match=r"Fits: eps <= 3\."):
        geodp.heatmap(people, 9, 1e-5, **SETTING, mechanism="gaussian", ledger=both, label="a")
    assert ledger.spent()["eps"] == both.spent()["eps"] == 0


def test_only_cells_that_hold_somebody_can_appear():
    people = frame(np.repeat(np.arange(500), 3))
    with testing.noiseless():
        exact = geodp.heatmap(people, 3.0, 1e-4, **{**SETTING, "cells": "all", "cap": 40})
    held = set(exact.index[exact["noisy_count"] > 0])
    for _ in range(30):
        heat = geodp.heatmap(people, 1.5, 1e-4, **SETTING)
        assert set(heat.index) <= held
        assert (heat["noisy_count"] >= geodp.record(heat)["threshold"]).all()
        assert (heat["count"] == heat["noisy_count"]).all()
        assert (heat["estimate"] == heat["noisy_count"]).all()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_cells_that_hold_nobody_get_no_noise_at_all(monkeypatch, mechanism):
    """With noise of a million in every cell that gets any, exactly the cells that hold somebody appear."""
    people = frame(np.repeat(np.arange(500), 3))
    where = {**SETTING, "cap": 40, "mechanism": mechanism}
    with testing.noiseless():
        listed = geodp.heatmap(people, 1.5, 1e-4, **{**where, "cells": "all"})
    plan = geodp.plan(1.5, 1e-4, **where)
    law = type(plan.measurements[0].law)
    monkeypatch.setattr(law, "sample", lambda self, size, bits=None: np.full(size, 10**6))
    selected = plan.release(people)
    assert set(selected.index) == set(listed.index[listed["noisy_count"] > 0])
    assert (selected["noisy_count"] == listed["noisy_count"].reindex(selected.index) + 10**6).all()


def test_without_noise_the_threshold_cuts_exactly():
    people = frame(np.repeat(np.arange(3000), 2), 5)
    for more in ({}, {"by": {"hour": range(3)}}, {"grid": "square:0.01"}, {"rows_per_cell": 2}):
        with testing.noiseless():
            selected = geodp.heatmap(people, 8.0, 1e-4, **{**SETTING, **more, "cap": 8})
            listed = geodp.heatmap(people, 8.0, 1e-4, **{**SETTING, **more, "cap": 8, "cells": "all"})
        t = geodp.record(selected)["threshold"]
        kept = listed[listed["noisy_count"] >= t]
        assert len(kept) > 0
        assert selected.index.tolist() == kept.index.tolist()
        assert selected["noisy_count"].tolist() == kept["noisy_count"].tolist()


def test_the_page_and_the_record_say_it():
    plan = geodp.plan(1.0, 1e-6, **SETTING)
    assert f"only those that hold somebody and measure {plan.threshold} or more" in str(plan)
    facts = plan.to_dict()
    assert (facts["cells"], facts["estimator"], facts["rows"]) == ("select", "none", None)
    assert facts["delta"] == 1e-6
    assert "delta_select" in plan.charge.to_dict()


def test_a_small_domain_counts_its_keys_not_the_cap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        setting = {**SETTING, "bounds": (0, 0, 1, 2), "grid": "square:1"}
        few, many = (geodp.plan(1.0, 1e-6, **{**setting, "cap": cap}) for cap in (2, 50))
    assert few.threshold == many.threshold
    assert few.measurements == many.measurements
