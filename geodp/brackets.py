"""The features of a JSON document one by one, found by its brackets alone.

A parser that follows nested values takes a step down the stack for each, and gives up on the whole document where
one value goes too deep. Brackets can be counted without that, so the feature that holds such a value is told apart
from all others, and each is parsed alone.
"""

import re

__all__ = ["PIECE", "apart"]

PIECE = ""  # the name under which the number of a piece is left in its place
_DEEP = 100  # outside of features nothing that a reader needs is nested as far
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]', re.DOTALL)


def apart(text: str) -> tuple[str, list[str]]:
    """Take what stands in the arrays of an object out of a document.

    Parameters
    ----------
    text : str
        JSON, nested however deep.

    Returns
    -------
    rest : str
        The document with ``{"": i}`` for the i-th object or array that stood in an array of the outermost object,
        and with ``null`` for everything else that is nested more than 100 deep.
    pieces : list of str
        What was taken out.

    Examples
    --------
    >>> apart('{"type": "A", "features": [{"a": [1]}, 2, {"b": "]"}]}')
    ('{"type": "A", "features": [{"": 0}, 2, {"": 1}]}', ['{"a": [1]}', '{"b": "]"}'])
    """
    rest: list[str] = []
    pieces: list[str] = []
    open_, cut, start, done = [""], 0, 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            if not cut and (len(open_) > _DEEP or (len(open_) == 3 and open_[1:] == ["{", "["])):
                cut, start = len(open_), token.start()
            open_.append(mark)
        elif mark in "]}" and len(open_) > 1:
            open_.pop()
            if len(open_) == cut:
                rest += text[done:start], f'{{"{PIECE}": {len(pieces)}}}' if cut == 3 else "null"
                if cut == 3:
                    pieces.append(text[start : token.end()])
                cut, done = 0, token.end()
    return "".join([*rest, text[done:]]), pieces
