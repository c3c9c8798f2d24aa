"""One map on matplotlib axes: cells in their colours, the border hatched, a frame of degrees, and a legend.

Nothing here reads or sets rcParams: what is drawn looks the same in every notebook.
"""

import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geodp.maps.coasts import coastline
from geodp.maps.pictures import Picture
from geodp.maps.scales import HATCHED, UNTOLD
from geodp.maps.sheets import Sheet
from geodp.maps.words import EDGE
from geodp.testing import NOT_PRIVATE

__all__ = [
    "INK",
    "anchors",
    "draw_cells",
    "draw_coast",
    "draw_points",
    "dress",
    "legend_entries",
    "legend_text",
    "literal",
    "paths",
    "put_legend",
    "view",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Shapes = NDArray[np.object_]
Bounds = tuple[float, float, float, float]

_FEW = 3000  # cells that get a white line between them
INK, _FAINT = "#333333", "#8c8c8c"
_SMALL = 8.0
_TOO_SMALL = 1 / 300  # of the map's width


def anchors(cmap: Any, n: int = 9) -> tuple[str, ...] | None:
    """Return colours along a colormap, by name or as an object; None for the default."""
    if cmap is None:
        return None
    import matplotlib
    from matplotlib.colors import Colormap, to_hex

    if not isinstance(cmap, str | Colormap):
        raise TypeError(
            f"cmap must be the name of a matplotlib colormap or a Colormap, got {type(cmap).__name__}."
        )
    try:
        found = matplotlib.colormaps[cmap] if isinstance(cmap, str) else cmap
    except KeyError:
        raise ValueError(
            f"cmap={cmap!r} is no matplotlib colormap; see list(matplotlib.colormaps)."
        ) from None
    return tuple(to_hex(found(place)) for place in np.linspace(0, 1, n))


def paths(shapes: Shapes) -> list[Any]:
    """Return a matplotlib path for each polygon or multipolygon; an empty one for what is neither."""
    from matplotlib.path import Path

    whole = shapely.orient_polygons(shapes, exterior_cw=False)
    parts, row_of_part = shapely.get_parts(whole, return_index=True)
    rings, part_of_ring = shapely.get_rings(parts, return_index=True)
    coords, ring = shapely.get_coordinates(rings, return_index=True)
    codes = np.full(len(coords), Path.LINETO, dtype=Path.code_type)
    change = np.flatnonzero(np.diff(ring, prepend=-1))
    codes[change] = Path.MOVETO
    if len(coords):
        codes[np.append(change[1:], len(coords)) - 1] = Path.CLOSEPOLY
    row = row_of_part[part_of_ring[ring]]
    ends = np.searchsorted(row, np.arange(len(shapes) + 1))
    return [Path(coords[start:end], codes[start:end]) for start, end in pairwise(ends)]


def draw_cells(ax: Any, shows: Picture, shapes: Shapes, colours: Sequence[str], bounds: Bounds) -> None:
    """Draw the outlines of rows in their colours; what is too small to be seen gets a dot."""
    from matplotlib.collections import PathCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not len(shapes):
        ax.text(
            0.5, 0.5, "no cell was released", transform=ax.transAxes, ha="center", va="center", color=_FAINT
        )
        return
    faces = _faces(shows, colours)
    lines = paths(shapes)
    few = len(shapes) <= _FEW
    cells = PathCollection(
        lines,
        facecolors=faces,
        edgecolors="white" if few else faces,
        linewidths=0.4 if few else 0.2,
        antialiaseds=True,
    )
    ax.add_collection(cells, autolim=False)
    if shows.edge.any():
        border = Path.make_compound_path(*(lines[row] for row in np.flatnonzero(shows.edge)))
        ax.add_patch(
            PathPatch(border, facecolor="none", edgecolor=HATCHED, linewidth=0, hatch="////", alpha=0.6)
        )
    if shows.rows.facts.get("cells", "all") != "all":
        _draw_dots(ax, shapes, faces, bounds)


def draw_points(ax: Any, shows: Picture, shapes: Shapes, colours: Sequence[str]) -> None:
    """Draw rows that are places as discs; where the place cannot be told, as empty rings."""
    xy = shapely.get_coordinates(shapes)
    present = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    faces = np.array(_faces(shows, colours), dtype=object)[present]
    told = shows.told[present]
    size = float(np.clip(4000 / max(len(xy), 1), 6, 60))
    ax.scatter(*xy[~told].T, s=size, facecolors="none", edgecolors=_FAINT, linewidths=0.6, zorder=2)
    ax.scatter(*xy[told].T, s=size, c=list(faces[told]), edgecolors="white", linewidths=0.4, zorder=3)


def draw_coast(ax: Any, sheet: Sheet, bounds: Bounds) -> None:
    """Draw the coast as thin lines, for orientation, where the map is large enough for what they can say."""
    from matplotlib.collections import LineCollection

    west, south, east, north = bounds
    if sheet.pole:
        edge = 90.0 - max(map(abs, bounds))
        west, south, east, north = (
            (-180.0, edge, 180.0, 90.0) if sheet.pole > 0 else (-180.0, -90.0, 180.0, -edge)
        )
    held = coastline((west, south, east, north))
    if held is None:
        return
    lon, lat = held.lon / 10.0**held.digits, held.lat / 10.0**held.digits
    middle = (west + east) / 2
    lon = middle + (lon - middle + 180.0) % 360.0 - 180.0
    jumps = np.flatnonzero(np.abs(np.diff(lon)) > 180.0) + 1
    places = np.column_stack([lon, lat])
    places = sheet.xy(places) if sheet.pole else places
    lines = np.split(places, np.union1d(np.cumsum(held.corners)[:-1], jumps))
    ax.add_collection(
        LineCollection(lines, colors=INK, linewidths=0.5, alpha=0.55, zorder=1.5), autolim=False
    )


def view(shapes: Shapes) -> Bounds:
    """Return the bounds of what is in view, with a margin; the world where nothing is."""
    present = shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))]
    if len(present):
        west, south, east, north = shapely.total_bounds(present).tolist()
    else:
        west, south, east, north = -180.0, -90.0, 180.0, 90.0
    across = max(0.02 * (east - west), 0.02 * (north - south), 1e-9 * max(1.0, abs(west)), 1e-6)
    return west - across, south - across, east + across, north + across


def dress(ax: Any, sheet: Sheet, bounds: Bounds, title: str, stamp: str | None) -> None:
    """Set limits, aspect, degrees and title; stamp what protects nobody."""
    west, south, east, north = bounds
    ax.set_xlim(west, east)
    ax.set_ylim(south, north)
    ax.set_aspect(sheet.aspect(bounds))
    ax.set_facecolor("white")
    for spine in ax.spines.values():
        spine.set(color=_FAINT, linewidth=0.6)
    literal(ax.set_title(title, loc="left", fontsize=10, color=INK))
    if sheet.pole:
        _graticule(ax, sheet, bounds)
    else:
        _degrees(ax)
    if stamp is not None:
        ax.text(
            0.5,
            0.5,
            NOT_PRIVATE,
            transform=ax.transAxes,
            color="firebrick",
            alpha=0.55,
            fontsize=28,
            fontweight="bold",
            rotation=25,
            ha="center",
            va="center",
            zorder=10,
            clip_on=True,
        )


def legend_entries(shows: Picture, colours: Sequence[str], points: bool) -> tuple[list[Any], list[str]]:
    """Return handles and labels: classes from the highest down, then what cannot be told, then the border."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def mark(colour: str) -> Any:
        if points:
            return Line2D([], [], linestyle="none", marker="o", markersize=6, color=colour)
        return Patch(facecolor=colour, edgecolor="white", linewidth=0.4)

    handles = [mark(colour) for colour in reversed(colours)] if shows.told.any() else []
    labels = list(reversed(shows.labels)) if handles else []
    if not shows.told.all():
        grey = Line2D(
            [], [], linestyle="none", marker="o", markersize=6, markerfacecolor="none", color=_FAINT
        )
        handles.append(grey if points else Patch(facecolor=UNTOLD, edgecolor="white", linewidth=0.4))
        labels.append(_wrapped(shows.untold))
    if shows.edge.any() and not points:
        handles.append(Patch(facecolor="none", edgecolor=HATCHED, linewidth=0, hatch="////", alpha=0.6))
        labels.append(_wrapped(EDGE))
    return handles, labels


def legend_text(shows: Picture) -> str:
    """Return what stands above the colours."""
    head = [] if shows.stamp is None else [shows.stamp]
    return "\n".join(_wrapped(line) for line in [*head, shows.heading, *shows.lines])


def put_legend(place: Any, handles: Sequence[Any], labels: Sequence[str], text: str, **where: Any) -> Any:
    """Put a legend on axes or on a figure, with its text above the colours."""
    legend = place.legend(
        handles,
        labels,
        title=text,
        alignment="left",
        fontsize=_SMALL,
        title_fontsize=_SMALL,
        frameon=False,
        labelcolor=INK,
        borderaxespad=0.0,
        **where,
    )
    legend.get_title().set(color=INK, linespacing=1.35)
    literal(legend.get_title(), *legend.get_texts())
    return legend


def literal(*texts: Any) -> None:
    """Draw texts as they are written: a dollar or a backslash in a name is neither mathematics nor TeX."""
    for text in texts:
        text.set(parse_math=False, usetex=False)


def _wrapped(text: str, width: int = 46) -> str:
    return "\n".join(textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False))


def _faces(shows: Picture, colours: Sequence[str]) -> list[str]:
    """Return the colour of each row."""
    palette = [*colours, UNTOLD]
    return [palette[number] for number in shows.classes.tolist()]


def _draw_dots(ax: Any, shapes: Shapes, faces: Sequence[str], bounds: Bounds) -> None:
    """Mark cells far apart that are smaller than what a picture can show."""
    west, south, east, north = shapely.bounds(shapes).T
    small = np.flatnonzero(np.maximum(east - west, north - south) < _TOO_SMALL * (bounds[2] - bounds[0]))
    if len(small):
        middle = np.column_stack([west + east, south + north])[small] / 2
        colours = [faces[row] for row in small.tolist()]
        ax.scatter(*middle.T, s=14, c=colours, edgecolors=_FAINT, linewidths=0.4, zorder=3)


def _degrees(ax: Any) -> None:
    """Label the axes in degrees east, west, north and south, whatever longitudes run on to."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(_longitude))
    ax.yaxis.set_major_formatter(FuncFormatter(_latitude))
    ax.tick_params(labelsize=_SMALL, colors=_FAINT, length=2.5, width=0.6)
    ax.grid(False)


def _longitude(value: float, position: int | None = None) -> str:
    turned = round((value + 180.0) % 360.0 - 180.0, 9)
    side = "" if turned in (0.0, -180.0, 180.0) else "E" if turned > 0 else "W"
    return f"{abs(turned):.9g}°{side}"


def _latitude(value: float, position: int | None = None) -> str:
    lat = round(value, 9)
    return f"{abs(lat):.9g}°{'' if lat == 0 else 'N' if lat > 0 else 'S'}"


def _graticule(ax: Any, sheet: Sheet, bounds: Bounds) -> None:
    """Draw circles of latitude and meridians around a pole, since axes have no degrees there."""
    reach = max(map(abs, bounds))
    rounds = _rounds(reach)
    lon = np.linspace(-180.0, 180.0, 361)
    for away in rounds:
        lat = sheet.pole * (90.0 - away)
        _rule(ax, sheet.xy(np.column_stack([lon, np.full_like(lon, lat)])))
        _mark(ax, sheet.xy(np.array([[sheet.centre + 22.5, lat]])), _latitude(lat))
    for meridian in range(-180, 180, 45):
        ends = np.array([[meridian, sheet.pole * 90.0], [meridian, sheet.pole * (90.0 - rounds[-1])]])
        _rule(ax, sheet.xy(ends))
        outside = np.array([[float(meridian), sheet.pole * (90.0 - 0.94 * reach)]])
        _mark(ax, sheet.xy(outside), _longitude(meridian))
    ax.set(xticks=[], yticks=[])


def _rounds(reach: float) -> Floats:
    """Return three or four round distances up to the corners of the map."""
    power = 10.0 ** math.floor(math.log10(reach / 3))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= reach / 4)
    return np.arange(step, reach * math.sqrt(2), step)


def _rule(ax: Any, line: Floats) -> None:
    ax.plot(*line.T, color=INK, alpha=0.5, linewidth=0.4, linestyle=(0, (2, 3)), zorder=4)


def _mark(ax: Any, place: Floats, text: str) -> None:
    from matplotlib.patheffects import withStroke

    ax.text(
        *place[0],
        text,
        fontsize=6.5,
        color=INK,
        ha="center",
        va="center",
        clip_on=True,
        path_effects=[withStroke(linewidth=1.5, foreground="white")],
        zorder=5,
    )
