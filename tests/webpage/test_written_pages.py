"""What is in a page, read without a browser: the data, the words, the policy, and nothing that can run."""

import base64
import json
import re
import zlib
from hashlib import sha256
from html import unescape
from importlib.resources import files

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import KINDS, NYC, numbers, read_page, release, trips

import geodp
from geodp import testing
from geodp.maps import packing
from geodp.maps.pictures import picture
from geodp.maps.words import tooltips

VENDOR = files("geodp.maps").joinpath("assets/vendor")
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    heat = release("slots")
    return heat, geodp.to_html(heat, tmp_path_factory.mktemp("page") / "heat.html")


def summed(differences):
    return np.cumsum(differences).astype(np.int32).astype(np.int64)


def outlines_of(facts):
    """Return the shapes of a page as polygons, their rings told apart by the even-odd rule."""
    unit = 10.0 ** -facts["digits"]
    places = np.column_stack([summed(facts["lon"]), summed(facts["lat"])]) * unit
    ends = np.cumsum(facts["corners"])
    rings = [shapely.Polygon(part) for part in np.split(places, ends[:-1])]
    shapes, at = [], 0
    for n in facts["rings"]:
        shape = shapely.Polygon()
        for ring in rings[at : at + n]:
            shape = shape.symmetric_difference(ring)
        shapes.append(shape)
        at += n
    return shapes


@pytest.mark.parametrize(
    "kind", ["hexagons", "squares", "fiji", "world", "south pole", "zones", "many corners", "tiny"]
)
def test_outlines_are_those_of_the_release(kind, tmp_path):
    heat = release(kind)
    facts = read_page(geodp.to_html(heat, tmp_path / "a.html"))
    shapes, step = outlines_of(facts), 10.0 ** -facts["digits"]
    assert len(shapes) == len(heat)
    for shape, outline in zip(shapes, heat.geometry, strict=True):
        assert shape.symmetric_difference(outline).area <= outline.length * step
    assert step == 1e-7 or step <= np.sqrt(shapely.area(shapely.envelope(heat.geometry.array)).min()) / 500


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "moved points"])
def test_each_row_has_its_own_words_and_marks(kind, tmp_path):
    heat = release(kind)
    facts, shows = read_page(geodp.to_html(heat, tmp_path / "a.html")), picture(heat)
    said = dict(zip(map(str, heat.index), tooltips(shows.rows, shows.told), strict=True))
    marks = dict(zip(map(str, heat.index), zip(shows.classes, shows.edge, strict=True), strict=True))
    slots = [f"{slot['name']}={label}" for slot in facts["slots"] for label in slot["labels"]] or [""]
    found = {}
    rows = iter(zip(summed(facts["shapeOfRow"]), facts["kindOfRow"], strict=True))
    for slot, size in zip(slots, facts["slotSizes"], strict=True):
        for shape, kind_of_row in (next(rows) for _ in range(size)):
            cell = facts["names"][shape].partition(" ")[2]
            name = str((cell, int(slot.partition("=")[2]))) if slot else cell
            found[name] = facts["words"][kind_of_row]
            place = facts["classOfKind"][kind_of_row]
            assert marks[name] == (-1 if place == 255 else place, facts["edgeOfKind"][kind_of_row])
    assert found == said


def test_cells_are_written_once_for_all_slots(page):
    heat, path = page
    facts = read_page(path)
    assert len(facts["rings"]) == len(facts["names"]) == len(heat) // 24
    assert facts["slotSizes"] == [len(heat) // 24] * 24


def test_words_are_shared_by_rows_of_equal_numbers(tmp_path):
    with testing.noiseless():
        heat = trips().iloc[:0].dp.heatmap(1, subject="rider", cap=1, bounds=NYC, grid="h3:8", outside="drop")
    facts = read_page(geodp.to_html(heat, tmp_path / "a.html"))
    assert facts["words"] == ["map estimate 0; measured 0 (-3 to 3); cannot be told from zero"]


def test_nothing_but_released_numbers_words_and_the_record_is_in_the_data(page):
    facts = read_page(page[1])
    assert set(facts) == {
        *("names", "points", "digits", "slots", "words", "projection", "view", "sections"),
        *("rings", "corners", "lon", "lat"),
        *("slotSizes", "shapeOfRow", "kindOfRow", "classOfKind", "edgeOfKind"),
    }


def test_the_record_and_its_explanation_can_be_read(page):
    heat, path = page
    text = path.read_text()
    (held,) = re.findall(r'id="geodp-record">(.*?)</script>', text)
    (shown,) = re.findall(r'id="shown-record">(.*?)</pre>', text, re.DOTALL)
    assert json.loads(held) == json.loads(unescape(shown)) == geodp.record(heat)
    (explained,) = re.findall(r'id="explanation">(.*?)</dl>', text, re.DOTALL)
    words = unescape(re.sub("<.*?>", " ", explained)).split()
    assert words == geodp.explain(heat).split()


def test_the_legend_states_eps_delta_half_width_and_rule(page):
    heat, path = page
    (legend,) = re.findall(r'<details id="legend" open>(.*?)</details>', path.read_text(), re.DOTALL)
    shows = picture(heat)
    for said in (*shows.lines, shows.heading, shows.untold):
        assert said in unescape(legend)
    assert "eps 1, delta 0, for one rider more or less" in legend
    assert "half-width ± 12" in legend


def test_only_what_the_policy_names_runs_and_nothing_is_asked_of_the_network(page):
    text = page[1].read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name, elements in (("script-src", SCRIPT), ("style-src", STYLE)):
        digests = [
            base64.b64encode(sha256(part.encode()).digest()).decode() for part in elements.findall(text)
        ]
        assert rules[name] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert len(re.findall("<script", text)) == len(SCRIPT.findall(text)) + 3
    outside = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|//\w|\bon\w+=|style=|javascript:", outside)
    assert "sourceMappingURL" not in text


ODD = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\u2028b",
    "$title {{x}}",
    "]]>--><!--",
]


def odd_release():
    squares = [shapely.box(i, 0, i + 1, 1) for i in range(len(ODD))]
    zones = geodp.Zones(gpd.GeoDataFrame({ODD[0]: ODD}, geometry=squares, crs=4326), ODD[0])
    people = trips().rename(columns={"rider": ODD[1]}).assign(**{ODD[3]: ODD[0]})
    return people.dp.heatmap(1, subject=ODD[1], cap=1, grid=zones, by={ODD[3]: ODD[:2]})


def test_names_that_look_like_markup_stay_names(tmp_path):
    path = geodp.to_html(odd_release(), tmp_path / "a.html", title=ODD[0] + ODD[1])
    text = path.read_text(encoding="utf-8")
    plain = geodp.to_html(release("zones"), tmp_path / "b.html").read_text(encoding="utf-8")
    for tag in ("<script", "</script", "<img", "<!--", "<style"):
        assert text.count(tag) == plain.count(tag)
    assert not {"\u2028", "\u202e"} & set(text)
    facts = read_page(path)
    assert facts["slots"][0]["labels"] == ODD[:2]
    assert sum("alert(1)" in name for name in facts["names"]) == len(ODD)


def test_test_releases_are_stamped(tmp_path):
    with testing.seeded(1):
        heat = KINDS["hexagons"]()
    text = geodp.to_html(heat, tmp_path / "a.html").read_text()
    assert "NOT PRIVATE: noise seeded (test). A test release; it protects nobody." in text
    assert 'id="watermark"' in text
    assert 'id="watermark"' not in geodp.to_html(release("hexagons"), tmp_path / "b.html").read_text()


def test_rows_are_named_as_such(tmp_path):
    heat = trips().dp.heatmap(1, subject=geodp.EACH_ROW, bounds=NYC, grid="h3:5")
    assert "protects single rows, not people" in geodp.to_html(heat, tmp_path / "a.html").read_text()


def test_a_page_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path, heat = tmp_path / "a.html", release("hexagons")
    path.write_text("old")

    def full(file):
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        with pytest.raises(OSError, match="full"):
            geodp.to_html(heat, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
    assert geodp.to_html(heat, str(path)) == path
    assert path.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


def test_only_releases_with_outlines_are_written(tmp_path):
    heat = release("hexagons")
    for frame in (trips(), heat.assign(x=1), heat.assign(noisy_count=heat["noisy_count"] * 2)):
        with pytest.raises(geodp.NotARelease):
            geodp.to_html(frame, tmp_path / "a.html")
    bare = trips().dp.heatmap(1, subject="rider", cap=1, bounds=NYC, grid="h3:5", return_geometry=False)
    with pytest.raises(TypeError, match="no outlines"):
        geodp.to_html(bare, tmp_path / "a.html")
    with pytest.raises(ValueError, match="column must be one of"):
        geodp.to_html(heat, tmp_path / "a.html", "riders")
    assert not list(tmp_path.iterdir())


HERE = "https://tile.example.org/{z}/{x}/{y}.png"


@pytest.mark.parametrize(
    ("tiles", "attribution", "word"),
    [
        ("https://tile.example.org/map.png", "me", "tiles must be an address"),
        ("//tile.example.org/{z}/{x}/{y}.png", "me", "tiles must be an address"),
        ("javascript:alert({x}{y}{z})", "me", "tiles must be an address"),
        ("https://a.org; script-src */{z}/{x}/{y}", "me", "tiles must be an address"),
        ('https://a.org/{z}/{x}/{y}">', "me", "tiles must be an address"),
        ("https://a.org/{z}/{x}/{y}?key={key}", "me", "tiles must be an address"),
        ("https://tile.{s}.org/{z}/{x}/{y}.png", "me", "before a host's name"),
        ("https://{s}{s}.org/{z}/{x}/{y}.png", "me", "before a host's name"),
        ("https://{x}.example.org/{z}/{x}/{y}.png", "me", "before a host's name"),
        (HERE, None, "needs attribution"),
        (None, "me", "goes with tiles"),
        (7, "me", "tiles must be an address"),
    ],
)
def test_bad_addresses_of_tiles_are_refused(tiles, attribution, word, tmp_path):
    with pytest.raises(ValueError, match=word):
        geodp.to_html(release("hexagons"), tmp_path / "a.html", tiles=tiles, attribution=attribution)


@pytest.mark.parametrize(
    ("tiles", "origin"),
    [
        (HERE, "https://tile.example.org"),
        ("https://{s}.example.org:8080/{z}/{x}/{y}{r}.png?a=b", "https://*.example.org:8080"),
        ("http://127.0.0.1:9/{z}/{x}/{y}", "http://127.0.0.1:9"),
    ],
)
def test_the_policy_lets_asked_tiles_in_and_nobody_else(tiles, origin, tmp_path):
    path = geodp.to_html(release("hexagons"), tmp_path / "a.html", tiles=tiles, attribution="<b>me</b>")
    text = path.read_text()
    assert f"; img-src data: {origin}; " in text
    assert '<p id="credit">&lt;b&gt;me&lt;/b&gt;</p>' in text


def test_tiles_that_end_before_the_pole_are_refused_for_cells_there(tmp_path):
    with pytest.raises(ValueError, match="85 degrees"):
        geodp.to_html(release("south pole"), tmp_path / "a.html", tiles=HERE, attribution="me")


@pytest.mark.parametrize("kind", ["one place", "none"])
def test_the_box_is_shown_where_cells_do_not_say_what_to_show(kind, tmp_path):
    assert read_page(geodp.to_html(release(kind), tmp_path / "a.html"))["view"] == list(NYC)


def test_coasts_are_drawn_on_large_maps_only(tmp_path):
    large, city = release("fiji"), release("hexagons")
    assert "coastLon" in read_page(geodp.to_html(large, tmp_path / "a.html"))
    assert "coastLon" not in read_page(geodp.to_html(large, tmp_path / "b.html", coastlines=False))
    assert "coastLon" not in read_page(geodp.to_html(city, tmp_path / "c.html"))


def test_what_is_taken_over_has_the_version_and_the_licence_that_are_written_down():
    versions = dict(line.split() for line in VENDOR.joinpath("VERSIONS").read_text().splitlines())
    assert f"Leaflet {versions['leaflet']}," in VENDOR.joinpath("leaflet/leaflet.js").read_text()[:100]
    for name in versions:
        assert "Copyright" in VENDOR.joinpath(name, "LICENSE").read_text()
    for file in ("leaflet/leaflet.js", "flatbush/flatbush.js"):
        text = VENDOR.joinpath(file).read_text()
        assert "</script" not in text
        assert "<!--" not in text


# The block of bytes.

WORDS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(WORDS), st.lists(st.integers(0, 255)))
def test_numbers_come_out_of_the_block_as_they_went_in(words, small):
    lists = {"a": np.array(words, dtype=np.int32), "b": np.array(small, dtype=np.uint8)}
    block = zlib.decompress(packing.packed({}, lists))
    body = block[4 + int.from_bytes(block[:4], "little") :]
    assert numbers(body[: 4 * len(words)], 4, len(words)) == words
    assert list(body[4 * len(words) :]) == small


@given(st.lists(st.integers(-1_800_000_000, 1_800_000_000)))
def test_differences_add_up_again(places):
    assert summed(packing.differences(np.array(places, dtype=np.int64))).tolist() == places


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-180, 179), st.integers(1, 60), st.integers(-80, 79)), min_size=1))
def test_the_view_holds_every_shape_and_is_as_narrow_as_can_be(boxes):
    parts = [
        part
        for west, width, south in boxes
        for part in shapely.get_parts(around(west, west + width, south, south + 1))
    ]
    west, south, east, north = packing.extent(packing.shapes_of(np.array(parts, dtype=object)))
    covered = {w % 360 for first, width, _ in boxes for w in range(first, first + width)}
    seen = {w % 360 for w in range(round(west), round(east))}
    assert covered <= seen
    assert east - west <= 360
    assert (south, north) == (min(b[2] for b in boxes), max(b[2] for b in boxes) + 1)
    free = [w for w in range(-180, 180) if w not in {c - 360 if c >= 180 else c for c in covered}]
    assert 360 - (east - west) == longest_run(free)


def around(west, east, south, north):
    if east <= 180:
        return shapely.box(west, south, east, north)
    return shapely.union_all(
        [shapely.box(west, south, 180, north), shapely.box(-180, south, east - 360, north)]
    )


def longest_run(free):
    """Length of the longest stretch of free degrees on the circle."""
    free = set(free)
    if len(free) == 360:
        return 360
    best = 0
    for start in free:
        if (start - 1 if start > -180 else 179) not in free:
            n, at = 0, start
            while at in free:
                n, at = n + 1, at + 1 if at < 179 else -180
            best = max(best, n)
    return best


def test_a_place_where_no_file_can_be_is_refused_before_anything_is_drawn(tmp_path):
    frame = release("slots")
    with pytest.raises(ValueError, match=r"there is no such folder to write map.html into"):
        geodp.to_html(frame, tmp_path / "missing" / "map.html")
    with pytest.raises(ValueError, match="this is no plain file; it is not replaced"):
        geodp.to_html(frame, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert geodp.to_html(frame, tmp_path / "map.page").read_text(encoding="utf-8").startswith("<!")
