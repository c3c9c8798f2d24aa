"""The package as it leaves the house: what is in it, and that it runs where nothing else of this folder is."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import geodp

pytestmark = pytest.mark.audit

ROOT = Path(geodp.__file__).parent.parent
SOURCES = ("geodp", "tests", "benchmarks", "docs", "pyproject.toml", "README.md", "LICENSE", "PRIVACY.md")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build sdist and wheel from a copy, so that nothing is left in the checkout."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in SOURCES:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(
                place, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.gz", "*.parquet")
            )
        elif place.exists():
            shutil.copy(place, copy / name)
    # The wheel is built from the sdist, which proves that it can be.
    build = [sys.executable, "-m", "build", "--outdir", out, copy]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    return out


def assets():
    """What the web page is made of, libraries and their licences included."""
    files = {
        str(path.relative_to(ROOT)) for path in (ROOT / "geodp/maps/assets").rglob("*") if path.is_file()
    }
    assert "geodp/maps/assets/vendor/leaflet/LICENSE" in files
    return files


def names_in_wheel(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist()), file.read(
            next(n for n in file.namelist() if n.endswith("METADATA"))
        ).decode()


def test_the_wheel_holds_the_package_its_licence_and_nothing_else(built):
    names, metadata = names_in_wheel(built)
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "geodp").rglob("*.py")}
    assert modules <= names
    assert "geodp/py.typed" in names
    assert assets() <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"geodp", f"geodp-{geodp.__version__}.dist-info"}
    assert "License-Expression: Apache-2.0 AND BSD-2-Clause AND ISC\n" in metadata
    assert sum("/licenses/geodp/maps/assets/vendor/" in name for name in names) == 4
    assert "Requires-Python: >=3.11" in metadata
    extras = {
        line.removeprefix("Provides-Extra: ") for line in metadata.splitlines() if "Provides-Extra" in line
    }
    assert {"plot", "parquet", "dask", "postgres", "accounting", "cli", "all"} <= extras


def test_the_sdist_holds_what_a_build_needs(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "geodp/py.typed", "geodp/__init__.py"} <= names
    assert assets() <= names


def test_the_wheel_installs_and_releases_a_map_in_a_fresh_environment(built, tmp_path):
    """The environment has its own copy of geodp, and borrows the libraries of this one."""
    (wheel,) = built.glob("*.whl")
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True, timeout=120)
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        fresh / "bin" / "python",
        "install",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*install, wheel], check=True, capture_output=True, timeout=120)
    borrowed = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    code = (
        "import geodp, geopandas as gpd; print(geodp.__file__); "
        "points = gpd.GeoDataFrame({'rider': ['a']}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326); "
        "points.to_parquet('trips.parquet')"
    )
    script = str(fresh / "bin" / "geodp")
    python = str(fresh / "bin" / "python")
    where = subprocess.run(
        [python, "-c", code],
        cwd=tmp_path,
        env=borrowed,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert str(fresh) in where.stdout
    asked = ["--subject", "rider", "--cap", "1", "--bounds", "0,0,1,1", "--grid", "square:0.5", "--eps", "1"]
    done = subprocess.run(
        [script, "heatmap", "trips.parquet", "-o", "heat.geojson", "-o", "heat.html", *asked],
        cwd=tmp_path,
        env=borrowed,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "heat.geojson").exists()
    assert "L.GridLayer" in (tmp_path / "heat.html").read_text()
