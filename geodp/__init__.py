"""geodp: differentially private maps of people's whereabouts, in geopandas.

Importing registers ``gdf.dp`` on every GeoDataFrame:

    heat = trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from geodp import accessor as _accessor  # noqa: F401 (registers gdf.dp)
from geodp._version import __version__

if TYPE_CHECKING:
    from geodp import mechanisms, testing
    from geodp.accounting import Budget, Charge, delta_for
    from geodp.auditing import audit
    from geodp.calls import centroid, heatmap, mean, plan, sum
    from geodp.caps import choose_cap
    from geodp.comparing import compare_plans
    from geodp.composition import compose
    from geodp.errors import (
        BoundsWarning,
        BudgetExceeded,
        GeoDPError,
        GeoDPWarning,
        IncompleteRelease,
        LedgerError,
        NoiseWarning,
        NotARelease,
        PopulationWarning,
        PrivacyUnitWarning,
        ReplayWarning,
    )
    from geodp.explaining import explain
    from geodp.exporting import to_geojson
    from geodp.grids import H3, Square
    from geodp.grids.zones import Zones
    from geodp.ledger import Ledger, require_ledger
    from geodp.locations import expected_displacement_m, perturb, radius_quantile_m
    from geodp.maps.contrasts import compare_maps
    from geodp.maps.exploring import explore
    from geodp.maps.plotting import plot
    from geodp.maps.rules import readable
    from geodp.maps.webpage import to_html
    from geodp.mechanisms import choose_mechanism
    from geodp.pivoting import pivot
    from geodp.plans import Plan
    from geodp.policy import EACH_ROW, Policy
    from geodp.queries import Centroid, Count, Mean, Sum
    from geodp.records import record
    from geodp.regions import Total, total
    from geodp.reopening import read_release
    from geodp.signals import signal
    from geodp.together import plan_together, release_together
    from geodp.versions import show_versions

__all__ = [
    "EACH_ROW",
    "H3",
    "BoundsWarning",
    "Budget",
    "BudgetExceeded",
    "Centroid",
    "Charge",
    "Count",
    "GeoDPError",
    "GeoDPWarning",
    "IncompleteRelease",
    "Ledger",
    "LedgerError",
    "Mean",
    "NoiseWarning",
    "NotARelease",
    "Plan",
    "Policy",
    "PopulationWarning",
    "PrivacyUnitWarning",
    "ReplayWarning",
    "Square",
    "Sum",
    "Total",
    "Zones",
    "__version__",
    "audit",
    "centroid",
    "choose_cap",
    "choose_mechanism",
    "compare_maps",
    "compare_plans",
    "compose",
    "delta_for",
    "expected_displacement_m",
    "explain",
    "explore",
    "heatmap",
    "mean",
    "mechanisms",
    "perturb",
    "pivot",
    "plan",
    "plan_together",
    "plot",
    "radius_quantile_m",
    "read_release",
    "readable",
    "record",
    "release_together",
    "require_ledger",
    "show_versions",
    "signal",
    "sum",
    "testing",
    "to_geojson",
    "to_html",
    "total",
]

# Where each name lives: modules are imported when a name of theirs is first used, so that importing geodp costs
# little more than importing geopandas. Must say what the imports above say to type checkers.
_HOME = {
    "Budget": "geodp.accounting",
    "Charge": "geodp.accounting",
    "delta_for": "geodp.accounting",
    "audit": "geodp.auditing",
    "centroid": "geodp.calls",
    "heatmap": "geodp.calls",
    "mean": "geodp.calls",
    "plan": "geodp.calls",
    "sum": "geodp.calls",
    "choose_cap": "geodp.caps",
    "compare_plans": "geodp.comparing",
    "compose": "geodp.composition",
    "BoundsWarning": "geodp.errors",
    "BudgetExceeded": "geodp.errors",
    "GeoDPError": "geodp.errors",
    "GeoDPWarning": "geodp.errors",
    "IncompleteRelease": "geodp.errors",
    "LedgerError": "geodp.errors",
    "NoiseWarning": "geodp.errors",
    "NotARelease": "geodp.errors",
    "PopulationWarning": "geodp.errors",
    "PrivacyUnitWarning": "geodp.errors",
    "ReplayWarning": "geodp.errors",
    "explain": "geodp.explaining",
    "to_geojson": "geodp.exporting",
    "H3": "geodp.grids",
    "Square": "geodp.grids",
    "Zones": "geodp.grids.zones",
    "Ledger": "geodp.ledger",
    "require_ledger": "geodp.ledger",
    "expected_displacement_m": "geodp.locations",
    "perturb": "geodp.locations",
    "radius_quantile_m": "geodp.locations",
    "compare_maps": "geodp.maps.contrasts",
    "explore": "geodp.maps.exploring",
    "plot": "geodp.maps.plotting",
    "readable": "geodp.maps.rules",
    "to_html": "geodp.maps.webpage",
    "choose_mechanism": "geodp.mechanisms",
    "pivot": "geodp.pivoting",
    "Plan": "geodp.plans",
    "read_release": "geodp.reopening",
    "EACH_ROW": "geodp.policy",
    "Policy": "geodp.policy",
    "Centroid": "geodp.queries",
    "Count": "geodp.queries",
    "Mean": "geodp.queries",
    "Sum": "geodp.queries",
    "record": "geodp.records",
    "Total": "geodp.regions",
    "total": "geodp.regions",
    "signal": "geodp.signals",
    "plan_together": "geodp.together",
    "release_together": "geodp.together",
    "show_versions": "geodp.versions",
}
_MODULES = ("mechanisms", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"geodp.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'geodp' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
