"""The shell blocks of the README run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import geodp

ROOT = Path(geodp.__file__).parent.parent


def test_every_shell_block_runs(folder, tmp_path_factory):
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert sum(block.count("geodp ") for block in blocks) >= 5
    tools = tmp_path_factory.mktemp("bin")
    (tools / "geodp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m geodp "$@"\n')
    (tools / "geodp").chmod(0o755)
    paths = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-e", "-u"],
        input="\n".join(blocks),
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Plan: distinct riders" in done.stdout
    assert "Released    distinct riders" in done.stdout
    assert (folder / "heat.geojson").exists()
