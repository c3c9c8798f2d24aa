"""Which zones a point may lie in: a quadtree of zone boxes, looked up for whole arrays at once.

A spatial index of the zones wants a geometry object for every point, and an index of the points is
built anew for every release; both cost more than the answer. Here each point becomes one integer (its
place along a Z-shaped curve), one binary search finds its leaf, and the leaf lists the boxes it meets.
Points leave in the order of their leaves, so the exact tests that follow find their polygon in cache.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tiles", "build_tiles", "candidates"]

_DEPTH = 20  # halvings of each axis: a million columns and rows
_FULL = 4  # boxes that a leaf may meet before it is split
_WORTH = 3.4  # listed boxes in the four quarters of a leaf, to each in the leaf, that justify the split
_PAIRS = 64  # listed boxes for each box, at most
_RIGHT, _UP = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tiles:
    """A quadtree over boxes.

    Attributes
    ----------
    boxes : float64 array (n, 4)
        West, south, east, north of what was indexed.
    start : int64 array (n_leaves,)
        First place of each leaf along the curve, ascending.
    first : int64 array (n_leaves + 1,)
        Where each leaf's boxes begin in ``member``.
    member : int64 array
        Numbers of the boxes, leaf after leaf.
    """

    boxes: _Floats
    start: _Ints
    first: _Ints
    member: _Ints


def build_tiles(boxes: _Floats) -> Tiles:
    """Return the quadtree of ``boxes``.

    Parameters
    ----------
    boxes : float64 array, shape (n, 4), n >= 1
        Finite west, south, east, north.

    Examples
    --------
    >>> tiles = build_tiles(np.array([[0.0, 0, 1, 1], [1.0, 0, 2, 1]]))
    >>> rows, members = candidates(tiles, np.array([0.5, 1.0, 3.0]), np.array([0.5, 0.5, 0.5]))
    >>> sorted(zip(rows.tolist(), members.tolist()))
    [(0, 0), (1, 0), (1, 1)]
    """
    steps = tuple(_steps(boxes, boxes[:, side], side % 2) for side in range(4))
    tile_x: _Ints = np.zeros(1, np.int64)
    tile_y: _Ints = np.zeros(1, np.int64)
    tile: _Ints = np.zeros(len(boxes), np.int64)
    member = np.arange(len(boxes))
    places, members, n_pairs = [], [], 0
    for level in range(_DEPTH):
        below_x, below_y = (2 * tile_x[:, None] + _RIGHT).ravel(), (2 * tile_y[:, None] + _UP).ravel()
        child, of_child = _children(tile, member, below_x, below_y, steps, _DEPTH - level - 1)
        counts = np.bincount(tile, minlength=len(tile_x))
        # Where boxes lie on top of each other, splitting multiplies the lists and shortens none.
        split = (counts > _FULL) & (np.bincount(child // 4, minlength=len(counts)) <= _WORTH * counts)
        if level == _DEPTH - 1 or n_pairs + int(split[child // 4].sum()) > _PAIRS * len(boxes) + 4096:
            split[:] = False
        place, stays = _curve(tile_x, tile_y) << 2 * (_DEPTH - level), ~split[tile]
        # Every leaf is listed once with member -1, so that empty ones exist too.
        places += [place[~split], place[tile[stays]]]
        members += [np.full(int((~split).sum()), -1), member[stays]]
        n_pairs += int(stays.sum())
        goes, below = split[child // 4], np.repeat(split, 4)
        tile, member = (np.cumsum(below) - 1)[child[goes]], of_child[goes]
        tile_x, tile_y = below_x[below], below_y[below]
    return _packed(boxes, np.concatenate(places), np.concatenate(members))


def candidates(tiles: Tiles, x: _Floats, y: _Floats) -> tuple[_Ints, _Ints]:
    """Return every pair of a point and a closed box that holds it, in the order of the leaves.

    Parameters
    ----------
    x, y : float64 arrays, shape (n,)
        Finite coordinates, anywhere.

    Returns
    -------
    rows, members : int64 arrays, shape (k,)
        Positions of points and numbers of boxes.
    """
    place = _curve(_steps(tiles.boxes, x, 0), _steps(tiles.boxes, y, 1))
    order = np.argsort(place)
    leaf = np.searchsorted(tiles.start, place[order], side="right") - 1
    counts = tiles.first[leaf + 1] - tiles.first[leaf]
    rows = np.repeat(order, counts)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    members = tiles.member[np.repeat(tiles.first[leaf], counts) + nth]
    box, x, y = tiles.boxes[members], x[rows], y[rows]
    within = (box[:, 0] <= x) & (x <= box[:, 2]) & (box[:, 1] <= y) & (y <= box[:, 3])
    return rows[within], members[within]


def _children(
    tile: _Ints, member: _Ints, x: _Ints, y: _Ints, steps: tuple[_Ints, ...], down: int
) -> tuple[_Ints, _Ints]:
    """Return the pairs of a quarter tile and a box that meets it, from those of the whole tiles."""
    child, member = (4 * tile[:, None] + np.arange(4)).ravel(), np.repeat(member, 4)
    west, south, east, north = (side[member] >> down for side in steps)
    meets = (west <= x[child]) & (x[child] <= east) & (south <= y[child]) & (y[child] <= north)
    return child[meets], member[meets]


def _packed(boxes: _Floats, places: _Ints, members: _Ints) -> Tiles:
    order = np.lexsort((members, places))
    start, first = np.unique(places[order], return_index=True)
    members = members[order]
    real = members >= 0
    before = np.append(0, np.cumsum(real))
    return Tiles(boxes, start, before[np.append(first, len(members))], members[real])


def _steps(boxes: _Floats, values: _Floats, axis: int) -> _Ints:
    # Points and boxes go through the same monotone rounding: a point of a box never misses its tiles.
    low, high = boxes[:, axis].min(), boxes[:, axis + 2].max()
    scale = 2.0**_DEPTH / max(high - low, 1e-300)
    steps: _Ints = np.clip((values - low) * scale, 0, 2**_DEPTH - 1).astype(np.int64)
    return steps


def _curve(x: _Ints, y: _Ints) -> _Ints:
    return _spread(x) | _spread(y) << 1


def _spread(v: _Ints) -> _Ints:
    for shift, mask in ((16, 0xFFFF0000FFFF), (8, 0xFF00FF00FF00FF), (4, 0xF0F0F0F0F0F0F0F)):
        v = (v | v << shift) & mask
    v = (v | v << 2) & 0x3333333333333333
    return (v | v << 1) & 0x5555555555555555
