"""kill -9 at every step of a release; races for the last budget. Nothing unpaid, nothing lost."""

import pytest
from running import run

from geodp.accounting import Charge
from geodp.errors import IncompleteRelease, LedgerError
from geodp.exact import exact
from geodp.ledger import Ledger


def check_rounds(path, rounds, already=0):
    """Hold each round against what a killed release may and may not leave behind."""
    ledger = Ledger(path)
    states = ledger.releases().set_index("label")["state"]
    before = already
    for one in rounds:
        tenths = exact(one["spent"], "spent") * 10
        new = tenths - before
        before = tenths
        assert new in (0, 1)  # paid once or not at all
        state = states.get(one["label"])
        assert (state is None) == (new == 0)  # the release is there if and only if it was paid
        if "paid" in one["said"]:
            assert new == 1  # a debit that returned is never lost
        if "handed out" in one["said"]:
            assert state == "released"  # nothing left the process that is not paid and stored
            assert ledger.stored(one["label"], "{}").columns["count"].tolist() == list(range(300))
        if state == "reserved":
            with pytest.raises(IncompleteRelease):
                ledger.stored(one["label"], "{}")
    found = ledger.verify()
    assert found["problem"].str.contains("measurements|in progress").all()  # no damage of any kind
    return states


@pytest.mark.parametrize(
    ("how", "stride", "extra"), [("line", 4, []), ("statement", 1, []), ("time", 1, [50])]
)
def test_killed_at_every_step_of_a_debit(path, how, stride, extra):
    Ledger(path, eps=1000)
    rounds = run("kill", path, how, stride, *extra)
    counted = 1 if how != "time" else 0  # the dry run that counts the steps is a release, too
    check_rounds(path, rounds, counted)
    died = sum(one["died"] for one in rounds)
    assert died == len(rounds) > 20
    if how != "time":  # the kills fell before the debit, and between it and the end
        assert {(), ("paid",)} <= {tuple(one["said"]) for one in rounds}


@pytest.mark.parametrize("how", ["byte", "full"])
def test_killed_or_out_of_space_in_the_middle_of_a_write(path, how):
    Ledger(path, eps=1000)
    size = path.stat().st_size
    rounds = run("kill", path, how, 2500, 4 * size)
    check_rounds(path, rounds)
    outcomes = {tuple(one["said"]) for one in rounds}
    assert outcomes >= {(), ("paid", "handed out")}
    if how == "byte":
        assert any(one["died"] for one in rounds)
    else:
        assert not any(one["died"] for one in rounds)


def test_a_release_left_incomplete_by_a_crash_can_be_paid_again(path):
    ledger = Ledger(path, eps=1000)
    run("kill", path, "statement", 5)
    incomplete = ledger.releases().query("state == 'reserved'")["label"].tolist()
    assert incomplete
    spent = ledger.spent()["eps"]
    ledger.debit(incomplete[0], "{}", Charge(exact(1, "eps")), {}, retry=True)
    assert ledger.spent()["eps"] == pytest.approx(spent + 1)


def test_eight_processes_racing_for_the_last_budget(folder):
    fits = [round_ % 8 for round_ in range(16)]
    places = [folder / f"{number}.ledger" for number in range(len(fits))]
    for place, fit in zip(places, fits, strict=True):
        Ledger(place, eps=f"{fit / 10 + 0.05:.2f}")  # half a release more than fits
    results = run("race", places[0], 8, *places[1:])
    assert results == [{"won": fit, "refused": 8 - fit, "failed": 0} for fit in fits]
    for place, fit in zip(places, fits, strict=True):
        assert Ledger(place).spent()["eps"] == fit / 10


def test_a_ledger_may_be_created_by_everyone_at_once(path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: Ledger(path, eps=1), range(8)))
    assert len({ledger._terms.identity for ledger in ledgers}) == 1
    with pytest.raises(LedgerError, match="created with eps 1, not 2"):
        Ledger(path, eps=2)
