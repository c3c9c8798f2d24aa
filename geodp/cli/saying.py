"""What a command says: results on stdout, everything else on stderr, and all of it as JSON when asked.

Nobody has to listen. What was released is paid for and written by then, so a pipe that is closed or a disk that is
full ends no command: of stdout the exit code tells, of stderr nothing.
"""

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from geodp.errors import GeoDPWarning
from geodp.progress import showing

__all__ = ["Unheard", "Voice", "as_json", "flushed", "listening", "say", "tell"]


class Unheard(Exception):
    """What a command had to say on stdout could not be written; whatever else it does is done."""


@dataclass
class Voice:
    """How one command speaks, and the warnings that it has heard."""

    quiet: bool = False
    json: bool = False
    warnings: list[dict[str, str]] = field(default_factory=list)

    def progress(self, words: str) -> None:
        """Say what is being done, on stderr."""
        if not self.quiet:
            say(words)

    def result(self, text: str, facts: dict[str, Any]) -> None:
        """Print the text, or the facts with all warnings, on stdout; raise Unheard where that fails."""
        if self.json:
            tell(as_json({"status": "done", **facts, "warnings": self.warnings}))
        elif text:
            tell(text)


@contextmanager
def listening(voice: Voice) -> Iterator[None]:
    """Print geodp's warnings as lines on stderr, and keep other libraries' to themselves: they may quote rows."""

    def heard(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        voice.warnings.append({"category": category.__name__, "message": str(message)})
        say(f"warning: {message}")

    bars = sys.stderr is not None and sys.stderr.isatty() and not voice.quiet
    with warnings.catch_warnings(), showing(bars):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", GeoDPWarning)
        warnings.showwarning = heard
        yield


def tell(text: str) -> None:
    """Print on stdout, and wait until it is out: what fails when Python ends is too late for an exit code.

    Raises
    ------
    Unheard
        Stdout is closed, full, or a pipe that nobody reads.
    """
    if sys.stdout is None:  # Python's word for one that was closed from the beginning
        raise Unheard("stdout is closed")
    why = _failure(sys.stdout, f"{_writable(text)}\n")
    if why is not None:
        raise Unheard(f"stdout could not be written ({why})")


def say(words: str) -> None:
    """Print one line on stderr; nobody reading it any more is no reason to lose a release that was paid for."""
    if sys.stderr is not None:
        _failure(sys.stderr, f"geodp: {' '.join(words.split())}\n")


def flushed() -> None:
    """Write what stdout and stderr still hold; raise Unheard if stdout does not take it."""
    if sys.stderr is not None:
        _failure(sys.stderr)
    why = None if sys.stdout is None else _failure(sys.stdout)
    if why is not None:
        raise Unheard(f"stdout could not be written ({why})")


def _failure(stream: TextIO, text: str | None = None) -> str | None:
    """Write to a stream, or only what it still holds; return why that failed."""
    try:
        if text is not None:
            stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: it was closed meanwhile
        _hush(stream)
        return getattr(error, "strerror", None) or "it is closed"
    return None


def _hush(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: Python tries again at its end, and makes the exit code 120."""
    with suppress(OSError, ValueError, AttributeError):  # what is put in its place need not be a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def as_json(facts: Any) -> str:
    """Return strict JSON: what is not finite becomes null."""
    escaped = _encoding().lower().replace("-", "") != "utf8"
    return _writable(json.dumps(_finite(facts), allow_nan=False, ensure_ascii=escaped))


def _writable(text: str) -> str:
    """Escape what stdout would not take, such as bytes of file names that are no UTF-8."""
    return text.encode(_encoding(), "backslashreplace").decode(_encoding())


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
