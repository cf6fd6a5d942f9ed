"""Serve recordings to programs that speak the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import daskscope
from daskscope import __version__, analytics
from daskscope.cli.explain import story_of
from daskscope.cli.sql import query_paths
from daskscope.client.analyse import find_recording
from daskscope.client.server import ask_sql
from daskscope.errors import DaskscopeError, MissingExtra
from daskscope.model.tables import TABLES

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

#: Rows of a query: more would fill the context of a language model.
MAX_ROWS = 200

INSTRUCTIONS = """\
daskscope records Dask clusters. Every tool only reads. A run is the path of a recording or a report, the ID of a cluster on the
configured server, or the URL of its page. Times in tables are integer microseconds since 1970 on the scheduler's clock.
Start with list_clusters or with a run that the user names, then explain it. Use sql for numbers that the story does not have."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments: a program starts it."""


def run(args: argparse.Namespace) -> int:  # noqa: ARG001
    build_server().run("stdio")
    return 0


def build_server() -> MCPServer[Any]:
    """Return the server with its tools."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError:
        raise MissingExtra("the MCP SDK", "mcp", "daskscope mcp") from None
    server: MCPServer[Any] = MCPServer("daskscope", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    def with_messages(tool: Callable[..., Any]) -> Callable[..., Any]:
        """Pass the messages of our own errors on: the SDK hides the messages of all other errors."""

        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return tool(*args, **kwargs)
            except DaskscopeError as error:
                raise ToolError(str(error)) from None

        return call

    for tool in (list_clusters, explain, compare, what_if, sql, describe_tables):
        server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))(with_messages(tool))
    return server


def list_clusters(since: str = "7 days", user: str = "") -> list[dict[str, Any]]:
    """List the clusters of the configured server, newest first: ID, name, user, state, times, tasks and errors."""
    return [dict(cluster) for cluster in analytics.list_clusters(since=since, user=user or None)]


def explain(run: str) -> dict[str, Any]:
    """Tell the story of a run: how it ended, where the time went, what failed, and what to change."""
    return story_of(find_recording(run)).to_dict()


def compare(before: list[str], after: list[str]) -> dict[str, Any]:
    """Compare runs before and after a change: total time, task prefixes, memory, versions and code.

    Each side is a list of runs; with five repeats on both sides, the verdicts tell noise from change.
    """
    return daskscope.compare(before, after).to_dict()


def what_if(
    run: str, workers: list[int] | None = None, threads: int | None = None, faster: dict[str, float] | None = None
) -> dict[str, Any]:
    """Predict wall time, cost and memory of a recorded computation for other numbers of workers and threads.

    ``faster`` maps task prefixes to how many times faster their tasks are. ``check`` says how close a replay of the recorded
    cluster comes to the run; ``reason`` says why there are no predictions.
    """
    found = daskscope.what_if(run, workers, threads, faster=faster)
    return {**asdict(found), "check": found.check}


def sql(query: str, run: str = "", days: float = 0.0) -> dict[str, Any]:
    """Run one SELECT, in DuckDB's dialect, over the tables of a recording, or of all clusters of the server if no run is given.

    ``days`` limits the clusters of the server to the last days. Returns columns, at most 200 rows, and whether there
    are more (is_cut).
    """
    found = query_paths(query, [run], MAX_ROWS) if run else ask_sql(query, days=days)
    rows = found["rows"][:MAX_ROWS]
    return {**found, "rows": rows, "is_cut": found["is_cut"] or len(rows) < len(found["rows"])}


def describe_tables(table: str = "") -> dict[str, Any]:
    """List the tables that sql can read, or the columns of one table with their meanings."""
    if table and table not in TABLES:
        raise DaskscopeError(f"There is no table {table}. The tables are {', '.join(TABLES)}.")
    if table:
        return {column.name: f"{column.kind}: {column.meaning}" for column in TABLES[table].columns}
    return {name: definition.row for name, definition in TABLES.items()}
