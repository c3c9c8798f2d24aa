"""A frame in partitions is released as the same frame in memory is."""

import inspect
import pickle
import re
import warnings

import dask
import dask_geopandas
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from dask import dataframe as dd

import geodp
import geodp.dask
from geodp.accessor import Accessor
from geodp.caps import choose_cap
from geodp.dask import DaskAccessor, PartitionError
from geodp.dask.tasks import Failed, Job, Subgraph, locate
from geodp.errors import GeoDPError
from geodp.together import release_together

BOX = (-74.05, 40.68, -73.9, 40.82)
SETTING = {"subject": "rider", "cap": 3, "bounds": BOX, "grid": "h3:7"}
MINUTES = {"value_bounds": (0, 60)}
SECRET_VALUE = "rider-4711"


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def same(found, expected):
    assert type(found) is type(expected)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))
    assert found.attrs == expected.attrs


def parts(gdf, n):
    return dask_geopandas.from_geopandas(gdf, npartitions=n, sort=False)


def of_frames(frames, meta=None):
    """Return a frame whose partitions are just these, whatever their dtypes."""
    meta = frames[0].iloc[:0] if meta is None else meta
    return dd.from_map(lambda i: frames[i], range(len(frames)), meta=meta)


def both(gdf, ddf, name, *args, **more):
    with geodp.testing.noiseless():
        return getattr(ddf.dp, name)(*args, **more), getattr(gdf.dp, name)(*args, **more)


CALLS = {
    "heatmap": ("heatmap", (1, 1e-6), {}),
    "by slots": ("heatmap", (1, 1e-6), {"by": {"hour": range(24)}}),
    "weighted": ("heatmap", (1, 1e-6), {"contribution": "weighted", "rescale": True}),
    "rescaled": ("heatmap", (1, 1e-6), {"rescale": True}),
    "levels": ("heatmap", (1, 1e-6), {"strategy": "levels"}),
    "sparse": ("heatmap", (1, 1e-6), {"cells": "sparse"}),
    "selected": ("heatmap", (2, 9e-4), {"cells": "select"}),
    "dropped": ("heatmap", (1, 1e-6), {"outside": "drop", "return_geometry": False}),
    "sum": ("sum", ("minutes", 1, 1e-6), MINUTES),
    "clipped sum": ("sum", ("minutes", 1, 1e-6), {**MINUTES, "clip": 90}),
    "mean": ("mean", ("minutes", 1, 1e-6), MINUTES),
    "centroid": ("centroid", (1, 1e-6), {}),
}


@pytest.mark.parametrize("rows_per_cell", [1, 3])
@pytest.mark.parametrize("call", CALLS)
def test_any_partitioning_gives_what_memory_gives(trips, call, rows_per_cell):
    trips["minutes"] = trips["minutes"].round(-1)
    name, args, more = CALLS[call]
    for n in (1, 13) if rows_per_cell == 1 else (7,):
        same(
            *both(trips, parts(trips, n), name, *args, **{**SETTING, "rows_per_cell": rows_per_cell, **more})
        )


def test_the_cap_and_the_rows_of_a_cell_bind_in_these_tests(trips):
    with geodp.testing.noiseless():
        totals = [
            trips.dp.heatmap(1, **{**SETTING, "cap": cap, "rows_per_cell": m})["noisy_count"].sum()
            for cap, m in ((3, 1), (3, 3), (50, 3))
        ]
    assert totals == sorted(set(totals))


def test_storms_on_zones_and_rows_of_many_partitions(storms):
    zones = gpd.GeoDataFrame(
        {"sea": ["w", "e", "both"]},
        geometry=[shapely.box(-100, 0, -60, 50), shapely.box(-60, 0, 0, 50), shapely.box(-80, 10, -40, 40)],
        crs=4326,
    )
    some = storms.iloc[:3000]
    ddf = parts(some, 37)
    for overlap, cap in (("first", 2), ("count", 2)):
        grid = geodp.Zones(zones, "sea", overlap)
        same(*both(some, ddf, "heatmap", 1, subject="storm_id", cap=cap, grid=grid))


@pytest.mark.parametrize("n", [1, 2, 9])
def test_rows_that_are_their_own_subjects(trips, n):
    more = {"subject": geodp.EACH_ROW, "bounds": BOX, "grid": "h3:7"}
    same(*both(trips, parts(trips, n), "heatmap", 1, **more))
    same(*both(trips, parts(trips, n), "mean", "minutes", 1, **more, **MINUTES))


@pytest.mark.parametrize("n", [1, 4, 11])
def test_a_row_in_two_zones_keeps_the_same_one_under_a_cap(trips, n):
    zones = gpd.GeoDataFrame(
        {"z": [1, 2]}, geometry=[shapely.box(*BOX), shapely.box(-74, 40.7, -73, 41)], crs=4326
    )
    grid = geodp.Zones(zones, "z", "count")
    same(*both(trips, parts(trips, n), "heatmap", 1, subject=geodp.EACH_ROW, cap=1, grid=grid))


@pytest.mark.parametrize("to_text", [True, False])
def test_subjects_are_the_same_in_partitions_of_every_dtype(trips, to_text):
    number = np.arange(len(trips)) % 23
    cuts = np.array_split(np.arange(len(trips)), 6)
    texts = pd.Series([str(i) for i in number])
    columns = [
        pd.Series(number),
        pd.Series(np.where(number == 3, np.nan, number)),
        pd.Series([i if i % 2 else str(i) for i in number], dtype=object),
        pd.Series(number, dtype="category"),
        texts.astype("category"),
        texts,
    ]
    frames = [
        trips.iloc[cut].assign(rider=c.to_numpy()[cut] if c.dtype != "category" else c.iloc[cut].array)
        for cut, c in zip(cuts, columns, strict=True)
    ]
    whole = trips.assign(rider=np.concatenate([f["rider"].astype(object).to_numpy() for f in frames]))
    assert {type(value) for value in whole["rider"]} >= {int, str, float}
    for meta in (frames[0].iloc[:0], frames[5].iloc[:0]):
        with dask.config.set({"dataframe.convert-string": to_text}):
            ddf = of_frames(frames, meta)
        same(*both(whole, ddf, "heatmap", 1, **SETTING))


def test_null_empty_and_odd_rows_are_left_out_alike(trips):
    odd = trips.iloc[:40].copy()
    odd.geometry = [
        None,
        shapely.Point(),
        shapely.Point(np.nan, 1),
        shapely.LineString([(0, 0), (1, 1)]),
    ] * 10
    odd["rider"] = [None, True, 2.5, ("x",)] * 10
    whole = pd.concat([trips, odd, trips.iloc[:0]])
    empty = trips.iloc[:0]
    same(
        *both(
            whole,
            of_frames([empty, trips.iloc[:200], empty, odd, trips.iloc[200:], empty]),
            "heatmap",
            1,
            **SETTING,
        )
    )


def test_nothing_in_any_partition(trips):
    empty = trips.iloc[:0]
    for name, args, more in (CALLS[call] for call in ("by slots", "rescaled", "clipped sum", "centroid")):
        same(*both(empty, of_frames([empty] * 3), name, *args, **{**SETTING, **more}))


@pytest.mark.parametrize(("branch", "join"), [(2, 1), (3, 1), (2, 2)])
def test_many_rounds_of_the_shuffle(trips, monkeypatch, branch, join):
    for name, value in (("_BRANCH", branch), ("_JOIN", join), ("_FEW", 2), ("_ADD", 2)):
        monkeypatch.setattr(f"geodp.dask.graph.{name}", value)
    same(*both(trips, parts(trips, 11), "mean", "minutes", 1, **SETTING, **MINUTES))


def test_one_subject_with_all_the_rows(trips):
    many = pd.concat([trips] * 5, ignore_index=True).assign(rider="r00")
    for name, args, more in (CALLS[call] for call in ("heatmap", "weighted", "mean")):
        same(*both(many, parts(many, 9), name, *args, **{**SETTING, **more}))


def test_other_geometry_names_and_projections(trips):
    far = trips.to_crs(32618).rename_geometry("pt")
    far["other"] = gpd.GeoSeries([shapely.Point(0, 0)] * len(far), crs=4326)
    same(*both(far, parts(far, 5), "heatmap", 1, **SETTING))


def test_categories_that_dask_does_not_know(trips):
    trips["rider"] = trips["rider"].astype("category")
    trips["day"] = pd.Series(["mon", "tue"] * 200).astype("category")
    frames = [trips.iloc[:100], trips.iloc[100:]]
    ddf = of_frames(frames)
    ddf["rider"], ddf["day"] = ddf["rider"].cat.as_unknown(), ddf["day"].cat.as_unknown()
    same(*both(trips, ddf, "heatmap", 1, **SETTING, by={"day": ["mon", "tue"]}))


def test_functions_plans_and_views_take_the_frame_too(trips):
    ddf = parts(trips, 4)
    with geodp.testing.noiseless():
        expected = trips.dp.heatmap(1, **SETTING)
        for found in (
            geodp.heatmap(ddf, 1, **SETTING),
            geodp.dask.heatmap(ddf, 1, **SETTING),
            geodp.plan(1, **SETTING).release(ddf),
            ddf.dp(**SETTING).heatmap(1),
            ddf.dp(trips.dp(**SETTING).policy).heatmap(1),
        ):
            same(found, expected)


def test_a_cap_chosen_privately_and_several_views_at_once(trips):
    ddf, auto = parts(trips, 5), {**SETTING, "cap": "auto"}
    where = {name: SETTING[name] for name in ("subject", "bounds", "grid")}
    views = {"coarse": {"grid": "h3:6"}, "minutes": geodp.Mean("minutes", **MINUTES)}
    with geodp.testing.noiseless():
        same(ddf.dp.heatmap(1, 1e-6, **auto), trips.dp.heatmap(1, 1e-6, **auto))
        found, expected = (choose_cap(frame, 0.1, (1, 2, 3, 9), **where) for frame in (ddf, trips))
        assert (found, found.record) == (expected, expected.record)
        found, expected = (release_together(frame, views, 1, **SETTING) for frame in (ddf, trips))
    for name in views:
        same(found[name], expected[name])


def test_the_calls_are_those_of_a_frame_in_memory():
    assert issubclass(DaskAccessor, Accessor)
    for name in ("heatmap", "sum", "mean", "centroid", "__call__"):
        assert inspect.signature(getattr(DaskAccessor, name)) == inspect.signature(getattr(Accessor, name))
    for name in ("heatmap", "sum", "mean", "centroid"):
        assert getattr(geodp.dask, name) is getattr(geodp, name)


def test_views_and_accessors_show_no_rows(trips):
    ddf = parts(trips, 4)
    for shown in (repr(ddf.dp), repr(ddf.dp(**SETTING)), repr(ddf.dp._frame)):
        assert "r0" not in shown
        assert (
            "4" not in shown.replace(str(BOX[1]), "").replace("-74.05", "").replace("4326", "")
            or "h3:7" in shown
        )
    with pytest.raises(TypeError, match="policy"):
        pickle.dumps(ddf.dp(**SETTING))


def test_a_task_that_is_done_again_gives_the_same(trips):
    plan = geodp.plan(1, **SETTING)
    job = Job(plan, [], bytes(range(16)), 3, trips.crs)
    first, again = (locate(job, Subgraph({"part": trips}, "part"), 0) for _ in range(2))
    for part in ("ids", "subject", "key", "times", "inside", "values"):
        np.testing.assert_array_equal(getattr(first, part), getattr(again, part))


def test_threads_give_the_same_and_leave_warnings_on(trips):
    ddf, before = parts(trips, 16), list(warnings.filters)
    with dask.config.set(scheduler="threads", num_workers=8):
        for _ in range(3):
            same(*both(trips, ddf, "heatmap", 1, **SETTING))
    assert warnings.filters == before


def test_nothing_is_computed_for_plans_and_bad_arguments(trips):
    def read(i):
        raise AssertionError("a partition was read")

    ddf = dd.from_map(read, range(3), meta=trips.iloc[:0])
    ddf.dp(**SETTING).plan(1)
    with pytest.raises(ValueError, match="no column 'driver'"):
        ddf.dp.heatmap(1, **{**SETTING, "subject": "driver"})
    with pytest.raises(TypeError, match="no row would match"):
        ddf.dp.heatmap(1, **SETTING, by={"hour": ["7"]})
    with pytest.raises(TypeError, match="numbers"):
        ddf.dp.sum("rider", 1, **SETTING, **MINUTES)
    with pytest.raises(ValueError, match="set_crs"):
        dd.from_map(read, range(3), meta=trips.iloc[:0].set_crs(None, allow_override=True)).dp(**SETTING)
    with pytest.raises(TypeError, match="dask partitions"):
        ddf.dp.audit(**SETTING)


def bad(trips, what):
    part = trips.iloc[200:300]
    return {
        "columns": lambda: part.drop(columns="rider")[["rider"]],
        "schema": lambda: part.assign(rider=True),
        "no column": lambda: part.drop(columns="rider"),
        "no geometry": lambda: pd.DataFrame(part.drop(columns="geometry")),
        "crs": lambda: part.to_crs(3857),
        "no crs": lambda: part.set_crs(None, allow_override=True),
        "no active geometry": lambda: gpd.GeoDataFrame(part.assign(geometry=1)),
        "reading": lambda: int(SECRET_VALUE),
        "memory": lambda: (_ for _ in ()).throw(MemoryError(SECRET_VALUE)),
    }[what]()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("columns", "lacks a column"),
        ("schema", "of another kind"),
        ("no column", "lacks a column"),
        ("no geometry", "lacks a column"),
        ("crs", "another CRS"),
        ("no crs", "has no CRS, and the frame has one"),
        ("no active geometry", "has no geometry of points"),
        ("reading", "could not be read"),
        ("memory", "does not fit"),
    ],
)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_bad_partition_is_named_and_nothing_is_spent(trips, tmp_path, what, words, scheduler):
    frames = [trips.iloc[:200], None, trips.iloc[300:]]
    ddf = dd.from_map(lambda i: bad(trips, what) if i == 1 else frames[i], range(3), meta=trips.iloc[:0])
    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    with dask.config.set(scheduler=scheduler), pytest.raises(PartitionError, match=words) as caught:
        ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")
    error = caught.value
    assert error.partition == 1
    assert str(error).startswith("partition 1 ")
    assert SECRET_VALUE not in str(error)
    assert error.__cause__ is error.__context__ is None
    assert book.spent()["eps"] == 0
    assert pickle.loads(pickle.dumps(error)).partition == 1


def test_a_failure_of_tasks_that_partitions_share_is_told_without_its_words(trips):
    whole = dask.delayed(int)(SECRET_VALUE)
    frames = [dask.delayed(lambda whole, i: trips.iloc[whole + i :])(whole, i) for i in range(3)]
    ddf = dd.from_delayed(frames, meta=trips.iloc[:0], verify_meta=False)
    with pytest.raises(GeoDPError, match="before geodp saw its rows") as caught:
        ddf.dp.heatmap(1, **SETTING)
    assert SECRET_VALUE not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("function", "words"),
    [("place", "could not be placed"), ("join", "bringing the rows"), ("sparse", "tallying the rows")],
)
def test_a_failure_of_ours_is_told_without_its_words(trips, monkeypatch, function, words):
    def fail(*_):
        raise ValueError(SECRET_VALUE)

    monkeypatch.setattr(f"geodp.dask.tasks.{function}", fail)
    with pytest.raises(GeoDPError, match=words) as caught:
        parts(trips, 12).dp.heatmap(1, **SETTING)
    assert SECRET_VALUE not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_what_schedulers_log_has_no_row():
    shown = [
        repr(Job(SECRET_VALUE, [], b"secret", 1, None)),
        repr(Subgraph({1: SECRET_VALUE}, 1)),
        repr(Failed("x", 3)),
    ]
    assert shown == ["<Job>", "<Subgraph>", "<Failed: x>"]


def test_an_interrupt_spends_nothing_and_a_release_pays_once(trips, tmp_path, monkeypatch):
    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    order, ddf = [], parts(trips, 5)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("geodp.dask.tasks.place", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")
    assert book.spent()["eps"] == 0
    for owner, name in (
        (geodp.Ledger, "check"),
        (geodp.dask.Partitions, "totals"),
        (geodp.Ledger, "debit"),
        (type(geodp.plan(1, **SETTING).measurements[0].law), "sample"),
        (geodp.Ledger, "store"),
    ):
        noted = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *a, noted=noted, name=name, **k: (order.append(name), noted(*a, **k))[1]
        )
    found = ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")
    assert order == ["check", "totals", "debit", "sample", "store"]
    assert book.spent()["eps"] == 1
    with pytest.warns(geodp.ReplayWarning):
        again = ddf.dp.heatmap(1, **SETTING, ledger=book, label="today")
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(again))
    assert order.count("totals") == order.count("sample") == 1


def test_the_frame_and_record_of_a_private_release(trips):
    found, expected = parts(trips, 5).dp.heatmap(1, **SETTING), trips.dp.heatmap(1, **SETTING)
    assert found.attrs == expected.attrs
    assert found.dtypes.equals(expected.dtypes)
    assert found.index.equals(expected.index)


def test_bars_show_stages_and_percentages_only(trips, capsys, monkeypatch):
    monkeypatch.setattr("geodp.progress._DELAY", 0)
    parts(trips, 5).dp.heatmap(1, **SETTING)
    shown = capsys.readouterr().err
    stages = re.split(r"[\r\n]+", shown.replace("\x1b[A", ""))
    for words in ("placing points", "adding up"):
        assert any(stage.startswith(f"{words}:") for stage in stages)
    assert all(re.fullmatch(r"(placing points|adding up): +\d+%\|[^|]*\|| *", stage) for stage in stages)
    parts(trips, 5).dp.heatmap(1, **SETTING, progress=False)
    parts(trips, 5).dp(**SETTING).mean("minutes", 1, **MINUTES, progress=False)
    with pytest.raises(TypeError, match="progress"):
        parts(trips, 5).dp.heatmap(1, **SETTING, progress=None)
    assert capsys.readouterr().err == ""


def test_other_dask_frames_are_refused_with_the_way_out(trips):
    plain = dd.from_pandas(pd.DataFrame(trips.drop(columns="geometry")), npartitions=2)
    with pytest.raises(AttributeError):
        plain.dp  # noqa: B018
    for frame, name in ((plain, "DataFrame"), (plain["rider"], "Series")):
        with pytest.raises(TypeError, match=f"a {name} of dask, which has no geometry") as caught:
            geodp.heatmap(frame, 1, **SETTING)
        assert "dask_geopandas.from_dask_dataframe" in str(caught.value)


def test_the_way_out_for_plain_frames_works(trips):
    table = pd.DataFrame(trips.drop(columns="geometry")).assign(lon=trips.geometry.x, lat=trips.geometry.y)
    plain = dd.from_pandas(table, npartitions=2)
    with pytest.raises(TypeError, match="Releases take a dask-geopandas GeoDataFrame") as caught:
        geodp.heatmap(plain, 1, **SETTING)
    way_out = re.search(r"dask_geopandas\.from_dask_dataframe\(.*\)\.set_crs\(4326\)", str(caught.value))[0]
    ddf = eval(way_out, {"dask_geopandas": dask_geopandas, "ddf": plain})
    with geodp.testing.noiseless():
        same(geodp.heatmap(ddf, 1, **SETTING), trips.dp.heatmap(1, **SETTING))
    with pytest.raises(TypeError, match="rows in memory"):
        geodp.heatmap(ddf.geometry, 1, **SETTING)
