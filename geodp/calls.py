"""The calls, flat: signature, types and documentation live here, and ``gdf.dp`` forwards to them."""

from typing import TYPE_CHECKING, Any

import geopandas as gpd

from geodp.plans import Plan, Ways, make_plan
from geodp.policy import EachRow, Policy
from geodp.progress import showing
from geodp.queries import Centroid, Count, Mean, Query, Sum

if TYPE_CHECKING:
    from geodp.accounting import Budget
    from geodp.grids import Grid
    from geodp.ledger import Ledger

__all__ = ["centroid", "heatmap", "mean", "plan", "sum"]


def heatmap(
    gdf: gpd.GeoDataFrame,
    eps: "float | Budget",
    delta: float = 0,
    *,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    estimator: str = "pyramid",
    rescale: bool | int = False,
    return_geometry: bool = True,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    strategy: str = "flat",
    cells: str = "all",
    threshold: int | None = None,
    phantoms: float | None = None,
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> gpd.GeoDataFrame:
    """Count people per cell of a public grid, with differential privacy.

    Points are clamped to the box, binned, limited to ``cap`` cells for each subject, counted, and the
    counts noised; every cell of the box is in the result, empty or not. Nothing but the noised numbers
    depends on the rows.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS. Rows that are no usable point, or have no usable subject id, are left out.
    eps : float or Budget
        Privacy loss, greater than 0: what an adversary learns about one subject changes the odds by at
        most a factor of exp(eps). Or a :class:`geodp.Budget` from ``ledger.split(k)``.
    delta : float, default 0
        Probability, below 1, with which that may fail; 0 is pure. Far below 1/population.
    subject : str or geodp.EACH_ROW, optional
        Column that names whose a row is. Without it single rows are protected, not people.
    cap : int, optional
        Most distinct cells one subject may count in; required with ``subject``.
    rows_per_cell : int, default 1
        Most rows of a subject that count in one cell; 1 counts presence.
    contribution : {"sample", "weighted"}, default "sample"
        Above the cap a subject keeps a random choice of cells, or counts in all of its cells at a smaller
        weight. Weighted maps are closer to the uncapped truth; their columns are ``weighted_count`` and
        ``noisy_weighted_count``, and the mechanism is Gaussian with a delta and Laplace without.
    neighboring : {"add_remove_one", "replace_one"}, default "add_remove_one"
        One subject more or less, or one exchanged for another.
    population : int, optional
        Public number of people behind the data; delta is refused from 1/population up.
    bounds : four numbers, optional
        West, south, east, north in degrees. Without it the whole world, with a warning.
    outside : {"clamp", "drop"}, default "clamp"
        Whether points outside the bounds move to its border (column ``edge`` marks those cells) or
        are left out.
    grid : Grid or str, optional
        ``"h3:8"``, ``"square:0.01"`` (degrees), ``"square:1000@3035"`` (metres of a projected CRS) or an
        object; by default the finest H3 resolution with at most 10,000 cells in the bounds.
    by : mapping, optional
        Columns and their public levels, ``{"hour": range(24)}``: counts per cell and slot.
    estimator : str, default "pyramid"
        What makes ``count`` out of ``noisy_count``: ``"pyramid"``, ``"shrink"``, ``"median"``,
        ``"norm_sub"`` or ``"clamp"``. Post-processing; costs nothing.
    rescale : bool or int, default False
        Scale the map up to a separately noised total of at most this many cells per subject (True: 64), for
        5 % of the budget. Helps where the cap drops much and eps is not small; ignored where that total is
        mostly noise.
    return_geometry : bool, default True
        Whether outlines are part of the frame.
    mechanism : {"auto", "laplace", "gaussian"}, default "auto"
        ``"auto"`` takes the one with less noise; ``"gaussian"`` needs a delta.
    criterion : {"std", "max_error"}, default "std"
        What ``"auto"`` compares: the noise of a cell, or the largest error over all cells.
    strategy : {"flat", "levels"}, default "flat"
        What is measured: the cells, or totals of coarse blocks too, which gets large regions right at some
        cost per cell. Worth it from some 4,000 cells up.
    cells : {"all", "sparse", "select"}, default "all"
        Which cells are released: all of them; for domains too large to list, only those whose noisy count
        reaches a public threshold, empty ones as often as a release of all cells would have them there; or
        only cells that hold somebody and pass a threshold that hides who is alone, for a part of delta.
        Thresholds lie far out in the tails of the noise: with a delta and a cap of 4 or more,
        ``criterion="max_error"`` about halves them.
    threshold : int, optional
        With ``cells="sparse"``: the least noisy count that is released. By default the smallest that at most
        ``phantoms`` empty cells are expected to pass.
    phantoms : float, optional
        With ``cells="sparse"``: expected number of empty cells in the whole result, if all were empty. 1 by
        default.
    ledger : Ledger, optional
        Pays for the release before its noise is drawn; refuses what would pass its ceiling.
    label : str, optional
        Name of the release in the ledger; required with one. The same label again returns the stored
        release with a :class:`geodp.ReplayWarning`, at no cost.
    retry : bool, default False
        Pay again for a label whose release was never stored.
    reason : str, optional
        A reviewer's reason, kept by the ledger.
    progress : bool, default True
        Bars for stages that take more than a few seconds: percentages only.

    Returns
    -------
    GeoDataFrame
        EPSG:4326, one row per cell (and slot), indexed by id, sorted; with ``cells="sparse"`` or ``"select"``
        only the released ones, whose intervals then hold for all cells of the map at once. Columns:

        count : int64
            Made for the map: non-negative, its total near the noisy total.
        estimate : float64
            ``count`` before rounding.
        noisy_count : int64
            The measurement: unbiased, signed; the one to add up and to compare.
        lower, upper : int64
            95 % interval of the noise around ``noisy_count``, uncut.
        edge : bool
            With ``outside="clamp"``: the cell lies on the border and also holds everybody outside.
        geometry
            Outlines, valid, cut at the 180th meridian.

        ``attrs["geodp"]`` holds the record; read it with :func:`geodp.record`.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit; before anything is spent.
    BudgetExceeded
        The ledger's ceiling would be passed.

    Notes
    -----
    With c = ``cap``, m = ``rows_per_cell`` and K cells, one subject more or less moves the counts by at
    most L1 = m·min(c, K) and L2 = m·sqrt(min(c, K)). The noise is the discrete Laplace of scale L1/eps, or
    the Gaussian of Balle and Wang (2018) rounded to integers [1]_, whichever has the smaller standard
    deviation.

    References
    ----------
    .. [1] Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy:
       analytical calibration and optimal denoising. ICML.

    Examples
    --------
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> heat = heatmap(trips, 1.0, subject="rider", cap=2, bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> heat.index.name, heat["noisy_count"].dtype
    ('h3_05', dtype('int64'))
    """
    with showing(progress):
        chosen = plan(
            eps,
            delta,
            query=Count(),
            subject=subject,
            cap=cap,
            rows_per_cell=rows_per_cell,
            contribution=contribution,
            neighboring=neighboring,
            population=population,
            bounds=bounds,
            outside=outside,
            grid=grid,
            by=by,
            estimator=estimator,
            rescale=rescale,
            return_geometry=return_geometry,
            mechanism=mechanism,
            criterion=criterion,
            strategy=strategy,
            cells=cells,
            threshold=threshold,
            phantoms=phantoms,
        )
    return chosen.release(gdf, ledger=ledger, label=label, retry=retry, reason=reason, progress=progress)


def sum(
    gdf: gpd.GeoDataFrame,
    column: str,
    eps: "float | Budget",
    delta: float = 0,
    *,
    value_bounds: Any,
    clip: Any = None,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    estimator: str = "pyramid",
    return_geometry: bool = True,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> gpd.GeoDataFrame:
    """Add up a column per cell, with differential privacy.

    Each record is clamped to ``value_bounds`` and rounded toward zero to a lattice; each subject's whole
    vector over cells is bounded; integers are added, and integer noise is drawn on the lattice.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS. Rows without a finite value are left out too.
    column : str
        Numeric column to add up.
    eps, delta : float
        Budget, as in :func:`geodp.heatmap`.
    value_bounds : two numbers
        Public (low, high) of one record, in the column's unit. Never taken from the rows.
    clip : number, optional
        Bound on the norm of one subject's vector: L2 under Gaussian noise, L1 under Laplace. By default what
        the cap implies, which changes no value; a smaller clip trades bias for less noise.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who is protected, as in :func:`geodp.heatmap`. The cap comes before any clip.
    bounds, outside, grid
        Where, as in :func:`geodp.heatmap`.
    by, estimator, return_geometry, mechanism, criterion
        What and how, as in :func:`geodp.heatmap`.
    ledger, label, retry, reason, progress
        The books, as in :func:`geodp.heatmap`.

    Returns
    -------
    GeoDataFrame
        As :func:`geodp.heatmap`, with columns

        sum : float64
            Made for the map; non-negative where the values are.
        noisy_sum : float64
            The measurement: signed, the one to add up.
        lower, upper : float64
            95 % interval of the noise around ``noisy_sum``, uncut.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit; before anything is spent.

    Notes
    -----
    With B = max(abs(low), abs(high)) one subject more or less moves the sums by L1 = m·B·c' and
    L2 = m·B·sqrt(c'). Values in [10, 20] move a sum by 20, not 10. Under ``replace_one`` values of one sign
    give what counts give, and signed values twice both norms.

    Examples
    --------
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"], "minutes": [5, 20, 9]}, geometry=points, crs=4326)
    >>> total = sum(trips, "minutes", 1.0, value_bounds=(0, 120), subject="rider", cap=1,
    ...             bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> total["noisy_sum"].dtype
    dtype('float64')
    """
    chosen = plan(
        eps,
        delta,
        query=Sum(column, value_bounds, clip),
        subject=subject,
        cap=cap,
        rows_per_cell=rows_per_cell,
        contribution=contribution,
        neighboring=neighboring,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
        by=by,
        estimator=estimator,
        return_geometry=return_geometry,
        mechanism=mechanism,
        criterion=criterion,
    )
    return chosen.release(gdf, ledger=ledger, label=label, retry=retry, reason=reason, progress=progress)


def mean(
    gdf: gpd.GeoDataFrame,
    column: str,
    eps: "float | Budget",
    delta: float = 0,
    *,
    value_bounds: Any,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    estimator: str = "pyramid",
    return_geometry: bool = True,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> gpd.GeoDataFrame:
    """Average a column per cell, with differential privacy.

    A centred sum and a count of the same sampled rows are measured in one joint release; the split of the
    budget makes the mean's error small.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS. Rows without a finite value are left out too.
    column : str
        Numeric column to average.
    eps, delta : float
        Budget of the whole release, as in :func:`geodp.heatmap`.
    value_bounds : two numbers
        Public (low, high) of one record, in the column's unit. Never taken from the rows.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who is protected, as in :func:`geodp.heatmap`. The cap comes before any clip.
    bounds, outside, grid
        Where, as in :func:`geodp.heatmap`.
    by, estimator, return_geometry, mechanism, criterion
        What and how, as in :func:`geodp.heatmap`.
    ledger, label, retry, reason, progress
        The books, as in :func:`geodp.heatmap`.

    Returns
    -------
    GeoDataFrame
        As :func:`geodp.heatmap`, with columns

        mean : float64
            Within the bounds and finite everywhere; cells that are mostly noise are drawn to the overall mean.
        lower, upper : float64
            95 % interval of the noise around the mean, from the exact joint law; the whole range where the
            count is lost in its noise. It covers noise, not the cap.
        count : int64
            Made for the map.
        noisy_sum, noisy_count : float64, int64
            The measurements: of a region, the mean is the ratio of their sums.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit; before anything is spent.

    Examples
    --------
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"], "minutes": [5, 20, 9]}, geometry=points, crs=4326)
    >>> dwell = mean(trips, "minutes", 1.0, value_bounds=(0, 120), subject="rider", cap=1,
    ...              bounds=(-74.1, 40.6, -73.8, 40.9), grid="h3:5")
    >>> bool(dwell["mean"].between(0, 120).all())
    True
    """
    chosen = plan(
        eps,
        delta,
        query=Mean(column, value_bounds),
        subject=subject,
        cap=cap,
        rows_per_cell=rows_per_cell,
        contribution=contribution,
        neighboring=neighboring,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
        by=by,
        estimator=estimator,
        return_geometry=return_geometry,
        mechanism=mechanism,
        criterion=criterion,
    )
    return chosen.release(gdf, ledger=ledger, label=label, retry=retry, reason=reason, progress=progress)


def centroid(
    gdf: gpd.GeoDataFrame,
    eps: "float | Budget",
    delta: float = 0,
    *,
    n: int | None = None,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    estimator: str = "pyramid",
    return_geometry: bool = True,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    # books
    ledger: "Ledger | None" = None,
    label: str | None = None,
    retry: bool = False,
    reason: str | None = None,
    # bars
    progress: bool = True,
) -> gpd.GeoDataFrame:
    """Return the mean place of the people in each zone or cell, or in the whole box.

    Parameters
    ----------
    gdf : GeoDataFrame
        Points in any CRS.
    eps, delta : float
        Budget of the whole release, as in :func:`geodp.heatmap`.
    n : int, optional
        Public number of people, for one centroid over the box with ``cap=1``: then no budget goes into
        counting them.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who is protected, as in :func:`geodp.heatmap`. The cap comes before any clip.
    bounds, outside, grid
        Where, as in :func:`geodp.heatmap`; without a grid the whole box is one cell.
    by, estimator, return_geometry, mechanism, criterion
        What and how, as in :func:`geodp.heatmap`.
    ledger, label, retry, reason, progress
        The books, as in :func:`geodp.heatmap`.

    Returns
    -------
    GeoDataFrame
        One point per cell, EPSG:4326, with columns ``lon``, ``lat``, ``error_m`` (metres within which the
        centroid of the sampled points lies at 95 % or more), and ``count`` and ``noisy_count`` unless ``n`` is given.

    Raises
    ------
    TypeError, ValueError
        A bad argument, or a frame whose schema does not fit; before anything is spent.

    Notes
    -----
    Each record is a vector from the middle of its cell's box over the half-diagonal, of length at most 1:
    L2 = m·sqrt(c') for the pair of coordinates, jointly with the count.

    Examples
    --------
    >>> points = gpd.points_from_xy([-73.99, -73.98, -73.95], [40.73, 40.75, 40.78])
    >>> trips = gpd.GeoDataFrame({"rider": ["a", "a", "b"]}, geometry=points, crs=4326)
    >>> middle = centroid(trips, 1.0, subject="rider", cap=1, bounds=(-74.1, 40.6, -73.8, 40.9))
    >>> middle.geom_type.tolist()
    ['Point']
    """
    chosen = plan(
        eps,
        delta,
        query=Centroid(n),
        subject=subject,
        cap=cap,
        rows_per_cell=rows_per_cell,
        contribution=contribution,
        neighboring=neighboring,
        population=population,
        bounds=bounds,
        outside=outside,
        grid=grid,
        by=by,
        estimator=estimator,
        return_geometry=return_geometry,
        mechanism=mechanism,
        criterion=criterion,
    )
    return chosen.release(gdf, ledger=ledger, label=label, retry=retry, reason=reason, progress=progress)


def plan(
    eps: "float | Budget",
    delta: float = 0,
    *,
    query: Query | None = None,
    # who
    subject: str | EachRow | None = None,
    cap: int | str | None = None,
    rows_per_cell: int = 1,
    contribution: str = "sample",
    neighboring: str = "add_remove_one",
    population: int | None = None,
    # where
    bounds: Any = None,
    outside: str = "clamp",
    grid: "Grid | str | None" = None,
    # what
    by: Any = None,
    estimator: str = "pyramid",
    rescale: bool | int = False,
    return_geometry: bool = True,
    # how
    mechanism: str = "auto",
    criterion: str = "std",
    strategy: str = "flat",
    cells: str = "all",
    threshold: int | None = None,
    phantoms: float | None = None,
) -> Plan:
    """Decide a release without reading any data, and without spending anything.

    Parameters
    ----------
    eps, delta : float
        The budget to be asked for.
    query : Query, optional
        :class:`geodp.Count` by default.
    subject, cap, rows_per_cell, contribution, neighboring, population
        Who is protected, as in :func:`geodp.heatmap`.
    bounds, outside, grid
        Where, as in :func:`geodp.heatmap`.
    by, estimator, rescale, return_geometry, mechanism, criterion, strategy, cells, threshold, phantoms
        What and how, as in :func:`geodp.heatmap`.

    Returns
    -------
    Plan
        Prints what the release will look like; ``plan.release(gdf)`` makes it.

    Examples
    --------
    >>> chosen = plan(1.0, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
    >>> chosen.mechanism, chosen.l1, round(chosen.noise_std, 2)
    ('laplace', 4.0, 5.64)
    """
    policy = Policy(
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
    ways = Ways(
        mechanism=mechanism,
        criterion=criterion,
        estimator=estimator,
        strategy=strategy,
        cells=cells,
        threshold=threshold,
        phantoms=phantoms,
        return_geometry=return_geometry,
        rescale=rescale,
    )
    return make_plan(policy, eps, delta, Count() if query is None else query, by, ways)
