"""Zones against geopandas.sjoin: the same points and polygons, in one run.

    python benchmarks/zones.py            1,000,000 points in 3,000 and 30,000 zones
    python benchmarks/zones.py 200000     fewer points

``sjoin`` is handed finished Point objects; geodp starts from the same objects, reads their coordinates and
locates them. Both are timed with their index still to be built ("first") and once more ("again").
"""

import sys
import time
from collections.abc import Callable

import geopandas as gpd
import numpy as np
import shapely

from geodp.grids.zones import ZoneDomain, Zones

BOX = (-74.5, 40.3, -73.5, 41.1)


def voronoi(n: int, vertices: int = 36) -> gpd.GeoDataFrame:
    """Zones without gaps, of about the size and number of vertices of census tracts."""
    rng = np.random.default_rng(n)
    seeds = np.column_stack([rng.uniform(BOX[0], BOX[2], n), rng.uniform(BOX[1], BOX[3], n)])
    frame = shapely.box(*BOX)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=frame))
    cells = shapely.intersection(cells, frame)
    step = float(np.mean(shapely.length(cells))) / vertices
    return gpd.GeoDataFrame({"zone_id": np.arange(n)}, geometry=shapely.segmentize(cells, step), crs=4326)


def scattered(n: int) -> gpd.GeoDataFrame:
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(BOX[0] - 0.05, BOX[2] + 0.05, n), rng.uniform(BOX[1] - 0.05, BOX[3] + 0.05, n)
    return gpd.GeoDataFrame(geometry=gpd.points_from_xy(lon, lat), crs=4326)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(points: gpd.GeoDataFrame, zones: gpd.GeoDataFrame) -> None:
    build = seconds(lambda: Zones(zones, key="zone_id"))
    strict = seconds(lambda: Zones(zones, key="zone_id", overlap="raise"))
    domain = ZoneDomain(Zones(zones, key="zone_id"))
    bare = gpd.GeoDataFrame(zones[["zone_id"]], geometry=zones.geometry.array.copy(), crs=4326)

    def ours() -> int:
        geometry = points.geometry.array
        return len(domain.locate(np.asarray(geometry.x), np.asarray(geometry.y))[0])

    def theirs() -> int:
        return int(gpd.sjoin(points, bare, predicate="intersects").index.nunique())

    # Turn and turn about, so that a busy machine slows both.
    times = [(seconds(ours), seconds(theirs)) for _ in range(4)]
    assert ours() == theirs()
    first, again = times[0], np.min(times[1:], axis=0)
    print(f"{len(points):,} points, {len(zones):,} zones; named in {build:.2f} s ('raise' {strict:.2f})")
    for name, (mine, other) in (("first", first), ("again", again)):
        print(f"  {name}   geodp {mine:5.2f} s   sjoin {other:5.2f} s   {other / mine:.1f} times as fast")


if __name__ == "__main__":
    points = scattered(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    for n in (3_000, 30_000):
        compare(points, voronoi(n))
