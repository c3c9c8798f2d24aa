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

from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.errors import PrivacyUnitWarning, warn
from geodp.exact import exact
from geodp.paying import Books
from geodp.points import check_points, lonlat
from geodp.pointwise import Pointwise, check_columns, loss_per_km, per_radian, pointwise
from geodp.policy import EachRow
from geodp.records import sealed
from geodp.remapping import move_inside
from geodp.silence import discreetly, quiet
from geodp.sphere import RADIUS_M, central_angle, displace, mean_angle, snap
from geodp.subjects import subjects
from geodp.testing import Mode, current
from geodp.wording import brief

if TYPE_CHECKING:
    from geodp.ledger import Ledger

__all__ = ["expected_displacement_m", "perturb", "radius_quantile_m"]

Floats = NDArray[np.float64]
Placed = tuple[Floats, Floats, NDArray[np.bool_]]


def perturb(
    gdf: gpd.GeoDataFrame,
    eps_per_km: Any,
    *,
    snap_m: Any = 1,
    remap: Any = None,
    subject: str | EachRow | None = None,
    max_reports: int | None = None,
    keep: Iterable[Hashable] = (),
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
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
        Columns to carry along as they are. They are not protected, and the record says so. Not together
        with a ledger, which could not return them.
    ledger : Ledger, optional
        Notes the worst of one subject, ``eps_per_km * max_reports``, before anything is drawn, and adds it to
        :meth:`geodp.Ledger.metric_spent`. It costs no eps and no delta, since it is neither, so it is
        possible when those are spent. Needs ``subject``.
    label : str
        Names the release in the ledger, and is required there. The same label with the same arguments
        returns the stored points with a ReplayWarning and reads no data.
    retry : bool
        Note again a label that was left incomplete.
    reason : str, optional
        A reviewer's reason, published with the record.

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
    ReplayWarning
        The label was released before.

    Raises
    ------
    TypeError, ValueError
        An argument, column, CRS or region of the wrong kind or range. What single rows hold never raises.
    LedgerError
        The label has other arguments, the ledger is kept for another unit, it fails, or one is required.
    IncompleteRelease
        The label was noted, but its points were never stored.

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
    asked = pointwise(eps_per_km, snap_m, remap, subject, max_reports, keep)
    check_columns(check_points(gdf), asked)
    mode = current()
    notes = _Notes(asked, ledger, label, mode)
    if asked.subject is None and not isinstance(subject, EachRow):
        warn(
            "perturb without subject protects single reports, not people: k reports of one person cost k "
            'times eps_per_km. Name the column: subject="rider", max_reports=1; or say that it is meant: '
            "subject=geodp.EACH_ROW.",
            PrivacyUnitWarning,
        )
    settled = notes.settle(
        lambda: _placed(gdf, asked, mode),
        lambda placed: _moved(asked, placed, mode),
        retry=retry,
        reason=reason,
    )
    with quiet(), settled.intact():
        kept = {name: gdf[name].array.copy() for name in asked.keep}
        return _frame(asked, settled.columns, mode, settled.entry, kept)


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
    return RADIUS_M * mean_angle(per_radian(loss_per_km(eps_per_km)))


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

    Raises
    ------
    TypeError, ValueError
        An argument is no number, not finite or out of its range.

    Examples
    --------
    >>> round(radius_quantile_m(1, 0.95))
    4744
    """
    k, level = per_radian(loss_per_km(eps_per_km)), exact(p, "p")
    if not 0 <= level <= 1:
        raise ValueError(f"p must be from 0 to 1, got {brief(p)}.")
    if level in (0, 1):
        return RADIUS_M * np.pi * int(level)
    upper = level > Fraction(1, 2)
    tail = float(1 - level if upper else level)
    return RADIUS_M * float(central_angle(k, np.array([tail]), np.array([upper]))[0])


class _Notes(Books[Pointwise]):
    """A ledger notes per kilometre what is asked here, in neither of its two books."""

    def check(self, book: "Ledger") -> None:
        """Raise where a ledger could not add up what is asked, or not return it again."""
        if self.asked.subject is None:
            raise ValueError(
                "a ledger counts what is known about people; name whose a report is and how many are published: "
                'subject="rider", max_reports=1.'
            )
        if self.asked.keep:
            raise ValueError(
                "keep cannot be used with a ledger: it stores the moved points, and raw columns have no place in "
                "it. Leave keep out; the rows stay in the order of your frame, for what you add on your own."
            )
        book.check_policy(unit=self.asked.subject, neighboring=None)

    def refuse_early(self, book: "Ledger") -> None:
        """Notes have no ceiling."""

    def commit(self, book: "Ledger", label: str, retry: bool, reason: str | None) -> int:
        """Note what the points tell, per kilometre."""
        return book.note(label, self.asked.key, self.asked.to_dict(), retry=retry, reason=reason)


def _placed(gdf: gpd.GeoDataFrame, asked: Pointwise, mode: Mode) -> Placed:
    """Return true positions, and which rows are shown: the only place of this module where rows are read."""

    def work() -> Placed:
        lon, lat, shown = lonlat(gdf)
        if asked.subject is not None and asked.max_reports is not None:
            shown = _first(subjects(gdf[asked.subject]).codes, shown, asked.max_reports)
        return lon, lat, shown

    with quiet():
        return discreetly("placing the points", mode, work)


def _moved(asked: Pointwise, placed: Placed, mode: Mode) -> dict[str, Floats]:
    """Draw, snap and remap; what is not shown becomes NaN."""
    lon, lat, shown = placed
    with quiet():
        # Rows that are not shown are drawn for as well: no row's noise depends on what another row is.
        if not mode.silent:
            lon, lat = displace(lon, lat, per_radian(asked.eps), mode.bits)
        lon, lat = snap(lon, lat, float(asked.snap))
        if asked.region is not None:
            lon, lat = move_inside(lon, lat, asked.region)
        return {"lon": np.where(shown, lon, np.nan), "lat": np.where(shown, lat, np.nan)}


def _frame(
    asked: Pointwise,
    columns: Mapping[str, NDArray[Any]],
    mode: Mode,
    entry: dict[str, Any] | None,
    kept: Mapping[Hashable, Any] | None = None,
) -> gpd.GeoDataFrame:
    """Lay out moved points, just drawn or from a ledger; null where there is NaN."""
    lon, lat = columns["lon"], columns["lat"]
    shown = ~np.isnan(lon)
    points = np.full(len(lon), None, dtype=object)
    points[shown] = shapely.points(lon[shown], lat[shown])
    moved = gpd.GeoDataFrame(dict(kept or {}), geometry=gpd.GeoSeries(points, crs=4326), crs=4326)
    moved.attrs["geodp"] = sealed({**asked.to_dict(), "noise": mode.noise, "ledger": entry})
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
