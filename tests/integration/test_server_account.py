"""One sign-in is for all accounts of a person, and only a person changes the default account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames
from tests.helpers.waiting import until

import daskscope
from daskscope import DaskscopeError, analytics
from daskscope.cli.main import main
from daskscope.client import credentials
from daskscope.client.connection import CallingCode
from daskscope.client.server import find_server

LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
Run = Callable[..., tuple[int, str, str]]
WIDE = ("ingest", "read", "write", "admin", "accounts")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("server") / "data", login=True) as made:
        made.make_account("ours", mia="viewer")
        made.make_account("theirs", mia="owner")
        made.make_account("foreign", eve="owner")
        yield made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(autouse=True)
def signed_in(server: HostedServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dask.config.PATH", str(tmp_path / "config"))
    monkeypatch.delenv("DASKSCOPE_TOKEN", raising=False)
    code, out, _ = run("login", "--server", server.url, "--token", server.make_token("mia", "ours", *WIDE))
    assert (code, out.splitlines()[0]) == (0, "Authentication successful: mia in ours, theirs")
    assert out.splitlines()[2:] == ["Default account: ours"]


def test_a_command_uses_another_account_with_the_same_sign_in(server: HostedServer, run: Run) -> None:
    token = server.make_token("mia", "theirs")
    assert server.send(sample_frames("shared"), token=token).status == 200
    assert "shared" in run("ls", "--json", "--account", "theirs")[1]
    assert run("ls", "--json")[1] == "[]\n"
    # The role in the other account counts, not that in the account of the token.
    assert run("token", "list", "--account", "theirs")[0] == 0
    assert find_server("theirs").call("PATCH", "clusters/shared", body={"name": "renamed"})["name"] == "renamed"
    with pytest.raises(DaskscopeError, match="This needs the scope write; yours allows read, accounts"):
        find_server("ours").call("PATCH", "clusters/shared", body={"name": "x"})


def test_the_token_of_a_device_sign_in_has_the_role_of_each_account(server: HostedServer) -> None:
    begun = server.ask("POST", "/api/v1/device", {"scopes": list(WIDE), "account": "theirs"}).json()
    assert begun["verification_url"] == f"{server.url}/device?account=theirs"
    decision = {"user_code": begun["user_code"], "account": "ours"}
    assert server.ask("POST", "/api/v1/device/decision", decision, session=server.make_session("mia")).status == 200
    collected = server.ask("POST", "/api/v1/device/token", {"device_code": begun["device_code"]}).json()
    assert (collected["account"], set(collected["scopes"])) == ("ours", set(WIDE))

    def scopes(account: str) -> list[str]:
        found = server.ask("GET", f"/api/v1/me?account={account}", token=collected["token"]).json()
        return list(found["scopes"])

    assert (scopes("ours"), scopes("theirs")) == (["accounts", "read"], sorted(WIDE))


@pytest.mark.parametrize("account", ["foreign", "nowhere"])
def test_an_account_of_others_is_refused_with_the_own_ones(run: Run, account: str) -> None:
    code, _, err = run("ls", "--account", account)
    assert (code, err) == (1, f"daskscope: You are not a member of {account}. Your accounts: ours, theirs.\n")


def test_a_token_for_one_account_stays_so(server: HostedServer) -> None:
    token = server.make_token("mia", "ours")
    refused = server.ask("GET", "/api/v1/clusters?account=theirs", token=token)
    assert (refused.status, refused.code) == (403, "other_account")
    assert [one["name"] for one in server.ask("GET", "/api/v1/me", token=token).json()["accounts"]] == ["ours"]


def test_a_member_who_leaves_an_account_is_refused_there_at_once(server: HostedServer, run: Run) -> None:
    server.make_account("left", mia="member", olga="owner")
    assert run("ls", "--account", "left")[0] == 0
    assert run("account", "use", "left")[0] == 0
    assert server.ask("DELETE", "/api/v1/members/mia", token=server.make_token("olga", "left")).status == 200
    code, _, err = run("ls")
    assert (code, err) == (1, "daskscope: You are not a member of left. Your accounts: ours, theirs.\n")
    assert run("account", "use", "ours")[:2] == (0, "Default account: ours\n")
    assert run("ls")[0] == 0


def test_the_accounts_are_shown_and_the_default_is_chosen(run: Run) -> None:
    code, out, _ = run("account")
    assert (code, [line.split() for line in out.splitlines()[-2:]]) == (
        0,
        [["ours", "viewer", "yes"], ["theirs", "owner"]],
    )
    assert run("account", "use", "theirs") == (0, "Default account: theirs\n", "")
    assert find_server().account == "theirs"
    assert [line.split() for line in run("account")[1].splitlines()[-2:]] == [
        ["ours", "viewer"],
        ["theirs", "owner", "yes"],
    ]
    code, _, err = run("account", "use", "foreign")
    assert (code, err) == (1, "daskscope: You are not a member of foreign. Your accounts: ours, theirs.\n")


def test_signing_in_again_does_not_change_the_default(server: HostedServer, run: Run) -> None:
    wide, narrow = server.make_token("mia", "theirs", *WIDE), server.make_token("mia", "theirs", "read")
    for token, account in ((wide, "theirs"), (narrow, ""), (wide, "")):
        options = ("--account", account) if account else ()
        code, out, _ = run("login", "--server", server.url, "--token", token, *options)
        assert (code, out.splitlines()[2:]) == (
            0,
            ["Default account: ours", "To change it: daskscope account use theirs"],
        )
        assert find_server().account == "ours"
    # A token for one account is used there, and the one for all elsewhere.
    assert (find_server("theirs").token, find_server("ours").token) == (narrow, wide)
    assert len(credentials.load()) == 2


def test_another_server_becomes_the_default_and_the_output_says_so(
    server: HostedServer, run: Run, tmp_path: Path
) -> None:
    with HostedServer(tmp_path / "other", login=True) as other:
        other.make_account("mine", ada="owner")
        _, out, _ = run("login", "--server", other.url, "--token", other.make_token("ada", "mine"))
        assert out.splitlines()[2:] == [
            f"Default server: {other.url} (before: {server.url})",
            "Default account: mine",
        ]


def test_a_cluster_and_a_report_belong_to_the_given_account(
    server: HostedServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope.analytics.calling_code", CallingCode())
    with (
        dask.config.set({"daskscope.spool.directory": str(tmp_path / "spool")}),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        page = analytics.register(client, account="theirs")
        assert page == f"{server.url}/theirs/clusters/{cluster.scheduler.id}"
        with daskscope.performance_report(tmp_path / "report.html", account="theirs", private=True) as report:
            client.submit(abs, -1).result()
        assert report.url is not None and report.url.startswith(f"{server.url}/theirs/reports/")
        until(lambda: [one["id"] for one in analytics.list_clusters("theirs") if one["id"] == cluster.scheduler.id])
