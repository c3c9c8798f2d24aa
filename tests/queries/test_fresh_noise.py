"""Every number has noise of its own: no two cells, no two measurements and no two releases share any."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

import geodp
from geodp import testing

WHERE = {"subject": "rider", "cap": 1, "bounds": (0, 0, 25, 20), "grid": "square:1"}  # 500 cells
# At these eps and delta every scale is above 2^28 steps, so that equal draws are rare.
QUERIES = {
    "count": (geodp.Count(), 2.0**-40),
    "sum": (geodp.Sum("v", (0, 1)), 2.0**-27),
    "mean": (geodp.Mean("v", (0, 1)), 2.0**-27),
    "centroid": (geodp.Centroid(), 2.0**-27),
}


def noise(plan):
    """Draw as a release does, on a map where two of three cells are empty; return what was added."""
    exact = {
        m.name: np.where(np.arange(m.quantity.size) % 3 == 0, 7, 0).astype(np.int64)
        for m in plan.measurements
    }
    noisy = plan.query.draw(plan, exact, testing.current())
    return {name: noisy[name] - exact[name] for name in noisy}


def related(a, b):
    """Whether two streams go together, by rank.

    Independent streams of 500 do beyond 6.5 standard deviations once in 1e10 pairs.
    """
    return abs(spearmanr(a, b).statistic) > 6.5 / np.sqrt(len(a) - 1)


@pytest.mark.sampled(rate=2e-9)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", QUERIES)
def test_no_draw_is_used_twice(name, mechanism):
    # False alarms: 500 draws above 2^28 have 6e-5 equal pairs at most, more than three of them in 1e-18; and
    # 1e-10 for each of the fewer than 20 pairs of streams. Planted: noise that repeats, or is shared.
    query, eps = QUERIES[name]
    plan = geodp.plan(eps, 1e-9, query=query, mechanism=mechanism, **WHERE)
    first, second = noise(plan), noise(plan)
    streams = [stream[:500] for found in (first, second) for stream in found.values()]
    streams += [stream[500:] for stream in first.values() if len(stream) > 500]
    for stream in streams:
        assert len(np.unique(stream)) >= len(stream) - 3
        assert not related(stream, np.roll(stream, 1))
    for a, b in itertools.combinations(streams, 2):
        assert not related(a, b)
    assert related(streams[0], 3 * streams[0])
    assert len(np.unique(np.where(np.arange(500) % 3 == 0, streams[0], streams[0][1]))) < 497


@pytest.mark.sampled(rate=1e-9)
def test_views_of_one_release_share_no_noise():
    views = {"one": {}, "two": {"grid": "square:1"}, "three": geodp.Mean("v", (0, 1))}
    plan = geodp.plan_together(views, 2.0**-27, **WHERE)
    streams = [stream for part in plan.parts for stream in noise(part).values()]
    for a, b in itertools.combinations(streams, 2):
        assert not related(a, b)


@pytest.mark.sampled(rate=1e-12)
def test_a_release_of_nobody_is_all_noise(trips):
    """A variable of the environment switches nothing off, and a map of nobody is a map of noise."""
    heat = geodp.heatmap(trips.iloc[:0], 2.0**-40, **WHERE)
    assert heat["noisy_count"].nunique() > 490
    assert heat.attrs["geodp"]["noise"] == testing.OS_ENTROPY
