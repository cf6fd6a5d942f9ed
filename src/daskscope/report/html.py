"""Render a report as one HTML file: the viewer with the data inside.

The data cannot run: it is compressed, as base64, in script elements of a type that browsers do not execute.
"""

from __future__ import annotations

import html
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from daskscope.analysis.summary import call_line, extent, inside_block
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.report.schema import Report

MAX_LINE = 80


def title_of(name: str, recording: Recording) -> str:
    """Return the name with the line that submitted the longest computation; the name alone if code is not recorded."""
    start, stop = extent(recording)
    rows = inside_block(recording)["computations"].records("code", "code_line", "start_us", "stop_us")
    # Work of an earlier call may still run when a block begins.
    own = [row for row in rows if row[2] >= start] or list(rows)
    longest = max(own, key=lambda row: (row[3] or stop) - row[2], default=None)
    line = call_line(str(longest[0]), int(longest[1])) if longest is not None else ""
    line = line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
    return f"{name}: {line}" if line and name else line or name


# HTML written by others is shown in a frame, where it can run its own scripts and draw, and nothing else.
#
# The sandbox gives it an origin of its own, so it has no cookies, no storage and no access to our pages, and the policy allows
# no requests. WebRTC is not a request: no policy forbids it (Chromium 156 does not know the directive ``webrtc``), and it would
# tell the author the visitor's address. So a script before all others removes it, and removes frames inside the page, which
# would have their own. A frame in a shadow root that no script has made cannot be found, so such roots are not made. A
# ``javascript:`` URL would make a page without that script: browsers with Trusted Types refuse it.

#: Dask's reports work completely under this policy.
_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; worker-src blob:; connect-src 'none'; frame-src 'none'; form-action 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types default"
)
#: A page without scripts.
STILL = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_PRELUDE = b"""<script>(() => {
  "use strict";
  for (const name of Object.getOwnPropertyNames(window)) if (/^(webkit)?RTC|^WebTransport/.test(name)) delete window[name];

  // The page may replace every method of the browser, so all that run later are taken now.
  const { apply } = Reflect, method = (owner, name) => Function.prototype.call.bind(owner.prototype[name]);
  const lower = method(String, "toLowerCase"), indexOf = method(String, "indexOf"), slice = method(String, "slice");
  const item = method(NodeList, "item"), remove = method(Element, "remove"), observe = method(MutationObserver, "observe");
  const findIn = { 1: method(Element, "querySelectorAll"), 9: method(Document, "querySelectorAll"),
    11: method(DocumentFragment, "querySelectorAll") };
  const typeOf = Function.prototype.call.bind(Object.getOwnPropertyDescriptor(Node.prototype, "nodeType").get);
  const Observer = MutationObserver, text = String, define = Object.defineProperty;

  // Frames would have their own WebRTC.
  const inner = "iframe, frame, object, embed, fencedframe, portal";
  const sweep = (root) => {
    const found = findIn[typeOf(root)](root, inner);
    for (let i = 0, node; (node = item(found, i)); i++) remove(node);
  };
  const options = Object.freeze({ __proto__: null, childList: true, subtree: true });
  const watch = (root) => observe(new Observer(() => sweep(root)), root, options);
  watch(document);

  // Nothing watches a shadow root that markup or a copy makes, and no script can find a closed one.
  const attach = Element.prototype.attachShadow;
  const replace = (owner, name, make) => {
    const original = owner && owner[name];
    if (original) define(owner, name, { value: make(original), configurable: false, writable: false });
  };
  replace(Element.prototype, "attachShadow", () => function attachShadow(init) {
    const root = apply(attach, this, [{ ...init, clonable: false, serializable: false }]);
    watch(root);
    return root;
  });
  const word = "shadowrootmode";
  const safe = (markup) => (indexOf(lower(markup), word) < 0 ? markup : "");
  const setter = (original) => function (markup, ...rest) { return apply(original, this, [safe(text(markup)), ...rest]); };
  for (const owner of [Element.prototype, ShadowRoot.prototype]) replace(owner, "setHTMLUnsafe", setter);
  replace(Document, "parseHTMLUnsafe", setter);
  // The word may come in parts: of several calls, or of a call and of the page after it.
  let before = "";
  const writer = (original) => function (...parts) {
    let markup = "";
    for (let i = 0; i < parts.length; i++) markup += text(parts[i]);
    if (indexOf(lower(before + markup), word) >= 0) markup = "";
    before = slice(before + markup, -word.length);
    const end = lower(before);
    for (let i = 1; i < word.length; i++) if (slice(end, -i) === slice(word, 0, i)) { markup += "\\n"; before = ""; break; }
    return apply(original, this, [markup]);
  };
  for (const name of ["write", "writeln"]) replace(Document.prototype, name, writer);

  // Trusted Types ask here for all other markup, and before a javascript: URL makes a new page without this script.
  if (window.trustedTypes) trustedTypes.createPolicy("default", {
    createHTML: (markup, _, sink) => (sink === "HTMLIFrameElement srcdoc" ? "" : safe(markup)),
    createScript: (code, _, sink) => (indexOf(sink, "Location") === 0 ? null : code),
    createScriptURL: (url) => url,
  });
  document.currentScript.remove();
})();</script>"""
#: The attribute of a template that makes a shadow root. Attribute names have no escapes, and the page is always read as UTF-8.
_SHADOW_ROOT = re.compile(rb"shadowrootmode", re.IGNORECASE)
_DOCTYPE = re.compile(rb"\s*<!doctype[^>]*>", re.IGNORECASE)

STYLE = """
:root{color-scheme:light dark;font:14px/1.5 system-ui,sans-serif}
body{margin:0;display:flex;flex-direction:column;height:100vh}
header{display:flex;gap:1rem;align-items:baseline;padding:.6rem 1rem;border-bottom:1px solid #8884}
header span{opacity:.7;font-size:12px}
iframe{flex:1;border:0;background:#fff}
main{max-width:40rem;margin:15vh auto 0;padding:0 1rem}
h1{font-size:1.3rem}
"""


def sandbox_policy(ancestors: str = "'self'") -> str:
    """Return the policy of a page of others that pages of these origins show in a frame."""
    return f"{_SANDBOX}; frame-ancestors {ancestors}"


def frame_policy(source: str = "'self'") -> str:
    """Return the policy of a page without scripts that shows a page of another origin in a frame."""
    return f"{STILL}; frame-src {source}"


def guard(page: bytes) -> list[bytes | memoryview]:
    """Return the parts of a page, not copied if possible, with the script that removes WebRTC before all others."""
    if _SHADOW_ROOT.search(page):
        page = _SHADOW_ROOT.sub(b"data-no-shadow", page)
    start = _DOCTYPE.match(page)
    # After the document type: without it at the start, browsers imitate browsers of the last century.
    end = start.end() if start else 0
    view = memoryview(page)
    return [view[:end], _PRELUDE, view[end:]]


def frame_html(address: str, title: str) -> str:
    """Return a page with a frame around another one."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>
<header><strong>{html.escape(title)}</strong><span>HTML shown in a sandbox</span></header>
<iframe sandbox="allow-scripts" referrerpolicy="no-referrer" src="{html.escape(address, quote=True)}" title="Report"></iframe>
</body></html>"""


PLACEHOLDER = "<!--DASKSCOPE-DATA-->"
#: Opening tags of the report and of a block; ``report/read_page.py`` searches for them.
REPORT_TAG = '<script type="text/plain" id="daskscope-report">'
BLOCK_TAG = '<script type="text/plain" id="daskscope-block-{name}">'
COMPARISON_TAG = '<script type="text/plain" id="daskscope-comparison">'
END_TAG = "</script>"


def viewer() -> str:
    """Return the built viewer, which is part of the package."""
    page = files("daskscope.report").joinpath("viewer.html")
    if not page.is_file():
        raise DaskscopeError(
            "The viewer is not built. Run scripts/build-web in a checkout; an installed package includes it."
        )
    return page.read_text(encoding="utf-8")


def render(report: Report, blocks: Mapping[str, bytes]) -> str:
    """Return the whole page."""
    before, _, after = viewer().partition(PLACEHOLDER)
    return "".join([before, *_data(report, blocks), after])


def render_comparison(comparison: Mapping[str, Any]) -> str:
    """Return a page that shows a comparison: the same viewer, with other data."""
    before, _, after = viewer().partition(PLACEHOLDER)
    data = b64encode(zlib.compress(report_json(comparison).encode(), 9)).decode()
    return f"{before}{COMPARISON_TAG}{data}{END_TAG}\n{after}"


def report_json(report: Report | Mapping[str, Any]) -> str:
    """Return the data of a page as JSON that is safe inside HTML."""
    # ASCII only: names may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(report, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _data(report: Report, blocks: Mapping[str, bytes]) -> Iterator[str]:
    # 124 kB of 100,000 tasks on 200 workers become 16.
    parts = {REPORT_TAG: zlib.compress(report_json(report).encode(), 9)}
    parts |= {BLOCK_TAG.format(name=name): data for name, data in blocks.items()}
    for tag, data in parts.items():
        yield f"{tag}{b64encode(data).decode()}{END_TAG}\n"
