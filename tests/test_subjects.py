"""Who a row belongs to: CASES pg_diffix #25 and its kin."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geodp
from geodp import testing
from geodp.subjects import check_subject_dtype, each_row, subjects

KEY = bytes(16)


def groups(column):
    """Return the partition of usable rows, as sets of positions."""
    codes = subjects(column).codes
    return {frozenset(np.flatnonzero(codes == c).tolist()) for c in np.unique(codes[codes >= 0])}


def test_pg_diffix_25_rows_without_an_id_are_left_out_and_never_one_person():
    assert subjects(pd.Series(["u1", None, np.nan, None, "u2"], dtype=object)).codes.tolist() == [
        0,
        -1,
        -1,
        -1,
        1,
    ]
    assert groups(pd.Series([1, "1", 1.0], dtype=object)) == {frozenset({0, 2}), frozenset({1})}


def test_booleans_floats_and_containers_are_no_ids():
    odd = pd.Series([True, 2.5, [1], (1,), {}, float("inf"), pd.NA, pd.NaT, np.bool_(False), 1], dtype=object)
    assert subjects(odd).codes.tolist() == [-1] * 9 + [0]


def test_an_integer_column_with_gaps_keeps_its_ids():
    assert groups(pd.Series([1, None, 2, 1.0])) == {frozenset({0, 3}), frozenset({2})}
    assert subjects(pd.Series([2.0**53, 2.5, -np.inf])).codes.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    "values",
    [
        ["a", "a\0b", "a\0c"],
        ["é", "e\u0301"],
        ["", " "],
        [2**63, 2**63 + 1, 2**70],
        [2**53, 2**53 + 1],
        [-1, -2, 0, 2**61 - 1, "x"],  # Python hashes -1 and -2, and 0 and 2**61 - 1, alike
    ],
)
def test_ids_that_look_alike_are_not_merged(values):
    assert len(groups(pd.Series(values, dtype=object))) == len(values)


@pytest.mark.parametrize("dtype", ["str", "category", "object", "int64"])
def test_many_ids_stay_apart(dtype):
    """A hash of 32 bits would merge about ten pairs of these: none at all in 1 of 30,000 keys."""
    n = 300_000
    numbers = np.unique(np.random.default_rng(1).integers(0, 2**62, n))
    values = pd.Series(numbers) if dtype == "int64" else pd.Series(numbers.astype(str)).astype(dtype)
    made = subjects(values)
    assert len(made.ids) == len(set(made.ids.tolist())) == len(np.unique(made.codes)) == n


ids = st.one_of(
    st.none(), st.integers(-3, 3), st.sampled_from(["1", "2", "x", ""]), st.booleans(), st.floats()
)


@given(st.lists(ids, max_size=20))
def test_rows_share_a_subject_exactly_if_their_ids_are_the_same_word(values):
    def meaning(v):
        if isinstance(v, bool) or v is None:
            return None
        if isinstance(v, float):
            return ("n", int(v)) if abs(v) < 2**53 and v == int(v) else None
        return ("n", v) if isinstance(v, int) else ("s", v)

    codes = subjects(pd.Series(values, dtype=object)).codes
    for i, a in enumerate(values):
        assert (codes[i] >= 0) == (meaning(a) is not None)
        for j, b in enumerate(values):
            if codes[i] >= 0 and codes[j] >= 0:
                assert (codes[i] == codes[j]) == (meaning(a) == meaning(b))


@pytest.mark.parametrize("dtype", ["int64", "int8", "Int64", "float64", "object", "uint32"])
def test_the_digest_of_an_id_is_the_same_in_every_dtype(dtype):
    column = pd.Series([3, 7], dtype=dtype)
    got = subjects(column).digests(np.array([0, 1]), KEY)
    want = subjects(pd.Series([3, 7])).digests(np.array([0, 1]), KEY)
    assert got.tolist() == want.tolist()


def test_the_digest_of_a_text_is_the_same_in_every_dtype_and_differs_from_the_number():
    want = subjects(pd.Series(["3", "b"], dtype=object)).digests(np.array([0, 1]), KEY)
    for dtype in ("str", "string", "category"):
        got = subjects(pd.Series(["3", "b"], dtype=dtype))
        assert got.digests(np.array([0, 1]), KEY).tolist() == want.tolist()
    assert want[0] != subjects(pd.Series([3])).digests(np.array([0]), KEY)[0]


def test_categories_without_rows_and_missing_ones():
    column = pd.Series(["a", None, "b"], dtype=pd.CategoricalDtype(["z", "b", "a"]))
    assert groups(column) == {frozenset({0}), frozenset({2})}


@pytest.mark.parametrize(
    "values", [[True, False], pd.to_datetime(["2026-01-01"]), [1 + 2j], pd.to_timedelta([1])]
)
def test_a_dtype_that_cannot_hold_ids_is_a_type_error(values):
    column = pd.Series(values)
    with pytest.raises(TypeError, match="subject='rider' has dtype"):
        check_subject_dtype(column.dtype, "rider")


def test_no_rows():
    for dtype in ("object", "int64", "float64", "str", "category"):
        assert len(subjects(pd.Series([], dtype=dtype)).codes) == 0
    assert len(each_row(0).codes) == 0


class Shouting(str):
    """Two texts that call themselves equal."""

    def __eq__(self, other):
        return str.lower(self) == str.lower(other)

    def __hash__(self):
        return hash(str.lower(self))

    def __str__(self):
        raise RuntimeError("secret")


def test_subclasses_are_taken_as_the_text_they_hold():
    column = pd.Series([Shouting("A"), Shouting("a"), "A"], dtype=object)
    assert groups(column) == {frozenset({0, 2}), frozenset({1})}


def test_integers_without_a_limit_and_times_that_numpy_takes_for_integers():
    column = pd.Series(
        [10**5000, 10**5000 + 1, np.timedelta64(5, "s"), np.timedelta64("NaT", "s")], dtype=object
    )
    made = subjects(column)
    assert made.codes.tolist() == [0, 1, -1, -1]
    assert len(set(made.digests(np.array([0, 1]), KEY).tolist())) == 2


@pytest.mark.parametrize(("dtype", "first"), [("float32", 2**24), ("float16", 2**11), ("Float32", 2**24)])
def test_narrow_floats_are_ids_only_while_neighbours_stay_apart(dtype, first):
    column = pd.Series([first - 1, first, first + 1]).astype(dtype)
    assert subjects(column).codes.tolist() == [0, -1, -1]


def test_long_doubles_are_not_rounded_into_ids():
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    assert subjects(pd.Series([wide, np.longdouble(1)], dtype=object)).codes.tolist() == [-1, 0]


@pytest.mark.parametrize("values", [[True, "x", 1.5, None, "x"], ["x", "y", "x"]])
def test_sparse_columns_hold_the_same_ids(values):
    dense = pd.Series(values, dtype=object)
    sparse = pd.Series(pd.arrays.SparseArray(dense.to_numpy(), fill_value=None))
    check_subject_dtype(sparse.dtype, "rider")
    assert groups(sparse) == groups(dense)


def as_arrow(texts, wide, dtype):
    """Return a column of bytes that Arrow takes for text without looking."""
    raw = pa.array(texts, pa.large_binary() if wide else pa.binary())
    kind = pa.large_string() if wide else pa.string()
    held = pa.chunked_array([pa.Array.from_buffers(kind, len(raw), raw.buffers(), raw.null_count)])
    if dtype == "arrow":
        return pd.Series(pd.array(held, dtype=pd.ArrowDtype(kind)))
    return pd.Series(pd.arrays.ArrowStringArray(held))


@pytest.mark.parametrize("dtype", ["arrow", "string"])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("times", [1, 60])
def test_bytes_that_are_no_text_are_ids_like_others(times, wide, dtype):
    """One such row must not stop the release of all; read as text it raises, with the id in the message."""
    texts = [b"a", b"SECR\xff", b"SECR\xfe", None, b"a", b"SECR\xff"]
    column = as_arrow([text and text * times for text in texts], wide, dtype)
    found = subjects(column)
    assert found.codes.tolist() == [0, 1, 2, -1, 0, 1]
    assert found.ids.tolist() == ["a" * times, "SECR\udcff" * times, "SECR\udcfe" * times]
    assert len(set(found.digests(np.arange(3), bytes(16)).tolist())) == 3
    setting = {"subject": "rider", "bounds": (0, 0, 2, 2), "grid": "h3:2"}
    frame = gpd.GeoDataFrame(
        {"rider": column, "kind": column}, geometry=gpd.points_from_xy([1.0] * 6, [1.0] * 6), crs=4326
    )
    with testing.noiseless():
        for by, people in ((None, 3), ({"kind": ["a" * times, "b"]}, 1)):
            assert geodp.heatmap(frame, 1, cap=1, by=by, **setting)["count"].sum() == people
            assert geodp.audit(frame, by=by, **setting).subjects == people
