"""A folder with the same trips in every kind of file, and a way to type commands there."""

import json
from dataclasses import dataclass

import pytest

from geodp.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def facts(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys):
    """Type a command; nothing on stdout or stderr before it."""

    def typed(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return typed


@pytest.fixture
def folder(trips, tmp_path, monkeypatch):
    """The current folder: trips as GeoParquet, GeoPackage, FlatGeobuf, GeoJSON, CSV and plain Parquet."""
    monkeypatch.chdir(tmp_path)
    trips.to_parquet("trips.parquet")
    trips.to_file("trips.gpkg")
    trips.to_file("trips.fgb")
    trips.to_file("trips.geojson")
    trips.to_crs(2263).to_parquet("feet.parquet")
    table = trips.assign(lon=trips.geometry.x, lat=trips.geometry.y).drop(columns="geometry")
    table.to_csv("trips.csv", index=False)
    table.to_csv("trips.tsv.gz", index=False, sep="\t")
    table.to_parquet("table.parquet")
    return tmp_path


@pytest.fixture
def ledger(run, folder):
    """A ledger for three releases of eps 1."""
    assert (
        run("ledger", "create", "city.ledger", "--eps", "3", "--delta", "1e-5", "--unit", "rider").code == 0
    )
    return folder / "city.ledger"
