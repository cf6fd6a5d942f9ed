"""The help text of the argument that names a recording."""

from __future__ import annotations

HELP = "recording file, directory of segments, report (.html, .html.gz), or a cluster on the server: its ID or the URL of its page"
