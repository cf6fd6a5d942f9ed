"""Files somebody compressed with gzip, as they were before. That they are compressed, their content says, not their name."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daskscope import units
from daskscope.errors import DaskscopeError, RecordingError

MAGIC = b"\x1f\x8b"
#: What a file may unpack to: a report of a million tasks has 13 MB, and a small file can claim to hold anything.
MOST_NBYTES = 1 << 30
STEP = 1 << 20


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file as it is, or, where it is compressed, unpacked for the length of the block; errors name it as it was given."""
    if not _is_compressed(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="daskscope-") as directory:
        file = Path(directory) / (path.stem if path.suffix == ".gz" else path.name)
        _unpack(path, file)
        try:
            yield file
        except DaskscopeError as error:
            raise type(error)(str(error).replace(str(file), str(path))) from None


def _is_compressed(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        # Whoever reads it meets the same error, and says it.
        return False


def _unpack(path: Path, target: Path) -> None:
    nbytes = 0
    try:
        with gzip.open(path) as packed, target.open("wb") as file:
            while part := packed.read(STEP):
                nbytes += len(part)
                if nbytes > MOST_NBYTES:
                    raise RecordingError(
                        f"{path} unpacks to more than {units.nbytes(MOST_NBYTES)}, which no report has. If it is one all the same, "
                        "unpack it with: gunzip"
                    )
                file.write(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RecordingError(f"{path} cannot be unpacked ({error}). Copy it again from where it was written.") from None
    except OSError as error:
        raise RecordingError(f"{path} cannot be unpacked: {error.strerror}. Unpack it with: gunzip") from None
