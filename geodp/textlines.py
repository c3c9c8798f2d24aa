"""Lines of a CSV, each of which is a row whatever stands in the others.

To a CSV parser an opening quote that is never closed goes on over the end of its line, and swallows the rows of
other people up to the next quote, or to the end of the file. Whoever can put a quote into a field could so decide
how many others are counted. Here the end of a line ends the row: fields in quotes may hold separators and doubled
quotes, and a line that leaves a quote open becomes a row of empty fields, which is nobody's.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

__all__ = ["single_lines"]

_CHUNK = 1 << 20
_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"\A(?:[ \t]*+[\r\n]++)++(?:[ \t]*+\Z)?|\A[ \t]++\Z")


@contextmanager
def single_lines(path: str, separator: str) -> Iterator[BinaryIO]:
    """Open a file, packed or not, or what a URL names, as bytes without quotes that are left open at a line's end.

    They begin with the first line that is not blank, without a byte order mark.
    """
    from pandas.io.common import get_handle  # type: ignore[import-not-found]

    with get_handle(path, "rb", compression="infer", is_text=False) as opened:
        source: Any = opened.handle
        yield io.BufferedReader(_Lines(source, separator.encode()), _CHUNK)


class _Lines(io.RawIOBase):
    """The file, read in pieces that end where a line ends."""

    def __init__(self, source: BinaryIO, separator: bytes) -> None:
        self._source, self._separator, self._ready = source, separator, memoryview(b"")
        self._begun = False
        line = _line(separator)
        self._whole = re.compile(line)
        self._piece = re.compile(rb"(?:%b(?:\r\n|\n|\r))*+(?:%b)" % (line, line))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ready:
            self._ready = memoryview(self._closed(self._next()))
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)

    def _next(self) -> bytes:
        piece = self._source.read(_CHUNK) + self._source.readline()
        if not self._begun:
            piece = piece.removeprefix(_MARK)
            while piece and not (begun := _BLANK.sub(b"", piece)):
                piece = self._source.read(_CHUNK) + self._source.readline()
            self._begun, piece = True, begun if piece else b""
        return piece

    def _closed(self, piece: bytes) -> bytes:
        if b'"' not in piece or self._piece.fullmatch(piece):
            return piece
        return b"".join(map(self._row, piece.splitlines(keepends=True)))

    def _row(self, line: bytes) -> bytes:
        text = line.rstrip(b"\r\n")
        if b'"' not in text or self._whole.fullmatch(text):
            return line
        return self._separator + line[len(text) :]


def _line(separator: bytes) -> bytes:
    """Return the pattern of a line that closes its quotes; what follows a closing quote belongs to its field."""
    sep = re.escape(separator)
    quoted = rb'"(?:[^"\r\n]|"")*+"[^%b\r\n]*+' % sep
    plain = rb'[^"%b\r\n][^%b\r\n]*+' % (sep, sep)
    field = rb"(?:%b|%b)?+" % (quoted, plain)
    return rb"%b(?:%b%b)*+" % (field, sep, field)
