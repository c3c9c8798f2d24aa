"""Import dask before anything else here can."""

import sys
from pathlib import Path

# dask looks for optional packages by name, and would take a folder of tests for one of them.
_PATH = list(sys.path)
sys.path[:] = [entry for entry in sys.path if Path(entry) != Path(__file__).parents[1]]
import dask_geopandas  # noqa: E402, F401

sys.path[:] = _PATH
