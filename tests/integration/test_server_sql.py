"""SQL over a server: rows of the caller's account, limits, and a process that knows no secrets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.hosted import HostedServer, HttpResponse

from daskscope import analytics
from daskscope.cli.main import main
from daskscope.model.states import Role
from daskscope.server import sql_process
from daskscope.server.child_processes import ChildProcesses
from daskscope.server.routes import sql
from daskscope.storage.sql import SqlError, SqlFiles, SqlLimits
from daskscope.testing.factories import make_frames


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
    monkeypatch.setattr(sql, "LIMITS", SqlLimits(seconds=0.5))
    answer = ask(server, olga, "select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)")
    assert answer.status == 400
    assert "took longer" in answer.json()["error"]["message"]


def test_a_process_that_dies_is_an_error_of_the_query(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_process, "MODULE", "daskscope.no_such_module")
    with pytest.raises(SqlError, match="too much time or memory"):
        sql_process.query_in_process(ChildProcesses(), "select 1", tmp_path, SqlFiles(), SqlLimits())


def test_the_process_gets_no_credentials(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("DASKSCOPE_SERVER_MASTER_KEY", "secret")
    given: dict[str, str] = {}

    class Noted(ChildProcesses):
        def run(self, module: str, job: object, timeout_s: float, environment: Any, directory: Any = None) -> None:
            given.update(environment)

    with pytest.raises(SqlError, match="shutting down"):
        sql_process.query_in_process(Noted(), "select 1", tmp_path, SqlFiles(), SqlLimits())
    assert set(given) <= set(sql_process.ENVIRONMENT)


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
