"""Soft contributions: all of a subject's keys count, each at a weight that keeps the subject's norm.

Instead of dropping all but ``c`` random keys, a subject in k keys counts in each of them with weight
min(1, sqrt(c/k)) under Gaussian noise and min(1, c/k) under Laplace noise, rounded down to sixty-fourths.
The norm is what the cap allows, so the noise is the same and less of the map is thrown away. The released
number is a weighted count of subjects, and is called that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geodp.contribution import Pairs, distinct_pairs, runs
from geodp.estimators import estimate, to_integers
from geodp.lattice import add_up
from geodp.queries.base import Ints, Layout, Quantity, Query, Rows
from geodp.queries.count import interval
from geodp.queries.rescaling import NO_RESCALING, Rescaling
from geodp.sensitivity import Norms

if TYPE_CHECKING:
    from geodp.plans import Plan
    from geodp.policy import Policy

__all__ = ["WeightedCount", "weights"]

_STEPS = 64


@dataclass(frozen=True)
class WeightedCount(Query):
    """Weighted subjects per key, in steps of 1/64.

    Parameters
    ----------
    rescaling : Rescaling
        Whether the map is scaled to a separately measured total.

    Examples
    --------
    >>> weights(np.array([1, 4, 16, 64]), 4, "gaussian").tolist()
    [64, 64, 32, 16]
    >>> weights(np.array([1, 4, 16, 64]), 4, "laplace").tolist()
    [64, 64, 16, 4]
    """

    word: ClassVar[str] = "weighted_count"
    rescaling: Rescaling = NO_RESCALING

    def mechanism(self, asked: str, delta: Fraction) -> str:
        """Return the mechanism the weights are made for: Gaussian with a delta, Laplace without."""
        if asked != "auto":
            return asked
        return "gaussian" if delta > 0 else "laplace"

    def quantities(self, layout: Layout, mechanism: str) -> tuple[Quantity, ...]:
        """Return the weighted counts, and what rescaling measures."""
        leading = Quantity(
            "count", layout.n_keys, self._norms(layout, mechanism), Fraction(1, _STEPS), self.rescaling.left
        )
        total, kept = self.rescaling.shares(2)
        if not self.rescaling:
            return (leading,)
        policy = layout.policy
        m = policy.rows_per_cell
        most = m * min(_kept_steps(policy.cap, self.rescaling.k_max), _STEPS * layout.n_keys)
        return (
            leading,
            self.rescaling.total(layout, total),
            Quantity("kept", 1, Norms(Fraction(most), Fraction(most) ** 2), Fraction(1, _STEPS), kept),
        )

    def tally(self, rows: Rows, layout: Layout, mechanism: str, secret: bytes) -> dict[str, Ints]:
        """Weigh every subject's keys by how many there are, and add up exactly."""
        policy = layout.policy
        pairs = distinct_pairs(rows.subject, rows.key, rows.inside, layout.n_keys, policy.rows_per_cell)
        lengths = runs(pairs.subject)[1]
        mass = np.repeat(weights(lengths, policy.cap, mechanism), lengths) * pairs.rows
        tallies = {"count": add_up(pairs.key, mass, layout.n_keys)}
        if self.rescaling:
            most = policy.rows_per_cell * _kept_steps(policy.cap, self.rescaling.k_max)
            tallies["total"] = self.rescaling.tally(pairs, policy.rows_per_cell)
            tallies["kept"] = np.array([np.minimum(_per_subject(pairs, mass), most).sum()], np.int64)
        return tallies

    def columns(self, plan: "Plan", noisy: Mapping[str, Ints]) -> dict[str, NDArray[Any]]:
        """Return weighted_count, estimate, noisy_weighted_count, lower and upper."""
        leading = plan.measurements[0]
        step = float(leading.quantity.step)
        measured = noisy["count"]
        hierarchy = plan.layout.hierarchy()
        smooth = estimate(measured, leading.law, plan.estimator, hierarchy) * step
        if self.rescaling:
            kept = next(m for m in plan.measurements if m.name == "kept")
            smooth = smooth * self.rescaling.factor(
                plan, noisy["total"], float(noisy["kept"][0]) * step, kept.law.std * step
            )
        lower, upper = interval(measured, leading.law.halfwidth(0.95))
        return {
            "weighted_count": to_integers(smooth, hierarchy.order),
            "estimate": smooth,
            "noisy_weighted_count": measured * step,
            "lower": lower * step,
            "upper": upper * step,
        }

    def counted(self, policy: "Policy") -> str:
        """Say that the number is weighted."""
        return (
            f"weighted {policy.unit}s: each counts in all its cells, at a weight below 1 where there are more "
            f"than {policy.cap}; not people, not trips"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON."""
        return {"query": self.word, **self.rescaling.to_dict()}

    def _norms(self, layout: Layout, mechanism: str) -> Norms:
        """Bound one subject's weighted vector, in 64ths; proved in PRIVACY.md, section 5.

        With k keys and weight w the squares add up to k·w² <= 4096·c and the weights to k·w <= 64·c for the
        Laplace rule. What the other norm can be is bounded too, for the record.
        """
        policy, n_keys = layout.policy, layout.n_keys
        m, twice = policy.rows_per_cell, 2 if policy.neighboring == "replace_one" else 1
        touched = min(twice * policy.cap, n_keys)
        if mechanism == "laplace":
            return Norms(Fraction(_STEPS * m * touched), Fraction((_STEPS * m) ** 2 * touched))
        l1 = min(twice * isqrt(_STEPS**2 * min(policy.cap, n_keys) * n_keys), _STEPS * n_keys)
        return Norms(Fraction(m * l1), Fraction((_STEPS * m) ** 2 * touched))


def weights(n_keys_of_subject: Ints, cap: int, mechanism: str) -> Ints:
    """Return the weight of a subject in each of its k keys, in sixty-fourths.

    min(64, isqrt(4096c // k)) under Gaussian noise, min(64, 64c // k) under Laplace noise.
    """
    k = n_keys_of_subject
    if mechanism == "laplace":
        return np.minimum(_STEPS, _STEPS * cap // k)
    square = _STEPS**2 * cap // k
    root = np.sqrt(square.astype(np.float64)).astype(np.int64)
    root -= root * root > square
    root += (root + 1) * (root + 1) <= square
    return np.minimum(_STEPS, root)


def _kept_steps(cap: int, k_max: int) -> int:
    """Return the most a subject with at most ``k_max`` keys keeps: sqrt(c·k_max), in 64ths."""
    return isqrt(_STEPS**2 * cap * k_max)


def _per_subject(pairs: Pairs, mass: Ints) -> Ints:
    starts, _ = runs(pairs.subject)
    return np.add.reduceat(mass, starts) if len(starts) else mass
