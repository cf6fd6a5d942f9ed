"""SQL over a server: rows of the caller's account, limits, and a process that knows no secrets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import HostedServer, HttpResponse

from daskscope import analytics
from daskscope.cli.main import main
from daskscope.model.states import Role
from daskscope.server.processes import sql as sql_processes
from daskscope.server.processes.child import ChildProcesses
from daskscope.server.routes import sql
from daskscope.storage import schema
from daskscope.storage.runs.compaction import compact
from daskscope.storage.runs.read import files_of
from daskscope.storage.sql.check import SqlError
from daskscope.storage.sql.query import SqlLimits
from daskscope.testing import make_frames


def rows(cluster: str, count: int) -> list[bytes]:
    now = time.time_ns() // 1000
    tasks = [{"key": f"inc-{n}", "prefix": "inc", "start_us": now, "stop_us": now + 1000} for n in range(count)]
    return make_frames({"clusters": [{"cluster": cluster, "seen_us": now}], "tasks": tasks}, cluster=cluster)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("sql"), login=True) as server:
        for user, account, count in (("olga", "alpha", 3), ("otto", "beta", 5)):
            owner: dict[str, Role] = {user: "owner"}
            server.make_account(account, **owner)
            for cluster in ("shared-name", f"only-{account}"):
                token = server.make_token(user, account, "ingest", "read")
                assert server.send(*rows(cluster, count), token=token).status == 200
        yield server


@pytest.fixture(scope="module")
def olga(server: HostedServer) -> str:
    return server.make_token("olga", "alpha", "read")


def ask(server: HostedServer, token: str, query: str, **body: Any) -> HttpResponse:
    return server.ask("POST", "/api/v1/sql", {"query": query, **body}, token=token)


def test_a_query_counts_the_rows_of_the_account(server: HostedServer, olga: str) -> None:
    answer = ask(server, olga, "select cluster, count(*) as n from tasks group by 1 order by 1")
    assert answer.status == 200, answer.text
    found = answer.json()
    assert found.pop("seconds") > 0
    assert found == {
        "columns": [{"name": "cluster", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
        "rows": [["only-alpha", 3], ["shared-name", 3]],
        "is_cut": False,
        "clusters": 2,
        "all_clusters": 2,
        "skipped": [],
        "skipped_clusters": 0,
    }


@pytest.mark.parametrize(
    "query",
    [
        "select * from tasks where cluster = 'only-beta'",
        "select * from read_parquet('/**/*.parquet')",
        "select * from glob('/**')",
        "select * from read_text('/proc/self/environ')",
        "select * from read_text('/proc/' || 1 || '/environ')",
    ],
)
def test_rows_of_other_accounts_cannot_be_reached(server: HostedServer, olga: str, query: str) -> None:
    answer = ask(server, olga, query)
    assert answer.status in (200, 400)
    assert answer.status == 400 or answer.json()["rows"] == []


def test_a_query_of_one_cluster(server: HostedServer, olga: str) -> None:
    count = "select count(*) from tasks"
    assert ask(server, olga, count, cluster="only-alpha").json()["rows"] == [[3]]
    assert ask(server, olga, count, cluster="only-beta").json()["rows"] == [[0]]
    assert ask(server, olga, count, days=1).json()["rows"] == [[6]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("drop table tasks", "Give one SELECT statement"),
        ("select nope from tasks", "nope"),
        ("select * from exceptions", "stores encrypted"),
    ],
)
def test_a_refused_query_says_why(server: HostedServer, olga: str, query: str, message: str) -> None:
    answer = ask(server, olga, query)
    assert (answer.status, answer.code) == (400, "sql")
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [{}, {"query": ""}, {"query": "x" * 20_001}, {"query": 5}, {"query": "select 1", "days": -1}]
)
def test_an_invalid_body_is_refused(server: HostedServer, olga: str, body: dict[str, Any]) -> None:
    assert server.ask("POST", "/api/v1/sql", body, token=olga).status == 400


def test_a_recorder_cannot_ask(server: HostedServer) -> None:
    token = server.make_token("olga", "alpha", "ingest")
    assert ask(server, token, "select 1").status == 403


def test_a_query_that_takes_too_long_ends(server: HostedServer, olga: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "SqlLimits", lambda: SqlLimits(seconds=0.5))
    answer = ask(server, olga, "select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)")
    assert answer.status == 400
    assert "took longer" in answer.json()["error"]["message"]


def test_a_process_that_dies_is_an_error_of_the_query(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_processes, "MODULE", "daskscope.no_such_module")
    with (
        sql_processes.sql_process(ChildProcesses(), tmp_path, SqlLimits()) as process,
        pytest.raises(SqlError, match="too much time or memory"),
    ):
        process.tables_of("select 1")


def test_the_server_never_parses_a_query_itself(
    server: HostedServer, olga: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forbidden:
        def __getattr__(self, name: str) -> None:
            raise AssertionError("the server used DuckDB")

    monkeypatch.setitem(sys.modules, "duckdb", Forbidden())
    assert ask(server, olga, "select 1").json()["rows"] == [[1]]
    answer = ask(server, olga, "select " + "(" * 8_000)
    assert (answer.status, answer.json()["error"]["message"]) == (400, "The query is nested too deeply.")
    # Brackets in a text of this form are not counted, so that the parser sees them: its process ends.
    answer = ask(server, olga, "select E'\\'" + "(" * 8_000)
    assert (answer.status, answer.code) == (400, "sql")


def test_the_time_of_the_process_is_charged_to_the_account(
    server: HostedServer, olga: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[float] = []
    monkeypatch.setattr(server.services.pools.shares, "charge", lambda _, seconds: charged.append(seconds))
    assert ask(server, olga, "select sum(i) from range(200000000) t(i)").status == 200
    # Importing DuckDB alone takes more, and happens in the process.
    assert max(charged) > 0.1


def test_a_cluster_with_a_missing_file_is_named_in_the_reply(
    server: HostedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask.config

    server.make_account("gamma", olga="owner")
    token = server.make_token("olga", "gamma", "ingest", "read")
    for cluster in ("whole", "broken"):
        assert server.send(*rows(cluster, 3), token=token).status == 200
    archive = server.services.archive
    with archive.read() as tx:
        runs = {row.cluster: row for row in tx.execute(sa.select(schema.runs)) if row.cluster in ("whole", "broken")}
    for run in runs.values():
        compact(archive, run.account_id, run.id, over=True)
    with archive.read() as tx:
        (file,) = files_of(tx, runs["broken"].id, ["tasks"])
    archive.store.delete(file.path)
    found = ask(server, token, "select cluster, count(*) from tasks group by 1").json()
    assert (found["rows"], found["skipped"], found["skipped_clusters"]) == ([["whole", 3]], ["broken"], 1)
    monkeypatch.setenv("DASKSCOPE_TOKEN", token)
    with dask.config.set({"daskscope.server": server.url}):
        assert main(["sql", "select count(*) as n from tasks"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "n\n3\n"
    assert "Without 1 cluster whose files are missing or damaged: broken." in printed.err


def test_the_process_gets_no_credentials(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("DASKSCOPE_SERVER_MASTER_KEY", "secret")
    given: dict[str, str] = {}

    class Noted(ChildProcesses):
        @contextmanager
        def start(
            self, module: str, timeout_s: float, environment: Any, directory: Any = None, nice: int = 0
        ) -> Iterator[None]:
            given.update(environment)
            yield None

    with pytest.raises(SqlError, match="shutting down"), sql_processes.sql_process(Noted(), tmp_path, SqlLimits()):
        pass
    assert set(given) <= set(sql_processes.ENVIRONMENT)


def test_the_tables_have_meanings_and_no_secrets(server: HostedServer, olga: str) -> None:
    tables = {table["name"]: table for table in server.ask("GET", "/api/v1/sql/tables", token=olga).json()["tables"]}
    assert {"tasks", "samples", "workers", "transfers", "profiles"} <= tables.keys()
    assert not tables.keys() & {"exceptions", "logs", "computations", "events", "windows"}
    first = tables["tasks"]["columns"][0]
    assert (first["name"], first["kind"]) == ("cluster", "str")


def test_python_and_the_command_line(
    server: HostedServer, olga: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask.config

    monkeypatch.setenv("DASKSCOPE_TOKEN", olga)
    with dask.config.set({"daskscope.server": server.url}):
        found = analytics.sql("select prefix, count(*) as n from tasks group by 1")
        assert list(found) == [{"prefix": "inc", "n": 6}]
        assert len(analytics.tasks("only-alpha")) == 3
        assert main(["sql", "select count(*) as n from tasks", "--cluster", "only-alpha"]) == 0
    assert capsys.readouterr().out == "n\n3\n"
