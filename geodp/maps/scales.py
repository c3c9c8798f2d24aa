"""Which column a map shows, and where its colours change: from released numbers only, whatever one spike does.

Classes are cut at round numbers, evenly where the values are of one size and by size where they are not, so that
maps of two nights have the same cuts unless their numbers differ in size. The largest and the smallest value decide
nothing: noise that hits one cell hard changes that cell's colour and no other's. No class is narrower than
the noise, since colours would then tell cells apart that are not; where each cell has noise of its own, those with
more than a class is wide are grey (:func:`geodp.maps.pictures.certain_enough`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "DIVERGING",
    "HATCHED",
    "SEQUENTIAL",
    "UNTOLD",
    "Scale",
    "drawn_column",
    "offered_columns",
    "ramp",
    "scale_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEQUENTIAL = ("#fcd98b", "#f7a55f", "#e76b5a", "#bd3e6b", "#7f2671", "#3d1459")
DIVERGING = ("#123f6e", "#3f7fb3", "#a8cbe2", "#f5bd9f", "#d2624c", "#7d1422")
UNTOLD = "#e3e3e3"
HATCHED = "#4d4d4d"

_MOST, _MOST_A_SIDE = 6, 3
_SIZES, _ALIKE = 8.0, 1e-12
_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
_DECADES = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
_MADE_FOR_MAPS = {
    "count": "count",
    "weighted_count": "weighted_count",
    "sum": "sum",
    "mean": "mean",
    "centroid": "count",
}


def offered_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that a map can show: the released numbers."""
    return [
        str(name)
        for name, dtype in frame.dtypes.items()
        if pd.api.types.is_numeric_dtype(dtype)
        and not pd.api.types.is_bool_dtype(dtype)
        and name not in ("lon", "lat")
    ]


def drawn_column(frame: pd.DataFrame, facts: Mapping[str, Any], column: str | None = None) -> str | None:
    """Return the column to show: the one made for maps if none was named; None where places are all there is.

    Raises
    ------
    ValueError
        No such column of numbers.
    """
    offered = offered_columns(frame)
    if column is None:
        made = _MADE_FOR_MAPS.get(facts["query"])
        return made if made in offered else None
    if column not in offered:
        raise ValueError(f"column must be one of {', '.join(map(repr, offered))}, got {column!r}.")
    return column


@dataclass(frozen=True)
class Scale:
    """Where colours change.

    Attributes
    ----------
    cuts : tuple of float
        Ascending. A value equal to a cut is above it.
    diverging : bool
        Whether zero is one of the cuts and colours differ in hue on its sides.
    whole : bool
        Whether values are whole numbers.
    falling : bool
        Whether no value is above zero, so that the lowest class has the strongest colour.
    """

    cuts: tuple[float, ...] = ()
    diverging: bool = False
    whole: bool = False
    falling: bool = False

    @property
    def size(self) -> int:
        """Number of classes, one more than cuts."""
        return len(self.cuts) + 1

    def classes(self, values: Floats) -> Ints:
        """Return the class of each value, 0 for the lowest."""
        return np.searchsorted(np.asarray(self.cuts, dtype=np.float64), values, side="right").astype(np.int64)

    def colours(self, anchors: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the colour of each class, as ``"#rrggbb"``."""
        if self.diverging:
            return ramp(self.size, anchors or DIVERGING, self.cuts.index(0.0))
        colours = ramp(self.size, anchors or SEQUENTIAL)
        return colours[::-1] if self.falling else colours


def scale_of(
    values: Floats,
    width: float = 0.0,
    *,
    diverging: bool = False,
    whole: bool = False,
    even: bool = False,
    least: float = 0.0,
) -> Scale:
    """Return where to change colours between the values that are shown.

    Parameters
    ----------
    values : float64 array, shape (n,)
        Released numbers that can be told from noise, in any order; may be empty.
    width : float, default 0
        Least width of a class: how far noise reaches.
    diverging : bool, default False
        Values of both signs, cut alike on both sides of zero.
    whole : bool, default False
        Whole numbers, cut at whole numbers.
    even : bool, default False
        Cuts at even distances, also where values differ much in size.
    least : float, default 0
        Of a diverging scale: the least size that is coloured, where the classes beside zero start.

    Returns
    -------
    Scale
        With at most 6 cuts, of a diverging scale 3 on either side of zero. Of three values or more the extreme
        ones have no say: the largest magnitude of a diverging scale, the largest and the smallest value of
        another. No cuts where all the others are alike, or lie within ``width``.

    Examples
    --------
    >>> scale_of(np.array([45.0, 60, 80, 130, 250, 400, 2000, 3000]), 12, whole=True).cuts
    (100.0, 200.0, 500.0, 1000.0, 2000.0)
    >>> scale_of(np.array([45.0, 60, 80, 130, 250, 400, 2000, 9e9]), 12, whole=True).cuts
    (100.0, 200.0, 500.0, 1000.0, 2000.0)
    >>> scale_of(np.array([20.0, 31, 44, 48, 52])).cuts
    (33.0, 36.0, 39.0, 42.0, 45.0, 48.0)
    >>> scale_of(np.array([-90.0, -20, 50, 300]), diverging=True).cuts
    (-75.0, -50.0, -25.0, 0.0, 25.0, 50.0, 75.0)
    """
    finite = np.sort(values[np.isfinite(values)])
    many = len(finite) >= 3
    if diverging:
        finite = np.sort(np.abs(finite))[: -1 if many else None]
    elif many:
        finite = finite[1:-1]
    falling = len(finite) > 0 and bool(finite[-1] < 0)
    if falling:
        finite = -finite[::-1]
    apart = max(width, 1.0 if whole else 0.0)
    most = _MOST_A_SIDE if diverging else _MOST
    cuts = (
        _cuts(float(finite[0]), float(finite[-1]), apart, most, even=even, whole=whole) if len(finite) else []
    )
    if diverging:
        above = [cut for cut in cuts if cut > 0 and cut >= least + apart]
        return Scale((*(-cut for cut in reversed(above)), 0.0, *above), True, whole)
    if falling:
        cuts = [-cut for cut in reversed(cuts)]
    return Scale(tuple(cuts), False, whole, falling)


def ramp(n: int, anchors: Sequence[str], middle: int | None = None) -> tuple[str, ...]:
    """Return ``n`` colours along some ``"#rrggbb"`` anchors, from end to end.

    Parameters
    ----------
    n : int
        How many; one alone is the middle of the anchors.
    anchors : sequence of str
        At least two.
    middle : int, optional
        The cut at zero: as many colours lie on either side of it as cuts do, and none straddles the middle.

    Examples
    --------
    >>> ramp(3, ("#000000", "#ffffff"))
    ('#000000', '#808080', '#ffffff')
    """
    if middle is None:
        places = np.linspace(0.0, 1.0, n) if n > 2 else np.array([0.5] if n == 1 else [0.2, 0.8])
    else:
        half = np.linspace(0.6, 1.0, middle + 1) if middle else np.array([0.85])
        places = np.concatenate([1 - half[::-1], half])
    rgb = np.array([[int(anchor[i : i + 2], 16) for i in (1, 3, 5)] for anchor in anchors], dtype=np.float64)
    at = np.linspace(0, 1, len(anchors))
    mixed = np.column_stack([np.interp(places, at, rgb[:, channel]) for channel in range(3)])
    return tuple("#" + "".join(f"{int(part + 0.5):02x}" for part in colour) for colour in mixed)


def _cuts(low: float, high: float, least: float, most: int, *, even: bool, whole: bool) -> list[float]:
    """Return round numbers between two values: by size if the larger is 8 times the smaller, else evenly."""
    if high - low < least or high - low <= _ALIKE * max(abs(low), abs(high)):
        return []
    if not even and low >= 0 and high >= _SIZES * max(low, high / 1e6):
        return _by_size(max(low, least, high / 1e6), high, least, most)
    return _evenly(low, high, least, most, whole)


def _by_size(low: float, high: float, least: float, most: int) -> list[float]:
    for digits in _DECADES:
        cuts = list(_rounds(low, high, digits))
        if len(cuts) <= most:
            return _apart(cuts, least)
    return _apart(cuts[:: -(-len(cuts) // most)], least)


def _rounds(low: float, high: float, digits: Sequence[float]) -> Iterator[float]:
    """Yield the round numbers above ``low`` and at most ``high``."""
    for power in range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1):
        for digit in digits:
            number = float(f"{digit:g}e{power}")
            if low < number <= high:
                yield number


def _apart(cuts: Sequence[float], least: float) -> list[float]:
    """Leave out cuts that would make a class narrower than ``least``."""
    kept: list[float] = []
    for cut in cuts:
        if not kept or cut - kept[-1] >= least:
            kept.append(cut)
    return kept


def _evenly(low: float, high: float, least: float, most: int, whole: bool) -> list[float]:
    rough = max((high - low) / most, least)
    power = math.floor(math.log10(rough))
    steps = (float(f"{digit:g}e{power + more}") for more in (0, 1) for digit in _STEPS)
    step = next(step for step in steps if step >= rough * (1 - 1e-9) and (step == int(step) or not whole))
    first, last = math.floor(low / step) + 1, math.floor(high / step)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
