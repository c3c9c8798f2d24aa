"""Ids as their source has them, whatever dask would make of them on the way.

Two things happen to a column of ids before a partition arrives, and either can make one person two, or two people
one, whom the cap then does not bound:

* dask turns columns of Python objects into text (its option ``dataframe.convert-string``, on by default), each
  partition by itself: ``7`` becomes ``"7"`` where it lies among objects and stays ``7`` elsewhere, ``1`` and ``"1"``
  meet, ``1`` and ``1.0`` part.
* Read from a file, whole numbers with one gap become floats, of which those from 2**53 up are no ids.

Text is made of all other columns only, and whole numbers stay whole. Steps that look at ids of a column of objects
may need the text; such a frame is refused. How it was put together and its schema decide, never a row.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any

import pandas as pd

__all__ = ["as_its_source_has_it"]

# Steps that hand on or leave out columns of theirs without looking at what is in them.
_PASSING = ("ArrowStringConversion", "Assign", "Filter", "Partitions", "Projection")
_PASSING_FUNCTIONS = ("GeoDataFrame", "_set_crs", "points_from_xy.<locals>.func")


def as_its_source_has_it(frame: Any, subject: str) -> Any:
    """Return the frame with the ids that its source has.

    Parameters
    ----------
    frame : dask_geopandas.GeoDataFrame
        Nothing of it is computed.
    subject : str
        The column of ids.

    Raises
    ------
    TypeError
        dask makes text of objects in this column, for steps that may look at it.
    """
    tree = frame.expr
    passed_by = all(_passes_by(step, subject) for step in _steps(tree))
    for step in [step for step in _steps(tree) if _makes_text(step)]:
        if not passed_by:
            _refuse_objects(step, subject)
        tree = tree.substitute(step, _without_text(step, subject))
    for step in [step for step in _steps(tree) if type(step).__name__ == "FromGraph"]:
        tree = tree.substitute(step, _read_whole(step, subject))
    return frame if tree._name == frame.expr._name else _frame(tree)


def _frame(tree: Any) -> Any:
    from dask.dataframe.dask_expr import new_collection  # type: ignore[attr-defined]

    return new_collection(tree)


def _steps(tree: Any) -> Iterator[Any]:
    """Yield every step of a frame once, down to its sources."""
    seen, waiting = set(), [tree]
    while waiting:
        step = waiting.pop()
        if step._name not in seen:
            seen.add(step._name)
            yield step
            waiting.extend(_inputs(step))


def _inputs(step: Any) -> list[Any]:
    from dask.dataframe.dask_expr.io import IO

    return [] if isinstance(step, IO) else list(step.dependencies())


def _passes_by(step: Any, subject: str) -> bool:
    """Whether a step neither makes the column nor looks at it."""
    inputs = _inputs(step)
    if not any(_has(other, subject) for other in inputs):
        return not (inputs and _has(step, subject))
    kind = type(step).__name__
    if kind == "MapPartitions":
        return getattr(step.func, "__qualname__", "") in _PASSING_FUNCTIONS
    return kind in _PASSING and not (kind == "Assign" and subject in step.keys)


def _has(step: Any, subject: str) -> bool:
    return subject in getattr(step, "columns", [subject])


def _makes_text(step: Any) -> bool:
    """Whether dask's option was on when this step was made, and it converts what it is given."""
    kind = type(step).__name__
    if kind == "ArrowStringConversion":
        return True
    held = kind.startswith("FromPandas") and step.operand("pyarrow_strings_enabled")
    # Cut from one frame, all partitions have its dtypes.
    return bool(held) and any(map(pd.api.types.is_object_dtype, _dtypes(_raw(step)).values()))


def _raw(step: Any) -> Any:
    """Return what is converted."""
    if type(step).__name__ == "ArrowStringConversion":
        return step.frame
    return step.substitute_parameters({"pyarrow_strings_enabled": False})


def _refuse_objects(step: Any, subject: str) -> None:
    """Raise where the column, or one that it may be made of, is text that was objects."""
    dtypes = _dtypes(_raw(step))
    if subject in dtypes:
        dtypes = {subject: dtypes[subject]}
    if any(map(pd.api.types.is_object_dtype, dtypes.values())):
        raise TypeError(
            f"subject={subject!r} comes from a column of Python objects, of which dask made text: 1 and '1' would be "
            "one subject, 1 and 1.0 two. Before the frame is made, call "
            "dask.config.set({'dataframe.convert-string': False}), or make ids of one kind: "
            f"gdf.astype({{{subject!r}: 'string'}})."
        )


def _dtypes(step: Any) -> dict[Any, Any]:
    meta = step._meta
    return dict(meta.dtypes) if meta.ndim == 2 else {meta.name: meta.dtype}


def _without_text(step: Any, subject: str) -> Any:
    """Return the step with text made of all other columns only."""
    raw = _raw(step)
    return (
        _frame(raw)
        .map_partitions(_texts_but, subject, meta=_texts_but(raw._meta, subject), enforce_metadata=False)
        .expr
    )


def _texts_but(part: Any, subject: str) -> Any:
    """Convert one partition as dask does, but for one column."""
    from dask.dataframe._pyarrow import to_pyarrow_string

    if part.ndim == 1:
        return part if part.name == subject else to_pyarrow_string(part)
    if subject not in part.columns:
        return to_pyarrow_string(part)
    rest = to_pyarrow_string(part.drop(columns=subject))
    rest.insert(part.columns.get_loc(subject), subject, part[subject])
    return rest


def _read_whole(step: Any, subject: str) -> Any:
    """Return a frame that was made of tasks, with dask-geopandas' readers of files keeping whole numbers whole."""
    from dask._task_spec import Task

    tasks, readers = dict(step.operand("layer")), {}
    for key, task in tasks.items():
        kind = _reads(getattr(task, "func", None))
        if kind is not None:
            readers[key] = Task(key, kind(task.func, subject), *task.args, **task.kwargs)
    return step.substitute_parameters({"layer": {**tasks, **readers}}) if readers else step


def _reads(function: Any) -> "type[_Whole] | None":
    """Return what stands in for a reader; None for any other function."""
    if hasattr(getattr(function, "engine", None), "_arrow_table_to_pandas"):
        return _Whole
    return _WholeOfLayer if type(function).__name__ == "FileFunctionWrapper" else None


class _Whole:
    """A reader of one partition of GeoParquet or Feather that makes no floats of whole numbers in one column."""

    def __init__(self, read: Any, column: str) -> None:
        self.read, self.column = read, column

    def __repr__(self) -> str:
        return "<reader>"

    def __call__(self, part: Any) -> Any:
        read = copy(self.read)
        read.engine = _engine(read.engine, self.column)
        return read(part)


class _WholeOfLayer(_Whole):
    """The same for a part of a file that GDAL reads."""

    def __call__(self, part: Any) -> Any:
        frame = self.read(part)
        if self.column in frame.columns and pd.api.types.is_float_dtype(frame.dtypes[self.column]):
            import pyogrio

            path, first, n = part
            _, table = pyogrio.read_arrow(
                path,
                layer=self.read.layer,
                columns=[self.column],
                read_geometry=False,
                skip_features=first,
                max_features=n,
            )
            frame[self.column] = _whole_numbers(table.column(self.column), frame[self.column])
        return frame


def _engine(engine: Any, column: str) -> Any:
    """Return dask-geopandas' engine with one thing done otherwise: nothing public lets a caller say it."""

    class Engine(engine):  # type: ignore[misc]
        @classmethod
        def _arrow_table_to_pandas(cls, table: Any, *args: Any, **kwargs: Any) -> Any:
            frame = super()._arrow_table_to_pandas(table, *args, **kwargs)
            if column in frame.columns and pd.api.types.is_float_dtype(frame.dtypes[column]):
                frame[column] = _whole_numbers(table.column(column), frame[column])
            return frame

    return Engine


def _whole_numbers(held: Any, read: Any) -> Any:
    """Return a column of a file with its gaps as gaps if it holds whole numbers, else as it was read."""
    import pyarrow

    if not pyarrow.types.is_integer(held.type):
        return read
    dtype = pd.api.types.pandas_dtype(str(held.type).replace("u", "U").replace("i", "I"))
    return held.to_pandas(types_mapper=lambda _: dtype).array
