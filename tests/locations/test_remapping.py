"""Back into a public region: a function of the published point, and of nothing else."""

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely import MultiPolygon, Point, Polygon, box

from geodp.locations import perturb
from geodp.policy import EACH_ROW
from geodp.remapping import move_inside, parse_region
from geodp.testing import seeded

CITY = Point(-9.14, 38.74).buffer(0.05)
ISLANDS = MultiPolygon([box(-9.3, 38.6, -9.2, 38.7), box(-9.1, 38.6, -9.0, 38.7)])
FIJI_CUT = MultiPolygon([box(179, -18, 180, -16), box(-180, -18, -179, -16)])
FIJI_BEYOND = box(179, -18, 181, -16)


def people(lon, lat, n=2000):
    return gpd.GeoDataFrame(geometry=gpd.points_from_xy(np.full(n, lon), np.full(n, lat)), crs=4326)


def xy(frame):
    return frame.geometry.x.to_numpy(), frame.geometry.y.to_numpy()


def covered(region, lon, lat):
    return shapely.intersects_xy(region, lon, lat)


@pytest.mark.parametrize("region", [CITY, ISLANDS, CITY.boundary.buffer(0.001)])
def test_every_point_ends_inside(region):
    moved = perturb(people(-9.14, 38.7), 0.3, subject=EACH_ROW, remap=region)
    assert covered(region, *xy(moved)).all()


def test_remapping_is_post_processing_of_the_noised_point():
    with seeded(1):
        plain = perturb(people(-9.14, 38.7), 0.3, subject=EACH_ROW)
    with seeded(1):
        moved = perturb(people(-9.14, 38.7), 0.3, subject=EACH_ROW, remap=CITY)
    again = move_inside(*xy(plain), CITY)
    assert (np.stack(again) == np.stack(xy(moved))).all()
    inside = covered(CITY, *xy(plain))
    assert 0 < inside.sum() < len(inside)
    assert (np.stack(xy(plain))[:, inside] == np.stack(xy(moved))[:, inside]).all()


def test_the_nearest_place_is_taken():
    square = box(0, -1, 2, 1)
    lon, lat = move_inside(np.array([3.0, 1.0, -1.0]), np.array([0.5, 5.0, -3.0]), square)
    np.testing.assert_allclose(lon, [2, 1, 0], atol=3e-5)
    np.testing.assert_allclose(lat, [0.5, 1, -1], atol=3e-5)
    # At 60 degrees a degree of longitude is half one of latitude.
    near, _ = move_inside(
        np.array([1.0]), np.array([60.0]), MultiPolygon([box(-9, 59, 0, 61), box(0.8, 60.7, 3, 61)])
    )
    assert near[0] == pytest.approx(0, abs=3e-5)


@pytest.mark.parametrize("region", [FIJI_CUT, FIJI_BEYOND])
def test_trends_earth_27_a_region_across_the_180th_meridian(region):
    lon, lat = move_inside(
        np.array([178.0, -178.0, 180.0 - 1e-9, -180.0]), np.array([-17.0, -17.0, -17.0, -20.0]), region
    )
    np.testing.assert_allclose(lon, [179, -179, 180, -180], atol=3e-5)
    np.testing.assert_allclose(lat, [-17, -17, -17, -18], atol=3e-5)
    moved = perturb(people(180.0, -17.0), 0.01, subject=EACH_ROW, remap=region)
    assert covered(FIJI_CUT, *xy(moved)).all()


def test_thin_parts_are_still_parts_of_the_region():
    thin = box(0, 0, 1e-6, 1)
    lon, lat = move_inside(np.array([1.0]), np.array([0.5]), thin)
    assert lon[0] == pytest.approx(1e-6, abs=1e-9)
    assert lat[0] == pytest.approx(0.5, abs=1e-6)


def test_null_rows_stay_null():
    frame = gpd.GeoDataFrame(geometry=[None, Point(0, 0)], crs=4326)
    assert perturb(frame, 1, subject=EACH_ROW, remap=CITY).geometry.isna().tolist() == [True, False]


def test_the_digest_names_the_region_whatever_its_spelling():
    series = gpd.GeoSeries([box(-9.3, 38.6, -9.2, 38.7), box(-9.1, 38.6, -9.0, 38.7)], crs=4326)
    spellings = [ISLANDS, series, series[::-1], gpd.GeoDataFrame(geometry=series), series.force_3d()]
    assert len({parse_region(spelling)[1] for spelling in spellings}) == 1
    assert parse_region(CITY)[1] != parse_region(ISLANDS)[1]
    found = perturb(people(0, 0, 1), 1, subject=EACH_ROW, remap=CITY).attrs["geodp"]
    assert found["remap"] == parse_region(CITY)[1]


def test_a_projected_region_is_reprojected():
    projected = gpd.GeoSeries([CITY], crs=4326).to_crs(3763)
    moved = perturb(people(-9.14, 38.7), 0.3, subject=EACH_ROW, remap=projected)
    assert covered(CITY.buffer(1e-9), *xy(moved)).all()


@pytest.mark.parametrize(
    ("remap", "error", "words"),
    [
        (Point(0, 0), TypeError, "polygon"),
        ((0, 0, 1, 1), TypeError, "polygon"),
        (np.array([CITY]), TypeError, "polygon"),
        (gpd.GeoSeries([CITY]), ValueError, "no CRS"),
        (gpd.GeoSeries([Point(0, 0)], crs=4326), ValueError, "area"),
        (gpd.GeoSeries([CITY, None], crs=4326), ValueError, "area"),
        (gpd.GeoSeries([], crs=4326), ValueError, "area"),
        (Polygon(), ValueError, "area"),
        (Polygon([(0, 0), (1, 1), (1, 0), (0, 2)]), ValueError, "invalid"),
    ],
)
def test_what_is_no_region(remap, error, words):
    with pytest.raises(error, match=words):
        perturb(people(0, 0, 1), 1, subject=EACH_ROW, remap=remap)
