"""Frames that came through dask's own shuffles and merges, and files with categories."""

import dask
import dask_geopandas
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd

import geodp
import geodp.dask
from geodp.dask import PartitionError

SETTING = {"subject": "rider", "cap": 2, "bounds": (0, 0, 10, 10), "grid": "square:2"}


@pytest.fixture
def trips():
    rng = np.random.default_rng(5)
    frame = {"rider": [f"r{i % 7}" for i in range(60)], "v": np.arange(60) % 12}
    points = gpd.points_from_xy(rng.uniform(0, 10, 60), rng.uniform(0, 10, 60))
    return gpd.GeoDataFrame(frame, geometry=points, crs=4326)


def released(gdf):
    with geodp.testing.noiseless():
        return gdf.dp(**SETTING).heatmap(1)


@pytest.mark.parametrize("method", ["disk", "tasks"])
@pytest.mark.parametrize("kept", [60, 1, 0])
def test_whether_rows_are_left_decides_nothing_after_a_shuffle(trips, method, kept):
    """A shuffle on disk gives back plain frames where rows are, and frames of points where none are."""
    some = trips.iloc[:kept]
    with dask.config.set({"dataframe.shuffle.method": method, "scheduler": "synchronous"}):
        parts = dask_geopandas.from_geopandas(trips.assign(kept=range(60)), npartitions=4, sort=False)
        shuffled = parts[parts.kept < kept].shuffle("v")
        pd.testing.assert_frame_equal(pd.DataFrame(released(shuffled)), pd.DataFrame(released(some)))


def test_a_frame_that_was_merged_is_released(trips):
    other = dd.from_pandas(pd.DataFrame({"v": range(12), "w": range(12)}), npartitions=2)
    with dask.config.set({"dataframe.shuffle.method": "disk", "scheduler": "synchronous"}):
        parts = dask_geopandas.from_geopandas(trips, npartitions=4, sort=False).astype({"rider": "string"})
        merged = parts.shuffle("v").merge(other, on="v")
        pd.testing.assert_frame_equal(pd.DataFrame(released(merged)), pd.DataFrame(released(trips)))


def test_geoparquet_with_categories_of_anything_is_released(trips, tmp_path):
    file = tmp_path / "trips.parquet"
    trips.assign(mode=pd.Categorical(["bus", "tram"] * 30)).to_parquet(file)
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            found = released(dask_geopandas.read_parquet(file))
        pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(released(trips)))


def test_a_partition_whose_points_are_none_is_named(trips):
    parts = dask_geopandas.from_geopandas(trips, npartitions=2, sort=False)
    spoiled = parts.map_partitions(lambda part: part.assign(geometry=0), meta=parts._meta)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(PartitionError, match=r"partition \d has no geometry of points"),
    ):
        spoiled.dp(**SETTING).heatmap(1)
