"""Cells by number: a bijection, the same cells as the listed domain, and no cell outside the superset."""

import re

import h3.api.basic_int as h3
import numpy as np
import pytest
import shapely

import geodp
from geodp.bounds import WORLD, Box, clamp, wrap
from geodp.grids import H3, Square
from geodp.grids import h3 as h3_grid
from geodp.grids import ranked as ranking
from geodp.grids.digits import Descendants
from geodp.grids.ranked import RankedH3, ranked

NYC = Box.parse((-74.3, 40.4, -73.6, 41.0))


def cells_of(resolution):
    return [cell for base in h3.get_res0_cells() for cell in h3.cell_to_children(base, resolution)]


def some_box(rng):
    """Return a box of any size, anywhere: at poles, across 180, thin."""
    west, width = rng.uniform(-180, 180), min(10 ** rng.uniform(-5, 2.5), 360)
    height = 10 ** rng.uniform(-5, 2.2)
    south = max(-90, rng.uniform(-90, 90))
    kind = rng.integers(0, 4)
    if kind == 1:
        south = max(-90, 90 - height) if rng.random() < 0.5 else -90
    if kind == 2:
        west = 180 - width / 2
    return Box.parse((west, south, west + width, min(90, south + height)))


@pytest.mark.parametrize("coarse", [0, 1, 2])
def test_numbers_are_a_bijection_in_the_order_of_ids_pentagons_included(coarse):
    for fine in range(coarse, 4):
        below = Descendants.of(cells_of(coarse), fine)
        assert below.size == h3.get_num_cells(fine)
        cells = below.cells(np.arange(below.size))
        assert sorted(cells_of(fine)) == cells.tolist()
        assert (below.numbers(cells) == np.arange(below.size)).all()


@pytest.mark.parametrize(
    "ancestors",
    [h3.get_res0_cells(), h3.get_pentagons(0), h3.get_pentagons(5)],
    ids=["world", "pent", "pent 5"],
)
def test_numbers_at_resolution_15_are_those_of_h3(ancestors):
    below = Descendants.of(ancestors, 15)
    coarse = h3.get_resolution(next(iter(ancestors)))
    few = np.random.default_rng(3).integers(0, below.size, 3000)
    ends = np.concatenate([below.starts[:-1], below.starts[1:] - 1, below.starts[:-1] + 1])
    numbers = np.concatenate([few, ends, below.starts[:-1] + 7**5])
    cells = below.cells(numbers)
    assert all(map(h3.is_valid_cell, cells.tolist()))
    assert (below.numbers(cells) == numbers).all()
    for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
        ancestor = np.searchsorted(below.ancestors, np.uint64(h3.cell_to_parent(cell, coarse)))
        assert below.starts[ancestor] + h3.cell_to_child_pos(cell, coarse) == number


def test_cells_below_no_ancestor_have_no_number():
    below = Descendants.of(h3.get_pentagons(2), 4)
    outside = np.array(h3.cell_to_children(h3.get_res0_cells()[0], 4), dtype=np.uint64)
    kept = [h3.cell_to_parent(cell, 2) in h3.get_pentagons(2) for cell in outside.tolist()]
    assert ((below.numbers(outside) >= 0) == kept).all()


def test_the_world_at_resolution_12_is_numbered_at_once():
    domain = ranked(H3(12), WORLD)
    assert domain.exact
    assert domain.n_cells == h3.get_num_cells(12) == 1_660_954_464_122


@pytest.mark.parametrize("seed", range(3))
def test_members_are_exactly_the_listed_domain_h3(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(ranking, "LISTED", 0)
    done = 0
    while done < 8:
        box = some_box(rng)
        grid = H3(int(rng.integers(0, 16))).fitting(box, 500)
        if grid is None or box.is_world:
            continue
        monkeypatch.setattr(ranking, "_COVER", int(rng.integers(1, 60)))
        listed, numbered = grid.domain(box), RankedH3(grid, box)
        if numbered.n_cells > 20_000:
            continue
        everything = np.arange(numbered.n_cells)
        members = everything[numbered.contains(everything)]
        assert numbered.ids(members).tolist() == listed.index.tolist()
        assert (numbered.on_edge(members) == listed.edge).all()
        assert (numbered.numbers(listed.index.to_numpy(object)) == members).all()
        assert all(a.equals(b) for a, b in zip(numbered.outlines(members), listed.geometry(), strict=True))
        points = wrap(rng.uniform(-180, 180, 300)), rng.uniform(-90, 90, 300)
        for lon, lat in (points, clamp(*points, box)[:2]):
            rows, cells = listed.locate(lon, lat)
            at, numbers = numbered.locate(lon, lat)
            assert rows.tolist() == at.tolist()
            assert numbered.ids(numbers).tolist() == listed.index[cells].tolist()
        done += 1


@pytest.mark.parametrize("resolution", [0, 1, 2])
def test_no_cell_of_the_whole_world_belongs_that_is_not_listed(resolution):
    """The rule that tells single cells, asked for all cells there are."""
    rng = np.random.default_rng(resolution)
    world = np.array(sorted(cells_of(resolution)), dtype=np.uint64)
    for _ in range(24 if resolution < 2 else 6):
        box = some_box(rng)
        listed = H3(resolution).domain(box).cells
        if not box.is_world:
            meets = h3_grid._meets(resolution, world, h3_grid._strips(box))
            assert world[meets].tolist() == listed.tolist()


def test_a_cover_without_its_ring_would_miss_cells(monkeypatch):
    monkeypatch.setattr(ranking, "_COVER", 30)
    monkeypatch.setattr(ranking, "LISTED", 0)
    listed = H3(8).domain(NYC).cells
    assert (RankedH3(H3(8), NYC)._below.numbers(listed) >= 0).all()
    cover = H3(8).fitting(NYC, 30).domain(NYC).cells
    assert (Descendants.of(cover.tolist(), 8).numbers(listed) < 0).any()


def test_every_point_of_a_cell_has_its_ancestors_within_one_ring():
    """The reach of descendants, 0.608 d by the proof: measured around pentagons and everywhere else."""
    rng = np.random.default_rng(5)
    lon, lat = rng.uniform(-180, 180, 4000), np.degrees(np.arcsin(rng.uniform(-1, 1, 4000)))
    near = [h3.cell_to_latlng(cell) for cell in h3.get_pentagons(4)]
    lon = np.append(lon, [x + d for _, x in near for d in rng.normal(0, 0.5, 150)])
    lat = np.append(lat, [np.clip(y + d, -90, 90) for y, _ in near for d in rng.normal(0, 0.3, 150)])
    for fine in (7, 12, 15):
        for x, y in zip(lon.tolist(), lat.tolist(), strict=True):
            cell = h3.latlng_to_cell(y, x, fine)
            for coarse in (0, 1, 2, 3, 5):
                ring = h3.grid_disk(h3.latlng_to_cell(y, x, coarse), 1)
                assert h3.cell_to_parent(cell, coarse) in ring


def test_numbers_are_exactly_the_listed_domain_squares():
    rng = np.random.default_rng(11)
    done = 0
    while done < 80:
        box = WORLD if rng.random() < 0.1 else some_box(rng)
        if rng.random() < 0.3:  # corners on the lattice
            box = Box.parse((int(box.west), int(box.south), int(box.west) + 3, min(90, int(box.south) + 3)))
        grid = Square(
            rng.choice(["0.1", "0.25", "7", "1", "0.001", "2.5", "13", "12.5", "20", "25", "60", "89"])
        )
        if grid.estimate(box) > 5000:
            continue
        listed, numbered = grid.domain(box), ranked(grid, box)
        everything = np.arange(listed.n_cells)
        assert numbered.n_cells == listed.n_cells
        assert numbered.contains(everything).all()
        assert numbered.ids(everything).tolist() == listed.index.tolist()
        assert (numbered.numbers(listed.index.to_numpy(object)) == everything).all()
        assert (numbered.on_edge(everything) == listed.edge).all()
        assert all(a.equals(b) for a, b in zip(numbered.outlines(everything), listed.geometry(), strict=True))
        assert numbered.area_km2 == pytest.approx(listed.area_km2)
        points = wrap(rng.uniform(-180, 180, 300)), rng.uniform(-90, 90, 300)
        for lon, lat in (points, clamp(*points, box)[:2]):
            for a, b in zip(numbered.locate(lon, lat), listed.locate(lon, lat), strict=True):
                assert a.tolist() == b.tolist()
        done += 1


def test_squares_of_a_metre_over_the_world_need_no_list():
    domain = ranked(Square("0.00001"), WORLD)
    assert domain.n_cells == 18_000_000 * 36_000_000
    rows, cells = domain.locate(np.array([-74.0, 179.999]), np.array([40.7, -89.999]))
    assert domain.contains(cells).all()
    assert (domain.numbers(domain.ids(cells).astype(object)) == cells).all()
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("crs", "box"),
    [
        (3035, (6, 47, 15, 55)),
        (32633, (9, -3, 15, 3)),  # both sides of the equator
        (3857, (-20, 10, 10, 50)),  # both sides of the central meridian
        (3857, (170, -20, 190, 20)),  # across 180
        (3413, (-180, 60, 180, 90)),  # around the pole
        ("ESRI:54009", (-60, -40, 60, 40)),
    ],
)
def test_numbers_are_exactly_the_listed_domain_of_metres(crs, box):
    rng, box = np.random.default_rng(12), Box.parse(box)
    for size in (500_000, 130_000, "52123.5"):
        grid = Square(size, crs=crs)
        listed, numbered = grid.domain(box), ranked(grid, box)
        everything = np.arange(listed.n_cells)
        assert numbered.n_cells == listed.n_cells
        assert numbered.name == listed.index.name
        assert numbered.contains(everything).all()
        assert numbered.ids(everything).tolist() == listed.index.tolist() == sorted(listed.index)
        assert (numbered.numbers(listed.index.to_numpy(object)) == everything).all()
        assert (numbered.on_edge(everything) == listed.edge).all()
        some = rng.permutation(everything)[:50]
        assert all(a.equals(b) for a, b in zip(numbered.outlines(some), listed.geometry()[some], strict=True))
        points = wrap(rng.uniform(-180, 180, 300)), rng.uniform(-90, 90, 300)
        inside = clamp(*points, box)[:2]
        assert len(listed.locate(*inside)[0]) == 300
        for lon, lat in (points, inside):
            for a, b in zip(numbered.locate(lon, lat), listed.locate(lon, lat), strict=True):
                assert a.tolist() == b.tolist()


def test_squares_of_ten_metres_over_a_country_need_no_list():
    """About 5 billion squares, kept as stretches of rows."""
    grid, box = Square(10, crs=3035), Box.parse((6, 47, 15, 55))
    domain = ranked(grid, box)
    assert domain.n_cells == pytest.approx(grid.estimate(box), rel=1e-4)
    some = np.unique(np.random.default_rng(13).integers(0, domain.n_cells, 300))
    ids = domain.ids(some)
    assert ids.tolist() == sorted(ids)
    assert (domain.numbers(ids.astype(object)) == some).all()
    centres = shapely.centroid(domain.outlines(some))
    _, cells = domain.locate(shapely.get_x(centres), shapely.get_y(centres))
    assert cells.tolist() == some.tolist()
    assert not domain.on_edge(some).all()


def test_a_border_of_too_many_squares_is_refused():
    with pytest.raises(ValueError, match=r"border of bounds .* more than 5,000,000\. Choose larger cells"):
        ranked(Square("0.1", crs=3035), Box.parse((6, 47, 15, 55)))


def test_what_a_refusal_of_too_long_a_border_names_is_accepted(monkeypatch):
    from geodp.grids import grid, sheets

    monkeypatch.setattr(sheets, "_BORDER", 3000)
    bounds, setting = (6.25, 47, 15, 55), {"subject": "rider", "cap": 1, "cells": "sparse"}
    with pytest.raises(ValueError, match="runs through about") as caught:
        geodp.plan(1, **setting, bounds=bounds, grid="square:30@3035")
    named = re.search(r'larger cells \("(.*)" fits\)', str(caught.value)).group(1)
    assert named == "square:1500m@3035"
    assert (
        geodp.plan(1, **setting, bounds=bounds, grid=named).n_cells
        == ranked(grid(named), Box.parse(bounds)).n_cells
    )
    with pytest.raises(ValueError, match=r'Or keep "square:1500m@3035" with cells="sparse"\.'):
        geodp.plan(1, **{**setting, "cells": "all"}, bounds=bounds, grid="square:30@3035")


@pytest.mark.parametrize("by", [None, {"hour": range(24)}])
def test_a_cap_that_is_chosen_on_the_way_is_not_offered_sparse_cells(by):
    with pytest.raises(ValueError, match=r'cells="sparse" and a number as cap \(geodp\.choose_cap\)\.'):
        geodp.plan(1, 1e-6, subject="rider", cap="auto", bounds=(6, 47, 15, 55), grid="h3:12", by=by)


@pytest.mark.parametrize("spec", ["box"])
def test_grids_without_numbers_say_what_to_do(spec):
    from geodp.grids import grid

    with pytest.raises(ValueError, match="leave cells out"):
        ranked(grid(spec), NYC)
