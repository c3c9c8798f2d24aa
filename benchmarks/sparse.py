"""Sparse maps: what a release costs when the domain grows and the points stay, in one run.

    python benchmarks/sparse.py                  1 M points, H3 5 to 15 over the whole world (two minutes)
    python benchmarks/sparse.py --points 1e5

Points lie around 200 places, so that some cells are full and most are not. Resolutions take turns, so that
a slow moment of the machine hits all of them; medians are compared. Bar: resolution 12, 1.7 x 10^12 cells, at
most 1.5 times resolution 7. Memory is that of one process for each resolution.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
import warnings

import geopandas as gpd
import numpy as np

import geodp

RESOLUTIONS = (5, 7, 9, 12, 15)


def make_points(n: int, subjects: int) -> gpd.GeoDataFrame:
    """Return points of people around places all over the world."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 200, n)
    lon, lat = rng.uniform(-180, 180, 200)[place], rng.uniform(-60, 70, 200)[place]
    lon, lat = lon + rng.normal(0, 0.3, n), lat + rng.normal(0, 0.3, n)
    riders = rng.integers(0, subjects, n)
    return gpd.GeoDataFrame({"rider": riders}, geometry=gpd.points_from_xy(lon, lat), crs=4326)


def release(points: gpd.GeoDataFrame, resolution: int, **more: object) -> gpd.GeoDataFrame:
    """Release the sparse map of the whole world, outlines included."""
    world = {"bounds": (-180, -90, 180, 90), "grid": f"h3:{resolution}", "cells": "sparse"}
    return points.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, **world, **more)


def peak(points: int, subjects: int, resolution: int) -> float:
    """Return the peak memory of one process that releases one map, in GB; resolution -1 only makes the points."""
    call = "" if resolution < 0 else f"b.release(p, {resolution});"
    code = f"import benchmarks.sparse as b; p = b.make_points({points}, {subjects}); {call} print(b.rss())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=".")
    return float(out.stdout)


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
    people = make_points(points, subjects)
    seconds: dict[int, list[float]] = {resolution: [] for resolution in RESOLUTIONS}
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(given.rounds):
            for resolution in RESOLUTIONS:
                start = time.perf_counter()
                rows[resolution] = len(release(people, resolution))
                seconds[resolution].append(time.perf_counter() - start)
        many = []
        for phantoms in (1e4, 1e5):
            start = time.perf_counter()
            found = len(release(people, 12, phantoms=phantoms))
            many.append((phantoms, found, time.perf_counter() - start))
    print(
        f"geodp {geodp.__version__}, {points:,} points, {subjects:,} subjects, median of {given.rounds} rounds"
    )
    base = statistics.median(seconds[7])
    print(f"{'':9}{'cells':>22}{'released':>10}{'seconds':>9}{'x res 7':>9}{'peak GB':>9}")
    for resolution, times in seconds.items():
        cells = geodp.plan(
            1, subject="rider", cap=4, bounds=(-180, -90, 180, 90), grid=f"h3:{resolution}", cells="sparse"
        ).n_cells
        median, memory = statistics.median(times), peak(points, subjects, resolution)
        print(
            f"h3:{resolution:<6}{cells:22,}{rows[resolution]:10,}{median:9.2f}{median / base:9.2f}{memory:9.2f}"
        )
    print(f"points alone: {peak(points, subjects, -1):.2f} GB")
    for phantoms, found, took in many:
        print(f"h3:12, {phantoms:,.0f} phantoms: {found:,} rows in {took:.2f} s")


if __name__ == "__main__":
    main()
