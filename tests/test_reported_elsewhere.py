"""Faults that users and auditors reported in public about other systems, each asked of geodp through its front door.

Every test names project and number. The parts have tests of their own beside them; here the whole release is
held against the report, so that a fault cannot come back between the parts.
"""

import itertools
import math
import random
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from shapely import Point

import geodp
from geodp import testing
from geodp.mechanisms import DiscreteLaplace, RoundedGaussian, gaussian_delta, gaussian_sigma

UNIT = (0, 0, 1, 1)
NYC = (-74.3, 40.4, -73.6, 41.0)


def people(rows, **columns):
    """Return a frame of (rider, lon, lat)."""
    rider, lon, lat = zip(*rows, strict=True) if rows else ((), (), ())
    table = {"rider": pd.Series(list(rider), dtype=object), **columns}
    return gpd.GeoDataFrame(table, geometry=gpd.points_from_xy(list(lon), list(lat)), crs=4326)


def squares(n, cell=0.1):
    """Return the middles of ``n`` squares of the unit box, row by row."""
    per_row = round(1 / cell)
    return [((i % per_row + 0.5) * cell, (i // per_row + 0.5) * cell) for i in range(n)]


def exact(frame, key=0, **arguments):
    """Return a release without noise."""
    with testing.noiseless(key):
        return geodp.heatmap(
            frame, 1.0, **{"subject": "rider", "bounds": UNIT, "grid": "square:0.1", **arguments}
        )


# Space


def test_h3_py_187_h3_pandas_35_nothing_smears_at_the_180th_meridian():
    fiji = people([("a", 179.98, -16.9), ("b", -179.98, -16.9)])
    heat = exact(fiji, cap=1, bounds=(170, -20, -170, 20), grid="h3:3")
    assert heat["noisy_count"].sum() == 2
    assert heat.is_valid.all()
    parts = heat.geometry.explode().bounds
    assert (parts["maxx"] - parts["minx"]).max() < 180


def test_h3_561_geojson2h3_25_the_world_is_not_empty():
    plan = geodp.plan(1.0, subject="rider", cap=1, bounds=(-180, -90, 180, 90), grid="h3:2")
    assert plan.n_cells == len(plan.index) == 5882


def test_h3_py_275_tobler_146_the_edges_and_corners_of_the_area_are_counted():
    west, south, east, north = NYC
    along = np.linspace(0, 1, 60)
    edge = [(west + (east - west) * t, y) for t in along for y in (south, north)]
    edge += [(x, south + (north - south) * t) for t in along for x in (west, east)]
    frame = people([(f"r{i}", x, y) for i, (x, y) in enumerate(edge)])
    assert exact(frame, cap=1, bounds=NYC, grid="h3:8")["noisy_count"].sum() == len(frame)


@pytest.mark.parametrize("resolution", range(6, 12))
def test_h3_540_h3_456_an_area_smaller_than_a_cell(resolution):
    """The report ends in a crash over NaN; the smallest of boxes still has the cell of its points."""
    for bounds in ((7.6, 51.9, 7.6009, 51.9006), (0, 0, 1e-9, 1e-9)):
        frame = people([("a", bounds[0], bounds[1])])
        heat = exact(frame, cap=1, bounds=bounds, grid=f"h3:{resolution}")
        assert heat["noisy_count"].sum() == 1
        assert not heat["estimate"].isna().any()


def test_h3o_5_geoparquet_io_537_metres_are_not_read_as_degrees():
    degrees = people([("a", -74.0, 40.7), ("b", -73.9, 40.8)])
    wanted = exact(degrees, cap=1, bounds=NYC, grid="h3:8")["noisy_count"]
    for crs in (5070, 2263, 3857):
        assert exact(degrees.to_crs(crs), cap=1, bounds=NYC, grid="h3:8")["noisy_count"].equals(wanted)
    with pytest.raises(ValueError, match="set_crs"):
        exact(degrees.set_crs(None, allow_override=True), cap=1, bounds=NYC, grid="h3:8")


def test_h3_py_369_h3_py_429_cells_are_those_of_the_point_at_the_asked_resolution():
    import h3

    lat, lon = 29.99311, -81.33093
    heat = exact(people([("a", lon, lat)]), cap=1, bounds=(-85, 25, -80, 33), grid="h3:3")
    assert heat.index[heat["noisy_count"] == 1].tolist() == [h3.latlng_to_cell(lat, lon, 3)]


def test_h3_py_70_swapped_coordinates_are_said_loudly():
    swapped = people([(f"r{i}", 40.7 + i / 1000, -74.0) for i in range(50)])
    said = str(swapped.dp.audit(subject="rider", cap=1, bounds=NYC, grid="h3:8"))
    assert "exchanged" in said or "swapped" in said


UNUSABLE = [None, Point(), Point(np.nan, np.nan), Point(np.inf, 0), shapely.LineString([(0, 0), (1, 1)])]


@pytest.mark.parametrize("grid", ["h3:4", "square:0.5", "zones"])
def test_lonboard_146_geopandas_798_unusable_geometries_leave_no_trace(grid):
    if grid == "zones":
        zones = gpd.GeoDataFrame({"z": [1]}, geometry=[shapely.box(*UNIT)], crs=4326)
        where = {"grid": geodp.Zones(zones, "z"), "bounds": None}
    else:
        where = {"grid": grid}
    good = people([("a", 0.3, 0.3), ("b", 0.7, 0.7)])
    bad = gpd.GeoDataFrame({"rider": list("cdefg")}, geometry=gpd.GeoSeries(UNUSABLE, crs=4326))
    mixed = gpd.GeoDataFrame(pd.concat([bad, good, bad]), crs=4326)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = exact(mixed, cap=2, **where)
    pd.testing.assert_frame_equal(pd.DataFrame(seen), pd.DataFrame(exact(good, cap=2, **where)))
    assert seen.attrs == exact(good, cap=2, **where).attrs


# Frames


def test_google_dp_31_opendp_1964_empty_zones_stay():
    boxes = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
    zones = geodp.Zones(gpd.GeoDataFrame({"z": [3, 1, 2]}, geometry=boxes, crs=4326), "z")
    with_a, without = people([("a", 0.5, 0.5)]), people([])
    one, none = (exact(frame, cap=1, grid=zones, bounds=None) for frame in (with_a, without))
    assert one.index.tolist() == none.index.tolist() == [1, 2, 3]
    assert one["noisy_count"].tolist() == [0, 0, 1]
    assert one.dtypes.equals(none.dtypes)
    assert not one.isna().any(axis=None)


def test_h3_pandas_12_geopandas_181_a_frame_without_rows_gives_a_map():
    heat = exact(people([]), cap=1, bounds=NYC, grid="h3:6")
    assert isinstance(heat, gpd.GeoDataFrame)
    assert heat.crs.to_epsg() == 4326
    assert len(heat) == geodp.plan(1.0, subject="rider", cap=1, bounds=NYC, grid="h3:6").n_cells


def test_geopandas_1906_gdal_1109_files_say_degrees_and_no_old_crs(tmp_path):
    heat = exact(people([("a", 0.5, 0.5)]).to_crs(3857), cap=1)
    heat.to_file(tmp_path / "heat.geojson")
    text = (tmp_path / "heat.geojson").read_text()
    assert '"urn:ogc:def:crs:EPSG' not in text
    again = gpd.read_file(tmp_path / "heat.geojson")
    assert tuple(again.total_bounds.round(6)) == (0, 0, 1, 1)
    assert again.crs.to_epsg() == 4326


def test_geopandas_2546_mapclassify_88_a_constant_map_is_drawn():
    pytest.importorskip("mapclassify")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    constant = exact(people([]), cap=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Not enough unique values", UserWarning)
        constant.plot("count", scheme="quantiles", legend=True)
    pyplot.close("all")


def test_deck_gl_10317_ids_are_texts_that_web_layers_can_use():
    ids = exact(people([]), cap=1, bounds=NYC, grid="h3:6").index
    assert ids.map(lambda cell: isinstance(cell, str) and len(cell) == 15 and cell == cell.lower()).all()


def test_rioxarray_532_pandas_47667_no_accessor_forgets_what_was_spent(tmp_path):
    trips = people([("a", 0.5, 0.5)])
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3)
    asked = {"subject": "rider", "cap": 1, "bounds": UNIT, "grid": "square:0.5", "ledger": ledger}
    trips.dp.heatmap(1.0, label="one", **asked)
    trips.copy().dp.heatmap(1.0, label="two", **asked)
    trips.dp.heatmap(1.0, label="three", **asked)
    assert ledger.spent()["eps"] == 3
    with pytest.raises(geodp.BudgetExceeded):
        trips[:0].dp.heatmap(0.1, label="four", **asked)


# Privacy


def test_diffprivlib_20_dp_mobility_report_the_extent_is_never_taken_from_the_data():
    town = [(f"r{i}", 7.6 + i / 1e4, 51.9) for i in range(50)]
    near, far = people(town), people([*town, ("one", 10.0, 60.0)])
    asked = {"cap": 1, "bounds": (7, 51, 8, 53), "grid": "h3:5"}
    first, second = (exact(frame, **asked) for frame in (near, far))
    assert first.index.equals(second.index)
    assert first.geometry.equals(second.geometry)
    assert first.attrs == second.attrs
    with pytest.raises(TypeError, match="total_bounds"):
        exact(near, cap=1, bounds=far.total_bounds)


def test_diffprivlib_20_time_slots_are_never_taken_from_the_data():
    frame = people([("a", 0.5, 0.5), ("b", 0.5, 0.5)], hour=[7, 23])
    heat = exact(frame, cap=1, by={"hour": [7, 8]})
    assert sorted(set(heat.index.get_level_values("hour"))) == [7, 8]
    assert heat["noisy_count"].sum() == 1
    with pytest.raises(TypeError):
        exact(frame, cap=1, by={"hour": frame["hour"]})


def test_smartnoise_308_smartnoise_544_google_dp_72_the_cap_is_kept_and_is_what_the_noise_is_for():
    """One subject in 100 cells, one with 100 rows in one cell: at cap 5 they fill 5 cells and 1, once each."""
    everywhere = [("a", *middle) for middle in squares(100)]
    frame = people(everywhere + [("b", 0.95, 0.95)] * 100)
    alone = people(everywhere)
    heat = exact(frame, cap=5)
    counts = heat["noisy_count"]
    assert counts.sum() == 6
    assert counts.iloc[-1] in (1, 2)
    plan = geodp.plan(1.0, subject="rider", cap=5, bounds=UNIT, grid="square:0.1")
    assert (plan.l1, plan.l2) == (5, math.sqrt(5))
    assert plan.scale == 5.0
    # What a keeps is hers alone, and chosen afresh with each release's key.
    without_b = exact(alone, cap=5)["noisy_count"]
    assert without_b.sum() == 5
    assert (counts - without_b).sum() == 1
    assert not exact(alone, key=1, cap=5)["noisy_count"].equals(without_b)
    # Neither an observed maximum: one with few cells has the same plan.
    assert exact(people([("a", 0.5, 0.5)]), cap=5).attrs == heat.attrs


def test_google_dp_pr_31_places_outside_do_not_use_up_the_cap():
    outside = [("a", 5.0 + i, 5.0) for i in range(9)]
    frame = people([*outside, ("a", 0.5, 0.5)])
    for how in ("drop", "clamp"):
        heat = exact(frame, cap=1, outside=how)
        assert heat["noisy_count"].sum() == 1
        (row,) = heat.index[heat["noisy_count"] == 1]
        assert heat.geometry[row].buffer(1e-9).covers(Point(0.5, 0.5))


def test_pipelinedp_451_smartnoise_core_243_square_roots_are_where_they_belong():
    plan = geodp.plan(1.0, 1e-6, subject="rider", cap=4, bounds=UNIT, grid="square:0.1", mechanism="gaussian")
    assert (plan.l1, plan.l2) == (4, 2)
    assert plan.scale == gaussian_sigma(2, 1, 1e-6)


def test_programming_dp_45_smartnoise_462_the_books_formula_is_not_used_beyond_eps_1():
    assert round(gaussian_sigma(1, 1, 1e-6), 9) == 4.224678889
    book = math.sqrt(2 * math.log(1.25 / 1e-6)) / 50
    assert round(gaussian_delta(1, book, 50), 4) == 0.2474
    with pytest.warns(geodp.NoiseWarning, match="no noise"):
        plan = geodp.plan(
            50, 1e-6, subject="rider", cap=1, bounds=UNIT, grid="square:0.1", mechanism="gaussian"
        )
    assert gaussian_delta(1, plan.scale, 50) <= 1e-6


@pytest.mark.sampled(rate=5e-8)
def test_opendp_2749_dp_mobility_report_20_empty_cells_do_not_add_up_to_people():
    """1,000 empty cells at eps 1: cut at zero they hold 425 people, and none are there.

    The noise of the total has std 42.9, and is beyond 6.5 of them (279) in less than 1e-9 of all runs. The planted
    cut at zero has mean 425 and std 27: it stays below 279 with less than 4e-8.
    """
    bounds, cells = (0, 0, 40, 25), 1000
    heat = geodp.heatmap(people([]), 1.0, subject="rider", cap=1, bounds=bounds, grid="square:1")
    assert len(heat) == cells
    std = math.sqrt(cells) * DiscreteLaplace(1.0).std
    total = heat["noisy_count"].sum()
    assert abs(total) < 6.5 * std
    assert heat["noisy_count"].clip(lower=0).sum() > 6.5 * std
    assert heat["count"].min() >= 0
    assert abs(heat["count"].sum() - max(total, 0)) <= std + 1


@pytest.mark.sampled(rate=1e-50)
def test_diffprivlib_27_31_no_seed_and_no_weak_generator(monkeypatch):
    """The generators that others used are broken here, seeded alike, and no release notices."""
    frame = people([("a", 0.5, 0.5)])

    def broken(*_, **__):
        raise AssertionError("a generator fit for simulations was asked for noise")

    for name in ("default_rng", "normal", "laplace", "randint", "random"):
        monkeypatch.setattr(np.random, name, broken)
    for name in ("random", "gauss", "getrandbits", "randint"):
        monkeypatch.setattr(random, name, broken)
    random.seed(7)
    first = geodp.heatmap(frame, 1.0, subject="rider", cap=1, bounds=UNIT, grid="square:0.1")
    random.seed(7)
    second = geodp.heatmap(frame, 1.0, subject="rider", cap=1, bounds=UNIT, grid="square:0.1")
    # 100 cells, each the same twice with probability 0.27: below 1e-50.
    assert not first["noisy_count"].equals(second["noisy_count"])
    assert geodp.record(first)["noise"] == "operating-system entropy"


@pytest.mark.sampled(rate=1e-15)
def test_diffprivlib_19_opendp_941_mironov_2012_low_bits_tell_nothing():
    """10,000 cells, half of them with one person: all noisy counts are whole, and both halves reach the same ones.

    Each of -4..5 has probability 0.3 % or more in a half of 5,000: it is missed with less than e^-15, 20 of them
    with less than 1e-5, so only -3..4 (0.84 % or more: e^-42) are asked for.
    """
    full = [(f"r{i}", *middle) for i, middle in enumerate(squares(10_000, 0.01)) if i % 2]
    heat = geodp.heatmap(people(full), 1.0, subject="rider", cap=1, bounds=UNIT, grid="square:0.01")
    assert heat["noisy_count"].dtype == np.int64
    truth = exact(people(full), cap=1, grid="square:0.01")["noisy_count"]
    assert truth.sum() == 5000
    for value in (0, 1):
        assert set(range(-3, 5)) <= set(heat["noisy_count"][truth == value])


def test_diffprivlib_19_sums_are_whole_steps_whatever_was_added_up():
    for values in ([0.1, 0.2], [0.1 + 2**-50, 0.3]):
        frame = people([("a", 0.5, 0.5), ("b", 0.5, 0.5)], minutes=values)
        summed = geodp.sum(
            frame, "minutes", 1.0, value_bounds=(0, 1), subject="rider", cap=1, bounds=UNIT, grid="square:0.5"
        )
        step = float(geodp.record(summed)["measurements"][0]["step"].partition("/")[2] or 1)
        assert (summed["noisy_sum"] * step % 1 == 0).all()


def test_opendp_1827_the_order_of_rows_does_not_show():
    rng = np.random.default_rng(0)
    frame = people([(f"r{i % 30}", *rng.uniform(0, 1, 2)) for i in range(300)])
    shuffled = frame.sample(frac=1, random_state=1)
    first, second = exact(frame, cap=2), exact(shuffled, cap=2)
    pd.testing.assert_frame_equal(pd.DataFrame(first), pd.DataFrame(second))
    assert first.index.equals(geodp.plan(1.0, subject="rider", cap=2, bounds=UNIT, grid="square:0.1").index)


@pytest.mark.sampled(rate=1e-60)
@pytest.mark.parametrize(
    "rows", [[], [("a", 50.0, 50.0)] * 3, [("a", 0.5, 0.5)]], ids=["none", "outside", "one"]
)
def test_dp_mobility_report_54_no_early_return(rows):
    """Nobody, nobody inside, one person: the same full map of noise. All 10,000 draws are 0 with 1e-3000."""
    heat = geodp.heatmap(
        people(rows), 1.0, subject="rider", cap=1, bounds=UNIT, outside="drop", grid="square:0.01"
    )
    plan = geodp.plan(1.0, subject="rider", cap=1, bounds=UNIT, outside="drop", grid="square:0.01")
    assert heat.index.equals(plan.index)
    assert heat["noisy_count"].nunique() > 5


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_opendp_2945_maxima_are_those_of_changes(cap, neighboring):
    """All that one person can do in four cells, alone and in a crowd: the worst change is what the plan says."""
    middles = squares(4, 0.5)
    subsets = [cells for n in range(5) for cells in itertools.combinations(range(4), n)]
    plan = geodp.plan(1.0, subject="rider", cap=cap, neighboring=neighboring, bounds=UNIT, grid="square:0.5")
    for others in ((), range(4)):
        crowd = [("b", *middles[cell]) for cell in others]
        tallies = [
            exact(people(crowd + [("a", *middles[c]) for c in cells]), cap=cap, grid="square:0.5")[
                "noisy_count"
            ]
            for cells in subsets
        ]
        nobody, *_ = tallies
        pairs = (
            itertools.combinations(tallies, 2)
            if neighboring == "replace_one"
            else ((one, nobody) for one in tallies)
        )
        assert max((one - other).abs().sum() for one, other in pairs) == plan.l1


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("law", [DiscreteLaplace(4.0), RoundedGaussian(8.449)], ids=["laplace", "gaussian"])
def test_dp_mobility_report_intervals_cover_what_they_say(law, level):
    """The smallest whole half-width that covers, by the exact law."""
    h = law.halfwidth(level)
    assert 1 - 2 * law.sf(h) >= level > 1 - 2 * law.sf(h - 1)


@pytest.mark.sampled(rate=3e-9)
def test_dp_mobility_report_interval_ends_are_not_cut_at_zero():
    """Of 40,000 empty cells 95 % and a little more hold 0 between their ends.

    The exact coverage is 1 - 2 sf(h); the share of 40,000 stays within 6 of its stds but for 2e-9 of all runs. Cut at
    zero, an interval below zero would be (0, 0) and hold the truth: the share would rise by sf(h), 1.3 %. That is 14 of
    its stds above what is asked.
    """
    heat = geodp.heatmap(people([]), 1.0, subject="rider", cap=1, bounds=UNIT, grid="square:0.005")
    law = DiscreteLaplace(1.0)
    h = law.halfwidth(0.95)
    assert (heat["lower"] == heat["noisy_count"] - h).all()
    assert (heat["upper"] == heat["noisy_count"] + h).all()
    covered, cut = (
        ((low <= 0) & (heat["upper"].clip(lower=least) >= 0)).mean()
        for low, least in ((heat["lower"], -(2**62)), (heat["lower"].clip(lower=0), 0))
    )
    p = 1 - 2 * float(law.sf(h))
    slack = 6 * math.sqrt(p * (1 - p) / len(heat))
    assert abs(covered - p) < slack
    assert cut - p > slack


@pytest.mark.parametrize("people_in_cell", [0, 1])
def test_smartnoise_264_the_mean_of_a_nearly_empty_cell_stays_within_its_bounds(people_in_cell):
    frame = people([("a", 0.55, 0.55)][:people_in_cell], minutes=[60.0][:people_in_cell])
    means = geodp.mean(
        frame, "minutes", 0.1, value_bounds=(0, 120), subject="rider", cap=1, bounds=UNIT, grid="square:0.1"
    )
    for column in ("mean", "lower", "upper"):
        assert means[column].between(0, 120).all()


def test_smartnoise_622_the_clamped_copy_is_the_one_that_is_summed():
    frame = people([("a", 0.5, 0.5), ("b", 0.5, 0.5)], minutes=[1e300, -1e300])
    with testing.noiseless():
        summed = geodp.sum(
            frame,
            "minutes",
            1.0,
            value_bounds=(-5, 120),
            subject="rider",
            cap=1,
            bounds=UNIT,
            grid="square:1",
        )
    assert summed["noisy_sum"].tolist() == [115]


def test_dp_mobility_report_privcount_global_generators_are_left_alone():
    random.seed(3)
    before, numpys = random.getstate(), np.random.get_state()[1].copy()
    geodp.heatmap(people([("a", 0.5, 0.5)]), 1.0, subject="rider", cap=1, bounds=UNIT, grid="square:0.5")
    assert random.getstate() == before
    assert (np.random.get_state()[1] == numpys).all()


def test_opendp_402_velox_13785_noise_that_would_wrap_is_refused_before_it_costs(tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=1)
    asked = {"subject": "rider", "cap": 10_000, "bounds": UNIT, "grid": "square:0.01", "ledger": ledger}
    with pytest.raises(ValueError, match="steps"):
        geodp.heatmap(people([]), 1e-12, label="one", **asked)
    assert ledger.spent()["eps"] == 0


def test_attribution_77_opendp_2131_a_tenth_is_a_tenth(tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=1.0)
    view = people([]).dp(subject="rider", cap=1, bounds=UNIT, grid="square:0.5", ledger=ledger)
    for i in range(10):
        view.heatmap(0.1, label=f"night {i}")
    assert ledger.remaining()["eps"] == 0
    with pytest.raises(geodp.BudgetExceeded):
        view.heatmap(0.1, label="night 11")


def test_pydp_263_pipelinedp_164_a_refusal_costs_nothing(tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=0.5)
    view = people([]).dp(subject="rider", cap=1, bounds=UNIT, grid="square:0.5", ledger=ledger)
    with pytest.raises(geodp.BudgetExceeded):
        view.heatmap(1, label="too much")
    with pytest.raises(ValueError, match="mechanism"):
        view.heatmap(0.5, label="no such thing", mechanism="uniform")
    assert ledger.releases().empty
    view.heatmap(0.5, label="all of it")
    assert ledger.remaining()["eps"] == 0
