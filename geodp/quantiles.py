"""A cap without peeking: a private quantile of how many cells people count in.

A cap that was chosen by looking at the rows is a fact about the rows, and no noise on the map covers it.
Here it is chosen with noise of its own, among public candidates, as a release with its own cost.

The wanted cap is the smallest candidate that a share q of the subjects stays within. With N subjects in
the domain, F(c) of them in at most c keys, and candidates c_1 < ... < c_m, candidate j is right when
F(c_{j-1}) <= qN <= F(c_j) (F(c_0) = 0, and the last candidate takes everybody: F(c_m) = N), and otherwise
its penalty d_j is how far qN lies from that interval, in people. One candidate at least has penalty 0.

**What one subject can do.** One more subject in k keys, the first candidate of at least k being c_t,
moves qN by q and each F(c_j) by 1 if j >= t. So the distance to an interval that lies below qN moves by q
if j < t and by q - 1 if not; to one above by -q if j <= t and by 1 - q if not; and where qN crosses an
end, by something between. All of that lies in an interval of width max(q, 1 - q) - min(-q, q - 1) =
2 max(q, 1 - q), the *reach*. Replacing a subject leaves N alone and moves each F by -1, 0 or 1: the reach
is 2.

**Privacy.** P(j) is proportional to exp(-d_j / b) with b >= reach / eps. Between neighbours exp(-d_j / b)
changes by a factor between e^l and e^h with h - l <= reach / b <= eps, and so does the sum of all of them,
whence P(j) changes by at most e^(h - l): pure eps-DP (McSherry and Talwar 2007). The log-ratio Z of two such
laws has a range of at most eps, so its cumulant function K has K(0) = K(1) = 0 and, by Hoeffding's lemma,
K'' <= eps²/4: K(a) <= a(a - 1) eps²/8 for a > 1, which is (eps²/8)-zCDP (Cesar and Rogers 2021).

The number of *contributions* that a cap keeps would be no such score: one subject moves it by up to c_m.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geodp import testing
from geodp._version import __version__
from geodp.accounting import Budget, Charge
from geodp.contribution import distinct_pairs, runs
from geodp.exact import ceil_double, exact, exact_positive, plain, whole
from geodp.mechanisms.noise import system_bits
from geodp.plans import Plan, decided_plan, looking
from geodp.policy import Policy
from geodp.queries import Count, Layout, Rows
from geodp.records import guarantee
from geodp.selecting import choose
from geodp.wording import bounded, brief, people

__all__ = [
    "CANDIDATES",
    "QUANTILE",
    "CapMeasurement",
    "Selection",
    "keys_per_subject",
    "lengths_of",
    "parse_candidates",
    "penalties",
    "selection",
]

CANDIDATES = (1, 2, 4, 8, 16, 32, 64)
QUANTILE = Fraction(9, 10)
_MOST_CANDIDATES = 100
_SURE = 0.95

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CapMeasurement:
    """The draw of a cap, as a ledger and :func:`geodp.compose` see it: one pure mechanism.

    Attributes
    ----------
    l1 : Fraction
        The reach of the penalties: what ``l1`` is to Laplace noise.
    scale : float
        ``l1 / scale`` is the eps it costs.
    size : int
        Number of candidates.
    """

    l1: Fraction
    scale: float
    size: int
    name: str = "cap"
    mechanism: str = "exponential"

    @property
    def l2_squared(self) -> Fraction:
        """There is no second norm; the square of the first bounds it."""
        return self.l1**2

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, exact enough to recompute the cost."""
        return {
            "name": self.name,
            "l1": str(self.l1),
            "mechanism": self.mechanism,
            "scale": self.scale,
            "size": self.size,
        }


@dataclass(frozen=True)
class Selection:
    """The choice of a cap, planned: everything public about it, and nothing of the rows.

    Attributes
    ----------
    plan : Plan
        Who, where and which slots: a plan of counts at the largest candidate, whose noise is not used.
    eps : Fraction
        What the choice costs.
    candidates : tuple of int
        Rising.
    quantile : Fraction
        Share of the subjects that should stay within the cap, in (0, 1).
    """

    plan: Plan
    eps: Fraction
    candidates: tuple[int, ...]
    quantile: Fraction

    @property
    def policy(self) -> Policy:
        """Who and where; the cap is what is asked for."""
        return replace(self.plan.policy, cap="auto")

    @property
    def reach(self) -> Fraction:
        """Width of the interval in which one subject can move all penalties, in people."""
        if self.policy.neighboring == "replace_one":
            return Fraction(2)
        return 2 * max(self.quantile, 1 - self.quantile)

    @property
    def scale(self) -> float:
        """People by which a penalty must grow to divide a candidate's probability by e; rounded up."""
        return ceil_double(self.reach / self.eps)

    @property
    def share(self) -> str:
        """The quantile in words, such as ``"90 %"``."""
        return f"{float(100 * self.quantile):g} %"

    @property
    def within(self) -> int:
        """Number of people within which the chosen cap's quantile is right, with 95 % probability.

        A candidate of penalty d has at most exp(-d / b) times the probability of the right one.
        """
        return math.ceil(self.scale * math.log(len(self.candidates) / (1 - _SURE)))

    @property
    def charge(self) -> Charge:
        """What the choice spends."""
        return Charge(self.eps, Fraction(0), self.eps**2 / 8)

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments."""
        arguments = {
            "policy": self.policy.to_dict(),
            "by": self.plan.slots.to_dict(),
            "eps": str(self.eps),
            **self.asked(),
        }
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"))

    def asked(self) -> dict[str, Any]:
        """Return what is chosen among, as plain JSON."""
        return {"candidates": list(self.candidates), "quantile": str(self.quantile)}

    @property
    def measurement(self) -> "CapMeasurement":
        """What is drawn."""
        return CapMeasurement(self.reach, self.scale, len(self.candidates))

    def to_dict(self) -> dict[str, Any]:
        """Return the public part of the record as plain JSON."""
        policy, charge = self.policy, self.charge
        return {
            "version": __version__,
            "query": "cap",
            "counted": f"the cells that {self.share} of {people(policy.unit)} stay within",
            "guarantee": guarantee(self),
            "unit": bounded(policy.unit, 200),
            "neighboring": policy.neighboring,
            "population": policy.population,
            "bounds": None if policy.bounds is None else policy.bounds.to_list(),
            "outside": None if policy.bounds is None else policy.outside,
            **policy.grid.to_dict(),
            "by": self.plan.slots.to_dict(),
            "n_cells": self.plan.n_cells,
            "candidates": list(self.candidates),
            "quantile": plain(self.quantile),
            "within": self.within,
            "spent": {"eps": plain(charge.eps), "delta": 0},
            "mechanism": "exponential",
            "scale": self.scale,
            "charge": charge.to_dict(),
            "measurements": [self.measurement.to_dict()],
        }

    def draw(self, lengths: Ints, mode: testing.Mode) -> int:
        """Return the cap, drawn from the number of keys of each subject."""
        found = penalties(lengths, self.candidates, self.quantile)
        if mode.silent:
            return self.candidates[found.index(min(found))]
        scale = Fraction(self.scale)
        return self.candidates[choose([d / scale for d in found], mode.bits or system_bits)]


def selection(policy: Policy, eps: object, candidates: object, quantile: object, by: object) -> Selection:
    """Decide everything about the choice of a cap that can be decided without data."""
    if policy.by_row:
        raise ValueError("subject is required: a cap limits one person, and without a subject a row is one.")
    if isinstance(eps, Budget):
        raise TypeError("eps must be a number: a cap is chosen once, not with the budget of each release.")
    asked, share = exact_positive(eps, "eps"), exact(quantile, "quantile")
    if not 0 < share < 1:
        raise ValueError(f"quantile must be above 0 and below 1, got {brief(quantile)}.")
    offered = parse_candidates(candidates)
    # A plan of counts settles grid, bounds and slots, and checks their size; it is never released.
    settled = replace(policy, cap=offered[-1])
    plan = decided_plan(settled, Fraction(1), 0, Count(), by, looking(settled, by))
    return Selection(plan, asked, offered, share)


def parse_candidates(candidates: object) -> tuple[int, ...]:
    """Return the public candidates, rising.

    Raises
    ------
    TypeError
        An array, a Series or an Index (those come out of frames), no sequence, or no ints.
    ValueError
        None, more than 100, not rising, or below 1.
    """
    if not isinstance(candidates, tuple | list | range):
        raise TypeError(
            f"candidates must be a typed list of caps, such as (1, 2, 4, 8), got {type(candidates).__name__}: "
            "caps taken from the rows would show how much somebody moves."
        )
    offered = tuple(whole(one, "candidates", 1) for one in islice(candidates, _MOST_CANDIDATES + 1))
    if not 1 <= len(offered) <= _MOST_CANDIDATES:
        most = "none" if not offered else f"more than {_MOST_CANDIDATES}"
        raise ValueError(f"candidates must be 1 to {_MOST_CANDIDATES} caps, got {most}.")
    if any(a >= b for a, b in pairwise(offered)):
        raise ValueError(f"candidates must rise, got {offered}.")
    return offered


def keys_per_subject(rows: Rows, layout: Layout) -> Ints:
    """Return how many distinct keys of the domain each subject is in; subjects in none do not appear."""
    pairs = distinct_pairs(rows.subject, rows.key, rows.inside, layout.n_keys, 1)
    return runs(pairs.subject)[1]


def lengths_of(subjects: Ints) -> Ints:
    """Return the number of keys of each subject, from the number of subjects with 0, 1, 2, ... keys."""
    return np.repeat(np.arange(len(subjects)), subjects)


def penalties(lengths: Ints, candidates: Sequence[int], quantile: Fraction) -> list[Fraction]:
    """Return how far each candidate is from being the quantile, in people.

    Parameters
    ----------
    lengths : int64 array, shape (n_subjects,)
        Number of keys of each subject.
    candidates : sequence of int
        Rising.
    quantile : Fraction

    Examples
    --------
    Of ten people eight are in one cell and two in three; 90 % stay within 4, and 80 % would within 1:

    >>> penalties(np.array([1] * 8 + [3] * 2), (1, 2, 4), Fraction(9, 10))
    [Fraction(1, 1), Fraction(1, 1), Fraction(0, 1)]
    """
    wanted = quantile * len(lengths)
    upper = [int(np.count_nonzero(lengths <= candidate)) for candidate in candidates]
    upper[-1] = len(lengths)
    lower = [0, *upper[:-1]]
    return [max(Fraction(0), wanted - b, a - wanted) for a, b in zip(lower, upper, strict=True)]
