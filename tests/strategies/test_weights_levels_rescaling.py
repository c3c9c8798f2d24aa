"""Weighted contributions, measured levels and rescaling: bounds by brute force, and what may go with what."""

import math
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point

import geodp
from geodp.mechanisms.calibration import sigma_for
from geodp.queries.weighted import weights
from geodp.release import tally
from geodp.testing import Mode

BOX = (0, 0, 1.6, 1.6)
GRID = "square:0.025"  # 4,096 cells, so that blocks are worth measuring
BASE = {"subject": "rider", "bounds": BOX, "grid": GRID, "return_geometry": False}
EVERY = {
    "weighted": {"contribution": "weighted"},
    "weighted, rescaled": {"contribution": "weighted", "rescale": 6},
    "rescaled": {"rescale": 6},
    "levels": {"strategy": "levels"},
}

cells = st.tuples(st.integers(0, 15), st.integers(0, 15))
person = st.lists(cells, max_size=12)


def frame(people):
    rows = [(who, Point(0.025 * x + 0.0125, 0.025 * y + 0.0125)) for who, places in people for x, y in places]
    return gpd.GeoDataFrame(
        {"rider": pd.Series([who for who, _ in rows], dtype=object)},
        geometry=gpd.GeoSeries([place for _, place in rows], crs=4326),
        crs=4326,
    )


def tallies(plan, people, secret=bytes(16)):
    return tally(plan, frame(people), Mode("none (test)", secret, silent=True))


def assert_within(plan, a, b):
    for m in plan.measurements:
        difference = [abs(int(x) - int(y)) for x, y in zip(a[m.name], b[m.name], strict=True)]
        assert sum(difference) <= m.l1, m.name
        assert sum(d * d for d in difference) <= m.l2_squared, m.name


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", EVERY)
@settings(max_examples=25)
@given(data=st.data())
def test_neighbours_differ_within_what_the_plan_claims(kind, mechanism, neighboring, data):
    plan = geodp.plan(
        0.5,
        1e-6,
        **BASE,
        **EVERY[kind],
        cap=data.draw(st.integers(1, 6)),
        rows_per_cell=data.draw(st.integers(1, 3)),
        mechanism=mechanism,
        neighboring=neighboring,
    )
    people = [(f"p{i}", data.draw(person)) for i in range(data.draw(st.integers(0, 3)))]
    me, other = data.draw(person), data.draw(person)
    a = tallies(plan, [*people, ("me", me)])
    b = tallies(plan, [*people, ("me", other)] if neighboring == "replace_one" else people)
    assert_within(plan, a, b)


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("n_keys", [1, 2, 4])
def test_bounds_hold_on_few_keys_with_many_rows_in_each(kind, mechanism, neighboring, n_keys):
    """Where the domain is smaller than the cap or k_max, its size is what bounds one subject."""
    box = {1: (0, 0, 1, 1), 2: (0, 0, 2, 1), 4: (0, 0, 2, 2)}[n_keys]
    for cap in (1, 2, 5):
        plan = geodp.plan(
            0.1, 1e-6, subject="rider", cap=cap, rows_per_cell=5, bounds=box, grid="square:1",
            mechanism=mechanism, neighboring=neighboring, return_geometry=False, **EVERY[kind],
        )  # fmt: skip
        assert plan.n_cells == n_keys
        me = [
            (who, [(20 + 40 * x, 20 + 40 * y)] * 5)
            for who, x, y in [("me", x, y) for x in (0, 1) for y in (0, 1)]
        ]
        people = [("other", [(20, 20)])]
        a, b = tallies(plan, [*people, *me]), tallies(plan, people)
        assert_within(plan, a, b)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_courier_in_many_cells_moves_no_more_than_is_claimed(kind, mechanism, rows):
    """In 100 cells, far beyond cap and k_max: totals are cut for each subject, not only for all."""
    for cap in (1, 4, 6):
        plan = geodp.plan(
            0.5, 1e-6, **BASE, **EVERY[kind], cap=cap, rows_per_cell=rows, mechanism=mechanism
        )  # fmt: skip
        me = [("me", [(x, y) for x in range(10) for y in range(10)] * rows)]
        assert_within(plan, tallies(plan, [("other", [(3, 3)]), *me]), tallies(plan, [("other", [(3, 3)])]))


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", EVERY)
def test_the_whole_release_costs_no_more_than_the_budget(kind, mechanism, neighboring):
    plan = geodp.plan(1, 1e-6, **BASE, **EVERY[kind], cap=4, mechanism=mechanism, neighboring=neighboring)
    if mechanism == "laplace":
        assert sum(m.l1 / Fraction(m.scale) for m in plan.measurements) <= 1
    else:
        mu_squared = sum(m.l2_squared / Fraction(m.scale) ** 2 for m in plan.measurements)
        assert mu_squared <= 1 / Fraction(sigma_for(Fraction(1), Fraction(1), Fraction(1, 10**6))) ** 2 * (
            1 + Fraction(1, 10**11)
        )
    assert sum(m.quantity.share for m in plan.measurements) == 1


def test_weights_are_attained_and_a_weight_too_large_is_seen():
    """The bound is tight at k = 4c, and the planted fault (weight 1 for everybody) breaks it."""
    plan = geodp.plan(1, 1e-6, **BASE, cap=4, contribution="weighted")
    me = [("me", [(x, 0) for x in range(16)])]
    got = tallies(plan, me)["count"]
    assert sum(int(v) ** 2 for v in got) == plan.measurements[0].l2_squared == 4096 * 4
    assert plan.measurements[0].l2_squared < 16 * 64**2


def test_block_sums_attain_the_cap_and_not_its_root():
    plan = geodp.plan(1, 1e-6, **BASE, cap=4, strategy="levels", mechanism="gaussian")
    blocks = [m for m in plan.measurements if m.name != "count"]
    assert blocks
    together = tallies(plan, [("me", [(0, 0), (0, 1), (1, 0), (1, 1)])])
    for m in blocks:
        assert max(together[m.name]) == 4
        assert m.l2_squared == 16 > 4


@pytest.mark.parametrize("rows", [1, 2])
def test_an_exchange_between_two_blocks_moves_both(rows):
    """All cells of one subject in one block, all of the other in another: L1 and squared L2 are attained."""
    plan = geodp.plan(
        1, 1e-6, **BASE, cap=4, rows_per_cell=rows, strategy="levels", neighboring="replace_one"
    )  # fmt: skip
    square = [(0, 0), (0, 1), (1, 0), (1, 1)] * rows
    one = tallies(plan, [("me", square)])
    other = tallies(plan, [("me", [(x + 32, y + 32) for x, y in square])])
    for m in plan.measurements:
        moved = np.abs(one[m.name] - other[m.name])
        assert moved.sum() == m.l1 == 8 * rows
        assert (moved**2).sum() == m.l2_squared == (8 if m.name == "count" else 32) * rows**2


@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_weights_are_the_integer_roots(k, cap):
    got = int(weights(np.array([k]), cap, "gaussian")[0])
    assert got == min(64, math.isqrt(4096 * cap // k))
    assert int(weights(np.array([k]), cap, "laplace")[0]) == min(64, 64 * cap // k)


def test_delta_fixes_the_mechanism_of_weights(trips):
    setting = {"subject": "rider", "cap": 2, "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:6"}
    soft = trips.dp.heatmap(1, 1e-6, **setting, contribution="weighted")
    assert soft.attrs["geodp"]["mechanism"] == "gaussian"
    assert list(soft.columns)[:3] == ["weighted_count", "estimate", "noisy_weighted_count"]
    assert (soft["noisy_weighted_count"] * 64 % 1 == 0).all()
    pure = trips.dp.heatmap(1, **setting, contribution="weighted")
    assert pure.attrs["geodp"]["mechanism"] == "laplace"


@pytest.mark.filterwarnings("ignore::geodp.NoiseWarning")
def test_rescaling_lifts_the_map_to_its_measured_total_and_leaves_the_measurement(trips):
    trips["rider"] = [f"r{i % 10}" for i in range(len(trips))]
    setting = {"subject": "rider", "cap": 2, "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:7"}
    with geodp.testing.noiseless():
        capped = trips.dp.heatmap(50, **setting, mechanism="laplace")
        lifted = trips.dp.heatmap(50, **setting, mechanism="laplace", rescale=True)
        full = trips.dp.heatmap(50, **{**setting, "cap": 1000}, mechanism="laplace")
    assert lifted["noisy_count"].equals(capped["noisy_count"])
    assert capped["count"].sum() == 20
    assert abs(int(lifted["count"].sum()) - int(full["noisy_count"].sum())) <= 1


def test_a_total_lost_in_its_noise_is_ignored(trips):
    setting = {"subject": "rider", "cap": 2, "bounds": (-74.3, 40.4, -73.6, 41.0), "grid": "h3:6"}
    plan = geodp.plan(1e-4, **setting, rescale=True)
    noisy = {"count": np.full(plan.n_cells, 1), "total": np.array([10**6])}
    assert plan.query.rescaling.factor(plan, noisy["total"], 100.0, 1e9) == 1.0


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"contribution": "weighted", "strategy": "levels"}, "sample"),
        ({"strategy": "levels", "estimator": "clamp"}, "pyramid"),
        ({"strategy": "levels", "rescale": True}, "flat"),
        ({"rescale": 2}, "at least the cap"),
        ({"rescale": -1}, "rescale"),
        ({"query": geodp.Sum("m", (0, 1)), "contribution": "weighted"}, "heatmaps"),
        ({"query": geodp.Mean("m", (0, 1)), "strategy": "levels"}, "heatmaps"),
        ({"query": geodp.Centroid(), "rescale": True}, "heatmaps"),
    ],
)
def test_what_does_not_go_together_is_refused(given_, words):
    with pytest.raises(ValueError, match=words):
        geodp.plan(1, 1e-6, **BASE, cap=4, **given_)


def test_levels_say_their_shares_and_keep_the_cells_own_measurement():
    plan = geodp.plan(1, 1e-6, **BASE, cap=4, strategy="levels")
    shares = [Fraction(s) for s in plan.query.to_dict()["level_shares"]]
    assert sum(shares) == 1
    heat = plan.release(frame([("a", [(1, 1)])]))
    h = plan.measurements[0].law.halfwidth(0.95)
    assert (heat["upper"] - heat["noisy_count"] == h).all()
