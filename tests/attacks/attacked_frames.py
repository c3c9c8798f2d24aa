"""Frames that people really have, at their worst, and their neighbours: one subject more, less or exchanged.

A schema is public and drawn once for both frames: names and dtypes of columns, CRS, index, further columns. The
rows are not: places on borders, corners, poles and the 180th meridian, wrapped, unusable, huge; ids of mixed
types; values and times that are null, infinite or no level.
"""

import itertools
import math
from dataclasses import dataclass, field
from functools import lru_cache

import geopandas as gpd
import numpy as np
import pandas as pd
from attacked_plans import ACROSS, BOX, GRIDS
from hypothesis import strategies as st
from shapely import LineString, MultiPoint, Point

UNUSABLE = [
    None,
    Point(),
    Point(np.nan, np.nan),
    Point(np.inf, 0),
    LineString([(0, 0), (1, 1)]),
    MultiPoint([(-74.0, 40.7)]),
    Point(0, 95),
]


@lru_cache
def places(where):
    """Points inside, on corners and edges, a hair beside them, at poles, on the 180th meridian, far out, unusable."""
    west, south, east, north = GRIDS[where][1] or (ACROSS if "180" in where else BOX)
    east = east + 360 if east < west else east
    rng = np.random.default_rng(0)
    inside = [Point(*xy) for xy in rng.uniform((west, south), (east, north), (12, 2))]
    lines = [(west, (west + east) / 2, east), (south, (south + north) / 2, north)]
    border = [Point(x, y) for x, y in itertools.product(*lines)]
    beside = [
        Point(math.nextafter(p.x, way), math.nextafter(p.y, way)) for p in border for way in (-999, 999)
    ]
    turned = [Point(p.x + 360, p.y, 7.0) for p in inside[:3]]
    far = [Point(x, y) for x, y in itertools.product((-180, 180, 0, 541, 1e18), (-90, 0, 90))]
    return [*inside, *border, *(p for p in beside if abs(p.y) <= 90), *turned, *far, *UNUSABLE]


MIXED = [
    "p0",
    "p1",
    "1",
    1,
    1.0,
    np.int64(1),
    2**70,
    None,
    np.nan,
    True,
    2.5,
    ("a",),
    pd.NA,
    "p\0",
    "p\ud800",
]
TEXTS = ["p0", "p1", "", "1", "1.0", "None", "é", "e\u0301", None]
# Kind of the id column: the ids of others, then of the one who comes, goes or is exchanged.
IDS = {
    "object": (MIXED, "me", "you"),
    "str": (TEXTS, "me", "you"),
    "string[pyarrow]": (TEXTS, "me", "you"),
    "texts by category": (TEXTS, "me", "you"),
    "int64": ([0, 1, 5, -3, 2**62], 7, 8),
    "uint64": ([0, 1, 2**63, 2**64 - 1], 7, 2**63 + 1),
    "Int64": ([0, 1, 2**60, None], 7, 8),
    "float64": ([0.0, -0.0, 1.0, 2.5, np.nan, np.inf, 2.0**53, 2.0**60], 7.0, 8.0),
    "float32": ([0.0, 1.0, 2.5, np.nan, 2.0**24, 2.0**25], 7.0, 8.0),
    "numbers by category": ([0, 1, 5, None], 7, 8),
    "Sparse[int64]": ([0, 1, 5], 7, 8),
}
VALUES = [0.0, -0.0, 5e-324, 1.0, -1.0, 0.3, 7.5, 15.0, 120.0, -0.2, -5.0, 1e300, -1e300]
VALUES += [math.nextafter(120, 0), math.nextafter(0.3, 1), np.inf, -np.inf, np.nan, None]
WHOLES = [0, 1, -1, 7, 15, 100, -5, -9, 120, -128, 127]
DTYPES = {
    "float64": VALUES,
    "float32": [v for v in VALUES if v is None or not math.isfinite(v) or abs(v) < 1e30],
    "Float64": VALUES,
    "double[pyarrow]": VALUES,
    "Sparse[float64]": VALUES,
    "int8": WHOLES,
    "int64": [*WHOLES, 2**62, -(2**63)],
    "uint64": [0, 1, 7, 15, 120, 2**64 - 1],
    "Int64": [*WHOLES, None],
    "int64[pyarrow]": [*WHOLES, None],
    "bool": [False, True],
}
HOURS = [0, 1, 2, 7, None]
SLOTS = {
    "float64": HOURS,
    "Int64": HOURS,
    "int8": HOURS[:-1],
    "object": [0, 1, 1.0, True, 2, "1", None, ("a",), np.nan],
    "numbers by category": HOURS,
}
# Names that a join, an accessor, an index or a result of ours could trip over.
NAMES = [
    "rider",
    "count",
    "index_right",
    "geometry",
    "dp",
    "edge",
    "noisy_count",
    "level_0",
    "index",
    "key",
    "0",
]
SLOT_NAMES = ["hour", "index_right", "dp", "slot", "rows", "key"]
CRS = [4326, "OGC:CRS84", 4267, 3857, 32618]


@dataclass(frozen=True)
class Schema:
    """What is public of a frame."""

    where: str
    ids: str = "object"
    id_name: str = "rider"
    values: str = "float64"
    value_name: str = "v"
    slots: str = "float64"
    slot_name: str = "hour"
    geometry_name: str = "pt"
    crs: object = 4326
    index: str = "range"
    more: tuple = field(default=())

    @property
    def names(self):
        """What a plan for such frames has to be told."""
        return {"subject": self.id_name}


@st.composite
def schemas(draw, where):
    """Draw a schema; every other one is plain, so that rows are what is attacked."""
    if draw(st.booleans()):
        return Schema(where)
    id_name, value_name = draw(st.permutations(NAMES))[:2]
    # geopandas takes an empty column of numbers called so for a geometry.
    value_name = "v" if value_name == "geometry" else value_name
    taken = {id_name, value_name}
    slot_name = draw(st.sampled_from([name for name in SLOT_NAMES if name not in taken]))
    geometry_name = draw(
        st.sampled_from([n for n in ("geometry", "pt", "dp") if n not in taken | {slot_name}])
    )
    taken |= {slot_name, geometry_name}
    return Schema(
        where,
        draw(st.sampled_from(list(IDS))),
        id_name,
        draw(st.sampled_from(list(DTYPES))),
        value_name,
        draw(st.sampled_from(list(SLOTS))),
        slot_name,
        geometry_name,
        draw(st.sampled_from(CRS)),
        draw(st.sampled_from(["range", "same", "named", "levels"])),
        tuple(name for name in ("count", "index_right", "geometry", "x") if name not in taken),
    )


def rows_of_one(schema, most=6):
    """Draw rows of one subject: a place, a value and an hour each."""
    row = [places(schema.where), DTYPES[schema.values], SLOTS[schema.slots]]
    return st.lists(st.tuples(*map(st.sampled_from, row)), max_size=most)


@st.composite
def neighbours(draw, schema):
    """Draw people, and the rows of the one who comes, goes or is exchanged, before and after."""
    others, me, you = IDS[schema.ids]
    ids = draw(st.lists(st.sampled_from(others), max_size=4))
    people = [(who, draw(rows_of_one(schema))) for who in ids]
    instead = draw(st.sampled_from([me, you]))
    return people, (me, draw(rows_of_one(schema))), (instead, draw(rows_of_one(schema)))


def frame(people, schema, shuffled=0):
    """Return the rows of all people as a frame, in an order that keeps nobody's rows together."""
    rows = [(who, *row) for who, rows in people for row in rows]
    order = np.random.default_rng(shuffled).permutation(len(rows))
    who, points, values, hours = ([rows[i][j] for i in order] for j in range(4))
    columns = {
        schema.id_name: column(who, schema.ids),
        schema.value_name: column(values, schema.values),
        schema.slot_name: column(hours, schema.slots),
    }
    columns |= {name: ["x"] * len(rows) for name in schema.more}
    points = gpd.GeoSeries(points, crs=4326)
    if schema.crs != 4326:
        points = points.to_crs(schema.crs)
    made = gpd.GeoDataFrame({schema.geometry_name: points}, geometry=schema.geometry_name)
    for name, values in columns.items():
        made[name] = values
    made.index = index(len(rows), schema.index)
    made.attrs["secret"] = len(rows)
    return made


def column(values, kind):
    """Return values as a column of some dtype, which pandas may have to be talked into."""
    if kind.endswith("by category"):
        return pd.Series(values, dtype=object).astype("category")
    if kind == "str":
        return pd.Series(values, dtype="str")
    if kind == "object":
        made = pd.Series([None] * len(values), dtype=object)
        for i, value in enumerate(values):
            made.iat[i] = value
        return made
    if kind in ("float64", "float32", "Sparse[float64]"):
        return pd.Series(np.array(values, dtype=np.float64).astype(kind.strip("Sparse[]"))).astype(kind)
    return pd.Series(values, dtype=kind)


def index(n, kind):
    if kind == "same":
        return pd.Index([0] * n)
    if kind == "named":
        return pd.Index([f"secret{i}" for i in range(n)], dtype=object, name="cell")
    if kind == "levels":
        return pd.MultiIndex.from_arrays([range(n), [None] * n], names=["a", None])
    return pd.RangeIndex(n)
