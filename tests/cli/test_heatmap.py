"""``geodp heatmap``: what is read, what is written, and what it says."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
from commands import ASKED, NYC, WHERE, WHO

import geodp
from geodp import reading
from geodp.reading import read_points
from geodp.testing import noiseless

HERE = {**os.environ, "PYTHONPATH": str(Path(geodp.__file__).parent.parent)}
COORDINATES = ["--lon", "lon", "--lat", "lat"]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("trips.parquet", []),
        ("trips.gpkg", []),
        ("trips.fgb", []),
        ("trips.geojson", []),
        ("feet.parquet", []),
        ("trips.csv", COORDINATES),
        ("trips.tsv.gz", COORDINATES),
        ("table.parquet", COORDINATES),
    ],
)
def test_every_kind_of_file_gives_the_map_of_a_notebook(run, folder, trips, name, more):
    with noiseless():
        done = run("heatmap", name, "-o", "heat.parquet", *ASKED, *more)
        expected = trips.dp.heatmap(
            "1",
            "1e-6",
            subject="rider",
            cap=3,
            bounds=(-74.3, 40.4, -73.6, 41.0),
            grid="h3:6",
            outside="drop",
        )
    assert done.code == 0, done.err
    assert done.out == ""
    assert_released(gpd.read_parquet("heat.parquet"), expected)


def assert_released(found, expected):
    assert found["noisy_count"].sum() > 0
    assert found["noisy_count"].tolist() == expected["noisy_count"].tolist()
    assert found.index.tolist() == expected.index.tolist()


def test_each_format_holds_the_numbers_and_the_record(run, folder):
    names = ["heat.geojson", "heat.gpkg", "heat.fgb", "heat.parquet", "heat.csv", "heat.png", "heat.html"]
    done = run("heatmap", "trips.parquet", *(f"--output={name}" for name in names), *ASKED, "--json")
    assert done.code == 0, done.err
    record = done.facts["record"]
    assert record["guarantee"] == "(1, 0)-DP for one rider more or less"
    assert [os.path.basename(path) for path in done.facts["output"]] == names
    layers = [gpd.read_file(name).sort_values("h3_06") for name in names[:3]]  # FlatGeobuf has its own order
    counts = [layer["noisy_count"].tolist() for layer in layers]
    counts.append(gpd.read_parquet(names[3])["noisy_count"].tolist())
    counts.append(pd.read_csv(names[4])["noisy_count"].tolist())
    assert all(numbers == counts[0] for numbers in counts)
    assert pd.read_csv("heat.csv").columns[0] == "h3_06"
    assert pyogrio.list_layers("heat.gpkg")[:, 0].tolist() == ["heat"]
    for name in [*names[:4], "heat.png", "heat.html"]:
        shown = run("show", name, "--json")
        assert shown.code == 0, shown.err
        assert shown.facts["record"] == record
    assert sorted(os.listdir()) == sorted([*names, *INPUTS])


INPUTS = [
    "feet.parquet",
    "table.parquet",
    "trips.csv",
    "trips.fgb",
    "trips.geojson",
    "trips.gpkg",
    "trips.parquet",
    "trips.tsv.gz",
]


def test_test_releases_are_stamped_in_every_format(run, folder):
    with noiseless():
        names = ("heat.geojson", "heat.gpkg", "heat.fgb", "heat.csv", "heat.html")
        assert run("heatmap", "trips.parquet", *(f"-o{name}" for name in names), *ASKED).code == 0
    assert '"NOT PRIVATE"' in Path("heat.geojson").read_text()[:200]
    assert "NOT PRIVATE: noise none (test)" in Path("heat.html").read_text()
    for name in ("heat.gpkg", "heat.fgb"):
        assert gpd.read_file(name)["NOT PRIVATE"].eq("none (test)").all()
    assert pd.read_csv("heat.csv")["NOT PRIVATE"].eq("none (test)").all()


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        (["--sum", "minutes", "--value-bounds", "0,120"], "noisy_sum"),
        (["--mean", "minutes", "--value-bounds", "0,120"], "mean"),
        (["--centroid"], "error_m"),
        (["--by", "hour=0:24"], "noisy_count"),
        (["--cells", "sparse", "--phantoms", "2"], "noisy_count"),
        (["--strategy", "levels"], "noisy_count"),
        (["--rescale", "true"], "noisy_count"),
        (["--cap", "auto"], "noisy_count"),
    ],
)
def test_each_question_is_answered(run, folder, asked, column):
    done = run("heatmap", "trips.parquet", "-o", "heat.parquet", *ASKED, "--grid", "h3:5", *asked)
    assert done.code == 0, done.err
    assert column in gpd.read_parquet("heat.parquet")


def test_slots_can_be_text_and_are_rows_of_the_file(run, folder, trips):
    trips.assign(day=np.where(trips["hour"] < 12, "7", "8")).to_parquet("days.parquet")
    with noiseless():
        asked = [*ASKED, "--by", "day='7','8'", "--by", "hour=0,1,2"]
        assert run("heatmap", "days.parquet", "-o", "heat.gpkg", "-o", "heat.csv", *asked).code == 0
    table = pd.read_csv("heat.csv")
    assert table.columns[:4].tolist() == ["NOT PRIVATE", "h3_06", "day", "hour"]
    assert table.loc[table["day"] == 8, "noisy_count"].sum() == 0
    assert table["noisy_count"].sum() > 0


def test_slots_share_one_web_page(run, folder):
    done = run("heatmap", "trips.parquet", "-o", "heat.html", *ASKED, "--by", "hour=0:24")
    assert done.code == 0, done.err
    assert os.path.getsize("heat.html") < 400_000


def test_slots_share_one_picture(run, folder):
    done = run("heatmap", "trips.parquet", "-o", "heat.png", *ASKED, "--by", "hour=7,8")
    assert done.code == 0, done.err
    shown = run("show", "heat.png", "--json")
    assert shown.facts["record"]["by"]["levels"] == {"hour": 2}


def test_zones_need_no_box_and_keep_their_keys(run, folder):
    places = gpd.GeoDataFrame(
        {"zone": pd.Categorical(["b", "a"], ["b", "a"])},
        geometry=gpd.GeoSeries.from_wkt(
            [
                "POLYGON((-74.3 40,-74 40,-74 41,-74.3 41,-74.3 40))",
                "POLYGON((-74 40,-73 40,-73 41,-74 41,-74 40))",
            ]
        ),
        crs=4326,
    )
    places.to_parquet("zones.parquet")
    places.assign(zone=["b", "a"]).to_file("zones.geojson")
    asked = [*WHO, "--eps", "1", "--zone-key", "zone"]
    for zones in ("zones.parquet", "zones.geojson"):
        done = run("heatmap", "trips.parquet", "-o", "heat.gpkg", "-o", "heat.csv", *asked, "--zones", zones)
        assert done.code == 0, done.err
        assert sorted(pd.read_csv("heat.csv")["zone"]) == ["a", "b"]


def test_ids_of_a_csv_stay_the_text_they_are(run, folder):
    rows = [
        "rider,lon,lat",
        "007,-74.0,40.7",
        "7,-74.0,40.7",
        "7.0,-74.0,40.7",
        "NA,-74.0,40.7",
        ",-74.0,40.7",
    ]
    Path("ids.csv").write_text("\n".join(rows))
    with noiseless():
        done = run("heatmap", "ids.csv", "-o", "heat.csv", *ASKED, *COORDINATES)
    assert done.code == 0, done.err
    assert pd.read_csv("heat.csv")["noisy_count"].max() == 4


def test_ids_stay_text_whatever_else_their_column_is_used_for(folder):
    Path("ids.csv").write_text("rider,lat\n007,40.7\n7,40.7\n")
    read = read_points("ids.csv", {"rider": "text"}, lon="rider", lat="lat")
    assert read["rider"].tolist() == ["007", "7"]
    assert read.geometry.x.tolist() == [7, 7]


def test_broken_rows_of_a_csv_are_left_out_without_a_word(run, folder):
    rows = [
        b"\xef\xbb\xbfrider,lon,lat,note",
        b"a,-74.0,40.7,x",
        b"b,here,40.7,x",
        b"c,-74.0,40.7,x,too,many,fields",
        b"\xff\xfe,-74.0,40.7,x",
        b"\xff\xfd,-74.0,40.7,x",
        b"short",
    ]
    Path("odd.csv").write_bytes(b"\n".join(rows))
    with noiseless():
        done = run("heatmap", "odd.csv", "-o", "heat.csv", *ASKED, *COORDINATES)
    assert done.code == 0, done.err
    assert "warning" not in done.err
    assert pd.read_csv("heat.csv")["noisy_count"].max() in (3, 4)


def test_only_the_columns_that_count_are_read(run, folder, monkeypatch):
    read = []
    columns_of = reading.columns_of
    monkeypatch.setattr(
        reading,
        "columns_of",
        lambda table, names: read.append(table.schema.names) or columns_of(table, names),
    )
    assert run("heatmap", "trips.parquet", "-o", "heat.csv", *ASKED, "--by", "hour=0:2").code == 0
    assert read == [["rider", "hour", "geometry"]]


def test_eps_is_exact_as_typed(run, folder):
    typed = run("plan", *WHO, *WHERE, "--eps", "0.1", "--delta", "1e-6", "--json").facts["plan"]
    assert typed["charge"]["eps"] == "0.1"
    assert run("plan", *WHO, *WHERE, "--eps", "1/3", "--json").facts["plan"]["charge"]["eps"] == "1/3"


def test_links_are_followed_and_permissions_are_the_usual(run, folder):
    os.mkdir("real")
    os.symlink("real/heat.geojson", "heat.geojson")
    assert run("heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED).code == 0
    assert os.path.islink("heat.geojson")
    assert json.loads(Path("real/heat.geojson").read_text())["type"] == "FeatureCollection"
    Path("other").touch()
    assert os.stat("real/heat.geojson").st_mode == os.stat("other").st_mode


def test_progress_and_results_do_not_mix(run, folder):
    done = run("heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED)
    assert done.out == ""
    assert done.err.splitlines()[:3] == [
        "geodp: reading trips.parquet",
        "geodp: counting",
        "geodp: writing heat.geojson",
    ]
    quiet = run("heatmap", "trips.parquet", "-o", "heat.geojson", *ASKED, "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_warnings_are_lines_on_stderr_and_facts_in_json(run, folder):
    asked = [
        *WHO,
        *WHERE,
        "--eps",
        "1",
        "--delta",
        "1e-6",
        "--population",
        "100000",
        "--mechanism",
        "gaussian",
    ]
    done = run("heatmap", "trips.parquet", "-o", "heat.csv", *asked, "--json")
    assert done.code == 0
    assert "geodp: warning: delta times population" in done.err
    assert [heard["category"] for heard in done.facts["warnings"]] == ["PopulationWarning"]


def test_a_plan_reads_no_data_and_warns_where_a_release_refuses(run, folder):
    done = run("plan", *WHO, *WHERE, "--eps", "1", "--delta", "1e-6")
    assert done.code == 0
    assert done.out.startswith("Plan: distinct riders per H3 cell (resolution 6); reads no data")
    world = run("plan", *WHO, "--eps", "1")
    assert world.code == 0
    assert "warning: No bounds were given" in world.err


def test_an_audit_says_that_it_is_raw(run, folder):
    done = run(
        "audit", "trips.csv", *WHO, *WHERE, *COORDINATES, "--value", "minutes", "--value-bounds", "0,120"
    )
    assert done.code == 0, done.err
    assert "NOT FOR PUBLICATION" in done.out.upper()
    facts = run("audit", "trips.parquet", *WHO, *WHERE, "--json").facts
    assert facts["publication"] == "raw data, not for publication"
    assert facts["rows"] == 400


def test_the_command_is_installed_and_stops_cleanly_on_sigterm(folder):
    code = (
        "import os, signal, sys, geodp.cli, geodp.cli.maps as m\n"
        "def stop(*a, **k):\n"
        "    open('half', 'w').close(); os.kill(os.getpid(), signal.SIGTERM)\n"
        "m.write.__globals__['FORMATS'] = {**m.write.__globals__['FORMATS'], '.csv': stop}\n"
        f"sys.exit(geodp.cli.main(['heatmap', 'trips.parquet', '-o', 'heat.csv', *{ASKED!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=HERE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert done.stderr.splitlines()[-1] == "geodp: stopped."
    assert sorted(os.listdir()) == sorted([*INPUTS, "half"])


def test_the_version_and_the_help(run):
    assert run("--version").out == f"geodp {geodp.__version__}\n"
    assert "heatmap" in run("--help").out
    module = subprocess.run(
        [sys.executable, "-m", "geodp", "--version"], capture_output=True, text=True, timeout=60
    )
    assert module.stdout == f"geodp {geodp.__version__}\n"
    assert NYC not in module.stderr
