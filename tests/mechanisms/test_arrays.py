"""A user's own aggregates: types, saturation, lattices, records."""

import json
import math

import numpy as np
import pytest

from geodp import ledger as ledger_module
from geodp.errors import LedgerError, NoiseWarning
from geodp.mechanisms import NoisyArray, discrete_laplace, gaussian, gaussian_sigma, laplace

CALLS = {
    "laplace": lambda values, **kw: laplace(values, 4, 1, **kw),
    "gaussian": lambda values, **kw: gaussian(values, 2, 1, 1e-6, **kw),
}
both = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.mark.sampled(rate=1e-60)
@both
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_in_int64_out(call, dtype):
    values = np.array([[1, 0, 3], [100, 5, 7]], dtype=dtype)
    noisy = call(values)
    assert noisy.dtype == np.int64
    assert noisy.shape == (2, 3)
    assert isinstance(noisy, NoisyArray)
    assert np.abs(noisy - values.astype(np.int64)).max() < 1000  # odds below 1e-100
    assert values.tolist() == [[1, 0, 3], [100, 5, 7]]


@pytest.mark.sampled(rate=1e-60)
@both
def test_mironov_2012_noise_is_whole_whatever_the_count(call):
    reachable = [set((call(np.full(20_000, count)) - count).tolist()) for count in (0, 1)]
    assert set(range(-5, 6)) <= reachable[0] & reachable[1]


@both
def test_velox_13785_saturates(call):
    top = 2**63 - 1
    values = np.array([top, -top - 1] * 200, dtype=np.int64)
    noisy = call(values)
    assert noisy.max() <= top
    assert noisy.min() >= -top
    assert (noisy[::2] > 0).all()
    assert (noisy[1::2] < 0).all()
    assert call(np.array([2**64 - 1], dtype=np.uint64))[0] > 2**62


@both
def test_real_numbers_need_a_lattice(call):
    with pytest.raises(TypeError, match="lattice="):
        call([0.5, 1.5])
    with pytest.raises(TypeError, match="dtype"):
        call(["a"])
    with pytest.raises(TypeError, match="dtype"):
        call([True, False])
    for bad in (0.1, 3, 0, -1, math.nan, True, "x"):
        with pytest.raises((TypeError, ValueError)):
            call([0.5], lattice=bad)


@both
def test_a_lattice_charges_for_its_rounding(call):
    size, step = 64, 2.0**-4
    noisy = call(np.linspace(0, 1, size), lattice=step)
    assert noisy.dtype == np.float64
    assert (noisy / step == np.rint(noisy / step)).all()
    record = noisy.record
    if record["mechanism"] == "laplace":
        assert record["charged_l1"] == 4 + size * step
        assert record["scale"] == record["charged_l1"] / step
    else:
        assert record["charged_l2"] == 2 + math.sqrt(size) * step
        assert record["scale"] == pytest.approx(
            gaussian_sigma(record["charged_l2"] / step, 1, 1e-6), rel=1e-11
        )


def test_rounding_moves_neighbours_apart_by_no_more_than_is_charged():
    from geodp.mechanisms.arrays import _integers

    rng = np.random.default_rng(0)
    step, size = 2.0**-3, 40
    gaps = []
    for _ in range(300):
        x = rng.uniform(-5, 5, size)
        move = rng.normal(size=size)
        y = x + move / np.linalg.norm(move)
        moved = (_integers(x, step)[0] - _integers(y, step)[0]) * step
        gaps.append((np.linalg.norm(moved), np.abs(moved).sum() - np.abs(x - y).sum()))
    l2, l1 = np.max(gaps, axis=0)
    assert 1 < l2 <= 1 + step * math.sqrt(size)  # the stated l2 of 1 alone would not have been enough
    assert l1 <= size * step
    tiny = np.full(size, step / 2)  # the bound is nearly attained: all numbers just across a border
    moved = _integers(tiny + 1e-12, step)[0] - _integers(tiny - 1e-12, step)[0]
    assert moved.tolist() == [1] * size


@both
def test_wild_values_never_raise(call):
    noisy = call([math.nan, math.inf, -math.inf, 1e300, 0.25], lattice=2**-10)
    assert np.isfinite(noisy).all()
    assert noisy[1] > 1e15
    assert noisy[2] < -1e15
    assert abs(noisy[0]) < 1e3


@both
def test_the_record_is_plain_and_says_what_was_stated(call):
    record = call([1, 2, 3], neighboring="replace_one").record
    plain = json.loads(json.dumps(dict(record), allow_nan=False))
    assert plain["neighboring"] == "replace_one"
    assert plain["sensitivity"] == "stated by the caller"
    assert plain["noise"] == "operating-system entropy"
    assert "one subject replaced, if the stated l" in plain["guarantee"]
    assert plain["shape"] == [3]
    with pytest.raises(TypeError):
        record["eps"] = 0
    with pytest.raises(ValueError, match="neighboring"):
        call([1], neighboring="bounded")


@both
def test_what_is_computed_from_a_release_carries_no_record(call):
    noisy = call([1, 2, 3])
    assert noisy.record is not None
    for derived in (noisy[:2], noisy + 1, noisy.copy(), noisy.view()):
        assert derived.record is None


@both
def test_empty_and_scalar_shapes(call):
    assert call(np.zeros(0, dtype=int)).shape == (0,)
    assert call(5).shape == ()


def test_noise_that_is_mostly_zero_warns():
    with pytest.warns(NoiseWarning, match="of the noise will be 0"):
        laplace([1, 2], 1, 5)
    with pytest.warns(NoiseWarning, match="of the noise will be 0"):
        gaussian([1, 2], 1, 50, 1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, 0, True, 1e-400, None])
def test_jax_privacy_394_nothing_slips_through(bad):
    for arguments in ((bad, 1), (1, bad)):
        with pytest.raises((TypeError, ValueError)):
            laplace([1], *arguments)
    for arguments in ((bad, 1, 1e-6), (1, bad, 1e-6), (1, 1, bad)):
        with pytest.raises((TypeError, ValueError)):
            gaussian([1], *arguments)


def test_velox_13785_refused_before_drawing(monkeypatch):
    from geodp.mechanisms import noise

    monkeypatch.setattr(noise.os, "urandom", lambda n: pytest.fail("drew"))
    with pytest.raises(ValueError, match=r"2\^50"):
        laplace([1], 1, 1e-16)
    with pytest.raises(ValueError, match=r"2\^50"):
        gaussian([1], 1, 1e-16, 1e-30)


@both
@pytest.mark.parametrize("how", ["required", "GEODP_LEDGER"])
def test_where_a_ledger_is_required_nothing_is_drawn(call, how, monkeypatch):
    monkeypatch.setattr(ledger_module, "_required", False)
    assert call([1, 2]).record["ledger"] is None
    if how == "required":
        ledger_module.require_ledger()
    else:
        monkeypatch.setenv("GEODP_LEDGER", "/nowhere/city.ledger")
    drawn = []
    monkeypatch.setattr("os.urandom", lambda n: drawn.append(n) or b"\x55" * n)
    with pytest.raises(LedgerError, match=r"mechanisms\.\w+ takes no ledger .* makes no release without"):
        call([1, 2])
    assert not drawn
    if how == "required":
        ledger_module.require_ledger(False)
        monkeypatch.undo()
        call([1, 2])


def test_samplers_and_calibration_need_no_ledger(monkeypatch):
    monkeypatch.setenv("GEODP_LEDGER", "/nowhere/city.ledger")
    assert gaussian_sigma(1, 1, 1e-6) > 0
    assert len(discrete_laplace(2, 3)) == 3
