"""Long to wide: one column for each slot, for small multiples."""

from typing import Any

import geopandas as gpd
import pandas as pd

from geodp.records import record
from geodp.wording import brief

__all__ = ["pivot"]


def pivot(frame: gpd.GeoDataFrame, column: str | None = None) -> gpd.GeoDataFrame:
    """Return a release with slots as one row for each cell and one column for each slot.

    Parameters
    ----------
    frame : GeoDataFrame
        A release made with ``by``, indexed by cell and slot.
    column : str, optional
        Which column to spread; by default the one made for the map (``count``, ``sum`` or ``mean``).

    Returns
    -------
    GeoDataFrame
        Indexed by cell. Columns are named ``"hour=7"``, or ``"hour=7, day=mo"`` for several columns of
        ``by``, in the order of the levels; then the outlines, if the release has them. It shows a release
        but is none itself: the record stays with ``frame``.

    Raises
    ------
    NotARelease
        The frame is no longer what its record describes.
    ValueError
        The release has no slots, or no such column.

    Examples
    --------
    >>> import geodp
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"who": ["a", "b"], "hour": [7, 8]}, geometry=places, crs=4326)
    >>> view = points.dp(subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> pivot(view.heatmap(1, by={"hour": [7, 8]})).columns.tolist()
    ['hour=7', 'hour=8', 'geometry']
    """
    facts = record(frame)
    if frame.index.nlevels < 2:
        raise ValueError('this release has no slots; they come from by={"hour": range(24)}.')
    name = _shown_column(frame, facts["query"]) if column is None else column
    if name not in frame.columns or name == getattr(frame, "_geometry_column_name", None):
        raise ValueError(
            f"column must be one of {', '.join(map(repr, _columns(frame)))}, got {brief(column)}."
        )
    slots = frame.index.droplevel(0)[: len(frame) // facts["n_cells"]]
    cells = frame.index.get_level_values(0)[:: len(slots)]
    values = frame[name].to_numpy().reshape(len(cells), len(slots))
    wide = pd.DataFrame(values, index=cells, columns=_names(slots))
    if not isinstance(frame, gpd.GeoDataFrame) or facts["query"] == "centroid":
        return wide
    outlines = gpd.GeoSeries(frame.geometry.array[:: len(slots)], index=cells, crs=frame.crs)
    return gpd.GeoDataFrame(wide, geometry=outlines)


def _columns(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name, dtype in frame.dtypes.items() if str(dtype) != "geometry"]


def _shown_column(frame: pd.DataFrame, query: str) -> str:
    offered = (query, "count", "weighted_count", "error_m")
    return next((name for name in offered if name in frame.columns), _columns(frame)[0])


def _names(slots: pd.Index) -> list[str]:
    """Return a name for each slot; 7 and "7" get quotes to tell them apart."""
    rows = [slot if isinstance(slot, tuple) else (slot,) for slot in slots.tolist()]

    def named(text: Any) -> list[str]:
        return [", ".join(f"{n}={text(v)}" for n, v in zip(slots.names, row, strict=True)) for row in rows]

    plain = named(str)
    return plain if len(set(plain)) == len(plain) else named(repr)
