"""What was asked of a joint release: its views, its weights, and one mechanism for all of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from geodp.autoplans import AutoPlan
from geodp.exact import exact_positive
from geodp.grids import grid
from geodp.plans import Plan, Ways, decided_plan
from geodp.policy import NOT_GIVEN, Policy
from geodp.policy import policy as make_policy
from geodp.queries import Count, Query
from geodp.queries.levels import LevelsCount
from geodp.queries.weighted import WeightedCount
from geodp.wording import brief

__all__ = ["AskedView", "budget_shares", "check_same_people", "parse_view", "pinned_plans", "view_names"]

_MOST_VIEWS = 100
_OF_VIEW = (
    "query",
    "by",
    "cap",
    "rows_per_cell",
    "bounds",
    "outside",
    "grid",
    "estimator",
    "return_geometry",
)
_OF_ALL = ("subject", "neighboring", "population", "contribution", "mechanism", "criterion")

AskedView = tuple[Policy, Query, Any, Ways]


def view_names(views: object) -> tuple[str, ...]:
    """Return the names of the views, checked."""
    if not isinstance(views, Mapping):
        raise TypeError(
            f"views must map names to what is asked, {{name: query}}, got {type(views).__name__}."
        )
    if not 1 <= len(views) <= _MOST_VIEWS:
        raise ValueError(f"views must have 1 to {_MOST_VIEWS} entries, got {len(views)}.")
    for name in views:
        if not isinstance(name, str):
            raise TypeError(f"views must have names that are texts, got {brief(name)}.")
        if not 0 < len(name) <= 40 or not name.isprintable() or name != name.strip():
            raise ValueError(f"views must have names of 1 to 40 printable characters, got {brief(name)}.")
    return tuple(views)


def parse_view(name: str, asked: object, given: Mapping[str, Any], ways: Ways) -> AskedView:
    """Return who and where, what, which slots, and how, of one view."""
    if isinstance(asked, Plan):
        return _of_plan(name, asked, given, ways)
    if isinstance(asked, Query):
        asked = {"query": asked}
    if not isinstance(asked, Mapping):
        raise TypeError(
            f"view {brief(name)} must be a query such as geodp.Count(), a mapping such as {{'grid': 'h3:7'}}, or a "
            f"geodp.Plan; got {type(asked).__name__}."
        )
    for field in asked:
        if field not in _OF_VIEW:
            hint = " It is said once, for all views." if field in _OF_ALL else ""
            raise ValueError(
                f"view {brief(name)} cannot set {brief(field)}; it may set {', '.join(_OF_VIEW)}.{hint}"
            )
    query = asked.get("query", Count())
    if not isinstance(query, Query):
        raise TypeError(
            f"view {brief(name)} has a query that is a {type(query).__name__}; give geodp.Count() or the like."
        )
    own = {field: asked[field] for field in ("estimator", "return_geometry") if field in asked}
    return _policy(name, asked, given), query, asked.get("by"), replace(ways, **own)


def _policy(name: str, asked: Mapping[str, Any], given: Mapping[str, Any]) -> Policy:
    fields = ("cap", "rows_per_cell", "bounds", "outside", "grid")
    said = {**given, **{field: asked[field] for field in fields if field in asked}}
    chosen = said["grid"]
    if chosen is not NOT_GIVEN and chosen is not None:
        said["grid"] = grid(chosen)
        if not said["grid"].needs_bounds and "bounds" not in asked:
            said["bounds"] = NOT_GIVEN
    if isinstance(said["cap"], str):
        raise ValueError(
            f"view {brief(name)} has cap={brief(said['cap'])}: in a joint release a cap is an int. "
            "Choose it first: cap=geodp.choose_cap(...)."
        )
    return make_policy(None, **said)


def _of_plan(name: str, plan: Plan, given: Mapping[str, Any], ways: Ways) -> AskedView:
    """Take what and where from a plan; who must be what was said here, if it was."""
    if isinstance(plan, AutoPlan):
        raise ValueError(
            f"view {brief(name)} is a plan with cap='auto'; choose the cap first: geodp.choose_cap(...)."
        )
    if plan.budget is not None:
        raise ValueError(
            f"view {brief(name)} is a plan with a Budget of its own; give the Budget as eps, for all views."
        )
    if plan.ways.cells != "all":
        raise ValueError(
            f"view {brief(name)} is a plan with cells={plan.ways.cells!r}; a joint release has all cells."
        )
    for field in ("subject", "neighboring", "population", "contribution"):
        said, has = given[field], getattr(plan.policy, field)
        if said is not NOT_GIVEN and said != has:
            raise ValueError(
                f"view {brief(name)} is a plan with {field}={has!r}, and here {field}={brief(said)} was said."
            )
    how = replace(plan.ways, mechanism=ways.mechanism, criterion=ways.criterion)
    # What a count became by strategy, weights or rescaling follows from the plan's ways and policy again.
    query = Count() if isinstance(plan.query, Count | LevelsCount | WeightedCount) else plan.query
    return plan.policy, query, plan.slots, how


def check_same_people(names: Sequence[str], policies: Sequence[Policy]) -> None:
    """All views must protect the same people, by the same relation."""
    for field in ("unit", "by_row", "neighboring", "population"):
        first = getattr(policies[0], field)
        for name, policy in zip(names, policies, strict=True):
            if getattr(policy, field) != first:
                raise ValueError(
                    f"views protect different people: {field} is {first!r} in {names[0]!r} and "
                    f"{getattr(policy, field)!r} in {brief(name)}. One budget is for one of them."
                )


def budget_shares(names: Sequence[str], weights: object) -> tuple[Fraction, ...]:
    """Return the weights as exact shares that add up to 1."""
    if weights is None:
        return tuple(Fraction(1, len(names)) for _ in names)
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise ValueError(
                f"weights must name the views {', '.join(map(repr, names))}, got {brief(list(weights))}."
            )
        weights = [weights[name] for name in names]
    if not isinstance(weights, list | tuple) or len(weights) != len(names):
        raise ValueError(f"weights must be {len(names)} numbers, one for each view, got {brief(weights)}.")
    numbers = [exact_positive(weight, "weights") for weight in weights]
    return tuple(number / sum(numbers) for number in numbers)


def pinned_plans(
    asked: Sequence[tuple[Policy, Query, Any, Ways, Fraction]], eps: Any, delta: Any
) -> list[Plan]:
    """Return the plans of all views under one mechanism, the one that is better over all of them."""
    free = [
        decided_plan(policy, eps, delta, query, by, ways, share) for policy, query, by, ways, share in asked
    ]
    winner, because, lost = _decided(free, [share for *_, share in asked])
    parts = []
    for (policy, query, by, ways, share), plan in zip(asked, free, strict=True):
        if plan.mechanism != winner:
            plan = decided_plan(policy, eps, delta, query, by, replace(ways, mechanism=winner), share)
        choice = (
            plan.choice if because is None else replace(plan.choice, because=because, lost=lost, named=False)
        )
        parts.append(replace(plan, ways=ways, choice=choice))
    return parts


def _decided(plans: Sequence[Plan], shares: Sequence[Fraction]) -> tuple[str, str | None, str]:
    """Return one mechanism for all; by the geometric mean of the ratio of noise, by weight."""
    first = plans[0]
    if len(plans) == 1 or first.budget is not None or first.ways.mechanism != "auto" or first.delta == 0:
        return first.mechanism, None, ""
    if any(plan.policy.contribution == "weighted" for plan in plans):
        return (
            "gaussian",
            "weighted contributions with a delta take Gaussian noise",
            "its weights would be smaller",
        )
    both = [(plan.choice.laplace, plan.choice.gaussian) for plan in plans]
    if any(laplace is None for laplace, _ in both):
        return "gaussian", "the only one whose scale fits in all views", "its scale would exceed 2^50 steps"
    if any(gaussian is None for _, gaussian in both):
        return "laplace", "the only one whose scale fits in all views", "its scale would exceed 2^50 steps"
    attribute = "std" if first.ways.criterion == "std" else "worst"
    logs = [
        math.log(max(getattr(gaussian, attribute), 1e-300))
        - math.log(max(getattr(laplace, attribute), 1e-300))
        for laplace, gaussian in both
    ]
    ratio = math.exp(sum(float(share) * log for share, log in zip(shares, logs, strict=True)))
    what = "standard deviation" if attribute == "std" else "expected largest error"
    times = max(ratio, 1 / ratio)
    return (
        "gaussian" if ratio < 1 else "laplace",
        f"smaller {what} over all {len(plans)} views, by weight",
        f"its {what} is {times:.3g} times as large",
    )
