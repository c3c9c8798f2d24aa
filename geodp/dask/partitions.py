"""A dask-geopandas frame as a source of exact totals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.dask.errors import error_of, file_of
from geodp.dask.graph import plan_work
from geodp.dask.ids import as_its_source_has_it
from geodp.dask.running import run
from geodp.dask.tasks import Failed, Job, Subgraph
from geodp.dask.totals import Totals, dense
from geodp.sources import Counter, Partitioned

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = ["Partitions"]

Ints = NDArray[np.int64]


class Partitions(Partitioned):
    """The points of a dask-geopandas GeoDataFrame.

    Parameters
    ----------
    frame : dask_geopandas.GeoDataFrame
        Nothing of it is computed before a release.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return "<points in dask partitions>"

    @property
    def schema(self) -> gpd.GeoDataFrame:
        """The empty frame that dask keeps of the columns and dtypes."""
        meta = self._frame._meta.copy()
        # dask-geopandas keeps outlines of partitions there, which pandas cannot compare.
        meta.attrs = {}
        unknown = [name for name, dtype in meta.dtypes.items() if _is_unknown(dtype)]
        return meta.astype(dict.fromkeys(unknown, object)) if unknown else meta

    def totals(self, plan: "Plan", counters: Sequence[Counter], secret: bytes) -> list[dict[str, Ints]]:
        """Return what the counters count; see :meth:`geodp.sources.Partitioned.totals`."""
        files: dict[int, str] = {}
        done = self._run(plan, counters, secret, files)
        if isinstance(done, Failed):
            raise error_of(done, files)
        return dense(done, len(counters))

    def _run(
        self, plan: "Plan", counters: Sequence[Counter], secret: bytes, files: dict[int, str]
    ) -> Totals | Failed:
        from dask.base import get_scheduler

        frame = self._needed(plan)
        meta = self._frame._meta
        job = Job(plan, counters, secret, _sampled(counters), meta.crs, meta.active_geometry_name)
        try:
            partitions, upstream = _partitions(frame, files)
            work = plan_work(job, partitions, upstream)
            get = get_scheduler(collections=[frame])
        except Exception:
            return Failed("upstream")
        return run(work, get)

    def _needed(self, plan: "Plan") -> Any:
        """Return the frame with the columns that the plan reads: what can leave out others at the source does."""
        meta, frame = self._frame._meta, self._frame
        names = {meta.active_geometry_name, plan.query.reads, *plan.slots.names}
        subject = plan.policy.subject
        if isinstance(subject, str):
            names.add(subject)
            frame = as_its_source_has_it(frame, subject)
        columns = [name for name in meta.columns if name in names]
        return frame if len(columns) == len(meta.columns) else frame[columns]


def _is_unknown(dtype: Any) -> bool:
    """Whether dask does not know the categories of a column; then any id or level may be among them."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return False
    from dask.dataframe.utils import has_known_categories

    return not has_known_categories(pd.Series([], dtype=dtype))


def _sampled(counters: Sequence[Counter]) -> int | None:
    """Return the most keys of one subject that any counter looks at."""
    looked_at = [counter.keys_looked_at for counter in counters]
    return None if None in looked_at else max(n for n in looked_at if n is not None)


def _partitions(frame: Any, files: dict[int, str]) -> tuple[list[Any], dict[Any, Any]]:
    """Return how each partition is read, and tasks that several of them share.

    A partition that is read by tasks of its own is read within ours, where what fails is held back. Where
    partitions share tasks (after a shuffle, or on data that the cluster holds) these stay as they are.
    """
    from dask.optimization import cull

    settled = frame.optimize()
    graph, keys = dict(settled.dask), list(settled.__dask_keys__())
    own = []
    for number, key in enumerate(keys):
        tasks, dependencies = cull(graph, [key])
        path = file_of(tasks)
        if path is not None:
            files[number] = path
        closed = all(other in tasks for others in dependencies.values() for other in others)
        own.append(Subgraph(tasks, key) if closed and not _held(tasks) else None)
    together = {task for one in own if one is not None for task in one.graph}
    if None in own or sum(len(one.graph) for one in own if one is not None) > len(together):
        return keys, graph
    return own, {}


def _held(tasks: Mapping[Any, Any]) -> bool:
    """Whether some of it lies on a cluster already, as a future that only the cluster can look into."""
    return any(
        type(part).__name__ == "Future"
        for task in tasks.values()
        for part in (task, getattr(task, "value", None), *getattr(task, "args", ()))
    )
