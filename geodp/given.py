"""Two words that arguments can have where ``None`` would mean something else.

They stand apart because the accessor's signatures need them, and the accessor is all that importing geodp loads.
"""

from enum import Enum

__all__ = ["EACH_ROW", "NOT_GIVEN", "EachRow", "NotGiven"]


class NotGiven(Enum):
    """The default of arguments for which ``None`` would mean something else."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return "<not given>"


class EachRow(Enum):
    """Says that every row is its own subject, on purpose."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        return "geodp.EACH_ROW"


NOT_GIVEN = NotGiven.NOT_GIVEN
EACH_ROW = EachRow.EACH_ROW
