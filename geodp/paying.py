"""Which ledger a release goes into, under which label, and in which order it is paid for.

The order is the whole safety of a ledger: refuse early; count, which may fail and costs nothing; commit the
debit; draw; store; hand out. It stands here once, for maps, caps, joint releases and single points alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from geodp.errors import ReplayWarning, warn
from geodp.silence import discreetly
from geodp.wording import brief

if TYPE_CHECKING:
    from geodp.accounting import Charge
    from geodp.ledger import Ledger, Stored
    from geodp.policy import Policy
    from geodp.testing import Mode

__all__ = [
    "Accountable",
    "Books",
    "Columns",
    "Payable",
    "Payments",
    "Settled",
    "paying_ledger",
    "say_replayed",
]

Columns = Mapping[str, NDArray[Any]]
Counted = TypeVar("Counted")


class Accountable(Protocol):
    """What a ledger can write down: named by its public arguments, and described in plain JSON."""

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments."""

    def to_dict(self) -> dict[str, Any]:
        """Return what is written down."""


class Payable(Accountable, Protocol):
    """What a ledger can be charged for: a plan, a joint plan, or the choice of a cap."""

    @property
    def policy(self) -> "Policy":
        """Who is protected."""

    @property
    def charge(self) -> "Charge":
        """What it costs."""


Asked = TypeVar("Asked", bound=Accountable)


@dataclass(frozen=True)
class Settled:
    """Released numbers, and what the ledger says of them.

    Attributes
    ----------
    columns : mapping of str to ndarray
    entry : dict or None
        The ledger's part of the record; None without a ledger.
    stored : Stored or None
        The earlier release that this is, if it is one.
    """

    columns: Columns
    entry: dict[str, Any] | None
    stored: "Stored | None" = None

    @contextmanager
    def intact(self) -> Iterator[None]:
        """Say of stored numbers that do not fit what is asked that the ledger is damaged; fresh ones always fit."""
        if self.stored is None:
            yield
            return
        from geodp.tables import intact

        label = brief(self.stored.entry.get("label"))
        with intact(
            str(self.stored.entry.get("name")), f"the release stored as {label} does not fit its plan"
        ):
            yield


class Books(ABC, Generic[Asked]):
    """The ledger's side of one release; without a ledger there is nothing to pay or replay.

    Parameters
    ----------
    asked : Accountable
    ledger : Ledger or None
    label : str or None
    mode : Mode

    Raises
    ------
    LedgerError, TypeError, ValueError
        What the ledger could not write down is refused here, before any data are read.
    """

    def __init__(self, asked: Asked, ledger: "Ledger | None", label: str | None, mode: "Mode") -> None:
        self.asked, self.label, self.mode = asked, label, mode
        self.ledger = paying_ledger(ledger, label, mode)
        if self.ledger is not None:
            self.check(self.ledger)

    def settle(
        self,
        count: Callable[[], Counted],
        draw: Callable[[Counted], Columns],
        *,
        retry: bool,
        reason: str | None,
    ) -> Settled:
        """Return the stored release of this label; or count, pay, draw and store, in this order."""
        stored = self.stored(retry)
        if stored is not None:
            say_replayed(str(self.label), stored)
            return Settled(stored.columns, stored.entry, stored)
        counted = count()
        entry = self._commit(retry, reason)
        # From here on the budget is spent, whatever happens. What draws holds exact numbers, and fails without them.
        columns = discreetly("drawing the noise", self.mode, lambda: draw(counted), *_outcome(entry))
        return Settled(columns, self._keep(entry, columns))

    def stored(self, retry: bool) -> "Stored | None":
        """Return the stored release of this label, if there is one; refuse early what would not fit."""
        if self.ledger is None or self.label is None:
            return None
        stored = self.ledger.stored(self.label, self.asked.key, retry=retry)
        if stored is None:
            self.refuse_early(self.ledger)
        return stored

    @abstractmethod
    def check(self, book: "Ledger") -> None:
        """Raise where this ledger is not kept for what is asked."""

    @abstractmethod
    def refuse_early(self, book: "Ledger") -> None:
        """Raise what the commitment would raise, before any data are read."""

    @abstractmethod
    def commit(self, book: "Ledger", label: str, retry: bool, reason: str | None) -> int:
        """Write down what is about to be known, and return the number of the entry."""

    def _commit(self, retry: bool, reason: str | None) -> int | None:
        if self.ledger is None or self.label is None:
            return None
        return self.commit(self.ledger, self.label, retry, reason)

    def _keep(self, entry: int | None, columns: Columns) -> dict[str, Any] | None:
        """Store the released numbers before they are handed out."""
        return None if self.ledger is None or entry is None else self.ledger.store(entry, columns)


def _outcome(entry: int | None) -> tuple[str, str]:
    """Return what is left of a release that failed after the payment, and what to do."""
    if entry is None:
        return "nothing was released", "Nothing was booked either: no ledger counts it."
    return "what was debited stays spent", "retry=True pays again; geodp ledger show PATH says what was paid."


class Payments(Books[Payable]):
    """Releases that cost (eps, delta): each is a debit."""

    def check(self, book: "Ledger") -> None:
        """Raise where the ledger is kept for other people, or for nobody."""
        policy = self.asked.policy
        if policy.subject is None:
            raise ValueError(
                'a ledger counts what is known about people; name the subject column, subject="rider". If every '
                "row is another person or thing, say so: subject=geodp.EACH_ROW."
            )
        book.check_policy(unit=policy.unit, neighboring=policy.neighboring)

    def refuse_early(self, book: "Ledger") -> None:
        """Raise where the ceiling would be passed."""
        book.check(self.asked.charge)

    def commit(self, book: "Ledger", label: str, retry: bool, reason: str | None) -> int:
        """Debit the ledger, in one transaction that checks the ceiling once more."""
        asked = self.asked
        return book.debit(label, asked.key, asked.charge, asked.to_dict(), retry=retry, reason=reason)


def paying_ledger(ledger: "Ledger | None", label: str | None, mode: "Mode") -> "Ledger | None":
    """Return the ledger that was given, or that this process has to use; None if there is none.

    Raises
    ------
    LedgerError
        One is required and missing, or GEODP_LEDGER cannot be opened.
    ValueError
        A ledger without a label, a label without a ledger, or a release inside ``geodp.testing``.
    """
    from geodp.ledger import Ledger, default_ledger

    if ledger is not None and not isinstance(ledger, Ledger):
        raise TypeError(f"ledger must be a geodp.Ledger, got {type(ledger).__name__}; open it: Ledger(path).")
    book = ledger if ledger is not None else default_ledger()
    if book is None:
        if label is not None:
            raise ValueError("label names a release in a ledger; give ledger=, or leave label out.")
        return None
    if mode.is_test:
        raise ValueError("a release made inside geodp.testing is never put into a ledger.")
    if label is None:
        raise ValueError(
            'label is required with a ledger: it names the release, as in label="2026-11-30 nightly". The '
            "same label again returns the stored release; another label spends again."
        )
    return book


def say_replayed(label: str, stored: "Stored") -> None:
    """Warn that what is returned was released before."""
    warn(
        f'label "{label}": stored release of {stored.entry["time"]}, data not read, nothing spent.',
        ReplayWarning,
    )
