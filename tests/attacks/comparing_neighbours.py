"""Exact integers of neighbours, held against every claim; and all of a release that is no number, side by side."""

import json
import re
import warnings
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from attacked_plans import reach

from geodp import chunks, contribution, prf, release, testing
from geodp.grids import zones

RELATIONS = ("add_remove_one", "replace_one")
MECHANISMS = ("laplace", "gaussian")
# Fields of a record that are private outputs of the choice of a cap, and the seal over them.
CHOSEN = ("cap", "counted", "scale", "std", "l1", "l2", "measurements", "seal")


def secret(number):
    """Return a release without noise whose choices under the cap are fixed."""
    return testing.Mode("none (test)", number.to_bytes(16, "little"), silent=True)


def entries(plan, rows, mode):
    """Return what is counted before noise: of each measurement its entries that are not 0, as Python integers."""
    exact = release.tally(plan, rows, mode)
    if "key" in exact:
        assert (np.diff(exact["key"]) > 0).all()
        assert (exact["count"] > 0).all()
        return {"count": dict(zip(exact["key"].tolist(), exact["count"].tolist(), strict=True))}
    for m in plan.measurements:
        assert exact[m.name].dtype == np.int64
        assert exact[m.name].shape == (m.quantity.size,)
    return {name: {i: v for i, v in enumerate(vector.tolist()) if v} for name, vector in exact.items()}


def moves(one, other):
    """Return by how much each entry differs, those that do."""
    found = [abs(one.get(i, 0) - other.get(i, 0)) for i in one.keys() | other.keys()]
    return [d for d in found if d]


def assert_within(plan, one, other):
    """Compare two tallies with every claim of the plan, and each claim with what the rules leave possible."""
    for m in plan.measurements:
        moved, most = moves(one[m.name], other[m.name]), reach(plan, m)
        assert len(moved) <= most.entries, m.name
        assert max(moved, default=0) <= most.each, m.name
        assert sum(moved) <= m.l1 <= most.entries * most.each, m.name
        assert sum(d * d for d in moved) <= m.l2_squared <= most.entries * most.each**2, m.name


def in_partitions(rows, cuts):
    """Return the frame in dask partitions, cut anywhere, some of them empty."""
    from dask import dataframe as dd

    import geodp.dask  # noqa: F401

    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [rows.iloc[a:b] for a, b in pairwise(ends)]
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=rows.iloc[:0])


@contextmanager
def in_chunks_of(size):
    """Work through rows, pairs and keys in tiny pieces, so that pieces begin and end everywhere."""
    with ExitStack() as patches:
        for module in (contribution, prf, zones):
            patches.enter_context(patch.object(module, "_CHUNK", size))
        patches.enter_context(patch.object(chunks.slices, "__defaults__", (size,)))
        yield


_NUMBER = re.compile(r"(?<=: )-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?(?=[,}])")
_PLACE = re.compile(r'"coordinates": \[[^]]*\]')


def masked(found):
    """Return the text of the GeoJSON with every number replaced by its kind."""
    text = _NUMBER.sub(lambda number: "#float" if number[1] or number[2] else "#int", found.to_json())
    return _PLACE.sub("#point", text) if (found.geom_type == "Point").all() else text


def facts(found, *, listed=True):
    """Return all of a released frame that may not depend on rows; of unlisted cells not even which there are."""
    levels = [found.index.get_level_values(i) for i in range(found.index.nlevels)]
    said = [str(type(found)), list(found.columns), [str(t) for t in found.dtypes]]
    said += [[(level.name, str(level.dtype)) for level in levels]]
    record = {
        k: v
        for k, v in found.attrs["geodp"].items()
        if "stage_1" not in found.attrs["geodp"] or k not in CHOSEN
    }
    said += [list(found.attrs), json.dumps(record)]
    numbers = [name for name in found.columns if name not in ("edge", "geometry")]
    assert np.isfinite(found[numbers].to_numpy(dtype=np.float64)).all()
    drawn = "geometry" in found.columns
    said += [str(found.crs), found.active_geometry_name] if drawn else []
    if listed:
        said += [[level.tolist() for level in levels], found["edge"].tolist() if "edge" in found else None]
        said += [masked(found)] if drawn else []
    return said


def released(plan, rows):
    """Return what a release with real noise says besides its numbers: frames, warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plan.release(rows)
    frames = found if isinstance(found, dict) else {"": found}
    listed = getattr(getattr(plan, "ways", None), "cells", "all") == "all"
    return [[name, *facts(one, listed=listed)] for name, one in frames.items()], [
        str(w.message) for w in caught
    ]


def assert_only_numbers_differ(plan, one, other):
    """Release both, and compare everything else."""
    (frames, said), (others, also) = released(plan, one), released(plan, other)
    assert said == also
    for a, b in zip(frames, others, strict=True):
        for fact, same in zip(a, b, strict=True):
            assert fact == same
