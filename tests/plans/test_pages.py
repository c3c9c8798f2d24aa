"""The page a plan prints: golden pages, and names that try to break out of it."""

import re

import geopandas as gpd
import pytest
import shapely

import geodp
from geodp.pages import mostly_noise, noise_share, plan_html, plan_rows, plan_text

# Small populations keep these pages short; that such maps are warned of is tested in test_calls.py.
pytestmark = pytest.mark.filterwarnings("ignore:This map would be:geodp.NoiseWarning")

BOX = (-74.3, 40.4, -73.6, 41.0)
RIDERS = {"subject": "rider", "cap": 4, "bounds": BOX, "grid": "h3:8"}

HEATMAP = """\
Plan: distinct riders per H3 cell (resolution 8); reads no data
  protects   one rider more or less; a rider counts in at most 4 cells, once in each (not trips)
  where      -74.3, 40.4 to -73.6, 41.0 (centre 40.7 N 74.0 W); points outside move to the border
             border cells also hold everybody outside
  cells      5,495, about 0.7 km² each, all released, empty or not
  asked      eps 1, delta 1e-06
  spends     eps 1, delta 0 (Laplace needs no delta)
                      discrete Laplace    Gaussian    (textbook Gaussian)
  std                 5.64  <-            8.45        10.60
  95 % of cells       within 12           within 17
  worst of all cells  about 37            about 33
  zCDP cost, rho      0.500               0.028
  chosen     Laplace: smaller std. The Gaussian wins from cap 9 up, or when a series pays (18 times cheaper in rho).
  readable   a cell needs more than 12 to differ from zero; about 120 empty cells will pass that by chance
             45 or more: safe over the whole map (95 %)
  ledger     none: without ledger= this release will not be counted
  population not declared: delta is not checked against 1/N"""

SUM = """\
Plan: sum of minutes per square of 0.1°; reads no data
  protects   one rider exchanged for another; a rider counts in at most 16 cells, at most 2 rows in each
  where      -74.3, 40.4 to -73.6, 41.0 (centre 40.7 N 74.0 W); points outside are left out
  cells      42, about 94 km² each, all released, empty or not
  asked      eps 1, delta 1e-06
  spends     eps 1, delta 1e-06
  in minutes          discrete Laplace    Gaussian    (textbook Gaussian)
  std                 10,861              5,736  <-   7,194
  95 % of cells       within 23,007       within 11,242
  worst of all cells  about 33,200        about 14,000
  zCDP cost, rho      0.500               0.028
  chosen     Gaussian: smaller std. Below cap 5 Laplace wins, and needs no delta.
  readable   a cell needs more than 11,242 minutes to differ from zero; about 1 empty cell will pass that by chance
             17,382 minutes or more: safe over the whole map (95 %)
  ledger     none: without ledger= this release will not be counted
  population not declared: delta is not checked against 1/N"""

MEAN = """\
Plan: mean of minutes per zone (zone_id) and hour (24); reads no data
  protects   one rider more or less; a rider counts in at most 4 of the cells and slots, once in each
  where      in the zones; points outside all of them are left out
  cells      2, about 12,308 km² each, 24 slots of each, all released, empty or not
  asked      eps 1, delta 0
  spends     eps 1, delta 0; 41 % on the count, 59 % on the sum
  of the count        discrete Laplace    Gaussian
  std                 13.79  <-           not possible
  95 % of cells       within 29           not possible
  worst of all cells  about 43            not possible
  zCDP cost, rho      0.500               not possible
  chosen     Laplace: no delta was authorised.
  readable   a mean of 100 records is within about 15.79 minutes of theirs (95 %)
             a mean of 1,000 records is within about 1.58 minutes of theirs (95 %)
  ledger     none: without ledger= this release will not be counted
  population not declared: delta is not checked against 1/N"""

ROWS = """\
Plan: rows, each its own subject, per square of 1000 m (EPSG:32618); reads no data
  protects   single rows, not people: every row is taken for another person"""


def zones():
    squares = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)]
    return geodp.Zones(gpd.GeoDataFrame({"zone_id": [1, 2]}, geometry=squares, crs=4326), "zone_id")


def plans():
    minutes = {"value_bounds": (0, 120)}
    exchanged = {"neighboring": "replace_one", "rows_per_cell": 2, "outside": "drop"}
    return {
        HEATMAP: geodp.plan(1, 1e-6, **RIDERS),
        MEAN: geodp.plan(
            1,
            query=geodp.Mean("minutes", **minutes),
            subject="rider",
            cap=4,
            grid=zones(),
            by={"hour": range(24)},
        ),
        ROWS: geodp.plan(1, subject=geodp.EACH_ROW, bounds=BOX, grid="square:1000@32618"),
        SUM: geodp.plan(
            1,
            1e-6,
            query=geodp.Sum("minutes", **minutes),
            **{**RIDERS, "cap": 16, "grid": "square:0.1"},
            **exchanged,
        ),
    }


def test_golden_pages():
    for page, plan in plans().items():
        assert str(plan)[: len(page)] == page
        assert repr(plan) == str(plan)


@pytest.mark.parametrize("number", range(4))
def test_html_shows_the_same_rows_in_one_plain_table(number):
    plan = list(plans().values())[number]
    html = plan_html(plan)
    assert len(html.encode()) < 4000
    assert html.count("<table") == 1
    assert not re.search(r"<script|<style|color|background|javascript|on\w+=|https?:", html)
    cells = re.findall(r"<(?:th|td|b)[^>]*>(.*?)</(?:th|td|b)>", html)
    unescape = str.maketrans({})
    flat = [cell.translate(unescape) for cell in cells]
    wanted = [text for row in plan_rows(plan) for text in row][1:]
    assert [f.replace("&lt;", "<").replace("&#x27;", "'").replace("&quot;", '"') for f in flat] == wanted


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "a\n  chosen     Laplace: safe", "\u202eabc", "x" * 5000, "\"'&" * 100],
)
def test_names_cannot_break_out_of_the_page(name):
    plan = geodp.plan(
        1,
        1e-6,
        query=geodp.Sum(name, value_bounds=(0, 1)),
        subject=name,
        cap=2,
        bounds=BOX,
        grid="h3:5",
        by={name: [1]},
    )
    text, html = plan_text(plan), plan_html(plan)
    assert len(html.encode()) < 4000
    assert "<script" not in html
    assert "\u202e" not in text + html
    assert max(map(len, text.splitlines())) < 250
    assert sum(line.startswith("  chosen ") for line in text.splitlines()) == 1


def test_the_reason_follows_the_choice():
    def reason(cap=4, eps=1, delta=1e-6, **more):
        text = str(geodp.plan(eps, delta, **{**RIDERS, "cap": cap, "grid": "h3:6", **more}))
        return re.search("chosen +(.*)", text).group(1)

    assert reason(16) == "Gaussian: smaller std. Below cap 9 Laplace wins, and needs no delta."
    assert reason(4, neighboring="replace_one").startswith(
        "Laplace: smaller std. The Gaussian wins from cap 5 up, or"
    )
    assert reason(5, neighboring="replace_one").startswith("Gaussian: smaller std. Below cap 5")
    assert reason(delta=0) == "Laplace: no delta was authorised."
    assert reason(mechanism="gaussian") == "Gaussian: named; the Gaussian's std is 1.5 times Laplace's."
    assert reason(64, mechanism="laplace") == "Laplace: named; Laplace's std is 2.7 times the Gaussian's."
    assert reason(4, criterion="max_error").startswith(
        "Laplace: smaller worst error. The Gaussian wins when a series"
    )
    assert reason(contribution="weighted") == "Gaussian: the weights are made for it."


@pytest.mark.parametrize("neighboring", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize("rows_per_cell", [1, 3])
def test_the_crossover_cap_on_the_page_is_where_the_choice_turns(neighboring, rows_per_cell):
    def plan(cap):
        more = {"neighboring": neighboring, "rows_per_cell": rows_per_cell, "grid": "h3:6"}
        return geodp.plan(1, 1e-6, **{**RIDERS, **more, "cap": cap})

    cap = int(re.search(r"wins from cap (\d+) up", str(plan(1))).group(1))
    assert [plan(c).mechanism for c in (cap - 1, cap)] == ["laplace", "gaussian"]


def test_the_series_ratio_is_that_of_rho():
    plan = geodp.plan(1, 1e-6, **RIDERS)
    ratio = plan.choice.laplace.rho / plan.choice.gaussian.rho
    assert f"({float(ratio):.2g} times cheaper in rho)" in str(plan)


def test_a_declared_population_shows_heads_and_the_expected_noise():
    text = str(geodp.plan(1, "1e-7", population=20_000, **RIDERS))
    assert "20,000 riders declared; delta 0 is spent (the asked one would be 0.002 of them, expected)" in text
    assert "the noise adds up to 109 % of the map if each counts in one cell (27 % if in 4)" in text
    assert 'mostly noise if everybody counts in one cell. grid="h3:7" would not be (about 826 cells).' in text
    spent = str(geodp.plan(1, "1e-7", population=20_000, mechanism="gaussian", **RIDERS))
    assert "delta is 0.002 of them, expected" in spent


@pytest.mark.parametrize("grid", ["h3:8", "square:0.01", "square:1000@32618"])
@pytest.mark.parametrize("population", [3000, 10_000])
def test_the_coarser_grid_named_would_not_be_mostly_noise(grid, population):
    plan = geodp.plan(1, population=population, **{**RIDERS, "grid": grid})
    named = re.search('grid="([^"]+)" would not be', mostly_noise(plan)).group(1)
    coarser = geodp.plan(1, population=population, **{**RIDERS, "grid": named})
    assert mostly_noise(coarser) is None
    assert noise_share(coarser) <= 1 < noise_share(plan)


def test_zones_have_no_coarser_grid_to_name():
    plan = geodp.plan("0.01", population=10, subject="rider", cap=1, grid=zones())
    assert mostly_noise(plan).endswith("A larger eps or a smaller cap helps.")


def test_no_population_no_share():
    assert noise_share(geodp.plan(1, **RIDERS)) is None
    assert mostly_noise(geodp.plan(1, **RIDERS)) is None


def test_the_world_and_a_swapped_box_show():
    swapped = geodp.plan(1, subject="rider", cap=1, bounds=(40.4, -74.3, 41.0, -73.6), grid="h3:5")
    assert "centre 74.0 S 40.7 E" in str(swapped)
    with pytest.warns(geodp.BoundsWarning):
        world = geodp.plan(1, subject="rider", cap=1)
    assert "where      the whole world" in str(world)
    assert "5,882 (the finest H3 with at most 10,000)" in str(world)


def test_centroids_say_how_far_off_they_are():
    boxed = geodp.plan(1, 1e-6, query=geodp.Centroid(), subject="rider", cap=1, bounds=BOX)
    assert "a centroid of 1,000 riders is within about" in str(boxed)
    fixed = geodp.plan(1, 1e-6, query=geodp.Centroid(n=500), subject="rider", cap=1, bounds=BOX)
    assert "a centroid of 500 riders is within about" in str(fixed)


def test_small_and_large_figures_stay_short():
    text = str(geodp.plan("0.0000001", 1e-6, **RIDERS))
    assert "e+" not in text.replace("e+16", "")
    assert max(map(len, text.splitlines())) < 125
