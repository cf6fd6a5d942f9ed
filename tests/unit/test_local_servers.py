"""The secret of a server without sign-in: in a URL, and in a file for programs of the same user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dask.config
import pytest

from daskscope.client.local_server import announce, find_secret, split_secret, with_secret, withdraw
from daskscope.client.server import configured_url, find_server
from daskscope.client.token_exchange import forget
from daskscope.collector.privacy import Scrubber

URL = "http://127.0.0.1:8780"


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path))
    monkeypatch.delenv("DASKSCOPE_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, (URL, "")),
        (f"{URL}/", (URL, "")),
        (f"{URL}/?secret=abc", (URL, "abc")),
        (f"{URL}?secret=abc", (URL, "abc")),
        (f"{URL}/dask/?secret=abc", (f"{URL}/dask", "abc")),
        (f"{URL}/?a=1&secret=abc", (f"{URL}?a=1", "abc")),
        (f"{URL}/?secret=", (f"{URL}/?secret=", "")),
        ("", ("", "")),
        ("not a URL [", ("not a URL [", "")),
    ],
)
def test_a_secret_is_split_from_a_url(url: str, expected: tuple[str, str]) -> None:
    assert split_secret(url) == expected


def test_a_url_with_a_secret_can_be_split_again() -> None:
    assert split_secret(with_secret(f"{URL}/local/clusters/one", "a-_1")) == (f"{URL}/local/clusters/one", "a-_1")


def test_recordings_do_not_contain_a_secret_in_a_url() -> None:
    code = f'dask.config.set({{"daskscope.server": "{URL}/?secret=a-long-secret"}})'
    assert "a-long-secret" not in Scrubber.gather({}, {}).scrub(code)


@pytest.mark.parametrize("url", [URL, f"{URL}/", "http://localhost:8780", "http://[::1]:8780/dask"])
def test_an_announced_secret_is_found_by_any_loopback_name(url: str) -> None:
    announce(URL, "abc")
    assert find_secret(url) == "abc"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8781", "http://127.0.0.1", "http://server:8780", "http://127.0.0.1:x", "http://[", ""]
)
def test_other_servers_do_not_get_it(url: str) -> None:
    announce(URL, "abc")
    assert find_secret(url) == ""


def test_only_the_user_can_read_the_file() -> None:
    path = announce(URL, "abc")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    # The default data directory of a server.
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o644)
    assert announce(URL, "new") == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_server_that_stops_withdraws_its_own_file_only() -> None:
    path = announce(URL, "abc")
    other = path.read_text().replace('"pid": ', '"pid": 1')
    path.write_text(other)
    withdraw(path)
    assert path.read_text() == other
    announce(URL, "abc")
    withdraw(path)
    withdraw(path)
    assert find_secret(URL) == ""
    assert not path.exists()


def test_the_file_of_a_killed_server_is_ignored() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(30)
    path = announce(URL, "abc")
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": ended.pid}))
    assert find_secret(URL) == ""


def test_a_process_that_reuses_the_id_of_a_killed_server_does_not_get_its_secret() -> None:
    path = announce(URL, "abc")
    found = json.loads(path.read_text())
    assert found["pid"] == os.getpid()
    # The server that announced it started earlier than the process that has its ID now.
    path.write_text(json.dumps({**found, "started": found["started"] - 60}))
    assert find_secret(URL) == ""
    path.write_text(json.dumps(found))
    assert find_secret(URL) == "abc"


def test_the_secret_is_not_for_a_process_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(URL, "abc")
    owners = iter(["another", "this"])
    monkeypatch.setattr("psutil.Process.username", lambda _: next(owners))
    assert find_secret(URL) == ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "x", "secret": "abc"}', '{"pid": 1, "secret": 5}'])
def test_a_damaged_file_is_ignored(text: str) -> None:
    announce(URL, "abc").write_text(text)
    assert find_secret(URL) == ""


def test_machines_that_share_a_home_directory_do_not_mix_up_their_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(URL, "abc")
    monkeypatch.setattr("socket.gethostname", lambda: "login2")
    assert find_secret(URL) == ""


def test_a_user_without_a_home_directory_has_no_announced_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert find_secret(URL) == ""


class TestClients:
    def test_the_secret_of_the_configured_url_is_sent_as_the_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASKSCOPE_TOKEN", "of another server")
        with dask.config.set({"daskscope.server": f"{URL}/?secret=abc"}):
            server = find_server()
            assert (server.url, server.token, configured_url()) == (URL, "abc", URL)
            assert "abc" not in repr(server)

    def test_a_plain_url_uses_the_announced_secret(self) -> None:
        announce(URL, "abc")
        with dask.config.set({"daskscope.server": f"{URL}/"}):
            assert find_server().token == "abc"

    def test_a_token_of_the_user_comes_before_the_announced_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        announce(URL, "abc")
        monkeypatch.setenv("DASKSCOPE_TOKEN", "dscope_own")
        with dask.config.set({"daskscope.server": URL}):
            assert find_server().token == "dscope_own"

    def test_a_scheduler_forgets_a_url_with_a_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASK_DASKSCOPE__SERVER", f"{URL}/?secret=a-long-secret")
        with dask.config.set({"daskscope.server": f"{URL}/?secret=a-long-secret"}):
            forget("long")
            assert find_server().token == "a-long-secret"
            forget("a-long-secret")
            assert configured_url() == URL
            assert "a-long-secret" not in str(dask.config.config)
        assert "DASK_DASKSCOPE__SERVER" not in os.environ
