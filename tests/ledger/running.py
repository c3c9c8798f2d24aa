"""Start child.py and soak.py with the package that is under test."""

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


SOAK = Path(__file__).with_name("soak.py")


def soaked(*arguments, script=SOAK):
    root = Path(geodp.ledger.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(script), "--json", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def check_soak(facts, least_kills):
    assert facts["wrong"] == []
    assert facts["kills"] >= least_kills
    assert facts["released"] + facts["reserved"] + facts["abandoned"] == facts["debits"] <= facts["labels"]
    assert facts["refused"] == facts["reserved"] + facts["abandoned"]  # paid twice, so as many did not fit
