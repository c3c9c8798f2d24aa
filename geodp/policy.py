"""Who is protected and where the map lies: the public promise that a series of releases shares."""

from dataclasses import dataclass, fields, replace
from typing import Any

from geodp.bounds import Box
from geodp.exact import whole
from geodp.given import EACH_ROW, NOT_GIVEN, EachRow, NotGiven
from geodp.grids import Grid, grid
from geodp.sensitivity import NEIGHBORING
from geodp.wording import brief

__all__ = ["EACH_ROW", "NOT_GIVEN", "EachRow", "NotGiven", "Policy", "one_of", "policy"]

# Far above any cap that means something, and far below what would overflow with it.
_MOST = 10**9


@dataclass(frozen=True)
class Policy:
    """Who is protected, how much one subject may count, and where.

    A policy is frozen and holds no data, so it can be printed, compared and moved to another frame:
    ``tomorrow.dp(riders.policy).heatmap(1.0, 1e-6, label="2026-12-01")``.

    Parameters
    ----------
    subject : str or geodp.EACH_ROW, optional
        Column that names whose a row is. Without it every row is its own subject, which protects
        single rows and not people; :data:`geodp.EACH_ROW` says so without a warning.
    cap : int or "auto", optional
        Most distinct keys (cells, or cell and slot) a subject may count in, at least 1. Required with
        ``subject``. ``"auto"`` chooses it privately for a share of eps.
    rows_per_cell : int, default 1
        Most rows of a subject that count in one key; 1 counts presence.
    contribution : {"sample", "weighted"}, default "sample"
        What happens to a subject above the cap: a random choice of keys, or all of them at a
        smaller weight.
    neighboring : {"add_remove_one", "replace_one"}, default "add_remove_one"
        Which data sets must be indistinguishable: one subject more or less, or one exchanged.
    population : int, optional
        Publicly known number of people behind the data, to hold delta against. Never read from rows.
    bounds : four numbers, optional
        West, south, east, north in degrees; west > east or east > 180 crosses the 180th meridian.
    outside : {"clamp", "drop"}, default "clamp"
        Whether points outside the bounds move to the border or are left out.
    grid : Grid or str, optional
        ``"h3:8"``, ``"square:0.01"``, ``"square:1000@3035"``, or a :class:`geodp.H3`,
        :class:`geodp.Square` or :class:`geodp.Zones`. By default the finest H3 resolution with at
        most 10,000 cells in the bounds.

    Raises
    ------
    TypeError, ValueError
        For any argument of the wrong kind or range; the message says what to do instead.

    Examples
    --------
    >>> Policy(subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8").to_dict()["unit"]
    'rider'
    """

    subject: str | EachRow | None = None
    cap: Any = None
    rows_per_cell: int = 1
    contribution: str = "sample"
    neighboring: str = "add_remove_one"
    population: int | None = None
    bounds: Any = None
    outside: str = "clamp"
    grid: Any = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "rows_per_cell", whole(self.rows_per_cell, "rows_per_cell", 1, _MOST))
        one_of(self.contribution, "contribution", ("sample", "weighted"))
        one_of(self.neighboring, "neighboring", NEIGHBORING)
        one_of(self.outside, "outside", ("clamp", "drop"))
        if self.population is not None:
            settle(self, "population", whole(self.population, "population", 1, 10**12))
        settle(self, "grid", None if self.grid is None else grid(self.grid))
        settle(self, "bounds", None if self.bounds is None else Box.parse(self.bounds))
        self._check_bounds()
        settle(self, "cap", self._checked_cap())

    @property
    def by_row(self) -> bool:
        """Whether single rows are protected instead of people."""
        return self.subject is None or isinstance(self.subject, EachRow)

    @property
    def unit(self) -> str:
        """What one subject is called: the column's name, or ``"row"``."""
        if self.by_row:
            return "row"
        # A column of that name holds subjects, and must not pass for single rows in a record or a ledger.
        return "subject named row" if self.subject == "row" else str(self.subject)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain JSON.

        Returns
        -------
        dict
            The arguments by name, with ``unit`` for the subject.
        """
        return {
            "unit": self.unit,
            "cap": self.cap,
            "rows_per_cell": self.rows_per_cell,
            "contribution": self.contribution,
            "neighboring": self.neighboring,
            "population": self.population,
            "bounds": None if self.bounds is None else self.bounds.to_list(),
            "outside": self.outside,
            "grid": None if self.grid is None else self.grid.to_dict(),
        }

    def _check_bounds(self) -> None:
        if isinstance(self.grid, Grid) and not self.grid.needs_bounds and self.bounds is not None:
            raise ValueError(
                "bounds are not used with zones: points outside all zones are left out. Leave bounds out, "
                "or cut the zones themselves."
            )

    def _checked_cap(self) -> Any:
        if self.by_row:
            return self._cap_of_rows()
        if not isinstance(self.subject, str):
            raise TypeError(f"subject must be the name of a column, got {type(self.subject).__name__}.")
        if self.cap is None:
            raise ValueError(
                f'cap is required with subject="{self.subject}": the most cells one {self.subject} may count '
                "in. Noise grows with it; 1 suits one place per person, 4 a day of trips; "
                'cap="auto" chooses it privately for 5 % of eps.'
            )
        if self.cap == "auto":
            return "auto"
        if isinstance(self.cap, str):
            raise ValueError(f'cap must be an int of at least 1 or "auto", got {brief(self.cap)}.')
        return whole(self.cap, "cap", 1, _MOST)

    def _cap_of_rows(self) -> int:
        """Without a subject a row is a person, and a person is in one cell (unless zones overlap)."""
        if self.population is not None:
            raise ValueError("population counts people, and without subject only single rows are protected.")
        if (
            getattr(self.grid, "overlap", None) == "count"
            and self.cap is not None
            and self.rows_per_cell == 1
        ):
            return whole(self.cap, "cap", 1, _MOST)
        if isinstance(self.cap, str):
            raise ValueError(
                f"cap={brief(self.cap)} chooses how many cells one subject may count in, and no subject was named. "
                'Name the column that says whose a row is: subject="rider".'
            )
        if self.rows_per_cell > 1 or (self.cap is not None and whole(self.cap, "cap", 1) > 1):
            raise ValueError(
                "cap and rows_per_cell limit one subject, and no subject was named: every row is its own. "
                'Name the column that says whose a row is: subject="rider".'
            )
        return 1


def policy(base: Policy | None = None, /, **given: Any) -> Policy:
    """Return a policy from what was given, on top of ``base``; arguments not given keep its values."""
    said = {name: value for name, value in given.items() if value is not NOT_GIVEN}
    if base is None:
        return Policy(**said)
    if not isinstance(base, Policy):
        raise TypeError(
            f"policy must be a geodp.Policy (such as view.policy), got {type(base).__name__}. "
            "All other arguments are given by name."
        )
    unchanged = {f.name for f in fields(Policy)} - said.keys()
    if base.by_row and "cap" in unchanged and "subject" in said:
        said["cap"] = None
    return replace(base, **said)


def one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the allowed words."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"{name} must be one of {words}, got {brief(value)}.")
