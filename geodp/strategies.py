"""Which quantities really answer a query: weights, levels and rescaling, decided on the plan.

====================  ==========================  ===================================================
contribution          strategy                    estimator
====================  ==========================  ===================================================
``"sample"``          ``"flat"``, ``"levels"``    flat: any; levels: ``"pyramid"``
``"weighted"``        ``"flat"``                  any; the mechanism is fixed by delta
====================  ==========================  ===================================================

Sums, means and centroids are ``"sample"`` and ``"flat"``. ``rescale`` goes with flat counts.
"""

from typing import TYPE_CHECKING

from geodp.estimators import budget_shares
from geodp.queries import Count, Layout, Query
from geodp.queries.levels import LevelsCount
from geodp.queries.rescaling import Rescaling
from geodp.queries.weighted import WeightedCount

if TYPE_CHECKING:
    from geodp.plans import Ways
    from geodp.policy import Policy

__all__ = ["leveled", "settled_query"]


def settled_query(query: Query, policy: "Policy", ways: "Ways") -> Query:
    """Return the query that answers what was asked, or say which combination there is.

    Raises
    ------
    ValueError
        A combination that the table of this module does not have.
    """
    if not isinstance(query, Count):
        _refuse_for(query, policy, ways)
        return query
    if ways.strategy == "levels":
        _check_levels(policy, ways)
        return query
    rescaling = _rescaling(policy, ways)
    return WeightedCount(rescaling) if policy.contribution == "weighted" else Count(rescaling)


def leveled(layout: Layout, mechanism: str, std: float) -> LevelsCount:
    """Return counts on several levels; ``std`` is the noise of a flat release."""
    policy, blocks = layout.policy, layout.hierarchy().blocks
    sizes = tuple(int(block.max()) + 1 for block in blocks)
    return LevelsCount(budget_shares(std, mechanism, policy.cap, layout.n_keys, sizes))


def _refuse_for(query: Query, policy: "Policy", ways: "Ways") -> None:
    if policy.contribution == "weighted":
        raise ValueError(f'contribution="weighted" is for heatmaps; a {query.word} needs "sample".')
    if ways.strategy != "flat":
        raise ValueError(f'strategy="{ways.strategy}" is for heatmaps; a {query.word} is measured "flat".')
    if ways.rescale:
        raise ValueError(f"rescale is for heatmaps, not for a {query.word}.")


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
