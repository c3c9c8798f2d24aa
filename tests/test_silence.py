"""What a library says about single rows stays inside the release."""

import warnings

import geopandas as gpd
import numpy as np
import pytest

import geodp
from geodp import points

NYC = (-74.3, 40.4, -73.6, 41.0)
WHO = {"subject": "rider", "bounds": NYC, "grid": "h3:5"}
CALLS = {
    "heatmap": lambda gdf: geodp.heatmap(gdf, 1, cap=2, **WHO),
    "mean": lambda gdf: geodp.mean(gdf, "minutes", 1, value_bounds=(0, 9), cap=2, **WHO),
    "sparse": lambda gdf: geodp.heatmap(gdf, 1, cap=2, cells="sparse", **WHO),
    "cap": lambda gdf: geodp.choose_cap(gdf, 1, **WHO),
    "auto": lambda gdf: geodp.heatmap(gdf, 1, cap="auto", **WHO),
    "together": lambda gdf: geodp.release_together(gdf, {"a": geodp.Count()}, 1, cap=2, **WHO),
    "perturb": lambda gdf: geodp.perturb(gdf, 1, subject="rider", max_reports=1),
}


@pytest.fixture
def _talkative(monkeypatch):
    """Let the placing of rows warn as a library would, in words and by a number that overflows."""
    honest = points._coordinates

    def coordinates(geometry):
        warnings.warn("row 4711 is odd", UserWarning, stacklevel=2)
        np.array([1e308, 0.0]) * np.array([10.0, 1.0]) / np.array([1.0, 0.0])
        return honest(geometry)

    monkeypatch.setattr(points, "_coordinates", coordinates)


@pytest.mark.usefixtures("_talkative")
@pytest.mark.parametrize("call", CALLS)
def test_no_warning_of_rows_gets_out(trips, call):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="raise"):
        warnings.simplefilter("always")
        before = list(warnings.filters)
        CALLS[call](trips)
        assert warnings.filters == before
        assert np.geterr()["over"] == "raise"
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.usefixtures("_talkative")
def test_the_planted_warning_would_be_seen(trips):
    with pytest.warns() as caught:
        points.lonlat(trips)
    assert {warning.category for warning in caught} == {UserWarning, RuntimeWarning}


@pytest.mark.parametrize("call", CALLS)
def test_rows_of_every_kind_raise_and_warn_of_nothing(trips, call):
    odd = trips.copy()
    odd.geometry = gpd.GeoSeries(
        gpd.points_from_xy([np.inf, np.nan, 1e308, 5e-324] * 100, [95, 1e308, np.nan, -90] * 100), crs=4326
    )
    odd["minutes"] = [np.inf, -np.inf, np.nan, 1e308] * 100
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        CALLS[call](odd)
