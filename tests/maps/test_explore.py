"""Maps with folium: what they say of each cell, in which colour, and that no name can break out of the page."""

import json
import re

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from released_maps import GRIDS, KINDS, UNLISTED, moved, points, release, zones

import geodp
from geodp import testing
from geodp.maps.held import held
from geodp.maps.pictures import picture
from geodp.maps.scales import UNTOLD
from geodp.maps.words import tooltips


def rendered(page):
    return page.get_root().render()


def layers(page):
    """The GeoJSON layers that hold cells, and the styles of their features."""
    import folium

    found = []
    for group in page._children.values():
        for layer in getattr(group, "_children", {}).values():
            if isinstance(layer, folium.GeoJson) and "says" in layer.data["features"][0]["properties"]:
                found.append(layer)
    return found


def features(layer):
    return [(feature["properties"], layer.style_function(feature)) for feature in layer.data["features"]]


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize(
    ("kind", "grid"),
    [
        *((kind, "h3") for kind in [*KINDS, *UNLISTED]),
        *(("count", grid) for grid in GRIDS),
        ("mean", "zones"),
    ],
)
def test_every_kind_says_its_numbers_in_its_colours(kind, grid, slots):
    frame = release(kind, grid, slots)
    page = geodp.explore(frame, tiles=None)
    shows = picture(frame)
    palette = [*shows.scale.colours(), UNTOLD]
    found = [pair for layer in layers(page) for pair in features(layer)]
    assert len(found) == len(frame)
    said = [properties["says"] for properties, _ in found]
    assert sorted(said) == sorted(tooltips(held(frame), shows.told))
    assert sorted(style["fillColor"] for _, style in found) == sorted(palette[i] for i in shows.classes)
    html = rendered(page)
    for line in (shows.lines[0], shows.title):
        assert line in html
    assert len(layers(page)) == (2 if slots else 1)
    assert ("hour=7" in html) == slots


def test_pointing_at_a_cell_shows_its_id_and_its_own_numbers():
    frame = release("count", grid="zones")
    (layer,) = layers(geodp.explore(frame, tiles=None))
    for (properties, _), (key, row) in zip(features(layer), frame.iterrows(), strict=True):
        assert properties["cell"] == f"zone {key}"
        assert properties["says"].startswith(
            f"map estimate {row['count']:,}; measured {row['noisy_count']:,} ("
        )


def test_integer_keys_are_not_all_grey():
    # folium #1185, #498: integer ids against string ids of features.
    where = {"grid": geodp.Zones(zones(ids=(1, 2, 3, 4)), key="zone")}
    with testing.seeded(1):
        frame = points().dp(subject="who", cap=1, **where).heatmap(1.0)
    (layer,) = layers(geodp.explore(frame))
    assert len({style["fillColor"] for _, style in features(layer)}) > 1


def test_what_cannot_be_told_is_grey_and_pale():
    frame = release("count")
    (layer,) = layers(geodp.explore(frame))
    for (_, style), told in zip(features(layer), geodp.readable(frame), strict=True):
        assert (style["fillColor"] == UNTOLD) == (not told)


def test_the_border_is_hatched_and_lets_the_mouse_through():
    html = rendered(geodp.explore(release("count", "square"), tiles=None))
    assert 'id="geodp-hatch"' in html
    assert "url(#geodp-hatch)" in html
    assert "border: also holds everybody outside" in html
    assert "url(#geodp-hatch)" not in rendered(geodp.explore(release("count"), tiles=None))


def test_places_are_discs_and_rings():
    frame = release("centroid", "square")
    (layer,) = layers(geodp.explore(frame))
    told = geodp.readable(frame)
    opacity = [style["fillOpacity"] for _, style in features(layer)]
    assert [value > 0 for value in opacity] == told.tolist()
    assert len(features(layers(geodp.explore(moved()))[0])) == 50


def test_a_map_of_fiji_is_in_one_piece():
    page = geodp.explore(release("count", "fiji"), tiles=None)
    (layer,) = layers(page)
    bounds = gpd.GeoDataFrame.from_features(layer.data["features"]).total_bounds
    assert 170 < bounds[0] < bounds[2] < 190
    (fitted,) = re.findall(r"fitBounds\(\s*(\[\[.*?\]\])", rendered(page), re.S)
    (_, west), (_, east) = json.loads(fitted)
    assert 170 < west < east < 190


def test_a_pole_is_drawn_in_degrees_where_web_maps_end():
    html = rendered(geodp.explore(release("count", "pole"), tiles=None))
    (fitted,) = re.findall(r"fitBounds\(\s*(\[\[.*?\]\])", html, re.S)
    assert max(lat for lat, _ in json.loads(fitted)) >= 90.0
    assert "crs: L.CRS.EPSG4326" in html
    assert "crs: L.CRS.EPSG3857" in rendered(geodp.explore(release("count"), tiles=None))


def test_no_cell_beyond_the_end_of_base_maps_is_hidden_silently():
    with pytest.raises(
        ValueError, match=r"base maps end at 85 degrees.*tiles=None.*geodp.plot.*geodp.to_html"
    ):
        geodp.explore(release("count", "pole"))


def test_coordinates_are_rounded_to_a_thousandth_of_a_cell():
    frame = release("count")
    (layer,) = layers(geodp.explore(frame))
    texts = json.dumps(layer.data["features"][0]["geometry"])
    assert max(len(number.partition(".")[2]) for number in re.findall(r"[\d.]+", texts)) <= 4
    drawn = gpd.GeoDataFrame.from_features(layer.data["features"]).geometry.array
    assert shapely.hausdorff_distance(drawn, frame.geometry.array).max() < 1e-3


def test_ten_thousand_cells_are_a_few_megabytes():
    with testing.seeded(1):
        frame = points().dp(subject="who", cap=1, bounds=(0, 0, 4, 4), grid="square:0.04").heatmap(1.0)
    assert len(frame) == 10_000
    assert len(rendered(geodp.explore(frame))) < 4e6


def test_only_tiles_that_were_asked_for_are_loaded():
    frame = release("count")
    assert "L.tileLayer" not in rendered(geodp.explore(frame, tiles=None))
    assert "tile.openstreetmap.org" in rendered(geodp.explore(frame))


def test_names_cannot_break_out_of_the_page():
    evil = "</script><img src=x>{{ 7*7 }}{% raw %}"
    gdf = points(2000).rename(columns={"who": evil, "hour": "<b>"})
    shapes = zones().rename(columns={"zone": "<i>"})
    shapes["<i>"] = [f"<u>{i}" for i in range(4)]
    with testing.seeded(1):
        frame = gdf.dp(subject=evil, cap=1, grid=geodp.Zones(shapes, key="<i>")).heatmap(
            1.0, by={"<b>": [7, 8]}
        )
    html = rendered(geodp.explore(frame, tiles=None))
    for mark in ("</script><img", "<i>", "<u>", "<b>=", "49}"):
        assert mark not in html
    assert "7*7" in html


def test_a_legend_can_be_left_out_and_the_stamp_cannot():
    html = rendered(geodp.explore(release("count"), legend=False))
    assert "half-width" not in html
    assert "NOT PRIVATE" in html


def test_rows_picked_out_empty_frames_and_files(tmp_path):
    frame = release("count")
    assert "3 rows of the release are shown" in rendered(geodp.explore(frame.iloc[:3]))
    assert layers(geodp.explore(release("sparse").iloc[:0])) == []
    frame.to_parquet(tmp_path / "heat.parquet")
    (one,), (other,) = (
        layers(geodp.explore(f)) for f in (frame, gpd.read_parquet(tmp_path / "heat.parquet"))
    )
    assert one.data == other.data


def test_refusals():
    frame = release("count")
    with pytest.raises(geodp.NotARelease):
        geodp.explore(frame.assign(more=1))
    bare = pd.DataFrame(frame.drop(columns="geometry"))
    bare.attrs = frame.attrs
    with pytest.raises(TypeError, match="no outlines to draw"):
        geodp.explore(bare)
    with pytest.raises(ValueError, match="column must be one of"):
        geodp.explore(frame, "people")


def test_too_many_rows_point_to_what_can_show_them(monkeypatch):
    from geodp.maps import exploring

    monkeypatch.setattr(exploring, "_MOST_ROWS", 300)
    with pytest.raises(ValueError, match=r"362 rows in all slots; name one with slot=.*geodp.to_html"):
        geodp.explore(release("count", slots=True))
    assert layers(geodp.explore(release("count", slots=True), slot=7))
