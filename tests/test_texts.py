"""Texts as words: the numbers that pandas gives, whatever pyarrow's layout, and digests that tell ids apart."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp import chunks, texts
from geodp.subjects import subjects
from geodp.texts import digests, numbered_texts

KEY = bytes(range(16))

# Equal up to a NUL, to a word's end, to the last byte of a word, and to the words that are looked at.
ALIKE = ["", "a", "a\0", "a\0\0", "x" * 7, "x" * 8, "x" * 9, "x" * 15 + "y", "y" + "x" * 15, "é", "e\u0301"]
LONG = ["z" * 127 + "a", "z" * 127 + "b", "z" * 128 + "a"]

words = st.one_of(st.none(), st.sampled_from(ALIKE), st.text(max_size=20))
cuts = st.lists(st.integers(0, 12), max_size=3)


def laid_out(values, kind, places, start=0):
    """Return a pandas array over pyarrow chunks that end at ``places``, without the first ``start`` rows."""
    places = sorted(min(place, len(values)) for place in places)
    parts = [values[low:high] for low, high in zip([0, *places], [*places, len(values)], strict=True)]
    chunked = pa.chunked_array([pa.array(part, type=kind) for part in parts], type=kind)
    return pd.array(chunked.slice(start), dtype=pd.ArrowDtype(kind))


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(texts, "slices", lambda n, chunk=3: chunks.slices(n, chunk))


@given(
    st.lists(words, max_size=12), st.sampled_from([pa.string(), pa.large_string()]), cuts, st.integers(0, 3)
)
def test_numbers_are_those_of_pandas(small_pieces, values, kind, places, start):
    column = laid_out(values, kind, places, start)
    made = numbered_texts(column)
    if made is not None:
        codes, ids = pd.factorize(column)
        assert made[0].tolist() == codes.tolist()
        assert made[1].tolist() == list(ids)


def test_texts_of_one_length_and_of_many_are_numbered_without_pandas(monkeypatch):
    monkeypatch.setattr(pd, "factorize", lambda values, honest=pd.factorize: honest(np.asarray(values)))
    for values in (["rider001", "rider002", "rider001"], ["a", "bb", "a", "x" * 100]):
        codes, ids = numbered_texts(pd.array(values, dtype="string[pyarrow]"))
        assert ids[codes].tolist() == values


@pytest.mark.parametrize("values", [[None] * 3, [], ["", ""], LONG, ["abc"]])
def test_columns_that_hold_little_or_much_are_numbered_all_the_same(values):
    column = pd.Series(values, dtype="string[pyarrow]")
    codes = subjects(column).codes
    assert codes.tolist() == pd.factorize(column)[0].tolist()


@given(st.lists(words, min_size=1, max_size=12))
def test_ids_whose_hashes_collide_are_never_merged(values):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "_ODD", np.uint64(0))
        column = pd.Series(values, dtype="string[pyarrow]")
        made = subjects(column)
    assert made.codes.tolist() == pd.factorize(column)[0].tolist()


def test_without_the_comparison_colliding_ids_would_be_merged(monkeypatch):
    """The planted bug of the test above: the hash alone decides."""
    monkeypatch.setattr(texts, "_ODD", np.uint64(0))
    monkeypatch.setattr(texts._Piece, "agrees", lambda *_: True)
    assert len(set(subjects(pd.Series(["rider001", "rider002"], dtype="string[pyarrow]")).codes)) == 1


@given(st.lists(st.one_of(st.text(max_size=40), st.integers(2**63, 2**200)), unique=True, max_size=20))
def test_digests_differ_and_do_not_depend_on_who_else_is_asked(ids):
    column = np.empty(len(ids), object)
    column[:] = ids
    together = digests(column, KEY)
    assert [digests(column[i : i + 1], KEY)[0] for i in range(len(ids))] == together.tolist()
    # Two of 20 ids in one 64-bit digest: 1e-17.
    assert len(set(together.tolist())) == len(ids)


def test_half_a_surrogate_pair_is_an_id():
    ids = np.array(["\ud800", "\ud801"], object)
    assert len(set(digests(ids, KEY).tolist())) == 2


def test_another_key_digests_otherwise():
    ids = np.array(["a"], object)
    assert digests(ids, KEY) != digests(ids, bytes(16))
