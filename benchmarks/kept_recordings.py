"""Write recordings of workloads as small test data, without what identifies the machine that made them."""

from __future__ import annotations

import getpass
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import distributed

from daskscope.model.recording import Completeness, Recording
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.file import SUFFIX
from daskscope.wire.layout import FILE_MAGIC

#: Parts of paths that differ between machines, longest first, and what stands for them.
PLACES = {
    str(Path(distributed.__file__).parent.parent): "/packages",
    str(Path(sys.base_prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"): "/python",
    str(Path(__file__).parent.parent): "/daskscope",
    tempfile.gettempdir(): "/temporary",
    str(Path.home()): "/home",
}
#: Columns that name people and machines.
WITHHELD = {("clusters", "user"), ("clusters", "host"), ("clusters", "platform"), ("windows", "labels")}
MAX_BYTES = 60_000


def keep(recording: Recording, directory: Path, name: str) -> Path:
    """Write a recording with one batch per table, and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}{SUFFIX}"
    frames: list[bytes] = []
    for table in recording.tables.values():
        if not table.rows:
            continue
        columns = {
            column: _clean(table[column].tolist(), withheld=(table.name, column) in WITHHELD)
            for column in table.definition.names
        }
        known = recording.completeness.get(table.name, Completeness(table.rows))
        frames.append(
            seal(
                encode_body(table.name, columns),
                cluster="kept",
                epoch=1,
                sequence=len(frames),
                kept=table.rows,
                dropped=known.dropped,
            )
        )
    path.write_bytes(FILE_MAGIC + b"".join(frames))
    return path


def _clean(values: list[Any], *, withheld: bool) -> list[Any]:
    return [_clean_value("" if withheld else value) for value in values]


def _clean_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean_value(one) for one in value]
    if not isinstance(value, str):
        return value
    for place, instead in sorted(PLACES.items(), key=lambda one: -len(one[0])):
        value = value.replace(place, instead)
    return re.sub(rf"\b({re.escape(socket.gethostname())}|{re.escape(getpass.getuser())})\b", "withheld", value)
