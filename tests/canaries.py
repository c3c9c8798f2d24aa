"""Values nobody may see again, frames full of them, and a net that finds them in whatever form they come out.

The net knows each value as text, as bytes of either order, in hexadecimal, in base64, as well-known binary, and ids
also by their plain hashes. It looks into what is packed: base64, zlib, PNG, SQLite and Parquet.
"""

import base64
import gzip
import hashlib
import io
import logging
import re
import sqlite3
import struct
import traceback
import uuid
import warnings
import zlib
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

__all__ = [
    "COUNTS",
    "HEIGHT",
    "MARK",
    "NUMBER",
    "PLACES",
    "SPIKE",
    "UUID",
    "VALUES",
    "WHEN",
    "Net",
    "people",
    "said_by",
    "spiked",
    "watched",
]

# What is planted ------------------------------------------------------------------------------------------

MARK = "kanarie"  # in every text of every row
NUMBER = 7319405882264417000  # ids that are numbers begin with the same digits
UUID = uuid.UUID("b7c1e0f2-53d9-4e6a-9c48-71fa05d2e863")
PLACES = (
    (-73.98765432101, 40.74839201746),
    (-73.91827364513, 40.71592648371),
    (-74.04938271609, 40.81726354917),
    (12.34938275617, 56.78172635409),  # outside the box
)
HEIGHT = 8317.264951837
VALUES = (8765.432198761, 3456.789123452, -6543.219876543)
WHEN = (pd.Timestamp("2031-07-19T13:37:42.123457"), pd.Timestamp("1987-02-23T03:51:08.918273"))
BIG = 918273645546372819
# How many rows, people, and people in the fullest cell.
COUNTS = {"rows": 21_613, "people": 17_239, "crowd": 12_841}

# What is added to exact numbers before noise, so that they are long enough to be told from others: the last
# digits and bytes are the place in the vector.
SPIKE = 83_614_927_421_440
assert SPIKE % 2**16 == 0


def people(ids="texts"):
    """Return rows of many people in four places, and one of each kind that no release can use.

    Parameters
    ----------
    ids : {"texts", "numbers", "mixed"}
    """
    rng = np.random.default_rng(8)
    n, crowd, who = COUNTS["rows"], COUNTS["crowd"], COUNTS["people"]
    subject = np.concatenate([np.arange(who), rng.integers(crowd, who, n - who)])
    place = np.where(subject < crowd, 0, 1 + subject % 3)
    points = shapely.points([(*PLACES[i], HEIGHT) for i in place])
    points[-6:] = [
        None,
        shapely.Point(),
        shapely.Point(np.nan, np.inf),
        shapely.LineString(PLACES[:2]),
        shapely.MultiPoint(PLACES[:1]),
        shapely.Point(PLACES[0][0] * 1e300, PLACES[0][1]),
    ]
    rows = gpd.GeoDataFrame(
        {
            "rider": _ids(ids, subject),
            "minutes": np.resize([*VALUES, np.nan, np.inf], n),
            "hour": np.resize([0, 1, BIG], n),
            "mood": np.resize([f"{MARK}-glad", f"{MARK}-sad"], n),
            "at": np.resize(np.array(WHEN, "datetime64[ns]"), n),
            "big": BIG,
            "key": str(UUID),
        },
        geometry=points,
        crs=4326,
        index=pd.Index([f"{MARK}-row-{i}" for i in range(n)], name="row"),
    )
    rows.attrs = {"source": f"{MARK}-source", "geodp": {"query": f"{MARK}-record"}}
    return rows


def _ids(kind, subject):
    if kind == "numbers":
        return subject + NUMBER
    names = pd.Series([f"{MARK}-{i:05d}" for i in subject], dtype=object).to_numpy(copy=True)
    if kind == "mixed":
        names[::3] = [int(i) + NUMBER for i in subject[::3]]
        names[1::7] = [str(uuid.UUID(int=UUID.int + int(i) * 2**96)) for i in subject[1::7]]
        names[5:40:5] = [UUID, None, float("nan"), VALUES[0], True, (MARK,), UUID.bytes]
    return names


def spiked(exact):
    """Return exact numbers with a long one added to each; keys of cells stay what they are."""
    return {
        name: numbers if name == "key" else numbers + SPIKE + np.arange(numbers.size).reshape(numbers.shape)
        for name, numbers in exact.items()
    }


# Its forms ------------------------------------------------------------------------------------------------


def _of_text(text):
    plain = text.encode()
    yield from (plain, text.upper().encode(), text.encode("utf-16-le"), text.encode("utf-32-le"))
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for shift in range(3):  # the letters of base64 that depend on nothing before and after
        coded = base64.b64encode(b"\0" * shift + plain)
        yield coded[(0, 2, 3)[shift] : len(coded) - (4 if (shift + len(plain)) % 3 else 0)]


def _of_bytes(*packed):
    for raw in packed:
        yield from (raw, raw.hex().encode(), raw.hex().upper().encode())
        yield base64.b64encode(raw)[: len(raw) * 8 // 6]


def _of_float(number):
    yield repr(number).encode()[:-1]
    yield from _of_bytes(struct.pack("<d", number), struct.pack(">d", number))
    yield number.hex().encode()


def _of_int(number):
    yield from (str(number).encode(), f"{number:,}".encode(), f"{number:_}".encode(), f"{number:x}".encode())
    yield from _of_bytes(struct.pack("<q", number), struct.pack(">q", number))


def _of_time(time):
    yield from (
        str(time.date()).encode(),
        time.strftime("%H:%M:%S").encode(),
        time.strftime("%b %d, %Y").encode(),
    )
    for unit in ("ns", "us", "ms"):
        yield from _of_int(int(time.as_unit(unit).value) if unit == "ns" else time.as_unit(unit)._value)


def _of_spikes():
    """All spikes share their first digits and, as whole numbers, their upper bytes."""
    text = str(SPIKE)[:-4]
    yield from (text.encode(), f"{SPIKE:,}"[:-6].encode())
    yield from (struct.pack("<q", SPIKE)[2:], struct.pack(">q", SPIKE)[:-2])
    yield from (struct.pack("<q", SPIKE * 64)[2:], f"{float(SPIKE):.13e}"[:11].encode())
    for number in (SPIKE + i for i in range(6)):
        yield from (struct.pack("<d", number), struct.pack(">d", number), struct.pack("<d", number / 64))


def _hashes(name):
    plain = str(name).encode()
    for kind in ("md5", "sha1", "sha256", "blake2b"):
        made = hashlib.new(kind, plain)
        yield from (made.hexdigest()[:16].encode(), made.digest()[:12])
    for value in pd.util.hash_array(np.array([name])):
        yield from (str(value).encode(), value.tobytes())


def _forms():
    found = {f"text {MARK}": [*_of_text(MARK)]}
    found["uuid"] = [
        *_of_text(str(UUID)[:18]),
        *_of_text(UUID.hex[8:24]),
        UUID.bytes,
        UUID.bytes_le,
        UUID.bytes[::-1],
    ]
    for i in (0, 3, 6):
        found[f"id {NUMBER + i}"] = [*_of_int(NUMBER + i), struct.pack("<d", float(NUMBER + i))]
    found["ids that are numbers"] = [str(NUMBER)[:-5].encode(), f"{NUMBER:,}"[:-7].encode()]
    for name in (f"{MARK}-00000", f"{MARK}-{COUNTS['crowd']:05d}", NUMBER):
        found[f"hash of {name}"] = [*_hashes(name)]
    for number in (*(c for place in PLACES for c in place), HEIGHT, *VALUES):
        found[f"float {number}"] = [*_of_float(number)]
        found[f"rounded {number}"] = [f"{number:.6f}".encode()[:-1]]
    for time in WHEN:
        found[f"time {time}"] = [*_of_time(time)]
    found[f"int {BIG}"] = [*_of_int(BIG), struct.pack("<d", float(BIG)), str(float(BIG)).encode()[:15]]
    found["exact number"] = [*_of_spikes()]
    return [(name, form) for name, forms in found.items() for form in dict.fromkeys(forms)]


FORMS = _forms()
_COUNTED = {
    name: re.compile(rf"(?<![\w.,]){n // 1000}[,_ ]?{n % 1000:03d}(?![\w]|[.,]\d)")
    for name, n in COUNTS.items()
}


# The net --------------------------------------------------------------------------------------------------


class Net:
    """Searches everything that is thrown into it, each part once, and keeps what it finds.

    Parameters
    ----------
    moved : bool, default False
        Whether moved points are thrown in, of which some agree with true ones in a few digits.
    """

    def __init__(self, moved=False):
        self.found, self.channels, self._seen = [], {}, set()
        self._forms = [(name, form) for name, form in FORMS if not moved or not name.startswith("rounded")]

    def plant(self, numbers):
        """Look for these floats too."""
        for number in numbers.tolist():
            forms = [struct.pack("<d", number), struct.pack(">d", number), repr(number).encode()]
            self._forms += [(f"exact {number}", form) for form in forms]

    def throw(self, channel, thing, *, counts=True):
        """Search one thing: bytes, a file, text, an exception, or whatever has a repr and can be pickled.

        Parameters
        ----------
        channel : str
            Where it was caught.
        thing : Any
        counts : bool, default True
            Whether texts may hold no number of rows or people either.
        """
        self.channels[channel] = self.channels.get(channel, 0) + 1
        for part in unpacked(_bytes(thing)):
            digest = hashlib.blake2b(part, digest_size=16).digest()
            if digest in self._seen:
                continue
            self._seen.add(digest)
            self._search(channel, part, counts)

    def _search(self, channel, part, counts):
        self.found += [(channel, name, form) for name, form in self._forms if form in part]
        with suppress(UnicodeDecodeError):
            text = part.decode() if counts else ""
            self.found += [
                (channel, name, str(n)) for name, n in COUNTS.items() if _COUNTED[name].search(text)
            ]

    def check(self):
        """Fail if there is anything in the net; start anew."""
        found, self.found = self.found, []
        assert not found, sorted(set(found))[:10]


def _bytes(thing):
    if isinstance(thing, bytes):
        return thing
    if isinstance(thing, Path):
        return thing.read_bytes()
    if isinstance(thing, BaseException):
        thing = said_by(thing)
    return (thing if isinstance(thing, str) else repr(thing)).encode("utf-8", "surrogatepass")


def said_by(error):
    """Return all words of an exception, of its causes and contexts, arguments, attributes and notes."""
    texts, seen, queue = ["".join(traceback.format_exception(error))], set(), [error]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), repr(one.args), repr(vars(one))]
        queue += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return "\n".join(texts)


_BASE64 = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")


def unpacked(data, depth=3):
    """Yield the bytes themselves, and what is packed in them."""
    yield data
    if depth == 0:
        return
    for inner in _inner(data):
        yield from unpacked(inner, depth - 1)


def _inner(data):
    if data.startswith(b"SQLite format 3\0"):
        yield from _of_database(data)
    elif data.startswith(b"PAR1"):
        yield from _of_parquet(data)
    elif data.startswith(b"\x89PNG"):
        yield from _of_png(data)
    elif data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    else:
        if data[:1] == b"\x78":
            with suppress(zlib.error):
                yield zlib.decompress(data)
        for coded in _BASE64.findall(data):
            yield base64.b64decode(coded + b"=" * (-len(coded) % 4)) if len(coded) % 4 != 1 else b""


def _of_database(data):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table.startswith("rtree_"):  # nodes are in tables of their own
                continue
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield from (value for value in row if isinstance(value, bytes))
                yield repr([value for value in row if not isinstance(value, bytes)]).encode()


def _of_parquet(data):
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(data))
    yield from (table.schema.metadata or {}).values()
    for column in table.columns:
        yield repr(column.to_pylist()).encode()
        for chunk in column.chunks:
            yield from (buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None)


def _of_png(data):
    """Yield the texts of a picture; what is drawn is looked at in the SVG, where it is written out."""
    at = 8
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunk = data[at + 8 : at + 8 + size]
        if kind in (b"tEXt", b"iTXt"):
            yield chunk
        elif kind == b"zTXt":
            yield zlib.decompress(chunk.split(b"\0", 1)[1][1:])
        at += 12 + size


# What is said on the way ----------------------------------------------------------------------------------


class _Heard(logging.Handler):
    def __init__(self, net, where):
        super().__init__(0)
        self.net, self.where = net, where

    def emit(self, record):
        # Ports and process ids are left out, which by chance look like numbers of rows.
        said = [
            record.getMessage(),
            record.name,
            repr(record.args),
            record.exc_text or "",
            record.stack_info or "",
        ]
        text = re.sub(r"(?<=\d:)\d{4,5}", "port", "\n".join(said))
        self.net.throw(f"{self.where}: log", text)
        if record.exc_info and record.exc_info[1] is not None:
            self.net.throw(f"{self.where}: log", record.exc_info[1])


@contextmanager
def watched(net, where, capfd):
    """Throw into the net what is logged at any level, warned of, or written to stdout and stderr meanwhile."""
    handler, root = _Heard(net, where), logging.getLogger()
    names = [name for name in logging.root.manager.loggerDict if not name.startswith("matplotlib")]
    loggers = [root, *map(logging.getLogger, names)]
    before = [(logger, logger.level, logger.disabled, logger.propagate) for logger in loggers]
    capfd.readouterr()
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.disabled, logger.propagate = False, True
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield heard
    finally:
        root.removeHandler(handler)
        for logger, level, disabled, propagate in before:
            logger.level, logger.disabled, logger.propagate = level, disabled, propagate
            logger.manager._clear_cache()
        for warning in heard:
            net.throw(f"{where}: warning", f"{warning.category} {warning.message} {warning.source!r}")
            net.throw(f"{where}: warning", repr(vars(warning.message)) if warning.message else "")
        net.channels.setdefault(f"{where}: log", 0)
        net.throw(f"{where}: stdout, stderr", "".join(capfd.readouterr()))
