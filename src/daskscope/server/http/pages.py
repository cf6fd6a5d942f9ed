"""Responses that browsers show or save: pages with their headers, and much data in parts."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

from daskscope.report.html import PLACEHOLDER, STILL, STYLE, frame_html, frame_policy, guard, sandbox_policy, viewer

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex",
}


@functools.cache
def _viewer() -> tuple[str, str, str]:
    """Return the viewer before and after its data, and the hashes of its scripts."""
    page = viewer()
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(match['text'].encode()).digest()).decode()}'"
        for match in SCRIPT.finditer(page)
        if "application/json" not in match["attributes"]
    )
    before, _, after = page.partition(PLACEHOLDER)
    return before, after, hashes


def viewer_page(source: str, title: str) -> Response:
    """Return the viewer, which fetches its data from ``source``."""
    before, after, hashes = _viewer()
    meta = f'<meta name="daskscope-source" content="{html.escape(source, quote=True)}">'
    page = before + meta + f"<title>{html.escape(title)}</title>" + after
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob: 'self'; font-src data:; "
        "connect-src 'self' blob:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(page, headers={**COMMON, "Content-Security-Policy": policy})


def sandboxed(page: bytes, ancestors: str) -> Response:
    """Return uploaded HTML in a sandbox, for a frame in pages of these origins."""
    headers = {**COMMON, "Content-Security-Policy": sandbox_policy(ancestors)}
    return DataResponse(guard(page), "text/html; charset=utf-8", headers)


def frame_page(address: str, title: str, source: str) -> Response:
    """Return a page around uploaded HTML, which comes from the origin ``source``."""
    headers = {**COMMON, "Content-Security-Policy": frame_policy(source)}
    return HTMLResponse(frame_html(address, title), headers=headers)


def message_page(title: str, text: str, status: int = 200) -> Response:
    """Return a page with one message."""
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main><h1>{html.escape(title)}</h1>
<p>{html.escape(text)}</p></main></body></html>"""
    return HTMLResponse(page, status, {**COMMON, "Content-Security-Policy": STILL})


def icon() -> Response:
    """Return the tab icon; browsers request it even if a page names none."""
    headers = {**COMMON, "Content-Security-Policy": "default-src 'none'", "Cache-Control": "public, max-age=86400"}
    return Response(ICON, media_type="image/svg+xml", headers=headers)


#: Bars of a task stream.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2a5ec4" d="M1 2h9v3H1z"/>'
    '<path fill="#e0882e" d="M4 6.5h11v3H4z"/><path fill="#3a9a5c" d="M2 11h7v3H2z"/></svg>'
)
#: A document is data and never a page, so keep browsers from treating it as one.
DATA_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BYTES = "application/octet-stream"


#: Bytes given to the connection at once. A whole body would be copied for each reader: 100 slow readers of 16 MB held 1.9 GB.
PART = 256 * 1024


class DataResponse(Response):
    """A response made of byte strings that other responses may share."""

    def __init__(self, parts: Sequence[bytes | memoryview], media_type: str, headers: dict[str, str]) -> None:
        super().__init__(media_type=media_type, headers={**headers, "Content-Length": str(sum(map(len, parts)))})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for data in self._parts:
            view = memoryview(data)
            for start in range(0, len(view), PART):
                message = {"type": "http.response.body", "body": bytes(view[start : start + PART]), "more_body": True}
                # Waits until the reader has taken most of what was sent.
                await send(message)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
