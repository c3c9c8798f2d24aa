"""What nobody should hand to a function: strategies of wrong arguments, odd names and frames full of trouble.

Every value that stands in a row carries a mark, so that a message that repeats one can be found out.
"""

import io
import os
import signal
from collections import OrderedDict
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from geodp.errors import GeoDPError

__all__ = [
    "COUNTED",
    "MARK",
    "NAMES",
    "TRICKS",
    "Hung",
    "arguments",
    "column_names",
    "frames",
    "judged",
    "junk",
    "limited",
    "marks_in",
    "much",
    "some",
]

MARK = "qZ7canary"
MARKED_NUMBERS = (7319157.25, 918273645)
_MARKS = (MARK, "7319157", "918273645", "-73.9871234567", "40.7491234567")

TRICKS = (
    "'; DROP TABLE geodp_entries; --",
    '"; DELETE FROM geodp_releases; --',
    "' OR '1'='1",
    "../../../../tmp/geodp-escaped",
    "/etc/passwd",
    "%s%s%s%n",
    "%(name)s",
    "{0.__class__.__mro__}",
    "{self}",
    "{}",
    "$(touch geodp-escaped)",
    "`touch geodp-escaped`",
    "=cmd()",
    '=HYPERLINK("http://x","y")',
    "@SUM(1+1)",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "<script>alert(1)</script>",
    "a\nb",
    "a\r\nb",
    "a\x00b",
    "\x1b[31mred",
    "\u202eright to left",
    "\u2066isolated\u2069",
    "\ufeffmark",
    "\ud800",
    "a\udfffb",
    "\U0001f600",
    "e\u0301",
    "ﬁ",
    "İ",
    " ",
    "",
    ":memory:",
    "~nobody-of-that-name/x",
    "file:x?mode=memory",
    "postgresql://nowhere.invalid/x?connect_timeout=2",
    "http://nowhere.invalid/",
    "x" * 201,
    "y" * 100_000,
)

# Names that mean something to geodp, pandas or a file format.
NAMES = (
    "count",
    "noisy_count",
    "geometry",
    "index_right",
    "dp",
    "level_0",
    "h3_06",
    "fid",
    "id",
    "index",
    "row",
)


class _Text(str):
    """A text whose own words are something else."""

    def __str__(self):
        return "another"


class _Number(float):
    """A number that says it is another one."""

    def __repr__(self):
        return "1e-300"


class _Whole(int):
    """A whole number that says it is another one."""

    def __repr__(self):
        return "1"

    __str__ = __repr__


def _deep(levels):
    made = []
    for _ in range(levels):
        made = [made]
    return made


def _circular():
    made = []
    made.append(made)
    return made


def _once():
    yield from (1, 2, 3)


# Made anew for each use, because some are used up or could be changed.
_ODD = (
    lambda: None,
    lambda: NotImplemented,
    lambda: Ellipsis,
    lambda: object,
    lambda: object(),
    lambda: len,
    lambda: lambda: 1,
    lambda: 1j,
    lambda: b"bytes",
    lambda: bytearray(b"1"),
    lambda: memoryview(b"1"),
    lambda: _once(),
    lambda: iter([1]),
    lambda: range(3),
    lambda: range(10**12),
    lambda: range(-(10**15), 10**15, 3),
    lambda: slice(None),
    lambda: _deep(200),
    lambda: _deep(50_000),
    lambda: _circular(),
    lambda: _Text("0.5"),
    lambda: _Number(2.0),
    lambda: _Whole(10**30),
    lambda: 10**5000,
    lambda: -(10**5000),
    lambda: Fraction(1, 10**5000),
    lambda: Fraction(10**5000),
    lambda: Decimal("NaN"),
    lambda: Decimal("sNaN"),
    lambda: Decimal("-Infinity"),
    lambda: Decimal("1E+999999"),
    lambda: Decimal("1E-999999"),
    lambda: Decimal("1." + "1" * 3000),
    lambda: np.bool_(True),
    lambda: np.int8(-3),
    lambda: np.uint64(2**64 - 1),
    lambda: np.float16(0.1),
    lambda: np.float32("nan"),
    lambda: np.float64("inf"),
    lambda: np.float64(1.0),
    lambda: np.longdouble("1e4000"),
    lambda: np.longdouble("0.1"),
    lambda: np.complex64(1),
    lambda: np.str_("1"),
    lambda: np.bytes_(b"1"),
    lambda: np.datetime64("NaT"),
    lambda: np.datetime64("2026-11-30"),
    lambda: np.timedelta64(1, "D"),
    lambda: np.void(b"1"),
    lambda: np.array(1.0),
    lambda: np.array([]),
    lambda: np.array([1, 2, 3, 4]),
    lambda: np.array([[1.0, 2.0]] * 2),
    lambda: np.array([None, "a", 1], dtype=object),
    lambda: np.ma.masked,
    lambda: np.rec.array([(1, 2.0)]),
    lambda: pd.NA,
    lambda: pd.NaT,
    lambda: pd.Timestamp("2026-11-30", tz="Europe/Amsterdam"),
    lambda: pd.Timedelta("1h"),
    lambda: pd.Period("2026-11"),
    lambda: pd.Interval(0, 1),
    lambda: pd.Series([1, 2, 3, 4]),
    lambda: pd.Series([], dtype=object),
    lambda: pd.Series(["rider"]),
    lambda: pd.Series([True, False]),
    lambda: pd.Index([1, 2]),
    lambda: pd.MultiIndex.from_tuples([(1, 2)]),
    lambda: pd.DataFrame({"a": [1]}),
    lambda: pd.DataFrame(),
    lambda: pd.Categorical(["a"]),
    lambda: pd.array([1, None], dtype="Int64"),
    lambda: gpd.GeoSeries([shapely.Point(0, 0)]),
    lambda: gpd.GeoDataFrame(),
    lambda: shapely.Point(0, 0),
    lambda: shapely.box(0, 0, 1, 1),
    lambda: shapely.Polygon(),
    lambda: datetime(2026, 11, 30),
    lambda: date.max,
    lambda: timedelta.max,
    lambda: Path("nowhere/x.ledger"),
    lambda: io.StringIO("1"),
    dict,
    lambda: {"eps": 1},
    lambda: {1: 2, None: 3},
    lambda: {"a": {"b": {"c": [1]}}},
    lambda: {"hour": range(10**12)},
    lambda: {"hour": range(3), "minutes": [1.5]},
    lambda: {"rider": ["a", "a"]},
    lambda: {"hour": [1, 1.0, True]},
    lambda: {"hour": [float("nan")]},
    lambda: {"": ["a"]},
    lambda: OrderedDict(hour=(1,)),
    lambda: set(),
    lambda: {1, 2},
    lambda: frozenset({"a"}),
    list,
    lambda: (),
    lambda: [[1, 2], [3, 4]],
    lambda: (1, 2, 3, 4),
    lambda: (0, 0, 1, 1),
    lambda: ("0", "0", "1", "1"),
    lambda: (None,) * 4,
    lambda: (float("nan"),) * 4,
    lambda: (10**400,) * 4,
    lambda: [np.float64(1)] * 4,
    lambda: Exception("x"),
    lambda: ValueError,
)

_EDGES = (0, 1, -1, 2, 15, 16, 63, 64, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**400, -(10**400))
_FLOATS = (0.0, -0.0, 5e-324, 1e-308, 1e-300, 1e-9, 0.1, 0.5, 1.0, 1e16, 1e300, 1.7e308)


def junk():
    """Anything at all; what is odd is as likely as what is plain."""
    leaves = st.one_of(
        st.sampled_from(_ODD).map(lambda make: make()),
        st.sampled_from(TRICKS),
        st.sampled_from(_EDGES),
        st.sampled_from(_FLOATS),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.text(st.characters(), max_size=12),  # lone surrogates too
        st.binary(max_size=12),
        st.fractions(),
        st.decimals(),
        st.sampled_from(
            ["auto", "laplace", "gaussian", "levels", "sparse", "select", "weighted", "clamp", "h3:2"]
        ),
    )
    return st.one_of(
        leaves,
        leaves,
        st.lists(leaves, max_size=4),
        st.tuples(leaves, leaves),
        st.tuples(leaves, leaves, leaves, leaves),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["hour", "rider", "a", "b"])), leaves, max_size=3
        ),
        st.dictionaries(
            st.sampled_from(["hour", "rider"]), st.lists(leaves, max_size=3), min_size=1, max_size=2
        ),
    )


@st.composite
def arguments(draw, base, other=None, most=3):
    """The arguments of ``base``, some of them replaced by junk or by one of the ``other`` good values."""
    given = dict(base)
    names = sorted(given) + sorted(set(other or {}) - set(given))
    for name in draw(st.lists(st.sampled_from(names), min_size=0, max_size=most, unique=True)):
        good = (other or {}).get(name, ())
        strategy = st.one_of(st.sampled_from(good), junk()) if good else junk()
        given[name] = draw(strategy)
    return given


def column_names():
    """Names of columns: tricks, names that mean something, and plain ones; pandas takes no half surrogates."""
    plain = st.characters(exclude_categories=["Cs"])
    tricks = [text for text in TRICKS if "\ud800" not in text and "\udfff" not in text]
    return st.one_of(st.sampled_from(tricks), st.sampled_from(NAMES), st.text(plain, max_size=6))


_PLACES = (
    None,
    shapely.Point(),
    shapely.Point(np.nan, np.nan),
    shapely.Point(np.inf, 0),
    shapely.Point(-73.9871234567, 40.7491234567),
    shapely.Point(-73.97, 40.75, 5),
    shapely.Point(0, 90),
    shapely.Point(180, -90),
    shapely.Point(-180, 91),
    shapely.Point(541, 40.7),
    shapely.Point(1e308, -1e308),
    shapely.Point(40.75, -73.97),
    shapely.LineString([(0, 0), (1, 1)]),
    shapely.Polygon([(0, 0), (1, 1), (0, 1)]),
    shapely.MultiPoint([(-73.9871234567, 40.7491234567)]),
    shapely.GeometryCollection(),
)
_IDS = (
    MARK,
    MARK + "2",
    f"{MARK}\x00",
    f"{MARK}\ud800",
    f"{MARK}" * 500,
    "",
    918273645,
    918273645.0,
    2**70,
    -1,
    True,
    1.5,
    float("nan"),
    None,
    pd.NA,
    pd.NaT,
    b"qZ7canary",
    (MARK,),
    [MARK],
    {MARK: 1},
    Decimal("918273645"),
    np.int8(5),
    np.float64(918273645),
    np.str_(MARK),
    datetime(2026, 11, 30),
    object(),
)
_VALUES = (7319157.25, -7319157.25, 0.0, 1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 2.0**63)
_HOURS = (0, 1, 23, -1, 2**62, 918273645)


def _ids(n):
    return st.one_of(
        st.lists(st.sampled_from(_IDS), min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype=object)),
        st.lists(st.sampled_from([MARK, MARK + "2", None]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="category")
        ),
        st.lists(st.sampled_from([MARK, MARK + "2", None]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="string")
        ),
        st.lists(st.sampled_from([918273645, 2, 0, -1]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="int64")
        ),
        st.lists(st.sampled_from([918273645, 2, None]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="Int64")
        ),
        st.lists(st.sampled_from([918273645.0, 0.5, np.nan, np.inf, 2.0**60]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="float64")
        ),
        st.lists(st.sampled_from([2**64 - 1, 918273645]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="uint64")
        ),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype=bool)),
        st.just(pd.Series([pd.Timestamp("2026-11-30")] * n, dtype="datetime64[ns]")),
        st.just(pd.Series([1j] * n, dtype="complex128")),
    )


def _minutes(n):
    return st.one_of(
        st.lists(st.sampled_from(_VALUES), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="float64")
        ),
        st.lists(st.sampled_from([7319157.25, None, 1.0]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="Float64")
        ),
        st.lists(st.sampled_from([918273645, -(2**62), 2**62]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="int64")
        ),
        st.just(pd.Series([MARK] * n, dtype=object)),
        st.just(pd.Series([True] * n, dtype=bool)),
        st.just(pd.Series([10**400] * n, dtype=object)),
        st.just(pd.Series([1j] * n, dtype="complex128")),
        st.just(pd.Series(np.ones(n), dtype="float16")),
    )


def _hours(n):
    return st.one_of(
        st.lists(st.sampled_from(_HOURS), min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype="int64")),
        st.lists(st.sampled_from([*_IDS, 0, 1, 2]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype=object)
        ),
        st.lists(st.sampled_from(["0", MARK, None]), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype="category")
        ),
        st.just(pd.Series([pd.Timestamp("2026-11-30")] * n, dtype="datetime64[ns]")),
        st.just(pd.Series([pd.NaT] * n, dtype="timedelta64[s]")),
    )


@st.composite
def frames(draw, most_rows=6):
    """Frames with the columns of the tests and rows full of trouble; sometimes the frame itself is odd."""
    n = draw(st.integers(0, most_rows))
    places = draw(st.lists(st.sampled_from(_PLACES), min_size=n, max_size=n))
    columns = {"rider": draw(_ids(n)), "minutes": draw(_minutes(n)), "hour": draw(_hours(n))}
    extra = draw(st.lists(column_names(), max_size=2, unique=True))
    columns |= {name: pd.Series([MARK] * n, dtype=object) for name in extra if name not in columns}
    columns.pop("geometry", None)
    crs = draw(st.sampled_from([4326, 4326, 4326, 3857, 2263, None, "EPSG:4978"]))
    made = gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries(places, crs=crs), crs=crs)
    how = draw(
        st.sampled_from(
            ["plain", "plain", "plain", "index", "twice", "renamed", "dropped", "moved", "levels"]
        )
    )
    if how == "index":
        made.index = pd.Index([f"{MARK}{i}" for i in range(n)], name=draw(column_names()))
    elif how == "twice":
        made = gpd.GeoDataFrame(pd.concat([made, made[["hour"]]], axis=1), geometry="geometry")
    elif how == "renamed":
        made = made.rename_geometry(draw(column_names().filter(lambda name: name not in made.columns)))
    elif how == "dropped":
        made = made.drop(columns=draw(st.sampled_from(["rider", "minutes", "hour", "geometry"])))
    elif how == "moved":
        made = made.set_index("rider")
    elif how == "levels":
        made.columns = pd.MultiIndex.from_tuples([(name, "x") for name in made.columns])
    return made


class Hung(Exception):
    """A call took longer than any should."""


@contextmanager
def limited(seconds=30):
    """End a call that hangs, in the main thread of a test."""

    def ring(number, frame):
        raise Hung(f"no answer after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def marks_in(error):
    """Return the marks of rows that an exception carries: in its text, its notes, its causes, its arguments."""
    texts, seen, queue = [], set(), [error]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", ""))]
        texts += [repr(value) for value in vars(one).values()]
        queue += [one.__cause__, one.__context__]
    return sorted({mark for mark in _MARKS for text in texts if mark in text})


# How many calls were judged in this process, and how they ended.
COUNTED = {"returned": 0, "refused": 0}


def judged(call, *given, **named):
    """Call, and return (result, error); fail on any exception that is not geodp's own, ValueError or TypeError."""
    error = None
    try:
        with limited():
            result = call(*given, **named)
    except (GeoDPError, ValueError, TypeError) as raised:
        error = raised
    if error is not None:
        assert not isinstance(error, UnicodeError), f"{type(error).__name__}: {error}"
        assert str(error), f"a {type(error).__name__} without a word"
        assert len(str(error)) < 5000, f"{len(str(error)):,} characters: {str(error)[:300]}"
        COUNTED["refused"] += 1
        return None, error
    COUNTED["returned"] += 1
    return result, None


def some(examples):
    """Run a property on the same few examples each time."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=HealthCheck,
    )


def much(examples):
    """Run a property on many examples, other ones each time; FUZZ=100 makes it a hundred times as many."""
    factor = int(os.environ.get("FUZZ", "1"))
    return settings(max_examples=examples * factor, deadline=None, suppress_health_check=HealthCheck)
