"""The three pages on which people say who they are: the first user, the login, the confirmation of a command line's login."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence

from starlette.responses import HTMLResponse, Response

from daskscope.server.pages import COMMON

#: Sends a form as JSON to the API, says what it answers, and goes on.
SCRIPT = """
const form = document.querySelector("form"), said = document.querySelector("[role=status]");
const secret = form.elements.secret, code = form.elements.user_code;
if (secret) { secret.value = location.hash.slice(1); }
if (code && !code.value) { code.value = new URLSearchParams(location.search).get("code") || ""; }
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = Object.fromEntries(new FormData(form));
  if (event.submitter && event.submitter.name === "approve") { body.approve = event.submitter.value === "yes"; }
  said.textContent = "…";
  try {
    const response = await fetch(form.action, {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) { said.textContent = answer.error.message; return; }
    said.textContent = form.dataset.done;
    // Only an address of this server: another one would get people right after they logged in. Compared once it is parsed,
    // because parsing drops tabs and turns backslashes: "/<tab>/host" is another host, too.
    if (form.dataset.next) {
      const asked = new URLSearchParams(location.search).get("next") || form.dataset.next;
      const target = URL.canParse(asked, location.origin) ? new URL(asked, location.origin) : null;
      location.assign(target && target.origin === location.origin ? target.href : form.dataset.next);
    }
  } catch (error) { said.textContent = "The server cannot be reached."; }
});
"""
_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
STYLE = """
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{margin:0;display:grid;place-items:center;min-height:100vh}
form{display:grid;gap:.8rem;width:min(22rem,calc(100vw - 3rem))}
h1{font-size:1.25rem;margin:0}p{margin:0;opacity:.75}
label{display:grid;gap:.25rem;font-size:13px}
input,select{font:inherit;padding:.5rem .6rem;border:1px solid #8886;border-radius:6px;background:transparent;color:inherit}
div{display:flex;gap:.5rem}
button{font:inherit;padding:.5rem 1rem;border:1px solid transparent;border-radius:6px;background:#2a5ec4;color:#fff;cursor:pointer}
button.quiet{background:transparent;color:inherit;border-color:#8886}
[role=status]{min-height:1.5rem;opacity:1}
"""


def _page(title: str, text: str, fields: str, buttons: str, action: str, *, done: str, following: str = "") -> Response:
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)} · daskscope</title><style>{STYLE}</style></head><body>
<form action="{_quoted(action)}" data-done="{_quoted(done)}" data-next="{_quoted(following)}">
<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p>{fields}<div>{buttons}</div><p role="status" aria-live="polite"></p></form>
<script>{SCRIPT}</script></body></html>"""
    return HTMLResponse(page, headers={**COMMON, "Content-Security-Policy": POLICY})


def _quoted(text: str) -> str:
    return html.escape(text, quote=True)


def _field(label: str, name: str, kind: str = "text", complete: str = "off", extra: str = "") -> str:
    return f'<label>{label}<input name="{name}" type="{kind}" autocomplete="{complete}" required {extra}></label>'


def setup_page(root: str) -> Response:
    fields = (
        '<input name="secret" type="hidden">'
        + _field("Your name, in lower case", "user", complete="username")
        + _field("Password, ten characters or more", "password", "password", "new-password", 'minlength="10"')
        + _field("Name of your team, in lower case", "team")
    )
    text = "This server is new. Make its first user and the first account."
    return _page(
        "Set up", text, fields, "<button>Set up</button>", f"{root}/api/v1/setup", done="Done.", following=f"{root}/"
    )


def login_page(root: str) -> Response:
    fields = _field("Name", "user", complete="username") + _field(
        "Password", "password", "password", "current-password"
    )
    return _page(
        "Log in", "", fields, "<button>Log in</button>", f"{root}/api/v1/session", done="Done.", following=f"{root}/"
    )


def device_page(root: str, user: str, accounts: Sequence[str], label: str = "") -> Response:
    options = "".join(f"<option>{html.escape(name)}</option>" for name in accounts)
    fields = _field("Code", "user_code", extra='pattern="[A-Za-z]{4}-[A-Za-z]{4}"')
    fields += f'<label>Account<select name="account" required>{options}</select></label>'
    buttons = '<button name="approve" value="yes">Confirm</button><button class="quiet" name="approve" value="no">Deny</button>'
    asks = f" {label} asks for a token." if label else ""
    text = (
        f"You are {user}.{asks} Confirm only a code that your own terminal shows: whoever has it can act in your name."
    )
    return _page(
        "Confirm a login",
        text,
        fields,
        buttons,
        f"{root}/api/v1/device/decision",
        done="Done. Go back to your terminal.",
    )
