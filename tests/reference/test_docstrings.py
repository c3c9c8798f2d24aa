"""Every public docstring is complete: its sections say what the signature says, in numpydoc's form."""

import ast
import inspect
import re
import textwrap
from importlib import import_module

import pytest

import geodp
import geodp.testing
from geodp import mechanisms

docscrape = pytest.importorskip("numpydoc.docscrape", reason="needs the extra docs")

# What a Plan and a release ask of queries and grids, described in queries/base.py and grids/base.py.
PROTOCOL = {
    "Grid": {"domain", "estimate", "fitting"},
    "Query": {"columns", "counted", "default_grid", "geometry", "integers", "quantities", "tally"},
}
OWNERS = {
    "geodp": geodp.__all__,
    "geodp.mechanisms": mechanisms.__all__,
    "geodp.testing": geodp.testing.__all__,
    "geodp.accessor": ["Accessor"],
    "geodp.views": ["View"],
}
# Arguments of these are not the caller's: numpy makes the first, and exceptions tell of their attributes.
MADE_ELSEWHERE = (mechanisms.NoisyArray, BaseException)


def is_protocol(cls, name):
    names = {base.__name__ for base in cls.__mro__}
    return any(base in names and name in methods for base, methods in PROTOCOL.items())


def methods_of(cls):
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if (
            inspect.isfunction(function)
            and (name == "__call__" or name[0] != "_")
            and not is_protocol(cls, name)
        ):
            yield name, function


def callables():
    for owner, names in OWNERS.items():
        for name in names:
            thing = getattr(import_module(owner), name)
            if not callable(thing):
                continue
            yield f"{owner}.{name}", thing, None
            if isinstance(thing, type):
                yield from ((f"{owner}.{name}.{method}", it, thing) for method, it in methods_of(thing))


CALLABLES = {name: (thing, owner) for name, thing, owner in callables()}


def parsed(thing):
    doc = inspect.getdoc(thing)
    assert doc, "no docstring"
    return docscrape.NumpyDocString(doc)


def forwarded(thing):
    """Return the public function that a method of ``gdf.dp`` or of a view forwards to, if it does."""
    is_method = "." in thing.__qualname__
    found = is_method and re.search(r"; see :func:`geodp\.(\w+)`", inspect.getdoc(thing) or "")
    return getattr(geodp, found[1]) if found else None


def described(section):
    return {name.strip().lstrip("*") for entry in section for name in entry.name.split(",")}


def expected(thing):
    return set(inspect.signature(thing).parameters) - {"self", "cls"}


def raises(thing):
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


def shown(name, owner):
    """Say whether a class, or one it comes from, shows the method in its examples."""
    docs = (inspect.getdoc(base) or "" for base in owner.__mro__ if base.__module__.startswith("geodp"))
    return any(re.search(rf">>>.*\.{name}\(", doc) for doc in docs)


@pytest.mark.parametrize("name", CALLABLES)
def test_parameters_are_those_of_the_signature(name):
    thing, _ = CALLABLES[name]
    if isinstance(thing, type) and issubclass(thing, MADE_ELSEWHERE):
        return
    target = forwarded(thing)
    if target is not None:
        # One place has the words; what is forwarded has to be described there.
        assert expected(thing) <= described(parsed(target)["Parameters"]) | {"query"}
        return
    doc = parsed(thing)
    if isinstance(thing, type) and not doc["Parameters"]:  # made by the library: its parts are attributes
        assert expected(thing) <= described(doc["Attributes"]) | set(dir(thing)) - {"__init__"}
        return
    assert described(doc["Parameters"]) == expected(thing)


@pytest.mark.parametrize("name", CALLABLES)
def test_results_and_errors_are_described(name):
    thing, _ = CALLABLES[name]
    if isinstance(thing, type) or forwarded(thing):
        return
    doc = parsed(thing)
    if inspect.signature(thing).return_annotation not in (None, "None"):
        assert doc["Returns"] or doc["Yields"], "no Returns section"
    if raises(thing):
        assert doc["Raises"], "no Raises section"


@pytest.mark.parametrize("name", CALLABLES)
def test_an_example_shows_it(name):
    thing, owner = CALLABLES[name]
    if owner is not None and (forwarded(thing) or shown(thing.__name__, owner)):
        return
    assert ">>>" in "\n".join(parsed(thing)["Examples"]), "no example"


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("Do.\n\nParameters\n----------\na, b : int\n", {"a", "b"}),
        ("Do.\n\nParameters\n----------\n**kwargs\n    Any.\n", {"kwargs"}),
        ("Do.\n\na : int\n", set()),
    ],
)
def test_the_test_reads_sections(docstring, found):
    assert described(docscrape.NumpyDocString(docstring)["Parameters"]) == found
