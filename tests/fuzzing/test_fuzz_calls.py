"""Every public call, with arguments of every kind: an error of geodp's own, and nothing spent or told.

The ordinary suite makes some hundred calls, the same ones each time. ``pytest -m fuzz tests/fuzzing`` makes other
and more calls each time, and ``FUZZ=100 pytest -m fuzz tests/fuzzing`` a hundred times as many.
"""

import tempfile
import warnings
from fractions import Fraction

import geopandas as gpd
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shapely
from hostile import MARK, NAMES, TRICKS, arguments, frames, judged, junk, marks_in, much, some
from hypothesis import assume, given
from hypothesis import strategies as st

import geodp
from geodp import mechanisms
from geodp.accounting import Charge
from geodp.errors import GeoDPWarning

mpl.use("agg")

BOX = (-74.05, 40.68, -73.9, 40.82)
WHO = {"subject": "rider", "cap": 2, "bounds": BOX, "grid": "square:0.05"}
WAYS = {
    "mechanism": ["auto", "laplace", "gaussian"],
    "criterion": ["std", "max_error"],
    "estimator": ["pyramid", "shrink", "median", "norm_sub", "clamp"],
}
MORE = WAYS | {
    "rows_per_cell": [1, 3],
    "contribution": ["sample", "weighted"],
    "neighboring": ["add_remove_one", "replace_one"],
    "population": [None, 1000],
    "outside": ["clamp", "drop"],
    "by": [None, {"hour": range(3)}, {"hour": [1, 2], "rider": ["a", "b"]}],
    "subject": ["rider", geodp.EACH_ROW, None, "hour", *TRICKS, *NAMES],
    "cap": [1, 4, None, "auto"],
    "bounds": [BOX, None, (-180, -90, 180, 90), (179, -1, -179, 1), (0, 0, 1e-9, 1e-9)],
    "grid": ["h3:2", "h3:5@", "square:0.1", "square:20000@3857", "box", "h3:15", None],
    "eps": [1, "0.1", Fraction(1, 3), np.float64(2)],
    "delta": [0, 1e-6, "1e-9"],
}
HOW = MORE | {
    "strategy": ["flat", "levels"],
    "cells": ["all", "sparse", "select"],
    "threshold": [None, 3, 10],
    "phantoms": [None, 1, "0.5"],
    "rescale": [False, True, 8],
    "return_geometry": [True, False],
}


def trips():
    """Five rows that could be released, with marks in them."""
    places = gpd.points_from_xy(
        [-73.9871234567, -73.97, -73.95, -74.0, 0.0], [40.7491234567, 40.75, 40.7, 40.7, 0.0]
    )
    columns = {"rider": [MARK, MARK, "b", None, "c"], "minutes": [7319157.25, 1.0, 2.0, np.nan, 3.0]}
    return gpd.GeoDataFrame({**columns, "hour": [0, 1, 2, 3, 918273645]}, geometry=places, crs=4326)


TRIPS = trips()
SQUARES = gpd.GeoDataFrame(
    {"zone": ["a", "b"]},
    geometry=[shapely.box(-74.1, 40.6, -73.97, 40.9), shapely.box(-73.97, 40.6, -73.8, 40.9)],
    crs=4326,
)
HEAT = geodp.heatmap(TRIPS, 1, **WHO)
SLOTTED = geodp.heatmap(TRIPS, 1, **WHO, by={"hour": range(3)})
BOOKS = {"retry": [False, True], "reason": [None, "reviewed", *TRICKS]}

RELEASES = {
    "heatmap": (geodp.heatmap, {"eps": 1, **WHO}, HOW | BOOKS),
    "sum": (geodp.sum, {"column": "minutes", "eps": 1, "value_bounds": (0, 60), **WHO}, MORE | BOOKS),
    "mean": (geodp.mean, {"column": "minutes", "eps": 1, "value_bounds": (0, 60), **WHO}, MORE | BOOKS),
    "centroid": (geodp.centroid, {"eps": 1, **WHO}, MORE | BOOKS | {"n": [None, 5]}),
    "choose_cap": (
        geodp.choose_cap,
        {"eps": 1, **{k: v for k, v in WHO.items() if k != "cap"}},
        {
            k: v
            for k, v in MORE.items()
            if k not in WAYS and k not in ("cap", "delta", "rows_per_cell", "contribution")
        }
        | BOOKS
        | {"candidates": [(1, 2), [1, 4, 16]], "quantile": [0.5, "0.9"]},
    ),
    "perturb": (
        geodp.perturb,
        {"eps_per_km": 2, "subject": "rider", "max_reports": 2},
        BOOKS
        | {"snap_m": [1, 10], "keep": [(), ["hour"]], "remap": [None, "h3:6", SQUARES], "subject": [None]},
    ),
    "release_together": (
        geodp.release_together,
        {"views": {"a": {"grid": "square:0.1"}, "b": {}}, "eps": 1, **WHO},
        {k: v for k, v in MORE.items() if k not in ("by", "estimator")}
        | BOOKS
        | {
            "weights": [None, {"a": 1, "b": 2}, [1, 2]],
            "views": [{"a": {}}, {"a": {"query": geodp.Centroid()}}],
        },
    ),
}

PLANS = {
    "plan": (
        geodp.plan,
        {"eps": 1, **WHO},
        HOW | {"query": [geodp.Count(), geodp.Centroid(), geodp.Sum("minutes", (0, 1))]},
    ),
    "compare_plans": (
        geodp.compare_plans,
        {"eps": [0.5, 1], **WHO},
        MORE | {"cells_each": [1, 3], "cap": [[1, 2]], "grid": [["h3:2", "h3:1"]]},
    ),
    "plan_together": (
        geodp.plan_together,
        {"views": {"a": {"grid": "square:0.1"}, "b": {}}, "eps": 1, **WHO},
        {k: v for k, v in MORE.items() if k not in ("by", "estimator")}
        | {"weights": [None, {"a": 1, "b": 2}, [1, 2]]},
    ),
    "choose_mechanism": (
        geodp.choose_mechanism,
        {"l1": 4, "l2": 2, "eps": 1, "delta": 1e-6},
        {
            "cells": [None, 100],
            "releases": [1, 365],
            "accountant": [None, "both", "zcdp"],
            "population": [1000],
        }
        | {"criterion": ["std", "max_error"]},
    ),
    "compose": (geodp.compose, {"releases": [Charge(Fraction(1))], "delta": 1e-6}, {}),
    "delta_for": (geodp.delta_for, {"population": 1000}, {}),
    "expected_displacement_m": (geodp.expected_displacement_m, {"eps_per_km": 1}, {}),
    "radius_quantile_m": (geodp.radius_quantile_m, {"eps_per_km": 1, "p": 0.5}, {}),
    "Policy": (
        geodp.Policy,
        WHO,
        {k: v for k, v in MORE.items() if k not in WAYS and k not in ("by", "eps", "delta")},
    ),
    "H3": (geodp.H3, {"resolution": 3}, {}),
    "Square": (geodp.Square, {"cell_size": "0.1"}, {"crs": [None, 3857, "EPSG:3035"]}),
    "Zones": (geodp.Zones, {"gdf": SQUARES, "key": "zone"}, {"overlap": ["first", "count", "raise"]}),
    "Count": (geodp.Count, {}, {"rescaling": []}),
    "Sum": (geodp.Sum, {"column": "minutes", "value_bounds": (0, 60)}, {"clip": [None, 30]}),
    "Mean": (geodp.Mean, {"column": "minutes", "value_bounds": (0, 60)}, {}),
    "Centroid": (geodp.Centroid, {"n": 5}, {}),
    "Charge": (Charge, {"eps": 1}, {"delta": [0], "rho": [None], "delta_select": [0]}),
    "Budget": (geodp.Budget, {"eps": 1, "delta": 0, "rho": 1, "mechanism": "laplace"}, {"book": ["basic"]}),
    "laplace": (
        mechanisms.laplace,
        {"values": [1, 2], "l1": 1, "eps": 1},
        {"lattice": [None, 0.5], "neighboring": ["replace_one"]},
    ),
    "gaussian": (
        mechanisms.gaussian,
        {"values": [1, 2], "l2": 1, "eps": 1, "delta": 1e-6},
        {"lattice": [None, 0.5], "neighboring": ["replace_one"]},
    ),
    "discrete_laplace": (mechanisms.discrete_laplace, {"scale": 1, "size": 3}, {}),
    "rounded_gaussian": (mechanisms.rounded_gaussian, {"sigma": 1, "size": 3}, {}),
    "classic_gaussian_sigma": (mechanisms.classic_gaussian_sigma, {"l2": 1, "eps": 1, "delta": 1e-6}, {}),
    "gaussian_delta": (mechanisms.gaussian_delta, {"l2": 1, "sigma": 1, "eps": 1}, {}),
    "gaussian_sigma": (mechanisms.gaussian_sigma, {"l2": 1, "eps": 1, "delta": 1e-6}, {}),
    "laplace_scale": (mechanisms.laplace_scale, {"l1": 1, "eps": 1}, {}),
    "sigma_from_zcdp": (mechanisms.sigma_from_zcdp, {"l2": 1, "rho": 1}, {}),
    "zcdp_epsilon": (mechanisms.zcdp_epsilon, {"rho": 1, "delta": 1e-6}, {}),
    "zcdp_epsilon_textbook": (mechanisms.zcdp_epsilon_textbook, {"rho": 1, "delta": 1e-6}, {}),
    "zcdp_rho": (mechanisms.zcdp_rho, {"l2": 1, "sigma": 1}, {}),
    "zcdp_rho_from_epsilon": (mechanisms.zcdp_rho_from_epsilon, {"eps": 1, "delta": 1e-6}, {}),
    "DiscreteLaplace": (mechanisms.DiscreteLaplace, {"scale": 1.0}, {}),
    "RoundedGaussian": (mechanisms.RoundedGaussian, {"sigma": 1.0}, {}),
    "noiseless": (lambda **k: geodp.testing.noiseless(**k).__enter__, {"key": 0}, {}),
    "seeded": (lambda **k: geodp.testing.seeded(**k).__enter__, {"seed": 0}, {}),
}

SHOWN = {
    "column": [None, "noisy_count"],
    "rule": ["fdr"],
    "level": [0.9],
    "error": [True],
    "cmap": [None, "viridis"],
}


def drawn(call):
    """Draw, and let go of the figure: matplotlib keeps every one."""

    def draw(**asked):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a font need not have every character
        try:
            call(**asked)
        finally:
            plt.close("all")

    return draw


def written(call, ending):
    """Write into a folder that is gone afterwards; where to is not fuzzed here."""

    def write(**asked):
        with tempfile.TemporaryDirectory() as folder:
            call(path=f"{folder}/x.{ending}", **asked)

    return write


AFTERWARDS = {
    "record": (geodp.record, {"frame": HEAT}, {}),
    "explain": (geodp.explain, {"release": HEAT}, {}),
    "signal": (geodp.signal, {"frame": HEAT}, {}),
    "pivot": (geodp.pivot, {"frame": SLOTTED}, {"column": [None, "count"]}),
    "total": (
        geodp.total,
        {"frame": SLOTTED, "region": BOX},
        {"slots": [None, {"hour": [1]}], "partial": ["centre", "area"], "column": [None], "level": [0.9]}
        | {
            "region": [SLOTTED.index[:1], SQUARES, SQUARES.geometry.iloc[0], [True] * len(HEAT)],
            "frame": [HEAT],
        },
    ),
    "readable": (geodp.readable, {"frame": HEAT}, {"rule": ["fdr"], "level": [0.9]}),
    "plot": (drawn(geodp.plot), {"frame": HEAT}, SHOWN | {"slot": [1], "legend": [False], "title": TRICKS}),
    "compare_maps": (
        drawn(geodp.compare_maps),
        {"a": HEAT, "b": HEAT},
        {name: SHOWN[name] for name in ("rule", "level", "cmap")} | {"names": [("x", "y")], "title": TRICKS},
    ),
    "explore": (geodp.explore, {"frame": HEAT}, SHOWN | {"slot": [1], "tiles": [None, *TRICKS]}),
    "to_html": (
        written(geodp.to_html, "html"),
        {"frame": HEAT, "coastlines": False},
        {name: SHOWN[name] for name in SHOWN if name != "cmap"}
        | {"title": TRICKS, "tiles": TRICKS, "attribution": TRICKS},
    ),
    "to_geojson": (written(geodp.to_geojson, "geojson"), {"frame": HEAT}, {"frame": [SLOTTED]}),
}


# --- the calls -------------------------------------------------------------------------------------------


def called(data, call, base, other):
    """Call with some arguments replaced; a result can be shown, an error tells nothing of the rows."""
    asked = data.draw(arguments(base, other))
    size = asked.get("size")  # of an array, which may be as large as it likes
    assume(not isinstance(size, int | np.integer) or not 10**6 < size <= 2**40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GeoDPWarning)  # of much budget, say, which is no error
        result, error = judged(call, **asked)
    if error is not None:
        assert not marks_in(error), error
    elif result is not None:
        assert isinstance(repr(result), str)


FREE = PLANS | AFTERWARDS


@pytest.mark.parametrize("name", FREE)
@some(8)
@given(data=st.data())
def test_calls_that_read_no_rows(name, data):
    called(data, *FREE[name])


@pytest.mark.fuzz
@pytest.mark.parametrize("name", FREE)
@much(60)
@given(data=st.data())
def test_many_calls_that_read_no_rows(name, data):
    called(data, *FREE[name])


# --- releases: the ledger --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def books(folder):
    return geodp.Ledger(folder / "fuzzed.ledger", eps=10**9, delta="1e-4")


LABELS = ["tonight", "tomorrow", "2026-11-30", *TRICKS]


def released(data, books, name):
    """Release with some arguments replaced; what raises has spent nothing and tells nothing of the rows."""
    call, base, other = RELEASES[name]
    labelled = st.one_of(st.sampled_from(LABELS), st.integers(0, 10**9).map(str), junk())
    asked = {**data.draw(arguments(base, other)), "ledger": books, "label": data.draw(labelled)}
    way = data.draw(st.sampled_from(["function", "accessor", "view"]))
    before = books.remaining(), books.metric_spent(), len(books.releases())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result, error = judged(*ways_of(name, call, way), **asked)
    assert all(issubclass(one.category, GeoDPWarning) for one in heard), [str(one.message) for one in heard]
    assert not any(MARK in str(one.message) for one in heard)
    if error is not None:
        assert not marks_in(error), error
        assert (books.remaining(), books.metric_spent(), len(books.releases())) == before
    else:
        assert isinstance(repr(result), str)


WHO_AND_WHERE = (
    "subject",
    "cap",
    "rows_per_cell",
    "contribution",
    "neighboring",
    "population",
    "bounds",
    "outside",
)


def ways_of(name, call, way):
    """Return the call and its frame: as a function, as a method of ``gdf.dp``, or of a view."""
    if way == "function" or not hasattr(type(TRIPS.dp), name):
        return call, TRIPS
    if way == "accessor" or name == "perturb":
        return (getattr(TRIPS.dp, name),)

    def on_a_view(**asked):
        who = {key: asked.pop(key) for key in (*WHO_AND_WHERE, "ledger") if key in asked}
        return getattr(TRIPS.dp(**who), name)(**asked)

    return (on_a_view,)


@pytest.mark.parametrize("name", RELEASES)
@some(12)
@given(data=st.data())
def test_releases(books, name, data):
    released(data, books, name)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", RELEASES)
@much(60)
@given(data=st.data())
def test_many_releases(books, name, data):
    released(data, books, name)


# --- releases: the rows ----------------------------------------------------------------------------------


def outcome(call, frame, asked):
    """Return everything that may not depend on rows: errors, warnings, and all of a result but its numbers."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result, error = judged(call, frame, **asked)
    said = [f"{one.category.__name__}: {one.message}" for one in heard]
    if error is not None:
        assert not marks_in(error), error
        return f"{type(error).__name__}: {error}", said
    parts = result if isinstance(result, dict) else {"": result}
    shapes = {key: shape(part) for key, part in parts.items()}
    assert MARK not in repr(shapes)
    return shapes, said


def shape(found):
    if not isinstance(found, pd.DataFrame):
        return {name: value for name, value in found.record.items() if name not in ("cap", "seal")}
    chosen = found.attrs["geodp"].get("cells", "all") != "all" or found.attrs["geodp"]["query"] == "perturb"
    index = None if chosen else [str(value) for value in found.index]
    return list(found.columns), [str(kind) for kind in found.dtypes], found.index.names, index, found.attrs


def compared(data, name):
    """Release rows full of trouble, and no rows of the same schema: nothing but the numbers differs."""
    call, base, other = RELEASES[name]
    frame = data.draw(frames())
    asked = data.draw(arguments(base, other, most=1))
    assert outcome(call, frame, asked) == outcome(call, frame.iloc[:0], asked)


@pytest.mark.parametrize("name", RELEASES)
@some(12)
@given(data=st.data())
def test_rows_full_of_trouble_change_nothing_but_numbers(name, data):
    compared(data, name)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", RELEASES)
@much(60)
@given(data=st.data())
def test_many_rows_full_of_trouble(name, data):
    compared(data, name)


def looked_at(data):
    """An audit may shout about rows, but its errors are errors of the arguments."""
    frame = data.draw(frames())
    keep = {"subject", "cap", "population", "bounds", "outside", "grid", "by", "delta"}
    other = {name: values for name, values in MORE.items() if name in keep}
    asked = data.draw(arguments({**WHO, "value": "minutes"}, other | {"value_bounds": [(0, 60)]}, most=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, error = judged(geodp.audit, frame, **asked)
    if error is not None:
        assert not marks_in(error), error
    else:
        assert isinstance(str(result), str)
        assert isinstance(result.to_dict(), dict)


@some(40)
@given(data=st.data())
def test_audits(data):
    looked_at(data)


@pytest.mark.fuzz
@much(200)
@given(data=st.data())
def test_many_audits(data):
    looked_at(data)
