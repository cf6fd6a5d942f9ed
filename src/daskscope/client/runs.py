"""A cluster at a server as a recording, here."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import quote

from daskscope.client.server import UPLOAD_TIMEOUT, find_server
from daskscope.model.recording import Recording
from daskscope.wire.file import read_recording


def download_recording(cluster_id: str, account: str | None = None) -> Recording:
    """Everything a server has of a cluster."""
    data = find_server(account).fetch(f"clusters/{quote(cluster_id, safe='')}/recording", timeout=UPLOAD_TIMEOUT)
    with tempfile.TemporaryDirectory(prefix="daskscope-") as directory:
        path = Path(directory) / "recording.daskscope"
        path.write_bytes(data)
        return read_recording(path)
