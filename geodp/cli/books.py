"""``geodp ledger create``, ``show`` and ``verify``."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pandas as pd

from geodp import reading
from geodp.cli import options
from geodp.cli.failures import BAD_INPUT, Failure, arguments
from geodp.cli.saying import Unheard, Voice, listening, tell
from geodp.errors import LedgerError
from geodp.ledger import Ledger

__all__ = ["ledger", "opened"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Facts as JSON on stdout.")
_SHOWN = {
    "label": "label",
    "state": "state",
    "time": "time (UTC)",
    "eps": "eps",
    "delta": "delta",
    "rho": "rho",
}


@click.group()
def ledger() -> None:
    """Create, show and verify the budget that releases are paid from."""


@ledger.command()
@click.argument("path")
@click.option("--eps", type=options.number, required=True, help="Ceiling of everything ever released.")
@click.option("--delta", type=options.number, default="0", show_default=True)
@click.option("--accountant", type=click.Choice(("both", "basic", "zcdp")), help="Which books are kept.")
@click.option("--selection", type=options.number, help="Part of delta for partition selection.")
@click.option("--unit", help="What is protected, such as rider.")
@click.option("--neighboring", type=click.Choice(("add_remove_one", "replace_one")))
@click.option("--control", help="The decision the ceiling belongs to; in every record.")
@click.option("--max-eps-per-release", type=options.number)
@click.option("--population", type=int, help="Declared, public number of subjects.")
@click.option("--tier", multiple=True, metavar="NAME=EPS", help="An audience and the eps of its releases.")
def create(path: str, tier: tuple[str, ...], **given: Any) -> None:
    """Create the ledger PATH with its ceiling; one that exists must agree."""
    with arguments():
        book = Ledger(path, tiers=_tiers(tier), **given)
    tell(str(book))


@ledger.command()
@click.argument("path")
@_JSON
def show(path: str, as_json: bool) -> None:
    """Print the releases of the ledger PATH, what was spent and what is left."""
    book = opened(path)
    voice = Voice(json=as_json)
    releases, spent, left = book.releases(), book.spent(), book.remaining()
    facts = {
        "name": book.name,
        "control": book.control,
        "unit": book.unit,
        "neighboring": book.neighboring,
        "accountant": book.ceiling.accountant,
        "ceiling": _ceiling(book),
        "spent": spent,
        "remaining": left,
        "metric_spent": book.metric_spent(),
        "releases": _plain(releases),
    }
    voice.result(_page(book, releases, spent, left), facts)


@ledger.command()
@click.argument("path")
@click.option("--release", metavar="FILE", help="A released GeoParquet, whose numbers are compared.")
@_JSON
def verify(path: str, release: str | None, as_json: bool) -> None:
    """Recompute every cost of the ledger PATH, and say what disagrees; exit code 4 if something does."""
    book, voice = opened(path), Voice(json=as_json)
    with listening(voice):
        found = book.verify(None if release is None else reading.read_polygons(release))
    facts = {"name": book.name, "problems": _plain(found.set_index("entry"))}
    if len(found):
        with suppress(Unheard):  # that there are problems is what the exit code has to tell
            voice.result(found.to_string(index=False), facts | {"status": "problems"})
        raise Failure(f"{book.name}: {len(found)} problem{'s' * (len(found) > 1)} found.", BAD_INPUT)
    voice.result(f"{book.name}: all is well.", facts)


def opened(path: str) -> Ledger:
    """Return the ledger at a path or URL, which must exist."""
    if "://" not in path and not Path(path).exists():
        raise LedgerError(
            f"{path} is no ledger yet. Create it: geodp ledger create {path} --eps ... --delta ..."
        )
    with arguments():
        return Ledger(path)


def _tiers(given: tuple[str, ...]) -> dict[str, str] | None:
    pairs = [text.partition("=") for text in given]
    if any(not found for _, found, _ in pairs):
        raise ValueError("--tier names an audience and an eps: --tier public=0.1.")
    return {name: eps for name, _, eps in pairs} or None


def _ceiling(book: Ledger) -> dict[str, float]:
    held = book.ceiling
    exact = {"eps": held.eps, "delta": held.delta, "rho": held.rho}
    return {name: float(value) for name, value in exact.items() if value is not None}


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.reset_index().astype(object)
    rows = rows.where(rows.notna(), None)
    return [{str(name): _text(value) for name, value in row.items()} for row in rows.to_dict("records")]


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, pd.Timestamp) else value


def _page(book: Ledger, releases: pd.DataFrame, spent: dict[str, float], left: dict[str, float]) -> str:
    columns = dict(_SHOWN) | {
        name: name for name in ("eps_per_km", "tier", "reason") if releases[name].notna().any()
    }
    table = releases[list(columns)].rename(columns=columns)
    table["time (UTC)"] = table["time (UTC)"].dt.strftime("%Y-%m-%d %H:%M:%S")
    lines = [str(book), ""]
    if len(table):
        lines += [table.to_string(na_rep="", float_format="{:.4g}".format), ""]
    amounts = pd.DataFrame({"ceiling": _ceiling(book), "spent": spent, "left": left}).T[list(spent)]
    return "\n".join([*lines, amounts.to_string(na_rep="-", float_format="{:.6g}".format)])
