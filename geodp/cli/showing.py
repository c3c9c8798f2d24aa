"""``geodp show``: the record of a release in English, from a file or from a ledger."""

from pathlib import Path
from typing import Any

import click

from geodp import reading
from geodp.cli.books import opened
from geodp.cli.failures import arguments
from geodp.cli.saying import Voice
from geodp.explaining import explain
from geodp.records import record
from geodp.reopening import recorded

__all__ = ["show"]


@click.command()
@click.argument("source")
@click.argument("label", required=False)
@click.option("--json", "as_json", is_flag=True, help="The record itself, as JSON on stdout.")
def show(source: str, label: str | None, as_json: bool) -> None:
    """Say in English what the release SOURCE is; or the release LABEL of the ledger SOURCE."""
    facts = _of_file(source) if label is None else _of_label(source, label)
    Voice(json=as_json).result(explain(facts), {"record": facts})


def _of_label(path: str, label: str) -> dict[str, Any]:
    with arguments():
        return opened(path).record(label)


def _of_file(path: str) -> dict[str, Any]:
    if not Path(path).exists():
        raise reading.BadInput(f"{path}: there is no such file.")
    if reading.is_parquet(path):
        return record(reading.read_polygons(path))
    try:
        return recorded(path)
    except ImportError as missing:
        raise reading.BadInput(f"{path}: reading it needs {missing.name or 'another package'}.") from None
