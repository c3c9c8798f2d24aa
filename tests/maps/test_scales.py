"""Colour cuts: round, few, no narrower than the noise, and unmoved by any one spike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from released_maps import KINDS, moved, release

import geodp
from geodp.maps.pictures import certain_enough, halfwidths, picture
from geodp.maps.scales import DIVERGING, SEQUENTIAL, Scale, drawn_column, offered_columns, ramp, scale_of

VALUES = st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=3, max_size=40)
COUNTS = st.lists(st.integers(0, 10**7), min_size=3, max_size=40)
WIDTHS = st.sampled_from([0.0, 0.5, 12.0, 1e4])


@given(values=COUNTS, width=WIDTHS, spike=st.integers(0, 10**15))
def test_the_largest_value_moves_no_cut(values, width, spike):
    spiked = list(values)
    spiked[spiked.index(max(spiked))] += spike
    before, after = (scale_of(np.array(v, dtype=float), width, whole=True) for v in (values, spiked))
    assert before == after


@given(values=VALUES, width=WIDTHS, spike=st.floats(0, 1e15))
def test_no_spike_of_either_sign_moves_a_cut(values, width, spike):
    low, high = values.index(min(values)), values.index(max(values))
    for place, moved_by in ((high, spike), (low, -spike)):
        spiked = list(values)
        spiked[place] += moved_by
        assert (
            scale_of(np.array(spiked), width, even=True).cuts
            == scale_of(np.array(values), width, even=True).cuts
        )
    largest = int(np.argmax(np.abs(values)))
    spiked = list(values)
    spiked[largest] += np.copysign(spike, values[largest] or 1.0)
    diverging = [scale_of(np.array(v), width, diverging=True) for v in (values, spiked)]
    assert diverging[0] == diverging[1]


def test_a_scale_from_the_largest_value_would_be_moved():
    # The planted mistake: even cuts up to the maximum put all but the spike into one class.
    values = np.array([50.0, 60, 80, 90, 70, 65, 5000])
    naive = Scale(tuple(np.linspace(values.min(), values.max(), 7)[1:-1]))
    assert len(set(naive.classes(values[:-1]))) == 1
    assert len(set(scale_of(values, 5.0, whole=True).classes(values[:-1]))) > 2


@given(values=VALUES, width=WIDTHS, whole=st.booleans(), diverging=st.booleans())
def test_cuts_are_few_ascending_and_apart(values, width, whole, diverging):
    numbers = np.rint(values) if whole else np.array(values)
    scale = scale_of(numbers, width, diverging=diverging, whole=whole)
    assert len(scale.cuts) <= 7
    steps = np.diff(scale.cuts)
    assert (steps > 0).all()
    assert (steps >= width * (1 - 1e-9)).all()
    if whole:
        assert all(cut == int(cut) for cut in scale.cuts)
    if diverging:
        assert scale.cuts == tuple(-cut for cut in reversed(scale.cuts))
        assert 0.0 in scale.cuts
    else:
        assert all(min(numbers) <= cut <= max(numbers) for cut in scale.cuts)
    classes = scale.classes(numbers)
    assert classes.min() >= 0
    assert classes.max() < scale.size == len(scale.colours())


MEANS = st.lists(
    st.tuples(st.floats(0, 120), st.floats(0.1, 30), st.booleans()), min_size=1, max_size=60
).map(lambda rows: [np.array(column) for column in zip(*rows, strict=True)])


@given(means=MEANS)
def test_no_mean_is_less_certain_than_its_class_is_wide(means):
    values, half, told = means
    scale, coloured, limit = certain_enough(values, told, half)
    assert (half[coloured] <= limit).all()
    assert not (coloured & ~told).any()
    assert (np.diff(scale.cuts) >= limit * (1 - 1e-9)).all()
    assert coloured.sum() >= 0.8 * told.sum() - 1
    # What is a class apart or more is told apart: half-widths are no wider than a class.
    classes = scale.classes(values)
    apart = np.abs(classes[:, None] - classes) >= 2
    both = coloured[:, None] & coloured & apart
    assert (
        np.abs(values[:, None] - values)[both] >= np.maximum(half[:, None], half)[both] * (1 - 1e-9)
    ).all()


def test_a_rim_of_noise_is_grey_and_moves_no_cut():
    # Of the middle, 29 to 31 within 0.4; around it cells of nearly nobody, up to 45 within 17.
    rng = np.random.default_rng(1)
    middle, rim = rng.uniform(29, 31, 40), rng.uniform(20, 45, 8)
    values, half = np.concatenate([middle, rim]), np.repeat([0.4, 17.0], [40, 8])
    scale, coloured, limit = certain_enough(values, np.ones(48, dtype=bool), half)
    assert coloured.tolist() == [True] * 40 + [False] * 8
    assert limit < 17
    assert all(29 <= cut <= 31 for cut in scale.cuts)
    assert len(scale.cuts) >= 3


def test_means_that_differ_by_less_than_their_noise_have_one_colour():
    values = np.array([28.0, 29, 30, 31, 32])
    scale, coloured, _ = certain_enough(values, np.ones(5, dtype=bool), np.full(5, 6.0))
    assert scale.cuts == ()
    assert coloured.all()


@pytest.mark.parametrize("grid", ["h3", "square", "zones"])
def test_maps_of_means_say_from_which_half_width_they_are_grey(grid):
    frame = release("mean", grid)
    shows = picture(frame)
    half = halfwidths(shows.rows)
    readable = geodp.readable(frame).to_numpy()
    assert not (shows.told & ~readable).any()
    if (readable & ~shows.told).any():
        limit = half[shows.told].max()
        assert half[readable & ~shows.told].min() > limit
        assert "too uncertain for these classes (half-width above" in shows.untold
    assert picture(frame, error=True).told.tolist() == readable.tolist()


@given(values=COUNTS, width=WIDTHS)
def test_a_larger_value_never_has_a_lower_class(values, width):
    numbers = np.sort(np.array(values, dtype=float))
    assert (np.diff(scale_of(numbers, width, whole=True).classes(numbers)) >= 0).all()


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 5.0], [5.0] * 9, [np.nan, np.inf]])
def test_what_has_no_spread_has_one_class(values):
    scale = scale_of(np.array(values), 3.0)
    assert scale.cuts == ()
    assert len(scale.colours()) == 1
    assert len(scale_of(np.array(values), 3.0, diverging=True).colours()) >= 2


def test_values_below_zero_get_the_strongest_colour_at_the_bottom():
    values = -np.array([20.0, 30, 50, 100, 400, 900, 1000])
    scale = scale_of(values, 5.0)
    assert scale.falling
    assert scale.cuts == tuple(-cut for cut in reversed(scale_of(-values, 5.0).cuts))
    assert scale.colours()[0] == SEQUENTIAL[-1]


def lightness(colour):
    """CIE lightness of "#rrggbb"."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    y = linear @ [0.2126, 0.7152, 0.0722]
    return 116 * np.cbrt(y) - 16


@pytest.mark.parametrize("n", range(1, 8))
def test_more_is_darker_for_every_reader(n):
    light = [lightness(colour) for colour in ramp(n, SEQUENTIAL)]
    assert (np.diff(light) < -6).all()


@pytest.mark.parametrize("a_side", range(4))
def test_colours_differ_in_hue_on_the_sides_of_zero(a_side):
    cuts = tuple(float(cut) for cut in range(-a_side, a_side + 1))
    colours = Scale(cuts, diverging=True).colours()
    assert len(set(colours)) == len(colours) == 2 * a_side + 2
    below, above = colours[: a_side + 1], colours[a_side + 1 :]
    assert all(int(colour[5:], 16) > int(colour[1:3], 16) for colour in below)
    assert all(int(colour[1:3], 16) > int(colour[5:], 16) for colour in above)
    assert len(DIVERGING) % 2 == 0


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("count", "count"),
        ("weighted", "weighted_count"),
        ("levels", "count"),
        ("sum", "sum"),
        ("signed", "sum"),
        ("mean", "mean"),
        ("centroid", "count"),
        ("rescaled", "count"),
        ("joint", "count"),
        ("sparse", "count"),
        ("select", "count"),
    ],
)
def test_the_column_made_for_maps_is_shown(kind, column):
    frame = release(kind)
    assert drawn_column(frame, frame.attrs["geodp"]) == column
    assert set(KINDS) <= {
        "count",
        "weighted",
        "levels",
        "sum",
        "signed",
        "mean",
        "centroid",
        "rescaled",
        "joint",
    }


def test_only_released_numbers_can_be_shown():
    frame = release("count", grid="square")
    assert offered_columns(frame) == ["count", "estimate", "noisy_count", "lower", "upper"]
    for column in ("edge", "geometry", "people"):
        with pytest.raises(ValueError, match="column must be one of 'count', 'estimate'"):
            drawn_column(frame, frame.attrs["geodp"], column)
    assert drawn_column(moved(), moved().attrs["geodp"]) is None
