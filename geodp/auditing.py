"""The curator's private look at raw data, before a release: the only call that reads rows without noise.

Releases leave unusable rows out without a word, because any word would tell of them. Here everything is said:
what is left out and why, whether the axes are swapped, how far people move, what a cap would cut, and whether
a box, level or bound seems to come out of the data itself. Nothing in geodp calls this module but the user.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.bounds import WORLD, Box, clamp
from geodp.contribution import distinct_pairs, runs
from geodp.exact import exact_delta
from geodp.looks import Audit, Kept, Spread, spread
from geodp.plans import Plan, decided_plan, looking, measured
from geodp.points import check_points, lonlat
from geodp.policy import EachRow, Policy
from geodp.queries import Count, Query, Rows, Sum
from geodp.release import check_frame, place
from geodp.silence import quiet
from geodp.slots import Slots
from geodp.subjects import each_row, subjects
from geodp.wording import people, shown

if TYPE_CHECKING:
    from geodp.grids import Grid

__all__ = ["audit", "look"]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_MOST = 0.5
_MOST_CAPS = 14


def audit(
    gdf: gpd.GeoDataFrame,
    *,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    value: str | None = None,
    value_bounds: Any = None,
    delta: float | None = None,
) -> Audit:
    """Look at raw data before a release. The result is for the curator alone: no part of it is private.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS.
    subject : str, optional
        Column that names whose a row is.
    cap : int, optional
        The cap you have in mind; marked in the table.
    population : int, optional
        Public number of people, held against the number found.
    bounds, outside, grid, by
        Where, as in :func:`geodp.heatmap`.
    value : str, optional
        A column to be added up or averaged.
    value_bounds : two numbers, optional
        Its bounds; with them the norms of each subject's sums are shown.
    delta : float, optional
        Held against 1/N for the number of subjects found.

    Returns
    -------
    Audit
        Prints a table; ``.warnings``, ``.to_dict()``, ``.plot()``.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit.

    Notes
    -----
    A cap, box, resolution or clip chosen after looking at the same data is not covered by eps.

    Examples
    --------
    >>> points = gpd.points_from_xy([40.73, 40.75, 40.78], [-73.99, -73.98, -73.95])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> audit(trips, subject="rider", bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5").warnings[0]
    'AXES SWAPPED? 100.0 % of the points lie outside, and with x and y exchanged 100.0 % lie inside: make points \
from (longitude, latitude).'
    """
    named = subject is not None and not isinstance(subject, EachRow)
    policy = Policy(
        subject=subject,
        cap="auto" if named and cap is None else cap,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
    )
    return look(gdf, policy, by=by, value=value, value_bounds=value_bounds, delta=delta)


def look(
    gdf: gpd.GeoDataFrame,
    policy: Policy,
    *,
    by: Any = None,
    value: str | None = None,
    value_bounds: Any = None,
    delta: float | None = None,
) -> Audit:
    """Return the audit of a frame under a policy."""
    frame = check_points(gdf)
    query: Query = Count() if value is None or value_bounds is None else Sum(value, value_bounds)
    cap = None if policy.cap == "auto" else policy.cap
    plan = _planned(replace(policy, cap=cap or 1), query, by)
    check_frame(plan if value is None else _asked(plan, Sum(value, value_bounds or (0, 1))), frame)
    probability = None if delta is None else float(exact_delta(delta))
    with quiet():
        return _measured(plan, frame, policy, value, probability)


def _planned(policy: Policy, query: Query, by: Any) -> Plan:
    """Return a plan that places rows; cells too many to list are numbered, whatever is asked of them."""
    ways = looking(policy, by)
    if ways.cells == "all" or isinstance(query, Count):
        return decided_plan(policy, 1, 0, query, by, ways)
    return _asked(decided_plan(policy, 1, 0, Count(), by, ways), query)


def _asked(plan: Plan, query: Query) -> Plan:
    """Return a plan of the same places that asks something else of them."""
    drawn = measured(plan.layout, query, plan.eps, plan.delta, plan.mechanism)
    return replace(plan, query=query, measurements=drawn)


def _measured(
    plan: Plan, frame: gpd.GeoDataFrame, policy: Policy, value: str | None, delta: float | None
) -> Audit:
    who = each_row(len(frame)) if policy.by_row else subjects(frame[policy.subject])
    rows = place(plan, frame)
    pairs = distinct_pairs(rows.subject, rows.key, rows.inside, plan.layout.n_keys, max(len(frame), 1))
    lengths = runs(pairs.subject)[1]
    number, times = np.unique(lengths, return_counts=True)
    reach = _reach(plan, frame)
    found = len(lengths)
    given = None if policy.by_row or policy.cap == "auto" else policy.cap
    return Audit(
        warnings=tuple(_warnings(plan, frame, policy, who.codes, rows, reach, found, value, delta)),
        unit=policy.unit,
        grid=plan.policy.grid.name,
        bounds=_bounds(plan.policy.bounds),
        rows=len(frame),
        placed=len(rows.subject),
        left_out=tuple(_left_out(plan, frame, who.codes, value)),
        outside=None if reach is None else 1 - reach[0],
        subjects=found,
        cells=spread(lengths),
        cell_counts=tuple(zip(number.tolist(), times.tolist(), strict=True)),
        kept=tuple(_kept(lengths, given)),
        cap=given,
        subject_rows=spread(np.bincount(who.codes[who.codes >= 0])),
        pair_rows=spread(pairs.rows),
        norms=tuple(_norms(plan, frame, rows, value)),
        delta=delta,
        people_at_delta=None if delta is None else delta * found,
    )


def _left_out(plan: Plan, frame: gpd.GeoDataFrame, who: Ints, value: str | None) -> list[tuple[str, int]]:
    """Count the rows that a release leaves out or moves, by reason; reasons overlap."""
    geometry = np.asarray(frame.geometry.array)
    null, empty = shapely.is_missing(geometry), shapely.is_empty(geometry)
    other = ~null & (shapely.get_type_id(geometry) != shapely.GeometryType.POINT)
    numbers = _numbers(frame)
    _, _, usable = lonlat(frame)
    reasons = [
        ("have no usable subject id", who < 0),
        ("have no geometry", null),
        ("are not points", other),
        ("are empty", empty & ~other),
        ("have coordinates that are not finite", ~null & ~empty & ~other & ~numbers),
        ("lie beyond a pole, or are lost in reprojection", numbers & ~usable),
        ("have none of the levels", plan.slots.codes(frame) < 0),
    ]
    if value is not None:
        values = _column(frame, value)
        reasons.append((f"have no usable {shown(value)}", ~np.isfinite(values)))
        if isinstance(plan.query, Sum):
            beyond = (values < float(plan.query.low)) | (values > float(plan.query.high))
            reasons.append((f"have a {shown(value)} beyond value_bounds, and move to them", beyond))
    return [(reason, int(rows.sum())) for reason, rows in reasons if rows.any()]


def _numbers(frame: gpd.GeoDataFrame) -> Bools:
    """Mark the points whose coordinates are numbers, wherever they lie."""
    points = np.asarray(frame.geometry.array).copy()
    points[(shapely.get_type_id(points) != shapely.GeometryType.POINT) | shapely.is_empty(points)] = None
    found: Bools = np.isfinite(shapely.get_x(points)) & np.isfinite(shapely.get_y(points))
    return found


def _reach(plan: Plan, frame: gpd.GeoDataFrame) -> tuple[float, float] | None:
    """Return the share of points in the box (or in a zone) as they are, and with x and y exchanged."""
    numbers = _numbers(frame)
    if plan.policy.bounds == WORLD or not numbers.any():
        return None
    points = gpd.GeoSeries(frame.geometry.array[numbers], crs=frame.crs)
    exchanged = gpd.GeoSeries(shapely.points(points.y, points.x), crs=frame.crs)
    return _share_in(plan, points), _share_in(plan, exchanged)


def _share_in(plan: Plan, points: gpd.GeoSeries) -> float:
    lon, lat, usable = lonlat(gpd.GeoDataFrame(geometry=points))
    box = plan.policy.bounds
    if box is None:
        return len(np.unique(plan.layout.domain.locate(lon[usable], lat[usable])[0])) / len(points)
    return float((clamp(lon, lat, box)[2] & usable).mean())


def _warnings(
    plan: Plan,
    frame: gpd.GeoDataFrame,
    policy: Policy,
    who: Ints,
    rows: Rows,
    reach: tuple[float, float] | None,
    found: int,
    value: str | None,
    delta: float | None,
) -> list[str]:
    said = _about_place(reach)
    if len(frame) and not len(rows.subject):
        said.append("no row has a subject, a cell and all levels: a release would be pure noise.")
    if not policy.by_row and len(who) and (who < 0).mean() > _MOST:
        said.append(f"{100 * (who < 0).mean():.1f} % of the rows have no usable {shown(policy.unit)}.")
    if policy.population is not None and found > policy.population:
        said.append(
            f"{found:,} {people(policy.unit)} were found, more than the declared {policy.population:,}."
        )
    if delta is not None and delta * found >= 1:
        said.append(f"delta={delta:g} is not below 1/{found:,}: releasing one whole person would satisfy it.")
    return said + _about_extent(plan, frame, value)


def _about_place(reach: tuple[float, float] | None) -> list[str]:
    if reach is None or 1 - reach[0] <= _MOST:
        return []
    inside, exchanged = reach
    if exchanged > _MOST:
        return [
            f"AXES SWAPPED? {100 * (1 - inside):.1f} % of the points lie outside, and with x and y exchanged "
            f"{100 * exchanged:.1f} % lie inside: make points from (longitude, latitude)."
        ]
    return [f"{100 * (1 - inside):.1f} % of the points lie outside: is it the right box, and the right CRS?"]


def _about_extent(plan: Plan, frame: gpd.GeoDataFrame, value: str | None) -> list[str]:
    """Say where a box, bounds of values or levels equal those of the data: they may come from there."""
    said = []
    box = plan.policy.bounds
    if box is not None and not box.is_world:
        lon, lat, usable = lonlat(frame)
        lon, lat = lon[usable], lat[usable]
        ends = {"west": (box.west, lon, 0), "south": (box.south, lat, 0)}
        ends |= {"east": (box.east, lon, -1), "north": (box.north, lat, -1)}
        same = [name for name, (end, all_, which) in ends.items() if _is_end(end, all_, which)]
        if same:
            said.append(_taken(f"bounds ({', '.join(same)})", "the outermost points"))
    if isinstance(plan.query, Sum) and value is not None:
        values = np.sort(_column(frame, value))
        finite = values[np.isfinite(values)]
        ends_of = (("low", float(plan.query.low), 0), ("high", float(plan.query.high), -1))
        same = [name for name, end, which in ends_of if _is_end(end, finite, which)]
        if same:
            said.append(_taken(f"value_bounds ({', '.join(same)})", f"the extremes of {shown(value)}"))
    for name, levels in zip(plan.slots.names, plan.slots.levels, strict=True):
        found = Slots((name,), (levels,)).codes(frame)[frame[name].notna().to_numpy()]
        if (found >= 0).all() and len(np.unique(found)) == len(levels):
            said.append(_taken(f"the levels of {shown(name)}", "exactly the values that occur"))
    return said


def _is_end(end: float, values: NDArray[np.float64], which: int) -> bool:
    return bool(len(values)) and end == (values.min() if which == 0 else values.max())


def _taken(what: str, whose: str) -> str:
    return f"{what} equal {whose}: typed from public knowledge they are fine, taken from the rows they show them."


def _kept(lengths: Ints, given: int | None) -> list[Kept]:
    """Return what caps of 1, 2, 4, ... keep, up to the first that keeps all."""
    if not len(lengths):
        return []
    caps = [2**i for i in range(_MOST_CAPS)]
    enough = next((i for i, cap in enumerate(caps) if cap >= lengths.max()), len(caps) - 1)
    shown_caps = sorted({*caps[: enough + 1], *([given] if given else [])})
    return [
        Kept(cap, float(np.minimum(lengths, cap).sum() / lengths.sum()), float((lengths <= cap).mean()))
        for cap in shown_caps
    ]


def _norms(plan: Plan, frame: gpd.GeoDataFrame, rows: Rows, value: str | None) -> list[tuple[str, Spread]]:
    """Return the values' spread and, with bounds, the norms of each subject's sums before cap and clip."""
    if value is None:
        return []
    values = _column(frame, value)
    said = {"values": spread(values[np.isfinite(values)])}
    if isinstance(plan.query, Sum) and len(rows.subject):
        step = 2.0**-plan.query.j
        order = np.lexsort((rows.key, rows.subject))
        subject, key, steps = rows.subject[order], rows.key[order], rows.values[order, 0]
        starts = np.flatnonzero(np.diff(subject, prepend=-1) | np.diff(key, prepend=-1))
        sums = np.add.reduceat(steps, starts) * step
        person = runs(subject[starts])[0]
        said["L1 norms"] = spread(np.add.reduceat(np.abs(sums), person))
        said["L2 norms"] = spread(np.sqrt(np.add.reduceat(sums**2, person)))
    return [(name, found) for name, found in said.items() if found is not None]


def _column(frame: gpd.GeoDataFrame, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _bounds(box: Box | None) -> str:
    if box is None:
        return "the zones"
    return (
        "the whole world" if box.is_world else f"{box.west:g}, {box.south:g} to {box.east:g}, {box.north:g}"
    )
