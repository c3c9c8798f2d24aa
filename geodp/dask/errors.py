"""What went wrong on a cluster, in fixed words: a stage, a partition and its file, never a row."""

from collections.abc import Mapping
from typing import Any

from geodp.dask.tasks import Failed
from geodp.errors import GeoDPError

__all__ = ["PartitionError", "code_of", "error_of", "file_of"]

_OF_PARTITION = {
    "columns": "lacks a column that the frame has",
    "crs": "has another CRS than the frame; bring all files into one CRS",
    "geometry": "has no geometry of points",
    "memory": "does not fit into a worker's memory; use smaller partitions, or workers with more memory",
    "no crs": "has no CRS, and the frame has one; write the CRS into the file, or set it where the frame is made",
    "placing": "could not be placed; ddf.get_partition({number}).compute().dp.audit() looks at its rows",
    "reading": "could not be read: another schema, or a damaged file",
    "schema": "has a column of another kind than the plan needs",
}
_OF_CLUSTER = {
    "cluster": "the connection to the cluster was lost, or its tasks were cancelled",
    "memory": "a worker ran out of memory; use smaller partitions, or workers with more memory",
    "modules": "the workers cannot import what the client has; install the same geodp there",
    "shuffling": "bringing the rows of each subject together failed on a worker",
    "tallying": "tallying the rows failed on a worker",
    "upstream": "a task that makes the frame failed on a worker, before geodp saw its rows",
    "workers": "workers died again and again at the same task, mostly for want of memory",
}


class PartitionError(GeoDPError, ValueError):
    """One partition of a frame cannot be part of a release; nothing was spent.

    Attributes
    ----------
    partition : int
        Its number, counted from 0.
    """

    def __init__(self, message: str, partition: int) -> None:
        super().__init__(message)
        self.partition = partition

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionError, (str(self), self.partition)


def error_of(failed: Failed, files: Mapping[int, str]) -> GeoDPError:
    """Return the error that says what failed; ``files`` names the file of a partition where that is known."""
    number = failed.partition
    if number is None:
        return GeoDPError(
            f"{_OF_CLUSTER.get(failed.code, _OF_CLUSTER['tallying'])}. Nothing was released or spent."
        )
    where = f"partition {number}" + (f" ({files[number]})" if number in files else "")
    what = _OF_PARTITION[failed.code].format(number=number)
    return PartitionError(f"{where} {what}. Nothing was released or spent.", number)


def code_of(error: BaseException) -> str:
    """Return the code of an exception of dask's own: by its type, because its text may quote a row."""
    name = type(error).__name__
    if name == "KilledWorker":
        return "workers"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, ImportError):
        return "modules"
    if name in ("CancelledError", "FutureCancelledError", "FuturesCancelledError") or isinstance(
        error, OSError
    ):
        return "cluster"
    return "upstream"


def file_of(graph: Mapping[Any, Any]) -> str | None:
    """Return the path that the tasks of one partition read, as dask's readers of Parquet note it."""
    for task in graph.values():
        for argument in getattr(task, "args", ()):
            piece = argument.get("piece") if isinstance(argument, Mapping) else None
            if isinstance(piece, tuple | list) and piece and isinstance(piece[0], str):
                return piece[0]
    return None
