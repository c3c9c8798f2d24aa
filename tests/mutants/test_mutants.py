"""Every mutant is killed by the tests that are named for it.

A test that has never failed may not be able to. Here each promise is broken on purpose, once, and the
ordinary tests have to say so. That they pass without the bug is the ordinary run.
"""

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mutating import KILL_LIST, ROOT, kill_list, mutants, named_test

EVERY = mutants()

# What a slip of the table, and no promise of the library, would fail by.
_BROKEN = {
    "ImportError",
    "IndentationError",
    "ModuleNotFoundError",
    "NameError",
    "SyntaxError",
    "UnboundLocalError",
}


def run(mutant, folder):
    """Run the named tests with the bug planted; return pytest's exit code, its failures and its words."""
    failures = folder / "failures.json"
    (folder / "sitecustomize.py").write_text("import planting\n\nplanting.plant()\n")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    paths = [folder, Path(__file__).parent, *filter(None, [own.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "witness", "--tb=line"]
    command += ["-x"] if len(mutant.killed_by) == 1 else []
    done = subprocess.run(
        [*command, *mutant.killed_by],
        cwd=ROOT,
        env=own
        | {
            "GEODP_MUTANT": mutant.to_json(),
            "GEODP_MUTANT_FAILURES": str(failures),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = json.loads(failures.read_text()) if failures.exists() else []
    return done.returncode, found, done.stdout + done.stderr


@pytest.mark.mutants
@pytest.mark.parametrize("name", EVERY)
def test_the_named_tests_fail(name, tmp_path):
    mutant = EVERY[name]
    code, failures, words = run(mutant, tmp_path)
    assert code == 1, f"not killed (exit code {code}):\n{words}"
    assert {failure["when"] for failure in failures} == {"call"}, f"it broke a fixture or an import:\n{words}"
    assert not _BROKEN & {failure["kind"] for failure in failures}, (
        f"no bug but a slip of the table:\n{words}"
    )
    for node in mutant.killed_by:
        assert any(_names(node, failure["test"]) for failure in failures), f"{node} passed:\n{words}"


def _names(node, failed):
    return failed == node or failed.startswith(node + "[")


@pytest.mark.mutants
def test_a_change_that_is_no_bug_is_not_killed(tmp_path):
    """The planted fault of this file: with a mutant that changes nothing the same tests pass."""
    mutant = next(iter(EVERY.values()))
    harmless = replace(mutant, edits=tuple(replace(edit, new=edit.old) for edit in mutant.edits))
    code, failures, words = run(harmless, tmp_path)
    assert (code, failures) == (0, []), words


@pytest.mark.parametrize("name", EVERY)
def test_the_text_is_still_there_and_the_bug_is_python(name):
    """A stale mutant is told here, in the ordinary run."""
    mutant = EVERY[name]
    sources = {edit.module: edit.path.read_text(encoding="utf-8") for edit in mutant.edits}
    for module, source in sources.items():
        changed = mutant.source(module, source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("name", EVERY)
def test_it_is_said_in_one_line_and_its_tests_exist(name):
    mutant = EVERY[name]
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert re.fullmatch(r"\S.{20,150}\.", mutant.harm)
    assert mutant.killed_by
    for node in mutant.killed_by:
        assert named_test(node) is not None, node


def test_there_are_many():
    assert len(EVERY) >= 50


def test_the_kill_list_is_that_of_the_table():
    assert KILL_LIST.read_text(encoding="utf-8") == kill_list(), "run python tests/mutants/kill_list.py"
