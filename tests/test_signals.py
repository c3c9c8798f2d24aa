"""How much of a map is signal: from the release alone."""

import numpy as np
import pytest

import geodp
from geodp import testing

SETTING = {"subject": "rider", "cap": 3, "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:6"}


def test_it_is_the_formula_on_the_released_numbers(trips):
    plan = geodp.plan(1, **SETTING)
    heat = plan.release(trips)
    energy = float((heat["noisy_count"] ** 2).sum())
    expected = max(1 - plan.n_cells * plan.noise_std**2 / energy, 0)
    assert geodp.signal(heat) == pytest.approx(expected)


def test_an_empty_map_is_noise_and_a_full_one_is_signal(trips):
    nobody = [geodp.signal(trips.iloc[:0].dp.heatmap(0.5, **SETTING)) for _ in range(5)]
    assert min(nobody) < 0.5
    many = trips.loc[np.repeat(trips.index, 50)].assign(rider=np.arange(50 * len(trips)))
    assert geodp.signal(many.dp.heatmap(1, **{**SETTING, "cap": 1})) > 0.9


def test_sums_means_and_weights_have_one_too(trips):
    bounds = {"value_bounds": (0, 120)}
    for frame in (
        trips.dp.sum("minutes", 1, **SETTING, **bounds),
        trips.dp.mean("minutes", 1, **SETTING, **bounds),
        trips.dp.heatmap(1, 1e-6, **SETTING, contribution="weighted"),
        trips.dp.centroid(1, **SETTING),
    ):
        assert 0 <= geodp.signal(frame) <= 1


def test_what_has_none_says_so(trips):
    with pytest.raises(geodp.NotARelease):
        geodp.signal(trips)
    with testing.noiseless():
        fixed = trips.dp.centroid(1, subject="rider", cap=1, bounds=SETTING["bounds"], n=40)
        sparse = trips.dp.heatmap(1, **SETTING, cells="sparse")
    with pytest.raises(ValueError, match="none"):
        geodp.signal(fixed)
    with pytest.raises(ValueError, match="all cells"):
        geodp.signal(sparse)
