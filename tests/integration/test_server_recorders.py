"""What a server records about its recorders: the user of their token, and the offset of their clocks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dask.config
import pytest
from tests.helpers.hosted import FRAMES, HostedServer, MovingClock
from tests.helpers.samples import sample_frames

from daskscope.cli.main import main
from daskscope.collector.delivery.poster import poster
from daskscope.units import DAY


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "data", login=True, clock=clock) as server:
        server.make_account("ours", mia="member", olga="owner")
        yield server


def recorder_of(server: HostedServer, token: str, cluster: str) -> str:
    answer = server.ask("POST", "/api/v1/ingest-tokens", token=token, body={"cluster": cluster})
    assert answer.status == 201
    return str(answer.json()["token"])


def test_a_revoked_token_stops_the_recorders_it_registered(
    server: HostedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laptop, other = server.make_token("mia", "ours"), server.make_token("mia", "ours")
    mine = [recorder_of(server, laptop, f"c{n}") for n in range(2)]
    theirs = recorder_of(server, other, "d")
    for cluster, token in (("c0", mine[0]), ("c1", mine[1]), ("d", theirs)):
        assert server.send(sample_frames(cluster), token=token).status == 200

    listed = {
        item["recorders"]: item["id"] for item in server.ask("GET", "/api/v1/tokens", token=other).json()["items"]
    }
    assert set(listed) == {1, 2}
    monkeypatch.setenv("DASKSCOPE_TOKEN", other)
    with dask.config.set({"daskscope.server": server.url}):
        assert main(["token", "list"]) == 0
        assert main(["token", "revoke", str(listed[2])]) == 0
    out = capsys.readouterr().out
    assert "recorders" in out
    assert out.endswith(f"revoked {listed[2]} and 2 tokens of recorders made from it\n")

    for cluster, token in zip(("c0", "c1"), mine, strict=True):
        assert server.send(sample_frames(cluster), token=token).status == 401
    assert server.send(sample_frames("d"), token=theirs).status == 200


def test_an_owner_who_removes_a_member_stops_their_recorders(server: HostedServer) -> None:
    recorder = recorder_of(server, server.make_token("mia", "ours"), "c")
    assert server.send(sample_frames("c"), token=recorder).status == 200
    owner = server.make_token("olga", "ours")
    assert server.ask("DELETE", "/api/v1/members/mia", token=owner).status == 200
    assert server.send(sample_frames("c"), token=recorder).status == 401


def use_daily(server: HostedServer, clock: MovingClock, token: str, days: int) -> int:
    """Send a batch every day, and return on which day the token was refused first."""
    post = poster(server.url, token)
    for day in range(days):
        if not post(sample_frames("c")).is_accepted:
            return day
        clock.move(days=1)
    return days


def test_a_token_is_renewed_while_its_recorder_lives(server: HostedServer, clock: MovingClock) -> None:
    recorder = recorder_of(server, server.make_token("mia", "ours"), "c")
    assert use_daily(server, clock, recorder, 400) == 400
    clock.move(days=91)
    assert use_daily(server, clock, recorder, 1) == 0


def test_a_recorder_outlives_the_expiry_of_the_token_it_was_created_with(
    server: HostedServer, clock: MovingClock
) -> None:
    parent = server.make_token("mia", "ours", expires_us=clock() + 10 * DAY)
    used, unused = (recorder_of(server, parent, cluster) for cluster in ("c", "d"))
    assert use_daily(server, clock, used, 200) == 200
    # A token that no recorder uses ends with it.
    assert server.send(sample_frames("d"), token=unused).status == 401
    # The parent itself has expired, and can still be revoked.
    assert server.ask("GET", "/api/v1/clusters", token=parent).status == 401
    session = server.make_session("mia")
    items = server.ask("GET", "/api/v1/tokens?include_inactive=true&account=ours", session=session).json()["items"]
    (number,) = [item["id"] for item in items if item["expired"]]
    assert server.ask("DELETE", f"/api/v1/tokens/{number}?account=ours", session=session).status == 200
    clock.move(seconds=60)
    assert use_daily(server, clock, used, 1) == 0


def test_a_recorder_ends_with_its_user_also_after_its_token_has_expired(
    server: HostedServer, clock: MovingClock
) -> None:
    parent = server.make_token("mia", "ours", expires_us=clock() + 10 * DAY)
    recorder = recorder_of(server, parent, "c")
    assert use_daily(server, clock, recorder, 30) == 30
    assert server.ask("DELETE", "/api/v1/members/mia", token=server.make_token("olga", "ours")).status == 200
    assert use_daily(server, clock, recorder, 1) == 0


def test_other_tokens_are_not_renewed(server: HostedServer, clock: MovingClock) -> None:
    token = server.make_token("mia", "ours", expires_us=clock() + 10 * DAY)
    assert use_daily(server, clock, token, 400) == 10


def offset_of(server: HostedServer, cluster: str, token: str) -> float:
    return float(server.ask("GET", f"/api/v1/clusters/{cluster}", token=token).json()["clock_offset"])


def test_a_clock_that_is_behind_is_measured_and_explained(server: HostedServer) -> None:
    token = server.make_token("mia", "ours")

    def send(cluster: str, sent: str | None) -> None:
        headers = {"Content-Type": FRAMES, **({"Daskscope-Sent-Us": sent} if sent is not None else {})}
        body = sample_frames(cluster)
        assert server.ask("POST", "/api/v1/ingest", token=token, body=body, headers=headers).status == 200

    send("behind", str(time.time_ns() // 1000 - 12_000_000))
    assert 12 <= offset_of(server, "behind", token) < 20
    said = server.ask("GET", "/api/v1/clusters/behind/explain", token=token).json()["evidence"]
    assert [line.split(" s ")[1] for line in said if line.startswith("the scheduler's clock is 1")] == [
        "behind the server's"
    ]

    # A missing or invalid time is ignored.
    for number, sent in enumerate((None, "", "soon", "-5", "9" * 30, "١٢")):
        send(f"c{number}", sent.encode().decode("latin-1") if sent is not None else None)
        assert offset_of(server, f"c{number}", token) == 0


def test_a_recorder_sends_its_time(server: HostedServer) -> None:
    token = server.make_token("mia", "ours")
    before = time.monotonic()
    assert poster(server.url, token)(sample_frames("c")).is_accepted
    assert 0 < offset_of(server, "c", token) <= time.monotonic() - before
