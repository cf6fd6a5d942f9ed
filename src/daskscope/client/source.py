"""Find a recording: a file, a directory, a report, or a cluster on a server, by its ID or the URL of its page."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from daskscope.client.local_servers import split_secret, with_secret
from daskscope.client.server import configured_url, download_recording
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.report.source import read_source

#: Scheduler IDs as distributed makes them.
CLUSTER_ID = re.compile(r"Scheduler-[0-9a-f-]{36}")
#: The page of a cluster, or a page below it: server, account and ID of the cluster.
PAGE = re.compile(r"(https?://.+?)/([^/]+)/clusters/([^/]+)(?:/.*)?")


def find_recording(name: str | Path) -> Recording:
    """Read a recording from disk; download it if the name is the URL of a page, or a cluster ID and a server is configured."""
    text = str(name)
    if isinstance(name, str) and text.startswith(("http://", "https://")):
        return _download_page(text)
    if CLUSTER_ID.fullmatch(text) and not Path(text).exists() and configured_url():
        return download_recording(text)
    return read_source(name)


def _download_page(url: str) -> Recording:
    url, secret = split_secret(url)
    parts = urlsplit(url)
    found = PAGE.fullmatch(f"{parts.scheme}://{parts.netloc}{parts.path}")
    if found is None:
        raise DaskscopeError(
            f"{url} is not the page of a cluster. Give a URL such as https://server/account/clusters/ID."
        )
    server, account, cluster = found.groups()
    return download_recording(unquote(cluster), unquote(account), url=with_secret(server, secret) if secret else server)
