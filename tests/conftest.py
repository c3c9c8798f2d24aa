"""What all tests share: the test seam switched on, and frames small enough to reason about."""

import os
from pathlib import Path

os.environ["GEODP_TESTING"] = "1"
os.environ.pop("GEODP_LEDGER", None)

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from false_alarms import pytest_collection_modifyitems, pytest_terminal_summary  # noqa: F401
from hypothesis import HealthCheck, settings

settings.register_profile(
    "geodp", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("geodp")

DATA = Path(__file__).parent / "data"

NYC = (-74.3, 40.4, -73.6, 41.0)


@pytest.fixture(scope="session")
def storms() -> gpd.GeoDataFrame:
    """19,537 track points of 655 Atlantic storms; ``storm_id`` is the subject."""
    table = pd.read_csv(DATA / "storms_trim.csv.gz")
    points = gpd.points_from_xy(table["long"], table["lat"])
    return gpd.GeoDataFrame(table, geometry=points, crs=4326)


@pytest.fixture(scope="session")
def flights() -> gpd.GeoDataFrame:
    """A week of departures from New York; ``tailnum`` is the subject, points repeat."""
    table = pd.read_parquet(DATA / "flights_week1.parquet")
    return gpd.GeoDataFrame(table, geometry=gpd.points_from_xy(table["lon"], table["lat"]), crs=4326)


@pytest.fixture
def trips() -> gpd.GeoDataFrame:
    """400 trips of 40 riders in New York, with minutes and hours."""
    rng = np.random.default_rng(20261130)
    n = 400
    lon, lat = rng.normal(-73.97, 0.06, n), rng.normal(40.75, 0.06, n)
    return gpd.GeoDataFrame(
        {
            "rider": [f"r{i:02d}" for i in rng.integers(0, 40, n)],
            "minutes": rng.gamma(2.0, 15.0, n),
            "hour": rng.integers(0, 24, n),
        },
        geometry=gpd.points_from_xy(lon, lat),
        crs=4326,
    )
