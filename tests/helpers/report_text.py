"""Everything that a report's page contains, as text, to search for what must not be in it."""

from __future__ import annotations

import base64
import re
import zlib

#: Data in a page: compressed, as base64.
PACKED = re.compile(r'<script type="text/plain" id="daskscope-(?:report|block-[\w.-]+)">([\w+/=]*)</script>')


def page_text(page: str) -> str:
    """Return a page with its data unpacked."""
    packed = PACKED.findall(page)
    assert packed, "the page has no data"
    parts = [zlib.decompress(base64.b64decode(text)) for text in packed if text]
    return "\n".join([page, *(part.decode("latin-1") for part in parts)])
