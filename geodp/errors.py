"""What geodp raises and warns with.

Bad arguments are plain ``ValueError`` or ``TypeError``. The classes here exist where a caller
has something to do about it: wait for budget, retry a label, silence one kind of warning.
No message ever holds a value that came out of the rows.
"""

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

__all__ = [
    "BoundsWarning",
    "BudgetExceeded",
    "GeoDPError",
    "GeoDPWarning",
    "IncompleteRelease",
    "LedgerError",
    "NoiseWarning",
    "NotARelease",
    "PopulationWarning",
    "PrivacyUnitWarning",
    "ReplayWarning",
    "warn",
]

_PACKAGE = str(Path(__file__).parent)


class GeoDPError(Exception):
    """Base of every error that a caller may want to catch as geodp's own."""


class BudgetExceeded(GeoDPError):
    """A release would pass the ledger's ceiling; nothing was released or spent.

    Attributes
    ----------
    spent, asked, left : dict
        Mappings with the keys ``eps``, ``delta`` and ``rho``, as the ledger counts them.
    """

    def __init__(
        self, message: str, *, spent: dict[str, float], asked: dict[str, float], left: dict[str, float]
    ) -> None:
        super().__init__(message)
        self.spent = spent
        self.asked = asked
        self.left = left

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from their positional arguments alone, and this one has keywords.
        again = partial(type(self), spent=self.spent, asked=self.asked, left=self.left)
        return again, self.args, self.__dict__


class LedgerError(GeoDPError):
    """A ledger cannot be read, written, locked or trusted; nothing was released."""


class IncompleteRelease(LedgerError):
    """A label was paid for but its release was never stored; ``retry=True`` pays again."""


class NotARelease(GeoDPError, ValueError):
    """A frame carries no release record, or is no longer what its record describes."""


class GeoDPWarning(UserWarning):
    """Base of geodp's warnings; ``warnings.simplefilter("ignore", GeoDPWarning)`` silences all."""


class PrivacyUnitWarning(GeoDPWarning):
    """No subject was named, so single rows are protected, not people."""


class BoundsWarning(GeoDPWarning):
    """No bounds were given, so the whole world is the map."""


class NoiseWarning(GeoDPWarning):
    """The noise is so small, or so large, that the release is probably not what was meant."""


class PopulationWarning(GeoDPWarning):
    """delta times the declared population is large enough to be somebody."""


class ReplayWarning(GeoDPWarning):
    """A label was released before; the stored release is returned and no data were read."""


def warn(message: str, category: type[GeoDPWarning]) -> None:
    """Warn at the line of the user's own code, however deep in geodp the reason lies."""
    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth)
