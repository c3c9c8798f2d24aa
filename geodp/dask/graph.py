"""The tasks of one release: locate, bring each subject together, tally, add up.

Every partition is reduced to a parcel. Parcels are shuffled by the digits of a hash of their subjects, in as
few rounds as keep a round's pieces below 32 for each parcel, so that tasks grow with n log n and not with n².
Totals are added up in a tree of sixteens, so no task ever holds those of all partitions. The names of tasks
are fixed words, a number and a random token of the release.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from geodp.dask.tasks import (
    Job,
    add,
    gather,
    locate,
    pick,
    renumber,
    scatter,
    shifted,
    state,
    tally,
)

__all__ = ["Work", "plan_work"]

_JOIN = 4
_FEW = 8
_BRANCH = 32
_ADD = 16


class Work:
    """A graph, and where to look while it runs.

    Attributes
    ----------
    tasks : dict
        Key to task, in dask's own notation.
    result : key
        Totals, or a failure.
    states : list of keys
        One for each partition; ``None`` or a failure.
    tallies : list of keys
        One for each set of subjects.
    """

    def __init__(self, job: Job, partitions: Sequence[Any], upstream: dict[Any, Any]) -> None:
        self.token = uuid4().hex
        self.job = self.key("plan", 0)
        self.tasks: dict[Any, Any] = {**upstream, self.job: job}
        self.states: list[Any] = []
        self.tallies: list[Any] = []
        self.result: Any = None
        self._located = [self._locate(partition, i) for i, partition in enumerate(partitions)]

    def key(self, word: str, *numbers: int) -> tuple[Any, ...]:
        """Return the name of a task."""
        return (f"geodp-{word}-{self.token}", *numbers)

    def put(self, word: str, numbers: Sequence[int], *task: Any) -> Any:
        """Add a task and return its name."""
        key = self.key(word, *numbers)
        self.tasks[key] = task
        return key

    def _locate(self, partition: Any, number: int) -> Any:
        located = self.put("locate", [number], locate, self.job, partition, number)
        self.states.append(self.put("state", [number], state, located))
        return located

    def by_subject(self) -> None:
        """Tally sets of whole subjects, wherever their rows lie."""
        parcels = self._joined()
        branch, rounds = _shape(len(parcels))
        bags = [[parcel] for parcel in parcels] + [[] for _ in range(branch**rounds - len(parcels))]
        for turn in range(rounds if len(parcels) > 1 else 0):
            bags = list(self._round(bags, turn, branch))
        self._add_up([self.put("tally", [i], tally, self.job, bag) for i, bag in enumerate(bags)])

    def by_row(self, numbered: bool) -> None:
        """Tally rows that are their own subjects where they lie."""
        parcels = self._located
        if numbered:
            before = self.put("rows", [0], renumber, parcels)
            parcels = [
                self.put("number", [i], shifted, parcel, before, i) for i, parcel in enumerate(parcels)
            ]
        self._add_up([self.put("tally", [i], tally, self.job, [parcel]) for i, parcel in enumerate(parcels)])

    def _joined(self) -> list[Any]:
        """Where there are many partitions, join them by fours first: fewer pieces to move, and fewer rows in them."""
        parcels = self._located
        if len(parcels) <= _FEW:
            return parcels
        fours = [parcels[first : first + _JOIN] for first in range(0, len(parcels), _JOIN)]
        return [self.put("join", [i], gather, self.job, four) for i, four in enumerate(fours)]

    def _round(self, bags: list[list[Any]], turn: int, branch: int) -> Iterator[list[Any]]:
        """Part every parcel by one digit, and return the bags of pieces that belong together after it."""
        stride = branch**turn
        pieces: dict[tuple[int, int], Any] = {}
        for i, bag in enumerate(bags):
            if not bag:
                continue
            parcel = bag[0] if len(bag) == 1 else self.put("gather", [turn, i], gather, self.job, bag)
            parts = self.put("scatter", [turn, i], scatter, self.job, parcel, stride, branch)
            for digit in range(branch):
                pieces[i, digit] = self.put("piece", [turn, i, digit], pick, parts, digit)
        for i in range(len(bags)):
            digit = i // stride % branch
            sources = (i + (other - digit) * stride for other in range(branch))
            yield [pieces[source, digit] for source in sources if (source, digit) in pieces]

    def _add_up(self, tallies: list[Any]) -> None:
        self.tallies = tallies
        level, height = tallies, 0
        while len(level) > 1:
            groups = [level[first : first + _ADD] for first in range(0, len(level), _ADD)]
            level = [self.put("add", [height, i], add, group) for i, group in enumerate(groups)]
            height += 1
        (self.result,) = level


def plan_work(job: Job, partitions: Sequence[Any], upstream: dict[Any, Any]) -> Work:
    """Return the tasks of a release.

    Parameters
    ----------
    job : Job
    partitions : sequence of Subgraph or keys
        How each partition is read.
    upstream : dict
        Tasks that the keys among ``partitions`` need.
    """
    work = Work(job, partitions, upstream)
    if not job.plan.policy.by_row:
        work.by_subject()
    else:
        work.by_row(numbered=getattr(job.plan.policy.grid, "overlap", None) == "count")
    return work


def _shape(n: int) -> tuple[int, int]:
    """Return how many ways a round parts, and how many rounds there are."""
    rounds = max(1, math.ceil(math.log(max(n, 2)) / math.log(_BRANCH)))
    branch = max(1, math.ceil(n ** (1 / rounds)))
    while branch**rounds < n:
        branch += 1
    return branch, rounds
