"""Every test that may fail by chance says how often, and the suite adds it up (``tests/false_alarms.py``)."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from false_alarms import ALLOWED, pytest_collection_modifyitems, rate_of

TESTS = Path(__file__).parents[1]
# What tests that look at samples are written with.
CHANCE = re.compile(
    r"false alarm|\bbinom\.|\bchi2\.|\bnorm\.(sf|cdf)|in fewer than 1 of|of all runs|ENTROPY\)|\.sample\(\d",
    re.I,
)
# Written with these words, and exact all the same: seeded words, fixed keys, scripted bits, or no draw at all.
EXACT = {
    "test_a_map_cut_at_a_threshold_costs_eps_and_no_less",
    "test_every_row_has_the_same_chance_even_where_values_repeat",
    "test_noise_is_clamped_where_no_one_will_ever_be",
    "test_further_bits_decide_at_a_border",
    "test_further_bits_decide_in_the_tail",
    "test_a_sampler_without_further_bits_would_be_caught",
    "test_words_name_the_integers_that_80_digits_give",
    "test_the_choice_is_uniform",
    "test_intervals_are_hardly_wider_than_they_must_be",
}


def sources(path):
    """Return the source of each test of a file, with its decorators."""
    source = path.read_text()
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, "\n".join(lines[first - 1 : node.end_lineno])


def test_whatever_looks_at_samples_states_its_rate():
    missing = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        if path != Path(__file__)
        for name, source in sources(path)
        if CHANCE.search(source) and "sampled(rate=" not in source and name not in EXACT
    ]
    assert not missing


def item(name, *rates):
    marks = [SimpleNamespace(kwargs={"rate": rate}) for rate in rates]
    return SimpleNamespace(nodeid=name, iter_markers=lambda wanted: marks if wanted == "sampled" else [])


def test_rates_are_added_up_and_a_suite_that_fails_by_chance_is_refused():
    config = SimpleNamespace(stash={})
    items = [item(f"t{i}", 9e-6) for i in range(11)]
    pytest_collection_modifyitems(config, [*items, item("exact")])
    (rates,) = config.stash.values()
    assert sum(rates.values()) == pytest.approx(9.9e-5)
    assert len(rates) == 11
    with pytest.raises(pytest.UsageError, match="fail by chance"):
        pytest_collection_modifyitems(config, [*items, item("one too many", 1e-6)])
    assert ALLOWED == 1e-4


@pytest.mark.parametrize("rate", [0, -1e-9, 1e-5, 1])
def test_a_rate_is_small_and_above_0(rate):
    with pytest.raises(pytest.UsageError, match="rate"):
        rate_of(item("t", rate))
    assert rate_of(item("t", 1e-9, 2e-9)) == pytest.approx(3e-9)


def test_this_run_adds_up_to_less_than_is_allowed(request):
    """Of all tests that were collected, this one among them."""
    rates = {found.nodeid: rate_of(found) for found in request.session.items}
    assert sum(rates.values()) < ALLOWED
    for name, rate in sorted(rates.items(), key=lambda pair: -pair[1]):
        if rate:
            print(f"{rate:.1e}  {name}")
