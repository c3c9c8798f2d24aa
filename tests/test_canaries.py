"""Nothing of a row comes out anywhere: not in what is released or written, not in what is said on the way.

Rows are full of values that stand nowhere else; every way out is searched for them in all their forms. Exact numbers
get a long one added just before the noise, which is of the order 1e15, so that no noised one looks like them but by
chance (below 1e-8 for each release).
"""

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from canaries import MARK, PLACES, VALUES, quoting
from canary_net import Net, watched
from canary_releases import (
    ASKED,
    ORDINARY,
    RELEASES,
    attempted,
    few,
    lengthen,
    rows,
    search_drawings,
    search_files,
    search_ledger,
    search_result,
)

import geodp
from geodp import progress
from geodp.grids import h3


@pytest.fixture
def net(request):
    return Net(moved=any(word in request.node.name for word in ("perturb", "remapped")))


@pytest.fixture(autouse=True)
def _bars_at_once(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)
    h3._domain.cache_clear()


@pytest.fixture
def book(tmp_path, request):
    replaced = "replaced" in request.node.name
    more = {"neighboring": "replace_one"} if replaced else {}
    return geodp.Ledger(tmp_path / "city.ledger", eps=3, delta="9e-4", unit="rider", **more)


DRAWN = {"h3", "mean", "centroid", "perturb"}


@pytest.mark.sampled(rate=1e-8)
@pytest.mark.parametrize("name", RELEASES)
def test_no_release_shows_anything_of_a_row(name, net, book, tmp_path, capfd, monkeypatch):
    lengthen(monkeypatch, net)
    moved = name in ("perturb", "remapped")  # which returns row by row
    some = rows().iloc[-300:] if moved else rows()
    with watched(net, "release", capfd):
        result = RELEASES[name](some, ledger=book, label="tonight")
        again = RELEASES[name](some, ledger=book, label="tonight")
    with watched(net, "afterwards", capfd):
        search_result(net, again)
        for frame in search_result(net, result):
            search_files(net, frame, tmp_path, [end for end in ORDINARY if not moved or end != ".fgb"])
            if name in DRAWN:
                search_drawings(net, frame, tmp_path)
        search_ledger(net, book)
    net.check()


# Rows that cannot be used, frames that do not fit ---------------------------------------------------------

TROUBLES = {
    "swapped": lambda f: f.set_geometry(
        gpd.points_from_xy([40.74839201746] * len(f), -73.98765432101, crs=4326)
    ),
    "no CRS": lambda f: f.set_crs(None, allow_override=True),
    "another CRS": lambda f: f.set_crs(32618, allow_override=True),
    "a CRS of heights": lambda f: f.set_crs("EPSG:5703", allow_override=True),
    "a CRS of its own": lambda f: f.set_crs("+proj=utm +zone=18", allow_override=True),
    "feet": lambda f: f[f.geometry.geom_type == "Point"].to_crs(2263),
    "lines": lambda f: f.set_geometry(f.geometry.union(shapely.LineString(PLACES))),
    "no points": lambda f: f.set_geometry([None] * len(f), crs=4326),
    "no geometry": lambda f: pd.DataFrame(f),
    "geometry lost": lambda f: f.drop(columns="geometry"),
    "no subject": lambda f: f.drop(columns="rider"),
    "subject twice": lambda f: gpd.GeoDataFrame(pd.concat([f, f[["rider"]]], axis=1)),
    "subject in the index": lambda f: f.set_index("rider"),
    "subjects are floats": lambda f: f.assign(rider=VALUES[0]),
    "subjects are times": lambda f: f.assign(rider=f["at"]),
    "subjects are lists": lambda f: f.assign(rider=[[MARK]] * len(f)),
    "subjects are categories": lambda f: f.assign(rider=f["mood"].astype("category")),
    "subjects are points": lambda f: f.assign(rider=f.geometry),
    "values are texts": lambda f: f.assign(minutes=f["mood"]),
    "values are times": lambda f: f.assign(minutes=f["at"]),
    "values are mixed": lambda f: f.assign(
        minutes=pd.Series([MARK, VALUES[0], None] * 99, dtype=object).array[: len(f)]
    ),
    "values are huge": lambda f: f.assign(minutes=f["big"].astype(object) * 10**300),
    "no values": lambda f: f.drop(columns="minutes"),
    "hours are texts": lambda f: f.assign(hour=f["mood"]),
    "hours are times": lambda f: f.assign(hour=f["at"]),
    "hours are lists": lambda f: f.assign(hour=[[MARK]] * len(f)),
    "the index twice": lambda f: pd.concat([f, f]),
    "as it is": lambda f: f,
}


@pytest.mark.parametrize("name", ASKED)
def test_no_frame_makes_a_release_talk(name, net, tmp_path, capfd):
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")
    some, refused = few(), 0
    for trouble in TROUBLES:
        refused += attempted(net, name, TROUBLES[trouble](some), book, trouble, capfd) is not None
        assert not net.found, trouble
    assert 4 <= refused == len(TROUBLES) - len(book.releases())
    search_ledger(net, book)
    net.check()


# Libraries that quote rows where they fail ----------------------------------------------------------------


BEFORE = [
    "geodp.points._coordinates",
    "geodp.release.subjects",
    "geodp.release.clamp",
    "geodp.slots.Slots.codes",
    "geodp.release._values",
    "geodp.queries.count.sampled_pairs",
    "geodp.caps.keys_per_subject",
    "geodp.autoplans.keys_per_subject",
    "geodp.autoplans.Tally.__call__",
    "geodp.locations._first",
]
PAID = [
    "geodp.mechanisms.laws.DiscreteLaplace.sample",
    "geodp.queries.base.add_saturating",
    "geodp.queries.unlisted.add_saturating",
    "geodp.queries.count.Count.columns",
    "geodp.quantiles.choose",
    "geodp.locations.displace",
    "geodp.locations.snap",
]


@pytest.mark.parametrize(
    ("place", "kind"),
    [(place, ValueError) for place in BEFORE + PAID] + [(BEFORE[1], MemoryError), (PAID[0], MemoryError)],
)
def test_no_failure_quotes_a_row(place, kind, net, tmp_path, capfd, monkeypatch):
    """Before the payment and after it, where exact numbers wait for their noise."""
    book = geodp.Ledger(tmp_path / "city.ledger", eps=99, unit="rider")
    some = few()
    monkeypatch.setattr(place, quoting(kind))
    errors = {name: attempted(net, name, some, book, name, capfd) for name in ASKED}
    assert not net.found, sorted({what[1] for what in net.found})
    failed = {name for name, error in errors.items() if error is not None}
    assert failed
    assert all(type(errors[name]) is geodp.GeoDPError for name in failed)
    states = book.releases().set_index("label")["state"].to_dict()
    left = {name for name, state in states.items() if state != "released"}
    assert left == (failed if place in PAID else failed & {"auto"} & set(states))
    search_ledger(net, book)
    net.check()
