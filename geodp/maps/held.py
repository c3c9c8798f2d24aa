"""What a map is drawn from: a release, or some rows of one.

A frame that is no longer the release is refused with the record's own error. Rows that were picked out of a
release (``heat[heat["count"] > 5]``, ``heat.loc[ids]``, ``heat.xs(7, level="hour")``) and rows in another order are
still what was released, and a simultaneous statement about all cells holds for any of them, however they were
picked. So they are drawn, and the map says how many rows of the release it shows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from geodp.errors import NotARelease
from geodp.records import record
from geodp.seals import problem_of_part

__all__ = ["Held", "held"]


@dataclass(frozen=True, eq=False)
class Held:
    """Rows of a release, with the record that vouches for them.

    Attributes
    ----------
    frame : DataFrame
        As it was given; nothing in it is changed.
    facts : dict
        The record.
    whole : bool
        Whether these are all rows of the release.
    """

    frame: pd.DataFrame
    facts: Mapping[str, Any]
    whole: bool

    def part(self, rows: Any) -> "Held":
        """Return the rows of a mask, as a part."""
        return Held(self.frame[rows], self.facts, self.whole and bool(rows.all()))


def held(frame: pd.DataFrame) -> Held:
    """Return the frame with its record, or raise where the record does not vouch for it.

    Parameters
    ----------
    frame : GeoDataFrame or DataFrame
        A release, read back from a file or not, or some of its rows with all columns, in any order.

    Returns
    -------
    Held

    Raises
    ------
    NotARelease
        No record, or columns, numbers or ids that are not the release's: the error of :func:`geodp.record`.

    Examples
    --------
    >>> import geopandas as gpd
    >>> import geodp
    >>> points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> held(heat).whole, held(heat.iloc[::-1]).whole, held(heat[:2]).whole
    (True, True, False)
    """
    try:
        return Held(frame, record(frame), True)
    except NotARelease:
        facts = getattr(frame, "attrs", {}).get("geodp")
        if (
            not isinstance(facts, dict)
            or "guarantee" not in facts
            or problem_of_part(frame, facts) is not None
        ):
            raise
        if not _all_rows(frame, facts):
            return Held(frame, facts, False)
        # As many rows as were released: the same ones in another order, or none of this release.
        record(_sorted(frame))
        return Held(frame, facts, True)


def _all_rows(frame: pd.DataFrame, facts: Mapping[str, Any]) -> bool:
    if facts["cells"] != "all":
        return True
    by = facts["by"]
    slots: int = by["slots"] if "slots" in by else math.prod(by.get("levels", {}).values())
    return bool(len(frame) == facts["n_cells"] * slots)


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    try:
        return frame.sort_index()
    except TypeError:
        return frame
