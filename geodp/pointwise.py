"""What is asked of :func:`geodp.perturb`, without data: the terms, their key, their record and their words."""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import islice
from typing import Any

import geopandas as gpd

from geodp._version import __version__
from geodp.exact import exact, exact_positive, floor_double, plain, whole
from geodp.metric import GUARANTEE, metric_terms
from geodp.policy import EachRow
from geodp.remapping import parse_region
from geodp.sphere import RADIUS_KM
from geodp.subjects import check_subject_dtype
from geodp.wording import bounded, brief

__all__ = ["Pointwise", "check_columns", "loss_per_km", "per_radian", "pointwise"]

_LEAST_SNAP_M, _MOST_SNAP_M = 1, 100_000
_MOST_EPS = 1000
_MOST_REPORTS = 10**9
_MOST_KEPT = 10_000
_UNIT_ROOM, _KEEP_ROOM = 200, 500  # bytes of JSON, so that a record stays below 2 kB


@dataclass(frozen=True)
class Pointwise:
    """The terms of one call: everything of its result but the points and the kept columns."""

    eps: Fraction
    snap: Fraction
    region: Any
    digest: str | None
    subject: str | None
    max_reports: int | None
    keep: tuple[Hashable, ...]

    @property
    def key(self) -> str:
        """Canonical JSON of the public arguments: equal keys name the same release."""
        arguments = {
            "query": "perturb",
            "eps_per_km": str(self.eps),
            "snap_m": str(self.snap),
            "remap": self.digest,
            "subject": self.subject,
            "max_reports": self.max_reports,
        }
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        """Return the terms' part of the record, plain JSON below 2 kB; exact amounts under ``"metric"``."""
        return {
            "query": "perturb",
            "version": __version__,
            "guarantee": GUARANTEE,
            "guarantee_text": self._words(),
            "eps_per_km": plain(self.eps),
            "unit": "row" if self.subject is None else bounded(self.subject, _UNIT_ROOM),
            "reports_per_subject": self.max_reports,
            "worst_eps_per_km": None if self.max_reports is None else plain(self.eps * self.max_reports),
            "metric": metric_terms(self.eps, self.max_reports),
            "snap_m": plain(self.snap),
            "remap": self.digest,
            "keep": _names(self.keep),
        }

    def _words(self) -> str:
        """Say the guarantee in English."""
        each = (
            f"What is seen of one report is at most exp({_short(self.eps)} * d) times as likely from one "
            "place as from another d km away (WGS84)."
        )
        if self.max_reports is None:
            together = "Reports of one person multiply, and nothing limits them here."
        else:
            worst = _short(self.eps * self.max_reports)
            reports = "1 report" if self.max_reports == 1 else f"{self.max_reports} reports"
            together = f"At most {reports} of a subject: exp({worst} * d) together."
        kept = " The kept columns are not protected." if self.keep else ""
        return f"{each} {together}{kept} That a report exists is not hidden; this is not (eps, delta)-DP."


def pointwise(eps: Any, snap_m: Any, remap: Any, subject: Any, max_reports: Any, keep: Any) -> Pointwise:
    """Check every argument that needs no frame; the errors are those of :func:`geodp.perturb`."""
    snap = exact(snap_m, "snap_m")
    if not _LEAST_SNAP_M <= snap <= _MOST_SNAP_M:
        raise ValueError(
            f"snap_m must be from {_LEAST_SNAP_M} to {_MOST_SNAP_M} metres, got {brief(snap_m)}."
        )
    column, limit = _who(subject, max_reports)
    region, digest = (None, None) if remap is None else parse_region(remap)
    return Pointwise(loss_per_km(eps), snap, region, digest, column, limit, _kept(keep))


def loss_per_km(value: Any) -> Fraction:
    """Return ``eps_per_km`` exactly, above 0 and at most 1000."""
    eps = exact_positive(value, "eps_per_km")
    if eps > _MOST_EPS:
        raise ValueError(
            f"eps_per_km must be at most {_MOST_EPS}, got {brief(value)}: points would move by less than 2 m. "
            "It is the loss per kilometre; 1 moves a point by 2 km on average."
        )
    return eps


def per_radian(eps: Fraction) -> float:
    """Return k, the loss per radian, never above what was asked."""
    return floor_double(eps * RADIUS_KM)


def check_columns(gdf: gpd.GeoDataFrame, asked: Pointwise) -> None:
    """Check the arguments against the frame's schema; rows are not looked at."""
    named = asked.keep if asked.subject is None else (asked.subject, *asked.keep)
    columns = list(gdf.columns)
    for name in named:
        if columns.count(name) != 1:
            found = "no column" if name not in columns else "several columns"
            raise ValueError(f"the frame has {found} {brief(name)}; subject and keep name its columns.")
    for name in asked.keep:
        if name == "geometry" or gdf.dtypes[name] == "geometry":
            raise ValueError(
                f"keep={brief(name)} is a geometry, or named like one: it would publish true positions."
            )
    if asked.subject is not None:
        check_subject_dtype(gdf.dtypes[asked.subject], asked.subject)


def _who(subject: Any, max_reports: Any) -> tuple[str | None, int | None]:
    if subject is None or isinstance(subject, EachRow):
        if max_reports is not None:
            raise ValueError(
                "max_reports limits the reports of one subject, and none was named. Name the column that "
                'says whose a report is: subject="rider".'
            )
        return None, None
    if not isinstance(subject, str):
        raise TypeError(f"subject must be the name of a column, got {type(subject).__name__}.")
    if max_reports is None:
        raise ValueError(
            f"max_reports is required with subject={subject!r}: the most points published for one subject. "
            "Each costs eps_per_km again; 1 suits one position per person."
        )
    return subject, whole(max_reports, "max_reports", 1, _MOST_REPORTS)


def _kept(keep: Any) -> tuple[Hashable, ...]:
    if isinstance(keep, str | bytes) or not isinstance(keep, Iterable):
        raise TypeError(f'keep must be a list of column names such as keep=["minutes"], got {brief(keep)}.')
    names = tuple(islice(keep, _MOST_KEPT + 1))
    if len(names) > _MOST_KEPT:
        raise ValueError(f"keep names more than {_MOST_KEPT:,} columns.")
    if len(set(names)) < len(names):
        raise ValueError("keep names a column twice.")
    return names


def _names(keep: tuple[Hashable, ...]) -> list[str] | dict[str, Any]:
    """Return the kept columns' names, or their number and digest where a record would grow too long."""
    names = [str(name) for name in keep]
    text = json.dumps(names)
    if len(text) <= _KEEP_ROOM:
        return names
    return {"columns": len(names), "sha256": sha256(text.encode()).hexdigest()[:16]}


def _short(number: Fraction) -> str:
    return f"{float(number):.6g}"
