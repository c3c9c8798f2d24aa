"""Seeds are the tests' own: no function of the library takes one, and none draws from a generator that has one.

The one exception is ``geodp.testing``, which works only where the environment says so, and stamps what it releases.
"""

import ast
from pathlib import Path

import pytest

import geodp

SOURCES = sorted(Path(geodp.__file__).parent.rglob("*.py"))
ALLOWED = "testing.py"
NAMES = {"seed", "seeds", "rng", "random_state", "random_seed", "generator"}
MODULES = {"random", "numpy.random"}
CALLS = {
    "default_rng",
    "RandomState",
    "PCG64",
    "Philox",
    "MT19937",
    "SFC64",
    "SeedSequence",
    "Generator",
    "seed",
}


def seeds(source):
    """Return what of a module takes a seed, or could."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg in NAMES:
            yield f"line {node.lineno}: a parameter {node.arg}"
        elif isinstance(node, ast.keyword) and node.arg in NAMES:
            yield f"line {node.lineno}: an argument {node.arg}="
        elif (isinstance(node, ast.Import) and MODULES & {name.name for name in node.names}) or (
            isinstance(node, ast.ImportFrom) and node.module in MODULES
        ):
            yield f"line {node.lineno}: an import"
        elif isinstance(node, ast.Attribute) and (node.attr in CALLS or ast.unparse(node) == "np.random"):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_the_library_takes_no_seed(path):
    found = list(seeds(path.read_text(encoding="utf-8")))
    assert bool(found) == (path.name == ALLOWED), found


@pytest.mark.parametrize(
    "planted",
    [
        "def heatmap(gdf, eps, *, seed=None): pass",
        "def draw(size, rng): pass",
        "frame.sample(frac=1, random_state=1)",
        "import random",
        "from numpy.random import default_rng",
        "noise = np.random.laplace(size=3)",
        "bits = numpy.random.PCG64(1)",
        "random.seed(1)",
    ],
)
def test_a_planted_seed_is_found(planted):
    assert list(seeds(planted))
