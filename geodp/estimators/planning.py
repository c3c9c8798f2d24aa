"""What can be said before the data are read, and the one public figure after: how much is signal."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geodp.estimators.priors import NoiseLaw

__all__ = ["LevelShares", "budget_shares", "expected_error", "signal"]

_COARSE = (0.5, 0.3, 0.2)  # of what the cells leave, coarsest level first
_THOUSAND = 1000


@dataclass(frozen=True)
class LevelShares:
    """How ``strategy="levels"`` divides a budget; the shares add up to exactly 1.

    Shares are of eps for Laplace noise and of rho (1/sigma^2) for Gaussian noise.

    Attributes
    ----------
    cells : Fraction
    blocks : tuple of Fraction
        One for each level of ``Hierarchy.blocks``, finest first; 0 for a level that is dropped.
    """

    cells: Fraction
    blocks: tuple[Fraction, ...]

    @property
    def dropped(self) -> tuple[int, ...]:
        """Positions in ``Hierarchy.blocks`` of the levels that are not worth measuring."""
        return tuple(i for i, share in enumerate(self.blocks) if not share)


def budget_shares(
    std: float, kind: str, cap: int, n_cells: int, block_counts: tuple[int, ...]
) -> LevelShares:
    """Return the shares of cells and coarse levels, from public facts alone.

    The cells get between 75 % and 90 %: more when a flat release would be precise anyway. The rest goes
    to the block levels, 5 : 3 : 2 from the coarsest. A level is dropped, and the rest stretched, where its
    noise would be no smaller than the summed noise of its own cells: a block sum of capped cells moves
    by the cap, not by its root.

    Parameters
    ----------
    std : float
        Standard deviation of a cell's noise if all budget went to the cells.
    kind : {"laplace", "gaussian"}
    cap : int
        Cells one subject may count in.
    n_cells : int
    block_counts : tuple of int
        Number of blocks at each level of ``Hierarchy.blocks``, finest first.

    Examples
    --------
    >>> shares = budget_shares(8.45, "gaussian", 4, 65536, (256, 64, 16))
    >>> float(shares.cells), [float(share) for share in shares.blocks]
    (0.75, [0.05, 0.075, 0.125])
    """
    cells = float(np.clip(0.75 + 0.15 * (1.5 - std) / 0.9, 0.75, 0.9))
    split = np.array(_COARSE[: len(block_counts)])
    coarse = (1 - cells) * split / split.sum() if len(split) else split
    least = cap * cells / coarse if kind == "gaussian" else (cells / coarse) ** 2
    sizes = n_cells / np.array(block_counts[::-1], dtype=float)
    coarse = np.where(sizes > least, coarse, 0.0)
    scale = _THOUSAND / (cells + coarse.sum())
    blocks = tuple(Fraction(round(share * scale), _THOUSAND) for share in coarse[::-1].tolist())
    return LevelShares(1 - sum(blocks, Fraction(0)), blocks)


def expected_error(law: NoiseLaw, n_cells: int, total: float) -> float:
    """Return the expected L1 error of the noise alone as a share of the map: n_cells E|noise| / total.

    Parameters
    ----------
    law : NoiseLaw
    n_cells : int
        Cells of the domain, empty or not.
    total : float
        A public guess of what the map adds up to: subjects times the cells each counts in. Never
        taken from the rows.

    Returns
    -------
    float
        1 means as much noise as map in ``noisy_count``; estimates of the ``count`` column do better,
        by 3 to 4 times in our benchmark. Infinite for ``total <= 0``.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> round(expected_error(DiscreteLaplace(4.0), 5495, 200_000), 3)
    0.109
    """
    return n_cells * _mean_size(law) / total if total > 0 else float("inf")


def signal(noisy: NDArray[np.int64], law: NoiseLaw) -> float:
    """Return how much of the map is signal: the part of its squares that the noise does not explain.

    ``1 - n std^2 / sum(noisy^2)``, at least 0: near 0 the map is noise, near 1 its large cells stand
    far above it. Computed from the release, so it costs nothing.

    Examples
    --------
    >>> from geodp.mechanisms.laws import DiscreteLaplace
    >>> round(signal(np.array([100, 1, -2, 0]), DiscreteLaplace(2.0)), 3)
    0.997
    """
    energy = float(np.square(np.asarray(noisy, dtype=np.float64)).sum())
    return max(1 - len(noisy) * float(law.std) ** 2 / energy, 0.0) if energy > 0 else 0.0


def _mean_size(law: NoiseLaw) -> float:
    """E|X|: the sum of 2 P(X > k) over k >= 0, in steps of std/64 where the law is that wide."""
    step = max(1, round(law.std / 64))
    places = np.arange(0, int(40 * law.std) + 2, dtype=np.float64)[: 64 * 40 + 64] * step
    tails = law.cdf(-(places.astype(np.int64) + (step + 1) // 2))
    return float(2 * step * tails.sum())
