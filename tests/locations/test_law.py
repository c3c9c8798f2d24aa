"""The law of the noise: its inverse, its density, the claim about true distances, and the grid."""

import math

import mpmath as mp
import numpy as np
import pytest
from pyproj import Geod
from scipy.special import lambertw
from scipy.stats import binom

from geodp import sphere
from geodp.sphere import RADIUS_KM, RADIUS_M, central_angle, displace, mean_angle, snap, travel, uniform

WGS84 = Geod(ellps="WGS84")
R_KM = float(RADIUS_KM)
EPS = [1e-9, 1e-4, 3e-4, 1e-3, 0.002, 0.01, 0.05, 1.0, 30.0, 1e3]
TAILS = [2.0**-500, 1e-100, 1e-30, 2.0**-64, 1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.4999, 0.5]

# Exact binomial bounds on every bin of 24 places at most, so together below 1e-7.
FALSE_ALARM = 4e-9


def exact_angle(k, tail, upper, start):
    """Solve the law by Newton with enough digits that nothing cancels."""
    with mp.workdps(60 + 2 * int(-math.log10(tail))):
        k, tail, t = mp.mpf(k), mp.mpf(tail), mp.mpf(start)
        norm = 1 + mp.exp(-k * mp.pi)
        for _ in range(8):
            decay = mp.exp(-k * t)
            body = decay * (k * mp.sin(t) + mp.cos(t))
            value = (body + mp.exp(-k * mp.pi)) / norm if upper else (1 - body) / norm
            slope = (1 + k * k) * decay * mp.sin(t) / norm
            t -= (value - tail) / (-slope if upper else slope)
        return t


def density_of_angle(k, t):
    return (1 + k * k) * np.exp(-k * t) * np.sin(t) / (1 + math.exp(-k * math.pi))


def radius_cdf(k, t):
    return (1 - np.exp(-k * t) * (k * np.sin(t) + np.cos(t))) / (1 + math.exp(-k * math.pi))


def vectors(lon, lat):
    lam, phi = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def sphere_angle(lon, lat, lon2, lat2):
    a, b = vectors(lon, lat), vectors(lon2, lat2)
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))


def seen_from(lon0, lat0, lon, lat):
    """Return central angle and bearing of points, measured in the tangent frame of one place."""
    lam, phi = math.radians(lon0), math.radians(lat0)
    up = vectors(lon0, lat0)
    north = np.array([-math.sin(phi) * math.cos(lam), -math.sin(phi) * math.sin(lam), math.cos(phi)])
    east = np.array([-math.sin(lam), math.cos(lam), 0.0])
    to = vectors(lon, lat)
    ahead, aside = to @ north, to @ east
    return np.arctan2(np.hypot(ahead, aside), to @ up), np.arctan2(aside, ahead)


def off_law(k, angle, bearing, rings=12, sectors=16):
    """Whether some bin holds a count that the law gives with less than FALSE_ALARM, over all bins.

    The bins are rings and sectors of equal probability, and their crossings; counts are binomial.
    """
    ring = np.clip((radius_cdf(k, angle) * rings).astype(int), 0, rings - 1)
    sector = np.clip(((bearing + math.pi) / (2 * math.pi) * sectors).astype(int), 0, sectors - 1)
    all_bins = rings * sectors + rings + sectors
    for number, bins in ((ring, rings), (sector, sectors), (ring * sectors + sector, rings * sectors)):
        counts = np.bincount(number, minlength=bins)
        tails = np.minimum(
            binom.cdf(counts, len(angle), 1 / bins), binom.sf(counts - 1, len(angle), 1 / bins)
        )
        if (tails < FALSE_ALARM / (2 * all_bins)).any():
            return True
    return False


@pytest.mark.parametrize("eps", EPS)
def test_the_inverse_is_exact_in_both_tails(eps):
    k = eps * R_KM
    for upper in (False, True):
        found = central_angle(k, np.array(TAILS), np.full(len(TAILS), upper))
        for tail, angle in zip(TAILS, found.tolist(), strict=True):
            right = exact_angle(k, tail, upper, angle)
            assert abs(angle - right) <= (5e-15 + 3e-16 * -math.log(tail)) * right
            assert abs(angle - right) * RADIUS_M <= 4e-9


def test_the_inverse_is_monotone_and_meets_in_the_middle():
    tail = np.sort(np.random.default_rng(1).uniform(0, 0.5, 20_000))
    for k in (0.0, 1e-300, 0.3, 6.3, 63.0, 6.3e6):
        lower = central_angle(k, tail[1:], np.zeros(len(tail) - 1, bool))
        upper = central_angle(k, tail[1:], np.ones(len(tail) - 1, bool))
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper) <= 0).all()
        half = central_angle(k, np.array([0.5, 0.5]), np.array([False, True]))
        assert half[0] == pytest.approx(half[1], rel=1e-14)


def test_the_limits_are_the_plane_and_the_uniform_sphere():
    p = np.array([1e-6, 0.01, 0.3, 0.5])
    low = np.zeros(4, bool)
    plane = -1 - lambertw((p - 1) / math.e, -1).real
    np.testing.assert_allclose(central_angle(6.3e6, p, low) * 6.3e6, plane, rtol=1e-9)
    np.testing.assert_allclose(central_angle(0.0, p, low), np.arccos(1 - 2 * p), rtol=1e-9)


@pytest.mark.parametrize("eps", [1e-4, 1e-3, 0.01, 1.0])
def test_the_mean_is_the_integral(eps):
    k = eps * R_KM
    points = [0, min(1 / k, 1), min(10 / k, 2), mp.pi]
    right = mp.quad(lambda t: t * (1 + k * k) * mp.exp(-k * t) * mp.sin(t) / (1 + mp.exp(-k * mp.pi)), points)
    assert mean_angle(k) == pytest.approx(float(right), rel=1e-12)


def slope_of_log_density(k, inverse):
    """Return d/dt log(density per area) of an inverse law, at its own quantiles."""
    u = np.linspace(0.02, 0.98, 49)
    step = 1e-4
    t, ahead, back = inverse(k, u), inverse(k, u + step), inverse(k, u - step)
    density = 2 * step / (ahead - back) / np.sin(t)
    return np.diff(np.log(density)) / np.diff(t)


def spherical(k, u):
    return central_angle(k, np.minimum(u, 1 - u), u > 0.5)


def planar(k, u):
    return (-1 - lambertw((u - 1) / math.e, -1).real) / k


@pytest.mark.parametrize("eps", [1e-3, 0.01, 1.0])
def test_the_density_per_area_falls_by_exactly_eps_per_distance(eps):
    k = eps * R_KM
    np.testing.assert_allclose(slope_of_log_density(k, spherical), -k, rtol=2e-3)


def test_the_planar_law_does_not_follow_the_distance():
    k = 1e-3 * R_KM
    assert np.abs(slope_of_log_density(k, planar) / k + 1).max() > 0.02


def test_the_densities_of_two_places_differ_by_eps_times_their_distance_and_no_more():
    rng = np.random.default_rng(2)
    n, k = 50_000, 6.3354
    lon, lat = rng.uniform(-180, 180, (3, n)), np.degrees(np.arcsin(rng.uniform(-1, 1, (3, n))))
    loss = k * (sphere_angle(lon[1], lat[1], lon[2], lat[2]) - sphere_angle(lon[0], lat[0], lon[2], lat[2]))
    apart = k * sphere_angle(lon[0], lat[0], lon[1], lat[1])
    assert (np.abs(loss) <= apart + 1e-12).all()
    # Attained by outputs behind one of the two places.
    ahead = travel(np.zeros(3), np.full(3, 40.0), np.array([0.1, 0.2, 0.5]), np.full(3, 1.0))
    angles = sphere_angle(0.0, 40.0, *ahead)
    between = sphere_angle(ahead[0][1], ahead[1][1], ahead[0][2], ahead[1][2])
    assert k * (angles[2] - between) == pytest.approx(k * angles[1], rel=1e-12)


def pairs_of_places():
    rng = np.random.default_rng(3)
    n = 40_000
    lon, lat = rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    near = 10.0 ** rng.uniform(-6, 0.5, n)
    turn = rng.uniform(0, 2 * math.pi, n)
    lon2, lat2 = travel(lon, lat, np.radians(near), turn)
    equator = np.zeros(1000), np.linspace(-1e-4, -5, 1000), np.zeros(1000), np.linspace(1e-4, 5, 1000)
    poles = np.zeros(1000), np.full(1000, 90.0), rng.uniform(-180, 180, 1000), np.linspace(89.999, -90, 1000)
    antipodes = lon[:500], lat[:500], lon[:500] + 179.7, -lat[:500]
    far = lon, lat, lon[::-1], lat[::-1]
    return [
        np.concatenate(part)
        for part in zip((lon, lat, lon2, lat2), equator, poles, antipodes, far, strict=True)
    ]


def test_no_distance_on_the_sphere_exceeds_the_true_one():
    lon, lat, lon2, lat2 = pairs_of_places()
    true = WGS84.inv(lon, lat, lon2, lat2)[2]
    ratio = RADIUS_M * sphere_angle(lon, lat, lon2, lat2)[true > 1] / true[true > 1]
    assert ratio.max() < 1
    assert ratio.max() > 0.99998  # north to south across the equator nothing is given away
    assert ratio.min() > 0.989
    assert ratio.max() * 6371.0088 / R_KM > 1  # the mean radius would break the claim


def test_the_radius_is_below_every_radius_of_curvature():
    a, b = WGS84.a, WGS84.b
    lat = np.radians(np.linspace(-90, 90, 100_001))
    across = a * a / np.hypot(a * np.cos(lat), b * np.sin(lat))
    along = (a * b) ** 2 / np.hypot(a * np.cos(lat), b * np.sin(lat)) ** 3
    assert RADIUS_KM * 1000 == RADIUS_M < along.min() < across.min()
    assert along.min() == pytest.approx(b * b / a)
    assert max(across.max(), along.max()) / RADIUS_M < 1.0102


PLACES = [
    (0.0, 0.0), (-9.14, 38.7), (25.0, 85.0), (0.0, 90.0), (77.0, -90.0), (-180.0, -16.9), (179.9999, 60.0)
]  # fmt: skip


@pytest.mark.sampled(rate=4e-9)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("eps", [1e-4, 1e-3, 1.0])
def test_radius_and_bearing_follow_the_law_everywhere(place, eps):
    n, k = 100_000, eps * R_KM
    moved = displace(np.full(n, place[0]), np.full(n, place[1]), k)
    assert (moved[0] >= -180).all()
    assert (moved[0] < 180).all()
    assert (np.abs(moved[1]) <= 90).all()
    assert not off_law(k, *seen_from(*place, *moved))


def words(seed):
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)


def test_the_law_test_sees_a_planar_radius():
    n, k = 100_000, 1e-4 * R_KM
    rng = np.random.default_rng(4)
    moved = travel(np.zeros(n), np.zeros(n), planar(k, rng.random(n)), rng.uniform(-math.pi, math.pi, n))
    assert off_law(k, *seen_from(0.0, 0.0, *moved))


def test_the_law_test_sees_longitudes_that_forget_the_latitude():
    n, k = 100_000, R_KM
    lon, lat = displace(np.zeros(n), np.zeros(n), k, words(5))
    assert off_law(k, *seen_from(0.0, 85.0, lon, lat + 85.0))


def test_the_law_test_sees_a_wrong_eps():
    n, k = 100_000, R_KM
    moved = displace(np.zeros(n), np.full(n, 38.7), k * 1.05, words(6))
    assert off_law(k, *seen_from(0.0, 38.7, *moved))


def exact_draw(k, lon, lat, u, word):
    """Return the real-valued draw that the bits begin, as a vector, with 50 digits."""
    tail, upper = u / 2, bool(word & 1)
    start = central_angle(k, np.array([float(tail)]), np.array([upper]))[0]
    with mp.workdps(50):
        t = exact_angle(k, tail, upper, start)
        bearing = (mp.mpf(word >> 1) / 2**62 - 1) * mp.pi
        lam, phi = mp.radians(mp.mpf(lon)), mp.radians(mp.mpf(lat))
        ahead, aside = mp.sin(t) * mp.cos(bearing), mp.sin(t) * mp.sin(bearing)
        out = mp.cos(phi) * mp.cos(t) - mp.sin(phi) * ahead
        up = mp.sin(phi) * mp.cos(t) + mp.cos(phi) * ahead
        turned = lam + mp.atan2(aside, out)
        flat = mp.hypot(out, aside)
        return flat * mp.cos(turned), flat * mp.sin(turned), up


@pytest.mark.parametrize("eps", [1e-4, 1e-3, 1.0, 1e3])
def test_a_drawn_position_is_within_ten_nanometres_of_the_real_valued_one(eps):
    k, n = eps * R_KM, 25
    lat = np.resize([0.0, 38.7, 85.0, 90.0, -89.9999999], n)
    lon = np.random.default_rng(7).uniform(-180, 180, n)
    head, last = words(8)(n) | np.uint64(2**54), words(9)(n)
    supply = iter([head, last])
    moved = displace(lon, lat, k, lambda _: next(supply))
    for i in range(n):
        with mp.workdps(50):
            u = (mp.mpf(int(head[i])) + mp.mpf(0.7)) / 2**64
            right = exact_draw(k, lon[i], lat[i], u, int(last[i]))
            lam, phi = mp.radians(mp.mpf(moved[0][i])), mp.radians(mp.mpf(moved[1][i]))
            found = mp.cos(phi) * mp.cos(lam), mp.cos(phi) * mp.sin(lam), mp.sin(phi)
            assert mp.norm([p - q for p, q in zip(found, right, strict=True)]) * RADIUS_M < 1e-8


def test_uniforms_keep_their_digits_however_small_they_are():
    assert uniform(1, lambda n: np.zeros(n, np.uint64))[0] == 2.0**-513
    assert uniform(1, lambda n: np.full(n, 2**64 - 1, np.uint64))[0] == 1.0
    supply = iter([np.array([5], np.uint64), np.array([2**63], np.uint64)])
    assert uniform(1, lambda _: next(supply))[0] == 5.5 * 2.0**-64
    supply = iter([np.array([0, 2**60], np.uint64), np.array([2**63], np.uint64)])
    assert uniform(2, lambda _: next(supply)).tolist() == [2.0**-65, (2.0**60 + 0.5) * 2.0**-64]


@pytest.mark.sampled(rate=1e-8)
def test_uniforms_are_uniform_on_a_logarithmic_scale():
    # P(u < 2^-j) = 2^-j for j = 1..12, exact binomial, together below 1e-8; catches a lost tail.
    n = 200_000
    u = uniform(n, sphere._system_bits)
    for j in range(1, 13):
        below = int((u < 2.0**-j).sum())
        assert min(binom.cdf(below, n, 2.0**-j), binom.sf(below - 1, n, 2.0**-j)) > 4e-10


def on_grid(lon, lat, step):
    """Recompute the coordinates from cell numbers alone, as the documentation describes the grid."""
    rings = int(math.pi * RADIUS_M / step)
    ring = np.rint((lat + 90) * (rings / 180) - 0.5)
    centre = (ring + 0.5) * (180 / rings) - 90
    cells = np.maximum(np.floor(np.cos(np.radians(centre)) * (2 * math.pi * RADIUS_M / step)), 1)
    cell = np.rint((lon + 180) / 360 * cells - 0.5)
    return (cell + 0.5) / cells * 360 - 180, centre


@pytest.mark.parametrize("step", [1.0, 7.3, 1000.0, 100_000.0])
def test_outputs_are_functions_of_their_cell(step):
    rng = np.random.default_rng(10)
    lon, lat = rng.uniform(-180, 180, 20_000), np.degrees(np.arcsin(rng.uniform(-1, 1, 20_000)))
    lat[:4], lon[:4] = [90, -90, 89.9999999, 0], [0, -180, 179.9999999, -180]
    once = snap(lon, lat, step)
    for again in (snap(*once, step), on_grid(*once, step)):
        assert (again[0] == once[0]).all()
        assert (again[1] == once[1]).all()
    assert (np.abs(once[0]) < 180).all()
    assert (np.abs(once[1]) < 90).all()
    away = RADIUS_M * sphere_angle(lon, lat, *once)
    assert away.max() < 0.8 * step


@pytest.mark.sampled(rate=1e-12)
def test_inputs_reach_the_same_coordinates_bit_for_bit():
    # Two true places, 1 km apart, on a grid of 10 km: whatever cell both reach has one spelling.
    n, step = 50_000, 10_000.0
    cells = []
    for lat0 in (38.7, 38.709):
        lon, lat = snap(*displace(np.full(n, -9.14), np.full(n, lat0), 0.1 * R_KM), step)
        cells.append({*zip(lon.tolist(), lat.tolist(), strict=True)})
    rounded = [{(round(x, 6), round(y, 6)) for x, y in found} for found in cells]
    assert len(cells[0] & cells[1]) == len(rounded[0] & rounded[1]) > 40
    assert len(cells[0] | cells[1]) == len(rounded[0] | rounded[1])


@pytest.mark.parametrize("lat", [0.0, 38.7, 60.0, 85.0, -89.9])
def test_cells_are_square_in_true_metres(lat):
    step = 100.0
    lon0, lat0 = snap(np.array([179.999]), np.array([lat]), step)
    north = snap(lon0, lat0 + np.degrees(step / RADIUS_M), step)[1]
    wide = np.degrees(step / RADIUS_M / math.cos(math.radians(lat0[0]))) * 1.01
    east = snap(lon0 - wide, lat0, step)[0]
    height = WGS84.inv(lon0, lat0, lon0, north)[2][0]
    width = WGS84.inv(lon0, lat0, east, lat0)[2][0]
    assert step <= height < 1.02 * step
    assert step <= width < 1.03 * step


def test_the_grid_goes_on_across_the_180th_meridian_and_closes_at_the_poles():
    lon, lat = snap(np.array([179.9999999, -179.9999999]), np.array([0.0, 0.0]), 1000.0)
    assert lon[0] == pytest.approx(-lon[1], abs=1e-12)
    assert WGS84.inv(lon[0], lat[0], lon[1], lat[1])[2] == pytest.approx(1000, rel=0.02)
    around = snap(np.linspace(-180, 179, 500), np.full(500, 89.9999), 1000.0)
    assert len(set(around[0].tolist())) == 3
