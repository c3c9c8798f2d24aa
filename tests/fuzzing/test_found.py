"""What fuzzing found, one test each, so that it stays found."""

from fractions import Fraction

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import geodp
from geodp import mechanisms
from geodp.exact import exact
from geodp.queries.rescaling import Rescaling
from geodp.wording import brief

WHO = {"subject": "rider", "cap": 2, "bounds": (0, 0, 1, 1), "grid": "square:0.5"}


def deep(levels):
    made = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize("query", [2, "count", {}, 0, "", geodp.Count])
def test_a_query_that_is_none_is_refused_by_its_type(query):
    with pytest.raises(TypeError, match=r"query must be geodp.Count\(\)"):
        geodp.plan(1, query=query, **WHO)


@pytest.mark.parametrize("rescaling", [8, True, "8", None])
def test_a_count_takes_no_numbers(rescaling):
    with pytest.raises(TypeError, match="rescale=True"):
        geodp.Count(rescaling)
    assert geodp.Count(Rescaling(8)).rescaling.k_max == 8


def test_whole_numbers_and_fractions_have_the_limits_of_decimals():
    long = Fraction(10**9000 + 1, 10**9000)
    for value in (10**401, -(10**5000), Fraction(1, 10**5000), Fraction(10**401), long):
        with pytest.raises(ValueError, match="within 1e-400 and 1e400"):
            exact(value, "eps")
    assert exact(10**400, "eps") == 10**400
    assert exact(Fraction(1, 10**400), "eps") == Fraction(1, 10**400)
    assert exact("1e400/3", "eps") == Fraction(10**400, 3)


def test_a_delta_below_all_doubles_takes_no_minutes():
    assert mechanisms.gaussian_delta(2, 1, 10**400) == 5e-324


def test_tiny_sensitivities_have_a_textbook_figure():
    for tiny in (1e-308, "1e-300"):
        assert geodp.choose_mechanism(tiny, tiny, 1, 1e-6).classic_delta is not None


@pytest.mark.parametrize("many", [range(10**12), range(10**15)])
def test_lists_without_end_are_refused_at_their_beginning(many):
    with pytest.raises(ValueError, match="more than 100,000 levels"):
        geodp.plan(1, by={"hour": many}, **WHO)
    with pytest.raises(TypeError, match="got int"):
        geodp.compose(many, 1e-6)
    with pytest.raises(ValueError, match="compare at most 10,000"):
        geodp.compare_plans(many, **WHO)
    with pytest.raises(ValueError, match="values"):
        mechanisms.laplace(range(10**15), 1, 1)
    with pytest.raises(ValueError, match="at least 1"):
        geodp.choose_cap(None, 1, many, subject="rider")


@pytest.mark.parametrize("slots", [(1, 2), "hour", 3])
def test_slots_that_are_no_mapping_are_refused_by_their_type(slots):
    frame = pd.DataFrame({"rider": ["a"]})
    places = geodp.plan(1, by={"hour": [1, 2]}, **WHO)
    heat = places.release(
        gpd.GeoDataFrame(frame.assign(hour=1), geometry=gpd.points_from_xy([0.1], [0.1]), crs=4326)
    )
    with pytest.raises(TypeError, match="slots must map"):
        geodp.total(heat, (0, 0, 1, 1), slots=slots)


def test_wrong_arguments_are_quoted_short_and_never_fail_to_be():
    circular = []
    circular.append(circular)
    for value in (
        deep(100_000),
        circular,
        10**5000,
        [10**5000],
        "x" * 10**6,
        {"a": "y" * 10**6},
        b"z" * 10**6,
    ):
        assert len(brief(value)) < 400
        with pytest.raises((TypeError, ValueError)) as error:
            geodp.Policy(subject="rider", cap=1, contribution=value)
        assert len(str(error.value)) < 600


def test_frames_handed_over_by_mistake_are_not_quoted():
    column = pd.Series(["secret-rider"] * 3)
    for value in (
        column,
        column.to_numpy(),
        column.to_frame(),
        pd.Index(column),
        [column],
        {"a": column},
        np.str_("secret-rider"),
    ):
        assert "secret" not in brief(value)
        for name in ("contribution", "neighboring", "outside"):
            with pytest.raises((TypeError, ValueError)) as error:
                geodp.Policy(**{"subject": "rider", "cap": 1, name: value})
            assert "secret" not in str(error.value)
