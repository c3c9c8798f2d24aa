"""A private heatmap against non-private tools, in one run: time ratios and peak memory.

    python benchmarks/heatmap.py                 1 M points, 100 k string subjects, cap 4, H3 9 (a minute)
    python benchmarks/heatmap.py --points 1e7    10 M points

Rounds take turns, so that a slow moment of the machine hits everybody; medians are compared. The private
release does what the others do not: it protects every subject, counts each at most four times, adds
noise, returns every cell, empty or not, and outlines for all of them. H3-Pandas needs ``pip install
"geodp[bench]"``; without it that row is left out.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import geopandas as gpd
import h3
import numpy as np
import pandas as pd

import geodp

NYC = (-74.3, 40.4, -73.6, 41.0)


def make_trips(n: int, subjects: int) -> gpd.GeoDataFrame:
    """Return points around New York under string ids."""
    rng = np.random.default_rng(0)
    lon = np.clip(rng.normal(-73.97, 0.1, n), -74.29, -73.61)
    lat = np.clip(rng.normal(40.75, 0.1, n), 40.41, 40.99)
    riders = pd.Series([f"rider{i:07d}" for i in range(subjects)])[rng.integers(0, subjects, n)]
    return gpd.GeoDataFrame({"rider": riders.to_numpy()}, geometry=gpd.points_from_xy(lon, lat), crs=4326)


def release(trips: gpd.GeoDataFrame, grid: str) -> gpd.GeoDataFrame:
    """Release the private map, outlines included."""
    return trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=NYC, grid=grid)


def bare(trips: gpd.GeoDataFrame) -> list[str]:
    """Index the same coordinates and nothing else."""
    x, y = trips.geometry.x, trips.geometry.y
    return [h3.latlng_to_cell(lat, lon, 9) for lat, lon in zip(y, x, strict=True)]


def h3_pandas(trips: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Aggregate with H3-Pandas: occupied cells only, no protection."""
    return trips[["geometry"]].assign(n=1).h3.geo_to_h3_aggregate(9, operation="sum", return_geometry=True)


def histogram(trips: gpd.GeoDataFrame) -> np.ndarray:
    """Bin the same coordinates on the same squares, without subjects."""
    bins = [np.linspace(NYC[0], NYC[2], 351), np.linspace(NYC[1], NYC[3], 301)]
    return np.histogram2d(trips.geometry.x, trips.geometry.y, bins)[0]


def fresh(grid: str, trips: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Release with nothing kept from earlier releases: domain and outlines are built anew."""
    from geodp.grids import h3 as h3_grid
    from geodp.grids import square

    for module in (h3_grid, square):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    return release(trips, grid)


def race(runners: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return each runner's median seconds over rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(points: int, subjects: int) -> str:
    """Return the peak memory of one process that makes the points and releases the map."""
    code = (
        f"import benchmarks.heatmap as b; t = b.make_trips({points}, {subjects}); before = b.rss();"
        "b.release(t, 'h3:9'); print(before, b.rss())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=".")
    before, after = (float(v) for v in out.stdout.split())
    return f"{after:.2f} GB at the peak, {before:.2f} GB before the release (frame and points)"


def rss() -> float:
    """Return the peak resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=float, default=1e6)
    parser.add_argument("--subjects", type=float, default=1e5)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    points, subjects = int(given.points), int(given.subjects)
    trips = make_trips(points, subjects)
    runners: dict[str, Callable[[], object]] = {
        "geodp, h3:9, first release": lambda: fresh("h3:9", trips),
        "geodp, h3:9, next release": lambda: release(trips, "h3:9"),
        "bare h3.latlng_to_cell": lambda: bare(trips),
        "geodp, square:0.002, first": lambda: fresh("square:0.002", trips),
        "geodp, square:0.002, next": lambda: release(trips, "square:0.002"),
        "numpy.histogram2d": lambda: histogram(trips),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import h3pandas  # noqa: F401

            runners["H3-Pandas geo_to_h3_aggregate"] = lambda: h3_pandas(trips)
        except ImportError:
            print('H3-Pandas is not installed: pip install "geodp[bench]"')
        seconds = race(runners, given.rounds)
    print(
        f"geodp {geodp.__version__}, {points:,} points, {subjects:,} subjects, median of {given.rounds} rounds"
    )
    for name, value in seconds.items():
        others = {"bare": "bare h3.latlng_to_cell", "H3-Pandas": "H3-Pandas geo_to_h3_aggregate"}
        ratios = [f"{value / seconds[o]:.2f} x {short}" for short, o in others.items() if o in seconds]
        if "square" in name:
            ratios.append(f"{value / seconds['numpy.histogram2d']:.2f} x histogram2d")
        print(f"{name:32} {value:8.3f} s   {', '.join(ratios)}")
    print("memory:", peak_memory(points, subjects))


if __name__ == "__main__":
    main()
