"""Segments on disk are readable recordings within a limit, and a full disk costs only data."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.sealed import frame

from daskscope import open_recording
from daskscope.analysis.summary import statement
from daskscope.collector.delivery.leftovers import LOCK, SUFFIX
from daskscope.collector.delivery.outbox import Sealed
from daskscope.collector.delivery.spool import Spool
from daskscope.model.recording import Completeness
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal


def topics(directory: Path) -> list[str]:
    return list(open_recording(directory)["events"]["topic"])


def total(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def test_segments_are_recordings(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new" / "folder", "c-1", 1_000_000, segment=300)
    for number in range(10):
        spool.put(frame(number))
    spool.close()
    segments = spool.segments()
    assert len(segments) > 2
    assert topics(tmp_path / "new" / "folder") == [f"t{number}" for number in range(10)]
    assert all(open_recording(path).damage == "" for path in segments)
    assert {path.stat().st_mode & 0o777 for path in segments} == {0o600}


def test_a_segment_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c-1", 1_000_000)
    spool.put(frame(0))
    assert topics(tmp_path) == ["t0"]
    spool.close()


def test_the_limit_is_kept_by_deleting_the_oldest_segments(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c-1", 20_000)
    for number in range(200):
        spool.put(frame(number, 1000))
        assert total(tmp_path) <= 20_000 + 2_000
    spool.close()
    kept = topics(tmp_path)
    # The first frame stays, so that a reader knows how much is missing between it and the others.
    assert kept == ["t0", *(f"t{number}" for number in range(201 - len(kept), 200))]
    assert open_recording(tmp_path).completeness == {"events": Completeness(len(kept), 0, 200 - len(kept))}
    assert len(kept) < 100


def test_a_table_lost_with_the_oldest_segments_still_counts_as_missing(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c-1", 20_000)
    spool.put(frame(0, 1000))
    logs = encode_body("logs", make_columns("logs", [{"message": "only this once"}]))
    spool.put(Sealed(1, "logs", 1, seal(logs, cluster="c", epoch=1, sequence=1, kept=1, dropped=0)))
    for number in range(2, 100):
        spool.put(frame(number, 1000))
    spool.close()
    recording = open_recording(tmp_path)
    assert (recording["logs"].rows, "logs" in recording.completeness) == (0, False)
    assert recording.missing_batches == 100 - recording["events"].rows
    told = statement(recording)
    assert told.endswith(f"{recording.missing_batches} batches not in the file, possibly with rows of other tables.")


def test_a_first_segment_deleted_by_the_sender_does_no_harm(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c-1", 20_000)
    for number in range(100):
        assert spool.append([frame(number, 1000)])
        (tmp_path / f"c-1-00000{SUFFIX}").unlink(missing_ok=True)
    spool.close()
    assert topics(tmp_path)[-1] == "t99"
    assert total(tmp_path) <= 20_000 + 2_000


def test_a_frame_larger_than_the_limit_is_written_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c-1", 100)
    for number in range(3):
        assert spool.append([frame(number, 5000)])
    spool.close()
    assert topics(tmp_path) == ["t2"]


def test_segments_of_other_recorders_count_in_a_shared_directory(tmp_path: Path) -> None:
    for number in range(5):
        old = tmp_path / f"gone-{number}-00000{SUFFIX}"
        old.write_bytes(bytes(8_000))
        os.utime(old, (1_000 + number, 1_000 + number))
    (tmp_path / "notes.txt").write_bytes(bytes(50_000))
    spool = Spool(tmp_path, "c-1", 20_000, destination="http://server")
    spool.put(frame(0))
    spool.release()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"c-1-00000{SUFFIX}", f"c-1{LOCK}", f"gone-4-00000{SUFFIX}", "notes.txt"]


def test_segments_of_other_recorders_are_left_alone_in_a_directory_of_recordings(tmp_path: Path) -> None:
    (tmp_path / f"mine-00000{SUFFIX}").write_bytes(bytes(50_000))
    spool = Spool(tmp_path, "c-1", 20_000)
    spool.put(frame(0))
    spool.close()
    assert (tmp_path / f"mine-00000{SUFFIX}").exists()


def test_an_existing_segment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"c-1-00000{SUFFIX}").write_bytes(b"precious")
    spool = Spool(tmp_path, "c-1", 20_000)
    assert spool.append([frame(0)]) is False
    assert spool.append([frame(1)]) is True
    spool.close()
    assert (tmp_path / f"c-1-00000{SUFFIX}").read_bytes() == b"precious"


class FullDisk:
    """A file on a disk that is full after some bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self.file = file
        self.room = room

    def write(self, data: bytes) -> int:
        taken = data[: max(self.room, 0)]
        self.room -= len(data)
        self.file.write(taken)
        self.file.flush()
        if len(taken) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_a_full_disk_costs_data_and_one_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spool, real = Spool(tmp_path, "c-1", 1_000_000), os.fdopen
    first, second = frame(0), frame(1)
    room = 1000 + len(first.frame)
    monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: FullDisk(real(descriptor, mode), room))
    assert spool.append([first])
    for number in range(1, 50):
        spool.append([frame(number, 4000)])
    monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: FullDisk(real(descriptor, mode), 5))
    for number in range(50, 60):
        assert spool.append([frame(number)]) is False
    assert len(caplog.records) == 1
    assert "No space left" in spool.error
    # No partly written frame, and no empty segment.
    assert all(open_recording(path).damage == "" for path in tmp_path.iterdir())
    assert topics(tmp_path) == ["t0"]
    monkeypatch.setattr(os, "fdopen", real)
    assert spool.append([second])
    spool.close()
    assert topics(tmp_path) == ["t0", "t1"]


@pytest.mark.parametrize("problem", ["file in the way", "read-only"])
def test_a_directory_that_cannot_be_written(tmp_path: Path, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    if problem == "file in the way":
        (tmp_path / "spool").write_text("")
        directory = tmp_path / "spool" / "below"
    else:
        directory = Path("/proc/daskscope")
    spool = Spool(directory, "c-1", 1000)
    for number in range(5):
        assert spool.append([frame(number)]) is False
    assert spool.segments() == []
    spool.close()
    assert len(caplog.records) == 1


SCRIPT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
from daskscope.collector.delivery.spool import Spool
from tests.helpers.sealed import frame
spool = Spool(sys.argv[1], "c-1", 1_000_000)
print([spool.append([frame(n, 800)]) for n in range(12)].count(False))
spool.close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no file size limit on this system")
def test_a_real_limit_of_the_operating_system(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    # -B, because the limit would also truncate the bytecode that Python caches.
    command = [sys.executable, "-B", "-c", SCRIPT, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=60, check=True)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 3000
    refused = int(ran.stdout)
    assert refused > 0
    assert len(topics(tmp_path)) == 12 - refused
    assert open_recording(tmp_path).damage == ""


def test_the_segments_of_others_are_not_listed_for_each_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, "c-1", 1_000_000, segment=1, destination="http://server")
    spool.put(frame(0))

    def fail(*_: object) -> None:
        raise AssertionError("listed")

    monkeypatch.setattr("daskscope.collector.delivery.spool.find_files", fail)
    for number in range(1, 5):
        spool.put(frame(number))
    assert [path.name[-15:-10] for path in spool.segments()] == [f"{number:05d}" for number in range(5)]
    spool.segments()[0].unlink()
    assert len(spool.segments()) == 4
