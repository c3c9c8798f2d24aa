"""``cap="auto"``: a plan in two stages, one debit.

Stage 1 chooses the cap among public candidates for 5 % of eps (:mod:`geodp.quantiles`); stage 2 is the release
itself, with the chosen cap and the rest of the budget. A plan for *every* candidate is made before any row is
read, all with one mechanism, pinned from public facts; stage 1 only picks which of them is carried out. So
the cap, and the size of noise that follows from it, are private outputs of stage 1, paid for like any
other, and everything else stays decided by arguments alone.

**Privacy.** Stage 1 is (eps_1, 0)-DP and (eps_1²/8)-zCDP. For every fixed cap c, stage 2 is (eps - eps_1,
delta)-DP and rho_c-zCDP. Stage 2 sees of stage 1 its output alone, and takes the cap from it, so both together are
(eps, delta)-DP and (eps_1²/8 + max rho_c)-zCDP by adaptive composition (Dwork and Roth 2014, theorem B.1;
Bun and Steinke 2016, lemma 2.3): that is what is debited, before stage 1 draws.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import geopandas as gpd
import numpy as np
from numpy.typing import NDArray

from geodp import testing
from geodp.accounting import Budget, Charge
from geodp.exact import plain
from geodp.mechanisms.calibration import rho_of
from geodp.pages import plan_rows, rows_html, rows_text
from geodp.paying import Columns, Payments
from geodp.plans import Plan, Ways, asked_budget, check_noise, check_size, decided_plan, warn_of
from geodp.policy import Policy
from geodp.progress import showing
from geodp.quantiles import CANDIDATES, QUANTILE, Selection, keys_per_subject, lengths_of, selection
from geodp.queries import Measurement, Query
from geodp.records import plan_record, sealed
from geodp.release import check_frame, drawn, finish, placed
from geodp.silence import discreetly, quiet
from geodp.slots import slots
from geodp.sources import Counter, KeysPerSubject, Partitioned, Tally, source
from geodp.wording import people

if TYPE_CHECKING:
    from geodp.ledger import Ledger

__all__ = ["SHARE", "AutoPlan", "make_auto_plan"]

Ints = NDArray[np.int64]
Exact = dict[str, Ints]

SHARE = Fraction(1, 20)
_COLUMN = "stage 1/cap"
# What of a record is an output of stage 1, and no part of the plan.
_CHOSEN = ("cap", "counted", "scale", "std", "l1", "l2", "measurements")
_UNKNOWN = "as many cells as stage 1 chooses"


@dataclass(frozen=True, repr=False)
class AutoPlan(Plan):
    """A plan whose cap is chosen privately first; see :class:`geodp.Plan`.

    ``l1``, ``l2``, ``scale`` and ``noise_std`` are those of the largest candidate: what will be drawn is known
    after stage 1, and is at most that. ``choice`` compares the mechanisms at the middle candidate.

    Attributes
    ----------
    selection : Selection
        Stage 1: the choice of the cap, and its part of eps.
    options : tuple of Plan
        Stage 2, for each candidate in turn, with the rest of the budget.
    """

    selection: Selection = field(kw_only=True)
    options: tuple[Plan, ...] = field(kw_only=True)

    def _edited(self) -> str | None:
        """Say where the stages are not those of this plan's own policy, query and budget."""
        caps = tuple(option.policy.cap for option in self.options)
        if caps != self.selection.candidates or self.policy.cap not in ("auto", caps[-1]):
            return "offers other caps than stage 1 chooses from"
        for option in self.options:
            if replace(option.policy, cap=self.policy.cap) != self.policy or option.slots != self.slots:
                return "has a stage 2 for another policy than its own"
            if (option.eps + self.selection.eps, option.delta) != (self.eps, self.delta):
                return "has a stage 2 for another budget than its own"
        if self.measurements != (*self.options[-1].measurements, self.selection.measurement):
            return "has noise for another policy or query than its own"
        return None

    @property
    def charge(self) -> Charge:
        """What both stages spend together, whichever cap is chosen."""
        spent = self.options[0].charge
        rho = self.selection.eps**2 / 8 + max(_rho(option) for option in self.options)
        return Charge(self.eps, spent.delta, rho)

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments, stage 1 among them."""
        arguments = {**json.loads(super().key), "stage_1": self._stage_1()}
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"))

    def option(self, cap: int) -> Plan:
        """Return the plan of stage 2 for one of the candidates."""
        return self.options[self.selection.candidates.index(cap)]

    def release(
        self,
        gdf: gpd.GeoDataFrame,
        *,
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> gpd.GeoDataFrame:
        """Choose the cap and release what the plan describes; see :meth:`geodp.Plan.release`."""
        with showing(progress):
            return _release(self, gdf, ledger, label, retry, reason)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON; sizes of noise are those of the largest candidate.

        ``measurements`` has stage 1 as well, for a ledger to check the cost; a frame's record has those of
        the chosen cap alone.
        """
        largest = self.options[-1].policy
        record = plan_record(replace(self, policy=largest))
        return {
            **record,
            "counted": record["counted"].replace(f"{largest.cap} cells", _UNKNOWN),
            "cap": "auto",
            "stage_1": self._stage_1(),
        }

    def _stage_1(self) -> dict[str, Any]:
        first = self.selection
        return {**first.asked(), "eps": str(first.eps), "scale": first.scale, "within": first.within}

    def __str__(self) -> str:
        return rows_text(_page(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return rows_html(_page(self))


def make_auto_plan(
    policy: Policy, eps: object, delta: object, query: Query, by: object, ways: Ways
) -> AutoPlan:
    """Decide both stages of a release with ``cap="auto"``, for every candidate.

    Raises
    ------
    TypeError, ValueError
        As :func:`geodp.plans.make_plan`, for any of the candidates; or a Budget was given as eps.
    """
    if isinstance(eps, Budget):
        raise TypeError(
            'cap="auto" chooses a cap with every release. A series chooses it once: '
            "cap=geodp.choose_cap(...), and then pays each release with a Budget."
        )
    total, probability = asked_budget(eps, delta)
    levels = slots(by)
    check_size(policy, query, len(levels), ways)
    first = selection(policy, total * SHARE, CANDIDATES, QUANTILE, levels)
    rest = total - first.eps

    def made(cap: int, how: Ways) -> Plan:
        return decided_plan(replace(policy, cap=cap), rest, probability, query, levels, how)

    middle = made(CANDIDATES[len(CANDIDATES) // 2], ways)
    pinned = replace(ways, mechanism=middle.mechanism)
    options = tuple(made(cap, pinned) for cap in CANDIDATES)
    plan = AutoPlan(
        replace(options[-1].policy, cap="auto"),
        options[-1].query,
        levels,
        total,
        probability,
        ways,
        middle.choice,
        (*options[-1].measurements, cast(Measurement, first.measurement)),
        default_grid=middle.default_grid,
        selection=first,
        options=options,
    )
    check_noise(replace(options[0], ways=ways))
    warn_of(policy, plan)
    return plan


def _rho(option: Plan) -> Fraction:
    if option.mechanism == "laplace":
        return option.eps**2 / 2
    return sum((rho_of(m.l2_squared, m.scale) for m in option.measurements), Fraction(0))


def _release(
    plan: AutoPlan,
    gdf: gpd.GeoDataFrame,
    ledger: "Ledger | None",
    label: str | None,
    retry: bool,
    reason: str | None,
) -> gpd.GeoDataFrame:
    mode = testing.current()
    check_frame(plan, gdf)
    settled = Payments(plan, ledger, label, mode).settle(
        lambda: _counted(plan, gdf, mode),
        lambda found: _drawn(plan, *found, mode),
        retry=retry,
        reason=reason,
    )
    with settled.intact():
        columns = dict(settled.columns)
        cap = int(columns.pop(_COLUMN)[0])
        return _finished(plan, cap, columns, mode, settled.entry)


def _drawn(plan: AutoPlan, lengths: Ints, tally: Callable[[int], Exact], mode: testing.Mode) -> Columns:
    """Draw the cap, and then the release under it."""
    cap = plan.selection.draw(lengths, mode)
    return {**drawn(plan.option(cap), tally(cap), mode), _COLUMN: np.array([cap], np.int64)}


def _counted(
    plan: AutoPlan, gdf: gpd.GeoDataFrame, mode: testing.Mode
) -> tuple[Ints, Callable[[int], Exact]]:
    """Return the number of keys of each subject, and the tally for any cap; rows are placed once.

    Partitions are gone through once, for all candidates; rows in memory are tallied for the chosen cap alone.
    """
    first, points = plan.selection, source(gdf)
    if isinstance(points, Partitioned):
        counters: list[Counter] = [
            KeysPerSubject(first.plan, first.candidates[-1]),
            *map(Tally, plan.options),
        ]
        found, *totals = points.totals(plan.options[-1], counters, mode.secret)
        return lengths_of(found["subjects"]), dict(zip(first.candidates, totals, strict=True)).__getitem__
    with quiet():
        rows = discreetly("placing the rows", mode, lambda: placed(plan.options[-1], gdf))
        lengths = discreetly("placing the rows", mode, lambda: keys_per_subject(rows, plan.layout))

    def tally(cap: int) -> Exact:
        with quiet():
            work = partial(Tally(plan.option(cap)), rows, mode.secret)
            return discreetly("tallying the rows", mode, work, "what was debited stays spent")

    return lengths, tally


def _finished(
    plan: AutoPlan,
    cap: int,
    columns: Columns,
    mode: testing.Mode,
    entry: dict[str, Any] | None,
) -> gpd.GeoDataFrame:
    """Lay out the frame; of its record the fields of ``_CHOSEN`` are the private output of stage 1."""
    chosen = plan.option(cap)
    record, output = plan.to_dict(), plan_record(chosen)
    record |= {name: output[name] for name in _CHOSEN}
    return finish(chosen, columns, sealed({**record, "noise": mode.noise, "ledger": entry}))


def _page(plan: AutoPlan) -> list[tuple[str, ...]]:
    """Return the page of the middle candidate's plan, with what both stages spend, and every candidate."""
    middle = replace(plan.options[len(plan.options) // 2], choice=plan.choice)
    cap = middle.policy.cap
    page: list[tuple[str, ...]] = []
    for label, *cells in plan_rows(middle):
        text = tuple(cell.replace(f"at most {cap} cells", f"at most {_UNKNOWN}") for cell in cells)
        page.append((label, *_replaced(plan, label, text)))
        if label == "spends":
            page += _stages(plan, cap)
    return page


def _replaced(plan: AutoPlan, label: str, cells: tuple[str, ...]) -> tuple[str, ...]:
    charge = plan.charge
    said = {
        "asked": f"eps {plain(plan.eps):g}, delta {plain(plan.delta):g}",
        "spends": f"eps {plain(charge.eps):g}, delta {plain(charge.delta):g}, both stages together",
    }
    return (said[label],) if label in said else cells


def _stages(plan: AutoPlan, middle: int) -> list[tuple[str, ...]]:
    first = plan.selection
    stds = [option.noise_std for option in plan.options]
    caps = ", ".join(map(str, first.candidates))
    return [
        (
            "cap",
            f"chosen in stage 1 among {caps}, for eps {plain(first.eps):g}: what {first.share} of "
            f"{people(plan.policy.unit)} stay within, give or take {first.within:,} of them",
        ),
        ("std by cap", ", ".join(f"{c}: {std:,.3g}" for c, std in zip(first.candidates, stds, strict=True))),
        ("figures", f"below are for cap {middle}, the middle one; the real ones are known after stage 1"),
    ]
