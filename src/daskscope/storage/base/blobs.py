"""Blobs: files by path, in a local directory or in an S3-compatible bucket.

A blob is written once, as a whole, and never changed: every path is new. So readers can cache it forever, and no store
has to support conditional writes, which weak S3 servers accept and ignore. SQL decides who writes what.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from daskscope.errors import MissingExtra
from daskscope.storage.base.database import StorageError

#: How often a write is retried when its directory is deleted at the same time.
ATTEMPTS = 20
#: How long to retry a request to an object store that does not answer. The library's default of three minutes would
#: block a page.
RETRY_S = 20.0


class MissingBlob(StorageError):
    """The catalog names a blob that does not exist."""


class StoreAway(StorageError):
    """The object store does not work at the moment. The message contains its own error and address."""


class BlobStore(Protocol):
    """A store of blobs."""

    def put(self, path: str, data: bytes) -> None:
        """Write a blob. When this returns, it is complete and durable."""

    def get(self, path: str) -> bytes:
        """Return a blob; raise ``MissingBlob`` if there is none."""

    def delete(self, path: str) -> None:
        """Delete a blob if it exists."""

    def list(self) -> Iterator[tuple[str, int, float]]:
        """Yield every blob: path, size, and time of writing in seconds since the epoch."""


def new_path(account: int, kind: str, name: str) -> str:
    """Return a path that was never used before."""
    return f"{account}/{kind}/{name}-{secrets.token_hex(8)}"


def open_store(url: str, *, endpoint: str = "") -> BlobStore:
    if url.startswith("s3://"):
        return S3Store(url, endpoint, retry_s=RETRY_S)
    if "://" in url and not url.startswith("file://"):
        raise StorageError(f"{url} is not a store. Give a directory or s3://bucket/prefix.")
    return LocalStore(Path(url.removeprefix("file://")))


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags, 0o600)


class LocalStore:
    """Blobs as files below a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StorageError(
                f"{directory} cannot be written: {error.strerror}. Choose another with --store."
            ) from None

    def put(self, path: str, data: bytes) -> None:
        target = self.local(path)
        for attempt in range(ATTEMPTS):
            try:
                self._write(target, data)
                return
            except (FileNotFoundError, FileExistsError):
                # The last file of the directory was deleted, and the directory with it, while we created it or after.
                if attempt == ATTEMPTS - 1:
                    raise

    def _write(self, target: Path, data: bytes) -> None:
        missing = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.part")
        try:
            with open(temporary, "wb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        # The name must be as durable as the bytes, including the names of new directories.
        for directory in (target.parent, *(parent.parent for parent in missing)):
            _sync(directory)

    def get(self, path: str) -> bytes:
        try:
            return self.local(path).read_bytes()
        except FileNotFoundError:
            raise MissingBlob(f"The stored file {path} is missing. Look for it with: daskscope doctor") from None

    def delete(self, path: str) -> None:
        target = self.local(path)
        target.unlink(missing_ok=True)
        # Delete empty directories too, up to the store itself.
        with contextlib.suppress(OSError):
            for parent in target.parents:
                if parent == self.directory:
                    break
                parent.rmdir()

    def list(self) -> Iterator[tuple[str, int, float]]:
        for file in self.directory.rglob("*"):
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            if file.is_file():
                yield file.relative_to(self.directory).as_posix(), status.st_size, status.st_mtime

    def local(self, path: str) -> Path:
        """Return the file of a blob."""
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or not parts.parts:
            raise ValueError(f"not a blob path: {path!r}")
        return self.directory / parts


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class S3Store:
    """Blobs as objects of a bucket."""

    def __init__(self, url: str, endpoint: str = "", *, retry_s: float = RETRY_S) -> None:
        try:
            from obstore.store import S3Store as Store
        except ImportError:
            raise MissingExtra("obstore", "s3", "A store on S3") from None
        options: dict[str, Any] = {
            "client_options": {"allow_http": endpoint.startswith("http://"), "timeout": "30s"},
            "retry_config": {"retry_timeout": timedelta(seconds=retry_s)},
        }
        if endpoint:
            options["endpoint"] = endpoint
            options["region"] = os.environ.get("AWS_REGION", "us-east-1")
        self._store = Store.from_url(url, **options)

    def put(self, path: str, data: bytes) -> None:
        import obstore

        # No conditions, and in one request where it fits: every server supports that.
        self._ask(lambda: obstore.put(self._store, path, data), path)

    def get(self, path: str) -> bytes:
        import obstore

        return bytes(self._ask(lambda: obstore.get(self._store, path).bytes(), path))

    def delete(self, path: str) -> None:
        import obstore

        with contextlib.suppress(MissingBlob):
            self._ask(lambda: obstore.delete(self._store, path), path)

    def list(self) -> Iterator[tuple[str, int, float]]:
        import obstore

        chunks = self._ask(lambda: iter(obstore.list(self._store)))
        while (chunk := self._ask(lambda: next(chunks, None))) is not None:
            for item in chunk:
                modified = item["last_modified"]
                moment = modified if isinstance(modified, datetime) else datetime.now(timezone.utc)
                yield item["path"], item["size"], moment.timestamp()

    def _ask(self, action: Any, path: str = "") -> Any:
        from obstore.exceptions import BaseError, NotFoundError

        try:
            return action()
        except (NotFoundError, FileNotFoundError):
            raise MissingBlob(f"The stored file {path} is missing. Look for it with: daskscope doctor") from None
        except (BaseError, OSError) as error:
            raise StoreAway(f"The object store refuses: {str(error).splitlines()[0][:300]}") from None
