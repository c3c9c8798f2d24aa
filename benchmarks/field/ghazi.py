"""Private aggregation of sparse distributions for the earth mover's distance (Ghazi et al., AAAI 2023).

Every subject holds a distribution of mass 1 over its cells. Level by level of the quadtree, sums of the
children of the w heaviest nodes are measured, eps evenly over levels. The map is the non-negative one
that is nearest in weighted L1 (weights 2^-depth, as in the earth mover's distance of the tree); for wide
searches the linear program is replaced by a projection of each family on its parent.

The paper's map has mass 1 a subject; to compare counts, we scale it to a noisy total (5 % of eps).
"""

import numpy as np
from field.noise import Array
from field.trees import _on_simplex, enlarged, pooled


def ghazi(
    rng: np.random.Generator,
    mass: Array,
    total: float,
    side: int,
    cap: int,
    eps: float,
    width: int = 200,
) -> Array:
    """Return the map; ``mass`` is the sum of the subjects' distributions, ``total`` the capped total."""
    scale = max(total + rng.laplace(0, cap / (0.05 * eps)), 0.0)
    found = _descend(rng, mass, side, 0.95 * eps, width)
    return found * (scale / max(found.sum(), 1e-9))


def _descend(rng: np.random.Generator, mass: Array, side: int, eps: float, width: int) -> Array:
    levels = [mass.reshape(side, side)]
    while len(levels[-1]) > 1:
        levels.append(pooled(levels[-1], 2))
    depths = len(levels) - 1
    value = np.zeros((1, 1))
    expanded = np.ones((1, 1), dtype=bool)
    for depth in range(1, depths + 1):
        true = levels[depths - depth]
        noisy = true + rng.laplace(0, depths / eps, true.shape)
        value, expanded = _level(noisy, value, expanded, width, first=depth == 1)
    return value.ravel()


def _level(
    noisy: Array, parents: Array, expanded: Array, width: int, first: bool
) -> tuple[Array, np.ndarray]:
    """Return the values of one level and which of its nodes are looked into next."""
    size = len(parents)
    families = noisy.reshape(size, 2, size, 2).transpose(0, 2, 1, 3).reshape(size * size, 4)
    totals = np.maximum(families.sum(axis=1), 0) if first else parents.ravel()
    open_ = expanded.ravel()
    values = np.repeat(totals[:, None] / 4, 4, axis=1)  # nodes that were not expanded spread evenly
    values[open_] = _on_simplex(families[open_], totals[open_])
    table = values.reshape(size, size, 2, 2).transpose(0, 2, 1, 3).reshape(2 * size, 2 * size)
    score = np.where(enlarged(expanded, 2), noisy, -np.inf).ravel()
    chosen = np.zeros(score.size, dtype=bool)
    chosen[np.argsort(-score, kind="stable")[:width]] = True
    return table, (chosen & np.isfinite(score)).reshape(table.shape)
