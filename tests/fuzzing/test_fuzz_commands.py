"""The command line, typed by somebody who means harm, on files by somebody else who does.

Whatever is typed, the exit code is one of the documented ones, stderr holds lines and no traceback, nothing of
the rows is said, nothing was spent unless the command is done, and no file appears that was not asked for.
"""

import contextlib
import io
import os

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hostile import COUNTED, MARK, TRICKS, limited, much, some
from hypothesis import given
from hypothesis import strategies as st

import geodp
from geodp.cli import main

CODES = {0, 2, 3, 4}
LATER = {0, 1}  # with a ledger: written, or paid for and stored, and the file could not be written
MARKS = (MARK, "7319157", "918273645", "73.9871234567", "40.7491234567")
SHELL = [text for text in TRICKS if "\0" not in text and "://" not in text and len(text) < 1000]

ASKED = {
    "--subject": "rider",
    "--cap": "2",
    "--eps": "1",
    "--delta": "1e-6",
    "--bounds": "-74.05,40.68,-73.9,40.82",
    "--grid": "square:0.05",
}
GOOD = {
    "--cap": ["1", "auto", "4"],
    "--grid": ["h3:4", "box", "square:5000@3857"],
    "--outside": ["clamp", "drop"],
    "--by": ["hour=0:3", "hour=1,2", "day='a','b'"],
    "--sum": ["minutes"],
    "--mean": ["minutes"],
    "--value-bounds": ["0,60", "-1,1"],
    "--zones": ["zones.geojson", "broken.geojson"],
    "--zone-key": ["zone"],
    "--zone-overlap": ["first", "count", "raise"],
    "--estimator": ["clamp", "shrink"],
    "--mechanism": ["laplace", "gaussian"],
    "--strategy": ["levels"],
    "--cells": ["sparse", "select"],
    "--threshold": ["5"],
    "--phantoms": ["1"],
    "--rescale": ["true", "8"],
    "--rows-per-cell": ["3"],
    "--contribution": ["weighted"],
    "--neighboring": ["replace_one"],
    "--population": ["10000"],
}
FILES = {
    "--lon": ["lon", "minutes"],
    "--lat": ["lat", "rider"],
    "--crs": ["4326", "3857"],
    "--layer": ["trips", "other"],
    "--config": ["good.toml", "broken.geojson"],
}
BOOKS = {"--ledger": ["city.ledger", "trips.csv", "."], "--label": ["a", "b"], "--reason": ["ok"]}
INPUTS = ["trips.csv", "trips.parquet", "trips.gpkg", "broken.geojson", "odd.csv", "nowhere.csv", "."]


@pytest.fixture(scope="module")
def here(folder):
    """A folder of small files with marked rows, one of them with a first line and fields full of tricks."""
    before = os.getcwd()
    os.chdir(folder)
    places = gpd.points_from_xy([-73.9871234567, -73.97, -73.95], [40.7491234567, 40.75, 40.7])
    trips = gpd.GeoDataFrame({"rider": [MARK, "b", "c"]}, geometry=places, crs=4326)
    trips["minutes"], trips["hour"], trips["day"] = (
        [7319157.25, 1.0, np.nan],
        [0, 918273645, 2],
        ["a", MARK, "b"],
    )
    trips.to_parquet("trips.parquet")
    trips.to_file("trips.gpkg")
    table = pd.DataFrame(trips.drop(columns="geometry")).assign(lon=trips.geometry.x, lat=trips.geometry.y)
    table.to_csv("trips.csv", index=False)
    (folder / "odd.csv").write_text(
        'rider,"lon\n",lat,=cmd(),"a,b",\n' + "\n".join(f'"{MARK}\n{i}",{i},40.7,=1+1,,x' for i in range(3))
    )
    (folder / "broken.geojson").write_text(f'{{"type": "Feature", "{MARK}": 918273645')
    (folder / "good.toml").write_text('subject = "rider"\ncap = 1\n')
    zones = {"zone": ["=cmd()", "'; DROP TABLE x; --"]}
    outlines = [shapely.box(-74.1, 40.6, -73.97, 40.9), shapely.box(-73.97, 40.6, -73.8, 40.9)]
    gpd.GeoDataFrame(zones, geometry=outlines, crs=4326).to_file("zones.geojson")
    book = geodp.Ledger("city.ledger", eps=10**6, delta="1e-4")
    yield folder, book
    os.chdir(before)


def typed(*arguments):
    """Run a command; return its exit code and all that it said."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with limited(60), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    COUNTED["refused" if code else "returned"] += 1
    out.flush()
    return code, out.buffer.getvalue().decode() + err.getvalue()


def options(asked, other):
    """Options as they are typed: good ones, some of them with another good value, a trick or any text."""
    typable = st.text(st.characters(exclude_characters="\0", exclude_categories=[]), max_size=8)
    anything = st.one_of(st.sampled_from(SHELL), typable, st.integers().map(str), st.floats().map(str))

    @st.composite
    def drawn(draw):
        given = dict(asked)
        for name in draw(st.lists(st.sampled_from(sorted(asked) + sorted(other)), max_size=4, unique=True)):
            good = other.get(name, [asked.get(name, "x")])
            given[name] = draw(st.one_of(st.sampled_from(good), st.sampled_from(good), anything))
        for name in draw(st.lists(st.sampled_from(sorted(asked)), max_size=1)):
            given.pop(name)
        return [part for pair in given.items() for part in pair]

    return drawn()


FLAGS = st.lists(st.sampled_from(["--json", "--quiet", "--retry", "--centroid", "--help"]), max_size=2)
OUTPUTS = ["heat.geojson", "heat.csv", "heat.fgb", "heat.parquet", "heat.gpkg", *SHELL]


def attempted(data, here, command):
    folder, book = here
    if command == "plan":
        arguments = data.draw(options(ASKED, GOOD | {"--config": FILES["--config"]}))
    elif command == "audit":
        asked = {name: ASKED[name] for name in ("--subject", "--cap", "--bounds", "--grid")}
        arguments = [data.draw(st.sampled_from(INPUTS)), *data.draw(options(asked, GOOD | FILES))]
    elif command == "heatmap":
        output = data.draw(st.sampled_from(OUTPUTS))
        paid = {"--ledger": "city.ledger", "--label": data.draw(st.sampled_from(["a", *SHELL]))}
        source = data.draw(st.sampled_from(INPUTS))
        arguments = [source, "-o", output, *data.draw(options(ASKED | paid, GOOD | FILES | BOOKS))]
    else:
        arguments = data.draw(
            st.lists(st.sampled_from([*SHELL, "city.ledger", "trips.csv", "--json"]), max_size=3)
        )
    held, before = files(folder), (book.spent(), len(book.releases()))
    code, said = typed(*command.split(), *arguments, *data.draw(FLAGS))
    assert "Traceback" not in said
    if code != 0 or command != "audit":  # an audit shows what it found, to the curator
        assert not [mark for mark in MARKS if mark in said], said
    paying = command == "heatmap" and "city.ledger" in arguments
    assert code in (CODES | LATER if paying else CODES), said
    if not (paying and code in LATER):
        assert (book.spent(), len(book.releases())) == before
    allowed = set(arguments) | {"city.ledger"}
    appeared = {name for name in files(folder) - held if os.path.basename(name) not in allowed}
    assert not {name for name in appeared if name not in allowed}, appeared
    assert "geodp-escaped" not in " ".join(os.listdir(folder.parent))


def files(folder):
    return {
        os.path.relpath(os.path.join(root, name), folder)
        for root, _, names in os.walk(folder)
        for name in names
    }


COMMANDS = ("plan", "audit", "heatmap", "ledger show", "ledger verify", "show")


@pytest.mark.parametrize("command", COMMANDS)
@some(15)
@given(data=st.data())
def test_commands(data, here, command):
    attempted(data, here, command)


@pytest.mark.fuzz
@pytest.mark.parametrize("command", COMMANDS)
@much(120)
@given(data=st.data())
def test_many_commands(data, here, command):
    attempted(data, here, command)


def test_formulas_in_a_csv_are_text(here):
    ask = [part for name in ASKED.items() if name[0] not in ("--bounds", "--grid") for part in name]
    code, said = typed(
        "heatmap", "trips.parquet", "-o", "zones.csv", *ask, "--zones", "zones.geojson", "--zone-key", "zone"
    )
    assert code == 0, said
    table = pd.read_csv("zones.csv")
    assert table["zone"].tolist() == ["'; DROP TABLE x; --", "'=cmd()"]
    assert pd.api.types.is_numeric_dtype(table["noisy_count"])
    shown = gpd.read_file("zones.geojson")["zone"].tolist()
    assert "=cmd()" in shown  # only spreadsheets are kept from it


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("-5", "-5"),
        ("+1.5", "+1.5"),
        ("-1+cmd", "'-1+cmd"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        (-5, -5),
        ("a=1", "a=1"),
    ],
)
def test_what_a_spreadsheet_would_run(value, written):
    from geodp.writing import _inert

    assert _inert(value) == written
