"""Every snippet of the README runs, in order, in a fresh folder."""

import re
import warnings
from pathlib import Path

import geopandas as gpd
import matplotlib
import pytest
import shapely

matplotlib.use("Agg")

ROOT = Path(__file__).parent.parent


def snippets(name: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S))


def test_every_python_snippet_of_the_readme_runs(trips, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trips.to_parquet("trips.parquet")
    boxes = [shapely.box(x, 40.4, x + 0.2, 41.0) for x in (-74.3, -74.1, -73.9, -73.7)]
    gpd.GeoDataFrame({"zone_id": [1, 2, 3, 4]}, geometry=boxes, crs=4326).to_file("zones.geojson")
    code = snippets("README.md")
    assert code.count("\n") > 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert (tmp_path / "heat.geojson").stat().st_size > 1000
    assert (tmp_path / "city.ledger").exists()


@pytest.mark.parametrize("name", ["README.md", "PRIVACY.md"])
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / name).read_text()):
        assert (ROOT / target).exists(), target
