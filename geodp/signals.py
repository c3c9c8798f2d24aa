"""How much of a released map is signal: one public figure, from the release alone."""

from fractions import Fraction

import numpy as np
import pandas as pd

from geodp.estimators.planning import signal as share_of_signal
from geodp.mechanisms.laws import law_of
from geodp.records import record

__all__ = ["signal"]

_MEASURED = {
    "count": "noisy_count",
    "weighted_count": "noisy_weighted_count",
    "sum": "noisy_sum",
    "mean": "noisy_count",
    "centroid": "noisy_count",
}


def signal(frame: pd.DataFrame) -> float:
    """Return how much of a map is signal, from 0 (all noise) to 1.

    Parameters
    ----------
    frame : GeoDataFrame or DataFrame
        A release of all cells; of a mean or a centroid its counts are judged.

    Returns
    -------
    float
        ``1 - n·std² / sum(noisy²)``, at least 0: the part of the measured squares that the noise does not
        explain. Post-processing of what is public, so it costs nothing.

    Raises
    ------
    NotARelease
        The frame is no release, or no longer one.
    ValueError
        Only some cells were released, or none were counted.

    Examples
    --------
    >>> import geopandas as gpd
    >>> import geodp
    >>> points = gpd.GeoSeries(gpd.points_from_xy([0.5] * 5000, [0.5] * 5000), crs=4326)
    >>> trips = gpd.GeoDataFrame({"rider": range(5000)}, geometry=points)
    >>> heat = trips.dp.heatmap(1, subject="rider", cap=1, bounds=(0, 0, 3, 3), grid="square:1")
    >>> bool(signal(heat) > 0.99)
    True
    """
    found = record(frame)
    column = _MEASURED.get(found["query"])
    if found.get("cells", "all") != "all":
        raise ValueError(f'signal judges maps of all cells; this one is cells="{found["cells"]}".')
    if column is None or column not in frame:
        raise ValueError(f"signal judges measured counts and sums; a {found['query']} without them has none.")
    leading = found["measurements"][0]
    steps = np.rint(frame[column].to_numpy(dtype=np.float64) / float(Fraction(leading["step"])))
    return share_of_signal(steps.astype(np.int64), law_of(leading["mechanism"], leading["scale"]))
