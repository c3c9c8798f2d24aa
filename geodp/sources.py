"""Points that do not lie in one frame in memory, but in partitions elsewhere.

A release needs three things of its points: a schema to check, the exact totals of bounded contributions,
and nothing more. A frame in memory gives both by itself; whatever else can give them is a
:class:`Partitioned`. :mod:`geodp.dask` has one and says here for which type of frame.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import geopandas as gpd

    from geodp.plans import Plan
    from geodp.queries import Rows

__all__ = ["Counter", "KeysPerSubject", "Partitioned", "Tally", "register", "schema", "source"]

Ints = NDArray[np.int64]


class Counter(Protocol):
    """What is counted of rows: exact integers that add up over disjoint sets of subjects.

    Attributes
    ----------
    keys_looked_at : int or None
        Of each subject, only so many keys matter: the first in the order of the sample under the cap.
        ``None``: all of them do.
    """

    @property
    def keys_looked_at(self) -> int | None:
        """Of each subject, only so many keys matter."""

    def __call__(self, rows: "Rows", secret: bytes) -> dict[str, Ints]:
        """Return vectors of integers."""


class Tally:
    """The totals that a plan adds noise to.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan

    @property
    def keys_looked_at(self) -> int | None:
        """The cap where keys are sampled; all keys count in weights and in rescaled totals."""
        return None if self.plan.query.takes_all_keys else self.plan.policy.cap

    def __call__(self, rows: "Rows", secret: bytes) -> dict[str, Ints]:
        """Bound every subject's contribution and add up."""
        return self.plan.query.tally(rows, self.plan.layout, self.plan.mechanism, secret)


class KeysPerSubject:
    """How many subjects are in 0, 1, ..., ``most`` keys, and in more than that, as ``most + 1``.

    Parameters
    ----------
    plan : Plan
        Says which keys there are.
    most : int
        From here on it does not matter how many.
    """

    def __init__(self, plan: "Plan", most: int) -> None:
        self.plan, self.most = plan, most

    @property
    def keys_looked_at(self) -> int:
        """One more than ``most``."""
        return self.most + 1

    def __call__(self, rows: "Rows", secret: bytes) -> dict[str, Ints]:
        """Return the number of subjects by their number of keys, shape (most + 2,)."""
        from geodp.quantiles import keys_per_subject

        lengths = np.minimum(keys_per_subject(rows, self.plan.layout), self.most + 1)
        return {"subjects": np.bincount(lengths, minlength=self.most + 2)}


class Partitioned(ABC):
    """Points in partitions, of which only totals ever come here."""

    @property
    @abstractmethod
    def schema(self) -> "gpd.GeoDataFrame":
        """An empty frame with the columns, dtypes, geometry and CRS that the partitions have."""

    @abstractmethod
    def totals(self, plan: "Plan", counters: Sequence[Counter], secret: bytes) -> list[dict[str, Ints]]:
        """Return what the counters count of all rows, each subject's contribution bounded over all partitions.

        Parameters
        ----------
        plan : Plan
            Places the rows.
        counters : sequence of Counter
            All are asked of the same rows.
        secret : bytes
            16 bytes: the key of the choice under the cap, one for the whole release.

        Raises
        ------
        GeoDPError
            Something failed far away; the message names no row. Nothing has been spent.
        """


_wrappers: dict[type, Callable[[Any], Partitioned]] = {}


def register(kind: type, wrap: Callable[[Any], Partitioned]) -> None:
    """Say how frames of one type become :class:`Partitioned`."""
    _wrappers[kind] = wrap


def source(frame: object) -> Any:
    """Return the points as a release reads them: the frame itself, or its partitions."""
    if isinstance(frame, Partitioned):
        return frame
    wrap = next((wrap for kind, wrap in _wrappers.items() if isinstance(frame, kind)), None)
    return frame if wrap is None else wrap(frame)


def schema(frame: object) -> object:
    """Return an object with the frame's columns, dtypes and CRS; in memory, the frame itself."""
    points = source(frame)
    return points.schema if isinstance(points, Partitioned) else frame
