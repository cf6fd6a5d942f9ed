"""Segments that ended recorders left in a spool are sent; segments of others are not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.ingest_server import Server, error_of
from tests.helpers.waiting import until

from daskscope.collector.delivery import leftovers as module
from daskscope.collector.delivery.leftovers import LOCK, REFUSED, SUFFIX, find_leftovers, leftovers
from daskscope.collector.delivery.outbox import FrameQueue, Sealed
from daskscope.collector.delivery.poster import ServerReply, poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal

HERE = "http://server"


def frame(cluster: str, sequence: int) -> Sealed:
    body = encode_body("events", make_columns("events", [{"topic": "t"}]))
    data = seal(body, cluster=cluster, epoch=1, sequence=sequence, kept=sequence + 1, dropped=0)
    return Sealed(sequence, "events", 1, data)


def spool(directory: Path, name: str, frames: int = 0, destination: str = HERE) -> Spool:
    """Return the spool of a running recorder, with a frame in each segment."""
    made = Spool(directory, name, 10**9, segment=1, destination=destination)
    made.append(frame(name, number) for number in range(frames))
    return made


def left(directory: Path, name: str, frames: int = 2, destination: str = HERE) -> None:
    """Write segments that a recorder could not deliver."""
    spool(directory, name, frames, destination).release()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def files(name: str, frames: int = 2) -> list[str]:
    return [*(f"{name}-{number:05d}{SUFFIX}" for number in range(frames)), f"{name}{LOCK}"]


def found(directory: Path, destination: str = HERE) -> list[str]:
    return [path.name for path in leftovers(directory, destination)]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


class Bench:
    """A recorder with a frame to send."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.queue = FrameQueue(10**9)
        self.sender = Sender(
            poster(server.url, "token"), self.queue, spool(directory, "new", destination=HERE), first_delay=0.01
        )
        self.queue.put(frame("new", 0))


@pytest.fixture
def bench(server: Server, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(server, tmp_path)
    yield made
    made.sender.stop(5.0)


def test_leftovers_are_sent_after_own_frames_oldest_first_and_removed(
    server: Server, bench: Bench, tmp_path: Path
) -> None:
    # The names and the times have different orders.
    for number, name in enumerate(("old-b", "old-c", "old-a")):
        left(tmp_path, name)
        os.utime(tmp_path / f"{name}{LOCK}", (1_000 + number, 1_000 + number))
    bench.sender.start()
    until(lambda: names(tmp_path) == [])
    assert server.frames == [("new", 0), *((name, n) for name in ("old-b", "old-c", "old-a") for n in range(2))]


def test_a_segment_stays_until_the_server_has_it(server: Server, bench: Bench, tmp_path: Path) -> None:
    left(tmp_path, "old")
    server.answers = [(200, {}, b""), (500, {}, b""), (0, {}, b""), (200, {}, b"")]
    bench.sender.start()
    until(lambda: names(tmp_path) == [])
    assert server.frames == [("new", 0), ("old", 0), ("old", 1)]
    assert len(server.posts) == 5


def test_the_segments_of_a_running_recorder_are_left_alone(server: Server, bench: Bench, tmp_path: Path) -> None:
    alive = spool(tmp_path, "alive", 3)
    os.utime(tmp_path / f"alive{LOCK}", (1_000, 1_000))
    left(tmp_path, "old")
    bench.sender.start()
    until(lambda: ("old", 1) in server.frames)
    until(lambda: not (tmp_path / f"old{LOCK}").exists())
    assert server.frames == [("new", 0), ("old", 0), ("old", 1)]
    assert names(tmp_path) == files("alive", 3)
    assert alive.append([frame("alive", 3)])
    alive.release()
    assert found(tmp_path) == files("alive", 4)[:-1]


def test_a_refused_leftover_does_not_stop_the_sender(server: Server, bench: Bench, tmp_path: Path) -> None:
    left(tmp_path, "bad", 1)
    os.utime(tmp_path / f"bad{LOCK}", (1_000, 1_000))
    left(tmp_path, "good", 1)
    server.answers = [(200, {}, b""), (422, {}, error_of("newer_format"))]
    bench.sender.start()
    until(lambda: ("good", 0) in server.frames)
    bench.queue.put(frame("new", 1))
    until(lambda: ("new", 1) in server.frames)
    assert bench.sender.refusal == ""
    until(lambda: names(tmp_path) == [*files("bad", 1), f"bad{REFUSED}"])
    [waiting] = find_leftovers(tmp_path, HERE)
    assert (waiting.refusal, waiting.nbytes > 100) == ("422 A sentence.", True)


def test_what_another_cluster_left_is_sent_with_its_own_token(server: Server, bench: Bench, tmp_path: Path) -> None:
    left(tmp_path, "other-1", 2)
    sent: list[bytes] = []

    def post(body: bytes) -> ServerReply:
        sent.append(body)
        return ServerReply(200)

    bench.sender.posts["other"] = post
    bench.sender.start()
    until(lambda: names(tmp_path) == [])
    assert (len(sent), server.frames) == (2, [("new", 0)])


def test_a_recorder_looks_again_for_what_others_left_since(
    server: Server, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope.collector.delivery.sender.LEFTOVERS_S", 0.0)
    bench.sender.start()
    until(lambda: ("new", 0) in server.frames)
    left(tmp_path, "later-1", 1)
    until(lambda: ("later-1", 0) in server.frames)


def test_a_directory_is_listed_once_for_the_leftovers_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        left(tmp_path, f"c{number}-1", 1)
    listed: list[str] = []
    original = module.find_files

    def find_files(directory: Path, pattern: str) -> list[Path]:
        listed.append(pattern)
        return original(directory, pattern)

    monkeypatch.setattr(module, "find_files", find_files)
    assert len(found(tmp_path)) == 20
    assert listed == [f"*{SUFFIX}", f"*{LOCK}"]


def test_a_server_that_refuses_the_recorder_gets_no_leftovers(server: Server, bench: Bench, tmp_path: Path) -> None:
    left(tmp_path, "old")
    server.default = (401, {}, error_of("unauthorized"))
    bench.sender.start()
    until(lambda: bench.sender.refusal)
    bench.sender.stop(5.0)
    assert len(server.posts) == 1
    assert names(tmp_path) == [*files("new", 1), *files("old")]


def test_a_sender_that_stops_releases_the_leftovers_it_adopted(server: Server, bench: Bench, tmp_path: Path) -> None:
    left(tmp_path, "old")
    server.answers = [(200, {}, b""), (503, {"Retry-After": "300"}, b"")]
    bench.sender.start()
    until(lambda: bench.sender.is_server_down)
    assert found(tmp_path) == []
    bench.sender.stop(5.0)
    assert found(tmp_path) == files("old")[:-1]


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.unit.test_leftovers import spool
kept = spool(Path(sys.argv[1]), "killed", 2)
print("written", flush=True)
signal.pause()
"""


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="no such signals on this system")
def test_a_recorder_that_is_killed_leaves_its_segments_to_others(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path], cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        assert found(tmp_path) == []
        process.kill()
        process.wait(30)
    assert found(tmp_path) == files("killed")[:-1]


def test_segments_for_another_server_are_not_sent(tmp_path: Path) -> None:
    left(tmp_path, "old", destination="http://user:secret@elsewhere")
    assert found(tmp_path) == []
    assert b"secret" not in (tmp_path / f"old{LOCK}").read_bytes()
    assert names(tmp_path) == files("old")
    assert found(tmp_path, "http://user:secret@elsewhere") == files("old")[:-1]


def test_unclaimed_or_unreadable_segments_are_not_sent(tmp_path: Path) -> None:
    left(tmp_path, "old", 3)
    (tmp_path / f"old-00001{SUFFIX}").write_bytes(b"of a newer version")
    (tmp_path / f"old-00002{SUFFIX}").unlink()
    (tmp_path / f"old-00002{SUFFIX}").symlink_to(tmp_path / f"old-00000{SUFFIX}")
    Spool(tmp_path, "unclaimed", 10**9).append([frame("unclaimed", 0)])
    # A recorder is just starting, and will write into the file once it holds the lock.
    (tmp_path / f"coming{LOCK}").write_bytes(b"")
    before = names(tmp_path)
    assert found(tmp_path) == [f"old-00000{SUFFIX}"]
    assert names(tmp_path) == before


def test_files_of_another_user_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path, "old")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert found(tmp_path) == []


def test_a_lock_without_segments_is_tidied_up(tmp_path: Path) -> None:
    left(tmp_path, "old")
    for path in tmp_path.glob(f"*{SUFFIX}"):
        path.unlink()
    assert found(tmp_path) == []
    assert names(tmp_path) == []


def test_the_number_of_adopted_recorders_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ADOPTED", 2)
    for name in "abc":
        left(tmp_path, name, 1)
    assert len(found(tmp_path)) == 2


def test_without_locks_nothing_is_claimed_or_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path, "old")
    monkeypatch.setattr(module, "fcntl", None)
    left(tmp_path, "new")
    assert names(tmp_path) == [*files("new")[:-1], *files("old")]
    assert found(tmp_path) == []


def test_frames_are_written_even_if_the_lock_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / f"new{LOCK}").mkdir()
    left(tmp_path, "new")
    assert names(tmp_path) == files("new")
