"""Options from a TOML file: a table for each command, and above the tables what all commands share.

The command line wins. Paths are relative to the file, so that a cron line need not change folders first. A
label is not taken from a file: it would stay the same, and publish its first night for ever.
"""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from geodp.cli.failures import BAD_ARGUMENTS, BAD_INPUT, Failure

__all__ = ["config"]

_PATHS = ("input", "output", "ledger", "zones")
_SEVERAL = ("output", "by")
_COMMANDS = ("plan", "heatmap", "audit")


def config(command: Any) -> Any:
    """Add ``--config FILE`` to a command."""
    return click.option(
        "--config",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="TOML with defaults; the command line wins.",
    )(command)


def _read(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    tables = _parsed(path)
    shared = {name: value for name, value in tables.items() if name not in _COMMANDS}
    own = tables.get(str(ctx.info_name), {})
    if not isinstance(own, dict):
        raise Failure(f"{path}: {ctx.info_name} must be a table, [{ctx.info_name}].", BAD_ARGUMENTS)
    known = {p.name: p for p in ctx.command.params if p.name not in ("config", "label")}
    spelled = {_name(name): value for name, value in {**shared, **own}.items()}
    _refuse_unknown(path, ctx, {_name(name) for name in own}, set(known))
    _refuse_unknown(path, ctx, {_name(name) for name in shared}, set(known) | _anywhere(ctx))
    folder = Path(path).resolve().parent
    ctx.default_map = {name: _value(name, value, folder) for name, value in spelled.items() if name in known}


def _parsed(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"), parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path} is no TOML: {error}.", BAD_ARGUMENTS) from None
    except (OSError, UnicodeDecodeError):
        raise Failure(f"{path}: it cannot be read.", BAD_INPUT) from None
    except (RecursionError, ValueError):  # nested deeper, or longer numbers, than Python reads
        raise Failure(
            f"{path} is no TOML that can be read: nested too deep, or a number too long.", BAD_ARGUMENTS
        ) from None


def _name(key: str) -> str:
    name = key.replace("-", "_")
    return f"{name}_" if name == "sum" else name


def _anywhere(ctx: click.Context) -> set[str]:
    """Return what any command takes: shared options need not fit each of them."""
    group = ctx.parent.command if ctx.parent else None
    commands = group.commands if isinstance(group, click.Group) else {}
    return {str(p.name) for name in _COMMANDS if name in commands for p in commands[name].params} - {"label"}


def _refuse_unknown(path: str, ctx: click.Context, given: set[str], known: set[str]) -> None:
    if "label" in given:
        raise Failure(
            f"{path}: a label in a file stays the same, and would publish its first night for ever. Type it: "
            '--label "$(date +%F)".',
            BAD_ARGUMENTS,
        )
    if unknown := sorted(given - known):
        names = ", ".join(sorted(name.rstrip("_") for name in known))
        raise Failure(
            f"{path}: geodp {ctx.info_name} has no option {unknown[0]!r}; it has {names}.", BAD_ARGUMENTS
        )


def _value(name: str, value: Any, folder: Path) -> Any:
    if name == "by" and isinstance(value, Mapping):
        return list(value.items())
    if name in _SEVERAL and not isinstance(value, list):
        value = [value]
    if name in _PATHS:
        return [_path(one, folder) for one in value] if isinstance(value, list) else _path(value, folder)
    return value


def _path(value: Any, folder: Path) -> Any:
    return value if "://" in str(value) or str(value).startswith("/vsi") else str(folder / str(value))
