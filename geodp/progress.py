"""Bars for what takes more than a few seconds: stages and percentages, and nothing that counts rows.

How many points there are, how fast they go and in how many partitions they lie would be facts about people;
a bar shows none of them. ``progress=False`` silences every bar of a call.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from geodp.wording import brief

__all__ = ["Bar", "showing", "stage"]

_DELAY = 2.0
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}|"

_shown: ContextVar[bool] = ContextVar("geodp_progress", default=True)


class Bar:
    """The bar of one stage, which may be an invisible one.

    Parameters
    ----------
    inner : tqdm or None
    """

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def reach(self, part: float) -> None:
        """Say how much is done, from 0 to 1."""
        percent = int(100 * part)
        if self._inner is not None and percent > self._inner.n:
            self._inner.update(percent - self._inner.n)


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
    if not _shown.get():
        yield Bar()
        return
    with warnings.catch_warnings():
        # In a notebook without widgets tqdm would say so; its text bar will do.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        inner = tqdm(total=100, desc=words, delay=_DELAY, leave=False, bar_format=_FORMAT)
    try:
        yield Bar(inner)
    finally:
        inner.close()
