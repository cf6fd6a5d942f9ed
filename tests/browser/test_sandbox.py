"""Uploaded HTML cannot reach WebRTC, whatever it tries: a frame of its own would have it, and tell the visitor's address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from daskscope.report.html import frame_html, frame_policy, guard, sandbox_policy

FRAME = '<iframe srcdoc="inside"></iframe>'
ROOT = f"<div><template shadowrootmode=closed>{FRAME}</template></div>"
#: What a page does, by name.
SCRIPTS = {
    "srcdoc": "const f = document.createElement('iframe'); f.srcdoc = 'inside'; document.body.append(f)",
    "inner HTML": f"document.body.innerHTML += '{FRAME}'",
    "shadow root": f"document.body.attachShadow({{mode: 'closed'}}).innerHTML = '{FRAME}'",
    "set HTML": f"document.body.setHTMLUnsafe('{ROOT}')",
    "set HTML, other case": f"document.body.setHTMLUnsafe('{ROOT.replace('shadowrootmode', 'ShadowRootMode')}')",
    "set HTML of an object": f"let n = 0; document.body.setHTMLUnsafe({{toString: () => n++ ? '{ROOT}' : 'x'}})",
    "parse HTML": f"document.body.append(...Document.parseHTMLUnsafe('{ROOT}').body.childNodes)",
    "write": f"document.write('{ROOT}')",
    "write in parts": f"document.write('<div><template shadow'); document.write('rootmode=closed>{FRAME}</template></div>')",
    "write letter by letter": f"for (const letter of '{ROOT}') document.write(letter)",
    "write later": f"onload = () => {{ document.open(); document.write('{ROOT}'); document.close(); }}",
    "copy of a root": (
        "const host = document.createElement('div');"
        f"host.attachShadow({{mode: 'open', clonable: true}}).innerHTML = '{FRAME}';"
        "document.body.append(host.cloneNode(true))"
    ),
    "no remove": f"Element.prototype.remove = () => 0; document.body.innerHTML += '{FRAME}'",
    "no search": (
        "Element.prototype.querySelectorAll = Document.prototype.querySelectorAll = () => [];"
        f"NodeList.prototype.item = () => null; document.body.innerHTML += '{FRAME}'"
    ),
    "no letters": f"String.prototype.toLowerCase = () => ''; RegExp.prototype.exec = () => null; document.write('{ROOT}')",
    "no observer": (
        f"MutationObserver.prototype.observe = () => 0; document.body.attachShadow({{mode: 'closed'}}).innerHTML = '{FRAME}'"
    ),
    "javascript: URL": "location.href = 'javascript:\"<p>inside</p>\"'",
    "javascript: link": (
        "const a = document.createElement('a'); a.href = 'javascript:\"<p>inside</p>\"'; document.body.append(a); a.click()"
    ),
    "blob: URL": "location.href = URL.createObjectURL(new Blob(['<p>inside</p>'], {type: 'text/html'}))",
    "data: URL": "location.href = 'data:text/html,<p>inside</p>'",
}
PAGES = {
    "markup": FRAME,
    "root in the markup": ROOT,
    "root in the markup, other case": ROOT.replace("shadowrootmode", "SHADOWROOTMODE"),
    "root in the markup, in UTF-16": "\ufeff" + ROOT,
    "write before the markup": f"<script>document.write('<div><template shadow')</script>rootmode=closed>{FRAME}</template></div>",
    **{name: f"<script>{script}</script>" for name, script in SCRIPTS.items()},
}


@cache
def encoded(name: str) -> bytes:
    page = f"<!doctype html><title>x</title><body><p>outside</p>{PAGES[name]}"
    return page.encode("utf-16") if "UTF-16" in name else page.encode()


class Handler(BaseHTTPRequestHandler):
    """Serves ``/frame/N`` around ``/page/N``, as the server does."""

    def do_GET(self) -> None:
        _, kind, number = self.path.split("/")
        name = list(PAGES)[int(number)]
        is_frame = kind == "frame"
        body = frame_html(f"/page/{number}", "x").encode() if is_frame else b"".join(guard(encoded(name)))
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", frame_policy() if is_frame else sandbox_policy())
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("name", PAGES)
def test_no_page_and_no_frame_in_it_has_webrtc(browser: Browser, address: str, name: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/frame/{list(PAGES).index(name)}")
    # A frame that stays would load meanwhile. There is no event to wait for if nothing happens, as it should be.
    page.wait_for_timeout(300)
    # Our policy refuses other pages in the frame; the browser then shows a page of its own.
    shown = [frame for frame in page.frames[1:] if not frame.url.startswith("chrome-error:")]
    found = [frame.evaluate("typeof RTCPeerConnection") for frame in shown]
    page.close()
    assert found == ([] if name in ("blob: URL", "data: URL") else ["undefined"])


def test_ordinary_pages_work(browser: Browser, address: str) -> None:
    """Markup, shadow roots, writing and copies stay possible."""
    PAGES["allowed"] = (
        "<div id=a></div><div id=b></div><script>document.write('<p id=c>written</p>');"
        "a.innerHTML = '<b>set</b>'; const root = b.attachShadow({mode: 'open'}); root.innerHTML = '<i>root</i>';"
        "const made = document.createElement('script'); made.textContent = 'window.ran = 1'; document.body.append(made);"
        "</script>"
    )
    page = browser.new_page()
    page.goto(f"{address}/frame/{list(PAGES).index('allowed')}")
    frame = page.frames[1]
    frame.wait_for_selector("#c")
    found = frame.evaluate("[c.textContent, a.innerHTML, b.shadowRoot.innerHTML, window.ran]")
    page.close()
    assert found == ["written", "<b>set</b>", "<i>root</i>", 1]
