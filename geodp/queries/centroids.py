"""Noisy centroids: the mean place of the people in each zone, cell or box, measured inside its own box."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.estimators import estimate, to_integers
from geodp.estimators.ratios import fieller, shrunk_ratio
from geodp.exact import whole
from geodp.grids.whole import Whole
from geodp.lattice import add_up
from geodp.queries.base import Floats, Ints, Layout, Quantity, Query, Rows
from geodp.queries.means import shares
from geodp.queries.sums import chosen_pairs
from geodp.sensitivity import Norms, counts
from geodp.wording import at_most

if TYPE_CHECKING:
    from geodp.grids import Domain, Grid
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Centroid", "Frames", "frames"]

_J = 20
_UNIT = 1 << _J
# Metres on the ground are never more: the ellipsoid is flattest, and its degrees longest, at the poles.
_METRES_PER_DEGREE = 111_694.0
_FARTHEST = 20_004_000.0
_NARROWEST = 1e-3
# Halves of what runs around a pole are drawn a hair apart.
_HAIR = 1e-6


@dataclass(frozen=True)
class Centroid(Query):
    """The mean place per key.

    Each record is a vector from the middle of its cell's box, over the box's half-diagonal, so its length
    is at most 1 whatever the place. The centroid is the middle plus the noisy sum over the noisy count.

    Parameters
    ----------
    n : int, optional
        Public number of people, for one cell over a box with one point a subject: the sum is divided by
        it, and no budget goes into a count.

    Examples
    --------
    >>> Centroid(n=500).to_dict()
    {'query': 'centroid', 'n': 500}
    """

    word: ClassVar[str] = "centroid"
    n: int | None = None

    @property
    def takes_all_keys(self) -> bool:
        """Only keys of the sample count."""
        return False

    def __post_init__(self) -> None:
        if self.n is not None:
            whole(self.n, "n", 1)

    def default_grid(self) -> "Grid":
        """Return the box as one cell."""
        return Whole()

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the places, and the counts unless their number is public."""
        policy, n_keys = layout.policy, layout.n_keys
        self._check_fixed(layout)
        places = self._norms(layout)
        step = Fraction(1, _UNIT)
        if self.n is not None:
            return (Quantity("place", 2 * n_keys, places, step),)
        of_place, of_count = shares(mechanism, axes=2)
        norms = counts(policy.cap, policy.rows_per_cell, n_keys, policy.neighboring)
        return (
            Quantity("count", n_keys, norms, share=of_count),
            Quantity("place", 2 * n_keys, places, step, of_place),
        )

    def integers(self, values: Floats | None, lon: Floats, lat: Floats, cell: Ints, domain: "Domain") -> Ints:
        """Return east and north of the middle, rounded toward zero to steps of the half-diagonal."""
        local = frames(domain)
        east, north = lon - local.lon[cell], lat - local.lat[cell]
        far = np.flatnonzero(np.abs(east) > 180)
        east[far] = np.mod(east[far] + 180, 360) - 180
        half_width, half_height = (local.width / 2)[cell], (local.height / 2)[cell]
        east = np.clip(east, -half_width, half_width) * local.shrink[cell]
        north = np.clip(north, -half_height, half_height)
        scale = (_UNIT / local.radius)[cell]
        steps = np.trunc(np.column_stack([east * scale, north * scale])).astype(np.int64)
        return _within_unit(steps)

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Add up places and rows over the same sampled rows."""
        pairs, sums = chosen_pairs(rows, layout, secret)
        places = np.column_stack([add_up(pairs.key, column, layout.n_keys) for column in sums.T])
        return {"count": add_up(pairs.key, pairs.rows, layout.n_keys), "place": places.ravel()}

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return the points, their error, and the counts behind them."""
        places = noisy["place"].reshape(-1, 2)
        if self.n is None:
            ratios, reach, counted = self._of_counts(plan, places, noisy["count"])
        else:
            ratios, reach, counted = self._of_public_number(plan, places)
        return {**counted, **self._on_the_ground(plan, ratios, reach)}

    def geometry(self, layout: Layout, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.object_]:
        """Return the noisy centroids as points."""
        return np.asarray(shapely.points(columns["lon"], columns["lat"]), dtype=object)

    def counted(self, policy: "Policy") -> str:
        """Say whose mean place it is."""
        return f"mean place of {policy.unit}s, each in at most {at_most(policy.cap)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON.

        Returns
        -------
        dict
            The word of the query and its arguments, as the record has them.
        """
        return {"query": self.word, "n": self.n}

    def _check_fixed(self, layout: Layout) -> None:
        policy = layout.policy
        if self.n is not None and (layout.n_keys, policy.cap, policy.rows_per_cell) != (1, 1, 1):
            raise ValueError(
                "n= is for one centroid over a box with one point of each subject: leave grid and by out, and "
                "set cap=1. Elsewhere the number of people is measured too."
            )

    def _norms(self, layout: Layout) -> Norms:
        """A subject adds at most c' vectors of length m: L2² = m²c', and L1 is c'm times that of a diagonal."""
        policy = layout.policy
        keys = min(policy.cap, layout.n_keys)
        l1 = keys * policy.rows_per_cell * math.isqrt(2 * _UNIT**2)
        l2_squared = keys * policy.rows_per_cell**2 * _UNIT**2
        twice = 2 if policy.neighboring == "replace_one" else 1
        return Norms(Fraction(twice * l1), Fraction(twice**2 * l2_squared))

    def _of_counts(
        self, plan: "Plan", places: Ints, measured: Ints
    ) -> tuple[Floats, Floats, dict[str, NDArray[Any]]]:
        count, place = plan.measurements
        hierarchy = plan.layout.hierarchy()
        smooth = estimate(measured, count.law, plan.estimator, hierarchy)
        ratios, reach = np.empty(places.shape), np.empty(places.shape)
        for axis in (0, 1):
            steps = places[:, axis]
            std = place.law.std / _UNIT
            ratios[:, axis] = shrunk_ratio(
                steps / _UNIT, measured, smooth, std, count.law.std, 1.0, overall=0.0
            )
            # Both axes at 97.5 % hold together at 95 %.
            low, high = fieller(steps, measured, place.law, count.law, 1 / _UNIT, 1.0, level=0.975)
            reach[:, axis] = np.maximum(high - ratios[:, axis], ratios[:, axis] - low)
        return ratios, reach, {"count": to_integers(smooth, hierarchy.order), "noisy_count": measured}

    def _of_public_number(self, plan: "Plan", places: Ints) -> tuple[Floats, Floats, dict[str, NDArray[Any]]]:
        assert self.n is not None
        (place,) = plan.measurements
        ratios = np.clip(places / (_UNIT * self.n), -1, 1)
        # And a step for the rounding of records.
        reach = np.full(places.shape, (place.law.halfwidth(0.975) / self.n + 1) / _UNIT)
        return ratios, reach, {}

    def _on_the_ground(self, plan: "Plan", ratios: Floats, reach: Floats) -> dict[str, NDArray[Any]]:
        """Return places within their boxes, and the metres that ``reach`` is at most, there and on the way."""
        local = frames(plan.layout.domain).repeated(plan.layout.n_slots)
        lon = np.clip(local.lon + ratios[:, 0] * local.radius / local.shrink, local.west, local.east)
        lat = np.clip(local.lat + ratios[:, 1] * local.radius, local.south, local.north)
        north = np.minimum(reach[:, 1] * local.radius, np.maximum(lat - local.south, local.north - lat))
        east = np.minimum(
            reach[:, 0] * local.radius / local.shrink, np.maximum(lon - local.west, local.east - lon)
        )
        south_end, north_end = np.maximum(lat - north, local.south), np.minimum(lat + north, local.north)
        widest = np.cos(np.radians(np.maximum(0, np.maximum(south_end, -north_end))))
        metres = np.hypot(east * widest, north) * _METRES_PER_DEGREE
        turned = np.where(lon > 180, np.minimum(lon - 360, local.end), lon)
        return {"lon": turned, "lat": lat, "error_m": np.minimum(metres, _FARTHEST)}


@dataclass(frozen=True)
class Frames:
    """The box of each cell, as a local plane: degrees of latitude, eastward shrunk to them.

    Attributes
    ----------
    west, south, east, north : float64 arrays
        The box in degrees; east is above 180 where the cell crosses the 180th meridian.
    end : float64 array
        ``east`` in [-180, 180], as the outline has it.
    """

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    end: Floats

    @cached_property
    def lon(self) -> Floats:
        """Middle of the box, in degrees east."""
        return (self.west + self.east) / 2

    @cached_property
    def lat(self) -> Floats:
        """Middle of the box, in degrees north."""
        return (self.south + self.north) / 2

    @cached_property
    def width(self) -> Floats:
        """Degrees of longitude."""
        return self.east - self.west

    @cached_property
    def height(self) -> Floats:
        """Degrees of latitude."""
        return self.north - self.south

    @cached_property
    def shrink(self) -> Floats:
        """Length of a degree of longitude in the middle, in degrees of latitude."""
        return np.maximum(np.cos(np.radians(self.lat)), _NARROWEST)

    @cached_property
    def radius(self) -> Floats:
        """Half-diagonal, in degrees of latitude."""
        return np.maximum(np.hypot(self.width * self.shrink, self.height) / 2, 1e-12)

    def repeated(self, times: int) -> "Frames":
        """Return every cell's frame ``times`` times, for its slots."""
        box = (self.west, self.south, self.east, self.north, self.end)
        return Frames(*(np.repeat(side, times) for side in box))


@lru_cache(maxsize=4)
def frames(domain: "Domain") -> Frames:
    """Return the local plane of each cell: the narrowest box around its parts, right across 180."""
    parts, owner = shapely.get_parts(domain.geometry().copy(), return_index=True)
    west, south, east, north = shapely.bounds(parts).T
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    box = Frames(
        np.minimum.reduceat(west, first),
        np.minimum.reduceat(south, first),
        np.maximum.reduceat(east, first),
        np.maximum.reduceat(north, first),
        np.maximum.reduceat(east, first),
    )
    last = np.append(first[1:], len(parts))
    for cell in np.flatnonzero(box.east - box.west > 180):
        mine = slice(first[cell], last[cell])
        box.west[cell], box.east[cell], box.end[cell] = _narrowest(west[mine], east[mine])
    return box


def _narrowest(west: Floats, east: Floats) -> tuple[float, float, float]:
    """Return the shortest arc that holds all arcs: the circle without the widest gap between them."""
    order = np.argsort(west)
    west, east = west[order], np.maximum.accumulate(east[order])
    gaps = np.append(west[1:], west[0] + 360) - east
    widest = int(np.argmax(gaps))
    if gaps[widest] < _HAIR:
        return -180.0, 180.0, 180.0
    if widest == len(west) - 1:
        return float(west[0]), float(east[-1]), float(east[-1])
    return float(west[widest + 1]), float(east[widest]) + 360, float(east[widest])


def _within_unit(steps: Ints) -> Ints:
    """Hold every vector at length 1: rounding to the box's corner may miss it by a last bit."""
    over = (steps**2).sum(axis=1) > _UNIT**2
    if over.any():
        length = np.sqrt((steps[over] ** 2).sum(axis=1).astype(np.float64)) + 1
        steps = steps.copy()
        steps[over] = np.trunc(steps[over] * (_UNIT / length)[:, None]).astype(np.int64)
    return steps
