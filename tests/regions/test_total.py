"""Totals of regions: which cells, what sum, which interval, and what is refused."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import geodp
from geodp import testing
from geodp.convolved import NoiseSum

BOX = (0.0, 0.0, 4.0, 4.0)


@pytest.fixture
def points():
    rng = np.random.default_rng(11)
    n = 300
    return gpd.GeoDataFrame(
        {
            "rider": [f"r{i}" for i in range(n)],
            "minutes": rng.uniform(0, 60, n).round(),
            "hour": rng.integers(0, 4, n),
        },
        geometry=gpd.points_from_xy(rng.uniform(0, 4, n), rng.uniform(0, 4, n)),
        crs=4326,
    )


def middles(heat):
    return shapely.get_x(shapely.centroid(np.asarray(heat.geometry.array)))


@pytest.fixture
def view(points):
    return points.dp(subject="rider", cap=1, bounds=BOX, grid="square:1")


def test_without_noise_the_total_is_the_number_of_people(view, points):
    with testing.noiseless():
        heat = view.heatmap(1)
    west = points.geometry.x < 2
    assert geodp.total(heat, (0, 0, 2, 4)).value == int(west.sum())
    assert geodp.total(heat, BOX).value == 300
    assert geodp.total(heat, BOX).n_cells == 16


def test_value_and_interval_of_cells_counts(view):
    heat = view.heatmap(1)
    found = geodp.total(heat, (0, 0, 2, 4), level=0.9)
    chosen = heat[heat.geometry.centroid.x.to_numpy() < 2] if False else heat[middles(heat) < 2]
    assert found.value == int(chosen["noisy_count"].sum())
    assert isinstance(found.value, int)
    h = NoiseSum(geodp.mechanisms.DiscreteLaplace(1.0), ((1, 8),)).halfwidth(0.9)
    assert (found.lower, found.upper) == (found.value - h, found.value + h)
    assert (found.level, found.column, found.n_cells) == (0.9, "noisy_count", 8)
    assert found.std == pytest.approx(heat.attrs["geodp"]["std"] * 8**0.5)


def test_one_cell_has_its_own_interval(view):
    heat = view.heatmap(1, 1e-6)
    for cell in heat.index[:3]:
        found = geodp.total(heat, [cell])
        assert (found.value, found.lower, found.upper) == tuple(
            heat.loc[cell, ["noisy_count", "lower", "upper"]]
        )


def regions():
    square = shapely.box(0, 0, 2, 4)
    return {
        "polygon": square,
        "box": (0, 0, 2, 4),
        "list of numpy": tuple(np.float64(x) for x in (0, 0, 2, 4)),
        "series": gpd.GeoSeries([square], crs=4326),
        "metres": gpd.GeoSeries([square], crs=4326).to_crs(3857),
        "frame in two parts": gpd.GeoDataFrame(
            {"a": [1, 2, 3]}, geometry=[shapely.box(0, 0, 1, 4), None, shapely.box(1, 0, 2, 4)], crs=4326
        ),
        "overlapping": gpd.GeoSeries([square, square], crs=4326),
        "beyond the box": shapely.box(-20, -10, 2, 50),
        "with Z": shapely.force_3d(square),
    }


@pytest.mark.parametrize("kind", regions())
@pytest.mark.parametrize("partial", ["centre", "area"])
def test_the_same_region_in_every_form(view, kind, partial):
    heat = view.heatmap(1)
    expected = geodp.total(heat, heat.index[middles(heat) < 2])
    assert geodp.total(heat, regions()[kind], partial=partial) == expected


def test_ids_and_masks(view):
    heat = view.heatmap(1)
    ids = heat.index[[0, 5, 7]]
    mask = heat.index.isin(ids)
    wanted = geodp.total(heat, ids)
    for region in (list(ids), set(ids), ids.to_numpy(), mask, pd.Series(mask, heat.index), mask.tolist()):
        assert geodp.total(heat, region) == wanted
    assert wanted.value == int(heat.loc[ids, "noisy_count"].sum())


def test_partial_cells_by_area(view):
    with testing.noiseless():
        heat = view.heatmap(1)
    whole = heat["noisy_count"]
    x = middles(heat)
    found = geodp.total(heat, (0, 0, 1.25, 4), partial="area")
    assert found.value == pytest.approx(whole[x < 1].sum() + whole[(x > 1) & (x < 2)].sum() / 4)
    assert found.n_cells == 8
    assert geodp.total(heat, (0, 0, 1.25, 4)).n_cells == 4
    noise = heat.attrs["geodp"]["std"] * (4 + 4 / 16) ** 0.5
    assert found.std == pytest.approx(noise)
    with pytest.raises(ValueError, match='partial="area"'):
        geodp.total(heat, (0.1, 0.1, 0.2, 0.2))
    assert geodp.total(heat, (0.1, 0.1, 0.6, 0.6), partial="area").value == pytest.approx(whole.iloc[0] / 4)


def test_shares_are_of_the_area_on_the_sphere(points):
    heat = points.dp.heatmap(1, subject="rider", cap=1, bounds=(0, 0, 90, 90), grid="square:90")
    # Half of the area of an octant lies below 30 degrees.
    found = geodp.total(heat, (0, 0, 90, 30), partial="area")
    assert found.value == pytest.approx(heat["noisy_count"].iloc[0] / 2)


def test_slots(view, points):
    with testing.noiseless():
        heat = view.heatmap(1, by={"hour": range(4)})
    assert geodp.total(heat, BOX).value == 300
    assert geodp.total(heat, BOX, slots={"hour": 2}).value == int((points["hour"] == 2).sum())
    morning = geodp.total(heat, (0, 0, 2, 4), slots={"hour": [0, 1]})
    assert morning.value == int(((points["hour"] < 2) & (points.geometry.x < 2)).sum())
    assert (morning.n_cells, morning.std) == (8, pytest.approx(heat.attrs["geodp"]["std"] * 4))
    rows = heat.index[:3]
    assert geodp.total(heat, rows).value == int(heat.loc[rows, "noisy_count"].sum())
    for wrong in ({"hour": 9}, {"day": 1}, {"hour": "2"}):
        with pytest.raises(ValueError, match="slots"):
            geodp.total(heat, BOX, slots=wrong)


def test_sums_are_in_their_unit(view, points):
    with testing.noiseless():
        sums = view.sum("minutes", 1, value_bounds=(0, 60))
    found = geodp.total(sums, BOX)
    assert found.value == points["minutes"].sum()
    assert found.column == "noisy_sum"
    assert found.std == pytest.approx(sums.attrs["geodp"]["std"] * 4)


def test_means_offer_their_counts(view):
    with testing.noiseless():
        means = view.mean("minutes", 1, value_bounds=(0, 60))
    assert geodp.total(means, BOX).value == 300
    with pytest.raises(ValueError, match="noisy_count"):
        geodp.total(means, BOX, column="noisy_sum")


def test_weighted_counts(points):
    view = points.assign(rider="one").dp(
        subject="rider", cap=4, contribution="weighted", bounds=BOX, grid="square:1"
    )
    with testing.noiseless():
        heat = view.heatmap(1, 1e-6)
    assert geodp.total(heat, BOX).value == 16 * 32 / 64
    assert geodp.total(heat, BOX).column == "noisy_weighted_count"


def test_levels_use_the_cells_own_noise(points):
    heat = points.dp.heatmap(
        1,
        1e-6,
        subject="rider",
        cap=4,
        bounds=BOX,
        grid="square:0.05",
        strategy="levels",
        mechanism="gaussian",
    )
    assert len(heat.attrs["geodp"]["measurements"]) > 1
    found = geodp.total(heat, BOX)
    assert found.value == int(heat["noisy_count"].sum())
    assert found.std == pytest.approx(heat.attrs["geodp"]["std"] * len(heat) ** 0.5)


def test_centroids_offer_their_counts_by_ids(view):
    spots = view.centroid(1)
    ids = spots.index[:4]
    assert geodp.total(spots, ids).value == int(spots.loc[ids, "noisy_count"].sum())
    with pytest.raises(ValueError, match="noisy points"):
        geodp.total(spots, BOX)
    with pytest.raises(geodp.NotARelease, match="no measured counts"):
        geodp.total(view.centroid(1, grid="box", n=300), ["box"])


def test_zones_keep_their_keys(points):
    squares = [shapely.box(i, 0, i + 1, 4) for i in range(4)]
    zones = geodp.Zones(gpd.GeoDataFrame({"zone": [4, 3, 2, 1]}, geometry=squares, crs=4326), "zone")
    heat = points.dp.heatmap(1, subject="rider", cap=1, grid=zones)
    # A list names zones, a tuple of four numbers is a box.
    assert geodp.total(heat, [1, 2, 3, 4]).n_cells == 4
    assert geodp.total(heat, [3, 4]) == geodp.total(heat, (0, 0, 2, 4))


@pytest.mark.parametrize(
    "region",
    [
        (179, -18, -179, -16),
        (179, -18, 181, -16),
        shapely.box(179, -18, 181, -16),
        shapely.Polygon([(179, -18), (-179, -18), (-179, -16), (179, -16)]),
        gpd.GeoSeries([shapely.box(179, -18, 180, -16), shapely.box(-180, -18, -179, -16)], crs=4326),
    ],
    ids=["west above east", "east above 180", "polygon beyond 180", "polygon that jumps", "two halves"],
)
def test_regions_across_the_180th_meridian(points, region):
    box = (178, -19, -178, -15)
    for grid, n in (("square:1", 4), ("h3:3", None)):
        heat = points.dp.heatmap(1, subject="rider", cap=1, bounds=box, grid=grid)
        found = geodp.total(heat, region)
        assert n is None or found.n_cells == n
        assert found == geodp.total(heat, (179, -18, 181, -16))
        assert geodp.total(heat, region, partial="area").n_cells >= found.n_cells


def test_reading_back_from_a_file_changes_nothing(view, tmp_path):
    heat = view.heatmap(1, by={"hour": range(4)})
    heat.to_parquet(tmp_path / "heat.parquet")
    assert geodp.total(gpd.read_parquet(tmp_path / "heat.parquet"), (0, 0, 2, 4)) == geodp.total(
        heat, (0, 0, 2, 4)
    )


def test_it_prints_itself(view):
    heat = view.heatmap(1)
    text = str(geodp.total(heat, BOX))
    assert "at 95 %), noisy_count over 16 cells: distinct riders, each in at most 1 cell" in text
    with testing.seeded(1):
        heat = view.heatmap(1)
    assert str(geodp.total(heat, BOX)).startswith("NOT PRIVATE (seeded (test)): ")


def test_a_total_is_frozen(view):
    found = geodp.total(view.heatmap(1), BOX)
    with pytest.raises(AttributeError):
        found.value = 0


WRONG = {
    "no crs": (gpd.GeoSeries([shapely.box(0, 0, 1, 1)]), ValueError, "no CRS"),
    "line": (shapely.LineString([(0, 0), (1, 1)]), TypeError, "polygons"),
    "metres without a CRS": (shapely.box(0, 0, 100_000, 100_000), ValueError, "degrees"),
    "unknown id": (["nowhere"], ValueError, "no cell of the release"),
    "id twice": (["a", "a"], ValueError, "twice"),
    "text": ("nowhere", TypeError, "a region is"),
    "number": (7, TypeError, "a region is"),
    "frame": (pd.DataFrame(), TypeError, "a region is"),
    "short mask": (np.array([True, False]), ValueError, "mask has 2 values"),
    "elsewhere": ((50, 50, 51, 51), ValueError, "no cell of the release"),
    "nothing": ([], ValueError, "no cell of the release"),
    "no polygons": (gpd.GeoSeries([], crs=4326), ValueError, "empty"),
    "three numbers": ((0, 2, 1), ValueError, "no cell of the release"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_regions(view, kind):
    region, error, words = WRONG[kind]
    with pytest.raises(error, match=words):
        geodp.total(view.heatmap(1), region)


@pytest.mark.parametrize(
    "wrong",
    [
        {"partial": "touch"},
        {"level": 1},
        {"level": 0},
        {"level": 1 - 1e-12},
        {"column": "count"},
        {"level": "x"},
    ],
)
def test_wrong_arguments(view, wrong):
    with pytest.raises(ValueError, match="must be"):
        geodp.total(view.heatmap(1), BOX, **wrong)


def test_masks_of_another_frame_are_refused(view):
    heat = view.heatmap(1)
    mask = pd.Series(True, index=heat.index[::-1])
    with pytest.raises(ValueError, match="reindex"):
        geodp.total(heat, mask)


def test_only_releases_have_totals(view):
    heat = view.heatmap(1)
    for changed in (heat.iloc[1:], heat.assign(x=1), pd.DataFrame(heat)):
        changed.attrs.setdefault("geodp", heat.attrs["geodp"])
        if changed.shape == heat.shape:
            continue
        with pytest.raises(geodp.NotARelease):
            geodp.total(changed, BOX)
    bare = view.heatmap(1, return_geometry=False)
    with pytest.raises(ValueError, match="return_geometry"):
        geodp.total(bare, BOX)
    assert geodp.total(bare, bare.index).n_cells == 16


def test_moved_points_have_no_totals(points):
    moved = points.dp.perturb(eps_per_km=1, subject="rider", max_reports=1)
    with pytest.raises(geodp.NotARelease, match="points"):
        geodp.total(moved, BOX)
