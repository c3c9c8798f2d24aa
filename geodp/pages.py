"""Plans and records as people read them: one list of rows, printed as text or as a table."""

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from geodp.exact import plain
from geodp.mechanisms.choice import Figures, MechanismChoice

if TYPE_CHECKING:
    from geodp.plans import Plan

__all__ = ["plan_html", "plan_rows", "plan_text", "rows_html", "rows_text"]

_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}


def plan_text(plan: "Plan") -> str:
    """Return the plan as a page of text."""
    return rows_text(plan_rows(plan))


def plan_html(plan: "Plan") -> str:
    """Return the plan as one table without scripts or colours of its own, under 4 kB."""
    return rows_html(plan_rows(plan))


def rows_text(page: list[tuple[str, ...]]) -> str:
    """Return a page, its title first, as text."""
    title, *rows = page
    lines = [title[1]]
    for label, *cells in rows:
        lines.append(f"    {label:<15}" + _columns(cells))
    return "\n".join(line.rstrip() for line in lines)


def rows_html(page: list[tuple[str, ...]]) -> str:
    """Return a page, its title first, as one table."""
    (_, title), *rows = page
    body = "".join(_html_row(label, cells) for label, *cells in rows)
    return (
        f'<table style="text-align:left"><caption style="text-align:left"><b>{escape(title)}</b></caption>'
        f"{body}</table>"
    )


def plan_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """Return the page's rows: a label, then one text or one text for each column."""
    rows: list[tuple[str, ...]] = [("", f"Plan: {_title(plan)}; reads no data")]
    rows += [("protects", _protects(plan)), ("where", _where(plan)), ("cells", _cells(plan))]
    rows += [("asked", _budget(plan.eps, plan.delta)), ("spends", _spends(plan))]
    rows += _comparison(plan)
    rows += [("chosen", _chosen(plan.choice))]
    rows += _readable(plan)
    rows += [("ledger", "none in the plan: without ledger= a release is not counted")]
    rows += [("population", _population(plan))]
    return rows


def _title(plan: "Plan") -> str:
    what = plan.query.counted(plan.policy).split(",")[0]
    slots = f" and {' x '.join(plan.slots.names)} ({len(plan.slots)} slots)" if plan.slots.names else ""
    default = ", chosen as the finest H3 with at most 10,000 cells" if plan.default_grid else ""
    return f"{what} per cell of {plan.policy.grid.name}{default}{slots}"


def _protects(plan: "Plan") -> str:
    policy = plan.policy
    if policy.by_row:
        return "single rows, not people: every row is taken for another person"
    change = "more or less" if policy.neighboring == "add_remove_one" else "exchanged for another"
    cells = "1 cell" if policy.cap == 1 else f"{policy.cap} cells"
    rows = "once in each (not trips)" if policy.rows_per_cell == 1 else f"{policy.rows_per_cell} rows in each"
    return f"one {policy.unit} {change}; a {policy.unit} counts in at most {cells}, {rows}"


def _where(plan: "Plan") -> str:
    box = plan.policy.bounds
    if box is None:
        return "in the zones; points outside all of them are left out"
    if box.is_world:
        return "the whole world"
    outside = (
        "points outside move to the border, whose cells also hold everybody outside"
        if plan.policy.outside == "clamp"
        else "points outside are left out"
    )
    corners = f"{box.west:g}, {box.south:g} to {box.east:g}, {box.north:g}"
    return f"{corners} (centre {box.centre_words()}); {outside}"


def _cells(plan: "Plan") -> str:
    area = plan.layout.domain.area_km2
    return f"{plan.n_cells:,}, about {area:,.2g} km² each, all released, empty or not"


def _budget(eps: Any, delta: Any) -> str:
    return f"eps {plain(eps):g}, delta {plain(delta):g}"


def _spends(plan: "Plan") -> str:
    charge = plan.charge
    saved = " (Laplace needs no delta)" if charge.delta == 0 and plan.delta > 0 else ""
    parts = ""
    if len(plan.measurements) > 1:
        shares = ", ".join(f"{m.name} {float(m.quantity.share):.0%}" for m in plan.measurements)
        parts = f"; split over {shares}"
    return _budget(charge.eps, charge.delta) + saved + parts


def _comparison(plan: "Plan") -> list[tuple[str, ...]]:
    """Both mechanisms side by side, in the unit of the result; the winner has the arrow."""
    choice, step = plan.choice, float(plan.measurements[0].quantity.step)
    classic = "" if choice.classic_sigma is None else _number(choice.classic_sigma * step)

    def row(label: str, cell: Callable[[Figures], str], reference: str = "") -> tuple[str, ...]:
        return (label, *(_cell(figures, cell) for figures in (choice.laplace, choice.gaussian)), reference)

    heads = ["discrete Laplace", "Gaussian"]
    heads[0 if choice.mechanism == "laplace" else 1] += " <-"
    return [
        ("", *heads, "(textbook Gaussian)" if classic else ""),
        row("std", lambda f: _number(f.std * step), classic),
        row("95 % of cells", lambda f: f"within {_number(f.halfwidth * step)}"),
        row("worst of all", lambda f: "" if f.worst is None else f"about {f.worst * step:,.0f}"),
        row("zCDP, rho", lambda f: f"{float(f.rho):.3g}"),
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.2f}"


def _cell(figures: Figures | None, cell: Callable[[Figures], str]) -> str:
    return "not possible" if figures is None else cell(figures)


def _chosen(choice: MechanismChoice) -> str:
    return f"{_NAMES[choice.mechanism]}: {choice.because}"


def _readable(plan: "Plan") -> list[tuple[str, ...]]:
    """Say what a reader can tell from zero, in one cell and over the whole map."""
    leading = plan.measurements[0]
    if leading.quantity.step != 1:
        return []
    h = leading.law.halfwidth(0.95)
    size = leading.quantity.size
    chance = float(leading.law.sf(h)) * size
    safe = leading.law.quantile_sf(0.05, size)
    return [
        (
            "readable",
            f"a cell needs more than {h:,} to differ from zero; about {chance:,.0f} empty cells pass that by chance",
        ),
        ("", f"{safe:,} or more: safe over the whole map (95 %)"),
    ]


def _population(plan: "Plan") -> str:
    population = plan.policy.population
    if population is None:
        return "not declared: delta is not checked against 1/N"
    return f"{population:,} people declared; delta times population is {float(plan.charge.delta * population):.2g}"


def _columns(cells: list[str]) -> str:
    if len(cells) == 1:
        return cells[0]
    return "".join(f"{cell:<20}" for cell in cells)


def _html_row(label: str, cells: list[str]) -> str:
    span = ' colspan="3"' if len(cells) == 1 else ""
    data = "".join(f'<td{span} style="text-align:left">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th style="text-align:left">{escape(label)}</th>{data}</tr>'
