"""Pictures with matplotlib: every kind on every grid, what cannot be told in grey, and nothing else changed."""

import sys

import geopandas as gpd
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shapely
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from released_maps import GRIDS, KINDS, UNLISTED, fresh, moved, points, release, zones

import geodp
from geodp import testing
from geodp.maps.drawing import paths
from geodp.maps.pictures import picture
from geodp.maps.scales import SEQUENTIAL, UNTOLD

LISTED = [(kind, grid) for kind in KINDS for grid in GRIDS if (kind, grid) != ("levels", "box")]


def own():
    """Axes that pyplot knows nothing of."""
    return Figure().add_subplot()


def cells(ax):
    return ax.collections[0]


def faces(ax):
    return [to_hex(colour) for colour in cells(ax).get_facecolor()]


def texts(place):
    """Everything a figure or axes says, in one line without the breaks and indents of wrapping."""
    figure = place.figure
    found = [text.get_text() for text in figure.findobj(mpl.text.Text)]
    return " ".join(" ".join(found).split())


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize(("kind", "grid"), [*LISTED, *((kind, "h3") for kind in UNLISTED)])
def test_every_kind_on_every_grid(kind, grid, slots):
    frame = release(kind, grid, slots)
    axes = geodp.plot(frame)
    figure = (axes[0] if slots else axes).figure
    figure.canvas.draw()
    assert (len(axes) == 2 and isinstance(axes, np.ndarray)) if slots else isinstance(axes, mpl.axes.Axes)
    said = texts(figure.axes[0])
    facts = frame.attrs["geodp"]
    assert f"eps {facts['eps']:g}, delta {facts['delta']:g}" in said
    assert "±" in said or "within" in said or kind == "select" or not geodp.readable(frame).any()
    assert "NOT PRIVATE" in said
    for ax in figure.axes:
        assert ax.get_title(loc="left") == (
            f"hour={[7, 8][figure.axes.index(ax)]}" if slots else said_title(frame)
        )


def said_title(frame):
    from geodp.maps.words import title

    return title(frame.attrs["geodp"])


@pytest.mark.parametrize("kind", ["count", "sum", "signed", "mean", "weighted", "sparse"])
@pytest.mark.parametrize("rule", ["simultaneous", "fdr"])
def test_what_cannot_be_told_is_grey_and_nothing_else_is(kind, rule):
    frame = release(kind)
    told = geodp.readable(frame, rule=rule).to_numpy()
    assert told.any()
    if kind == "mean":
        # Means also have to be as certain as a class is wide: tests/maps/test_scales.py.
        coloured = picture(frame, rule=rule).told
        assert not (coloured & ~told).any()
        told = coloured
    grey = np.array(faces(geodp.plot(frame, rule=rule, ax=own()))) == UNTOLD
    assert (grey == ~told).all()


def test_faint_data_never_looks_like_what_cannot_be_told():
    r, g, b = (int(UNTOLD[i : i + 2], 16) for i in (1, 3, 5))
    assert r == g == b
    faint = [int(SEQUENTIAL[0][i : i + 2], 16) for i in (1, 3, 5)]
    assert max(faint) - min(faint) > 80


def test_points_that_cannot_be_told_are_rings():
    frame = release("centroid", grid="square")
    told = geodp.readable(frame).to_numpy()
    rings, discs = geodp.plot(frame, ax=own()).collections[:2]
    assert len(rings.get_offsets()) == (~told).sum()
    assert len(rings.get_facecolor()) == 0
    assert len(discs.get_offsets()) == told.sum()
    xy = frame.geometry.get_coordinates().to_numpy()
    assert np.allclose(discs.get_offsets(), xy[told])


def test_the_border_is_hatched_where_it_also_holds_everybody_outside():
    frame = release("count", grid="square")
    (border,) = geodp.plot(frame, ax=own()).patches
    assert border.get_hatch() == "////"
    hatched = sum(len(path) for path in border.get_path().to_polygons())
    assert hatched == 5 * frame["edge"].sum()
    assert "border: also holds everybody outside" in texts(geodp.plot(frame, ax=own()))
    dropped = geodp.plot(release("count"), ax=own())
    assert not dropped.patches
    assert "border" not in texts(dropped)


def test_colours_are_those_of_the_classes():
    from geodp.maps.pictures import picture

    frame = release("count")
    shows = picture(frame)
    colours = shows.scale.colours()
    expected = [colours[number] if number >= 0 else UNTOLD for number in shows.classes]
    assert faces(geodp.plot(frame, ax=own())) == expected
    assert len(set(colours)) > 2
    other = faces(geodp.plot(frame, ax=own(), cmap="viridis"))
    assert set(other) != set(expected)
    assert [colour == UNTOLD for colour in other] == [colour == UNTOLD for colour in expected]


def test_one_spike_changes_the_colour_of_one_cell():
    frame = release("count")
    with testing.noiseless():
        gdf = points(20_000)
        heap = gpd.GeoDataFrame(
            {"who": range(10**6, 10**6 + 60_000)}, geometry=[gdf.geometry[0]] * 60_000, crs=4326
        )
        spiked = pd.concat([gdf, heap]).dp(subject="who", cap=1, **GRIDS["h3"]).heatmap(1.0)
        plain = gdf.dp(subject="who", cap=1, **GRIDS["h3"]).heatmap(1.0)
    most = plain["count"].idxmax()
    assert len(plain) == len(frame)
    one, other = faces(geodp.plot(plain, ax=own())), faces(geodp.plot(spiked, ax=own()))
    changed = [cell for cell, a, b in zip(plain.index, one, other, strict=True) if a != b]
    assert len(changed) <= 2
    assert spiked["count"].idxmax() in changed or spiked["count"].idxmax() == most


@pytest.mark.parametrize("slot", [7, (7,), {"hour": 7}])
def test_one_slot_is_one_map_on_the_scale_of_all(slot):
    frame = release("count", slots=True)
    every = geodp.plot(frame)
    alone = geodp.plot(frame, slot=slot)
    assert isinstance(alone, mpl.axes.Axes)
    assert faces(alone) == faces(every[0])
    assert alone.get_title(loc="left").endswith("hour=7")


def test_several_slots_may_be_named():
    frame = release("count", slots=True)
    (ax,) = geodp.plot(frame, slot={"hour": [8]})
    assert ax.get_title(loc="left") == f"{said_title(frame)}, hour=8"
    for slot, said in (
        (9, "hour has no level 9 here; there are 7, 8"),
        ("7", "hour has no level '7'"),
        ((7, 8), "must name a level of each of 'hour'"),
        ({"day": 1}, "slot names 'day'; the release has 'hour'"),
    ):
        with pytest.raises(ValueError, match=said):
            geodp.plot(frame, slot=slot)
    with pytest.raises(ValueError, match="these rows have no slots"):
        geodp.plot(release("count"), slot=7)
    with pytest.raises(ValueError, match=r"ax= takes one map.*slot=7"):
        geodp.plot(frame, ax=own())


def test_two_columns_of_slots():
    gdf = points(3000).assign(day="mon")
    by = {"hour": [7, 8], "day": ["mon", "tue"]}
    with testing.seeded(2):
        frame = gdf.dp(subject="who", cap=1, **GRIDS["zones"]).heatmap(1.0, by=by)
    titles = [ax.get_title(loc="left") for ax in geodp.plot(frame)]
    assert titles == ["hour=7, day=mon", "hour=7, day=tue", "hour=8, day=mon", "hour=8, day=tue"]
    assert isinstance(geodp.plot(frame, slot=(8, "mon")), mpl.axes.Axes)
    assert len(geodp.plot(frame, slot={"day": "tue"})) == 2


def test_the_users_matplotlib_is_left_as_it_was():
    before, backend = dict(mpl.rcParams), mpl.get_backend()
    figure, (left, right) = plt.subplots(1, 2)
    plt.sca(left)
    for draw in (
        lambda: geodp.plot(release("count")),
        lambda: geodp.plot(release("count", slots=True)),
        lambda: geodp.plot(release("count"), ax=right),
        lambda: geodp.compare_maps(release("count"), release("count", seed=8)),
    ):
        draw()
        assert plt.gcf() is figure
        assert plt.gca() is left
    assert dict(mpl.rcParams) == before
    assert mpl.get_backend() == backend
    assert len(plt.get_fignums()) == 4


def test_a_first_figure_is_pyplots_so_that_notebooks_show_it():
    ax = geodp.plot(release("count"))
    assert plt.gcf() is ax.figure


def test_axes_of_ones_own_get_the_map_and_no_figure_is_made():
    ax = own()
    assert geodp.plot(release("count"), ax=ax, title="Riders", legend=False) is ax
    assert ax.get_title(loc="left") == "Riders"
    assert ax.get_legend() is None
    assert plt.get_fignums() == []
    geodp.plot(release("count"), ax=ax)
    assert "eps 1, delta 0" in " ".join(ax.get_legend().get_title().get_text().split())


def test_what_protects_nobody_is_stamped_even_without_a_legend():
    assert "NOT PRIVATE" in texts(geodp.plot(release("count"), legend=False, ax=own()))
    real = points(50).dp(subject="who", cap=1, **GRIDS["h3"]).heatmap(1.0)
    assert "NOT PRIVATE" not in texts(geodp.plot(real))


@pytest.mark.parametrize("grid", ["fiji", "pole"])
def test_maps_across_the_meridian_and_around_a_pole_are_in_one_piece(grid):
    ax = geodp.plot(release("count", grid), ax=own())
    west, east = ax.get_xlim()
    assert east - west < (20 if grid == "fiji" else 80)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    if grid == "fiji":
        ax.figure.canvas.draw()
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert any(label.endswith("E") for label in labels)
        assert any(label.endswith("W") for label in labels)
        assert all(float(label.rstrip("°EW")) <= 180 for label in labels)


def test_degrees_are_as_long_as_on_the_ground():
    ax = geodp.plot(release("count"), ax=own())
    assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(2.0)), rel=1e-3)


def test_any_crs_is_drawn_in_degrees():
    frame = release("count")
    one, other = (geodp.plot(f, ax=own()) for f in (frame, frame.to_crs(3857)))
    assert np.allclose(one.get_xlim(), other.get_xlim(), atol=1e-6)


def test_holes_stay_holes_and_parts_stay_parts():
    ring = shapely.Polygon(shapely.box(0, 0, 4, 4).exterior, [shapely.box(1, 1, 2, 2).exterior])
    two = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)])
    drawn = paths(np.array([ring, two, shapely.Point(), None], dtype=object))
    assert [len(path.to_polygons()) for path in drawn] == [2, 2, 0, 0]
    outside, hole = drawn[0].to_polygons()
    assert shapely.LinearRing(outside).is_ccw != shapely.LinearRing(hole).is_ccw


def test_rows_picked_out_are_drawn_and_counted():
    frame = release("count")
    part = frame[frame["count"] > 5]
    ax = geodp.plot(part)
    assert len(faces(ax)) == len(part)
    assert f"{len(part)} rows of the release are shown, not all of them" in texts(ax)
    assert len(faces(geodp.plot(frame.loc[frame.index[3:5]], ax=own()))) == 2
    assert len(faces(geodp.plot(frame.sort_values("count"), ax=own()))) == len(frame)


def test_what_is_no_longer_the_release_is_refused():
    frame = release("count")
    for spoiled in (frame.assign(more=1), frame.drop(columns="upper"), frame.reset_index()):
        with pytest.raises(geodp.NotARelease, match="no longer the release"):
            geodp.plot(spoiled)
    bare = fresh(frame)
    bare.attrs = {}
    with pytest.raises(geodp.NotARelease, match="carries no geodp record"):
        geodp.plot(bare)


def test_frames_without_outlines_say_where_to_get_them():
    bare = pd.DataFrame(release("count").drop(columns="geometry"))
    bare.attrs = release("count").attrs
    with pytest.raises(TypeError, match="no outlines to draw: release it with return_geometry=True"):
        geodp.plot(bare)
    where = GRIDS["zones"]
    heat = points(500).dp(subject="who", cap=1, **where).heatmap(1.0, return_geometry=False)
    with pytest.raises(
        TypeError, match=r"gpd.GeoDataFrame\(heat, geometry=zones.set_index\(key\).geometry\)"
    ):
        geodp.plot(heat)
    # What the message says works.
    assert geodp.plot(gpd.GeoDataFrame(heat, geometry=zones().set_index("zone").geometry)) is not None


def test_frames_from_files_are_drawn_alike(tmp_path):
    frame = release("count", slots=True)
    frame.to_parquet(tmp_path / "heat.parquet")
    one, other = geodp.plot(frame), geodp.plot(gpd.read_parquet(tmp_path / "heat.parquet"))
    assert [faces(ax) for ax in one] == [faces(ax) for ax in other]
    assert texts(one[0]) == texts(other[0])


def test_an_empty_frame_says_that_nothing_was_released():
    nobody = points(3).iloc[:0].dp(subject="who", cap=1, **GRIDS["h3"])
    frame = nobody.heatmap(1.0, 1e-6, cells="select")
    assert len(frame) == 0
    ax = geodp.plot(frame)
    assert "no cell was released" in texts(ax)
    west, east = ax.get_xlim()
    assert west < 0 < 4 < east < 5
    split = nobody.heatmap(1.0, 1e-6, cells="select", by={"hour": [7, 8]})
    axes = geodp.plot(split)
    assert "no cell was released" in texts(axes[0])
    assert "hour=8" in texts(geodp.plot(split, slot=8))


@pytest.mark.parametrize("grid", ["h3", "box", "zones"])
def test_constant_maps_and_single_cells_are_drawn(grid):
    # mapclassify #88, geopandas #2546: all counts 0, or one cell.
    with testing.noiseless():
        frame = points(10).iloc[:0].dp(subject="who", cap=1, **GRIDS[grid]).heatmap(0.001)
    ax = geodp.plot(frame)
    assert set(faces(ax)) == {UNTOLD}
    assert "cannot be told from zero" in texts(ax)
    geodp.plot(frame, error=True).figure.canvas.draw()
    frame.plot("count")
    frame.explore("count")


def test_cells_too_small_to_see_get_a_dot():
    rng = np.random.default_rng(1)
    n = 4000
    places = gpd.points_from_xy(*np.repeat([[-60.0, 10.0], [120.0, 45.0]], n // 2, axis=0).T)
    gdf = gpd.GeoDataFrame({"who": rng.permutation(n)}, geometry=places, crs=4326)
    frame = gdf.dp(subject="who", cap=1, bounds=(-180, -80, 180, 80), grid="h3:7").heatmap(
        1.0, cells="sparse"
    )
    ax = geodp.plot(frame, ax=own())
    assert len(ax.collections[1].get_offsets()) == len(frame)


def test_moved_points_are_drawn_as_places():
    ax = geodp.plot(moved())
    assert "geo-indistinguishability, eps 1 per km and report" in texts(ax)
    assert sum(len(held.get_offsets()) for held in ax.collections[:2]) == 50


def test_a_zone_without_a_shape_is_left_out():
    frame = fresh(release("count", "zones"))
    frame.loc["a", "geometry"] = None
    ax = geodp.plot(frame)
    ax.figure.canvas.draw()
    assert len(faces(ax)) == 4


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"column": "people"}, ValueError, "column must be one of 'count'"),
        ({"cmap": "nowhere"}, ValueError, "no matplotlib colormap"),
        ({"cmap": 3}, TypeError, "cmap must be the name"),
        ({"rule": "none"}, ValueError, "rule must be one of"),
        ({"level": 2}, ValueError, "level must be above 0"),
        ({"error": True, "column": "count"}, ValueError, "leave column out"),
    ],
)
def test_bad_arguments_are_refused(asked, error, said):
    with pytest.raises(error, match=said):
        geodp.plot(release("count"), **asked)


@pytest.mark.parametrize(
    ("module", "call"), [("matplotlib", "plot"), ("folium", "explore"), ("matplotlib", "compare")]
)
def test_a_missing_package_is_named_with_what_installs_it(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    frame = release("count")
    draw = {"plot": geodp.plot, "explore": geodp.explore, "compare": lambda f: geodp.compare_maps(f, f)}[call]
    with pytest.raises(ImportError, match=rf"{module}, which is not installed: pip install 'geodp\[plot\]'"):
        draw(frame)


def test_many_slots_of_a_file_are_drawn_as_far_as_they_fit(monkeypatch):
    from geodp.maps import plotting

    monkeypatch.setattr(plotting, "_MOST_PANELS", 1)
    figure = plotting.figure_of(release("count", "zones", slots=True))
    assert "NOT PRIVATE" in texts(figure.axes[0])
    assert len(figure.axes) == 1
    assert "the first 1 of 2 slots" in texts(figure.axes[0])
    with pytest.raises(ValueError, match="name some with slot="):
        geodp.plot(release("count", "zones", slots=True))


@pytest.mark.parametrize("kind", ["count", "mean", "centroid"])
def test_plain_geopandas_maps_keep_working(kind):
    frame = release(kind)
    frame.plot("count")
    frame.explore("count")


def test_places_are_shown_in_the_box_that_was_asked_for():
    for grid, width in (("h3", 4.0), ("fiji", 8.0)):
        west, east = geodp.plot(release("centroid", grid), ax=own()).get_xlim()
        assert width <= east - west < width + 2
