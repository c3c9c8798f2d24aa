"""What one map shows, decided before anything is drawn: numbers, classes, and the words of its legend.

Whoever draws (matplotlib, folium, a web page) takes a :class:`Picture`, so that all of them show the same.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.maps import words
from geodp.maps.held import Held, held
from geodp.maps.rules import least_told, measured, told
from geodp.maps.scales import Scale, drawn_column, scale_of
from geodp.wording import brief, shown

__all__ = ["Picture", "certain_enough", "halfwidths", "heading", "picture", "switch"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST = 0.8  # of the means that are told: so many are at least as certain as a class is wide
_PERCENT = (5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True, eq=False)
class Picture:
    """What a map shows, row by row, and what its legend says.

    Attributes
    ----------
    rows : Held
        The released rows, with their record.
    column : str or None
        What is shown; None where it is places alone.
    values : float64 array, shape (n,)
        The number of each row.
    told : bool array, shape (n,)
        Which rows are coloured: those that can be told from zero, and of means those that are certain enough for
        the classes. The others are grey.
    edge : bool array, shape (n,)
        Which rows lie on the border of the box and also hold everybody outside.
    scale : Scale
        Where colours change.
    unit : str
        What follows the numbers of the legend, such as ``" %"``.
    title, heading : str
        In short, and in words, what is shown.
    lines : tuple of str
        What the legend states: eps, delta, half-width, what is told, whom it protects.
    labels : tuple of str
        What each class stands for, lowest first.
    untold : str
        What a row that is not told stands for.
    stamp : str or None
        ``"NOT PRIVATE: ..."`` on what was made in a test.
    """

    rows: Held
    column: str | None
    values: Floats
    told: Bools
    edge: Bools
    scale: Scale
    unit: str
    title: str
    heading: str
    lines: tuple[str, ...]
    labels: tuple[str, ...]
    untold: str
    stamp: str | None

    @property
    def classes(self) -> Ints:
        """Class of each row, -1 where it cannot be told."""
        return np.where(self.told, self.scale.classes(self.values), -1)

    def only(self, keep: Bools) -> "Picture":
        """Return the picture of some rows, in the same colours and words."""
        return replace(
            self,
            rows=self.rows.part(keep),
            values=self.values[keep],
            told=self.told[keep],
            edge=self.edge[keep],
        )


def switch(value: object, name: str) -> None:
    """Refuse what is neither True nor False: an array or a word in its place is a slip.

    Raises
    ------
    TypeError
        ``value`` is no bool.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {brief(value)}.")


def heading(title: object) -> str | None:
    """Return a title with escapes for what would not print, or None.

    Raises
    ------
    TypeError
        ``title`` is neither a text nor None.
    """
    if title is None:
        return None
    if not isinstance(title, str):
        raise TypeError(f"title must be a text or None, got {brief(title)}.")
    return "\n".join(shown(line, 200) for line in title.split("\n"))


def picture(
    frame: pd.DataFrame,
    column: str | None = None,
    *,
    error: bool = False,
    rule: str = "simultaneous",
    level: object = 0.95,
) -> Picture:
    """Decide what a map of a release shows.

    Parameters
    ----------
    frame : DataFrame
        A release, or rows of one; outlines are not needed yet.
    column : str, optional
        A released number; by default the one made for maps.
    error : bool, default False
        Show how far the noise reaches instead: of counts and sums in percent of the measurement, of means in the
        column's unit, of centroids in metres.
    rule, level
        As in :func:`geodp.readable`.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.
    TypeError, ValueError
        No such column, a bad rule or level, or ``error`` with a column.

    Examples
    --------
    >>> import geopandas as gpd
    >>> import geodp
    >>> points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> shows = picture(heat)
    >>> shows.column, shows.lines[0]
    ('count', 'eps 1, delta 0, for one who more or less')
    """
    switch(error, "error")
    rows = held(frame)
    facts = rows.facts
    if error and column is not None:
        raise ValueError("error=True shows the error of the release's own number; leave column out.")
    name = drawn_column(frame, facts, column)
    seen = _told(rows, rule, level, name)
    values, unit = _errors(rows) if error else (_values(rows, name), "")
    untold = words.untold(facts)
    if facts["query"] == "mean" and name in ("mean", "lower", "upper") and not error:
        scale, seen, limit = certain_enough(values, seen, halfwidths(rows))
        untold = words.untold(facts, limit)
    else:
        values = values if error else _coloured_by(rows, name, values, seen)
        scale = _scale(rows, name, values, seen, error)
    least = None if facts["query"] == "perturb" else least_told(rows, seen, rule=rule, level=level)
    return Picture(
        rows=rows,
        column=name,
        values=values,
        told=seen,
        edge=_edge(frame),
        scale=scale,
        unit=unit,
        title=("error of " if error else "") + words.title(facts),
        heading=_error_heading(rows) if error else words.heading(facts, name),
        lines=tuple(words.legend_lines(rows, seen, least, rule=rule, level=level)),
        labels=tuple(_labels(rows, name, scale, values[seen], unit)),
        untold=untold,
        stamp=words.stamp(facts),
    )


def _told(rows: Held, rule: str, level: object, column: str | None) -> Bools:
    if rows.facts["query"] == "perturb":
        return np.ones(len(rows.frame), dtype=bool)
    return told(rows, rule=rule, level=level, column=column)


def _values(rows: Held, name: str | None) -> Floats:
    if name is None:
        return np.zeros(len(rows.frame))
    return rows.frame[name].to_numpy(dtype=np.float64)


def _coloured_by(rows: Held, name: str | None, values: Floats, seen: Bools) -> Floats:
    """Return the numbers that colours stand for: of a cell smoothed out of its interval, the interval's nearer end.

    Such a cell holds somebody, and drawn as the lowest class it would look like the emptiest of all.
    """
    away = words.smoothed_away(rows, seen)
    if name not in (rows.facts["query"], "estimate") or not away.any():
        return values
    ends = [rows.frame[end].to_numpy(dtype=np.float64) for end in ("lower", "upper")]
    return np.where(away, np.clip(values, *ends), values)


def halfwidths(rows: Held) -> Floats:
    """Return half the width of each row's interval."""
    out: Floats = (rows.frame["upper"] - rows.frame["lower"]).to_numpy(dtype=np.float64) / 2
    return out


def certain_enough(values: Floats, told: Bools, half: Floats) -> tuple[Scale, Bools, float]:
    """Cut numbers of which each has an interval of its own, so that no class is narrower than its cells' noise.

    Parameters
    ----------
    values : float64 array, shape (n,)
    told : bool array, shape (n,)
        Which can be told at all.
    half : float64 array, shape (n,)
        Half-widths of their intervals.

    Returns
    -------
    scale : Scale
        Its classes are as wide as the half-widths of four in five told numbers, or wider.
    coloured : bool array
        Those told whose half-width is at most the width of a class.
    limit : float
        That width.
    """
    width = float(np.quantile(half[told], _MOST, method="higher")) if told.any() else 0.0
    scale = scale_of(values[told & (half <= width)], width, even=True)
    limit = max([width, *np.diff(scale.cuts)[:1].tolist()])
    return scale, told & (half <= limit), limit


def _edge(frame: pd.DataFrame) -> Bools:
    if "edge" not in frame.columns:
        return np.zeros(len(frame), dtype=bool)
    return frame["edge"].to_numpy(dtype=bool)


def _errors(rows: Held) -> tuple[Floats, str]:
    """Return how far the noise of each row reaches, and its unit."""
    facts, frame = rows.facts, rows.frame
    if facts["query"] == "perturb":
        raise ValueError(
            "moved points have no interval; geodp.radius_quantile_m says how far they were moved."
        )
    if facts["query"] == "centroid":
        return frame["error_m"].to_numpy(dtype=np.float64), " m"
    half = halfwidths(rows)
    if facts["query"] == "mean":
        return half, f" {shown(facts['column'])}"
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = 100 * half / np.abs(frame[f"noisy_{facts['query']}"].to_numpy(dtype=np.float64))
    return share, " %"


def _error_heading(rows: Held) -> str:
    query = rows.facts["query"]
    what = {
        "centroid": "metres within which 95 % of the noise lies",
        "mean": "half-width of the interval (95 %) around the mean",
    }.get(query, "half-width of the interval (95 %), in percent of the measurement")
    return f"{what}; {words.heading(rows.facts)}"


def _scale(rows: Held, name: str | None, values: Floats, seen: Bools, error: bool) -> Scale:
    facts, values = rows.facts, values[seen]
    if name is None and not error:
        return Scale()
    if error:
        return _error_scale(facts["query"], values)
    found = measured(facts)
    whole = bool(pd.api.types.is_integer_dtype(rows.frame[name].dtype))
    if found is None or name == "error_m" or (facts["query"] == "mean" and name == "noisy_sum"):
        return scale_of(values)
    return scale_of(values, found.halfwidth(), diverging=found.sign == 0, whole=whole)


def _error_scale(query: str, values: Floats) -> Scale:
    """Cut errors in percent always alike, others where they differ by more than a tenth."""
    if query not in ("mean", "centroid"):
        return Scale(_PERCENT)
    return scale_of(values, float(np.median(values)) / 10 if len(values) else 0.0)


def _labels(rows: Held, name: str | None, scale: Scale, values: Floats, unit: str) -> list[str]:
    if name is None and not unit:
        return ["moved point" if rows.facts["query"] == "perturb" else "mean place"]
    return words.class_labels(scale, values, unit)
