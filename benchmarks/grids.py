"""How fast grids are listed, located and drawn: ``python benchmarks/grids.py [points]``.

Times are printed beside the bare h3 loop and ``numpy.histogram2d`` in the same run, since machines differ.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import h3.api.basic_int as h3
import numpy as np

from geodp.bounds import Box
from geodp.grids import grid

NYC = (-74.3, 40.4, -73.6, 41.0)
CASES = [("h3:9", NYC), ("h3:11", NYC), ("h3:5", (-180, -90, 180, 90)), ("square:0.001", NYC)]
CASES += [("square:0.01", (-10, -10, 10, 10)), ("square:100@32618", NYC)]


def timed(work: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work(*args)
    return time.perf_counter() - start, result


def domains() -> None:
    print(
        f"{'grid':18}{'cells':>11}{'estimate':>10}{'domain':>9}{'ids':>9}{'edge':>9}{'outlines':>10}{'hierarchy':>11}"
    )
    for name, bounds in CASES:
        public, box = grid(name), Box.parse(bounds)
        public.estimate(box)  # the first use of a CRS opens its database
        estimate, _ = timed(public.estimate, box)
        built, domain = timed(public.domain, box)
        parts = [timed(getattr, domain, "index"), timed(getattr, domain, "edge")]
        parts += [timed(domain.geometry), timed(domain.hierarchy)]
        ids, edge, outlines, hierarchy = (seconds for seconds, _ in parts)
        print(
            f"{name:18}{domain.n_cells:>11,}{1e3 * estimate:>8.2f}ms{built:>8.2f}s{ids:>8.2f}s{edge:>8.2f}s"
            f"{outlines:>9.2f}s{hierarchy:>10.2f}s"
        )


def points(n: int) -> None:
    rng = np.random.default_rng(0)
    west, south, east, north = NYC
    lon, lat = rng.uniform(west, east, n), rng.uniform(south, north, n)
    few = slice(0, min(n, 1_000_000))

    def bare() -> list[int]:
        cell = h3.latlng_to_cell
        return [cell(y, x, 9) for y, x in zip(lat[few].tolist(), lon[few].tolist(), strict=True)]

    print(f"\n{'points':34}{'seconds a million':>20}")
    ranges = ((west, east), (south, north))
    shown = [("bare h3.latlng_to_cell loop", timed(bare)[0] / (few.stop / 1e6))]
    shown += [
        (
            "numpy.histogram2d, 700 x 600",
            timed(np.histogram2d, lon, lat, (700, 600), ranges)[0] / (n / 1e6),
        )
    ]
    for name, part in (("h3:9", few), ("square:100@32618", few), ("square:0.001", slice(0, n))):
        domain = grid(name).domain(Box.parse(NYC))
        seconds, _ = timed(domain.locate, lon[part], lat[part])
        shown.append((f"{type(domain).__name__}.locate, {name}", seconds / (part.stop / 1e6)))
    for label, seconds in shown:
        print(f"{label:44}{seconds:>10.3f}")


if __name__ == "__main__":
    domains()
    points(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
