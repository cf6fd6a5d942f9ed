"""The commands and functions that talk to a server: login, token, user, ls, explain, show; what they say when it goes wrong."""

from __future__ import annotations

import io
import json
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dask.config
import pytest

from daskscope import DaskscopeError, analytics
from daskscope.cli.main import main
from daskscope.client import credentials
from daskscope.client.server import Server
from daskscope.errors import ServerError
from daskscope.testing.hosted import HostedServer
from daskscope.testing.samples import sample_frames

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "data", login=True) as server:
        server.make_user("ada", admin=True)
        server.make_account("ours", ada="owner", mia="member", vera="viewer")
        yield server


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))
    monkeypatch.delenv("DASKSCOPE_TOKEN", raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def logged_in(server: HostedServer, run: Run) -> HostedServer:
    assert run("login", "--server", server.url, "--token", server.make_token("ada", "ours"))[0] == 0
    return server


class TestLogin:
    def confirm(self, server: HostedServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
        """A person who confirms what the command line opens in the browser."""
        opened: list[str] = []

        def browser(url: str) -> bool:
            opened.append(url)
            body = {"user_code": url.rpartition("=")[2], "account": "ours", **more}
            answer = server.ask("POST", "/api/v1/device/decision", body, session=server.make_session("mia"))
            assert answer.status == 200
            return True

        monkeypatch.setattr("webbrowser.open", browser)
        monkeypatch.setattr("time.sleep", lambda _: None)
        return opened

    def test_a_code_confirmed_in_the_browser_gives_a_token_only_its_owner_can_read(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = self.confirm(server, monkeypatch)
        code, out, err = run("login", "--server", f"{server.url}/")

        file = credentials.path()
        assert (code, err) == (0, "")
        assert out.splitlines() == [
            f"Confirm the code {opened[0].rpartition('=')[2]} at",
            opened[0],
            "Authentication successful: mia in ours",
            f"Credentials have been saved at {file}",
        ]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        stored = json.loads(file.read_text())
        assert [(item["server"], item["account"], item["user"]) for item in stored] == [(server.url, "ours", "mia")]
        assert stored[0]["token"] not in out
        # Dask reads what lies beside it as configuration, which people print.
        assert stored[0]["token"] not in str(dask.config.collect(paths=[str(file.parent)], env={}))
        assert analytics.list_clusters() == []

    def test_a_file_others_could_read_is_not_written_into(self, logged_in: HostedServer, run: Run) -> None:
        left = credentials.path().with_suffix(".new")
        left.write_text("left behind")
        left.chmod(0o666)
        assert run("login", "--server", logged_in.url, "--token", logged_in.make_token("mia", "ours"))[0] == 0
        assert stat.S_IMODE(credentials.path().stat().st_mode) == 0o600

    def test_without_a_browser_the_address_is_printed_and_nothing_opened(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("opened a browser"))

        def sleep(_: float) -> None:
            code = self.waiting(server)
            body = {"user_code": code, "account": "ours"}
            assert server.ask("POST", "/api/v1/device/decision", body, session=server.make_session("mia")).status == 200

        monkeypatch.setattr("time.sleep", sleep)
        code, out, _ = run("login", "--server", server.url, "--no-browser")
        assert code == 0
        assert f"{server.url}/device?code=" in out

    def waiting(self, server: HostedServer) -> str:
        from daskscope.storage import schema

        with server.services.database.read() as connection:
            return str(connection.execute(schema.logins.select()).one().user_code)

    def test_a_denied_login_says_so_and_keeps_nothing(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.confirm(server, monkeypatch, approve=False)
        code, _, err = run("login", "--server", server.url)
        assert (code, err) == (1, "daskscope: This login was denied in the browser.\n")
        assert not credentials.path().exists()

    def test_a_login_confirmed_for_another_account_is_refused(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.confirm(server, monkeypatch)
        code, _, err = run("login", "--server", server.url, "--account", "other")
        assert code == 1
        assert "confirmed for ours, not for other" in err

    def test_a_token_is_read_from_standard_input(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(server.make_token("vera", "ours") + "\n"))
        code, out, _ = run("login", "--server", server.url, "--token", "-")
        assert code == 0
        assert "vera in ours" in out

    def test_a_token_that_is_no_good_is_not_kept(self, server: HostedServer, run: Run) -> None:
        code, _, err = run("login", "--server", server.url, "--token", "dscope_cut_off")
        assert code == 1
        assert "cut off" in err
        assert not credentials.path().exists()

    def test_a_server_without_login_needs_none(self, tmp_path: Path, run: Run) -> None:
        with HostedServer(tmp_path / "local") as local:
            code, out, _ = run("login", "--server", local.url)
        assert code == 0
        assert "asks for no login" in out

    def test_without_a_server_it_says_how_to_name_one(self, run: Run) -> None:
        code, _, err = run("login")
        assert code == 1
        assert "daskscope login --server URL" in err


class TestToken:
    def test_made_listed_and_revoked_by_command(self, logged_in: HostedServer, run: Run) -> None:
        code, out, err = run("token", "create", "--label", "nightly \x1b[31m", "--scope", "read", "--days", "7")
        secret = out.strip()
        assert (code, err) == (0, "daskscope: this is shown only now; keep it somewhere safe.\n")
        assert logged_in.ask("GET", "/api/v1/me", token=secret).json()["scopes"] == ["read"]

        listed = {item["label"]: item for item in json.loads(run("token", "list", "--json")[1])}
        mine = listed["nightly \x1b[31m"]
        assert secret not in json.dumps(listed)
        assert secret.startswith(mine["hint"])
        assert (mine["scopes"], mine["expired"], mine["revoked"]) == (["read"], False, None)
        assert mine["used"] and mine["expires"]
        assert "\x1b" not in run("token", "list")[1]

        assert run("token", "revoke", str(mine["id"])) == (0, f"revoked {mine['id']}\n", "")
        assert logged_in.ask("GET", "/api/v1/me", token=secret).status == 401
        assert "nightly" not in run("token", "list")[1]
        assert "revoked" in run("token", "list", "--all")[1]
        assert run("token", "revoke", str(mine["id"]))[0] == 1

    @pytest.mark.parametrize("number", ["²", "1/../2", "-1", "9" * 30, "x"])
    def test_what_is_no_number_revokes_nothing(self, logged_in: HostedServer, run: Run, number: str) -> None:
        code, _, err = run("token", "revoke", "--", number)
        assert code == 1
        assert "There is no such token" in err or "There is nothing at" in err

    def test_made_listed_and_revoked_in_python(self, logged_in: HostedServer) -> None:
        made = analytics.create_api_token(label="from python", days_to_expire=1)
        assert made["scopes"] == ["ingest", "read", "write"]
        assert analytics.list_api_tokens()[str(made["id"])]["label"] == "from python"
        analytics.revoke_api_token(label="from python")
        assert str(made["id"]) not in analytics.list_api_tokens()
        assert analytics.list_api_tokens(include_inactive=True)[str(made["id"])]["revoked"]
        with pytest.raises(DaskscopeError, match="0 tokens have the label 'from python'"):
            analytics.revoke_api_token(label="from python")
        with pytest.raises(DaskscopeError, match="one of them"):
            analytics.revoke_api_token()

    def test_nobody_makes_one_that_allows_more_than_they_may(self, server: HostedServer) -> None:
        for who, scopes in (("mia", ["admin"]), ("vera", ["read"])):
            answer = server.ask("POST", "/api/v1/tokens", {"scopes": scopes}, token=server.make_token(who, "ours"))
            assert answer.code == "forbidden"

    def test_one_that_ends_makes_none_that_lasts_longer(self, server: HostedServer) -> None:
        ends = server.services.clock() + 3_600_000_000
        token = server.make_token("mia", "ours", expires_us=ends)
        made = server.ask("POST", "/api/v1/tokens", {"days_to_expire": 9}, token=token).json()
        listed = server.ask("GET", "/api/v1/tokens", token=token).json()["items"]
        assert {item["expires"] for item in listed} == {made["expires"]}
        recorder = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "c"}, token=token).json()["token"]
        server.services.clock = lambda: ends + 1
        assert server.send(sample_frames("c"), token=recorder).status == 401

    def test_only_owners_see_and_revoke_those_of_others(self, server: HostedServer) -> None:
        server.make_token("vera", "ours")
        member, owner = server.make_token("mia", "ours"), server.make_token("ada", "ours")
        everyone = server.ask("GET", "/api/v1/tokens?everyone=true", token=owner).json()["items"]
        theirs = next(item["id"] for item in everyone if item["user"] == "vera")
        assert server.ask("GET", "/api/v1/tokens?everyone=true", token=member).code == "forbidden"
        assert server.ask("DELETE", f"/api/v1/tokens/{theirs}", token=member).code == "not_found"
        assert server.ask("DELETE", f"/api/v1/tokens/{theirs}", token=owner).status == 200

    def test_a_new_role_holds_for_tokens_at_once(self, server: HostedServer) -> None:
        token, owner = server.make_token("mia", "ours"), server.make_token("ada", "ours")
        assert server.send(sample_frames("c"), token=token).status == 200
        assert server.ask("PUT", "/api/v1/members/mia", {"role": "viewer"}, token=owner).status == 200
        assert server.send(sample_frames("c"), token=token).code == "forbidden"
        assert server.ask("DELETE", "/api/v1/members/mia", token=owner).status == 200
        assert server.ask("GET", "/api/v1/me", token=token).status == 401


class TestUser:
    def test_an_administrator_makes_users_and_accounts_and_an_owner_says_who_belongs_to_them(
        self, logged_in: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("a good password\n"))
        assert run("user", "create", "bob", "--password-stdin")[0] == 0
        assert run("user", "account", "theirs", "--owner", "bob")[1] == "made the account theirs, owned by bob\n"
        assert run("user", "add", "bob", "--role", "viewer")[1] == "bob is viewer\n"
        members = {item["name"]: item["role"] for item in json.loads(run("user", "list", "--json")[1])}
        assert members == {"ada": "owner", "bob": "viewer", "mia": "member", "vera": "viewer"}
        assert "bob" in run("user", "list")[1]
        assert run("user", "remove", "bob")[0] == 0
        assert "such member" in run("user", "remove", "bob")[2]
        assert "only owner" in run("user", "remove", "ada")[2]

    def test_a_member_does_not(self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        with dask.config.set({"daskscope.server": server.url}):
            assert "needs the scope admin" in run("user", "add", "bob")[2]
            assert "administrator" in run("user", "account", "bobs")[2]


class TestLs:
    def test_clusters_are_listed_and_explained_and_shown(self, logged_in: HostedServer, run: Run) -> None:
        assert "register()" in run("ls")[1]
        token = logged_in.make_token("mia", "ours")
        scheduler = "Scheduler-01234567-89ab-cdef-0123-456789abcdef"
        for name in ("one", "two", scheduler):
            assert logged_in.send(sample_frames(name, ended=name == "two"), token=token).status == 200
        code, out, err = run("ls")
        assert (code, err) == (0, "")
        assert out.count("sample cluster") == 3
        assert [item["id"] for item in json.loads(run("ls", "--json", "--state", "finished")[1])] == ["two"]
        assert "--limit prints more" in run("ls", "--limit", "1")[2]
        assert "No cluster matches" in run("ls", "--search", "nowhere")[1]
        assert "There is no state 'gone'" in run("ls", "--state", "gone")[2]

        assert run("explain", "one")[0] == 0
        assert json.loads(run("explain", "one", "--json")[1])["cluster_id"] == "one"
        assert "no such cluster" in run("explain", "three")[2]
        assert "sample-inc" in run("show", scheduler)[1]

    def test_a_name_cannot_write_to_the_terminal(self, logged_in: HostedServer, run: Run) -> None:
        token = logged_in.make_token("mia", "ours")
        assert logged_in.send(sample_frames("one", "\x1b]0;owned\x07"), token=token).status == 200
        assert "\x1b" not in run("ls")[1]


class TestTrouble:
    """What users read when a server is not what they thought."""

    def test_a_server_that_is_not_there(self) -> None:
        with pytest.raises(ServerError, match=r"cannot be reached .*Is it running") as error:
            Server("http://127.0.0.1:1").get("me")
        assert error.value.status == 0

    @pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://x", "http://127.0.0.1:port", "http://a b"])
    def test_an_address_that_is_none(self, url: str) -> None:
        with pytest.raises(ServerError):
            Server(url).get("me")

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "does not answer in JSON"),
            (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is it a daskscope server"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "cannot be reached"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "cannot be reached"),
            (
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/api/v1/me\r\nContent-Length: 0\r\n\r\n",
                "--server http://127",
            ),
        ],
    )
    def test_something_else_that_answers(self, answer: bytes, text: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                self.rfile.readline()
                self.wfile.write(answer)

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
            threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
            with pytest.raises(ServerError, match=text):
                Server(f"http://127.0.0.1:{other.server_address[1]}", token="secret").get("me")
            other.shutdown()

    def test_credentials_that_cannot_be_read(self, run: Run, tmp_path: Path) -> None:
        credentials.path().parent.mkdir()
        credentials.path().write_text("{")
        code, _, err = run("ls")
        assert code == 1
        assert "Remove the file and log in again" in err

    def test_a_token_is_in_no_repr(self, logged_in: HostedServer) -> None:
        token = credentials.load()[0].token
        assert token not in repr(Server(logged_in.url, "ours", token))
        assert token not in repr(credentials.load())
