"""Releases from points in many partitions, on one machine or on a cluster.

Importing registers ``ddf.dp`` on every dask-geopandas GeoDataFrame, and lets ``geodp.heatmap(ddf, ...)`` and
``plan.release(ddf)`` take one:

    import dask_geopandas
    import geodp.dask

    trips = dask_geopandas.read_parquet("trips/*.parquet", columns=["rider", "geometry"])
    heat = trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")

Workers place and count. Each subject is bounded once over all partitions; exact totals come back to the client,
and only there, after the debit, noise is drawn, once. So plan, record, ledger and frame are those of a release in
memory, and without noise the numbers are too, for any partitioning.
"""

import dask_geopandas
from dask.dataframe.extensions import register_dataframe_accessor

from geodp.accessor import Accessor
from geodp.calls import centroid, heatmap, mean, sum
from geodp.dask.errors import PartitionError
from geodp.dask.partitions import Partitions
from geodp.sources import register

__all__ = ["DaskAccessor", "PartitionError", "Partitions", "centroid", "heatmap", "mean", "sum"]

register(dask_geopandas.GeoDataFrame, Partitions)


@register_dataframe_accessor("dp")
class DaskAccessor(Accessor):
    """Differential privacy for the points of a dask-geopandas GeoDataFrame: the calls of ``gdf.dp``."""

    def __init__(self, frame: dask_geopandas.GeoDataFrame) -> None:
        if not isinstance(frame, dask_geopandas.GeoDataFrame):
            raise AttributeError(
                f".dp needs a dask-geopandas GeoDataFrame, this is a {type(frame).__name__}. Make one: "
                'dask_geopandas.from_dask_dataframe(ddf, geometry=dask_geopandas.points_from_xy(ddf, "lon", "lat"))'
                ".set_crs(4326)"
            )
        self._frame = Partitions(frame)
