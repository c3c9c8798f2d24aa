"""What maps say: the guarantee, the noise, whom they protect, and the words of the tooltip."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from released_maps import GRIDS, KINDS, UNLISTED, moved, points, release

import geodp
from geodp import testing
from geodp.maps import words
from geodp.maps.held import held
from geodp.maps.pictures import picture
from geodp.maps.scales import Scale

ALL = [*KINDS, *UNLISTED]


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("kind", ALL)
def test_every_legend_states_eps_delta_and_the_half_width(kind, slots):
    frame = release(kind, slots=slots)
    facts = frame.attrs["geodp"]
    shows = picture(frame)
    said = "\n".join(shows.lines)
    together = " (2 views together)" if kind == "joint" else ""
    assert (
        shows.lines[0]
        == f"eps {facts['eps']:g}, delta {facts['delta']:g}{together}, for one who more or less"
    )
    assert ("within" if kind == "centroid" else "half-width ±") in said
    assert ("hold somebody and measure" if kind == "select" else "told from zero in") in said
    assert ("all slots" in said) == (slots and kind != "select")
    assert ("only cells measured at" in said) == (kind == "sparse")
    assert ("scaled to a total" in said) == (kind == "rescaled")


def test_the_half_width_is_the_interval_of_the_frame():
    for kind, unit in (("count", ""), ("sum", " minutes"), ("weighted", "")):
        frame = release(kind)
        measured = {"count": "noisy_count", "sum": "noisy_sum", "weighted": "noisy_weighted_count"}[kind]
        half = float((frame["upper"] - frame[measured]).iloc[0])
        line = next(line for line in picture(frame).lines if line.startswith("half-width"))
        assert line == f"half-width ± {words.figure(half)}{unit}: the noise of 95 % of cells"


def test_tooltips_have_the_agreed_words():
    frame = release("count")
    first = frame.iloc[0]
    said = words.tooltips(held(frame))
    numbers = [int(first[name]) for name in ("count", "noisy_count", "lower", "upper")]
    assert said[0] == "map estimate {}; measured {} ({} to {})".format(*numbers)
    assert len(said) == len(frame)


@pytest.mark.parametrize("kind", ALL)
def test_tooltips_show_what_the_frame_holds(kind):
    frame = release(kind, grid="square")
    shows = picture(frame)
    said = words.tooltips(shows.rows, shows.told)
    names = {"mean": ["mean", "lower", "upper", "count", "noisy_count"], "centroid": ["count", "noisy_count"]}
    query = frame.attrs["geodp"]["query"]
    for row, line in zip(frame.to_dict("records"), said, strict=True):
        for name in names.get(query, [query, f"noisy_{query}", "lower", "upper"]):
            assert words.figure(row[name]) in line
        assert (words.EDGE in line) == row["edge"]
    assert [words.untold(frame.attrs["geodp"]) in line for line in said] == (~shows.told).tolist()


def test_names_of_rows_hold_cell_and_slot():
    frame = release("count", slots=True)
    cell, hour = frame.index[1]
    assert words.row_names(frame.index)[1] == f"h3_04 {cell}, hour={hour}"


def test_what_protects_rows_says_so():
    with pytest.warns(geodp.PrivacyUnitWarning), testing.seeded(1):
        frame = points(500).dp(**GRIDS["h3"]).heatmap(1.0)
    shows = picture(frame)
    assert shows.title == "rows per H3 cell (resolution 4)"
    assert "protects single rows, not people" in shows.lines


def test_what_protects_nobody_is_stamped():
    assert picture(release("count")).stamp == "NOT PRIVATE: noise seeded (test)"
    real = points(50).dp(subject="who", cap=1, **GRIDS["h3"]).heatmap(1.0)
    assert picture(real).stamp is None


def test_rows_of_a_release_are_called_that():
    frame = release("count")
    assert "3 rows of the release are shown, not all of them" in picture(frame.iloc[:3]).lines
    assert not any("rows of the release" in line for line in picture(frame.iloc[::-1]).lines)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("estimate", "map estimate before rounding; distinct whos"),
        ("noisy_count", "as measured; distinct whos"),
        ("lower", "lower end of the interval; distinct whos"),
        (None, "distinct whos, each in at most 1 cell, once in each; not trips"),
    ],
)
def test_the_heading_says_what_a_column_is(column, said):
    assert picture(release("count"), column).heading.startswith(said)


def test_headings_of_other_kinds():
    assert picture(release("sum")).heading.startswith("sum of minutes, each record between 0 and 120")
    assert picture(release("mean")).heading.startswith("mean minutes of records between 0 and 120")
    assert picture(release("mean"), "count").heading.startswith("records behind the mean; ")
    assert picture(release("centroid")).heading.startswith("whos behind the mean place")
    assert picture(release("weighted")).heading.startswith("weighted whos")
    assert picture(moved()).lines == (
        "geo-indistinguishability, eps 1 per km and report",
        "95 % of the true points lie within 4.79 km of those shown",
    )


def test_moved_points_say_how_far_away_the_true_ones_are():
    # At most 1.03 % more on the ground than on the sphere, and a metre of snapping.
    reach = 1.0103 * geodp.radius_quantile_m(1, 0.95) + 1
    frame = moved()
    said = words.tooltips(held(frame))
    assert said == [f"moved point, the true one within {words.distance(reach)} (95 %)"] * len(frame)
    inside = geodp.perturb(
        points(20), eps_per_km=1.0, subject="who", max_reports=1, remap=shapely.box(0, 0, 4, 4)
    )
    assert picture(inside).lines[1].endswith("before they were moved into the polygons")


def spiked(seed=6, **more):
    """Twelve people in one cell of an empty map; in this seed the map's own number is smoothed to 0."""
    gdf = gpd.GeoDataFrame(
        {"who": range(12)}, geometry=gpd.points_from_xy([2.05] * 12, [2.05] * 12), crs=4326
    )
    with testing.seeded(seed):
        view = gdf.dp(subject="who", cap=1, bounds=(0, 0, 4, 4), grid="square:0.25", outside="drop")
        return view.heatmap(1.0, **more)


def test_a_cell_smoothed_out_of_its_interval_is_not_drawn_as_empty():
    frame = spiked()
    shows = picture(frame)
    (row,) = np.flatnonzero(shows.told)
    assert frame.iloc[row][["count", "noisy_count", "lower", "upper"]].tolist() == [0, 12, 9, 15]
    assert shows.values[row] == 9
    assert words.tooltips(shows.rows, shows.told)[row] == (
        "map estimate 0; measured 12 (9 to 15); smoothed below its interval; the measurement is 12"
    )
    assert "cells smoothed below their interval have the colour of its nearer end" in shows.lines
    assert picture(frame, "noisy_count").values[row] == 12
    others = np.flatnonzero(~shows.told)
    assert not any("smoothed" in line for line in np.array(words.tooltips(shows.rows, shows.told))[others])


@pytest.mark.parametrize("kind", ALL)
def test_colours_of_told_cells_stay_inside_their_intervals_towards_zero(kind):
    frame = release(kind)
    shows = picture(frame)
    away = words.smoothed_away(shows.rows, shows.told)
    for value, low, high, on in zip(
        shows.values, *(frame.get(end, frame.index == "") for end in ("lower", "upper")), away, strict=True
    ):
        assert not on or low <= value <= high
    if kind not in ("rescaled", "mean", "centroid"):
        ends = (frame["lower"] > 0) & (shows.values < frame["lower"]) & shows.told
        assert not ends.any()
    assert (("cells smoothed below" in " ".join(shows.lines)) == away.any()).all()


def test_the_open_class_of_a_spike_says_how_far_it_goes():
    scale = Scale((100.0, 200.0), whole=True)
    assert words.class_labels(scale, np.array([150.0, 80_000]))[-1] == "200 or more (up to 80,000)"
    assert words.class_labels(scale, np.array([150.0, 900]))[-1] == "200 or more"
    both = Scale((-50.0, 0.0, 50.0), True)
    said = words.class_labels(both, np.array([-8000.0, 60]), " min")
    assert said[0] == "under -50 min (down to -8,000 min)"
    assert said[-1] == "50 min or more"


@pytest.mark.parametrize(
    ("scale", "values", "said"),
    [
        (Scale((10.0, 20.0), whole=True), [], ["under 10", "10 to 19", "20 or more"]),
        (Scale((10.0, 11.0), whole=True), [], ["under 10", "10", "11 or more"]),
        (Scale((0.5, 2.0)), [], ["under 0.50", "0.50 to 2", "2 or more"]),
        (Scale(), [4.0, 4.0], ["4"]),
        (Scale(), [4.0, 1234.0], ["4 to 1,234"]),
        (Scale(), [], ["told from zero"]),
        (Scale((-10.0, 0.0, 10.0), True), [], ["under -10", "-10 to 0", "0 to 10", "10 or more"]),
    ],
)
def test_labels_of_classes(scale, values, said):
    assert words.class_labels(scale, np.array(values)) == said


def test_error_maps_show_how_far_noise_reaches():
    frame = release("count")
    shows = picture(frame, error=True)
    half = (frame["upper"] - frame["noisy_count"]) / frame["noisy_count"].abs() * 100
    assert np.allclose(shows.values[shows.told], half[shows.told])
    assert shows.labels == ("under 5 %", "5 to 10 %", "10 to 20 %", "20 to 50 %", "50 % or more")
    mean = release("mean")
    assert np.allclose(picture(mean, error=True).values, (mean["upper"] - mean["lower"]) / 2)
    places = release("centroid")
    assert picture(places, error=True).values.tolist() == places["error_m"].tolist()
    with pytest.raises(ValueError, match="leave column out"):
        picture(frame, "count", error=True)
    with pytest.raises(ValueError, match="moved points have no interval"):
        picture(moved(), error=True)


@pytest.mark.parametrize("kind", ALL)
def test_a_picture_depends_on_the_released_frame_alone(kind, tmp_path):
    """Read back from a file, in another process's eyes, all that a map says is the same."""
    frame = release(kind, slots=True)
    frame.to_parquet(tmp_path / "heat.parquet")
    one, other = picture(frame), picture(gpd.read_parquet(tmp_path / "heat.parquet"))
    for name in ("column", "scale", "title", "heading", "lines", "labels", "untold", "stamp"):
        assert getattr(one, name) == getattr(other, name)
    assert one.classes.tolist() == other.classes.tolist()
    assert words.tooltips(one.rows, one.told) == words.tooltips(other.rows, other.told)


def test_odd_names_are_bounded_and_printable():
    gdf = points(500).rename(columns={"who": "w\n<b>" + "x" * 300})
    with testing.seeded(1):
        frame = gdf.dp(subject=gdf.columns[0], cap=1, **GRIDS["h3"]).heatmap(1.0)
    shows = picture(frame)
    for line in (shows.title, shows.heading, *shows.lines):
        assert "\n" not in line
        assert len(line) < 200


def test_empty_frames_of_some_rows_have_no_class():
    shows = picture(release("sparse").iloc[:0])
    assert shows.classes.tolist() == []
    assert shows.labels == ("told from zero",)
    assert pd.Series(shows.values).empty
