"""From the arguments to an exit code: the group of commands, and the one line that an error becomes."""

import signal
from contextlib import suppress
from traceback import walk_tb
from types import FrameType
from typing import Any, NoReturn

import click

from geodp._version import __version__
from geodp.cli.books import ledger
from geodp.cli.failures import BAD_ARGUMENTS, DONE, UNHEARD, failure
from geodp.cli.maps import audit, heatmap, plan
from geodp.cli.saying import Unheard, as_json, flushed, say, tell
from geodp.cli.showing import show

__all__ = ["geodp", "run"]

_INTERRUPTED, _STOPPED = 130, 143


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 2 bad arguments, 3 budget exceeded, 4 bad input, 5 done, but stdout could not be "
    "written, 1 anything else.",
)
@click.version_option(__version__, prog_name="geodp", message="%(prog)s %(version)s")
def geodp() -> None:
    """Differentially private maps of people's whereabouts."""


for command in (plan, heatmap, audit, ledger, show):
    geodp.add_command(command)


def run(arguments: list[str]) -> int:
    """Run one command; print an error as one line, and with ``--json`` as JSON on stdout too."""
    before = _stoppable()
    try:
        code = _done(arguments)
        flushed()
        return code
    except Unheard as lost:
        return _unheard(str(lost))
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.ClickException as error:
        return _failed(_usage(error), BAD_ARGUMENTS, {}, arguments)
    except (KeyboardInterrupt, click.Abort):
        return _failed("interrupted.", _INTERRUPTED, {}, arguments)
    except SystemExit as stopped:
        # Click itself leaves like this, without a word, when nobody reads its help any more.
        if stopped.code == _STOPPED:
            return _failed("stopped.", _STOPPED, {}, arguments)
        return _unheard("stdout could not be written (Broken pipe)")
    except Exception as error:
        known = failure(error)
        return _failed(str(known), known.code, known.facts, arguments)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _done(arguments: list[str]) -> int:
    try:
        return int(geodp.main(args=arguments, prog_name="geodp", standalone_mode=False) or DONE)
    except OSError as error:
        if any(frame.f_code is click.echo.__code__ for frame, _ in walk_tb(error.__traceback__)):
            flushed()
            raise Unheard(
                f"stdout could not be written ({error.strerror})"
            ) from None  # click's help, that is
        raise


def _unheard(why: str) -> int:
    say(f"done, but {why}.")
    return UNHEARD


def _failed(message: str, code: int, facts: dict[str, Any], arguments: list[str]) -> int:
    say(message)
    if "--json" in arguments:
        with suppress(Unheard):
            tell(as_json({"status": "failed", "code": code, "error": message, **facts}))
    with suppress(Unheard):
        flushed()
    return code


def _usage(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    hint = f" See {ctx.command_path} --help." if ctx is not None else ""
    return f"{error.format_message()}{hint}"


def _stoppable() -> Any:
    """Let a scheduler's SIGTERM end a command like an interrupt, so that no half file is left behind."""
    try:
        return signal.signal(signal.SIGTERM, _stop)
    except ValueError:  # not the main thread
        return None


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(_STOPPED)
