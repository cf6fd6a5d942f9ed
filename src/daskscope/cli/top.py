"""Watch the clusters on a server, live."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any, NoReturn

from daskscope import units
from daskscope.cli.output import is_terminal, write
from daskscope.cli.terminal import GAP, Cells, Column, escape, shorten, split_cells, table_cells
from daskscope.client.server import Server, find_server
from daskscope.errors import ServerError


def _state(item: dict[str, Any]) -> str:
    idle = item["state"] == "idle" and item["idle_seconds"] > 0
    return f"idle {units.duration(item['idle_seconds'] * 1e6)}" if idle else str(item["state"])


CELLS: Cells[dict[str, Any]] = [
    (Column("name", right=False, name=True), lambda item: escape(item["name"] or item["id"])),
    (Column("user", right=False), lambda item: escape(item["user"])),
    (Column("state", right=False), _state),
    (Column("workers"), lambda item: units.count(item["workers"])),
    (Column("threads", optional=True), lambda item: units.count(item["threads"])),
    (Column("memory", optional=True), lambda item: units.nbytes(item["memory"]) if item["memory"] else ""),
    (Column("running", optional=True), lambda item: escape(item["reason"]) if item["state"] == "running" else ""),
    (Column("tasks"), lambda item: units.count(item["n_tasks"])),
    (Column("errors"), lambda item: units.count(item["n_exceptions"])),
    (Column("$/h"), lambda item: units.dollars(item["cost"]["per_hour"]) if item["cost"]["per_hour"] else ""),
    (Column("cost", optional=True), lambda item: units.dollars(item["cost"]["total"])),
    (Column("age"), lambda item: units.duration(item["duration"] * 1e6)),
]
#: Redraw from the top left corner; clearing the whole screen first would flicker.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
ALTERNATE, NORMAL = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="refresh interval in seconds (default: %(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="include finished and lost clusters of the last 7 days")
    parser.add_argument("--once", action="store_true", help="print the list once and exit (default in a pipe)")
    parser.add_argument("--account", metavar="NAME", help="account (default: your own)")


def run(args: argparse.Namespace) -> int:
    server = find_server(args.account)
    if args.once or not is_terminal():
        write("\n".join(screen(list_clusters(server, everything=args.all), None, "")) + "\n")
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
            answer, problem = list_clusters(server, everything=everything), ""
        except ServerError as error:
            # Keep showing the last list, with the error above it.
            problem = str(error)
        size = shutil.get_terminal_size()
        # A wrapped line would push the first line off the screen.
        lines = [shorten(line, size.columns) for line in screen(answer, size.columns, problem)[: size.lines - 1]]
        sys.stdout.write(HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST)
        sys.stdout.flush()
        time.sleep(every)


def list_clusters(server: Server, *, everything: bool) -> dict[str, Any]:
    """Fetch the live clusters, or with ``everything`` all clusters of the last 7 days."""
    state = "" if everything else "running,idle"
    answer: dict[str, Any] = server.get("clusters", since="7 days" if everything else "all", state=state, limit=200)
    return answer


def screen(answer: dict[str, Any], width: int | None, problem: str) -> list[str]:
    """Return the lines of the whole screen."""
    states, items = answer["states"], answer["items"]
    live = f"{units.count(states.get('running', 0))} running, {units.count(states.get('idle', 0))} idle"
    per_hour = sum(item["cost"]["per_hour"] for item in items)
    head = f"{live}, {units.count(states.get('lost', 0))} lost; about {units.dollars(per_hour)} per hour"
    lines = [head, problem and f"! {escape(problem)}", ""]
    if not items:
        lines.append("No running clusters. Connect one: daskscope.analytics.register()")
        return lines
    for cells in table_cells(*split_cells(CELLS, items), width):
        lines.append(GAP.join(padded for padded, _ in cells).rstrip())
    return lines
