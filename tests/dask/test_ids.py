"""Whose a row is does not depend on what dask makes of ids on their way: its texts, and floats where one is missing."""

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
from geodp.dask.ids import as_its_source_has_it

BOX = (-74.05, 40.68, -73.9, 40.82)
SETTING = {"subject": "rider", "cap": 1, "bounds": BOX, "grid": "h3:8"}
BIG = 2**60


@pytest.fixture(autouse=True)
def _one_thread_and_texts():
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": True}):
        yield


def rows(ids, first=0):
    """Return one row for each id, all in cells of their own."""
    steps = 0.01 * (first + np.arange(len(ids)))
    places = gpd.points_from_xy(-74.04 + steps, 40.69 + steps)
    return gpd.GeoDataFrame({"rider": ids, "hour": 8}, geometry=places, crs=4326)


def objects(*ids):
    return pd.Series(ids, dtype=object)


NUMBERS, MIXED = rows([7, 8], 0), rows(objects(7, 8.0, "x"), 2)


def of_files(meta, frames=(NUMBERS, MIXED)):
    return dd.from_map(lambda i: frames[i].copy(), range(len(frames)), meta=meta.iloc[:0])


def computed(ddf):
    with warnings.catch_warnings():  # of dask's own readers
        warnings.simplefilter("ignore")
        return ddf.compute()


def people(frame):
    """Return how many people a release at cap 1 sees: each counts in one cell."""
    with geodp.testing.noiseless():
        return int(frame.dp.heatmap(1, **SETTING)["noisy_count"].sum())


STEPS = {
    "as it is": lambda d: d,
    "columns": lambda d: d[["rider", "geometry"]],
    "filter": lambda d: d[d.hour > 3],
    "assign": lambda d: d.assign(late=d.hour + 1),
    "crs": lambda d: d.set_crs(4326),
    "partitions": lambda d: d.partitions[[0, 1]],
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("meta", [NUMBERS, MIXED, rows(["a"])], ids=["numbers", "objects", "texts"])
def test_one_person_is_one_where_dask_makes_text_of_some_partitions(step, meta):
    found = STEPS[step](of_files(meta))
    assert "7" in list(found["rider"].compute())  # so dask would have it
    assert people(found) == people(pd.concat([NUMBERS, MIXED])) == 3


def test_steps_that_look_at_numbers_see_numbers():
    ddf = of_files(NUMBERS)
    for found in (ddf[ddf.rider != 8], ddf.map_partitions(lambda part: part[part.rider != 8])):
        assert people(found) == 2


def test_one_and_one_as_text_stay_two_subjects_and_one_as_float_one():
    whole = rows(objects(1, "1", 1.0, True, None))
    ddf = dask_geopandas.from_geopandas(whole, npartitions=2)
    assert ddf["rider"].compute().tolist()[:4] == ["1", "1", "1.0", "True"]
    assert people(ddf) == people(whole) == 2


def test_points_made_of_columns_keep_their_ids():
    table = pd.DataFrame({"rider": objects(1, "1", 1.0), "lon": [-74, -73.98, -73.95], "lat": 40.7})
    ddf = dd.from_pandas(table, npartitions=2)
    points = dask_geopandas.points_from_xy(ddf, "lon", "lat")
    assert people(dask_geopandas.from_dask_dataframe(ddf, geometry=points).set_crs(4326)) == 2


LOOKING = {
    "compares": lambda d: d[d.rider != "8"],
    "function": lambda d: d.map_partitions(lambda part: part[part.rider != "8"]),
    "function beside": lambda d: d[d.map_partitions(lambda part: part.rider != "8", meta=("x", bool))],
    "renames": lambda d: d.rename(columns={"rider": "id"}).rename(columns={"id": "rider"}),
    "assigns": lambda d: d.assign(rider=d.rider.str.lower()),
    "other name": lambda d: d.assign(rider=d.other)[["rider", "geometry"]],
}


@pytest.mark.parametrize("step", LOOKING)
def test_steps_that_may_need_the_text_of_objects_are_refused(step, tmp_path):
    def read(i):
        raise AssertionError("a partition was read")

    book = geodp.Ledger(tmp_path / "x.ledger", eps=3, delta=1e-5, unit="rider")
    meta = rows(objects(7)).assign(other=objects("7"))
    frames = dd.from_map(read, range(2), meta=meta), dask_geopandas.from_geopandas(meta, npartitions=1)
    for ddf in frames:
        with pytest.raises(
            TypeError, match=r"subject='rider' comes from a column of Python objects"
        ) as caught:
            LOOKING[step](ddf).dp.heatmap(1, **SETTING, ledger=book, label="today")
        assert "dataframe.convert-string" in str(caught.value)
    assert book.spent()["eps"] == 0


def test_rows_do_not_decide_what_is_refused():
    look, meta = LOOKING["compares"], rows(objects("a"))
    for ids in (objects("a", "b"), objects(7, 8), objects(None, None)):
        with pytest.raises(TypeError, match="comes from a column of Python objects"):
            look(of_files(meta, [rows(ids)])).dp.heatmap(1, **SETTING)


def test_the_ways_out_of_the_refusal_work():
    mixed = rows(objects(7, "7", "8"))
    with dask.config.set({"dataframe.convert-string": False}):
        ddf = dask_geopandas.from_geopandas(mixed, npartitions=2)
    assert people(ddf[ddf.rider != "8"]) == 2
    texts = dask_geopandas.from_geopandas(mixed.astype({"rider": "string"}), npartitions=2)
    assert people(texts[texts.rider != "8"]) == 1


def test_a_frame_that_needs_nothing_stays_the_same():
    for whole in (NUMBERS, MIXED.astype({"rider": "string"})):
        ddf = dask_geopandas.from_geopandas(whole, npartitions=2)
        assert as_its_source_has_it(ddf, "rider") is ddf


def test_other_columns_and_their_order_are_as_dask_has_them():
    frames = [frame.assign(note=objects(*range(len(frame)))) for frame in (NUMBERS, MIXED)]
    ddf = of_files(frames[1], frames)
    found, expected = as_its_source_has_it(ddf, "rider").compute(), ddf.compute()
    pd.testing.assert_frame_equal(found.drop(columns="rider"), expected.drop(columns="rider"))
    assert list(found.columns) == list(expected.columns)
    assert found["note"].dtype == "string"


FILES = {
    "parquet": (gpd.GeoDataFrame.to_parquet, dask_geopandas.read_parquet),
    "feather": (gpd.GeoDataFrame.to_feather, dask_geopandas.read_feather),
}
AFTER = {
    **{name: STEPS[name] for name in ("as it is", "columns", "filter")},
    "looks": lambda d: d[d.rider != 8],
}


def written(folder, ids, gaps, kind="parquet"):
    """Write one row for each id in two files; the second with more rows of no id, as others than pandas write them."""
    dtype = pd.Series(ids).dtype.name.replace("u", "U").replace("i", "I")
    whole = rows(pd.array([*ids, *[None] * gaps], dtype=dtype))
    folder.mkdir()
    for number, frame in enumerate((whole.iloc[:2], whole.iloc[2:])):
        plain(frame, folder / f"{number}.{kind}", kind)
    return FILES[kind][1](f"{folder}/*.{kind}")


def plain(frame, path, kind):
    """Write a file whose only types are those of its schema: pandas notes its own dtypes beside them."""
    from pyarrow import feather, parquet

    FILES[kind][0](frame, path)
    table = parquet.read_table(path) if kind == "parquet" else feather.read_table(path)
    table = table.replace_schema_metadata({b"geo": table.schema.metadata[b"geo"]})
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("after", AFTER)
def test_one_missing_id_in_a_file_leaves_all_others_as_they_were(tmp_path, after, kind):
    ids = [BIG + i for i in range(6)]
    without, with_gap = (written(tmp_path / str(gaps), ids, gaps, kind) for gaps in (0, 1))
    assert str(computed(with_gap.partitions[1]).dtypes["rider"]) == "float64"  # so dask would have it
    assert people(AFTER[after](without)) == people(AFTER[after](with_gap)) == 6


@pytest.mark.parametrize("after", AFTER)
def test_one_missing_id_in_a_layer_leaves_all_others_as_they_were(tmp_path, after):
    found = []
    for gaps in (0, 1):
        ids = [BIG + i for i in range(5)]
        whole = rows(pd.array([*ids[:3], *[None] * gaps, *ids[3:]], "Int64"))
        whole.to_file(tmp_path / f"{gaps}.gpkg", engine="pyogrio")
        ddf = dask_geopandas.read_file(tmp_path / f"{gaps}.gpkg", chunksize=2)
        assert (computed(ddf.partitions[1]).dtypes["rider"] == "float64") == bool(gaps)
        found.append(people(AFTER[after](ddf)))
    assert found == [5, 5]


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64"]
)
def test_ids_of_every_width_are_read_whole(tmp_path, dtype):
    ids = pd.Series([1, 2, 3, 4], dtype=dtype)
    if dtype == "float64":
        rows(ids.where(ids < 4)).to_parquet(tmp_path / "0.parquet")
        assert people(dask_geopandas.read_parquet(f"{tmp_path}/*.parquet")) == 3
        return
    ids[2:] = np.iinfo(dtype).max - np.array([1, 0], dtype)
    ddf = as_its_source_has_it(written(tmp_path / "x", ids, 1), "rider")
    assert [int(value) for value in computed(ddf)["rider"].dropna()] == [int(value) for value in ids]
    assert people(ddf) == 4


def test_values_and_slots_are_read_as_ever(tmp_path):
    frame = rows([BIG, BIG + 1, BIG + 2]).assign(hour=pd.array([8, 9, None], "Int64"))
    plain(frame, tmp_path / "0.parquet", "parquet")
    ddf = dask_geopandas.read_parquet(f"{tmp_path}/*.parquet")
    assert computed(as_its_source_has_it(ddf, "rider"))["hour"].dtype == np.float64
    with geodp.testing.noiseless():
        heat = ddf.dp.heatmap(1, **SETTING, by={"hour": range(8, 10)})
        total = ddf.dp.sum("hour", 1, 1e-6, **SETTING, value_bounds=(0, 10))
    assert heat["noisy_count"].sum() == 2
    assert total["noisy_sum"].sum() == pytest.approx(17)


def test_numbers_beside_texts_in_files_stay_two_kinds_of_ids(tmp_path):
    for number, ids in enumerate(([7, 8], ["7", "8"])):
        rows(ids, number * 2).to_parquet(tmp_path / f"{number}.parquet")
    assert people(dask_geopandas.read_parquet(f"{tmp_path}/*.parquet")) == 4


def test_plain_dask_frames_of_files_keep_ids_whole_when_told_to(tmp_path):
    """What docs/dask.md says of Parquet without geometry."""
    frame = rows(pd.array([BIG, BIG + 1, None], "Int64"))
    table = pd.DataFrame({"rider": frame["rider"], "lon": shapely.get_x(frame.geometry), "lat": 40.7})
    table.astype({"rider": "Int64"}).to_parquet(tmp_path / "0.parquet")
    ddf = dd.read_parquet(f"{tmp_path}/*.parquet", dtype_backend="numpy_nullable")
    points = dask_geopandas.points_from_xy(ddf, "lon", "lat")
    assert people(dask_geopandas.from_dask_dataframe(ddf, geometry=points).set_crs(4326)) == 2
