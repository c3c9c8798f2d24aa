"""Plant a mutant, given as JSON in GEODP_MUTANT, while its modules are imported.

:func:`plant` is called by a ``sitecustomize`` that ``test_mutants.py`` puts in the way of the Python it starts,
so the bug is there before anything else, and in whatever further Python that one starts.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

from mutating import Mutant

__all__ = ["plant", "planted"]


class _Loader(SourceFileLoader):
    """Compile the changed text; compiled code on disk is neither read nor written."""

    def __init__(self, mutant: Mutant, name: str, path: str) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str):
        source = self.get_data(self.path).decode("utf-8")
        return compile(self._mutant.source(fullname, source), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path=None, target=None) -> ModuleSpec | None:
        if fullname not in self._mutant.modules:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(self._mutant, fullname, spec.origin)
        return spec


def planted() -> Mutant:
    """Return the mutant of this process."""
    return Mutant.from_json(os.environ["GEODP_MUTANT"])


def plant() -> None:
    """Plant the mutant of this process."""
    mutant = planted()
    early = [module for module in mutant.modules if module in sys.modules]
    assert not early, f"{early} was imported before the mutant was planted"
    sys.meta_path.insert(0, _Finder(mutant))
