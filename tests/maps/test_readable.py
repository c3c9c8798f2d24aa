"""The rule that says which cells are told from zero: its level, exactly, and what it is told from."""

import itertools
import math
from fractions import Fraction

import geopandas as gpd
import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from released_maps import GRIDS, KINDS, moved, people, points, release

import geodp
from geodp import testing
from geodp.maps.held import held
from geodp.maps.rules import benjamini_hochberg, least_told, measured, told
from geodp.mechanisms.laws import DiscreteLaplace, RoundedGaussian

LAWS = [
    DiscreteLaplace(0.7),
    DiscreteLaplace(4.0),
    DiscreteLaplace(300.0),
    RoundedGaussian(0.6),
    RoundedGaussian(8.45),
]


def exact_sf(law, t):
    """P(X >= t) with 60 digits, from the definition of the law alone."""
    with mpmath.workdps(60):
        if isinstance(law, DiscreteLaplace):
            q = mpmath.exp(-1 / mpmath.mpf(law.scale))
            return q**t / (1 + q)
        return mpmath.erfc((t - mpmath.mpf(1) / 2) / (mpmath.mpf(law.scale) * mpmath.sqrt(2))) / 2


def family_wise(law, t, size):
    """P(any of ``size`` empty cells measures t or more), with 60 digits."""
    with mpmath.workdps(60):
        return 1 - (1 - exact_sf(law, t)) ** size


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("size", [1, 7, 5495, 5_000_000])
@pytest.mark.parametrize("level", ["0.95", "0.5", "0.999"])
def test_the_bar_is_the_least_that_holds_the_family_wise_level(law, size, level):
    from geodp.maps.rules import Measured

    with mpmath.workdps(60):
        alpha = 1 - mpmath.mpf(level)
    for sign in (1, 0):
        bar = Measured("noisy_count", law, Fraction(1), size, sign).bar(Fraction(level))
        if sign:
            assert family_wise(law, bar, size) <= alpha < family_wise(law, bar - 1, size) or bar <= 0
        else:
            # |X| >= bar has twice the probability; the cells are independent.
            with mpmath.workdps(60):

                def either(t):
                    return 1 - (1 - 2 * exact_sf(law, t)) ** size

                assert either(bar) <= alpha
                assert bar == 1 or alpha < either(bar - 1)


def test_expected_false_passes_over_all_empty_cells():
    law = DiscreteLaplace(4.0)
    bar = law.quantile_sf("0.05", 10_000)
    assert 10_000 * exact_sf(law, bar) < 0.0513
    # The planted mistake: one cell's 95 % interval, used for all cells.
    marginal = 10_000 * exact_sf(law, law.halfwidth("0.95") + 1)
    assert 215 < marginal < 220


def test_the_rule_is_about_all_public_cells_and_slots():
    frame, split = release("count"), release("count", slots=True)
    assert measured(split.attrs["geodp"]).size == 2 * measured(frame.attrs["geodp"]).size == len(split)


@pytest.mark.parametrize("kind", ["count", "weighted", "levels", "rescaled", "joint", "sum"])
def test_one_sign_is_tested_on_one_side(kind):
    frame = release(kind)
    found = measured(frame.attrs["geodp"])
    assert found.sign == 1
    bar = found.law.quantile_sf("0.05", found.size) * float(found.step)
    expected = frame[found.column] >= bar
    marks = geodp.readable(frame)
    assert marks.equals(expected.rename("readable"))
    assert 0 < marks.sum() < len(marks)
    rows = held(frame)
    assert least_told(rows, marks.to_numpy(), rule="simultaneous", level=0.95) == bar


def test_signed_sums_are_tested_on_both_sides():
    frame = release("signed")
    found = measured(frame.attrs["geodp"])
    bar = (found.law.halfwidth("0.95", found.size) + 1) * float(found.step)
    marks = geodp.readable(frame)
    assert marks.equals((frame["noisy_sum"].abs() >= bar).rename("readable"))
    assert (frame["noisy_sum"][marks] > 0).any()
    assert (frame["noisy_sum"][marks] < 0).any()


def test_sums_that_cannot_be_positive_are_tested_below():
    gdf = people("h3").assign(owed=lambda f: -f["minutes"])
    with testing.seeded(3):
        frame = gdf.dp(subject="who", cap=1, **GRIDS["h3"]).sum("owed", 1.0, 1e-6, value_bounds=(-120, 0))
    found = measured(frame.attrs["geodp"])
    marks = geodp.readable(frame)
    assert found.sign == -1
    assert marks.any()
    assert (frame["noisy_sum"][marks] < 0).all()


def test_means_need_people_and_an_interval_of_half_the_bounds():
    frame = release("mean")
    found = measured(frame.attrs["geodp"])
    people_told = frame["noisy_count"] >= found.law.quantile_sf("0.05", found.size)
    narrow = frame["upper"] - frame["lower"] <= 60
    assert geodp.readable(frame).equals((people_told & narrow).rename("readable"))
    wide = (frame["upper"] - frame["lower"] > 60).to_numpy()
    assert wide.any()
    assert not geodp.readable(frame)[wide].any()
    # A map of the counts behind the means has the counts' rule alone.
    assert told(held(frame), column="count").tolist() == people_told.tolist()


def test_an_empty_mean_is_never_told():
    with testing.seeded(6):
        frame = (
            points(2).dp(subject="who", cap=1, **GRIDS["square"]).mean("minutes", 1.0, value_bounds=(0, 120))
        )
    assert not geodp.readable(frame).any()


def test_centroids_are_told_by_their_count_and_a_public_number_always_is():
    frame = release("centroid")
    found = measured(frame.attrs["geodp"])
    assert (
        geodp.readable(frame).tolist()
        == (frame["noisy_count"] >= found.law.quantile_sf("0.05", found.size)).tolist()
    )
    alone = points(100).dp(subject="who", cap=1, bounds=(0, 0, 4, 4)).centroid(1.0, n=100)
    assert geodp.readable(alone).tolist() == [True]


def test_selected_cells_hold_somebody_and_sparse_ones_have_the_bar_of_the_full_map():
    selected, sparse, full = release("select"), release("sparse"), release("count")
    assert len(selected) > 0
    assert geodp.readable(selected).all()
    found = measured(sparse.attrs["geodp"])
    assert found.size == len(full)
    marks = geodp.readable(sparse)
    assert marks.equals(
        (sparse["noisy_count"] >= found.law.quantile_sf("0.05", found.size)).rename("readable")
    )


@pytest.mark.parametrize("kind", [*KINDS, "sparse", "select"])
@pytest.mark.parametrize("slots", [False, True])
def test_any_rows_in_any_order_have_the_marks_they_have_in_the_whole(kind, slots):
    frame = release(kind, slots=slots)
    marks = geodp.readable(frame)
    assert marks.index.equals(frame.index)
    assert marks.dtype == bool
    for part in (frame.iloc[::3], frame[marks.to_numpy()], frame.iloc[:0], frame.iloc[5:2:-1]):
        assert geodp.readable(part).equals(marks.loc[part.index])


def test_one_slot_of_a_release_may_be_taken_out():
    frame = release("count", slots=True)
    part = frame.xs(7, level="hour")
    assert geodp.readable(part).tolist() == geodp.readable(frame).xs(7, level="hour").tolist()


def test_outlines_are_not_needed_and_a_file_gives_the_same(tmp_path):
    frame = release("count")
    frame.to_parquet(tmp_path / "heat.parquet")
    read = gpd.read_parquet(tmp_path / "heat.parquet")
    bare = pd.DataFrame(frame.drop(columns="geometry"))
    bare.attrs = frame.attrs
    for other in (read, bare):
        assert geodp.readable(other).equals(geodp.readable(frame))


def test_nothing_of_an_empty_map_without_noise_is_told_and_all_of_a_full_one():
    gdf = points(4000)
    with testing.noiseless():
        empty = gdf.iloc[:0].dp(subject="who", cap=1, **GRIDS["square"]).heatmap(1.0)
        full = gdf.dp(subject="who", cap=1, **GRIDS["square"]).heatmap(1.0)
    assert not geodp.readable(empty).any()
    bar = measured(full.attrs["geodp"]).bar(Fraction(95, 100))
    assert geodp.readable(full).equals((full["noisy_count"] >= bar).rename("readable"))


# Benjamini and Hochberg


def rate(laws, shifts, alternatives, share, size, threshold=None):
    """The exact false discovery rate, by going through all noises of all cells."""
    reach = [int(30 * law.std) + 4 for law in laws]
    grids = [np.arange(-r, r + 1) for r in reach]
    masses = [law.pmf(grid) for law, grid in zip(laws, grids, strict=True)]
    total = 0.0
    for places in itertools.product(*(range(len(grid)) for grid in grids)):
        mass = math.prod(m[p] for m, p in zip(masses, places, strict=True))
        if mass < 1e-9:
            continue
        noisy = np.array([grid[p] + shift for grid, p, shift in zip(grids, places, shifts, strict=True)])
        seen = np.arange(len(noisy)) if threshold is None else np.flatnonzero(noisy >= threshold)
        log_p = np.array([float(laws[i].log_sf(noisy[i] - 1)) for i in seen])
        marked = seen[benjamini_hochberg(log_p, size, share)]
        total += mass * sum(1 for i in marked if not alternatives[i]) / max(len(marked), 1)
    return total


LAW = DiscreteLaplace(0.9)


@pytest.mark.parametrize("threshold", [None, 1, 3])
def test_the_false_discovery_rate_holds_exactly_with_and_without_a_threshold(threshold):
    share = Fraction(1, 5)
    for shifts in ([0, 0], [0, 4], [0, 9]):
        found = rate([LAW] * 2, shifts, [shift > 0 for shift in shifts], share, 2, threshold)
        assert found <= float(share) + 1e-6


def test_forgetting_cells_breaks_the_rate():
    # The planted mistake: of 40 empty cells the two largest are looked at as if there were two.
    share = 0.2
    law = LAW
    wrong = law.quantile_sf(share / 2)
    assert family_wise(law, wrong, 40) > 0.9
    right = next(t for t in range(1, 40) if family_wise(law, t, 40) <= share)
    assert right > wrong


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=30), st.integers(0, 10**6), st.integers(1, 99))
def test_cells_that_are_not_listed_count_as_empty_ones(p, unlisted, percent):
    """A public cell below the threshold is a hypothesis too, with a p of 1 that is never rejected."""
    share, size = Fraction(percent, 100), len(p) + unlisted
    marked = benjamini_hochberg(np.log(p), size, share)
    ranked = sorted(p)
    passing = [i for i, each in enumerate(ranked, 1) if math.log(each) <= math.log(share * i / size)]
    bar = ranked[passing[-1] - 1] if passing else -1.0
    near = [abs(math.log(each) - math.log(share * i / size)) < 1e-9 for i, each in enumerate(ranked, 1)]
    assume(not any(near))
    assert marked.tolist() == [each <= bar for each in p]


def test_one_cell_of_a_thousand_needs_a_thousandth_of_the_share():
    for size, shown in ((1, True), (9, True), (11, False), (1000, False)):
        assert benjamini_hochberg(np.log([0.01]), size, Fraction(1, 10)).tolist() == [shown]


def test_fdr_marks_by_the_step_up_rule():
    frame = release("count", grid="square")
    found = measured(frame.attrs["geodp"])
    steps = frame["noisy_count"].to_numpy()
    p = np.sort([float(exact_sf(found.law, max(int(t), -400))) if t >= 1 else 1.0 for t in steps])
    passing = [i for i in range(1, len(p) + 1) if p[i - 1] <= 0.05 * i / len(p)]
    marks = geodp.readable(frame, rule="fdr")
    assert marks.sum() == max(passing)
    assert frame["noisy_count"][marks].min() > frame["noisy_count"][~marks].max()
    assert (marks | ~geodp.readable(frame)).all()


def test_fdr_needs_all_cells():
    frame = release("count")
    with pytest.raises(ValueError, match="Mark first, then"):
        geodp.readable(frame.iloc[:10], rule="fdr")
    assert geodp.readable(frame.iloc[::-1], rule="fdr").sum() == geodp.readable(frame, rule="fdr").sum()


# Refusals


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"rule": "marginal"}, ValueError, "rule must be one of 'simultaneous', 'fdr'"),
        ({"rule": None}, TypeError, "rule"),
        ({"level": 1}, ValueError, "level must be above 0 and below 1"),
        ({"level": float("nan")}, ValueError, "level"),
        ({"level": "much"}, ValueError, "level"),
        ({"level": True}, TypeError, "level"),
    ],
)
def test_bad_rules_and_levels_are_refused(asked, error, said):
    with pytest.raises(error, match=said):
        geodp.readable(release("count"), **asked)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda frame: frame.assign(noisy_count=frame["noisy_count"] + 1),
        lambda frame: frame.assign(per_km2=frame["count"] / 2),
        lambda frame: frame.drop(columns="lower"),
        lambda frame: frame.reset_index(drop=True),
        lambda frame: frame.reset_index(drop=True).head(5),
        lambda frame: pd.concat([frame, frame]),
        lambda frame: pd.concat([frame.head(3), frame.head(3)]),
        lambda frame: frame.set_index(frame.index[::-1][np.arange(len(frame))].str.replace("8", "9")),
        lambda frame: frame.astype({"count": float}),
        lambda frame: frame.rename(columns={"count": "n"}),
    ],
)
def test_what_is_no_longer_the_release_is_refused(spoil):
    with pytest.raises(geodp.NotARelease, match="no longer the release"):
        geodp.readable(spoil(release("count")))


def test_frames_without_a_record_are_refused():
    bare = gpd.GeoDataFrame(release("count").copy())
    bare.attrs = {}
    for frame in (bare, pd.DataFrame({"count": [1]})):
        with pytest.raises(geodp.NotARelease, match="carries no geodp record"):
            geodp.readable(frame)


def test_moved_points_count_nothing():
    with pytest.raises(ValueError, match="nothing to tell from zero"):
        geodp.readable(moved())
