"""What can go wrong on the command line, and the exit code of each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from geodp.errors import BudgetExceeded, GeoDPError
from geodp.reading import BadInput

__all__ = [
    "BAD_ARGUMENTS",
    "BAD_INPUT",
    "BUDGET",
    "DONE",
    "FAILED",
    "UNHEARD",
    "Failure",
    "arguments",
    "failure",
    "input_",
]

_SPENT = "Whether something was spent: geodp ledger show PATH."

DONE, FAILED, BAD_ARGUMENTS, BUDGET, BAD_INPUT, UNHEARD = 0, 1, 2, 3, 4, 5


class Failure(Exception):
    """An error with its exit code; its message is printed as one line."""

    def __init__(self, message: str, code: int, facts: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.facts = facts or {}


@contextmanager
def arguments() -> Iterator[None]:
    """Say of a plain ValueError or TypeError within that it comes from the arguments."""
    with _plain_errors(BAD_ARGUMENTS):
        yield


@contextmanager
def input_() -> Iterator[None]:
    """Say of a plain ValueError or TypeError within that it comes from the file."""
    with _plain_errors(BAD_INPUT):
        yield


@contextmanager
def _plain_errors(code: int) -> Iterator[None]:
    try:
        yield
    except GeoDPError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(str(error), code) from None


def failure(error: BaseException) -> Failure:
    """Return any error as one with an exit code; what geodp did not write itself is not repeated."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, BudgetExceeded):
        facts = {"spent": error.spent, "asked": error.asked, "left": error.left}
        return Failure(str(error), BUDGET, facts)
    if isinstance(error, BadInput):
        return Failure(str(error), BAD_INPUT)
    if isinstance(error, GeoDPError):
        return Failure(str(error), _code(error))
    if isinstance(error, MemoryError):
        return Failure(f"there is not enough memory. {_SPENT}", FAILED)
    return Failure(
        f"an unexpected {type(error).__name__}; its text is not shown, since it may quote rows. {_SPENT}",
        FAILED,
    )


def _code(error: GeoDPError) -> int:
    """A ledger or a release that cannot be used is bad input; a release that failed is another failure."""
    return FAILED if type(error) is GeoDPError else BAD_INPUT
