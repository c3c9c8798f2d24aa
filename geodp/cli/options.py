"""The options, in the five groups of the calls, and the kinds of values they take as text or from TOML."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import click

from geodp.wording import brief

__all__ = [
    "bounds",
    "budget",
    "cap",
    "chosen",
    "files",
    "how",
    "levels",
    "number",
    "pair",
    "rescale",
    "what",
    "where",
    "who",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

_MOST_LEVELS = 100_000


def number(value: Any) -> str:
    """Return a number as it was typed; geodp makes a fraction of it, never a double."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise click.BadParameter(f"{brief(value)} is no number.")
    return str(value)


def bounds(value: Any) -> tuple[float, ...]:
    """Return the four numbers of a box."""
    return _numbers(value, 4, "four numbers, west,south,east,north in degrees")


def pair(value: Any) -> tuple[float, ...]:
    """Return two numbers, the lower and the upper bound of a value."""
    return _numbers(value, 2, "two numbers, low,high")


def _numbers(value: Any, count: int, words: str) -> tuple[float, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    try:
        numbers = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count:
        raise click.BadParameter(f"{brief(value)} is not {words}.")
    return numbers


def cap(value: Any) -> int | str:
    """Return a whole number, or ``"auto"``."""
    if value == "auto":
        return "auto"
    if not isinstance(value, bool) and _whole(str(value)):
        return int(value)
    raise click.BadParameter(f'{brief(value)} is neither a whole number nor "auto".')


def rescale(value: Any) -> int | bool:
    """Return a whole number, or True, which is 64."""
    if isinstance(value, bool) or str(value).lower() == "true":
        return value is not False
    if _whole(str(value)):
        return int(value)
    raise click.BadParameter(f"{brief(value)} is neither a whole number nor true.")


def levels(value: Any) -> tuple[str, tuple[Any, ...]]:
    """Return a column and its public levels.

    Examples
    --------
    >>> levels("hour=0:3"), levels("day=mon,tue"), levels("code='7','8'")
    (('hour', (0, 1, 2)), ('day', ('mon', 'tue')), ('code', ('7', '8')))
    """
    if isinstance(value, tuple):  # a table of TOML
        column, listed = value
    else:
        column, found, listed = str(value).partition("=")
        if not found:
            raise click.BadParameter(
                f"{brief(value)} names no levels; type a column and its levels, hour=0:24."
            )
    return column, tuple(listed) if isinstance(listed, list | tuple) else _levels(str(listed))


def _levels(text: str) -> tuple[Any, ...]:
    first, colon, last = text.partition(":")
    if colon and _whole(first) and _whole(last):
        if int(last) - int(first) > _MOST_LEVELS:
            raise click.BadParameter(f"{brief(text)} has more than {_MOST_LEVELS:,} levels.")
        return tuple(range(int(first), int(last)))
    parts = [part.strip() for part in text.split(",")]
    if all(_whole(part) for part in parts):
        return tuple(int(part) for part in parts)
    return tuple(_unquoted(part) for part in parts)


def _whole(text: str) -> bool:
    digits = text.strip().removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def _group(*options: Decorator) -> Decorator:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _choice(name: str, words: tuple[str, ...], text: str) -> Decorator:
    return click.option(name, type=click.Choice(words), default=words[0], show_default=True, help=text)


budget = _group(
    click.option("--eps", type=number, required=True, help="Privacy loss, exactly as typed."),
    click.option(
        "--delta", type=number, default="0", show_default=True, help="0 is pure; below 1/population."
    ),
)

who = _group(
    click.option("--subject", help="Column that says whose a row is. Required."),
    click.option("--cap", type=cap, metavar="N|auto", help='Most cells one subject may count in, or "auto".'),
    click.option("--rows-per-cell", type=int, default=1, show_default=True, help="1 counts presence."),
    _choice("--contribution", ("sample", "weighted"), "What happens above the cap."),
    _choice("--neighboring", ("add_remove_one", "replace_one"), "What the guarantee compares."),
    click.option("--population", type=int, help="Public number of people, to hold delta against."),
)

where = _group(
    click.option("--bounds", type=bounds, metavar="W,S,E,N", help="Typed by hand, with margin; in degrees."),
    _choice("--outside", ("clamp", "drop"), "Points outside move to the border, or are left out."),
    click.option("--grid", help='"h3:8", "square:0.01" or "square:1000@3035"; else up to 10,000 H3 cells.'),
    click.option("--zones", metavar="FILE", help="Public polygons as cells, instead of --grid and --bounds."),
    click.option("--zone-key", metavar="COLUMN", help="Column that names the zones."),
    _choice("--zone-overlap", ("first", "count", "raise"), "What a point in several zones counts in."),
)

what = _group(
    click.option("--sum", "sum_", metavar="COLUMN", help="Add up a column instead of counting people."),
    click.option("--mean", metavar="COLUMN", help="Average a column instead of counting people."),
    click.option("--centroid", is_flag=True, help="The mean place instead of counting people."),
    click.option(
        "--value-bounds",
        type=pair,
        metavar="LOW,HIGH",
        help="Public bounds of one record, for --sum and --mean.",
    ),
    click.option(
        "--by",
        type=levels,
        metavar="COLUMN=LEVELS",
        multiple=True,
        help="Slots: hour=0:24, day=mon,tue. Repeatable.",
    ),
)

how = _group(
    _choice("--estimator", ("pyramid", "shrink", "median", "norm_sub", "clamp"), "Makes count."),
    _choice("--mechanism", ("auto", "laplace", "gaussian"), "The noise."),
    _choice("--criterion", ("std", "max_error"), "What auto compares."),
    _choice("--strategy", ("flat", "levels"), "What is measured."),
    _choice("--cells", ("all", "sparse", "select"), "Which cells are released."),
    click.option("--threshold", type=int, help="Least noisy count, with --cells sparse."),
    click.option("--phantoms", type=number, help="Empty cells expected to pass, with --cells sparse."),
    click.option(
        "--rescale",
        type=rescale,
        metavar="N|true",
        help="Scale to a separately measured total; a number, or true.",
    ),
)

files = _group(
    click.option("--lon", metavar="COLUMN", help="Longitude, in CSV and in Parquet without geometry."),
    click.option("--lat", metavar="COLUMN", help="Latitude."),
    click.option("--crs", help="CRS of --lon and --lat (4326), or of a file that states none."),
    click.option("--layer", help="Layer of a file with several."),
)


def chosen(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return some of the options."""
    return {name: given[name] for name in names}
