"""Where a ledger lives: an SQLite file, or a PostgreSQL database for teams.

Both run the same statements. What differs is kept here: how a transaction is opened, how it takes the
ledger's one write lock, how it is made durable, and what each failure is called in plain words.

No connection outlives an operation. So a ledger object holds nothing that a fork, a thread or a
pickle could share by mistake.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from geodp.errors import LedgerError

__all__ = ["Connection", "Postgres", "SQLite", "Storage", "open_storage"]

Rows = list[tuple[Any, ...]]

_UNSPENT = "Nothing was released or spent."
_UNSURE = "No release was made; releases() will say whether it was paid for."
_LOCK = 0x67656F6470  # "geodp": the advisory lock that writers of PostgreSQL ledgers take


class Connection(Protocol):
    """One open transaction."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Rows:
        """Run a statement with ``:named`` values and return its rows."""


class Storage(Protocol):
    """One place that holds one ledger."""

    name: str
    url: str
    blob: str
    secret: bool

    def transaction(self, *, write: bool, create: bool = False) -> Any:
        """Return a context manager that yields a :class:`Connection` and commits at its end."""

    def exists(self) -> bool:
        """Whether there is anything to open."""

    def has_table(self, connection: Connection) -> bool:
        """Whether the ledger's tables exist."""

    def check(self, connection: Connection) -> list[str]:
        """Return what the database says is wrong with itself."""


def open_storage(place: object, timeout: float) -> Storage:
    """Return the storage for a path or a ``postgresql://`` URL; nothing is opened yet."""
    if not isinstance(place, str | Path):
        raise TypeError(f"a ledger needs a path or a postgresql:// URL, got {type(place).__name__}.")
    text = str(place)
    if not text:
        raise ValueError("a ledger needs a path or a postgresql:// URL, got an empty text.")
    scheme, separator, _ = text.partition("://")
    if separator and isinstance(place, str):
        if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise ValueError(f"a ledger is a file or a postgresql:// URL, not {scheme}://.")
        return Postgres(text, timeout)
    if text == ":memory:":
        raise ValueError("a ledger in memory would forget what was spent; give a path.")
    return SQLite(Path(text), timeout)


class SQLite:
    """A ledger in one file.

    The rollback journal is used, not WAL: a copy of the one file is then a complete ledger, and WAL
    does not work on shared drives anyway. ``synchronous=EXTRA`` also flushes the directory after the
    journal is removed; with less, a power cut could bring the journal back, and undo a debit whose
    release is already out.
    """

    blob = "BLOB"
    secret = False

    def __init__(self, path: Path, timeout: float) -> None:
        try:
            self.path = path.expanduser().absolute()
            if b"\0" in os.fsencode(self.path):
                raise ValueError
        except (RuntimeError, ValueError):  # no such user's home, no such characters
            raise LedgerError(f"{str(path)[:200]!a} is no path on this machine.") from None
        self.name = path.name
        self.url = str(self.path)
        self._timeout = timeout

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Connection]:
        """Yield one transaction; a writing one holds the file's only write lock from its start."""
        with self._explained(_UNSPENT):
            connection = self._open(create)
        try:
            with self._explained(_UNSPENT):
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield _SQLiteConnection(connection)
            with self._explained(_UNSURE if write else _UNSPENT):
                connection.execute("COMMIT")
        finally:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            connection.close()

    def exists(self) -> bool:
        """Whether the file exists."""
        try:
            return self.path.exists()
        except (OSError, ValueError):  # too long, not to be looked at, or with a NUL in it
            pass
        raise LedgerError(f"{self.name[:200]!a} is no path on this machine, or not to be looked at.")

    def has_table(self, connection: Connection) -> bool:
        """Whether the ledger's tables exist; another program's database is refused."""
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if names and "geodp_ledger" not in names:
            raise LedgerError(f"{self.name} is a database of another program, not a ledger.")
        return bool(names)

    def check(self, connection: Connection) -> list[str]:
        """Return what SQLite's integrity check finds."""
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        return [line for line in found if line != "ok"]

    def _open(self, create: bool) -> sqlite3.Connection:
        if not create and not self.exists():
            raise LedgerError(
                f"there is no ledger at {self.url}. Create one: Ledger(path, eps=..., delta=...)."
            )
        mode = "rwc" if create else "rw"
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=self._timeout, isolation_level=None
        )
        try:
            for pragma in ("synchronous=EXTRA", "fullfsync=ON", "foreign_keys=ON", "trusted_schema=OFF"):
                connection.execute(f"PRAGMA {pragma}")
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    @contextmanager
    def _explained(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise LedgerError(f"{self.name or self.path} {self._reason(error)}. {outcome}") from error

    def _reason(self, error: sqlite3.Error | UnicodeDecodeError) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, UnicodeDecodeError) or "decode" in str(error):
            code = sqlite3.SQLITE_CORRUPT
        return {
            sqlite3.SQLITE_BUSY: f"was locked by another process for more than {self._timeout:g} s",
            sqlite3.SQLITE_LOCKED: f"was locked by another process for more than {self._timeout:g} s",
            sqlite3.SQLITE_READONLY: "is read-only",
            sqlite3.SQLITE_PERM: "may not be read or written by this user",
            sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
            sqlite3.SQLITE_IOERR: f"cannot be read or written ({error}): is the disk full or failing?",
            sqlite3.SQLITE_CANTOPEN: self._unopened(),
            sqlite3.SQLITE_NOTADB: "is not a ledger",
            sqlite3.SQLITE_CORRUPT: "is damaged; go back to a backup and enter what was spent since",
        }.get(code, f"failed ({error})")

    def _unopened(self) -> str:
        if self.path.is_dir():
            return "is a folder, not a ledger"
        return f"or its journal cannot be opened in {self.path.parent}"


class _SQLiteConnection:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Rows:
        return self._connection.execute(statement, dict(values or {})).fetchall()


class Postgres:
    """A ledger in a PostgreSQL database (one for each schema on the search path), through SQLAlchemy.

    A writing transaction takes an advisory lock first and reads after it, under READ COMMITTED: what
    it reads is then what the writer before it committed. Entry numbers are given out by hand under
    that lock and are a primary key, so without the lock two debits would still not both commit.
    """

    blob = "BYTEA"

    def __init__(self, url: str, timeout: float) -> None:
        sqlalchemy = _sqlalchemy()
        self._text = sqlalchemy.text
        self._error = sqlalchemy.exc.SQLAlchemyError
        parsed = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
        self.name = parsed.database or "postgresql"
        self.url = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        self.secret = parsed.password is not None
        self._timeout = timeout
        # NullPool: a pooled connection would be shared across a fork. No prepared statements: poolers.
        self._engine = sqlalchemy.create_engine(
            parsed,
            poolclass=sqlalchemy.pool.NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            connect_args={"prepare_threshold": None, "connect_timeout": max(2, int(timeout))},
        )

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Connection]:
        """Yield one transaction; a writing one waits for, and holds, the ledgers' advisory lock."""
        with self._explained(_UNSPENT):
            connection = self._engine.connect()
        try:
            with self._explained(_UNSPENT):
                opened = _PostgresConnection(connection, self._text)
                self._begin(opened, write)
                yield opened
            with self._explained(_UNSURE if write else _UNSPENT):
                connection.commit()
        finally:
            with suppress(self._error):
                connection.close()

    def exists(self) -> bool:
        """Whether there is anything to open: a server is taken to be there."""
        return True

    def has_table(self, connection: Connection) -> bool:
        """Whether the ledger's tables exist on the search path."""
        return connection.execute("SELECT to_regclass('geodp_ledger')")[0][0] is not None

    def check(self, connection: Connection) -> list[str]:
        """Return nothing: a server watches over its own pages."""
        return []

    def _begin(self, connection: Connection, write: bool) -> None:
        if not write:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        connection.execute(f"SET LOCAL lock_timeout = {max(1, round(self._timeout * 1000))}")
        connection.execute("SET LOCAL synchronous_commit = ON")
        connection.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})

    @contextmanager
    def _explained(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            cause = getattr(error, "orig", None) or error
            raise LedgerError(f"{self.name} {self._reason(cause)}. {outcome}") from error

    def _reason(self, cause: BaseException) -> str:
        state = getattr(cause, "sqlstate", None)
        if state == "55P03":
            return f"was locked by another process for more than {self._timeout:g} s"
        if state == "25006":
            return "is read-only"
        if state == "53100":
            return "cannot grow: the server's disk is full"
        first = str(cause).strip().splitlines()
        return f"failed ({first[0] if first else type(cause).__name__})"


class _PostgresConnection:
    def __init__(self, connection: Any, text: Any) -> None:
        self._connection = connection
        self._text = text

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Rows:
        result = self._connection.execute(self._text(statement), dict(values or {}))
        return [tuple(row) for row in result] if result.returns_rows else []


def _sqlalchemy() -> Any:
    try:
        import psycopg  # noqa: F401
        import sqlalchemy
        import sqlalchemy.exc
        import sqlalchemy.pool
    except ImportError as error:
        raise ImportError('a ledger on PostgreSQL needs: pip install "geodp[postgres]"') from error
    return sqlalchemy
