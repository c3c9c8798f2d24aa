"""Parsers of texts and files, fed with bytes of any kind; coverage_guided.py does the same with atheris."""

import parsers
import pytest
from hostile import COUNTED, TRICKS, limited, much, some
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def changed(draw, seeds):
    """A good input, some of whose bytes were overwritten, left out, doubled or exchanged for a trick."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 6)))
        tricks = st.sampled_from([text.encode("utf-8", "surrogatepass") for text in TRICKS[:-1]])
        piece = draw(st.one_of(st.binary(max_size=6), st.just(content[start:end] * 2), tricks))
        content = content[:start] + piece + content[end:]
    return content


def parsed(data, name):
    content = data.draw(st.one_of(changed(parsers.seeds(name)), st.binary(max_size=40)))
    with limited():
        accepted = parsers.PARSERS[name](content)
    COUNTED["returned" if accepted else "refused"] += 1


@pytest.mark.parametrize("name", parsers.PARSERS)
@some(15)
@given(data=st.data())
def test_parsers(name, data):
    parsed(data, name)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", parsers.PARSERS)
@much(150)
@given(data=st.data())
def test_many_parsers(name, data):
    parsed(data, name)


@pytest.mark.parametrize("name", parsers.PARSERS)
def test_seeds_are_good_inputs(name):
    """Otherwise the fuzzing would not get far into the parser."""
    good = sum(parsers.PARSERS[name](content) for content in parsers.seeds(name))
    assert good > 0
