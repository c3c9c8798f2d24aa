"""The public box of a map: typed by hand, never read from rows, ordinary across the 180th meridian.

Inside geodp a box is five facts in doubles: ``west`` in [-180, 180), ``east`` counted on from there
(so it passes 180 where the box crosses the 180th meridian), ``south``, ``north``, and that +180 and
-180 are one place. Wrapping, unwrapping and clamping are exact: a longitude that needs no change
keeps its bits, and a point moved to a border lies on it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.exact import exact
from geodp.wording import brief

__all__ = ["EARTH_RADIUS_KM", "WORLD", "Box", "clamp", "unwrap", "wrap"]

EARTH_RADIUS_KM = 6371.0088  # mean radius: areas and lengths on plan pages
_FOUR = "four numbers in degrees, bounds=(west, south, east, north)"


@dataclass(frozen=True)
class Box:
    """A closed box of longitudes and latitudes; :meth:`parse` is the door.

    Attributes
    ----------
    west : float
        Degrees, in [-180, 180).
    south, north : float
        Degrees, ``-90 <= south <= north <= 90``.
    east : float
        Degrees, in [west, west + 360]; above 180 where the box crosses the 180th meridian. A box
        around the whole circle is always -180 to 180.

    Examples
    --------
    >>> Box.parse((170, -20, -170, 20))
    Box(west=170.0, south=-20.0, east=190.0, north=20.0)
    """

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def parse(cls, bounds: object) -> "Box":
        """Return the box that was typed.

        Parameters
        ----------
        bounds : tuple or list of four numbers
            West, south, east, north in degrees; anything :func:`geodp.exact.exact` takes. West
            greater than east, or east above 180, means across the 180th meridian. A box of no
            width or height is legal: it still holds the cells it lies in.

        Raises
        ------
        TypeError
            ``bounds`` is an array, a Series or an Index (those come out of frames), or no sequence
            of numbers.
        ValueError
            Not four numbers, not finite, out of range, south above north, or wider than 360 degrees.
        """
        if isinstance(bounds, Box):
            return bounds
        numbers = _numbers(bounds)
        south, north = numbers[1], numbers[3]
        if not -90 <= south <= 90 or not -90 <= north <= 90:
            raise ValueError(
                f"bounds={brief(bounds)} has latitudes outside -90 to 90. The order is west, south, east, north."
            )
        if south > north:
            raise ValueError(f"bounds={brief(bounds)} has south above north; type {_FOUR}.")
        west, east = _longitudes(numbers[0], numbers[2], bounds)
        return cls(west, float(south), east, float(north))

    @property
    def is_circle(self) -> bool:
        """Whether the box runs around all longitudes, and so has no west or east border."""
        return self.east - self.west >= 360.0

    @property
    def is_world(self) -> bool:
        """Whether the box is the whole Earth."""
        return self.is_circle and self.south == -90.0 and self.north == 90.0

    @property
    def wraps(self) -> bool:
        """Whether the box crosses the 180th meridian."""
        return self.east > 180.0

    @property
    def east_end(self) -> float:
        """The east border in [-180, 180): the double that was typed, also where the box crosses 180."""
        return self.east if self.east < 180.0 else float(exact(self.east, "east") - 360)

    @property
    def area_km2(self) -> float:
        """Area on the mean sphere, in square kilometres."""
        rise = math.sin(math.radians(self.north)) - math.sin(math.radians(self.south))
        return math.radians(self.east - self.west) * rise * EARTH_RADIUS_KM**2

    @property
    def perimeter_km(self) -> float:
        """Length of the border on the mean sphere, in kilometres; poles and full circles have none."""
        width = math.radians(self.east - self.west)
        flat = sum(width * math.cos(math.radians(lat)) for lat in (self.south, self.north) if abs(lat) < 90)
        upright = 0.0 if self.is_circle else 2 * math.radians(self.north - self.south)
        return (flat + upright) * EARTH_RADIUS_KM

    def centre_words(self) -> str:
        """Return the centre as people say it, so that swapped numbers show.

        Examples
        --------
        >>> Box.parse((-74.3, 40.4, -73.6, 41.0)).centre_words()
        '40.7 N 74.0 W'
        >>> Box.parse((40.4, -74.3, 41.0, -73.6)).centre_words()
        '74.0 S 40.7 E'
        """
        lat = (exact(self.south, "south") + exact(self.north, "north")) / 2
        lon = (exact(self.west, "west") + exact(self.east, "east")) / 2
        lon = lon - 360 if lon > 180 else lon
        return f"{_tenths(lat)} {'N' if lat >= 0 else 'S'} {_tenths(lon)} {'E' if lon >= 0 else 'W'}"

    def to_list(self) -> list[float]:
        """Return west, south, east, north as plain floats for plans and records."""
        return [self.west, self.south, self.east, self.north]


WORLD = Box(-180.0, -90.0, 180.0, 90.0)


def wrap(lon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return longitudes in [-180, 180), the same bits where they already were.

    Parameters
    ----------
    lon : float64 array, shape (n,)
        Finite degrees in any habit: -180 to 180, 0 to 360, or many turns.

    Returns
    -------
    float64 array, shape (n,)
        The input itself where nothing had to change. Every step is exact: no longitude is rounded.

    Examples
    --------
    >>> wrap(np.array([181.62, 180.0, -180.0, -74.0])).tolist()
    [-178.38, -180.0, -180.0, -74.0]
    """
    lon = np.asarray(lon, dtype=np.float64)
    outside = (lon < -180.0) | (lon >= 180.0)
    if not outside.any():
        return lon
    turned = np.fmod(lon[outside], 360.0)
    turned -= np.where(turned >= 180.0, 360.0, 0.0)
    turned += np.where(turned < -180.0, 360.0, 0.0)
    wrapped = lon.copy()
    wrapped[outside] = turned
    return wrapped


def unwrap(lon: NDArray[np.float64], box: Box) -> NDArray[np.float64]:
    """Return longitudes of [-180, 180) counted on from the west of ``box``, to the nearest double.

    Examples
    --------
    >>> unwrap(np.array([175.0, -175.0]), Box.parse((170, -20, -170, 20))).tolist()
    [175.0, 185.0]
    """
    if box.is_circle:
        return lon
    return np.where(lon < box.west, lon + 360.0, lon)


def clamp(
    lon: NDArray[np.float64], lat: NDArray[np.float64], box: Box
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Move points outside ``box`` to its border; longitude and latitude independently.

    Parameters
    ----------
    lon, lat : float64 arrays, shape (n,)
        Finite degrees, longitudes in [-180, 180).

    Returns
    -------
    lon, lat : float64 arrays, shape (n,)
        A longitude goes to the nearer of the two borders, counted around the back of the Earth too;
        ties go west. Values that were inside keep their bits.
    inside : bool array, shape (n,)
        Whether the point itself lay in the closed box.

    Examples
    --------
    >>> box = Box.parse((-75, 40, -73, 41))
    >>> lon, lat, inside = clamp(np.array([-74.0, 100.0]), np.array([50.0, 0.0]), box)
    >>> lon.tolist(), lat.tolist(), inside.tolist()
    ([-74.0, -73.0], [41.0, 40.0], [False, False])
    """
    inside = (lat >= box.south) & (lat <= box.north)
    lat = np.clip(lat, box.south, box.north)
    between = _between(lon, box)
    if between.all():
        return lon, lat, inside
    out = np.flatnonzero(~between)
    far = unwrap(lon[out], box)
    to_west = (box.west + 360.0) - far <= far - box.east
    moved = lon.copy()
    moved[out] = np.where(to_west, box.west, box.east_end)
    return moved, lat, inside & between


def _between(lon: NDArray[np.float64], box: Box) -> NDArray[np.bool_]:
    """Compare with the typed borders themselves; adding 360 to a longitude could round it across one."""
    if box.is_circle:
        return np.ones(lon.shape, dtype=np.bool_)
    if box.east >= 180.0:
        return (lon >= box.west) | (lon <= box.east_end)
    return (lon >= box.west) & (lon <= box.east)


def _numbers(bounds: object) -> list[Fraction]:
    if isinstance(bounds, np.ndarray | pd.Series | pd.Index | pd.DataFrame):
        what = "numpy array" if isinstance(bounds, np.ndarray) else f"pandas {type(bounds).__name__}"
        raise TypeError(
            f"bounds is a {what}. gdf.total_bounds comes from the people in the frame, "
            "and their extreme points would show. Type four numbers: bounds=(west, south, east, north). "
            "A box of public zones: tuple(zones.total_bounds.tolist())."
        )
    if not isinstance(bounds, tuple | list):
        raise TypeError(f"bounds must be {_FOUR}, got {type(bounds).__name__}.")
    if any(isinstance(value, np.generic) for value in bounds):
        raise TypeError(
            "bounds holds numpy numbers, as tuple(gdf.total_bounds) does: the box of the people in the frame "
            "would show their extreme points. Type four numbers: bounds=(west, south, east, north)."
        )
    if len(bounds) != 4:
        raise ValueError(f"bounds must be {_FOUR}, got {len(bounds)} of them.")
    return [exact(value, "bounds") for value in bounds]


def _tenths(degrees: Fraction) -> str:
    return f"{math.floor(abs(degrees) * 10 + Fraction(1, 2)) / 10:.1f}"


def _longitudes(west: Fraction, east: Fraction, bounds: object) -> tuple[float, float]:
    if not -360 <= west <= 360 or not -360 <= east <= 540:
        raise ValueError(f"bounds={brief(bounds)} has longitudes out of range; type {_FOUR}.")
    width = east - west if east >= west else (east - west) % 360
    if width > 360:
        raise ValueError(
            f"bounds={brief(bounds)} is wider than 360 degrees; the whole circle is -180 to 180."
        )
    if width == 360:
        return -180.0, 180.0
    start = (west + 180) % 360 - 180
    return float(start), float(start + width)
