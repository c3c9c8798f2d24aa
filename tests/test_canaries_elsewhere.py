"""Nothing of a row comes out of a command, a worker, a notebook or after an audit; see test_canaries.py."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from canaries import MARK, PLACES, quoting
from canary_net import Net, watched
from canary_releases import (
    BOX,
    ORDINARY,
    WHO,
    attempted,
    few,
    search_ledger,
    search_result,
)

import geodp
from geodp import progress
from geodp.cli import main


@pytest.fixture
def net():
    return Net()


@pytest.fixture(autouse=True)
def _bars_at_once(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)


@pytest.fixture
def book(tmp_path):
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, unit="rider")


TYPED = ["--subject", "rider", "--cap", "1", "--bounds=-74.1,40.6,-73.8,40.9", "--eps", "1", "--grid", "h3:5"]
NUMBERS = ["--mean", "minutes", "--value-bounds", "0,9000"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The current folder, with the rows in files of every kind, sound and not."""
    monkeypatch.chdir(tmp_path)
    plain = few().iloc[:60].assign(rider=lambda f: f["rider"].astype(str)).reset_index()
    plain = plain.replace(np.inf, 1e308).set_crs(4326)
    plain.attrs = {}
    plain.to_parquet("rows.parquet")
    for name in ("rows.gpkg", "rows.fgb", "rows.geojson"):
        plain.drop(columns="row").to_file(name)
    table = plain.drop(columns="geometry").assign(lon=PLACES[0][0], lat=PLACES[0][1])
    table.to_csv("rows.csv", index=False)
    table.assign(lon=f"{MARK} street").to_csv("streets.csv", index=False)
    table.to_csv("headless.csv", index=False, header=False)
    table.to_parquet("table.parquet")
    plain.set_crs(None, allow_override=True).to_parquet("bare.parquet")
    for name in ("rows.parquet", "rows.gpkg", "rows.fgb", "rows.geojson", "rows.csv"):
        whole = Path(name).read_bytes()
        Path(f"cut.{name}").write_bytes(whole[: len(whole) * 2 // 3])
    return sorted(path.name for path in tmp_path.iterdir())


def typed(net, capfd, *words):
    with watched(net, "command", capfd):
        return main([str(word) for word in words])


def test_no_command_says_anything_of_a_row(files, net, capfd):
    """Of whole files and broken ones; what a release writes is searched as well."""
    books = ["--ledger", "city.ledger", "--label"]
    assert typed(net, capfd, "ledger", "create", "city.ledger", "--eps", 99, "--unit", "rider") == 0
    codes = []
    for i, name in enumerate(files):
        where = ["--lon", "lon", "--lat", "lat"] if "csv" in name or "table" in name else []
        out = (
            [word for end in ORDINARY for word in ("-o", f"heat{end}")]
            if name == "rows.gpkg"
            else ["-o", "heat.csv"]
        )
        json_ = ["--json"] if i % 2 else []
        codes.append(typed(net, capfd, "heatmap", name, *where, *out, *TYPED, *NUMBERS, *json_, *books, name))
        codes.append(typed(net, capfd, "heatmap", name, *where, "-o", "heat.csv", *TYPED, "--by", "mood=0,1"))
        codes.append(typed(net, capfd, "heatmap", name, "-o", "heat.csv", *TYPED, "--subject", "at", *json_))
        codes.append(typed(net, capfd, "heatmap", name, *where, "-o", "heat.csv", *TYPED, "--crs", "3035"))
    assert {0, 4} <= set(codes) <= {0, 2, 4}
    for words in (
        ["ledger", "show", "city.ledger"],
        ["ledger", "verify", "city.ledger"],
        ["show", "heat.geojson"],
    ):
        assert typed(net, capfd, *words) == 0
        assert typed(net, capfd, *words, "--json") == 0
    for path in [*Path().glob("heat*"), *Path().glob("city.ledger*")]:
        net.throw("written file", path)
    net.check()


def test_a_command_that_fails_in_the_middle_says_nothing_of_a_row(files, net, capfd, monkeypatch):
    for place in (
        "geodp.release.subjects",
        "geodp.release.drawn",
        "geodp.reading.gpd.read_parquet",
        "geodp.cli.maps.write",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, quoting(ValueError if place != "geodp.cli.maps.write" else RuntimeError))
            assert typed(net, capfd, "heatmap", "rows.parquet", "-o", "heat.csv", *TYPED, "--json") in (1, 4)
        net.check()


@pytest.fixture
def cluster():
    """Workers in this process, so that all they log is heard."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    quiet = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        dask.config.set({"dataframe.convert-string": False}),  # which ids of many kinds do not survive
        distributed.LocalCluster(**quiet, silence_logs=False) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.mark.usefixtures("cluster")
def test_no_worker_says_anything_of_a_row(net, tmp_path, capfd):
    from dask import dataframe as dd

    import geodp.dask

    some = few().iloc[:-6]
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")

    def part(i, broken):
        if i == broken == 1:
            quoting(ValueError)()
        return some.iloc[i::4].drop(columns="rider") if i == broken == 2 else some.iloc[i::4]

    for broken in range(3):
        rows_of = dd.from_map(part, range(4), broken=broken, meta=some.iloc[:0])
        net.throw("repr", f"{rows_of.dp!r} {rows_of.dp(**WHO)!r}")
        for name in ("mean", "auto", "together"):
            error = attempted(net, name, rows_of, book, f"{name} {broken}", capfd)
            assert getattr(error, "partition", 0) == broken
    search_ledger(net, book)
    net.check()


CELLS = """
    import warnings; import geopandas as gpd, geodp; rows = gpd.read_parquet("rows.parquet")
    geodp.plan(1, **WHO)
    view = rows.dp(**WHO); view
    rows.dp
    heat = view.heatmap(1); heat
    geodp.explain(heat)
    geodp.record(heat)
    geodp.plot(heat);
    geodp.explore(heat)
    book = geodp.Ledger("city.ledger", eps=9, unit="rider"); book
    rows.dp(**WHO, ledger=book).mean("minutes", 1, value_bounds=(0, 9000), label="a")
    book.releases()
    geodp.release_together(rows, {"a": {}}, 1, **WHO)
    geodp.choose_cap(rows, 1, subject="rider", bounds=BOX)
    view.mean("mood", 1, value_bounds=(0, 1))
    view.heatmap(1, by={"mood": [1]})
    rows.set_crs(None, allow_override=True).dp(**WHO).heatmap(1)
    rows.dp.heatmap(1, subject="at", cap=1, bounds=BOX)
    geodp.release.subjects = lambda ids: 1 / int(ids.iloc[0]); view.heatmap(1)
"""


def test_no_output_of_a_notebook_has_anything_of_a_row(files, net, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    where = {**WHO, "grid": "h3:5"}
    sources = [f"WHO, BOX = {where!r}, {BOX!r}", *(line.strip() for line in CELLS.strip().splitlines())]
    cells = [nbformat.v4.new_code_cell(text, metadata={"tags": ["raises-exception"]}) for text in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "asked.ipynb")
    done = _execute().executed(tmp_path / "asked.ipynb", tmp_path)
    failed = [i for i, cell in enumerate(done.cells) if any(o.output_type == "error" for o in cell.outputs)]
    assert failed == [len(sources) - i for i in (5, 4, 3, 2, 1)]
    for cell in done.cells:
        net.throw("notebook", json.dumps(cell.outputs))
    assert sum(len(cell.outputs) > 0 for cell in done.cells) > 15
    net.check()


def _execute():
    path = Path(__file__).parents[1] / "notebooks" / "execute.py"
    spec = importlib.util.spec_from_file_location("execute_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_audit_leaves_no_trace_behind(files, net, book, capfd):
    """What it shows is for the curator; nothing of that is kept, logged, or in the release that follows."""
    some = few()
    before = some.attrs.copy()
    with watched(net, "audit", capfd):
        look = geodp.audit(some, subject="rider", bounds=BOX, grid="square:0.05", value="minutes", delta=1e-6)
        assert look.to_dict()
        view = some.dp(**WHO, grid="square:0.05", ledger=book)
        view.audit()
        search_result(net, view.heatmap(1, label="tonight"))
        net.throw("repr", f"{view!r} {view.plan(1)!r} {some.dp!r} {book!r} {view.policy!r}")
    assert some.attrs == before
    search_ledger(net, book)
    with watched(net, "audit", capfd):
        assert main(["audit", "rows.parquet", *TYPED[:5], "--grid", "h3:5"]) == 0
        net.throw("stderr of an audit", capfd.readouterr().err)
    net.check()
