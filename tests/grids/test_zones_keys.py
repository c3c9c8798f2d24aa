"""Keys of zones: kept in their own dtype, ordered in public, joined back, refused by name."""

import datetime as dt
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import box

from geodp.grids.keys import key_digest, public_order, zone_keys
from geodp.grids.zones import Zones


def frame(keys, name="zone_id"):
    shapes = [box(i, 0, i + 1, 1) for i in range(len(keys))]
    return gpd.GeoDataFrame({name: keys}, geometry=shapes, crs=4326)


DTYPES = {
    "int64": [30, 10, 20],
    "int32": np.array([30, 10, 20], dtype=np.int32),
    "uint64": np.array([2**63 + 1, 2**63, 1], dtype=np.uint64),
    "Int64": pd.array([30, 10, 20], dtype="Int64"),
    "str": ["b", "ä", "a"],
    "string": pd.array(["b", "ä", "a"], dtype="string"),
    "object": pd.Series(["b", "ä", "a"], dtype=object),
    "mixed": pd.Series(["b", 2, Decimal("1.5")], dtype=object),
    "category": pd.Categorical(["x", "z", "y"], categories=["z", "y", "x", "unused"]),
    "ordered": pd.Categorical([1, 3, 2], categories=[3, 2, 1], ordered=True),
    "float": [1.5, -0.5, 0.25],
    "bool": [True, False],
    "datetime": pd.to_datetime(["2026-03-01", "2026-01-01", "2026-02-01"]),
    "aware": pd.to_datetime(["2026-03-01", "2026-01-01", "2026-02-01"]).tz_localize("Asia/Tokyo"),
    "date": pd.Series([dt.date(2026, 3, 1), dt.date(2026, 1, 1)], dtype=object),
}


@pytest.mark.parametrize("kind", DTYPES)
def test_keys_keep_their_dtype_and_join_back(kind):
    zones = frame(DTYPES[kind])
    built = Zones(zones, key="zone_id")
    assert built.index.dtype == zones["zone_id"].dtype
    assert built.index.name == "zone_id"
    assert set(built.index.tolist()) == set(zones["zone_id"].tolist())
    heat = pd.DataFrame({"count": np.arange(len(zones))}, index=built.domain().index)
    joined = zones.set_index("zone_id").join(heat)
    assert joined["count"].notna().all()
    assert joined["count"].dtype == np.int64
    assert zones.join(heat, on="zone_id")["count"].tolist() == joined["count"].tolist()
    assert built == Zones(zones.iloc[::-1], key="zone_id")


def test_folium_1185_integer_ids_join_as_integers():
    zones = frame([1, 2, 3])
    heat = pd.DataFrame({"count": [7, 8, 9]}, index=Zones(zones, key="zone_id").index)
    assert zones.merge(heat, on="zone_id")["count"].tolist() == [7, 8, 9]
    assert heat.index.dtype == np.int64


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("int64", [10, 20, 30]),
        ("str", ["a", "b", "ä"]),
        ("category", ["z", "y", "x"]),
        ("ordered", [3, 2, 1]),
        ("mixed", [Decimal("1.5"), 2, "b"]),
        ("float", [-0.5, 0.25, 1.5]),
        ("uint64", [1, 2**63, 2**63 + 1]),
    ],
)
def test_public_order(kind, order):
    assert Zones(frame(DTYPES[kind]), key="zone_id").index.tolist() == order


def test_the_index_is_a_key_too():
    named = frame([3, 1, 2]).set_index("zone_id")
    assert Zones(named).index.tolist() == Zones(named, key="zone_id").index.tolist() == [1, 2, 3]
    unnamed = frame([3, 1, 2]).drop(columns="zone_id")
    assert Zones(unnamed).index.equals(pd.Index([0, 1, 2]))
    assert Zones(unnamed).name == "zones:zone"


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (["a", None], 1),
        ([np.nan, 1.0], 0),
        ([pd.NaT, pd.Timestamp(0)], 0),
        (pd.array([1, None], dtype="Int64"), 1),
        (pd.Categorical(["a", None]), 1),
        (pd.Series([1, float("nan")], dtype=object), 1),
    ],
)
def test_null_keys(keys, row):
    with pytest.raises(ValueError, match=f"zone key 'zone_id' is null in row {row}"):
        Zones(frame(keys), key="zone_id")


@pytest.mark.parametrize(
    ("keys", "twice"),
    [
        (["a", "b", "a"], "'a'"),
        ([1, 2, 2], "2"),
        (pd.Series([1, 1.0, 2], dtype=object), "1.0"),
        (pd.Series([1, True, 2], dtype=object), "True"),
        ([0.0, -0.0, 1.0], "-0.0"),
        (pd.Categorical(["a", "b", "b"]), "'b'"),
    ],
)
def test_duplicate_keys(keys, twice):
    with pytest.raises(ValueError, match=f"zone key 'zone_id' has {twice} more than once"):
        Zones(frame(keys), key="zone_id")


@pytest.mark.parametrize(
    "name",
    [
        *("count", "noisy_count", "estimate", "lower", "upper", "edge", "geometry", "n", "Count"),
        *("sum", "noisy_sum", "mean", "weighted_count", "noisy_weighted_count"),
    ],
)
def test_keys_called_like_a_column_of_the_result(name):
    zones = frame(["a", "b"]).rename_geometry("shape").rename(columns={"zone_id": name})
    with pytest.raises(ValueError, match=f"zone key '{name}' is called like a column of the result"):
        Zones(zones, key=name)
    with pytest.raises(ValueError, match=f"zone key '{name}' is called like a column of the result"):
        Zones(zones.set_index(name))


def test_geopandas_1035_fid_would_vanish():
    with pytest.raises(ValueError, match="'fid' vanishes from GeoPackage"):
        Zones(frame([1, 2], name="fid"), key="fid")


def test_keys_that_are_no_keys():
    with pytest.raises(ValueError, match="no column 'zone'; they have 'zone_id', 'geometry'"):
        Zones(frame([1]), key="zone")
    with pytest.raises(TypeError, match="one column, got list"):
        Zones(frame([1]), key=["zone_id"])
    with pytest.raises(TypeError, match="several levels"):
        Zones(frame([1, 2]).set_index([["a", "b"], [1, 2]]))
    with pytest.raises(TypeError, match="must be a string, got int"):
        Zones(frame([1]).rename_axis(index=5))
    with pytest.raises(ValueError, match="more than one column 'zone_id'"):
        Zones(frame([1]).pipe(lambda f: pd.concat([f, f[["zone_id"]]], axis=1)), key="zone_id")
    for odd in ([(1, 2), (3, 4)], [1 + 2j, 1j], [b"a", b"b"], [pd.Period("2026"), pd.Period("2027")]):
        with pytest.raises(TypeError, match="must hold integers, strings"):
            Zones(frame(pd.Series(odd, dtype=object)), key="zone_id")


def test_keys_that_have_no_order():
    keys = [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02", tz="UTC")]
    with pytest.raises(TypeError, match="cannot be put in order"):
        public_order(pd.Index(keys, dtype=object, name="day"))


def test_key_digests_tell_types_apart():
    variants = [
        ["1"],
        [1],
        [1.0],
        [True],
        pd.Series([1], dtype=object),
        pd.Series([Decimal(1)], dtype=object),
    ]
    assert len({key_digest(zone_keys(frame(keys), "zone_id")) for keys in variants}) == len(variants)
