"""Single positions that somebody must see one by one: each moved by noise, each bought per kilometre.

A heatmap counts people and hides each of them; :func:`perturb` publishes rows and hides only where each
of them is, and that the less the farther away. The law is the planar Laplace of geo-indistinguishability,
written for the sphere, so that it holds for true distances at any noise: over the pole, across the 180th
meridian and around the Earth.

**Guarantee.** Let ``z`` be what is published for a true position ``x``, and ``d`` the length in kilometres
of the shortest way on the WGS84 ellipsoid. For any two positions and any set ``Z`` of outputs

    P(z in Z | x) <= exp(eps_per_km * d(x, x')) * P(z in Z | x')

*Proof.* Read geodetic longitude and latitude as coordinates of a sphere of radius R = 6335.4 km. The density
of the noise per area is ``c exp(-eps D(x, z))``, D the distance on that sphere and c the same for all x,
since a sphere looks alike from each of its points. By the triangle inequality two densities differ by a
factor ``exp(eps D(x, x'))`` at most. And D never exceeds d: the ellipsoid's line element is
``M² dlat² + N² cos²(lat) dlon²`` with M = b² a² / (a² cos² lat + b² sin² lat)^(3/2) >= b²/a = 6335.439 km
and N >= a, the sphere's ``R² dlat² + R² cos²(lat) dlon²`` with R < b²/a < a. So every way is at least as
long on the ellipsoid as on the sphere, the shortest one too. Snapping and remapping look at the noised
position alone. One subject's k reports multiply: ``k * eps_per_km * d``.
"""

import json
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp._version import __version__
from geodp.errors import PrivacyUnitWarning
from geodp.exact import exact, exact_positive, floor_double, plain, whole
from geodp.points import check_points, lonlat
from geodp.policy import EachRow
from geodp.remapping import move_inside, parse_region
from geodp.sphere import RADIUS_KM, RADIUS_M, central_angle, displace, mean_angle, snap
from geodp.subjects import check_subject_dtype, subjects
from geodp.testing import Mode, current

__all__ = ["expected_displacement_m", "perturb", "radius_quantile_m"]

_LEAST_SNAP_M, _MOST_SNAP_M = 1, 100_000
_MOST_EPS = 1000


def perturb(
    gdf: gpd.GeoDataFrame,
    eps_per_km: Any,
    *,
    snap_m: Any = 1,
    remap: Any = None,
    subject: str | EachRow | None = None,
    max_reports: int | None = None,
    keep: Iterable[Hashable] = (),
) -> gpd.GeoDataFrame:
    """Move every point by planar Laplace noise on the sphere; the guarantee is per point and distance.

    This is geo-indistinguishability, **not** (eps, delta)-differential privacy: it blurs where a report
    comes from and hides neither that it was made nor who made it. For a map of many people use a heatmap.

    Parameters
    ----------
    gdf : GeoDataFrame, n rows
        Points in any CRS; Z is ignored.
    eps_per_km : number, above 0 and at most 1000
        Privacy loss per kilometre between two true positions. The mean displacement is about
        ``2 / eps_per_km`` kilometres. (Per metre, as papers have it, times 1000: ln 4 within 200 m is 6.93.)
    snap_m : number, 1 to 100,000, default 1
        Step in metres of the fixed worldwide grid to which the noised points are snapped.
    remap : Polygon, MultiPolygon, GeoSeries or GeoDataFrame of polygons, optional
        Public region; points outside move to the nearest place about a metre inside its border. Bare
        geometries are in longitude and latitude. Never derive it from the points.
    subject : str or geodp.EACH_ROW, optional
        Column that says whose a report is; needs ``max_reports``. Without it nothing limits how many
        reports one person has, and a warning says so; :data:`geodp.EACH_ROW` says it without one.
    max_reports : int, at least 1, optional
        Most points published for one subject by this call: the first usable rows. The others are null.
        Calls add up: two with ``max_reports=1`` are two reports.
    keep : list of column names, default none
        Columns to carry along as they are. They are not protected, and the record says so.

    Returns
    -------
    GeoDataFrame, n rows
        Kept columns and ``geometry`` in EPSG:4326, row by row as in ``gdf``, with a fresh RangeIndex.
        Rows that cannot be placed (null, empty, not a Point, NaN or infinite, a latitude beyond a pole, no
        usable subject id) or lie beyond ``max_reports`` have a null geometry. The public record is in
        ``attrs["geodp"]``.

    Warns
    -----
    PrivacyUnitWarning
        Without ``subject``.

    Raises
    ------
    TypeError, ValueError
        An argument, column, CRS or region of the wrong kind or range. What single rows hold never raises.

    Notes
    -----
    With central angle t and ``k = eps_per_km * R`` the radius has the distribution function
    ``F(t) = (1 - exp(-k t)(k sin t + cos t)) / (1 + exp(-k pi))``, the bearing is uniform. Randomness comes
    from the operating system at each call.

    The bits of a published coordinate are a function of its grid cell alone. What floating point leaves: a
    drawn position lies within 1e-8 m (measured against 50 digits, not proven) of the real-valued draw that
    its random bits begin, so the probability of a cell of side s is off by a factor 1 ± 4e-8 m / s, and a
    ratio of two exceeds ``exp(eps_per_km * D)`` by a factor 1 + 1e-7 at most (4e-7 near eps_per_km 1000).
    R is rounded down, so D is below d by 6e-6 of it, which makes up for 1e-7 wherever ``eps_per_km * d`` is
    0.02 or more.

    References
    ----------
    Andres, Bordenabe, Chatzikokolakis, Palamidessi: Geo-indistinguishability, CCS 2013 (planar law).
    Karney: Algorithms for geodesics, J. Geodesy 2013 (the ellipsoid's distances).

    Examples
    --------
    >>> reports = gpd.GeoDataFrame(
    ...     {"rider": ["ana", "ben", "ana"]},
    ...     geometry=gpd.points_from_xy([-9.14, -9.15, -9.2], [38.7, 38.7, 38.8]),
    ...     crs=4326,
    ... )
    >>> moved = perturb(reports, eps_per_km=5, subject="rider", max_reports=1)
    >>> moved.geometry.isna().tolist()
    [False, False, True]
    >>> moved.attrs["geodp"]["guarantee"]
    'geo-indistinguishability'
    """
    request = _request(eps_per_km, snap_m, remap, subject, max_reports, keep)
    _check_columns(check_points(gdf), request)
    if request.subject is None and not isinstance(subject, EachRow):
        warnings.warn(
            "perturb without subject protects single reports, not people: k reports of one person cost k "
            'times eps_per_km. Name the column: subject="rider", max_reports=1; or say that it is meant: '
            "subject=geodp.EACH_ROW.",
            PrivacyUnitWarning,
            stacklevel=2,
        )
    return _release(gdf, request, current())


def expected_displacement_m(eps_per_km: Any) -> float:
    """Return the mean distance in metres by which :func:`perturb` moves a point, before snapping.

    Parameters
    ----------
    eps_per_km : number, above 0 and at most 1000

    Returns
    -------
    float
        Metres on the sphere of 6335.4 km; on the ground up to 1.02 % more, by latitude and bearing.
        About ``2000 / eps_per_km`` unless the noise reaches around the Earth.

    Examples
    --------
    >>> round(expected_displacement_m(1), 3)
    2000.0
    """
    return RADIUS_M * mean_angle(_angular(_eps(eps_per_km)))


def radius_quantile_m(eps_per_km: Any, p: Any) -> float:
    """Return the distance in metres within which :func:`perturb` leaves a point with probability ``p``.

    Parameters
    ----------
    eps_per_km : number, above 0 and at most 1000
    p : number, 0 to 1

    Returns
    -------
    float
        Metres on the sphere of 6335.4 km, before snapping; on the ground up to 1.02 % more.

    Examples
    --------
    >>> round(radius_quantile_m(1, 0.95))
    4744
    """
    k, level = _angular(_eps(eps_per_km)), exact(p, "p")
    if not 0 <= level <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p!r}.")
    if level in (0, 1):
        return RADIUS_M * np.pi * int(level)
    upper = level > Fraction(1, 2)
    tail = float(1 - level if upper else level)
    return RADIUS_M * float(central_angle(k, np.array([tail]), np.array([upper]))[0])


@dataclass(frozen=True)
class _Request:
    """What was asked, without data: everything of the result but its points and kept columns."""

    eps: Fraction
    snap: Fraction
    region: Any
    digest: str | None
    subject: str | None
    max_reports: int | None
    keep: tuple[Hashable, ...]

    def record(self, noise: str) -> dict[str, Any]:
        """Return the public record, plain JSON below 2 kB."""
        return {
            "query": "perturb",
            "version": __version__,
            "guarantee": "geo-indistinguishability",
            "guarantee_text": self._words(),
            "eps_per_km": plain(self.eps),
            "unit": "row" if self.subject is None else self.subject,
            "reports_per_subject": self.max_reports,
            "worst_eps_per_km": None if self.max_reports is None else plain(self.eps * self.max_reports),
            "snap_m": plain(self.snap),
            "remap": self.digest,
            "keep": _names(self.keep),
            "noise": noise,
        }

    def _words(self) -> str:
        """Say the guarantee in English."""
        each = (
            f"What is seen of one report is at most exp({_short(self.eps)} * d) times as likely from one "
            "place as from another d km away (WGS84)."
        )
        if self.max_reports is None:
            together = "Reports of one person multiply, and nothing limits them here."
        else:
            worst = _short(self.eps * self.max_reports)
            together = f"At most {self.max_reports} reports of a subject: exp({worst} * d) together."
        kept = " The kept columns are not protected." if self.keep else ""
        return f"{each} {together}{kept} That a report exists is not hidden; this is not (eps, delta)-DP."


def _request(eps: Any, snap_m: Any, remap: Any, subject: Any, max_reports: Any, keep: Any) -> _Request:
    """Check every argument that needs no frame."""
    snap = exact(snap_m, "snap_m")
    if not _LEAST_SNAP_M <= snap <= _MOST_SNAP_M:
        raise ValueError(f"snap_m must be from {_LEAST_SNAP_M} to {_MOST_SNAP_M} metres, got {snap_m!r}.")
    column, limit = _who(subject, max_reports)
    region, digest = (None, None) if remap is None else parse_region(remap)
    return _Request(_eps(eps), snap, region, digest, column, limit, _kept(keep))


def _eps(value: Any) -> Fraction:
    eps = exact_positive(value, "eps_per_km")
    if eps > _MOST_EPS:
        raise ValueError(
            f"eps_per_km must be at most {_MOST_EPS}, got {value!r}: points would move by less than 2 m. "
            "It is the loss per kilometre; 1 moves a point by 2 km on average."
        )
    return eps


def _angular(eps: Fraction) -> float:
    """Return k, the loss per radian, never above what was asked."""
    return floor_double(eps * RADIUS_KM)


def _who(subject: Any, max_reports: Any) -> tuple[str | None, int | None]:
    if subject is None or isinstance(subject, EachRow):
        if max_reports is not None:
            raise ValueError(
                "max_reports limits the reports of one subject, and none was named. Name the column that "
                'says whose a report is: subject="rider".'
            )
        return None, None
    if not isinstance(subject, str):
        raise TypeError(f"subject must be the name of a column, got {type(subject).__name__}.")
    if max_reports is None:
        raise ValueError(
            f"max_reports is required with subject={subject!r}: the most points published for one subject. "
            "Each costs eps_per_km again; 1 suits one position per person."
        )
    return subject, whole(max_reports, "max_reports", 1)


def _kept(keep: Any) -> tuple[Hashable, ...]:
    if isinstance(keep, str | bytes) or not isinstance(keep, Iterable):
        raise TypeError(f'keep must be a list of column names such as keep=["minutes"], got {keep!r}.')
    names = tuple(keep)
    if len(set(names)) < len(names):
        raise ValueError("keep names a column twice.")
    return names


def _check_columns(gdf: gpd.GeoDataFrame, request: _Request) -> None:
    """Check the arguments against the frame's schema; rows are not looked at."""
    named = request.keep if request.subject is None else (request.subject, *request.keep)
    columns = list(gdf.columns)
    for name in named:
        if columns.count(name) != 1:
            found = "no column" if name not in columns else "several columns"
            raise ValueError(f"the frame has {found} {name!r}; subject and keep name its columns.")
    for name in request.keep:
        if name == "geometry" or gdf.dtypes[name] == "geometry":
            raise ValueError(
                f"keep={name!r} is a geometry, or named like one: it would publish true positions."
            )
    if request.subject is not None:
        check_subject_dtype(gdf.dtypes[request.subject], request.subject)


def _release(gdf: gpd.GeoDataFrame, request: _Request, mode: Mode) -> gpd.GeoDataFrame:
    """Return the noised frame: the only place of this module where rows are read."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lon, lat, shown = lonlat(gdf)
        if request.subject is not None and request.max_reports is not None:
            shown = _first(subjects(gdf[request.subject]).codes, shown, request.max_reports)
        # Null rows are drawn for as well: no row's noise depends on what another row is.
        if not mode.silent:
            lon, lat = displace(lon, lat, _angular(request.eps), mode.bits)
        lon, lat = snap(lon, lat, float(request.snap))
        if request.region is not None:
            lon, lat = move_inside(lon, lat, request.region)
        points = np.full(len(gdf), None, dtype=object)
        points[shown] = shapely.points(lon[shown], lat[shown])
        columns = {name: gdf[name].array.copy() for name in request.keep}
        moved = gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries(points, crs=4326), crs=4326)
    moved.attrs["geodp"] = request.record(mode.noise)
    return moved


def _first(codes: NDArray[np.int64], usable: NDArray[np.bool_], limit: int) -> NDArray[np.bool_]:
    """Mark each subject's first usable rows; no subject's choice looks at another's rows."""
    shown = usable & (codes >= 0)
    rows = np.flatnonzero(shown)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    shown[rows[rank >= limit]] = False
    return shown


def _names(keep: tuple[Hashable, ...]) -> list[str] | dict[str, Any]:
    """Return the kept columns' names, or their number and digest where a record would grow too long."""
    names = [str(name) for name in keep]
    text = json.dumps(names)
    if len(text) <= 500:
        return names
    return {"columns": len(names), "sha256": sha256(text.encode()).hexdigest()[:16]}


def _short(number: Fraction) -> str:
    return f"{float(number):.6g}"
