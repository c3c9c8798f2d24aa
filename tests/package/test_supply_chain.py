"""Nothing that geodp reads is run, nothing is asked of a network, and what it is built on has lower bounds.

The first half reads the source: one rule for each way in which bytes, texts or values become code, commands or SQL,
and for each rule lines that it must catch. The second half hands over files that would run something if any of
them were unpickled or evaluated, and makes releases in a process whose audit hook refuses every socket, command
and unpickling.
"""

import ast
import io
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import tomllib
import zlib
from contextlib import closing, suppress
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import geodp
from geodp.blobs import checksum
from geodp.cli import main
from geodp.errors import GeoDPError, LedgerError

ROOT = Path(geodp.__file__).parent.parent
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "geodp").rglob("*.py"))

# --- what the source may not hold ---------------------------------------------------------------------

LOADERS = {
    "pickle",
    "cPickle",
    "_pickle",
    "marshal",
    "shelve",
    "joblib",
    "cloudpickle",
    "dill",
    "yaml",
    "dbm",
}
COMMANDS = {"subprocess", "pty", "code", "codeop", "runpy", "ctypes", "cffi"}
NETWORK = {"socket", "ssl", "http", "requests", "urllib3", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc"}
NETWORK |= {"urllib.request", "socketserver", "asyncio", "websockets"}
RUNS = {"eval", "exec", "compile", "__import__", "input"}
OF_OS = {"system", "popen", "startfile", "posix_spawn", "posix_spawnp"}
STATEMENTS = {"execute", "executemany", "executescript", "exec_driver_sql", "read_sql", "read_sql_query"}

# Statements that are put together, each with the names of columns or a number that geodp wrote itself.
SQL = {
    ("geodp/storage.py", "f'PRAGMA {pragma}'"),
    ("geodp/storage.py", "f'SET LOCAL lock_timeout = {max(1, round(self._timeout * 1000))}'"),
    ("geodp/storage.py", "statement"),
    ("geodp/storage.py", "self._text(statement)"),
    ("geodp/tables.py", "statement.format(blob=storage.blob)"),
    ("geodp/tables.py", "f\"INSERT INTO geodp_entries ({', '.join(_ENTRY)}) VALUES ({values})\""),
    ("geodp/tables.py", "f\"SELECT {', '.join(_ENTRY)} FROM geodp_entries ORDER BY id\""),
    ("geodp/tables.py", "f\"SELECT {', '.join(_ENTRY)} FROM geodp_entries ORDER BY id LIMIT 1\""),
    ("geodp/tables.py", "f\"SELECT {', '.join(_ENTRY)} FROM geodp_entries WHERE id = :id\""),
    ("geodp/tables.py", "f\"SELECT {', '.join(_RELEASE)} FROM geodp_releases WHERE label = :label\""),
    ("geodp/tables.py", "f\"SELECT {', '.join(names)} FROM geodp_releases ORDER BY entry\""),
    ("geodp/maps/plotting.py", "figure"),  # matplotlib's layout engine
}
# Modules whose name is no constant where they are imported: geodp's own, and the two of the plot extra.
IMPORTED = {
    ("geodp/__init__.py", "f'geodp.{name}'"),
    ("geodp/__init__.py", "_HOME[name]"),
    ("geodp/maps/plotting.py", "package"),
}


def found(source, name="geodp/x.py"):
    """Return the rules that a module breaks, and the put-together statements and imports that it has."""
    broken, listed = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            broken |= {_module(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            broken |= {_module(f"{node.module}.{alias.name}") for alias in node.names} | {
                _module(node.module)
            }
        elif isinstance(node, ast.Call):
            rule, text = _call(node)
            if text is not None and (name, text) in (SQL | IMPORTED):
                listed.add((name, text))
            else:
                broken.add(rule)
    return broken - {None}, listed


def _module(name):
    parents = {name, name.partition(".")[0]}
    for rule, names in (("loads objects", LOADERS), ("runs commands", COMMANDS), ("network", NETWORK)):
        if parents & names:
            return rule
    return None


def _call(node):
    """Return the rule that a call breaks, and for statements and imports the text of what was put together."""
    target = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    keywords = {word.arg: word.value for word in node.keywords}
    first = node.args[0] if node.args else next(iter(keywords.values()), None)
    if not owner and target in RUNS:
        return "runs texts", None
    if owner == "os" and (target in OF_OS or target.startswith(("exec", "spawn"))):
        return "runs commands", None
    if "shell" in keywords:
        return "runs commands", None
    if target in {"read_pickle", "to_pickle", "read_hdf"} or (owner in {"np", "numpy"} and target == "load"):
        safe = isinstance(off := keywords.get("allow_pickle"), ast.Constant) and off.value is False
        return (None if safe else "loads objects"), None
    if "allow_pickle" in keywords and ast.unparse(keywords["allow_pickle"]) != "False":
        return "loads objects", None
    if (owner and target == "eval") or (target == "query" and not owner.startswith("shapely.STRtree(")):
        return "runs texts", None
    if target in STATEMENTS and not _constant(first):
        return "puts SQL together", ast.unparse(first) if first is not None else ""
    if target == "import_module" and not _constant(first):
        return "imports by name", ast.unparse(first)
    if target == "import_module":
        return _module(first.value), None
    return ("network" if target in {"urlopen", "urlretrieve", "create_connection"} else None), None


def _constant(node):
    if isinstance(node, ast.IfExp):
        return _constant(node.body) and _constant(node.orelse)
    return isinstance(node, ast.Constant)


PLANTED = {
    "loads objects": [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "import shelve, os",
        "from joblib import load",
        "import cloudpickle",
        "import yaml",
        "from importlib import import_module\nimport_module('pickle')",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, None, allow_pickle=flag)",
        "anything(path, allow_pickle=not False)",
        "pd.read_pickle(path)",
    ],
    "runs texts": [
        "eval(text)",
        "exec(text, {})",
        "compile(text, 'x', 'eval')",
        "__import__(name)",
        "pd.eval(text)",
        "frame.eval(text)",
        "frame.query(text)",
        "frame[columns].query('a > 1')",
    ],
    "runs commands": [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system(text)",
        "import os\nos.popen(text)",
        "import os\nos.execvp(name, names)",
        "run(text, shell=True)",
        "import ctypes",
    ],
    "network": [
        "import socket",
        "import urllib.request",
        "from urllib.request import urlopen",
        "from urllib import request",
        "import requests",
        "from http import client",
        "from http.client import HTTPSConnection",
        "def f():\n    import urllib3",
        "urlopen(place)",
    ],
    "puts SQL together": [
        "connection.execute(f'SELECT * FROM x WHERE label = {label!r}')",
        "connection.execute('SELECT * FROM x WHERE label = %s' % label)",
        "connection.execute('SELECT * FROM x WHERE label = ' + label)",
        "connection.execute('SELECT {}'.format(label))",
        "connection.executescript(text)",
        "connection.execute(statement=text)",
        "connection.execute('SELECT 1' if plain else text)",
    ],
    "imports by name": ["import importlib\nimportlib.import_module(facts['driver'])"],
}
CLEAN = [
    "import json, tomllib, re\nre.compile('x')",
    "from urllib.parse import urlsplit",
    "np.load(path, allow_pickle=False)",
    "connection.execute('SELECT 1', {'label': label})",
    "connection.execute('BEGIN IMMEDIATE' if write else 'BEGIN')",
    "shapely.STRtree(shapes).query(shapes)",
]


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in PLANTED.items() for text in texts]
)
def test_each_rule_catches_what_it_is_for(rule, text):
    assert found(text)[0] == {rule}


@pytest.mark.parametrize("text", CLEAN)
def test_no_rule_catches_what_is_harmless(text):
    assert found(text) == (set(), set())


@pytest.mark.parametrize("name", SOURCES)
def test_no_module_runs_what_it_reads(name):
    assert found((ROOT / name).read_text(encoding="utf-8"), name)[0] == set()


def test_the_statements_that_are_put_together_are_all_listed_and_all_there():
    there = set().union(*(found((ROOT / name).read_text(encoding="utf-8"), name)[1] for name in SOURCES))
    assert there == SQL | IMPORTED


# --- files that would run something -------------------------------------------------------------------

WHO = {"subject": "rider", "cap": 1, "bounds": (0, 0, 1, 1), "grid": "square:0.5"}


class Bomb:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def mark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield str(tmp_path / "executed")
    assert not (tmp_path / "executed").exists()


def bombs(mark):
    """Return bytes that run something in one reader or another."""
    array = io.BytesIO()
    np.save(array, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    plain = [pickle.dumps(Bomb(mark), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    yaml = f"!!python/object/apply:os.mkdir ['{mark}']".encode()
    python = f"__import__('os').mkdir('{mark}')".encode()
    return [*plain, array.getvalue(), yaml, python, f"$(mkdir {mark})".encode()]


def points():
    return gpd.GeoDataFrame({"rider": ["a"]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)


def texts(mark):
    return [bomb.decode("latin-1") for bomb in bombs(mark)]


def test_the_bombs_go_off_where_they_can(tmp_path):
    """Otherwise the tests below would show nothing."""
    plain, array = bombs(str(tmp_path / "executed"))[0], bombs(str(tmp_path / "executed"))[-4]
    for read in (
        lambda: pickle.loads(plain),
        lambda: np.load(io.BytesIO(array), allow_pickle=True),
        lambda: eval(bombs(str(tmp_path / "executed"))[-2]),
    ):
        read()
        assert (tmp_path / "executed").is_dir()
        (tmp_path / "executed").rmdir()


def headed(bomb):
    """Return a bomb where a column of objects would stand in a blob."""
    head = json.dumps({"format": 1, "columns": [{"name": "count", "dtype": "|O", "length": 1}]}).encode()
    return len(head).to_bytes(8, "little") + head + bomb


def test_hostile_blobs_of_a_ledger_do_nothing(mark):
    book = geodp.Ledger("x.ledger", eps=3)
    geodp.heatmap(points(), 1, **WHO, ledger=book, label="a")
    for bomb in bombs(mark):
        for blob in (bomb, zlib.compress(bomb), zlib.compress(headed(bomb))):
            with closing(sqlite3.connect("x.ledger")) as connection, connection:
                connection.execute("UPDATE geodp_releases SET data = ?, digest = ?", (blob, checksum(blob)))
            with pytest.raises(LedgerError, match="damaged"):
                geodp.heatmap(points(), 1, **WHO, ledger=book, label="a")
            assert len(book.verify())


@pytest.mark.parametrize("column", ["record", "charge", "total", "tier", "reason", "kind"])
def test_hostile_texts_in_a_ledger_do_nothing(column, mark):
    book = geodp.Ledger("x.ledger", eps=3)
    geodp.heatmap(points(), 1, **WHO, ledger=book, label="a")
    for text in texts(mark):
        for value in (text, json.dumps({"py/reduce": [{"py/function": "os.mkdir"}, [mark]], "eps": text})):
            with closing(sqlite3.connect("x.ledger")) as connection, connection:
                connection.execute("PRAGMA ignore_check_constraints = ON")
                connection.execute(f"UPDATE geodp_entries SET {column} = ?", (value,))
            for call in (
                book.verify,
                book.releases,
                book.spent,
                lambda: book.record("a"),
                lambda: repr(book),
            ):
                with suppress(GeoDPError):
                    call()


def test_hostile_records_do_nothing(mark):
    heat = geodp.heatmap(points(), 1, **WHO)
    for text in [*texts(mark), json.dumps({"py/object": "os.mkdir", "args": [mark]})]:
        for name in heat.attrs["geodp"]:
            frame = heat.copy()
            frame.attrs["geodp"] = {**frame.attrs["geodp"], name: text}
            for call in (geodp.record, geodp.explain, geodp.signal):
                with pytest.raises((GeoDPError, ValueError, TypeError)):
                    call(frame)


def parquet(content, path, mark, bomb):
    """Write a parquet file that carries a bomb in its metadata, and in a field that asks to be unpickled."""
    import pyarrow as pa
    import pyarrow.parquet

    table = content.to_arrow(geometry_encoding="WKB") if hasattr(content, "to_arrow") else content
    table = pa.table(table)
    unpickled = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": bomb}
    field = pa.field("more", pa.int64(), metadata=unpickled)
    table = table.append_column(field, pa.array([1] * len(table), pa.int64()))
    keys = (b"PANDAS_ATTRS", b"geodp", b"pandas", b"geo")
    for broken in ((), *((key,) for key in keys)):
        held = {key: bomb if key in broken else value for key, value in (table.schema.metadata or {}).items()}
        held |= dict.fromkeys(broken, bomb)
        pyarrow.parquet.write_table(table.replace_schema_metadata(held), path)
        yield path


@pytest.mark.filterwarnings("ignore:pickle-based deserialization:RuntimeWarning")
def test_hostile_metadata_of_a_parquet_file_does_nothing(mark, capsys):
    """pyarrow before 14.0.1 unpickled extension types on reading (CVE-2023-47248); the lower bound is above."""
    places = geodp.heatmap(points(), 1, **WHO).reset_index()
    who = ["--subject", "rider", "--cap", "1", "--eps", "1", "--bounds", "0,0,1,1", "--grid", "box"]
    for bomb in bombs(mark):
        for path in parquet(places, "x.parquet", mark, bomb):
            assert main(["show", path]) in (0, 2, 3, 4)
            with pytest.raises(GeoDPError):
                geodp.read_release(path)
            assert main(["heatmap", path, "-o", "heat.geojson", *who]) in (0, 2, 3, 4)
            assert main(["audit", path, *who[:4], *who[6:], "--quiet"]) in (0, 2, 3, 4)
    assert "Traceback" not in capsys.readouterr().err


CONFIG = {"subject": "rider", "cap": 1, "eps": 1, "bounds": "0,0,1,1", "grid": "square:0.5"}


def test_hostile_configs_do_nothing(mark, capsys):
    """A text for one option after the other, and a file that is nothing but the text."""
    for text in texts(mark):
        for name in (*CONFIG, "delta", "by", "zones", "mechanism", "population", text):
            lines = [
                f"{json.dumps(key)} = {json.dumps(value)}" for key, value in (CONFIG | {name: text}).items()
            ]
            Path("x.toml").write_text("\n".join(lines), encoding="utf-8")
            assert main(["plan", "--config", "x.toml"]) in ((0, 2) if name == "subject" else (2, 4))
        Path("x.toml").write_bytes(text.encode("latin-1"))
        assert main(["plan", "--config", "x.toml"]) in (2, 4)
    assert "Traceback" not in capsys.readouterr().err


# --- no network, no commands --------------------------------------------------------------------------

HOOK = """
import sys
REFUSED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pickle.",
           "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")
def hook(event, arguments):
    if event.startswith(REFUSED):
        raise BaseException(f"refused: {event} {arguments}")
"""
RELEASES = """
import warnings; warnings.simplefilter("ignore")
points = gpd.GeoDataFrame({"rider": ["a"], "fare": [3.0]}, geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
who = {"subject": "rider", "cap": 1, "bounds": (0, 0, 1, 1)}
book = geodp.Ledger("x.ledger", eps=30, delta=1e-6)
for again in range(2):
    heat = geodp.heatmap(points, 1, **who, grid="square:0.5", ledger=book, label="a")
    geodp.mean(points, "fare", 1, **who, grid="h3:3", value_bounds=(0, 9), ledger=book, label="b")
    geodp.perturb(points, 1, subject="rider", max_reports=1, ledger=book, label="c")
geodp.heatmap(points, 1, **who, grid="square:20000@3857", delta=1e-6, mechanism="gaussian")
geodp.to_geojson(heat, "x.geojson")
print(len(book.verify()), geodp.explain(heat)[:3])
"""
CONTROLS = [
    "import socket; socket.socket()",
    "import socket; socket.getaddrinfo('localhost', 80)",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "import pickle; pickle.loads(pickle.dumps(print))",
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
]


def hooked(code, tmp_path):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("code", CONTROLS)
def test_the_hook_refuses(code, tmp_path):
    assert "refused: " in hooked(f"{HOOK}\nsys.addaudithook(hook)\n{code}", tmp_path).stderr


def test_importing_opens_no_socket_and_runs_no_command(tmp_path):
    """geodp alone: what geopandas does when it is imported is its own."""
    code = f"{HOOK}\nimport geopandas, h3\nsys.addaudithook(hook)\nimport geodp\nprint('done')"
    done = hooked(code, tmp_path)
    assert done.stdout.strip() == "done", done.stderr


def test_releases_open_no_socket_run_no_command_and_unpickle_nothing(tmp_path):
    """With a ledger, a replay from it, and a file; the libraries that are loaded on the way are loaded before."""
    code = f"{HOOK}\nimport geopandas as gpd, h3, scipy.special, mpmath, geodp\nsys.addaudithook(hook)\n{RELEASES}"
    done = hooked(code, tmp_path)
    assert done.stdout.startswith("0 "), done.stderr


# --- what geodp is built on ---------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUNTIME = [name for name in EXTRAS if name not in ("all", "docs", "recipes", "test", "bench")]
# Not required by geodp itself: what the oldest versions need to run with each other.
WITH_THEM = {"distributed", "pyparsing", "pyproj"}


def requirements(*lists):
    return [one for texts in lists for one in map(Requirement, texts) if one.name != "geodp"]


def lowest(requirement):
    """Return the lower bound of a requirement; none if it has none."""
    bounds = [part.version for part in requirement.specifier if part.operator in (">=", "==", "~=")]
    return Version(bounds[0]) if bounds else None


def pins(text):
    return {
        line.partition("==")[0]: Version(line.partition("==")[2])
        for line in text.splitlines()
        if line and not line.startswith("#")
    }


def unbounded(*lists):
    return sorted(one.name for one in requirements(*lists) if lowest(one) is None)


def astray(required, pinned):
    """Return what is pinned to another version than its lower bound, or is not pinned, or is not required."""
    bounds = {one.name: lowest(one) for one in required}
    wrong = {name for name, version in bounds.items() if pinned.get(name) != version}
    return sorted(wrong | (pinned.keys() - bounds.keys() - WITH_THEM))


def test_every_requirement_has_a_lower_bound():
    assert (
        unbounded(PROJECT["project"]["dependencies"], PROJECT["build-system"]["requires"], *EXTRAS.values())
        == []
    )
    assert unbounded(["a>=1", "b", "c<2", "d!=1"]) == ["b", "c", "d"]


def test_the_oldest_versions_are_tested_as_they_are_allowed():
    text = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    required = requirements(PROJECT["project"]["dependencies"], *(EXTRAS[name] for name in RUNTIME))
    assert astray(required, pins(text)) == []
    assert astray(required, pins(text.replace("h3==4.2.0", "h3==4.2.1"))) == ["h3"]
    assert astray(required, pins(re.sub("scipy==.*", "", text))) == ["scipy"]
    assert astray(required, pins(text + "\nsix==1.0")) == ["six"]


def test_the_requirements_of_one_package_agree():
    bounds = {}
    for one in requirements(PROJECT["project"]["dependencies"], *EXTRAS.values()):
        assert bounds.setdefault(one.name, lowest(one)) == lowest(one), one.name


MODULES = {"dp-accounting": "dp_accounting", "dask-geopandas": "dask_geopandas"}


def test_a_release_needs_no_extra(tmp_path):
    """Every package of every extra taken away: import, release, ledger and GeoJSON go on."""
    names = {MODULES.get(one.name, one.name) for one in requirements(*(EXTRAS[name] for name in RUNTIME))}
    assert {"pyarrow", "matplotlib", "click", "sqlalchemy", "dask", "pyogrio"} <= names
    away = f"""
import sys
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(names)}:
            raise ImportError(f"{{name}} is away")
sys.meta_path.insert(0, Away())
"""
    done = hooked(f"{away}\nimport geopandas as gpd, geodp\n{RELEASES}", tmp_path)
    assert done.stdout.startswith("0 "), done.stderr
