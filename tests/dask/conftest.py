"""Keep the folders of tests from being taken for packages."""

import sys
from pathlib import Path

# dask, here and in workers, tries optional packages by name, and a folder of that name would be one.
sys.path[:] = [entry for entry in sys.path if Path(entry) != Path(__file__).parents[1]]
