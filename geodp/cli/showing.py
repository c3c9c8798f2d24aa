"""``geodp show``: the record of a release in English, from a file or from a ledger."""

import json
from pathlib import Path
from typing import Any

import click

from geodp import reading
from geodp.cli.books import opened
from geodp.cli.saying import Voice
from geodp.errors import NotARelease
from geodp.explaining import explain
from geodp.records import record
from geodp.seals import seal

__all__ = ["show"]

_HEAD = 1 << 16


@click.command()
@click.argument("source")
@click.argument("label", required=False)
@click.option("--json", "as_json", is_flag=True, help="The record itself, as JSON on stdout.")
def show(source: str, label: str | None, as_json: bool) -> None:
    """Say in English what the release SOURCE is; or the release LABEL of the ledger SOURCE."""
    facts = _of_file(source) if label is None else opened(source).record(label)
    Voice(json=as_json).result(explain(facts), {"record": facts})


def _of_file(path: str) -> dict[str, Any]:
    if not Path(path).exists():
        raise reading.BadInput(f"{path}: there is no such file.")
    if reading.is_parquet(path):
        return record(reading.read_polygons(path))
    suffix = Path(path).suffix.lower()
    if suffix in (".geojson", ".json"):
        facts = reading.guarded(path, lambda: _of_geojson(path))
    elif suffix == ".html":
        facts = reading.guarded(path, lambda: _of_html(path))
    elif suffix == ".png":
        facts = reading.guarded(path, lambda: _of_png(path))
    elif suffix in (".gpkg", ".fgb"):
        facts = reading.guarded(path, lambda: _of_layer(path))
    else:
        facts = None
    if not isinstance(facts, dict):
        raise NotARelease(
            f"{path} carries no geodp record. GeoJSON, GeoPackage, FlatGeobuf, GeoParquet, HTML and PNG that geodp "
            "wrote have it; geodp show LEDGER LABEL finds it in a ledger."
        )
    if facts.get("seal") != seal(facts):
        raise NotARelease(f"{path}: its record was changed.")
    return facts


def _of_geojson(path: str) -> Any:
    """Return the record, which stands before the features, without reading all of them."""
    with Path(path).open(encoding="utf-8") as file:
        head = file.read(_HEAD)
    _, found, rest = head.partition('"geodp": ')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None


def _of_html(path: str) -> Any:
    """Return the record, which stands in an element of its own; anything else in a page is escaped."""
    _, found, rest = Path(path).read_text(encoding="utf-8").partition('id="geodp-record">')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None


def _of_png(path: str) -> Any:
    from PIL import Image

    with Image.open(path) as picture:
        return json.loads(picture.info.get("Description", "null"))


def _of_layer(path: str) -> Any:
    import pyogrio

    info = pyogrio.read_info(path)
    texts = {**(info.get("dataset_metadata") or {}), **(info.get("layer_metadata") or {})}
    return json.loads(texts.get("geodp", "null"))
