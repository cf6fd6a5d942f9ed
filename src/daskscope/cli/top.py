"""Watch the clusters a server keeps, live."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any, NoReturn

from daskscope import units
from daskscope.cli.escape import escape
from daskscope.cli.layout import GAP, Column, shorten, table_cells
from daskscope.cli.output import on_terminal, write
from daskscope.client.server import Server, find_server
from daskscope.errors import ServerError

COLUMNS = [
    Column("name", right=False, name=True),
    Column("user", right=False),
    Column("state", right=False),
    Column("workers"),
    Column("threads", optional=True),
    Column("memory", optional=True),
    Column("running", optional=True),
    Column("tasks"),
    Column("errors"),
    Column("$/h"),
    Column("cost", optional=True),
    Column("age"),
]
#: Clear the screen from the top left corner down, without the flicker of clearing it first.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
ALTERNATE, NORMAL = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="seconds between two looks (default: %(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="also clusters that are finished or lost")
    parser.add_argument("--once", action="store_true", help="print the list once; also what a pipe gets")
    parser.add_argument("--account", metavar="NAME", help="the account, where it is not the usual one")


def run(args: argparse.Namespace) -> int:
    server = find_server(args.account)
    if args.once or not on_terminal():
        write("\n".join(screen(look(server, everything=args.all), None, "")) + "\n")
        return 0
    sys.stdout.write(ALTERNATE)
    try:
        _watch(server, max(0.5, args.every), everything=args.all)
    except KeyboardInterrupt:
        return 0
    finally:
        sys.stdout.write(NORMAL)
        sys.stdout.flush()


def _watch(server: Server, every: float, *, everything: bool) -> NoReturn:
    answer: dict[str, Any] = {"items": [], "states": {}}
    while True:
        try:
            answer, trouble = look(server, everything=everything), ""
        except ServerError as error:
            # What was there stays, and says that it is old.
            trouble = str(error)
        size = shutil.get_terminal_size()
        # A line that is too long would wrap, and push the head off the screen.
        lines = [shorten(line, size.columns) for line in screen(answer, size.columns, trouble)[: size.lines - 1]]
        sys.stdout.write(HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST)
        sys.stdout.flush()
        time.sleep(every)


def look(server: Server, *, everything: bool) -> dict[str, Any]:
    state = "" if everything else "running,idle"
    answer: dict[str, Any] = server.get("clusters", since="7 days" if everything else "all", state=state, limit=200)
    return answer


def screen(answer: dict[str, Any], width: int | None, trouble: str) -> list[str]:
    """The lines of the whole screen."""
    states, items = answer["states"], answer["items"]
    live = f"{units.count(states.get('running', 0))} running, {units.count(states.get('idle', 0))} idle"
    burn = sum(item["cost"]["per_hour"] for item in items)
    head = f"{live}, {units.count(states.get('lost', 0))} lost; about {units.dollars(burn)} an hour"
    lines = [head, trouble and f"! {escape(trouble)}", ""]
    if not items:
        lines.append("No cluster runs. Connect one: daskscope.analytics.register()")
        return lines
    for cells in table_cells(COLUMNS, [_row(item) for item in items], width):
        lines.append(GAP.join(padded for padded, _ in cells).rstrip())
    return lines


def _row(item: dict[str, Any]) -> list[str]:
    state = item["state"]
    if state == "idle" and item["idle_seconds"] > 0:
        state = f"idle {units.duration(item['idle_seconds'] * 1e6)}"
    return [
        escape(item["name"] or item["id"]),
        escape(item["user"]),
        state,
        units.count(item["workers"]),
        units.count(item["threads"]),
        units.nbytes(item["memory"]) if item["memory"] else "",
        escape(item["reason"]) if state == "running" else "",
        units.count(item["n_tasks"]),
        units.count(item["n_exceptions"]),
        units.dollars(item["cost"]["per_hour"]) if item["cost"]["per_hour"] else "",
        units.dollars(item["cost"]["total"]),
        units.duration(item["duration"] * 1e6),
    ]
