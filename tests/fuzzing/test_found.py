"""What fuzzing found, one test each, so that it stays found."""

import json
import pickle
import sqlite3
import struct
import zlib
from contextlib import closing
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import parsers
import pytest

import geodp
from geodp import mechanisms
from geodp.accounting import Charge
from geodp.blobs import checksum, pack, unpack
from geodp.cli import main
from geodp.errors import LedgerError, NotARelease
from geodp.exact import exact, written
from geodp.grids import grid
from geodp.ledger import Ledger
from geodp.queries.rescaling import Rescaling
from geodp.wording import brief

WHO = {"subject": "rider", "cap": 2, "bounds": (0, 0, 1, 1), "grid": "square:0.5"}


def deep(levels):
    made = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize("query", [2, "count", {}, 0, "", geodp.Count])
def test_a_query_that_is_none_is_refused_by_its_type(query):
    with pytest.raises(TypeError, match=r"query must be geodp.Count\(\)"):
        geodp.plan(1, query=query, **WHO)


@pytest.mark.parametrize("rescaling", [8, True, "8", None])
def test_a_count_takes_no_numbers(rescaling):
    with pytest.raises(TypeError, match="rescale=True"):
        geodp.Count(rescaling)
    assert geodp.Count(Rescaling(8)).rescaling.k_max == 8


def test_whole_numbers_and_fractions_have_the_limits_of_decimals():
    long = Fraction(10**9000 + 1, 10**9000)
    for value in (10**401, -(10**5000), Fraction(1, 10**5000), Fraction(10**401), long):
        with pytest.raises(ValueError, match="within 1e-400 and 1e400"):
            exact(value, "eps")
    assert exact(10**400, "eps") == 10**400
    assert exact(Fraction(1, 10**400), "eps") == Fraction(1, 10**400)
    assert exact("1e400/3", "eps") == Fraction(10**400, 3)


def test_a_delta_below_all_doubles_takes_no_minutes():
    assert mechanisms.gaussian_delta(2, 1, 10**400) == 5e-324


def test_tiny_sensitivities_have_a_textbook_figure():
    for tiny in (1e-308, "1e-300"):
        assert geodp.choose_mechanism(tiny, tiny, 1, 1e-6).classic_delta is not None


@pytest.mark.parametrize("many", [range(10**12), range(10**15)])
def test_lists_without_end_are_refused_at_their_beginning(many):
    with pytest.raises(ValueError, match="more than 100,000 levels"):
        geodp.plan(1, by={"hour": many}, **WHO)
    with pytest.raises(TypeError, match="got int"):
        geodp.compose(many, 1e-6)
    with pytest.raises(ValueError, match="compare at most 10,000"):
        geodp.compare_plans(many, **WHO)
    with pytest.raises(ValueError, match="values"):
        mechanisms.laplace(range(10**15), 1, 1)
    with pytest.raises(ValueError, match="at least 1"):
        geodp.choose_cap(None, 1, many, subject="rider")


@pytest.mark.parametrize("slots", [(1, 2), "hour", 3])
def test_slots_that_are_no_mapping_are_refused_by_their_type(slots):
    frame = pd.DataFrame({"rider": ["a"]})
    places = geodp.plan(1, by={"hour": [1, 2]}, **WHO)
    heat = places.release(
        gpd.GeoDataFrame(frame.assign(hour=1), geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    )
    with pytest.raises(TypeError, match="slots must map"):
        geodp.total(heat, (0, 0, 1, 1), slots=slots)


def test_wrong_arguments_are_quoted_short_and_never_fail_to_be():
    circular = []
    circular.append(circular)
    for value in (
        deep(100_000),
        circular,
        10**5000,
        [10**5000],
        "x" * 10**6,
        {"a": "y" * 10**6},
        b"z" * 10**6,
    ):
        assert len(brief(value)) < 400
        with pytest.raises((TypeError, ValueError)) as error:
            geodp.Policy(subject="rider", cap=1, contribution=value)
        assert len(str(error.value)) < 600


def test_frames_handed_over_by_mistake_are_not_quoted():
    column = pd.Series(["secret-rider"] * 3)
    for value in (
        column,
        column.to_numpy(),
        column.to_frame(),
        pd.Index(column),
        [column],
        {"a": column},
        np.str_("secret-rider"),
    ):
        assert "secret" not in brief(value)
        for name in ("contribution", "neighboring", "outside"):
            with pytest.raises((TypeError, ValueError)) as error:
                geodp.Policy(**{"subject": "rider", "cap": 1, name: value})
            assert "secret" not in str(error.value)


# --- texts that are none ------------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_is_written_where_it_can_be_and_refused_where_not(half, tmp_path):
    with pytest.raises(ValueError, match="half a surrogate pair"):
        geodp.plan(1, by={"day": ["a", half]}, **WHO)
    for made in (
        lambda: geodp.Square(10, half),
        lambda: geodp.plan(1, **WHO | {"grid": f"square:10@{half}"}),
    ):
        with pytest.raises(ValueError, match="no CRS that pyproj knows"):
            made()
    points = gpd.GeoDataFrame({"x": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    points.columns = pd.Index([half, "geometry"], dtype=object)
    heat = geodp.heatmap(points, 1, **WHO | {"subject": half})
    facts = json.loads(geodp.to_geojson(heat, tmp_path / "x.geojson").read_bytes())
    assert facts["geodp"] == geodp.record(heat)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_arguments_that_are_no_unicode_are_printed_with_escapes(more):
    asked = [
        "plan",
        "--subject",
        "r\udcff",
        "--cap",
        "1",
        "--eps",
        "1",
        "--bounds",
        "0,0,1,1",
        "--grid",
        "box",
    ]
    assert parsers.command(*asked, *more) == 0
    assert parsers.command("ledger", "show", "nowhere\udcff.ledger", *more) == 4


@pytest.mark.parametrize("crs", ["EPSG:03857", "epsg:3857", "EPSG:3857.0", "EPSG:3857 ", "03857", 3857])
def test_one_register_entry_is_one_grid(crs):
    """Otherwise one grid had two names, two kinds of ids, and two keys in a ledger."""
    found = geodp.Square(1000, crs)
    assert found == grid(found.name) == geodp.Square(1000, 3857)
    assert grid(f"square:1000@{crs}").name == "square:1000m@3857"


@pytest.mark.parametrize(
    "text", [b"x=" + b"[" * 3000, b"x=" + b"{a=" * 50_000, b"eps=" + b"9" * 20_000, b"cap=" + b"9" * 20_000]
)
def test_configs_deeper_or_longer_than_python_reads_are_no_configs(text, tmp_path, capsys):
    path = tmp_path / "x.toml"
    path.write_bytes(text)
    assert main(["plan", "--config", str(path)]) == 2
    assert "no TOML that can be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("suffix", "old", "new"),
    [
        (".parquet", b"PAR1", b"PAR2"),
        (".geojson", b'"properties"', b'"propertees"'),
        (".geojson", b'{"type": "Feature",', b'{"type": "Feature";'),
        (".fgb", b"fgb", b"fgc"),
    ],
)
def test_a_damaged_file_is_no_release_and_is_not_quoted(suffix, old, new, tmp_path):
    """Drivers raised errors of their own, with pieces of what they had read."""
    path = tmp_path / f"x{suffix}"
    sound = parsers.files()[suffix]
    path.write_bytes(sound.replace(old, new))
    assert path.read_bytes() != sound
    with pytest.raises(NotARelease) as error:
        geodp.read_release(path)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


@pytest.mark.parametrize("tiles", [{}, 5, True, b"x", ["OpenStreetMap"], object()])
def test_tiles_of_another_type_are_refused_by_it(tiles):
    heat = parsers.heat()
    with pytest.raises(TypeError, match="tiles must be a name"):
        geodp.explore(heat, tiles=tiles)


@pytest.mark.parametrize("value", [NotImplemented, "no", np.ones(2), None, 2])
def test_switches_of_maps_are_true_or_false(value, tmp_path):
    made = parsers.heat()
    for call in (
        lambda: geodp.plot(made, error=value),
        lambda: geodp.plot(made, legend=value),
        lambda: geodp.explore(made, legend=value),
        lambda: geodp.to_html(made, tmp_path / "x.html", error=value),
        lambda: geodp.to_html(made, tmp_path / "x.html", coastlines=value),
    ):
        with pytest.raises(TypeError, match="must be True or False"):
            call()


TILES = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"


@pytest.mark.parametrize("value", [[None], 5, NotImplemented, b"x"])
def test_titles_and_names_of_maps_are_texts(value, tmp_path):
    made = parsers.heat()
    for call in (
        lambda: geodp.plot(made, title=value),
        lambda: geodp.compare_maps(made, made, title=value),
        lambda: geodp.compare_maps(made, made, names=value),
        lambda: geodp.compare_maps(made, made, names=("a", value)),
        lambda: geodp.to_html(made, tmp_path / "x.html", title=value),
        lambda: geodp.to_html(made, tmp_path / "x.html", tiles=TILES, attribution=value),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize("label", ["a\nb", "", " x", "x" * 10_000])
def test_a_label_that_none_can_be_is_a_wrong_argument(label, tmp_path, capsys):
    path = str(tmp_path / "x.ledger")
    Ledger(path, eps=1)
    assert main(["show", path, label]) == 2
    assert "label must be" in capsys.readouterr().err


def test_columns_with_endless_names_are_quoted_short():
    frame = gpd.GeoDataFrame(
        {"x" * 100_000: [1], "y" * 100_000: [1]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326
    )
    for call in (lambda: geodp.audit(frame, **WHO), lambda: geodp.heatmap(frame, 1, **WHO)):
        with pytest.raises(ValueError, match="has no column 'rider'") as error:
            call()
        assert len(str(error.value)) < 5000


def test_what_is_no_value_at_all_is_no_crs():
    with pytest.raises(TypeError, match="crs must be an EPSG code"):
        geodp.Square("0.1", NotImplemented)


# --- sizes --------------------------------------------------------------------------------------------


def test_figures_that_no_record_can_hold_are_refused():
    with pytest.raises(ValueError, match=r"below 1\.8e308"):
        mechanisms.laplace([1], "1e-300", "1e290")
    with pytest.raises(ValueError, match="n must be at least 1, got <int>"):
        geodp.Centroid(10**5000)


@pytest.mark.parametrize(("value", "lattice"), [(5, None), (np.int64(5), None), (0.3, 1), (2**63, 8)])
def test_a_number_without_dimensions_is_noised_like_an_array(value, lattice):
    noisy = mechanisms.laplace(value, 1, 1, lattice=lattice)
    assert noisy.shape == ()
    assert noisy.record["mechanism"] == "laplace"


def test_draws_beyond_any_memory_are_refused():
    for draw in (mechanisms.discrete_laplace, mechanisms.rounded_gaussian):
        with pytest.raises(ValueError, match="size must be from 0"):
            draw(1, 2**50)


# --- ledgers and records that anybody could have written ---------------------------------------------


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e-999999999", "9" * 20_000, "nan", "1/0x", "", " 1", "1_0"]
)
def test_numbers_of_a_file_are_read_within_limits(text):
    with pytest.raises(ValueError, match="no number"):
        written(text)
    for value in (None, True, float("inf"), [1], b"1"):
        with pytest.raises(TypeError, match="no number"):
            written(value)
    assert written("1/3") == Fraction(1, 3)


def test_a_ceiling_beyond_all_doubles_can_be_read(tmp_path):
    ledger = Ledger(tmp_path / "x.ledger", eps=10**400)
    assert ledger.remaining()["eps"] == 1.7976931348623157e308
    assert "eps=1" in repr(ledger)


@pytest.mark.parametrize("size", [1 << 34, (1 << 33) + 1])
def test_a_few_bytes_do_not_fill_the_memory(size, monkeypatch):
    monkeypatch.setattr("geodp.blobs._LARGEST", 1 << 16)
    bomb = zlib.compress(b"\0" * (1 << 17))
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(bomb)
    sound = pack({"count": np.arange(3)})
    for blob in (sound[:-1], sound + b"x", sound + sound):
        with pytest.raises(ValueError, match="cannot be read"):
            unpack(blob)


HEADERS = [
    "[]",
    "3",
    "null",
    '{"columns": 3}',
    '{"columns": [{"name": "a", "dtype": "<i8", "length": -1}]}',
    '{"columns": [{"name": "a", "dtype": "<i8", "length": 1.5}]}',
    '{"columns": [{"name": [], "dtype": "<i8", "length": 0}]}',
    '{"columns": [{"name": "a", "dtype": "O", "length": 1}]}',
    '{"columns": [{"name": "a", "dtype": [["a", "O"]], "length": 1}]}',
    '{"columns": [{"name": "a", "dtype": "text", "length": 99999999999}]}',
    "[" * 100_000,
]


@pytest.mark.parametrize("header", range(len(HEADERS)))
def test_no_header_of_a_blob_is_more_than_data(header):
    head = HEADERS[header].encode()
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(zlib.compress(struct.pack("<Q", len(head)) + head + bytes(64)))


def test_a_blob_that_its_writer_sealed_is_a_damaged_ledger(tmp_path):
    path = tmp_path / "x.ledger"
    ledger = Ledger(path, eps=3)
    ledger.store(ledger.debit("a", "{}", Charge(Fraction(1)), {}), {"count": np.arange(3)})
    for blob in (b"", b"x" * 99, zlib.compress(b"\0" * 99), pickle.dumps(print), "text", 10**9, None):
        with sqlite3.connect(path) as connection:
            connection.execute(
                "UPDATE geodp_releases SET data = ?, digest = ?",
                (blob, checksum(blob if isinstance(blob, bytes) else b"")),
            )
        connection.close()
        with pytest.raises(LedgerError, match="damaged"):
            ledger.stored("a", "{}")
        assert any("stored columns" in text for text in ledger.verify()["problem"])


def test_any_value_in_any_cell_of_a_ledger_is_data():
    """All columns, all kinds of values that SQLite has, rows first and last: a LedgerError or an answer."""
    values = [b"", b'{"eps": "1"}', b"1e999999999", b"[" * 50_000, b"\xff\xfe", b"null"]
    tried = 0
    for column in range(len(parsers.CELLS)):
        for kind in range(5):
            for value in values[:: 1 if kind < 2 else 3]:
                parsers.ledger_cells(bytes([column, kind, tried % 2]) + value)
                tried += 1
    assert tried > 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", 0.5),
        ("by", "x"),
        ("unit", None),
        ("n_cells", "many"),
        ("grid", 3),
        ("measurements", [{}]),
        ("bounds", "abcd"),
    ],
)
def test_a_record_that_somebody_changed_is_no_release(name, value):
    facts = geodp.plan(1, **WHO).to_dict()
    with pytest.raises(NotARelease):
        geodp.explain(facts | {name: value})


@pytest.mark.parametrize("lost", ["renamed", "levels", "dropped"])
def test_a_frame_whose_geometry_column_got_lost_is_refused(lost):
    frame = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    if lost == "renamed":
        frame = frame.rename(columns={"geometry": "place"})
    elif lost == "levels":
        frame.columns = pd.MultiIndex.from_tuples([(name, "x") for name in frame.columns])
    else:
        frame = frame.drop(columns="geometry")
    with pytest.raises((ValueError, TypeError), match=r"no active geometry|needs a GeoDataFrame"):
        geodp.plan(1, **WHO).release(frame)


def test_a_cell_larger_than_any_double_is_refused():
    for size in (10**400, "1e399"):
        with pytest.raises(ValueError, match="more than 90"):
            geodp.Square(size)


# --- what is handed to a ledger ------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    return Ledger(tmp_path / "x.ledger", eps=3)


TENTH = Charge(Fraction(1, 10))


def repr_of(change):
    return ascii(brief(change))[:60]


@pytest.mark.parametrize(
    "change",
    [
        {"charge": None},
        {"charge": 1},
        {"record": None},
        {"record": "{}"},
        {"record": {"x": {1, 2}}},
        {"record": {"x": float("nan")}},
        {"record": {"x": deep(50_000)}},
        {"key": None},
        {"key": 3},
        {"key": "\ud800"},
        {"key": "a\0b"},
        {"reason": 3},
        {"reason": "\ud800"},
        {"reason": "x" * 20_000},
        {"retry": 1},
        {"retry": "no"},
        {"label": None},
        {"label": "\ud800"},
        {"label": "a\nb"},
    ],
    ids=repr_of,
)
def test_debits_of_anything_else_are_refused_and_spend_nothing(book, change):
    asked = {"label": "a", "key": "{}", "charge": TENTH, "record": {}, **change}
    with pytest.raises((TypeError, ValueError)) as error:
        book.debit(**asked)
    assert not isinstance(error.value, UnicodeError)
    assert book.spent()["eps"] == 0
    assert book.debit("a", json.dumps({"unit": "\U0001f6b2"}), TENTH, {}, reason="ré\nview") == 1


def test_the_other_methods_name_what_they_take(book):
    for call in (
        lambda: book.check(None),
        lambda: book.store(True, {}),
        lambda: book.store(1, None),
        lambda: book.record(None),
        lambda: book.stored("a", "{}", retry="no"),
        lambda: book.verify("frame"),
        lambda: Ledger(book._storage.path, timeout="soon"),
        lambda: Ledger(book._storage.path, timeout=-1),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize("place", ["x" * 5000, "a\0b", "\ud800", "~nobody-of-that-name/x", "a/" * 3000])
def test_places_that_no_file_can_have(place):
    for terms in ({}, {"eps": 3}):
        with pytest.raises(LedgerError, match=r"no path on this machine"):
            Ledger(place, **terms)


def people():
    places = gpd.points_from_xy([0.1, 0.6], [0.1, 0.6])
    return gpd.GeoDataFrame({"rider": ["a", "b"], "minutes": [1.0, 2.0]}, geometry=places, crs=4326)


STORED = [
    lambda **books: geodp.heatmap(people(), 1, **WHO, **books),
    lambda **books: geodp.heatmap(people(), 1, **WHO | {"cap": "auto"}, **books),
    lambda **books: geodp.heatmap(people(), 1, **WHO, cells="sparse", **books),
    lambda **books: geodp.mean(people(), "minutes", 1, value_bounds=(0, 9), **WHO, **books),
    lambda **books: geodp.centroid(people(), 1, **WHO, **books),
    lambda **books: geodp.release_together(people(), {"a": {}, "b": {"grid": "box"}}, 1, **WHO, **books),
    lambda **books: geodp.choose_cap(people(), 1, **{k: v for k, v in WHO.items() if k != "cap"}, **books),
    lambda **books: geodp.perturb(people(), 2, subject="rider", max_reports=1, **books),
]


@pytest.mark.parametrize("call", STORED, ids=range(len(STORED)))
@pytest.mark.parametrize(
    "columns",
    [{}, {"count": np.arange(99)}, {"noisy_count": np.array(["x"], dtype=object)}, {"cap": np.array([])}],
    ids=["none", "long", "texts", "empty"],
)
def test_stored_numbers_that_do_not_fit_are_a_damaged_ledger(call, columns, book):
    call(ledger=book, label="a")
    blob = pack(columns)
    with closing(sqlite3.connect(book._storage.path)) as connection, connection:
        connection.execute("UPDATE geodp_releases SET data = ?, digest = ?", (blob, checksum(blob)))
    with pytest.warns(geodp.ReplayWarning), pytest.raises(LedgerError, match="does not fit its plan"):
        call(ledger=book, label="a")
