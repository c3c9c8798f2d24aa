"""Releases of every kind, and the block of data of a page read back without the page's own code."""

import base64
import json
import re
import zlib
from functools import cache

import geopandas as gpd
import numpy as np
import shapely

import geodp

__all__ = ["KINDS", "NYC", "POLES", "numbers", "read_page", "release", "trips", "wheel"]

NYC = (-74.3, 40.4, -73.6, 41.0)
POLES = (-180, -90, 180, 90)


def trips(n=400):
    rng = np.random.default_rng(20261130)
    lon, lat = rng.normal(-73.97, 0.06, n), rng.normal(40.75, 0.06, n)
    return gpd.GeoDataFrame(
        {
            "rider": [f"r{i:03d}" for i in rng.integers(0, n // 4, n)],
            "minutes": rng.gamma(2.0, 15.0, n),
            "hour": rng.integers(0, 24, n),
        },
        geometry=gpd.points_from_xy(lon, lat),
        crs=4326,
    )


def wheel(corners, rays=40):
    """Two zones with very many corners: a star, and the plain with a hole around it."""
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    reach = 0.15 + 0.05 * np.cos(rays * turn)
    star = shapely.Polygon(np.column_stack([-73.95 + reach * np.cos(turn), 40.7 + reach * np.sin(turn)]))
    plain = shapely.box(*NYC).difference(star)
    return gpd.GeoDataFrame({"place": ["star", "plain"]}, geometry=[star, plain], crs=4326)


def count(grid, bounds=NYC, eps=1, n=400, **more):
    return trips(n).dp.heatmap(eps, 1e-6, subject="rider", cap=4, bounds=bounds, grid=grid, **more)


def zones():
    squares = [shapely.box(-74.3 + 0.1 * i, 40.4, -74.2 + 0.1 * i, 41.0) for i in range(7)]
    return geodp.Zones(gpd.GeoDataFrame({"zone_id": range(7)}, geometry=squares, crs=4326), "zone_id")


def of_minutes(query, **more):
    view = trips().dp(subject="rider", cap=4, bounds=NYC, grid="h3:6")
    return getattr(view, query)("minutes", 1, 1e-6, value_bounds=(0, 120), **more)


def of_zones(grid):
    return trips().dp.heatmap(1, subject="rider", cap=2, grid=grid)


@cache
def release(kind):
    """Return one release of a kind, drawn once; nothing changes it."""
    return KINDS[kind]()


# What to_html must show without complaints.
KINDS = {
    "hexagons": lambda: count("h3:6"),
    "one cell": lambda: count("box"),
    "squares": lambda: count("square:0.1", outside="drop"),
    "metres": lambda: count("square:5000@32618"),
    "fiji": lambda: count("h3:3", (170, -20, -170, -10)),
    "world": lambda: count("h3:1", POLES),
    "south pole": lambda: count("square:5", (-180, -90, 180, -60)),
    "tiny": lambda: count("h3:15", (0, 0, 1e-5, 1e-5)),
    "zones": lambda: of_zones(zones()),
    "many corners": lambda: of_zones(geodp.Zones(wheel(20_000), "place")),
    "sum": lambda: of_minutes("sum"),
    "mean": lambda: of_minutes("mean"),
    "slots": lambda: count("h3:5", by={"hour": range(24)}),
    "centroids": lambda: trips().dp.centroid(1, 1e-6, subject="rider", cap=4, bounds=NYC, grid="h3:6"),
    "one place": lambda: trips().dp.centroid(1, 1e-6, n=40, subject="rider", cap=1, bounds=NYC),
    "sparse": lambda: count("h3:7", eps=4, n=20_000, cells="sparse"),
    "none": lambda: count("h3:8", eps=0.01, cells="sparse", phantoms=1e-9),
    "select": lambda: count("h3:7", eps=4, n=20_000, cells="select"),
    "sparse slots": lambda: count("h3:6", eps=4, n=20_000, cells="sparse", by={"hour": range(24)}),
    "none in slots": lambda: count("h3:8", eps=0.01, cells="sparse", phantoms=1e-9, by={"hour": range(24)}),
    "some rows": lambda: count("h3:6").iloc[5:20],
    "moved points": lambda: trips(40).dp.perturb(eps_per_km=1, subject="rider", max_reports=40),
}


def read_page(path):
    """Return the facts and lists of a page's data, as packing.py describes them."""
    text = path.read_text(encoding="utf-8")
    (held,) = re.findall(r'id="geodp-data">([A-Za-z0-9+/=]*)</script>', text)
    block = zlib.decompress(base64.b64decode(held))
    end = 4 + int.from_bytes(block[:4], "little")
    facts = json.loads(block[4:end])
    for name, width, n in facts["sections"]:
        facts[name] = numbers(block[end : end + width * n], width, n)
        end += width * n
    assert end == len(block)
    return facts


def numbers(part, width, n):
    if width == 1:
        return list(part)
    unsigned = [sum(part[plane * n + i] << 8 * plane for plane in range(4)) for i in range(n)]
    return [z >> 1 if z % 2 == 0 else -(z + 1 >> 1) for z in unsigned]
