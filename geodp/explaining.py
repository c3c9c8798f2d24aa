"""A record in English, for a data protection officer: what was released, and what it can tell of anybody.

Everything is said from the record alone, so it can be said of a file as well as of a frame, and by
somebody who has neither the data nor the code that released them.
"""

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from geodp.errors import NotARelease
from geodp.exact import UNREADABLE, written
from geodp.queries.sparse import expected_phantoms
from geodp.records import record
from geodp.seals import law_of_measurement
from geodp.testing import NOT_PRIVATE, OS_ENTROPY
from geodp.wording import at_most, cell_words, figure, shown

__all__ = ["Explanation", "explain"]

_WIDTH = 100
_RESCALED = " The map is scaled to a total without the cap, which was measured too; the measurement is not."
_WHICH = {
    "all": "empty ones too, so that which cells there are says nothing. Cells, ids, columns and this record were "
    "fixed before any data were read.",
    "sparse": "but only those whose noisy number is {least} or more, empty or not, are in the file{empty}: which cells "
    "there are is part of what is protected. Columns and this record were fixed before any data were read.",
    "select": "but only those that hold somebody and whose noisy number is {least} or more are in the file{empty}: "
    "which cells there are is part of what is protected, by delta. Columns and this record were fixed before any data "
    "were read.",
}
_SOME = (
    "noisy_count is the measurement of a cell that was released because its measurement is large, so it is too "
    "large on average. lower and upper hold the noise of all cells at once with 95 %. Do not add these cells up."
)
_LAWS = {"laplace": "discrete Laplace noise", "gaussian": "rounded Gaussian noise"}


class Explanation(str):
    """Text that shows itself as it is, in a notebook too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(release: pd.DataFrame | Mapping[str, Any]) -> Explanation:
    """Say in English what a release is, what it can tell of one subject at most, and what it leaves open.

    Parameters
    ----------
    release : GeoDataFrame, DataFrame or dict
        A released frame, its record, or ``ledger.record(label)``.

    Returns
    -------
    str
        Paragraphs with a heading word each; print it.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.

    Examples
    --------
    >>> import geodp
    >>> chosen = geodp.plan(1, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
    >>> print(explain(chosen.to_dict()).splitlines()[0])
    Released    distinct riders, each in at most 4 cells, once in each; not trips. One number for each
    """
    facts = release if isinstance(release, Mapping) else record(release)
    if "guarantee" not in facts:
        raise NotARelease(
            "this is no release record; geodp.record(frame) and ledger.record(label) return one."
        )
    try:
        paragraphs = _points(facts) if facts.get("query") == "perturb" else _map(facts)
    except UNREADABLE:
        raise NotARelease("this record lacks what an explanation needs; was it changed?") from None
    paragraphs = [*_stamp(facts), *paragraphs, *_ledger(facts.get("ledger"))]
    return Explanation("\n".join(_paragraph(head, text) for head, text in paragraphs))


def _paragraph(head: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{head if i == 0 else '':<12}{line}" for i, line in enumerate(lines))


def _stamp(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    noise = facts.get("noise", OS_ENTROPY)
    if noise == OS_ENTROPY:
        return []
    return [
        (
            NOT_PRIVATE,
            f"This release protects nobody: its noise is {noise}. It was made in a test and must not be "
            "published. What follows would hold with noise from the operating system.",
        )
    ]


def _map(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("Released", _released(facts)),
        ("Protects", _protects(facts)),
        ("At most", _odds(facts)),
        ("Limits", _limits(facts)),
        ("Noise", _noise(facts)),
        ("Map", _estimates(facts)),
        ("Open", _open(facts)),
    ]


def _released(facts: Mapping[str, Any]) -> str:
    by = facts.get("by") or {}
    names = by.get("levels")
    slots = math.prod(names.values()) if names else by.get("slots", 1)
    split = f" ({' x '.join(shown(name) for name in names)})" if names else ""
    unlisted = facts.get("cells", "all") != "all"
    # Cells that are only numbered can be more than the box holds: empty ones may stand beyond its border.
    cells = f"{cell_words(facts['grid'])}, {'at most ' if unlisted else ''}{facts['n_cells']:,} of them"
    each = f", and each of {slots:,} slots{split}" if slots > 1 else ""
    where = ""
    if facts.get("bounds"):
        west, south, east, north = facts["bounds"]
        where = f" between {west:g} and {east:g} degrees of longitude, {south:g} and {north:g} of latitude"
    return f"{facts['counted']}. One number for each {cells}{where}{each}; {_which(facts)}"


def _which(facts: Mapping[str, Any]) -> str:
    """Say which cells the file holds; of empty ones that it holds by chance, how many to expect."""
    which = _WHICH.get(facts.get("cells", "all"), "")
    if "threshold" not in facts:
        return which
    least, empty = facts["threshold"], ""
    if facts["cells"] == "sparse":
        count = facts["measurements"][0]
        expected = expected_phantoms(law_of_measurement(count), least, count["size"])
        empty = f" (at most {figure(expected)} empty ones are expected there)"
    return which.format(least=f"{least:,}", empty=empty)


def _protects(facts: Mapping[str, Any]) -> str:
    unit = shown(facts["unit"])
    if facts["unit"] == "row":
        return (
            "Single rows, not people: no column said whose a row is. Somebody with k rows is protected k times "
            "less (eps times k)."
        )
    change = (
        f"whether one {unit} is in the data at all"
        if facts["neighboring"] == "add_remove_one"
        else f"which of any two {unit}s is in the data (how many there are is not protected)"
    )
    return (
        f"Every {unit}, with all of that {unit}'s rows together, against a reader who knows everything about "
        f"everybody else and all the code: {change} must hardly show."
    )


def _odds(facts: Mapping[str, Any]) -> str:
    eps, delta = facts["eps"], facts["delta"]
    factor = math.exp(min(eps, 700))
    sure = 1 / (1 + math.exp(-min(eps, 700)))
    strong = " That is close to no protection." if eps > 5 else ""
    joint = facts.get("joint")
    whole = f" together with the {joint['of'] - 1} other views released with it" if joint else ""
    text = (
        f"Whatever a reader believes about one {shown(facts['unit'])} before, the release{whole} changes the odds by a "
        f"factor of at most {_up(factor)} (e to the eps, eps {eps:g}): from even odds, 50 %, to "
        f"{_percent(sure)} at most.{strong}"
    )
    if delta == 0:
        return text + " Without exception: delta is 0."
    text += f" Except with probability delta, {delta:g}, in which more may show."
    if facts.get("population"):
        people = figure(delta * facts["population"])
        text += f" Among {facts['population']:,} declared subjects that is {people} of them, expected."
    return text


def _percent(share: float) -> str:
    """Return a probability in percent, rounded up."""
    digits = 1 if share < 0.985 else 2
    return f"{math.ceil(share * 10 ** (2 + digits)) / 10**digits:.{digits}f} %"


def _up(factor: float) -> str:
    """Return a factor above 1, rounded up."""
    return figure(math.ceil(factor * 100) / 100 if factor < 1000 else math.ceil(factor))


def _limits(facts: Mapping[str, Any]) -> str:
    """Say what is enforced on the rows, on which the noise relies."""
    unit, cap, rows = shown(facts["unit"]), facts["cap"], facts["rows_per_cell"]
    cells = at_most(cap) if not facts.get("by") else f"{cap:,} of the cells and slots"
    each = "once in each" if rows == 1 else f"with at most {rows:,} rows in each"
    kept = "" if facts["unit"] == "row" else f" A {unit} in more of them keeps a secret random choice."
    first = f"A {unit} counts in at most {cells}, {each}"
    if facts.get("contribution") == "weighted":
        first = f"A {unit} counts in all its cells, but in more than {cap:,} at smaller weights, {each}"
        kept = ""
    value = ""
    if "value_bounds" in facts:
        low, high = facts["value_bounds"]
        value = f" Values are cut to {low:g} ... {high:g} first."
        clip = facts.get("clip")
        value += f" One {unit}'s values together are cut to a norm of {clip:g}." if clip else ""
    return f"{first}; the code enforces it, and the noise is made for it.{kept}{value}{_edges(facts)}"


def _edges(facts: Mapping[str, Any]) -> str:
    if facts.get("outside") == "clamp":
        return " Points outside the box are moved to its border, so border cells also hold everybody outside."
    if facts.get("outside") == "drop":
        return " Points outside the box are left out."
    return " Points outside all zones are left out."


def _noise(facts: Mapping[str, Any]) -> str:
    """Say how far the noise moves the numbers, for each measurement."""
    parts = []
    for part in facts["measurements"]:
        law, step = law_of_measurement(part), float(written(part["step"]))
        reach, unit = law.halfwidth("0.95") * step, _unit(facts, part["name"])
        parts.append(
            f"{_LAWS[part['mechanism']]} on {_what(part['name'])}, standard deviation {figure(law.std * step)}{unit}, "
            f"within {figure(reach)}{unit} in 95 % of all draws"
        )
    because = facts.get("because")
    why = f" Chosen: {because}" if because and facts.get("mechanism_asked") == "auto" else ""
    return f"{'; and '.join(parts)}.{why if why.endswith('.') or not why else why + '.'}"


def _what(name: str) -> str:
    """Return what was measured: ``"count"`` is every count, ``"blocks 1"`` the totals of coarse blocks."""
    if name.startswith("blocks "):
        return f"every total of coarse blocks (level {name.removeprefix('blocks ')})"
    return {"total": "the total", "kept": "the kept total"}.get(name, f"every {name}")


def _unit(facts: Mapping[str, Any], name: str) -> str:
    if name == "sum":
        return f" {shown(facts.get('column', ''))}"
    return " half-diagonals of the cell" if name == "place" else ""


def _estimates(facts: Mapping[str, Any]) -> str:
    if facts.get("cells", "all") != "all":
        return _SOME
    shows = {
        "count": "The column count is made for looking at: computed from the noisy numbers alone "
        f"(estimator {facts['estimator']}), which costs nothing. noisy_count is the measurement: it can be "
        "negative, is right on average, and is the one to add up. lower and upper hold the noise in 95 % of cells.",
        "weighted_count": "The column weighted_count is made for looking at. noisy_weighted_count is the "
        "measurement: it can be negative, is right on average, and is the one to add up. lower and upper hold the "
        "noise in 95 % of cells.",
        "sum": "The column sum is made for looking at. noisy_sum is the measurement: it can be negative, is right "
        "on average, and is the one to add up. lower and upper hold the noise in 95 % of cells.",
        "mean": "The column mean comes from a noisy sum and a noisy count; where there are few records it leans "
        "towards the noisy overall mean. lower and upper hold the noise in 95 % of cells.",
        "centroid": "Each point is a noisy mean place, drawn towards the middle of its cell where there are few "
        "records; error_m holds the noise in 95 % of cells.",
    }
    text = shows.get(facts["query"], "All columns are computed from the noisy numbers alone.")
    return text + (_RESCALED if any(part["name"] == "total" for part in facts["measurements"]) else "")


def _open(facts: Mapping[str, Any]) -> str:
    unit = "row" if facts["unit"] == "row" else shown(facts["unit"])
    return (
        f"Not protected: facts about the whole population, which hold with or without any one {unit}; the names, "
        "levels, zones and bounds that were typed in; that a release was made, and when. Every further release "
        "about the same people adds to what can be learned: eps adds up."
    )


def _points(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain moved points, which have another guarantee: by distance, not by presence."""
    eps = facts["eps_per_km"]
    far = ", ".join(f"{figure(math.exp(min(eps * d, 700)))} at {d:g} km" for d in (0.1, 1, 5))
    kept = facts.get("keep")
    columns = f"The columns {kept} are published as they are." if kept else "No other column is published."
    unit, reports = shown(facts["unit"]), facts.get("reports_per_subject")
    series = (
        "Reports of one person multiply these factors, and nothing limits them here."
        if reports is None
        else f"At most {reports:,} reports of one {unit} are published: together eps "
        f"{facts['worst_eps_per_km']:g} per km."
    )
    return [
        ("Released", f"Single positions, each moved by random noise. {columns}"),
        (
            "At most",
            "geo-indistinguishability: what is seen is at most so many times as likely from one place as from "
            f"another, by their distance: {far} (e to the eps times distance, eps {eps:g} per km). {series}",
        ),
        (
            "Noise",
            f"planar Laplace on the sphere: {figure(2 / eps)} km off on average; then put on a grid of "
            f"{facts['snap_m']:g} m.",
        ),
        (
            "Open",
            "Not protected: that a report exists, how many there are, their order, and the rough area far larger "
            "than the noise. This is not (eps, delta)-differential privacy; for how many people are where, "
            "release a heatmap.",
        ),
    ]


def _ledger(part: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if not part:
        return [("Ledger", "None: no ledger counts what this release adds to others about the same people.")]
    spent, ceiling = part.get("spent", {}), part.get("ceiling", {})
    label = f'"{shown(part["label"], 200)}"' if "label" in part else "a release"
    text = f"{label}, entry {part.get('entry')} of {shown(str(part.get('name')))}, {part.get('time')}. "
    if "eps" in spent and "eps" in ceiling:
        text += (
            f"With it, eps {spent['eps']:.4g} and delta {spent.get('delta', 0):.3g} are spent of a ceiling of eps "
            f"{ceiling['eps']:.4g}, delta {ceiling.get('delta', 0):.3g}, which no release can pass."
        )
    if "metric_spent" in part:
        text += (
            f"With it, all points noted there together cost one subject up to "
            f"{part['metric_spent']['eps_per_km']:.4g} per km; nothing was taken from its eps and delta."
        )
    for name in ("control", "reason"):
        text += f" {name.capitalize()}: {shown(str(part[name]), 300)}." if part.get(name) else ""
    return [("Ledger", text)]
