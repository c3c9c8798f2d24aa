"""A net that finds planted values in whatever is thrown into it, packed or not, and in what is said meanwhile.

It looks into base64, zlib, gzip, PNG, SQLite and Parquet, into pages a database no longer uses, and into causes, notes
and attributes of exceptions.
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
import warnings
import zlib
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from canaries import COUNTS, FORMS

__all__ = ["Net", "said_by", "unpacked", "watched"]

_COUNTED = {
    name: re.compile(rf"(?<![\w.,]){n // 1000}[,_ ]?{n % 1000:03d}(?![\w]|[.,]\d)")
    for name, n in COUNTS.items()
}


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
    for logger in loggers:  # setLevel would forget what is cached each time
        logger.level, logger.disabled, logger.propagate = logging.DEBUG, False, True
    root.manager._clear_cache()
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield heard
    finally:
        root.removeHandler(handler)
        for logger, level, disabled, propagate in before:
            logger.level, logger.disabled, logger.propagate = level, disabled, propagate
        root.manager._clear_cache()
        for warning in heard:
            net.throw(f"{where}: warning", f"{warning.category} {warning.message} {warning.source!r}")
            net.throw(f"{where}: warning", repr(vars(warning.message)) if warning.message else "")
        net.channels.setdefault(f"{where}: log", 0)
        net.throw(f"{where}: stdout, stderr", "".join(capfd.readouterr()))
