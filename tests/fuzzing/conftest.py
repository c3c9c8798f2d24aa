"""A place for the files of fuzzed calls, and how many inputs each kind of target was given."""

import collections
import shutil
import tempfile
from pathlib import Path

import pytest
from hostile import COUNTED

_PROPERTY = "fuzzed"


@pytest.fixture(scope="module")
def folder():
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="geodp-", dir=shm if shm.is_dir() else None))
    yield made
    shutil.rmtree(made)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Put on the report of each test what it counted: reports travel from the workers of xdist, counters do not."""
    before = dict(COUNTED)
    yield
    counted = {name: COUNTED[name] - before[name] for name in COUNTED}
    if sum(counted.values()):
        item.user_properties.append((_PROPERTY, (item.location[2].partition("[")[0], counted)))


def pytest_terminal_summary(terminalreporter):
    totals = collections.defaultdict(collections.Counter)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                if name == _PROPERTY:
                    totals[value[0]].update(value[1])
    for target, counted in sorted(totals.items()):
        _write(terminalreporter, target, counted)
    if totals:
        _write(terminalreporter, "all", sum(totals.values(), collections.Counter()))


def _write(terminalreporter, target, counted):
    returned, refused = counted["returned"], counted["refused"]
    terminalreporter.write_line(
        f"fuzzed: {target:<44}{returned + refused:>9,} inputs, {returned:,} accepted, {refused:,} refused"
    )
