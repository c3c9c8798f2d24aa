"""Parcels: whatever way rows travel, what is counted of them in the end is what memory counts."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geodp.contribution import distinct_pairs, within_cap
from geodp.dask.parcels import Parcel, buckets, canonical, join, pack, reduced, split
from geodp.dask.totals import Totals, dense, plus, sparse
from geodp.queries import Count, Rows
from geodp.queries.sums import chosen_pairs
from geodp.subjects import subjects

SECRET = bytes(range(16))
N_KEYS = 7

ids = st.one_of(
    st.integers(0, 4),
    st.sampled_from(["0", "1", "a", "\ud800", "\ud801", "é"]),
    st.sampled_from([2**53, 2**63 - 1, -(2**63), 2**63, 2**70]),
)
row = st.tuples(ids, st.integers(0, N_KEYS - 1), st.booleans(), st.integers(-2, 2))
partitions = st.lists(st.lists(row, max_size=12), min_size=1, max_size=6)


def rows_of(table, width):
    who = subjects(pd.Series([r[0] for r in table], dtype=object))
    key, inside, value = (np.array([r[i] for r in table]) for i in (1, 2, 3))
    values = np.repeat(value.astype(np.int64)[:, None], width, axis=1)
    return Rows(who, who.codes, key.astype(np.int64), inside.astype(bool), values)


def layout(cap, m):
    policy = SimpleNamespace(cap=cap, rows_per_cell=m)
    return SimpleNamespace(policy=policy, n_keys=N_KEYS)


def counted(rows, cap, m):
    return Count().tally(rows, layout(cap, m), "laplace", SECRET)["count"]


def summed(rows, cap, m):
    pairs, sums = chosen_pairs(rows, layout(cap, m), SECRET)
    return np.array([np.bincount(pairs.key, column, N_KEYS) for column in (pairs.rows, *sums.T)])


def shuffled(tables, width, m, cap, n):
    """Send rows the way of a release: reduce, part by two digits with a join between, and join."""
    parcels = [reduced(pack(rows_of(table, width), N_KEYS, m), m, cap, SECRET) for table in tables]
    first = [split(p, (buckets(p.ids, SECRET) % np.uint64(n)).astype(np.int64), n) for p in parcels]
    met = [reduced(join(pieces), m, cap, SECRET) for pieces in zip(*first, strict=True)]
    return [join([one]).rows() for one in met]


@settings(max_examples=60)
@given(partitions, st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_counts_do_not_depend_on_the_partitions(tables, cap, m, n, sampled):
    whole = counted(rows_of([r for table in tables for r in table], 0), cap, m)
    parts = shuffled(tables, 0, m, cap if sampled else None, n)
    assert sum(counted(rows, cap, m) for rows in parts).tolist() == whole.tolist()


@settings(max_examples=60)
@given(partitions, st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2))
def test_sums_do_not_depend_on_the_partitions(tables, cap, m, n, width):
    whole = summed(rows_of([r for table in tables for r in table], width), cap, m)
    parts = shuffled(tables, width, m, cap, n)
    assert sum(summed(rows, cap, m) for rows in parts).tolist() == whole.tolist()


def test_what_reduces_by_the_cap_looks_at_keys_reached_from_inside_only():
    # Key 0 is clamped here and inside elsewhere: a worker that samples all of its keys may drop it.
    here = [("a", key, key > 0, 0) for key in range(N_KEYS)]
    elsewhere = [("a", 0, True, 0)]
    for secret in (bytes([i] * 16) for i in range(40)):
        parcel = reduced(pack(rows_of(here, 0), N_KEYS, 1), 1, 2, secret)
        assert 0 in parcel.key
        assert len(parcel.key) == 3
        both = reduced(join([parcel, pack(rows_of(elsewhere, 0), N_KEYS, 1)]), 1, None, secret).rows()
        whole = rows_of(here + elsewhere, 0)
        found, expected = (distinct_pairs(r.subject, r.key, r.inside, N_KEYS, 1) for r in (both, whole))
        keep = found.key[within_cap(found, 2, both.subjects, secret)]
        assert set(keep) == set(expected.key[within_cap(expected, 2, whole.subjects, secret)])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3]),
        pd.Series([1, 2, 3], dtype="int8"),
        pd.Series([1, 2, 3], dtype="uint64"),
        pd.Series([1, 2, None, 3], dtype="Int64"),
        pd.Series([1.0, np.nan, 2.5, 2.0, 3.0]),
        pd.Series([1, "x", 2, True, 3.0, None], dtype=object),
        pd.Series([np.int32(1), np.uint8(2), 3], dtype=object),
        pd.Series([1, 2, 3], dtype="category"),
    ],
)
def test_ids_have_one_form_whatever_their_dtype(column):
    found = canonical(subjects(column).ids)
    numbers = [value for value in found if not isinstance(value, str)]
    assert {1, 2, 3} <= set(numbers)
    expected = buckets(np.array([1, 2, 3]), SECRET).tolist()
    hashes = dict(zip(found.tolist(), buckets(found, SECRET).tolist(), strict=True))
    assert [hashes[number] for number in (1, 2, 3)] == expected


def test_texts_have_one_hash_in_whatever_company():
    alone = buckets(np.array(["é"], object), SECRET)[0]
    assert buckets(np.array([5, "é", "\ud800", 2**80], object), SECRET)[1] == alone
    assert buckets(canonical(np.array(["a", "é"], object)), SECRET)[1] == alone
    assert buckets(np.array(["é"], object), bytes(16))[0] != alone


def test_one_and_one_as_text_stay_two_subjects():
    both = join(
        [pack(rows_of([(1, 0, True, 0)], 0), N_KEYS, 1), pack(rows_of([("1", 0, True, 0)], 0), N_KEYS, 1)]
    )
    assert both.ids.tolist() == [1, "1"]
    assert both.subject.tolist() == [0, 1]


def test_subjects_of_one_hash_stay_apart(monkeypatch):
    monkeypatch.setattr("geodp.dask.parcels.siphash", lambda key, *words: np.zeros(len(words[0]), np.uint64))
    tables = [[(i, i, True, 0) for i in range(5)], [(i, 6, True, 0) for i in range(5)]]
    parts = shuffled(tables, 0, 1, 1, 3)
    assert [len(rows.subjects.ids) for rows in parts] == [5, 0, 0]
    assert sum(counted(rows, 1, 1) for rows in parts).sum() == 5


def test_a_parcel_shows_and_logs_no_row():
    parcel = pack(rows_of([("secret", 3, True, 1)], 1), N_KEYS, 1)
    assert repr(parcel) == str(parcel) == "<Parcel>"
    assert repr(sparse([{"count": np.array([41])}])) == "<Totals>"


@pytest.mark.parametrize("name", ["{:08d}", "rider \ud800 {}"])
def test_a_parcel_tells_dask_how_large_it_is(name):
    ids = np.array([name.format(i) for i in range(1000)], object)
    parcel = pack(rows_of([(one, 3, True, 1) for one in ids], 1), N_KEYS, 1)
    assert sys.getsizeof(parcel) >= 1000 * 8 + sum(
        x.nbytes for x in (parcel.subject, parcel.key, parcel.values)
    )


LONG = "long " * 40
TEXTS = [
    ["nan", "NA", "None", "<NA>", "a", "b", "é", "", "a\0b", "a\0", "a\0\0", LONG],
    ["é", "a\0c", "", LONG, LONG + " ", "b"],
    ["\ud800", "b", "\udfff", "é"],
    ["a"],
    [7, "7", 2**70, "b"],
]


def matched(tables, cut=None):
    """Return (id, key) of every row of parcels that were joined."""
    parcels = [pack(rows_of([(one, i, True, 0) for one in table[:cut]], 0), N_KEYS, 1) for i, table in tables]
    joined = join(parcels)
    return sorted(
        ((repr(joined.ids[s]), k) for s, k in zip(joined.subject, joined.key, strict=True)), key=str
    )


@pytest.mark.parametrize("pays", [True, False])
@pytest.mark.parametrize("cut", [None, 3])
def test_texts_are_matched_whole_in_whatever_form_they_travel(pays, cut, monkeypatch):
    if not pays:  # as where hashes collide
        monkeypatch.setattr("geodp.dask.parcels.numbered_texts", lambda column: None)
    tables = list(enumerate(TEXTS))
    for some in ([0, 1], [3, 0, 3], [0, 2], [1, 4], [0, 1, 2, 3, 4]):
        chosen = [tables[i] for i in some]
        expected = sorted({(repr(one), i) for i, table in chosen for one in table[:cut]}, key=str)
        assert sorted(set(matched(chosen, cut)), key=str) == expected
    for table in TEXTS:
        parcel = join([pack(rows_of([(one, 0, True, 0) for one in table], 0), N_KEYS, 1)] * 2)
        assert len(parcel.ids) == len(table)
        who = subjects(pd.Series(table, dtype=object))
        numbers = np.arange(len(table))
        by_id = dict(zip(parcel.ids, parcel.rows().subjects.digests(numbers, SECRET), strict=True))
        assert [by_id[one] for one in who.ids] == who.digests(numbers, SECRET).tolist()


def test_texts_travel_in_one_buffer():
    ids = np.array([f"{i:08d}" for i in range(4000)], object)
    parcel = pack(rows_of([(one, 3, True, 0) for one in ids], 0), N_KEYS, 1)
    pieces = split(parcel, np.arange(4000) % 40, 40)
    assert all(not isinstance(piece.ids, np.ndarray) for piece in pieces)
    # Nothing of the whole goes along with a piece.
    assert sum(len(pickle.dumps(piece, protocol=5)) for piece in pieces) < 2 * len(
        pickle.dumps(parcel, protocol=5)
    )
    sent = pickle.loads(pickle.dumps(pieces[7], protocol=5))
    assert list(sent.ids) == ids[7::40].tolist()


def test_totals_travel_without_zeros_and_add_up_exactly():
    big = 2**61 + 12345
    vectors = [{"a": np.array([0, big, 0, -7]), "b": np.array([1])}, {"a": np.array([0, 0])}]
    terms = [sparse(vectors) for _ in range(3)]
    assert isinstance(terms[0], Totals)
    assert len(terms[0].parts["0/a"][1]) == 2
    (first, second) = dense(plus(terms[:2]), 2)
    assert first["a"].tolist() == [0, 2 * big, 0, -14]
    assert first["b"].tolist() == [2]
    assert second["a"].tolist() == [0, 0]


def test_a_parcel_uses_small_integers_where_they_fit():
    small = Parcel(
        np.array([1]), np.array([0]), np.array([5]), np.array([1]), np.array([True]), np.zeros((1, 0), int)
    )
    large = Parcel(
        np.array([1]), np.array([0]), np.array([2**40]), np.array([1]), np.array([True]), np.ones((1, 1), int)
    )
    assert small.key.dtype == np.int32
    assert large.rows().key.tolist() == [2**40]
