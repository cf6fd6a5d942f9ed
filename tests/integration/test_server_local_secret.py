"""A server without sign-in answers to its own user only: to requests with its secret, or with a token."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer, HttpResponse
from tests.helpers.samples import sample_frames
from tests.helpers.server_process import ServerProcess
from tests.helpers.waiting import until

import daskscope.analytics
from daskscope.client.local_server import find_secret
from daskscope.client.server import Server, find_server
from daskscope.errors import ServerError
from daskscope.server.run import directory_warnings
from daskscope.server.settings import Settings

Client: Any = distributed.Client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "data") as server:
        assert server.send(sample_frames("own")).status == 200
        yield server


@pytest.fixture
def other(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "other") as server:
        yield server


def open_app(server: HostedServer, secret: str) -> HttpResponse:
    headers = {"Origin": server.origin}
    return server.ask("POST", "/api/v1/session/secret", {"secret": secret}, secret="", headers=headers)


def n_tasks(cluster: str) -> int:
    return next((item["n_tasks"] for item in find_server().items("clusters") if item["id"] == cluster), 0)


class TestBrowser:
    def test_the_printed_url_opens_the_app_without_identifying_anybody(self, server: HostedServer) -> None:
        assert server.entry == f"{server.url}/?secret={server.secret}"
        answer = server.ask("GET", f"/?secret={server.secret}", secret="")
        assert (answer.status, answer.headers["Set-Cookie"]) == (200, None)
        assert server.secret not in answer.text

    def test_the_page_exchanges_the_secret_for_a_cookie_and_a_page_secret(self, server: HostedServer) -> None:
        answer = open_app(server, server.secret)
        assert answer.json()["user"] == "local"
        assert server.secret not in answer.text + str(answer.headers)
        name, *attributes = str(answer.headers["Set-Cookie"]).split("; ")
        assert name.startswith(f"daskscope_{server.port}=")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)

        me = server.ask("GET", "/api/v1/me", session=answer.cookie)
        assert (me.json()["kind"], me.json()["account"]) == ("local", "local")
        assert server.ask("DELETE", "/api/v1/clusters/own", session=answer.cookie).status == 200

    def test_a_second_tab_gets_the_same(self, server: HostedServer) -> None:
        first, second = open_app(server, server.secret), open_app(server, server.secret)
        assert (first.cookie, first.body) == (second.cookie, second.body)

    @pytest.mark.parametrize("secret", ["", "x", "ä", "x" * 43])
    def test_a_wrong_secret_opens_nothing(self, server: HostedServer, secret: str) -> None:
        answer = open_app(server, secret)
        assert (answer.status, answer.code, answer.headers["Set-Cookie"]) == (401, "secret_needed", None)
        assert "daskscope serve" in answer.text

    def test_neither_the_cookie_nor_the_page_secret_works_alone(self, server: HostedServer) -> None:
        opened = open_app(server, server.secret)
        page = opened.json()["page_secret"]
        for headers in (
            {"Daskscope-Page": ""},
            {"Daskscope-Page": opened.cookie},
            {"Cookie": "", "Daskscope-Page": page},
            {"Cookie": f"{server.cookie_name}={page}", "Daskscope-Page": page},
        ):
            assert server.ask("GET", "/api/v1/clusters", session=opened.cookie, headers=headers).status == 401
        for value in (opened.cookie, page):
            assert server.ask("GET", "/api/v1/clusters", token=value).status == 401

    def test_the_cookie_of_another_server_is_of_no_use(self, server: HostedServer, other: HostedServer) -> None:
        opened = open_app(other, other.secret)
        page = opened.json()["page_secret"]
        for name in (server.cookie_name, other.cookie_name):
            headers = {"Cookie": f"{name}={opened.cookie}", "Daskscope-Page": page}
            assert server.ask("GET", "/api/v1/clusters", secret="", headers=headers).status == 401
        assert server.ask("GET", "/api/v1/clusters", secret=other.secret).status == 401

    def test_a_page_of_another_site_cannot_use_the_cookie_or_the_secret(self, server: HostedServer) -> None:
        cookie = open_app(server, server.secret).cookie
        headers = {"Origin": "http://elsewhere.example"}
        for session in (cookie, ""):
            answer = server.ask("DELETE", "/api/v1/clusters/own", session=session, headers=headers)
            assert answer.code == "forbidden"
        body = {"secret": server.secret}
        assert server.ask("POST", "/api/v1/session/secret", body, secret="", headers=headers).code == "forbidden"

    def test_a_frame_opens_uploaded_html_with_a_ticket(self, server: HostedServer) -> None:
        cookie = open_app(server, server.secret).cookie
        number = server.ask("POST", "/api/v1/reports", b"<!doctype html><p>mine").json()["id"]
        path = f"/api/v1/reports/{number}/html"
        ticket = server.ask("GET", f"{path}/ticket", session=cookie).json()["ticket"]
        frame = {"Cookie": f"{server.cookie_name}={cookie}"}
        assert "mine" in server.ask("GET", f"{path}?ticket={ticket}", secret="", headers=frame).text
        assert server.ask("GET", f"{path}?ticket={ticket}", secret="").status == 401
        assert server.ask("GET", path, secret="", headers=frame).status == 401

    def test_with_sign_in_there_is_no_secret(self, tmp_path: Path) -> None:
        with HostedServer(tmp_path / "team", login=True) as server:
            assert server.entry == server.url
            assert open_app(server, "x" * 43).code == "conflict"
            assert not (tmp_path / "team" / "local.secret").exists()
            assert find_secret(server.url) == ""

    def test_the_secret_is_of_no_use_once_sign_in_is_on(self, tmp_path: Path) -> None:
        with HostedServer(tmp_path / "same") as server:
            secret, cookie = server.secret, open_app(server, server.secret).cookie
            page = server.page_secrets[cookie]
        with HostedServer(tmp_path / "same", login=True) as server:
            headers = {"Cookie": f"{server.cookie_name}={cookie}", "Daskscope-Page": page}
            assert server.ask("GET", "/api/v1/clusters", headers=headers).status == 401
            assert server.ask("GET", "/api/v1/clusters", token=secret).status == 401


class TestPrograms:
    def test_a_recorder_needs_the_secret_or_a_token(self, server: HostedServer) -> None:
        made = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "one"}).json()
        for token in ("", "anything", "dscope_nonsense", made["token"][:-1]):
            frames = sample_frames("one")
            headers = {"Content-Type": "application/vnd.daskscope.frames"}
            answer = server.ask("POST", "/api/v1/ingest", frames, secret=token, headers=headers)
            assert (answer.status, answer.code) == (401, "secret_needed")
        assert server.send(sample_frames("one"), token=made["token"]).status == 200
        assert server.send(sample_frames("two"), token=made["token"]).code == "forbidden"
        assert server.ask("GET", "/api/v1/clusters", token=made["token"]).code == "forbidden"

    def test_the_recorder_says_who_runs_a_cluster(self, server: HostedServer) -> None:
        token = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "one"}).json()["token"]
        assert server.send(sample_frames("one"), token=token).status == 200
        users = {item["id"]: item["user"] for item in server.ask("GET", "/api/v1/clusters").json()["items"]}
        assert users["one"] == users["own"] != "local"

    def test_a_program_of_the_same_user_needs_only_the_plain_url(self, server: HostedServer) -> None:
        with dask.config.set({"daskscope.server": server.url}):
            assert [item["id"] for item in daskscope.analytics.list_clusters()] == ["own"]

    def test_a_program_of_another_user_needs_the_printed_url(
        self, server: HostedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another user"))
        with dask.config.set({"daskscope.server": server.url}), pytest.raises(ServerError) as refused:
            daskscope.analytics.list_clusters()
        assert refused.value.status == 401
        assert "Open the URL that daskscope serve printed" in str(refused.value)
        with dask.config.set({"daskscope.server": server.entry}):
            assert [item["id"] for item in daskscope.analytics.list_clusters()] == ["own"]

    def test_the_url_of_a_page_with_the_secret_is_a_recording(
        self, server: HostedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another user"))
        page = f"{server.url}/local/clusters/own"
        with pytest.raises(ServerError, match="Open the URL that daskscope serve printed"):
            daskscope.open_recording(page)
        assert daskscope.open_recording(f"{page}?secret={server.secret}")["tasks"].rows == 3

    def test_registering_prints_no_secret_and_sends_none_to_the_scheduler(
        self, server: HostedServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with (
            dask.config.set({"daskscope.server": server.entry}),
            Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client,
        ):
            page = daskscope.analytics.register(client)
            cluster = client.scheduler_info()["id"]
            assert page == f"{server.url}/local/clusters/{cluster}"
            assert client.submit(abs, -1).result() == 1
            until(lambda: n_tasks(cluster) == 1, "the delivery of the task")
            plugins = client.run_on_scheduler(lambda dask_scheduler: [vars(p) for p in dask_scheduler.plugins.values()])
            assert server.secret not in str(plugins)
        assert server.secret not in capsys.readouterr().out

    def test_registering_while_the_server_is_down_says_so(self, tmp_path: Path) -> None:
        with HostedServer(tmp_path / "gone") as server:
            url = server.url
        with (
            dask.config.set({"daskscope.server": url}),
            Client(n_workers=1, processes=False, dashboard_address=None) as client,
            pytest.raises(ServerError, match="Registering needs the server once"),
        ):
            daskscope.analytics.register(client)


def test_the_secret_and_its_files_survive_a_restart_but_not_a_stop(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.start()
    secret = server.secret
    assert (tmp_path / "data" / "local.secret").stat().st_mode & 0o777 == 0o600
    # Its response shows that the server is up; before, a signal ends it at once.
    assert Server(server.url, token=find_secret(server.url)).get("clusters")["items"] == []
    assert server.stop() == 0
    assert find_secret(server.url) == ""
    server.start()
    assert find_secret(server.url) == server.secret == secret
    server.kill()
    assert find_secret(server.url) == ""


def test_the_printed_lines_contain_the_url_with_the_secret(tmp_path: Path) -> None:
    start = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        url, hint = process.stdout.readline().strip(), process.stdout.readline()
        secret = (tmp_path / "data" / "local.secret").read_text().strip()
        assert urlsplit(url).query == f"secret={secret}"
        assert f"DASK_DASKSCOPE__SERVER='{url}'" in hint
        with dask.config.set({"daskscope.server": url}):
            assert find_server().get("clusters")["items"] == []
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize(("mode", "warnings"), [(0o700, 0), (0o750, 1), (0o755, 1)])
def test_a_data_directory_that_others_can_read_is_reported(tmp_path: Path, mode: int, warnings: int) -> None:
    tmp_path.chmod(mode)
    assert len(directory_warnings(Settings(data=str(tmp_path)))) == warnings
    assert directory_warnings(Settings(data=str(tmp_path), login=True)) == []


def test_a_server_that_cannot_announce_its_secret_serves_its_printed_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with HostedServer(tmp_path / "data") as server:
        assert Server(server.url, token=server.secret).get("clusters")["items"] == []
