"""How near do private maps come to the truth? geodp against the field, at equal (eps, delta).

    python benchmarks/accuracy.py                      # small form: under ten minutes on two cores
    python benchmarks/accuracy.py --trials 20 --full   # more eps, more caps, smaller and larger maps
    python benchmarks/accuracy.py --picture accuracy.png

Every method gets the same populations, caps, eps and delta (1e-6), and whichever of Laplace and Gaussian
noise is smaller where its paper leaves the choice. Noise is drawn from a seeded generator, so runs repeat.
Figures are geometric means over configurations (population x eps x cap) of the mean, and of the 95th
percentile, over trials.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from field.dawa import dawa
from field.ghazi import ghazi
from field.measures import NAMES, measures
from field.noise import Array, draw, smaller_noise
from field.populations import REAL, SYNTHETIC, Population
from field.trees import hb, privtree
from field.uniform_grids import ag, ug
from numpy.typing import NDArray

from geodp.estimators import Measured, budget_shares, estimate, to_integers
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.lattice import square_hierarchy
from geodp.mechanisms.calibration import gaussian_sigma, laplace_scale
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian

DELTA = 1e-6
EPS, CAPS = (0.5, 1.0, 2.0), (1, 4, 16)
MORE_EPS, MORE_CAPS = (0.1, 0.25, *EPS, 4.0), (*CAPS, 64)
OURS = ("pyramid", "pyramid, estimate", "shrink", "median", "levels")


@dataclass(frozen=True)
class Task:
    """One configuration: a population, eps and a cap, run ``trials`` times."""

    population: str
    seed: int
    eps: float
    cap: int
    trials: int
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """What one trial gives to a method."""

    rng: np.random.Generator
    counts: Array
    mass: Array
    side: int
    cap: int
    eps: float
    law: Law
    noisy: NDArray[np.int64]


def main() -> None:
    options = _options()
    began = time.perf_counter()
    eps, caps = (MORE_EPS, MORE_CAPS) if options.full else (EPS, CAPS)
    names = [*SYNTHETIC, *REAL] if not options.populations else options.populations
    methods = tuple(METHODS) if not options.methods else tuple(options.methods)
    tasks = [Task(n, options.seed, e, c, options.trials, methods) for n, e, c in product(names, eps, caps)]
    results = dict(run_all(tasks, options.processes))
    for title, group in (("made populations", SYNTHETIC), ("storms and flights", REAL)):
        chosen = {task: result for task, result in results.items() if task.population in group}
        if chosen:
            print(f"\n{title}: {len(chosen)} configurations, {options.trials} trials, seed {options.seed}\n")
            print(table(chosen, methods))
    if options.each:
        for name in names:
            print(f"\n{name}\n\n{table({t: r for t, r in results.items() if t.population == name}, methods)}")
    if options.picture:
        picture(results, methods, options.picture)
    print(f"\n{time.perf_counter() - began:.0f} s")


def run_all(tasks: list[Task], processes: int) -> Iterator[tuple[Task, Array]]:
    """Yield each task with its measures, shape (trials, methods, measures)."""
    if processes == 1:
        yield from ((task, run(task)) for task in tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(tasks, pool.map(run, tasks), strict=True)


def run(task: Task) -> Array:
    """Return the measures of all methods in all trials of one configuration."""
    population = _population(task.population, task.seed)
    full, size = population.full(), population.side**2
    law = smaller_noise(task.eps, DELTA, float(task.cap), float(np.sqrt(task.cap)))
    rng = np.random.default_rng([task.seed, int(task.eps * 1000), task.cap])
    result = np.empty((task.trials, len(task.methods), len(NAMES)))
    for i in range(task.trials):
        kept = population.capped(task.cap, rng)
        counts = np.bincount(population.cell[kept], minlength=size).astype(float)
        mass = _mass(population, kept)
        noisy = (counts + draw(law, rng, size)).astype(np.int64)
        trial = Trial(rng, counts, mass, population.side, task.cap, task.eps, law, noisy)
        for j, method in enumerate(task.methods):
            result[i, j] = measures(METHODS[method](trial), counts, full, population.side, rng)
    return result


def geometric(results: dict[Task, Array], over: Callable[[Array], Array]) -> Array:
    """Geometric mean over configurations of a figure over trials, (methods, measures); recall: plain mean."""
    figures = np.array([over(result) for result in results.values()])
    mean = np.exp(np.log(np.maximum(figures, 1e-9)).mean(axis=0))
    mean[:, NAMES.index("hotspots")] = figures[:, :, NAMES.index("hotspots")].mean(axis=0)
    return mean


def table(results: dict[Task, Array], methods: tuple[str, ...]) -> str:
    """Return a Markdown table: mean over trials, and in brackets the 95th percentile (hotspots: the 5th)."""
    mean = geometric(results, lambda r: r.mean(axis=0))
    bad = geometric(results, _bad)
    digits = {"EMD": 4, "L1": 3, "L2": 3, "hotspots": 3, "KL": 3}
    lines = ["| method | " + " | ".join(NAMES) + " |", "|---" * (len(NAMES) + 1) + "|"]
    for i, method in enumerate(methods):
        cells = [
            f"{mean[i, j]:.{digits[name]}f} ({bad[i, j]:.{digits[name]}f})" for j, name in enumerate(NAMES)
        ]
        lines.append(f"| {'**' + method + '**' if method in OURS else method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(results: dict[Task, Array], methods: tuple[str, ...], path: Path) -> None:
    """Draw each measure as a row of dots, one a method, on a log scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    made = {task: result for task, result in results.items() if task.population in SYNTHETIC} or results
    mean = geometric(made, lambda r: r.mean(axis=0))
    figure, axes = plt.subplots(1, len(NAMES), figsize=(13, 0.32 * len(methods) + 1.2), sharey=True)
    for j, (axis, name) in enumerate(zip(axes, NAMES, strict=True)):
        colours = ["#c2410c" if method in OURS else "#64748b" for method in methods]
        axis.scatter(mean[:, j], range(len(methods)), c=colours, s=36)
        axis.set_title(f"{name} ({'higher' if name == 'hotspots' else 'lower'} is better)", fontsize=9)
        if name != "hotspots":
            axis.set_xscale("log")
        axis.grid(axis="x", which="both", alpha=0.25)
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def _bad(result: Array) -> Array:
    high = np.percentile(result, 95, axis=0)
    high[:, NAMES.index("hotspots")] = np.percentile(result[:, :, NAMES.index("hotspots")], 5, axis=0)
    return high


@cache
def _population(name: str, seed: int) -> Population:
    return {**SYNTHETIC, **REAL}[name](seed)


@cache
def _hierarchy(side: int) -> Hierarchy:
    return square_hierarchy(*np.divmod(np.arange(side * side), side))


def _mass(population: Population, kept: NDArray[np.int64]) -> Array:
    """Return the map where every subject's kept cells share mass 1."""
    cells_of = np.bincount(population.subject[kept])
    weight = 1 / cells_of[population.subject[kept]]
    return np.bincount(population.cell[kept], weight, minlength=population.side**2)


def _laplace(trial: Trial) -> Array:
    law = DiscreteLaplace(laplace_scale(float(trial.cap), trial.eps))
    return np.maximum(trial.counts + draw(law, trial.rng, trial.counts.shape), 0)


def _gaussian(trial: Trial) -> Array:
    law = RoundedGaussian(gaussian_sigma(float(np.sqrt(trial.cap)), trial.eps, DELTA))
    return np.maximum(trial.counts + draw(law, trial.rng, trial.counts.shape), 0)


def _ours(name: str, whole: bool) -> Callable[[Trial], Array]:
    """Return the released column of one of our estimators, from the trial's one noisy map."""

    def method(trial: Trial) -> Array:
        hierarchy = _hierarchy(trial.side)
        found = estimate(trial.noisy, trial.law, name, hierarchy)
        return to_integers(found, hierarchy.order).astype(float) if whole else found

    return method


def _levels(trial: Trial) -> Array:
    """``strategy="levels"``: part of the budget on coarse blocks, the mechanism of smaller cell noise."""
    hierarchy = _hierarchy(trial.side)
    law, block_laws = min(
        (_level_laws(kind, trial) for kind in ("laplace", "gaussian")), key=lambda x: x[0].std
    )
    noisy = (trial.counts + draw(law, trial.rng, trial.counts.shape)).astype(np.int64)
    measured = []
    for block, block_law in zip(hierarchy.blocks, block_laws, strict=True):
        true = np.bincount(block, trial.counts)
        total = (
            None if block_law is None else (true + draw(block_law, trial.rng, true.shape)).astype(np.int64)
        )
        measured.append(None if block_law is None or total is None else Measured(total, block_law))
    return to_integers(estimate(noisy, law, "pyramid", hierarchy, measured), hierarchy.order).astype(float)


def _level_laws(kind: str, trial: Trial) -> tuple[Law, list[Law | None]]:
    """Return the laws of cells and blocks; a block of capped cells moves by the whole cap."""
    cap, eps, blocks = float(trial.cap), trial.eps, _hierarchy(trial.side).blocks

    def law(share: float, l2: float) -> Law:
        if kind == "laplace":
            return DiscreteLaplace(laplace_scale(cap, eps * share))
        return RoundedGaussian(gaussian_sigma(l2, eps, DELTA) / np.sqrt(share))

    flat = law(1.0, np.sqrt(cap))
    counts = tuple(int(block.max()) + 1 for block in blocks)
    shares = budget_shares(flat.std, kind, trial.cap, trial.side**2, counts)
    coarse = [law(float(share), cap) if share else None for share in shares.blocks]
    return law(float(shares.cells), np.sqrt(cap)), coarse


def _peer(function: Callable[..., Array]) -> Callable[[Trial], Array]:
    return lambda t: function(t.rng, t.counts, t.side, t.cap, t.eps, DELTA)


METHODS: dict[str, Callable[[Trial], Array]] = {
    "Laplace, clamped": _laplace,
    "Gaussian, clamped": _gaussian,
    "smaller noise, clamped": lambda t: np.maximum(t.noisy, 0).astype(float),
    "norm-sub": _ours("norm_sub", False),
    "UG": _peer(ug),
    "AG": _peer(ag),
    "HB": _peer(hb),
    "DAWA": _peer(dawa),
    "Ghazi et al.": lambda t: ghazi(t.rng, t.mass, float(t.counts.sum()), t.side, t.cap, t.eps),
    "PrivTree": _peer(privtree),
    "shrink": _ours("shrink", True),
    "median": _ours("median", True),
    "pyramid": _ours("pyramid", True),
    "pyramid, estimate": _ours("pyramid", False),
    "levels": _levels,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="geodp against the field, at equal (eps, delta).")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the populations, caps and noise")
    parser.add_argument("--full", action="store_true", help="eps 0.1 to 4, caps up to 64")
    parser.add_argument("--each", action="store_true", help="one table for each population too")
    parser.add_argument("--populations", nargs="+", choices=[*SYNTHETIC, *REAL])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="where to draw the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
