"""Releases of every kind on every grid, made once: of points that are many enough for cells to be told."""

from functools import cache

import geopandas as gpd
import numpy as np
import shapely

import geodp
from geodp import testing

BOX = (0.0, 0.0, 4.0, 4.0)
POLE = (-180.0, 60.0, 180.0, 90.0)
FIJI = (176.0, -20.0, -176.0, -15.0)
HOURS = {"hour": [7, 8]}


def points(n=20_000, centre=(1.0, 1.5), spread=0.4, seed=1):
    """Points of n people around a centre, with a value of either sign and an hour."""
    rng = np.random.default_rng(seed)
    lon, lat = (rng.normal(middle, spread, n) for middle in centre)
    lon = (lon + 180) % 360 - 180
    return gpd.GeoDataFrame(
        {
            "who": np.arange(n),
            "minutes": rng.gamma(2, 15, n),
            "above": rng.normal(0, 5, n) + (lon - 1) * 20,
            "hour": rng.choice([7, 8], n),
        },
        geometry=gpd.points_from_xy(lon, np.clip(lat, -90, 90)),
        crs=4326,
    )


def zones(ids=("a", "b", "c", "d")):
    """Four zones in the box, one of them in two parts."""
    shapes = [
        shapely.box(0, 0, 2, 2),
        shapely.box(2, 0, 4, 2),
        shapely.box(0, 2, 2, 4),
        shapely.MultiPolygon([shapely.box(2.1, 2, 3, 4), shapely.box(3.2, 2, 4, 4)]),
    ]
    return gpd.GeoDataFrame({"zone": list(ids)}, geometry=shapes, crs=4326)


GRIDS = {
    "h3": {"grid": "h3:4", "bounds": BOX, "outside": "drop"},
    "square": {"grid": "square:0.25", "bounds": BOX, "outside": "clamp"},
    "metres": {"grid": "square:40000m@32631", "bounds": BOX, "outside": "clamp"},
    "zones": {"grid": geodp.Zones(zones(), key="zone")},
    "box": {"grid": "box", "bounds": BOX, "outside": "drop"},
    "fiji": {"grid": "h3:3", "bounds": FIJI, "outside": "clamp"},
    "pole": {"grid": "h3:2", "bounds": POLE, "outside": "clamp"},
}
CENTRES = {"fiji": ((180.0, -17.5), 1.0), "pole": ((0.0, 88.0), 4.0)}
KINDS = ("count", "weighted", "levels", "sum", "signed", "mean", "centroid", "rescaled", "joint")
UNLISTED = ("sparse", "select")


@cache
def people(grid):
    """Return the points of a grid's map."""
    return points(centre=CENTRES[grid][0], spread=CENTRES[grid][1]) if grid in CENTRES else points()


@cache
def release(kind, grid="h3", slots=False, seed=7, eps=1.0):
    """Return a release with noise that repeats."""
    gdf = people(grid)
    where, by = GRIDS[grid], {"by": HOURS} if slots else {}
    soft = {"contribution": "weighted"} if kind == "weighted" else {}
    view = gdf.dp(subject="who", cap=1, **soft, **where)
    with testing.seeded(seed):
        if kind in ("count", "weighted"):
            return view.heatmap(eps, 1e-6, **by)
        if kind == "levels":
            return view.heatmap(eps, 1e-6, strategy="levels", **by)
        if kind == "rescaled":
            return view.heatmap(eps, 1e-6, rescale=True, **by)
        if kind in UNLISTED:
            return view.heatmap(eps, 1e-6, cells=kind, **by)
        if kind == "sum":
            return view.sum("minutes", eps, 1e-6, value_bounds=(0, 120), **by)
        if kind == "signed":
            return view.sum("above", eps, 1e-6, value_bounds=(-40, 40), **by)
        if kind == "mean":
            return view.mean("minutes", eps, 1e-6, value_bounds=(0, 120), **by)
        if kind == "centroid":
            return view.centroid(eps, 1e-6, **by)
        assert kind == "joint"
        both = {"map": {**by}, "mean": geodp.Mean("minutes", value_bounds=(0, 120))}
        return geodp.release_together(gdf, both, eps, 1e-6, subject="who", cap=1, **where)["map"]


@cache
def moved():
    """Return moved points."""
    return points(50).dp.perturb(eps_per_km=1.0, subject="who", max_reports=1)


def fresh(frame):
    """Return a copy that a test may spoil."""
    return frame.copy()
