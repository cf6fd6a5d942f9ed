"""Segments become bodies of whole frames; each is returned until it is delivered, and no file is sent twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskscope.collector.delivery.outbox import Sealed
from daskscope.collector.delivery.poster import BodyLimits
from daskscope.collector.delivery.spool import Segments, Spool, read_bodies
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal

LIMITS = BodyLimits()


def frame(sequence: int, size: int = 0) -> Sealed:
    body = encode_body("events", make_columns("events", [{"detail": os.urandom(size // 2).hex()}]))
    data = seal(body, cluster="c", epoch=1, sequence=sequence, kept=sequence + 1, dropped=0)
    return Sealed(sequence, "events", 1, data)


def written(directory: Path, count: int) -> tuple[list[Path], list[bytes]]:
    """Return segments of one frame each, and the frames."""
    spool, frames = Spool(directory, "c-1", 1_000_000, segment=1), [frame(number) for number in range(count)]
    spool.append(frames)
    spool.close()
    return spool.segments(), [sealed.frame for sealed in frames]


def read(path: Path, limits: BodyLimits = LIMITS) -> list[bytes]:
    return [b"".join(sealed.frame for sealed in body) for body in read_bodies(path, limits)]


def next_body(segments: Segments) -> bytes | None:
    body = segments.next_body(LIMITS)
    return None if body is None else b"".join(sealed.frame for sealed in body)


def oldest(directory: Path, segments: Segments) -> Path | None:
    return next((path for path in sorted(directory.glob("c-1-*.daskscope")) if path not in segments.stuck), None)


def test_bodies_of_a_segment_are_whole_frames_below_the_limit(tmp_path: Path) -> None:
    limits = BodyLimits(nbytes=3000)
    spool, frames = Spool(tmp_path, "c-1", 1_000_000), [frame(number, 800) for number in range(10)]
    spool.append([*frames, frame(10, 8000)])
    spool.close()
    (path,) = spool.segments()
    bodies = read(path, limits)
    assert b"".join(bodies).startswith(b"".join(sealed.frame for sealed in frames))
    assert [len(body) > 3000 for body in bodies] == [False] * (len(bodies) - 1) + [True]
    path.write_bytes(path.read_bytes()[:-1])
    assert b"".join(read(path)) == b"".join(sealed.frame for sealed in frames)
    path.write_bytes(os.urandom(500))
    assert read(path) == []
    path.unlink()
    assert read(path) == []


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [(BodyLimits(frames=4), [4, 4, 2]), (BodyLimits(rows=3), [3, 3, 3, 1]), (BodyLimits(), [10])],
    ids=["frames", "rows", "default"],
)
def test_bodies_are_below_every_limit(tmp_path: Path, limits: BodyLimits, sizes: list[int]) -> None:
    spool = Spool(tmp_path, "c-1", 1_000_000)
    spool.append([frame(number) for number in range(10)])
    spool.close()
    bodies = read_bodies(spool.segments()[0], limits)
    assert [len(body) for body in bodies] == sizes
    assert [sealed.sequence for body in bodies for sealed in body] == list(range(10))


def test_a_body_that_is_split_is_returned_in_halves(tmp_path: Path) -> None:
    spool, frames = Spool(tmp_path, "c-1", 1_000_000), [frame(number) for number in range(3)]
    spool.append(frames)
    spool.close()
    segments = Segments(lambda: oldest(tmp_path, segments))
    assert next_body(segments) == b"".join(sealed.frame for sealed in frames)
    segments.split()
    assert next_body(segments) == frames[0].frame
    segments.mark_delivered()
    assert next_body(segments) == frames[1].frame + frames[2].frame
    segments.mark_delivered()
    assert (next_body(segments), list(tmp_path.iterdir())) == (None, [])


def test_a_body_is_returned_until_it_is_delivered_and_a_file_removed_after_its_last(tmp_path: Path) -> None:
    paths, frames = written(tmp_path, 2)
    paths[0].write_bytes(paths[0].read_bytes() + frames[1])
    segments = Segments(lambda: oldest(tmp_path, segments))
    assert (next_body(segments), next_body(segments)) == (frames[0] + frames[1],) * 2
    assert paths[0].exists()
    segments.mark_delivered()
    assert not paths[0].exists()
    assert next_body(segments) == frames[1]
    segments.mark_delivered()
    assert next_body(segments) is None
    assert list(tmp_path.iterdir()) == []


def test_a_segment_that_is_skipped_stays(tmp_path: Path) -> None:
    paths, frames = written(tmp_path, 2)
    left = iter(paths)
    segments = Segments(lambda: next(left, None))
    assert next_body(segments) == frames[0]
    segments.skip()
    assert next_body(segments) == frames[1]
    segments.mark_delivered()
    assert (next_body(segments), paths[0].exists(), paths[1].exists()) == (None, True, False)


@pytest.mark.parametrize("content", [None, b""], ids=["delivered", "not a segment"])
def test_a_file_that_cannot_be_removed_is_not_sent_again(
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
    while (body := next_body(segments)) is not None:
        sent.append(body)
        segments.mark_delivered()
    assert sent == (frames if content is None else frames[1:])
