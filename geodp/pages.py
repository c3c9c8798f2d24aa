"""Plans as people read them: one list of rows, printed as text or as a table.

Everything on the page follows from the plan, so it is public. What is said of the map as a whole needs a
public guess of the number of people behind it, the policy's ``population``.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from geodp.estimators import expected_error
from geodp.exact import plain
from geodp.mechanisms.choice import Figures
from geodp.queries import Centroid, Mean, Measurement
from geodp.wording import area, at_most, cell_words, figure, shown

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = [
    "mostly_noise",
    "noise_share",
    "plan_html",
    "plan_rows",
    "plan_text",
    "reason",
    "rows_html",
    "rows_text",
]

_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
_LEFT = "text-align:left"
_EXAMPLES = (100, 1000)

Row = tuple[str, ...]


def plan_text(plan: "Plan") -> str:
    """Return the plan as a page of text."""
    return rows_text(plan_rows(plan))


def plan_html(plan: "Plan") -> str:
    """Return the plan as one table without scripts or colours of its own, under 4 kB."""
    return rows_html(plan_rows(plan))


def rows_text(page: list[Row]) -> str:
    """Return a page, its title first, as text."""
    title, *rows = page
    return "\n".join([title[1], *(_text_row(*row).rstrip() for row in rows)])


def rows_html(page: list[Row]) -> str:
    """Return a page, its title first, as one table."""
    (_, title), *rows = page
    body = "".join(_html_row(label, cells) for label, *cells in rows)
    return f'<table style="{_LEFT}"><caption style="{_LEFT}"><b>{escape(title)}</b></caption>{body}</table>'


def plan_rows(plan: "Plan") -> list[Row]:
    """Return the page's rows: a label, then one text or one text for each column.

    The first row is the title. A row without a label goes on with the one above.
    """
    return [
        ("", f"Plan: {_title(plan)}; reads no data"),
        ("protects", _protects(plan)),
        *_where(plan),
        ("cells", _cells(plan)),
        ("asked", _budget(plan.eps, plan.delta)),
        ("spends", _spends(plan)),
        *_comparison(plan),
        ("chosen", f"{_NAMES[plan.mechanism]}: {reason(plan)}"),
        *_readable(plan),
        ("ledger", "none: without ledger= this release will not be counted"),
        ("population", _population(plan)),
        *_expected(plan),
    ]


def reason(plan: "Plan") -> str:
    """Say why this mechanism was taken, and when the other one would be.

    Examples
    --------
    >>> from geodp import plan
    >>> reason(plan(1, 1e-6, subject="rider", cap=4, bounds=(0, 0, 1, 1), grid="h3:5"))
    'smaller std. The Gaussian wins from cap 9 up, or when a series pays (18 times cheaper in rho).'
    """
    choice = plan.choice
    if choice.laplace is None or choice.gaussian is None:
        return "no delta was authorised." if plan.delta == 0 else "the only one whose scale fits."
    if plan.budget is not None:
        return "it costs less rho, which a series adds up."
    if plan.policy.contribution == "weighted" and plan.ways.mechanism == "auto":
        return "the weights are made for it."
    if choice.named:
        return "named; " + _difference(choice.laplace, choice.gaussian)
    what = "std" if choice.criterion == "std" else "worst error"
    if plan.mechanism == "gaussian":
        return f"smaller {what}.{_below(plan)}"
    return f"smaller {what}.{_otherwise(plan, choice.laplace, choice.gaussian)}"


def noise_share(plan: "Plan", cells_each: float = 1) -> float | None:
    """Return the expected L1 error of the noise as a share of the map, for the declared population.

    None without a population, or where the map is no count of every cell. ``cells_each`` is a guess of how many cells
    (or cells and slots) a subject counts in.
    """
    counted = next((m for m in plan.measurements if m.name == "count"), None)
    if plan.policy.population is None or counted is None or plan.ways.cells != "all":
        return None
    steps = float(plan.policy.population * Fraction(cells_each) / counted.quantity.step)
    return expected_error(counted.law, counted.quantity.size, steps)


def mostly_noise(plan: "Plan") -> str | None:
    """Say that a map would be more noise than people, and which grid would not; None otherwise.

    Judged by ``population`` alone, everybody counting in one cell.
    """
    share = noise_share(plan)
    if share is None or share <= 1:
        return None
    return f"mostly noise if everybody counts in one cell.{_coarser(plan, share)}"


def _title(plan: "Plan") -> str:
    policy, words = plan.policy, cell_words(plan.policy.grid.name)
    per = "over the box" if words == "box" else f"per {words}"
    slots = "".join(
        f" and {shown(name, 20)} ({len(levels)})"
        for name, levels in list(zip(plan.slots.names, plan.slots.levels, strict=True))[:3]
    )
    more = f" and {len(plan.slots.names) - 3} more columns" if len(plan.slots.names) > 3 else ""
    what = _counted(plan)
    if policy.by_row and what == "rows":
        what = "rows, each its own subject,"
    return f"{what} {per}{slots}{more}"


def _counted(plan: "Plan") -> str:
    """Return what the map shows, in a few words."""
    unit, column = shown(plan.policy.unit, 30), shown(plan.query.reads or "", 30)
    words = {
        "count": "rows" if plan.policy.by_row else f"distinct {unit}s",
        "weighted_count": f"weighted {unit}s",
        "sum": f"sum of {column}",
        "mean": f"mean of {column}",
        "centroid": f"mean place of {unit}s",
    }
    return words.get(plan.query.word) or shown(plan.query.counted(plan.policy).split(",")[0], 60)


def _protects(plan: "Plan") -> str:
    policy = plan.policy
    if policy.by_row:
        return "single rows, not people: every row is taken for another person"
    unit = shown(policy.unit, 30)
    change = "more or less" if policy.neighboring == "add_remove_one" else "exchanged for another"
    if policy.rows_per_cell > 1:
        rows = f"at most {policy.rows_per_cell:,} rows in each"
    else:
        rows = "once in each" + (" (not trips)" if plan.query.word == "count" else "")
    if policy.contribution == "weighted":
        return f"one {unit} {change}; a {unit} in more than {policy.cap:,} cells counts less in each"
    cells = at_most(policy.cap)
    if plan.slots.names:
        cells = f"{policy.cap:,} of the cells and slots"
    return f"one {unit} {change}; a {unit} counts in at most {cells}, {rows}"


def _where(plan: "Plan") -> list[Row]:
    box = plan.policy.bounds
    if box is None:
        return [("where", "in the zones; points outside all of them are left out")]
    if box.is_world:
        return [("where", "the whole world")]
    corners = f"{box.west}, {box.south} to {box.east}, {box.north} (centre {box.centre_words()})"
    if plan.policy.outside == "drop":
        return [("where", f"{corners}; points outside are left out")]
    return [
        ("where", f"{corners}; points outside move to the border"),
        ("", "border cells also hold everybody outside"),
    ]


def _cells(plan: "Plan") -> str:
    each = f"about {area(plan.layout.domain.area_km2)}" + ("" if plan.n_cells == 1 else " each")
    chosen = " (the finest H3 with at most 10,000)" if plan.default_grid else ""
    slots = f", {len(plan.slots):,} slots of each" if plan.slots.names else ""
    most = "" if getattr(plan.layout.domain, "exact", True) else "at most "
    return f"{most}{plan.n_cells:,}{chosen}, {each}{slots}, {plan.query.released(plan)}"


def _budget(eps: Any, delta: Any) -> str:
    return f"eps {plain(eps):g}, delta {plain(delta):g}"


def _spends(plan: "Plan") -> str:
    charge = plan.charge
    saved = " (Laplace needs no delta)" if charge.delta == 0 and plan.delta > 0 else ""
    if len(plan.measurements) == 1:
        return _budget(charge.eps, charge.delta) + saved
    shares = ", ".join(f"{100 * float(m.quantity.share):.0f} % on the {m.name}" for m in plan.measurements)
    return f"{_budget(charge.eps, charge.delta)}{saved}; {shares}"


def _comparison(plan: "Plan") -> list[Row]:
    """Both mechanisms side by side, in the unit of the result; the winner has the arrow."""
    choice, step = plan.choice, float(plan.measurements[0].quantity.step)
    classic = "" if choice.classic_sigma is None else figure(choice.classic_sigma * step)

    def row(label: str, cell: Callable[[Figures], str], mark: bool = False, last: str = "") -> Row:
        pair = [
            (_cell(figures, cell) + ("  <-" if mark and kind == plan.mechanism else ""))
            for kind, figures in (("laplace", choice.laplace), ("gaussian", choice.gaussian))
        ]
        return (label, *pair, last)

    return [
        (_of_what(plan), "discrete Laplace", "Gaussian", "(textbook Gaussian)" if classic else ""),
        row("std", lambda f: figure(f.std * step), True, classic),
        row("95 % of cells", lambda f: f"within {figure(f.halfwidth * step)}"),
        row("worst of all cells", lambda f: "" if f.worst is None else f"about {_about(f.worst * step)}"),
        row("zCDP cost, rho", lambda f: _rho(f.rho)),
    ]


def _of_what(plan: "Plan") -> str:
    """Return the heading of the table: whose noise, in which unit, where it is not people."""
    leading = plan.measurements[0]
    if plan.query.word == "sum":
        return f"in {shown(plan.query.reads or '', 15)}"
    if leading.name == "place":
        return "of the place"
    return f"of the {leading.name}" if len(plan.measurements) > 1 else ""


def _cell(figures: Figures | None, cell: Callable[[Figures], str]) -> str:
    return "not possible" if figures is None else cell(figures)


def _rho(rho: Fraction) -> str:
    value = float(rho)
    return f"{value:.3f}" if 0.01 <= value < 1000 else f"{value:.2g}"


def _about(value: float) -> str:
    """Return an expectation in three figures at most: it is no promise."""
    if value < 10:
        return f"{value:.2g}"
    digits = max(0, len(f"{value:.0f}") - 3)
    return f"{round(value, -digits):,.0f}" if value < 1e15 else f"{value:.3g}"


def _difference(laplace: Figures, gaussian: Figures) -> str:
    """Say what naming a mechanism costs or saves."""
    ratio = gaussian.std / laplace.std
    if ratio >= 1:
        return f"the Gaussian's std is {ratio:.2g} times Laplace's."
    return f"Laplace's std is {1 / ratio:.2g} times the Gaussian's."


def _below(plan: "Plan") -> str:
    cap = _crossover(plan)
    return "" if cap is None or cap <= 1 else f" Below cap {cap:,} Laplace wins, and needs no delta."


def _otherwise(plan: "Plan", laplace: Figures, gaussian: Figures) -> str:
    """Say when the Gaussian would win after all."""
    cap, ratio = _crossover(plan), float(laplace.rho / gaussian.rho)
    when = [] if cap is None else [f"from cap {cap:,} up"]
    if ratio >= 1.05:
        when.append(f"when a series pays ({ratio:.2g} times cheaper in rho)")
    return f" The Gaussian wins {', or '.join(when)}." if when else ""


def _crossover(plan: "Plan") -> int | None:
    """Return the cap from which the Gaussian has the smaller std, where a cap alone decides it."""
    cap, policy = plan.choice.crossover_cap, plan.policy
    if cap is None or policy.by_row or plan.choice.criterion != "std" or len(plan.measurements) > 1:
        return None
    if policy.neighboring == "replace_one":
        cap = (cap + 1) // 2
    bound = getattr(plan.query, "clip", None) is not None
    return None if bound or cap > plan.layout.n_keys else cap


def _readable(plan: "Plan") -> list[Row]:
    """Say what a reader can tell from zero, in one cell and over the whole map."""
    if isinstance(plan.query, Mean | Centroid):
        return _readable_ratio(plan)
    leading = plan.measurements[0]
    size, step = leading.quantity.size, float(leading.quantity.step)
    if plan.threshold is not None:
        reach = leading.law.halfwidth("0.95", size)
        return [("readable", f"all counts at once lie within {reach:,} of the truth (95 %)")]
    h = leading.law.halfwidth("0.95")
    unit = f" {shown(plan.query.reads, 15)}" if plan.query.reads else ""
    passing = float(leading.law.sf(h)) * size
    by_chance = (
        f"; about {at_most(round(passing), 'empty cell')} will pass that by chance" if passing >= 0.5 else ""
    )
    safe = leading.law.quantile_sf("0.05", size)
    rows = [f"a cell needs more than {figure(h * step)}{unit} to differ from zero{by_chance}"]
    if size > 1:
        rows.append(f"{figure(safe * step)}{unit} or more: safe over the whole map (95 %)")
    return _continued("readable", rows)


def _readable_ratio(plan: "Plan") -> list[Row]:
    """Say how far a mean or a centroid of 100 and of 1,000 records is off by the noise alone."""
    by_name = {m.name: m for m in plan.measurements}
    public = getattr(plan.query, "n", None)
    rows = []
    for n in _EXAMPLES if public is None else (public,):
        off = _off(plan, by_name, n)
        whose = (
            f"of {n:,} records"
            if isinstance(plan.query, Mean)
            else f"of {n:,} {shown(plan.policy.unit, 30)}s"
        )
        what = "a mean" if isinstance(plan.query, Mean) else "a centroid"
        rows.append(f"{what} {whose} is within about {off} of theirs (95 %)")
    return _continued("readable", rows)


def _off(plan: "Plan", by_name: dict[str, Measurement], n: int) -> str:
    """Return the 95 % error of S/N at n records: each part at its own half-width, added in squares."""
    if isinstance(plan.query, Mean):
        h = float(plan.query.half_range)
        value, rest = by_name["sum"], h / math.sqrt(3)
        top = value.law.halfwidth("0.95") * float(value.quantity.step)
        off = math.hypot(top, rest * by_name["count"].law.halfwidth("0.95")) / n
        return figure(min(off, 2 * h)) + f" {shown(plan.query.column, 15)}"
    radius = _radius_m(plan)
    place = by_name["place"]
    top = math.sqrt(2) * place.law.halfwidth("0.975") * float(place.quantity.step)
    bottom = by_name["count"].law.halfwidth("0.95") / math.sqrt(3) if "count" in by_name else 0
    metres = min(math.hypot(top, bottom) / n, 2) * radius
    return f"{metres / 1000:,.3g} km" if metres >= 1000 else f"{metres:,.3g} m"


def _radius_m(plan: "Plan") -> float:
    """Return half the diagonal of a square as large as a cell."""
    return math.sqrt(plan.layout.domain.area_km2 * 1e6 / 2)


def _population(plan: "Plan") -> str:
    population = plan.policy.population
    if population is None:
        return "not declared: delta is not checked against 1/N"
    spent, asked = (float(delta * population) for delta in (plan.charge.delta, plan.delta))
    declared = f"{population:,} {shown(plan.policy.unit, 30)}s declared"
    if asked == 0:
        return f"{declared}; no delta"
    if spent == 0:
        return f"{declared}; delta 0 is spent (the asked one would be {asked:.2g} of them, expected)"
    return f"{declared}; delta is {spent:.2g} of them, expected"


def _expected(plan: "Plan") -> list[Row]:
    """Say what share of the map the noise would be, if the population is as declared."""
    most = min(plan.policy.cap, plan.layout.n_keys) * plan.policy.rows_per_cell
    one, all_cells = noise_share(plan), noise_share(plan, most)
    if one is None or all_cells is None:
        return []
    full = f" ({_percent(all_cells)} if in {most:,})" if most > 1 else ""
    text = f"the noise adds up to {_percent(one)} of the map if each counts in one cell{full}"
    worse = mostly_noise(plan)
    return _continued("expected", [text] if worse is None else [text, worse])


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _coarser(plan: "Plan", share: float) -> str:
    """Name the finest grid of the same kind whose noise would be no more than the map."""
    policy = plan.policy
    limit = math.floor(plan.n_cells / share)
    fits = None if policy.bounds is None or limit < 1 else policy.grid.fitting(policy.bounds, limit)
    if fits is None or fits == policy.grid:
        return " A larger eps or a smaller cap helps."
    return f' grid="{shown(fits.name, 60)}" would not be ({_so_many(fits.estimate(policy.bounds))}).'


def _so_many(n_cells: int) -> str:
    return "one cell" if n_cells == 1 else f"about {n_cells:,} cells"


def _continued(label: str, texts: Iterable[str]) -> list[Row]:
    return [(label if i == 0 else "", text) for i, text in enumerate(texts)]


def _text_row(label: str, *cells: str) -> str:
    if len(cells) == 1:
        return f"  {label:<11}{cells[0]}"
    first, second, *rest = cells
    return f"  {label:<20}{first:<20}{second:<12}{'  '.join(rest)}"


def _html_row(label: str, cells: list[str]) -> str:
    span = ' colspan="3"' if len(cells) == 1 else ""
    data = "".join(f'<td{span} style="{_LEFT}">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th style="{_LEFT}">{escape(label)}</th>{data}</tr>'
