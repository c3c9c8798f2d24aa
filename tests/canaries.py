"""Values nobody may see again, rows full of them, and the forms they could come out in.

Each value is known as text, as bytes of either order, in hexadecimal and in base64, ids also by their plain hashes.
"""

import base64
import hashlib
import struct
import uuid

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

__all__ = [
    "COUNTS",
    "FORMS",
    "HEIGHT",
    "MARK",
    "NUMBER",
    "PLACES",
    "SPIKE",
    "UUID",
    "VALUES",
    "WHEN",
    "people",
    "quoting",
    "spiked",
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


def quoting(kind):
    """Return a function that fails as libraries do, with rows in its words, notes and causes."""

    def fail(*given, **named):
        words = f"{MARK}: no place {PLACES[0]} for {VALUES[0]}, {SPIKE + 3} of {COUNTS['rows']} rows"
        error = kind(words)
        error.add_note(words)
        raise error from KeyError(MARK)

    return fail


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
