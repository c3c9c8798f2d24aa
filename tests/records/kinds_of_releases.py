"""One release of every kind, made once; each test gets copies."""

from functools import lru_cache

import geopandas as gpd
import numpy as np
import shapely

import geodp

BOX = (-74.3, 40.4, -73.6, 41.0)


@lru_cache(maxsize=1)
def made():
    rng = np.random.default_rng(3)
    n = 200
    trips = gpd.GeoDataFrame(
        {
            "rider": [f"r{i:02d}" for i in rng.integers(0, 40, n)],
            "minutes": rng.gamma(2.0, 15.0, n),
            "hour": rng.integers(0, 24, n),
        },
        geometry=gpd.points_from_xy(rng.normal(-73.97, 0.06, n), rng.normal(40.75, 0.06, n)),
        crs=4326,
    )
    squares = [shapely.box(-74.3 + 0.1 * i, 40.4, -74.2 + 0.1 * i, 41.0) for i in range(7)]
    zones = geodp.Zones(gpd.GeoDataFrame({"zone_id": range(7)}, geometry=squares, crs=4326), "zone_id")
    view = trips.dp(subject="rider", cap=4, bounds=BOX, grid="h3:6")
    by, minutes = {"hour": range(24), "late": [False, True]}, {"value_bounds": (0, 120)}
    frame = trips.assign(late=trips["hour"] > 20)
    slotted = frame.dp(subject="rider", cap=4, bounds=BOX, grid="h3:5")
    return {
        "count": view.heatmap(1, 1e-6),
        "gaussian": view.heatmap(1, 1e-6, mechanism="gaussian"),
        "dropped": trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="square:0.1", outside="drop"),
        "metres": trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="square:5000@32618"),
        "slots": slotted.heatmap(1, 1e-6, by=by),
        "sum": view.sum("minutes", 1, 1e-6, **minutes),
        "mean": view.mean("minutes", 1, 1e-6, **minutes),
        "mean in slots": slotted.mean("minutes", 1, 1e-6, by=by, **minutes),
        "centroid": view.centroid(1, 1e-6),
        "centroid of n": trips.dp.centroid(1, 1e-6, n=40, subject="rider", cap=1, bounds=BOX),
        "zones": trips.dp.heatmap(1, subject="rider", cap=2, grid=zones),
        "weighted": trips.dp.heatmap(
            1, 1e-6, subject="rider", cap=2, contribution="weighted", bounds=BOX, grid="h3:6"
        ),
        "levels": view.heatmap(1, 1e-6, strategy="levels", grid="h3:8"),
        "rescaled": view.heatmap(1, 1e-6, rescale=True),
    }


def copies():
    return {name: frame.copy() for name, frame in made().items()}
