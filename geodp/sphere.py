"""Planar Laplace noise on a sphere: the law of the radius, the way to go, and the grid to land on.

Arrays in, arrays out; :mod:`geodp.locations` says what it is for and proves what it promises. The sphere is
an exact model here, not an approximation of the plane: at 0.001 per kilometre the noise reaches around the
Earth, where the planar law's density no longer follows the distance, and grows without limit at the antipode.
"""

import math
import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geodp.bounds import wrap
from geodp.testing import Bits

__all__ = ["RADIUS_KM", "RADIUS_M", "central_angle", "displace", "mean_angle", "snap", "travel", "uniform"]

Floats = NDArray[np.float64]

# Below b²/a of WGS84, the ellipsoid's least radius of curvature: no distance here exceeds the true one.
RADIUS_KM = Fraction("6335.4")
RADIUS_M = 6_335_400.0
_ROUNDS = 60
# Below this loss per radian the start is the uniform law's; only the division must not overflow.
_FLAT = 1e-9


def mean_angle(k: float) -> float:
    """Return the mean central angle of the law with loss ``k`` per radian: 2/k, or pi/2 as k goes to 0."""
    wrapped = math.exp(-k * math.pi)
    top = 2 * k * (1 + wrapped * (1 + k * math.pi)) - math.pi * wrapped * (k * k - 1)
    return top / ((1 + k * k) * (1 + wrapped))


def displace(lon: Floats, lat: Floats, k: float, bits: Bits | None = None) -> tuple[Floats, Floats]:
    """Draw where each point goes, before snapping.

    Parameters
    ----------
    lon, lat : float64 arrays, shape (n,)
        Degrees, longitudes in [-180, 180).
    k : float, at least 0
        Loss per radian: eps per kilometre times :data:`RADIUS_KM`.
    bits : callable or None
        Source of random 64-bit words; ``None`` is the operating system, asked anew at each call.

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        Row i follows from row i and its own random words.
    """
    bits = bits or _system_bits
    tail = uniform(len(lon), bits) / 2
    words = bits(len(lon))
    upper = (words & np.uint64(1)).astype(bool)
    bearing = (words >> np.uint64(1)).astype(np.float64) * (math.pi * 2.0**-62)
    return travel(lon, lat, central_angle(k, tail, upper), bearing - math.pi)


def _system_bits(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def uniform(n: int, bits: Bits, depth: int = 8) -> Floats:
    """Return uniforms in (0, 1] with 53 significant bits however small they are, down to 2^-512.

    A 64-bit word alone ends at 2^-64 and is coarse before that: far away there would be cells that some
    true positions reach and their neighbours do not.
    """
    head = bits(n)
    low = np.full(n, 0.5)
    coarse = np.flatnonzero(head < np.uint64(2**53))
    if depth > 1 and coarse.size:
        low[coarse] = uniform(coarse.size, bits, depth - 1)
    fraction: Floats = (head.astype(np.float64) + low) * 2.0**-64
    return fraction


def travel(lon: Floats, lat: Floats, angle: Floats, bearing: Floats) -> tuple[Floats, Floats]:
    """Solve the direct problem on the sphere, in Cartesian form: as exact at a pole as anywhere.

    Parameters
    ----------
    lon, lat : float64 arrays, shape (n,)
        Degrees. At a pole the longitude is the meridian from which the bearing counts.
    angle, bearing : float64 arrays, shape (n,)
        Radians; the bearing clockwise from north.

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        Degrees, longitudes in [-180, 180).
    """
    phi = np.radians(lat)
    ahead, aside = np.sin(angle) * np.cos(bearing), np.sin(angle) * np.sin(bearing)
    out = np.cos(phi) * np.cos(angle) - np.sin(phi) * ahead
    up = np.sin(phi) * np.cos(angle) + np.cos(phi) * ahead
    turned = np.degrees(np.arctan2(aside, out))
    return wrap(lon + turned), np.degrees(np.arctan2(up, np.hypot(out, aside)))


def central_angle(k: float, tail: Floats, upper: NDArray[np.bool_]) -> Floats:
    """Invert the law of the radius, relatively exact in both tails.

    ``F(t) = (1 - exp(-k t)(k sin t + cos t)) / (1 + exp(-k pi))`` for t from 0 to pi. Past a quarter of the
    Earth it is solved from the antipode, where it is the same law with -k.

    Parameters
    ----------
    k : float, at least 0
        Loss per radian.
    tail : float64 array, shape (n,)
        Probabilities above 0 and at most 1/2.
    upper : bool array, shape (n,)
        Whether ``tail`` is ``1 - F(t)`` instead of ``F(t)``.

    Returns
    -------
    float64 array, shape (n,)
        t in radians.

    Examples
    --------
    >>> central_angle(0.0, np.array([0.5, 0.25]), np.array([False, True])).round(6).tolist()
    [1.570796, 2.094395]
    """
    angle = np.empty_like(tail)
    quarter = (k * math.exp(-k * math.pi / 2) + math.exp(-k * math.pi)) / (1 + math.exp(-k * math.pi))
    beyond = upper & (tail <= quarter)
    middle = upper & ~beyond
    angle[~upper] = _near(k, tail[~upper])
    angle[middle] = _middle(k, tail[middle])
    angle[beyond] = math.pi - _near(-k, tail[beyond])
    return angle


def _near(k: float, p: Floats) -> Floats:
    """Solve F(t) = p for t up to pi/2, k of either sign, by Newton in log F over log t."""
    goal: Floats = np.log(p) + np.logaddexp(0.0, -k * math.pi)
    if k > 0:
        t: Floats = np.minimum(_planar(-np.log1p(-p)) / max(k, _FLAT), 2 * np.arcsin(np.sqrt(p)))
    else:
        flat = np.exp(goal - math.log(2 * (1 + k * k)))
        t = 2 * np.arcsin(np.sqrt(np.minimum(flat, 0.5)))
    for _ in range(_ROUNDS):
        mass = _mass(k, t)
        step = (np.log(mass) - k * t - goal) * mass / ((1 + k * k) * np.sin(t) * t)
        t = t * np.exp(-step)
        if not np.any(np.abs(step) > 1e-9):
            break
    return t


def _middle(k: float, q: Floats) -> Floats:
    """Solve 1 - F(t) = q for the larger half up to pi/2, by Newton in log(1 - F).

    log(1 - F) is concave and the start lies beyond the root, so no step overshoots.
    """
    goal: Floats = np.log(q) + math.log1p(math.exp(-k * math.pi))
    t: Floats = np.minimum(_planar(-np.log(q)) / max(k, _FLAT), 2 * np.arccos(np.sqrt(q)))
    for _ in range(_ROUNDS):
        mass = k * np.sin(t) + np.cos(t) + np.exp(k * (t - math.pi))
        step = (goal + k * t - np.log(mass)) * mass / ((1 + k * k) * np.sin(t))
        t -= step
        if not np.any(np.abs(step) > 1e-9 * t):
            break
    return t


def _planar(u: Floats) -> Floats:
    """Return an upper bound, near the planar law's -1 - W(-exp(-1 - u)), lower branch of Lambert's W.

    Chatzigeorgiou, Bounds on the Lambert function, IEEE Communications Letters 17(8), 2013. The spherical
    radius is stochastically smaller than the planar one, so this bounds it too.
    """
    bound: Floats = np.sqrt(2 * u) + u
    return bound


def _mass(k: float, t: Floats) -> Floats:
    """Return e^(kt) - k sin t - cos t, which is (1 + k²) e^(kt) times the integral of e^(-ks) sin s."""
    scale = max(abs(k), 1.0)
    mass = np.exp(k * t) - k * np.sin(t) - np.cos(t)
    small = scale * t < 1
    # Near 0 three terms cancel down to t²; the Taylor series does not.
    mass[small] = np.polynomial.polynomial.polyval(scale * t[small], _series(k / scale, 1 / scale))
    return mass


def _series(ratio: float, unit: float) -> Floats:
    """Return Taylor coefficients of :func:`_mass` in scale·t: its derivative is k·mass + (1 + k²) sin t."""
    square = ratio * ratio + unit * unit
    derivatives = [0.0, 0.0]
    for n in range(1, 20):
        drive = square * unit ** (n - 1) * (1, 0, -1, 0)[(n - 1) % 4]
        derivatives.append(ratio * derivatives[-1] + drive)
    return np.array([value / math.factorial(n) for n, value in enumerate(derivatives)])


def snap(lon: Floats, lat: Floats, step: float) -> tuple[Floats, Floats]:
    """Return the centres of the points' cells: rings of equal height, each cut into cells about as wide.

    Rings and cuts follow from the step alone, so a coordinate's bits are a function of its cell. Cells are
    as wide in metres at 60 degrees as on the equator, no cell crosses the 180th meridian, and the last
    ring is three cells around the pole.

    Parameters
    ----------
    lon, lat : float64 arrays, shape (n,)
        Degrees, longitudes in [-180, 180).
    step : float
        Metres; cells are at least as high, and at least as wide along their middle.

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        Degrees.

    Examples
    --------
    >>> lon, lat = snap(np.array([-9.1393, -9.1394]), np.array([38.7223, 38.7222]), 1000)
    >>> bool(lon[0] == lon[1]), bool(lat[0] == lat[1])
    (True, True)
    """
    rings = int(math.pi * RADIUS_M / step)
    ring = np.clip(np.floor((lat + 90.0) * (rings / 180.0)), 0, rings - 1)
    centre = (ring + 0.5) * (180.0 / rings) - 90.0
    cells = np.floor(np.cos(np.radians(centre)) * (2 * math.pi * RADIUS_M / step))
    cells = np.maximum(cells, 1.0)
    cell = np.clip(np.floor((lon + 180.0) / 360.0 * cells), 0, cells - 1)
    return (cell + 0.5) / cells * 360.0 - 180.0, centre
