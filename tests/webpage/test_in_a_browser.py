"""Pages in headless Chromium: quiet, without a network, and with the numbers of the release under the pointer."""

import json
import re
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import geopandas as gpd
import numpy as np
import pytest
import shapely
from pages import KINDS, NYC, release, trips, wheel

import geodp
from geodp import testing
from geodp.maps.pictures import picture
from geodp.maps.scales import UNTOLD
from geodp.wording import figure

TAB, ESCAPE, LEFT, RIGHT, DOWN = 9, 27, 37, 39, 40
PHONE = {"size": (390, 844), "mobile": True}


def middle(outline):
    """A place in the largest part of a cell."""
    return max(shapely.get_parts(outline), key=lambda part: part.area).representative_point()


def said_of(row):
    return f"map estimate {row['count']:,}; measured {row['noisy_count']:,} ({row['lower']:,} to {row['upper']:,})"


def hover(page, frame, place):
    at = middle(frame.geometry.iloc[place])
    return page.hover(at.x, at.y)


@pytest.mark.parametrize("kind", KINDS)
def test_every_release_opens_quietly_and_asks_for_nothing(opened, kind):
    """What is asserted stands in the fixture, for all tests here."""
    page = opened(release(kind))
    drawn = page.run(
        "[...page.cells.tiles.keys()].some(tile => new Uint32Array(tile.getContext('2d')"
        ".getImageData(0, 0, tile.width, tile.height).data.buffer).some(pixel => pixel))"
    )
    empty = kind.startswith("none")
    assert drawn != empty
    assert page.text("#trouble") == ("No cell of this release reached the threshold." if empty else "")


@pytest.mark.parametrize("kind", ["hexagons", "fiji", "world", "south pole", "squares", "zones", "one cell"])
def test_numbers_under_the_pointer_are_those_of_the_frame(opened, kind):
    heat = release(kind)
    page = opened(heat)
    for place in sorted({0, len(heat) // 3, len(heat) // 2, len(heat) - 1}):
        words, name = hover(page, heat, place).split("\n\n")
        assert words.startswith(said_of(heat.iloc[place]))
        assert name == f"{heat.index.name} {heat.index[place]}"


def test_a_cell_cut_at_the_180th_meridian_is_one_cell_on_both_sides(opened):
    heat = release("fiji")
    page = opened(heat)
    cut = heat[heat.geom_type == "MultiPolygon"].iloc[0]
    east, west = sorted(shapely.get_parts(cut.geometry), key=lambda part: part.bounds[0])
    for part, turn in ((west, 0), (east, 360)):
        at = part.representative_point()
        assert cut.name in page.hover(at.x + turn, at.y)
    assert page.run("document.querySelectorAll('.mark').length") == 1


def test_mean_places_say_how_far_they_may_be_off(opened):
    heat = release("centroids")
    page = opened(heat)
    row = heat.sort_values("noisy_count").iloc[-1]
    said = page.hover(row["lon"], row["lat"])
    assert f"measured {figure(row['noisy_count'])}" in said
    assert row.name in said
    assert page.run("document.querySelectorAll('.mark').length") == 2  # the point, and its circle


def colours(page, places):
    """Return the colours of places on the screen, as "#rrggbb"."""
    from PIL import Image

    shot = b64decode(page.send("Page.captureScreenshot", format="png")["data"])
    picture = Image.open(BytesIO(shot)).convert("RGB")
    return [
        "#{:02x}{:02x}{:02x}".format(*picture.getpixel(tuple(map(int, page.pixel(*place)))))
        for place in places
    ]


def test_cells_have_the_colours_of_the_legend_and_grey_where_nothing_is_told(opened):
    heat = trips(20_000).dp.heatmap(4, subject="rider", cap=4, bounds=NYC, grid="h3:6", outside="drop")
    shows = picture(heat)
    page = opened(heat)
    classes = sorted(set(shows.classes.tolist()))
    assert len(classes) > 3
    cells = [heat.geometry.iloc[int(np.flatnonzero(shows.classes == wanted)[0])] for wanted in classes]
    found = colours(page, [(middle(cell).x, middle(cell).y) for cell in cells])
    assert found == [UNTOLD if wanted < 0 else shows.scale.colours()[wanted] for wanted in classes]


def test_border_cells_are_hatched_and_say_why(opened):
    heat = release("hexagons")
    page = opened(heat)
    for edge in (True, False):
        row = heat[heat["edge"] == edge].iloc[0]
        at = middle(row.geometry)
        assert ("border: also holds everybody outside" in page.hover(at.x, at.y)) == edge
        page.do("page.pointer.leave()")
        found = set(colours(page, [(at.x + step * 0.001, at.y) for step in range(8)]))
        assert (len(found) > 1) == edge


def test_slots_switch_with_the_mouse_and_with_keys(opened):
    people = trips(4000).assign(day=lambda t: np.where(t["minutes"] > 20, "long", "short"))
    heat = people.dp.heatmap(
        2, subject="rider", cap=2, bounds=NYC, grid="h3:6", by={"hour": range(24), "day": ["long", "short"]}
    )
    page = opened(heat)
    cell = heat.xs((12, "long"), level=("hour", "day"))["count"].idxmax()
    at = middle(heat.geometry.loc[(cell, 0, "long")])

    def says(hour, day):
        said = page.hover(at.x, at.y)
        return said.startswith(said_of(heat.loc[(cell, hour, day)])) and f"hour={hour}, day={day}" in said

    assert says(0, "long")
    page.run("document.querySelector('#slots input').focus()")
    for _ in range(12):
        page.key("ArrowRight", RIGHT)
    assert page.text("#slots output") == "12"
    assert says(12, "long")
    page.run("document.querySelector('#slots select').focus()")
    page.key("ArrowDown", DOWN)
    assert says(12, "short")


def test_the_record_opens_is_read_and_closes(opened):
    heat = release("hexagons")
    page = opened(heat)
    assert "Protects" not in page.text("#record")
    page.click("#record summary")
    assert "Every rider, with all of that rider's rows together" in page.text("#explanation")
    assert json.loads(page.text("#shown-record")) == geodp.record(heat)
    page.key("Escape", ESCAPE)
    assert "Protects" not in page.text("#record")
    assert geodp.record(heat)["guarantee"] == page.text("#guarantee")


def test_keys_alone_read_the_map(opened):
    heat = release("hexagons")
    page = opened(heat)
    page.key("Tab", TAB)
    assert page.run("document.activeElement.id") == "map"
    first = page.text("#said")
    page.key("ArrowLeft", LEFT)
    page.wait(f"document.getElementById('said').textContent !== {json.dumps(first)}")
    name, words = page.text("#said").split(": ", 1)
    assert words.startswith(said_of(heat.loc[name.split()[1]]))
    assert page.text("#card").startswith(words)


ODD = [
    "</script><script>window.owned = 1</script>",
    '<img src=x onerror="owned = 1">',
    "a\u2028b",
    "${owned = 1}",
]


def test_zones_and_columns_that_look_like_markup_run_nothing(opened):
    squares = [shapely.box(i, 0, i + 1, 1) for i in range(len(ODD))]
    zones = geodp.Zones(gpd.GeoDataFrame({ODD[0]: ODD}, geometry=squares, crs=4326), ODD[0])
    people = trips().rename(columns={"rider": ODD[1]}).assign(**{ODD[3]: ODD[0]})
    heat = people.dp.heatmap(1, subject=ODD[1], cap=1, grid=zones, by={ODD[3]: ODD[:2]})
    page = opened(heat, title=ODD[0])
    page.click("#record summary")
    assert "</script><script>" in hover(page, heat, 0)
    assert page.run("typeof window.owned") == "undefined"
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.text("h1") == page.run("document.title") == ODD[0]


def test_scripts_that_got_in_all_the_same_would_not_run(browser, tmp_path):
    page = browser.page()
    page.open(geodp.to_html(release("one cell"), tmp_path / "a.html"))
    page.do(
        "document.body.insertAdjacentHTML('beforeend', '<img src=https://example.org/a.png onerror=\"owned = 1\">');"
        "document.body.append(Object.assign(document.createElement('script'), { text: 'owned = 2' }))"
    )
    assert page.run("fetch('https://example.org').then(() => 'answered', () => 'refused')") == "refused"
    assert page.run("typeof window.owned") == "undefined"
    assert len([said for said in page.complaints() if "Content Security Policy" in said]) >= 3
    page.close()


def test_tiles_are_asked_of_the_named_host_and_of_nobody_else(opened):
    asked = []

    class Tiles(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "image/svg+xml")
            self.end_headers()
            self.wfile.write(b'<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"/>')

        def log_message(self, *said):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}"
    page = opened(release("hexagons"), tiles=host + "/{z}/{x}/{y}.svg", attribution="nobody's map")
    page.wait("document.querySelectorAll('.leaflet-tile-loaded').length > 8")
    assert page.text("#credit") == "nobody's map"
    assert all(url.startswith(host) for url in page.requests()[1:])
    assert asked
    assert all(re.fullmatch(r"/\d+/\d+/\d+\.svg", path) for path in asked)
    server.shutdown()
    server.server_close()


def test_a_test_release_is_stamped_for_all_to_see(opened):
    with testing.noiseless():
        heat = KINDS["hexagons"]()
    page = opened(heat)
    assert page.text("#stamp") == "NOT PRIVATE: noise none (test). A test release; it protects nobody."
    assert page.text("#watermark") == "NOT PRIVATE"


def test_dark_mode_is_dark(opened):
    heat = release("hexagons")
    page = opened(heat, dark=True)
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground))) < 40
    row = heat[~heat["edge"]].iloc[0]
    at = middle(row.geometry)
    assert colours(page, [(at.x, at.y)]) != [UNTOLD]
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.wait("queue.length === 0")
    assert colours(page, [(at.x, at.y)]) == [UNTOLD]


def test_a_phone_shows_the_map_and_a_tap_a_cell(opened):
    heat = release("slots")
    page = opened(heat, **PHONE)
    assert page.run("document.scrollingElement.scrollWidth") <= 390
    assert page.run("document.scrollingElement.scrollHeight") <= 844
    assert not page.run("document.getElementById('legend').open")
    row = heat.xs(0, level="hour").iloc[12]
    at = middle(row.geometry)
    page.tap(*page.pixel(at.x, at.y))
    page.wait("!document.getElementById('card').hidden")
    assert page.text("#card").startswith(said_of(row))
    box = page.run(
        "(b => [b.left, b.right, b.top, b.bottom])(document.getElementById('card').getBoundingClientRect())"
    )
    assert box[0] >= 0
    assert box[1] <= 390
    assert not page.run("page.map.getContainer().classList.contains('keyed')")
    page.tap(
        *page.run("(b => [b.x + 20, b.y + 10])(document.querySelector('#record').getBoundingClientRect())")
    )
    page.wait("document.getElementById('record').open")
    assert "Protects" in page.text("#explanation")


def test_100_000_cells_open_and_are_read(opened, tmp_path):
    heat = trips(4000).dp.heatmap(1, subject="rider", cap=4, bounds=NYC, grid="square:0.002", outside="drop")
    assert len(heat) > 100_000
    page = opened(heat)
    for place in (0, 54_321, len(heat) - 1):
        assert hover(page, heat, place).startswith(said_of(heat.iloc[place]))
    assert (tmp_path / "0.html").stat().st_size < 3_000_000


@pytest.mark.parametrize(("corners", "rays"), [(50_000, 40), (60, 30)])
def test_zones_with_many_corners_are_told_apart_everywhere(opened, corners, rays):
    """Zoomed in, nearly all corners lie outside the window and are left out; what is inside must not change.

    The second star's corners lie by turns at the ends of its rays and between them, so that sides of the star cross
    windows whole, and a ray's end may be the only corner inside.
    """
    zones = wheel(corners, rays)
    star = zones.geometry.iloc[0]
    page = opened(trips().dp.heatmap(1, subject="rider", cap=2, grid=geodp.Zones(zones, "place")))
    page.do(
        "page.look.of = shape => ({ fill: page.release.facts.names[shape] === 'place star' ? '#ff0000' : '#0000ff' })"
    )
    rng = np.random.default_rng(7)
    for closer in (0, 4, 4):
        edge = shapely.Point(star.exterior.coords[10 if closer else 0])
        page.do(
            f"page.map.setView([{edge.y}, {edge.x}], page.map.getZoom() + {closer}, {{ animate: false }});"
            "page.cells.redraw()"
        )
        page.wait("queue.length === 0")
        pixel = page.run("360 / page.map.options.crs.scale(page.map.getZoom())")
        places = np.array([edge.x, edge.y]) + pixel * rng.uniform(-200, 200, (60, 2))
        edges = shapely.union_all([star.exterior, shapely.box(*NYC).exterior])
        clear = places[
            shapely.contains_xy(shapely.box(*NYC), places)
            & (shapely.distance(edges, shapely.points(places)) > 3 * pixel)
        ]
        inside = shapely.contains_xy(star, clear)
        assert 0 < inside.sum() < len(clear)
        assert colours(page, clear) == ["#ff0000" if within else "#0000ff" for within in inside]


def test_an_old_browser_says_so_and_the_record_can_be_read(browser, tmp_path):
    page = browser.page()
    page.send("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    path = geodp.to_html(release("one cell"), tmp_path / "a.html")
    page.open(path, ready="!(document.getElementById('trouble') || { hidden: true }).hidden")
    assert "the record can be read" in page.text("#trouble")
    page.click("#record summary")
    assert "Protects" in page.text("#explanation")
    page.close()
