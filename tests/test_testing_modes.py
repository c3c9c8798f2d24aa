"""The test seam reaches no further than its block: no other thread, no later task, no other process."""

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

import geodp
from geodp import testing

ROOM = {"subject": "rider", "cap": 1, "bounds": (0, 0, 25, 20), "grid": "square:1"}
MODES = [lambda: testing.noiseless(), lambda: testing.seeded(3)]


def is_private(mode):
    return mode.noise == testing.OS_ENTROPY and not mode.silent and mode.bits is None and not mode.is_test


@pytest.mark.parametrize("entered", MODES, ids=["noiseless", "seeded"])
def test_another_thread_is_private(trips, entered):
    with entered(), ThreadPoolExecutor(1) as pool:
        assert testing.current().is_test
        assert is_private(pool.submit(testing.current).result())
        heat = pool.submit(geodp.heatmap, trips.iloc[:0], 2.0**-40, **ROOM).result()
    assert heat.attrs["geodp"]["noise"] == testing.OS_ENTROPY
    assert heat["noisy_count"].nunique() > 490


@pytest.mark.parametrize("entered", MODES, ids=["noiseless", "seeded"])
def test_what_runs_on_after_the_block_is_private(entered):
    with entered():
        context = contextvars.copy_context()
        assert context.run(testing.current).is_test
    assert is_private(context.run(testing.current))
    assert is_private(testing.current())


@pytest.mark.parametrize("entered", MODES, ids=["noiseless", "seeded"])
def test_a_block_that_fails_ends_all_the_same(entered):
    with pytest.raises(KeyboardInterrupt), entered():
        raise KeyboardInterrupt
    assert is_private(testing.current())


def test_the_inner_block_counts_and_then_the_outer_again():
    with testing.seeded(1):
        with testing.noiseless():
            assert testing.current().silent
        assert testing.current().bits is not None


def test_the_variable_alone_switches_nothing_on(monkeypatch):
    for value in ("1", "true", "0", ""):
        monkeypatch.setenv("GEODP_TESTING", value)
        assert is_private(testing.current())


def test_every_release_has_a_secret_of_its_own():
    secrets = {testing.current().secret for _ in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {16}
