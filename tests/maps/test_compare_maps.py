"""Two releases side by side: the law of their difference, exactly, and what is told apart."""

from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from released_maps import GRIDS, moved, points, release

import geodp
from geodp import testing
from geodp.maps.differences import TwoNoises, change
from geodp.maps.held import held
from geodp.maps.scales import UNTOLD
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian

LAWS = [DiscreteLaplace(0.7), DiscreteLaplace(4.0), RoundedGaussian(0.6), RoundedGaussian(8.45)]


def exact_sf(first, second, steps=(1, 1)):
    """P(X·a + Y·b >= t) for every t, by convolution over all integers that matter."""
    vectors = []
    for law, step in zip((first, second), steps, strict=True):
        reach = int(60 * law.std) + 30
        spread = np.zeros(2 * reach * step + 1)
        spread[::step] = law.pmf(np.arange(-reach, reach + 1))
        vectors.append(spread)
    mass = np.convolve(*vectors)
    tail = np.cumsum(mass[::-1])[::-1]
    middle = len(mass) // 2
    return lambda t: tail[middle + t]


@pytest.mark.parametrize("first", LAWS, ids=str)
@pytest.mark.parametrize("second", LAWS, ids=str)
@pytest.mark.parametrize("size", [1, 500, 5_000_000])
def test_the_bar_is_the_least_that_holds_all_unchanged_cells(first, second, size):
    noises, tail = TwoNoises(first, 1.0, second, 1.0), exact_sf(first, second)
    bar = int(noises.bar(Fraction(95, 100), size))
    # The convolution is off by some 1e-16; the bar is an integer.
    assert 1 - (1 - 2 * tail(bar)) ** size <= 0.05 + 1e-6
    assert bar == 1 or 1 - (1 - 2 * tail(bar - 1)) ** size > 0.05 - 1e-6


def test_lattices_of_different_steps():
    first, second = DiscreteLaplace(3.0), RoundedGaussian(5.0)
    noises, tail = TwoNoises(first, 1.0, second, 0.25), exact_sf(first, second, (4, 1))
    t = np.arange(1, 200)
    assert np.allclose(noises.sf(t * 0.25), tail(t), rtol=1e-9, atol=1e-15)
    turned = TwoNoises(second, 0.25, first, 1.0)
    assert np.allclose(turned.sf(t * 0.25), tail(t), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("law", [DiscreteLaplace, RoundedGaussian])
def test_wide_noise_is_never_underrated_and_hardly_overrated(law):
    wide, narrow = law(20_000.0), law(200.0)
    tails = [TwoNoises(wide, 1.0, law(20_000.0), 1.0), TwoNoises(narrow, 1.0, law(200.0), 1.0)]
    exact = exact_sf(narrow, law(200.0))
    for share in (0.5, 2, 6):
        grouped = tails[0].sf(np.array([share * 20_000]))[0]
        true = exact(int(share * 200))
        # The wide law is the narrow one stretched, up to its lattice.
        assert true * 0.99 < grouped < true * 1.06


def test_p_values_are_those_of_both_sides():
    first, second = DiscreteLaplace(2.0), DiscreteLaplace(3.0)
    noises, tail = TwoNoises(first, 1.0, second, 1.0), exact_sf(first, second)
    sizes = np.array([0.0, 1, 5, 5, 20])
    assert np.allclose(np.exp(noises.log_p(sizes)), [1.0, *(2 * tail(int(s)) for s in sizes[1:])])


def test_the_difference_is_of_the_measurements():
    a, b = release("count"), release("count", seed=8)
    found = change(held(a), held(b))
    assert found.values.tolist() == (b["noisy_count"] - a["noisy_count"]).tolist()
    assert not found.told.any()
    assert found.known
    bar = TwoNoises(*[part for f in (a, b) for part in (law(f), 1.0)]).bar(Fraction(95, 100), len(a))
    assert found.bar == bar


def law(frame):
    from geodp.seals import law_of_measurement

    return law_of_measurement(frame.attrs["geodp"]["measurements"][0])


def changed(kind="heatmap", *args, **more):
    """Two releases of people of whom some moved north."""
    before = points(8000)
    after = before.copy()
    after.geometry = gpd.GeoSeries(
        np.where(before["who"] % 2 == 0, before.geometry.translate(1.4, 1.4), before.geometry), crs=4326
    )
    out = []
    for seed, gdf in enumerate((before, after)):
        with testing.seeded(seed):
            view = gdf.dp(subject="who", cap=1, **GRIDS["h3"])
            out.append(getattr(view, kind)(*args, 1.0 - 0.3 * seed, 1e-6, **more))
    return out


def test_what_changed_is_told_with_its_sign():
    a, b = changed()
    found = change(held(a), held(b))
    assert (found.values[found.told] > 0).any()
    assert (found.values[found.told] < 0).any()
    assert (np.abs(found.values[found.told]) >= found.bar).all()
    assert (np.abs(found.values[~found.told]) < found.bar).all()
    loose = change(held(a), held(b), rule="fdr")
    assert loose.told.sum() > found.told.sum()
    assert (loose.told | ~found.told).all()


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_sums_and_means_are_compared_too(kind):
    a, b = changed(kind, "minutes", value_bounds=(0, 120))
    found = change(held(a), held(b))
    assert found.told.any() == (kind == "sum")
    axes = geodp.compare_maps(a, b).axes
    assert len(axes) == 3


def test_means_are_told_apart_where_they_differ():
    gdf = points(8000)
    out = []
    for seed, values in enumerate((10.0, 100.0)):
        with testing.seeded(seed):
            view = gdf.assign(minutes=values).dp(subject="who", cap=1, **GRIDS["h3"])
            out.append(view.mean("minutes", 2.0, 1e-6, value_bounds=(0, 120)))
    found = change(*map(held, out))
    assert found.told.any()
    assert (found.values[found.told] > 40).all()
    with pytest.raises(ValueError, match="means are compared by intervals"):
        change(*map(held, out), rule="fdr")


def test_cells_below_a_threshold_differ_by_what_is_known():
    a, b = changed(cells="sparse")
    found = change(held(a), held(b))
    assert not found.known
    index = list(a.index.union(b.index))
    assert found.index.tolist() == index
    below_a, below_b = (frame.attrs["geodp"]["threshold"] - 1 for frame in (a, b))
    for cell, value in zip(index, found.values, strict=True):
        if cell not in b.index:
            assert value == min(0, below_b - a.loc[cell, "noisy_count"])
        elif cell not in a.index:
            assert value == max(0, b.loc[cell, "noisy_count"] - below_a)
        else:
            assert value == b.loc[cell, "noisy_count"] - a.loc[cell, "noisy_count"]
    # No difference is told that the full maps would not tell.
    full_a, full_b = changed()
    assert len(full_a) >= len(index)
    figure = geodp.compare_maps(a, b)
    assert "a cell in one map alone" in " ".join(figure.axes[2].get_legend().get_title().get_text().split())
    assert full_b is not None


def test_three_maps_on_one_sheet_and_one_scale():
    a, b = changed()
    figure = geodp.compare_maps(a, b, names=("mon", "tue"), title="Riders")
    figure.canvas.draw()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["mon", "tue", "tue less mon"]
    assert figure.get_suptitle() == "Riders"
    first, second, third = figure.axes
    assert first.get_xlim() == second.get_xlim() == third.get_xlim()
    labels = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in (first, second)]
    assert labels[0] == labels[1]
    grey = np.array([to_hex(colour) for colour in third.collections[0].get_facecolor()]) == UNTOLD
    assert (grey == ~change(held(a), held(b)).told).all()
    said = " ".join(third.get_legend().get_title().get_text().split())
    assert "more than noise in all cells at once (95 %)" in said
    assert "NOT PRIVATE" in said


def test_slots_are_compared_one_by_one():
    a, b = release("count", slots=True), release("count", slots=True, seed=9)
    figure = geodp.compare_maps(a, b, slot=7)
    assert figure.get_suptitle().endswith("hour=7")
    with pytest.raises(ValueError, match="compare one of them, slot=7"):
        geodp.compare_maps(a, b)


@pytest.mark.parametrize(
    ("b", "said"),
    [
        (lambda: release("sum"), "query is 'count' in the first, 'sum' in the second"),
        (lambda: release("count", "square"), "grid"),
        (lambda: release("count", slots=True), "by"),
        (lambda: release("sparse"), "cells"),
        (lambda: release("centroid"), "places have no difference"),
        (lambda: moved(), "places have no difference"),
        (
            lambda: points(100).dp(subject="who", cap=2, **GRIDS["h3"]).heatmap(1.0, 1e-6),
            "cap is 1 in the first, 2 in the second",
        ),
    ],
)
def test_what_does_not_measure_the_same_is_refused(b, said):
    with pytest.raises(ValueError, match=said):
        geodp.compare_maps(release("count"), b())


def test_frames_that_are_no_releases_are_refused():
    frame = release("count")
    with pytest.raises(geodp.NotARelease):
        geodp.compare_maps(frame, frame.assign(more=1))
    with pytest.raises(geodp.NotARelease):
        geodp.compare_maps(pd.DataFrame({"count": [1]}), frame)
    with pytest.raises(ValueError, match="these are some of its rows"):
        geodp.compare_maps(frame, frame.iloc[:5], rule="fdr")


def test_rows_in_both_are_compared():
    a, b = release("count"), release("count", seed=8)
    found = change(held(a.iloc[:8]), held(b.iloc[4:12]))
    assert found.index.equals(a.index[4:8])


def test_a_release_against_itself_has_no_difference():
    frame = release("count")
    assert not change(held(frame), held(frame)).told.any()
    assert not change(held(frame), held(frame), rule="fdr").told.any()


def legend_of(figure):
    """The words above the colours of the third map, and what its colours stand for."""
    legend = figure.axes[2].get_legend()
    words = " ".join(legend.get_title().get_text().split())
    return words, [" ".join(text.get_text().split()) for text in legend.get_texts()]


def pair(cap, contribution="sample", grid="h3", **more):
    """Two releases of the same people, each of whom was in four places."""
    gdf = pd.concat([points(500, seed=seed) for seed in range(4)], ignore_index=True)
    view = gdf.dp(subject="who", cap=cap, contribution=contribution, **GRIDS[grid])
    out = []
    for seed in (1, 2):
        with testing.seeded(seed):
            out.append(view.mean("minutes", 1.0, **more) if more else view.heatmap(1.0, 1e-6))
    return out


def test_the_legend_says_that_a_cap_draws_anew():
    words, _ = legend_of(geodp.compare_maps(*pair(2)))
    assert "noise only: of a who with more than 2 cells, those kept are drawn anew in each map" in words
    words, _ = legend_of(geodp.compare_maps(*pair(2, value_bounds=(0, 120))))
    assert "of a who with more than 2 cells or 1 row in one, those kept are drawn anew" in words
    for drawn_once in (pair(2, "weighted"), pair(1, grid="box"), pair(4, grid="zones")):
        assert "drawn anew" not in legend_of(geodp.compare_maps(*drawn_once))[0]


def test_the_budgets_of_both_maps_are_added_up():
    a, b = changed()
    spent = [frame.attrs["geodp"] for frame in (a, b)]
    eps = spent[0]["eps"] + spent[1]["eps"]
    words, _ = legend_of(geodp.compare_maps(a, b))
    assert f"both maps together: at most eps {eps:g}, delta 0 for one who in both" in words


@pytest.mark.parametrize("kind", ["heatmap", "sum"])
def test_the_classes_of_a_difference_start_at_the_bar(kind):
    a, b = changed(kind) if kind == "heatmap" else changed("sum", "minutes", value_bounds=(0, 120))
    found = change(held(a), held(b))
    _, labels = legend_of(geodp.compare_maps(a, b))
    bar = said_number(found.bar)
    assert not any(label.startswith(("0 ", "under 0")) or label.endswith(" 0") for label in labels)
    assert sum(label.startswith((f"{bar} to ", f"{bar} or more")) for label in labels) == 1
    assert sum(label.endswith((f"to -{bar}", f"-{bar} or less")) for label in labels) == 1


def test_the_classes_of_different_means_start_at_the_least_that_was_told():
    out = []
    for seed, values in enumerate((10.0, 100.0)):
        with testing.seeded(seed):
            view = points(8000).assign(minutes=values).dp(subject="who", cap=1, **GRIDS["h3"])
            out.append(view.mean("minutes", 2.0, 1e-6, value_bounds=(0, 120)))
    found = change(*map(held, out))
    least = said_number(float(np.abs(found.values[found.told]).min()))
    _, labels = legend_of(geodp.compare_maps(*out))
    assert sum(label.endswith((f"to -{least}", f"-{least} or less")) for label in labels) == 1
    assert not any(label.startswith(("0 ", "under 0")) for label in labels)


def said_number(value):
    from geodp.wording import figure

    return figure(value)
