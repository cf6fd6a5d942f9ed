"""The ``daskscope`` command: finds the subcommand, runs it, and turns what went wrong into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import click

from daskscope import __version__
from daskscope.cli import (
    demo,
    doctor,
    explain,
    export,
    import_,
    login,
    ls,
    open,
    preview,
    reports,
    serve,
    show,
    token,
    top,
    user,
)
from daskscope.cli.output import complain
from daskscope.errors import DaskscopeError

#: Every command, in the order of the help text. A command is a module named like it.
COMMANDS: list[ModuleType] = [
    demo,
    serve,
    login,
    ls,
    show,
    explain,
    reports,
    open,
    export,
    import_,
    preview,
    token,
    top,
    user,
    doctor,
]

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None, *, prog: str = "daskscope") -> int:
    """Run a command line; the result is the exit code."""
    parser = build_parser(prog)
    args = parser.parse_args(argv)
    if args.run is None:
        parser.print_help()
        return 0
    try:
        code: int = args.run(args)
        # Here rather than at exit, where a reader that has gone away would make a traceback.
        sys.stdout.flush()
    except DaskscopeError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `daskscope show … | head`: what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    return code


def build_parser(prog: str = "daskscope") -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = argparse.ArgumentParser(prog=prog, description="The flight recorder for Dask.")
    parser.add_argument("--version", action="version", version=f"daskscope {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in COMMANDS:
        text = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(command_name(module), help=text, description=text)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser


def command_name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].rstrip("_")


@click.command("scope", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dask_scope(arguments: tuple[str, ...]) -> None:
    """Show what daskscope recorded; the same as the daskscope command."""
    sys.exit(main(arguments, prog="dask scope"))
