"""Words and numbers for pages, records and explanations: names bounded in length, and safe to print."""

import builtins
import json
import reprlib
from collections.abc import Set
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

__all__ = ["area", "at_most", "bounded", "brief", "cell_words", "figure", "people", "shown"]

_ROOM = 120
# What is typed into a call and says no more than itself; of anything else the type is named.
_TYPED = (type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, date, timedelta, range)


class _Brief(reprlib.Repr):
    """Short texts of what was typed into a call: a frame or an array handed over by mistake holds rows."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring = 3, _ROOM
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 8

    def repr1(self, x: Any, level: int) -> str:
        known = isinstance(x, list | tuple | dict | Set | str) and type(x).__module__ == "builtins"
        return super().repr1(x, level) if known else self.repr_instance(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        if not isinstance(x, _TYPED) or type(x).__module__ not in (
            "builtins",
            "datetime",
            "decimal",
            "fractions",
        ):
            return f"<{type(x).__name__}>"
        try:
            text = builtins.repr(x)
        except ValueError:  # whole numbers of thousands of digits
            return f"<{type(x).__name__}>"
        return text if len(text) <= _ROOM else f"{text[:_ROOM]}..."


_brief = _Brief()


def brief(value: object) -> str:
    """Return a wrong argument as a message quotes it: as typed and short, or its type.

    What is no plain value, such as a frame, a column or an array, is named by its type alone, since it may
    hold rows. Texts of thousands of characters are cut, and nothing that is typed makes this fail.

    Examples
    --------
    >>> brief((1, "a")), len(brief("x" * 1000)), brief([[[[[1]]]]])
    ("(1, 'a')", 120, '[[[[...]]]]')
    """
    text = _brief.repr(value)
    return text if len(text) <= 3 * _ROOM else f"{text[: 3 * _ROOM]}..."


def bounded(text: str, room: int) -> str:
    """Return ``text``, or its beginning and a digest where it takes more than ``room`` bytes as JSON.

    Examples
    --------
    >>> bounded("rider", 40), len(bounded("x" * 500, 40))
    ('rider', 40)
    """
    if _size(text) <= room:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = text[:room]
    while head and _size(head) > room - 11:
        head = head[: -max(1, (_size(head) - room + 11) // 12)]
    return f"{head}...{digest}"


def shown(text: str, room: int = 40) -> str:
    r"""Return a name as one line of print: bounded, and with escapes for what would not print.

    Examples
    --------
    >>> print(shown("rider" + chr(10) + "chosen"))
    rider\nchosen
    """
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return bounded(plain, room)


def cell_words(grid: str) -> str:
    """Return what one cell of a grid is called, from the grid's canonical name.

    Examples
    --------
    >>> cell_words("h3:8"), cell_words("square:0.01"), cell_words("square:1000m@3035")
    ('H3 cell (resolution 8)', 'square of 0.01°', 'square of 1000 m (EPSG:3035)')
    """
    kind, _, rest = grid.partition(":")
    if kind == "h3":
        return f"H3 cell (resolution {rest})"
    if kind == "square" and "@" in rest:
        size, _, crs = rest.partition("m@")
        return f"square of {size} m ({'EPSG:' + crs if crs.isdigit() else shown(crs)})"
    if kind == "square":
        return f"square of {rest}°"
    if kind == "zones":
        return f"zone ({shown(rest)})"
    return "box" if grid == "box" else shown(grid)


def figure(value: float) -> str:
    """Return a number of three figures or so, as people read it.

    Examples
    --------
    >>> figure(12), figure(5.642), figure(0.00123), figure(12345.6), figure(1e9)
    ('12', '5.64', '0.00123', '12,346', '1,000,000,000')
    """
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def area(km2: float) -> str:
    """Return an area with its unit.

    Examples
    --------
    >>> area(0.737), area(36.1), area(0.016), area(0.0000009)
    ('0.7 km²', '36 km²', '0.02 km²', '0.9 m²')
    """
    if km2 < 0.01:
        return f"{km2 * 1e6:,.0f} m²" if km2 >= 1e-5 else f"{km2 * 1e6:.1g} m²"
    return f"{km2:,.0f} km²" if km2 >= 10 else f"{km2:.1f} km²" if km2 >= 0.1 else f"{km2:.1g} km²"


def people(unit: str) -> str:
    """Return the plural of a subject's column: ``"riders"``.

    Examples
    --------
    >>> people("rider"), people("row")
    ('riders', 'rows')
    """
    return f"{shown(unit)}s"


def at_most(cap: int, what: str = "cell") -> str:
    """Return ``"1 cell"``, ``"4 cells"``.

    Examples
    --------
    >>> at_most(1), at_most(4)
    ('1 cell', '4 cells')
    """
    return f"{cap:,} {what}" if cap == 1 else f"{cap:,} {what}s"


def _size(text: str) -> int:
    return len(json.dumps(text)) - 2
