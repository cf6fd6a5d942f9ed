"""A recording by whatever name a command is given: a file, a directory, a report, or the id of a cluster at the server."""

from __future__ import annotations

import re
from pathlib import Path

from daskscope.client.runs import download_recording
from daskscope.client.server import configured_url
from daskscope.model.recording import Recording
from daskscope.report.source import read_source

#: How distributed names schedulers.
CLUSTER_ID = re.compile(r"Scheduler-[0-9a-f-]{36}")
HELP = "a recording file, a directory of segments, a report (.html, .html.gz), or a cluster's id at the server"


def find_recording(name: str) -> Recording:
    if CLUSTER_ID.fullmatch(name) and not Path(name).exists() and configured_url():
        return download_recording(name)
    return read_source(name)
