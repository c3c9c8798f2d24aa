"""Every notebook runs from top to bottom in a copy, shows no row of the data, and is stored small."""

import importlib.util
import re
import zlib
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import nbformat

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXPLAINED = "explained-warning"
MOST_OF_A_FILE, MOST_OF_A_CELL = 300_000, 250_000

spec = importlib.util.spec_from_file_location("execute_notebooks", ROOT / "notebooks" / "execute.py")
execute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(execute)

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """All that a cell shows, but for pictures."""
    for output in cell.outputs:
        yield output.get("text", "")
        yield from (str(data) for kind, data in output.get("data", {}).items() if kind != "image/png")


def said(cell):
    """What a cell writes to stderr; bars come and go with the speed of the machine."""
    written = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr")
    return "\n".join(line for line in re.split(r"[\r\n]+", written) if line.strip() and "%|" not in line)


def ids():
    """Names of all aircraft and storms: what no output may show."""
    flights = pd.read_parquet(DATA / "flights_week1.parquet", columns=["tailnum"])["tailnum"]
    storms = pd.read_csv(DATA / "storms_trim.csv.gz", usecols=["storm_id"])["storm_id"]
    return set(flights.dropna()) | set(storms)


def check_outputs(notebook):
    shown = ids()
    for cell in code_cells(notebook):
        assert all(output.output_type != "error" for output in cell.outputs), cell.id
        assert bool(said(cell)) == (EXPLAINED in cell.metadata.get("tags", [])), (cell.id, said(cell))
        assert len(str(cell.outputs)) < MOST_OF_A_CELL, cell.id
        words = set(re.findall(r"[\w-]+", " ".join(texts(cell))))
        assert not words & shown, cell.id


@each_notebook
def test_a_notebook_runs_and_shows_nothing_it_should_not(path, tmp_path, monkeypatch):
    monkeypatch.delenv("GEODP_TESTING", raising=False)
    folder = execute.copied(tmp_path)
    before = sorted(file for file in tmp_path.rglob("*"))
    # Some in their own folder, some in the checkout's.
    where = folder if zlib.crc32(path.stem.encode()) % 2 else tmp_path
    check_outputs(execute.executed(path, where))
    assert sorted(file for file in tmp_path.rglob("*")) == before


@each_notebook
def test_what_is_stored_is_whole_and_small(path):
    notebook = read(path)
    nbformat.validate(notebook)
    check_outputs(notebook)
    assert path.stat().st_size < MOST_OF_A_FILE
    assert [cell.execution_count for cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    everything = path.read_text(encoding="utf-8")
    assert "execution" not in {key for cell in notebook.cells for key in cell.metadata}
    assert not re.search(r"/home/|/root/|/tmp/|site-packages", everything)


@each_notebook
def test_a_notebook_is_a_lesson(path):
    notebook = read(path)
    first, prose = notebook.cells[0].source, [c.source for c in notebook.cells if c.cell_type == "markdown"]
    assert first.startswith(f"# {path.name[0]}. ")
    assert "**The question.**" in first
    assert "stands for a person" in first or "public facts" in first
    assert any(re.search(r"^## Exercises$", text, re.M) for text in prose)
    assert any(re.search(r"^## Answers$", text, re.M) for text in prose)


def test_all_six_are_listed():
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS] == re.findall(r"\]\((\d_\w+\.ipynb)\)", page)
    assert len(NOTEBOOKS) == 6


def test_a_warning_that_no_text_explains_is_caught():
    cell = nbformat.v4.new_code_cell("...", id="a")
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="drawing: 5%|█\rx.py: UserWarning: y\n")
    ]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    with pytest.raises(AssertionError, match="UserWarning"):
        check_outputs(notebook)
    cell.metadata["tags"] = [EXPLAINED]
    check_outputs(notebook)


def test_a_row_of_the_data_is_caught():
    cell = nbformat.v4.new_code_cell("storms.head(1)", id="a")
    cell.outputs = [
        nbformat.v4.new_output("execute_result", {"text/plain": "0  Amy-1975  27.5"}, execution_count=1)
    ]
    with pytest.raises(AssertionError, match="a"):
        check_outputs(nbformat.v4.new_notebook(cells=[cell]))
