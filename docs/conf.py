"""Sphinx: the pages of ``make docs``, from the repository's own texts and the docstrings. Needs no network."""

from geodp import __version__

project = "geodp"
author = "The geodp maintainers"
project_copyright = "The geodp maintainers, Apache-2.0"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser", "sphinx_click"]

# The source folder is the repository, so that README and PRIVACY are pages as they are, links included.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [
    "docs/_build",
    "docs/_templates",
    ".venv*",
    "build",
    "dist",
    "geodp",
    "tests",
    "notebooks",
    "benchmarks",
]
templates_path = ["_templates"]

autosummary_generate = True
autosummary_filename_map = {
    f"geodp.{name}": f"geodp.class.{name}" for name in ("Centroid", "Mean", "Plan", "Sum", "Total")
}
autodoc_default_options = {
    # What a Plan and a release ask of queries and grids; described in queries/base.py and grids/base.py.
    "exclude-members": "quantities, integers, tally, columns, geometry, default_grid, counted, "
    "estimate, fitting, domain"
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the Parameters sections say them in words
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"geodp {__version__}"
html_copy_source = False
html_show_sourcelink = False
