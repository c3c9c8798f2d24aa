"""Which quantities really answer a query: weights, levels and rescaling, decided on the plan.

================  ==============  ==============  ====================================  =======  ========
cells             contribution    strategy        estimator                             rescale  together
================  ==============  ==============  ====================================  =======  ========
``"all"``         ``"sample"``    ``"flat"``      any                                   yes      yes
``"all"``         ``"sample"``    ``"levels"``    ``"pyramid"``                         no       a Plan
``"all"``         ``"weighted"``  ``"flat"``      any; the mechanism is fixed by delta  yes      yes
``"sparse"``      ``"sample"``    ``"flat"``      its own (the default), ``"clamp"``    no       no
``"select"``      ``"sample"``    ``"flat"``      none: ``count`` is ``noisy_count``    no       no
================  ==============  ==============  ====================================  =======  ========

Sums, means and centroids are ``"all"``, ``"sample"`` and ``"flat"``, without ``rescale``, and go together with
other views. Sparse and selected cells are numbered, which H3 cells and squares can be; their cap is a number
(choose it once with :func:`geodp.choose_cap`), and a selection pays with a delta of its own, so not by Budget.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from geodp.bounds import WORLD
from geodp.estimators import budget_shares
from geodp.grids.ranked import rankable, ranked
from geodp.mechanisms.hits import MOST_PLACES
from geodp.queries import Count, Layout, Query
from geodp.queries.levels import LevelsCount
from geodp.queries.rescaling import Rescaling
from geodp.queries.selected import Selected
from geodp.queries.sparse import Sparse, expected_phantoms
from geodp.queries.unlisted import ESTIMATORS
from geodp.queries.weighted import WeightedCount

if TYPE_CHECKING:
    from geodp.accounting import Budget
    from geodp.grids import Grid
    from geodp.plans import Plan, Ways
    from geodp.policy import Policy

__all__ = [
    "answers",
    "check_auto",
    "check_phantoms",
    "check_ranked",
    "leveled",
    "settled_query",
    "sparse_hint",
]

_MOST_PHANTOMS = 5_000_000


def settled_query(
    query: Query,
    policy: "Policy",
    ways: "Ways",
    delta: Fraction = Fraction(0),
    budget: "Budget | None" = None,
) -> Query:
    """Return the query that answers what was asked, or say which combination there is.

    Raises
    ------
    ValueError
        A combination that the table of this module does not have.
    """
    if not isinstance(query, Count):
        _refuse_for(query, policy, ways)
        return query
    if ways.cells != "all":
        _check_unlisted(policy, ways)
    if ways.cells == "sparse":
        return Sparse(ways.threshold, ways.phantoms or Fraction(1))
    if ways.cells == "select":
        _check_selected(ways, delta, budget)
        return Selected()
    if ways.strategy == "levels":
        _check_levels(policy, ways)
        return query
    rescaling = _rescaling(policy, ways)
    return WeightedCount(rescaling) if policy.contribution == "weighted" else Count(rescaling)


def answers(query: Query, policy: "Policy", ways: "Ways") -> bool:
    """Tell whether a count is of the kind that these ways and this policy ask for; other queries have one kind."""
    if not isinstance(query, Count | LevelsCount | Selected | Sparse | WeightedCount):
        return True
    if ways.cells != "all":
        return isinstance(query, Sparse if ways.cells == "sparse" else Selected)
    if policy.contribution == "weighted":
        return isinstance(query, WeightedCount)
    return isinstance(query, LevelsCount if ways.strategy == "levels" else Count)


def leveled(layout: Layout, mechanism: str, std: float) -> LevelsCount:
    """Return counts on several levels; ``std`` is the noise of a flat release."""
    policy, blocks = layout.policy, layout.hierarchy().blocks
    sizes = tuple(int(block.max()) + 1 for block in blocks)
    return LevelsCount(budget_shares(std, mechanism, policy.cap, layout.n_keys, sizes))


def check_ranked(n_keys: int) -> None:
    """Refuse domains whose keys could not be numbered."""
    if n_keys > MOST_PLACES:
        raise ValueError(
            f"{n_keys:.2g} cells and slots are more than the {MOST_PLACES:.2g} that can be numbered. Take smaller "
            "bounds, a coarser grid or fewer slots."
        )


def check_phantoms(plan: "Plan") -> None:
    """Refuse a threshold that empty cells would pass by the million."""
    if not isinstance(plan.query, Sparse):
        return
    threshold = plan.query.threshold(plan)
    expected = expected_phantoms(plan.measurements[0].law, threshold, plan.layout.n_keys)
    if expected > _MOST_PHANTOMS:
        raise ValueError(
            f"about {expected:,.0f} empty cells would pass a threshold of {threshold}, more than "
            f"{_MOST_PHANTOMS:,}. Raise threshold, or lower phantoms."
        )


def check_auto(ways: "Ways") -> None:
    """Refuse a cap that is chosen on the way where the rows are, too."""
    if ways.cells != "all":
        raise ValueError(
            f'cells="{ways.cells}" needs a number as cap; choose one privately with geodp.choose_cap.'
        )


def sparse_hint(query: Query, policy: "Policy", ways: "Ways", n_slots: int = 1) -> str:
    """Return the way out of a domain that is too large to list, where it has one."""
    simple = isinstance(query, Count) and not ways.rescale and ways.strategy == "flat"
    grid = rankable(policy.grid, policy.bounds) if simple and policy.contribution == "sample" else None
    if grid is None or _least(grid, policy) * n_slots > MOST_PLACES:
        return ""
    kept = "it" if grid == policy.grid else f'"{grid.name}"'
    cap = " and a number as cap (geodp.choose_cap)" if policy.cap == "auto" else ""
    return f' Or keep {kept} with cells="sparse"{cap}.'


def _least(grid: "Grid", policy: "Policy") -> int:
    """Return how many cells are numbered; those of squares in metres about, as their border takes a while."""
    box = policy.bounds or WORLD
    return grid.estimate(box) if getattr(grid, "crs", None) is not None else ranked(grid, box).n_cells


def _check_unlisted(policy: "Policy", ways: "Ways") -> None:
    asked = f'cells="{ways.cells}"'
    if policy.contribution != "sample":
        raise ValueError(f'{asked} needs contribution="sample": weights are for maps of all cells.')
    if ways.strategy != "flat":
        raise ValueError(f'{asked} needs strategy="flat": block totals need all cells.')
    if ways.rescale:
        raise ValueError(f"{asked} cannot be rescaled: the map's total needs all cells.")
    if ways.estimator not in ESTIMATORS:
        raise ValueError(
            f'estimator="{ways.estimator}" needs all cells. {asked} has one of its own: leave estimator out, '
            'or say "clamp" to have count as it was measured.'
        )


def _check_selected(ways: "Ways", delta: Fraction, budget: "Budget | None") -> None:
    if budget is not None:
        raise ValueError(
            'cells="select" spends a delta of its own, which a Budget from ledger.split does not hold: type '
            "eps and delta."
        )
    if delta == 0:
        raise ValueError(
            'cells="select" needs a delta above 0: that a cell is there at all tells that somebody is in it. '
            'Give one, such as 1e-6, or take cells="sparse", which is pure.'
        )


def _refuse_for(query: Query, policy: "Policy", ways: "Ways") -> None:
    if policy.contribution == "weighted":
        raise ValueError(f'contribution="weighted" is for heatmaps; a {query.word} needs "sample".')
    if ways.strategy != "flat":
        raise ValueError(f'strategy="{ways.strategy}" is for heatmaps; a {query.word} is measured "flat".')
    if ways.rescale:
        raise ValueError(f"rescale is for heatmaps, not for a {query.word}.")
    if ways.cells != "all":
        raise ValueError(f'cells="{ways.cells}" is for heatmaps; a {query.word} has all cells.')


def _check_levels(policy: "Policy", ways: "Ways") -> None:
    if policy.contribution != "sample":
        raise ValueError(
            'strategy="levels" needs contribution="sample": a block sum of weights has no tight bound.'
        )
    if ways.estimator != "pyramid":
        raise ValueError(f'strategy="levels" needs estimator="pyramid", got "{ways.estimator}".')
    if ways.rescale:
        raise ValueError('rescale goes with strategy="flat".')


def _rescaling(policy: "Policy", ways: "Ways") -> Rescaling:
    if ways.rescale and policy.cap != "auto" and ways.rescale < policy.cap:
        raise ValueError(f"rescale={ways.rescale} must be at least the cap, {policy.cap}.")
    return Rescaling(ways.rescale)
