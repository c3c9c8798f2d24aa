"""Run the notebooks and store what they show: ``make notebooks``.

Each runs in a copy of its folder, so that nothing but its outputs is written into the checkout.
"""

import base64
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 300
COLOURS = 96

# Warnings name the file that the kernel keeps a cell in.
_LINE_OF_A_CELL = re.compile(r"^\S*ipykernel_\S*?\.py:(?=\d+: )", re.MULTILINE)


def notebooks() -> list[Path]:
    """Return the notebooks in the order of the course."""
    return sorted(FOLDER.glob("*.ipynb"))


def copied(place: Path) -> Path:
    """Copy what the notebooks read into an empty folder, and return the folder to run them in."""
    shutil.copytree(FOLDER.parent / "tests" / "data", place / "tests" / "data")
    (place / "notebooks").mkdir()
    return place / "notebooks"


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as sockets:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            startup_timeout=TIMEOUT,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            config=_privately(Path(sockets)),
        )
        client.execute()
    return notebook


def _privately(sockets: Path) -> Config:
    """Talk to the kernel through files: a free port may be taken by another kernel that starts meanwhile."""
    if os.name == "nt":
        return Config()
    return Config({"KernelManager": {"transport": "ipc", "ip": str(sockets / "kernel")}})


def stored(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Make small what goes into the repository: pictures of few colours, and nothing about this machine."""
    notebook.metadata["language_info"] = {"name": "python"}
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "image/png" in output.get("data", {}):
            output["data"]["image/png"] = _smaller(output["data"]["image/png"])
        if output.get("name") == "stderr":
            output["text"] = _LINE_OF_A_CELL.sub("line ", output["text"])
    return notebook


def _smaller(png: str) -> str:
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    file = io.BytesIO()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main(words: list[str]) -> None:
    """Run the notebooks whose names hold one of the words; all of them without words."""
    for path in notebooks():
        if words and not any(word in path.name for word in words):
            continue
        with tempfile.TemporaryDirectory() as place:
            nbformat.write(stored(executed(path, copied(Path(place)))), path)
        print(path.name, f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
