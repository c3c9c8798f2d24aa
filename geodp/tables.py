"""The ledger's three tables, and every statement that reads or writes them.

Money is only ever added: entries are never updated or deleted, and each carries the running total, so a
debit reads one row however long the ledger is. An entry is the debit of a release, or the note of one
whose guarantee is per kilometre; a note leaves the (eps, delta) total as it is. A release points at the
entry that paid for it last; its label and its entry are unique, so one entry cannot serve two releases.

Amounts are exact texts. Entries are numbered and ordered by id; their times are for people, and a clock
that was set back changes nothing.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any, NamedTuple

from geodp.accounting import NOTHING, Charge
from geodp.blobs import checksum
from geodp.errors import LedgerError
from geodp.exact import UNREADABLE, tidy, written
from geodp.storage import Connection, Storage
from geodp.terms import FORMAT, Terms
from geodp.wording import brief

__all__ = [
    "METRIC",
    "RELEASE",
    "Standing",
    "append",
    "append_note",
    "counts",
    "create",
    "data_of",
    "digest_of",
    "entries",
    "entry",
    "finish",
    "first_entry",
    "intact",
    "last",
    "metric_of",
    "now",
    "read_terms",
    "release",
    "releases",
    "reserve",
]

Row = dict[str, Any]

RELEASE, METRIC = "release", "metric"  # the kinds of entries

_SCHEMA = (
    "CREATE TABLE geodp_ledger (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE geodp_entries (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('release', 'metric')),
        label TEXT NOT NULL, time TEXT NOT NULL,
        charge TEXT NOT NULL, total TEXT NOT NULL, tier TEXT, reason TEXT,
        record TEXT NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE geodp_releases (
        label TEXT PRIMARY KEY, key TEXT NOT NULL,
        entry INTEGER NOT NULL UNIQUE REFERENCES geodp_entries (id),
        state TEXT NOT NULL CHECK (state IN ('reserved', 'released')),
        stored TEXT, data {blob}, digest TEXT)""",
)
_ENTRY = ("id", "kind", "label", "time", "charge", "total", "tier", "reason", "record", "digest")
_RELEASE = ("label", "key", "entry", "state", "stored", "data", "digest")


def create(storage: Storage, connection: Connection, terms: Terms) -> None:
    """Make the tables and write the terms."""
    for statement in _SCHEMA:
        connection.execute(statement.format(blob=storage.blob))
    for name, value in terms.to_rows().items():
        connection.execute(
            "INSERT INTO geodp_ledger (name, value) VALUES (:name, :value)", {"name": name, "value": value}
        )


def read_terms(storage: Storage, connection: Connection) -> Terms | None:
    """Return the terms of the ledger; None if there are no tables yet.

    Raises
    ------
    LedgerError
        They cannot be read, or a newer geodp wrote them.
    """
    if not storage.has_table(connection):
        return None
    rows: dict[str, str] = dict(connection.execute("SELECT name, value FROM geodp_ledger"))
    with intact(storage.name, "its terms cannot be read"):
        if not all(isinstance(text, str) for pair in rows.items() for text in pair):
            raise TypeError("terms are texts.")
        version = rows.get("format", "")
        if version.isdecimal() and int(version) > FORMAT:
            raise LedgerError(
                f"{storage.name} was written by a newer geodp (format {version}; this one reads {FORMAT}). "
                "Update geodp. Nothing was released or spent."
            )
        if version != str(FORMAT):
            raise LedgerError(
                f"{storage.name} has the format {brief(version)}, which this geodp does not know; it reads {FORMAT}. "
                "Nothing was released or spent."
            )
        return Terms.from_rows(rows)


@contextmanager
def intact(name: str, problem: str = "what it holds cannot be read") -> Iterator[None]:
    """Say of whatever goes wrong with stored texts and bytes that the ledger is damaged.

    A file can hold anything: numbers where texts should be, texts that are no JSON, lists without end.
    """
    try:
        yield
    except UNREADABLE as error:
        raise LedgerError(
            f"{name} is damaged: {problem}. verify() tells more. Nothing was released or spent."
        ) from error


class Standing(NamedTuple):
    """Where a ledger stands after its last entry."""

    number: int
    spent: Charge
    metric: Fraction  # per kilometre, all notes together
    digest: str | None


def last(storage: Storage, connection: Connection) -> Standing:
    """Return where the ledger stands; number 0 and no digest before the first entry."""
    rows = connection.execute("SELECT id, total, digest FROM geodp_entries ORDER BY id DESC LIMIT 1")
    if not rows:
        return Standing(0, NOTHING, Fraction(0), None)
    with intact(storage.name, "what was spent cannot be read"):
        number, text, digest = rows[0]
        total = json.loads(text)
        return Standing(int(number), Charge.from_dict(total), metric_of(total), digest)


def metric_of(amounts: Mapping[str, Any]) -> Fraction:
    """Return what a cost or a total holds per kilometre; nothing where it was left out."""
    return written(amounts.get("eps_per_km", 0))


def append(storage: Storage, connection: Connection, terms: Terms, row: Row, charge: Charge) -> int:
    """Write the next entry for ``charge``; ``row`` holds label, record and reason. Return its number."""
    before = last(storage, connection)
    total = _total(before.spent + charge, before.metric)
    row = row | {"kind": RELEASE, "charge": charge.to_dict(), "total": total, "tier": terms.tier_of(charge)}
    return _write(connection, terms, row, before)


def append_note(storage: Storage, connection: Connection, terms: Terms, row: Row, worst: Fraction) -> int:
    """Write the next entry for a guarantee of ``worst`` per kilometre and subject. Return its number."""
    before = last(storage, connection)
    total = _total(before.spent, tidy(before.metric + worst))
    row = row | {"kind": METRIC, "charge": {"eps_per_km": str(worst)}, "total": total, "tier": None}
    return _write(connection, terms, row, before)


def _total(spent: Charge, metric: Fraction) -> Row:
    return {**spent.to_dict(), **({"eps_per_km": str(metric)} if metric else {})}


def _write(connection: Connection, terms: Terms, row: Row, before: Standing) -> int:
    texts = {name: json.dumps(row[name]) for name in ("charge", "total")}
    row = row | texts | {"id": before.number + 1, "time": now()}
    row["digest"] = digest_of(row, before.digest or terms.identity)
    values = ", ".join(f":{name}" for name in _ENTRY)
    connection.execute(f"INSERT INTO geodp_entries ({', '.join(_ENTRY)}) VALUES ({values})", row)
    return before.number + 1


def digest_of(row: Mapping[str, Any], before: str) -> str:
    """Return an entry's checksum, which covers the one of the entry before it."""
    fields = [row[name] for name in _ENTRY if name != "digest"]
    return sha256(f"{before}\n{json.dumps(fields)}".encode()).hexdigest()


def reserve(connection: Connection, label: str, key: str, number: int) -> None:
    """Let an entry pay for a label; the reservation that a retry replaces is dropped, its entry kept."""
    connection.execute(
        "DELETE FROM geodp_releases WHERE label = :label AND state = 'reserved'", {"label": label}
    )
    connection.execute(
        "INSERT INTO geodp_releases (label, key, entry, state) VALUES (:label, :key, :entry, 'reserved')",
        {"label": label, "key": key, "entry": number},
    )


def finish(connection: Connection, number: int, blob: bytes) -> str | None:
    """Store the columns of a reserved entry; return what is in the way, if anything."""
    values = {"entry": number, "stored": now(), "data": blob, "digest": checksum(blob)}
    found = connection.execute("SELECT state FROM geodp_releases WHERE entry = :entry", {"entry": number})
    if not found:
        return "does not pay for a release, or was replaced by a retry"
    if found[0][0] != "reserved":
        return "was stored before"
    connection.execute(
        "UPDATE geodp_releases SET state = 'released', stored = :stored, data = :data, digest = :digest "
        "WHERE entry = :entry",
        values,
    )
    return None


def counts(connection: Connection) -> dict[str, int]:
    """Return how many entries of each kind there are."""
    return dict(connection.execute("SELECT kind, COUNT(*) FROM geodp_entries GROUP BY kind"))


def entries(connection: Connection) -> list[Row]:
    """Return every entry in order."""
    rows = connection.execute(f"SELECT {', '.join(_ENTRY)} FROM geodp_entries ORDER BY id")
    return [dict(zip(_ENTRY, row, strict=True)) for row in rows]


def entry(connection: Connection, number: int) -> Row:
    """Return one entry."""
    rows = connection.execute(f"SELECT {', '.join(_ENTRY)} FROM geodp_entries WHERE id = :id", {"id": number})
    if not rows:
        raise LedgerError(f"entry {number} is missing from the ledger; verify() tells more.")
    return dict(zip(_ENTRY, rows[0], strict=True))


def first_entry(connection: Connection) -> Row | None:
    """Return the entry that a ledger began with; None if there is none."""
    rows = connection.execute(f"SELECT {', '.join(_ENTRY)} FROM geodp_entries ORDER BY id LIMIT 1")
    return dict(zip(_ENTRY, rows[0], strict=True)) if rows else None


def release(connection: Connection, label: str) -> Row | None:
    """Return the release of a label, its columns included; None if the label is new."""
    rows = connection.execute(
        f"SELECT {', '.join(_RELEASE)} FROM geodp_releases WHERE label = :label", {"label": label}
    )
    return dict(zip(_RELEASE, rows[0], strict=True)) if rows else None


def data_of(held: Mapping[str, Any]) -> bytes:
    """Return the stored bytes of a release; a number or a text in their place is refused."""
    data = held.get("data")
    if data is None:
        return b""
    if not isinstance(data, bytes | memoryview):
        raise TypeError("stored columns are bytes.")
    return bytes(data)


def releases(connection: Connection) -> list[Row]:
    """Return every release without its columns, by entry."""
    names = [name for name in _RELEASE if name != "data"]
    rows = connection.execute(f"SELECT {', '.join(names)} FROM geodp_releases ORDER BY entry")
    return [dict(zip(names, row, strict=True)) for row in rows]


def now() -> str:
    """Return the time in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
