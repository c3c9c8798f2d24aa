"""``geodp.compare_maps``: two releases on one scale, and where they differ by more than their noise."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.exact import exact
from geodp.maps import drawing, words
from geodp.maps.differences import Change, change, check_comparable
from geodp.maps.held import Held
from geodp.maps.pictures import Picture, certain_enough, halfwidths, heading, picture
from geodp.maps.plotting import Plate, needs, new_figure, settle
from geodp.maps.rules import least_told, measured, told
from geodp.maps.scales import Scale, scale_of
from geodp.maps.slotted import Slot, asks_for_one, slots_of
from geodp.wording import at_most, brief, shown
from geodp.wording import figure as said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compare_maps"]

_PANEL = 4.3
_BELOW = 2.9


def compare_maps(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    names: tuple[str, str] = ("a", "b"),
    slot: Any = None,
    rule: str = "simultaneous",
    level: object = 0.95,
    cmap: Any = None,
    title: str | None = None,
) -> "Figure":
    """Draw two releases on one colour scale, and beside them where they differ by more than their noise.

    Noise is all that the third map allows for. Where people are in more cells than ``cap``, each release draws anew
    which of them are kept, and that alone can colour cells: its legend says so.

    Parameters
    ----------
    a, b : GeoDataFrame
        Releases of counts, sums or means over the same cells, each with noise of its own: two nights, say. Their
        eps and mechanisms may differ; subject's column, cap, grid, bounds and the like may not.
    names : tuple of str, default ("a", "b")
        What the maps are called.
    slot : level, tuple of levels, or mapping, optional
        One slot of releases with ``by``, as in :func:`geodp.plot`; required there.
    rule : {"simultaneous", "fdr"}
        Which differences are more than noise: with probability ``level`` no cell is coloured whose capped number
        is the same in both, or at most ``1 - level`` of the coloured ones are such, on average.
    level : float, default 0.95
        Of the rule.
    cmap : str or Colormap, optional
        Colours of the two maps; the difference has blue for less and red for more.
    title : str, optional
        Above all three.

    Returns
    -------
    Figure
        With three axes: ``a``, ``b``, and ``b`` less ``a``.

    Raises
    ------
    NotARelease
        A frame is no release, or no longer one.
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        No outlines, a bad rule, or releases that do not measure the same.

    Notes
    -----
    The difference is taken between the measurements (``noisy_count``), not between the maps' own numbers, which are
    biased cell by cell; it costs no budget. It says how the released people changed, within the cap; where both maps
    are grey, a difference may still be told, and the other way round.

    With ``contribution="sample"`` a subject in more than ``cap`` cells (or with more than ``rows_per_cell`` values)
    counts in some of them, chosen by a secret of each release. Of unchanged data, the capped numbers of two
    releases then differ too. At a large eps this exceeds the noise: compare with a cap that few people exceed, or
    with ``contribution="weighted"``, which draws nothing.

    Whoever is in both releases is protected by their budgets together; the legend adds them up.

    Examples
    --------
    >>> import geodp
    >>> points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    >>> view = points.dp(subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> before, after = view.heatmap(1), view.heatmap(1)
    >>> [ax.get_title(loc="left") for ax in compare_maps(before, after, names=("mon", "tue")).axes]
    ['mon', 'tue', 'tue less mon']
    """
    needs("matplotlib")
    names, title = _two_names(names), heading(title)
    pictures = [picture(frame, rule=rule, level=level) for frame in (a, b)]
    check_comparable(pictures[0].rows, pictures[1].rows)
    parts = [_one_slot(shows.rows, slot) for shows in pictures]
    first, second = (
        shows.only(part.rows)
        for shows, part in zip(_on_one_scale(pictures[0], pictures[1], rule, level), parts, strict=True)
    )
    third = _contrast(first, second, names, rule, level)
    plates = [Plate.of(first, cmap, beside=[second]), Plate.of(second, cmap, beside=[first])]
    plates.append(Plate.of(third, beside=[first, second]))
    return _drawn(plates, (*names, f"{names[1]} less {names[0]}"), title or _title(first, parts[0]))


def _one_slot(rows: Held, slot: Any) -> Slot:
    parts = slots_of(rows, slot)
    if not asks_for_one(rows, slot):
        raise ValueError(f"these releases have slots; compare one of them, slot={parts[0].value!r}.")
    return parts[0]


def _two_names(names: object) -> tuple[str, str]:
    if not (
        isinstance(names, tuple | list) and len(names) == 2 and all(isinstance(one, str) for one in names)
    ):
        raise TypeError(f"names must be two texts, what the two maps are called; got {brief(names)}.")
    return shown(names[0]), shown(names[1])


def _title(shows: Picture, part: Slot) -> str:
    return f"{shows.title}, {part.name}" if part.name else shows.title


def _on_one_scale(a: Picture, b: Picture, rule: str, level: object) -> tuple[Picture, Picture]:
    if a.rows.facts["query"] == "mean":
        return _means_on_one_scale(a, b, rule, level)
    values = np.concatenate([a.values[a.told], b.values[b.told]])
    noises = [found.halfwidth() for found in map(measured, (a.rows.facts, b.rows.facts)) if found is not None]
    scale = scale_of(values, max(noises), diverging=a.scale.diverging, whole=a.scale.whole)
    labels = tuple(words.class_labels(scale, values))
    return replace(a, scale=scale, labels=labels), replace(b, scale=scale, labels=labels)


def _means_on_one_scale(a: Picture, b: Picture, rule: str, level: object) -> tuple[Picture, Picture]:
    """Return both in classes that are as wide as the noise of what is coloured in either."""
    seen = [told(shows.rows, rule=rule, level=level) for shows in (a, b)]
    values, half = np.concatenate([a.values, b.values]), [halfwidths(shows.rows) for shows in (a, b)]
    scale, coloured, limit = certain_enough(values, np.concatenate(seen), np.concatenate(half))
    labels = tuple(words.class_labels(scale, values[coloured]))
    out = []
    for shows, kept in zip((a, b), np.split(coloured, [len(a.values)]), strict=True):
        least = least_told(shows.rows, kept, rule=rule, level=level)
        lines = words.legend_lines(shows.rows, kept, least, rule=rule, level=level)
        untold = words.untold(shows.rows.facts, limit)
        out.append(replace(shows, scale=scale, labels=labels, told=kept, lines=tuple(lines), untold=untold))
    return out[0], out[1]


def _contrast(a: Picture, b: Picture, names: tuple[str, str], rule: str, level: object) -> Picture:
    """Return the difference as a picture of its own."""
    found = change(a.rows, b.rows, rule=rule, level=level)
    frame = _geometry_of(a.rows.frame, b.rows.frame, found.index)
    scale = _scale(a, found)
    facts = a.rows.facts
    return Picture(
        rows=Held(frame, facts, a.rows.whole and b.rows.whole),
        column=None,
        values=found.values,
        told=found.told,
        edge=frame["edge"].to_numpy(dtype=bool)
        if "edge" in frame.columns
        else np.zeros(len(frame), dtype=bool),
        scale=scale,
        unit="",
        title=f"{names[1]} less {names[0]}",
        heading=_heading(facts["query"], names),
        lines=(*_lines(facts, found, rule, level), _together(facts, b.rows.facts), *_redrawn(facts)),
        labels=tuple(words.class_labels(scale, found.values[found.told], least=_least(found))),
        untold="no more than noise between the two",
        stamp=a.stamp or b.stamp,
    )


def _scale(a: Picture, found: Change) -> Scale:
    one = measured(a.rows.facts)
    width = 0.0 if found.bar is None or one is None else found.bar / 2
    whole = a.rows.facts["query"] == "count"
    return scale_of(found.values[found.told], width, diverging=True, whole=whole, least=_least(found))


def _least(found: Change) -> float:
    """Return the least difference that is coloured; of means, whose intervals differ, the least that was."""
    sizes = np.abs(found.values[found.told])
    return found.bar if found.bar is not None else float(sizes.min()) if len(sizes) else 0.0


def _heading(query: str, names: tuple[str, str]) -> str:
    what = "means" if query == "mean" else "measurements"
    return f"difference of the {what}: {names[1]} less {names[0]}"


def _lines(facts: Any, found: Change, rule: str, level: object) -> list[str]:
    target = 100 * exact(level, "level")
    percent, lines = said(float(target)), []
    if rule == "fdr":
        share = said(float(100 - target))
        lines.append(f"coloured: at most {share} % of the coloured are unchanged, on average")
    elif found.bar is None:
        lines.append(f"coloured: intervals that all hold at once ({percent} %) do not meet")
    else:
        lines.append(
            f"coloured: {said(found.bar)} or more either way, more than noise in all cells at once ({percent} %)"
        )
    if not found.known:
        lines.append("a cell in one map alone differs by at least what its colour says")
    return lines


def _together(a: Any, b: Any) -> str:
    """Say what both maps cost whoever is in both; an upper bound where they are views of one release."""
    eps, delta = (float(exact(a[name], name) + exact(b[name], name)) for name in ("eps", "delta"))
    return f"both maps together: at most eps {eps:g}, delta {delta:g} for one {shown(a['unit'])} in both"


def _redrawn(facts: Any) -> list[str]:
    """Say that the cap's choice differs between releases as well, unless there is none."""
    cap, rows = facts["cap"], facts["rows_per_cell"]
    size = facts["measurements"][0]["size"]
    values = facts["query"] in ("sum", "mean")
    if facts["unit"] == "row" or facts["contribution"] != "sample" or (cap >= size and not values):
        return []
    what = f"more than {at_most(cap)}" + (f" or {at_most(rows, 'row')} in one" if values else "")
    return [f"noise only: of a {shown(facts['unit'])} with {what}, those kept are drawn anew in each map"]


def _geometry_of(a: pd.DataFrame, b: pd.DataFrame, index: pd.Index) -> pd.DataFrame:
    """Return outlines (and border) of rows of either frame."""
    names = [name for name in ("edge",) if name in a.columns]
    kept: list[Any] = []
    for frame in (a, b):
        if not isinstance(frame, gpd.GeoDataFrame):
            return a.loc[index, names]
        shapes = frame.geometry if frame.crs is None else frame.geometry.to_crs(4326)
        kept.append(gpd.GeoDataFrame(frame[names], geometry=shapes))
    more = kept[1][~kept[1].index.isin(a.index)]
    both: pd.DataFrame = pd.concat([kept[0], more]) if len(more) else kept[0]
    return both.loc[index]


def _drawn(plates: list[Plate], names: tuple[str, ...], title: str) -> "Figure":
    wide, high = plates[0].size(1, False)
    figure = new_figure((3 * _PANEL, _PANEL * high / wide + _BELOW), returned=True)
    axes: NDArray[np.object_] = figure.subplots(1, 3, squeeze=False)[0]
    for ax, plate, name in zip(axes, plates, names, strict=True):
        part = Slot("", None, np.ones(len(plate.shapes), dtype=bool))
        plate.draw(ax, part, name)
        plate.explain(ax, loc="upper left", bbox_to_anchor=(0.0, -0.1))
    drawing.literal(figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=drawing.INK))
    settle(figure)
    return figure
