"""A pytest plugin for the process that a mutant is planted in: write down which tests failed, and by what."""

import importlib
import json
import os
from pathlib import Path

from planting import planted


class Witness:
    """Keeps each failure's test, phase and kind of exception."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._failures: list[dict[str, str]] = []

    def pytest_exception_interact(self, node, call, report) -> None:
        when = getattr(report, "when", "collect")
        kind = call.excinfo.type.__name__
        self._failures.append({"test": node.nodeid, "when": when, "kind": kind})

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._failures), encoding="utf-8")


def pytest_configure(config) -> None:
    # A mutant that cannot be imported would make any test fail; it ends here, and not as a failed test.
    for module in planted().modules:
        importlib.import_module(module)
    config.pluginmanager.register(Witness(os.environ["GEODP_MUTANT_FAILURES"]))
    _settle_hypothesis()


def _settle_hypothesis() -> None:
    """The same examples each time, and no search for smaller ones: only whether a test fails matters here."""
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutants", settings.default, derandomize=True, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutants")
