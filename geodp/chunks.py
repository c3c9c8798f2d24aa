"""Work on long arrays in chunks that stay in the processor's cache, on as many threads as there are cores.

numpy, shapely and pandas let other threads run while they go through an array, so two cores halve most of it.
Every chunk's result is its own and lands at its own place: how many threads there are changes no bit. Threads
are used in the main thread only. Elsewhere (a worker of dask, a server) somebody has shared out the cores already.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from geodp.progress import Bar

__all__ = ["beside", "cores", "each", "slices"]

T = TypeVar("T")
U = TypeVar("U")

_CHUNK = 1 << 16
_MOST = 8
_AHEAD = 4


def cores() -> int:
    """Return how many threads may run at once: the cores this process may use, at most 8."""
    if threading.current_thread() is not threading.main_thread():
        return 1
    allowed = getattr(os, "sched_getaffinity", None)
    return min(_MOST, len(allowed(0)) if allowed else os.cpu_count() or 1)


def slices(n: int, chunk: int = _CHUNK) -> list[slice]:
    """Return ``range(n)`` in pieces.

    Examples
    --------
    >>> slices(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(start, min(n, start + chunk)) for start in range(0, n, chunk)]


def each(work: Callable[[slice], T], parts: Sequence[slice], bar: Bar | None = None) -> list[T]:
    """Return ``work(part)`` of every part, in their order.

    Parameters
    ----------
    work : callable
        Touches nothing that another part touches.
    parts : sequence of slice
    bar : Bar, optional
        Told how much is done.
    """
    bar, threads, done = bar or Bar(), min(cores(), len(parts)), []
    if threads < 2:
        for part in parts:
            done.append(work(part))
            bar.reach(len(done) / len(parts))
        return done
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(copy_context().run, work, part))
                if len(waiting) > _AHEAD * threads:
                    done.append(waiting.popleft().result())
                    bar.reach(len(done) / len(parts))
            return [*done, *(future.result() for future in waiting)]
        finally:
            # After a failure or an interrupt, what has not begun does not begin.
            for future in waiting:
                future.cancel()


def beside(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Return the results of both; the first runs in a thread of its own where there are several cores."""
    if cores() < 2:
        return first(), second()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(copy_context().run, first)
        mine = second()
        return other.result(), mine
