"""A slice of the soak: some hundred releases from eight processes, with kills. ``soak.py`` runs as many as asked."""

import pytest
from running import SOAK, check_soak, soaked

pytestmark = pytest.mark.audit


def test_two_hundred_releases_with_kills(path):
    check_soak(soaked("--releases", 200, "--workers", 8, "--every", 0.2, "--place", path), 5)


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
