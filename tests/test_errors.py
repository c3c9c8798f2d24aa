"""Errors cross processes whole: a worker's refusal says in the parent what it said in the worker."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from geodp import errors
from geodp.errors import BudgetExceeded, GeoDPError

AMOUNTS = {
    "spent": {"eps": 2.5, "delta": 0.0, "rho": 3.125},
    "asked": {"eps": 1.0, "delta": 0.0, "rho": 0.5},
    "left": {"eps": 0.5, "delta": 0.0, "rho": 0.0},
}


class Refused(BudgetExceeded):
    """A caller's own kind of refusal."""


@pytest.mark.parametrize("kind", [BudgetExceeded, Refused])
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_a_refusal_survives_pickling(kind, again):
    error = kind("city.ledger holds eps 3.", **AMOUNTS)
    error.add_note("asked for by the nightly job")
    found = again(error)
    assert type(found) is kind
    assert str(found) == "city.ledger holds eps 3."
    assert (found.spent, found.asked, found.left) == tuple(AMOUNTS.values())
    assert found.__notes__ == ["asked for by the nightly job"]


def test_every_other_error_and_warning_survives_pickling():
    kinds = [getattr(errors, name) for name in errors.__all__ if name not in ("BudgetExceeded", "warn")]
    for kind in kinds:
        found = pickle.loads(pickle.dumps(kind("what to do")))
        assert (type(found), found.args) == (kind, ("what to do",))
    assert GeoDPError in kinds


def refuse():
    raise BudgetExceeded("no", **AMOUNTS)


def test_a_workers_refusal_arrives():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        future = pool.submit(refuse)
        with pytest.raises(BudgetExceeded) as error:
            future.result(timeout=120)
    assert error.value.left == AMOUNTS["left"]
