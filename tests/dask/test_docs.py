"""The examples of docs/dask.md run as they stand."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import geodp

PAGE = (Path(__file__).parents[2] / "docs" / "dask.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


def spent(folder):
    return geodp.Ledger(folder / "city.ledger").spent()["eps"]


def test_the_example_in_threads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dask.distributed.Client", lambda **_: nullcontext())
    exec(compile(EXAMPLE, "docs/dask.md", "exec"), {"__name__": "__main__"})
    assert "noisy_count" in capsys.readouterr().out
    assert spent(tmp_path) == 1


@pytest.mark.audit
def test_the_example_on_its_own_cluster(tmp_path):
    (tmp_path / "example.py").write_text(EXAMPLE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "GEODP_TESTING"}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "noisy_count" in done.stdout
    assert spent(tmp_path) == 1
