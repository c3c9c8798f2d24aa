"""The budget that survives notebooks, cron jobs, crashes and colleagues.

Every release is paid for in one committed transaction before its noise is drawn. A refusal changes
nothing; a crash after the debit leaves it spent; a label that was released once is returned from the
ledger, and costs nothing. Whatever goes wrong with the file or the server ends in an error and no release.

What a ledger cannot do is said in PRIVACY.md: whoever can write the file can raise the ceiling, a
restored copy is a fresh budget, and two ledgers for one population add up.

Releases of single positions (:func:`geodp.perturb`) have a guarantee per kilometre, which is no
(eps, delta). The ledger notes them in the same way, before they are drawn and once for each label, and adds
them up apart; see :mod:`geodp.metric`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import NDArray

from geodp import tables
from geodp.accounting import Budget, Ceiling, Charge, amount, amounts, left_amounts, split
from geodp.blobs import checksum, pack, unpack
from geodp.errors import LedgerError
from geodp.exact import exact, whole
from geodp.metric import is_metric, worst_per_km
from geodp.names import check_text
from geodp.refusals import incomplete, other_arguments, other_relation, refusal
from geodp.statements import describe, draw, ledger_part, metric_amounts, release_frame
from geodp.storage import Connection, open_storage
from geodp.terms import Terms, check_agreement, make_terms
from geodp.wording import bounded, brief

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ledger", "Stored", "check_uncounted", "default_ledger", "require_ledger"]


_LONGEST_KEY, _LONGEST_REASON = 10**7, 10_000  # characters
_LONGEST_WAIT = 10**6  # seconds


@dataclass(frozen=True)
class Stored:
    """A release as the ledger keeps it: its columns, its record, and the ledger's part of that."""

    columns: dict[str, NDArray[Any]]
    entry: dict[str, Any]
    record: dict[str, Any]


class Ledger:
    """A durable privacy budget for one population, shared by everyone who opens it.

    Parameters
    ----------
    path : str or Path
        A file (SQLite; on a local drive, network drives do not lock), or ``postgresql://...`` (the
        extra ``postgres``; one ledger for each schema on the search path). With ``eps`` it is created
        unless it exists; without, it must exist. Everything below is fixed at creation and need not be
        repeated; what is repeated has to agree.
    eps, delta : number
        The ceiling: everything ever paid for in this ledger together is (eps, delta)-DP. What is only
        noted (single positions) is not covered: see :meth:`note` and :meth:`metric_spent`.
        ``delta`` is 0 if left out, and below 1/population (below 1e-3 without one).
    accountant : {"both", "basic", "zcdp"}
        Which books are kept (see :mod:`geodp.accounting`); ``"both"`` if left out.
    selection : number
        The part of delta that partition selections may spend in the zCDP book; 0 if left out.
    unit : str
        What is protected, such as ``"rider"``. A release of another unit is refused.
    neighboring : {"add_remove_one", "replace_one"}
        The relation the guarantee is about; the first if left out. A release of the other is refused.
    control : str
        The decision this ceiling belongs to, such as ``"DPIA-2026-14"``; in every record.
    max_eps_per_release : number
        No single release may cost more.
    population : int
        A declared, public number of subjects.
    tiers : mapping of str to number
        Audiences and the eps of their releases, such as ``{"public": 0.1, "partner": 0.5}``, all
        different. A release must then have one of these eps, and its entry names the tier.
    timeout : float
        Seconds to wait for another process's transaction; not kept in the ledger.

    Raises
    ------
    LedgerError
        There is no ledger and no ``eps`` to make one, an argument disagrees with the ledger, or the
        file is locked, damaged, from a newer geodp, or no ledger.
    ValueError, TypeError
        An argument is out of range.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(folder.name + "/city.ledger", eps=3)

    What every release does with it, and anybody may do who draws noise of their own: ask, pay, keep.

    >>> ledger.check(Charge(Fraction(1, 2)))
    >>> ledger.check_policy(unit="rider", neighboring="add_remove_one")
    >>> drawn = {"mechanism": "laplace", "scale": 2.0, "l1": "1", "l2_squared": "1", "size": 2, "step": "1"}
    >>> record = {"unit": "rider", "measurements": [drawn]}
    >>> entry = ledger.debit("2026-11-30", "{}", Charge(Fraction(1, 2)), record)
    >>> import numpy as np
    >>> kept = ledger.store(entry, {"noisy_count": np.array([3, 0])})
    >>> ledger.stored("2026-11-30", "{}").columns["noisy_count"]
    array([3, 0])

    What is asked of it later:

    >>> ledger
    Ledger('city.ledger', eps=3, delta=0, accountant='both'): spent eps 0.5, delta 0; 1 debit
    >>> ledger.spent()["eps"], ledger.remaining()["eps"]
    (0.5, 2.5)
    >>> ledger.record("2026-11-30")["unit"], ledger.releases()["state"].tolist()
    ('rider', ['released'])
    >>> ledger.verify().empty, ledger.split(5).eps
    (True, Fraction(1, 2))
    >>> ledger.plot()  # doctest: +SKIP

    Single positions are noted, per kilometre:

    >>> facts = {"guarantee": "geo-indistinguishability", "unit": "rider",
    ...          "metric": {"eps_per_km": "2", "reports": 3}}
    >>> _ = ledger.note("2026-11-30 points", "{}", facts)
    >>> ledger.metric_spent()
    {'eps_per_km': 6.0}
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        *,
        eps: object = None,
        delta: object = None,
        accountant: str | None = None,
        selection: object = None,
        unit: str | None = None,
        neighboring: str | None = None,
        control: str | None = None,
        max_eps_per_release: object = None,
        population: int | None = None,
        tiers: Mapping[str, object] | None = None,
        timeout: float = 30.0,
    ) -> None:
        given = {
            "eps": eps,
            "delta": delta,
            "accountant": accountant,
            "selection": selection,
            "unit": unit,
            "neighboring": neighboring,
            "control": control,
            "max_eps_per_release": max_eps_per_release,
            "population": population,
            "tiers": tiers,
        }
        declared = {name: value for name, value in given.items() if value is not None}
        self._timeout = _seconds(timeout)
        self._storage = open_storage(path, self._timeout)
        self._terms = self._open(declared)

    @property
    def name(self) -> str:
        """The file's or the database's name, as records show it."""
        return self._storage.name

    @property
    def ceiling(self) -> Ceiling:
        """How much may be spent in all, and by which books."""
        return self._terms.ceiling

    @property
    def unit(self) -> str | None:
        """What is protected; None if it was not declared."""
        return self._terms.unit

    @property
    def neighboring(self) -> str:
        """``"add_remove_one"`` or ``"replace_one"``."""
        return self._terms.neighboring

    @property
    def control(self) -> str | None:
        """The decision that the ceiling belongs to."""
        return self._terms.control

    @property
    def population(self) -> int | None:
        """The declared number of subjects."""
        return self._terms.population

    @property
    def tiers(self) -> dict[str, Fraction]:
        """The eps of each tier; empty if there are none."""
        return dict(self._terms.tiers)

    def check(self, charge: Charge) -> None:
        """Raise BudgetExceeded if a release of this cost would be refused now; changes nothing.

        Parameters
        ----------
        charge : Charge
            What it would cost.

        Raises
        ------
        BudgetExceeded
            It does not fit, or a control forbids it.
        """
        _check_charge(charge)
        self._refuse(charge, self._read_total())

    def check_policy(self, *, unit: str | None, neighboring: str | None) -> None:
        """Raise LedgerError if the ledger is kept for another unit or relation; None is not compared.

        Parameters
        ----------
        unit : str or None
            What a release would protect.
        neighboring : str or None
            Under which relation.

        Raises
        ------
        LedgerError
            The ledger says otherwise.
        """
        for field, said in (("unit", unit), ("neighboring", neighboring)):
            held = getattr(self, field)
            if held is not None and said is not None and said not in _spellings(held):
                raise other_relation(self.name, field, held, said)

    def debit(
        self,
        label: str,
        key: str,
        charge: Charge,
        record: Mapping[str, Any],
        *,
        retry: bool = False,
        reason: str | None = None,
    ) -> int:
        """Pay for one release in one committed transaction, and return its entry's number.

        Parameters
        ----------
        label : str
            The release's name, used once: 1 to 200 printable characters.
        key : str
            The canonical JSON of the release's public arguments.
        charge : Charge
            What it costs.
        record : mapping
            The public record, plain JSON; ``measurements`` lets :meth:`verify` recompute the cost.
        retry : bool
            Pay again for a label whose release was never stored; the first debit stays spent.
        reason : str, optional
            A reviewer's reason, published with the record.

        Returns
        -------
        int
            The entry's number, from 1 up.

        Raises
        ------
        BudgetExceeded
            It does not fit; the ledger is unchanged.
        IncompleteRelease
            The label was paid for, its release never stored, and ``retry`` is false.
        LedgerError
            The label was released, the record's unit or relation is another, its noise costs more than the
            charge, or the ledger fails.
        ValueError
            The record's guarantee is per kilometre; :meth:`note` keeps those.
        """
        _check_written(label, key, record, retry, reason)
        if is_metric(record):
            raise ValueError(
                "a guarantee per kilometre is no (eps, delta) and is not paid for; note() keeps it."
            )
        self.check_policy(unit=record.get("unit"), neighboring=record.get("neighboring"))
        _check_price(charge, record)
        row = {"label": label, "record": _canonical(record), "reason": reason}
        with self._storage.transaction(write=True) as connection:
            self._current(connection)
            self._check_unit(connection, record)
            self._check_free(connection, label, key, retry)
            self._refuse(charge, self._total(connection))
            number = tables.append(self._storage, connection, self._terms, row, charge)
            tables.reserve(connection, label, key, number)
        return number

    def note(
        self,
        label: str,
        key: str,
        record: Mapping[str, Any],
        *,
        retry: bool = False,
        reason: str | None = None,
    ) -> int:
        """Note a release whose guarantee is per kilometre, before it is drawn; return its entry's number.

        The same transaction, labels and states as :meth:`debit`, and :meth:`stored` and :meth:`store` serve
        both. It costs nothing in either book, so it is possible when they are exhausted, and the controls
        on eps (``max_eps_per_release``, ``tiers``) do not apply: it has no eps. :meth:`metric_spent` adds up.

        Parameters
        ----------
        label, key, retry, reason
            As for :meth:`debit`. A retry is added up again.
        record : mapping
            The public record, plain JSON: ``guarantee`` is ``"geo-indistinguishability"``, ``metric`` holds
            ``eps_per_km`` (exact text) and ``reports``, the most of one subject.

        Returns
        -------
        int
            The entry's number, from 1 up.

        Raises
        ------
        IncompleteRelease
            The label was noted, its release never stored, and ``retry`` is false.
        LedgerError
            The label was released, the record's unit is another, or the ledger fails.
        ValueError
            The record claims another guarantee, or does not limit one subject's reports.
        """
        _check_written(label, key, record, retry, reason)
        worst = worst_per_km(record)
        # The relation is not compared: a guarantee between places speaks of nobody who comes or goes.
        self.check_policy(unit=record.get("unit"), neighboring=None)
        row = {"label": label, "record": _canonical(record), "reason": reason}
        with self._storage.transaction(write=True) as connection:
            self._current(connection)
            self._check_free(connection, label, key, retry)
            number = tables.append_note(self._storage, connection, self._terms, row, worst)
            tables.reserve(connection, label, key, number)
        return number

    def stored(self, label: str, key: str, *, retry: bool = False) -> Stored | None:
        """Return the release of this label; None if the label is new (or left incomplete, with ``retry``).

        Parameters
        ----------
        label : str
            The release's name.
        key : str
            The canonical JSON of the release's public arguments, as debited.
        retry : bool
            Whether a release that was never stored will be paid for again.

        Returns
        -------
        Stored or None
            Its ``columns`` (arrays by name), ``record``, and the ledger's part of the record, ``entry``.

        Raises
        ------
        LedgerError
            The label belongs to other arguments, or what is stored is damaged.
        IncompleteRelease
            It was paid for, but never stored, and ``retry`` is false.
        """
        _check_label(label)
        _check_flag(retry)
        with self._storage.transaction(write=False) as connection:
            self._current(connection)
            held = tables.release(connection, label)
            if held is None:
                return None
            self._check_key(held, key)
            row = tables.entry(connection, held["entry"])
            part = self._part(row)
        if held["state"] == "released":
            return Stored(self._columns(held), part, self._record(row))
        if retry:
            return None
        raise incomplete(self.name, part)

    def store(self, entry: int, columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Keep the released columns of an entry, once, and return the ledger's part of the record.

        Parameters
        ----------
        entry : int
            The number that :meth:`debit` or :meth:`note` returned.
        columns : mapping of str to array
            What is released.

        Returns
        -------
        dict
            Plain JSON: ledger, entry, label, time, what was spent and the ceiling.

        Raises
        ------
        LedgerError
            A retry has replaced the entry meanwhile, it was stored before, or the ledger fails. The
            columns must then not be handed out.
        """
        whole(entry, "entry", 1)
        if not isinstance(columns, Mapping):
            raise TypeError(f"columns must map names to arrays, got {type(columns).__name__}.")
        blob = pack(columns)
        with self._storage.transaction(write=True) as connection:
            self._current(connection)
            obstacle = tables.finish(connection, entry, blob)
            if obstacle:
                raise LedgerError(f"{self.name}: entry {entry} {obstacle}. The columns were not stored.")
            return self._part(tables.entry(connection, entry))

    def record(self, label: str) -> dict[str, Any]:
        """Return the record of a release as it was debited or noted, the ledger's part under ``"ledger"``.

        Parameters
        ----------
        label : str
            The release's name.

        Returns
        -------
        dict
            Plain JSON.

        Raises
        ------
        LedgerError
            There is no release of that label.
        """
        _, row = self._find(label)
        return {**self._record(row), "ledger": self._part(row)}

    def releases(self) -> pd.DataFrame:
        """Return one row for each debit and note, by entry number; public, like all that a ledger holds.

        Returns
        -------
        DataFrame
            Index ``entry`` (int64). ``label``, ``kind`` (``"release"``, or ``"metric"`` for a note),
            ``state`` (``"released"``, ``"reserved"`` or ``"abandoned"``: entered again by a retry), ``tier``,
            ``reason`` (string), ``time`` (UTC), ``eps``, ``delta``, ``rho``, ``eps_per_km`` (the worst of
            a subject) and, summed up, ``eps_spent``, ``delta_spent``, ``rho_spent``, ``eps_per_km_spent``
            (float64, rounded up; NaN where an entry has no such cost; rho is infinite where unknown).
        """
        with self._storage.transaction(write=False) as connection:
            self._current(connection)
            rows = tables.entries(connection)
            states = {held["entry"]: held["state"] for held in tables.releases(connection)}
        with tables.intact(self.name):
            return release_frame(rows, states)

    def spent(self) -> dict[str, float]:
        """Return what was spent, rounded up: ``eps`` and ``delta`` of book A, ``rho`` of book B.

        Bookkeeping, not the guarantee: what a series guarantees is the ledger's ceiling.

        Returns
        -------
        dict of str to float
            ``rho`` is infinite where a release without one was paid for.
        """
        return amounts(self._read_total())

    def metric_spent(self) -> dict[str, float]:
        """Return ``eps_per_km``: what all notes together allow per kilometre for one subject, rounded up.

        Each counts with its worst, ``eps_per_km`` times the most reports of a subject. Everything noted in
        this ledger together tells two places d km apart from each other by a factor
        ``exp(eps_per_km * d)`` at most. It is no part of :meth:`spent`, and has no ceiling.

        Returns
        -------
        dict of str to float
            ``eps_per_km``, per kilometre.
        """
        return metric_amounts(self._read_standing().metric)

    def remaining(self) -> dict[str, float]:
        """Return what each book still holds, rounded down: ``eps`` and ``delta`` of book A, ``rho`` of B.

        Returns
        -------
        dict of str to float
            0 in a book that is closed for good, NaN where the ledger does not keep that book.
        """
        return left_amounts(self.ceiling, self._read_total())

    def split(self, k: int, *, l1: object = 1, l2: object = 1) -> Budget:
        """Return the budget of which exactly ``k`` equal releases fit into what is left.

        It is the quietest, for sensitivities ``l1`` and ``l2`` (of a cap of c cells: c and sqrt(c)), of
        Laplace and Gaussian in book A and Gaussian in book B; ``budget.book`` says which pays. See
        :func:`geodp.accounting.split`.

        Parameters
        ----------
        k : int
            Number of releases, at least 1.
        l1, l2 : number, default 1
            Their sensitivities, which decide what is quietest.

        Returns
        -------
        Budget
            Accepted by every call in place of ``eps``.

        Raises
        ------
        ValueError
            Nothing is left, or the ledger's controls forbid a release of that eps.
        """
        budget = split(self.ceiling, self._read_total(), k, l1, l2)
        objection = self._terms.objection(Charge(budget.eps, budget.delta, budget.rho))
        if objection:
            raise ValueError(f"{self.name} {objection}.")
        return budget

    def verify(self, frame: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return what disagrees in the ledger, or between a released ``frame`` and the ledger.

        Every entry's cost is recomputed from its record, totals and checksums are, and entries and
        stored releases are matched one to one. Notes are held against their guarantee per kilometre; no
        (eps, delta) is computed for them. It finds slips and damage; whoever can write the file
        can also write checksums that match.

        Parameters
        ----------
        frame : DataFrame, optional
            A release; its numbers are compared with those stored under its label.

        Returns
        -------
        DataFrame
            Columns ``entry`` (Int64), ``label`` and ``problem`` (string); no rows: all is well.

        Raises
        ------
        TypeError
            Something else than a frame was given.
        NotARelease
            The frame names no label, or is no longer what its record describes.
        LedgerError
            The ledger cannot be read, or holds no release of that label.
        """
        from geodp.reconcile import label_of, verify_frame, verify_ledger

        if frame is not None:
            if not isinstance(frame, pd.DataFrame):
                raise TypeError(f"verify takes a released frame, got {type(frame).__name__}.")
            return verify_frame(frame, self._read(label_of(frame)))
        with self._storage.transaction(write=False) as connection:
            self._current(connection)
            return verify_ledger(self._storage, connection, self._terms)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the share of each ceiling that was spent, entry by entry (needs the extra ``plot``).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw(self.releases(), self.ceiling, self.name, ax)

    def __repr__(self) -> str:
        head = describe(self.name, self.ceiling)
        try:
            with self._storage.transaction(write=False) as connection:
                total = tables.last(self._storage, connection).spent
                kinds = tables.counts(connection)
        except LedgerError:
            return f"{head}: cannot be read"
        count, notes = kinds.get(tables.RELEASE, 0), kinds.get(tables.METRIC, 0)
        rho = "" if total.rho is None or self.ceiling.rho is None else f", rho {amount(total.rho)}"
        spent = f"spent eps {amount(total.eps)}, delta {amount(total.delta)}{rho}"
        noted = f", {notes} note{'' if notes == 1 else 's'}" if notes else ""
        return f"{head}: {spent}; {count} debit{'' if count == 1 else 's'}{noted}"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._storage.secret:
            raise TypeError("a ledger whose URL holds a password is not pickled; open it where it is needed.")
        return _reopen, (self._storage.url, self._timeout)

    def _open(self, declared: dict[str, Any]) -> Terms:
        fresh = make_terms(declared, tables.now()) if "eps" in declared else None
        terms = self._existing() if fresh is None or self._storage.exists() else None
        if terms is None:
            if fresh is None:
                raise LedgerError(
                    f"{self.name} is no ledger yet. Create it: Ledger(path, eps=..., delta=...)."
                )
            terms = self._create(fresh)
        check_agreement(terms, declared, self.name)
        return terms

    def _existing(self) -> Terms | None:
        with self._storage.transaction(write=False) as connection:
            return tables.read_terms(self._storage, connection)

    def _create(self, fresh: Terms) -> Terms:
        with self._storage.transaction(write=True, create=True) as connection:
            terms = tables.read_terms(self._storage, connection)  # somebody else may have been faster
            if terms is None:
                tables.create(self._storage, connection, fresh)
        return terms or fresh

    def _current(self, connection: Connection) -> None:
        """Refuse a ledger that was swapped or altered under this object."""
        if tables.read_terms(self._storage, connection) != self._terms:
            raise LedgerError(
                f"{self.name} is not the ledger that was opened: it was replaced or altered. "
                "Open it again. Nothing was released or spent."
            )

    def _total(self, connection: Connection) -> Charge:
        return tables.last(self._storage, connection).spent

    def _read_total(self) -> Charge:
        return self._read_standing().spent

    def _read_standing(self) -> tables.Standing:
        with self._storage.transaction(write=False) as connection:
            self._current(connection)
            return tables.last(self._storage, connection)

    def _find(self, label: str) -> tuple[dict[str, Any], dict[str, Any]]:
        _check_label(label)
        with self._storage.transaction(write=False) as connection:
            self._current(connection)
            held = tables.release(connection, label)
            if held is None:
                raise LedgerError(f"{self.name} has no release {brief(label)}. releases() lists them.")
            return held, tables.entry(connection, held["entry"])

    def _read(self, label: str) -> Stored:
        held, row = self._find(label)
        if held["state"] != "released":
            raise incomplete(self.name, self._part(row))
        return Stored(self._columns(held), self._part(row), self._record(row))

    def _check_unit(self, connection: Connection, record: Mapping[str, Any]) -> None:
        """Hold a ledger that was made without a unit to the unit of its first debit."""
        first = tables.first_entry(connection)
        if self.unit is not None or first is None:
            return
        held, said = self._record(first).get("unit"), record.get("unit")
        if held is not None and said is not None and said not in _spellings(held):
            raise other_relation(self.name, "unit", held, said)

    def _refuse(self, charge: Charge, spent: Charge) -> None:
        if charge.eps == 0 and charge.delta == 0:
            raise ValueError("charge is zero; a release costs something.")
        if self._terms.objection(charge) or not self.ceiling.allows(spent + charge):
            raise refusal(self.name, self._terms, spent, charge)

    def _check_free(self, connection: Connection, label: str, key: str, retry: bool) -> None:
        held = tables.release(connection, label)
        if held is None:
            return
        self._check_key(held, key)
        if held["state"] == "released":
            raise LedgerError(
                f"{self.name} holds the release {brief(label)} already. Nothing was released or spent."
            )
        if not retry:
            raise incomplete(self.name, self._part(tables.entry(connection, held["entry"])))

    def _check_key(self, held: Mapping[str, Any], key: str) -> None:
        if held["key"] != key:
            raise other_arguments(self.name, held["label"], held["key"], key)

    def _part(self, row: Mapping[str, Any]) -> dict[str, Any]:
        with tables.intact(self.name):
            return ledger_part(self.name, self._terms, row)

    def _record(self, row: Mapping[str, Any]) -> dict[str, Any]:
        with tables.intact(self.name):
            return dict(json.loads(row["record"]))

    def _columns(self, held: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        with tables.intact(self.name, f"the release stored as {brief(held['label'])} cannot be read"):
            blob = tables.data_of(held)
            if checksum(blob) != held["digest"]:
                raise LedgerError(
                    f"{self.name} is damaged: the release stored as {held['label']!r} is not what was stored. "
                    "verify() tells more."
                )
            return unpack(blob)


_required = False


def require_ledger(required: bool = True) -> None:
    """Make every release of this process that names no ledger an error (``False``: allow it again).

    With the environment variable GEODP_LEDGER there is no need: it names the ledger that such
    releases use. ``mechanisms.laplace`` and ``mechanisms.gaussian``, which take no ledger, are an error in
    either case.

    Parameters
    ----------
    required : bool, default True
        Whether a ledger is required from now on.

    Examples
    --------
    >>> import geodp
    >>> require_ledger()
    >>> try:
    ...     geodp.mechanisms.laplace([3], l1=1, eps=1)
    ... except LedgerError:
    ...     print("no release without a ledger")
    no release without a ledger
    >>> require_ledger(False)
    """
    global _required
    _required = required


def default_ledger() -> Ledger | None:
    """Return the ledger for a release that names none: that of GEODP_LEDGER, or None.

    GEODP_LEDGER holds the path or URL of an existing ledger. Where it is set no release goes uncounted: it
    is paid there, or, if that ledger cannot be opened, not made.

    Raises
    ------
    LedgerError
        GEODP_LEDGER names no ledger, or :func:`require_ledger` is on and it is not set.
    """
    place = os.environ.get("GEODP_LEDGER", "")
    if place:
        return Ledger(place)
    if _required:
        raise LedgerError(
            "this release names no ledger, and one is required: give ledger=, or set GEODP_LEDGER."
        )
    return None


def check_uncounted(what: str) -> None:
    """Raise LedgerError where no release goes uncounted, for a kind that no ledger can count.

    ``what`` names it, and begins the message.
    """
    if _required or os.environ.get("GEODP_LEDGER", ""):
        raise LedgerError(
            f"{what}, and this process makes no release without a ledger (require_ledger() or GEODP_LEDGER). "
            "Nothing was released or spent."
        )


def _seconds(timeout: object) -> float:
    seconds = exact(timeout, "timeout")
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise ValueError(f"timeout must be from 0 to {_LONGEST_WAIT:,} seconds, got {brief(timeout)}.")
    return float(seconds)


def _reopen(place: str, timeout: float) -> Ledger:
    return Ledger(place, timeout=timeout)


def _spellings(held: str) -> tuple[str, ...]:
    """Return a term as records may spell it, which cut what is long."""
    return (held, *(bounded(held, room) for room in (200, 40, 20)))


def _check_price(charge: Charge, record: Mapping[str, Any]) -> None:
    """Refuse a release whose noise costs more than it is charged, before it is drawn."""
    from geodp.reconcile import price_problem

    _check_charge(charge)
    problem = price_problem(charge, record)
    if problem is not None:
        raise LedgerError(f"this release {problem}. Nothing was released or spent.")


def _check_charge(charge: object) -> None:
    if not isinstance(charge, Charge):
        raise TypeError(f"charge must be a Charge, got {type(charge).__name__}.")


def _check_written(label: object, key: object, record: object, retry: object, reason: object) -> None:
    """Refuse what no ledger could write down, before a transaction begins."""
    _check_label(label)
    _check_flag(retry)
    if not isinstance(record, Mapping):
        raise TypeError(f"record must be a mapping of plain JSON, got {type(record).__name__}.")
    for name, text, most in (("key", key, _LONGEST_KEY), ("reason", reason, _LONGEST_REASON)):
        if text is None and name == "reason":
            continue
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a str, got {type(text).__name__}.")
        if len(check_text(text, name)) > most or "\0" in text:
            raise ValueError(f"{name} must be a text of at most {most:,} characters, none of them NUL.")


def _check_flag(retry: object) -> None:
    if not isinstance(retry, bool):
        raise TypeError(f"retry must be True or False, got {brief(retry)}.")


def _canonical(record: Mapping[str, Any]) -> str:
    try:
        return json.dumps(record, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        pass
    raise ValueError("record must be plain JSON; this one has no end.")


def _check_label(label: object) -> None:
    if not isinstance(label, str):
        raise TypeError(f"label must be a str, got {type(label).__name__}.")
    if not 0 < len(label) <= 200 or not label.isprintable() or label != label.strip():
        raise ValueError(
            f"label must be 1 to 200 printable characters without outer spaces, got {brief(label)}."
        )
