"""geodp: differentially private maps of people's whereabouts, in geopandas.

Importing registers ``gdf.dp`` on every GeoDataFrame:

    heat = trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
"""

from geodp import accessor as _accessor  # noqa: F401 (registers gdf.dp)
from geodp import mechanisms, testing
from geodp._version import __version__
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
from geodp.mechanisms import choose_mechanism
from geodp.pivoting import pivot
from geodp.plans import Plan
from geodp.policy import EACH_ROW, Policy
from geodp.queries import Centroid, Count, Mean, Sum
from geodp.records import record
from geodp.regions import Total, total
from geodp.together import plan_together, release_together

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
    "compare_plans",
    "compose",
    "delta_for",
    "expected_displacement_m",
    "explain",
    "heatmap",
    "mean",
    "mechanisms",
    "perturb",
    "pivot",
    "plan",
    "plan_together",
    "radius_quantile_m",
    "record",
    "release_together",
    "require_ledger",
    "sum",
    "testing",
    "to_geojson",
    "total",
]
