"""Hosted reports: uploaded in Python or by command, shared, changed and expired, with errors for failed uploads."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, LocalCluster
from tests.helpers.dissect import body_of, frame_of
from tests.helpers.hosted import HostedServer, MovingClock
from tests.helpers.samples import sample_recording
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

import daskscope
from daskscope.cli.main import main
from daskscope.client.server import find_server, upload_report
from daskscope.errors import ServerError
from daskscope.report.document import report_page
from daskscope.testing import make_frames
from daskscope.wire.layout import FILE_MAGIC, MAX_ROWS

DATA = Path(__file__).parents[1] / "data"
Upload = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(
    hosted: Hosting, tmp_path: Path, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostedServer]:
    """A server with a team account; this process is one of its members."""
    with hosted(tmp_path / "data", login=True, clock=clock, max_report=2_000_000) as server:
        server.make_account("ours", mia="member", olga="owner", max="member", vera="viewer")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        with dask.config.set({"daskscope.server": server.url}):
            yield server


@pytest.fixture
def upload(server: HostedServer) -> Upload:
    def upload(data: bytes = sample_recording(), user: str = "mia", **query: Any) -> dict[str, Any]:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = server.ask("POST", f"/api/v1/reports?{text}", data, token=server.make_token(user, "ours"))
        assert answer.status == 201, answer
        made: dict[str, Any] = answer.json()
        return made

    return upload


def status_of(server: HostedServer, url: str, **caller: Any) -> int:
    return server.ask("GET", url.removeprefix(server.url), **caller).status


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log messages of daskscope, without messages of Dask."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("daskscope")]


class TestPerformanceReport:
    def run(self, client: Client, path: Path, **options: Any) -> Any:
        with daskscope.performance_report(str(path), client=client, **options) as report:
            assert client.submit(sum, [1, 2], pure=False).result() == 3
        return report

    def test_a_report_is_uploaded_and_its_link_printed(
        self, server: HostedServer, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        report = self.run(client, tmp_path / "dask-report.html", tags={"team": "blue"})

        assert capsys.readouterr().out == (
            f"Performance Report Available at: {report.url}\nVisible to anyone with the link (account ours).\n"
        )
        assert re.fullmatch(rf"{server.url}/ours/reports/1/[\w-]{{22}}", report["url"])
        assert report.path == str(tmp_path / "dask-report.html")
        assert (tmp_path / "dask-report.html").stat().st_size > 50_000
        assert status_of(server, report.url) == 200

        listed = daskscope.list_performance_reports()
        assert [(item["private"], item["filename"], item["url"]) for item in listed] == [
            (False, "dask-report.html", report.url)
        ]
        assert (listed[0]["n_tasks"], listed[0]["user"], listed[0]["tags"]) == (1, "mia", ["team:blue"])

    def test_the_server_shows_the_calling_code_and_the_failure(
        self, server: HostedServer, client: Client, tmp_path: Path
    ) -> None:
        with (
            pytest.raises(ZeroDivisionError),
            daskscope.performance_report(str(tmp_path / "failed.html"), client=client) as report,
        ):
            client.submit(lambda: 1 / 0, pure=False).result()

        assert report.url is not None
        share = report.url.rpartition("/")[2]
        document = server.ask("GET", f"/api/v1/shared/{share}/document/report.json").json()
        assert "1 / 0" in document["calling_code"]
        assert "ZeroDivisionError" in document["failure"]

    def test_a_private_report_is_visible_to_members_only(
        self, server: HostedServer, client: Client, tmp_path: Path
    ) -> None:
        report = self.run(client, tmp_path / "private.html", private=True)
        assert report.url == f"{server.url}/ours/reports/1"
        # Its page is the web app, which contains no data of the report.
        data = "/api/v1/reports/1/document/report.json?account=ours"
        assert status_of(server, data) == 401
        assert status_of(server, data, session=server.make_session("vera")) == 200
        assert daskscope.list_performance_reports()[0]["private"] is True

    def test_the_default_visibility_is_the_accounts_preference(
        self, server: HostedServer, client: Client, tmp_path: Path
    ) -> None:
        owner = server.make_token("olga", "ours")
        assert server.ask("PATCH", "/api/v1/preferences", {"visibility": "private"}, token=owner).status == 200
        assert self.run(client, tmp_path / "report.html").url == f"{server.url}/ours/reports/1"

    def test_without_sign_in_the_account_is_ignored(self, hosted: Hosting, client: Client, tmp_path: Path) -> None:
        with hosted(tmp_path / "local") as local, dask.config.set({"daskscope.server": local.url}):
            report = self.run(client, tmp_path / "report.html", account="my-team-account")
            assert report.url.startswith(f"{local.url}/local/reports/1/")

    def test_a_report_above_the_limit_is_kept_locally_and_the_limit_is_named(
        self, server: HostedServer, client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        object.__setattr__(server.settings, "max_report", 1000)
        report = self.run(client, tmp_path / "large.html")
        assert report.url is None
        assert "larger than 1000 B" in report.problem
        assert "--max-report" in report.problem
        assert (tmp_path / "large.html").exists()
        assert len(messages(caplog)) == 1

    def test_an_unreachable_server_costs_one_log_line_and_keeps_the_file_and_the_exception(
        self, client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "report.html"
        with (
            dask.config.set({"daskscope.server": "http://127.0.0.1:1"}),
            pytest.raises(KeyError, match="mine"),
            daskscope.performance_report(str(path), client=client) as report,
        ):
            raise KeyError("mine")

        assert report.url is None
        assert path.exists()
        (line,) = messages(caplog)
        assert "Is it running?" in line
        assert f"daskscope reports upload {path}" in line

    def test_nothing_is_uploaded_with_upload_false(self, server: HostedServer, client: Client, tmp_path: Path) -> None:
        assert self.run(client, tmp_path / "report.html", upload=False).url is None
        assert daskscope.list_performance_reports() == []


class TestCommand:
    @pytest.fixture
    def run(self, server: HostedServer, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
        def run(*arguments: str) -> tuple[int, str, str]:
            code = main(["reports", *arguments])
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return run

    @pytest.mark.parametrize(
        ("name", "kind"), [("run.daskscope", "recording"), ("ours.html", "html"), ("dask.html", "html")]
    )
    def test_recordings_our_reports_and_dask_reports_can_be_uploaded(
        self, server: HostedServer, tmp_path: Path, run: Callable[..., tuple[int, str, str]], name: str, kind: str
    ) -> None:
        path = tmp_path / name
        if name == "ours.html":
            (tmp_path / "run.daskscope").write_bytes(sample_recording())
            path.write_bytes(report_page(daskscope.open_recording(tmp_path / "run.daskscope"), title="ours"))
        else:
            dasks = (DATA / "dask-reports" / "bokeh3.html").read_bytes()
            path.write_bytes(sample_recording() if kind == "recording" else dasks)
        code, out, err = run("upload", str(path), "--title", "What I did", "--tag", "a", "--tag", "b", "--days", "3")
        assert (code, err) == (0, "")
        url = out.splitlines()[0].removeprefix("Performance Report Available at: ")
        assert status_of(server, url) == 200
        (report,) = daskscope.list_performance_reports()
        assert (report["kind"], report["title"], report["tags"], report["url"]) == (kind, "What I did", ["a", "b"], url)
        assert report["expires"]

    def test_reports_are_listed_changed_and_deleted(
        self, server: HostedServer, upload: Upload, run: Callable[..., tuple[int, str, str]]
    ) -> None:
        assert "performance_report()" in run("list")[1]
        url = upload(title="first")["url"]
        assert "first" in run("list")[1]
        assert json.loads(run("list", "--json")[1])[0]["id"] == 1

        new = run("change", "1", "--new-link", "--title", "renamed")[1].strip()
        assert new != url
        assert (status_of(server, url), status_of(server, new)) == (404, 200)
        assert run("change", "1", "--visibility", "private")[1] == f"{server.url}/ours/reports/1\n"
        assert status_of(server, new) == 404
        assert run("delete", "1") == (0, "deleted 1\n", "")
        assert run("delete", "1")[0] == 1

    def test_a_file_that_is_not_a_report_is_refused(
        self, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
    ) -> None:
        for data in (b"", b"%PDF-1.4", FILE_MAGIC[:4], b"PK\x03\x04"):
            (tmp_path / "file").write_bytes(data)
            code, _, err = run("upload", str(tmp_path / "file"))
            assert code == 1
            assert "neither a recording nor an HTML report" in err
        assert "cannot be read" in run("upload", str(tmp_path / "missing"))[2]


class TestSharing:
    def test_an_expired_report_is_gone_for_all_users(
        self, server: HostedServer, upload: Upload, clock: MovingClock
    ) -> None:
        report = upload(days_to_expire=2)
        member, share = server.make_token("mia", "ours"), report["url"].rpartition("/")[2]
        places = (
            report["url"],
            "/api/v1/reports/1",
            f"/api/v1/shared/{share}/document/report.json",
            "/api/v1/reports/1/document/report.json",
        )
        assert [status_of(server, place, token=member) for place in places] == [200] * 4
        clock.move(days=2.1)
        assert [status_of(server, place, token=member) for place in places] == [404] * 4
        assert daskscope.list_performance_reports() == []

    def test_other_members_may_rename_and_tag_but_not_share_or_delete(
        self, server: HostedServer, upload: Upload
    ) -> None:
        upload(visibility="private")
        other = server.make_token("max", "ours")
        changed = server.ask("PATCH", "/api/v1/reports/1", {"title": "x", "tags": ["t", "u"]}, token=other).json()
        assert (changed["title"], changed["tags"]) == ("x", ["t", "u"])
        for change in ({"visibility": "public"}, {"new_link": True}, {"days_to_expire": 0}):
            assert server.ask("PATCH", "/api/v1/reports/1", change, token=other).code == "forbidden"
        assert server.ask("DELETE", "/api/v1/reports/1", token=other).code == "forbidden"
        assert server.ask("DELETE", "/api/v1/reports/1", token=server.make_token("olga", "ours")).status == 200

    def test_a_deleted_report_leaves_no_file(self, server: HostedServer, upload: Upload, tmp_path: Path) -> None:
        def files() -> list[Path]:
            return [path for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()]

        upload()
        upload(b"<!doctype html>")
        assert len(files()) == 2
        for number in (1, 2):
            assert (
                server.ask("DELETE", f"/api/v1/reports/{number}", token=server.make_token("mia", "ours")).status == 200
            )
        assert files() == []

    def test_a_report_is_encrypted_on_disk(self, server: HostedServer, upload: Upload, tmp_path: Path) -> None:
        upload(sample_recording("classified"))
        upload(b"<!doctype html>classified")
        stored = [path for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()]
        assert [path for path in stored if b"classified" in path.read_bytes()] == []

    @pytest.mark.each_database
    def test_lists_are_searched_and_paged(self, server: HostedServer, upload: Upload) -> None:
        for number in range(5):
            upload(b"<!doctype html>", title=f"report%20{number}", tags="odd" if number % 2 else "even,all")
        token = server.make_token("vera", "ours")

        def listed(query: str) -> dict[str, Any]:
            found: dict[str, Any] = server.ask("GET", f"/api/v1/reports?{query}", token=token).json()
            return {**found, "items": [item["id"] for item in found["items"]]}

        assert listed("tag=odd")["items"] == [4, 2]
        assert listed("search=Report%203")["items"] == [4]
        assert listed("user=nobody")["items"] == []
        first = listed("limit=3")
        assert first["items"] == [5, 4, 3]
        assert listed(f"limit=3&cursor={first['next']}") == {"items": [2, 1], "next": None}


class TestHostileUploads:
    def test_a_recording_too_large_when_unpacked_is_refused(self, server: HostedServer) -> None:
        rows = [{"time_us": 1, "topic": f"{number}{'x' * 1_000_000}"} for number in range(60)]
        frames = b"".join(make_frames({"events": rows}, cluster="c"))
        assert len(frames) < 500_000
        answer = server.ask("POST", "/api/v1/reports", FILE_MAGIC + frames, token=server.make_token("mia", "ours"))
        assert answer.code == "bad_request"
        assert "too large when unpacked" in answer.text

    def test_the_readable_part_of_a_damaged_recording_is_accepted(self, server: HostedServer, upload: Upload) -> None:
        assert upload(sample_recording()[:-30])["kind"] == "recording"
        assert upload(FILE_MAGIC + b"nonsense")["n_tasks"] == 0

    def test_names_and_titles_are_escaped(self, server: HostedServer, upload: Upload) -> None:
        nasty = "%22%3E%3Csvg%20onload=alert(1)%3E%0D%0ASet-Cookie:%20a=b"
        for data in (sample_recording(), b"<!doctype html>"):
            report = upload(data, title=nasty, filename=nasty)
            answer = server.ask("GET", report["url"].removeprefix(server.url))
            assert answer.headers["Set-Cookie"] is None
            assert "<svg onload" not in answer.text

    def test_the_upload_directory_is_left_empty(self, server: HostedServer, upload: Upload, tmp_path: Path) -> None:
        upload()
        with pytest.raises(ServerError, match="neither"):
            upload_report(find_server(), b"x", filename="x")
        assert list((tmp_path / "data").glob("upload-*")) == []


def test_a_small_upload_with_millions_of_rows_is_refused(server: HostedServer) -> None:
    def huge_frame(sequence: int) -> bytes:
        raw = (2).to_bytes(4, "little") + b"[]"
        header = {
            "table": "tasks", "schema": 1, "cluster": "c", "epoch": 1, "sequence": sequence, "rows": MAX_ROWS, "t0": 0, "t1": 0,
            "kept": MAX_ROWS * (sequence + 1), "dropped": 0, "raw": len(raw),
        }  # fmt: skip
        return frame_of(header, body_of(raw))

    data = FILE_MAGIC + b"".join(map(huge_frame, range(4)))
    answer = server.ask("POST", "/api/v1/reports", data, token=server.make_token("mia", "ours"))
    assert (len(data) < 1_000, answer.status) == (True, 400)
    assert "too large when unpacked" in answer.text


def test_an_upload_of_a_member_removed_meanwhile_is_refused(server: HostedServer) -> None:
    token, body = server.make_token("max", "ours"), b"<!doctype html><p>after I was removed"
    with socket.create_connection(("127.0.0.1", server.port)) as sender:
        head = f"POST /api/v1/reports HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {token}\r\n"
        sender.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        until(lambda: list((server.settings.directory).glob("upload-*/*")), "the start of the upload")
        owner = server.make_token("olga", "ours")
        assert server.ask("DELETE", "/api/v1/members/max", token=owner).status == 200
        sender.sendall(body[10:])
        assert sender.recv(4_000).startswith(b"HTTP/1.1 401")
    assert server.ask("GET", "/api/v1/reports", token=owner).json()["items"] == []
