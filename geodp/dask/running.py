"""Carrying out a graph: on the cluster of the current client, or on dask's local schedulers."""

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from geodp.dask.errors import code_of
from geodp.dask.graph import Work
from geodp.dask.tasks import Failed
from geodp.dask.totals import Totals
from geodp.progress import stage

__all__ = ["run"]


class _Stopped(Exception):
    """Carries a failure out of a scheduler's loop."""

    def __init__(self, failed: Failed) -> None:
        super().__init__()
        self.failed = failed


class _Watch:
    """Follows the tasks that are done: first the partitions, then the sets of subjects."""

    def __init__(self, work: Work, bars: ExitStack) -> None:
        self._bars = bars
        self._stages = [("placing points", set(work.states)), ("adding up", set(work.tallies))]
        self._next()

    def see(self, key: Any) -> None:
        """Count a task that is done."""
        for _, waiting in self._stages:
            waiting.discard(key)
        while len(self._stages) > 1 and not self._stages[0][1]:
            self._bar.reach(1.0)
            del self._stages[0]
            self._next()
        self._bar.reach(1 - len(self._stages[0][1]) / self._size)

    def _next(self) -> None:
        self._bars.close()
        words, waiting = self._stages[0]
        self._size = max(1, len(waiting))
        self._bar = self._bars.enter_context(stage(words))


def run(work: Work, get: Callable[..., Any]) -> Totals | Failed:
    """Return the totals, or the code of what failed.

    Parameters
    ----------
    work : Work
    get : callable
        The scheduler: a client's ``get``, or one of dask's own.
    """
    code = "upstream"
    try:
        with ExitStack() as bars:
            watch = _Watch(work, bars)
            client = getattr(get, "__self__", None)
            return _locally(work, get, watch) if client is None else _on_cluster(work, client, watch)
    except _Stopped as stopped:
        return stopped.failed
    except Exception as error:
        code = code_of(error)
    # Outside the handler: what is raised of this has no cause that could quote a row.
    return Failed(code)


def _locally(work: Work, get: Callable[..., Any], watch: _Watch) -> Totals | Failed:
    from dask.callbacks import Callback

    states = set(work.states)

    def after(key: Any, value: Any, *_: Any) -> None:
        if key in states and value is not None:
            raise _Stopped(value)
        watch.see(key)

    with Callback(posttask=after):
        result: Totals | Failed = get(work.tasks, [work.result, *work.states])[0]
        return result


def _on_cluster(work: Work, client: Any, watch: _Watch) -> Totals | Failed:
    """Follow the futures of small results as they come; only the last one is fetched."""
    from distributed import as_completed

    _check_workers(client)
    keys = list(dict.fromkeys([work.result, *work.states, *work.tallies]))
    futures = dict(zip(keys, client.get(work.tasks, keys, sync=False), strict=True))
    names = {future: key for key, future in futures.items()}
    try:
        for batch in as_completed(list(names)).batches():
            _check(batch, names, set(work.states), client)
            for future in batch:
                watch.see(names[future])
            if futures[work.result] in batch:
                break
            for future in batch:
                future.release()
        result: Totals | Failed = futures[work.result].result()
        return result
    finally:
        # Tasks that nobody waits for any more are dropped, also after an interrupt.
        for future in names:
            future.release()


def _check_workers(client: Any) -> None:
    """Raise an ImportError where a worker lacks this package: it would die of every task, and none would end."""
    found = client.run(import_module, "geodp.dask", on_error="return")
    # One that is dying just now is not one that lacks something.
    if any(isinstance(module, Exception) and not isinstance(module, OSError) for module in found.values()):
        raise ImportError


def _check(batch: Any, names: dict[Any, Any], states: set[Any], client: Any) -> None:
    """Stop at the first partition that failed, instead of reading all others before saying so."""
    for future in batch:
        if future.status != "finished":
            raise future.exception() or ConnectionError
    found = client.gather([future for future in batch if names[future] in states])
    failures = [value for value in found if value is not None]
    if failures:
        raise _Stopped(min(failures, key=lambda failed: failed.partition))
