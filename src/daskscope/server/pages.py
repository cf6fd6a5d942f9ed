"""Pages: the viewer on a hosted report, and uploaded HTML in a sandbox it cannot get out of.

Our own pages carry a policy that allows exactly the scripts they were built with. Uploaded HTML is anybody's: the header on the
response itself takes its origin away, so that it has no cookies, no storage and no API, whether it is opened in a frame or alone.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re

from starlette.responses import HTMLResponse, Response

from daskscope.report.html import PLACEHOLDER, viewer

SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
#: What uploaded HTML may do: run its own scripts, draw, and nothing else. Dask's reports show up whole under it.
SANDBOX = (
    "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; worker-src blob:; connect-src 'none'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'"
)
#: A page of ours without any script.
STILL = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
    """The viewer before and after its data, and the hashes of its scripts."""
    page = viewer()
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(match['text'].encode()).digest()).decode()}'"
        for match in SCRIPT.finditer(page)
        if "application/json" not in match["attributes"]
    )
    before, _, after = page.partition(PLACEHOLDER)
    return before, after, hashes


def viewer_page(source: str, title: str) -> Response:
    """The viewer, which fetches its data from ``source``."""
    before, after, hashes = _viewer()
    meta = f'<meta name="daskscope-source" content="{html.escape(source, quote=True)}">'
    page = before + meta + f"<title>{html.escape(title)}</title>" + after
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob: 'self'; font-src data:; "
        "connect-src 'self' blob:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(page, headers={**COMMON, "Content-Security-Policy": policy})


def sandboxed(page: bytes) -> Response:
    """Uploaded HTML as it is, without any power."""
    return Response(page, media_type="text/html; charset=utf-8", headers={**COMMON, "Content-Security-Policy": SANDBOX})


def frame_page(address: str, title: str) -> Response:
    """A page of ours around uploaded HTML."""
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{FRAME_STYLE}</style></head><body>
<header><strong>{html.escape(title)}</strong><span>uploaded HTML, shown in a sandbox</span></header>
<iframe sandbox="allow-scripts" referrerpolicy="no-referrer" src="{html.escape(address, quote=True)}" title="Report"></iframe>
</body></html>"""
    return HTMLResponse(page, headers={**COMMON, "Content-Security-Policy": f"{STILL}; frame-src 'self'"})


def message_page(title: str, text: str, status: int = 200) -> Response:
    """A page with one thing to say."""
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{FRAME_STYLE}</style></head><body><main><h1>{html.escape(title)}</h1>
<p>{html.escape(text)}</p></main></body></html>"""
    return HTMLResponse(page, status, {**COMMON, "Content-Security-Policy": STILL})


def icon() -> Response:
    """What browsers show in a tab; they ask for it whether a page names one or not."""
    headers = {**COMMON, "Content-Security-Policy": "default-src 'none'", "Cache-Control": "public, max-age=86400"}
    return Response(ICON, media_type="image/svg+xml", headers=headers)


#: Bars of a task stream.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2a5ec4" d="M1 2h9v3H1z"/>'
    '<path fill="#e0882e" d="M4 6.5h11v3H4z"/><path fill="#3a9a5c" d="M2 11h7v3H2z"/></svg>'
)
FRAME_STYLE = """
:root{color-scheme:light dark;font:14px/1.5 system-ui,sans-serif}
body{margin:0;display:flex;flex-direction:column;height:100vh}
header{display:flex;gap:1rem;align-items:baseline;padding:.6rem 1rem;border-bottom:1px solid #8884}
header span{opacity:.7;font-size:12px}
iframe{flex:1;border:0;background:#fff}
main{max-width:40rem;margin:15vh auto 0;padding:0 1rem}
h1{font-size:1.3rem}
"""
