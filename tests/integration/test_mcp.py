"""The MCP server, driven by the client of the official SDK through a real process."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer

from daskscope.testing import make_frames
from daskscope.wire.file import Row, frames_of_rows
from daskscope.wire.layout import FILE_MAGIC

START = "import sys; from daskscope.cli.main import main; sys.exit(main(['mcp']))"


def tables(cluster: str) -> dict[str, list[Row]]:
    now = time.time_ns() // 1000
    tasks: list[Row] = [
        {"key": f"inc-{n}", "prefix": "inc", "status": "ok", "start_us": now, "stop_us": now + 1000} for n in range(300)
    ]
    return {"clusters": [{"cluster": cluster, "start_us": now, "seen_us": now}], "tasks": tasks}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "run.daskscope"
    path.write_bytes(FILE_MAGIC + b"".join(frames_of_rows(tables("local-one"), cluster="local-one", epoch=1)))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("mcp-server")) as server:
        assert server.send(*make_frames(tables("served-one"), cluster="served-one")).status == 200
        yield server


def call(server: HostedServer, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Start the command, call its tools, and return their results; an error as text."""
    # Not above: every test process imports this file, and the SDK takes 0.5 s of CPU time.
    from mcp import Client, StdioServerParameters

    async def ask() -> list[Any]:
        environment = {"DASK_DASKSCOPE__SERVER": f"{server.url}/?secret={server.secret}"}
        parameters = StdioServerParameters(command=sys.executable, args=["-c", START], env=environment)
        async with Client(parameters) as client:
            found = []
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                text = getattr(result.content[0], "text", "") if result.content else ""
                found.append(text if result.is_error else result.structured_content or json.loads(text))
            tools = (await client.list_tools()).tools
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            return [*found, sorted(tool.name for tool in tools)]

    return asyncio.run(asyncio.wait_for(ask(), 90))


def test_every_tool_only_reads_and_answers(server: HostedServer, recording: Path) -> None:
    listed, story, compared, predicted, local, served, columns, names = call(
        server,
        ("list_clusters", {}),
        ("explain", {"run": str(recording)}),
        ("compare", {"before": [str(recording)], "after": [str(recording)]}),
        ("what_if", {"run": str(recording), "workers": [1, 2]}),
        ("sql", {"query": "select key from tasks", "run": str(recording)}),
        ("sql", {"query": "select cluster, count(*) as n from tasks group by 1"}),
        ("describe_tables", {"table": "edges"}),
    )
    assert [cluster["id"] for cluster in listed["result"]] == ["served-one"]
    assert story["paragraphs"][0]["heading"] == "Outcome"
    assert compared["headline"]
    # The recording has no dependencies, and the tool says so.
    assert (predicted["predictions"], bool(predicted["reason"])) == ([], True)
    assert (len(local["rows"]), local["is_cut"]) == (200, True)
    assert served["rows"] == [["served-one", 300]]
    assert set(columns) == {"task", "dependency", "seen_us"}
    assert names == ["compare", "describe_tables", "explain", "list_clusters", "sql", "what_if"]


def test_an_error_says_what_to_do(server: HostedServer, recording: Path) -> None:
    missing, refused, _ = call(
        server,
        ("explain", {"run": str(recording) + ".gone"}),
        ("sql", {"query": "drop table tasks", "run": str(recording)}),
    )
    assert "run.daskscope.gone" in missing
    assert "Give one SELECT statement" in refused
