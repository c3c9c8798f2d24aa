"""The recipes of docs/recipes.md run as they stand, as far as they go without a network."""

import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely

import geodp

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = dict(
    re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", (DOCS / "recipes.md").read_text("utf-8"), re.M | re.S)
)
START = re.search(r"```python\n(.*?)```", (DOCS / "recipes.md").read_text("utf-8"), re.S)[1]


@pytest.fixture(scope="module")
def heat():
    """A map of New York on which some cells can be told from zero and some cannot."""
    rng = np.random.default_rng(7)
    n = 40_000
    places = gpd.points_from_xy(rng.normal(-73.97, 0.05, n), rng.normal(40.75, 0.05, n))
    trips = gpd.GeoDataFrame({"rider": rng.integers(0, 9000, n)}, geometry=places, crs=4326)
    box = (-74.1, 40.6, -73.8, 40.9)
    return trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=box, outside="drop", grid="h3:7")


@pytest.fixture
def run(heat, tmp_path, monkeypatch):
    """Run a section after the lines that all of them start from, and return its names."""
    monkeypatch.chdir(tmp_path)

    def run(section, **given):
        names = {"heat": heat, **given}
        code = START + "\n".join(re.findall(r"```python\n(.*?)```", SECTIONS[section], re.S))
        with warnings.catch_warnings():
            # The packages themselves use what their own dependencies have begun to deprecate.
            warnings.simplefilter("ignore", DeprecationWarning)
            exec(compile(code, f"docs/recipes.md, {section}", "exec"), names)
        return names

    return run


def test_the_start(heat, run):
    names = run("QGIS")
    told, colours = names["told"].to_numpy(), names["colours"]
    assert 0 < told.sum() < len(heat)
    assert (colours[~told] == (190, 190, 190, 110)).all()
    assert not (colours[told, :3] == 190).all(axis=1).any()
    assert 0 < names["top"] <= heat["count"].max()


def test_a_map_on_which_nothing_can_be_told_is_all_grey(run):
    nothing = gpd.GeoDataFrame({"rider": []}, geometry=gpd.GeoSeries([], crs=4326)).astype({"rider": "int64"})
    noise = geodp.heatmap(nothing, 0.01, subject="rider", cap=1, bounds=(0, 0, 1, 1), grid="h3:4")
    names = run("QGIS", heat=noise)
    assert (names["colours"] == (190, 190, 190, 110)).all()


def test_lonboard(heat, run):
    pytest.importorskip("lonboard", reason="needs the extra recipes")
    names = run("lonboard")
    assert "<html" in names["page"]
    assert len(names["layer"].table) == len(heat)


def test_lonboard_146_rows_without_a_place_are_left_out_before_they_are_drawn():
    """A point that could not be moved has no geometry; such rows never reach lonboard."""
    pytest.importorskip("lonboard", reason="needs the extra recipes")
    from lonboard import ScatterplotLayer

    places = gpd.GeoSeries([shapely.Point(0.2, 0.2), None, shapely.Point()], crs=4326)
    reports = gpd.GeoDataFrame({"rider": ["a", "b", "c"]}, geometry=places)
    moved = reports.dp.perturb(eps_per_km=2, subject="rider", max_reports=1)
    placed = moved[moved.geometry.notna()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert len(ScatterplotLayer.from_geopandas(placed.reset_index()).table) == len(placed) == 1


def test_pydeck(heat, run):
    pytest.importorskip("pydeck", reason="needs the extra recipes")
    names = run("pydeck")
    page = Path("heat-pydeck.html").read_text("utf-8")
    assert heat.index[0] in page
    assert "basemaps" not in page
    assert len(names["table"]) == len(heat)


def test_keplergl(heat, run):
    pytest.importorskip("keplergl", reason="needs the extra recipes")
    names = run("kepler.gl")
    assert sum(map(len, names["parts"].values())) == len(heat)
    assert {layer["id"] for layer in names["layers"]} == set(names["parts"])
    assert heat.index[0] in Path("heat-kepler.html").read_text("utf-8")


def test_plotly(heat, run):
    pytest.importorskip("plotly", reason="needs the extra recipes")
    figure = run("plotly")["figure"]
    coloured, grey = figure.data
    assert len(coloured.locations) + len(grey.locations) == len(heat)
    ids = {feature["id"] for feature in figure.data[0].geojson["features"]}
    assert {*coloured.locations, *grey.locations} == ids == set(heat.index)
    assert "cdn.plot.ly" not in Path("heat-plotly.html").read_text("utf-8").partition("<body>")[2][:2000]


def test_qgis(heat, run):
    names = run("QGIS")
    again = gpd.read_file("heat.gpkg")
    assert again["told"].astype(bool).tolist() == names["told"].tolist()
    assert again["h3_07"].tolist() == heat.index.tolist()
    style = ElementTree.parse(DOCS / "heat.qml").getroot()
    assert style.tag == "qgis"
    (renderer,) = style.iter("renderer-v2")
    rules = [rule.get("filter") for rule in renderer.iter("rule") if rule.get("filter")]
    assert renderer.get("type") == "RuleRenderer"
    assert rules == ['"told"', "ELSE"]
    # Whatever the style asks the layer for is there.
    text = (DOCS / "heat.qml").read_text("utf-8").replace("&quot;", '"')
    asked = set(re.findall(r'"(told|count|noisy_count|lower|upper|estimate)"', text))
    assert {"told", "count", "noisy_count", "lower", "upper"} <= asked <= set(again.columns)
