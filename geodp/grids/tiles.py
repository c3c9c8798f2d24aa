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
_LEAVES = 8  # leaves per box, at most: many equal boxes cannot be told apart by splitting
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
    west, south, east, north = (_steps(boxes, boxes[:, side], side % 2) for side in range(4))
    tile_x: _Ints = np.zeros(1, np.int64)
    tile_y: _Ints = np.zeros(1, np.int64)
    tile: _Ints = np.zeros(len(boxes), np.int64)
    member = np.arange(len(boxes))
    places, members, n_leaves = [], [], 0
    for level in range(_DEPTH + 1):
        split = np.bincount(tile, minlength=len(tile_x)) > _FULL
        if level == _DEPTH or n_leaves + 4 * int(split.sum()) > _LEAVES * len(boxes) + 1024:
            split[:] = False
        place = _curve(tile_x, tile_y) << 2 * (_DEPTH - level)
        stays = ~split[tile]
        # Every leaf is listed once with member -1, so that empty ones exist too.
        places += [place[~split], place[tile[stays]]]
        members += [np.full(int((~split).sum()), -1), member[stays]]
        n_leaves += int((~split).sum())
        if not split.any():
            break
        tile, member = (np.cumsum(split) - 1)[tile[~stays]], np.repeat(member[~stays], 4)
        tile = (4 * tile[:, None] + np.arange(4)).ravel()
        tile_x = (2 * tile_x[split][:, None] + _RIGHT).ravel()
        tile_y = (2 * tile_y[split][:, None] + _UP).ravel()
        down = _DEPTH - level - 1
        meets = (west[member] >> down <= tile_x[tile]) & (east[member] >> down >= tile_x[tile])
        meets &= (south[member] >> down <= tile_y[tile]) & (north[member] >> down >= tile_y[tile])
        tile, member = tile[meets], member[meets]
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
