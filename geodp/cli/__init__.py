"""The command line: ``geodp plan``, ``heatmap``, ``audit``, ``ledger`` and ``show``.

What is typed goes through the same plans and the same release as in a notebook. Only what a scheduler needs is
added: files in and out, exit codes, and one line for an error.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``geodp`` on the command line; by default what was typed there.

    Returns
    -------
    int
        0 done; 2 bad arguments; 3 the ledger's ceiling would be passed; 4 bad input, such as a file that
        cannot be read or a ledger that cannot be trusted; 5 done, files and debits included, but stdout could not
        be written; 1 any other failure; 130 interrupted, 143 stopped.
    """
    _occupy()
    try:
        import click  # noqa: F401
    except ImportError:
        with suppress(OSError, ValueError):
            print("geodp: the command line needs click: pip install 'geodp[cli]'", file=sys.stderr)
        return 2
    from geodp.cli.running import run

    return run(list(sys.argv[1:] if arguments is None else arguments))


def _occupy() -> None:
    """Open nothing in the place of a standard stream that was closed.

    The next file opened would get its number: a map perhaps, and whatever a library prints on stderr would be written
    into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
