"""One function for each parser of geodp: bytes in, an answer or a refusal out, and nothing else.

They serve hypothesis (``test_fuzz_parsers.py``) and atheris (``coverage_guided.py``). Each takes any bytes and
returns whether they were accepted; an exception that comes out is a bug.
"""

import contextlib
import io
import json
import os
import shutil
import sqlite3
import struct
import tempfile
import warnings
import zlib
from fractions import Fraction
from functools import cache
from pathlib import Path

import click
import geopandas as gpd
import numpy as np

import geodp
from geodp.accounting import Charge
from geodp.blobs import checksum, pack, unpack
from geodp.bounds import Box
from geodp.cli import main, options
from geodp.errors import GeoDPError, LedgerError
from geodp.exact import UNREADABLE, exact
from geodp.grids import grid
from geodp.ledger import Ledger
from geodp.slots import slots
from geodp.terms import Terms

__all__ = ["CELLS", "PARSERS", "SEEDS", "files", "heat", "seeds"]

REFUSED = (GeoDPError, ValueError, TypeError)
NYC = "-74.3,40.4,-73.6,41.0"
BOX = Box.parse((-74.05, 40.68, -73.9, 40.82))
CODES = {0, 2, 3, 4}


def _text(data):
    """Return a text that may hold lone surrogates, as arguments that are no UTF-8 do."""
    return data.decode("utf-8", "surrogateescape")


def _accepts(call, *given):
    """Return whether the call was accepted; a refusal has words, and is no UnicodeError."""
    try:
        call(*given)
    except (*REFUSED, click.ClickException) as error:
        refusal = error
    else:
        return True
    words = refusal.format_message() if isinstance(refusal, click.ClickException) else str(refusal)
    assert words, repr(refusal)
    assert not isinstance(refusal, UnicodeError), repr(refusal)
    return False


def numbers(data):
    """A number as it is typed: ``exact``."""
    return _accepts(exact, _text(data), "eps")


def bounds(data):
    """A box as it is typed, in a call and on the command line."""
    text = _text(data)
    _accepts(lambda: Box.parse(tuple(text.split(","))))
    return _accepts(lambda: Box.parse(options.bounds(text)).centre_words())


def grids(data):
    """A grid's text, and what a plan wants to know of it."""

    def look():
        found = grid(_text(data))
        assert grid(found.name) == found
        if found.needs_bounds and found.estimate(BOX) < 20_000:
            found.domain(BOX)
        found.fitting(BOX, 100)

    return _accepts(look)


def levels(data):
    """Slots as they are typed after ``--by``."""

    def look():
        column, listed = options.levels(_text(data))
        slots({column: listed}).to_dict()

    return _accepts(look)


def words(data):
    """Every other option that has a parser of its own."""
    text = _text(data)
    taken = [_accepts(parse, text) for parse in (options.cap, options.rescale, options.pair, options.number)]
    return any(taken)


@cache
def _folder():
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="geodp-fuzz-", dir=shm if shm.is_dir() else None))
    import atexit

    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def command(*arguments):
    """Run a command, and return its exit code; what it says is no traceback."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as strict as a terminal
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    assert "Traceback" not in err.getvalue()
    assert code in CODES, f"exit code {code}: {err.getvalue()}"
    return code


def configs(data):
    """A TOML file of options."""
    path = _folder() / "x.toml"
    path.write_bytes(data)
    return command("plan", "--config", path) == 0


@cache
def _ledger_bytes():
    path = _folder() / "seed.ledger"
    book = Ledger(path, eps=3, delta=1e-5, unit="rider", tiers={"public": "0.1"}, population=10**4)
    plan = geodp.plan("0.1", subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    points = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    plan.release(points, ledger=book, label="first")
    book.debit("second", "{}", Charge(Fraction(1, 10)), {"unit": "rider"})
    return path.read_bytes()


def _use(path):
    """Do everything with a ledger that one can; only a LedgerError may come out of each."""
    done = 0
    try:
        book = Ledger(path, timeout=0.05)
    except LedgerError:
        return False
    calls = (
        book.spent,
        book.remaining,
        book.metric_spent,
        book.releases,
        book.verify,
        lambda: repr(book),
        lambda: book.record("first"),
        lambda: book.stored("first", book_key()),
        lambda: book.stored("second", "{}", retry=True),
        lambda: book.check(Charge(Fraction(1, 10))),
        lambda: book.store(2, {"count": np.arange(3)}),
        lambda: book.debit("third", "{}", Charge(Fraction(1, 10)), {"unit": "rider"}),
    )
    for call in calls:
        try:
            call()
            done += 1
        except GeoDPError:
            pass
    return done == len(calls)


@cache
def book_key():
    return geodp.plan("0.1", subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5").key


def ledger_files(data):
    """The bytes of an SQLite file: a ledger with some of its bytes overwritten, or anything at all."""
    path = _folder() / "x.ledger"
    if data[:1] == b"S":
        path.write_bytes(data)
    else:
        sound = bytearray(_ledger_bytes())
        at = 0
        while at + 5 <= len(data):
            (start,) = struct.unpack_from("<H", data, at)
            size = data[at + 2] % 16 + 1
            piece = data[at + 3 : at + 3 + size]
            sound[start % len(sound) : start % len(sound) + len(piece)] = piece
            at += 3 + size
        path.write_bytes(bytes(sound))
    for more in ("x.ledger-journal", "x.ledger-wal", "x.ledger-shm"):
        (_folder() / more).unlink(missing_ok=True)
    return _use(path)


CELLS = [("geodp_ledger", "value"), ("geodp_ledger", "name")]
CELLS += [
    ("geodp_entries", name) for name in ("id", "label", "time", "charge", "total", "tier", "reason", "record")
]
CELLS += [("geodp_entries", "digest"), ("geodp_entries", "kind")]
CELLS += [("geodp_releases", name) for name in ("label", "key", "entry", "state", "stored", "data", "digest")]


def _cell(kind, rest):
    """Return a value of SQLite: a text, bytes, a whole number, a real, nothing, or bytes in a text's clothes."""
    if kind == 0:
        return rest.decode("utf-8", "replace")
    if kind == 1:
        return rest
    if kind == 2:
        return int.from_bytes(rest[:8], "little", signed=True)
    if kind == 3:
        return struct.unpack("<d", rest[:8].ljust(8, b"\0"))[0]
    return None


def ledger_cells(data):
    """A sound SQLite file whose cells hold anything; a checksum may fit, as the writer of a file can make it."""
    if len(data) < 3:
        return False
    path = _folder() / "x.ledger"
    path.write_bytes(_ledger_bytes())
    table, column = CELLS[data[0] % len(CELLS)]
    value = _cell(data[1] % 5, data[3:])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        row = data[2] % connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        with contextlib.suppress(sqlite3.Error):
            which = f"SELECT rowid FROM {table} LIMIT 1 OFFSET {row}"
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ({which})", (value,))
        if column == "data" and isinstance(value, bytes):
            connection.execute("UPDATE geodp_releases SET digest = ?", (checksum(value),))
    connection.close()
    return _use(path)


def terms(data):
    """The terms of a ledger, as names and texts."""
    try:
        rows = json.loads(data)
    except ValueError:
        return False
    except RecursionError:
        return False
    if not isinstance(rows, dict):
        return False
    held = {**dict(_sound_terms()), **{str(name): str(value) for name, value in rows.items()}}
    try:
        Terms.from_rows(held)
    except UNREADABLE:  # what read_terms turns into a LedgerError
        return False
    return True


@cache
def _sound_terms():
    _ledger_bytes()
    return Ledger(_folder() / "seed.ledger")._terms.to_rows()


def blobs(data):
    """Stored columns: bytes as they are, and bytes that decompress."""
    with contextlib.suppress(ValueError):
        unpack(data)
    head, found, body = data.partition(b"\n")
    whole = struct.pack("<Q", len(head)) + head + body if found else data
    try:
        columns = unpack(zlib.compress(whole, 0))
    except ValueError:
        return False
    assert all(isinstance(values, np.ndarray) for values in columns.values())
    return True


def records(data):
    """A record in JSON, explained, and as the attrs of a frame."""
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return False
    frame = heat().copy()
    frame.attrs["geodp"] = facts
    for call in (geodp.record, geodp.explain, geodp.signal, lambda frame: geodp.total(frame, (0, 0, 1, 1))):
        _accepts(call, frame)
    return isinstance(facts, dict) and _accepts(geodp.explain, facts)


@cache
def heat():
    points = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    return geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")


@cache
def files():
    """Return the bytes of a release in every format that geodp show reads."""
    from geodp.writing import write

    made = {}
    for suffix in (".geojson", ".parquet", ".png", ".gpkg", ".fgb"):
        path = _folder() / f"seed{suffix}"
        write(heat(), path)
        made[suffix] = path.read_bytes()
    return made


_SUFFIXES = (".geojson", ".parquet", ".png", ".gpkg", ".fgb", ".json", ".csv", "")


def shown(data):
    """A file for ``geodp show``: a release with some of its bytes overwritten, or anything."""
    return bool(data) and command("show", _changed_file(data)) == 0


def reopened(data):
    """The same files, read back as a frame; a driver may warn of what is broken, in its own words."""
    if not data:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _accepts(geodp.read_release, _changed_file(data))


def _changed_file(data):
    suffix = _SUFFIXES[data[0] % len(_SUFFIXES)]
    sound = bytearray(files().get(suffix, b"{}"))
    path = _folder() / f"x{suffix}"
    if data[0] >= 128:
        path.write_bytes(data[1:])
    else:
        at = 1
        while at + 5 <= len(data):
            (start,) = struct.unpack_from("<I", data.ljust(at + 4, b"\0"), at)
            piece = data[at + 4 : at + 9]
            sound[start % len(sound) : start % len(sound) + len(piece)] = piece
            at += 9
        path.write_bytes(bytes(sound))
    return path


def csvs(data):
    """A CSV of points, audited: names of columns and fields of any kind."""
    path = _folder() / "x.csv"
    path.write_bytes(data)
    where = ("--bounds", NYC, "--grid", "box")
    return (
        command(
            "audit", path, "--subject", "rider", "--cap", 1, "--lon", "lon", "--lat", "lat", "--quiet", *where
        )
        == 0
    )


def arguments(data):
    """A command line, split at NUL bytes, which none can hold."""
    typed = [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0")]
    if any("postgres" in part or "http" in part.lower() or part.lower().startswith("/vsi") for part in typed):
        return False
    here = Path.cwd()
    os.chdir(_folder())
    try:
        return command(*typed) == 0
    finally:
        os.chdir(here)


PARSERS = {
    parse.__name__: parse
    for parse in (
        arguments,
        blobs,
        bounds,
        configs,
        csvs,
        grids,
        ledger_cells,
        ledger_files,
        levels,
        numbers,
        records,
        reopened,
        shown,
        terms,
        words,
    )
}

_BLOB = zlib.decompress(
    pack({"count": np.arange(3), "a": np.array(["x", "é"], dtype=object), "b": np.ones(2) > 0})
)
_PLAN = f"plan --subject rider --cap 2 --eps 1 --bounds {NYC} --grid h3:4".replace(" ", "\0")
_TOML = 'subject = "rider"\ncap = 2\neps = "1"\nbounds = [-74.3, 40.4, -73.6, 41.0]\n'
_CHANGES = [bytes([i, 1, 0, 0, 0]) + b"abcde" for i in range(len(_SUFFIXES))]
_CHANGES += [bytes([128 + i]) + b"{}" for i in range(8)]
SEEDS = {
    "arguments": [
        _PLAN.encode(),
        b"ledger\0show\0nowhere.ledger\0--json",
        b"ledger\0create\0c.ledger\0--eps\0003\0--tier\0public=0.1\0--population\00010",
        b"show\0x.png\0label",
        b"heatmap\0x.csv\0-o\0x.geojson\0--subject\0rider\0--cap\0auto\0--eps\0001\0--lon\0lon\0--lat\0lat",
        b"audit\0x.csv\0--subject\0rider\0--lon\0lon\0--lat\0lat\0--value\0v\0--value-bounds\0000,1",
    ],
    "blobs": [_BLOB, _BLOB[8:].replace(b"]}", b"]}\n", 1)],
    "bounds": [NYC.encode(), b"170,-20,-170,20", b"0,0,1e-9,1e-9", b"-180,-90,180,90", b"1/3,0,1,1"],
    "configs": [
        _TOML.encode(),
        b'[plan]\nby = {hour = [1, 2], day = ["a"]}\nrescale = true\neps = 1e-3\n',
        b'grid = "square:0.01"\n[heatmap]\noutput = ["a.csv"]\nledger = "x.ledger"\n',
    ],
    "csvs": [b"rider,lon,lat\na,-73.9,40.7\nb,x,91\n,,\n", b'\xef\xbb\xbf"rider","lon\nx",lat\n=1+1,0,0\n'],
    "grids": [
        b"h3:5",
        b"square:0.01",
        b"square:1000@3035",
        b"box",
        b"square:1000m@EPSG:3857",
        b"square:5@+proj=utm +zone=18",
    ],
    "ledger_cells": [bytes([i, kind, 0]) + b'{"eps": "1"}' for i in range(len(CELLS)) for kind in range(5)],
    "ledger_files": [b"\x00\x00\x05abcdef", b"\x10\x02\x0f0123456789abcdef", b"SQLite format 3\x00"],
    "levels": [b"hour=0:24", b"day=mon,tue", b"code='7','8'", b"x=-3:3"],
    "numbers": [b"0.1", b"1/3", b"1e-6", b"+1E5", b"-.5", b"1_0"],
    "records": [],
    "reopened": [bytes([i]) for i in range(len(_SUFFIXES))] + _CHANGES,
    "shown": _CHANGES,
    "terms": [b'{"eps": "1/3", "tier x": "0.5"}', b'{"population": "3", "rho": "1"}'],
    "words": [b"auto", b"3", b"true", b"0,1", b"1e-3"],
}


def seeds(name):
    """Return good and nearly good inputs of one parser."""
    if name == "records":
        return [json.dumps(heat().attrs["geodp"]).encode()]
    return SEEDS[name]
