"""The one place where points meet a Plan.

Check and refuse early; place the rows; bound and tally; pay; draw; finish; store. Up to the payment a
failure or an interrupt spends nothing; after it the budget stays spent. Nothing in here warns, and no
message holds a value, because whatever rows could trigger would be a fact about somebody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp import records, testing
from geodp.bounds import WORLD, clamp
from geodp.chunks import beside, each, slices
from geodp.paying import Columns, Payments
from geodp.points import check_points, reader
from geodp.progress import current, stage
from geodp.queries import Rows
from geodp.silence import discreetly, quiet
from geodp.sources import Partitioned, Tally, schema, source
from geodp.subjects import check_subject_dtype, each_row, subjects
from geodp.wording import brief

if TYPE_CHECKING:
    from geodp.ledger import Ledger
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = [
    "check_frame",
    "check_subject",
    "drawn",
    "finish",
    "place",
    "placed",
    "release",
    "tally",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def release(
    plan: "Plan",
    gdf: gpd.GeoDataFrame,
    *,
    ledger: "Ledger | None",
    label: str | None,
    retry: bool = False,
    reason: str | None = None,
) -> gpd.GeoDataFrame:
    """Release what ``plan`` describes from the points of ``gdf``; see :meth:`geodp.Plan.release`."""
    mode = testing.current()
    check_frame(plan, gdf)
    settled = Payments(plan, ledger, label, mode).settle(
        lambda: tally(plan, gdf, mode), lambda exact: drawn(plan, exact, mode), retry=retry, reason=reason
    )
    if settled.stored is None:
        return finish(plan, settled.columns, records.release_record(plan, mode.noise, settled.entry))
    with settled.intact():
        frame = finish(plan, settled.columns, records.replayed_record(settled.stored))
        records.record(frame)  # raises where columns are missing, or of other kinds
        return frame


def check_frame(plan: "Plan", gdf: object) -> None:
    """Raise where the frame's schema does not fit the plan: columns, dtypes and CRS, never rows."""
    frame = check_points(schema(gdf))
    dtypes = _dtypes(frame, [plan.query.reads, *plan.slots.names])
    check_subject(frame, plan.policy)
    plan.slots.check(dtypes)
    if plan.query.reads is not None and not _is_number(dtypes[plan.query.reads]):
        raise TypeError(
            f"column {plan.query.reads!r} has dtype {dtypes[plan.query.reads]}; values to add up are numbers."
        )


def check_subject(frame: gpd.GeoDataFrame, policy: "Policy") -> None:
    """Raise where the subject's column is missing, or of a dtype that cannot hold ids."""
    if not policy.by_row:
        check_subject_dtype(_dtypes(frame, [policy.subject])[policy.subject], policy.subject)


def tally(plan: "Plan", gdf: gpd.GeoDataFrame, mode: testing.Mode) -> dict[str, Ints]:
    """Return the exact integers of every quantity, every subject's contribution bounded."""
    points = source(gdf)
    if isinstance(points, Partitioned):
        (exact,) = points.totals(plan, [Tally(plan)], mode.secret)
        return exact

    def work() -> dict[str, Ints]:
        return plan.query.tally(placed(plan, gdf), plan.layout, plan.mechanism, mode.secret)

    with quiet():
        return discreetly("tallying the rows", mode, work)


def placed(plan: "Plan", gdf: gpd.GeoDataFrame) -> Rows:
    """Do as :func:`place` does, under a bar."""
    with stage("placing points"):
        return place(plan, gdf)


def place(plan: "Plan", gdf: gpd.GeoDataFrame) -> Rows:
    """Return the rows that have a subject, a slot, a value and a cell, as numbers.

    The domain comes first and the cap after it: rows that fall nowhere never use up a cap.
    """
    ids = None if plan.policy.by_row else gdf[plan.policy.subject]
    # Neither needs the other, and both let other threads run.
    who, found = beside(
        lambda: each_row(len(gdf)) if ids is None else subjects(ids), lambda: _located(plan, gdf)
    )
    subject = _at(who.codes, found.rows)
    named = subject >= 0
    if not named.all():
        subject, found = subject[named], found.take(named)
    return Rows(who, subject, found.key, found.inside, found.values)


@dataclass(frozen=True)
class _Located:
    """Rows with a slot, a value and a cell; ``rows`` says which they are, ``None`` that they are all."""

    rows: Ints | None
    key: Ints
    inside: NDArray[np.bool_]
    values: Ints

    def take(self, some: NDArray[np.bool_]) -> "_Located":
        rows = None if self.rows is None else self.rows[some]
        return _Located(rows, self.key[some], self.inside[some], self.values[some])

    @classmethod
    def joined(cls, found: "Sequence[_Located]", parts: Sequence[slice]) -> "_Located":
        rows = None
        if any(some.rows is not None for some in found):
            every = (np.arange(part.start, part.stop) for part in parts)
            rows = np.concatenate(
                [
                    all_ if some.rows is None else all_[some.rows]
                    for some, all_ in zip(found, every, strict=True)
                ]
            )
        columns = zip(*((some.key, some.inside, some.values) for some in found), strict=True)
        return cls(rows, *(np.concatenate(column) for column in columns))


def _located(plan: "Plan", gdf: gpd.GeoDataFrame) -> _Located:
    """Place the rows in parts, each of which stays in the processor's cache from coordinates to key."""
    read, domain = reader(gdf), plan.layout.domain
    slot = plan.slots.codes(gdf) if plan.slots.names else None
    values = _values(plan, gdf)

    def locate(part: slice) -> _Located:
        mine = None if slot is None else slot[part], None if values is None else values[part]
        return _located_part(plan, *read(part), *mine)

    n = len(gdf)
    parts = slices(n) if domain.splits and n else [slice(0, n)]
    return _Located.joined(each(locate, parts, current()), parts)


def _located_part(
    plan: "Plan",
    lon: Floats,
    lat: Floats,
    usable: NDArray[np.bool_],
    slot: Ints | None,
    values: Floats | None,
) -> _Located:
    if slot is not None:
        usable &= slot >= 0
    if values is not None:
        usable &= np.isfinite(values)
    lon, lat, inside, usable = _clamped(plan, lon, lat, usable)
    keep = None if usable.all() else np.flatnonzero(usable)
    domain = plan.layout.domain
    found, cell = domain.locate(_at(lon, keep), _at(lat, keep))
    rows = _but_all(found if keep is None else keep[found], len(usable))
    contributed = plan.query.integers(
        None if values is None else _at(values, rows), _at(lon, rows), _at(lat, rows), cell, domain
    )
    key = cell if slot is None else cell * len(plan.slots) + _at(slot, rows)
    return _Located(rows, key, _at(inside, rows), contributed)


def _but_all(rows: Ints, n: int) -> Ints | None:
    """Return ``None`` for all of n rows in their order: what need not be picked is not copied."""
    return None if len(rows) == n and bool((rows[1:] > rows[:-1]).all()) else rows


def _at(column: NDArray[Any], rows: Ints | None) -> NDArray[Any]:
    return column if rows is None else column[rows]


def drawn(plan: "Plan", exact: Mapping[str, Ints], mode: testing.Mode) -> Columns:
    """Add the noise of every measurement, and make the released columns of what comes out."""
    noisy = plan.query.draw(plan, exact, mode)
    with quiet():
        return plan.query.columns(plan, noisy)


def finish(plan: "Plan", columns: Columns, record: dict[str, Any]) -> gpd.GeoDataFrame:
    """Lay the released columns out on the plan's rows."""
    index, data = plan.query.rows(plan, columns)
    if plan.policy.outside == "clamp" and plan.policy.bounds is not None:
        data["edge"] = plan.query.edge(plan, columns)
    if not plan.ways.return_geometry:
        frame: Any = pd.DataFrame(data, index=index)
    else:
        with stage("drawing outlines"):
            outlines = plan.query.geometry(plan.layout, columns)
        geometry = gpd.array.GeometryArray(outlines, crs=4326)
        frame = gpd.GeoDataFrame(data, index=index, geometry=gpd.GeoSeries(geometry, index=index))
    frame.attrs["geodp"] = record
    return frame


def _dtypes(frame: gpd.GeoDataFrame, names: list[Any]) -> dict[Any, Any]:
    """Return the dtypes of the named columns, each of which must be there exactly once."""
    found = {}
    for name in names:
        if not isinstance(name, str):
            continue
        times = int((frame.columns == name).sum())
        if times != 1:
            if name in frame.index.names:
                raise ValueError(
                    f"{brief(name)} is in the frame's index; make it a column: gdf.reset_index()."
                )
            columns = ", ".join(brief(column) for column in frame.columns[:20])
            problem = "has no column" if times == 0 else "has more than one column"
            raise ValueError(f"the frame {problem} {brief(name)}; it has {columns}.")
        found[name] = frame.dtypes[name]
    return found


def _is_number(dtype: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype))


def _values(plan: "Plan", gdf: gpd.GeoDataFrame) -> NDArray[np.float64] | None:
    if plan.query.reads is None:
        return None
    values: NDArray[np.float64] = gdf[plan.query.reads].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _clamped(
    plan: "Plan", lon: Floats, lat: Floats, usable: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Move points outside the box to its border, or leave them out."""
    box = plan.policy.bounds
    if box is None or box == WORLD:
        return lon, lat, np.ones(len(lon), bool), usable
    lon, lat, inside = clamp(lon, lat, box)
    if plan.policy.outside == "drop":
        usable = usable & inside
    return lon, lat, inside, usable
