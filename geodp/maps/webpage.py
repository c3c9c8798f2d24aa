"""``geodp.to_html``: a release as one web page that needs no network.

Leaflet moves the map; the cells are drawn by a layer of our own, into canvas tiles, a few milliseconds at a time.
With 98,208 hexagons in Chromium without a GPU, Leaflet's own polygons took 10 s to appear and 2.8 s for each zoom,
WebGL (MapLibre) 2.4 s for each frame; the tiles appear in about 1 s and a frame takes 17 ms. The page is 1.4 MB, the
same map as GeoJSON 41 MB. ``make assets`` fetches what is taken over from elsewhere.

Everything in the page is either markup written here, escaped text, or a block of bytes, and its policy lets only
the scripts run whose digests it names: a zone called ``</script><script>`` stays a name.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

import geopandas as gpd

from geodp._version import __version__
from geodp.explaining import explain
from geodp.maps.pagedata import page_data
from geodp.maps.pictures import Picture, heading, picture, switch
from geodp.maps.scales import HATCHED, UNTOLD
from geodp.maps.words import EDGE
from geodp.testing import NOT_PRIVATE
from geodp.wording import brief, shown
from geodp.writing import check_place, replaced

__all__ = ["to_html"]

_STYLES = ("vendor/leaflet/leaflet.css", "page.css")
_VENDORED = (("leaflet/leaflet.js", ("leaflet",)), ("flatbush/flatbush.js", ("flatbush", "flatqueue")))
_OURS = ("unpack.js", "shapes.js", "cells.js", "page.js")

# On a dark ground the strongest colour is the brightest.
_DARK_SEQUENTIAL = ("#5a3175", "#8f3a80", "#c64f72", "#ee7d57", "#fbb562", "#fff3b0")
_DARK_DIVERGING = ("#b5dcff", "#5d9ad0", "#33597d", "#7d4334", "#d96a50", "#ffc0a8")
_DARK_UNTOLD, _DARK_HATCHED = "#3b3e44", "#c9c9c9"

_TILES = re.compile(r"https?://[\w.{}-]+(:\d+)?/[\w./{}?=&%@:~+,-]*", re.ASCII)
_HEAD = 12  # columns of a heading word in an explanation


def to_html(
    frame: gpd.GeoDataFrame,
    path: str | os.PathLike[str],
    column: str | None = None,
    *,
    error: bool = False,
    rule: str = "simultaneous",
    level: object = 0.95,
    title: str | None = None,
    coastlines: bool = True,
    tiles: str | None = None,
    attribution: str | None = None,
) -> Path:
    """Write a release as an interactive map: one file that opens in any browser, without a network.

    Cells that cannot be told from zero are grey, border cells are hatched, and pointing at a cell shows its
    number, the measurement and its interval. The legend states eps, delta and the half-width; the record and
    its explanation can be opened on the page. Slots become sliders and lists. 100,000 cells move smoothly
    without a graphics card. The file appears when it is complete.

    Parameters
    ----------
    frame : GeoDataFrame
        A release with outlines, or rows of one.
    path : path
        Where to write; an existing file is replaced.
    column : str, optional
        A released number to colour by; by default the one made for maps.
    error : bool, default False
        Colour by how far the noise reaches instead.
    rule : {"simultaneous", "fdr"}
        Which cells are coloured; see :func:`geodp.readable`.
    level : float, default 0.95
        Above 0 and below 1.
    title : str, optional
        By default what is counted, for each what.
    coastlines : bool, default True
        Draw coasts on maps of more than 1.5 degrees (Natural Earth, public domain, coarse).
    tiles : str, optional
        A base map: ``"https://.../{z}/{x}/{y}.png"``, in Web Mercator. Whoever opens the page then asks that server
        for pictures, and it learns which region is looked at. By default nothing is asked of anybody.
    attribution : str, optional
        Whose base map it is; required with ``tiles``. Plain text.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NotARelease
        No record, or a frame that is no longer what its record describes.
    TypeError
        The frame has no outlines.
    ValueError
        No such column, a bad rule, level or address, tiles for cells near a pole, where they end, or a place where
        no file can be written.

    Examples
    --------
    >>> import geodp, tempfile
    >>> places = gpd.points_from_xy([0.1, 0.9], [0.5, 0.5])
    >>> points = gpd.GeoDataFrame({"rider": ["a", "b"]}, geometry=places, crs=4326)
    >>> heat = geodp.heatmap(points, 1, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="square:0.25")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     geodp.to_html(heat, Path(folder) / "heat.html").name
    'heat.html'
    """
    switch(coastlines, "coastlines")
    origin = _origin(tiles, attribution)
    target = check_place(path)
    shows = picture(frame, column, error=error, rule=rule, level=level)
    if not isinstance(frame, gpd.GeoDataFrame):
        raise TypeError(
            "this frame has no outlines: release it with return_geometry=True, or join it to its zones."
        )
    data = page_data(shows, coastlines=coastlines, mercator=tiles is not None)
    page = _page(shows, data, title, tiles, attribution, origin)
    with replaced(target) as part:
        part.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def _page(
    shows: Picture, data: bytes, title: str | None, tiles: str | None, attribution: str | None, origin: str
) -> str:
    facts = shows.rows.facts
    styles = [*map(_asset, _STYLES), _colours(shows)]
    scripts = [*(_vendored(*names) for names in _VENDORED), "\n".join(map(_asset, _OURS))]
    name = heading(title) or shows.title[:1].upper() + shows.title[1:]
    return Template(_asset("page.html")).substitute(
        policy=_policy(scripts, styles, origin),
        version=escape(__version__),
        title=escape(name),
        guarantee=escape(shown(str(facts["guarantee"]), 200)),
        label=escape(f"Map: {name}"),
        stamp=_stamp(shows.stamp),
        watermark=""
        if shows.stamp is None
        else f'<div id="watermark" aria-hidden="true">{NOT_PRIVATE}</div>',
        budget=escape(shows.lines[0]),
        legend=_legend(shows),
        explanation=_explanation(facts),
        shown_record=escape(_readable_json(facts)),
        record=_json(facts),
        settings=_json({"tiles": tiles, "classes": shows.scale.size}),
        credit="" if attribution is None else f'<p id="credit">{escape(shown(attribution, 300))}</p>',
        data=base64.b64encode(data).decode(),
        styles="\n".join(f"<style>{text}</style>" for text in styles),
        scripts="\n".join(f"<script>{text}</script>" for text in scripts),
    )


def _asset(name: str) -> str:
    return files("geodp.maps").joinpath(f"assets/{name}").read_text("utf-8")


def _vendored(code: str, libraries: Iterable[str]) -> str:
    """Return code with the licences of what is in it, and without the address of its debugging map."""
    licences = "\n".join(_asset(f"vendor/{name}/LICENSE") for name in libraries)
    kept = [line for line in _asset(f"vendor/{code}").splitlines() if "sourceMappingURL" not in line]
    return "/*\n" + licences + "*/\n" + "\n".join(kept)


def _policy(scripts: Iterable[str], styles: Iterable[str], origin: str) -> str:
    """Return a policy that runs and applies only what this page was written with, and asks nothing of the network."""
    return "; ".join(
        [
            "default-src 'none'",
            "script-src " + " ".join(map(_digest, scripts)),
            "style-src " + " ".join(map(_digest, styles)),
            f"img-src data: {origin}".strip(),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _origin(tiles: str | None, attribution: str | None) -> str:
    """Return whom the page may ask for pictures, as its policy says it; nobody without tiles."""
    if tiles is None:
        if attribution is not None:
            raise ValueError("attribution names the makers of a base map; it goes with tiles.")
        return ""
    if not isinstance(tiles, str) or _TILES.fullmatch(tiles) is None or not _has_places(tiles):
        raise ValueError(
            'tiles must be an address such as "https://tile.openstreetmap.org/{z}/{x}/{y}.png", '
            f"got {brief(tiles)}."
        )
    if not isinstance(attribution, str) or not attribution:
        raise ValueError('tiles needs attribution="...": say whose base map it is, as its licence asks.')
    parts = urlsplit(tiles)
    host = parts.netloc.replace("{s}", "*", 1)
    if "{" in host or "*" in host.removeprefix("*."):
        raise ValueError(f'tiles: only "{{s}}." may stand before a host\'s name, got {parts.netloc!r}.')
    return f"{parts.scheme}://{host}"


def _has_places(tiles: str) -> bool:
    fields = re.findall(r"\{(.*?)\}", tiles)
    return {"x", "y", "z"} <= set(fields) <= {"x", "y", "z", "s", "r"}


def _colours(shows: Picture) -> str:
    """Return the colours as a style sheet, for light and for dark."""
    scale = shows.scale
    dark = scale.colours(_DARK_DIVERGING if scale.diverging else _DARK_SEQUENTIAL)
    swatches = [f".c{i} {{ background-color: var(--c{i}); }}" for i in range(scale.size)]
    return "\n".join(
        [
            f":root {{ {_variables(scale.colours(), UNTOLD, HATCHED)} }}",
            "@media (prefers-color-scheme: dark) {",
            f":root {{ {_variables(dark, _DARK_UNTOLD, _DARK_HATCHED)} }}",
            "}",
            *swatches,
            ".untold { background-color: var(--untold); }",
        ]
    )


def _variables(colours: Iterable[str], untold: str, hatch: str) -> str:
    named = [f"--c{i}: {colour};" for i, colour in enumerate(colours)]
    return " ".join([*named, f"--untold: {untold};", f"--hatch: {hatch};"])


def _legend(shows: Picture) -> str:
    """Return what the colours stand for, highest first, and what else the legend states."""
    items = [(f"c{i}", label) for i, label in enumerate(shows.labels) if shows.told.any()][::-1]
    if not shows.told.all():
        items.append(("untold", shows.untold))
    if shows.edge.any():
        items.append(("border", EDGE))
    swatches = "".join(
        f'<li><span class="swatch {mark}"></span>{escape(label)}</li>' for mark, label in items
    )
    lines = "".join(f"<p>{escape(line)}</p>" for line in shows.lines[1:])
    return f"<p>{escape(shows.heading)}</p>\n<ul>{swatches}</ul>\n{lines}"


def _stamp(stamp: str | None) -> str:
    if stamp is None:
        return ""
    return f'<p id="stamp" role="alert">{escape(stamp)}. A test release; it protects nobody.</p>'


def _explanation(facts: Mapping[str, Any]) -> str:
    """Return the paragraphs of an explanation, each with its heading word."""
    paragraphs: list[list[str]] = []
    for line in explain(facts).splitlines():
        head, text = line[:_HEAD].strip(), line[_HEAD:]
        if head or not paragraphs:
            paragraphs.append([head, text])
        else:
            paragraphs[-1].append(text)
    return "\n".join(
        f"<dt>{escape(head)}</dt><dd>{escape(' '.join(texts))}</dd>" for head, *texts in paragraphs
    )


def _readable_json(value: Any) -> str:
    """Return JSON on lines, with escapes for what would not print, or would turn the direction of print."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _json(value: Any) -> str:
    """Return JSON that can stand in a script element: no markup, no line separators."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
