"""How time and memory of a release grow: with points, cells, the cap and subjects; exponents are fitted.

    python -m benchmarks.growth                  up to 10 M points and 5 M cells (half an hour)
    python -m benchmarks.growth --most 1e6       smaller, four minutes
    python -m benchmarks.growth points cells     some of it
    python -m benchmarks.growth cells --keep     with memory that processes keep once they have it

Each line changes one thing: 1 M points, 100,000 subjects, cap 4, H3 9 around New York (38,000 cells) unless it
says otherwise. Times are processor seconds of a whole release without a bar, outlines included; domains are
built anew where cells grow and known elsewhere, as for the second map of a night. Each size has a process of
its own in every round, all sizes take turns, and the best round counts: in one process a small release finds
the memory that a large one left, while the large one fetches its own from the system. In a process the second
release is timed, and memory is what the first takes at its peak beyond frame, plan and outlines.

``p`` is fitted to time = a + b * size**p, with a and b not negative, by least squares of relative errors, and
``slope`` to the larger half of the sizes as a straight line of logarithms. Bar: both at most 1.05.

From some millions of cells on, each array is larger than what glibc keeps (32 MB), and the system hands out
its pages one by one, every time: a cost per cell that smaller maps do not have. ``--keep`` takes it away from
all sizes, and shows how geodp's own work grows.
"""

import argparse
import os
import time
import warnings
from collections.abc import Sequence

import geopandas as gpd
import numpy as np
import pandas as pd
from scipy.optimize import nnls

import geodp
from benchmarks.measuring import apart, reset_peak, resident
from geodp.grids import h3, square

NYC = (-74.3, 40.4, -73.6, 41.0)
BAR = 1.05
KEEPING = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}

Sizes = Sequence[int]


def make(points: int, subjects: int) -> gpd.GeoDataFrame:
    """Return points around New York under string ids."""
    rng = np.random.default_rng(0)
    lon = np.clip(rng.normal(-73.97, 0.1, points), -74.29, -73.61)
    lat = np.clip(rng.normal(40.75, 0.1, points), 40.41, 40.99)
    riders = pd.Series([f"rider{i:07d}" for i in range(subjects)])
    frame = {"rider": riders.take(rng.integers(0, subjects, points)).to_numpy()}
    return gpd.GeoDataFrame(frame, geometry=gpd.points_from_xy(lon, lat), crs=4326)


def planned(grid: str = "h3:9", cap: int = 4) -> geodp.Plan:
    """Return the plan of the map."""
    return geodp.plan(1.0, 1e-6, subject="rider", cap=cap, bounds=NYC, grid=grid)


def release(frame: gpd.GeoDataFrame, grid: str, cap: int, anew: bool) -> tuple[float, float]:
    """Release the map, and return the processor seconds that it takes, and those by the clock.

    Anew: with a domain and outlines that nobody built before.
    """
    if anew:
        h3._domain.cache_clear()
        square._domain.cache_clear()
    clock, processor = time.perf_counter(), time.process_time()
    planned(grid, cap).release(frame, progress=False)
    return time.process_time() - processor, time.perf_counter() - clock


def measured(points: int, subjects: int, grid: str, cap: int, anew: bool) -> list[float]:
    """Return both times of a release, and the bytes that it takes beyond all that there was before it."""
    frame = make(points, subjects)
    warm = "h3:7" if anew else grid
    planned(warm, cap).release(frame.iloc[:1000], progress=False)
    reset_peak()
    before = resident()
    release(frame, grid, cap, anew)
    peak = resident(peak=True) - before
    return [*release(frame, grid, cap, anew), peak]


def fitted(sizes: Sizes, seconds: Sequence[float]) -> float:
    """Return the p of time = a + b * size**p that fits best; a and b are not negative.

    Examples
    --------
    >>> round(fitted([1000, 10_000, 100_000, 1_000_000], [1.001, 1.01, 1.1, 2.0]), 2)
    1.0
    """
    size, time = np.array(sizes, float) / sizes[-1], np.array(seconds)
    tried = np.arange(0.0, 2.0, 0.005)
    return float(tried[int(np.argmin([_misfit(size**p, time) for p in tried]))])


def _misfit(power: np.ndarray, time: np.ndarray) -> float:
    columns = np.column_stack([np.ones_like(power), power]) / time[:, None]
    found, _ = nnls(columns, np.ones(len(columns)))
    return float(np.sum((columns @ found - 1.0) ** 2))


def slope(sizes: Sizes, seconds: Sequence[float]) -> float:
    """Return the slope of log(time) over log(size), for the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def report(name: str, sizes: Sizes, call: str, rounds: int) -> None:
    """Measure all sizes and print them, with the exponent; ``call`` has SIZE where the size stands."""
    best = {size: [np.inf] * 3 for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            found = apart("benchmarks.growth", f"measured({call.replace('SIZE', str(size))})")
            best[size] = [min(pair) for pair in zip(best[size], found, strict=True)]
    print(f"\n{name:>12}{'seconds':>10}{'by the clock':>14}{'MB':>8}{'bytes each':>12}")
    each = name in ("points", "cells")
    for size, (second, clock, extra) in best.items():
        share = f"{extra / size:12.0f}" if each else ""
        print(f"{size:12,}{second:10.3f}{clock:14.3f}{extra / 1e6:8.0f}{share}", flush=True)
    seconds = [second for second, _, _ in best.values()]
    found = {"slope": slope(sizes, seconds)} | ({"p": fitted(sizes, seconds)} if each else {})
    for word, value in found.items():
        print(
            f"{word:>12}{value:10.2f}   {'within' if value <= BAR else 'above'} the bar of {BAR}", flush=True
        )


def of_points(most: int, grid: str, rounds: int) -> None:
    """Change the number of points."""
    sizes = [n for n in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= most]
    print(f"\n{grid}, {planned(grid).n_cells:,} cells", end="", flush=True)
    report("points", sizes, f"SIZE, 100_000, {grid!r}, 4, False", rounds)


def of_cells(most: int, grids: dict[int, str], rounds: int) -> None:
    """Change the number of cells, under 100,000 points."""
    by_size = {planned(grid).n_cells: grid for size, grid in grids.items() if size <= most}
    print("\n" + ", ".join(by_size.values()), end="", flush=True)
    report("cells", list(by_size), f"100_000, 10_000, {by_size!r}[SIZE], 4, True", rounds)


def of_caps(most: int, rounds: int) -> None:
    """Change the cap: 10,000 subjects with 100 points each."""
    n = min(most, 1_000_000)
    print(f"\n{n:,} points, {n // 100:,} subjects", end="", flush=True)
    report("cap", [1, 2, 4, 8, 16, 32, 64], f"{n}, {n // 100}, 'h3:9', SIZE, False", rounds)


def of_subjects(most: int, rounds: int) -> None:
    """Change the number of subjects of 1 M points."""
    n = min(most, 1_000_000)
    sizes = [size for size in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000) if size <= n]
    print(f"\n{n:,} points", end="", flush=True)
    report("subjects", sizes, f"{n}, SIZE, 'h3:9', 4, False", rounds)


H3_CELLS = {1_000: "h3:7", 5_000: "h3:8", 38_000: "h3:9", 262_000: "h3:10", 1_830_000: "h3:11"}
SQUARES = {
    1_050: "square:0.02",
    10_500: "square:0.00632",
    105_000: "square:0.002",
    1_000_000: "square:0.00065",
}
SQUARES[5_000_000] = "square:0.00029"


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = ("points", "cells", "caps", "subjects")
    parser.add_argument("what", nargs="*", choices=[*known, []], default=[])
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    most = int(given.most)
    if given.keep:
        os.environ |= KEEPING
    how = ", memory kept" if given.keep else ""
    print(f"geodp {geodp.__version__}, best of {given.rounds} rounds{how}")
    for what in given.what or known:
        if what == "points":
            for grid in ("h3:9", "square:0.002"):
                of_points(most, grid, given.rounds)
        elif what == "cells":
            for grids in (H3_CELLS, SQUARES):
                of_cells(most, grids, given.rounds)
        elif what == "caps":
            of_caps(most, given.rounds)
        else:
            of_subjects(most, given.rounds)


if __name__ == "__main__":
    main()
