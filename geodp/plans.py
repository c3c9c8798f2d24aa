"""A Plan: all that is decided before any data is read.

Whatever a released frame holds besides its numbers comes from the plan, so a plan can be printed,
compared, costed and tested for free, and two neighbouring data sets cannot differ in anything else.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from geodp.accounting import Budget, Charge
from geodp.bounds import WORLD, Box
from geodp.errors import BoundsWarning, NoiseWarning, PopulationWarning, PrivacyUnitWarning, warn
from geodp.estimators import ESTIMATORS
from geodp.exact import exact, exact_delta, exact_positive, whole
from geodp.grids import finest_h3
from geodp.grids.ranked import can_rank, ranked
from geodp.mechanisms.calibration import rho_of, scale_for, sigma_for, sigma_for_rho
from geodp.mechanisms.choice import MechanismChoice, decide
from geodp.mechanisms.laws import DiscreteLaplace, Law, RoundedGaussian
from geodp.policy import Policy, one_of
from geodp.progress import showing
from geodp.queries import Count, Layout, Measurement, Quantity, Query
from geodp.slots import Slots, slots
from geodp.strategies import (
    answers,
    check_auto,
    check_phantoms,
    check_ranked,
    leveled,
    settled_query,
    sparse_hint,
)
from geodp.wording import brief

if TYPE_CHECKING:
    import geopandas as gpd

    from geodp.ledger import Ledger

__all__ = [
    "MAX_CELLS",
    "Plan",
    "Ways",
    "asked_budget",
    "check_noise",
    "check_size",
    "decided_plan",
    "looking",
    "make_plan",
    "measured",
    "warn_of",
]

MAX_CELLS = 5_000_000
_SURE_DELTA = Fraction(1, 1000)
_SURELY_NO_NOISE = 0.999999
_K_MAX = 64
_MOST_COMPARED = 10**15


@dataclass(frozen=True)
class Ways:
    """How a query is answered, apart from who, where and how much budget.

    Attributes
    ----------
    mechanism : {"auto", "laplace", "gaussian"}
    criterion : {"std", "max_error"}
        What ``"auto"`` compares.
    estimator : str
        What makes ``count`` out of ``noisy_count``.
    strategy : {"flat", "levels"}
        Whether only cells are measured, or totals of coarse blocks too.
    rescale : int
        Most keys of one subject in the separately measured total that the map is scaled to; 0 for none,
        True for 64.
    cells : {"all", "sparse", "select"}
        Which cells are released.
    return_geometry : bool
        Whether outlines are part of the frame.
    threshold : int, optional
        With sparse cells: the least noisy count that is released.
    phantoms : Fraction, optional
        With sparse cells and no threshold: how many empty cells are expected to be released at most.
    """

    mechanism: str = "auto"
    criterion: str = "std"
    estimator: str = "pyramid"
    strategy: str = "flat"
    cells: str = "all"
    return_geometry: bool = True
    rescale: int = 0
    threshold: int | None = None
    phantoms: Any = None

    def __post_init__(self) -> None:
        one_of(self.mechanism, "mechanism", ("auto", "laplace", "gaussian"))
        one_of(self.criterion, "criterion", ("std", "max_error"))
        one_of(self.estimator, "estimator", ESTIMATORS)
        one_of(self.strategy, "strategy", ("flat", "levels"))
        one_of(self.cells, "cells", ("all", "sparse", "select"))
        if not isinstance(self.return_geometry, bool):
            raise TypeError(f"return_geometry must be True or False, got {brief(self.return_geometry)}.")
        if isinstance(self.rescale, bool):
            object.__setattr__(self, "rescale", _K_MAX if self.rescale else 0)
        whole(self.rescale, "rescale", 0, 10**9)
        self._check_threshold()

    def _check_threshold(self) -> None:
        given = [name for name in ("threshold", "phantoms") if getattr(self, name) is not None]
        if not given:
            return
        if self.cells != "sparse":
            raise ValueError(f'{given[0]} goes with cells="sparse", got cells="{self.cells}".')
        if len(given) > 1:
            raise ValueError(
                "phantoms says how often empty cells may pass, threshold what they must; give one."
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", whole(self.threshold, "threshold", 1, 2**40))
        else:
            object.__setattr__(self, "phantoms", exact_positive(self.phantoms, "phantoms"))


@dataclass(frozen=True)
class Plan:
    """Everything public about a release, decided from arguments alone.

    Plans are made by :func:`geodp.plan` or ``view.plan(...)``. They are frozen, hashable and
    comparable, hold no frame, ledger or connection, and :meth:`release` is the only place where
    points meet them.

    Attributes
    ----------
    policy : Policy
        Who and where, with bounds and grid settled.
    query : Query
        What is asked.
    slots : Slots
        The public levels of ``by``.
    eps, delta : Fraction
        What was asked for; :attr:`charge` is what the release spends.
    ways : Ways
        Mechanism, criterion, estimator and the like, as asked.
    choice : MechanismChoice
        Both mechanisms' figures, which one won and why.
    measurements : tuple of Measurement
        What is drawn: sensitivities and noise of every released vector.
    budget : Budget or None
        What was asked for, where it came from ``ledger.split(k)``.
    default_grid : bool
        Whether no grid was named.

    Examples
    --------
    >>> import geodp
    >>> import geopandas as gpd
    >>> plan = geodp.plan(1.0, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
    >>> plan.n_cells, plan.index.name, round(plan.noise_std, 2)
    (5495, 'h3_08', 5.64)
    >>> plan.to_dict()["guarantee"]
    '(1, 0)-DP for one rider more or less'
    >>> trips = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([-74], [40.7]), crs=4326)
    >>> len(plan.release(trips))
    5495
    """

    policy: Policy
    query: Query
    slots: Slots
    eps: Fraction
    delta: Fraction
    ways: Ways
    choice: MechanismChoice
    measurements: tuple[Measurement, ...]
    budget: Budget | None = None
    default_grid: bool = False

    def __post_init__(self) -> None:
        from geodp.reconcile import cost_problem

        problem = None if self.measurements else "measures nothing"
        problem = problem or cost_problem(self.charge, [one.to_dict() for one in self.measurements])
        problem = problem or self._edited()
        if problem is not None:
            raise ValueError(f"a plan is made by geodp.plan and not edited: this one {problem}.")

    def _edited(self) -> str | None:
        """Say where the measurements are not those of the policy and the query that will bound the rows."""
        bounded = self.query.quantities(self.layout, self.mechanism)
        held = tuple(replace(m.quantity, share=Fraction(1)) for m in self.measurements)
        if held != tuple(replace(quantity, share=Fraction(1)) for quantity in bounded):
            return "has noise for another policy or query than its own"
        if not answers(self.query, self.policy, self.ways):
            return "has another query than its ways and policy ask for"
        try:
            self.query.threshold(self)
        except (ArithmeticError, ValueError):
            return "has no threshold"
        return None

    @property
    def layout(self) -> Layout:
        """The domain and its size."""
        return _layout(self.policy, self.slots, self.ways)

    @property
    def index(self) -> pd.Index:
        """Ids of the released rows: cells, or cells and slots; raises where they are not public."""
        return self.slots.index(self.layout.domain.index)

    @property
    def n_cells(self) -> int:
        """Number of cells, released or not; an upper bound where ``layout.domain.exact`` is False."""
        return self.layout.domain.n_cells

    @property
    def threshold(self) -> int | None:
        """Least noisy count that is released; ``None`` where all cells are."""
        return self.query.threshold(self)

    @property
    def l1(self) -> float:
        """L1 sensitivity of the leading quantity, in its own unit."""
        leading = self.measurements[0]
        return float(leading.l1 * leading.quantity.step)

    @property
    def l2(self) -> float:
        """L2 sensitivity of the leading quantity, in its own unit."""
        leading = self.measurements[0]
        return math.sqrt(leading.l2_squared) * float(leading.quantity.step)

    @property
    def mechanism(self) -> str:
        """``"laplace"`` or ``"gaussian"``: the noise that will be drawn."""
        return self.measurements[0].mechanism

    @property
    def scale(self) -> float:
        """B of the Laplace or sigma of the Gaussian, in the leading quantity's unit."""
        leading = self.measurements[0]
        return leading.scale * float(leading.quantity.step)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in each key, in the leading quantity's unit."""
        leading = self.measurements[0]
        return leading.law.std * float(leading.quantity.step)

    @property
    def estimator(self) -> str:
        """What makes the map's column out of the measurement."""
        names = {"all": self.ways.estimator, "sparse": "censored", "select": "none"}
        return self.ways.estimator if self.ways.estimator == "clamp" else names[self.ways.cells]

    @property
    def charge(self) -> Charge:
        """What the release spends: eps, delta and rho."""
        select = self.query.selection(self.delta, self.mechanism)
        if self.mechanism == "laplace":
            return Charge(self.eps, select, self.eps**2 / 2, select)
        rho = sum((rho_of(m.l2_squared, m.scale) for m in self.measurements), Fraction(0))
        return Charge(self.eps, self.delta, rho, select)

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments: equal keys name the same release."""
        arguments = {
            "policy": self.policy.to_dict(),
            "query": self.query.to_dict(),
            "by": self.slots.to_dict(),
            "eps": str(self.eps),
            "delta": str(self.delta),
            "rho": None if self.budget is None else str(self.budget.rho),
            "ways": asdict(self.ways),
        }
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)

    def release(
        self,
        gdf: "gpd.GeoDataFrame",
        *,
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> "gpd.GeoDataFrame":
        """Release what the plan describes: the only place where points meet it.

        Parameters
        ----------
        gdf : GeoDataFrame
            Points, with the columns the plan names. Any CRS.
        ledger : Ledger, optional
            Pays for the release before its noise is drawn.
        label : str, optional
            Name of the release in the ledger; required with one. The same label again returns the
            stored release.
        retry : bool, default False
            Pay again for a label whose release was never stored.
        reason : str, optional
            A reviewer's reason, kept on the ledger's record.
        progress : bool, default True
            Bars for stages that take more than a few seconds: percentages only.

        Returns
        -------
        GeoDataFrame
            One row for each id of :attr:`index`, EPSG:4326.

        Raises
        ------
        TypeError, ValueError
            The frame's schema does not fit the plan. Never because of single rows.
        BudgetExceeded
            The ledger's ceiling would be passed; nothing is released or spent.
        """
        from geodp.release import release

        with showing(progress):
            return release(self, gdf, ledger=ledger, label=label, retry=retry, reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON: all that decides a release, and nothing measured.

        Returns
        -------
        dict
            What the record of a release will say, below 2 kB as JSON.
        """
        from geodp.records import plan_record

        return plan_record(self)

    def __str__(self) -> str:
        from geodp.pages import plan_text

        return plan_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from geodp.pages import plan_html

        return plan_html(self)


def make_plan(
    policy: Policy,
    eps: object,
    delta: object,
    query: Query,
    by: object = None,
    ways: Ways | None = None,
) -> Plan:
    """Decide everything about a release that can be decided without data.

    Raises
    ------
    TypeError, ValueError
        Any argument of the wrong kind or range, a domain of more than 5 million keys, or noise that
        would not fit into integers.
    """
    if not isinstance(query, Query):
        raise TypeError(
            f"query must be geodp.Count(), Sum(...), Mean(...) or Centroid(), got {type(query).__name__}."
        )
    if policy.cap == "auto":
        check_auto(ways or Ways())
        from geodp.autoplans import make_auto_plan

        return make_auto_plan(policy, eps, delta, query, by, ways or Ways())
    plan = decided_plan(policy, eps, delta, query, by, ways or Ways())
    check_noise(plan)
    check_phantoms(plan)
    warn_of(policy, plan)
    return plan


def decided_plan(
    policy: Policy,
    eps: object,
    delta: object,
    query: Query,
    by: object,
    ways: Ways,
    share: Fraction | None = None,
) -> Plan:
    """Return the plan without any warning; ``share`` is its part of a budget that several plans spend."""
    alone, share = share is None, share or Fraction(1)
    budget = eps if isinstance(eps, Budget) else None
    asked_eps, asked_delta = asked_budget(eps, delta)
    _check_delta(asked_delta, policy.population)
    query = settled_query(query, policy, ways, asked_delta, budget)
    settled, default_grid = _settle(policy, query)
    levels = slots(by)
    check_size(settled, query, len(levels), ways, alone=alone)
    layout = _layout(settled, levels, ways)
    choice = _choose(layout, query, asked_eps, asked_delta, ways, budget, share)
    if ways.strategy == "levels":
        query = leveled(layout, choice.mechanism, choice.law.std)
        named = replace(ways, mechanism=choice.mechanism)
        split = _choose(layout, query, asked_eps, asked_delta, named, budget, share)
        choice = replace(split, because=choice.because, lost=choice.lost, named=choice.named)
    measurements = measured(layout, query, asked_eps, asked_delta, choice.mechanism, budget, share)
    return Plan(
        settled, query, levels, asked_eps, asked_delta, ways, choice, measurements, budget, default_grid
    )


def looking(policy: Policy, by: object, mechanism: str = "laplace") -> Ways:
    """Return ways for a plan that places rows and releases no map: numbered cells where a list would be too long."""
    settled, _ = _settle(policy, Count())
    size = settled.grid.estimate(settled.bounds or WORLD) * len(slots(by))
    cells = "sparse" if size > MAX_CELLS and can_rank(settled.grid) else "all"
    return Ways(mechanism=mechanism, cells=cells)


def asked_budget(eps: object, delta: object) -> tuple[Fraction, Fraction]:
    """Return what was typed, or what a Budget holds, exactly."""
    if isinstance(eps, Budget):
        if exact(delta, "delta") != 0:
            raise ValueError("delta comes with the Budget; leave delta out.")
        return eps.eps, eps.delta
    return exact_positive(eps, "eps"), exact_delta(delta)


def _check_delta(delta: Fraction, population: int | None) -> None:
    if population is None:
        if delta >= _SURE_DELTA:
            raise ValueError(
                f"delta={float(delta):g} would expose one subject in {int(1 / delta):,} outright. Were eps and "
                "delta swapped? If it is meant, declare the public population=, and delta is held against it."
            )
    elif delta * population >= 1:
        raise ValueError(
            f"delta={float(delta):g} is not below 1/population = 1/{population:,}: releasing one whole person "
            f"would satisfy it. geodp.delta_for({population}) gives one that fits."
        )


def _settle(policy: Policy, query: Query) -> tuple[Policy, bool]:
    """Fill in the public defaults: the whole world, and the finest H3 grid of at most 10,000 cells."""
    grid = policy.grid or query.default_grid()
    if grid is not None and not grid.needs_bounds:
        return replace(policy, grid=grid), False
    box = policy.bounds or WORLD
    return replace(policy, bounds=box, grid=grid or finest_h3(box)), grid is None


def check_size(policy: Policy, query: Query, n_slots: int, ways: Ways, *, alone: bool = True) -> None:
    """Refuse more cells than can be listed, or numbered where only some are released.

    One of several views is not alone, and has all its cells.
    """
    policy, _ = _settle(policy, query)
    box: Box = policy.bounds or WORLD
    if ways.cells != "all":
        check_ranked(ranked(policy.grid, box).n_cells * n_slots)
        return
    size = policy.grid.estimate(box) * n_slots
    if size <= MAX_CELLS:
        return
    where = "in these bounds" if n_slots == 1 else f"and slots ({n_slots} of each cell) in these bounds"
    message = f'grid="{policy.grid.name}" has about {_about(size)} cells {where}, more than {MAX_CELLS:,}.'
    fits = policy.grid.fitting(box, MAX_CELLS // n_slots)
    if fits is not None:
        message += f' "{fits.name}" fits (about {_about(fits.estimate(box) * n_slots)}).'
    message += sparse_hint(query, policy, ways, n_slots) if alone else ""
    raise ValueError(message)


def _about(number: int) -> str:
    digits = max(0, len(str(number)) - 2)
    return f"{round(number, -digits):,}"


def _layout(policy: Policy, levels: Slots, ways: Ways) -> Layout:
    box = policy.bounds or WORLD
    domain = policy.grid.domain(box) if ways.cells == "all" else ranked(policy.grid, box)
    return Layout(policy, domain, len(levels))


def _choose(
    layout: Layout,
    query: Query,
    eps: Fraction,
    delta: Fraction,
    ways: Ways,
    budget: Budget | None,
    share: Fraction,
) -> MechanismChoice:
    """Compare both mechanisms on the leading quantity, at its share of the budget."""
    mechanism = budget.mechanism if budget else query.mechanism(ways.mechanism, delta)
    laplace, gaussian = (query.quantities(layout, kind)[0] for kind in ("laplace", "gaussian"))
    return decide(
        laplace.norms.l1 / (laplace.share * share),
        gaussian.norms.l2_squared / (gaussian.share * share),
        eps,
        delta - query.selection(delta, "gaussian"),
        mechanism=mechanism,
        criterion=ways.criterion,
        cells=min(layout.n_keys, _MOST_COMPARED),
        population=layout.policy.population,
        rho=None if budget is None else budget.rho,
    )


def measured(
    layout: Layout,
    query: Query,
    eps: Fraction,
    delta: Fraction,
    mechanism: str,
    budget: Budget | None = None,
    share: Fraction = Fraction(1),
) -> tuple[Measurement, ...]:
    """Return what is drawn: every quantity of the query, with the noise that its share of the budget buys."""
    quantities = (replace(q, share=q.share * share) for q in query.quantities(layout, mechanism))
    left = delta - query.selection(delta, mechanism)
    return tuple(Measurement(q, _law(q, eps, left, mechanism, budget)) for q in quantities)


def _law(quantity: Quantity, eps: Fraction, delta: Fraction, mechanism: str, budget: Budget | None) -> Law:
    """Give a quantity the noise that its share of the budget buys.

    L1 over scale adds up over quantities, and so does L2² over sigma²: shares of eps and of 1/sigma².
    """
    if mechanism == "laplace":
        return DiscreteLaplace(scale_for(quantity.norms.l1 / quantity.share, eps))
    l2_squared = quantity.norms.l2_squared / quantity.share
    if budget is not None:
        return RoundedGaussian(sigma_for_rho(l2_squared, budget.rho))
    return RoundedGaussian(sigma_for(l2_squared, eps, delta))


def check_noise(plan: Plan) -> None:
    """Refuse what would mostly be released without noise, and warn where much would."""
    p_zero = max(m.law.p_zero for m in plan.measurements)
    if p_zero > _SURELY_NO_NOISE and plan.ways.mechanism == "auto":
        raise ValueError(
            f"eps={float(plan.eps):g} adds no noise at all to more than 99.9999 % of the numbers. Type a smaller "
            'eps, or name the mechanism ("laplace" or "gaussian") if it is meant.'
        )
    if p_zero > 0.5:
        warn(
            f"More than half of the numbers get no noise at eps={float(plan.eps):g}: what is released is mostly "
            "exact. A smaller eps protects more.",
            NoiseWarning,
        )


def warn_of(policy: Policy, plan: Plan) -> None:
    """Warn of what a policy left open, and of a delta that people would notice."""
    from geodp.pages import mostly_noise

    if policy.subject is None:
        warn(
            "No subject was named, so this protects single rows, not people. Name the column that says whose a "
            'row is, subject="rider", or say subject=geodp.EACH_ROW if every row is another person.',
            PrivacyUnitWarning,
        )
    if policy.bounds is None and plan.policy.bounds is not None:
        warn(
            "No bounds were given, so the map is the whole world. Type the box of the study area: "
            "bounds=(west, south, east, north) in degrees.",
            BoundsWarning,
        )
    if policy.population is not None and plan.charge.delta * policy.population > Fraction(1, 100):
        warn(
            f"delta times population is {float(plan.charge.delta * policy.population):.2g}: as many people may "
            f"lose all protection. geodp.delta_for({policy.population}) keeps it below 0.01.",
            PopulationWarning,
        )
    noise = mostly_noise(plan)
    if noise is not None:
        warn(f"This map would be {noise}", NoiseWarning)
