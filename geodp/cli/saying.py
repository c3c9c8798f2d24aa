"""What a command says: results on stdout, everything else on stderr, and all of it as JSON when asked."""

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from geodp.errors import GeoDPWarning
from geodp.progress import showing

__all__ = ["Voice", "as_json", "listening", "say"]


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
        """Print the text, or the facts with all warnings, on stdout."""
        if self.json:
            print(as_json({"status": "done", **facts, "warnings": self.warnings}))
        elif text:
            print(_writable(text))


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


def say(words: str) -> None:
    """Print one line on stderr; nobody reading it any more is no reason to lose a release that was paid for."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"geodp: {' '.join(words.split())}", file=sys.stderr, flush=True)


def as_json(facts: Any) -> str:
    """Return strict JSON: what is not finite becomes null."""
    return _writable(json.dumps(_finite(facts), allow_nan=False, ensure_ascii=False))


def _writable(text: str) -> str:
    """Escape, as JSON does, the bytes of arguments and file names that are no UTF-8: stdout would not take them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
