"""Nothing of a row comes out anywhere: not in what is released or written, not in what is said on the way.

Rows are full of values that stand nowhere else; every way out is searched for them in all their forms. Exact numbers
get a long one added just before the noise, which is of the order 1e15, so that no noised one looks like them but by
chance (below 1e-8 for each release).
"""

import base64
import hashlib
import importlib.util
import io
import json
import logging
import os
import pickle
import sqlite3
import sys
import warnings
import zlib
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from canaries import (
    COUNTS,
    HEIGHT,
    MARK,
    NUMBER,
    PLACES,
    SPIKE,
    UUID,
    VALUES,
    WHEN,
    Net,
    people,
    spiked,
    watched,
)

import geodp
import geodp.caps
from geodp import autoplans, points, progress, records, release, together, writing
from geodp.cli import main
from geodp.grids import h3
from geodp.records import sealed

BOX = (-74.1, 40.6, -73.8, 40.9)
WHO = {"subject": "rider", "cap": 1, "bounds": BOX}
EPS = 1e-15
MINUTES = {"value_bounds": (0, 9000)}
HOURS = {"hour": [0, 1]}
ZONES = gpd.GeoDataFrame(
    {"zone": ["east", "west"]},
    geometry=[shapely.box(-74, 40.6, -73.8, 40.9), shapely.box(-74.1, 40.6, -74, 40.9)],
    crs=4326,
)
ORDINARY = ".geojson", ".gpkg", ".fgb", ".parquet", ".csv"


def _together(rows, eps=1e-8, **books):
    views = {
        "map": {"grid": "square:0.1"},
        "mean": {"query": geodp.Mean("minutes", (0, 9000)), "grid": "box"},
    }
    return geodp.release_together(rows, views, eps, **WHO, **books)


def _view(rows, ledger, label, eps=EPS):
    return rows.dp(**WHO, grid="square:0.05", outside="drop", ledger=ledger).heatmap(eps, label=label)


RELEASES = {
    "h3": partial(geodp.heatmap, eps=EPS, grid="h3:5", **WHO),
    "square": partial(geodp.heatmap, eps=EPS, grid="square:0.05", **WHO),
    "metres": partial(geodp.heatmap, eps=EPS, grid="square:10000@32618", **WHO),
    "zones": partial(geodp.heatmap, eps=EPS, subject="rider", cap=1, grid=geodp.Zones(ZONES, "zone")),
    "slots": partial(geodp.heatmap, eps=EPS, grid="h3:5", by=HOURS, **WHO),
    "gaussian": partial(geodp.heatmap, eps=EPS, delta=3e-16, mechanism="gaussian", grid="box", **WHO),
    "levels": partial(geodp.heatmap, eps=4e-15, strategy="levels", grid="square:0.05", **WHO),
    "weighted": partial(geodp.heatmap, eps=1e-13, contribution="weighted", grid="h3:5", **WHO),
    "rescaled": partial(geodp.heatmap, eps=2e-12, rescale=True, grid="h3:5", **WHO),
    "replaced": partial(geodp.heatmap, eps=2e-15, neighboring="replace_one", grid="h3:5", **WHO),
    "sparse": partial(geodp.heatmap, eps=1e-13, cells="sparse", grid="h3:7", **WHO),
    "select": partial(
        geodp.heatmap, eps=1e-12, delta=1e-4, mechanism="laplace", cells="select", grid="h3:7", **WHO
    ),
    "auto": partial(geodp.heatmap, eps=1e-13, **{**WHO, "cap": "auto"}, grid="h3:5"),
    "sum": partial(geodp.sum, column="minutes", eps=1e-8, grid="h3:5", **WHO, **MINUTES),
    "mean": partial(geodp.mean, column="minutes", eps=1e-8, grid="h3:5", by=HOURS, **WHO, **MINUTES),
    "centroid": partial(geodp.centroid, eps=1e-8, grid="h3:5", **WHO),
    "together": _together,
    "view": _view,
    "cap": partial(geodp.choose_cap, eps=1e-3, subject="rider", bounds=BOX, grid="h3:5"),
    "perturb": partial(geodp.perturb, eps_per_km=0.02, subject="rider", max_reports=1),
    "remapped": partial(geodp.perturb, eps_per_km=0.02, subject="rider", max_reports=1, remap=ZONES),
}


@cache
def rows(ids="mixed"):
    return people(ids)


FEW = slice(COUNTS["crowd"] - 40, COUNTS["crowd"] + 80)


def few():
    """Return some of the rows, and all that no release can use."""
    return pd.concat([rows().iloc[FEW], rows().iloc[:41:5], rows().iloc[-6:]])


@pytest.fixture
def net(request):
    return Net(moved=any(word in request.node.name for word in ("perturb", "remapped")))


@pytest.fixture(autouse=True)
def _bars_at_once(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)
    h3._domain.cache_clear()


@pytest.fixture
def _long_numbers(monkeypatch, net):
    """Add a long number to every exact one, behind the tally and before the noise."""
    honest = release.drawn

    def drawn(plan, exact, mode):
        exact = spiked(exact)
        for measured in plan.measurements:
            if measured.quantity.step != 1 and measured.name in exact:
                net.plant(exact[measured.name].ravel() * float(measured.quantity.step))
        return honest(plan, exact, mode)

    for module in (release, together, autoplans):
        monkeypatch.setattr(module, "drawn", drawn)


@pytest.fixture
def book(tmp_path, request):
    replaced = "replaced" in request.node.name
    more = {"neighboring": "replace_one"} if replaced else {}
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, delta="9e-4", unit="rider", **more)


# Ways out of a release ------------------------------------------------------------------------------------


def search_frame(net, frame):
    """Throw a released frame into the net: every part of it, and what it says of itself."""
    net.throw("frame", pickle.dumps(frame))
    for name, column in frame.items():
        net.throw(
            "values", np.ascontiguousarray(column.to_numpy()).tobytes() if column.dtype != "geometry" else b""
        )
        net.throw("values", f"{name} {column.tolist()}")
    net.throw(
        "index", [frame.index.tolist(), frame.index.names, frame.columns.tolist(), frame.dtypes.tolist()]
    )
    net.throw("attrs", json.dumps(frame.attrs))
    net.throw("repr", frame.to_string() + frame._repr_html_())
    if isinstance(frame, gpd.GeoDataFrame):
        for order in (0, 1):
            net.throw("geometry", b"".join(filter(None, frame.geometry.to_wkb(byte_order=order))))
    net.throw("record", json.dumps(geodp.record(frame)))
    explained = geodp.explain(frame)
    net.throw("explained", f"{explained} {explained!r}")
    if frame.attrs["geodp"].get("cells") == "all":
        net.throw("explained", f"{geodp.signal(frame)} {geodp.readable(frame).tolist()}")


def search_files(net, frame, folder, formats):
    for suffix in formats:
        net.throw(f"file {suffix}", writing.write(frame, folder / f"heat{suffix}"))
    net.throw("file to_csv", frame.to_csv())
    frame.to_file(folder / "bare.gpkg")
    net.throw("file to_file", folder / "bare.gpkg")


def search_drawings(net, frame, folder):
    search_files(net, frame, folder, (".html", ".png"))
    net.throw("plot", svg(geodp.plot(frame)))
    net.throw("explore", geodp.explore(frame).get_root().render())
    with suppress(ValueError):  # of places, and of slots
        net.throw("compare_maps", svg(geodp.compare_maps(frame, frame)))


def svg(drawn):
    """Return the bytes of a drawing in which texts stay texts."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    figure = np.ravel(drawn)[0]
    figure = getattr(figure, "figure", figure)
    out = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg")
    plt.close("all")
    return out.getvalue()


def search_ledger(net, book):
    for place in Path(book._storage.path).parent.glob(f"{book.name}*"):
        net.throw("ledger file", place)
    net.throw("ledger", f"{book!r} {book.spent()} {book.remaining()} {book.metric_spent()}")
    net.throw("ledger", book.releases().to_csv() + book.releases().to_string() + book.verify().to_string())
    for label in book.releases()["label"]:
        net.throw("ledger", json.dumps(book.record(label)))


def search_result(net, result):
    """Throw in whatever a release returns, and return its frames."""
    if isinstance(result, geodp.caps.ChosenCap):
        net.throw("cap", f"{result!r} {result.record} {vars(result)}")
        net.throw("cap", pickle.dumps(result))
        return []
    for frame in listed(result):
        search_frame(net, frame)
    return listed(result)


def listed(result):
    return list(result.values()) if isinstance(result, dict) else [result]


DRAWN = {"h3", "slots", "mean", "zones", "centroid", "perturb"}


@pytest.mark.sampled(rate=1e-8)
@pytest.mark.usefixtures("_long_numbers")
@pytest.mark.parametrize("name", RELEASES)
def test_no_release_shows_anything_of_a_row(name, net, book, tmp_path, capfd):
    moved = name in ("perturb", "remapped")  # which returns row by row
    some = rows().iloc[-300:] if moved else rows()
    with watched(net, "release", capfd):
        result = RELEASES[name](some, ledger=book, label="tonight")
        again = RELEASES[name](some, ledger=book, label="tonight")
    with watched(net, "afterwards", capfd):
        search_result(net, again)
        for frame in search_result(net, result):
            search_files(net, frame, tmp_path, [end for end in ORDINARY if not moved or end != ".fgb"])
            if name in DRAWN:
                search_drawings(net, frame, tmp_path)
        search_ledger(net, book)
    net.check()


# The net catches ------------------------------------------------------------------------------------------

ROW = f"{MARK}-00007 at {PLACES[0]}"


def _table(**columns):
    return gpd.GeoDataFrame(columns, geometry=gpd.points_from_xy([0.0], [0.0]), crs=4326)


def _deleted(folder):
    """A database from which a row was deleted: it is still in the file's free space."""
    path = folder / "x.db"
    with closing(sqlite3.connect(path)) as book:
        book.execute("PRAGMA secure_delete = OFF")
        book.execute("CREATE TABLE x (y)")
        book.executemany("INSERT INTO x VALUES (?)", [(ROW * 30,)] * 30)
        book.commit()
        book.execute("DELETE FROM x")
        book.commit()
    return path


def _written(folder, name, frame):
    frame.to_parquet(folder / name) if name.endswith("parquet") else frame.to_file(folder / name)
    return folder / name


def _picture(folder):
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(2, 2))
    figure.savefig(folder / "x.png", metadata={"Description": ROW})
    ax.set_title(str(COUNTS["crowd"]))
    return folder / "x.png", svg(ax)


def _raised(message, cause=None, note=None):
    error = ValueError(message)
    error.__cause__ = cause
    if note:
        error.add_note(note)
    return error


def _hashed(kind):
    return hashlib.new(kind, f"{MARK}-00000".encode()).hexdigest()


LEAKS = {
    "an id": lambda folder: ROW,
    "bytes of an id": lambda folder: ROW.encode("utf-32-le"),
    "an id in base64": lambda folder: base64.b64encode(b"x" + ROW.encode()),
    "an id in hexadecimal": lambda folder: ROW.encode().hex(),
    "a number for an id": lambda folder: f"{NUMBER + 123:,}",
    "numbers as bytes": lambda folder: np.array([1, NUMBER + 3], ">i8").tobytes(),
    "a uuid": lambda folder: pickle.dumps(UUID),
    "md5": lambda folder: _hashed("md5"),
    "sha256": lambda folder: f"key {_hashed('sha256')}",
    "a hash of pandas": lambda folder: pd.util.hash_pandas_object(
        pd.Series([f"{MARK}-00000"]), index=False
    ).tolist(),
    "a coordinate": lambda folder: f"{PLACES[0][0]:.5f}",
    "a point": lambda folder: shapely.Point(PLACES[0]).wkb,
    "a point, big-endian": lambda folder: shapely.to_wkb(shapely.Point(PLACES[0]), byte_order=0),
    "a point in hexadecimal": lambda folder: shapely.Point(PLACES[0]).wkb_hex,
    "a height": lambda folder: pickle.dumps([HEIGHT]),
    "a value": lambda folder: np.array(VALUES[:1]),
    "a time": lambda folder: pd.Series(WHEN).to_json(date_format="iso"),
    "times as bytes": lambda folder: np.array(WHEN, "datetime64[us]").tobytes(),
    "a count": lambda folder: f"{COUNTS['crowd']:,} riders",
    "a number of rows": lambda folder: json.dumps({"n": COUNTS["rows"]}),
    "an exact number": lambda folder: np.array([5, SPIKE + 17]).tobytes(),
    "an exact estimate": lambda folder: f"{float(SPIKE + 17):g} {float(SPIKE + 17)}",
    "a pickle": lambda folder: pickle.dumps(_table(x=[ROW])),
    "attrs": lambda folder: pickle.dumps(_table(x=[1]).rename_axis(ROW)),
    "geojson": lambda folder: _written(folder, "x.geojson", _table(x=[VALUES[0]])),
    "geopackage": lambda folder: _written(folder, "x.gpkg", _table(x=[VALUES[0]])),
    "flatgeobuf": lambda folder: _written(folder, "x.fgb", _table(x=[VALUES[0]])),
    "parquet": lambda folder: _written(folder, "x.parquet", _table(x=[ROW])),
    "parquet of numbers": lambda folder: _written(folder, "x.parquet", _table(x=[VALUES[0]])),
    "a page": lambda folder: f"<script>{base64.b64encode(zlib.compress(ROW.encode() * 9)).decode()}</script>",
    "texts of a picture": lambda folder: _picture(folder)[0],
    "a drawing": lambda folder: _picture(folder)[1],
    "free space of a ledger": _deleted,
    "an error": lambda folder: _raised(ROW),
    "a cause": lambda folder: _raised("x", cause=KeyError(PLACES[0])),
    "a note": lambda folder: _raised("x", note=ROW),
    "an attribute": lambda folder: geodp.BudgetExceeded("x", spent={"eps": VALUES[0]}, asked={}, left={}),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_the_net_finds(leak, net, tmp_path):
    net.throw("planted", LEAKS[leak](tmp_path))
    with pytest.raises(AssertionError, match="planted"):
        net.check()


def test_the_net_finds_nothing_where_nothing_is(net, tmp_path):
    for thing in (
        "kanari",
        f"1{COUNTS['crowd']} {COUNTS['rows']}.5",
        _raised("no row"),
        np.arange(999.0).tobytes(),
    ):
        net.throw("honest", thing)
    net.throw("honest", _written(tmp_path, "x.gpkg", _table(x=[1.5])))
    net.check()


def _logging(geometry):
    logging.getLogger("geodp.points").debug("first of them: %s", geometry[0])


def _logging_failure(geometry):
    try:
        float(ROW)
    except ValueError:
        logging.getLogger("geodp.points").exception("odd")


def _printing(geometry):
    print(len(geometry) and COUNTS["rows"], file=sys.stderr)


SPOKEN = {
    "log": _logging,
    "log of a failure": _logging_failure,
    "stdout, stderr": _printing,
    "stdout, stderr by the system": lambda geometry: os.write(2, ROW.encode()),
}


@pytest.mark.parametrize("how", SPOKEN)
def test_the_net_hears(how, net, capfd, monkeypatch):
    honest = points._coordinates

    def coordinates(geometry):
        SPOKEN[how](geometry)
        return honest(geometry)

    monkeypatch.setattr(points, "_coordinates", coordinates)
    with watched(net, "release", capfd):
        RELEASES["zones"](few(), ledger=None, label=None)
    assert {channel for channel, *_ in net.found} == {f"release: {how.split(' of')[0].split(' by')[0]}"}


def test_the_net_hears_warnings(net, capfd):
    with watched(net, "release", capfd):
        warnings.warn(ROW, UserWarning, stacklevel=1)
    assert {channel for channel, *_ in net.found} == {"release: warning"}


def _without_noise(monkeypatch):
    monkeypatch.setattr(
        "geodp.mechanisms.laws.DiscreteLaplace.sample", lambda law, size, bits=None: np.zeros(size, int)
    )


def _with_total(monkeypatch):
    honest = records.release_record
    more = {"unit": f"{COUNTS['rows']:,} riders"}
    monkeypatch.setattr(records, "release_record", lambda *given: sealed({**honest(*given), **more}))


def _with_attrs(monkeypatch):
    honest = release.finish

    def finish(*given):
        frame = honest(*given)
        frame.attrs["source"] = rows().attrs["source"]
        return frame

    monkeypatch.setattr(release, "finish", finish)


def _exact_in_ledger(monkeypatch):
    honest = geodp.Ledger.debit

    def debit(self, label, key, charge, record, **more):
        return honest(self, label, key, charge, {**record, "first": str(PLACES[0])}, **more)

    monkeypatch.setattr(geodp.Ledger, "debit", debit)


def _with_ids(monkeypatch):
    honest = release.tally

    def tally(plan, gdf, mode):
        if len(gdf) > 1000:
            warnings.warn(f"many rows of {gdf['rider'].iloc[0]}", geodp.GeoDPWarning, stacklevel=2)
        return honest(plan, gdf, mode)

    monkeypatch.setattr(release, "tally", tally)


PLANTED = {
    "frame": _without_noise,
    "file .csv": _without_noise,
    "file .fgb": _without_noise,
    "record": _with_total,
    "explained": _with_total,
    "attrs": _with_attrs,
    "ledger file": _exact_in_ledger,
    "ledger": _exact_in_ledger,
    "release: warning": _with_ids,
}


@pytest.mark.usefixtures("_long_numbers")
@pytest.mark.parametrize("channel", PLANTED)
def test_a_release_that_leaks_is_caught(channel, net, book, tmp_path, capfd, monkeypatch):
    PLANTED[channel](monkeypatch)
    with watched(net, "release", capfd):
        frame = RELEASES["square"](rows(), ledger=book, label="tonight")
    with suppress(geodp.NotARelease):
        search_frame(net, frame)
        search_files(net, frame, tmp_path, ORDINARY)
    search_ledger(net, book)
    assert channel in {channel for channel, *_ in net.found}


# Rows that cannot be used, frames that do not fit ---------------------------------------------------------

TROUBLES = {
    "swapped": lambda f: f.set_geometry(
        gpd.points_from_xy([40.74839201746] * len(f), -73.98765432101, crs=4326)
    ),
    "no CRS": lambda f: f.set_crs(None, allow_override=True),
    "another CRS": lambda f: f.set_crs(32618, allow_override=True),
    "a CRS of heights": lambda f: f.set_crs("EPSG:5703", allow_override=True),
    "a CRS of its own": lambda f: f.set_crs("+proj=utm +zone=18", allow_override=True),
    "feet": lambda f: f[f.geometry.geom_type == "Point"].to_crs(2263),
    "lines": lambda f: f.set_geometry(f.geometry.union(shapely.LineString(PLACES))),
    "no points": lambda f: f.set_geometry([None] * len(f), crs=4326),
    "no geometry": lambda f: pd.DataFrame(f),
    "geometry lost": lambda f: f.drop(columns="geometry"),
    "no subject": lambda f: f.drop(columns="rider"),
    "subject twice": lambda f: gpd.GeoDataFrame(pd.concat([f, f[["rider"]]], axis=1)),
    "subject in the index": lambda f: f.set_index("rider"),
    "subjects are floats": lambda f: f.assign(rider=VALUES[0]),
    "subjects are times": lambda f: f.assign(rider=f["at"]),
    "subjects are lists": lambda f: f.assign(rider=[[MARK]] * len(f)),
    "subjects are categories": lambda f: f.assign(rider=f["mood"].astype("category")),
    "subjects are points": lambda f: f.assign(rider=f.geometry),
    "values are texts": lambda f: f.assign(minutes=f["mood"]),
    "values are times": lambda f: f.assign(minutes=f["at"]),
    "values are mixed": lambda f: f.assign(
        minutes=pd.Series([MARK, VALUES[0], None] * 99, dtype=object).array[: len(f)]
    ),
    "values are huge": lambda f: f.assign(minutes=f["big"].astype(object) * 10**300),
    "no values": lambda f: f.drop(columns="minutes"),
    "hours are texts": lambda f: f.assign(hour=f["mood"]),
    "hours are times": lambda f: f.assign(hour=f["at"]),
    "hours are lists": lambda f: f.assign(hour=[[MARK]] * len(f)),
    "the index twice": lambda f: pd.concat([f, f]),
    "as it is": lambda f: f,
}
ASKED = ["square", "slots", "mean", "sparse", "auto", "together", "cap", "perturb", "view"]


def attempted(net, name, frame, book, label, capfd):
    """Release with plain noise; throw in the result or the error, and whatever is said; return the error."""
    plain = {} if name == "perturb" else {"eps": 1}
    error = None
    with watched(net, "attempt", capfd) as heard:
        try:
            for result in listed(RELEASES[name](frame, ledger=book, label=label, **plain)):
                net.throw("result", pickle.dumps(result))
        except (geodp.GeoDPError, ValueError, TypeError, AttributeError, MemoryError) as raised:
            error = raised
            net.throw("error", raised)
    assert all(issubclass(warning.category, geodp.GeoDPWarning) for warning in heard)
    return error


@pytest.mark.parametrize("name", ASKED)
def test_no_frame_makes_a_release_talk(name, net, tmp_path, capfd):
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")
    some, refused = few(), 0
    for trouble in TROUBLES:
        refused += attempted(net, name, TROUBLES[trouble](some), book, trouble, capfd) is not None
        assert not net.found, trouble
    assert 4 <= refused == len(TROUBLES) - len(book.releases())
    search_ledger(net, book)
    net.check()


# Libraries that quote rows where they fail ----------------------------------------------------------------


def quoting(kind):
    """Return a function that fails as libraries do, with rows in its words, notes and causes."""

    def fail(*given, **named):
        words = f"{MARK}: no place {PLACES[0]} for {VALUES[0]}, {SPIKE + 3} of {COUNTS['rows']} rows"
        error = kind(words)
        error.add_note(words)
        raise error from KeyError(MARK)

    return fail


BEFORE = [
    "geodp.points._coordinates",
    "geodp.release.subjects",
    "geodp.release.clamp",
    "geodp.slots.Slots.codes",
    "geodp.release._values",
    "geodp.queries.count.sampled_pairs",
    "geodp.caps.keys_per_subject",
    "geodp.autoplans.keys_per_subject",
    "geodp.autoplans.Tally.__call__",
    "geodp.locations._first",
]
PAID = [
    "geodp.mechanisms.laws.DiscreteLaplace.sample",
    "geodp.queries.base.add_saturating",
    "geodp.queries.unlisted.add_saturating",
    "geodp.queries.count.Count.columns",
    "geodp.quantiles.choose",
    "geodp.locations.displace",
    "geodp.locations.snap",
]


@pytest.mark.parametrize(
    ("place", "kind"),
    [(place, ValueError) for place in BEFORE + PAID] + [(BEFORE[1], MemoryError), (PAID[0], MemoryError)],
)
def test_no_failure_quotes_a_row(place, kind, net, tmp_path, capfd, monkeypatch):
    """Before the payment and after it, where exact numbers wait for their noise."""
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")
    some = few()
    monkeypatch.setattr(place, quoting(kind))
    errors = {name: attempted(net, name, some, book, name, capfd) for name in ASKED}
    assert not net.found, sorted({what[1] for what in net.found})
    failed = {name for name, error in errors.items() if error is not None}
    assert failed
    assert all(type(errors[name]) is geodp.GeoDPError for name in failed)
    states = book.releases().set_index("label")["state"].to_dict()
    left = {name for name, state in states.items() if state != "released"}
    assert left == (failed if place in PAID else failed & {"auto"} & set(states))
    search_ledger(net, book)
    net.check()


# Command line, cluster, notebook, audit -------------------------------------------------------------------

TYPED = ["--subject", "rider", "--cap", "1", "--bounds=-74.1,40.6,-73.8,40.9", "--eps", "1", "--grid", "h3:5"]
NUMBERS = ["--mean", "minutes", "--value-bounds", "0,9000"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The current folder, with the rows in files of every kind, sound and not."""
    monkeypatch.chdir(tmp_path)
    plain = few().iloc[:60].assign(rider=lambda f: f["rider"].astype(str)).reset_index()
    plain = plain.replace(np.inf, 1e308).set_crs(4326)
    plain.attrs = {}
    plain.to_parquet("rows.parquet")
    for name in ("rows.gpkg", "rows.fgb", "rows.geojson"):
        plain.drop(columns="row").to_file(name)
    table = plain.drop(columns="geometry").assign(lon=PLACES[0][0], lat=PLACES[0][1])
    table.to_csv("rows.csv", index=False)
    table.assign(lon=f"{MARK} street").to_csv("streets.csv", index=False)
    table.to_csv("headless.csv", index=False, header=False)
    table.to_parquet("table.parquet")
    plain.set_crs(None, allow_override=True).to_parquet("bare.parquet")
    for name in ("rows.parquet", "rows.gpkg", "rows.fgb", "rows.geojson", "rows.csv"):
        whole = Path(name).read_bytes()
        Path(f"cut.{name}").write_bytes(whole[: len(whole) * 2 // 3])
    return sorted(path.name for path in tmp_path.iterdir())


def typed(net, capfd, *words):
    with watched(net, "command", capfd):
        return main([str(word) for word in words])


def test_no_command_says_anything_of_a_row(files, net, capfd):
    """Of whole files and broken ones; what a release writes is searched as well."""
    books = ["--ledger", "city.ledger", "--label"]
    assert typed(net, capfd, "ledger", "create", "city.ledger", "--eps", 99, "--unit", "rider") == 0
    codes = []
    for i, name in enumerate(files):
        where = ["--lon", "lon", "--lat", "lat"] if "csv" in name or "table" in name else []
        out = (
            [word for end in ORDINARY for word in ("-o", f"heat{end}")]
            if name == "rows.gpkg"
            else ["-o", "heat.csv"]
        )
        json_ = ["--json"] if i % 2 else []
        codes.append(typed(net, capfd, "heatmap", name, *where, *out, *TYPED, *NUMBERS, *json_, *books, name))
        codes.append(typed(net, capfd, "heatmap", name, *where, "-o", "heat.csv", *TYPED, "--by", "mood=0,1"))
        codes.append(typed(net, capfd, "heatmap", name, "-o", "heat.csv", *TYPED, "--subject", "at", *json_))
        codes.append(typed(net, capfd, "heatmap", name, *where, "-o", "heat.csv", *TYPED, "--crs", "3035"))
    assert {0, 4} <= set(codes) <= {0, 2, 4}
    for words in (
        ["ledger", "show", "city.ledger"],
        ["ledger", "verify", "city.ledger"],
        ["show", "heat.geojson"],
    ):
        assert typed(net, capfd, *words) == 0
        assert typed(net, capfd, *words, "--json") == 0
    for path in [*Path().glob("heat*"), *Path().glob("city.ledger*")]:
        net.throw("written file", path)
    net.check()


def test_a_command_that_fails_in_the_middle_says_nothing_of_a_row(files, net, capfd, monkeypatch):
    for place in (
        "geodp.release.subjects",
        "geodp.release.drawn",
        "geodp.reading.gpd.read_parquet",
        "geodp.cli.maps.write",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, quoting(ValueError if place != "geodp.cli.maps.write" else RuntimeError))
            assert typed(net, capfd, "heatmap", "rows.parquet", "-o", "heat.csv", *TYPED, "--json") in (1, 4)
        net.check()


@pytest.fixture
def cluster():
    """Workers in this process, so that all they log is heard."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    quiet = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        dask.config.set({"dataframe.convert-string": False}),  # which ids of many kinds do not survive
        distributed.LocalCluster(**quiet, silence_logs=False) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.mark.usefixtures("cluster")
def test_no_worker_says_anything_of_a_row(net, tmp_path, capfd):
    from dask import dataframe as dd

    import geodp.dask

    some = few().iloc[:-6]
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")

    def part(i, broken):
        if i == broken == 1:
            quoting(ValueError)()
        return some.iloc[i::4].drop(columns="rider") if i == broken == 2 else some.iloc[i::4]

    for broken in range(3):
        rows_of = dd.from_map(part, range(4), broken=broken, meta=some.iloc[:0])
        net.throw("repr", f"{rows_of.dp!r} {rows_of.dp(**WHO)!r}")
        for name in ("h3", "mean", "auto", "cap", "together"):
            error = attempted(net, name, rows_of, book, f"{name} {broken}", capfd)
            assert getattr(error, "partition", 0) == broken
    search_ledger(net, book)
    net.check()


CELLS = """
    import warnings; import geopandas as gpd, geodp; rows = gpd.read_parquet("rows.parquet")
    geodp.plan(1, **WHO)
    view = rows.dp(**WHO); view
    rows.dp
    heat = view.heatmap(1); heat
    geodp.explain(heat)
    geodp.record(heat)
    geodp.plot(heat);
    geodp.explore(heat)
    book = geodp.Ledger("city.ledger", eps=9, unit="rider"); book
    rows.dp(**WHO, ledger=book).mean("minutes", 1, value_bounds=(0, 9000), label="a")
    book.releases()
    geodp.release_together(rows, {"a": {}}, 1, **WHO)
    geodp.choose_cap(rows, 1, subject="rider", bounds=BOX)
    view.mean("mood", 1, value_bounds=(0, 1))
    view.heatmap(1, by={"mood": [1]})
    rows.set_crs(None, allow_override=True).dp(**WHO).heatmap(1)
    rows.dp.heatmap(1, subject="at", cap=1, bounds=BOX)
    geodp.release.subjects = lambda ids: 1 / int(ids.iloc[0]); view.heatmap(1)
"""


def test_no_output_of_a_notebook_has_anything_of_a_row(files, net, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    where = {**WHO, "grid": "h3:5"}
    sources = [f"WHO, BOX = {where!r}, {BOX!r}", *(line.strip() for line in CELLS.strip().splitlines())]
    cells = [nbformat.v4.new_code_cell(text, metadata={"tags": ["raises-exception"]}) for text in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "asked.ipynb")
    done = _execute().executed(tmp_path / "asked.ipynb", tmp_path)
    failed = [i for i, cell in enumerate(done.cells) if any(o.output_type == "error" for o in cell.outputs)]
    assert failed == [len(sources) - i for i in (5, 4, 3, 2, 1)]
    for cell in done.cells:
        net.throw("notebook", json.dumps(cell.outputs))
    assert sum(len(cell.outputs) > 0 for cell in done.cells) > 15
    net.check()


def _execute():
    path = Path(__file__).parents[1] / "notebooks" / "execute.py"
    spec = importlib.util.spec_from_file_location("execute_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_audit_leaves_no_trace_behind(files, net, book, capfd):
    """What it shows is for the curator; nothing of that is kept, logged, or in the release that follows."""
    some = few()
    before = some.attrs.copy()
    with watched(net, "audit", capfd):
        look = geodp.audit(some, subject="rider", bounds=BOX, grid="square:0.05", value="minutes", delta=1e-6)
        assert look.to_dict()
        view = some.dp(**WHO, grid="square:0.05", ledger=book)
        view.audit()
        search_result(net, view.heatmap(1, label="tonight"))
        net.throw("repr", f"{view!r} {view.plan(1)!r} {some.dp!r} {book!r} {view.policy!r}")
    assert some.attrs == before
    search_ledger(net, book)
    with watched(net, "audit", capfd):
        assert main(["audit", "rows.parquet", *TYPED[:5], "--grid", "h3:5"]) == 0
        net.throw("stderr of an audit", capfd.readouterr().err)
    net.check()
