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
    """Base of every error that a caller may want to catch as geodp's own.

    Examples
    --------
    >>> issubclass(BudgetExceeded, GeoDPError), issubclass(GeoDPError, ValueError)
    (True, False)
    """


class BudgetExceeded(GeoDPError):
    """A release would pass the ledger's ceiling; nothing was released or spent.

    Attributes
    ----------
    spent, asked, left : dict
        Mappings with the keys ``eps``, ``delta`` and ``rho``, as the ledger counts them.

    Examples
    --------
    >>> import geodp, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = geodp.Ledger(folder.name + "/city.ledger", eps=1)
    >>> try:
    ...     ledger.check(geodp.Charge(2))
    ... except BudgetExceeded as error:
    ...     error.asked["eps"], error.left["eps"]
    (2.0, 1.0)
    >>> folder.cleanup()
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
    """A ledger cannot be read, written, locked or trusted; nothing was released.

    Examples
    --------
    >>> import geodp
    >>> try:
    ...     geodp.Ledger("nowhere.ledger")
    ... except LedgerError:
    ...     print("create it with eps= and delta=")
    create it with eps= and delta=
    """


class IncompleteRelease(LedgerError):
    """A label was paid for but its release was never stored; ``retry=True`` pays again.

    Examples
    --------
    >>> import geodp, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = geodp.Ledger(folder.name + "/city.ledger", eps=1)
    >>> entry = ledger.debit("2026-11-30", "{}", geodp.Charge(1), {})  # and the process ends here
    >>> try:
    ...     ledger.stored("2026-11-30", "{}")
    ... except IncompleteRelease:
    ...     print("ask again with retry=True, which pays again")
    ask again with retry=True, which pays again
    >>> folder.cleanup()
    """


class NotARelease(GeoDPError, ValueError):
    """A frame carries no release record, or is no longer what its record describes.

    Examples
    --------
    >>> import geodp
    >>> import pandas as pd
    >>> try:
    ...     geodp.record(pd.DataFrame({"count": [1, 2]}))
    ... except NotARelease:
    ...     print("no record")
    no record
    """


class GeoDPWarning(UserWarning):
    """Base of geodp's warnings; ``warnings.simplefilter("ignore", GeoDPWarning)`` silences all.

    Examples
    --------
    >>> issubclass(PrivacyUnitWarning, GeoDPWarning), issubclass(GeoDPWarning, UserWarning)
    (True, True)
    """


class PrivacyUnitWarning(GeoDPWarning):
    """No subject was named, so single rows are protected, not people.

    Say so on purpose with ``subject=geodp.EACH_ROW``, which does not warn.

    Examples
    --------
    >>> import geodp, warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     plan = geodp.plan(1.0, bounds=(0, 0, 1, 1), grid="square:1")
    >>> [warning.category.__name__ for warning in said]
    ['PrivacyUnitWarning']
    """


class BoundsWarning(GeoDPWarning):
    """No bounds were given, so the whole world is the map.

    Examples
    --------
    >>> import geodp, warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     plan = geodp.plan(1.0, subject="rider", cap=1, grid="h3:1")
    >>> [warning.category.__name__ for warning in said]
    ['BoundsWarning']
    """


class NoiseWarning(GeoDPWarning):
    """The noise is so small, or so large, that the release is probably not what was meant.

    Examples
    --------
    >>> import geodp, warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     plan = geodp.plan(50.0, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:1", mechanism="laplace")
    >>> [warning.category.__name__ for warning in said]
    ['NoiseWarning']
    """


class PopulationWarning(GeoDPWarning):
    """delta times the declared population is large enough to be somebody.

    Examples
    --------
    >>> import geodp, warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     plan = geodp.plan(1.0, 1e-6, subject="rider", cap=99, population=100_000, bounds=(0, 0, 9, 9), grid="h3:3")
    >>> [warning.category.__name__ for warning in said]
    ['PopulationWarning']
    """


class ReplayWarning(GeoDPWarning):
    """A label was released before; the stored release is returned and no data were read.

    Examples
    --------
    >>> import geodp, tempfile, warnings
    >>> import geopandas as gpd
    >>> folder = tempfile.TemporaryDirectory()
    >>> trips = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0.5], [0.5]), crs=4326)
    >>> view = trips.dp(subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:1",
    ...                 ledger=geodp.Ledger(folder.name + "/city.ledger", eps=1))
    >>> first = view.heatmap(1.0, label="2026-11-30")
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     again = view.heatmap(1.0, label="2026-11-30")
    >>> said[0].category.__name__, first["noisy_count"].equals(again["noisy_count"])
    ('ReplayWarning', True)
    >>> folder.cleanup()
    """


def warn(message: str, category: type[GeoDPWarning]) -> None:
    """Warn at the line of the user's own code, however deep in geodp the reason lies."""
    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth)
