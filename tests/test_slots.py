"""Slots: public levels, never read from the rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

import geodp
from geodp import testing
from geodp.slots import slots

NYC = (-74.3, 40.4, -73.6, 41.0)


def test_every_cell_has_every_slot_whatever_the_rows(trips):
    days = {"hour": range(24), "weekend": ["yes", "no"]}
    trips["weekend"] = "yes"
    heat = trips.dp.heatmap(1, subject="rider", cap=3, bounds=NYC, grid="h3:5", by=days)
    empty = trips.iloc[:0].dp.heatmap(1, subject="rider", cap=3, bounds=NYC, grid="h3:5", by=days)
    assert heat.index.names == ["h3_05", "hour", "weekend"]
    assert len(heat) == len(heat.index.levels[0]) * 48
    assert heat.index.equals(empty.index)


def test_slots_add_up_to_the_rows_that_have_one(trips):
    trips["rider"] = [f"r{i}" for i in range(len(trips))]
    with testing.noiseless():
        by_hour = trips.dp.heatmap(1, subject="rider", cap=1, bounds=NYC, grid="h3:5", by={"hour": range(6)})
        plain = trips[trips["hour"] < 6].dp.heatmap(1, subject="rider", cap=1, bounds=NYC, grid="h3:5")
    summed = by_hour["noisy_count"].groupby(level=0).sum()
    pd.testing.assert_series_equal(summed, plain["noisy_count"], check_names=False)


def test_the_cap_runs_over_cell_and_slot(trips):
    trips["rider"] = "only"
    with testing.noiseless():
        heat = trips.dp.heatmap(1, subject="rider", cap=5, bounds=NYC, grid="h3:5", by={"hour": range(24)})
    assert heat["noisy_count"].sum() == 5
    assert heat["noisy_count"].max() == 1


@pytest.mark.parametrize(
    ("by", "error", "word"),
    [
        ({"hour": ["7", "8"]}, TypeError, "no row would match"),
        ({"rider": [1, 2]}, TypeError, "no row would match"),
        ({"nowhere": [1]}, ValueError, "nowhere"),
        ({"hour": []}, ValueError, "no levels"),
        ({"hour": [1, 1]}, ValueError, "duplicate"),
        ({"hour": [1, None]}, ValueError, "missing"),
        ({"hour": pd.Series([1, 2])}, TypeError, "public and typed"),
        ({"hour": np.array([1, 2])}, TypeError, "public and typed"),
        ({"hour": 24}, TypeError, "must list"),
        ({"hour": itertools.count()}, TypeError, "must list"),
        ({"hour": "24"}, TypeError, "public and typed"),
        ({3: [1]}, TypeError, "column names"),
        ({"Count": [1]}, ValueError, "column of the result"),
        ({"hour": list(np.arange(3))}, TypeError, "numpy values"),
        ({"hour": {1, 2}}, TypeError, "no order"),
        ({"hour": [pd.Interval(0, 2), pd.Interval(1, 3)]}, TypeError, "dates or times"),
        (["hour"], TypeError, "by must name"),
        ({}, TypeError, "by must name"),
        ({"hour": range(200_000)}, ValueError, "more than"),
    ],
)
def test_bad_levels_are_refused_before_any_row_is_read(trips, by, error, word):
    trips["rider"] = trips["rider"].astype("string")  # before 3.0 pandas keeps text as objects of any kind
    with pytest.raises(error, match=word):
        trips.dp.heatmap(1, subject="rider", cap=3, bounds=NYC, grid="h3:5", by=by)


def test_rows_with_another_value_are_left_out_whatever_it_is():
    class Hostile:
        def __hash__(self):
            raise RuntimeError("secret")

    column = pd.Series([1, "1", None, [1], Hostile(), 2.5, pd.NA, True, 3], dtype=object, name="k")
    codes = slots({"k": [1, 3]}).codes(pd.DataFrame({"k": column}))
    assert codes.tolist() == [0, -1, -1, -1, -1, -1, -1, 0, 1]


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pd.Series(["a", None, "b"], dtype="category"), ["b", "a"]),
        (pd.Series(["a", None, "b"], dtype="string"), ["b", "a"]),
        (pd.Series([1, None, 0], dtype="Int64"), [0, 1]),
        (pd.Series([1.0, np.nan, 0.0]), [0, 1]),
        (
            pd.to_datetime(pd.Series(["2026-01-02", None, "2026-01-01"])),
            pd.to_datetime(["2026-01-01", "2026-01-02"]),
        ),
    ],
)
def test_codes_in_every_dtype(column, levels):
    made = slots({"k": list(levels)})
    made.check({"k": column.dtype})
    assert made.codes(pd.DataFrame({"k": column})).tolist() == [1, -1, 0]


def test_a_domain_of_cells_and_slots_beyond_the_limit_is_refused():
    with pytest.raises(ValueError, match=r"slots \(24 of each cell\)"):
        geodp.plan(1, subject="rider", cap=1, bounds=NYC, grid="h3:11", by={"hour": range(24)})


SENTINEL = "9999-12-31"


@pytest.mark.parametrize(
    "dtype", ["datetime64[s]", "datetime64[us]", "datetime64[ns]", "timestamp[us][pyarrow]"]
)
def test_a_far_date_in_one_row_is_left_out_and_never_an_error(dtype):
    """A common sentinel is beyond what nanoseconds can say; converting it would raise because of a row."""
    days = ["2026-01-02", None, "2026-01-01"] + ([SENTINEL] if dtype != "datetime64[ns]" else [])
    column = pd.Series(pd.array(days, dtype="datetime64[s]")).astype(dtype)
    for unit in ("s", "ns"):
        made = slots({"k": list(pd.to_datetime(["2026-01-01", "2026-01-02"]).as_unit(unit))})
        made.check({"k": column.dtype})
        got = made.codes(pd.DataFrame({"k": column})).tolist()
        assert got == [1, -1, 0, -1][: len(days)]


def test_times_match_as_instants_and_never_across_naive_and_aware():
    column = pd.Series(pd.to_datetime(["2026-01-01 12:00", "2026-01-01 11:00"])).dt.tz_localize("UTC")
    paris = pd.to_datetime(["2026-01-01 12:00"]).tz_localize("Europe/Paris")
    assert slots({"k": list(paris)}).codes(pd.DataFrame({"k": column})).tolist() == [-1, 0]
    naive = slots({"k": list(pd.to_datetime(["2026-01-01 12:00"]))})
    assert naive.codes(pd.DataFrame({"k": column})).tolist() == [-1, -1]
    with pytest.raises(TypeError, match="time zone"):
        naive.check({"k": column.dtype})


def test_a_level_finer_than_the_column_matches_nothing():
    column = pd.Series(pd.array(["2026-01-01"], dtype="datetime64[s]"))
    level = pd.Timestamp("2026-01-01 00:00:00.5")
    assert slots({"k": [level]}).codes(pd.DataFrame({"k": column})).tolist() == [-1]


def test_sparse_columns_and_levels_that_python_takes_for_equal():
    column = pd.Series(pd.arrays.SparseArray([1, 0, 2]))
    assert slots({"k": [2, 1]}).codes(pd.DataFrame({"k": column})).tolist() == [1, -1, 0]
    assert slots({"k": [1, 0]}) != slots({"k": [True, False]})


def test_the_number_of_slots_is_exact():
    """Four columns of 65,536 levels are 2**64 slots, which 64 bits take for none."""
    with pytest.raises(ValueError, match=r"by has 18,446,744,073,709,551,616 slots"):
        slots({f"column {i}": range(2**16) for i in range(4)})
    with pytest.raises(ValueError, match=r"by has 1,180,591,620,717,411,303,424 slots"):
        slots({f"column {i}": range(2**14) for i in range(5)})
    assert len(slots({"a": range(100), "b": range(1000)})) == 100_000
