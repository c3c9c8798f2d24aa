"""What a map says in words: what is counted, the guarantee, the noise, and what a colour stands for.

Everything is said from the record and the released numbers. Names in it were typed by whoever released the
map; a page that shows them has to escape them.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.exact import exact
from geodp.maps.held import Held
from geodp.maps.rules import Measured, measured
from geodp.maps.scales import Scale
from geodp.testing import NOT_PRIVATE, OS_ENTROPY
from geodp.wording import at_most, cell_words, figure, people, shown

__all__ = [
    "EDGE",
    "ROWS_ONLY",
    "class_labels",
    "distance",
    "heading",
    "legend_lines",
    "row_names",
    "smoothed_away",
    "stamp",
    "title",
    "tooltips",
    "untold",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

EDGE = "border: also holds everybody outside"
ROWS_ONLY = "protects single rows, not people"
_ON_THE_GROUND = 1.0103  # longer than on the sphere that points are moved on, at most
_FAR_ABOVE = 5  # times the end of an open class
_CANNOT = {
    "mean": "cannot be told: too few records, or too uncertain",
    "centroid": "cannot be told from nobody",
}
_COLUMNS = {
    "estimate": "map estimate before rounding; ",
    "noisy_count": "as measured; ",
    "noisy_weighted_count": "as measured; ",
    "noisy_sum": "as measured; ",
    "lower": "lower end of the interval; ",
    "upper": "upper end of the interval; ",
    "error_m": "metres within which 95 % of the noise lies; ",
}


def title(facts: Mapping[str, Any]) -> str:
    """Return a short title: what is shown, for each what.

    Examples
    --------
    >>> import geodp
    >>> plan = geodp.plan(1, subject="rider", cap=4, bounds=(0, 0, 1, 1), grid="h3:5")
    >>> title(plan.to_dict())
    'distinct riders per H3 cell (resolution 5)'
    """
    query, whose = facts["query"], people(facts["unit"])
    if query == "perturb":
        return f"moved points of {whose}"
    what = {
        "count": whose if facts["unit"] == "row" else f"distinct {whose}",
        "weighted_count": f"weighted {whose}",
        "sum": f"sum of {shown(facts.get('column', ''))}",
        "mean": f"mean {shown(facts.get('column', ''))}",
        "centroid": f"mean place of {whose}",
    }[query]
    return f"{what} per {cell_words(facts['grid'])}"


def heading(facts: Mapping[str, Any], column: str | None = None) -> str:
    """Say in words what the numbers of a column are.

    Examples
    --------
    >>> import geodp
    >>> plan = geodp.plan(1, subject="rider", cap=4, bounds=(0, 0, 1, 1), grid="h3:5")
    >>> heading(plan.to_dict(), "noisy_count")
    'as measured; distinct riders, each in at most 4 cells, once in each; not trips'
    """
    query = facts["query"]
    if query == "perturb":
        return "single positions, each moved by random noise"
    counted = str(facts["counted"])
    if query == "sum":
        counted = f"sum of {counted}"
    if query in ("mean", "centroid") and column in ("count", "noisy_count"):
        behind = (
            "records behind the mean" if query == "mean" else f"{people(facts['unit'])} behind the mean place"
        )
        counted = f"{behind}; {counted}"
    return _COLUMNS.get(column or "", "") + counted


def legend_lines(
    rows: Held, shown_rows: Bools, least: float | None, *, rule: str, level: object
) -> list[str]:
    """Return what a legend states beside the colours: guarantee, half-width, what is told, and what is not.

    Parameters
    ----------
    rows : Held
        What the map shows.
    shown_rows : bool array
        Which rows are told from zero.
    least : float or None
        The least measurement that was, as :func:`geodp.maps.rules.least_told` returns it.
    rule, level
        As in :func:`geodp.readable`.
    """
    facts = rows.facts
    if facts["query"] == "perturb":
        lines = [f"geo-indistinguishability, eps {facts['eps_per_km']:g} per km and report", _moved(facts)]
    else:
        lines = [_budget(facts), *_half_width(rows, shown_rows), *_told(facts, least, rule, level)]
        if smoothed_away(rows, shown_rows).any():
            lines.append("cells smoothed below their interval have the colour of its nearer end")
    if facts["unit"] == "row":
        lines.append(ROWS_ONLY)
    if any(part["name"] == "total" for part in facts.get("measurements", ())):
        lines.append("scaled to a total that was measured too; the measurement is not")
    if not rows.whole:
        lines.append(f"{len(rows.frame):,} rows of the release are shown, not all of them")
    return lines


def class_labels(scale: Scale, values: Floats, unit: str = "", *, least: float = 0.0) -> list[str]:
    """Return what each colour stands for, lowest class first.

    Parameters
    ----------
    scale : Scale
        Where colours change.
    values : float64 array
        The released numbers that are shown in these colours. Where there are no cuts, the label is their range;
        where the open class at an end holds one of more than 5 times its own end, its label says how far they go.
    unit : str, optional
        Follows the numbers, such as ``" %"``.
    least : float, default 0
        Of a diverging scale: the least size that is coloured, where the classes beside zero start.

    Examples
    --------
    >>> class_labels(Scale((50.0, 100.0), whole=True), np.array([]))
    ['under 50', '50 to 99', '100 or more']
    >>> class_labels(Scale(), np.array([7.0, 9.0]))
    ['7 to 9']
    >>> class_labels(Scale((-50.0, 0.0, 50.0), True, True), np.array([]), least=17)
    ['under -50', '-50 to -17', '17 to 49', '50 or more']
    """
    cuts = scale.cuts
    if not cuts:
        return _only_class(values, unit)
    last = 1.0 if scale.whole else 0.0
    ends = [(low or least, high - last if high or not least else -least) for low, high in pairwise(cuts)]
    inner = [
        f"{figure(low)} to {figure(high)}{unit}" if high > low else f"{figure(low)}{unit}"
        for low, high in ends
    ]
    first = f"under {figure(cuts[0])}{unit}" if cuts[0] or not least else f"{figure(-least)}{unit} or less"
    last_one = f"{figure(cuts[-1] or least)}{unit} or more"
    return [first + _far(values, -cuts[0], -1, unit), *inner, last_one + _far(values, cuts[-1], 1, unit)]


def untold(facts: Mapping[str, Any], limit: float | None = None) -> str:
    """Say what a grey cell is; of means also the half-width from which they are too uncertain for the classes."""
    if limit:
        return f"{_CANNOT['mean']} for these classes (half-width above {figure(limit)})"
    return _CANNOT.get(facts["query"], "cannot be told from zero")


def stamp(facts: Mapping[str, Any]) -> str | None:
    """Return what is stamped on a map that protects nobody; None on a private one."""
    return None if facts["noise"] == OS_ENTROPY else f"{NOT_PRIVATE}: noise {facts['noise']}"


def tooltips(rows: Held, shown_rows: Bools | None = None) -> list[str]:
    """Return one line for each row: the map's number, the measurement, and its interval.

    Parameters
    ----------
    rows : Held
        What the map shows.
    shown_rows : bool array, optional
        Which rows are told from zero; of the others the line says so.

    Returns
    -------
    list of str
        Such as ``"map estimate 5; measured 12 (0 to 24)"``.
    """
    lines = _numbers(rows)
    if shown_rows is not None:
        reasons = [f"; {reason}" if reason else "" for reason in _reasons(rows, shown_rows)]
        marks = _smoothed(rows, shown_rows)
        lines = [line + mark + reason for line, mark, reason in zip(lines, marks, reasons, strict=True)]
    if "edge" in rows.frame.columns:
        edge = rows.frame["edge"].tolist()
        lines = [f"{line}; {EDGE}" if on else line for line, on in zip(lines, edge, strict=True)]
    return lines


def row_names(index: pd.Index) -> list[str]:
    """Return the name of each row: its cell's id, and its slot.

    Examples
    --------
    >>> row_names(pd.MultiIndex.from_tuples([("a", 7)], names=["zone", "hour"]))
    ['zone a, hour=7']
    """
    first, *others = ("" if name is None else shown(str(name)) for name in index.names)
    names = [f"{first} {shown(str(value))}" for value in index.get_level_values(0).tolist()]
    for level, name in enumerate(others, start=1):
        slots = [f"{name}={shown(str(value))}" for value in index.get_level_values(level).tolist()]
        names = [f"{cell}, {slot}" for cell, slot in zip(names, slots, strict=True)]
    return names


def distance(metres: float) -> str:
    """Return a distance as people read it.

    Examples
    --------
    >>> distance(350.2), distance(12345)
    ('350 m', '12.3 km')
    """
    return f"{metres / 1000:,.3g} km" if metres >= 1000 else f"{metres:,.3g} m"


def smoothed_away(rows: Held, shown_rows: Bools) -> Bools:
    """Return which rows are told from zero, and smoothed towards zero out of their own interval."""
    facts, frame = rows.facts, rows.frame
    none = np.zeros(len(frame), dtype=bool)
    scaled = any(part["name"] == "total" for part in facts.get("measurements", ()))
    if facts["query"] not in ("count", "weighted_count", "sum") or scaled:
        return none
    value, low, high = (frame[name].to_numpy(np.float64) for name in (facts["query"], "lower", "upper"))
    out: Bools = shown_rows & (((low > 0) & (value < low)) | ((high < 0) & (value > high)))
    return out


def _smoothed(rows: Held, shown_rows: Bools) -> list[str]:
    away = smoothed_away(rows, shown_rows).tolist()
    if not any(away):
        return [""] * len(away)
    measured_as = rows.frame[f"noisy_{rows.facts['query']}"].tolist()
    return [
        f"; smoothed below its interval; the measurement is {figure(value)}" if on else ""
        for on, value in zip(away, measured_as, strict=True)
    ]


def _reasons(rows: Held, shown_rows: Bools) -> list[str]:
    """Say of rows that are not told that they are not; and why, where their own interval leaves zero out."""
    what, frame = untold(rows.facts), rows.frame
    if rows.facts["query"] in _CANNOT or "lower" not in frame.columns:
        return ["" if told else what for told in shown_rows.tolist()]
    alone = ((frame["lower"] > 0) | (frame["upper"] < 0)).tolist()
    return [
        "" if told else f"{what} over all cells at once" if apart else what
        for told, apart in zip(shown_rows.tolist(), alone, strict=True)
    ]


def _budget(facts: Mapping[str, Any]) -> str:
    joint = facts.get("joint")
    together = f" ({joint['of']} views together)" if joint else ""
    whom = facts["guarantee"].partition("-DP ")[2]
    return f"eps {facts['eps']:g}, delta {facts['delta']:g}{together}, {whom}"


def _half_width(rows: Held, shown_rows: Bools) -> list[str]:
    """Say how far the noise reaches: the same everywhere for counts and sums, cell by cell for ratios."""
    facts, frame = rows.facts, rows.frame
    if facts["query"] == "centroid":
        return _range("mean places within", frame["error_m"].to_numpy(np.float64)[shown_rows], distance)
    if facts["query"] == "mean":
        half = (frame["upper"] - frame["lower"]).to_numpy(np.float64)[shown_rows] / 2
        return _range("half-width ±", half, figure)
    found = measured(facts)
    assert found is not None
    unit = f" {shown(facts['column'])}" if facts["query"] == "sum" else ""
    if facts["cells"] == "all":
        return [f"half-width ± {figure(found.halfwidth())}{unit}: the noise of 95 % of cells"]
    reach = found.law.halfwidth("0.95", found.size) * float(found.step)
    return [f"half-width ± {figure(reach)}{unit}: the noise of all cells at once (95 %)"]


def _range(what: str, values: Floats, said: Any) -> list[str]:
    if not len(values):
        return []
    low, high = said(float(values.min())), said(float(values.max()))
    return [f"{what} {low if low == high else f'{low} to {high}'} (95 %), where coloured"]


def _told(facts: Mapping[str, Any], least: float | None, rule: str, level: object) -> list[str]:
    if facts["cells"] == "select":
        return [f"only cells that hold somebody and measure {facts['threshold']:,} or more"]
    found = measured(facts)
    lines = (
        [f"only cells measured at {facts['threshold']:,} or more are known"]
        if facts["cells"] == "sparse"
        else []
    )
    if found is None:
        return lines
    target = 100 * exact(level, "level")
    if rule == "fdr":
        share = figure(float(100 - target))
        return [*lines, f"coloured: told from zero; at most {share} % of the coloured are empty, on average"]
    where = f"{at_most(facts['n_cells'])}{' and all slots' if facts['by'] else ''} at once"
    bar = _bar(facts, found, least)
    return [*lines, f"coloured: {bar}, told from zero in {where} ({figure(float(target))} %)"]


def _bar(facts: Mapping[str, Any], found: Measured, least: float | None) -> str:
    number = figure(least or 0.0)
    what = {"mean": " records", "sum": f" {shown(facts.get('column', ''))}"}.get(facts["query"], "")
    if found.sign == 0:
        return f"{number}{what} or more either way measured"
    return f"{'-' if found.sign < 0 else ''}{number}{what} or {'less' if found.sign < 0 else 'more'} measured"


def _far(values: Floats, end: float, sign: int, unit: str) -> str:
    """Say how far an open class goes that holds a spike."""
    far = float(np.max(sign * values, initial=-np.inf))
    if not 0 < _FAR_ABOVE * end < far < np.inf:
        return ""
    return f" ({'up' if sign > 0 else 'down'} to {figure(sign * far)}{unit})"


def _only_class(values: Floats, unit: str) -> list[str]:
    if not len(values):
        return ["told from zero"]
    low, high = figure(float(values.min())), figure(float(values.max()))
    return [f"{low}{unit}" if low == high else f"{low} to {high}{unit}"]


def _reach(facts: Mapping[str, Any]) -> str:
    """Return the distance within which 95 % of points were moved, on the ground and with the snapping."""
    from geodp.locations import radius_quantile_m

    return distance(_ON_THE_GROUND * radius_quantile_m(facts["eps_per_km"], 0.95) + facts["snap_m"])


def _moved(facts: Mapping[str, Any]) -> str:
    then = ", before they were moved into the polygons" if facts.get("remap") else ""
    return f"95 % of the true points lie within {_reach(facts)} of those shown{then}"


def _numbers(rows: Held) -> list[str]:
    facts, frame = rows.facts, rows.frame
    query = facts["query"]
    if query == "perturb":
        before = ", before it was moved into the polygons" if facts.get("remap") else ""
        return [f"moved point, the true one within {_reach(facts)} (95 %){before}"] * len(frame)

    def texts(name: str) -> list[str]:
        return [figure(value) for value in frame[name].tolist()]

    if query == "mean":
        numbers: Iterator[list[str]] = map(texts, ("mean", "lower", "upper", "count", "noisy_count"))
        form = "mean {} ({} to {}); records: map estimate {}, measured {}"
    elif query == "centroid":
        numbers = map(texts, ("count", "noisy_count")) if "count" in frame.columns else iter(())
        numbers = chain([[distance(value) for value in frame["error_m"].tolist()]], numbers)
        form = "mean place, within {}" + (
            "; map estimate {}; measured {}" if "count" in frame.columns else ""
        )
    else:
        numbers = map(texts, (query, f"noisy_{query}", "lower", "upper"))
        form = "map estimate {}; measured {} ({} to {})"
    return [form.format(*parts) for parts in zip(*numbers, strict=True)]
