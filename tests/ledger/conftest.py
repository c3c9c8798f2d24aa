"""A place for ledgers: in memory where there is one, since each debit waits for the disk several times."""

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def folder():
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="geodp-", dir=shm if shm.is_dir() else None))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def path(folder):
    return folder / "city.ledger"
