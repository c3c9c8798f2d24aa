"""Start child.py with the package that is under test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import geodp.ledger


def run(*arguments):
    """Return what ``child.py`` printed for these arguments."""
    root = Path(geodp.ledger.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("child.py")), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
