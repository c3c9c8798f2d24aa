"""No warning and no words of a failure that rows can trigger: they would tell of them.

The list of warning filters belongs to the whole process. Two threads that save and restore it on their own,
one after the other, can leave warnings off for good; so all threads share one saved list, and the last to
leave puts it back.
"""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from geodp.errors import GeoDPError

if TYPE_CHECKING:
    from geodp.testing import Mode

__all__ = ["discreetly", "quiet"]

T = TypeVar("T")

_lock = threading.Lock()
_saved: list[warnings.catch_warnings] = []
_within = 0


@contextmanager
def quiet() -> Iterator[None]:
    """Keep every numeric warning in, in this thread and in all that are within at the same time."""
    _enter()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _leave()


def _enter() -> None:
    global _within
    with _lock:
        if _within == 0:
            _saved.append(warnings.catch_warnings())
            _saved[0].__enter__()
            warnings.simplefilter("ignore")
        _within += 1


def _leave() -> None:
    global _within
    with _lock:
        _within -= 1
        if _within == 0:
            _saved.pop().__exit__(None, None, None)


def discreetly(
    stage: str,
    mode: "Mode",
    work: Callable[[], T],
    outcome: str = "nothing was spent",
    hint: str = "gdf.dp.audit() looks at the rows.",
) -> T:
    """Do what touches rows or exact numbers; of a failure say where it happened, and nothing that a library said.

    A release inside ``geodp.testing`` protects nobody, so there the cause is shown.
    """
    if mode.is_test:
        return work()
    message = f"{stage} failed; {outcome}. {hint}"
    try:
        return work()
    except GeoDPError:
        # Geodp's own words: of arguments, dtypes, places and budgets, never a value of a row. They also say what to
        # do, and their class tells a program, so they pass; whoever raises one below here answers for its text.
        raise
    except MemoryError:
        message = f"not enough memory while {stage}; {outcome}."
    except Exception:
        pass
    # Outside every handler (a context manager would be inside one), so that the error has no cause and no
    # context that could hold values.
    raise GeoDPError(message)
