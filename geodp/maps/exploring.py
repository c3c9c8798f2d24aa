"""``geodp.explore``: a release on a map to walk around in, with folium."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geodp.maps import drawing
from geodp.maps.outlines import are_points, in_view, outlines
from geodp.maps.pictures import Picture, picture, switch
from geodp.maps.plotting import needs
from geodp.maps.scales import HATCHED, UNTOLD
from geodp.maps.sheets import turned_sheet
from geodp.maps.slotted import Slot, slots_of
from geodp.maps.words import EDGE, row_names, tooltips

if TYPE_CHECKING:
    import folium

__all__ = ["explore"]

_MOST_ROWS = 60_000
_HATCH = "geodp-hatch"
_POINT_RADIUS = 5
_OPAQUE, _CLEAR = 0.85, 0.6
_MERCATOR = 85.0  # degrees of latitude
_DEGREES = "EPSG4326"


def explore(
    frame: pd.DataFrame,
    column: str | None = None,
    *,
    slot: Any = None,
    error: bool = False,
    rule: str = "simultaneous",
    level: object = 0.95,
    tiles: Any = "OpenStreetMap",
    cmap: Any = None,
    legend: bool = True,
) -> "folium.Map":
    """Draw a release on an interactive map so that noise is not taken for data.

    Parameters
    ----------
    frame, column, slot, error, rule, level, cmap
        As in :func:`geodp.plot`. Several slots become layers, of which one is shown at a time.
    tiles : str, xyzservices.TileProvider or None, default "OpenStreetMap"
        The base map, as folium takes it; it is drawn pale and without colour, so that colours can be read. The
        reader's browser fetches it from its maker's servers; ``None`` draws none. Python itself reads nothing from
        the network, but the page loads Leaflet from its usual servers; :func:`geodp.to_html` writes a page
        that loads nothing.
    legend : bool, default True
        Whether to say on the map what is counted, eps, delta, the half-width, and what colours stand for.

    Returns
    -------
    folium.Map
        Shown by notebooks; ``.save("heat.html")`` writes it. Pointing at a cell shows its id, count and interval.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.
    ImportError
        folium is not installed.
    TypeError, ValueError
        The frame has no outlines, no such column or slot, a bad rule or level, more than 60,000 rows, or tiles for
        cells beyond 85 degrees of latitude, where base maps end.

    Notes
    -----
    Coordinates are rounded to a thousandth of a cell, which makes 10,000 cells about 3 MB. Where cells lie
    beyond 85 degrees of latitude, where web maps end, ``tiles=None`` draws degrees of longitude and latitude at
    right angles; :func:`geodp.plot` draws a pole from above.

    Examples
    --------
    >>> import geopandas as gpd
    >>> import geodp
    >>> points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    >>> page = explore(heat, tiles=None).get_root().render()
    >>> "map estimate" in page, "eps 1, delta 0" in page
    (True, True)
    """
    needs("folium")
    import folium

    switch(legend, "legend")
    shows = picture(frame, column, error=error, rule=rule, level=level)
    parts = slots_of(shows.rows, slot)
    _check_size(parts)
    lonlat = outlines(shows.rows)
    around = in_view(shows.rows, lonlat)
    placed = turned_sheet(around).place(around)
    shapes = _rounded(placed[: len(lonlat)])
    colours = shows.scale.colours(drawing.anchors(cmap))
    page = folium.Map(tiles=None, control_scale=True, crs=_projection(lonlat, tiles))
    if tiles is not None:
        _base_map(tiles).add_to(page)
    for number, part in enumerate(parts):
        layer = _layer(
            shows.only(part.rows), shapes[part.rows], colours, part.name, number == 0, are_points(lonlat)
        )
        layer.add_to(page)
    if len(parts) > 1:
        folium.LayerControl(collapsed=False).add_to(page)
    _look_at(page, placed, math.inf if page.crs == _DEGREES else _MERCATOR)
    _add_html(page, _panel(shows, colours, legend, blank=tiles is None))
    return page


def _check_size(parts: Sequence[Slot]) -> None:
    rows = sum(int(part.rows.sum()) for part in parts)
    if rows > _MOST_ROWS:
        which = " in all slots; name one with slot=" if len(parts) > 1 else ""
        raise ValueError(
            f"{rows:,} rows{which}: a browser shows up to {_MOST_ROWS:,} this way. geodp.to_html writes a page for "
            "more, geodp.plot a picture."
        )


def _projection(lonlat: NDArray[np.object_], tiles: Any) -> str:
    """Return what the page is drawn in: degrees where cells lie beyond the ends of web maps, which would hide them."""
    if not np.nanmax(np.abs(shapely.bounds(lonlat).reshape(-1, 4)[:, [1, 3]]), initial=0.0) > _MERCATOR:
        return "EPSG3857"
    if tiles is not None:
        raise ValueError(
            "base maps end at 85 degrees of latitude, and cells lie beyond: tiles=None draws the map without one, "
            "in degrees; geodp.plot draws poles from above, geodp.to_html a page."
        )
    return _DEGREES


def _base_map(tiles: Any) -> Any:
    import folium

    if not isinstance(tiles, str) and not hasattr(tiles, "build_url"):
        raise TypeError(
            f"tiles must be a name, an address, an xyzservices.TileProvider or None; got {type(tiles).__name__}."
        )
    layer = folium.TileLayer(tiles, control=False)
    said = [layer.tiles, *(text for text in layer.options.values() if isinstance(text, str))]
    if any(mark in text for text in said for mark in ("{{", "{%", "{#")):
        raise ValueError(
            'tiles: the address or attribution holds "{{", "{%" or "{#", which folium would run as a template.'
        )
    return layer


def _layer(
    shows: Picture,
    shapes: NDArray[np.object_],
    colours: Sequence[str],
    name: str,
    first: bool,
    points: bool,
) -> Any:
    """Return one slot as a layer: the cells with what they say, and the hatching of the border."""
    import folium

    group = folium.FeatureGroup(name=_text(name) or None, overlay=not name, show=first)
    features = _features(shows, shapes)
    if not features:
        return group
    palette = [*colours, UNTOLD]
    faces = {str(number): palette[place] for number, place in enumerate(shows.classes.tolist())}
    told = {str(number): told for number, told in enumerate(shows.told.tolist())}

    def style(feature: Any) -> dict[str, Any]:
        face, seen = faces[feature["id"]], told[feature["id"]]
        if points:
            edge = "#ffffff" if seen else "#777777"
            return {"fillColor": face, "color": edge, "weight": 1, "fillOpacity": _OPAQUE if seen else 0.0}
        return {
            "fillColor": face,
            "color": "#ffffff",
            "weight": 0.4,
            "fillOpacity": _OPAQUE if seen else _CLEAR,
        }

    folium.GeoJson(
        {"type": "FeatureCollection", "features": features},
        style_function=style,
        tooltip=folium.GeoJsonTooltip(["cell", "says"], labels=False, sticky=True),
        marker=folium.CircleMarker(radius=_POINT_RADIUS, fill=True) if points else None,
        smooth_factor=0,
    ).add_to(group)
    if shows.edge.any() and not points:
        _hatching(shapes[shows.edge]).add_to(group)
    return group


def _features(shows: Picture, shapes: NDArray[np.object_]) -> list[dict[str, Any]]:
    """Return GeoJSON features with the text of each cell; rows without a geometry are not drawn."""
    import json

    names = row_names(shows.rows.frame.index)
    says = tooltips(shows.rows, shows.told)
    texts = shapely.to_geojson(shapes).tolist()
    return [
        {
            "type": "Feature",
            "id": str(number),
            "properties": {"cell": _text(name), "says": _text(text)},
            "geometry": json.loads(geometry),
        }
        for number, (name, text, geometry) in enumerate(zip(names, says, texts, strict=True))
        if geometry is not None
    ]


def _hatching(shapes: NDArray[np.object_]) -> Any:
    """Return the border's hatching, which the mouse looks through."""
    import json

    import folium

    border = json.loads(shapely.to_geojson(shapely.union_all(shapes)))
    return folium.GeoJson(
        {"type": "Feature", "properties": {}, "geometry": border},
        style_function=lambda feature: {"fillColor": f"url(#{_HATCH})", "fillOpacity": 1.0, "stroke": False},
        interactive=False,
    )


def _rounded(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Round coordinates to a thousandth of the median cell, or to a metre for points."""
    west, south, east, north = shapely.bounds(shapes).reshape(-1, 4).T
    size = np.maximum(east - west, north - south)
    size = size[np.isfinite(size) & (size > 0)]
    typical = float(np.median(size)) if len(size) else 0.01
    digits = int(np.clip(math.ceil(-math.log10(typical)) + 3, 1, 9))
    out: NDArray[np.object_] = shapely.transform(shapes, lambda xy: np.round(xy, digits))
    return out


def _look_at(page: Any, shapes: NDArray[np.object_], end: float) -> None:
    west, south, east, north = drawing.view(shapes)
    south, north = max(south, -end), min(north, end)
    page.fit_bounds([[south, west], [max(north, south), east]])


def _panel(shows: Picture, colours: Sequence[str], legend: bool, blank: bool) -> str:
    """Return the legend and the stamp, as HTML over the map; a base map is pale, and without one the paper is white."""
    pattern = (
        '<svg width="0" height="0" style="position:absolute"><defs>'
        f'<pattern id="{_HATCH}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<line x1="0" y1="0" x2="0" y2="6" stroke="{HATCHED}" stroke-width="1.6" stroke-opacity="0.6"/>'
        "</pattern></defs></svg>"
    )
    pale = ".leaflet-tile-pane{filter:grayscale(1) opacity(.55)}"
    paper = f"<style>{'.leaflet-container{background:#fff}' if blank else pale}</style>"
    return paper + pattern + _stamped(shows) + (_legend(shows, colours) if legend else "")


def _stamped(shows: Picture) -> str:
    if shows.stamp is None:
        return ""
    return (
        '<div style="position:fixed;top:10px;left:50%;transform:translateX(-50%);z-index:1000;padding:4px 14px;'
        'background:#b22222;color:white;font:bold 18px sans-serif">'
        f"{_text(shows.stamp)}</div>"
    )


def _legend(shows: Picture, colours: Sequence[str]) -> str:
    entries = list(zip(colours, shows.labels, strict=True))[::-1] if shows.told.any() else []
    if not shows.told.all():
        entries.append((UNTOLD, shows.untold))
    if shows.edge.any():
        stripes = f"repeating-linear-gradient(135deg,{HATCHED} 0 1.5px,transparent 1.5px 5px)"
        entries.append((stripes, EDGE))
    colour = "".join(
        f'<div style="display:flex;gap:6px"><span style="flex:none;width:18px;height:12px;margin-top:2px;'
        f'background:{face};opacity:{_OPAQUE}"></span><span>{_text(label)}</span></div>'
        for face, label in entries
    )
    said = "".join(f"<div>{_text(line)}</div>" for line in [shows.heading, *shows.lines])
    return (
        '<div style="position:fixed;bottom:26px;right:10px;z-index:1000;max-width:300px;max-height:70vh;overflow:auto;'
        "padding:8px 10px;background:rgba(255,255,255,.92);border-radius:4px;color:#333;font:12px/1.4 sans-serif;"
        f'box-shadow:0 1px 4px rgba(0,0,0,.3)"><b>{_text(shows.title)}</b>{said}'
        f'<div style="margin-top:6px">{colour}</div></div>'
    )


def _add_html(page: Any, html: str) -> None:
    import folium

    page.get_root().html.add_child(folium.Element(html))


def _text(text: str) -> str:
    """Return text as HTML that is no template either: folium renders scripts and HTML with Jinja, names and all."""
    return escape(text).replace("{", "&#123;").replace("}", "&#125;")
