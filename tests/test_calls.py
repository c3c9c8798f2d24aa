"""The public surface: signatures, defaults, columns, errors. Exploring warns, publishing refuses."""

import inspect
import pickle
import random
import warnings
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import geodp
from geodp.accessor import Accessor
from geodp.views import View

NYC = (-74.3, 40.4, -73.6, 41.0)
SETTING = {"subject": "rider", "cap": 3, "bounds": NYC, "grid": "h3:6"}
QUERIES = ["heatmap", "sum", "mean", "centroid"]


def parameters(call, *without):
    found = inspect.signature(call).parameters
    return {name: (p.kind, p.default) for name, p in found.items() if name not in without}


@pytest.mark.parametrize("name", QUERIES)
def test_the_accessor_has_the_functions_signature(name):
    assert parameters(getattr(Accessor, name), "self") == parameters(getattr(geodp, name), "gdf")


@pytest.mark.parametrize("name", QUERIES)
def test_a_views_method_has_the_same_words_less_who_and_where(name):
    fixed = ("subject", "cap", "rows_per_cell", "contribution", "neighboring", "population")
    fixed += ("bounds", "outside", "ledger")
    flat = parameters(getattr(geodp, name), "gdf", *fixed)
    assert parameters(getattr(View, name), "self") == flat


def test_a_views_method_cannot_loosen_who_is_protected(trips):
    with pytest.raises(TypeError):
        trips.dp(**SETTING).heatmap(1, cap=8)


def test_view_accessor_and_function_are_one_release(trips):
    with geodp.testing.noiseless():
        frames = [
            geodp.heatmap(trips, 1, 1e-6, **SETTING),
            trips.dp.heatmap(1, 1e-6, **SETTING),
            trips.dp(**SETTING).heatmap(1, 1e-6),
            geodp.plan(1, 1e-6, **SETTING).release(trips),
            trips.copy().dp(trips.dp(**SETTING).policy).heatmap(1, 1e-6),
        ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(pd.DataFrame(frames[0]), pd.DataFrame(frame))
        assert frame.attrs == frames[0].attrs


@pytest.mark.parametrize(
    ("name", "args", "more", "columns"),
    [
        ("heatmap", (), {}, ["count", "estimate", "noisy_count", "lower", "upper", "edge", "geometry"]),
        (
            "sum",
            ("minutes",),
            {"value_bounds": (0, 120)},
            ["sum", "noisy_sum", "lower", "upper", "edge", "geometry"],
        ),
        (
            "mean",
            ("minutes",),
            {"value_bounds": (0, 120)},
            ["mean", "lower", "upper", "count", "noisy_sum", "noisy_count", "edge", "geometry"],
        ),
        ("centroid", (), {}, ["count", "noisy_count", "lon", "lat", "error_m", "edge", "geometry"]),
    ],
)
def test_columns_dtypes_and_index(trips, name, args, more, columns):
    frame = getattr(trips.dp, name)(*args, 1.0, 1e-6, **SETTING, **more)
    assert list(frame.columns) == columns
    assert frame.crs == 4326
    assert frame.index.name == "h3_06"
    assert frame.index.is_monotonic_increasing
    assert frame.geometry.is_valid.all()
    for column in frame.columns:
        if column in ("count", "noisy_count"):
            assert frame[column].dtype == np.int64
    if "count" in frame:
        assert (frame["count"] >= 0).all()


def test_without_geometry_and_without_an_edge(trips):
    heat = trips.dp.heatmap(1, **SETTING, outside="drop", return_geometry=False)
    assert type(heat) is pd.DataFrame
    assert list(heat.columns) == ["count", "estimate", "noisy_count", "lower", "upper"]


def test_the_interval_is_that_of_the_exact_law_and_uncut(trips):
    plan = geodp.plan(1, **SETTING)
    heat = plan.release(trips)
    h = plan.measurements[0].law.halfwidth(0.95)
    assert (heat["upper"] - heat["noisy_count"]).eq(h).all()
    assert (heat["noisy_count"] - heat["lower"]).eq(h).all()
    assert (heat["lower"] < 0).any()


def test_bare_exploring_warns_of_the_unit_and_of_the_world(trips):
    with pytest.warns() as caught:
        heat = trips.dp.heatmap(1.0, 1e-6)
    kinds = {w.category for w in caught}
    assert kinds == {geodp.PrivacyUnitWarning, geodp.BoundsWarning}
    assert all(w.filename == __file__ for w in caught)
    assert heat.attrs["geodp"]["unit"] == "row"
    assert len(heat) == 5882


def test_each_row_on_purpose_is_silent(trips):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trips.dp.heatmap(1.0, subject=geodp.EACH_ROW, bounds=NYC)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"subject": "rider"}, ValueError, ["cap is required", '"auto"']),
        ({"cap": 4}, ValueError, ["subject"]),
        ({"population": 10}, ValueError, ["subject"]),
        ({"rows_per_cell": 2}, ValueError, ["subject"]),
        ({"subject": "driver", "cap": 1}, ValueError, ["driver", "rider"]),
        ({"subject": 3, "cap": 1}, TypeError, ["subject"]),
        ({"subject": "rider", "cap": 0}, ValueError, ["cap", "0"]),
        ({"subject": "rider", "cap": 2.5}, TypeError, ["cap"]),
        ({"subject": "rider", "cap": float("nan")}, TypeError, ["cap"]),
        ({"subject": "rider", "cap": True}, TypeError, ["cap"]),
        ({"subject": "rider", "cap": "many"}, ValueError, ["cap", "many"]),
        ({"subject": "rider", "cap": 1, "neighboring": "swap"}, ValueError, ["neighboring", "replace_one"]),
        ({"subject": "rider", "cap": 1, "outside": "keep"}, ValueError, ["outside", "drop"]),
        ({"subject": "rider", "cap": 1, "bounds": np.array(NYC)}, TypeError, ["bounds", "array"]),
        ({"subject": "rider", "cap": 1, "bounds": pd.Series(NYC)}, TypeError, ["bounds"]),
        ({"subject": "rider", "cap": 1, "bounds": (1, 2, 3)}, ValueError, ["bounds"]),
        ({"subject": "rider", "cap": 1, "grid": "hex:8"}, ValueError, ["grid", "h3:8"]),
        ({"subject": "rider", "cap": 1, "estimator": "magic"}, ValueError, ["estimator", "norm_sub"]),
        ({"subject": "rider", "cap": 1, "mechanism": "gaussian"}, ValueError, ["delta"]),
    ],
)
def test_bad_arguments_name_themselves(trips, given, error, words):
    given = {"bounds": NYC, **given}
    with pytest.raises(error) as caught:
        trips.dp.heatmap(1.0, **given)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("eps", [float("nan"), float("inf"), -1, 0, True, "one", 1e-400, None, [1], "1e-400"])
def test_jax_privacy_394_bad_eps(trips, eps):
    if eps == "1e-400":  # exactly representable as typed, and far too small to draw
        with pytest.raises(ValueError, match="eps"):
            trips.dp.heatmap(eps, **SETTING)
        return
    with pytest.raises((TypeError, ValueError), match="eps"):
        trips.dp.heatmap(eps, **SETTING)


@pytest.mark.parametrize("delta", [float("nan"), float("inf"), -1, True, "one", 1.0, 0.5, 1e-3, None])
def test_jax_privacy_394_bad_delta(trips, delta):
    with pytest.raises((TypeError, ValueError), match="delta"):
        trips.dp.heatmap(1.0, delta, **SETTING)


def test_delta_is_held_against_the_declared_population():
    with pytest.raises(ValueError, match="1/population"):
        geodp.plan(1, 1e-3, **SETTING, population=1000)
    with pytest.warns(geodp.PopulationWarning):
        geodp.plan(1, 1e-7, **{**SETTING, "cap": 100}, population=10**6)


def test_a_map_of_too_few_people_for_its_cells_is_warned_of():
    with pytest.warns(geodp.NoiseWarning, match="mostly noise.*h3:"):
        geodp.plan(1, **{**SETTING, "grid": "h3:8"}, population=500)


def test_a_typed_number_is_one_release_however_it_was_typed():
    keys = {geodp.plan(eps, **SETTING).key for eps in (1, 1.0, "1", np.float64(1), np.int64(1))}
    assert len(keys) == 1


@pytest.mark.parametrize("eps", ["0.1", "0.123456789012345678901", "1/3", "0.00012345"])
def test_eps_is_what_was_typed_to_the_last_digit(eps):
    plan = geodp.plan(eps, **SETTING)
    assert plan.eps == plan.charge.eps == Fraction(eps)
    assert Fraction(plan.scale) * Fraction(eps) >= 3


@pytest.mark.parametrize("frame", [pd.DataFrame({"rider": [1]}), pd.Series([1])])
def test_only_geodataframes_have_dp(frame):
    with pytest.raises(AttributeError):
        frame.dp  # noqa: B018
    with pytest.raises(TypeError, match="GeoDataFrame"):
        geodp.heatmap(frame, 1, **SETTING)


def test_geoparquet_io_537_no_crs_names_set_crs(trips):
    with pytest.raises(ValueError, match="set_crs"):
        trips.set_crs(None, allow_override=True).dp.heatmap(1, **SETTING)


def test_geoparquet_io_537_any_crs_gives_the_same_counts(trips):
    with geodp.testing.noiseless():
        counts = [
            trips.to_crs(crs).dp.heatmap(1, **SETTING)["noisy_count"]
            for crs in (4326, "OGC:CRS84", 5070, 2263, 3857)
        ]
    for other in counts[1:]:
        pd.testing.assert_series_equal(counts[0], other)


def at(places, **columns):
    lon, lat = zip(*places, strict=True)
    return gpd.GeoDataFrame(columns, geometry=gpd.points_from_xy(lon, lat), crs=4326)


ZONE = geodp.Zones(gpd.GeoDataFrame({"z": [1]}, geometry=[shapely.box(*NYC)], crs=4326), "z")


@pytest.mark.parametrize(
    "where",
    [
        {"bounds": NYC, "grid": "h3:6", "outside": "drop"},
        {"bounds": NYC, "grid": "h3:6", "outside": "clamp"},
        {"grid": ZONE},
        {"bounds": (-180, -90, 180, 90), "grid": "h3:3", "by": {"hour": [5]}},
    ],
    ids=["dropped", "clamped", "zones", "slots"],
)
def test_google_dp_31_rows_outside_the_domain_do_not_use_up_the_cap(where):
    """Nine places elsewhere, or at other hours, come first; the one inside is what counts."""
    far = [(10 + i, 50.0) for i in range(9)]
    people = at([*far, (-73.97, 40.75)], rider=["a"] * 10, hour=[1] * 9 + [5])
    with geodp.testing.noiseless():
        heat = geodp.heatmap(people, 1, subject="rider", cap=1, mechanism="laplace", **where)
    (counted,) = heat.index[heat["noisy_count"] > 0]
    assert heat["noisy_count"].sum() == 1
    assert heat.geometry[counted].covers(shapely.Point(-73.97, 40.75))


@pytest.mark.parametrize("grid", ["h3:6", "square:0.05"])
def test_points_outside_the_box_move_to_its_border_or_are_left_out(grid):
    people = at([(-73.97, 40.75), (-80, 40.5), (0, 60), (-73.7, 30), (150, -80)], rider=list("abcde"))
    where = {"subject": "rider", "cap": 1, "bounds": NYC, "grid": grid}
    with geodp.testing.noiseless():
        moved = geodp.heatmap(people, 1, **where)
        dropped = geodp.heatmap(people, 1, outside="drop", **where)
    assert moved["noisy_count"].sum() == 5
    assert moved.loc[moved["edge"], "noisy_count"].sum() == 4
    assert dropped["noisy_count"].sum() == 1


NOWHERE = [
    None,
    shapely.Point(),
    shapely.Point(np.nan, np.nan),
    shapely.Point(np.inf, 40.7),
    shapely.Point(-74, np.nan),
    shapely.Point(-74, 95),
    shapely.Point(-74, -90.0001),
    shapely.MultiPoint([(-74, 40.7)]),
    shapely.LineString([(-74, 40.7), (-73.9, 40.8)]),
    shapely.box(*NYC),
]


@pytest.mark.parametrize("grid", ["h3:6", "square:0.05", ZONE])
@pytest.mark.parametrize("nowhere", NOWHERE, ids=str)
def test_what_is_no_place_is_left_out_and_never_moved_to_the_border(nowhere, grid):
    """lonboard #146, geopandas #798: one rule for all of it, in every grid."""
    people = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.GeoSeries([nowhere], crs=4326))
    box = {} if grid is ZONE else {"bounds": NYC}
    with geodp.testing.noiseless():
        heat = geodp.heatmap(people, 1, subject="rider", cap=1, grid=grid, **box)
    assert heat["noisy_count"].sum() == 0


@pytest.mark.sampled(rate=1e-9)
@pytest.mark.filterwarnings("ignore::geodp.NoiseWarning")
def test_which_cells_are_kept_is_chosen_anew_for_each_release():
    """Of ten cells one is kept; ten releases agree in fewer than 1 of 1e9 runs."""
    people = at([(x + 0.5, 0.5) for x in range(10)], rider=["a"] * 10)
    plan = geodp.plan(99, subject="rider", cap=1, bounds=(0, 0, 10, 1), grid="square:1", mechanism="laplace")
    kept = {int(np.argmax(plan.release(people)["noisy_count"])) for _ in range(10)}
    assert len(kept) > 1


def test_h3pandas_31_the_active_geometry_counts(trips):
    other = trips.rename_geometry("pt")
    other["geometry"] = gpd.points_from_xy(np.zeros(len(trips)), np.zeros(len(trips)))
    with geodp.testing.noiseless():
        a, b = trips.dp.heatmap(1, **SETTING), other.dp.heatmap(1, **SETTING)
    pd.testing.assert_series_equal(a["noisy_count"], b["noisy_count"])


def test_two_columns_of_one_name_are_refused(trips):
    doubled = pd.concat([trips, trips[["rider"]]], axis=1)
    with pytest.raises(ValueError, match="more than one column 'rider'"):
        doubled.dp.heatmap(1, **SETTING)


def test_a_view_shows_arguments_only_and_is_not_pickled(trips):
    view = trips.dp(**SETTING)
    shown = repr(view)
    assert "rider" in shown
    assert str(len(trips)) not in shown
    assert not any(rider in shown for rider in trips["rider"])
    with pytest.raises(TypeError, match=r"view\.policy"):
        pickle.dumps(view)


def test_plans_are_frozen_hashable_and_hold_no_data(trips):
    a, b = geodp.plan(1, 1e-6, **SETTING), geodp.plan("1", "1e-6", **SETTING)
    assert a == b
    assert hash(a) == hash(b)
    assert a != geodp.plan(2, 1e-6, **SETTING)
    with pytest.raises(AttributeError):
        a.eps = 2
    assert pickle.loads(pickle.dumps(a)) == a


def test_privcount_global_random_state_is_left_alone(trips):
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    trips.dp.heatmap(1, 1e-6, **SETTING)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@pytest.mark.sampled(rate=1e-20)
def test_diffprivlib_31_two_releases_differ(trips):
    a, b = (trips.dp.heatmap(0.1, **SETTING)["noisy_count"] for _ in range(2))
    assert not a.equals(b)


def test_velox_13785_noise_beyond_integers_is_refused():
    with pytest.raises(ValueError, match="2\\^50"):
        geodp.plan(1e-17, **SETTING)


def test_noise_that_is_none_is_refused_unless_the_mechanism_is_named():
    with pytest.raises(ValueError, match="no noise"):
        geodp.plan(200, **SETTING)
    with pytest.warns(geodp.NoiseWarning):
        geodp.plan(200, **SETTING, mechanism="laplace")
    with pytest.warns(geodp.NoiseWarning):
        geodp.plan(5, **{**SETTING, "cap": 1})


def test_a_domain_too_large_is_refused_with_the_resolution_that_fits():
    with pytest.raises(ValueError, match=r'h3:12.* more than 5,000,000.*"h3:11" fits'):
        geodp.plan(1, subject="rider", cap=1, bounds=NYC, grid="h3:12")


def test_the_testing_modes_need_the_environment(monkeypatch):
    monkeypatch.delenv("GEODP_TESTING")
    with pytest.raises(RuntimeError, match="GEODP_TESTING"), geodp.testing.noiseless():
        pass


def test_a_release_inside_testing_says_so(trips):
    with geodp.testing.seeded(3):
        a = trips.dp.heatmap(1, **SETTING)
    with geodp.testing.seeded(3):
        b = trips.dp.heatmap(1, **SETTING)
    assert a.attrs["geodp"]["noise"] == "seeded (test)"
    pd.testing.assert_frame_equal(pd.DataFrame(a), pd.DataFrame(b))
    assert trips.dp.heatmap(1, **SETTING).attrs["geodp"]["noise"] == "operating-system entropy"
