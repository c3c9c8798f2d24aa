"""Totals of public regions: the number that analysts otherwise get wrong by adding up ``count``.

Everything here follows from a released frame and its record: post-processing, free of budget.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.convolved import NoiseSum
from geodp.covering import PARTS, by_area, by_centre, region_shape
from geodp.errors import NotARelease
from geodp.exact import exact
from geodp.records import record
from geodp.seals import law_of_measurement
from geodp.testing import NOT_PRIVATE, OS_ENTROPY
from geodp.wording import at_most, brief, figure

__all__ = ["Total", "total"]

_MEASURED = ("noisy_count", "noisy_weighted_count", "noisy_sum")

Ints = NDArray[np.int64]
Shapes = NDArray[np.object_]


@dataclass(frozen=True)
class Total:
    """The sum of a measured column over a region, with the interval of its noise.

    Attributes
    ----------
    value : int or float
        The sum: unbiased; below 0 where the region is nearly empty.
    lower, upper : int or float
        The noise lies between them with probability ``level``, from its exact law. The cap, and what a
        cell holds outside the region, are not in the interval.
    n_cells : int
        Cells of the region, partly covered ones included.
    level : float
        Such as 0.95.
    std : float
        Standard deviation of the noise.
    column : str
        What was added up.
    counted : str
        What one unit of it is.
    noise : str
        Where the noise came from, as in the record.

    Examples
    --------
    >>> import geopandas as gpd, geodp
    >>> trips = gpd.GeoDataFrame({"rider": range(99)}, geometry=gpd.points_from_xy([0.5] * 99, [0.5] * 99), crs=4326)
    >>> heat = geodp.heatmap(trips, 1, subject="rider", cap=1, bounds=(0, 0, 2, 2), grid="square:1")
    >>> everybody = geodp.total(heat, heat.index)
    >>> everybody.n_cells, everybody.lower < everybody.value < everybody.upper
    (4, True)
    """

    value: int | float
    lower: int | float
    upper: int | float
    n_cells: int
    level: float
    std: float
    column: str
    counted: str
    noise: str

    def __str__(self) -> str:
        stamp = "" if self.noise == OS_ENTROPY else f"{NOT_PRIVATE} ({self.noise}): "
        value, lower, upper = (figure(number) for number in (self.value, self.lower, self.upper))
        where = f"{self.column} over {at_most(self.n_cells)}"
        return f"{stamp}{value} ({lower} to {upper} at {100 * self.level:g} %), {where}: {self.counted}"

    __repr__ = __str__


def total(
    frame: pd.DataFrame,
    region: Any,
    *,
    slots: Mapping[str, Any] | None = None,
    partial: str = "centre",
    column: str | None = None,
    level: float = 0.95,
) -> Total:
    """Return the total of a public region, with the interval of its noise.

    ``noisy_count`` is added up, not ``count``: the measurement is unbiased in every region, the map's
    column only over all of it. A subject in several cells of the region is counted in each.

    Parameters
    ----------
    frame : GeoDataFrame
        A release, of counts or sums. It may have been read back from GeoParquet.
    region : polygon, GeoSeries, GeoDataFrame, (west, south, east, north), ids or mask
        Public, and chosen without looking at the release: the largest cells of a map are large partly by
        their noise. A shapely polygon and a tuple of four numbers are in degrees; a GeoSeries or
        GeoDataFrame says its CRS. A list or Index holds ids of cells (or of rows); a boolean array or
        Series has one value for each cell (or row), in the frame's order.
    slots : mapping, optional
        Only these levels of ``by``: ``{"hour": [7, 8, 9]}``. All of them by default.
    partial : {"centre", "area"}
        What cells on the region's border count: all if their centre lies in it (or on its border),
        otherwise nothing; or by the share of their area, in 256ths.
    column : str, optional
        ``"noisy_count"``, ``"noisy_weighted_count"`` or ``"noisy_sum"``; the one there is by default.
    level : float, default 0.95
        Probability of the interval, up to 1 - 1e-9.

    Returns
    -------
    Total
        Frozen; prints itself. With few very wide draws, or wide draws with weights, the interval may be 0.3 % of
        a standard deviation too wide, never too narrow.

    Raises
    ------
    NotARelease
        The frame is no longer what its record describes, or has nothing to add up.
    TypeError, ValueError
        The region is of the wrong kind, has no CRS, names unknown ids or meets no cell.

    Examples
    --------
    >>> import geodp
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"rider": ["a", "b"]}, geometry=places, crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.25")
    >>> west = total(heat, (0, 0, 0.5, 1))
    >>> west.n_cells, west.upper - west.value
    (8, 8)
    """
    facts = record(frame)
    name, measurement = _measured(frame, facts, column)
    target = _level(level)
    weights = _weights(frame, region, partial) * _slot_mask(frame, slots)
    used = weights > 0
    if not used.any():
        raise ValueError(
            "the region holds no cell of the release"
            + ('; partial="area" takes cells by the share that it covers.' if partial == "centre" else ".")
        )
    noise = NoiseSum.of_weights(law_of_measurement(measurement), weights[used], PARTS)
    step = Fraction(measurement["step"])
    value = _sum(frame[name].to_numpy()[used], weights[used], step)
    reach = noise.halfwidth(target) * step
    whole = step == 1 and bool((weights[used] == PARTS).all())
    return Total(
        value=_number(value, whole),
        lower=_number(value - reach, whole),
        upper=_number(value + reach, whole),
        n_cells=frame.index.get_level_values(0)[used].nunique(),
        level=float(target),
        std=noise.std * float(step),
        column=name,
        counted=facts["counted"],
        noise=facts["noise"],
    )


def _measured(
    frame: pd.DataFrame, facts: Mapping[str, Any], column: str | None
) -> tuple[str, Mapping[str, Any]]:
    """Return the column to add up, and the measurement that it is."""
    if facts.get("cells", "all") != "all" or "measurements" not in facts:
        raise NotARelease(
            "total needs every cell's own measurement; this release has only some cells, or points."
        )
    offered = [name for name in _MEASURED if name in frame.columns]
    if facts["query"] == "mean":
        offered = ["noisy_count"]
    if not offered:
        raise NotARelease("this release has no measured counts or sums to add up.")
    name = offered[0] if column is None else column
    if name not in offered:
        raise ValueError(f"column must be one of {', '.join(map(repr, offered))}, got {brief(column)}.")
    parts = {part["name"]: part for part in facts["measurements"]}
    found = parts.get(name.removeprefix("noisy_"), facts["measurements"][0])
    return name, found


def _level(level: object) -> Fraction:
    target = exact(level, "level")
    if not 0 < target <= 1 - Fraction(1, 10**9):
        raise ValueError(f"level must be above 0 and at most 1 - 1e-9, got {brief(level)}.")
    return target


def _sum(values: NDArray[Any], weights: Ints, step: Fraction) -> Fraction:
    """Add up exactly: lattice steps times weights are integers."""
    if values.dtype.kind != "i":
        values = np.rint(values / float(step)).astype(np.int64)
    top, bottom = values >> 32, values & 0xFFFFFFFF
    whole = (int((top * weights).sum()) << 32) + int((bottom * weights).sum())
    return Fraction(whole, PARTS) * step


def _number(end: Fraction, whole: bool) -> int | float:
    return int(end) if whole else float(end)


def _slot_mask(frame: pd.DataFrame, slots: Mapping[str, Any] | None) -> Ints:
    """Return 1 for rows of the wanted slots."""
    keep = np.ones(len(frame), np.int64)
    names = list(frame.index.names[1:])
    if slots is not None and not isinstance(slots, Mapping):
        raise TypeError(f'slots must map columns to levels, slots={{"hour": [7, 8]}}, got {brief(slots)}.')
    for name, wanted in (slots or {}).items():
        if name not in names:
            raise ValueError(
                f"slots names {brief(name)}; the release has {', '.join(map(repr, names)) or 'none'}."
            )
        levels = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else list(wanted)
        held = frame.index.get_level_values(name)
        unknown = [value for value in levels if value not in held]
        if unknown:
            raise ValueError(
                f"slots[{name!r}] has {brief(unknown[0])}, which is none of the release's levels."
            )
        keep *= held.isin(levels)
    return keep


def _weights(frame: pd.DataFrame, region: Any, partial: str) -> Ints:
    """Return how many 256ths of each row belong to the region."""
    if partial not in ("centre", "area"):
        raise ValueError(f'partial must be "centre" or "area", got {brief(partial)}.')
    shape = region_shape(region)
    if shape is None:
        return _of_ids(frame, region)
    outlines, rows = _outlines(frame)
    share = by_centre(outlines, shape) if partial == "centre" else by_area(outlines, shape)
    return share[rows]


def _outlines(frame: pd.DataFrame) -> tuple[Shapes, Ints]:
    """Return the outline of each cell, and the cell number of each row."""
    if not isinstance(frame, gpd.GeoDataFrame):
        raise ValueError(
            "this frame has no outlines. Give ids of cells as the region, or release with return_geometry=True."
        )
    if frame.attrs["geodp"]["query"] == "centroid":
        raise ValueError("the geometry of a release of centroids is noisy points; give ids of cells.")
    n_slots = len(frame) // frame.attrs["geodp"]["n_cells"]
    shapes = frame.geometry if frame.crs is None else frame.geometry.iloc[::n_slots].to_crs(4326)
    return np.asarray(shapes.array, dtype=object), np.arange(len(frame)) // n_slots


def _of_ids(frame: pd.DataFrame, region: Any) -> Ints:
    """Return the weights of ids of cells or rows, or of a mask over them."""
    cells = frame.index.get_level_values(0)
    if isinstance(region, pd.DataFrame | str | bytes | Mapping) or not isinstance(region, Iterable):
        raise TypeError(
            "a region is a polygon, a GeoSeries, a GeoDataFrame, four numbers (west, south, east, north), ids "
            f"of cells, or a boolean mask; got {type(region).__name__}."
        )
    given = region if isinstance(region, pd.Series | pd.Index | np.ndarray) else list(region)
    if _is_mask(given):
        return _of_mask(frame, given)
    ids = given if isinstance(given, pd.MultiIndex) else pd.Index(given)
    if not ids.is_unique:
        raise ValueError("the region names a cell twice.")
    rows = frame.index if frame.index.nlevels > 1 and ids.nlevels == frame.index.nlevels else cells
    unknown = ~np.asarray(ids.isin(rows))
    if unknown.any():
        raise ValueError(f"the region names {brief(ids[unknown][0])}, which is no cell of the release.")
    return PARTS * np.asarray(rows.isin(ids)).astype(np.int64)


def _is_mask(given: Any) -> bool:
    return getattr(given, "dtype", None) == np.dtype(bool) or (
        isinstance(given, list)
        and len(given) > 0
        and all(isinstance(value, bool | np.bool_) for value in given)
    )


def _of_mask(frame: pd.DataFrame, mask: Any) -> Ints:
    n_cells = frame.attrs["geodp"]["n_cells"]
    values = np.asarray(mask, dtype=bool)
    if len(values) not in (len(frame), n_cells):
        raise ValueError(
            f"the mask has {len(values):,} values for {n_cells:,} cells and {len(frame):,} rows."
        )
    if isinstance(mask, pd.Series) and len(mask) == len(frame) and not mask.index.equals(frame.index):
        raise ValueError("the mask has another index than the release; align it: mask.reindex(frame.index).")
    repeat = len(frame) // len(values)
    return PARTS * np.repeat(values, repeat).astype(np.int64)
