"""Running a server: health, numbers, news as they happen, TLS, a proxy in front of it, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.services import Hosting

from daskscope.server.settings import SettingsError
from daskscope.testing.hosted import FRAMES, HostedServer
from daskscope.testing.processes import until
from daskscope.testing.samples import sample_frames

NGINX = Path("/usr/sbin/nginx")
DASKSCOPE = [sys.executable, "-c", "import sys; from daskscope.cli.main import main; sys.exit(main())"]


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data") as server:
        yield server


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[HostedServer]:
    """For what a test does to the database's file, or where nothing of the database is in question."""
    with HostedServer(tmp_path / "data") as server:
        yield server


class TestHealth:
    def test_a_server_that_works_says_so(self, server: HostedServer) -> None:
        assert server.ask("GET", "/healthz").json()["status"] == "ok"
        answer = server.ask("GET", "/readyz")
        assert answer.status == 200
        assert answer.json() == {"ready": True, "checks": {"database": "ok", "store": "ok", "writer": "ok"}}

    def test_without_its_database_it_lives_and_says_what_is_wrong(
        self, on_sqlite: HostedServer, tmp_path: Path
    ) -> None:
        on_sqlite.services.database.engine.dispose()
        for file in (tmp_path / "data").glob("catalog.db*"):
            file.rename(tmp_path / file.name)
        (tmp_path / "data" / "catalog.db").mkdir()

        assert on_sqlite.ask("GET", "/healthz").status == 200
        ready = on_sqlite.ask("GET", "/readyz")
        assert ready.status == 503
        assert ready.json()["checks"]["database"] == "the database cannot be reached"
        for path in ("/api/v1/clusters", "/metrics"):
            answer = on_sqlite.ask("GET", path)
            assert (answer.status, answer.code) == (503, "unavailable")
            assert answer.headers["Retry-After"]
        answer = on_sqlite.send(sample_frames("kept"))
        assert (answer.status, answer.code) == (503, "unavailable")

        (tmp_path / "data" / "catalog.db").rmdir()
        for file in tmp_path.glob("catalog.db*"):
            file.rename(tmp_path / "data" / file.name)
        assert on_sqlite.send(sample_frames("kept")).status == 200
        assert on_sqlite.ask("GET", "/readyz").json()["ready"] is True

    def test_without_its_store_it_says_so(self, on_sqlite: HostedServer, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "data" / "blobs", ignore_errors=True)
        (tmp_path / "data" / "blobs").write_text("in the way")
        ready = on_sqlite.ask("GET", "/readyz")
        assert ready.status == 503
        assert ready.json()["checks"]["store"] != "ok"

    def test_a_job_that_fails_shows(self, on_sqlite: HostedServer) -> None:
        on_sqlite.services.problems["compaction"] = "the disk is full"
        assert on_sqlite.ask("GET", "/readyz").json()["checks"]["compaction"] == "the disk is full"


class TestMetrics:
    def series(self, server: HostedServer) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        text = server.ask("GET", "/metrics").text
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def test_they_count_what_happened(self, server: HostedServer) -> None:
        assert server.send(sample_frames("one")).status == 200
        found = self.series(server)
        assert (
            found["daskscope_clusters", (("state", "idle"),)] + found["daskscope_clusters", (("state", "running"),)]
            == 1
        )
        assert found["daskscope_tasks", ()] == 3
        assert found["daskscope_workers", ()] == 1
        assert found["daskscope_rows_total", ()] > 5
        assert found["daskscope_requests_total", (("route", "ingest 2xx"),)] == 1

    def test_what_is_asked_and_recorded_makes_no_new_series(self, server: HostedServer) -> None:
        def ask(name: str) -> None:
            assert server.send(sample_frames(name, f'"}}\n{name}')).status == 200
            for path in (
                f"/{name}",
                f"/api/v1/clusters/{name}",
                f"/api/v1/clusters/x-{name}",
                f"/local/reports/{name}",
            ):
                server.ask("GET", path)

        ask("first")
        before = set(self.series(server)) | set(self.series(server))
        for number in range(5):
            ask(f"c{number}")
        assert set(self.series(server)) == before

    def test_an_administrators_token_reads_them_where_people_log_in(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True) as server:
            server.make_user("ada", admin=True)
            server.make_account("ours", ada="owner", olga="owner")
            assert server.ask("GET", "/metrics").status == 401
            assert server.ask("GET", "/metrics", token=server.make_token("olga", "ours")).status == 403
            assert server.ask("GET", "/metrics", token=server.make_token("ada", "ours", "read")).status == 403
            assert server.ask("GET", "/metrics", token=server.make_token("ada", "ours")).status == 200


class Listening:
    """A page that waits for news."""

    def __init__(self, server: HostedServer, path: str = "/api/v1/live", **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.readline() == b": connected\n"

    def news(self) -> Any:
        while not (line := self.response.readline()).startswith(b"data: "):
            assert line
        return json.loads(line[6:])

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class TestNews:
    def test_a_change_is_told_and_only_to_its_account(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True) as server:
            server.make_account("ours", mia="member")
            server.make_account("theirs", mallory="owner")
            mine, theirs = server.make_token("mia", "ours"), server.make_token("mallory", "theirs")
            here = Listening(server, Authorization=f"Bearer {mine}")
            there = Listening(server, Authorization=f"Bearer {theirs}")
            until(lambda: server.services.live.listening == 2)
            assert server.send(sample_frames("changed"), token=mine).status == 200
            assert here.news() == ["changed"]
            assert server.send(sample_frames("foreign"), token=theirs).status == 200
            assert there.news() == ["foreign"]
            here.close()
            there.close()

    def test_whoever_leaves_is_forgotten(self, server: HostedServer) -> None:
        pages = [Listening(server) for _ in range(5)]
        until(lambda: server.services.live.listening == 5)
        for page in pages:
            page.close()
        # Noticed when there is something to say.
        assert server.send(sample_frames("c")).status == 200
        until(lambda: server.services.live.listening == 0)

    def test_whoever_waits_holds_no_thread(self, server: HostedServer) -> None:
        pages = [Listening(server) for _ in range(60)]
        assert server.send(sample_frames("c")).status == 200
        assert pages[-1].news() == ["c"]
        for page in pages:
            page.close()

    def test_there_is_an_end_to_how_many_wait(self, on_sqlite: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("daskscope.server.live.MOST_OF_AN_ACCOUNT", 1)
        page = Listening(on_sqlite)
        until(lambda: on_sqlite.services.live.listening == 1)
        answer = on_sqlite.ask("GET", "/api/v1/live")
        assert (answer.status, answer.code) == (503, "unavailable")
        page.close()

    def test_a_page_that_does_not_read_is_not_remembered_everything_for(self, on_sqlite: HostedServer) -> None:
        page = Listening(on_sqlite)
        until(lambda: on_sqlite.services.live.listening == 1)
        (listener,) = on_sqlite.services.live._listeners
        for number in range(50):
            on_sqlite.services.live.announce({(on_sqlite.services.local_account, f"c{number}-{i}") for i in range(100)})
        until(lambda: not listener.changed or len(listener.changed) >= 1000)
        assert len(listener.changed) <= 1_100
        page.close()


class TestTls:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> tuple[Path, Path]:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key, name = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")]),
        )
        now = datetime.now(timezone.utc)
        made = (
            x509.CertificateBuilder(
                name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
            )
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        paths = tmp_path / "cert.pem", tmp_path / "key.pem"
        paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private = serialization.PrivateFormat.PKCS8
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
        return paths

    def test_it_serves_https(self, tmp_path: Path, certificate: tuple[Path, Path]) -> None:
        cert, key = map(str, certificate)
        with HostedServer(tmp_path / "data", login=True, tls_cert=cert, tls_key=key) as server:
            server.make_account("ours", olga="owner")
            assert server.url == f"https://127.0.0.1:{server.port}"
            trusted = ssl.create_default_context(cafile=cert)
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusted, timeout=10)
            body = json.dumps({"user": "olga", "password": "correct horse battery"})
            connection.request("POST", "/api/v1/session", body, {"Origin": server.url})
            response = connection.getresponse()
            assert response.status == 200
            assert "; Secure" in response.headers["Set-Cookie"]
            connection.close()

    def test_files_that_are_none_are_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no certificate")
        for file in ("missing", "file"):
            path = str(tmp_path / file)
            with pytest.raises(SettingsError, match="--tls-cert and --tls-key cannot be used"):
                HostedServer(tmp_path / "data", tls_cert=path, tls_key=path).__enter__()


class TestProxy:
    @pytest.fixture
    def proxied(self, tmp_path: Path) -> Iterator[HostedServer]:
        """The server under /dask of nginx, with the lines of docs/serve.md."""
        if not NGINX.exists():
            pytest.skip(f"SKIPPED LOUDLY: {NGINX} is missing; install it with: apt-get install nginx-light")
        page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
        location = re.search(r"^location /dask/ \{.*?^\}", page, re.DOTALL | re.MULTILINE)
        assert location is not None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options: Any = {"url": f"http://127.0.0.1:{port}/dask", "root_path": "/dask", "trusted_proxies": "127.0.0.1"}
        with HostedServer(tmp_path / "data", login=True, **options) as server:
            server.make_account("ours", olga="owner")
            inside = location[0].replace("127.0.0.1:8780", f"127.0.0.1:{server.port}")
            (tmp_path / "nginx.conf").write_text(
                f"{'user root; ' if os.getuid() == 0 else ''}daemon off; worker_processes 1; pid {tmp_path}/pid;\n"
                f"error_log {tmp_path}/error.log; events {{}}\n"
                f"http {{ access_log off; client_body_temp_path {tmp_path}; proxy_temp_path {tmp_path}; "
                f"fastcgi_temp_path {tmp_path}; uwsgi_temp_path {tmp_path}; scgi_temp_path {tmp_path};\n"
                f"server {{ listen 127.0.0.1:{port}; {inside} }} }}\n"
            )
            command = [
                str(NGINX),
                "-p",
                str(tmp_path),
                "-e",
                str(tmp_path / "error.log"),
                "-c",
                str(tmp_path / "nginx.conf"),
            ]
            nginx = subprocess.Popen(command)
            try:
                until(lambda: _listens(port), "nginx")
                server.port = port
                yield server
            finally:
                nginx.terminate()
                nginx.wait(10)

    def test_links_cookies_and_uploads_are_right(self, proxied: HostedServer) -> None:
        login = proxied.ask(
            "POST", "/dask/api/v1/session", {"user": "olga", "password": "correct horse battery"},
            headers={"Origin": proxied.origin},
        )  # fmt: skip
        assert login.status == 200
        assert "Path=/dask;" in login.headers["Set-Cookie"]
        page = b"<!doctype html>" + b"x" * 3_000_000
        report = proxied.ask("POST", "/dask/api/v1/reports", page, session=login.cookie).json()
        assert report["url"].startswith(f"{proxied.url}/ours/reports/1/")
        shown = proxied.ask("GET", report["url"].removeprefix(proxied.origin))
        assert f'src="/dask/api/v1/shared/{report["url"].rpartition("/")[2]}/html"' in shown.text
        app = proxied.ask("GET", "/dask/login").text
        assert '<meta name="daskscope-root" content="/dask">' in app
        for name in set(re.findall(r'"(/dask/assets/[^"]+)"', app)):
            assert proxied.ask("GET", name).status == 200
        assert proxied.ask("GET", "/dask/ours/clusters/c").text == app

    def test_news_are_not_held_back(self, proxied: HostedServer) -> None:
        token = proxied.make_token("olga", "ours")
        page = Listening(proxied, "/dask/api/v1/live", Authorization=f"Bearer {token}")
        body, headers = sample_frames("changed"), {"Content-Type": FRAMES}
        assert proxied.ask("POST", "/dask/api/v1/ingest", body, token=token, headers=headers).status == 200
        assert page.news() == ["changed"]
        page.close()

    def test_an_address_cannot_be_forged_to_escape_the_lock(self, proxied: HostedServer) -> None:
        statuses = [
            proxied.ask(
                "POST", "/dask/api/v1/session", {"user": f"guess{number}", "password": "x"},
                headers={"X-Forwarded-For": f"10.0.0.{number}"},
            ).status
            for number in range(11)
        ]  # fmt: skip
        assert statuses == [401] * 10 + [429]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class TestEnd:
    def start(self, directory: Path) -> tuple[subprocess.Popen[str], int]:
        command = [*DASKSCOPE, "serve", "--port", "0", "--data", str(directory)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().rpartition(":")[2])
        # It listens already, and answers once it is up.
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        return process, port

    def test_told_to_end_it_ends_soon_and_has_what_it_acknowledged(self, tmp_path: Path) -> None:
        process, port = self.start(tmp_path / "data")
        waiting = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        waiting.request("GET", "/api/v1/live")
        assert waiting.getresponse().status == 200
        acknowledged: list[str] = []
        enough = threading.Event()

        def send() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            for number in range(10_000):
                try:
                    connection.request("POST", "/api/v1/ingest", sample_frames(f"c{number}"))
                    response = connection.getresponse()
                    response.read()
                except (OSError, http.client.HTTPException):
                    return
                if response.status == 200:
                    acknowledged.append(f"c{number}")
                if number == 20:
                    enough.set()

        sender = threading.Thread(target=send)
        sender.start()
        assert enough.wait(60)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in err
        sender.join(30)
        waiting.close()

        with HostedServer(tmp_path / "data") as server:
            items = server.ask("GET", "/api/v1/clusters?limit=1000").json()["items"]
        there = {item["id"]: item["n_tasks"] for item in items}
        assert set(acknowledged) <= set(there)
        assert len(there) <= len(acknowledged) + 1
        assert set(there.values()) == {3}

    def test_it_says_where_it_is_and_nothing_else(self, tmp_path: Path) -> None:
        process, port = self.start(tmp_path / "data")
        assert port > 0
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, "")
        assert [line for line in err.splitlines() if " INFO " not in line] == []

    def test_a_port_in_use_is_said(self, on_sqlite: HostedServer, tmp_path: Path) -> None:
        command = [*DASKSCOPE, "serve", "--port", str(on_sqlite.port), "--data", str(tmp_path / "other")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ}, check=False)
        assert done.returncode == 2
        assert "Choose another with --port" in done.stderr
