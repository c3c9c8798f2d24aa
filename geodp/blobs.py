"""Released columns as bytes: a JSON header and raw little-endian numbers, compressed. Never pickle.

The layout, before zlib: 8 bytes little-endian length of the header, the header in UTF-8
(``{"format": 1, "columns": [{"name", "dtype", "length"}, ...]}``), then each column's bytes in turn. A
column of texts is its int64 byte lengths followed by the UTF-8 bytes.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checksum", "pack", "unpack"]

_FORMAT = 1
_LEVEL = 3  # noise hardly compresses; more effort costs seconds on a million cells
_KINDS = "?bhilqBHILQfd"
_LARGEST = 1 << 33


def pack(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Return ``columns`` (one-dimensional: bools, ints, floats or texts) as one blob.

    Examples
    --------
    >>> unpack(pack({"count": np.array([3, 0])}))["count"].tolist()
    [3, 0]
    """
    header, bodies = [], []
    for name, values in columns.items():
        dtype, body = _encode(name, np.asarray(values))
        header.append({"name": name, "dtype": dtype, "length": len(values)})
        bodies.append(body)
    head = json.dumps({"format": _FORMAT, "columns": header}).encode()
    return zlib.compress(b"".join([struct.pack("<Q", len(head)), head, *bodies]), _LEVEL)


def unpack(blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the columns that :func:`pack` was given, in the same order.

    Raises
    ------
    ValueError
        The bytes are not such a blob, or are damaged.
    """
    try:
        raw = _decompressed(blob)
        (size,) = struct.unpack_from("<Q", raw)
        head = json.loads(raw[8 : 8 + size])
        columns, start = {}, 8 + size
        for column in head["columns"]:
            values, start = _decode(raw, start, column["dtype"], column["length"])
            columns[column["name"]] = values
        version = head.get("format")
    except (
        zlib.error,
        struct.error,
        AttributeError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError("the stored columns cannot be read") from error
    if version != _FORMAT or start != len(raw):
        raise ValueError("the stored columns cannot be read")
    return columns


def checksum(blob: bytes) -> str:
    """Return the SHA-256 of ``blob`` as hexadecimal digits."""
    return hashlib.sha256(blob).hexdigest()


def _encode(name: str, values: NDArray[Any]) -> tuple[str, bytes]:
    if values.ndim != 1:
        raise ValueError(f"a stored column has one dimension; {name!r} has {values.ndim}.")
    if values.dtype.char in _KINDS:
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return little.dtype.str, little.tobytes()
    texts = values.tolist()
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"a stored column holds bools, ints, floats or texts; {name!r} is {values.dtype}.")
    parts = [text.encode() for text in texts]
    lengths = np.array([len(part) for part in parts], dtype="<i8")
    return "text", lengths.tobytes() + b"".join(parts)


def _decompressed(blob: bytes) -> bytes:
    """Return what was compressed, up to a size that no release has: a few bytes could fill the memory."""
    opened = zlib.decompressobj()
    raw = opened.decompress(blob, _LARGEST)
    if opened.unconsumed_tail or not opened.eof or opened.unused_data:
        raise ValueError("more, or less, than one whole blob")
    return raw


def _decode(raw: bytes, start: int, dtype: str, length: int) -> tuple[NDArray[Any], int]:
    if not isinstance(length, int) or length < 0:
        raise ValueError("no length")
    if dtype != "text":
        kind = np.dtype(dtype)
        if kind.char not in _KINDS:
            raise ValueError(f"unknown dtype {dtype!r}")
        values = np.frombuffer(raw, kind, length, start)
        return values.astype(kind.newbyteorder("=")), start + values.nbytes
    lengths = np.frombuffer(raw, "<i8", length, start)
    ends = (start + lengths.nbytes + np.cumsum(lengths)).tolist()
    starts = [start + lengths.nbytes, *ends[:-1]]
    texts = [raw[low:high].decode() for low, high in zip(starts, ends, strict=False)]
    return np.array(texts, dtype=object), (ends or [start])[-1]
