"""Frames in files and on maps: what plain geopandas does with a release, and GeoJSON with its record."""

import json
import stat

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from kinds_of_releases import copies

import geodp
from geodp import testing

BOX = (-74.3, 40.4, -73.6, 41.0)
KINDS = ["count", "slots", "sum", "mean", "centroid", "zones", "weighted", "metres"]


@pytest.fixture
def releases():
    return copies()


@pytest.fixture(autouse=True)
def _headless(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


def strict(text):
    """Parse JSON, with NaN and infinities refused."""

    def refuse(constant):
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def rings(geometry):
    """All exteriors, and all holes."""
    polygons = [p for p in shapely.get_parts(geometry) if p.geom_type == "Polygon"]
    return [p.exterior for p in polygons], [hole for p in polygons for hole in p.interiors]


@pytest.mark.parametrize("kind", KINDS)
def test_geojson_is_rfc_7946_with_the_record(releases, kind, tmp_path):
    frame = releases[kind]
    path = geodp.to_geojson(frame, tmp_path / "a.geojson")
    held = strict(path.read_text(encoding="utf-8"))
    assert list(held) == ["type", "geodp", "geodp_frame", "features"]
    assert held["type"] == "FeatureCollection"
    assert held["geodp"] == geodp.record(frame)
    assert len(held["features"]) == len(frame)
    assert [list(f) for f in held["features"]] == [["type", "id", "properties", "geometry"]] * len(frame)
    exteriors, holes = rings([shapely.geometry.shape(f["geometry"]) for f in held["features"]])
    assert all(map(shapely.is_ccw, exteriors))
    assert not any(map(shapely.is_ccw, holes))
    bounds = shapely.total_bounds([shapely.geometry.shape(f["geometry"]) for f in held["features"]])
    assert np.allclose(bounds, frame.total_bounds, atol=1e-6)
    names = [*frame.index.names, *frame.columns.drop("geometry")]
    assert list(held["features"][0]["properties"]) == names
    for name in frame.columns.drop("geometry"):
        assert [f["properties"][name] for f in held["features"]] == frame[name].tolist()


def test_deckgl_10317_ids_are_15_character_strings(releases, tmp_path):
    held = strict(geodp.to_geojson(releases["count"], tmp_path / "a").read_text())
    ids = [f["id"] for f in held["features"]]
    assert ids == releases["count"].index.tolist()
    assert {len(i) for i in ids} == {15}
    assert all(i == i.lower() == f["properties"]["h3_06"] for i, f in zip(ids, held["features"], strict=True))


def test_folium_1185_zone_keys_stay_numbers(releases, tmp_path):
    held = strict(geodp.to_geojson(releases["zones"], tmp_path / "a").read_text())
    assert [f["id"] for f in held["features"]] == list(range(7))


def test_slots_have_one_id_each(releases, tmp_path):
    held = strict(geodp.to_geojson(releases["slots"], tmp_path / "a").read_text())
    ids = [f["id"] for f in held["features"]]
    assert len(set(ids)) == len(ids)
    first = held["features"][1]
    assert first["id"] == f"{releases['slots'].index[1][0]}/0/True"
    assert (first["properties"]["hour"], first["properties"]["late"]) == (0, True)


def test_gdal_1109_geojson_reads_back_in_degrees_everywhere(releases, tmp_path):
    path = geodp.to_geojson(releases["count"], tmp_path / "a.geojson")
    read = gpd.read_file(path)
    assert read.crs.equals(4326, ignore_axis_order=True)
    assert "crs" not in strict(path.read_text())
    assert read["count"].tolist() == releases["count"]["count"].tolist()
    assert shapely.equals_exact(
        shapely.normalize(np.asarray(read.geometry)),
        shapely.normalize(np.asarray(releases["count"].geometry)),
        2e-7,
    ).all()


def test_frames_in_another_crs_are_written_in_degrees(releases, tmp_path):
    frame = releases["count"].to_crs(3857)
    held = strict(geodp.to_geojson(frame, tmp_path / "a").read_text())
    bounds = shapely.total_bounds([shapely.geometry.shape(f["geometry"]) for f in held["features"]])
    assert np.allclose(bounds, releases["count"].total_bounds, atol=1e-6)


def test_holes_and_the_180th_meridian(tmp_path):
    ring = shapely.box(0, 0, 10, 10).difference(shapely.box(4, 4, 6, 6))
    zones = gpd.GeoDataFrame(
        {"z": ["ring", "fiji"]}, geometry=[ring, shapely.box(179, -18, 181, -16)], crs=4326
    )
    points = gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([1.0], [1.0]), crs=4326)
    heat = points.dp.heatmap(1, subject="rider", cap=1, grid=geodp.Zones(zones, "z"))
    held = strict(geodp.to_geojson(heat, tmp_path / "a").read_text())
    shapes = [shapely.geometry.shape(f["geometry"]) for f in held["features"]]
    exteriors, holes = rings(shapes)
    assert (len(exteriors), len(holes)) == (3, 1)
    assert all(map(shapely.is_ccw, exteriors))
    assert not shapely.is_ccw(holes[0])
    assert all(part.bounds[2] - part.bounds[0] <= 180 for part in shapely.get_parts(shapes))


def test_test_releases_are_stamped(trips, tmp_path):
    with testing.seeded(1):
        heat = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:5")
    text = geodp.to_geojson(heat, tmp_path / "a").read_text()
    assert text.startswith('{"type": "FeatureCollection", "NOT PRIVATE": "noise: seeded (test).')
    assert list(strict(text)) == ["type", "NOT PRIVATE", "geodp", "geodp_frame", "features"]


def test_the_file_appears_whole_or_not_at_all(releases, tmp_path, monkeypatch):
    path = tmp_path / "a.geojson"
    path.write_text("old")
    monkeypatch.setattr(
        "geodp.exporting._features", lambda rows: iter(["{}", 1 / 0 if rows is None else None])
    )
    with pytest.raises(TypeError):
        geodp.to_geojson(releases["count"], path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.geojson"]
    monkeypatch.undo()
    assert geodp.to_geojson(releases["count"], str(path)) == path
    assert strict(path.read_text())["type"] == "FeatureCollection"
    assert [p.name for p in tmp_path.iterdir()] == ["a.geojson"]
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_large_frames_are_written_in_pieces(releases, tmp_path, monkeypatch):
    whole = geodp.to_geojson(releases["count"], tmp_path / "a").read_text()
    monkeypatch.setattr("geodp.exporting._CHUNK", 7)
    assert geodp.to_geojson(releases["count"], tmp_path / "b").read_text() == whole


def test_geojson_is_the_same_but_for_the_numbers(trips, tmp_path):
    """Of neighbours, and of no data at all: the same features, keys and coordinates."""

    def skeleton(frame):
        heat = frame.dp.heatmap(1, 1e-6, subject="rider", cap=2, bounds=BOX, grid="h3:5")
        held = strict(geodp.to_geojson(heat, tmp_path / "a").read_text())
        for feature in held["features"]:
            feature["properties"] = {
                name: type(value).__name__ for name, value in feature["properties"].items()
            }
        return held

    assert skeleton(trips) == skeleton(trips.iloc[:0]) == skeleton(trips[trips["rider"] != "r01"])


def test_only_releases_are_written(releases, trips, tmp_path):
    for frame in (trips, releases["count"].iloc[1:], releases["count"].assign(x=1)):
        with pytest.raises(geodp.NotARelease):
            geodp.to_geojson(frame, tmp_path / "a")
    bare = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:5", return_geometry=False)
    with pytest.raises(TypeError, match="no outlines"):
        geodp.to_geojson(bare, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_odd_keys_and_labels_are_safe_json(trips, tmp_path):
    keys = ['<script>"', "line\nbreak", "é\u2028", "a/b"]
    squares = [shapely.box(i, 0, i + 1, 1) for i in range(4)]
    zones = geodp.Zones(gpd.GeoDataFrame({"</script>": keys}, geometry=squares, crs=4326), "</script>")
    heat = trips.dp.heatmap(1, subject="rider", cap=1, grid=zones, by={"hour": [7, 8]})
    held = strict(geodp.to_geojson(heat, tmp_path / "a").read_text(encoding="utf-8"))
    assert sorted({f["properties"]["</script>"] for f in held["features"]}) == sorted(keys)


def test_dates_and_large_integers_as_keys(trips, tmp_path):
    squares = [shapely.box(i, 0, i + 1, 1) for i in range(2)]
    days = pd.to_datetime(["2026-11-30", "2026-12-01"])
    large = [2**60, 2**60 + 1]
    for keys, wanted in (
        (days, ["2026-11-30T00:00:00", "2026-12-01T00:00:00"]),
        (large, [str(k) for k in large]),
    ):
        zones = geodp.Zones(gpd.GeoDataFrame({"k": keys}, geometry=squares, crs=4326), "k")
        heat = trips.dp.heatmap(1, subject="rider", cap=1, grid=zones)
        held = strict(geodp.to_geojson(heat, tmp_path / "a").read_text())
        assert [f["id"] for f in held["features"]] == wanted


def test_moved_points_are_written_with_null_geometries(trips, tmp_path):
    trips.loc[3, "geometry"] = None
    moved = trips.dp.perturb(eps_per_km=1, subject="rider", max_reports=400, keep=["hour"])
    held = strict(geodp.to_geojson(moved, tmp_path / "a").read_text())
    assert held["features"][3]["geometry"] is None
    assert held["features"][0]["geometry"]["type"] == "Point"
    assert held["geodp"]["guarantee"] == "geo-indistinguishability"


# Plain geopandas.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg"])
def test_geopandas_3597_to_file_of_every_release(releases, kind, name, tmp_path):
    frame = releases[kind]
    frame.to_file(tmp_path / name)
    read = gpd.read_file(tmp_path / name)
    assert len(read) == len(frame)
    assert read.crs.equals(4326, ignore_axis_order=True)
    assert [n for n in [*frame.index.names, *frame.columns] if n not in read.columns] == []
    if name.endswith("geojson"):
        held = strict((tmp_path / name).read_text())
        assert "crs" not in held or "CRS84" in json.dumps(held["crs"])


@pytest.mark.parametrize("kind", KINDS)
def test_to_json_is_strict_and_keyed_by_the_ids(releases, kind):
    frame = releases[kind]
    held = strict(frame.to_json())
    assert len(held["features"]) == len(frame)
    if frame.index.nlevels == 1:
        assert [f["id"] for f in held["features"]] == [str(i) for i in frame.index]


def test_geopandas_3320_parquet_keeps_record_ids_and_geometry(releases, tmp_path):
    for frame in releases.values():
        frame.to_parquet(tmp_path / "a.parquet")
        read = gpd.read_parquet(tmp_path / "a.parquet")
        pd.testing.assert_frame_equal(
            pd.DataFrame(read.drop(columns="geometry")), pd.DataFrame(frame.drop(columns="geometry"))
        )
        assert read.attrs == frame.attrs
        assert read.crs == frame.crs


def test_geopandas_181_always_a_geodataframe_in_degrees(releases):
    for frame in releases.values():
        assert isinstance(frame, gpd.GeoDataFrame)
        assert frame.crs == "EPSG:4326"
        assert frame.geometry.name == "geometry"


# mapclassify says so where values repeat, and draws fewer classes.
few_classes = pytest.mark.filterwarnings("ignore:Not enough unique values:UserWarning")


@few_classes
@pytest.mark.parametrize("kind", ["count", "zones", "metres"])
def test_plot_and_explore(releases, kind):
    import matplotlib.pyplot as plt

    frame = releases[kind]
    frame.plot("count")
    frame.plot("count", scheme="quantiles", legend=True)
    plt.close("all")
    html = frame.explore("count").get_root().render()
    assert str(frame.index[0]) in html


@few_classes
def test_mapclassify_88_constant_columns_and_one_cell(trips):
    import matplotlib.pyplot as plt

    with testing.noiseless():
        empty = trips.iloc[:0].dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:5")
        one = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="box")
    assert set(empty["count"]) == {0}
    for frame in (empty, one):
        frame.plot("count")
        frame.plot("count", scheme="quantiles")
        assert frame.explore("count").get_root().render()
        assert frame.explore("count", scheme="quantiles").get_root().render()
    plt.close("all")


def test_opendp_901_looking_does_not_draw_again(releases, tmp_path):
    frame = releases["count"]
    before = frame["noisy_count"].tolist()
    (
        repr(frame),
        frame._repr_html_(),
        frame.to_json(),
        geodp.to_geojson(frame, tmp_path / "a"),
        geodp.explain(frame),
    )
    geodp.total(frame, BOX)
    assert frame["noisy_count"].tolist() == before


def test_folium_498_choropleth_joins_by_string_ids(releases):
    import folium

    frame = releases["count"]
    table = frame["count"].rename_axis("id").reset_index()
    layer = folium.Choropleth(frame.to_json(), data=table, columns=["id", "count"], key_on="feature.id")
    html = layer.add_to(folium.Map()).get_root().render()
    assert html.count('"fillColor": "black"') == 0
