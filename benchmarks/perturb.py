"""Single positions moved with geodp.perturb against plain planar Laplace in numpy, in one run.

    python benchmarks/perturb.py                 1 M points of 100 k subjects (half a minute)
    python benchmarks/perturb.py --points 1e5

The plain way draws a radius from a gamma law and a bearing, shifts degrees, and makes points. It has floating-point
residue in its coordinates, a seedable generator, a plane for an Earth, and no limit on reports; geodp reads
subjects, limits their reports, solves the spherical law, snaps, and asks the operating system for its bits.
Both start from a GeoDataFrame and end in one. Rounds take turns and medians are compared: of wall clock, and
of processor time, which other work on the machine changes less.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import geopandas as gpd
import numpy as np

import geodp

EPS_PER_KM = 1
Seconds = tuple[float, float]


def make_reports(n: int, subjects: int) -> gpd.GeoDataFrame:
    """Return points around Lisbon under integer ids."""
    rng = np.random.default_rng(0)
    points = gpd.points_from_xy(rng.normal(-9.14, 0.1, n), rng.normal(38.72, 0.1, n))
    return gpd.GeoDataFrame({"rider": rng.integers(0, subjects, n)}, geometry=points, crs=4326)


def moved(reports: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Move every point with geodp, at most 20 of one subject."""
    return reports.dp.perturb(EPS_PER_KM, subject="rider", max_reports=20)


def plain(reports: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Move every point by planar Laplace noise in numpy."""
    rng = np.random.default_rng()
    lon, lat = reports.geometry.x.to_numpy(), reports.geometry.y.to_numpy()
    radius = rng.gamma(2, 1 / EPS_PER_KM, len(reports)) / 111.32
    bearing = rng.uniform(0, 2 * np.pi, len(reports))
    x = lon + radius * np.sin(bearing) / np.cos(np.radians(lat))
    y = lat + radius * np.cos(bearing)
    return gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y), crs=4326)


def noted(reports: gpd.GeoDataFrame) -> Callable[[], object]:
    """Return a run that also notes and stores the points in a ledger, under a new label each time."""
    folder = tempfile.TemporaryDirectory()
    ledger = geodp.Ledger(Path(folder.name) / "city.ledger", eps=1)
    labels = iter(range(10**6))

    def run(_folder: object = folder) -> object:
        given = {"ledger": ledger, "label": f"round {next(labels)}"}
        return reports.dp.perturb(EPS_PER_KM, subject="rider", max_reports=20, **given)

    return run


def race(runners: dict[str, Callable[[], object]], rounds: int) -> dict[str, Seconds]:
    """Return each runner's median wall and processor seconds over rounds in which all take turns."""
    times: dict[str, list[Seconds]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            wall, used = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - wall, time.process_time() - used))
    return {name: (median(v, 0), median(v, 1)) for name, v in times.items()}


def median(values: list[Seconds], part: int) -> float:
    return statistics.median(value[part] for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=float, default=1e6)
    parser.add_argument("--subjects", type=float, default=1e5)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    points = int(given.points)
    reports = make_reports(points, int(given.subjects))
    seconds = race(
        {
            "plain numpy planar Laplace": lambda: plain(reports),
            "geodp.perturb": lambda: moved(reports),
            "geodp.perturb with a ledger": noted(reports),
        },
        given.rounds,
    )
    base = seconds["plain numpy planar Laplace"]
    print(
        f"geodp {geodp.__version__}, {points:,} points, median of {given.rounds} rounds, per million points"
    )
    for name, (wall, used) in seconds.items():
        print(
            f"{name:30} {wall * 1e6 / points:6.2f} s wall, {used * 1e6 / points:5.2f} s processor; "
            f"{wall / base[0]:.1f} x and {used / base[1]:.1f} x plain"
        )


if __name__ == "__main__":
    main()
