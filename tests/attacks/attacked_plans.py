"""What is attacked: every query on every kind of grid, and how far one subject may move it, said here anew.

The bounds below are written from the rules and not from the library's code: at most so many entries move
(L0), each by at most so much (Linf). What a plan claims in L1 and L2 must hold for the tallies, and must not
exceed what L0 and Linf leave possible.
"""

import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import geopandas as gpd
from shapely import box

import geodp
from geodp.grids.whole import Whole

BOX = (-74.1, 40.6, -73.9, 40.8)
ACROSS = (179.5, -17.0, -179.5, -16.0)
POLE = (-180, 88, 180, 90)
WIDE = (100.0, -10.0, -50.0, 10.0)
WORLD = (-180, -90, 180, 90)
UNIT = 2**20


def zones(overlap, shapes):
    keys = [f"z{i}" for i in range(len(shapes))]
    return geodp.Zones(gpd.GeoDataFrame({"zone": keys}, geometry=shapes, crs=4326), "zone", overlap)


OVERLAPPING = [
    box(-74.1, 40.6, -74.0, 40.7),
    box(-74.0, 40.6, -73.9, 40.7),
    box(-74.05, 40.6, -73.95, 40.8),
    box(-74.1, 40.6, -73.9, 40.8),
]
DATELINE = [box(179.6, -17, 180.4, -16.5), box(-180, -16.5, -179.5, -16), box(179.5, -17, 180, -16)]

GRIDS = {
    "h3": ("h3:6", BOX),
    "h3 world": ("h3:0", WORLD),
    "h3 across 180": ("h3:5", ACROSS),
    "h3 at a pole": ("h3:3", POLE),
    "square": ("square:0.05", BOX),
    "square across 180": ("square:0.25", ACROSS),
    "square world": ("square:30", WORLD),
    "metres": ("square:5000@32618", BOX),
    "zones": (zones("first", OVERLAPPING), None),
    "zones, each counts": (zones("count", OVERLAPPING), None),
    "zones that touch": (zones("raise", OVERLAPPING[:2]), None),
    "zones across 180": (zones("count", DATELINE), None),
    "box": (Whole(), BOX),
    "wide box across 180": (Whole(), WIDE),
}
# With cells enough that totals of blocks are worth measuring.
FINE = {
    "h3": "h3:8",
    "h3 world": "h3:2",
    "h3 across 180": "h3:7",
    "h3 at a pole": "h3:5",
    "square": "square:0.0032",
    "square across 180": "square:0.016",
    "square world": "square:4",
    "metres": "square:300@32618",
}
NUMBERED = [where for where in GRIDS if where.startswith(("h3", "square"))]

QUERIES = {
    "count": {},
    "weighted": {"contribution": "weighted"},
    "rescaled": {"rescale": 6},
    "weighted, rescaled": {"contribution": "weighted", "rescale": 6},
    "levels": {"strategy": "levels"},
    "sparse": {"cells": "sparse"},
    "select": {"cells": "select"},
    "sum": {"query": geodp.Sum("v", (0, 120))},
    "sum above zero": {"query": geodp.Sum("v", (10, 20))},
    "sum below zero": {"query": geodp.Sum("v", ("-0.3", "-0.1"))},
    "sum, signed": {"query": geodp.Sum("v", (-5, 5))},
    "sum, skewed": {"query": geodp.Sum("v", (-1, 10))},
    "sum, clipped": {"query": geodp.Sum("v", (0, 120), clip=50)},
    "sum, signed and clipped": {"query": geodp.Sum("v", (-5, 5), clip="7.3")},
    "sum below zero, clipped": {"query": geodp.Sum("v", (-9, -1), clip=11)},
    "sum, clip far above": {"query": geodp.Sum("v", (0, 1), clip=10**9)},
    "mean": {"query": geodp.Mean("v", (0, 120))},
    "mean, signed": {"query": geodp.Mean("v", (Fraction(-1, 3), 100))},
    "centroid": {"query": geodp.Centroid()},
    "centroid of n": {"query": geodp.Centroid(n=7)},
}


def goes_together(name, where):
    """Whether a query can be asked on a grid at all."""
    if name in ("sparse", "select"):
        return where in NUMBERED
    return name != "centroid of n" or "box" in where


def planned(name, where="square", column="v", **more):
    """Return the plan of a query on a grid; warnings about noise are not the point here."""
    grid, bounds = GRIDS[where]
    grid = FINE.get(where, grid) if name == "levels" else grid
    given = {"bounds": bounds, "grid": grid, "subject": "rider", "return_geometry": False}
    asked = dict(QUERIES[name])
    if "query" in asked and asked["query"].reads and column != "v":
        asked["query"] = replace(asked["query"], column=column)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geodp.NoiseWarning)
        return geodp.plan(1, 1e-6, **given | asked | more)


@dataclass(frozen=True)
class Reach:
    """How many entries of a vector one subject may move, and each by how many lattice steps."""

    entries: int
    each: Fraction


def reach(plan, measurement):
    """Return L0 and Linf between neighbours, from the rules alone."""
    policy, query, name = plan.policy, plan.query, measurement.name
    twice = 2 if policy.neighboring == "replace_one" else 1
    n_keys, rows = plan.layout.n_keys, policy.rows_per_cell
    touched = min(twice * policy.cap, n_keys)
    if name in ("total", "kept"):
        return Reach(1, _of_totals(plan, name))
    if name.startswith("blocks"):
        most = min(policy.cap, _largest_block(plan, name))
        return Reach(min(touched, measurement.quantity.size), Fraction(rows * most))
    if name == "place":
        return Reach(2 * touched, Fraction(twice * rows * UNIT))
    if name == "sum":
        return Reach(touched, rows * _largest_step(query, measurement, twice))
    if policy.contribution == "weighted":
        return Reach(n_keys, Fraction(64 * rows))
    return Reach(touched, Fraction(rows))


def _of_totals(plan, name):
    policy, k_max = plan.policy, plan.query.rescaling.k_max
    keys = min(k_max, plan.layout.n_keys)
    if name == "total":
        return Fraction(policy.rows_per_cell * keys)
    return Fraction(
        policy.rows_per_cell * min(math.isqrt(4096 * policy.cap * k_max), 64 * plan.layout.n_keys)
    )


def _largest_block(plan, name):
    from collections import Counter

    block = plan.layout.hierarchy().blocks[int(name.split()[1])]
    return max(Counter(block.tolist()).values())


def _largest_step(query, measurement, twice):
    """The largest change of one record's value, in lattice steps, rounded up to a whole one."""
    step = measurement.quantity.step
    low, high = query.value_bounds
    if isinstance(query, geodp.Mean):
        return math.floor((high - low) / 2 / step) * twice
    low, high = min(low, 0), max(high, 0)
    return (
        math.floor(max(-low, high) / step)
        if twice == 1
        else math.floor(high / step) + math.floor(-low / step)
    )
