"""How often the whole suite fails by chance: each sampled test says its rate, and a run adds them up.

``@pytest.mark.sampled(rate=1e-9)`` states an upper bound on the probability that a test fails although nothing is
wrong: that a check which may fail by chance does, and that a planted fault is not seen. It is the rate of one item;
a parametrized test has it once for each of its cases. A collection whose rates add up to 1e-4 is refused.
"""

import pytest

__all__ = ["ALLOWED", "pytest_collection_modifyitems", "pytest_terminal_summary", "rate_of"]

ALLOWED = 1e-4
_RATES = pytest.StashKey()


def rate_of(item):
    """Return the stated rate of one test; what is stated for a class or a module is added."""
    rates = [mark.kwargs["rate"] for mark in item.iter_markers("sampled")]
    if any(not 0 < rate < 1e-5 for rate in rates):
        raise pytest.UsageError(f"{item.nodeid}: rate must be above 0 and below 1e-5, got {rates}.")
    return sum(rates)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Add the rates up, before any test is left out by a marker."""
    rates = {item.nodeid: rate_of(item) for item in items}
    config.stash[_RATES] = {name: rate for name, rate in rates.items() if rate}
    total = sum(rates.values())
    if total >= ALLOWED:
        raise pytest.UsageError(
            f"sampled tests fail by chance in {total:.2g} of runs; {ALLOWED:.0e} is allowed."
        )


def pytest_terminal_summary(terminalreporter, config):
    """Say what was added up."""
    rates = config.stash.get(_RATES, {})
    if rates:
        terminalreporter.write_line(
            f"{len(rates)} sampled tests; false alarms in fewer than {sum(rates.values()):.1e} of runs"
        )
