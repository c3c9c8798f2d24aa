"""The accuracy bars: geodp against the field on populations and seeds that nothing was tuned on.

Run with ``pytest -m accuracy``. Populations, caps and noise are seeded, so a run repeats to the last bits
and its false-alarm rate is zero: a failure is a change of the code. The seed was not used for tuning.
Under other seeds the ratios move by about 3 % (EMD: 8 %), most of it from the one city a seed draws, so
the bar of 1.45 against PrivTree, the nearest, would fail for about one seed in twenty.
"""

import math
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from geodp.estimators import estimate, to_integers

# benchmarks/ is on the path for this import only: it holds a dask.py, which is not the dask that others mean.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
accuracy = pytest.importorskip("accuracy", reason="benchmarks/ are not part of the installed package")
sys.path.pop(0)

pytestmark = pytest.mark.accuracy

SEED, TRIALS = 2027, 5
METHODS = ("Laplace, clamped", "smaller noise, clamped", "PrivTree", "pyramid", "levels")


@cache
def results():
    tasks = [
        accuracy.Task(name, SEED, eps, cap, TRIALS, METHODS)
        for name in accuracy.SYNTHETIC
        for eps in accuracy.EPS
        for cap in accuracy.CAPS
    ]
    return {task: result.mean(axis=0) for task, result in accuracy.run_all(tasks, 2)}


def ratio(measure, peer, ours):
    """How many times lower than the peer's, as a geometric mean over configurations."""
    j, a, b = accuracy.NAMES.index(measure), METHODS.index(peer), METHODS.index(ours)
    return float(np.exp(np.mean([math.log(mean[a, j] / mean[b, j]) for mean in results().values()])))


@pytest.mark.parametrize(
    ("measure", "peer", "ours", "bar"),
    [
        ("L1", "Laplace, clamped", "pyramid", 3.3),
        ("L1", "smaller noise, clamped", "pyramid", 3.3),
        ("L2", "Laplace, clamped", "pyramid", 2.6),
        ("L2", "smaller noise, clamped", "pyramid", 2.6),
        ("L1", "PrivTree", "pyramid", 1.45),
        ("L2", "PrivTree", "pyramid", 1.65),
        ("EMD", "PrivTree", "pyramid", 0.65),
        ("EMD", "PrivTree", "levels", 0.95),
        ("L1", "PrivTree", "levels", 1.3),
        ("L2", "PrivTree", "levels", 1.45),
    ],
)
def test_bars(measure, peer, ours, bar):
    assert ratio(measure, peer, ours) >= bar


def test_never_worse_than_its_own_clamping():
    j, own, ours = (
        accuracy.NAMES.index("L2"),
        METHODS.index("smaller noise, clamped"),
        METHODS.index("pyramid"),
    )
    worst = max(mean[ours, j] / mean[own, j] for mean in results().values())
    assert worst <= 1.02


@pytest.mark.parametrize(("side", "bar"), [(8, 1.10), (12, 1.10), (15, 1.02), (20, 1.02), (26, 1.02)])
@pytest.mark.parametrize(("eps", "cap"), [(0.5, 16), (1.0, 4), (2.0, 1)])
def test_small_maps(side, bar, eps, cap):
    """From 200 cells on, at most 1.02 times the L2 error of clamping the same numbers; from 50 on, 1.10.

    One corner is excused: noise below one unit (eps 2, cap 1: std 0.6) on dense small maps. There the rule
    that whole numbers keep the total within one std by itself costs up to 5 %.
    """
    law = accuracy.smaller_noise(eps, accuracy.DELTA, float(cap), math.sqrt(cap))
    rng, worst = np.random.default_rng(SEED), 0.0
    for name in ("city", "heavy", "uniform"):
        population = accuracy.SYNTHETIC[name](SEED, side, 2000)
        errors = []
        for _ in range(10):
            kept = population.capped(cap, rng)
            true = np.bincount(population.cell[kept], minlength=side * side)
            noisy = (true + accuracy.draw(law, rng, side * side)).astype(np.int64)
            hierarchy = accuracy._hierarchy(side)
            count = to_integers(estimate(noisy, law, "pyramid", hierarchy), hierarchy.order)
            errors.append([np.linalg.norm(count - true), np.linalg.norm(np.maximum(noisy, 0) - true)])
        ours, clamped = np.mean(errors, axis=0)
        worst = max(worst, ours / clamped)
    assert worst <= (max(bar, 1.06) if law.std < 1 else bar)


def test_the_benchmark_tells_methods_apart():
    """A planted bug must show: estimates of another map lose against clamping."""
    task = accuracy.Task("city", SEED, 1.0, 4, 1, ("smaller noise, clamped",))
    shuffled = accuracy._ours("pyramid", True)
    population = accuracy._population("city", SEED)
    rng = np.random.default_rng(1)
    counts = np.bincount(population.cell[population.capped(4, rng)], minlength=population.side**2).astype(
        float
    )
    law = accuracy.smaller_noise(1.0, accuracy.DELTA, 4.0, 2.0)
    noisy = (counts + accuracy.draw(law, rng, counts.shape)).astype(np.int64)[::-1].copy()
    trial = accuracy.Trial(rng, counts, counts, population.side, 4, 1.0, law, noisy)
    wrong = accuracy.measures(shuffled(trial), counts, population.full(), population.side, rng)
    right = accuracy.run(task)[0, 0]
    assert wrong[1] > 2 * right[1]
