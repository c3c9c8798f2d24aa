"""Several views of one population under one budget: one plan, one debit, one guarantee.

A map at two resolutions, a count and a mean, zones and squares: whoever reads one reads all, so they are one
release. Each view keeps its own cap, lattice and scale. Weights split the budget and touch no integer: with
shares w_i that add up to 1, view i gets the share w_i of eps under Laplace noise, or of mu² under Gaussian.

**Privacy.** Fix the secret key of the cap's choice. For neighbours D and D' the views move by vectors v_1,
..., v_n of norms at most L1_i and L2_i, each by its own cap, whatever the others do. Laplace noise of scale b_i
on each is (L1_1/b_1 + ... + L1_n/b_n)-DP, which is at most eps, since L1_i/b_i <= w_i eps. Gaussian noise:
divide view i by sigma_i, and all of them are one vector with unit noise, moved by at most mu² =
L2_1²/sigma_1² + ... in squared L2 norm; that is at most the mu² of (eps, delta), since each term is at most w_i
of it. Rounding is post-processing. Both hold under either neighboring relation, with that relation's norms. The
key is drawn independently of the data, so they hold for its mixture too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import geopandas as gpd
from numpy.typing import NDArray

from geodp import records, testing
from geodp._version import __version__
from geodp.accounting import Budget, Charge
from geodp.exact import plain
from geodp.joining import budget_shares, check_same_people, parse_view, pinned_plans, view_names
from geodp.mechanisms.calibration import rho_of
from geodp.pages import rows_html, rows_text
from geodp.paying import Columns, Payments
from geodp.plans import Plan, Ways, asked_budget, check_noise, warn_of
from geodp.policy import NOT_GIVEN, EachRow, NotGiven, Policy
from geodp.progress import showing
from geodp.queries import Measurement
from geodp.reconcile import cost_problem
from geodp.records import guarantee, plan_record, sealed
from geodp.release import check_frame, drawn, finish, tally
from geodp.wording import bounded, shown

if TYPE_CHECKING:
    from geodp.grids import Grid
    from geodp.ledger import Ledger

__all__ = ["JointPlan", "plan_together", "release_together"]

_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}


@dataclass(frozen=True, repr=False)
class JointPlan:
    """Several plans under one budget, decided from arguments alone; made by :func:`geodp.plan_together`.

    Attributes
    ----------
    names : tuple of str
        The views' names.
    parts : tuple of Plan
        The views. The noise of each is that of its share; ``eps`` and ``delta`` are those of all together.
    weights : tuple of Fraction
        Shares of the budget, which add up to 1.
    """

    names: tuple[str, ...]
    parts: tuple[Plan, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        problem = self._edited()
        if problem is not None:
            raise ValueError(
                f"a joint plan is made by geodp.plan_together and not edited: this one {problem}."
            )

    def _edited(self) -> str | None:
        """Say where the views are not those of one population, or not paid by one budget."""
        if not len(self.names) == len(self.parts) == len(self.weights):
            return "has not one name and weight for each view"
        check_same_people(self.names, [part.policy for part in self.parts])
        if len({(part.eps, part.delta, part.budget, part.mechanism) for part in self.parts}) > 1:
            return "has views of several budgets"
        return cost_problem(self.charge, [measurement.to_dict() for measurement in self.measurements])

    @property
    def policy(self) -> Policy:
        """Who is protected: of the first view, and the same in all of them."""
        return self.parts[0].policy

    @property
    def mechanism(self) -> str:
        """``"laplace"`` or ``"gaussian"``, for all views."""
        return self.parts[0].mechanism

    @property
    def eps(self) -> Fraction:
        """What was asked for all views together."""
        return self.parts[0].eps

    @property
    def delta(self) -> Fraction:
        """What was asked for all views together."""
        return self.parts[0].delta

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What is drawn, view by view."""
        return tuple(measurement for part in self.parts for measurement in part.measurements)

    @property
    def charge(self) -> Charge:
        """What all views spend together."""
        if self.mechanism == "laplace":
            return Charge(self.eps)
        rho = sum((rho_of(m.l2_squared, m.scale) for m in self.measurements), Fraction(0))
        return Charge(self.eps, self.delta, rho)

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments."""
        views = {name: json.loads(part.key) for name, part in zip(self.names, self.parts, strict=True)}
        arguments = {"views": views, "weights": self._weights()}
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"))

    def __getitem__(self, name: str) -> Plan:
        """Return the plan of one view."""
        return self.parts[self.names.index(name)]

    def to_dict(self) -> dict[str, Any]:
        """Return the joint plan as plain JSON: what a ledger keeps, exact enough to recompute the cost."""
        policy = self.policy
        return {
            "version": __version__,
            "query": "together",
            "counted": f"{_views(self)} of one population",
            "unit": bounded(policy.unit, 200),
            "neighboring": policy.neighboring,
            "population": policy.population,
            "mechanism": self.mechanism,
            "because": self.parts[0].choice.because,
            "weights": self._weights(),
            **self._budget(),
            "views": {name: _of_view(part) for name, part in zip(self.names, self.parts, strict=True)},
            "measurements": [
                {**measurement.to_dict(), "name": f"{name}/{measurement.name}"}
                for name, part in zip(self.names, self.parts, strict=True)
                for measurement in part.measurements
            ],
        }

    def release(
        self,
        gdf: gpd.GeoDataFrame,
        *,
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> dict[str, gpd.GeoDataFrame]:
        """Release all views at once, with one debit; see :func:`geodp.release_together`."""
        with showing(progress):
            return self._release(gdf, ledger, label, retry, reason)

    def _release(
        self,
        gdf: gpd.GeoDataFrame,
        ledger: "Ledger | None",
        label: str | None,
        retry: bool,
        reason: str | None,
    ) -> dict[str, gpd.GeoDataFrame]:
        mode = testing.current()
        for part in self.parts:
            check_frame(part, gdf)
        settled = Payments(self, ledger, label, mode).settle(
            lambda: [tally(part, gdf, mode) for part in self.parts],
            lambda tallies: self._drawn(tallies, mode),
            retry=retry,
            reason=reason,
        )
        with settled.intact():
            frames = self._frames(settled.columns, mode, settled.entry)
            for frame in frames.values() if settled.stored is not None else ():
                records.record(frame)  # raises where columns are missing, or of other kinds
            return frames

    def _drawn(self, tallies: list[dict[str, NDArray[Any]]], mode: testing.Mode) -> Columns:
        """Draw view by view, each with noise of its own; columns go under ``view/column``."""
        columns: dict[str, NDArray[Any]] = {}
        for name, part, exact in zip(self.names, self.parts, tallies, strict=True):
            columns |= {f"{name}/{column}": values for column, values in drawn(part, exact, mode).items()}
        return columns

    def _frames(
        self, columns: Columns, mode: testing.Mode, entry: dict[str, Any] | None
    ) -> dict[str, gpd.GeoDataFrame]:
        """Give each view its columns, and a record that names the joint guarantee."""
        frames = {}
        for name, part in zip(self.names, self.parts, strict=True):
            own = {
                column.rpartition("/")[2]: values
                for column, values in columns.items()
                if column.rpartition("/")[0] == name
            }
            record = {**plan_record(part), **self._budget(), "joint": self._place(name)}
            frames[name] = finish(part, own, sealed({**record, "noise": mode.noise, "ledger": entry}))
        return frames

    def _budget(self) -> dict[str, Any]:
        """Return the fields of a record that are about all views together."""
        charge = self.charge
        eps, delta, rho = plain(charge.eps), plain(charge.delta), plain(charge.rho or 0)
        return {
            "guarantee": guarantee(self),
            "asked": {"eps": plain(self.eps), "delta": plain(self.delta)},
            "spent": {"eps": eps, "delta": delta, "rho": rho},
            "eps": eps,
            "delta": delta,
            "rho": rho,
            "charge": charge.to_dict(),
        }

    def _place(self, name: str) -> dict[str, Any]:
        weight = self.weights[self.names.index(name)]
        return {"view": name, "of": len(self.parts), "weight": str(weight)}

    def _weights(self) -> dict[str, str]:
        return {name: str(weight) for name, weight in zip(self.names, self.weights, strict=True)}

    def __str__(self) -> str:
        return rows_text(_page(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return rows_html(_page(self))


def release_together(
    gdf: gpd.GeoDataFrame,
    views: Mapping[str, Any],
    eps: "float | Budget",
    delta: float = 0,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    *,
    # who
    subject: "str | EachRow | NotGiven | None" = NOT_GIVEN,
    cap: "int | NotGiven | None" = NOT_GIVEN,
    rows_per_cell: "int | NotGiven" = NOT_GIVEN,
    contribution: "str | NotGiven" = NOT_GIVEN,
    neighboring: "str | NotGiven" = NOT_GIVEN,
    population: "int | NotGiven | None" = NOT_GIVEN,
    # where
    bounds: Any = NOT_GIVEN,
    outside: "str | NotGiven" = NOT_GIVEN,
    grid: "Grid | str | NotGiven | None" = NOT_GIVEN,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> dict[str, gpd.GeoDataFrame]:
    """Release several views of one population under one budget, with differential privacy.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS.
    views : mapping of str to Query, mapping or Plan
        Up to 100, by name (printable, up to 40 characters). A query (:class:`geodp.Count`,
        ``geodp.Mean("minutes", value_bounds=(0, 120))``) takes who and where from the arguments below. A mapping
        may say its own ``query`` (a count if left out), ``grid``, ``by``, ``cap``, ``rows_per_cell``,
        ``bounds``, ``outside``, ``estimator`` and ``return_geometry``. A :class:`geodp.Plan` says all of
        that; its own eps, delta and mechanism are not used.
    eps, delta : float
        Budget of all views together, as in :func:`geodp.heatmap`; or a :class:`geodp.Budget` as eps.
    weights : mapping or sequence, optional
        How the budget is split, by name or in the order of ``views``: shares of eps under Laplace noise, of
        1/sigma² under Gaussian, so that twice the weight means half the noise, or 0.7 of it. Equal if left out.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who is protected, as in :func:`geodp.heatmap`. Subject, neighboring and population are the same in
        all views; plans have to agree.
    bounds, outside, grid
        Where, as in :func:`geodp.heatmap`; views on zones take no bounds.
    mechanism, criterion
        As in :func:`geodp.heatmap`. One mechanism serves all views: ``"auto"`` takes the one with less noise, in
        the geometric mean over the views by weight.
    ledger, label, retry, reason, progress
        The books, as in :func:`geodp.heatmap`: one label, one debit.

    Returns
    -------
    dict of str to GeoDataFrame
        Each view as its own call would return it; its record names the guarantee of all together.

    Raises
    ------
    TypeError, ValueError
        A bad argument, views that protect different people, or a frame whose schema does not fit; before
        anything is spent.
    BudgetExceeded
        The ledger's ceiling would be passed.

    Notes
    -----
    Laplace: the sum of L1_i/b_i is at most eps. Gaussian: the sum of L2_i²/sigma_i² is at most the mu² that
    (eps, delta) allows, which is less than what separate releases would add up to.

    Examples
    --------
    >>> from geodp.queries import Count
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> views = {"coarse": {"grid": "h3:4"}, "fine": {"grid": "h3:5", "cap": 2}}
    >>> maps = release_together(trips, views, 1.0, subject="rider", cap=1, bounds=(-74.1, 40.6, -73.8, 40.9))
    >>> [(name, frame.index.name) for name, frame in maps.items()]
    [('coarse', 'h3_04'), ('fine', 'h3_05')]
    """
    planned = plan_together(
        views,
        eps,
        delta,
        weights,
        subject=subject,
        cap=cap,
        rows_per_cell=rows_per_cell,
        contribution=contribution,
        neighboring=neighboring,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
        mechanism=mechanism,
        criterion=criterion,
    )
    return planned.release(gdf, ledger=ledger, label=label, retry=retry, reason=reason, progress=progress)


def plan_together(
    views: Mapping[str, Any],
    eps: "float | Budget",
    delta: float = 0,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    *,
    # who
    subject: "str | EachRow | NotGiven | None" = NOT_GIVEN,
    cap: "int | NotGiven | None" = NOT_GIVEN,
    rows_per_cell: "int | NotGiven" = NOT_GIVEN,
    contribution: "str | NotGiven" = NOT_GIVEN,
    neighboring: "str | NotGiven" = NOT_GIVEN,
    population: "int | NotGiven | None" = NOT_GIVEN,
    # where
    bounds: Any = NOT_GIVEN,
    outside: "str | NotGiven" = NOT_GIVEN,
    grid: "Grid | str | NotGiven | None" = NOT_GIVEN,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
) -> JointPlan:
    """Decide a joint release without reading any data.

    Parameters
    ----------
    views, eps, delta, weights
        What is asked and how the budget is split, as in :func:`geodp.release_together`.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who, as there.
    bounds, outside, grid
        Where, as there.
    mechanism, criterion
        How, as there.

    Returns
    -------
    JointPlan
        Prints what the release will look like; ``.release(gdf)`` makes it.

    Raises
    ------
    TypeError, ValueError
        A view or an argument of the wrong kind or range.

    Examples
    --------
    >>> views = {"coarse": {"grid": "h3:4"}, "fine": {"grid": "h3:5"}}
    >>> joint = plan_together(views, 1.0, weights=[1, 3], subject="rider", cap=1, bounds=(-74.1, 40.6, -73.8, 40.9))
    >>> joint["coarse"].scale, round(joint["fine"].scale, 3)
    (4.0, 1.333)
    """
    given = {
        "subject": subject,
        "cap": cap,
        "rows_per_cell": rows_per_cell,
        "contribution": contribution,
        "neighboring": neighboring,
        "population": population,
        "bounds": bounds,
        "outside": outside,
        "grid": grid,
    }
    names = view_names(views)
    ways = Ways(mechanism=mechanism, criterion=criterion)
    asked = [parse_view(name, views[name], given, ways) for name in names]
    check_same_people(names, [view[0] for view in asked])
    shares = budget_shares(names, weights)
    asked_budget(eps, delta)
    parts = pinned_plans([(*view, share) for view, share in zip(asked, shares, strict=True)], eps, delta)
    for part in parts:
        check_noise(part)
    warn_of(asked[0][0], parts[0])
    return JointPlan(names, tuple(parts), shares)


def _of_view(part: Plan) -> dict[str, Any]:
    """Return the part of a view's record that is not about the budget, nor in the joint record already."""
    shared = ("version", "guarantee", "unit", "neighboring", "population", "asked", "spent", "eps", "delta")
    more = (
        "rho",
        "charge",
        "measurements",
        "libraries",
        "because",
        "mechanism",
        "mechanism_asked",
        "criterion",
    )
    return {name: value for name, value in plan_record(part).items() if name not in (*shared, *more)}


def _views(joint: JointPlan) -> str:
    return "1 view" if len(joint.parts) == 1 else f"{len(joint.parts)} views"


def _page(joint: JointPlan) -> list[tuple[str, ...]]:
    policy, charge = joint.policy, joint.charge
    change = "more or less" if policy.neighboring == "add_remove_one" else "exchanged for another"
    who = "single rows, not people" if policy.by_row else f"one {shown(policy.unit)} {change}"
    page: list[tuple[str, ...]] = [
        ("", f"Joint plan: {_views(joint)} of one population; reads no data"),
        ("protects", f"{who}, in all views together"),
        ("asked", f"eps {plain(joint.eps):g}, delta {plain(joint.delta):g}"),
        ("spends", f"eps {plain(charge.eps):g}, delta {plain(charge.delta):g}, once for all"),
        ("chosen", f"{_NAMES[joint.mechanism]}: {joint.parts[0].choice.because}"),
    ]
    for name, part, weight in zip(joint.names, joint.parts, joint.weights, strict=True):
        page.append((shown(name, 14), f"{part.query.counted(part.policy)}"))
        page.append(
            (
                "",
                f"{part.policy.grid.name}, {part.n_cells:,} cells; {100 * float(weight):.0f} % of the budget; std "
                f"{part.noise_std:,.3g}",
            )
        )
    page.append(("ledger", "none in the plan: without ledger= a release is not counted"))
    return page
