"""Names that were typed by anybody, in every place of a folium map: they stay text in HTML, in scripts and in Jinja.

folium renders scripts and HTML as Jinja templates after it has put texts into them, so that a zone called
``{{...}}`` would run on the machine that draws the map.
"""

import html
import json
import os
import re
from functools import cache

import pandas as pd
import pytest
from released_maps import points, zones

import geodp
from geodp import testing
from geodp.maps.words import row_names

CODE = "{{lipsum.__globals__.os.getcwd()}}"
OLD_PANDAS = pd.Categorical(["a\x00b", "a\x00c"]).categories.size == 1
HOSTILE = [
    CODE,
    "{% if %}",
    "{% endraw %}" + "{{'boom'|upper}}",
    "{# lost",
    "{%- raw -%}",
    "{{",
    "}}",
    "</script><script>alert(1)</script>",
    "<!--<img src=x onerror=alert(1)>",
    "a\\u007b\\u007bboom|upper\\u007d\\u007d",
    "\\'\"`${'boom'.toUpperCase()}`",
    "line\u2028end\u2029\x00\r\n",
    "&#123;&#123;boom|upper&#125;&#125;",
]


def release_named(name, kind="count"):
    """Return a release with a name in every place that takes one: columns, keys and levels."""
    columns = {"who": name, "hour": name + " hour", "minutes": name + " value"}
    gdf = points(3000).rename(columns=columns)
    gdf[columns["hour"]] = name
    shapes = zones(ids=[f"{name}{i}" for i in range(4)]).rename(columns={"zone": name + " key"})
    view = gdf.dp(subject=name, cap=1, grid=geodp.Zones(shapes, key=name + " key"))
    by = {columns["hour"]: [name, "other"]}
    with testing.seeded(1):
        if kind == "count":
            return view.heatmap(1.0, by=by)
        return getattr(view, kind)(columns["minutes"], 1.0, value_bounds=(0, 120), by=by)


def texts_of(frame, tmp_path, **how):
    """Return a map as it reaches a reader: rendered, written, and in a notebook's frame."""
    page = geodp.explore(frame, tiles=None, **how)
    page.save(tmp_path / "map.html")
    return [
        geodp.explore(frame, tiles=None, **how).get_root().render(),
        (tmp_path / "map.html").read_text(encoding="utf-8"),
        html.unescape(
            re.search(r'srcdoc="(.*?)"', geodp.explore(frame, tiles=None, **how)._repr_html_(), re.S)[1]
        ),
    ]


def properties(text):
    """The texts of the cells in a page's scripts, as a browser would read them."""
    data = [json.loads(found) for found in re.findall(r"_add\((\{.*\})\);", text)]
    return [feature["properties"] for layer in data for feature in layer["features"]]


@pytest.mark.parametrize(
    ("number", "kind"), [*((i, "count") for i in range(len(HOSTILE))), (0, "sum"), (1, "mean"), (2, "sum")]
)
def test_a_name_is_nothing_but_text_wherever_it_stands(tmp_path, number, kind):
    name = HOSTILE[number]
    if "\x00" in name and OLD_PANDAS:
        pytest.skip(
            "before 3.1 pandas makes one label of all that differ behind a NUL, and no map is drawn then"
        )
    frame = release_named(name, kind)
    scripts = len(re.findall("<script", plain_page()))
    for text in texts_of(frame, tmp_path):
        assert os.getcwd() not in text
        assert "BOOM" not in text
        assert len(re.findall("<script", text)) == scripts
        for mark in ("alert(1)</script>", "<img", "\u2028", "\u2029", "\x00"):
            assert mark not in text
        cells = [cell for cell in properties(text) if "cell" in cell]
        said = sorted(html.unescape(cell["cell"]) for cell in cells)
        assert said == sorted(row_names(frame.index))
        for cell in cells:
            assert not set("{}<>") & set(cell["cell"] + cell["says"])


@cache
def plain_page():
    return geodp.explore(release_named("plain"), tiles=None).get_root().render()


@pytest.mark.parametrize("error", [False, True])
def test_error_maps_and_maps_without_a_legend_are_safe_too(tmp_path, error):
    for legend in (False, True):
        for text in texts_of(release_named(CODE, "mean"), tmp_path, error=error, legend=legend):
            assert os.getcwd() not in text


@pytest.mark.parametrize("part", ["url", "attribution"])
@pytest.mark.parametrize("code", [CODE, "{% if %}", "{# "])
def test_base_maps_cannot_hold_templates(part, code):
    xyzservices = pytest.importorskip("xyzservices")
    texts = {"url": "https://a.b/{z}/{x}/{y}.png", "attribution": "us"}
    # xyzservices formats addresses, which turns two braces into one.
    texts[part] += code if part == "attribution" else code.replace("{", "{{").replace("}", "}}")
    tiles = xyzservices.TileProvider(name=CODE, **texts)
    with pytest.raises(ValueError, match=r"tiles: the address or attribution holds"):
        geodp.explore(release_named("plain"), tiles=tiles)
    tiles = xyzservices.TileProvider(name=CODE, url="https://a.b/{z}/{x}/{y}.png", attribution="us")
    assert os.getcwd() not in geodp.explore(release_named("plain"), tiles=tiles).get_root().render()


@pytest.mark.parametrize("name", ["$\\foo$", "fare $ + tip $", "a$_{b", "\\frac{1}{0}$"])
def test_matplotlib_reads_no_mathematics_in_names(name, tmp_path):
    for kind in ("count", "mean"):
        frame = release_named(name, kind)
        for drawn in (
            geodp.plot(frame)[0],
            geodp.plot(frame, slot=name),
            geodp.plot(frame, slot=name, title=name),
        ):
            drawn.figure.savefig(tmp_path / "map.png", dpi=30)
            assert not any(text.get_parse_math() for text in named_texts(drawn.figure, name))
        figure = geodp.compare_maps(frame, frame, slot=name, names=(name, name))
        figure.savefig(tmp_path / "map.png", dpi=30)
        texts = named_texts(figure, name)
        assert len(texts) >= 6
        assert not any(text.get_parse_math() for text in texts)


def named_texts(figure, name):
    """The texts of a figure that hold a name, or a part of it before the line was broken."""
    from matplotlib.text import Text

    found = [text for text in figure.findobj(Text) if "$" in text.get_text() or name in text.get_text()]
    assert found
    return found
