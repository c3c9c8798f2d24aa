"""``geodp.plot``: a release on paper, with matplotlib."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geodp.maps import drawing
from geodp.maps.outlines import are_points, in_view, outlines
from geodp.maps.pictures import Picture, heading, picture, switch
from geodp.maps.sheets import Sheet, lay_out
from geodp.maps.slotted import Slot, asks_for_one, slots_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plate", "draw_on", "figure_of", "figure_size", "needs", "new_figure", "plot", "settle"]

_LEGEND = 3.0  # inches
_WIDEST, _HIGHEST = 7.0, 6.5
_MOST_PANELS = 400


def plot(
    frame: pd.DataFrame,
    column: str | None = None,
    *,
    slot: Any = None,
    error: bool = False,
    rule: str = "simultaneous",
    level: object = 0.95,
    ax: "Axes | None" = None,
    cmap: Any = None,
    legend: bool = True,
    title: str | None = None,
) -> "Axes | NDArray[np.object_]":
    """Draw a release so that noise is not taken for data.

    Parameters
    ----------
    frame : GeoDataFrame
        A release with outlines (or points, of centroids), in any CRS, read back from GeoParquet or not; or rows
        picked out of one, ``heat[heat["count"] > 5]``, and then the legend says how many.
    column : str, optional
        A released number. By default the one made for maps: ``count``, ``weighted_count``, ``sum``, ``mean``;
        places of centroids are coloured by their ``count``.
    slot : level, tuple of levels, or mapping, optional
        Of a release with ``by``: one slot, ``7``, ``(7, "mon")`` or ``{"hour": 7}``; a mapping may name several
        levels, ``{"hour": [7, 8, 9]}``, or only some columns. All slots by default, on one colour scale.
    error : bool, default False
        Draw how far the noise reaches: of counts and sums the half-width of the 95 % interval in percent of the
        measurement, of means in the column's unit, of centroids in metres.
    rule : {"simultaneous", "fdr"}
        Which cells are told from zero, as in :func:`geodp.readable`. All others are grey, never a faint colour.
    level : float, default 0.95
        Of the rule.
    ax : matplotlib Axes, optional
        Where to draw one map; a new figure by default.
    cmap : str or Colormap, optional
        Colours, from the lowest class to the highest; diverging where values have either sign.
    legend : bool, default True
        Whether to say beside the map what is counted, eps, delta, the half-width, and what colours stand for.
    title : str, optional
        By default what is counted, for each what.

    Returns
    -------
    Axes, or array of Axes
        One map; or, with several slots, shape (n,), in the order of the slots.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        The frame has no outlines, no such column or slot, a bad rule or level, or ``ax`` for several slots.

    Notes
    -----
    Colours change at round numbers, cut from released numbers alone; the largest and the smallest have no say, so one
    spike of noise changes the colour of one cell. Cells on the border of a clamped box are hatched. Longitudes
    run on past 180 where that keeps the map together (Fiji), and a map around a pole is drawn from above: then
    the axes are degrees from the pole, and other layers cannot be added in longitude and latitude. For orientation
    the coast is drawn, from Natural Earth's lines in this package, where a map is at least 1.5 degrees wide.

    A new figure is made with pyplot, so that notebooks show it, but figure and axes that were current stay so: save
    it by ``ax.figure.savefig(path)``. No rcParams are set, and nothing is read from the network.

    Examples
    --------
    >>> import geopandas as gpd
    >>> from matplotlib.figure import Figure
    >>> import geodp
    >>> points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> plot(heat, ax=Figure().add_subplot()).get_title(loc="left")
    'distinct whos per square of 0.5°'
    """
    needs("matplotlib")
    switch(legend, "legend")
    title = heading(title)
    shows = picture(frame, column, error=error, rule=rule, level=level)
    alone = asks_for_one(shows.rows, slot)
    parts = slots_of(shows.rows, slot)
    plate = Plate.of(shows, cmap)
    if ax is not None:
        if not alone:
            raise ValueError(
                "ax= takes one map, and this release has slots: name one, slot=" + f"{parts[0].value!r}, "
                "or leave ax out."
            )
        drawn = plate.draw(ax, parts[0], title)
        if legend:
            plate.explain(ax, loc="upper left", bbox_to_anchor=(1.02, 1.0))
        return drawn
    figure = new_figure(plate.size(len(parts), legend))
    axes = draw_on(figure, plate, parts, legend=legend, title=title)
    return axes[0] if alone else axes


@dataclass(frozen=True, eq=False)
class Plate:
    """All that maps of one picture share: where it lies, and its colours.

    Attributes
    ----------
    shows : Picture
    shapes : object array
        Geometry of every row, in the sheet's coordinates.
    sheet : Sheet
    bounds : tuple of float
        What is in view.
    colours : tuple of str
        Of the classes.
    points : bool
        Whether rows are places, not cells.
    """

    shows: Picture
    shapes: NDArray[np.object_]
    sheet: Sheet
    bounds: tuple[float, float, float, float]
    colours: tuple[str, ...]
    points: bool

    @classmethod
    def of(cls, shows: Picture, cmap: Any = None, *, beside: Sequence[Picture] = ()) -> "Plate":
        """Lay a picture out on a sheet: the same one for all pictures that it is put ``beside``."""
        lonlat = outlines(shows.rows)
        around = np.concatenate([in_view(shows.rows, lonlat), *(outlines(other.rows) for other in beside)])
        sheet = lay_out(around)
        placed = sheet.place(around)
        colours = shows.scale.colours(drawing.anchors(cmap))
        return cls(shows, placed[: len(lonlat)], sheet, drawing.view(placed), colours, are_points(lonlat))

    def size(self, panels: int, legend: bool) -> tuple[float, float]:
        """Return inches for a figure of some panels."""
        west, south, east, north = self.bounds
        return figure_size(east - west, (north - south) * self.sheet.aspect(self.bounds), panels, legend)

    def draw(self, ax: "Axes", part: Slot, title: str | None) -> "Axes":
        """Draw one slot on axes."""
        shows, shapes = self.shows.only(part.rows), self.shapes[part.rows]
        if self.points:
            drawing.draw_points(ax, shows, shapes, self.colours)
        else:
            drawing.draw_cells(ax, shows, shapes, self.colours, self.bounds)
        drawing.draw_coast(ax, self.sheet, self.bounds)
        named = f"{shows.title}, {part.name}" if part.name else shows.title
        drawing.dress(ax, self.sheet, self.bounds, named if title is None else title, shows.stamp)
        return ax

    def explain(self, place: Any, **where: Any) -> None:
        """Put the legend on axes or on a figure."""
        handles, labels = drawing.legend_entries(self.shows, self.colours, self.points)
        drawing.put_legend(place, handles, labels, drawing.legend_text(self.shows), **where)


def figure_of(frame: pd.DataFrame) -> "Figure":
    """Return a release on a figure that pyplot knows nothing of: for files. Of very many slots the first are drawn.

    A file is written when the budget is spent, so this does not raise for what a release can be.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plate = Plate.of(picture(frame))
    parts = slots_of(plate.shows.rows)
    drawn = parts[:_MOST_PANELS]
    left_out = f", the first {len(drawn)} of {len(parts):,} slots" if len(drawn) < len(parts) else ""
    figure = Figure(figsize=plate.size(len(drawn), True), layout="compressed", facecolor="white")
    FigureCanvasAgg(figure)
    draw_on(figure, plate, drawn, title=plate.shows.title + left_out)
    return figure


def draw_on(
    figure: "Figure", plate: Plate, parts: Sequence[Slot], *, legend: bool = True, title: str | None = None
) -> "NDArray[np.object_]":
    """Draw one map for each slot on a figure with compressed layout, all on one scale; return the axes."""
    if len(parts) > _MOST_PANELS:
        raise ValueError(f"{len(parts):,} slots are more than {_MOST_PANELS} maps; name some with slot=.")
    if legend:
        plate.explain(figure, loc="outside right upper")
    axes = np.empty(len(parts), dtype=object)
    if len(parts) == 1:
        axes[0] = plate.draw(figure.add_subplot(), parts[0], title)
        settle(figure)
        return axes
    columns = _columns(len(parts))
    grid = figure.subplots(math.ceil(len(parts) / columns), columns, squeeze=False).ravel()
    for number, part in enumerate(parts):
        axes[number] = plate.draw(grid[number], part, part.name)
        axes[number].tick_params(labelbottom=False, labelleft=False, length=0)
        axes[number].title.set_fontsize(8)
    for place in grid[len(parts) :]:
        place.remove()
    named = plate.shows.title if title is None else title
    drawing.literal(figure.suptitle(named, x=0.01, ha="left", fontsize=11))
    settle(figure)
    return axes


def needs(package: str) -> Any:
    """Import a package of the ``plot`` extra, or say how to get it.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        if missing.name != package:
            raise
        raise ImportError(
            f"this map is drawn with {package}, which is not installed: pip install 'geodp[plot]'.",
            name=package,
        ) from None


def new_figure(size: tuple[float, float], *, returned: bool = False) -> "Figure":
    """Return a new figure that notebooks show, once; figure and axes that were current stay so.

    ``returned``: the call's value is the figure. Notebooks show values, so pyplot, which shows its figures at the
    end of a cell, is not told of it there.
    """
    import matplotlib
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    before = plt.gcf() if plt.get_fignums() else None
    if returned and "inline" in matplotlib.get_backend():
        return Figure(figsize=size, layout="compressed", facecolor="white")
    figure = plt.figure(figsize=size, layout="compressed", facecolor="white")
    if before is not None:
        plt.figure(before)
    return figure


def settle(figure: "Figure") -> None:
    """Lay the figure out once: with fixed aspects a layout settles in its second round, when it is shown."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def figure_size(width: float, height: float, panels: int, legend: bool) -> tuple[float, float]:
    """Return inches for a map of some width and height, in equal units, once for each panel."""
    columns = _columns(panels)
    lines = math.ceil(panels / columns)
    ratio = float(np.clip(height / width, 0.2, 3.0))
    wide = min(_WIDEST / columns, _HIGHEST / lines / ratio) if panels == 1 else max(1.3, 9.0 / columns)
    beside = _LEGEND if legend else 0.0
    return columns * wide + beside + 0.6, max(lines * (wide * ratio + 0.3) + 0.4, 3.4 if legend else 1.5)


def _columns(panels: int) -> int:
    return math.ceil(math.sqrt(panels * 1.4)) if panels > 3 else panels
