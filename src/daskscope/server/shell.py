"""The web app: one page for every address of an account, and the files it is made of."""

from __future__ import annotations

import functools
import html
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import HTMLResponse, Response

from daskscope.errors import DaskscopeError
from daskscope.server.failure import not_found
from daskscope.server.pages import COMMON
from daskscope.server.routing import ANYBODY, Call, Route

#: Scripts and styles come from us; styles of single elements are set by scripts (widths of bars).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; worker-src blob:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Their names change with their content.
FOR_EVER = "public, max-age=31536000, immutable"


def _built() -> Traversable:
    return files("daskscope.server").joinpath("static")


@functools.cache
def _page(root: str) -> str:
    page = _built().joinpath("team.html")
    if not page.is_file():
        raise DaskscopeError(
            "The web app is not built. In a checkout run scripts/build-web; an installed package has it."
        )
    text = page.read_text(encoding="utf-8").replace("./assets/", f"{html.escape(root, quote=True)}/assets/")
    meta = f'<meta name="daskscope-root" content="{html.escape(root, quote=True)}">'
    return text.replace("<!--DASKSCOPE-ROOT-->", meta)


def shell(call: Call) -> Response:
    """The app; it asks the API for everything, and for a login where there is none."""
    return HTMLResponse(_page(call.services.settings.root_path), headers={**COMMON, "Content-Security-Policy": POLICY})


def asset(call: Call) -> Response:
    name = call.path("name")
    file = _built().joinpath("assets").joinpath(name)
    # A name is one of those that were built; nothing else is looked for.
    if name not in _names() or not file.is_file():
        raise not_found("such file")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {"Cache-Control": FOR_EVER, "X-Content-Type-Options": "nosniff"}
    return Response(file.read_bytes(), media_type=kind, headers=headers)


@functools.cache
def _names() -> frozenset[str]:
    assets = _built().joinpath("assets")
    return frozenset(item.name for item in assets.iterdir()) if assets.is_dir() else frozenset()


def _page_of(path: str) -> Route:
    return Route("GET", path, shell, ANYBODY, "The web app", answers="text/html")


ROUTES = [
    Route("GET", "/assets/{name}", asset, ANYBODY, "A file of the web app", answers="application/octet-stream"),
    _page_of("/"),
    # The pages on which people say who they are; no account can be called so.
    _page_of("/setup"),
    _page_of("/login"),
    _page_of("/device"),
    _page_of("/{account}"),
    _page_of("/{account}/{section}"),
    _page_of("/{account}/errors/{fingerprint}"),
    _page_of("/{account}/reports/{report}"),
    _page_of("/{account}/clusters/{cluster}"),
    _page_of("/{account}/clusters/{cluster}/report"),
    _page_of("/{account}/clusters/{cluster}/computations/{computation}"),
]
