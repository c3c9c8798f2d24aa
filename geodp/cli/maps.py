"""``geodp plan``, ``geodp heatmap`` and ``geodp audit``."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import geopandas as gpd
import pandas as pd

from geodp import auditing, reading
from geodp.calls import plan as make_plan
from geodp.cli import options
from geodp.cli.books import opened
from geodp.cli.config import config
from geodp.cli.failures import BAD_ARGUMENTS, FAILED, Failure, arguments, input_
from geodp.cli.saying import Voice, listening
from geodp.grids.zones import Zones
from geodp.ledger import Ledger, default_ledger
from geodp.plans import Plan, Ways
from geodp.queries import Centroid, Count, Mean, Query, Sum
from geodp.records import record
from geodp.writing import check_output, write

__all__ = ["audit", "heatmap", "plan"]

_WHO = ("subject", "cap", "rows_per_cell", "contribution", "neighboring", "population")
_WAYS = tuple(part.name for part in fields(Ways) if part.name != "return_geometry")
_FILES = ("lon", "lat", "crs", "layer")
_JSON = click.option("--json", "as_json", is_flag=True, help="Facts as JSON on stdout.")
_QUIET = click.option("--quiet", "-q", is_flag=True, help="No progress; warnings and errors remain.")


@click.command()
@options.budget
@options.who
@options.where
@options.what
@options.how
@config
@_JSON
def plan(as_json: bool, **given: Any) -> None:
    """Print what a release would look like and cost. Free, and reads no data."""
    voice = Voice(json=as_json)
    with listening(voice):
        chosen = _plan(given)
    voice.result(str(chosen), {"plan": chosen.to_dict()})


@click.command()
@click.argument("input")
@click.option("--output", "-o", multiple=True, metavar="FILE", help="By extension; repeatable. Required.")
@options.budget
@options.who
@options.where
@options.what
@options.how
@options.files
@click.option("--ledger", metavar="PATH", help="Pays before noise is drawn; file or postgresql://...")
@click.option("--label", help='Names the release in the ledger; date it: --label "$(date +%F)".')
@click.option("--retry", is_flag=True, help="Pay again for a label whose release was never stored.")
@click.option("--reason", help="A reviewer's reason, kept by the ledger.")
@config
@_JSON
@_QUIET
def heatmap(input: str, output: tuple[str, ...], as_json: bool, quiet: bool, **given: Any) -> None:
    """Release a map of the points in INPUT: people per cell, or a sum, mean or centroid.

    INPUT is what pyogrio reads, GeoParquet, or CSV with --lon and --lat. The output is GeoJSON, GeoPackage,
    FlatGeobuf, GeoParquet, CSV, HTML or PNG, by extension, and appears when it is complete. With a ledger the same
    label again returns the stored release, at no cost and without reading INPUT.
    """
    voice = Voice(quiet, as_json)
    with listening(voice):
        targets = _targets(output)
        _check_kept(targets, {"INPUT": input, **{f"--{n}": given[n] for n in ("ledger", "zones")}})
        chosen = _publishable(given)
        ledger = _ledger(given["ledger"])
        frame = _released(voice, chosen, input, ledger, given)
        facts = record(frame)
        for target in targets:
            voice.progress(f"writing {target.name}")
            _write(frame, target, facts)
    names = ", ".join(target.name for target in targets)
    voice.progress(f"{names}: {len(frame):,} rows, {facts['guarantee']}")
    replayed = any(heard["category"] == "ReplayWarning" for heard in voice.warnings)
    voice.result("", {"output": [str(target) for target in targets], "replayed": replayed, "record": facts})


@click.command()
@click.argument("input")
@options.who
@options.where
@click.option(
    "--by",
    type=options.levels,
    metavar="COLUMN=LEVELS",
    multiple=True,
    help="Slots: hour=0:24, day=mon,tue. Repeatable.",
)
@click.option("--value", metavar="COLUMN", help="A column to be added up or averaged.")
@click.option("--value-bounds", type=options.pair, metavar="LOW,HIGH", help="Its public bounds.")
@click.option("--delta", type=options.number, help="Held against one over the subjects found.")
@options.files
@config
@_JSON
@_QUIET
def audit(input: str, as_json: bool, quiet: bool, **given: Any) -> None:
    """Look at the raw points in INPUT before a release. RAW DATA: not for publication."""
    voice = Voice(quiet, as_json)
    with listening(voice):
        _require_subject(given)
        with arguments():
            asked = {
                **options.chosen(given, "subject", "cap", "population", "bounds", "outside"),
                **options.chosen(given, "value", "value_bounds", "delta"),
                "grid": _grid(given),
                "by": _by(given),
            }
        voice.progress(f"reading {input}")
        value = given["value"]
        points = _points(input, given, [value] if value else [])
        with input_():
            look = auditing.audit(points, **asked)
    voice.result(str(look), look.to_dict())


def _plan(given: Mapping[str, Any]) -> Plan:
    """Return the plan of what was asked; reads nothing but public zones."""
    _require_subject(given)
    with arguments():
        return make_plan(
            given["eps"],
            given["delta"],
            query=_query(given),
            grid=_grid(given),
            by=_by(given),
            **options.chosen(given, "bounds", "outside", *_WHO),
            **_ways(given),
        )


def _publishable(given: Mapping[str, Any]) -> Plan:
    """Return the plan of a release, which must say where it is: a file that leaves the house is no try-out."""
    if given["bounds"] is None and given["zones"] is None:
        raise Failure(
            "--bounds is required: the box of the study area, typed by hand, --bounds west,south,east,north in "
            "degrees. The whole world is --bounds -180,-90,180,90.",
            BAD_ARGUMENTS,
        )
    return _plan(given)


def _require_subject(given: Mapping[str, Any]) -> None:
    if given["subject"] is None:
        raise Failure(
            "--subject is required: the column that says whose each row is. Without one, single rows would be "
            "protected, and not people.",
            BAD_ARGUMENTS,
        )


def _query(given: Mapping[str, Any]) -> Query:
    asked = [name for name in ("sum_", "mean", "centroid") if given[name]]
    if len(asked) > 1:
        raise ValueError("--sum, --mean and --centroid are releases of their own; choose one.")
    bounds = given["value_bounds"]
    if (bounds is None) == bool(given["sum_"] or given["mean"]):
        raise ValueError("--value-bounds low,high goes with --sum and --mean, which need it.")
    if given["sum_"]:
        return Sum(given["sum_"], value_bounds=bounds)
    if given["mean"]:
        return Mean(given["mean"], value_bounds=bounds)
    return Centroid() if given["centroid"] else Count()


def _grid(given: Mapping[str, Any]) -> Any:
    if given["zones"] is None:
        if given["zone_key"] is not None:
            raise ValueError("--zone-key names a column of --zones FILE.")
        return given["grid"]
    if given["grid"] is not None:
        raise ValueError("--zones are cells already; leave --grid out.")
    return Zones(reading.read_polygons(given["zones"]), given["zone_key"], given["zone_overlap"])


def _by(given: Mapping[str, Any]) -> dict[str, Any] | None:
    if len({column for column, _ in given["by"]}) < len(given["by"]):
        raise ValueError("--by names a column twice; list its levels together.")
    return dict(given["by"]) or None


def _ways(given: Mapping[str, Any]) -> dict[str, Any]:
    asked = options.chosen(given, *_WAYS)
    return asked | {"rescale": asked["rescale"] or False}


def _targets(output: tuple[str, ...]) -> list[Path]:
    if not output:
        raise Failure("--output is required: -o heat.geojson. The extension says the format.", BAD_ARGUMENTS)
    with arguments():
        return [check_output(path) for path in output]


def _check_kept(targets: list[Path], read: Mapping[str, str | None]) -> None:
    """Raise where an output would replace a file that the command reads."""
    for name, path in read.items():
        if path is not None and Path(os.path.realpath(path)) in targets:
            raise Failure(f"--output {path} is {name} itself; it would be overwritten.", BAD_ARGUMENTS)


def _ledger(path: str | None) -> Ledger | None:
    if path is None:
        return default_ledger()
    return opened(path)


def _released(
    voice: Voice, plan: Plan, path: str, ledger: Ledger | None, given: Mapping[str, Any]
) -> gpd.GeoDataFrame:
    label, retry = given["label"], given["retry"]
    books = {"ledger": ledger, "label": label, "retry": retry, "reason": given["reason"]}
    if _is_stored(plan, ledger, label, retry):
        return plan.release(_hollow(plan), **books)
    voice.progress(f"reading {path}")
    reads = [] if plan.query.reads is None else [plan.query.reads]
    points = _points(path, given, reads)
    voice.progress("counting")
    with input_():
        return plan.release(points, **books)


def _is_stored(plan: Plan, ledger: Ledger | None, label: str | None, retry: bool) -> bool:
    """Whether the label was released before; refuse what cannot be paid before any data are read."""
    from geodp import testing
    from geodp.paying import Payments

    with arguments():
        return Payments(plan, ledger, label, testing.current()).stored(retry) is not None


def _hollow(plan: Plan) -> gpd.GeoDataFrame:
    """Return a frame of the plan's schema without rows: a stored release is returned without reading data."""
    columns: dict[str, Any] = {str(plan.policy.subject): pd.Series([], dtype=object)}
    for name, levels in zip(plan.slots.names, plan.slots.levels, strict=True):
        columns[name] = pd.Series(list(levels)).iloc[:0]
    if plan.query.reads is not None:
        columns[plan.query.reads] = pd.Series([], dtype="float64")
    return gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries([], crs=4326), crs=4326)


def _points(path: str, given: Mapping[str, Any], numbers: list[str]) -> gpd.GeoDataFrame:
    if (given["lon"] is None) != (given["lat"] is None):
        raise Failure("--lon and --lat go together.", BAD_ARGUMENTS)
    kinds = {given["subject"]: "text"}  # first, and whatever else the column is used for: ids are no numbers
    for column in numbers:
        kinds.setdefault(column, "number")
    for column, levels in given["by"]:
        kinds.setdefault(column, "text" if all(isinstance(level, str) for level in levels) else "number")
    return reading.read_points(path, kinds, **options.chosen(given, *_FILES))


def _write(frame: gpd.GeoDataFrame, target: Path, facts: Mapping[str, Any]) -> None:
    """Write one file; a failure here comes after the debit, so say what is left of the release."""
    try:
        write(frame, target)
        return
    except OSError as error:
        why = error.strerror or type(error).__name__
    except ValueError as error:
        why = str(error)
    except Exception as error:
        why = type(error).__name__
    entry = facts["ledger"]
    kept = (
        "The release is lost, and what it cost stays spent: no ledger kept it."
        if entry is None
        else f'The release is stored in {entry["name"]}: the same command with label "{entry["label"]}" writes it '
        "again, at no cost."
    )
    raise Failure(f"{target.name} could not be written ({why}). {kept}", FAILED)
