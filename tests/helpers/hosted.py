"""Run the real server in this process, on a free loopback port and with its own data directory."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette

from daskscope.model.states import SCOPES, Role
from daskscope.server.jobs import Jobs
from daskscope.server.run import address, announced, listen, make_server, set_up_link
from daskscope.server.services import Services, now_us, open_services
from daskscope.server.settings import Settings
from daskscope.storage.people import sessions, tokens
from daskscope.storage.people.accounts import create_account, find_account, set_member
from daskscope.storage.people.users import create_user, find_user, hash_password

PASSWORD = "correct horse battery"
FRAMES = "application/vnd.daskscope.frames"

Body = bytes | Iterator[bytes] | Mapping[str, Any] | None


@functools.cache
def _hashed() -> str:
    return hash_password(PASSWORD)


class MovingClock:
    """The clock of a server, which tests can advance."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us

    def move(self, *, seconds: float = 0.0, days: float = 0.0) -> None:
        """Advance the clock."""
        self.ahead_us += int((seconds + days * 86_400) * 1e6)


@dataclass(frozen=True)
class HttpResponse:
    """The response to a request."""

    status: int
    headers: http.client.HTTPMessage = field(repr=False)
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def code(self) -> str:
        """Return the code of an error response, and check its shape."""
        error = self.json()["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        return str(error["code"])

    @property
    def cookie(self) -> str:
        """Return the session that this response opened."""
        return str(self.headers["Set-Cookie"]).partition(";")[0].partition("=")[2]


class HostedServer:
    """Runs a server in a thread during a ``with`` block, and creates users, accounts, tokens and sessions in its database."""

    def __init__(
        self,
        directory: Path,
        *,
        login: bool = False,
        clock: Callable[[], int] = now_us,
        port: int = 0,
        jobs: bool = False,
        **settings: Any,
    ) -> None:
        self.settings = Settings(port=port, data=str(directory), login=login, **settings).checked()
        self.services: Services
        #: The page secrets of sessions, by their cookie.
        self.page_secrets: dict[str, str] = {}
        self._clock = clock
        self._with_jobs = jobs
        self._announced = contextlib.ExitStack()

    def __enter__(self) -> HostedServer:
        listening = listen(self.settings)
        self.services = open_services(self.settings, self._clock)
        self.port = int(listening.getsockname()[1])
        self.services.url = address(self.settings, self.port)
        self._announced.enter_context(announced(self.services))
        self.set_up = set_up_link(self.services)
        self._jobs = Jobs(self.services)
        if self._with_jobs:
            self._jobs.start()
        self._server = make_server(self.services)
        self._listening = listening
        self._thread = threading.Thread(target=self._server.run, args=([listening],), name="hosted", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._jobs.stop()
        self.services.close()
        self._listening.close()
        self._announced.close()

    @property
    def url(self) -> str:
        return self.services.url

    @property
    def secret(self) -> str:
        """Return the secret in the URL of a server without sign-in; empty with sign-in."""
        return self.services.local_secret.value if self.services.local_secret else ""

    @property
    def entry(self) -> str:
        """Return the URL that the server prints."""
        return self.services.entry_url

    @property
    def app(self) -> Starlette:
        """Return the ASGI application."""
        app = self._server.config.app
        assert isinstance(app, Starlette)
        return app

    # ---------------------------------------------------------------- people

    def make_account(self, name: str, **members: Role) -> int:
        """Create an account with these members, creating missing users, and return its ID."""
        with self.services.archive.write() as tx:
            account = find_account(tx, name) or create_account(tx, name)
            for user, role in members.items():
                known = find_user(tx, user) or create_user(tx, user, _hashed())
                set_member(tx, account.id, known.id, role)
        return account.id

    def make_user(self, name: str, *, admin: bool = False) -> int:
        """Create a user with the password ``PASSWORD`` and return its ID."""
        with self.services.archive.write() as tx:
            return create_user(tx, name, _hashed(), admin=admin).id

    def make_token(self, user: str, account: str, *scopes: str, cluster: str = "", expires_us: int = 0) -> str:
        """Create a token for one account, with all scopes unless some are given, and return its secret."""
        with self.services.archive.write() as tx:
            owner, of = find_user(tx, user), find_account(tx, account)
            assert owner is not None
            assert of is not None
            _, secret = tokens.create_token(
                tx,
                account=of.id,
                user=owner.id,
                scopes=frozenset(scopes or SCOPES) - (set() if scopes else {"accounts"}),
                label="made by a test",
                expires_us=expires_us,
                cluster=cluster,
            )
        return secret

    def make_session(self, user: str) -> str:
        """Open a browser session and return the value of its cookie."""
        with self.services.archive.write() as tx:
            known = find_user(tx, user)
            assert known is not None
            new = sessions.open_session(tx, known.id, "a test")
        self.page_secrets[new.cookie] = new.page
        return new.cookie

    @property
    def cookie_name(self) -> str:
        """Return the name of the session cookie on http."""
        return f"daskscope_{urlsplit(self.url).port or 80}"

    # ---------------------------------------------------------------- requests

    def ask(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        token: str = "",
        session: str = "",
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> HttpResponse:
        """Send a request; with a session, like a page of the server does. Without ``whole``, read only the head of the response.

        Without sign-in, a request without other credentials has the server's secret. An empty ``secret`` leaves it out.
        """
        sent = dict(headers or {})
        if not (token or session):
            token = self.secret if secret is None else secret
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if session:
            sent.setdefault("Cookie", f"{self.cookie_name}={session}")
            sent.setdefault("Daskscope-Page", self.page_secrets.get(session, ""))
            if method not in ("GET", "HEAD"):
                sent.setdefault("Origin", self.origin)
        data: Any = body
        if isinstance(body, Mapping):
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        tx = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            tx.request(method, path, data, sent, encode_chunked=hasattr(data, "__next__"))
            response = tx.getresponse()
            # A stream does not end; an error response does.
            text = response.read() if whole or response.status != 200 else b""
            answer = HttpResponse(response.status, response.headers, text)
            if answer.status == 200 and b'"page_secret"' in text:
                self.page_secrets[answer.cookie] = answer.json()["page_secret"]
            return answer
        finally:
            tx.close()

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def send(self, *frames: bytes, token: str = "") -> HttpResponse:
        """Send frames to the ingest route."""
        return self.ask(
            "POST", "/api/v1/ingest", b"".join(frames), token=token, headers={"Content-Type": FRAMES}
        )  # fmt: skip
