"""One row more in a file changes how no other row is read: not its id, its value, its slot, nor whether it is."""

import csv
import gzip
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geodp import textlines
from geodp.reading import BadInput, read_points
from geodp.subjects import subjects

KINDS = {"rider": "text", "minutes": "number", "hour": "number"}
LARGE = 2**60
BASE = [(LARGE + i, 1.5 * i, i % 3) for i in range(6)]
MORE = [
    None,
    True,
    1.0,
    1,
    "1",
    "bob",
    ["bob"],
    {"a": 1},
    2**63,
    10**30,
    1e300,
    "2026-11-30",
    LARGE + 1,
    -0.0,
]


def feature(rider, minutes=1.0, hour=1, place=(0.5, 0.5)):
    """Return a feature of GeoJSON."""
    properties = {"rider": rider, "minutes": minutes, "hour": hour}
    return {
        "type": "Feature",
        "properties": properties,
        "geometry": {"type": "Point", "coordinates": list(place)},
    }


def geojson(folder, features, name="a.geojson"):
    path = folder / name
    lines = name.endswith("l")
    whole = {"type": "FeatureCollection", "features": features}
    path.write_text("\n".join(map(json.dumps, features)) if lines else json.dumps(whole))
    return str(path)


def facts(frame, n):
    """Return all that the first n rows say."""
    frame = frame.iloc[:n]
    who = subjects(frame["rider"])
    ids = [None if code < 0 else who.ids[code] for code in who.codes]
    values = frame[["minutes", "hour"]].to_numpy(dtype=float, na_value=np.nan)
    return ids, [type(some) for some in ids], values.tolist(), frame.geometry.to_wkb().tolist()


@pytest.mark.parametrize("name", ["a.geojson", "a.geojsonl"])
@pytest.mark.parametrize(
    "base", [[row[0] for row in BASE], ["1", "a", "b", "007", "x", "y"], [0.5, None, [1], 2.5, 1, "1"]]
)
@pytest.mark.parametrize("more", MORE, ids=repr)
def test_a_feature_more(tmp_path, name, base, more):
    rows = [feature(rider, *row[1:]) for rider, row in zip(base, BASE, strict=True)]
    without = read_points(geojson(tmp_path, rows, name), KINDS)
    for extra in (feature(more), feature("z", more, more), {**feature(1), "properties": {"met Ana": 1}}):
        with_it = read_points(geojson(tmp_path, [*rows, extra], name), KINDS)
        assert facts(with_it, 6) == facts(without, 6)
        assert with_it.dtypes.equals(without.dtypes)
        assert len(with_it) == 7


@pytest.mark.parametrize(
    "more",
    [
        None,
        7,
        "x",
        [],
        {},
        {"type": "Feature"},
        {"type": "Feature", "properties": 3, "geometry": {"type": "Point"}},
    ]
    + [
        feature(1, place=place)
        for place in ([], ["a", 1], [None, None], [1e999, 0], [[1, 2], [3, 4]], [10**400, 1])
    ],
    ids=repr,
)
def test_a_broken_feature_more(tmp_path, more):
    rows = [feature(*row) for row in BASE]
    without = read_points(geojson(tmp_path, rows), KINDS)
    with_it = read_points(geojson(tmp_path, [*rows, more]), KINDS)
    assert facts(with_it, 6) == facts(without, 6)
    assert with_it.geometry.iloc[6] is None or not np.isfinite(with_it.geometry.iloc[6].x)


def test_a_broken_line_more(tmp_path):
    path = tmp_path / "a.ndjson"
    lines = [json.dumps(feature(*row)) for row in BASE]
    path.write_text("\n".join(lines))
    without = read_points(str(path), KINDS)
    path.write_text("\n".join([*lines, '{"type": "Feat', "[" * 100_000, "9" * 5000]))
    assert facts(read_points(str(path), KINDS), 6) == facts(without, 6)


def test_a_geojson_of_nobody_has_the_same_columns(tmp_path):
    assert read_points(geojson(tmp_path, []), KINDS).dtypes.equals(
        read_points(geojson(tmp_path, [feature(*row) for row in BASE]), KINDS).dtypes
    )


def test_the_crs_that_a_geojson_names(tmp_path):
    path = tmp_path / "a.geojson"
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3035"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature(1)]}))
    assert read_points(str(path), KINDS).crs == 3035
    crs["properties"]["name"] = "urn:ogc:def:crs:OGC:1.3:CRS84"
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [feature(1)]}))
    assert read_points(str(path), KINDS).crs == 4326


@pytest.mark.parametrize("end", ["gpkg", "fgb", "parquet"])
@pytest.mark.parametrize("dtype", ["Int64", "Int32", "str"])
def test_a_row_with_gaps_more(tmp_path, end, dtype):
    start = LARGE if dtype == "Int64" else 100
    base = pd.DataFrame({"rider": range(start, start + 6), "minutes": np.arange(6.0), "hour": range(6)})
    base["rider"] = base["rider"].astype(dtype)
    gaps = pd.DataFrame({"rider": [None], "minutes": [None], "hour": [None]})
    read = []
    for number, table in enumerate(
        (base, pd.concat([base, gaps.astype({"rider": dtype, "minutes": float})]))
    ):
        frame = gpd.GeoDataFrame(
            table.astype({"hour": "Int64"}).reset_index(drop=True),
            geometry=gpd.points_from_xy([0.5] * len(table), [0.5] * len(table)),
            crs=4326,
        )
        path = tmp_path / f"{number}.{end}"
        frame.to_parquet(path) if end == "parquet" else frame.to_file(path)
        read.append(read_points(str(path), KINDS).sort_values("minutes").reset_index(drop=True))
    assert facts(read[0], 6) == facts(read[1], 6)
    assert facts(read[0], 6)[0][:1] == [str(start) if dtype == "str" else start]
    assert read[0].dtypes.equals(read[1].dtypes)


@pytest.mark.parametrize("kind", ["int64", "uint64", "bool_"])
def test_a_row_of_a_table_more(tmp_path, kind):
    """Ids that are truths are refused whether or not one is missing."""
    ids = [True] * 6 if kind == "bool_" else [LARGE + i for i in range(6)]
    read = []
    for more in ([], [None]):
        table = {"rider": pa.array(ids + more, getattr(pa, kind)()), "x": [0.5] * (6 + len(more))}
        pq.write_table(pa.table(table), tmp_path / "a.parquet")
        read.append(read_points(str(tmp_path / "a.parquet"), {"rider": "text"}, lon="x", lat="x"))
    assert read[0]["rider"].tolist() == read[1]["rider"].tolist()[:6] == ids
    assert read[0]["rider"].dtype == read[1]["rider"].dtype


def test_formats_whose_types_are_guessed_are_refused(tmp_path):
    path = tmp_path / "a.gml"
    gpd.GeoDataFrame({"rider": [1]}, geometry=gpd.points_from_xy([1], [1]), crs=4326).to_file(
        path, driver="GML"
    )
    with pytest.raises(BadInput, match="GML does not declare types of columns"):
        read_points(str(path), {"rider": "text"})


@pytest.mark.parametrize("odd", ["crs", "column", "geometry", "type"])
def test_one_file_of_a_folder_that_differs_is_named(tmp_path, odd):
    """Its rows would be lost without a word."""
    frame = gpd.GeoDataFrame({"rider": [1, 2]}, geometry=gpd.points_from_xy([0.5] * 2, [0.5] * 2), crs=4326)
    other = {
        "crs": lambda: frame.to_crs(32631),
        "column": lambda: frame.rename(columns={"rider": "driver"}),
        "geometry": lambda: frame.rename_geometry("g"),
        "type": lambda: frame.astype({"rider": str}),
    }[odd]()
    folder = tmp_path / "trips"
    folder.mkdir()
    frame.to_parquet(folder / "a.parquet")
    frame.to_parquet(folder / "b.parquet")
    assert len(read_points(str(folder), {"rider": "text"})) == 4
    other.to_parquet(folder / "c.parquet")
    with pytest.raises(BadInput, match=r"c\.parquet: its columns, their types or its CRS"):
        read_points(str(folder), {"rider": "text"})


# CSV --------------------------------------------------------------------------------------------------------

HEAD = b"rider,minutes,x,y"
WHOLE = [
    b"a,1,0.5,0.5",
    b'"b",2,0.5,0.5',
    b'"c, or ""d""",3,0.5,0.5',
    b'"007","4","0.5","0.5"',
    b'f"g,5,0.5,0.5',
]
OPEN = [b'"', b',"', b'"h,6,0.5,0.5', b'h,6,0.5,"0.5', b'"h""', b'"h"i,"j', b'","k,"', b'h,"', b'"""']


def rows(folder, lines, name="a.csv", end=b"\n", head=HEAD):
    """Return what each row of a CSV of these lines says."""
    path = folder / name
    path.write_bytes(b"".join(line + end for line in [head, *lines]))
    frame = read_points(str(path), {"rider": "text", "minutes": "number"}, lon="x", lat="y")
    table = frame.assign(x=frame.geometry.x, y=frame.geometry.y).drop(columns="geometry")
    return [tuple(map(repr, row)) for row in table.itertuples(index=False)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("more", OPEN, ids=repr)
def test_a_line_that_leaves_a_quote_open_is_nobodys_and_the_others_stay(tmp_path, end, place, more):
    without = rows(tmp_path, WHOLE, end=end)
    with_it = rows(tmp_path, [*WHOLE[:place], more, *WHOLE[place:]], end=end)
    assert [row[0] for row in without] == ["'a'", "'b'", "'c, or \"d\"'", "'007'", "'f\"g'"]
    assert with_it[:place] + with_it[place + 1 :] == without
    assert with_it[place] == ("nan", "nan", "nan", "nan")


CHARACTERS = [b"a", b"1", b",", b'"', b"\r", b" ", b"-0", b"\xff", b"\x00", b"'", b"\\"]
LINES = st.lists(st.lists(st.sampled_from(CHARACTERS), max_size=9).map(b"".join), max_size=5)


@given(lines=LINES, more=LINES, size=st.sampled_from([1, 7, 1 << 20]))
@example(lines=[b"a,1,2,3"], more=[b'"'], size=1)
def test_lines_are_read_alike_whatever_the_others_are(tmp_path_factory, lines, more, size):
    """All rows of two files together are those of one file with the lines of both."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(textlines, "_CHUNK", size)
        apart = rows(folder, lines) + rows(folder, more)
        assert rows(folder, lines + more) == apart
        assert sorted(rows(folder, more + lines)) == sorted(apart)


# What stands where pandas' own buffer may end: blanks, quotes, line ends and what is no text.
_BUFFER = 262_144
HARD = [
    b'  "m,1,2,3',
    b'\t"m,1,2,3',
    b"  bob,1,2,3",
    b" ,1,2,3",
    b"   ",
    b"",
    b'"a""b",1,2,3',
    b'"a"  ,1, 2,3',
    b'a, "b,1,2',
    b"\xc3\xa9\xff,1,2,3",
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("line", HARD, ids=repr)
def test_no_row_depends_on_where_a_buffer_ends(tmp_path, line, end):
    """A long row puts the end of pandas' buffer on every byte of the line behind it, and of two plain ones."""
    alone = rows(tmp_path, [line], end=end)
    behind = [line, b"  bob,1,2,3", b'"w",1,2,3']
    expected = [*alone, ("'  bob'", "1.0", "2.0", "3.0"), ("'w'", "1.0", "2.0", "3.0")]
    for into in range(-2, len(line) + 9):
        pad = _BUFFER - into - len(HEAD) - 2 * len(end) - len(b",1,2,3")
        assert rows(tmp_path, [b"p" * pad + b",1,2,3", *behind], end=end)[1:] == expected, into


@pytest.mark.parametrize(
    "before", [b"\n", b" \t\n\n", b"\xef\xbb\xbf\r\n \r\n", b"\r \r", b"\xef\xbb\xbf", b"\n" * 3_000_000]
)
def test_the_first_line_that_is_not_blank_names_the_columns(tmp_path, before):
    (tmp_path / "a.csv").write_bytes(before + b"rider,x,y\na,1,2\n")
    frame = read_points(str(tmp_path / "a.csv"), {"rider": "text"}, lon="x", lat="y")
    assert frame["rider"].tolist() == ["a"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz"])
def test_well_formed_quotes_are_read_in_every_kind(tmp_path, name):
    opened = gzip.open if name.endswith("gz") else open
    separator = "\t" if ".tsv" in name else ","
    table = [["rider", "x", "y"], [f"Ana{separator} Ben", "0.5", "1"], ['say "hi"', "2", "3"]]
    with opened(tmp_path / name, "wt", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(table)
    frame = read_points(str(tmp_path / name), {"rider": "text"}, lon="x", lat="y")
    assert frame["rider"].tolist() == [table[1][0], table[2][0]]
    assert frame.geometry.x.tolist() == [0.5, 2]


def test_a_line_break_in_quotes_ends_the_row(tmp_path):
    """Both halves are rows without an id or a place of their own, and no other row is touched."""
    read = rows(tmp_path, [WHOLE[0], b'h,6,0.5,0.5,"first', b'second",x', WHOLE[1]])
    assert (read[0][0], read[-1][0]) == ("'a'", "'b'")
    assert read[1] == ("nan", "nan", "nan", "nan")
    assert read[2][1:] == ("nan", "nan", "nan")
    with pytest.raises(BadInput, match="no column 'rider' in its first line"):
        rows(tmp_path, WHOLE, head=b'"rider\n",minutes,x,y')


def test_a_line_more_that_is_no_json(tmp_path):
    """What Unicode calls the end of a line is none in a text of JSON."""
    path = tmp_path / "a.ndjson"
    lines = [json.dumps(feature(f"a{end}b"), ensure_ascii=False) for end in "\x85\u2028\u2029"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_points(str(path), KINDS)["rider"].tolist() == ["a\x85b", "a\u2028b", "a\u2029b"]
