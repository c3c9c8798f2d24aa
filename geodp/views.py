"""A configured view of a frame: who and where are said once, releases after that only say how much."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import geopandas as gpd

from geodp.grids import grid as parse_grid
from geodp.plans import Plan, Ways, make_plan
from geodp.points import check_points
from geodp.policy import Policy
from geodp.progress import showing
from geodp.queries import Centroid, Count, Mean, Query, Sum
from geodp.release import check_subject
from geodp.sources import schema

if TYPE_CHECKING:
    from geodp.accounting import Budget
    from geodp.grids import Grid
    from geodp.ledger import Ledger
    from geodp.looks import Audit

__all__ = ["View"]


class View:
    """What ``gdf.dp(subject=..., cap=..., bounds=..., grid=...)`` returns.

    It refers to its frame, copies nothing, and shows its arguments only. Who is protected, and the cap,
    are fixed here: no method of a view can loosen them.

    Parameters
    ----------
    frame : GeoDataFrame
        Points; referred to, never shown.
    policy : Policy
        Who and where; frozen, and free to move to another frame: ``tomorrow.dp(view.policy)``.
    ledger : Ledger or None
        Pays for every release of this view.

    Examples
    --------
    >>> import geodp
    >>> trips = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([-74], [40.7]), crs=4326)
    >>> riders = trips.dp(subject="rider", cap=2, bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> round(riders.plan(1.0).noise_std, 2)
    2.8
    >>> riders.heatmap(1.0).index.equals(riders.plan(1.0).index)
    True
    """

    def __init__(self, frame: gpd.GeoDataFrame, policy: Policy, ledger: "Ledger | None" = None) -> None:
        self._frame = frame
        check_subject(check_points(schema(frame)), policy)
        self.policy = policy
        self.ledger = ledger

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name}={value!r}" for name, value in self.policy.to_dict().items() if value is not None
        )
        books = "none" if self.ledger is None else repr(self.ledger)
        return f"<geodp view: {said}; ledger: {books}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a view refers to a raw frame and is not pickled; move view.policy, and call frame.dp(policy)."
        )

    def plan(
        self,
        eps: "float | Budget",
        delta: float = 0,
        *,
        query: Query | None = None,
        by: Any = None,
        grid: "Grid | str | None" = None,
        mechanism: str = "auto",
        criterion: str = "std",
        estimator: str = "pyramid",
        rescale: bool | int = False,
        strategy: str = "flat",
        cells: str = "all",
        threshold: int | None = None,
        phantoms: float | None = None,
        return_geometry: bool = True,
    ) -> Plan:
        """Decide a release without reading any row; see :func:`geodp.plan`."""
        ways = Ways(
            mechanism, criterion, estimator, strategy, cells, return_geometry, rescale, threshold, phantoms
        )
        policy = self.policy if grid is None else _on(self.policy, grid)
        return make_plan(policy, eps, delta, Count() if query is None else query, by, ways)

    def audit(
        self,
        *,
        by: Any = None,
        value: str | None = None,
        value_bounds: Any = None,
        delta: float | None = None,
    ) -> "Audit":
        """Look at the raw data, privately; see :func:`geodp.audit`. Not for publication."""
        from geodp.auditing import look

        return look(self._frame, self.policy, by=by, value=value, value_bounds=value_bounds, delta=delta)

    def heatmap(
        self,
        eps: "float | Budget",
        delta: float = 0,
        *,
        by: Any = None,
        grid: "Grid | str | None" = None,
        mechanism: str = "auto",
        criterion: str = "std",
        estimator: str = "pyramid",
        rescale: bool | int = False,
        strategy: str = "flat",
        cells: str = "all",
        threshold: int | None = None,
        phantoms: float | None = None,
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
        return_geometry: bool = True,
    ) -> gpd.GeoDataFrame:
        """Count people per cell with differential privacy; see :func:`geodp.heatmap`."""
        with showing(progress):
            chosen = self.plan(
                eps,
                delta,
                by=by,
                grid=grid,
                mechanism=mechanism,
                criterion=criterion,
                estimator=estimator,
                rescale=rescale,
                strategy=strategy,
                cells=cells,
                threshold=threshold,
                phantoms=phantoms,
                return_geometry=return_geometry,
            )
        return self._release(chosen, label, retry, reason, progress)

    def sum(
        self,
        column: str,
        eps: "float | Budget",
        delta: float = 0,
        *,
        value_bounds: Any,
        clip: Any = None,
        by: Any = None,
        grid: "Grid | str | None" = None,
        mechanism: str = "auto",
        criterion: str = "std",
        estimator: str = "pyramid",
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
        return_geometry: bool = True,
    ) -> gpd.GeoDataFrame:
        """Add up a column per cell with differential privacy; see :func:`geodp.sum`."""
        chosen = self.plan(
            eps,
            delta,
            query=Sum(column, value_bounds, clip),
            by=by,
            grid=grid,
            mechanism=mechanism,
            criterion=criterion,
            estimator=estimator,
            return_geometry=return_geometry,
        )
        return self._release(chosen, label, retry, reason, progress)

    def mean(
        self,
        column: str,
        eps: "float | Budget",
        delta: float = 0,
        *,
        value_bounds: Any,
        by: Any = None,
        grid: "Grid | str | None" = None,
        mechanism: str = "auto",
        criterion: str = "std",
        estimator: str = "pyramid",
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
        return_geometry: bool = True,
    ) -> gpd.GeoDataFrame:
        """Average a column per cell with differential privacy; see :func:`geodp.mean`."""
        chosen = self.plan(
            eps,
            delta,
            query=Mean(column, value_bounds),
            by=by,
            grid=grid,
            mechanism=mechanism,
            criterion=criterion,
            estimator=estimator,
            return_geometry=return_geometry,
        )
        return self._release(chosen, label, retry, reason, progress)

    def centroid(
        self,
        eps: "float | Budget",
        delta: float = 0,
        *,
        n: int | None = None,
        by: Any = None,
        grid: "Grid | str | None" = None,
        mechanism: str = "auto",
        criterion: str = "std",
        estimator: str = "pyramid",
        label: str | None = None,
        retry: bool = False,
        reason: str | None = None,
        progress: bool = True,
        return_geometry: bool = True,
    ) -> gpd.GeoDataFrame:
        """Return the mean place per cell with differential privacy; see :func:`geodp.centroid`."""
        chosen = self.plan(
            eps,
            delta,
            query=Centroid(n),
            by=by,
            grid=grid,
            mechanism=mechanism,
            criterion=criterion,
            estimator=estimator,
            return_geometry=return_geometry,
        )
        return self._release(chosen, label, retry, reason, progress)

    def _release(
        self, plan: Plan, label: str | None, retry: bool, reason: str | None, progress: bool
    ) -> gpd.GeoDataFrame:
        return plan.release(
            self._frame, ledger=self.ledger, label=label, retry=retry, reason=reason, progress=progress
        )


def _on(policy: Policy, spec: "Grid | str") -> Policy:
    """Return the policy on another grid; zones need no box."""
    grid = parse_grid(spec)
    return replace(policy, grid=grid, bounds=policy.bounds if grid.needs_bounds else None)
