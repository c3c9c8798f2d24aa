"""geodp: differentially private maps of people's whereabouts, in geopandas.

Importing registers ``gdf.dp`` on every GeoDataFrame:

    heat = trips.dp.heatmap(1.0, 1e-6, subject="rider", cap=4, bounds=(-74.3, 40.4, -73.6, 41.0), grid="h3:8")
"""

from geodp import accessor as _accessor  # registers gdf.dp
from geodp import mechanisms, testing
from geodp._version import __version__
from geodp.accounting import Budget, Charge, delta_for
from geodp.calls import heatmap, plan
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
from geodp.grids import H3, Square
from geodp.grids.zones import Zones
from geodp.mechanisms import choose_mechanism
from geodp.plans import Plan
from geodp.policy import EACH_ROW, Policy
from geodp.queries import Count
from geodp.records import record

__all__ = [
    "EACH_ROW",
    "H3",
    "BoundsWarning",
    "Budget",
    "BudgetExceeded",
    "Charge",
    "Count",
    "GeoDPError",
    "GeoDPWarning",
    "IncompleteRelease",
    "LedgerError",
    "NoiseWarning",
    "NotARelease",
    "Plan",
    "Policy",
    "PopulationWarning",
    "PrivacyUnitWarning",
    "ReplayWarning",
    "Square",
    "Zones",
    "__version__",
    "choose_mechanism",
    "delta_for",
    "heatmap",
    "mechanisms",
    "plan",
    "record",
    "testing",
]
