"""Which rows of a subject count in a cell: as many as allowed, every row with the same chance."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from geodp import contribution
from geodp.contribution import choose_rows
from geodp.queries import Rows
from geodp.queries.sums import chosen_pairs
from geodp.subjects import subjects

SECRET = bytes(range(16))


def chosen(rows, rows_per_cell, secret=SECRET):
    """Return the sorted values that count of rows (subject, key, value)."""
    ids = subjects(pd.Series([s for s, *_ in rows], dtype=object))
    key = np.array([k for _, k, _ in rows], dtype=np.int64)
    values = np.array([v for *_, v in rows], dtype=np.int64)
    picked = choose_rows(ids.codes, key, values[:, None], rows_per_cell, ids, secret)
    return [rows[i] for i in picked]


def test_every_row_has_the_same_chance_even_where_values_repeat():
    """One row of nine equal ones and another is chosen: the other one by a tenth of 20,000 subjects.

    That is 2,000 with a standard deviation of 42; six of them are exceeded in 2 of 1e9 runs. A choice among
    distinct values, which would draw means of repeated values towards rare ones, gives 10,000.
    """
    n = 20_000
    rows = [(f"p{i}", 0, v) for i in range(n) for v in [5] * 9 + [9]]
    rare = sum(v == 9 for *_, v in chosen(rows, 1))
    assert abs(rare - n / 10) < 6 * 42


def test_pairs_within_the_limit_keep_all_rows_and_are_not_ranked(monkeypatch):
    rows = [("a", 1, 5), ("a", 0, 5), ("b", 1, 7), ("a", 1, 5)]
    monkeypatch.setattr(contribution, "_lowest", lambda rank, *rest: np.zeros(len(rank), bool))
    assert sorted(chosen(rows, 2)) == sorted(rows)


def test_ties_of_priority_go_to_the_lower_value_in_any_order(monkeypatch):
    monkeypatch.setattr(contribution, "siphash", lambda key, *words, **_: np.zeros(len(words[-1]), np.uint64))
    rows = [("a", 0, v) for v in (3, -1, 2, 2, 8)]
    assert (
        sorted(v for *_, v in chosen(rows, 3)) == sorted(v for *_, v in chosen(rows[::-1], 3)) == [-1, 2, 2]
    )


def test_huge_keys_are_sorted_on_two_columns():
    rows = [("a", 2**62, 1), ("b", 5, 2), ("c", 5, 3), ("a", 2**62, 1), ("b", 2**62, 4)]
    assert sorted(chosen(rows, 1)) == sorted([rows[0], rows[1], rows[2], rows[4]])
    assert [row[:2] for row in chosen(rows, 1)] == [("a", 2**62), ("b", 5), ("b", 2**62), ("c", 5)]


def test_no_rows():
    assert chosen([], 1) == []


def test_cells_that_look_kept_and_are_not_add_nothing(monkeypatch):
    """Rows are passed over by a table in which cells share places; the cap itself is held cell by cell."""
    monkeypatch.setattr(contribution, "_slot", lambda subject, key, bits: key * 0)
    rows = [(f"p{i}", key, 1) for i in range(3) for key in range(9)]
    ids = subjects(pd.Series([s for s, *_ in rows], dtype=object))
    key = np.array([k for _, k, _ in rows], dtype=np.int64)
    placed = Rows(ids, ids.codes, key, np.ones(len(rows), bool), np.ones((len(rows), 1), np.int64))
    layout = SimpleNamespace(policy=SimpleNamespace(cap=2, rows_per_cell=1), n_keys=9)
    pairs, sums = chosen_pairs(placed, layout, SECRET)
    assert np.bincount(pairs.subject).tolist() == [2, 2, 2]
    assert sums.tolist() == [[1]] * 6
