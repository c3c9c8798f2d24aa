"""``gdf.dp``: gathers arguments and forwards. It keeps nothing, because pandas builds it anew each time.

What it forwards to is imported by the first call, so that importing geodp costs next to nothing.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd

from geodp.given import NOT_GIVEN, EachRow, NotGiven

if TYPE_CHECKING:
    from geodp.accounting import Budget
    from geodp.grids import Grid
    from geodp.ledger import Ledger
    from geodp.looks import Audit
    from geodp.policy import Policy
    from geodp.views import View

__all__ = ["Accessor"]


@pd.api.extensions.register_dataframe_accessor("dp")
class Accessor:
    """Differential privacy for the points of a GeoDataFrame, as ``gdf.dp``.

    Called, it gives a :class:`geodp.views.View`, for which who and where are settled; its methods are the flat
    calls of geodp with the frame as their first argument. It keeps nothing.

    Parameters
    ----------
    frame : GeoDataFrame
        Points in any CRS.

    Raises
    ------
    AttributeError
        It is another kind of frame.

    Examples
    --------
    >>> import geodp
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> trips.dp
    <gdf.dp: differentially private maps; gdf.dp(subject=, cap=, bounds=, grid=) configures a view>
    >>> riders = trips.dp(subject="rider", cap=2, bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> len(riders.heatmap(1.0)) == riders.plan(1.0).n_cells
    True
    """

    def __init__(self, frame: gpd.GeoDataFrame) -> None:
        if not isinstance(frame, gpd.GeoDataFrame):
            raise AttributeError(
                f".dp needs a GeoDataFrame, this is a {type(frame).__name__}. Make one: "
                'gpd.GeoDataFrame(df, geometry=gpd.points_from_xy(df["lon"], df["lat"]), crs=4326)'
            )
        self._frame = frame

    def __repr__(self) -> str:
        return (
            "<gdf.dp: differentially private maps; gdf.dp(subject=, cap=, bounds=, grid=) configures a view>"
        )

    def __call__(
        self,
        policy: "Policy | None" = None,
        /,
        *,
        subject: "str | EachRow | NotGiven | None" = NOT_GIVEN,
        cap: "int | str | NotGiven | None" = NOT_GIVEN,
        rows_per_cell: "int | NotGiven" = NOT_GIVEN,
        contribution: "str | NotGiven" = NOT_GIVEN,
        neighboring: "str | NotGiven" = NOT_GIVEN,
        population: "int | NotGiven | None" = NOT_GIVEN,
        bounds: Any = NOT_GIVEN,
        outside: "str | NotGiven" = NOT_GIVEN,
        grid: "Grid | str | NotGiven | None" = NOT_GIVEN,
        ledger: "Ledger | None" = None,
    ) -> "View":
        """Say who and where once; the view that comes back only needs a budget.

        Parameters
        ----------
        policy : Policy, optional
            The base, such as the ``policy`` of another view; arguments given by name replace its own.
        subject, cap, rows_per_cell, contribution, neighboring, population, bounds, outside, grid
            As for :class:`geodp.Policy`.
        ledger : Ledger, optional
            Pays for every release of the view.

        Returns
        -------
        View

        Raises
        ------
        TypeError, ValueError
            A bad argument, or a frame whose schema does not fit.

        Examples
        --------
        >>> import geodp
        >>> trips = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([-74], [40.7]), crs=4326)
        >>> riders = trips.dp(subject="rider", cap=2, bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
        >>> trips.head(0).dp(riders.policy, cap=1).policy.cap
        1
        """
        from geodp.policy import policy as make_policy
        from geodp.views import View

        chosen = make_policy(
            policy,
            subject=subject,
            cap=cap,
            rows_per_cell=rows_per_cell,
            contribution=contribution,
            neighboring=neighboring,
            population=population,
            bounds=bounds,
            outside=outside,
            grid=grid,
        )
        return View(self._frame, chosen, ledger)

    def audit(
        self,
        *,
        subject: str | EachRow | None = None,
        cap: int | str | None = None,
        population: int | None = None,
        bounds: Any = None,
        outside: str = "clamp",
        grid: "Grid | str | None" = None,
        by: Any = None,
        value: str | None = None,
        value_bounds: Any = None,
        delta: float | None = None,
    ) -> "Audit":
        """Look at the raw data, privately; see :func:`geodp.audit`. Not for publication."""
        arguments = dict(locals())
        from geodp import auditing

        return auditing.audit(arguments.pop("self")._frame, **arguments)

    def heatmap(
        self,
        eps: "float | Budget",
        delta: float = 0,
        *,
        subject: str | EachRow | None = None,
        cap: int | str | None = None,
        rows_per_cell: int = 1,
        contribution: str = "sample",
        neighboring: str = "add_remove_one",
        population: int | None = None,
        bounds: Any = None,
        outside: str = "clamp",
        grid: "Grid | str | None" = None,
        by: Any = None,
        estimator: str = "pyramid",
        rescale: bool | int = False,
        return_geometry: bool = True,
        mechanism: str = "auto",
        criterion: str = "std",
        strategy: str = "flat",
        cells: str = "all",
        threshold: int | None = None,
        phantoms: float | None = None,
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> gpd.GeoDataFrame:
        """Count people per cell with differential privacy; see :func:`geodp.heatmap`."""
        arguments = dict(locals())
        from geodp import calls

        return calls.heatmap(arguments.pop("self")._frame, **arguments)

    def sum(
        self,
        column: str,
        eps: "float | Budget",
        delta: float = 0,
        *,
        value_bounds: Any,
        clip: Any = None,
        subject: str | EachRow | None = None,
        cap: int | str | None = None,
        rows_per_cell: int = 1,
        contribution: str = "sample",
        neighboring: str = "add_remove_one",
        population: int | None = None,
        bounds: Any = None,
        outside: str = "clamp",
        grid: "Grid | str | None" = None,
        by: Any = None,
        estimator: str = "pyramid",
        return_geometry: bool = True,
        mechanism: str = "auto",
        criterion: str = "std",
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> gpd.GeoDataFrame:
        """Add up a column per cell with differential privacy; see :func:`geodp.sum`."""
        arguments = dict(locals())
        from geodp import calls

        return calls.sum(arguments.pop("self")._frame, **arguments)

    def mean(
        self,
        column: str,
        eps: "float | Budget",
        delta: float = 0,
        *,
        value_bounds: Any,
        subject: str | EachRow | None = None,
        cap: int | str | None = None,
        rows_per_cell: int = 1,
        contribution: str = "sample",
        neighboring: str = "add_remove_one",
        population: int | None = None,
        bounds: Any = None,
        outside: str = "clamp",
        grid: "Grid | str | None" = None,
        by: Any = None,
        estimator: str = "pyramid",
        return_geometry: bool = True,
        mechanism: str = "auto",
        criterion: str = "std",
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> gpd.GeoDataFrame:
        """Average a column per cell with differential privacy; see :func:`geodp.mean`."""
        arguments = dict(locals())
        from geodp import calls

        return calls.mean(arguments.pop("self")._frame, **arguments)

    def centroid(
        self,
        eps: "float | Budget",
        delta: float = 0,
        *,
        n: int | None = None,
        subject: str | EachRow | None = None,
        cap: int | str | None = None,
        rows_per_cell: int = 1,
        contribution: str = "sample",
        neighboring: str = "add_remove_one",
        population: int | None = None,
        bounds: Any = None,
        outside: str = "clamp",
        grid: "Grid | str | None" = None,
        by: Any = None,
        estimator: str = "pyramid",
        return_geometry: bool = True,
        mechanism: str = "auto",
        criterion: str = "std",
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
    ) -> gpd.GeoDataFrame:
        """Return the mean place per cell with differential privacy; see :func:`geodp.centroid`."""
        arguments = dict(locals())
        from geodp import calls

        return calls.centroid(arguments.pop("self")._frame, **arguments)

    def perturb(
        self,
        eps_per_km: Any,
        *,
        snap_m: Any = 1,
        remap: Any = None,
        subject: str | EachRow | None = None,
        max_reports: int | None = None,
        keep: Iterable[Hashable] = (),
        ledger: "Ledger | None" = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
    ) -> gpd.GeoDataFrame:
        """Move every point by noise, with a guarantee per point and distance; see :func:`geodp.perturb`.

        Views do not have it: their cap, box and grid say what cells may show, and bound no report.
        """
        arguments = dict(locals())
        from geodp import locations

        return locations.perturb(arguments.pop("self")._frame, **arguments)
