"""Show HTML written by others: in a frame, where it can run its own scripts and draw, and nothing else.

The sandbox gives it an origin of its own, so it has no cookies, no storage and no access to our pages, and the policy allows
no requests. WebRTC is not a request: no policy forbids it (Chromium 156 does not know the directive ``webrtc``), and it
would tell the author the visitor's address. So a script before all others removes it, and removes frames inside the page,
which would have their own.
"""

from __future__ import annotations

import html
import re

#: Dask's reports work completely under this policy.
POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; worker-src blob:; connect-src 'none'; frame-src 'none'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
#: A page without scripts.
STILL = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
FRAME_POLICY = f"{STILL}; frame-src 'self'"

_PRELUDE = b"""<script>(() => {
  for (const name of Object.getOwnPropertyNames(window)) if (/^(webkit)?RTC|^WebTransport/.test(name)) delete window[name];
  const inner = "iframe, frame, object, embed, fencedframe, portal";
  const watch = (root) => new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) {
      if (node.nodeType !== 1) continue;
      for (const found of [node, ...node.querySelectorAll(inner)]) if (found.matches(inner)) found.remove();
    }
  }).observe(root, { childList: true, subtree: true });
  watch(document);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (...options) {
    const root = attach.apply(this, options);
    watch(root);
    return root;
  };
  document.currentScript.remove();
})();</script>"""
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


def guard(page: bytes) -> list[bytes | memoryview]:
    """Return the parts of a page, not copied, with the script that removes WebRTC before all others."""
    start = _DOCTYPE.match(page)
    # After the document type: without it at the start, browsers imitate those of the last century.
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
