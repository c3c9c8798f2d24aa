"""What a bug report needs: versions, and nothing of anybody's data."""

import platform
from importlib.metadata import PackageNotFoundError, version

from geodp._version import __version__

__all__ = ["show_versions", "versions"]

_NEEDED = ("geopandas", "h3", "mpmath", "numpy", "pandas", "pyogrio", "pyproj", "scipy", "shapely", "tqdm")
_EXTRAS = (
    "click",
    "dask",
    "dask-geopandas",
    "dp-accounting",
    "folium",
    "mapclassify",
    "matplotlib",
    "psycopg",
    "pyarrow",
    "sqlalchemy",
)


def versions() -> dict[str, str | None]:
    """Return the version of geodp, of Python, of the system and of each library, ``None`` if it is missing.

    Examples
    --------
    >>> list(versions())[:3]
    ['geodp', 'python', 'system']
    """
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    first = {"geodp": __version__, "python": platform.python_version(), "system": system}
    return first | {name: _version(name) for name in (*_NEEDED, *_EXTRAS)} | _libraries()


def show_versions() -> None:
    """Print what :func:`versions` returns, for a bug report.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    geodp           ...
    python          ...
    """
    for name, found in versions().items():
        print(f"{name:<15} {found or '-'}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _libraries() -> dict[str, str | None]:
    """Return the versions of the C libraries, which decide what files and systems of coordinates are known."""
    import pyogrio
    import pyproj
    import shapely

    return {
        "GDAL": pyogrio.__gdal_version_string__,
        "GEOS": shapely.geos_version_string,
        "PROJ": pyproj.proj_version_str,
    }
