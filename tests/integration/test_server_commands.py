"""The commands and functions that talk to a server: login, token, user, ls, explain and show, and their errors."""

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
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames

from daskscope import DaskscopeError, analytics
from daskscope.cli.main import main
from daskscope.client import credentials
from daskscope.client.server import Server
from daskscope.errors import ServerError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "data", login=True) as server:
        server.make_user("ada", admin=True)
        server.make_account("ours", ada="owner", mia="member", vera="viewer")
        yield server


@pytest.fixture(autouse=True)
def temporary_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def signed_in(server: HostedServer, run: Run) -> HostedServer:
    assert run("login", "--server", server.url, "--token", server.make_token("ada", "ours"))[0] == 0
    return server


class TestLogin:
    def confirm(self, server: HostedServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
        """Simulate a user who confirms the sign-in that the command opens in the browser."""
        opened: list[str] = []

        def browser(url: str) -> bool:
            opened.append(url)
            body = {"user_code": self.pending_code(server), "account": "ours", **more}
            answer = server.ask("POST", "/api/v1/device/decision", body, session=server.make_session("mia"))
            assert answer.status == 200
            return True

        monkeypatch.setattr("webbrowser.open", browser)
        monkeypatch.setattr("time.sleep", lambda _: None)
        return opened

    def test_a_sign_in_confirmed_in_the_browser_stores_a_token_readable_only_by_its_owner(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = self.confirm(server, monkeypatch)
        code, out, err = run("login", "--server", f"{server.url}/")

        file = credentials.path()
        assert (code, err) == (0, "")
        assert out.splitlines() == [
            f"Enter the code {self.pending_code(server)} at",
            opened[0],
            "Authentication successful: mia in ours",
            f"Credentials have been saved at {file}",
            "Default account: ours",
        ]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        stored = json.loads(file.read_text())
        assert [(item["server"], item["account"], item["user"]) for item in stored] == [(server.url, "ours", "mia")]
        assert stored[0]["token"] not in out
        # Dask reads the files next to it as configuration, which users print.
        assert stored[0]["token"] not in str(dask.config.collect(paths=[str(file.parent)], env={}))
        assert analytics.list_clusters() == []

    def test_a_temporary_file_that_others_can_read_is_replaced(self, signed_in: HostedServer, run: Run) -> None:
        left = credentials.path().with_suffix(".new")
        left.write_text("left behind")
        left.chmod(0o666)
        assert run("login", "--server", signed_in.url, "--token", signed_in.make_token("mia", "ours"))[0] == 0
        assert stat.S_IMODE(credentials.path().stat().st_mode) == 0o600

    def test_without_a_browser_the_url_is_printed(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("opened a browser"))

        def sleep(_: float) -> None:
            code = self.pending_code(server)
            body = {"user_code": code, "account": "ours"}
            assert server.ask("POST", "/api/v1/device/decision", body, session=server.make_session("mia")).status == 200

        monkeypatch.setattr("time.sleep", sleep)
        code, out, _ = run("login", "--server", server.url, "--no-browser")
        assert code == 0
        assert out.splitlines()[:2] == [f"Enter the code {self.pending_code(server)} at", f"{server.url}/device"]

    def pending_code(self, server: HostedServer) -> str:
        from daskscope.storage import schema

        with server.services.archive.read() as tx:
            return str(tx.execute(schema.logins.select()).one().user_code)

    def test_a_denied_sign_in_is_reported_and_stores_nothing(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.confirm(server, monkeypatch, approve=False)
        code, _, err = run("login", "--server", server.url)
        assert (code, err) == (1, "daskscope: This sign-in was denied in the browser.\n")
        assert not credentials.path().exists()

    def test_a_sign_in_for_an_account_that_the_user_is_not_in_is_refused(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = self.confirm(server, monkeypatch)
        code, _, err = run("login", "--server", server.url, "--account", "other & more")
        assert (code, opened) == (1, [f"{server.url}/device?account=other%20%26%20more"])
        assert "This token is not for other & more. It is for: ours" in err
        assert not credentials.path().exists()

    def test_a_token_is_read_from_standard_input(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(server.make_token("vera", "ours") + "\n"))
        code, out, _ = run("login", "--server", server.url, "--token", "-")
        assert code == 0
        assert "vera in ours" in out

    def test_an_invalid_token_is_not_stored(self, server: HostedServer, run: Run) -> None:
        code, _, err = run("login", "--server", server.url, "--token", "dscope_cut_off")
        assert code == 1
        assert "incomplete" in err
        assert not credentials.path().exists()

    def test_a_server_without_sign_in_needs_no_token(self, tmp_path: Path, run: Run) -> None:
        with HostedServer(tmp_path / "local") as local:
            code, out, _ = run("login", "--server", local.url)
        assert code == 0
        assert "Sign-in is off" in out

    def test_without_a_server_the_error_says_how_to_set_one(self, run: Run) -> None:
        code, _, err = run("login")
        assert code == 1
        assert "daskscope login --server URL" in err

    def test_a_sign_in_asks_for_the_right_to_create_tokens_only_on_request(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.confirm(server, monkeypatch)
        assert run("login", "--server", server.url)[0] == 0
        code, _, err = run("token", "create")
        assert code == 1
        assert "daskscope login --create-tokens" in err

    def test_with_the_right_to_create_tokens_a_token_is_created(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.confirm(server, monkeypatch)
        assert run("login", "--server", server.url, "--create-tokens")[0] == 0
        code, _, err = run("token", "create", "--never-expires")
        assert code == 0
        # The token of the command line expires, and what was created with it ends at that time.
        assert "Create one that never expires in the browser" in err


class TestExpiry:
    @pytest.mark.parametrize(("days", "warned"), [(13, True), (15, False), (0, False)])
    def test_a_saved_token_that_expires_soon_is_warned_of_with_the_command_to_renew_it(
        self, server: HostedServer, run: Run, days: int, warned: bool
    ) -> None:
        expires = server.services.archive.clock() + days * 86_400_000_000 if days else 0
        token = server.make_token("mia", "ours", expires_us=expires)
        assert run("login", "--server", server.url, "--token", token)[0] == 0
        code, _, err = run("ls")
        assert code == 0
        assert (f"Renew it with: daskscope login --server {server.url}\n" in err) is warned
        assert len(err.splitlines()) == warned


class TestToken:
    def test_tokens_are_created_listed_and_revoked_by_command(self, signed_in: HostedServer, run: Run) -> None:
        code, out, err = run("token", "create", "--label", "nightly \x1b[31m", "--scope", "read", "--days", "7")
        secret = out.strip()
        assert (code, err) == (0, "daskscope: save this token now; it is not shown again.\n")
        assert signed_in.ask("GET", "/api/v1/me", token=secret).json()["scopes"] == ["read"]

        listed = {item["label"]: item for item in json.loads(run("token", "list", "--json")[1])}
        mine = listed["nightly \x1b[31m"]
        assert secret not in json.dumps(listed)
        assert secret.startswith(mine["hint"])
        assert (mine["scopes"], mine["expired"], mine["revoked"]) == (["read"], False, None)
        assert mine["used"] and mine["expires"]
        assert "\x1b" not in run("token", "list")[1]

        assert run("token", "revoke", str(mine["id"])) == (0, f"revoked {mine['id']}\n", "")
        assert signed_in.ask("GET", "/api/v1/me", token=secret).status == 401
        assert "nightly" not in run("token", "list")[1]
        assert "revoked" in run("token", "list", "--all")[1]
        assert run("token", "revoke", str(mine["id"]))[0] == 1

    @pytest.mark.parametrize("number", ["²", "1/../2", "-1", "9" * 30, "x"])
    def test_revoking_an_invalid_token_number_fails(self, signed_in: HostedServer, run: Run, number: str) -> None:
        code, _, err = run("token", "revoke", "--", number)
        assert code == 1
        assert "No such token" in err or "There is nothing at" in err

    def test_tokens_are_created_listed_and_revoked_in_python(self, signed_in: HostedServer) -> None:
        made = analytics.create_api_token(label="from python", days_to_expire=1)
        assert made["scopes"] == ["ingest", "read", "write"]
        assert analytics.list_api_tokens()[str(made["id"])]["label"] == "from python"
        analytics.revoke_api_token(label="from python")
        assert str(made["id"]) not in analytics.list_api_tokens()
        assert analytics.list_api_tokens(include_inactive=True)[str(made["id"])]["revoked"]
        with pytest.raises(DaskscopeError, match="0 tokens have the label 'from python'"):
            analytics.revoke_api_token(label="from python")
        with pytest.raises(DaskscopeError, match="Give either"):
            analytics.revoke_api_token()

    def test_a_token_cannot_have_more_scopes_than_its_user(self, server: HostedServer) -> None:
        for who, scopes in (("mia", ["admin"]), ("vera", ["read"])):
            answer = server.ask("POST", "/api/v1/tokens", {"scopes": scopes}, token=server.make_token(who, "ours"))
            assert answer.code == "forbidden"

    def test_a_token_created_with_a_token_does_not_outlive_it(self, server: HostedServer) -> None:
        ends = server.services.archive.clock() + 3_600_000_000
        token = server.make_token("mia", "ours", expires_us=ends)
        made = server.ask("POST", "/api/v1/tokens", {"days_to_expire": 9}, token=token).json()
        listed = server.ask("GET", "/api/v1/tokens", token=token).json()["items"]
        assert {item["expires"] for item in listed} == {made["expires"]}
        recorder = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "c"}, token=token).json()["token"]
        server.services.archive.clock = lambda: ends + 1
        assert server.send(sample_frames("c"), token=recorder).status == 401

    def test_only_owners_see_and_revoke_tokens_of_others(self, server: HostedServer) -> None:
        server.make_token("vera", "ours")
        member, owner = server.make_token("mia", "ours"), server.make_token("ada", "ours")
        everyone = server.ask("GET", "/api/v1/tokens?everyone=true", token=owner).json()["items"]
        theirs = next(item["id"] for item in everyone if item["user"] == "vera")
        assert server.ask("GET", "/api/v1/tokens?everyone=true", token=member).code == "forbidden"
        assert server.ask("DELETE", f"/api/v1/tokens/{theirs}", token=member).code == "not_found"
        assert server.ask("DELETE", f"/api/v1/tokens/{theirs}", token=owner).status == 200

    def test_a_new_role_applies_to_tokens_at_once(self, server: HostedServer) -> None:
        token, owner = server.make_token("mia", "ours"), server.make_token("ada", "ours")
        assert server.send(sample_frames("c"), token=token).status == 200
        assert server.ask("PUT", "/api/v1/members/mia", {"role": "viewer"}, token=owner).status == 200
        assert server.send(sample_frames("c"), token=token).code == "forbidden"
        assert server.ask("DELETE", "/api/v1/members/mia", token=owner).status == 200
        assert server.ask("GET", "/api/v1/me", token=token).status == 401


class TestUser:
    def test_administrators_create_users_and_accounts_and_owners_manage_members(
        self, signed_in: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("a good password\n"))
        assert run("user", "create", "bob", "--password-stdin")[0] == 0
        assert run("user", "account", "theirs", "--owner", "bob")[1] == "Created account theirs, owned by bob.\n"
        assert run("user", "add", "bob", "--role", "viewer")[1] == "bob now has the role viewer.\n"
        members = {item["name"]: item["role"] for item in json.loads(run("user", "list", "--json")[1])}
        assert members == {"ada": "owner", "bob": "viewer", "mia": "member", "vera": "viewer"}
        assert "bob" in run("user", "list")[1]
        assert run("user", "remove", "bob")[0] == 0
        assert "such member" in run("user", "remove", "bob")[2]
        assert "only owner" in run("user", "remove", "ada")[2]

    def test_administrators_disable_enable_and_promote_users(self, signed_in: HostedServer, run: Run) -> None:
        token = signed_in.make_token("mia", "ours")
        assert run("user", "disable", "mia")[1].startswith("mia can no longer sign in.")
        assert signed_in.ask("GET", "/api/v1/me", token=token).status == 401
        assert run("user", "enable", "mia")[0] == 0
        assert run("user", "grant-admin", "mia") == (0, "mia now administers the server.\n", "")
        listed = {item["name"]: item["admin"] for item in json.loads(run("user", "list", "--everyone", "--json")[1])}
        assert listed == {"ada": True, "mia": True, "vera": False}
        assert "administrator" in run("user", "list", "--everyone")[1]
        assert run("user", "remove-admin", "mia")[0] == 0
        assert "only administrator" in run("user", "disable", "ada")[2]

    @pytest.mark.parametrize(("action", "kind"), [("sign-in-link", "sign-in"), ("reset-password", "password")])
    def test_a_link_for_a_user_is_printed_alone(
        self, signed_in: HostedServer, run: Run, action: str, kind: str
    ) -> None:
        code, out, err = run("user", action, "mia")
        assert (code, err) == (0, "daskscope: give this link to mia only. It works once, within an hour.\n")
        secret = out.removeprefix(f"{signed_in.url}/login#{kind}:").strip()
        body = {"secret": secret, "password": "a new password"}
        assert signed_in.ask("POST", "/api/v1/session/link", body).json()["user"] == "mia"

    def test_an_owner_creates_a_link_for_a_member(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.make_account("ours", olga="owner")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("olga", "ours"))
        with dask.config.set({"daskscope.server": server.url}):
            assert "/login#sign-in:" in run("user", "sign-in-link", "mia")[1]

    def test_the_audit_log_is_listed(self, signed_in: HostedServer, run: Run) -> None:
        assert run("user", "remove", "vera")[0] == 0
        (event,) = json.loads(run("audit", "--action", "member-removed", "--json")[1])
        assert (event["user"], event["subject"], event["address"]) == ("ada", "vera", "127.0.0.1")
        assert "member-removed" in run("audit")[1]
        assert run("audit", "--action", "role-changed")[1] == "No events.\n"

    def test_a_member_cannot_manage_users_or_accounts(
        self, server: HostedServer, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        with dask.config.set({"daskscope.server": server.url}):
            assert "needs the scope admin" in run("user", "add", "bob")[2]
            assert "administrator" in run("user", "account", "bobs")[2]


class TestLs:
    def test_clusters_are_listed_explained_and_shown(self, signed_in: HostedServer, run: Run) -> None:
        assert "register()" in run("ls")[1]
        token = signed_in.make_token("mia", "ours")
        scheduler = "Scheduler-01234567-89ab-cdef-0123-456789abcdef"
        for name in ("one", "two", scheduler):
            assert signed_in.send(sample_frames(name, ended=name == "two"), token=token).status == 200
        code, out, err = run("ls")
        assert (code, err) == (0, "")
        assert out.count("sample cluster") == 3
        assert [item["id"] for item in json.loads(run("ls", "--json", "--state", "failed")[1])] == ["two"]
        assert json.loads(run("ls", "--json", "--state", "finished")[1]) == []
        assert "--limit prints more" in run("ls", "--limit", "1")[2]
        assert "No cluster matches" in run("ls", "--search", "nowhere")[1]
        assert "There is no state 'gone'" in run("ls", "--state", "gone")[2]

        assert run("explain", "one")[0] == 0
        assert json.loads(run("explain", "one", "--json")[1])["cluster_id"] == "one"
        assert "No such cluster" in run("explain", "three")[2]
        assert "sample-inc" in run("show", scheduler)[1]

    def test_control_characters_in_a_name_do_not_reach_the_terminal(self, signed_in: HostedServer, run: Run) -> None:
        token = signed_in.make_token("mia", "ours")
        assert signed_in.send(sample_frames("one", "\x1b]0;owned\x07"), token=token).status == 200
        assert "\x1b" not in run("ls")[1]


class TestServerErrors:
    """Error messages for users whose server is not what they expect."""

    def test_an_unreachable_server(self) -> None:
        with pytest.raises(ServerError, match=r"cannot be reached .*Is it running") as error:
            Server("http://127.0.0.1:1").get("me")
        assert error.value.status == 0

    @pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://x", "http://127.0.0.1:port", "http://a b"])
    def test_an_invalid_url(self, url: str) -> None:
        with pytest.raises(ServerError):
            Server(url).get("me")

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                "is not a daskscope server: it answered with a page",
            ),
            (
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                "is not a daskscope server: it answered 404 Not Found",
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "cannot be reached"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
            (
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/api/v1/me\r\nContent-Length: 0\r\n\r\n",
                "--server http://127",
            ),
            (
                b"HTTP/1.1 302 Found\r\nLocation: /hub/login?next=/api/v1/me\r\nContent-Length: 0\r\n\r\n",
                "is not a daskscope server: it answered 302 Found",
            ),
        ],
    )
    def test_another_program_at_the_url(self, answer: bytes, text: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                self.rfile.readline()
                self.wfile.write(answer)

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
            threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
            with pytest.raises(ServerError, match=text):
                Server(f"http://127.0.0.1:{other.server_address[1]}", token="secret").get("me")
            other.shutdown()

    def test_unreadable_credentials(self, run: Run, tmp_path: Path) -> None:
        credentials.path().parent.mkdir()
        credentials.path().write_text("{")
        code, _, err = run("ls")
        assert code == 1
        assert "Delete the file and sign in again" in err

    def test_a_token_is_in_no_repr(self, signed_in: HostedServer) -> None:
        token = credentials.load()[0].token
        assert token not in repr(Server(signed_in.url, "ours", token))
        assert token not in repr(credentials.load())
