"""The contract of every blob store: a directory, an S3 that honours conditional puts, and one that ignores them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from daskscope.storage.base.blobs import BlobStore, LocalStore, MissingBlob, S3Store, new_path, open_store
from daskscope.storage.base.database import StorageError


def test_a_blob_is_read_back_as_it_was_written(blob_store: BlobStore) -> None:
    blobs = {"1/runs/5/tasks.parquet-00": bytes(range(256)) * 40, "1/empty": b"", "2/documents/document-1": b"\0\xff"}
    for path, data in blobs.items():
        blob_store.put(path, data)
    assert {path: blob_store.get(path) for path in blobs} == blobs


def test_a_large_blob_is_complete(blob_store: BlobStore) -> None:
    data = bytes(range(256)) * 40_000  # 10 MB: more than one part of an upload
    blob_store.put("1/large", data)
    assert blob_store.get("1/large") == data


def test_reading_a_missing_blob_suggests_daskscope_doctor(blob_store: BlobStore) -> None:
    with pytest.raises(MissingBlob, match="daskscope doctor"):
        blob_store.get("1/never/written")


def test_deleting_a_blob_twice_does_no_harm(blob_store: BlobStore) -> None:
    blob_store.put("1/a", b"a")
    blob_store.delete("1/a")
    blob_store.delete("1/a")
    with pytest.raises(MissingBlob):
        blob_store.get("1/a")
    assert list(blob_store.list()) == []


def test_blobs_are_listed_with_their_size_and_time(blob_store: BlobStore) -> None:
    before = time.time()
    blob_store.put("1/runs/7/a", b"123")
    blob_store.put("2/b", b"12345")
    listed = {path: (size, moment) for path, size, moment in blob_store.list()}
    assert {path: size for path, (size, _) in listed.items()} == {"1/runs/7/a": 3, "2/b": 5}
    assert all(before - 5 < moment < time.time() + 5 for _, moment in listed.values())


def test_paths_are_unique() -> None:
    assert len({new_path(1, "runs/1", "tasks.parquet") for _ in range(1000)}) == 1000


def test_concurrent_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Deleting the last blob of a directory removes the directory, just when another thread writes to it."""
    blob_store = LocalStore(tmp_path / "store")
    failures: list[BaseException] = []

    def churn(name: int) -> None:
        try:
            for n in range(100):
                path = f"1/runs/1/{name}-{n}"
                blob_store.put(path, b"x" * 100)
                assert blob_store.get(path) == b"x" * 100
                blob_store.delete(path)
        except BaseException as error:  # noqa: BLE001 (carried to the thread that asserts)
            failures.append(error)

    threads = [threading.Thread(target=churn, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert list(blob_store.list()) == []


def test_only_one_of_the_s3_servers_honours_conditional_puts(
    strong_s3: str, weak_s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason why our code does not rely on conditional puts."""
    import obstore
    from obstore.exceptions import AlreadyExistsError
    from tests.helpers import services

    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)
    strong = S3Store(f"s3://{services.BUCKET}/conditions", strong_s3)
    weak = S3Store(f"s3://{services.BUCKET}/conditions", weak_s3)
    for store in (strong, weak):
        obstore.put(store._store, "once", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(strong._store, "once", b"second", mode="create")
    obstore.put(weak._store, "once", b"second", mode="create")
    assert (strong.get("once"), weak.get("once")) == (b"first", b"second")


def test_an_unreachable_store_raises_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.helpers import services

    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)
    store = S3Store(f"s3://{services.BUCKET}/x", f"http://127.0.0.1:{services.free_port()}", retry_s=0.1)
    with pytest.raises(StorageError, match="object store"):
        store.get("1/a")


def test_a_local_path_cannot_leave_the_store(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    for path in ("../outside", "/etc/passwd", "a/../../outside", ""):
        with pytest.raises(ValueError, match="not a blob path"):
            store.put(path, b"")


def test_a_failed_local_write_leaves_no_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    with pytest.raises(TypeError):
        store.put("1/a", "no bytes")  # type: ignore[arg-type]
    assert list(store.list()) == []


def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(StorageError, match="not a store"):
        open_store("gs://bucket/prefix")
