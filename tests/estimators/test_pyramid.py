"""Reconciliation by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodp.estimators.covariates import predict
from geodp.estimators.nesting import lift
from geodp.estimators.pyramid import distribute, reconcile
from geodp.estimators.shrink import _cut


def test_upward_by_shares_of_the_play():
    found = distribute(
        np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), np.array([7.0, 5.0])
    )
    assert found.tolist() == [2.0, 5.0, 5.0]


def test_downward_never_negative_and_zeros_stay():
    estimate, play = np.array([8.0, 2.0, 0.0]), np.array([0.0, 2.0, 1.0])
    found = distribute(estimate, play, np.zeros(3, dtype=np.int64), np.array([9.0]))
    assert found == pytest.approx([8, 1, 0], rel=1e-5)  # all of it from the cell that has play
    found = distribute(
        np.array([4.0, 4.0]), np.array([1.0, 1.0]), np.zeros(2, dtype=np.int64), np.array([2.0])
    )
    assert found == pytest.approx([1, 1], rel=1e-5)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(1e-6, 100), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.floats(0, 500), min_size=4, max_size=4),
)
def test_children_add_up_to_their_block(cells, targets):
    estimate, play = (np.array(part) for part in list(zip(*cells, strict=True))[:2])
    parent, target = np.array([cell[2] for cell in cells]), np.array(targets)
    found = distribute(estimate, play, parent, target)
    assert (found >= 0).all()
    for block in set(parent.tolist()):
        assert found[parent == block].sum() == pytest.approx(target[block], abs=1e-6)
        assert (found[(parent == block) & (estimate > 0)] > 0).all() or target[block] < 1e-3


def test_a_heavy_cell_does_not_pay_for_the_noise_of_its_empty_neighbours():
    """Cell 0 stands far above the noise; correcting its block must leave it alone."""
    n, std = 64, 4.0
    estimate, variance = np.full(n, 1.0), np.full(n, 1.0)
    estimate[0], variance[0] = 1e4, std**2
    noisy = np.full(n, 3.0)
    noisy[0] = 1e4
    found = reconcile(noisy, std, estimate, variance, (np.zeros(n, dtype=np.int64),))
    assert found[0] == pytest.approx(1e4, abs=1e-3)
    assert found[1:].sum() > 70


def test_equal_predictions_are_never_split():
    rng = np.random.default_rng(1)
    prediction = rng.integers(0, 12, 5000).astype(float)
    parts = _cut(prediction)
    assert all(len(set(parts[prediction == value])) == 1 for value in range(12))
    assert (np.diff(parts[np.argsort(prediction, kind="stable")]) >= 0).all()
    assert set(_cut(np.zeros(5000))) == {int(_cut(np.zeros(5000))[0])}


def test_groups_halve():
    parts = _cut(np.arange(4800.0))
    assert np.bincount(parts // 8).tolist() == [2400, 1200, 600, 300, 300]
    assert np.bincount(parts).tolist() == [300] * 8 + [150] * 8 + [75] * 8 + [37, 38] * 8


def test_predictions_do_not_see_the_cell_itself():
    rng = np.random.default_rng(2)
    siblings = tuple(np.arange(1024) // 4**k for k in range(1, 6))
    noisy, first = rng.standard_normal((2, 1024)) * 5
    changed_noisy, changed_first = noisy.copy(), first.copy()
    changed_noisy[100] += 3
    changed_first[100] += 2
    for level in (1, 2):
        from geodp.estimators import covariates

        own = [covariates._rings(z, siblings)[level - 1][100] for z in (noisy, changed_noisy)]
        assert own[0] == pytest.approx(own[1], abs=1e-12)
        windows = [covariates._windows(z)[level - 1][100] for z in (first, changed_first)]
        assert windows[0] == pytest.approx(windows[1], abs=1e-12)
    prediction = predict(noisy, first, 5.0, siblings)
    assert (prediction / 5.0 * 2**20 == np.rint(prediction / 5.0 * 2**20)).all()


def test_rings_and_windows_by_hand():
    from geodp.estimators.covariates import _rings, _windows

    values = np.arange(64.0)
    siblings = (np.arange(64) // 2, np.arange(64) // 4, np.arange(64) // 32)
    rings = _rings(values, siblings)
    assert len(rings) == 2  # 2 blocks are too few to learn from
    assert rings[0][:4].tolist() == [1, 0, 3, 2]
    assert rings[1][:4].tolist() == [2.5, 2.5, 0.5, 0.5]
    near, wider, _ = _windows(values)
    assert near[10] == (8 + 9 + 11 + 12) / 4
    assert near[0] == 1.5
    assert wider[20] == np.mean([12, 13, 14, 15, 16, 17, 23, 24, 25, 26, 27, 28])


def test_parents_of_blocks():
    assert lift(np.array([0, 0, 1]), np.array([1, 0, 2]), 3).tolist() == [0, 0, 1]
