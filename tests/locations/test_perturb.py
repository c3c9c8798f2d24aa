"""What perturb returns for a frame: rows, nulls, records, limits, and nothing that others could read."""

import inspect
import json
import math
import random
import warnings
from decimal import Decimal
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod
from shapely import LineString, MultiPoint, Point, Polygon

from geodp.errors import PrivacyUnitWarning
from geodp.locations import expected_displacement_m, perturb, radius_quantile_m
from geodp.policy import EACH_ROW
from geodp.sphere import snap
from geodp.testing import noiseless, seeded

WGS84 = Geod(ellps="WGS84")

# Every kind of row once; True where it can be placed.
CATALOGUE = [
    (Point(-9.14, 38.7), True),
    (Point(-9.14, 38.7, 120.0), True),
    (Point(180, 10), True),
    (Point(-180, 10), True),
    (Point(541, 10), True),
    (Point(0, 90), True),
    (Point(77, -90), True),
    (None, False),
    (Point(), False),
    (Point(math.nan, math.nan), False),
    (Point(math.inf, 10), False),
    (Point(10, -math.inf), False),
    (Point(10, 90.1), False),
    (Point(10, 1e300), False),
    (MultiPoint([(1, 1)]), False),
    (LineString([(0, 0), (1, 1)]), False),
    (Polygon([(0, 0), (1, 0), (1, 1)]), False),
    (shapely.GeometryCollection(), False),
]


def frame(points, crs=4326, **columns):
    return gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries(points, crs=crs), crs=crs)


def at(lon, lat, n=1, **columns):
    return frame([Point(lon, lat)] * n, **columns)


def coordinates(result):
    return np.stack([shapely.get_x(result.geometry.array), shapely.get_y(result.geometry.array)])


def metres(before, after):
    a, b = coordinates(before), coordinates(after)
    return WGS84.inv(a[0], a[1], b[0], b[1])[2]


def test_geometry_only_row_by_row_with_a_fresh_index():
    people = frame([g for g, _ in CATALOGUE], name=[f"p{i}" for i in range(len(CATALOGUE))])
    people.index = pd.Index(range(100, 100 + len(people)), name="secret")
    people.attrs["secret"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved = perturb(people.rename_geometry("home"), 1, subject=EACH_ROW)
    assert list(moved.columns) == ["geometry"]
    assert moved.crs == 4326
    assert moved.active_geometry_name == "geometry"
    pd.testing.assert_index_equal(moved.index, pd.RangeIndex(len(people)))
    assert list(moved.attrs) == ["geodp"]
    assert moved.geometry.notna().tolist() == [usable for _, usable in CATALOGUE]
    assert not shapely.has_z(moved.geometry.dropna().array).any()


@pytest.mark.parametrize("points", [[], [None], [None, Point()], [Point(math.nan, 1)]])
def test_frames_without_a_usable_row_give_null_points(points):
    moved = perturb(frame(points, who=["a"] * len(points)), 1, subject="who", max_reports=1)
    assert isinstance(moved, gpd.GeoDataFrame)
    assert moved.dtypes["geometry"] == "geometry"
    assert len(moved) == len(points)
    assert moved.geometry.isna().all()
    assert moved.crs == 4326


@pytest.mark.parametrize("crs", ["EPSG:4326", "OGC:CRS84", 3857, 5070, 2263, 4269, 32618])
def test_any_crs_in_longitude_and_latitude_out(crs):
    true = frame([Point(-73.97, 40.75), Point(-74.02, 40.69)])
    with noiseless():
        moved = perturb(true.to_crs(crs), 1, subject=EACH_ROW)
    assert moved.crs == 4326
    assert (metres(true, moved) < 2).all()
    assert moved.attrs["geodp"]["noise"] == "none (test)"


@pytest.mark.parametrize("step", [1, 7.3, 1000])
def test_every_published_point_lies_on_the_grid(step):
    """Its bits are those of its cell; a noised double off the grid would tell where it was drawn from."""
    for people in (at(-9.14, 38.7, 200), at(179.9999, -16.9, 50), at(0, 90, 50)):
        lon, lat = coordinates(perturb(people, 5, subject=EACH_ROW, snap_m=step))
        again = snap(lon, lat, step)
        assert (again[0] == lon).all()
        assert (again[1] == lat).all()


@pytest.mark.sampled(rate=1e-20)
def test_noise_comes_from_the_operating_system_each_time(monkeypatch):
    people = at(0, 0, 50)
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    first, second = (coordinates(perturb(people, 1, subject=EACH_ROW)) for _ in range(2))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    # Of 100 coordinates on a grid of a metre one is the same in 1 of 100 runs, ten are in fewer than 1 of 1e20.
    assert (first == second).sum() < 10
    asked = []
    monkeypatch.setattr("os.urandom", lambda n: asked.append(n) or bytes(n))
    perturb(people, 1, subject=EACH_ROW)
    assert sum(asked) >= 2 * 8 * 50
    assert not {"seed", "rng", "random_state", "bits"} & set(inspect.signature(perturb).parameters)


@settings(max_examples=50)
@given(
    index=st.integers(0, len(CATALOGUE) - 1),
    other=st.sampled_from([g for g, _ in CATALOGUE] + [Point(1, 2), Point(-100, -45)]),
    seed=st.integers(0, 2**32),
)
def test_no_row_depends_on_another(index, other, seed):
    people = frame([g for g, _ in CATALOGUE], who=[f"p{i}" for i in range(len(CATALOGUE))])
    changed = people.copy()
    changed.loc[index, "geometry"] = other
    results = []
    for version in (people, changed):
        with seeded(seed):
            results.append(perturb(version, 0.5, subject="who", max_reports=1, snap_m=10, keep=["who"]))
    rest = people.index != index
    assert_geodataframe_equal(results[0][rest], results[1][rest])
    assert (coordinates(results[0])[:, rest].tobytes()) == coordinates(results[1])[:, rest].tobytes()
    assert results[0].attrs == results[1].attrs


def test_neighbours_differ_in_coordinates_only(tmp_path):
    one, two = (at(lon, 38.7, 30, who=list(range(30))) for lon in (-9.14, 120.0))
    moved = [perturb(version, 1, subject="who", max_reports=2) for version in (one, two)]
    assert moved[0].attrs == moved[1].attrs
    assert moved[0].columns.equals(moved[1].columns)
    assert moved[0].index.equals(moved[1].index)
    assert (moved[0].dtypes == moved[1].dtypes).all()
    assert moved[0].geometry.isna().equals(moved[1].geometry.isna())
    moved[0].to_parquet(tmp_path / "moved.parquet")
    assert gpd.read_parquet(tmp_path / "moved.parquet").attrs == moved[0].attrs


def test_kept_columns_are_carried_and_recorded():
    people = at(0, 0, 3, minutes=[1.5, None, 3.0], kind=pd.Categorical(["a", "b", "a"]), who=["x", "y", "z"])
    people.index = [5, 3, 9]
    moved = perturb(people, 1, subject="who", max_reports=1, keep=["kind", "minutes"])
    assert list(moved.columns) == ["kind", "minutes", "geometry"]
    assert moved["kind"].tolist() == ["a", "b", "a"]
    assert moved.dtypes["kind"] == people.dtypes["kind"]
    assert moved.attrs["geodp"]["keep"] == ["kind", "minutes"]
    assert "kept columns are not protected" in moved.attrs["geodp"]["guarantee_text"]
    moved.loc[0, "minutes"] = 99.0
    assert people["minutes"].iloc[0] == 1.5


def test_the_record_is_small_plain_and_claims_no_more():
    found = perturb(at(0, 0, who=["x"]), "0.5", subject="who", max_reports=3, snap_m=25).attrs["geodp"]
    assert len(json.dumps(found)) < 2000
    assert json.loads(json.dumps(found)) == found
    assert found["query"] == "perturb"
    assert found["guarantee"] == "geo-indistinguishability"
    assert (found["eps_per_km"], found["reports_per_subject"], found["worst_eps_per_km"]) == (0.5, 3, 1.5)
    assert (found["snap_m"], found["remap"], found["keep"]) == (25, None, [])
    assert found["noise"] == "operating-system entropy"
    assert "private" not in found
    assert "eps" not in found
    assert "delta" not in found
    assert "exp(1.5 * d) together" in found["guarantee_text"]
    assert "not (eps, delta)-DP" in found["guarantee_text"]


def test_the_record_stays_small_with_many_kept_columns():
    people = at(0, 0, **{f"column_number_{i}": [i] for i in range(200)})
    found = perturb(people, 1, subject=EACH_ROW, keep=[f"column_number_{i}" for i in range(200)]).attrs[
        "geodp"
    ]
    assert len(json.dumps(found)) < 2000
    assert found["keep"]["columns"] == 200


@pytest.mark.parametrize("eps", [1, 1.0, "1", Decimal(1), Fraction(1), np.int64(1)])
def test_the_same_number_gives_the_same_record(eps):
    found = perturb(at(0, 0), eps, subject=EACH_ROW).attrs["geodp"]
    assert found == perturb(at(0, 0), 1, subject=EACH_ROW).attrs["geodp"]


def test_without_subject_a_warning_says_what_is_protected():
    with pytest.warns(PrivacyUnitWarning, match="single reports, not people"):
        moved = perturb(at(0, 0), 1)
    assert moved.attrs["geodp"]["unit"] == "row"
    assert moved.attrs["geodp"]["reports_per_subject"] is None
    assert "nothing limits them" in moved.attrs["geodp"]["guarantee_text"]


def test_pg_diffix_25_ids_and_the_first_reports_of_each():
    who = pd.Series([1, "1", 1.0, None, math.nan, True, 2.5, 1, "u", "u", "u"], dtype=object)
    moved = perturb(at(0, 0, len(who), who=who), 1, subject="who", max_reports=2)
    shown = [True, True, True, False, False, False, False, False, True, True, False]
    assert moved.geometry.notna().tolist() == shown


def test_unusable_rows_do_not_use_up_reports():
    people = frame([None, Point(0, 0), Point(), Point(1, 1), Point(2, 2)], who=["a"] * 5)
    moved = perturb(people, 1, subject="who", max_reports=2)
    assert moved.geometry.notna().tolist() == [False, True, False, True, False]


@settings(max_examples=30)
@given(who=st.lists(st.sampled_from(["a", "b", "c", None]), max_size=30), limit=st.integers(1, 4))
def test_no_subject_exceeds_its_reports_whoever_else_is_there(who, limit):
    people = at(0, 0, len(who), who=pd.Series(who, dtype=object))
    shown = perturb(people, 1, subject="who", max_reports=limit).geometry.notna().to_numpy()
    names = people["who"]
    for name in "abc":
        mine = (names == name).to_numpy(dtype=bool)
        assert shown[mine].tolist() == [i < limit for i in range(mine.sum())]
        alone = perturb(people[mine], 1, subject="who", max_reports=limit).geometry.notna()
        assert alone.tolist() == shown[mine].tolist()
    assert not shown[names.isna().to_numpy()].any()


@pytest.mark.sampled(rate=1e-20)
def test_points_near_the_180th_meridian_stay_near():
    people = frame(
        [Point(179.9999, -16.9), Point(-179.9999, -16.9), Point(180, -16.9), Point(180.0001, -16.9)] * 50
    )
    moved = perturb(people, 1, subject=EACH_ROW)
    assert (metres(people, moved) < 60_000).all()
    assert (coordinates(moved)[0] > 0).any()
    assert (coordinates(moved)[0] < 0).any()


@pytest.mark.sampled(rate=1e-11)
@pytest.mark.parametrize("lat", [0.0, 38.7, 85.0, 90.0])
def test_the_displacement_in_true_metres(lat):
    # Mean of 40,000 radii, std 1414 m each: 7 std errors are 50 m (one-sided normal tail 1e-12), and the
    # ground is up to 1.02 % longer than the sphere.
    n = 40_000
    people = at(12.0, lat, n)
    away = metres(people, perturb(people, 1, subject=EACH_ROW))
    assert 2000 - 50 < away.mean() < 2000 * 1.0102 + 50
    # 95 % within the quantile: exact binomial std is 44 of 40,000, so 7 of them are 310.
    assert 0.95 * n - 800 < (away <= radius_quantile_m(1, 0.95) * 1.0051).sum() < 0.95 * n + 800


def test_expected_displacement_and_quantiles():
    assert expected_displacement_m(1) == pytest.approx(2000, rel=1e-6)
    assert expected_displacement_m("1e-9") == pytest.approx(6_335_400 * math.pi / 2, rel=1e-5)
    assert radius_quantile_m(1, 0) == 0
    assert radius_quantile_m(1, 1) == pytest.approx(6_335_400 * math.pi)
    for p in (1e-12, 0.05, 0.5, 0.95, "0.999999999999"):
        x = radius_quantile_m(10, p) / 100
        assert 1 - (1 + x) * math.exp(-x) == pytest.approx(float(p), rel=1e-4, abs=1e-15)
    quantiles = [radius_quantile_m(0.001, p / 100) for p in range(101)]
    assert quantiles == sorted(quantiles)


@pytest.mark.parametrize("eps", [0, -1, math.nan, math.inf, 1000.1, "1e-9999"])
def test_eps_out_of_range(eps):
    for call in (
        lambda: perturb(at(0, 0), eps),
        lambda: expected_displacement_m(eps),
        lambda: radius_quantile_m(eps, 0.5),
    ):
        with pytest.raises(ValueError, match="eps_per_km"):
            call()


@pytest.mark.parametrize("eps", [True, None, [1], np.array([1.0]), 1j])
def test_eps_of_no_number(eps):
    with pytest.raises(TypeError, match="eps_per_km"):
        perturb(at(0, 0), eps)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"snap_m": 0.5}, ValueError, "snap_m"),
        ({"snap_m": 1e6}, ValueError, "snap_m"),
        ({"snap_m": None}, TypeError, "snap_m"),
        ({"subject": "who"}, ValueError, "max_reports is required"),
        ({"max_reports": 1}, ValueError, "none was named"),
        ({"subject": EACH_ROW, "max_reports": 1}, ValueError, "none was named"),
        ({"subject": "who", "max_reports": 0}, ValueError, "max_reports"),
        ({"subject": "who", "max_reports": 2.0}, TypeError, "max_reports"),
        ({"subject": "nobody", "max_reports": 1}, ValueError, "no column 'nobody'"),
        ({"subject": "when", "max_reports": 1}, TypeError, "dtype"),
        ({"subject": ["who"], "max_reports": 1}, TypeError, "name of a column"),
        ({"keep": "who"}, TypeError, "list of column names"),
        ({"keep": 5}, TypeError, "list of column names"),
        ({"keep": ["who", "who"]}, ValueError, "twice"),
        ({"keep": ["age"]}, ValueError, "no column 'age'"),
        ({"keep": ["geometry"]}, ValueError, "true positions"),
        ({"keep": ["home"]}, ValueError, "true positions"),
        ({"p": 1}, TypeError, "unexpected keyword"),
    ],
)
def test_wrong_arguments_say_what_to_do(arguments, error, words):
    people = at(0, 0, who=["a"], when=pd.to_datetime(["2026-01-01"]))
    people["home"] = gpd.GeoSeries([Point(0, 0)], crs=4326)
    with pytest.raises(error, match=words):
        perturb(people, 1, **arguments)


def test_frames_that_cannot_hold_places():
    with pytest.raises(ValueError, match="set_crs"):
        perturb(frame([Point(0, 0)], crs=None), 1)
    with pytest.raises(TypeError, match="GeoDataFrame"):
        perturb(pd.DataFrame({"a": [1]}), 1)
    with pytest.raises(ValueError, match="set_geometry"):
        perturb(gpd.GeoDataFrame({"a": [1]}), 1)
    with pytest.raises(ValueError, match="p must be"):
        radius_quantile_m(1, 1.5)
