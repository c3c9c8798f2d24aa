"""Joint views by brute force: neighbours in, exact integers out, and the sums over views within the claim."""

from fractions import Fraction

import geopandas as gpd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point, box

import geodp
from geodp import testing
from geodp.exact import sqrt_up
from geodp.mechanisms.calibration import gaussian_delta
from geodp.queries import Centroid, Mean, Sum
from geodp.release import tally

BOX = (-74.1, 40.6, -73.9, 40.8)
ZONES = geodp.Zones(
    gpd.GeoDataFrame(
        {"zone": ["a", "b", "c"]},
        geometry=[
            box(-74.1, 40.6, -74.0, 40.8),
            box(-74.05, 40.6, -73.9, 40.8),
            box(-74.1, 40.7, -73.9, 40.8),
        ],
        crs=4326,
    ),
    key="zone",
    overlap="count",
)
VIEWS = {
    "h3 5": {"grid": "h3:5", "cap": 1},
    "h3 6": {"grid": "h3:6"},
    "square": {"grid": "square:0.05", "rows_per_cell": 3, "outside": "drop"},
    "hours": {"by": {"hour": range(3)}, "cap": 5},
    "zones": {"grid": ZONES},
    "box": {"grid": "box"},
    "sum": {"query": Sum("minutes", value_bounds=(0, 100))},
    "signed": {"query": Sum("minutes", value_bounds=(-10, 100), clip=150), "rows_per_cell": 2},
    "mean": {"query": Mean("minutes", value_bounds=(0, 100)), "cap": 2},
    "centroid": {"query": Centroid(), "grid": "h3:5"},
}
ALL = {"subject": "rider", "cap": 3, "bounds": BOX, "grid": "h3:6"}
RELATIONS = ("add_remove_one", "replace_one")

spots = st.sampled_from(
    [(-74.05, 40.65), (-74.05, 40.75), (-73.95, 40.65), (-73.95, 40.75), (-74.0, 40.7), (10.0, 60.0)]
)
rows_of_one = st.lists(st.tuples(spots, st.integers(0, 3), st.integers(-20, 120)), max_size=6)
people = st.lists(rows_of_one, max_size=4)
chosen_views = st.sets(st.sampled_from([*sorted(VIEWS), "levels", "rescaled"]), min_size=1, max_size=5)


def frame(everyone):
    rows = [(f"s{i}", *row) for i, rows in enumerate(everyone) for row in rows]
    return gpd.GeoDataFrame(
        {"rider": [r[0] for r in rows], "hour": [r[2] for r in rows], "minutes": [float(r[3]) for r in rows]},
        geometry=[Point(r[1]) for r in rows],
        crs=4326,
    ).astype({"rider": object, "hour": "int64", "minutes": "float64"})


def joint(names, mechanism, neighboring, weights=None, eps=1):
    views = {
        **VIEWS,
        "levels": geodp.plan(1, 1e-6, **{**ALL, "grid": "h3:7"}, strategy="levels", neighboring=neighboring),
        "rescaled": geodp.plan(1, 1e-6, **ALL, rescale=4, neighboring=neighboring),
    }
    return geodp.plan_together(
        {name: views[name] for name in names},
        eps,
        1e-6,
        weights,
        subject="rider",
        cap=3,
        bounds=BOX,
        grid="h3:6",
        neighboring=neighboring,
        mechanism=mechanism,
    )


def moves(plan, before, after, key=0):
    """Return how far each measurement moves: pairs of (measurement, sum |d|, sum d²), in exact integers."""
    with testing.noiseless(key):
        mode = testing.current()
    found = []
    for part in plan.parts:
        a, b = (tally(part, frame(everyone), mode) for everyone in (before, after))
        for m in part.measurements:
            d = [abs(int(x) - int(y)) for x, y in zip(a[m.name].tolist(), b[m.name].tolist(), strict=True)]
            found.append((m, sum(d), sum(x * x for x in d)))
    return found


def spent(plan, moved):
    """Return what these moves cost: eps under Laplace, mu² under Gaussian, as exact fractions."""
    if plan.mechanism == "laplace":
        return sum(Fraction(l1) / Fraction(m.scale) for m, l1, _ in moved)
    return sum(Fraction(l2) / Fraction(m.scale) ** 2 for m, _, l2 in moved)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighboring", RELATIONS)
@settings(max_examples=25)
@given(
    people,
    rows_of_one,
    rows_of_one,
    st.integers(0, 3),
    st.sets(st.sampled_from(sorted(VIEWS)), min_size=1, max_size=5),
)
def test_no_neighbour_costs_more_than_all_views_together_claim(
    mechanism, neighboring, others, mine, his, key, names
):
    plan = joint(sorted(names), mechanism, neighboring)
    # The subject that changes comes last, so that the others keep their ids.
    before = [*others, mine]
    after = [*others, his] if neighboring == "replace_one" else others
    moved = moves(plan, before, after, key)
    for m, l1, l2_squared in moved:
        assert l1 <= m.l1
        assert l2_squared <= m.l2_squared
    cost = spent(plan, moved)
    assert cost <= (plan.charge.eps if mechanism == "laplace" else 2 * plan.charge.rho)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1] * 9 + ["1e6"]])
def test_what_is_claimed_over_all_views_is_within_the_budget(neighboring, weights):
    """Sum of L1/b at most eps; sum of L2²/sigma² at most the mu² that delivers delta, by an independent formula."""
    plan = joint(sorted(VIEWS), "laplace", neighboring, weights)
    total = sum(m.l1 / Fraction(m.scale) for part in plan.parts for m in part.measurements)
    assert Fraction(999_999, 1_000_000) < total <= 1
    plan = joint(sorted(VIEWS), "gaussian", neighboring, weights)
    mu_squared = sum(m.l2_squared / Fraction(m.scale) ** 2 for part in plan.parts for m in part.measurements)
    assert mu_squared <= 2 * plan.charge.rho
    assert 0.999e-6 < gaussian_delta(sqrt_up(mu_squared), 1, 1) <= 1e-6


def test_the_claim_is_attained():
    """One subject in three places moves two counts by all that they may move, at the same time."""
    plan = joint(["h3 5", "h3 6"], "laplace", "add_remove_one")
    me = [(spot, 0, 0) for spot in [(-74.05, 40.65), (-73.95, 40.75), (-74.0, 40.7)]]
    assert spent(plan, moves(plan, [me], [])) > Fraction(999_999, 1_000_000)


def test_a_planted_fault_is_seen(monkeypatch):
    """One view that keeps a cell too many is caught by the sum over all views."""
    from geodp import contribution

    def too_many(pairs, lengths, cap, *rest):
        return honest(pairs, lengths, cap + (cap == 1), *rest)

    honest = contribution._within_cap
    monkeypatch.setattr(contribution, "_within_cap", too_many)
    plan = geodp.plan_together(
        {"one": {"cap": 1}, "two": {"cap": 2}},
        1,
        subject="rider",
        bounds=BOX,
        grid="h3:6",
        mechanism="laplace",
    )
    me = [(spot, 0, 0) for spot in [(-74.05, 40.65), (-73.95, 40.75), (-74.0, 40.7)]]
    assert spent(plan, moves(plan, [me], [])) > 1


@settings(max_examples=15)
@given(people, st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_weights_split_the_budget_and_never_the_integers(everyone, weights):
    names = ["h3 6", "mean", "signed"]
    a, b = joint(names, "gaussian", "add_remove_one"), joint(names, "gaussian", "add_remove_one", weights)
    for before, after, weight in zip(a.parts, b.parts, b.weights, strict=True):
        with testing.noiseless():
            mode = testing.current()
        same = zip(
            tally(before, frame(everyone), mode).values(),
            tally(after, frame(everyone), mode).values(),
            strict=True,
        )
        assert all((x == y).all() for x, y in same)
        for m, n in zip(before.measurements, after.measurements, strict=True):
            assert (m.l1, m.l2_squared, m.quantity.step) == (n.l1, n.l2_squared, n.quantity.step)
            assert abs((n.scale / m.scale) ** 2 * float(3 * weight) - 1) < 1e-9
