"""Segments as bodies for a server: whole frames, each until it is delivered, and no file twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskscope.collector.outbox import Sealed
from daskscope.collector.segments import Segments, segments_of, spooled_bodies
from daskscope.collector.spool import Spool
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal


def frame(sequence: int, size: int = 0) -> Sealed:
    body = encode_body("events", make_columns("events", [{"detail": os.urandom(size // 2).hex()}]))
    data = seal(body, cluster="c", epoch=1, sequence=sequence, kept=sequence + 1, dropped=0)
    return Sealed(sequence, "events", 1, data)


def written(directory: Path, count: int) -> tuple[list[Path], list[bytes]]:
    """Segments of a frame each, and the frames."""
    spool, frames = Spool(directory, "c-1", 1_000_000, segment=1), [frame(number) for number in range(count)]
    spool.append(frames)
    spool.close()
    return spool.segments(), [sealed.frame for sealed in frames]


def oldest(directory: Path, segments: Segments) -> Path | None:
    return next((path for path in segments_of(directory, "c-1") if path not in segments.stuck), None)


def test_bodies_of_a_segment_are_whole_frames_below_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.collector.segments.BODY_LIMIT", 3000)
    spool, frames = Spool(tmp_path, "c-1", 1_000_000), [frame(number, 800) for number in range(10)]
    spool.append([*frames, frame(10, 8000)])
    spool.close()
    (path,) = spool.segments()
    bodies = spooled_bodies(path)
    assert b"".join(bodies).startswith(b"".join(sealed.frame for sealed in frames))
    assert [len(body) > 3000 for body in bodies] == [False] * (len(bodies) - 1) + [True]
    path.write_bytes(path.read_bytes()[:-1])
    assert b"".join(spooled_bodies(path)) == b"".join(sealed.frame for sealed in frames)
    path.write_bytes(os.urandom(500))
    assert spooled_bodies(path) == []
    path.unlink()
    assert spooled_bodies(path) == []


def test_a_body_is_given_until_it_is_delivered_and_a_file_removed_with_its_last(tmp_path: Path) -> None:
    paths, frames = written(tmp_path, 2)
    paths[0].write_bytes(paths[0].read_bytes() + frames[1])
    segments = Segments(lambda: oldest(tmp_path, segments))
    assert (segments.body(), segments.body()) == (frames[0] + frames[1],) * 2
    assert paths[0].exists()
    segments.delivered()
    assert not paths[0].exists()
    assert segments.body() == frames[1]
    segments.delivered()
    assert segments.body() is None
    assert list(tmp_path.iterdir()) == []


def test_a_segment_that_is_skipped_stays(tmp_path: Path) -> None:
    paths, frames = written(tmp_path, 2)
    left = iter(paths)
    segments = Segments(lambda: next(left, None))
    assert segments.body() == frames[0]
    segments.skip()
    assert segments.body() == frames[1]
    segments.delivered()
    assert (segments.body(), paths[0].exists(), paths[1].exists()) == (None, True, False)


@pytest.mark.parametrize("content", [None, b""], ids=["delivered", "not a segment"])
def test_a_file_that_cannot_be_removed_is_not_sent_for_ever(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, frames = written(tmp_path, 2)
    if content is not None:
        paths[0].write_bytes(content)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "unlink", refuse)
    segments = Segments(lambda: oldest(tmp_path, segments))
    sent = []
    while (body := segments.body()) is not None:
        sent.append(body)
        segments.delivered()
    assert sent == (frames if content is None else frames[1:])
