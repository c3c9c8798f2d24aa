"""Means: finite, within bounds, their interval true, their budget well split."""

from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import geodp
from geodp import release, testing
from geodp.estimators.ratios import fieller
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian
from geodp.queries.means import shares

NYC = (-74.3, 40.4, -73.6, 41.0)
WHERE = {"subject": "rider", "cap": 3, "bounds": NYC, "grid": "square:0.02"}


def crowd(values, places=((-73.97, 40.75),)):
    """Return one rider for each value, at each place in turn."""
    xy = np.array(places)[np.arange(len(values)) % len(places)]
    return gpd.GeoDataFrame(
        {"rider": np.arange(len(values)), "v": values}, geometry=gpd.points_from_xy(*xy.T), crs=4326
    )


def variance(share, mechanism, axes):
    """Mean squared error of S/N over ratios spread evenly, by the laws: the count's part over the sum's."""
    of_sum, of_count = share, 1 - share
    unit = 1 << 20
    if mechanism == "laplace":
        s, n = DiscreteLaplace(unit * axes**0.5 / of_sum), DiscreteLaplace(1 / of_count)
    else:
        s, n = RoundedGaussian(4 * unit / of_sum**0.5), RoundedGaussian(4 / of_count**0.5)
    return axes * (s.std / unit) ** 2 + n.std**2 / 3


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_split_is_better_than_half_and_half_and_than_its_neighbours(mechanism, axes):
    of_sum, of_count = shares(mechanism, axes)
    assert of_sum + of_count == 1
    best = variance(float(of_sum), mechanism, axes)
    assert best < 0.97 * variance(0.5, mechanism, axes)
    for other in (-0.04, 0.04):
        assert best < variance(float(of_sum) + other, mechanism, axes)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_shares_are_what_is_spent(mechanism):
    """Of eps under Laplace, of 1/sigma² under Gaussian noise: together the whole budget and no more."""
    plan = geodp.plan(1, 1e-6, query=geodp.Mean("v", (0, 120)), mechanism=mechanism, **WHERE)
    if mechanism == "laplace":
        spent = sum(m.l1 / Fraction(m.scale) for m in plan.measurements)
        assert 1 - Fraction(1, 10**12) < spent <= 1
    else:
        whole = geodp.plan(1, 1e-6, query=geodp.Count(), mechanism=mechanism, **WHERE)
        spent = sum(m.l2_squared / Fraction(m.scale) ** 2 for m in plan.measurements)
        asked = whole.measurements[0].l2_squared / Fraction(whole.scale) ** 2
        assert asked * (1 - Fraction(1, 10**9)) < spent <= asked * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rows_per_cell", [1, 2, 7])
def test_sum_and_count_are_of_the_same_rows(trips, rows_per_cell):
    """All values are the upper bound, so the centred sum is the count times half the range."""
    trips["minutes"] = 500.0
    plan = geodp.plan(1, query=geodp.Mean("minutes", (0, 120)), **WHERE | {"rows_per_cell": rows_per_cell})
    exact = release.tally(plan, trips, testing.Mode("none (test)", bytes(16), silent=True))
    assert exact["count"].sum() > 0
    assert (exact["sum"] == exact["count"] * (60 << plan.query.j)).all()


def test_a_large_cell_has_its_own_mean_and_an_interval_around_it():
    rng = np.random.default_rng(3)
    values = np.clip(rng.gamma(2, 10, 20_000), 0, 120)
    with testing.noiseless():
        frame = geodp.mean(crowd(values), "v", 1, value_bounds=(0, 120), **WHERE)
    cell = frame.loc[frame["noisy_count"].idxmax()]
    assert cell["mean"] == pytest.approx(values.mean(), abs=0.01)
    assert cell["lower"] <= values.mean() <= cell["upper"]
    assert cell["upper"] - cell["lower"] < 0.15


def test_empty_cells_show_the_overall_mean():
    with testing.noiseless():
        frame = geodp.mean(crowd(np.full(20_000, 3.0)), "v", 1, value_bounds=(0, 120), **WHERE)
    empty = frame[frame["noisy_count"] == 0]
    assert len(empty) > 1000
    np.testing.assert_allclose(empty["mean"], 3.0, atol=1e-3)
    assert (empty["lower"] == 0).all()
    assert (empty["upper"] == 120).all()


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("grid", ["square:0.02", "square:1"])
def test_near_empty_maps_are_finite_and_within_bounds(n, mechanism, grid):
    """smartnoise #264."""
    for eps in (0.01, 1, 2):
        frame = geodp.mean(
            crowd(np.full(n, 1e300)),
            "v",
            eps,
            1e-6,
            value_bounds=(-7, 120),
            mechanism=mechanism,
            **WHERE | {"grid": grid},
        )
        numbers = frame[["lower", "mean", "upper"]].to_numpy()
        assert np.isfinite(numbers).all()
        assert ((numbers >= -7) & (numbers <= 120)).all()
        assert (np.diff(numbers, axis=1) >= 0).all()


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_intervals_of_whole_releases_hold_the_mean_of_the_clamped_records(mechanism):
    """Three cells of 5, 60 and 900 people, 2,000 releases each: 95 % at least, exactly so for large cells.

    6,000 intervals at 95 % miss 300 with a standard deviation of 17: more than 420 in fewer than 1 of 1e10
    runs. Intervals at 90 % (the planted bug) miss 600.
    """
    rng = np.random.default_rng(7)
    sizes, places = (5, 60, 900), [(-73.97, 40.75), (-73.81, 40.61), (-74.21, 40.91)]
    frames, truth = [], []
    for size, place in zip(sizes, places, strict=True):
        values = rng.gamma(2, 12, size)
        truth.append(np.clip(values, 0, 60).mean())
        frames.append(crowd(values, [place]))
    people = gpd.GeoDataFrame(pd.concat(frames, ignore_index=True), crs=4326)
    people["rider"] = np.arange(len(people))
    plan = geodp.plan(1, 1e-6, query=geodp.Mean("v", (0, 60)), mechanism=mechanism, **WHERE | {"cap": 1})
    mode = testing.Mode("none (test)", bytes(16), silent=True)
    exact = release.tally(plan, people, mode)
    cells = [int(np.argmax(exact["count"] == size)) for size in sizes]
    missed = {0.95: 0, 0.90: 0}
    n, s = plan.measurements

    for _ in range(20):
        noisy = {m.name: np.repeat(exact[m.name][cells], 100) + m.law.sample(300) for m in plan.measurements}
        for level in missed:
            lower, upper = fieller(
                noisy["sum"], noisy["count"], s.law, n.law, float(s.quantity.step), 30.0, level
            )
            true = np.repeat(truth, 100) - 30
            missed[level] += int(((true < lower) | (true > upper)).sum())
    assert missed[0.95] <= 420
    assert missed[0.90] > missed[0.95]
