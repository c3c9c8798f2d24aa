"""A slice of the soak: some hundred releases from eight processes, with kills. ``soak.py`` runs as many as asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import geodp

ROOT = Path(geodp.__file__).parent.parent
SOAK = Path(__file__).with_name("soak.py")


def soaked(*arguments, script=SOAK):
    done = subprocess.run(
        [sys.executable, str(script), "--json", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def check(facts, least_kills):
    assert facts["wrong"] == []
    assert facts["kills"] >= least_kills
    assert facts["released"] + facts["reserved"] + facts["abandoned"] == facts["debits"] <= facts["labels"]
    assert facts["refused"] == facts["reserved"] + facts["abandoned"]  # paid twice, so as many did not fit


@pytest.mark.audit
def test_two_hundred_releases_with_kills(path):
    check(soaked("--releases", 200, "--workers", 8, "--every", 0.2, "--place", path), 5)


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ("Ledger.store = lambda book, entry, columns: {'entry': entry}", "not paid for and stored"),
        ("os.urandom = lambda n: random.Random(7).randbytes(n)", "the same noise"),
    ],
)
def test_planted_faults_are_found(path, tmp_path, planted, word):
    """Handed out and never stored; the same noise for everybody."""
    text = SOAK.read_text().replace("\nEPS = ", f"\n{planted}\nEPS = ")
    script = tmp_path / "planted.py"
    script.write_text(text)
    facts = soaked("--releases", 20, "--workers", 2, "--every", 1000, "--place", path, script=script)
    assert any(word in wrong for wrong in facts["wrong"]), facts
