"""On a real cluster of worker processes: the same numbers, also where a worker dies, and one debit."""

import os
import signal

import dask
import dask_geopandas
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from dask import dataframe as dd
from distributed import Client, LocalCluster

import geodp
import geodp.dask
from geodp.dask import PartitionError
from geodp.dask.partitions import _partitions
from geodp.errors import GeoDPError

SETTING = {"subject": "rider", "cap": 2, "bounds": (-74.05, 40.68, -73.9, 40.82), "grid": "h3:7"}
MINUTES = {"value_bounds": (0, 60)}


@pytest.fixture(scope="module")
def client():
    quiet = {"distributed.scheduler.allowed-failures": 1, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GB", silence_logs=60
        ) as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(20261130)
    n = 3000
    points = gpd.points_from_xy(rng.normal(-73.97, 0.06, n), rng.normal(40.75, 0.06, n))
    columns = {"rider": rng.integers(0, 150, n), "minutes": rng.gamma(2.0, 15.0, n).round(-1)}
    return gpd.GeoDataFrame(columns, geometry=points, crs=4326)


@pytest.fixture
def files(rows, tmp_path):
    """Partitioned GeoParquet: one file is empty, in one ids are floats with gaps, in one they are texts."""
    cuts = np.array_split(np.arange(len(rows)), 9)
    frames = [rows.iloc[cut] for cut in [*cuts, cuts[0][:0]]]
    frames[3] = frames[3].assign(rider=frames[3]["rider"].where(frames[3]["rider"] > 9))
    frames[7] = frames[7].assign(rider=frames[7]["rider"].astype(str))
    for i, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{i:02d}.parquet")
    whole = pd.concat([frame.assign(rider=frame["rider"].astype(object)) for frame in frames])
    return tmp_path, whole


def read(folder):
    return dask_geopandas.read_parquet(f"{folder}/*.parquet")


def same(found, expected):
    assert type(found) is type(expected)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))
    assert found.attrs == expected.attrs


def killing(rows, once):
    """Return a frame whose third partition kills the worker that reads it: once, or each time."""

    def part(i):
        if i == 2 and not os.path.exists(once):
            if once:
                open(once, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows.iloc[i::6]

    return dd.from_map(part, range(6), meta=rows.iloc[:0])


@pytest.mark.usefixtures("client")
def test_partitioned_files_give_what_memory_gives(files):
    folder, whole = files
    zones = gpd.GeoDataFrame(
        {"z": [1, 2]}, geometry=[shapely.box(-75, 40, -73.97, 41), shapely.box(-74, 40, -73, 41)], crs=4326
    )
    in_zones = {"subject": "rider", "cap": 1, "grid": geodp.Zones(zones, "z", "count")}
    with geodp.testing.noiseless():
        same(read(folder).dp.heatmap(1, **in_zones), whole.dp.heatmap(1, **in_zones))
        same(
            read(folder).dp.mean("minutes", 1, **SETTING, **MINUTES),
            whole.dp.mean("minutes", 1, **SETTING, **MINUTES),
        )


def test_points_that_the_cluster_holds(client, rows):
    ddf = dask_geopandas.from_geopandas(rows, npartitions=3).persist()
    _, upstream = _partitions(ddf, {})
    assert upstream
    with geodp.testing.noiseless():
        assert client.submit(lambda: geodp.testing.current().is_test).result() is False
        same(ddf.dp.heatmap(1, **SETTING), rows.dp.heatmap(1, **SETTING))


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("what", ["lacks a column", "another CRS", "no CRS"])
def test_the_file_of_a_bad_partition_is_named(files, what, tmp_path):
    folder, _ = files
    path = folder / "04.parquet"
    frame = gpd.read_parquet(path)
    changed = {
        "lacks a column": lambda: frame.drop(columns="rider"),
        "another CRS": lambda: frame.to_crs(2263),
        "no CRS": lambda: frame.set_crs(None, allow_override=True),
    }
    changed[what]().to_parquet(path)
    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    with pytest.raises(PartitionError, match=what) as caught:
        read(folder).dp.heatmap(1, **SETTING, ledger=book, label="today")
    assert f"partition 4 ({path})" in str(caught.value)
    assert book.spent()["eps"] == 0


@pytest.mark.usefixtures("client")
def test_a_worker_killed_in_the_middle_changes_nothing(rows, tmp_path, monkeypatch):
    with geodp.testing.noiseless():
        found = killing(rows, str(tmp_path / "killed")).dp.heatmap(1, **SETTING)
        same(found, rows.dp.heatmap(1, **SETTING))
    assert (tmp_path / "killed").exists()


@pytest.mark.usefixtures("client")
def test_an_interrupt_leaves_ledger_and_cluster_as_they_were(rows, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    ddf = dask_geopandas.from_geopandas(rows, npartitions=3)
    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    with monkeypatch.context() as patched:
        patched.setattr("geodp.dask.running._check", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 0
    assert ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")["noisy_count"].dtype == np.int64
    assert book.spent()["eps"] == 1


def test_workers_without_geodp_are_told_at_once(client, rows, monkeypatch):
    monkeypatch.setattr(type(client), "run", lambda *_, **__: {"tcp://worker": ModuleNotFoundError("geodp")})
    with pytest.raises(GeoDPError, match="install the same geodp there"):
        dask_geopandas.from_geopandas(rows, npartitions=3).dp.heatmap(1, **SETTING)


@pytest.mark.audit
@pytest.mark.usefixtures("client")
def test_a_killed_worker_pays_and_draws_once_and_one_that_always_dies_not_at_all(rows, tmp_path, monkeypatch):
    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    law = type(geodp.plan(1, **SETTING).measurements[0].law)
    draws, sample = [], law.sample
    monkeypatch.setattr(law, "sample", lambda *a, **k: (draws.append(1), sample(*a, **k))[1])
    killing(rows, str(tmp_path / "killed")).dp.heatmap(1, **SETTING, ledger=book, label="today")
    assert (len(draws), book.spent()["eps"]) == (1, 1)
    with pytest.raises(GeoDPError, match="died again and again") as caught:
        killing(rows, "").dp.heatmap(1, **SETTING, ledger=book, label="tomorrow")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert (len(draws), book.spent()["eps"]) == (1, 1)
