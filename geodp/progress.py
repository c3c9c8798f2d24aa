"""Bars for what takes more than a few seconds: stages and percentages, and nothing that counts rows.

How many points there are, how fast they go and in how many partitions they lie would be facts about people;
a bar shows none of them, and goes in tenths. ``progress=False`` silences every bar of a call.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic
from typing import Any

from geodp.wording import brief

__all__ = ["Bar", "current", "showing", "stage"]

_DELAY = 2.0
_STEP = 10
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}|"

_shown: ContextVar[bool] = ContextVar("geodp_progress", default=True)


class Bar:
    """The bar of one stage; nothing shows before the stage has taken two seconds.

    Parameters
    ----------
    words : str, optional
        What the stage does. Without, the bar never shows.
    """

    def __init__(self, words: str | None = None) -> None:
        self._words, self._begun = words, monotonic()
        self._inner: Any = None

    def reach(self, part: float) -> None:
        """Say how much is done, from 0 to 1."""
        if self._words is None or monotonic() - self._begun < _DELAY:
            return
        try:
            if self._inner is None:
                self._inner = _tqdm(self._words)
            # Every tenth, one after the other: other steps would tell in how many parts the rows were cut.
            while self._inner.n + _STEP <= 100 * part + 1e-9:
                self._inner.update(_STEP)
        except Exception:
            # A terminal that is gone or a full disk: no reason to lose a release, which may be paid for by now.
            self._words = None

    def close(self) -> None:
        """Take the bar away."""
        if self._inner is not None:
            with suppress(Exception):
                self._inner.close()


def _tqdm(words: str) -> Any:
    with warnings.catch_warnings():
        # In a notebook without widgets tqdm would say so; its text bar will do.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        return tqdm(total=100, desc=words, leave=False, bar_format=_FORMAT)


_current: ContextVar[Bar] = ContextVar("geodp_bar", default=Bar())  # noqa: B039


@contextmanager
def showing(progress: bool) -> Iterator[None]:
    """Show bars within, or none.

    Examples
    --------
    >>> with showing(False), stage("drawing outlines") as bar:
    ...     bar.reach(0.5)
    """
    if not isinstance(progress, bool):
        raise TypeError(f"progress must be True or False, got {brief(progress)}.")
    token = _shown.set(progress and _shown.get())
    try:
        yield
    finally:
        _shown.reset(token)


@contextmanager
def stage(words: str) -> Iterator[Bar]:
    """Show a bar with these words, once the stage has taken two seconds."""
    bar = Bar(words if _shown.get() else None)
    token = _current.set(bar)
    try:
        yield bar
    finally:
        _current.reset(token)
        bar.close()


def current() -> Bar:
    """Return the bar of the stage that is on, an invisible one where none is.

    Work deep inside a stage tells it how far it is; only the thread that began the stage may.
    """
    return _current.get()
