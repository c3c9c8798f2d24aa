"""A private heatmap against non-private tools, in one run: time ratios and peak memory.

    python -m benchmarks.heatmap                 1 M points, 100 k string subjects, cap 4, H3 9 (a minute)
    python -m benchmarks.heatmap --points 1e7    10 M points (ten minutes)

Rounds take turns, so that a slow moment of the machine hits everybody; the best round of each is compared, by the
clock and in processor seconds. The private release does what the others do not: it protects every subject, counts
each at most four times, adds noise, returns every cell, empty or not, and outlines for all of them. H3-Pandas needs
``pip install "geodp[bench]"``; without it that row is left out.

Bars, by the clock on two idle cores: H3 at most 1.25 times the bare h3 comprehension, squares at most 2.5 times
``numpy.histogram2d`` of the same frame, 1 M cells with geometry at most 5 times their bare outlines, and peak memory
beyond frame and plan at most 6 times the coordinates, which are 16 bytes a point.
"""

import argparse
import warnings
from collections.abc import Callable

import geopandas as gpd
import h3
import numpy as np
import pandas as pd
import shapely

import geodp
from benchmarks.measuring import apart, race, reset_peak, resident

NYC = (-74.3, 40.4, -73.6, 41.0)


def make_trips(n: int, subjects: int) -> gpd.GeoDataFrame:
    """Return points around New York under string ids."""
    rng = np.random.default_rng(0)
    lon = np.clip(rng.normal(-73.97, 0.1, n), -74.29, -73.61)
    lat = np.clip(rng.normal(40.75, 0.1, n), 40.41, 40.99)
    riders = pd.Series([f"rider{i:07d}" for i in range(subjects)])[rng.integers(0, subjects, n)]
    return gpd.GeoDataFrame({"rider": riders.to_numpy()}, geometry=gpd.points_from_xy(lon, lat), crs=4326)


def release(trips: gpd.GeoDataFrame, grid: str, bounds: tuple[float, ...] = NYC) -> gpd.GeoDataFrame:
    """Release the private map, outlines included."""
    return trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=bounds, grid=grid, progress=False)


def bare(trips: gpd.GeoDataFrame) -> list[str]:
    """Index the same coordinates and nothing else."""
    x, y = trips.geometry.x, trips.geometry.y
    return [h3.latlng_to_cell(lat, lon, 9) for lat, lon in zip(y, x, strict=True)]


def h3_pandas(trips: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Aggregate with H3-Pandas: occupied cells only, no protection."""
    return trips[["geometry"]].assign(n=1).h3.geo_to_h3_aggregate(9, operation="sum", return_geometry=True)


def histogram(trips: gpd.GeoDataFrame) -> np.ndarray:
    """Bin the same points on the same squares, without subjects."""
    return bare_histogram(trips.geometry.x.to_numpy(), trips.geometry.y.to_numpy())


def bare_histogram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bin coordinates that are arrays already."""
    bins = [np.linspace(NYC[0], NYC[2], 351), np.linspace(NYC[1], NYC[3], 301)]
    return np.histogram2d(x, y, bins)[0]


def bare_outlines(cells: list[str]) -> np.ndarray:
    """Draw cells and nothing else, in bulk."""
    rings = [h3.cell_to_boundary(cell) for cell in cells]
    sizes = np.fromiter(map(len, rings), np.int64, len(rings))
    flat = (number for ring in rings for corner in ring for number in corner)
    corners = np.fromiter(flat, np.float64, 2 * sizes.sum()).reshape(-1, 2)[:, ::-1]
    owner = np.repeat(np.arange(len(rings)), sizes)
    return shapely.polygons(shapely.linearrings(np.ascontiguousarray(corners), indices=owner))


def fresh(grid: str, trips: gpd.GeoDataFrame, bounds: tuple[float, ...] = NYC) -> gpd.GeoDataFrame:
    """Release with nothing kept from earlier releases: domain and outlines are built anew."""
    from geodp.grids import h3 as h3_grid
    from geodp.grids import square

    for module in (h3_grid, square):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    return release(trips, grid, bounds)


def extra_memory(points: int, subjects: int, grid: str) -> list[float]:
    """Return the peak bytes that a release takes beyond the frame and the plan, and those of its result."""
    trips = make_trips(points, subjects)
    release(trips.iloc[:1000], grid)
    reset_peak()
    before = resident()
    result = release(trips, grid)
    return [resident(peak=True) - before, float(result.memory_usage(deep=True).sum())]


def compare(runners: dict[str, Callable[[], object]], rounds: int, others: dict[str, str]) -> None:
    """Print each runner's seconds, and its ratio to the others by the clock and in processor time."""
    took = race(runners, rounds)
    print(f"\n{'':34}{'seconds':>9}{'processor':>11}   by the clock, and in processor time")
    for name, (processor, clock) in took.items():
        ratios = [
            f"{clock / took[other][1]:.2f}, {processor / took[other][0]:.2f} x {words}"
            for other, words in others.items()
            if other in took and name != other and name.startswith("geodp")
        ]
        print(f"{name:34}{clock:9.3f}{processor:11.3f}   {'; '.join(ratios)}", flush=True)


def main() -> None:
    """Run all races and print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=float, default=1e6)
    parser.add_argument("--subjects", type=float, default=1e5)
    parser.add_argument("--cells", type=float, default=1e6)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    points, subjects, rounds = int(given.points), int(given.subjects), given.rounds
    print(f"geodp {geodp.__version__}, {points:,} points, {subjects:,} subjects, best of {rounds} rounds")
    trips = make_trips(points, subjects)
    hexagons(trips, rounds)
    squares(trips, rounds)
    outlines(trips.iloc[:100_000], int(given.cells), rounds)
    for grid in ("h3:9", "square:0.002"):
        extra, result = apart("benchmarks.heatmap", f"extra_memory({points}, {subjects}, {grid!r})")
        print(
            f"memory, {grid}: {extra / 1e6:,.0f} MB at the peak, {extra / (16 * points):.2f} x the coordinates; "
            f"the result is {result / 1e6:,.0f} MB of them"
        )


def hexagons(trips: gpd.GeoDataFrame, rounds: int) -> None:
    """Compare H3 maps."""
    runners: dict[str, Callable[[], object]] = {
        "geodp, h3:9, first release": lambda: fresh("h3:9", trips),
        "geodp, h3:9, next release": lambda: release(trips, "h3:9"),
        "bare h3.latlng_to_cell": lambda: bare(trips),
    }
    try:
        import h3pandas  # noqa: F401

        runners["H3-Pandas geo_to_h3_aggregate"] = lambda: h3_pandas(trips)
    except ImportError:
        print('H3-Pandas is not installed: pip install "geodp[bench]"')
    compare(runners, rounds, {"bare h3.latlng_to_cell": "bare", "H3-Pandas geo_to_h3_aggregate": "H3-Pandas"})


def squares(trips: gpd.GeoDataFrame, rounds: int) -> None:
    """Compare maps of squares."""
    x, y = trips.geometry.x.to_numpy(), trips.geometry.y.to_numpy()
    runners: dict[str, Callable[[], object]] = {
        "geodp, square:0.002, first release": lambda: fresh("square:0.002", trips),
        "geodp, square:0.002, next release": lambda: release(trips, "square:0.002"),
        "numpy.histogram2d of the frame": lambda: histogram(trips),
        "numpy.histogram2d of bare arrays": lambda: bare_histogram(x, y),
    }
    others = {"numpy.histogram2d of the frame": "of the frame", "numpy.histogram2d of bare arrays": "bare"}
    compare(runners, rounds, others)


def outlines(trips: gpd.GeoDataFrame, cells: int, rounds: int) -> None:
    """Compare a map of very many cells with their outlines alone."""
    half = 0.35 * (cells / 1.83e6) ** 0.5
    bounds = (-73.95 - half, 40.7 - half * 6 / 7, -73.95 + half, 40.7 + half * 6 / 7)
    ids = geodp.plan(1, subject="rider", cap=4, bounds=bounds, grid="h3:11").index.tolist()
    name = f"geodp, h3:11, {len(ids):,} cells"
    runners: dict[str, Callable[[], object]] = {
        name: lambda: fresh("h3:11", trips, bounds),
        "bare outlines": lambda: bare_outlines(ids),
    }
    compare(runners, rounds, {"bare outlines": "bare outlines"})


if __name__ == "__main__":
    main()
