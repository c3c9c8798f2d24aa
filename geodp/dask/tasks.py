"""What workers do. They answer with numbers or with a code, never with an exception of their own.

Whatever a library says when it fails may quote a row; so nothing of it leaves the task that failed, and
tasks that depend on it hand the code on. What goes in and comes out has a fixed representation, because
schedulers write those into logs.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd

from geodp.dask.parcels import Parcel, buckets, join, pack, reduced, split
from geodp.dask.totals import Totals, plus, sparse
from geodp.release import check_frame, place
from geodp.silence import quiet

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.sources import Counter

__all__ = [
    "Failed",
    "Job",
    "Subgraph",
    "add",
    "gather",
    "locate",
    "pick",
    "renumber",
    "scatter",
    "shifted",
    "state",
    "tally",
]


class Failed:
    """The code of what went wrong, and in which partition if it was one.

    Attributes
    ----------
    code : str
        One of the codes that :mod:`geodp.dask.errors` has words for.
    partition : int or None
    """

    __slots__ = ("code", "partition")

    def __init__(self, code: str, partition: int | None = None) -> None:
        self.code, self.partition = code, partition

    def __repr__(self) -> str:
        return f"<Failed: {self.code}>"


class Job:
    """What every task of a release has to know: public, but for the secret key of the choice under the cap.

    Attributes
    ----------
    plan : Plan
        Places the rows.
    counters : tuple of Counter
        What is counted.
    secret : bytes
        16 bytes, fixed for the release, so that a task that is done again gives the same.
    cap : int or None
        The most keys of one subject that any counter looks at; ``None`` where some counter looks at all.
    crs : Any
        The CRS that every partition must have.
    geometry : str, optional
        The column of points.
    """

    __slots__ = ("cap", "counters", "crs", "geometry", "plan", "secret")

    def __init__(
        self,
        plan: "Plan",
        counters: "Sequence[Counter]",
        secret: bytes,
        cap: int | None,
        crs: Any,
        geometry: str | None = None,
    ) -> None:
        self.geometry = geometry
        self.plan, self.counters, self.secret, self.cap, self.crs = plan, tuple(counters), secret, cap, crs

    def __repr__(self) -> str:
        return "<Job>"

    def reduce(self, parcel: Parcel) -> Parcel:
        """Leave out what cannot count; of rows that are their own subjects there is nothing to leave out."""
        if self.plan.policy.by_row:
            return parcel
        return reduced(parcel, self.plan.policy.rows_per_cell, self.cap, self.secret)

    def count(self, parcel: Parcel) -> Totals:
        """Count the rows of all subjects of a parcel, which are all of their rows."""
        rows = parcel.rows()
        return sparse([counter(rows, self.secret) for counter in self.counters])


class Subgraph:
    """How one partition is read: its own tasks, to be done within ours, where failures can be held back."""

    __slots__ = ("graph", "key")

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph, self.key = graph, key

    def __repr__(self) -> str:
        return "<Subgraph>"

    def read(self) -> Any:
        """Return the partition."""
        from dask.local import get_sync

        return get_sync(self.graph, self.key)


def discreet(code: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a task answer with ``code`` where it fails, and hand on the code of what it depends on."""

    def decorate(work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def guarded(*arguments: Any) -> Any:
            earlier = _first_failure(arguments)
            if earlier is not None:
                return earlier
            try:
                with quiet():
                    return work(*arguments)
            except MemoryError:
                return Failed("memory")
            except Exception:
                return Failed(code)

        return guarded

    return decorate


def _first_failure(arguments: Sequence[Any]) -> Failed | None:
    """Return a failure among arguments and lists of them: of the lowest partition, so that it is always the same."""
    flat = [x for argument in arguments for x in (argument if isinstance(argument, list) else [argument])]
    failures = [x for x in flat if isinstance(x, Failed)]
    return min(failures, key=lambda failed: (failed.partition is None, failed.partition or 0), default=None)


@discreet("placing")
def locate(job: Job, partition: Any, number: int) -> Parcel | Failed:
    """Read one partition, place its rows, and leave out what cannot count."""
    frame = _read(partition)
    if isinstance(frame, str):
        return Failed(frame, number)
    try:
        frame = _as_points(job, frame)
        problem = _problem(job, frame)
    except Exception:
        problem = "geometry"
    if problem is not None:
        return Failed(problem, number)
    try:
        policy = job.plan.policy
        rows = place(job.plan, frame)
        return job.reduce(pack(rows, job.plan.layout.n_keys, policy.rows_per_cell))
    except MemoryError:
        return Failed("memory", number)
    except Exception:
        return Failed("placing", number)


def _as_points(job: Job, frame: Any) -> Any:
    """Return the frame as one of points again: a shuffle on disk gives back plain frames of the same columns."""
    if isinstance(frame, gpd.GeoDataFrame) or not isinstance(frame, pd.DataFrame):
        return frame
    held = isinstance(frame.dtypes.get(job.geometry), gpd.array.GeometryDtype)
    return gpd.GeoDataFrame(frame, geometry=job.geometry) if held else frame


def _problem(job: Job, frame: Any) -> str | None:
    """Return the code of what is wrong with a partition's schema."""
    if not isinstance(frame, gpd.GeoDataFrame) or frame.active_geometry_name is None:
        return "geometry"
    if frame.crs is None:
        return "no crs"
    if not frame.crs.equals(job.crs, ignore_axis_order=True):
        return "crs"
    return None if _fits(job, frame) else "schema"


def _read(partition: Any) -> Any:
    """Return the partition's frame, or a code."""
    if not isinstance(partition, Subgraph):
        return partition
    try:
        return partition.read()
    except MemoryError:
        return "memory"
    except KeyError:
        return "columns"
    except Exception:
        return "reading"


def _fits(job: Job, frame: gpd.GeoDataFrame) -> bool:
    try:
        check_frame(job.plan, frame)
    except (TypeError, ValueError):
        return False
    return True


def state(parcel: Any) -> Failed | None:
    """Return only whether a partition failed."""
    return parcel if isinstance(parcel, Failed) else None


@discreet("shuffling")
def gather(job: Job, parcels: list[Parcel]) -> Parcel:
    """Bring parcels together, and leave out what cannot count."""
    return job.reduce(join(parcels))


@discreet("shuffling")
def scatter(job: Job, parcel: Parcel, stride: int, branch: int) -> list[Parcel]:
    """Part a parcel by one digit of its subjects' hash."""
    digit = buckets(parcel.ids, job.secret) // np.uint64(stride) % np.uint64(branch)
    return split(parcel, digit.astype(np.int64), branch)


def pick(pieces: Any, which: int) -> Any:
    """Return one of the parts."""
    return pieces if isinstance(pieces, Failed) else pieces[which]


@discreet("shuffling")
def renumber(parcels: list[Parcel]) -> list[int]:
    """Return how many rows lie before each partition: rows that are their own subjects are known by number."""
    return [0, *np.cumsum([len(parcel.ids) for parcel in parcels]).tolist()]


@discreet("shuffling")
def shifted(parcel: Parcel, before: list[int], number: int) -> Parcel:
    """Number the rows of one partition over the whole."""
    return parcel.numbered_from(before[number])


@discreet("tallying")
def tally(job: Job, parcels: list[Parcel]) -> Totals:
    """Count all rows of some subjects."""
    return job.count(join(parcels) if len(parcels) > 1 else parcels[0])


@discreet("tallying")
def add(totals: list[Totals]) -> Totals:
    """Add totals up."""
    return plus(totals)
