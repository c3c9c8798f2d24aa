"""A place for the files of fuzzed calls, and how many calls were made."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hostile import COUNTED


@pytest.fixture(scope="module")
def folder():
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="geodp-", dir=shm if shm.is_dir() else None))
    yield made
    shutil.rmtree(made)


def pytest_terminal_summary(terminalreporter):
    if sum(COUNTED.values()):
        terminalreporter.write_line(
            f"fuzzed calls: {COUNTED['returned']:,} returned, {COUNTED['refused']:,} refused"
        )
