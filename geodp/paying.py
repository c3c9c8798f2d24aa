"""Which ledger a release goes into, under which label: the same rules for maps and for single points."""

from typing import TYPE_CHECKING

from geodp.errors import ReplayWarning, warn

if TYPE_CHECKING:
    from geodp.ledger import Ledger, Stored
    from geodp.testing import Mode

__all__ = ["paying_ledger", "say_replayed"]


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
