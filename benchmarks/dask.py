"""Points from GeoParquet on two workers of 4 GB each, against the same files in memory, in one run.

    python benchmarks/dask.py                    1 M points (half a minute)
    python benchmarks/dask.py --points 1e6 1e7   linear? cost per point of both ways, and their ratio
    python benchmarks/dask.py --points 1e8       100 M points in 100 files
    python benchmarks/dask.py --points 1e7 --points-per-rider 2
                                                 as many riders in each file as 100 M points have in theirs

Both ways read, place, cap and release the same files (H3 9, cap 4, string ids, one subject for 20 points). In
memory that is one process; it stops at ``--memory-points``. The cluster's cost is told twice: by the clock, and as
processor time of both workers together; each has its ratio to memory. ``peak`` is the most that one worker ever held.

More points in files of one size are more riders in each file and fewer rows of each: less falls together before it
travels, up to where every row does. That is no growth with points; ``--points-per-rider`` tells the two apart.
"""

# ruff: noqa: E402

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

# This file has the name of a package that it needs.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

import dask_geopandas
import geopandas as gpd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import geodp.dask  # noqa: F401 (registers ddf.dp)

NYC = (-74.3, 40.4, -73.6, 41.0)
SETTING = {"subject": "rider", "cap": 4, "bounds": NYC, "grid": "h3:9"}
COLUMNS = ["rider", "geometry"]


def write_files(folder: Path, points: int, rows_per_file: int, points_per_rider: int) -> None:
    """Write trips around New York, each rider's scattered over all files."""
    riders = max(1, points // points_per_rider)
    for i, first in enumerate(range(0, points, rows_per_file)):
        n = min(rows_per_file, points - first)
        rng = np.random.default_rng(i)
        lon = np.clip(rng.normal(-73.97, 0.1, n), -74.29, -73.61)
        lat = np.clip(rng.normal(40.75, 0.1, n), 40.41, 40.99)
        numbers = pd.Series(rng.integers(0, riders, n)).astype(str).str.zfill(8)
        columns = {"rider": "r" + numbers}
        frame = gpd.GeoDataFrame(columns, geometry=gpd.points_from_xy(lon, lat), crs=4326)
        frame.to_parquet(folder / f"{i:05d}.parquet")


def in_memory(folder: Path) -> tuple[float, float]:
    """Return the seconds of the release from one frame, reading included: by the clock, and of the processor."""
    start, processor = time.perf_counter(), time.process_time()
    frames = [gpd.read_parquet(path, columns=COLUMNS) for path in sorted(folder.glob("*.parquet"))]
    pd.concat(frames, ignore_index=True).dp.heatmap(1.0, 1e-6, **SETTING)
    return time.perf_counter() - start, time.process_time() - processor


def on_workers(folder: Path) -> float:
    """Return the seconds of the release from partitions, reading included."""
    start = time.perf_counter()
    trips = dask_geopandas.read_parquet(
        f"{folder}/*.parquet", columns=COLUMNS, gather_spatial_partitions=False
    )
    trips.dp.heatmap(1.0, 1e-6, **SETTING)
    return time.perf_counter() - start


def used() -> tuple[float, float]:
    """Return this process's processor seconds and its largest size in GB."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return sum(os.times()[:2]), spent.ru_maxrss / 1e6


def processor_seconds(client: Client) -> float:
    """Return the processor seconds of all workers so far."""
    return sum(seconds for seconds, _ in client.run(used).values())


def measure(points: int, client: Client, options: argparse.Namespace) -> None:
    """Print one line: cost per million points."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_files(folder, points, options.rows_per_file, options.points_per_rider)
        before = processor_seconds(client)
        clock = on_workers(folder)
        processor = processor_seconds(client) - before
        peak = max(size for _, size in client.run(used).values())
        alone = in_memory(folder) if points <= options.memory_points else (float("nan"),) * 2
    seconds = [1e6 / points * second for second in (clock, alone[0], processor, alone[1])]
    figures = (*seconds, clock / alone[0], processor / alone[1], peak)
    print(f"{points:>12,} " + " ".join(f"{figure:>10.2f}" for figure in figures), flush=True)


def main() -> None:
    """Measure every size that was asked for, on one cluster."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=float, nargs="+", default=[1e6])
    parser.add_argument("--rows-per-file", type=int, default=1_000_000)
    parser.add_argument("--points-per-rider", type=int, default=20)
    parser.add_argument("--memory-points", type=float, default=1e7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="4GB")
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=options.memory_limit,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as warm,
    ):
        write_files(Path(warm), 2000, 1000, 20)
        on_workers(Path(warm))
        in_memory(Path(warm))
        print(
            "seconds for a million points by the clock and of processors: two workers, memory, and their ratio"
        )
        names = ("points", "clock", "memory", "processor", "memory", "ratio", "ratio", "peak GB")
        print(f"{names[0]:>12} " + " ".join(f"{name:>10}" for name in names[1:]), flush=True)
        for points in options.points:
            measure(int(points), client, options)


if __name__ == "__main__":
    main()
