"""The table of mutants: small deliberate bugs, as data.

Each entry of ``table/*.toml`` says in one line what the bug would do to people, which text of which module
becomes which other text, and the tests that have to fail then. Nothing here edits a file: :mod:`planting`
changes the text while the module is imported, in a process of its own.
"""

import ast
import json
import re
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("table")
KILL_LIST = Path(__file__).with_name("KILLED.md")


class StaleMutant(Exception):
    """The text to be replaced is not there, or not once: the code has moved on, and so must the table."""


@dataclass(frozen=True)
class Edit:
    """One text of a module, and what it becomes."""

    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        plain = ROOT.joinpath(*self.module.split("."))
        return plain / "__init__.py" if plain.is_dir() else plain.with_suffix(".py")

    def apply(self, source: str) -> str:
        found = source.count(self.old)
        if found != 1:
            raise StaleMutant(f"{self.module} holds this text {found} times, not once:\n{self.old}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutant:
    """One bug: where it belongs, what it does to people, how it is made, and who has to see it."""

    name: str
    part: str
    harm: str
    edits: tuple[Edit, ...]
    killed_by: tuple[str, ...]

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(edit.module for edit in self.edits))

    def to_json(self) -> str:
        """Return the mutant for the process that it is planted in."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Mutant":
        """Return the mutant that :meth:`to_json` wrote."""
        facts = json.loads(text)
        edits = tuple(Edit(**edit) for edit in facts.pop("edits"))
        return cls(**facts, edits=edits)

    def source(self, module: str, source: str) -> str:
        """Return the source of a module with this bug in it."""
        for edit in self.edits:
            source = edit.apply(source) if edit.module == module else source
        return source


@cache
def mutants() -> dict[str, Mutant]:
    """Return all mutants by name, in the order of the table."""
    every = [mutant for path in sorted(TABLE.glob("*.toml")) for mutant in _read(path)]
    names = [mutant.name for mutant in every]
    assert len(set(names)) == len(names), "two mutants have one name"
    return dict(zip(names, every, strict=True))


def _read(path: Path) -> list[Mutant]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_mutant(table["part"], **entry) for entry in table["mutant"]]


def _mutant(part: str, name: str, harm: str, killed_by: list[str], **edit) -> Mutant:
    more = edit.pop("also", [])
    edits = tuple(Edit(**{"module": edit["module"], **each}) for each in [edit, *more])
    return Mutant(name, part, harm, edits, tuple(killed_by))


def named_test(node: str) -> str | None:
    """Return the source of the test function that a node id names; None if there is none."""
    path, _, function = node.partition("::")
    function = re.sub(r"\[.*", "", function)
    if not (ROOT / path).is_file():
        return None
    source = (ROOT / path).read_text(encoding="utf-8")
    return next(
        (
            ast.unparse(part)
            for part in ast.parse(source).body
            if isinstance(part, ast.FunctionDef) and part.name == function
        ),
        None,
    )


def kill_list() -> str:
    """Return the published list, as Markdown."""
    every = mutants().values()
    lines = [
        "# Mutants",
        "",
        f"{len(every)} small deliberate bugs, applied one at a time while the module is imported. Each must make the",
        "tests beside it fail; `make mutants` checks it. This page is written by `python tests/mutants/kill_list.py`.",
    ]
    for part in dict.fromkeys(mutant.part for mutant in every):
        lines += ["", f"## {part}", "", "| mutant | what it would do | killed by |", "|---|---|---|"]
        lines += [_row(mutant) for mutant in every if mutant.part == part]
    return "\n".join([*lines, ""])


def _row(mutant: Mutant) -> str:
    tests = "<br>".join(f"`{node.removeprefix('tests/')}`" for node in mutant.killed_by)
    return " | ".join([f"| `{mutant.name}`", mutant.harm.replace("|", "\\|"), f"{tests} |"])
