"""A wrong address of a server: the error says what is wrong and what to type."""

from __future__ import annotations

import logging
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.hosted import HostedServer

from daskscope import DaskscopeError, analytics
from daskscope.cli.main import main
from daskscope.client.server_address import SERVE

LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
Say = Callable[[str], set[str]]


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Print nothing: connections that are not TLS end early."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("server") / "data", login=True) as made:
        yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # The scheduler logs that what it received is no message of Dask.
    logging.getLogger("distributed.core").setLevel(logging.CRITICAL)
    with LocalCluster(
        n_workers=0, protocol="tcp", host="127.0.0.1", processes=False, dashboard_address="127.0.0.1:0"
    ) as made:
        yield made


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Use an address in a command and in Dask's configuration, and return what they say."""
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))
    monkeypatch.delenv("DASKSCOPE_TOKEN", raising=False)

    def say(url: str) -> set[str]:
        assert main(["login", "--no-browser", "--server", url]) == 1
        with dask.config.set({"daskscope.server": url}):
            assert main(["ls"]) == 1
            said = {line.removeprefix("daskscope: ") for line in capsys.readouterr().err.splitlines()}
            with pytest.raises(DaskscopeError) as error:
                analytics.list_clusters()
        return said | {str(error.value)}

    return say


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("127.0.0.1:8780", "has no scheme. Type http://127.0.0.1:8780"),
        ("localhost:8780", "has no scheme. Type http://localhost:8780"),
        (
            "dask.example.org",
            "has no scheme. Type https://dask.example.org, or http://dask.example.org if it has no certificate",
        ),
    ],
)
def test_an_address_without_a_scheme(say: Say, url: str, text: str) -> None:
    assert say(url) == {f"The server address {url} {text}"}


def test_https_for_a_server_without_it(say: Say, server: HostedServer) -> None:
    url = server.url.replace("http:", "https:")
    assert say(url) == {f"{url} does not use https. Type {server.url}"}


def test_http_for_a_server_with_https(say: Say, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
         "/CN=localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with QuietServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as secure:
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=secure.serve_forever, args=(0.01,), daemon=True).start()
        port = secure.server_address[1]
        assert say(f"http://127.0.0.1:{port}") == {f"http://127.0.0.1:{port} uses https. Type https://127.0.0.1:{port}"}
        secure.shutdown()


def test_the_addresses_of_a_scheduler(say: Say, cluster: Any) -> None:
    tcp, dashboard = cluster.scheduler_address, cluster.dashboard_link
    for url in (tcp, tcp.replace("tcp:", "http:")):
        assert say(url) == {f"{url} is the address of a Dask scheduler, not of a daskscope server. {SERVE}"}
    for url in (dashboard, dashboard.removesuffix("/status")):
        assert say(url) == {f"{url} is the dashboard of a Dask scheduler, not a daskscope server. {SERVE}"}


def test_a_page_of_a_server(say: Say, server: HostedServer) -> None:
    for page in ("login", "ours/clusters"):
        url = f"{server.url}/{page}"
        assert say(url) == {f"{url} is a page of a daskscope server. Type {server.url}"}


def test_another_site(say: Say) -> None:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{site.server_address[1]}"
        assert say(url) == {f"{url} is not a daskscope server: it answered with a page. {SERVE}"}
        site.shutdown()


def test_registering_a_cluster_and_a_preload_say_it_too(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    text = "The server address 127.0.0.1:8780 has no scheme. Type http://127.0.0.1:8780"
    with dask.config.set({"daskscope.server": "127.0.0.1:8780"}), Client(cluster) as client:
        with pytest.raises(DaskscopeError, match=text):
            analytics.register(client)
        client.sync(analytics.dask_setup, cluster.scheduler)
    assert [record.getMessage() for record in caplog.records if record.name == "daskscope"] == [
        f"daskscope: this cluster is not recorded. {text}"
    ]
