"""The reference leaves no public name out, and invents none."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import geodp
import geodp.testing
from geodp import mechanisms

DOCS = Path(__file__).parents[2] / "docs"
LISTED = re.findall(r"^   ([\w.]+)$", (DOCS / "reference.rst").read_text(encoding="utf-8"), re.MULTILINE)
ELSEWHERE = {"__version__", "mechanisms", "testing", "command-line", "mechanisms.choose_mechanism"}
WORDS = {"testing.NOT_PRIVATE", "testing.OS_ENTROPY"}


def public():
    yield from geodp.__all__
    yield from (f"mechanisms.{name}" for name in mechanisms.__all__)
    yield from (f"testing.{name}" for name in geodp.testing.__all__)


@pytest.mark.parametrize("name", sorted(set(public()) - ELSEWHERE - WORDS))
def test_every_public_name_has_a_page(name):
    assert LISTED.count(name) == 1


@pytest.mark.parametrize("name", LISTED)
def test_every_page_is_about_something(name):
    module, _, last = f"geodp.{name}".rpartition(".")
    assert getattr(import_module(module), last).__doc__


def test_all_texts_are_pages():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.stem for page in DOCS.glob("*.*") if page.suffix in {".md", ".rst"}}
    for page in pages - {"index", "command-line"} | {"../README", "../PRIVACY", "../CONTRIBUTING"}:
        assert re.search(rf"(^|<){re.escape(page)}>?$", index, re.MULTILINE), page


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), *(DOCS.parent / name for name in ("README.md", "PRIVACY.md"))]
)
def test_names_in_the_texts_exist(page):
    """What a text calls ``geodp.something`` is there."""
    import geodp.dask

    for dotted in set(re.findall(r"\bgeodp((?:\.[a-zA-Z_]\w*)+)", page.read_text(encoding="utf-8"))):
        thing = geodp
        for name in dotted.split(".")[1:]:
            assert hasattr(thing, name), f"geodp{dotted}"
            thing = getattr(thing, name)
