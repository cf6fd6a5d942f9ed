"""Recording files that are whole, cut off, damaged, repeated, in segments, or no recordings at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.dissect import dissect
from tests.helpers.samples import write_frames

from daskscope.analysis.summary import is_complete, statement
from daskscope.errors import NewerFormat, NotARecording, RecordingError
from daskscope.model.recording import Completeness, Recording
from daskscope.testing import make_columns, make_frames
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC


def logs(
    *messages: str, sequence: int, kept: int, dropped: int = 0, cluster: str = "c", epoch: int = 1, table: str = "logs"
) -> bytes:
    name = "message" if table == "logs" else "detail"
    body = encode_body(table, make_columns(table, [{name: message} for message in messages]))
    return seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=kept, dropped=dropped)


def read(path: Path, *frames: bytes) -> Recording:
    write_frames(path, frames)
    return read_recording(path)


def messages(recording: Recording) -> list[Any]:
    texts: list[Any] = recording["logs"]["message"].tolist()
    return texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.daskscope"


def test_a_file_reads_back_as_one_table_per_name(path: Path) -> None:
    recording = read(
        path,
        logs("a", "b", sequence=0, kept=2),
        logs("{}", sequence=1, kept=1, table="events"),
        logs("c", sequence=2, kept=3),
    )

    assert messages(recording) == ["a", "b", "c"]
    assert recording["events"]["detail"].tolist() == ["{}"]
    assert recording.completeness == {"logs": Completeness(3), "events": Completeness(1)}
    assert (recording.source, recording.damage, recording.damaged_bytes) == (str(path), "", 0)


def test_a_path_may_be_text(path: Path) -> None:
    read(path, logs("a", sequence=0, kept=1))

    assert messages(read_recording(str(path))) == ["a"]


def test_a_file_without_frames_is_an_empty_recording(path: Path) -> None:
    recording = read(path)

    assert (dict(recording.tables), dict(recording.completeness), recording.damage) == ({}, {}, "")


def test_a_file_cut_off_anywhere_opens_up_to_the_last_whole_batch(path: Path) -> None:
    frames = [logs("a", sequence=0, kept=1), logs("b", "c", sequence=1, kept=3), logs("d", sequence=2, kept=4)]
    ends = [len(FILE_MAGIC) + sum(map(len, frames[:n])) for n in range(4)]
    read(path, *frames)
    data = path.read_bytes()

    for size in range(len(FILE_MAGIC), len(data) + 1):
        path.write_bytes(data[:size])
        recording = read_recording(path)
        whole = sum(end <= size for end in ends) - 1
        expected = (["a", "b", "c", "d"][: (0, 1, 3, 4)[whole]], size - ends[whole])
        assert (messages(recording), recording.damaged_bytes) == expected
        assert recording.damage == ("the file is cut off" if size not in ends else "")


@pytest.mark.parametrize("size", range(len(FILE_MAGIC)))
def test_a_file_cut_off_in_its_first_bytes_is_not_a_recording(path: Path, size: int) -> None:
    path.write_bytes(FILE_MAGIC[:size])

    with pytest.raises(NotARecording, match=r"run\.daskscope is not a daskscope recording"):
        read_recording(path)


def test_garbage_after_the_last_batch_is_ignored_and_reported(path: Path) -> None:
    recording = read(path, logs("a", sequence=0, kept=1), b"garbage, more than a prefix of it")

    assert messages(recording) == ["a"]
    assert recording.damage == "the file is damaged (not a frame: it does not start with the frame marker)"
    assert recording.damaged_bytes == 33


def test_a_damaged_batch_ends_the_reading(path: Path) -> None:
    bad = bytearray(logs("b", sequence=1, kept=2))
    bad[-1] ^= 1
    recording = read(path, logs("a", sequence=0, kept=1), bytes(bad), logs("c", sequence=2, kept=3))

    assert messages(recording) == ["a"]
    assert recording.damage == "the file is damaged (a frame's checksum does not match: its bytes were damaged)"


def test_a_batch_that_cannot_be_decoded_is_skipped_and_counted(path: Path) -> None:
    parts = dissect(logs("b", sequence=1, kept=2))
    parts.directory = [["message", "wat"]]
    bad = parts.frame()
    recording = read(path, logs("a", sequence=0, kept=1), bad, logs("c", sequence=2, kept=3))

    assert messages(recording) == ["a", "c"]
    assert recording.completeness == {"logs": Completeness(rows=2, missing=1)}
    assert recording.damage.startswith("the file holds a batch that cannot be read (a column is encoded as 'wat'")
    assert recording.damaged_bytes == len(bad)
    # The batch counts as damaged, not as missing.
    assert recording.missing_batches == 0


def test_a_table_of_which_no_batch_can_be_decoded_is_empty(path: Path) -> None:
    parts = dissect(logs("a", sequence=0, kept=1))
    parts.directory = [["message", "wat"]]

    recording = read(path, parts.frame())
    assert (messages(recording), recording.damage != "") == ([], True)


def test_a_repeated_batch_is_read_once(path: Path) -> None:
    frame = logs("a", sequence=0, kept=1)
    recording = read(path, frame, logs("b", sequence=1, kept=2), frame)

    assert messages(recording) == ["a", "b"]
    assert recording.completeness == {"logs": Completeness(2)}


def test_lost_batches_are_counted_as_missing_rows(path: Path) -> None:
    recording = read(path, logs("a", sequence=0, kept=1), logs("z", sequence=5, kept=12, dropped=4))

    assert recording.completeness == {"logs": Completeness(rows=2, dropped=4, missing=10)}


def test_a_lost_first_batch_is_missing_when_the_recording_began_with_the_epoch(path: Path) -> None:
    recording = read(path, logs("{}", sequence=0, kept=1, table="events"), logs("b", sequence=2, kept=4, dropped=2))

    assert recording.completeness["logs"] == Completeness(rows=1, dropped=2, missing=3)


def test_rows_from_before_a_mid_epoch_recording_are_not_missing(path: Path) -> None:
    recording = read(path, logs("a", sequence=70, kept=1_000, dropped=5), logs("b", sequence=72, kept=1_003, dropped=6))

    assert recording.completeness == {"logs": Completeness(rows=2, dropped=1, missing=2)}


def test_missing_sequence_numbers_are_counted(path: Path) -> None:
    gap = read(path, logs("a", sequence=3, kept=1), logs("b", sequence=7, kept=2))
    whole = read(
        path, logs("a", sequence=3, kept=1), logs("b", sequence=4, kept=2), logs("c", sequence=9, kept=1, epoch=2)
    )

    assert (gap.missing_batches, whole.missing_batches) == (3, 0)
    # The missing batches had no rows of logs.
    assert gap.completeness == {"logs": Completeness(2)}
    assert (is_complete(gap), is_complete(whole)) == (False, True)
    assert statement(gap) == ("Incomplete, 2 rows read: 3 batches not in the file, possibly with rows of any table.")


def cluster(*dropped: str, sequence: int, kept: int, epoch: int = 1) -> bytes:
    body = encode_body("clusters", make_columns("clusters", [{"cluster": "c", "dropped": text} for text in dropped]))
    return seal(body, cluster="c", epoch=epoch, sequence=sequence, kept=kept, dropped=0)


def test_dropped_rows_that_only_clusters_reports_are_counted(path: Path) -> None:
    recording = read(
        path,
        cluster("", sequence=0, kept=1),
        logs("a", sequence=1, kept=1, dropped=2),
        cluster('{"logs": 5, "samples": 7}', sequence=2, kept=2),
    )

    assert recording.completeness == {
        "clusters": Completeness(2),
        "samples": Completeness(dropped=7),
        "logs": Completeness(1, dropped=5),
    }
    assert statement(recording) == (
        "Incomplete, 3 rows read: 7 of 7 rows of samples dropped inside the cluster; "
        "5 of 6 rows of logs dropped inside the cluster."
    )


def test_rows_dropped_before_a_recording_began_are_not_counted(path: Path) -> None:
    recording = read(
        path,
        cluster('{"logs": 5, "samples": 7}', sequence=70, kept=30),
        logs("a", sequence=71, kept=100, dropped=6),
        cluster('{"logs": 6, "samples": 9, "edges": 1}', sequence=72, kept=31),
    )

    dropped = {name: part.dropped for name, part in recording.completeness.items()}
    assert dropped == {"clusters": 0, "edges": 1, "samples": 2, "logs": 1}


def test_dropped_rows_add_up_over_epochs(path: Path) -> None:
    recording = read(
        path,
        cluster('{"logs": 5}', sequence=0, kept=1, epoch=1),
        cluster('{"logs": 3}', sequence=0, kept=1, epoch=2),
        logs("a", sequence=1, kept=1, dropped=4, epoch=2),
    )

    assert recording.completeness["logs"] == Completeness(1, dropped=9)


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 9_999, '{"logs": "many"}', '{"logs": -1}', '{"wat": 3}', '{"logs": 1e9}']
)
def test_invalid_counts_are_left_out(path: Path, text: str) -> None:
    assert read(path, cluster(text, sequence=0, kept=1)).completeness == {"clusters": Completeness(1)}


def test_batches_are_ordered_by_sequence_number(path: Path) -> None:
    recording = read(path, logs("b", sequence=1, kept=2), logs("a", sequence=0, kept=1))

    assert messages(recording) == ["a", "b"]


def test_epochs_and_clusters_are_merged(path: Path) -> None:
    recording = read(
        path,
        logs("b", sequence=0, kept=1, epoch=2),
        logs("a", sequence=0, kept=1, epoch=1),
        logs("c", sequence=0, kept=3, dropped=1, epoch=3, cluster="other"),
    )

    assert messages(recording) == ["a", "b", "c"]
    assert recording.completeness == {"logs": Completeness(rows=3, dropped=1, missing=2)}


def test_the_last_row_of_an_entity_counts(path: Path) -> None:
    rows = [{"server_id": "w1", "name": "old"}, {"server_id": "w2", "name": "b"}, {"server_id": "w1", "name": "new"}]
    recording = read(path, *make_frames({"workers": rows}))

    workers = recording["workers"]
    assert list(zip(workers["server_id"], workers["name"], strict=True)) == [("w1", "new"), ("w2", "b")]


def test_list_columns_are_joined_over_batches(path: Path) -> None:
    def spans(tags: list[list[str]], sequence: int, kept: int) -> bytes:
        rows = [{"span": f"{sequence}-{i}", "tags": t} for i, t in enumerate(tags)]
        return seal(
            encode_body("spans", make_columns("spans", rows)),
            cluster="c",
            epoch=1,
            sequence=sequence,
            kept=kept,
            dropped=0,
        )

    recording = read(path, spans([["a"], []], 0, 2), spans([[]], 1, 3), spans([["b", "a"]], 2, 4))
    assert recording["spans"]["tags"].tolist() == [["a"], [], [], ["b", "a"]]


def test_a_directory_of_segments_is_one_recording(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write_frames(tmp_path / "b.daskscope", [logs("b", sequence=1, kept=2)])
    write_frames(tmp_path / "deep" / "a.daskscope", [logs("a", sequence=0, kept=1)])
    (tmp_path / "notes.txt").write_text("not a segment")

    recording = read_recording(tmp_path)
    assert (messages(recording), recording.completeness) == (["a", "b"], {"logs": Completeness(2)})


def test_a_damaged_segment_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write_frames(tmp_path / "a.daskscope", [logs("a", sequence=0, kept=1)[:-5]])
    write_frames(tmp_path / "b.daskscope", [logs("b", sequence=1, kept=2)])

    recording = read_recording(tmp_path)
    assert (messages(recording), recording.damage) == (["b"], "a.daskscope is cut off")


def test_a_directory_without_segments_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(NotARecording, match=r"is a directory without \.daskscope files\. Name a recording file"):
        read_recording(tmp_path)


def test_a_missing_file_says_how_to_make_one(path: Path) -> None:
    with pytest.raises(RecordingError, match=r"does not exist\. Record a run with: with daskscope\.record"):
        read_recording(path)


def test_a_pipe_is_not_a_recording(path: Path) -> None:
    os.mkfifo(path)

    with pytest.raises(NotARecording, match="is neither a file nor a directory"):
        read_recording(path)


def test_a_file_without_read_permission_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    read(path)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RecordingError, match=r"run\.daskscope cannot be read: Permission denied"):
        read_recording(path)


def test_a_newer_file_format_says_to_upgrade(path: Path) -> None:
    path.write_bytes(FILE_MAGIC[:-1] + b"\x02")

    with pytest.raises(
        NewerFormat, match=r"written by a newer daskscope \(file format 2, this one reads 1\)\. Upgrade with"
    ):
        read_recording(path)


def test_a_newer_frame_says_to_upgrade(path: Path) -> None:
    parts = dissect(logs("a", sequence=0, kept=1))
    parts.header["schema"] = 99

    with pytest.raises(NewerFormat, match=r"the file cannot be read: schema 99 is newer .*; upgrade daskscope"):
        read(path, parts.frame())
