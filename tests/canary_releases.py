"""Every kind of release of planted rows, and everything that can be made of one, for the net."""

import io
import json
import pickle
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from canaries import COUNTS, people, spiked
from canary_net import watched

import geodp
import geodp.caps
from geodp import autoplans, release, together, writing

__all__ = [
    "ASKED",
    "BOX",
    "ORDINARY",
    "RELEASES",
    "WHO",
    "attempted",
    "few",
    "lengthen",
    "listed",
    "rows",
    "search_drawings",
    "search_files",
    "search_frame",
    "search_ledger",
    "search_result",
    "svg",
]

BOX = (-74.1, 40.6, -73.8, 40.9)
WHO = {"subject": "rider", "cap": 1, "bounds": BOX}
EPS = 1e-15
MINUTES = {"value_bounds": (0, 9000)}
HOURS = {"hour": [0, 1]}
ZONES = gpd.GeoDataFrame(
    {"zone": ["east", "west"]},
    geometry=[shapely.box(-74, 40.6, -73.8, 40.9), shapely.box(-74.1, 40.6, -74, 40.9)],
    crs=4326,
)
# Releases of quite different ways, for what is tried with all of them.
ASKED = ["slots", "mean", "sparse", "auto", "together", "cap", "perturb"]
ORDINARY = ".geojson", ".gpkg", ".fgb", ".parquet", ".csv"


def _together(rows, eps=1e-8, **books):
    views = {
        "map": {"grid": "square:0.1"},
        "mean": {"query": geodp.Mean("minutes", (0, 9000)), "grid": "box"},
    }
    return geodp.release_together(rows, views, eps, **WHO, **books)


def _view(rows, ledger, label, eps=EPS):
    return rows.dp(**WHO, grid="square:0.05", outside="drop", ledger=ledger).heatmap(eps, label=label)


RELEASES = {
    "h3": partial(geodp.heatmap, eps=EPS, grid="h3:5", **WHO),
    "square": partial(geodp.heatmap, eps=EPS, grid="square:0.05", **WHO),
    "metres": partial(geodp.heatmap, eps=EPS, grid="square:10000@32618", **WHO),
    "zones": partial(geodp.heatmap, eps=EPS, subject="rider", cap=1, grid=geodp.Zones(ZONES, "zone")),
    "slots": partial(geodp.heatmap, eps=EPS, grid="h3:5", by=HOURS, **WHO),
    "gaussian": partial(geodp.heatmap, eps=EPS, delta=3e-16, mechanism="gaussian", grid="box", **WHO),
    "levels": partial(geodp.heatmap, eps=4e-15, strategy="levels", grid="square:0.05", **WHO),
    "weighted": partial(geodp.heatmap, eps=1e-13, contribution="weighted", grid="h3:5", **WHO),
    "rescaled": partial(geodp.heatmap, eps=2e-12, rescale=True, grid="h3:5", **WHO),
    "replaced": partial(geodp.heatmap, eps=2e-15, neighboring="replace_one", grid="h3:5", **WHO),
    "sparse": partial(geodp.heatmap, eps=1e-13, cells="sparse", grid="h3:7", **WHO),
    "select": partial(
        geodp.heatmap, eps=1e-12, delta=1e-4, mechanism="laplace", cells="select", grid="h3:7", **WHO
    ),
    "auto": partial(geodp.heatmap, eps=1e-13, **{**WHO, "cap": "auto"}, grid="h3:5"),
    "sum": partial(geodp.sum, column="minutes", eps=1e-8, grid="h3:5", **WHO, **MINUTES),
    "mean": partial(geodp.mean, column="minutes", eps=1e-8, grid="h3:5", by=HOURS, **WHO, **MINUTES),
    "centroid": partial(geodp.centroid, eps=1e-8, grid="h3:5", **WHO),
    "together": _together,
    "view": _view,
    "cap": partial(geodp.choose_cap, eps=1e-3, subject="rider", bounds=BOX, grid="h3:5"),
    "perturb": partial(geodp.perturb, eps_per_km=0.02, subject="rider", max_reports=1),
    "remapped": partial(geodp.perturb, eps_per_km=0.02, subject="rider", max_reports=1, remap=ZONES),
}


@cache
def rows(ids="mixed"):
    return people(ids)


FEW = slice(COUNTS["crowd"] - 40, COUNTS["crowd"] + 80)


def few():
    """Return some of the rows, and all that no release can use."""
    return pd.concat([rows().iloc[FEW], rows().iloc[:41:5], rows().iloc[-6:]])


def lengthen(monkeypatch, net):
    """Add a long number to every exact one from here on, behind the tally and before the noise."""
    honest = release.drawn

    def drawn(plan, exact, mode):
        exact = spiked(exact)
        for measured in plan.measurements:
            if measured.quantity.step != 1 and measured.name in exact:
                net.plant(exact[measured.name].ravel() * float(measured.quantity.step))
        return honest(plan, exact, mode)

    for module in (release, together, autoplans):
        monkeypatch.setattr(module, "drawn", drawn)


def search_frame(net, frame):
    """Throw a released frame into the net: every part of it, and what it says of itself."""
    net.throw("frame", pickle.dumps(frame))
    for name, column in frame.items():
        net.throw(
            "values", np.ascontiguousarray(column.to_numpy()).tobytes() if column.dtype != "geometry" else b""
        )
        net.throw("values", f"{name} {column.tolist()}")
    net.throw(
        "index", [frame.index.tolist(), frame.index.names, frame.columns.tolist(), frame.dtypes.tolist()]
    )
    net.throw("attrs", json.dumps(frame.attrs))
    net.throw("repr", frame.to_string() + frame._repr_html_())
    if isinstance(frame, gpd.GeoDataFrame):
        for order in (0, 1):
            net.throw("geometry", b"".join(filter(None, frame.geometry.to_wkb(byte_order=order))))
    net.throw("record", json.dumps(geodp.record(frame)))
    explained = geodp.explain(frame)
    net.throw("explained", f"{explained} {explained!r}")
    if frame.attrs["geodp"].get("cells") == "all":
        net.throw("explained", f"{geodp.signal(frame)} {geodp.readable(frame).tolist()}")


def search_files(net, frame, folder, formats):
    for suffix in formats:
        net.throw(f"file {suffix}", writing.write(frame, folder / f"heat{suffix}"))
    net.throw("file to_csv", frame.to_csv())
    frame.to_file(folder / "bare.gpkg")
    net.throw("file to_file", folder / "bare.gpkg")


def search_drawings(net, frame, folder):
    search_files(net, frame, folder, (".html", ".png"))
    net.throw("plot", svg(geodp.plot(frame)))
    net.throw("explore", geodp.explore(frame).get_root().render())
    with suppress(ValueError):  # of places, and of slots
        net.throw("compare_maps", svg(geodp.compare_maps(frame, frame)))


def svg(drawn):
    """Return the bytes of a drawing in which texts stay texts."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    figure = np.ravel(drawn)[0]
    figure = getattr(figure, "figure", figure)
    out = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg")
    plt.close("all")
    return out.getvalue()


def search_ledger(net, book):
    """Throw in the file, also what its journal left, and what the ledger tells; of its records the last ones."""
    for place in Path(book._storage.path).parent.glob(f"{book.name}*"):
        net.throw("ledger file", place)
    net.throw("ledger", f"{book!r} {book.spent()} {book.remaining()} {book.metric_spent()}")
    entries = book.releases()
    net.throw("ledger", entries.to_csv() + entries.to_string() + book.verify().to_string())
    for label in entries["label"].iloc[-3:]:
        net.throw("ledger", json.dumps(book.record(label)))


def search_result(net, result):
    """Throw in whatever a release returns, and return its frames."""
    if isinstance(result, geodp.caps.ChosenCap):
        net.throw("cap", f"{result!r} {result.record} {vars(result)}")
        net.throw("cap", pickle.dumps(result))
        return []
    for frame in listed(result):
        search_frame(net, frame)
    return listed(result)


def listed(result):
    return list(result.values()) if isinstance(result, dict) else [result]


def attempted(net, name, frame, book, label, capfd):
    """Release with plain noise; throw in the result or the error, and whatever is said; return the error."""
    plain = {} if name == "perturb" else {"eps": 1}
    error = None
    with watched(net, "attempt", capfd) as heard:
        try:
            for result in listed(RELEASES[name](frame, ledger=book, label=label, **plain)):
                net.throw("result", pickle.dumps(result))
        except (geodp.GeoDPError, ValueError, TypeError, AttributeError, MemoryError) as raised:
            error = raised
            net.throw("error", raised)
    assert all(issubclass(warning.category, geodp.GeoDPWarning) for warning in heard)
    return error
