"""Zones: any public polygons as cells, each under its own key.

Zones are copied, checked, cut at the 180th meridian and put in a public order (by key) once, when they
are named; later edits of the frame change nothing. The order is the rule: where a point touches several
zones, the first of them has it, whatever the order of rows in either frame.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geodp.bounds import WORLD, Box
from geodp.grids.adjacency import areas_km2, neighbourhood
from geodp.grids.base import Domain, Grid
from geodp.grids.hierarchy import Hierarchy
from geodp.grids.keys import key_digest, public_order, zone_keys
from geodp.grids.rings import FARTHEST, cut_at_180, halved, is_plain
from geodp.grids.tiles import Tiles, build_tiles, candidates
from geodp.wording import brief

__all__ = ["ZoneDomain", "Zones"]

_CHUNK = 1 << 19
_OVERLAPS = ("first", "count", "raise")
# Borders drawn twice differ by a hair: what two zones share counts above this part of the smaller one.
_SLIVER = 1e-6

_Shapes = NDArray[np.object_]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Zones(Grid):
    """Public polygons as the cells of a map.

    Every zone is in the result, empty or not, indexed by its key in the key's own dtype and in the order
    of the keys. Points outside all zones are left out; bounds are not needed and nothing is clamped.
    Keys and outlines are published as they are: they must not come from the people counted.

    Parameters
    ----------
    gdf : GeoDataFrame
        Polygons and multipolygons in any CRS, reprojected to EPSG:4326 vertex by vertex. Z is ignored.
        Rings across the 180th meridian may jump from 179 to -179 or go on beyond 180; rings around a pole
        reach to it. Other parts are at most 180° wide.
    key : str, optional
        The column, or the index, that names the zones: integers, strings, dates, categories or floats,
        unique and without nulls. Without it the frame's own index is the key.
    overlap : {"first", "count", "raise"}
        Where zones overlap or touch, a point belongs to the first zone that it touches, in the order of
        the keys (of the categories, if the key is categorical), or, with ``"count"``, to each of them.
        ``"raise"`` is ``"first"`` for polygons that share borders at most, and refuses others.

    Attributes
    ----------
    index : Index
        The keys in public order.
    digest : str
        SHA-256 of keys, outlines in EPSG:4326, the key's name and dtype, and ``overlap``. Zones are equal
        when their digests are. Another PROJ may reproject, and another pandas name the dtype of strings,
        differently: then the digest differs too.

    Raises
    ------
    TypeError
        ``gdf`` is no GeoDataFrame, or keys of a type without a lasting text.
    ValueError
        No zones, no CRS, no such key; a key that is null, given twice or named like a column of the
        result; a zone that is null, empty, no polygon, invalid, not finite or wider than 180°. The zone
        is named. Nothing has been spent.

    Examples
    --------
    >>> import geopandas as gpd, shapely
    >>> squares = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
    >>> zones = Zones(gpd.GeoDataFrame({"zone_id": [30, 10, 20]}, geometry=squares, crs=4326), key="zone_id")
    >>> zones.index.tolist()
    [10, 20, 30]
    >>> rows, cells = zones.domain().locate(np.array([0.5, 1.0, 9.0]), np.array([0.5, 0.5, 0.5]))
    >>> zones.index[cells].tolist()
    [30, 10]
    >>> sorted(zones.to_dict())
    ['digest', 'grid', 'key', 'n', 'overlap']
    """

    key: str
    overlap: str
    digest: str
    index: pd.Index = field(repr=False)
    _shapes: _Shapes = field(repr=False)

    needs_bounds = False

    def __init__(self, gdf: gpd.GeoDataFrame, key: str | None = None, overlap: str = "first") -> None:
        if overlap not in _OVERLAPS:
            raise ValueError(f"overlap={brief(overlap)}; choose one of {', '.join(map(repr, _OVERLAPS))}.")
        index = zone_keys(_checked_frame(gdf), key)
        order = public_order(index)
        index, given = index[order], np.asarray(gdf.geometry.array, dtype=object)[order]
        _refuse_unusable(given, index)
        given = shapely.force_2d(given)
        shapes = _in_degrees(given, gdf.crs, index)
        if overlap == "raise":
            # Straight borders of a projected CRS are judged where they are straight.
            _refuse_overlaps(shapes if gdf.crs.is_geographic else given, index)
        shapes.setflags(write=False)
        digest = hashlib.sha256(f"{key_digest(index)} {overlap}\n".encode())
        for outline in shapely.to_wkb(shapes, output_dimension=2, byte_order=1):
            digest.update(len(outline).to_bytes(8, "little") + outline)
        facts = {"key": index.name, "overlap": overlap, "digest": digest.hexdigest(), "index": index}
        for name, value in (facts | {"_shapes": shapes}).items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """Canonical text of the grid, ``"zones:<key>"``; :attr:`digest` tells zones of one name apart."""
        return f"zones:{self.key}"

    def estimate(self, box: Box = WORLD) -> int:
        """Return the number of zones, whatever the box."""
        return len(self.index)

    def fitting(self, box: Box, limit: int) -> None:
        """Return None: there are no coarser zones than the ones given."""

    def domain(self, box: Box = WORLD) -> "ZoneDomain":
        """Return all zones as a domain, whatever the box; built once and shared."""
        return _domain(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the zones as plain JSON: by number and digest, not by outline.

        Returns
        -------
        dict
            ``grid``, ``key``, ``overlap``, ``n`` (number of zones) and ``digest`` (of keys and outlines).
        """
        facts = {"grid": self.name, "key": self.key, "overlap": self.overlap, "n": len(self.index)}
        return facts | {"digest": self.digest}

    def __len__(self) -> int:
        return len(self.index)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Zones) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        facts = f"key={self.key!r}, overlap={self.overlap!r}, digest={self.digest[:12]!r}"
        return f"<Zones: {len(self)} zones, {facts}>"


class ZoneDomain(Domain):
    """All zones as cells; made by :meth:`Zones.domain`."""

    def __init__(self, zones: Zones) -> None:
        self.grid: Zones = zones
        self.box = WORLD
        self._shapes = zones._shapes.view()
        self._shapes.setflags(write=False)
        # Shapely before 2.2 takes no read-only arrays apart.
        self._parts, self._owner = shapely.get_parts(self._shapes.copy(), return_index=True)
        shapely.prepare(self._parts)
        # A prepared polygon builds its index when first asked, which two threads must not do at once.
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[Zones], "ZoneDomain"], tuple[Zones]]:
        return _domain, (self.grid,)

    @property
    def index(self) -> pd.Index:
        """Keys of the zones, in their own dtype and in public order."""
        return self.grid.index

    @property
    def edge(self) -> NDArray[np.bool_]:
        """No zone lies at the border of a box: nobody is moved into one, shape (n_cells,)."""
        return np.zeros(self.n_cells, dtype=bool)

    @cached_property
    def area_km2(self) -> float:
        """Mean area of a zone on the ellipsoid, in square kilometres."""
        return float(areas_km2(self._shapes).mean())

    def geometry(self) -> _Shapes:
        """Return the outlines in EPSG:4326, shape (n_cells,), no part wider than 180°; read only."""
        return self._drawn

    def hierarchy(self) -> Hierarchy:
        """Return groups of about 4, 16, 64, ... neighbouring zones, decided from the outlines alone."""
        return self._neighbourhood

    def locate(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the points that touch a zone, in order, and the numbers of their zones.

        A zone is closed: its border belongs to it. With ``overlap="count"`` a point appears once for each
        zone it touches, otherwise once, with the first. +180 and -180 are one meridian, each pole one place.
        """
        rows, cells = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(lon), _CHUNK):
            some, zones = self._touched(lon[start : start + _CHUNK], lat[start : start + _CHUNK])
            if self.grid.overlap != "count":
                first = np.append(True, some[1:] != some[:-1])[: len(some)]
                some, zones = some[first], zones[first]
            rows.append(some + start)
            cells.append(zones)
        return np.concatenate(rows), np.concatenate(cells)

    @cached_property
    def _tiles(self) -> Tiles:
        return build_tiles(shapely.bounds(self._parts))

    @cached_property
    def _drawn(self) -> _Shapes:
        drawn = self._shapes.copy()
        for zone in np.unique(self._owner[~is_plain(self._parts)]):
            drawn[zone] = halved(drawn[zone])
        drawn.setflags(write=False)
        return drawn

    @cached_property
    def _neighbourhood(self) -> Hierarchy:
        return neighbourhood(self._shapes)

    def _touched(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all distinct pairs of a point and a zone it touches, by point, then by zone."""
        pairs = [self._tested(np.arange(len(lon)), lon, lat)]
        if len(seam := np.flatnonzero(lon == -180.0)):
            pairs.append(self._tested(seam, np.full(len(seam), 180.0), lat[seam]))
        for pole in (-90.0, 90.0):
            if len(there := np.flatnonzero(lat == pole)):
                south_north = shapely.bounds(self._shapes)[:, [1, 3]]
                zones = np.flatnonzero((south_north == pole).any(axis=1))
                pairs.append((np.repeat(there, len(zones)), np.tile(zones, len(there))))
        packed = np.sort(np.concatenate([rows * self.n_cells + zones for rows, zones in pairs]))
        packed = packed[np.append(True, packed[1:] != packed[:-1])[: len(packed)]]
        return packed // self.n_cells, packed % self.n_cells

    def _tested(
        self, rows: NDArray[np.int64], lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        points, parts = candidates(self._tiles, lon, lat)
        with self._lock:
            hit = shapely.intersects_xy(self._parts[parts], lon[points], lat[points])
        return rows[points[hit]], self._owner[parts[hit]]


@lru_cache(maxsize=4)
def _domain(zones: Zones) -> ZoneDomain:
    return ZoneDomain(zones)


def _checked_frame(gdf: object) -> gpd.GeoDataFrame:
    if not isinstance(gdf, gpd.GeoDataFrame):
        raise TypeError(f"Zones needs a GeoDataFrame of polygons, got {type(gdf).__name__}.")
    if not len(gdf):
        raise ValueError("the frame of zones has no rows.")
    if gdf.active_geometry_name is None:
        raise ValueError(
            "the frame of zones has no active geometry; choose one: zones.set_geometry(<column>)."
        )
    if gdf.crs is None:
        raise ValueError(
            "the zones have no CRS. Longitude/latitude in degrees: zones.set_crs(4326). "
            "Anything else: zones.set_crs(<its EPSG code>). Nothing was spent."
        )
    return gdf


def _refuse_unusable(given: _Shapes, index: pd.Index) -> None:
    _refuse(shapely.is_missing(given), index, "has no geometry.")
    _refuse(~np.isin(shapely.get_type_id(given), (3, 6)), index, "is not a polygon or multipolygon.")
    _refuse(shapely.is_empty(given), index, "is empty.")
    _refuse(~_all_vertices(given, np.isfinite), index, "has a coordinate that is not finite.")


def _in_degrees(shapes: _Shapes, crs: Any, index: pd.Index) -> _Shapes:
    """Return valid EPSG:4326 outlines cut at the 180th meridian."""
    if not crs.equals(4326, ignore_axis_order=True):
        shapes = np.asarray(gpd.GeoSeries(shapes, crs=crs).to_crs(4326).array, dtype=object)
    legal = _all_vertices(shapes, lambda xy: np.abs(xy) <= [FARTHEST, 90.0])
    _refuse(~legal, index, f"lies beyond latitude 90 or longitude 540, read as {crs.name}; is that its CRS?")
    shapes = _cut(shapes, index)
    invalid = ~shapely.is_valid(shapes)
    reason = shapely.is_valid_reason(shapes[invalid][0]) if invalid.any() else ""
    _refuse(invalid, index, f"is not a valid polygon ({reason}); repair it with zones.make_valid().")
    return shapes


def _cut(shapes: _Shapes, index: pd.Index) -> _Shapes:
    parts, owner = shapely.get_parts(shapes, return_index=True)
    shapes = shapes.copy()
    for zone in np.unique(owner[~is_plain(parts)]):
        try:
            shapes[zone] = cut_at_180(shapes[zone])
        except ValueError as error:
            raise ValueError(f"zone {_shown(index, zone)} {error}") from None
    return shapes


def _all_vertices(shapes: _Shapes, test: Callable[[NDArray[np.float64]], Any]) -> NDArray[np.bool_]:
    xy, owner = shapely.get_coordinates(shapes, return_index=True)
    good = np.ones(len(shapes), dtype=bool)
    good[owner[~np.asarray(test(xy)).all(axis=1)]] = False
    return good


def _refuse(bad: NDArray[np.bool_], index: pd.Index, why: str) -> None:
    if bad.any():
        raise ValueError(f"zone {_shown(index, int(np.argmax(bad)))} {why}")


def _shown(index: pd.Index, position: int) -> str:
    return repr(index[position : position + 1].tolist()[0])


def _refuse_overlaps(shapes: _Shapes, index: pd.Index) -> None:
    """Name the first two zones whose interiors share more than a sliver."""
    shapely.prepare(shapes)
    first, second = shapely.STRtree(shapes).query(shapes)
    first, second = first[first < second], second[first < second]
    inside = shapely.relate_pattern(shapes[first], shapes[second], "T********")
    first, second = first[inside], second[inside]
    shared = shapely.area(shapely.intersection(shapes[first], shapes[second]))
    areas = shapely.area(shapes)
    bad = np.flatnonzero(shared > _SLIVER * np.minimum(areas[first], areas[second]))
    if len(bad):
        one, other = min(zip(first[bad], second[bad], strict=True))
        raise ValueError(
            f"zones {_shown(index, one)} and {_shown(index, other)} overlap. overlap='first' gives each "
            "point to the first zone by key; overlap='count' counts it in each."
        )
