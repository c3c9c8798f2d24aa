"""One row that no library would read, in every kind of file: the others are read as if it were not there."""

import functools
import io
import json
import shutil
import sqlite3
import struct

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geodp.brackets import apart
from geodp.fileparts import points_of
from geodp.reading import BadInput, read_points

KINDS = {"rider": "text", "minutes": "number", "hour": "number"}
PLACES = [0, 3, 6]
CALL = ["--subject", "rider", "--cap", "1", "--bounds=0,0,4,4", "--grid", "h3:1", "--eps", "1", "-q"]


def wkb(kind, *numbers, count=1):
    """Return WKB of one part with these coordinates; kind 1 has no count."""
    head = struct.pack("<BI", 1, kind) + (b"" if kind % 1000 == 1 else struct.pack("<I", count))
    return head + struct.pack(f"<{len(numbers)}d", *numbers)


HERE = wkb(1, 0.5, 0.5)
GEOMETRIES = {
    "null": None,
    "nothing": b"",
    "one byte": b"\x01",
    "junk": b"\x07garbage",
    "a head alone": b"\x01\x01\x00\x00\x00",
    "half a point": wkb(1, 1.0),
    "a point and more": wkb(1, 1.0, 1.0, 7.0),
    "NaN": wkb(1, np.nan, np.nan),
    "infinity": wkb(1, np.inf, 1.0),
    "far away": wkb(1, 1e300, -1e300),
    "with Z": wkb(1001, 1.0, 1.0, 1.0),
    "with a flag for Z": wkb(0x80000001, 1.0, 1.0, 1.0),
    "ZM": wkb(3001, 1.0, 1.0, 1.0, 1.0),
    "with an SRID": struct.pack("<BII2d", 1, 0x20000001, 3857, 1.0, 1.0),
    "a line of one point": wkb(2, 1.0, 2.0),
    "a line of very many points": wkb(2, 1.0, 2.0, count=2**32 - 1),
    "a ring not closed": struct.pack("<BIII8d", 1, 3, 1, 4, 0, 0, 1, 1, 2, 0, 5, 5),
    "a ring of three points": struct.pack("<BIII6d", 1, 3, 1, 3, 0, 0, 1, 1, 2, 2),
    "a circular string": wkb(8, 0, 0, 1, 1, 2, 0, count=3),
    "a compound curve": struct.pack("<BII", 1, 9, 1) + wkb(8, 0, 0, 1, 1, 2, 0, count=3),
    "a curve polygon": struct.pack("<BII", 1, 10, 1) + wkb(8, 0, 0, 1, 1, 0, 0, count=3),
    "a TIN": wkb(16, count=0),
    "a triangle": wkb(17, count=0),
    "a surface": wkb(15, count=0),
    "no kind": wkb(99, 1.0, 1.0),
    "points": struct.pack("<BII", 1, 4, 1) + wkb(1, 1.0, 1.0),
    "a collection of itself": struct.pack("<BII", 1, 7, 1) * 50_000,
    "big-endian": struct.pack(">BI2d", 0, 1, 1.0, 1.0),
}
# What SQLite lets stand in a column whatever its type.
VALUES = {
    "null": None,
    "not UTF-8": b"Jos\xe9",
    "a NUL": "a\0b",
    "a text": "abc",
    "a date": "2026-11-30T00:00:00+05:00",
    "large": 2**63 - 1,
    "half": 2.5,
    "infinite": float("inf"),
    "huge": 1e300,
    "long": "x" * 300_000,
    "bytes": b"\xff\x00\xfe",
    "nested": "[" * 5000,
}


def told(path, skip=None, kinds=KINDS):
    """Return all that is read of every row but one, dtypes and CRS included, or the error."""
    try:
        frame = read_points(str(path), kinds)
    except BadInput as error:
        return str(error).replace(str(path), "")
    if skip is not None:
        frame = frame.drop(index=frame.index[skip])
    values = [[(type(value), repr(value)) for value in frame[name]] for name in kinds]
    return values, [*map(str, frame.dtypes)], frame.crs, frame.geometry.to_wkb().tolist(), len(frame)


def frame_of(n=6, dtype="str", **more):
    riders = pd.Series([str(2**60 + i) for i in range(n)], dtype=object).astype(dtype)
    data = {"rider": riders, "minutes": np.arange(n) * 1.5, "hour": pd.array(range(n), "Int64")}
    return gpd.GeoDataFrame({**data, **more}, geometry=gpd.points_from_xy([0.5] * n, [0.5] * n), crs=4326)


# GeoPackage -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["str", "int64"])
def package(request, tmp_path_factory):
    """A GeoPackage whose rows leave room for others, with a column of moments and one of days."""
    path = tmp_path_factory.mktemp("package") / f"{request.param}.gpkg"
    days = pd.to_datetime(["2026-01-01"] * 6)
    frame_of(dtype=request.param, at=days).to_file(path, layer="a", geometry_type="Unknown")
    with sqlite3.connect(path) as base:
        for (name,) in base.execute("select name from sqlite_master where type='trigger'").fetchall():
            base.execute(f'drop trigger "{name}"')
        base.execute("alter table a add column day DATE")
        base.execute("alter table a add column tag BLOB")
        base.execute("update a set fid = -fid")
        base.execute("update a set fid = -10 * fid, day = '2026-01-01'")
    base.close()
    return path


def inserted(package, folder, place, **values):
    path = shutil.copy(package, folder / "a.gpkg")
    row = {"fid": 10 * place + 5, "rider": "7", "minutes": 1.0, "hour": 1, **values}
    if "geom" not in row:
        row["geom"] = HERE
    if row["geom"] is not None:
        row["geom"] = b"GP\x00\x01" + struct.pack("<i", 4326) + row["geom"]
    with sqlite3.connect(path) as base:
        base.execute(f"insert into a({','.join(row)}) values({','.join('?' * len(row))})", [*row.values()])
        base.execute("update a set rider = cast(rider as text) where typeof(rider) = 'blob'")
    base.close()
    return path


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_geometry_in_a_geopackage(package, tmp_path, name):
    for place in PLACES:
        assert told(inserted(package, tmp_path, place, geom=GEOMETRIES[name]), place) == told(package)


@pytest.mark.parametrize("column", ["rider", "minutes", "hour", "at", "day", "tag"])
def test_a_value_in_a_geopackage(package, tmp_path, column):
    """Columns that are not asked for matter as little."""
    without = told(package)
    for number, (name, value) in enumerate(VALUES.items()):
        place = PLACES[number % 3]
        assert told(inserted(package, tmp_path, place, **{column: value}), place) == without, name


@pytest.mark.parametrize("column", ["at", "day", "tag"])
@pytest.mark.parametrize("value", ["junk", "2026-01-01T00:00:00+05:00", "9999-12-31T00:00:00Z", None])
def test_moments_in_a_geopackage_are_refused_whatever_they_are(package, tmp_path, column, value):
    kinds = {"rider": "text", column: "text"}
    without = told(package, kinds=kinds)
    assert f"column '{column}' holds dates, times, lists or bytes" in without
    assert told(inserted(package, tmp_path, 3, **{column: value}), 3, kinds) == without


def test_blobs_without_the_head_of_a_geopackage(package, tmp_path):
    for blob in (b"", b"GP", b"GP\x00\xff\xff\xff\xff\xff\x01", b"junk", "a text", 7):
        path = inserted(package, tmp_path, 3)
        with sqlite3.connect(path) as base:
            base.execute("update a set geom = ? where fid = 35", [blob])
        base.close()
        assert told(path, 3) == told(package), blob


# GeoParquet -------------------------------------------------------------------------------------------------


@functools.cache
def six():
    """Return what geopandas writes of six rows."""
    written = io.BytesIO()
    frame_of().to_parquet(written)
    return pq.read_table(written)


def parquet(path, place=None, geometry=HERE, rider="7", **more):
    """Write six rows, and one more, as GeoParquet."""
    table = six()
    columns = {name: table[name].to_pylist() for name in ("rider", "minutes", "hour", "geometry")}
    columns["minutes"] = [float(value) for value in columns["minutes"]]
    new = {"rider": rider, "minutes": 1.0, "hour": 1, "geometry": geometry, **more}
    if place is not None:
        columns = {name: [*some[:place], new[name], *some[place:]] for name, some in columns.items()}
    arrays = {name: pa.array(some, table[name].type) for name, some in columns.items() if name != "rider"}
    arrays["rider"] = texts(columns["rider"])
    pq.write_table(pa.table(arrays).replace_schema_metadata(table.schema.metadata), path)
    return path


def texts(values):
    """Return an Arrow array of texts that need be no UTF-8."""
    encoded = [
        None if value is None else value if isinstance(value, bytes) else value.encode() for value in values
    ]
    found = pa.array(encoded, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(found), found.buffers())


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_geometry_in_geoparquet(tmp_path, name):
    without = told(parquet(tmp_path / "a.parquet"))
    for place in PLACES:
        assert told(parquet(tmp_path / "b.parquet", place, GEOMETRIES[name]), place) == (without)


def test_a_geometry_in_a_folder_of_geoparquet(tmp_path):
    folders = [tmp_path / name for name in ("without", "with")]
    for folder in folders:
        folder.mkdir()
        parquet(folder / "a.parquet")
        parquet(folder / "c.parquet")
    without = told(folders[0])
    for number, geometry in enumerate(GEOMETRIES.values()):
        parquet(folders[1] / "a.parquet", PLACES[number % 3], geometry)
        assert told(folders[1], PLACES[number % 3]) == without


@pytest.mark.parametrize(
    "rider", [None, b"Jos\xe9", b"\xff", b"\xed\xa0\x80", "a\0b", "x" * 300_000], ids=repr
)
def test_a_text_in_geoparquet(tmp_path, rider):
    without = told(parquet(tmp_path / "a.parquet"))
    for place in PLACES:
        path = parquet(tmp_path / "b.parquet", place, rider=rider)
        assert told(path, place) == without
        is_text = rider is not None and not isinstance(rider, bytes)
        assert read_points(str(path), KINDS)["rider"].notna()[place] == is_text


@pytest.mark.parametrize("value", [None, np.nan, np.inf, 1e300, -0.0])
def test_a_number_in_geoparquet(tmp_path, value):
    without = told(parquet(tmp_path / "a.parquet"))
    for place in PLACES:
        assert told(parquet(tmp_path / "b.parquet", place, minutes=value), place) == without


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.decimal128(38, 0), pa.list_(pa.string()), pa.binary(), pa.time64("ns")]
)
def test_columns_of_other_types_are_refused_by_their_type(tmp_path, kind):
    table = pa.table({"rider": pa.nulls(2, kind), "x": [0.5, 0.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="column 'rider' is of type"):
        read_points(str(tmp_path / "a.parquet"), {"rider": "text"}, lon="x", lat="x")


@pytest.mark.parametrize("size", [pa.int8(), pa.int32(), pa.int64()])
def test_an_index_of_texts_that_repeats_one(tmp_path, size):
    index = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3], size), texts(["a", "a", "b", b"\xff"]))
    pq.write_table(pa.table({"rider": index, "x": [0.5] * 4}), tmp_path / "a.parquet")
    frame = read_points(str(tmp_path / "a.parquet"), {"rider": "text"}, lon="x", lat="x")
    assert frame["rider"].tolist()[:3] == ["a", "a", "b"]
    assert frame["rider"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize("moment", [None, 0, 2**62, -(2**62)])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_moments_in_parquet_keep_the_unit_of_the_schema(tmp_path, moment, zone):
    read = []
    for number, more in enumerate(([], [moment])):
        table = pa.table(
            {"at": pa.array([1, 2, *more], pa.timestamp("us", zone)), "x": [0.5] * (2 + len(more))}
        )
        pq.write_table(table, tmp_path / f"{number}.parquet")
        frame = read_points(str(tmp_path / f"{number}.parquet"), {"at": "text"}, lon="x", lat="x")
        read.append((str(frame["at"].dtype), frame["at"].iloc[:2].tolist()))
    assert read[0] == read[1]


def test_native_points_of_geoparquet(tmp_path):
    frame = frame_of()
    frame.loc[3, "geometry"] = None
    frame.to_parquet(tmp_path / "a.parquet", geometry_encoding="geoarrow")
    read = read_points(str(tmp_path / "a.parquet"), KINDS)
    assert read.geometry.x.fillna(0).tolist() == [0.5, 0.5, 0.5, 0, 0.5, 0.5]
    lines = frame_of().set_geometry([shapely.LineString([(0, 0), (1, 1)])] * 6, crs=4326)
    lines.to_parquet(tmp_path / "b.parquet", geometry_encoding="geoarrow")
    with pytest.raises(BadInput, match="declared to be no points"):
        read_points(str(tmp_path / "b.parquet"), KINDS)


# FlatGeobuf -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        None,
        shapely.Point(),
        shapely.LineString([(0, 0), (1, 1)]),
        shapely.box(0, 0, 1, 1),
    ],
)
def test_a_geometry_in_a_flatgeobuf(tmp_path, odd):
    frame = frame_of()
    frame.to_file(tmp_path / "a.fgb", SPATIAL_INDEX="NO", geometry_type="Unknown")
    for place in PLACES:
        at = [*range(place), 0, *range(place, 6)]
        more = frame.iloc[at].reset_index(drop=True)
        more.loc[place, "geometry"] = odd
        more.to_file(tmp_path / "b.fgb", SPATIAL_INDEX="NO", geometry_type="Unknown")
        assert told(tmp_path / "b.fgb", place) == told(tmp_path / "a.fgb")


def test_moments_in_a_flatgeobuf_are_refused_whatever_they_are(tmp_path):
    said = []
    naive = pd.Series(pd.to_datetime(["2026-01-01T00:00"] * 6))
    for name, at in (("a", naive), ("b", naive.dt.tz_localize("+05:00"))):
        frame_of(at=at).to_file(tmp_path / f"{name}.fgb")
        assert len(read_points(str(tmp_path / f"{name}.fgb"), KINDS)) == 6
        said.append(told(tmp_path / f"{name}.fgb", kinds={"at": "text"}))
    assert said[0] == said[1]
    assert "column 'at' holds dates" in said[0]


# GeoJSON ----------------------------------------------------------------------------------------------------


def feature(rider, place=(0.5, 0.5), **more):
    properties = {"rider": rider, "minutes": 1.5, "hour": 1, **more}
    geometry = {"type": "Point", "coordinates": list(place)}
    return json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}).encode()


def geojson(folder, features, name, head=b""):
    path = folder / name
    whole = b'{"type":"FeatureCollection",' + head + b'"features":[' + b",".join(features) + b"]}"
    path.write_bytes(b"\n".join(features) if name.endswith("ndjson") else whole)
    return path


BASE = [feature(rider) for rider in ("a", "007", 2**60 + 1, 1.5, 'quote " [{ \\', "é\ud83d\ude00")]
NESTED = b"[" * 5000 + b"]" * 5000
FEATURES = {
    "deep property": feature("z", x="?").replace(b'"?"', NESTED),
    "deep objects": feature("z", x="?").replace(b'"?"', b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "deep id": feature("?").replace(b'"?"', NESTED),
    "deep place": feature("z").replace(b"[0.5, 0.5]", NESTED),
    "only deep": NESTED,
    "deep after quotes": feature('"[\\"', x="?").replace(b'"?"', NESTED),
    "Latin-1": feature("?").replace(b"?", b"Jos\xe9"),
    "Latin-1 elsewhere": feature("z", x="?").replace(b"?", b"Jos\xe9"),
    "Latin-1 and deep": feature("Jos?", x="!").replace(b"?", b"\xe9").replace(b'"!"', NESTED),
    "half a pair": feature("\ud800"),
    "an escape": feature("\udce9"),
    "an encoded half": feature("?").replace(b"?", b"\xed\xa0\x80"),
    "digits": feature("?").replace(b'"?"', b"9" * 5000),
    "exponent": feature("?").replace(b'"?"', b"1e999"),
    "NaN": feature(float("nan")),
    "null": b"null",
    "empty": b"{}",
    "number": b"7",
    "array": b'[{"": 1}]',
    "marked": b'{"": 0}',
    "long": feature("x" * 300_000),
    "a line": feature("z").replace(b"Point", b"LineString"),
}


@pytest.mark.parametrize("ending", ["geojson", "ndjson"])
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature(tmp_path, name, ending):
    without = told(geojson(tmp_path, BASE, f"a.{ending}"))
    for place in PLACES:
        more = [*BASE[:place], FEATURES[name], *BASE[place:]]
        assert told(geojson(tmp_path, more, f"b.{ending}"), place) == without


@pytest.mark.parametrize("ending", ["geojson", "ndjson"])
def test_different_bytes_are_different_ids(tmp_path, ending):
    """Bytes that are no UTF-8 stay apart, also from what escapes could spell; other escapes are what they are."""
    raw = [feature("?").replace(b"?", text) for text in (b"\xe9", b"\xe8", b"\xe9\xe9")]
    path = geojson(
        tmp_path, [*raw, feature("\udce9"), feature("\ud800"), feature("\U0001f600")], f"a.{ending}"
    )
    ids = read_points(str(path), KINDS)["rider"].tolist()
    assert ids == ["\udce9", "\udce8", "\udce9\udce9", None, "\ud800", "\U0001f600"]
    both = feature("?\udce9").replace(b"?", b"\xe9")
    assert read_points(str(geojson(tmp_path, [both], f"b.{ending}")), KINDS)["rider"].tolist() == [None]
    assert read_points(str(geojson(tmp_path, [feature("\udce9")], f"c.{ending}")), KINDS)[
        "rider"
    ].tolist() == [None]


def test_how_deep_a_feature_may_go_depends_on_no_other(tmp_path):
    """At every depth around the limit of the parser, whichever way the document is read."""

    def features(deepest):
        return [feature("z", x="?").replace(b'"?"', b"[" * n + b"]" * n) for n in deepest]

    for depth in [100, 500, *range(880, 1000, 2)]:
        alone = told(geojson(tmp_path, features([depth]), "a.geojson"))
        assert told(geojson(tmp_path, features([depth, 5000]), "b.geojson"), 1) == alone


def test_the_rest_of_a_document_is_read_as_ever(tmp_path):
    crs = b'"crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::3035"}},"more":' + NESTED + b","
    features = [*BASE, FEATURES["deep property"], FEATURES["Latin-1"]]
    read = read_points(str(geojson(tmp_path, features, "a.geojson", head=crs)), KINDS)
    assert read.crs == 3035
    assert read["rider"].tolist()[:3] == ["a", "007", 2**60 + 1]
    alone = tmp_path / "one.geojson"
    alone.write_bytes(FEATURES["deep property"])
    assert len(read_points(str(alone), KINDS)) == 1


def test_brackets_in_texts_are_text():
    text = '{"a": "[{", "b": [{"c": "]}\\"}"}, 3, [4, {}], "x"], "d": {"e": [[5]]}}'
    rest, pieces = apart(text)
    assert rest == '{"a": "[{", "b": [{"": 0}, 3, {"": 1}, "x"], "d": {"e": [[5]]}}'
    assert pieces == ['{"c": "]}\\"}"}', "[4, {}]"]


# All of it ---------------------------------------------------------------------------------------------------


def test_what_is_a_point_and_what_is_none():
    found = points_of(pa.chunked_array([pa.array(list(GEOMETRIES.values()), pa.binary())]))
    kinds = dict(zip(GEOMETRIES, [None if one is None else one.geom_type for one in found], strict=True))
    assert [name for name, kind in kinds.items() if kind is None] == [
        *("null", "nothing", "one byte", "junk", "a head alone", "half a point", "no kind")
    ]
    assert {kinds[name] for name in ("with Z", "ZM", "with a flag for Z", "with an SRID", "big-endian")} == {
        "Point"
    }
    assert {kinds[name] for name in ("a TIN", "a circular string", "points")} == {"LineString"}
    assert points_of(pa.chunked_array([], pa.binary())).tolist() == []


def test_exit_codes_and_messages(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame_of().to_file("base.gpkg", layer="a", geometry_type="Unknown")
    with sqlite3.connect("base.gpkg") as base:
        for (name,) in base.execute("select name from sqlite_master where type='trigger'").fetchall():
            base.execute(f'drop trigger "{name}"')
        base.execute("update a set fid = 10 * fid where fid < 0")
    base.close()
    said = set()

    def release(path):
        done = run("heatmap", path, "-o", "heat.geojson", *CALL)
        said.add((done.code, done.out, done.err.replace(str(path), "")))

    for name in ("a line of one point", "a TIN", "junk"):
        release(parquet(tmp_path / "a.parquet", 3, GEOMETRIES[name]))
    for name in ("a line of one point", "a TIN", "junk"):
        release(inserted("base.gpkg", tmp_path, 30, geom=GEOMETRIES[name]))
    release(inserted("base.gpkg", tmp_path, 30, rider=b"Jos\xe9"))
    release(parquet(tmp_path / "a.parquet", 3, rider=b"Jos\xe9"))
    for name in ("deep property", "Latin-1", "an escape", "digits"):
        for ending in ("geojson", "ndjson"):
            release(geojson(tmp_path, [*BASE, FEATURES[name]], f"a.{ending}"))
    assert said == {(0, "", "")}
