"""Plans side by side: resolution, cap and eps chosen from error, before anything is spent."""

import itertools
import math
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from geodp.errors import GeoDPWarning, warn
from geodp.exact import exact, exact_positive, plain
from geodp.pages import noise_share
from geodp.plans import Plan, Ways, make_plan
from geodp.policy import EachRow, Policy
from geodp.queries import Count, Query

if TYPE_CHECKING:
    from geodp.grids import Grid

__all__ = ["compare_plans"]

_MOST = 10_000
_DTYPES = {
    "eps": "float64",
    "delta": "float64",
    "cap": "Int64",
    "grid": "str",
    "cells": "Int64",
    "area_km2": "float64",
    "mechanism": "str",
    "std": "float64",
    "halfwidth": "float64",
    "worst": "float64",
    "rho": "float64",
    "spent_delta": "float64",
    "threshold": "Int64",
    "noise_share": "float64",
    "readable": "float64",
    "problem": "str",
}


def compare_plans(
    eps: Any,
    delta: Any = 0,
    *,
    query: Query | None = None,
    # who
    subject: str | EachRow | None = None,
    cap: Any = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    cells_each: float = 1,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: Any = None,
    # what and how
    by: Any = None,
    mechanism: str = "auto",
    criterion: str = "std",
    estimator: str = "pyramid",
    cells: str = "all",
    threshold: int | None = None,
    phantoms: Any = None,
) -> pd.DataFrame:
    """Tabulate plans for every combination of eps, delta, cap and grid; free, reads no data.

    Parameters
    ----------
    eps, delta, cap, grid
        One value, or a list of values.
    query, subject, rows_per_cell, contribution, neighboring, bounds, outside, by, mechanism, criterion, estimator, \
cells, threshold, phantoms
        As in :func:`geodp.plan`, the same for all combinations.
    population : int, optional
        Public number of subjects, for the columns ``noise_share`` and ``readable``.
    cells_each : float, default 1
        A public guess of how many cells (and slots) a subject counts in; no more than the cap counts.

    Returns
    -------
    DataFrame
        One row for each combination, in the order given, whether or not it makes a plan: where it does
        not, ``problem`` says why and the figures are missing. Columns:

        - ``eps``, ``delta``, ``cap``, ``grid``: as asked; ``cells``, ``area_km2``: their number and mean area;
        - ``mechanism``, ``std``, ``halfwidth`` (of 95 % of cells), ``worst`` (expected, over all cells): the noise
          in the unit of the result; ``rho``, ``spent_delta``: the cost besides eps;
        - ``threshold``: with sparse or selected cells, the least noisy count that is released;
        - ``noise_share``: expected L1 error of the noise over the sum of the map (1: as much noise as map);
        - ``readable``: expected share of cells whose count exceeds ``halfwidth``, if counts are spread over
          the cells like an exponential, with few full cells and many nearly empty ones, as in a city.
          Both NaN without ``population`` or counts, and where not all cells are released.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        No combination makes a plan; it is the first one's reason.

    Examples
    --------
    >>> table = compare_plans([0.5, 1], 1e-7, subject="rider", cap=[1, 4], bounds=(-74.3, 40.4, -73.6, 41.0),
    ...                       grid=["h3:7", "h3:8"], population=100_000)
    >>> table[["eps", "cap", "grid", "std", "noise_share"]].round(2).head(3)
       eps  cap  grid    std  noise_share
    0  0.5    1  h3:7   2.80         0.02
    1  0.5    1  h3:8   2.80         0.11
    2  0.5    4  h3:7  11.31         0.07
    """
    each = exact_positive(cells_each, "cells_each")
    if "auto" in _several(cap):
        raise TypeError(
            'cap="auto" is chosen from the data, for a share of eps; compare caps that are numbers.'
        )
    ways = Ways(
        mechanism=mechanism,
        criterion=criterion,
        estimator=estimator,
        cells=cells,
        threshold=threshold,
        phantoms=phantoms,
    )
    rows, problems = [], []
    said: dict[tuple[str, type[GeoDPWarning]], None] = {}
    for one_eps, one_delta, one_cap, one_grid in _combined(eps, delta, cap, grid):
        row: dict[str, Any] = {"cap": one_cap, "grid": _name(one_grid), "mechanism": "", "problem": ""}
        row |= {"eps": _asked(one_eps, "eps"), "delta": _asked(one_delta, "delta")}
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", GeoDPWarning)
                policy = Policy(
                    subject=subject,
                    cap=one_cap,
                    rows_per_cell=rows_per_cell,
                    contribution=contribution,
                    neighboring=neighboring,
                    population=population,
                    bounds=bounds,
                    outside=outside,
                    grid=one_grid,
                )
                asked = Count() if query is None else query
                plan = make_plan(policy, one_eps, one_delta, asked, by, ways)
            said |= {
                (str(w.message), w.category): None for w in caught if issubclass(w.category, GeoDPWarning)
            }
            row |= _figures(plan, float(each))
        except ValueError as problem:
            problems.append(problem)
            row["problem"] = str(problem)
        rows.append(row)
    if len(problems) == len(rows):
        raise problems[0]
    for message, category in said:
        warn(message, category)
    return pd.DataFrame(rows, columns=list(_DTYPES)).astype(_DTYPES)


def _combined(*asked: Any) -> Iterable[tuple[Any, ...]]:
    several = [_several(value) for value in asked]
    size = math.prod(len(values) for values in several)
    if size > _MOST:
        raise ValueError(f"that would be {size:,} plans; compare at most {_MOST:,} at once.")
    return itertools.product(*several)


def _several(value: Any) -> list[Any]:
    """Return the values to combine: those of a list, range or array, or the one value."""
    single = value is None or isinstance(value, str | bytes) or not isinstance(value, Iterable)
    if single:
        return [value]
    values = value.tolist() if hasattr(value, "tolist") else value
    values = list(itertools.islice(values, _MOST + 1)) if isinstance(values, Iterable) else [values]
    if not values:
        raise ValueError("a list of values to compare is empty.")
    return values


def _asked(value: Any, name: str) -> float:
    return float(exact(getattr(value, "eps", value), name))


def _name(grid: "Grid | str | None") -> str:
    return "default" if grid is None else str(getattr(grid, "name", grid))


def _figures(plan: Plan, cells_each: float) -> dict[str, Any]:
    leading, charge = plan.measurements[0], plan.charge
    step = float(leading.quantity.step)
    worst = plan.choice.figures.worst
    each = min(cells_each, plan.policy.cap) * plan.policy.rows_per_cell
    return {
        "cap": plan.policy.cap,
        "grid": plan.policy.grid.name,
        "cells": plan.n_cells,
        "area_km2": plan.layout.domain.area_km2,
        "mechanism": plan.mechanism,
        "std": plan.noise_std,
        "halfwidth": leading.law.halfwidth("0.95") * step,
        "worst": math.nan if worst is None else worst * step,
        "rho": math.nan if charge.rho is None else plain(charge.rho),
        "spent_delta": plain(charge.delta),
        "threshold": plan.threshold,
        "noise_share": _or_nan(noise_share(plan, each)),
        "readable": _or_nan(_readable(plan, each)),
    }


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _readable(plan: Plan, cells_each: float) -> float | None:
    """Return the expected share of counts above the 95 % half-width, exponentially spread: e^(-h / mean)."""
    leading = plan.measurements[0]
    if plan.policy.population is None or leading.name != "count" or plan.ways.cells != "all":
        return None
    mean = plan.policy.population * cells_each / leading.quantity.size
    return math.exp(-leading.law.halfwidth("0.95") * float(leading.quantity.step) / mean)
