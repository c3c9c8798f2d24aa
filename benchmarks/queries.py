"""Sums, means and centroids against a plain private count of the same rows, in one run: ratios of CPU time.

    python benchmarks/queries.py                      1 M rows, 100 k subjects, cap 4 (two minutes)
    python benchmarks/queries.py --points 1e5

Rounds take turns, and medians of processor time are compared, so that a busy machine hits everybody alike.
Two more frames are raced: integer ids, and one where every subject has dozens of rows in the same few cells,
so that nearly all rows have to be ranked.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

import geopandas as gpd
import numpy as np

import geodp
from benchmarks.heatmap import NYC, make_trips

QUERIES = {
    "count": geodp.Count(),
    "sum": geodp.Sum("minutes", (0, 120)),
    "sum, clipped": geodp.Sum("minutes", (0, 120), clip=60),
    "mean": geodp.Mean("minutes", (0, 120)),
    "centroid": geodp.Centroid(),
}


def crowded(trips: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Return the rows under a hundredth of the subjects, at their first four places."""
    n = len(trips)
    riders = np.arange(n) % (n // 1000)
    places = trips.geometry.array[(riders * 4 + np.random.default_rng(2).integers(0, 4, n)) % n]
    return gpd.GeoDataFrame({"rider": riders, "minutes": trips["minutes"]}, geometry=places, crs=4326)


def race(runners: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return each runner's median seconds of processor time over rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    for number in range(rounds + 1):
        for name, run in runners.items():
            start = time.process_time()
            run()
            if number:  # the first round builds domains and outlines
                times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=float, default=1e6)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    trips = make_trips(int(given.points), int(given.points) // 10)
    trips["minutes"] = np.random.default_rng(1).gamma(2, 15, len(trips))
    numbered = trips.assign(rider=trips["rider"].str.slice(5).astype(int))
    frames = {"text ids": trips, "integer ids": numbered, "crowded cells": crowded(trips)}
    print(f"geodp {geodp.__version__}, {len(trips):,} rows, median of {given.rounds} rounds, processor time")
    for grid in ("square:0.01", "h3:8"):
        for kind, frame in frames.items():
            runners = {}
            for name, query in QUERIES.items():
                plan = geodp.plan(1, 1e-6, query=query, subject="rider", cap=4, bounds=NYC, grid=grid)
                runners[name] = partial(plan.release, frame)
            seconds = race(runners, given.rounds)
            parts = (f"{name} {value / seconds['count']:.2f}" for name, value in seconds.items())
            print(f"{grid:12} {kind:14} count {seconds['count']:.2f} s; times a count: {', '.join(parts)}")


if __name__ == "__main__":
    main()
