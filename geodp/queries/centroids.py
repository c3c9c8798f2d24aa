"""Noisy centroids: the mean place of the people in each zone, cell or box, measured inside its own box."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import wrap
from geodp.estimators import estimate, to_integers
from geodp.estimators.ratios import fieller, shrunk_ratio
from geodp.exact import whole
from geodp.grids.whole import Whole
from geodp.lattice import add_up
from geodp.queries.base import Floats, Ints, Layout, Quantity, Query, Rows
from geodp.queries.means import shares
from geodp.queries.sums import chosen_pairs
from geodp.sensitivity import Norms, counts

if TYPE_CHECKING:
    from geodp.grids import Domain, Grid
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["Centroid", "Frames", "frames"]

_J = 20
_UNIT = 1 << _J
_METRES_PER_DEGREE = 111_195.08


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
    >>> Centroid().reads is None
    True
    """

    word: ClassVar[str] = "centroid"
    n: int | None = None

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
        of_place, of_count = shares(mechanism)
        norms = counts(policy.cap, policy.rows_per_cell, n_keys, policy.neighboring)
        return (
            Quantity("count", n_keys, norms, share=of_count),
            Quantity("place", 2 * n_keys, places, step, of_place),
        )

    def integers(self, values: Floats | None, lon: Floats, lat: Floats, cell: Ints, domain: "Domain") -> Ints:
        """Return east and north of the middle, rounded toward zero to steps of the half-diagonal."""
        local = frames(domain)
        east = np.mod(lon - local.lon[cell] + 180, 360) - 180
        east = np.clip(east, -local.width[cell] / 2, local.width[cell] / 2) * local.shrink[cell]
        north = np.clip(lat - local.lat[cell], -local.height[cell] / 2, local.height[cell] / 2)
        scale = _UNIT / local.radius[cell]
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
        return f"mean place of {policy.unit}s, each in at most {policy.cap} cells"

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON."""
        return {"query": self.word, "n": self.n}

    def _check_fixed(self, layout: Layout) -> None:
        policy = layout.policy
        if self.n is not None and (layout.n_keys, policy.cap, policy.rows_per_cell) != (1, 1, 1):
            raise ValueError(
                "n= is for one centroid over a box with one point of each subject: leave grid and by out, and "
                "set cap=1. Elsewhere the number of people is measured too."
            )

    def _norms(self, layout: Layout) -> Norms:
        """A subject adds at most c' vectors of length m: L2² = m²c', and L1 at most sqrt(2) times that of one."""
        policy = layout.policy
        keys = min(policy.cap, layout.n_keys)
        l1 = keys * policy.rows_per_cell * (math.isqrt(2 * _UNIT**2) + 1)
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
        reach = np.full(places.shape, place.law.halfwidth(0.975) / (_UNIT * self.n))
        return ratios, reach, {}

    def _on_the_ground(self, plan: "Plan", ratios: Floats, reach: Floats) -> dict[str, NDArray[Any]]:
        local = frames(plan.layout.domain).repeated(plan.layout.n_slots)
        east = ratios[:, 0] * local.radius / local.shrink
        north = ratios[:, 1] * local.radius
        lon = local.lon + np.clip(east, -local.width / 2, local.width / 2)
        lat = local.lat + np.clip(north, -local.height / 2, local.height / 2)
        metres = np.hypot(reach[:, 0], reach[:, 1]) * local.radius * _METRES_PER_DEGREE
        whole_box = 2 * local.radius * _METRES_PER_DEGREE
        return {"lon": wrap(lon), "lat": lat, "error_m": np.minimum(metres, whole_box)}


@dataclass(frozen=True)
class Frames:
    """The box of each cell, as a local plane: degrees of latitude, eastward shrunk to them.

    Attributes
    ----------
    lon, lat : float64 arrays
        Middle of the box.
    width, height : float64 arrays
        Extent in degrees of longitude and latitude.
    shrink : float64 array
        Cosine of the middle latitude.
    radius : float64 array
        Half-diagonal, in degrees of latitude.
    """

    lon: Floats
    lat: Floats
    width: Floats
    height: Floats
    shrink: Floats
    radius: Floats

    def repeated(self, times: int) -> "Frames":
        """Return every cell's frame ``times`` times, for its slots."""
        return Frames(
            *(
                np.repeat(part, times)
                for part in (self.lon, self.lat, self.width, self.height, self.shrink, self.radius)
            )
        )


@lru_cache(maxsize=4)
def frames(domain: "Domain") -> Frames:
    """Return the local plane of each cell, right across the 180th meridian."""
    outlines = domain.geometry()
    west, south, east, north = shapely.bounds(outlines).T
    torn = east - west > 180
    if torn.any():
        west[torn], south[torn], east[torn], north[torn] = shapely.bounds(_joined(outlines[torn])).T
    width, height = east - west, north - south
    lon, lat = (west + east) / 2, (south + north) / 2
    shrink = np.maximum(np.cos(np.radians(lat)), 1e-3)
    radius = np.maximum(np.hypot(width * shrink, height) / 2, 1e-12)
    return Frames(lon, lat, width, height, shrink, radius)


def _joined(outlines: NDArray[np.object_]) -> NDArray[np.object_]:
    """Move the western hemisphere east of 180, where cut pieces meet again."""

    def move(xy: Floats) -> Floats:
        return np.column_stack([np.where(xy[:, 0] < 0, xy[:, 0] + 360, xy[:, 0]), xy[:, 1]])

    around = np.ptp(shapely.bounds(outlines)[:, [0, 2]], axis=1) >= 360
    joined = shapely.transform(outlines, move)
    whole_circle = shapely.bounds(joined)[:, 2] - shapely.bounds(joined)[:, 0] > 180
    return np.where(around & whole_circle, outlines, joined)


def _within_unit(steps: Ints) -> Ints:
    """Hold every vector at length 1: rounding to the box's corner may miss it by a last bit."""
    squared = (steps**2).sum(axis=1)
    over = squared > _UNIT**2
    if over.any():
        factor = _UNIT / (np.sqrt(squared[over].astype(np.float64)) + 1)
        steps = steps.copy()
        steps[over] = np.trunc(steps[over] * factor[:, None]).astype(np.int64)
    return steps
