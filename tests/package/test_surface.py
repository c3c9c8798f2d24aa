"""What ``import geodp`` gives, and what it leaves for later."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import geodp

SOURCE = Path(geodp.__file__)


def imports_for_type_checkers():
    """Return name and module of every import that only type checkers see."""
    tree = ast.parse(SOURCE.read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        found |= {name.name: node.module for name in node.names}
    return found


def test_type_checkers_and_python_agree_on_where_names_live():
    seen = imports_for_type_checkers()
    assert {name: home for name, home in seen.items() if home != "geodp"} == geodp._HOME
    assert {name for name, home in seen.items() if home == "geodp"} == set(geodp._MODULES)
    assert sorted([*geodp._HOME, *geodp._MODULES, "__version__"]) == sorted(geodp.__all__)


@pytest.mark.parametrize("name", geodp.__all__)
def test_every_name_is_there_and_listed(name):
    assert getattr(geodp, name) is not None
    assert name in dir(geodp)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nowhere"):
        _ = geodp.nowhere


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_importing_registers_the_accessor_and_loads_nothing_heavy():
    heavy = (
        "scipy",
        "mpmath",
        "matplotlib",
        "folium",
        "dask",
        "sqlalchemy",
        "click",
        "tqdm",
        "antimeridian",
        "pyarrow",
    )
    code = (
        "import sys, geopandas, h3; before = set(sys.modules); import geodp; new = set(sys.modules) - before; "
        f"print(sorted(new.intersection({heavy!r})), hasattr(geopandas.GeoDataFrame, 'dp'), "
        "len([name for name in new if name.startswith('geodp')]) < 10)"
    )
    assert run(code).stdout.strip() == "[] True True"


def test_everything_can_be_imported_with_a_star():
    assert run("from geodp import *; print(heatmap, mechanisms.laplace, testing.noiseless)").returncode == 0


def test_versions_are_shown(capsys):
    geodp.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["geodp"] == geodp.__version__
    assert {"python", "geopandas", "GDAL", "PROJ", "GEOS"} <= shown.keys()
