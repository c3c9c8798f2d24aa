"""Sensitivity by brute force: neighbours in, exact integers out, never further apart than the plan says.

Every query on every kind of grid, under both relations, for both mechanisms, with and without slots, in memory
and in partitions, in Python integers, with hostile rows in hostile columns; and nothing but numbers may differ
between what is released of neighbours.
"""

import warnings
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest
from attacked_frames import Schema, frame, neighbours, rows_of_one, schemas
from attacked_plans import GRIDS, QUERIES, goes_together, planned
from comparing_neighbours import (
    MECHANISMS,
    RELATIONS,
    assert_only_numbers_differ,
    assert_within,
    entries,
    in_chunks_of,
    in_partitions,
    moves,
    secret,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import geodp
from geodp import release
from geodp.quantiles import keys_per_subject, penalties

ASKED = [(name, where) for name in QUERIES for where in GRIDS if goes_together(name, where)]
LISTED = [name for name in QUERIES if name not in ("sparse", "select", "centroid of n")]


def asked_of(name, schema, data):
    """Draw what else a plan is asked."""
    fixed = name == "centroid of n"
    cap, rows_per_cell = (1, 1) if fixed else data.draw(st.tuples(st.integers(1, 4), st.integers(1, 3)))
    return {
        "cap": cap,
        "rows_per_cell": rows_per_cell,
        "by": None if fixed else data.draw(st.sampled_from([None, {schema.slot_name: [0, 1, 2]}])),
        "outside": data.draw(st.sampled_from(["clamp", "drop"])),
        "subject": schema.id_name,
    }


def with_outlines(plan, data):
    """Return the plan, of small maps now and then with outlines."""
    drawn = data.draw(st.booleans()) and plan.n_cells < 150
    return replace(plan, ways=replace(plan.ways, return_geometry=True)) if drawn else plan


def attack(name, where, data, engine):
    """Draw a schema, neighbours and a plan; compare what is counted, and what is released, of them."""
    schema = data.draw(schemas(where))
    people, me, you = data.draw(neighbours(schema))
    asked, mode = asked_of(name, schema, data), secret(data.draw(st.integers(0, 3)))
    cuts = data.draw(st.lists(st.integers(0, 9), max_size=2)) if engine == "dask" else None
    shuffled, mechanisms = data.draw(st.integers(0, 9)), data.draw(st.permutations(MECHANISMS))
    before = frame([*people, me], schema, shuffled)
    for neighboring in RELATIONS:
        other = frame([*people, you] if neighboring == "replace_one" else people, schema, shuffled + 1)
        for mechanism in mechanisms:
            plan = planned(
                name, where, schema.value_name, neighboring=neighboring, mechanism=mechanism, **asked
            )
            tallies = [entries(plan, rows, mode) for rows in (before, other)]
            assert_within(plan, *tallies)
            if engine == "dask":
                assert entries(plan, in_partitions(before, cuts), mode) == tallies[0]
    other = in_partitions(other, cuts) if engine == "dask" else other
    assert_only_numbers_differ(with_outlines(plan, data), before, other)


@pytest.mark.parametrize(("name", "where"), ASKED)
@settings(max_examples=2)
@given(data=st.data())
def test_tallies_of_neighbours_differ_within_every_claim(name, where, data):
    attack(name, where, data, "memory")


@pytest.mark.audit
@pytest.mark.parametrize(("name", "where"), ASKED)
@settings(max_examples=5)
@given(data=st.data())
def test_tallies_of_neighbours_differ_within_every_claim_at_length(name, where, data):
    attack(name, where, data, "memory")


@pytest.fixture
def _in_one_thread():
    import dask

    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


@pytest.mark.usefixtures("_in_one_thread")
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=4)
@given(data=st.data())
def test_partitions_count_what_memory_counts(name, data):
    where = data.draw(st.sampled_from([where for where in GRIDS if goes_together(name, where)]))
    attack(name, where, data, "dask")


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=8)
@given(data=st.data())
def test_however_rows_are_cut_into_chunks_the_same_is_counted(name, data):
    where = data.draw(st.sampled_from([where for where in GRIDS if goes_together(name, where)]))
    schema = data.draw(schemas(where))
    people, me, _ = data.draw(neighbours(schema))
    mode, rows = secret(data.draw(st.integers(0, 3))), frame([*people, me], schema)
    plan = planned(name, where, schema.value_name, **asked_of(name, schema, data))
    whole = entries(plan, rows, mode)
    with in_chunks_of(data.draw(st.integers(1, 4))):
        assert entries(plan, rows, mode) == whole


# Rows that are their own subjects --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "centroid of n"])
@settings(max_examples=6)
@given(data=st.data())
def test_single_rows_as_subjects(name, data):
    """Any row comes, goes or is exchanged; where a cap must choose, the last one, since a choice goes by its number."""
    where = data.draw(st.sampled_from([where for where in GRIDS if goes_together(name, where)]))
    several = where in ("zones, each counts", "zones across 180")
    cap = data.draw(st.integers(1, 4)) if several else 1
    schema = Schema(where)
    rows = data.draw(rows_of_one(schema, 8))
    mine, instead = (data.draw(rows_of_one(schema, 1)) for _ in range(2))
    at = len(rows) if several and cap < 4 else data.draw(st.integers(0, len(rows)))
    before = in_order([*rows[:at], *mine, *rows[at:]], schema)
    mode = secret(data.draw(st.integers(0, 3)))
    for neighboring in RELATIONS:
        exchanged = instead if neighboring == "replace_one" else []
        other = in_order([*rows[:at], *exchanged, *rows[at:]], schema)
        for mechanism in MECHANISMS:
            plan = planned(
                name,
                where,
                subject=geodp.EACH_ROW,
                neighboring=neighboring,
                mechanism=mechanism,
                **({"cap": cap} if several else {}),
            )
            assert_within(plan, entries(plan, before, mode), entries(plan, other, mode))


def in_order(rows, schema):
    return pd.concat([frame([("x", [row])], schema) for row in rows] or [frame([], schema)])


# A cap that is chosen on the way, and several views at once ------------------------------------------------


@pytest.mark.parametrize("name", LISTED)
@settings(max_examples=3)
@given(data=st.data())
def test_a_cap_chosen_on_the_way_moves_within_both_stages(name, data):
    where = data.draw(st.sampled_from(list(GRIDS)))
    schema = data.draw(schemas(where))
    people, me, you = data.draw(neighbours(schema))
    asked, mode = asked_of(name, schema, data), secret(data.draw(st.integers(0, 3)))
    before = frame([*people, me], schema)
    for neighboring in RELATIONS:
        other = frame([*people, you] if neighboring == "replace_one" else people, schema, 1)
        plan = planned(
            name,
            where,
            schema.value_name,
            neighboring=neighboring,
            **{**asked, "cap": "auto", **_rescaled(name)},
        )
        first, *_ = options = plan.options
        for option in (first, data.draw(st.sampled_from(options))):
            assert_within(option, entries(option, before, mode), entries(option, other, mode))
        assert_penalties_within(plan, before, other)
    assert_only_numbers_differ(plan, before, other)


def _rescaled(name):
    return {"rescale": 64} if "rescaled" in name else {}


def assert_penalties_within(plan, before, other):
    """Stage 1: no two penalties drift apart by more than the reach that its eps pays for."""
    first, largest = plan.selection, plan.options[-1]
    a, b = (
        penalties(
            keys_per_subject(release.place(largest, rows), plan.layout), first.candidates, first.quantile
        )
        for rows in (before, other)
    )
    moved = [y - x for x, y in zip(a, b, strict=True)]
    assert max(moved) - min(moved) <= first.reach <= first.eps * Fraction(first.scale)
    assert max(map(abs, moved)) <= 1


@settings(max_examples=15)
@given(data=st.data())
def test_all_views_of_one_release_cost_no_more_than_is_paid(data):
    where = data.draw(st.sampled_from(list(GRIDS)))
    schema = data.draw(schemas(where))
    people, me, you = data.draw(neighbours(schema))
    names = data.draw(
        st.lists(st.sampled_from([n for n in LISTED if n != "levels"]), min_size=1, max_size=4, unique=True)
    )
    asked, mode = [asked_of(name, schema, data) for name in names], secret(data.draw(st.integers(0, 3)))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(names), max_size=len(names)))
    before = frame([*people, me], schema)
    for neighboring in RELATIONS:
        other = frame([*people, you] if neighboring == "replace_one" else people, schema, 1)
        views = {
            name: planned(name, where, schema.value_name, neighboring=neighboring, **more, **_rescaled(name))
            for name, more in zip(names, asked, strict=True)
        }
        for mechanism in MECHANISMS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", geodp.NoiseWarning)
                joint = geodp.plan_together(views, 1, 1e-6, weights, mechanism=mechanism)
            assert cost(joint, before, other, mode) <= (
                joint.eps if mechanism == "laplace" else 2 * joint.charge.rho
            )
    assert_only_numbers_differ(joint, before, other)


def cost(joint, before, other, mode):
    """Return what these neighbours really cost: eps under Laplace noise, mu² under Gaussian, as a fraction."""
    spent = Fraction(0)
    for part in joint.parts:
        one, two = entries(part, before, mode), entries(part, other, mode)
        assert_within(part, one, two)
        for m in part.measurements:
            moved = moves(one[m.name], two[m.name])
            if joint.mechanism == "laplace":
                spent += Fraction(sum(moved)) / Fraction(m.scale)
            else:
                spent += Fraction(sum(d * d for d in moved)) / Fraction(m.scale) ** 2
    return spent


# What cannot be a release is refused alike -----------------------------------------------------------------

REFUSED = {
    "ids are flags": ("rider", "bool", False),
    "ids are times": ("rider", "datetime64[s]", "2026-11-30"),
    "values are texts": ("v", "string", "x"),
    "values are complex": ("v", "complex128", 1j),
    "hours are texts": ("hour", "string", "x"),
    "hours are times": ("hour", "datetime64[s]", "2026-11-30"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_schema_that_does_not_fit_is_refused_in_the_same_words_whatever_the_rows(what):
    column, dtype, value = REFUSED[what]
    schema = Schema("square")
    plan = planned("mean", "square", cap=1, by={"hour": [0, 1]})
    said = []
    for n in (0, 1, 5):
        rows = frame([(f"p{i}", [(None, 1.0, 0)]) for i in range(n)], schema)
        rows[column] = pd.Series([value] * n, dtype=dtype)
        with pytest.raises(TypeError) as caught:
            plan.release(rows)
        said.append(str(caught.value))
    assert len(set(said)) == 1
