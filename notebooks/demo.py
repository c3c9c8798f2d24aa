"""The main job, on real data: half a century of Atlantic storms, as a private heatmap.

A storm stands for a person here: its track is a trail of points under one id. Writes heatmap.geojson and
heatmap.png beside the Makefile, and prints the plan before and the record after.
"""

import json
from pathlib import Path

import geopandas as gpd
import matplotlib
import pandas as pd

import geodp

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parent.parent


def load() -> gpd.GeoDataFrame:
    """Return 19,537 track points of 655 storms (NOAA HURDAT2, public domain)."""
    table = pd.read_csv(ROOT / "tests" / "data" / "storms_trim.csv.gz")
    return gpd.GeoDataFrame(table, geometry=gpd.points_from_xy(table["long"], table["lat"]), crs=4326)


def main() -> None:
    storms = load()
    view = storms.dp(subject="storm_id", cap=4, bounds=(-100, 8, -10, 55), outside="drop", grid="h3:1")
    plan = view.plan(1.0, 1e-6)
    print(plan, "\n")

    heat = view.heatmap(1.0, 1e-6)
    heat.to_file(ROOT / "heatmap.geojson", driver="GeoJSON")
    axes = geodp.plot(heat)
    axes.figure.savefig(ROOT / "heatmap.png", dpi=120, bbox_inches="tight")

    print(heat.drop(columns="geometry").sort_values("count", ascending=False).head(), "\n")
    print(json.dumps(geodp.record(heat), indent=2))
    print("\nwrote heatmap.geojson and heatmap.png")


if __name__ == "__main__":
    main()
