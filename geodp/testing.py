"""Releases without noise, or with repeatable noise, for tests and nothing else.

The context managers work only where the environment says ``GEODP_TESTING=1``, and the variable alone
switches nothing on. Whatever is released inside one says so in its record and is stamped NOT PRIVATE
wherever geodp writes or draws it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOT_PRIVATE", "OS_ENTROPY", "Mode", "current", "noiseless", "seeded"]

NOT_PRIVATE = "NOT PRIVATE"
OS_ENTROPY = "operating-system entropy"

Bits = Callable[[int], NDArray[np.uint64]]


@dataclass(frozen=True)
class Mode:
    """How a release is drawn: the secret of the cap's choice, and where noise comes from.

    Attributes
    ----------
    noise : str
        What the record says.
    secret : bytes
        16 bytes: the key of the pseudo-random choice under the cap.
    bits : callable or None
        Source of random 64-bit words; ``None`` is the operating system.
    silent : bool
        No noise at all.
    ended : list
        Not empty once the context manager is left.

    Examples
    --------
    >>> current().is_test
    False
    """

    noise: str
    secret: bytes
    bits: Bits | None = None
    silent: bool = False
    ended: list[bool] = field(default_factory=list, compare=False, repr=False)

    @property
    def is_test(self) -> bool:
        """Whether the release protects nobody."""
        return self.noise != OS_ENTROPY


_mode: ContextVar[Mode | None] = ContextVar("geodp_testing_mode", default=None)


def current() -> Mode:
    """Return the mode of a release that starts now: fresh and from the operating system, outside tests.

    Returns
    -------
    Mode
        With a fresh secret for each call, outside the context managers of this module.

    Examples
    --------
    >>> current().noise
    'operating-system entropy'
    """
    mode = _mode.get()
    # A task that was started inside the context may run on after it; it must not run on without noise.
    return mode if mode is not None and not mode.ended else Mode(OS_ENTROPY, os.urandom(16))


@contextmanager
def noiseless(key: int = 0) -> Iterator[None]:
    """Release exact tallies inside a ``with`` block.

    Parameters
    ----------
    key : int, default 0
        Fixes which cells subjects above the cap keep.

    Yields
    ------
    None

    Raises
    ------
    RuntimeError
        ``GEODP_TESTING=1`` is not set in the environment.

    Examples
    --------
    >>> os.environ["GEODP_TESTING"] = "1"
    >>> with noiseless():
    ...     current().noise
    'none (test)'
    """
    with _entered(Mode("none (test)", _secret(key), silent=True)):
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Release with noise that repeats for the same seed, call by call, inside a ``with`` block.

    Parameters
    ----------
    seed : int
        Of a generator that is fit for tests and for nothing else.

    Yields
    ------
    None

    Raises
    ------
    RuntimeError
        ``GEODP_TESTING=1`` is not set in the environment.

    Examples
    --------
    >>> os.environ["GEODP_TESTING"] = "1"
    >>> with seeded(7):
    ...     current().noise
    'seeded (test)'
    """
    words = np.random.Generator(np.random.PCG64(seed))

    def bits(n: int) -> NDArray[np.uint64]:
        return words.integers(0, 2**64, n, dtype=np.uint64)

    with _entered(Mode("seeded (test)", _secret(seed), bits)):
        yield


@contextmanager
def _entered(mode: Mode) -> Iterator[None]:
    if os.environ.get("GEODP_TESTING") != "1":
        raise RuntimeError(
            "geodp.testing makes releases that protect nobody; it works only with GEODP_TESTING=1 set in "
            "the environment of the test run."
        )
    token = _mode.set(mode)
    try:
        yield
    finally:
        mode.ended.append(True)
        _mode.reset(token)


def _secret(number: int) -> bytes:
    return int(number).to_bytes(16, "little", signed=True)
