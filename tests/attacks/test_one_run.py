"""One release, a hundred thousand subjects who each toss a coin whether to be in it, and a guess about each of them.

If the release is eps-DP, then whatever the guesses are made from, each is right with odds of at most e^eps to 1,
whatever the others are: of r guesses no more are right than of r tosses of such a coin (Steinke, Nasr and Jagielski,
Privacy auditing with one (1) training run, NeurIPS 2023, theorem 5.2 for delta = 0). So the Clopper-Pearson bound of
what was right bounds eps from below, and one map of a whole city is audited at once, with the noise of the operating
system. Where noise is discrete Laplace, the guess "there, if at least 1" attains the odds.
"""

import math
import os

import geopandas as gpd
import numpy as np
import pytest
from sampled_bounds import at_least
from scipy.stats import binom

import geodp
from geodp.mechanisms import DiscreteLaplace

ROWS, COLUMNS = 250, 400
N = ROWS * COLUMNS
ALARM = 1e-8  # that the bound exceeds eps although the release gives away no more
BOX = (0.0, 0.0, COLUMNS / 100, ROWS / 100)


def everybody():
    """One subject in each of the cells, in the order of the map, half of them in each slot."""
    i = np.arange(N)
    places = gpd.points_from_xy((i % COLUMNS + 0.5) / 100, (i // COLUMNS + 0.5) / 100)
    return gpd.GeoDataFrame({"rider": i, "v": np.full(N, 4.0), "hour": i % 2}, geometry=places, crs=4326)


def even(eps):
    """How often the guess is right where it turns between 0 and 1, on the lattice of the noise."""
    return 1 / (1 + math.exp(-eps))


def fine(eps):
    """How often it is right where it turns in the middle of many steps of the lattice, at least."""
    return 1 - 0.501 * math.exp(-eps / 2)


# What is asked, the column that is guessed from, where a guess turns, and how often it is right.
KINDS = {
    "count": ({}, "noisy_count", 1, even),
    "slots": ({"by": {"hour": [0, 1]}}, "noisy_count", 1, even),
    "sum": ({"query": geodp.Sum("v", (0, 4))}, "noisy_sum", 2, fine),
}


def shown(kind, eps):
    """Return the lower bound of eps that one release of this kind shows."""
    asked, column, turn, _ = KINDS[kind]
    where = {"subject": "rider", "cap": 1, "bounds": BOX, "grid": "square:0.01", "return_geometry": False}
    coins = np.unpackbits(np.frombuffer(os.urandom(N // 8), np.uint8)).astype(bool)
    frame = geodp.plan(eps, **where, **asked).release(everybody()[coins])
    own = np.arange(N) * 2 + np.arange(N) % 2 if kind == "slots" else np.arange(N)
    right = int(((frame[column].to_numpy()[own] >= turn) == coins).sum())
    p = at_least(right, N, ALARM)
    return math.log(p / (1 - p))


def reached(p):
    """Return the bound that guesses reach which are right with probability p, but for one run in 10^9."""
    least = at_least(int(binom.ppf(1e-9, N, p)), N, ALARM)
    return math.log(least / (1 - least))


@pytest.mark.sampled(rate=1.1e-8)
@pytest.mark.parametrize("eps", [0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_one_map_of_a_city_gives_away_no_more_than_eps(kind, eps):
    least = reached(KINDS[kind][-1](eps))
    found = shown(kind, eps)
    print(f"{kind}: eps measured >= {found:.3f}, claimed {eps}; one release of {N:,} cells")
    assert least <= found <= eps
    assert least > (0.7 if kind == "sum" else 0.8) * eps


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.parametrize("kind", ["count", "slots", "sum"])
def test_noise_at_70_percent_is_seen_in_one_release(kind, monkeypatch):
    from geodp.mechanisms import laws

    honest = laws.laplace_inversion
    monkeypatch.setattr(DiscreteLaplace, "_inversion", lambda self: honest(0.7 * self.scale))
    assert reached(KINDS[kind][-1](1 / 0.7)) > 1
    assert shown(kind, 1.0) > 1
