"""A cap without peeking, as a release of its own: what :mod:`geodp.quantiles` plans is paid for and drawn."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
from numpy.typing import NDArray

from geodp import testing
from geodp.paying import Payments
from geodp.plans import warn_of
from geodp.policy import Policy
from geodp.progress import showing
from geodp.quantiles import CANDIDATES, Selection, keys_per_subject, lengths_of, selection
from geodp.records import sealed
from geodp.release import check_frame, placed
from geodp.silence import discreetly, quiet
from geodp.sources import KeysPerSubject, Partitioned, source

if TYPE_CHECKING:
    from geodp.grids import Grid
    from geodp.ledger import Ledger

__all__ = ["ChosenCap", "choose_cap"]


class ChosenCap(int):
    """A cap that was chosen privately: an int, so that it can be given as ``cap=``, with its record.

    Attributes
    ----------
    cap : int
        The same number, plain.
    candidates : tuple of int
        The public candidates.
    record : dict
        Plain JSON: what was asked, what it cost, and the ledger's part. A copy each time.

    Examples
    --------
    >>> chosen = ChosenCap(4, (1, 2, 4), {"guarantee": "(1, 0)-DP for one rider more or less"})
    >>> chosen, chosen + 1
    (ChosenCap(4), 5)
    """

    candidates: tuple[int, ...]
    _text: str

    def __new__(cls, cap: int, candidates: Sequence[int], record: dict[str, Any]) -> "ChosenCap":  # noqa: D102
        made = super().__new__(cls, cap)
        made.__dict__.update(candidates=tuple(candidates), _text=json.dumps(record))
        return made

    @property
    def cap(self) -> int:
        """The chosen cap as a plain int."""
        return int(self)

    @property
    def record(self) -> dict[str, Any]:
        """What was asked, what it cost, and the ledger's part."""
        found: dict[str, Any] = json.loads(self._text)
        return found

    def __repr__(self) -> str:
        return f"ChosenCap({int(self)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a chosen cap is fixed; {name} cannot be set.")

    def __reduce__(self) -> tuple[Any, ...]:
        return ChosenCap, (int(self), self.candidates, self.record)


def choose_cap(
    gdf: gpd.GeoDataFrame,
    eps: float,
    candidates: Sequence[int] = CANDIDATES,
    *,
    quantile: float = 0.9,
    # who
    subject: str,
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> ChosenCap:
    """Choose a cap among public candidates, with differential privacy.

    The smallest candidate that a share ``quantile`` of the subjects stays within, counted on distinct cells
    of the domain (with ``by``: cells and slots), up to noise. It is a release of its own: it costs eps, has its
    own entry in the ledger, and its result may be published, kept and used for every later release.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS. Rows that are no usable point, or have no usable subject id, are left out.
    eps : float
        Cost of the choice, greater than 0. Pure: no delta is spent.
    candidates : sequence of int, default (1, 2, 4, 8, 16, 32, 64)
        Public and rising, at least 1 each, at most 100 of them. Never taken from the rows.
    quantile : float, default 0.9
        Share of the subjects, above 0 and below 1, that should keep all their cells.
    subject : str
        Column that names whose a row is.
    neighboring, population
        Who is protected, as in :func:`geodp.heatmap`.
    bounds, outside, grid, by
        Where, as in :func:`geodp.heatmap`: those of the map that the cap is for.
    ledger, label, retry, reason, progress
        The books, as in :func:`geodp.heatmap`. The same label again returns the stored cap.

    Returns
    -------
    ChosenCap
        An int that can be given as ``cap=``, with ``.cap``, ``.candidates`` and ``.record``.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit; before anything is spent.
    BudgetExceeded
        The ledger's ceiling would be passed.

    Notes
    -----
    The exponential mechanism of McSherry and Talwar (2007) [1]_ on penalties that one subject moves by less
    than 1; the proof is in the module's text and in PRIVACY.md. With 95 % probability the chosen cap is
    right for a quantile within ``record["within"]`` people of the asked one: about 80 for 7 candidates at
    eps 0.1. With fewer subjects than a few times that, type a cap instead.

    References
    ----------
    .. [1] McSherry, F. and Talwar, K. (2007). Mechanism design via differential privacy. FOCS.

    Examples
    --------
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> cap = choose_cap(trips, 0.1, subject="rider", bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> cap in (1, 2, 4, 8, 16, 32, 64)
    True
    """
    policy = Policy(
        subject=subject,
        cap="auto" if isinstance(subject, str) else None,
        neighboring=neighboring,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
    )
    chosen = selection(policy, eps, candidates, quantile, by)
    warn_of(policy, chosen.plan)
    with showing(progress):
        return _release(chosen, gdf, ledger, label, retry, reason)


def _release(
    chosen: Selection,
    gdf: gpd.GeoDataFrame,
    ledger: "Ledger | None",
    label: str | None,
    retry: bool,
    reason: str | None,
) -> ChosenCap:
    mode = testing.current()
    check_frame(chosen.plan, gdf)
    settled = Payments(chosen, ledger, label, mode).settle(
        lambda: _lengths(chosen, gdf, mode),
        lambda lengths: {"cap": np.array([chosen.draw(lengths, mode)], np.int64)},
        retry=retry,
        reason=reason,
    )
    with settled.intact():
        return _result(chosen, int(settled.columns["cap"][0]), mode, settled.entry)


def _lengths(chosen: Selection, gdf: gpd.GeoDataFrame, mode: testing.Mode) -> NDArray[np.int64]:
    """Return how many keys each subject is in; of more than the last candidate, no matter how many."""
    plan, points = chosen.plan, source(gdf)
    if isinstance(points, Partitioned):
        (found,) = points.totals(plan, [KeysPerSubject(plan, chosen.candidates[-1])], mode.secret)
        return lengths_of(found["subjects"])
    with quiet():
        return discreetly("placing the rows", mode, lambda: keys_per_subject(placed(plan, gdf), plan.layout))


def _result(chosen: Selection, cap: int, mode: testing.Mode, entry: dict[str, Any] | None) -> ChosenCap:
    record = sealed({**chosen.to_dict(), "cap": cap, "noise": mode.noise, "ledger": entry})
    return ChosenCap(cap, chosen.candidates, record)
