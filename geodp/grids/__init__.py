"""Public ways of dividing the Earth: H3 cells and squares here, zones in :mod:`geodp.grids.zones`."""

from geodp.grids.base import Domain, Grid
from geodp.grids.h3 import H3, finest_h3
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.square import Square
from geodp.grids.whole import Whole
from geodp.wording import brief

__all__ = ["H3", "Domain", "Grid", "Hierarchy", "Square", "Whole", "finest_h3", "grid"]

_ALLOWED = (
    '"h3:8" (resolution 0 to 15), "square:0.01" (degrees), "square:1000@3035" (metres of a projected CRS), '
    '"box" (one cell), '
    "or a grid: geodp.H3(8), geodp.Square(0.01), geodp.Zones(zones)"
)


def grid(spec: object) -> Grid:
    """Return the grid that was asked for.

    Parameters
    ----------
    spec : str or Grid
        ``"h3:8"``, ``"square:0.01"``, ``"square:1000@3035"``, any ``Grid.name`` of those kinds, or a
        grid, which comes back as it is.

    Raises
    ------
    TypeError
        ``spec`` is neither.
    ValueError
        The text names no grid; the message lists what does.

    Examples
    --------
    >>> grid("h3:8"), grid("square:1000@3035")
    (H3(resolution=8), Square(1000, crs='EPSG:3035'))
    """
    if isinstance(spec, Grid):
        return spec
    if not isinstance(spec, str):
        raise TypeError(f"grid must be {_ALLOWED}; got {type(spec).__name__}.")
    kind, _, rest = spec.strip().partition(":")
    if kind.lower() == "h3" and rest.isascii() and rest.isdigit():
        return H3(int(rest))
    if spec.strip() == "box":
        return Whole()
    if kind.lower() == "square" and rest:
        return _square(rest)
    raise ValueError(f"grid={brief(spec)} is not one of {_ALLOWED}.")


def _square(rest: str) -> Square:
    size, at, crs = rest.partition("@")
    size = size.strip()
    if size.endswith("m") and not at:
        raise ValueError(
            f'grid="square:{rest}" has metres without a CRS; type "square:{size[:-1]}@<EPSG code>".'
        )
    crs = crs.strip()
    return Square(size.removesuffix("m"), (int(crs) if crs.isdigit() else crs) if at else None)
