"""Five measures of how far a private map is from the truth.

L1 and L2 are relative to the capped counts, which is what was measured. The earth mover's distance,
hotspots and the divergence compare shapes with the uncapped truth, which is what a reader wants to see.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NAMES = ("L1", "L2", "EMD", "hotspots", "KL")


def measures(found: Array, capped: Array, full: Array, side: int, rng: np.random.Generator) -> list[float]:
    """Return L1, L2, EMD, hotspot recall and KL of a map of ``side`` x ``side`` cells."""
    return [
        float(np.abs(found - capped).sum() / capped.sum()),
        float(np.linalg.norm(found - capped) / np.linalg.norm(capped)),
        earth_mover(found, full, side),
        hotspots(found, full, rng),
        divergence(found, full),
    ]


def earth_mover(found: Array, full: Array, side: int) -> float:
    """Sliced Wasserstein-1 distance of the normalised maps, in widths of the map, over 8 directions."""
    mass = found if found.sum() > 0 else np.ones_like(found)
    gap = mass / mass.sum() - full / full.sum()
    costs = [np.abs(np.cumsum(np.bincount(place, gap))).sum() * 0.5 / side for place in _projections(side)]
    return float(np.mean(costs))


def hotspots(found: Array, full: Array, rng: np.random.Generator) -> float:
    """Share of the map's top 1 % that truly belongs there; ties are broken at random."""
    number = max(1, min(len(full) // 100, int((full > 0).sum())))
    least = np.partition(full, -number)[-number]
    top = np.argpartition(found + 1e-9 * rng.random(len(found)), -number)[-number:]
    return float((full[top] >= least).mean())


def divergence(found: Array, full: Array) -> float:
    """KL(truth || map), the map mixed with 1/1000 of a uniform one."""
    mixed = np.maximum(found, 0) + 1e-3 * max(found.sum(), 1) / len(found)
    truth, mixed = full / full.sum(), mixed / mixed.sum()
    seen = truth > 0
    return float((truth[seen] * np.log(truth[seen] / mixed[seen])).sum())


@cache
def _projections(side: int) -> list[NDArray[np.int64]]:
    row, col = np.mgrid[0:side, 0:side]
    places = []
    for angle in np.arange(8) * np.pi / 8:
        place = (col * np.cos(angle) + row * np.sin(angle)).ravel()
        places.append(np.round(2 * (place - place.min())).astype(np.int64))
    return places
