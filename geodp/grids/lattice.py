"""Square lattices in whole numbers: corners, which square a number falls in, blocks and curves.

The corner of square i is the double nearest to i times the typed size, ``i * numerator / denominator``
in one rounding. Locating compares with that same double, so that a point on a drawn corner falls into
the square that is drawn there, and (40.95 - 40.5) / 0.01 is 45 squares, not 46.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from geodp.grids.hierarchy import Hierarchy, block_levels

__all__ = ["Lattice", "decimal_places", "hilbert", "parted", "square_hierarchy"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MAX_LEVELS = 40


def decimal_places(size: Fraction) -> int | None:
    """Return how many decimals write ``size`` exactly, None where no number of them does.

    Examples
    --------
    >>> decimal_places(Fraction(1, 8)), decimal_places(Fraction(1, 3))
    (3, None)
    """
    rest, twos, fives = size.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


@dataclass(frozen=True)
class Lattice:
    """Whole multiples of a decimal size along one axis.

    Attributes
    ----------
    size : Fraction
        A finite decimal; coordinates times its power of ten must stay below 2**53.
    """

    size: Fraction

    @property
    def places(self) -> int:
        """Number of decimals of the size."""
        return decimal_places(self.size) or 0

    def corner(self, number: Floats) -> Floats:
        """Return the lower corner of squares: the doubles nearest to ``number * size``."""
        denominator = 10**self.places
        return number * float(self.size * denominator) / float(denominator)

    def number(self, value: Floats) -> Floats:
        """Return the square each value falls in, the largest whose corner is not above it.

        Examples
        --------
        >>> Lattice(Fraction(1, 100)).number(np.array([40.95, 0.29, -0.01])).tolist()
        [4095.0, 29.0, -1.0]
        """
        # The nearest corner is the square's own or its upper one, whatever the quotient's last bits.
        near = np.rint(value / float(self.size))
        near -= value < self.corner(near)
        return near

    def label(self, number: int, width: int) -> str:
        """Return the corner of a square without sign, ``width`` digits before the point.

        Examples
        --------
        >>> Lattice(Fraction(1, 100)).label(-7430, 3)
        '074.30'
        """
        whole, part = divmod(abs(number) * int(self.size * 10**self.places), 10**self.places)
        return f"{whole:0{width}d}" + (f".{part:0{self.places}d}" if self.places else "")

    def width(self, numbers: Iterable[int]) -> int:
        """Return the digits before the point that the corners of some squares need."""
        return max(len(self.label(number, 0).partition(".")[0]) for number in numbers)

    def labelled(self, label: str) -> int:
        """Return the square of a label behind its letter, S and W below 0.

        Examples
        --------
        >>> Lattice(Fraction(1, 100)).labelled("W074.30")
        -7430
        """
        size = int(label[1:].replace(".", "")) // int(self.size * 10**self.places)
        return -size if label[0] in "SW" else size


def parted(label: str) -> tuple[str, str]:
    """Return the row's and the column's part of a square's label.

    Examples
    --------
    >>> parted("N40.50W074.30")
    ('N40.50', 'W074.30')
    """
    at = max(label.find("E"), label.find("W"))
    return label[:at], label[at:]


def square_hierarchy(rows: Ints, cols: Ints) -> Hierarchy:
    """Return aligned blocks of 2 x 2, 4 x 4, ... squares, and the order along Hilbert's curve.

    Parameters
    ----------
    rows, cols : int64 arrays, shape (n,)
        Whole coordinates of the squares on their lattice; each pair once.
    """
    levels: dict[int, Ints] = {}
    counts: dict[int, int] = {}
    parent = np.arange(len(rows))
    part = (rows, cols)
    for level in range(1, _MAX_LEVELS):
        number, part = _halved(*part)
        parent = levels[level] = number[parent]
        counts[level] = len(part[0])
        if level >= 5 and counts[level] <= 4:
            break
    return Hierarchy(
        siblings=tuple(levels[level] for level in range(1, 6)),
        blocks=tuple(levels[level] for level in block_levels(counts, len(rows))),
        order=np.argsort(hilbert(rows - rows.min(), cols - cols.min()), kind="stable"),
    )


def hilbert(rows: Ints, cols: Ints) -> Ints:
    """Return how far along Hilbert's curve each place of a square of side 2**k lies.

    Parameters
    ----------
    rows, cols : int64 arrays, shape (n,)
        At least 0, below 2**31.

    Examples
    --------
    >>> hilbert(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])).tolist()
    [0, 1, 2, 3]
    """
    along = np.zeros(len(rows), dtype=np.int64)
    flip = np.zeros(len(rows), dtype=np.uint8)
    swap = np.zeros(len(rows), dtype=np.uint8)
    top = max(int(rows.max(initial=0)), int(cols.max(initial=0))).bit_length()
    for bit in range(top - 1, -1, -1):
        x, y = _bit(rows, bit), _bit(cols, bit)
        exchanged = (x ^ y) & swap
        x ^= exchanged ^ flip
        y ^= exchanged ^ flip
        along <<= 2
        along |= (3 * x) ^ y
        flip ^= x & (1 - y)
        swap ^= 1 - y
    return along


def _bit(number: Ints, bit: int) -> NDArray[np.uint8]:
    return ((number >> bit) & 1).astype(np.uint8)


def _halved(rows: Ints, cols: Ints) -> tuple[Ints, tuple[Ints, Ints]]:
    """Return the block of 2 x 2 that each square lies in, numbered by row and column, and the blocks."""
    rows, cols = rows >> 1, cols >> 1
    low, left = rows.min(), cols.min()
    width = int(cols.max() - left) + 1
    key = (rows - low) * width + (cols - left)
    window = (int(rows.max() - low) + 1) * width
    if window > 8 * len(rows) + 1024:
        keys, number = np.unique(key, return_inverse=True)
    else:
        seen = np.zeros(window, dtype=np.bool_)
        seen[key] = True
        keys, number = np.flatnonzero(seen), (np.cumsum(seen) - 1)[key]
    return number, (keys // width + low, keys % width + left)
