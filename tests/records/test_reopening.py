"""Releases come back from files as what they were, or not at all."""

import json

import geopandas as gpd
import pandas as pd
import pytest
from kinds_of_releases import copies, made

import geodp
from geodp.writing import write

KINDS = sorted(made())
ENDINGS = ["geojson", "gpkg", "parquet", "fgb"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_from_every_format(kind, ending, tmp_path):
    frame = copies()[kind]
    back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
    assert geodp.record(back) == geodp.record(frame)
    assert back.index.names == frame.index.names
    plain = pd.DataFrame(frame.drop(columns="geometry"))
    pd.testing.assert_frame_equal(
        pd.DataFrame(back.drop(columns="geometry")), plain, check_index_type=False, check_like=True
    )
    assert list(back.columns) == list(frame.columns) or ending in ("gpkg", "fgb")
    assert back.geometry.geom_equals_exact(frame.geometry, 1e-6).all() or ending in ("geojson", "gpkg", "fgb")


@pytest.mark.parametrize("cells", ["sparse", "select"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_releases_of_some_cells_come_back(cells, ending, tmp_path):
    points = gpd.GeoDataFrame(
        {"rider": range(300)}, geometry=gpd.points_from_xy([-73.97] * 300, [40.75] * 300), crs=4326
    )
    frame = points.dp(subject="rider", cap=1, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:9").heatmap(
        1, 1e-6, cells=cells
    )
    back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
    assert back["noisy_count"].to_dict() == frame["noisy_count"].to_dict()


def test_what_was_changed_or_never_was_a_release_is_refused(tmp_path):
    frame = copies()["count"]
    path = geodp.to_geojson(frame, tmp_path / "heat.geojson")
    whole = json.loads(path.read_text())
    fewer = {**whole, "features": whole["features"][1:]}
    louder = {**whole, "geodp": {**whole["geodp"], "eps": 9}}
    other = {**whole, "features": [{**f, "properties": {"n": 1}} for f in whole["features"]]}
    for wrong in (fewer, louder, other):
        path.write_text(json.dumps(wrong))
        with pytest.raises(geodp.NotARelease):
            geodp.read_release(path)
    frame.to_file(path)
    with pytest.raises(geodp.NotARelease, match="no geodp record"):
        geodp.read_release(path)
    with pytest.raises(FileNotFoundError):
        geodp.read_release(tmp_path / "none.geojson")
    (tmp_path / "heat.csv").write_text("a\n")
    with pytest.raises(ValueError, match="comes back from"):
        geodp.read_release(tmp_path / "heat.csv")


def test_a_test_release_stays_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GEODP_TESTING", "1")
    points = gpd.GeoDataFrame({"who": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.5]), crs=4326)
    with geodp.testing.noiseless():
        frame = geodp.heatmap(points, 1, subject="who", cap=1, bounds=(0, 0, 1, 1), grid="square:0.5")
    for ending in ENDINGS:
        back = geodp.read_release(write(frame, tmp_path / f"heat.{ending}"))
        assert geodp.record(back)["noise"] == "none (test)"
