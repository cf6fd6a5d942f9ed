"""A wrong address of a server: the error says what is wrong and what to type."""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.http_proxy import HttpProxy

from daskscope import DaskscopeError, analytics
from daskscope.cli.main import main
from daskscope.client.server import Server
from daskscope.client.server_address import SERVE, describe_failure
from daskscope.collector.delivery.poster import poster
from daskscope.errors import ServerError

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


class Replies(BaseHTTPRequestHandler):
    """Replies to every request with an empty object."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key.pem"),
         "-out", str(tmp_path / "certificate.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return tmp_path / "certificate.pem"


@pytest.fixture
def secure_port(certificate: Path) -> Iterator[int]:
    """The port of a server with a certificate that nobody trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with QuietServer(("127.0.0.1", 0), Replies) as secure:
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=secure.serve_forever, args=(0.01,), daemon=True).start()
        yield int(secure.server_address[1])
        secure.shutdown()


def test_http_for_a_server_with_https(say: Say, secure_port: int) -> None:
    url = f"http://127.0.0.1:{secure_port}"
    wanted = f"{url} uses https. Type https://127.0.0.1:{secure_port}"
    assert say(url) == {wanted}
    # The server may close the connection before the request is sent.
    assert describe_failure(url, URLError(BrokenPipeError(32, "Broken pipe"))) == wanted


#: Calls of a client and of a recorder, and questions about what is at an address.
CALLS = """
import sys
from daskscope.client.server import Server
from daskscope.collector.delivery.poster import poster
from daskscope.client.server_address import describe_answer
url = sys.argv[1]
print(Server(url).get("me"), poster(url, "token")(b"").status, describe_answer(url, "with a page").split()[0])
"""


def call(url: str, **environment: str) -> str:
    """Call a server in another process, and return what it prints."""
    command, variables = [sys.executable, "-c", CALLS, url], {**os.environ, **environment}
    called = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    return called.stdout or called.stderr


def test_a_private_certificate_is_trusted_with_ssl_cert_file(certificate: Path, secure_port: int) -> None:
    url = f"https://127.0.0.1:{secure_port}"
    with pytest.raises(ServerError) as refused:
        Server(url).get("me")
    assert str(refused.value) == (
        f"The certificate of {url} is not trusted (self-signed certificate). If it is from a private CA, set SSL_CERT_FILE to "
        "the file with its certificate."
    )
    assert "CERTIFICATE_VERIFY_FAILED" in poster(url, "token")(b"").reason
    assert call(url, SSL_CERT_FILE=str(certificate)) == f"{{}} 200 {url}\n"


def test_proxies_of_other_programs_never_see_a_request() -> None:
    with QuietServer(("127.0.0.1", 0), Replies) as server, HttpProxy(0) as proxy:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        proxy.answer = (502, b"<html>bad gateway")
        proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), proxy.url)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert call(url, **proxies, no_proxy="", NO_PROXY="") == f"{{}} 200 {url}\n"
        assert proxy.answered == []
        server.shutdown()


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
