"""Records in English, and slots side by side."""

import math
import re

import geopandas as gpd
import numpy as np
import pytest
from kinds_of_releases import copies

import geodp
from geodp import testing

BOX = (-74.3, 40.4, -73.6, 41.0)
HEADS = ["Released", "Protects", "At most", "Limits", "Noise", "Map", "Open", "Ledger"]


@pytest.fixture
def releases():
    return copies()


def flat(text):
    return re.sub(r"\s+", " ", str(text))


def heads(text):
    return [line[:12].strip() for line in text.splitlines() if line[:12].strip()]


def test_every_release_is_explained(releases):
    for name, frame in releases.items():
        text = geodp.explain(frame)
        assert heads(text) == HEADS, name
        assert max(map(len, text.splitlines())) <= 110
        assert text == geodp.explain(geodp.record(frame))
        assert repr(text) == str(text)


def test_what_a_data_protection_officer_reads(releases):
    text = flat(geodp.explain(releases["count"]))
    for words in (
        "distinct riders, each in at most 4 cells, once in each; not trips",
        "factor of at most 2.72 (e to the eps, eps 1): from even odds, 50 %, to 73.2 % at most",
        "Without exception: delta is 0.",
        "A rider counts in at most 4 cells, once in each; the code enforces it",
        "border cells also hold everybody outside",
        "standard deviation 5.64, within 12 in 95 %",
        "None: no ledger counts",
    ):
        assert words in text


UNLISTED = {"subject": "rider", "cap": 4, "bounds": BOX, "grid": "h3:9"}


@pytest.mark.parametrize("by", [None, {"hour": range(24)}])
def test_which_cells_a_sparse_release_holds(by):
    """The threshold, and as many empty cells as the plan says; its number of cells is an upper bound."""
    plan = geodp.plan(1, **UNLISTED, by=by, cells="sparse", phantoms=3)
    text = flat(geodp.explain(plan.to_dict()))
    assert f"noisy number is {plan.threshold} or more, empty or not, are in the file" in text
    assert f"at most {plan.n_cells:,} of them" in text
    expected = float(re.search(r"\(at most ([\d.]+) empty ones are expected there\)", text).group(1))
    law = plan.measurements[0].law
    assert expected == pytest.approx(float(law.sf(plan.threshold - 1)) * plan.layout.n_keys, abs=0.005)
    assert 1 < expected <= 3


def test_which_cells_a_selected_release_holds():
    plan = geodp.plan(1, 1e-6, **UNLISTED, cells="select")
    text = flat(geodp.explain(plan.to_dict()))
    assert f"hold somebody and whose noisy number is {plan.threshold} or more are in the file: which" in text
    assert "empty" not in text


@pytest.mark.parametrize("eps", ["0.001", "0.1", "1", "1.1", "5", "20", "700", "5000"])
def test_odds_are_never_said_too_small(eps):
    record = geodp.plan(1, subject="rider", cap=1, bounds=BOX, grid="h3:5").to_dict()
    record["eps"] = float(eps)
    text = flat(geodp.explain(record))
    factor = float(re.search(r"factor of at most ([\d,.e+]+) ", text).group(1).replace(",", ""))
    share = float(re.search(r"50 %, to ([\d.]+) %", text).group(1))
    assert factor >= math.exp(min(float(eps), 700)) * (1 - 1e-2 * (float(eps) > 30))
    assert 100 >= share >= 100 / (1 + math.exp(-min(float(eps), 700))) - 1e-12
    assert ("close to no protection" in text) == (float(eps) > 5)


def test_delta_and_population_in_heads():
    plan = geodp.plan(
        1, "1e-7", subject="rider", cap=4, bounds=BOX, grid="h3:5", population=50_000, mechanism="gaussian"
    )
    text = flat(geodp.explain(plan.to_dict()))
    assert "Except with probability delta, 1e-07" in text
    assert "Among 50,000 declared subjects that is 0.005 of them, expected." in text


def test_rows_are_not_people(trips):
    heat = trips.dp.heatmap(1, subject=geodp.EACH_ROW, bounds=BOX, grid="h3:5")
    text = flat(geodp.explain(heat))
    assert "Single rows, not people" in text
    assert "keeps a secret random choice" not in text


def test_replacement_slots_values_and_zones(releases, trips):
    swap = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:5", neighboring="replace_one")
    assert "how many there are is not protected" in flat(geodp.explain(swap))
    assert "each of 48 slots (hour x late)" in flat(geodp.explain(releases["slots"]))
    assert "Values are cut to 0 ... 120 first." in flat(geodp.explain(releases["mean"]))
    assert "Points outside all zones are left out." in flat(geodp.explain(releases["zones"]))
    assert "every total of coarse blocks" in flat(geodp.explain(releases["levels"]))
    assert "scaled to a total without the cap" in flat(geodp.explain(releases["rescaled"]))
    assert "at smaller weights" in flat(geodp.explain(releases["weighted"]))


def test_test_releases_shout(trips):
    with testing.noiseless():
        heat = trips.dp.heatmap(1, subject="rider", cap=1, bounds=BOX, grid="h3:5")
    text = geodp.explain(heat)
    assert text.startswith("NOT PRIVATE This release protects nobody: its noise is none (test).")


def test_moved_points_are_explained_by_distance(trips):
    moved = trips.dp.perturb(eps_per_km=1, subject="rider", max_reports=3, keep=["hour"])
    text = flat(geodp.explain(moved))
    for words in (
        "geo-indistinguishability",
        "2.72 at 1 km",
        "At most 3 reports of one rider",
        "eps 3 per km",
        "2 km off on average",
        "not (eps, delta)-differential privacy",
        "['hour'] are published as they are",
    ):
        assert words in text


def test_the_ledgers_spend(trips, tmp_path):
    ledger = geodp.Ledger(tmp_path / "city.ledger", eps=3, delta=1e-5, control="DPIA-2026-14")
    view = trips.dp(subject="rider", cap=1, bounds=BOX, grid="h3:5", ledger=ledger)
    heat = view.heatmap(1, 1e-6, label="monday", reason="weekly report")
    text = flat(geodp.explain(heat))
    assert '"monday", entry 1 of city.ledger' in text
    assert "eps 1 and delta 0 are spent of a ceiling of eps 3, delta 1e-05" in text
    assert "Control: DPIA-2026-14." in text
    assert "Reason: weekly report." in text
    assert '"monday", entry 1' in flat(geodp.explain(ledger.record("monday")))


def test_names_are_shown_in_one_line(trips):
    odd = "rider\n\nNOT A HEADING\u202e"
    frame = trips.rename(columns={"rider": odd})
    text = geodp.explain(frame.dp.heatmap(1, subject=odd, cap=1, bounds=BOX, grid="h3:5"))
    assert heads(text) == HEADS
    assert "\u202e" not in text


@pytest.mark.parametrize(
    "wrong", [{}, {"eps": 1}, {"guarantee": "x"}, {"guarantee": "x", "query": "perturb"}]
)
def test_what_is_no_record_is_not_explained(wrong):
    with pytest.raises(geodp.NotARelease):
        geodp.explain(wrong)


def test_changed_frames_are_not_explained(releases):
    with pytest.raises(geodp.NotARelease, match="no longer"):
        geodp.explain(releases["count"].iloc[1:])


def test_pivot_spreads_slots_in_their_order(releases):
    long = releases["slots"]
    wide = geodp.pivot(long)
    assert isinstance(wide, gpd.GeoDataFrame)
    assert wide.crs == "EPSG:4326"
    assert wide.index.tolist() == long.index.get_level_values(0).unique().tolist()
    assert wide.columns[:3].tolist() == ["hour=0, late=False", "hour=0, late=True", "hour=1, late=False"]
    assert len(wide.columns) == 49
    for cell in wide.index[:3]:
        assert wide.loc[cell, "hour=7, late=True"] == long.loc[(cell, 7, True), "count"]
    assert wide.dtypes.iloc[0] == np.int64
    wide.plot("hour=7, late=False")
    with pytest.raises(geodp.NotARelease):
        geodp.record(wide)


def test_pivot_of_any_column_and_query(releases):
    assert (
        geodp.pivot(releases["slots"], "noisy_count").to_numpy()[:, :48].sum()
        == releases["slots"]["noisy_count"].sum()
    )
    means = geodp.pivot(releases["mean in slots"])
    assert means.dtypes.iloc[0] == np.float64
    with pytest.raises(ValueError, match="column must be one of"):
        geodp.pivot(releases["slots"], "nothing")
    with pytest.raises(ValueError, match="column must be one of"):
        geodp.pivot(releases["slots"], "geometry")
    with pytest.raises(ValueError, match="no slots"):
        geodp.pivot(releases["count"])
    with pytest.raises(geodp.NotARelease):
        geodp.pivot(releases["slots"].iloc[1:])


def test_pivot_without_outlines_and_with_lookalike_levels(trips):
    frame = trips.assign(code=np.array([7, "7"] * 200, dtype=object))
    heat = frame.dp.heatmap(
        1, subject="rider", cap=1, bounds=BOX, grid="h3:5", by={"code": [7, "7"]}, return_geometry=False
    )
    assert geodp.pivot(heat).columns.tolist() == ["code=7", "code='7'"]
