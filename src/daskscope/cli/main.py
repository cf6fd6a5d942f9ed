"""The ``daskscope`` command: run a subcommand and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from importlib import import_module
from types import ModuleType

import click

from daskscope import __version__
from daskscope.cli.output import write_message
from daskscope.errors import DaskscopeError

#: The module of every command, in the groups and the order of the help text. A command has the name of its module, with a dash
#: for an underscore. Only the module of the command that runs is imported: all of them take 0.2 s, mostly for distributed.
GROUPS: dict[str, list[str]] = {
    "record": ["demo", "watch", "serve", "preview"],
    "look": ["ls", "top", "show", "explain", "compare", "what_if", "sql", "open", "export", "import_", "mcp"],
    "team": ["login", "account", "reports", "token"],
    "administer": ["user", "audit", "doctor"],
}
COMMANDS: list[str] = [name for names in GROUPS.values() for name in names]

#: Commands that always use the configured server.
USE_SERVER = ("account", "ls", "explain", "reports", "token", "top", "user", "audit")

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None, *, prog: str = "daskscope") -> int:
    """Run a command line and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser(prog, [name for name in COMMANDS if words and command_name(name) == words[0]])
    args = parser.parse_args(words)
    if args.run is None:
        parser.print_help()
        return 0
    try:
        if args.module in USE_SERVER:
            warn_of_expiry(getattr(args, "account", None) or "")
        code: int = args.run(args)
        # Flush here: at exit, a closed pipe would print a traceback.
        sys.stdout.flush()
    except DaskscopeError as error:
        write_message(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `daskscope show … | head`: discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    return code


class GroupedParser(argparse.ArgumentParser):
    """A parser whose help lists the commands in groups. argparse has one list."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        for title, names in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments(argparse.Action([], command_name(one), help=summary(one)) for one in names)
            formatter.end_section()
        return f"{super().format_help()}\n{formatter.format_help()}"


def load_command(name: str) -> ModuleType:
    """Import the module of a command."""
    return import_module(f"daskscope.cli.{name}")


def summary(name: str) -> str:
    """Return the sentence that describes a command."""
    return (load_command(name).__doc__ or "").splitlines()[0]


def build_parser(prog: str = "daskscope", names: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser with the given commands, by default with all."""
    usage = f"{prog} [-h] [--version] COMMAND ..."
    parser = GroupedParser(prog=prog, usage=usage, description="The flight recorder for Dask.")
    parser.add_argument("--version", action="version", version=f"daskscope {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(
        prog=prog, metavar="COMMAND", parser_class=argparse.ArgumentParser, help=argparse.SUPPRESS
    )
    for name in names or COMMANDS:
        module = load_command(name)
        command = commands.add_parser(command_name(name), description=summary(name))
        module.configure(command)
        command.set_defaults(run=module.run, module=name)
    return parser


def command_name(module: str) -> str:
    return module.rstrip("_").replace("_", "-")


@click.command("scope", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dask_scope(arguments: tuple[str, ...]) -> None:
    """Run a daskscope command, for example: dask scope show run.daskscope."""
    sys.exit(main(arguments, prog="dask scope"))


#: As the server's lists: ``EXPIRES_SOON_US`` in ``storage.tokens``.
SOON = timedelta(days=14)


def warn_of_expiry(account: str) -> None:
    """Write one line if the saved token for the configured server expires within two weeks."""
    # `serve` needs no configuration of Dask: importing it takes 0.3 s of CPU time.
    from daskscope.client import credentials
    from daskscope.client.server import chosen_account, configured_url

    url = configured_url()
    if not url or os.environ.get(credentials.ENVIRONMENT):
        return
    used = credentials.find_credential(url, chosen_account(url, account))
    if used is None or not used.expires:
        return
    try:
        expires = datetime.fromisoformat(used.expires.replace("Z", "+00:00"))
    except ValueError:
        return
    left = expires - datetime.now(timezone.utc)
    if timedelta(0) < left <= SOON:
        command = f"daskscope login --server {used.server}"
        write_message(f"your token expires on {expires:%Y-%m-%d}. Renew it with: {command}")
