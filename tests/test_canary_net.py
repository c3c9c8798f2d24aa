"""The net that test_canaries.py casts is whole: it finds a leak of every kind, in every form, on every way out."""

import base64
import hashlib
import json
import logging
import os
import pickle
import sqlite3
import sys
import warnings
import zlib
from contextlib import closing, suppress

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from canaries import COUNTS, HEIGHT, MARK, NUMBER, PLACES, SPIKE, UUID, VALUES, WHEN
from canary_net import Net, watched
from canary_releases import (
    ORDINARY,
    RELEASES,
    few,
    lengthen,
    rows,
    search_files,
    search_frame,
    search_ledger,
    svg,
)

import geodp
from geodp import points, records, release
from geodp.records import sealed


@pytest.fixture
def net():
    return Net()


@pytest.fixture
def book(tmp_path):
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, unit="rider")


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


@pytest.mark.parametrize("channel", PLANTED)
def test_a_release_that_leaks_is_caught(channel, net, book, tmp_path, capfd, monkeypatch):
    lengthen(monkeypatch, net)
    PLANTED[channel](monkeypatch)
    with watched(net, "release", capfd):
        frame = RELEASES["square"](rows(), ledger=book, label="tonight")
    with suppress(geodp.NotARelease):
        search_frame(net, frame)
        search_files(net, frame, tmp_path, ORDINARY)
    search_ledger(net, book)
    assert channel in {channel for channel, *_ in net.found}
