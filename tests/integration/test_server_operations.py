"""Running a server: health, metrics, live updates, TLS, a reverse proxy and shutdown."""

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
from tests.helpers.hosted import FRAMES, HostedServer
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

from daskscope.client.local_server import split_secret
from daskscope.server.settings import SettingsError

pytestmark = pytest.mark.each_database

NGINX = Path("/usr/sbin/nginx")
DASKSCOPE = [sys.executable, "-c", "import sys; from daskscope.cli.main import main; sys.exit(main())"]


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data") as server:
        yield server


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[HostedServer]:
    """For tests that change the database's file, or that do not depend on the database."""
    with HostedServer(tmp_path / "data") as server:
        yield server


class TestHealth:
    def test_a_healthy_server_is_ready(self, server: HostedServer) -> None:
        assert server.ask("GET", "/healthz").json()["status"] == "ok"
        answer = server.ask("GET", "/readyz")
        assert answer.status == 200
        checks = {"database": "ok", "store": "ok", "writer": "ok"}
        assert answer.json() == {"ready": True, "roles": {"ingest": "ok", "read": "ok"}, "checks": checks}
        assert server.ask("GET", "/readyz/read").json() == answer.json()

    def test_without_its_database_it_is_alive_and_reports_the_problem(
        self, on_sqlite: HostedServer, tmp_path: Path
    ) -> None:
        on_sqlite.services.archive.database.engine.dispose()
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

    def test_without_its_store_it_is_ready_for_ingest_only(self, on_sqlite: HostedServer, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "data" / "blobs", ignore_errors=True)
        (tmp_path / "data" / "blobs").write_text("in the way")
        ready = on_sqlite.ask("GET", "/readyz")
        assert (ready.status, on_sqlite.ask("GET", "/readyz/read").status) == (200, 503)
        assert ready.json()["checks"]["store"] != "ok"

    def test_a_check_that_hangs_is_answered_and_repeated_by_no_second_thread(self, on_sqlite: HostedServer) -> None:
        calls, go_on = [], threading.Event()

        def hang(path: str) -> bytes:
            calls.append(path)
            go_on.wait(60)
            return b""

        on_sqlite.services.archive.store.get = hang  # type: ignore[method-assign]
        for _ in range(2):
            ready = on_sqlite.ask("GET", "/readyz")
            assert (ready.status, ready.json()["checks"]["store"]) == (200, "the store did not answer within 2 s")
        assert len(calls) == 1
        go_on.set()
        until(lambda: on_sqlite.ask("GET", "/readyz/read").status == 200, "the end of the check")

    def test_a_failing_job_is_reported(self, on_sqlite: HostedServer) -> None:
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

    def test_they_count_batches_rows_and_requests(self, server: HostedServer) -> None:
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

    def test_paths_and_names_create_no_new_series(self, server: HostedServer) -> None:
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
            ask(f"unlike-{number}")
        new = set(self.series(server)) - before
        # Jobs of the server may have counted something for the first time meanwhile, but not once for each name.
        assert [one for one in new if "unlike" in str(one)] == []
        assert len(new) < 5

    def test_with_sign_in_they_need_an_administrators_token(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True) as server:
            server.make_user("ada", admin=True)
            server.make_account("ours", ada="owner", olga="owner")
            assert server.ask("GET", "/metrics").status == 401
            assert server.ask("GET", "/metrics", token=server.make_token("olga", "ours")).status == 403
            assert server.ask("GET", "/metrics", token=server.make_token("ada", "ours", "read")).status == 403
            assert server.ask("GET", "/metrics", token=server.make_token("ada", "ours")).status == 200


class LiveConnection:
    """A page that listens for live updates."""

    def __init__(self, server: HostedServer, path: str = "/api/v1/live", **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        credentials = {"Authorization": f"Bearer {server.secret}"} if server.secret else {}
        self.connection.request("GET", path, headers={**credentials, **headers})
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.readline() == b": connected\n"

    def next_update(self) -> Any:
        while not (line := self.response.readline()).startswith(b"data: "):
            assert line
        return json.loads(line[6:])

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class TestLiveUpdates:
    def test_a_change_is_announced_only_to_its_account(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True) as server:
            server.make_account("ours", mia="member")
            server.make_account("theirs", mallory="owner")
            mine, theirs = server.make_token("mia", "ours"), server.make_token("mallory", "theirs")
            here = LiveConnection(server, Authorization=f"Bearer {mine}")
            there = LiveConnection(server, Authorization=f"Bearer {theirs}")
            until(lambda: server.services.live.listening == 2)
            assert server.send(sample_frames("changed"), token=mine).status == 200
            assert here.next_update() == ["changed"]
            assert server.send(sample_frames("foreign"), token=theirs).status == 200
            assert there.next_update() == ["foreign"]
            here.close()
            there.close()

    def test_a_closed_page_is_forgotten(self, server: HostedServer) -> None:
        pages = [LiveConnection(server) for _ in range(5)]
        until(lambda: server.services.live.listening == 5)
        for page in pages:
            page.close()
        # A disconnect is noticed at the next update.
        assert server.send(sample_frames("c")).status == 200
        until(lambda: server.services.live.listening == 0)

    def test_a_listening_page_does_not_block_a_thread(self, server: HostedServer) -> None:
        pages = [LiveConnection(server) for _ in range(60)]
        assert server.send(sample_frames("c")).status == 200
        assert pages[-1].next_update() == ["c"]
        for page in pages:
            page.close()

    def test_the_number_of_listening_pages_is_limited(
        self, on_sqlite: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("daskscope.server.live.MAX_PER_ACCOUNT", 1)
        page = LiveConnection(on_sqlite)
        until(lambda: on_sqlite.services.live.listening == 1)
        answer = on_sqlite.ask("GET", "/api/v1/live")
        assert (answer.status, answer.code) == (503, "unavailable")
        page.close()

    def test_updates_for_a_page_that_does_not_read_are_limited(self, on_sqlite: HostedServer) -> None:
        page = LiveConnection(on_sqlite)
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
            tx = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusted, timeout=60)
            body = json.dumps({"user": "olga", "password": "correct horse battery"})
            tx.request("POST", "/api/v1/session", body, {"Origin": server.url})
            response = tx.getresponse()
            assert response.status == 200
            assert "; Secure" in response.headers["Set-Cookie"]
            tx.close()

    def test_missing_or_invalid_certificate_files_are_reported(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no certificate")
        for file in ("missing", "file"):
            path = str(tmp_path / file)
            with pytest.raises(SettingsError, match="--tls-cert and --tls-key cannot be used"):
                HostedServer(tmp_path / "data", tls_cert=path, tls_key=path).__enter__()


class TestProxy:
    @pytest.fixture
    def proxied(self, tmp_path: Path) -> Iterator[HostedServer]:
        """The server under /dask of nginx, configured as in docs/operations/deploy.md."""
        if not NGINX.exists():
            pytest.skip(f"SKIPPED LOUDLY: {NGINX} is missing; install it with: apt-get install nginx-light")
        page = (Path(__file__).parents[2] / "docs" / "operations" / "deploy.md").read_text()
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

    def test_links_cookies_and_uploads_work(self, proxied: HostedServer) -> None:
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

    def test_live_updates_are_not_buffered(self, proxied: HostedServer) -> None:
        token = proxied.make_token("olga", "ours")
        page = LiveConnection(proxied, "/dask/api/v1/live", Authorization=f"Bearer {token}")
        body, headers = sample_frames("changed"), {"Content-Type": FRAMES}
        assert proxied.ask("POST", "/dask/api/v1/ingest", body, token=token, headers=headers).status == 200
        assert page.next_update() == ["changed"]
        page.close()

    def test_a_forged_address_does_not_evade_the_sign_in_limit(self, proxied: HostedServer) -> None:
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


class TestShutdown:
    def start(self, directory: Path) -> tuple[subprocess.Popen[str], int, str]:
        command = [*DASKSCOPE, "serve", "--port", "0", "--data", str(directory)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        url, secret = split_secret(process.stdout.readline().strip())
        port = int(url.rpartition(":")[2])
        # It accepts connections already, and responds once it is up.
        tx = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        tx.request("GET", "/healthz")
        assert tx.getresponse().status == 200
        tx.close()
        return process, port, secret

    def test_a_terminated_server_stops_soon_and_keeps_acknowledged_batches(self, tmp_path: Path) -> None:
        process, port, secret = self.start(tmp_path / "data")
        credentials = {"Authorization": f"Bearer {secret}"}
        waiting = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        waiting.request("GET", "/api/v1/live", headers=credentials)
        assert waiting.getresponse().status == 200
        acknowledged: list[str] = []
        enough = threading.Event()

        def send() -> None:
            tx = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            for number in range(10_000):
                try:
                    tx.request("POST", "/api/v1/ingest", sample_frames(f"c{number}"), credentials)
                    response = tx.getresponse()
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

    def test_it_prints_its_url_and_how_to_use_it(self, tmp_path: Path) -> None:
        process, port, secret = self.start(tmp_path / "data")
        url = f"http://127.0.0.1:{port}/?secret={secret}"
        assert process.stdout is not None
        hint = f"Record a cluster here: set DASK_DASKSCOPE__SERVER='{url}', then call daskscope.analytics.register().\n"
        assert process.stdout.readline() == hint
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, "")
        assert [line for line in err.splitlines() if " INFO " not in line] == []

    @pytest.mark.parametrize(("keep", "junk"), [(0, b"not a database, but a text of some length" * 100), (12_000, b"")])
    def test_a_damaged_catalog_is_named_with_the_way_back(self, tmp_path: Path, keep: int, junk: bytes) -> None:
        with HostedServer(tmp_path / "data"):
            pass
        catalog = tmp_path / "data" / "catalog.db"
        catalog.write_bytes(catalog.read_bytes()[:keep] + junk)
        arguments = ["serve", "--data", str(tmp_path / "data"), "--port", "0"]
        done = subprocess.run([*DASKSCOPE, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert f"The catalog {catalog} is damaged" in done.stderr
        assert f"cp BACKUP/catalog.db {catalog}" in done.stderr

    def test_a_data_directory_that_is_a_link_in_a_shared_directory_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o1777)
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "shared" / "data").symlink_to(tmp_path / "elsewhere")
        command = [*DASKSCOPE, "serve", "--port", "0", "--data", str(tmp_path / "shared" / "data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "is a link, in a directory that everybody can write to. Choose another one with --data" in done.stderr
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_port_in_use_is_reported(self, on_sqlite: HostedServer, tmp_path: Path) -> None:
        command = [*DASKSCOPE, "serve", "--port", str(on_sqlite.port), "--data", str(tmp_path / "other")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ}, check=False)
        assert done.returncode == 2
        assert "Choose another with --port" in done.stderr
