"""No warning that rows can trigger: one would tell of them.

The list of warning filters belongs to the whole process. Two threads that save and restore it on their own,
one after the other, can leave warnings off for good; so all threads share one saved list, and the last to
leave puts it back.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["quiet"]

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
