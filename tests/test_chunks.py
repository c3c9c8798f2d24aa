"""Work in chunks: results in order, context carried along, and nothing begun after a failure."""

import threading
import warnings

import numpy as np
import pytest

from geodp import chunks
from geodp.chunks import beside, cores, each, slices
from geodp.progress import Bar


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    monkeypatch.setattr(chunks, "cores", lambda: request.param)
    return request.param


@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_slices_cover_everything_once(n):
    assert np.concatenate([np.arange(n)[:0], *(np.arange(n)[part] for part in slices(n, 3))]).tolist() == [
        *range(n)
    ]


def test_results_come_in_order(threads):
    assert each(lambda part: part.start, slices(40, 3)) == list(range(0, 40, 3))
    assert beside(lambda: 1, lambda: 2) == (1, 2)
    assert each(lambda part: part, []) == []


def test_numeric_warnings_stay_off_in_every_thread(threads):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert each(lambda part: np.isinf(np.float64(1) / np.zeros(2)).all(), slices(9, 2)) == [True] * 5
        assert beside(lambda: (np.zeros(2) / 0).shape, lambda: 0) == ((2,), 0)


def test_a_failure_comes_out_and_stops_what_has_not_begun(threads):
    begun = []

    def work(part):
        begun.append(part.start)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        each(work, slices(10_000, 1))
    assert len(begun) < 10_000


def test_an_interrupt_of_the_one_who_waits_stops_what_has_not_begun(threads):
    class Interrupted(Bar):
        def reach(self, part):
            raise KeyboardInterrupt

    begun = []
    with pytest.raises(KeyboardInterrupt):
        each(lambda part: begun.append(part.start), slices(10_000, 1), Interrupted())
    assert len(begun) < 10_000


def test_only_the_main_thread_shares_its_work_out():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cores()))
    thread.start()
    thread.join()
    assert seen == [1]
    assert 1 <= cores() <= 8
