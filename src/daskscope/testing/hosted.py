"""A whole server in this process: the real one, on a free port of loopback, with a directory of its own."""

from __future__ import annotations

import functools
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from starlette.applications import Starlette

from daskscope.server.identity import COOKIE
from daskscope.server.jobs import Jobs
from daskscope.server.run import address, listen, make_server, set_up_link
from daskscope.server.services import Services, now_us, open_services
from daskscope.server.settings import Settings
from daskscope.storage import sessions, tokens
from daskscope.storage.accounts import create_account, find_account, set_member
from daskscope.storage.users import create_user, find_user, hash_password

PASSWORD = "correct horse battery"
FRAMES = "application/vnd.daskscope.frames"

Body = bytes | Iterator[bytes] | Mapping[str, Any] | None


@functools.cache
def _hashed() -> str:
    return hash_password(PASSWORD)


class MovingClock:
    """The server's clock, which can be moved on."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us

    def move(self, *, seconds: float = 0.0, days: float = 0.0) -> None:
        self.ahead_us += int((seconds + days * 86_400) * 1e6)


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

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
        """The code of an error in the one shape they all have."""
        error = self.json()["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        return str(error["code"])

    @property
    def cookie(self) -> str:
        """The session this answer opened."""
        return str(self.headers["Set-Cookie"]).partition(";")[0].partition("=")[2]


class HostedServer:
    """Runs a server in a thread while its block lasts; users, accounts, tokens and sessions are made in its database."""

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
        self._clock = clock
        self._with_jobs = jobs

    def __enter__(self) -> HostedServer:
        listening = listen(self.settings)
        self.services = open_services(self.settings, self._clock)
        self.port = int(listening.getsockname()[1])
        self.services.url = address(self.settings, self.port)
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

    @property
    def url(self) -> str:
        return self.services.url

    @property
    def app(self) -> Starlette:
        """What answers."""
        app = self._server.config.app
        assert isinstance(app, Starlette)
        return app

    # ---------------------------------------------------------------- people

    def make_account(self, name: str, **members: Literal["viewer", "member", "owner"]) -> int:
        """An account with these members, who are made where they are not there yet."""
        with self.services.database.write() as connection:
            now = self.services.clock()
            account = find_account(connection, name) or create_account(connection, self.services.vault, name, now)
            for user, role in members.items():
                known = find_user(connection, user) or create_user(connection, user, _hashed(), now)
                set_member(connection, account.id, known.id, role, now)
        return account.id

    def make_user(self, name: str, *, admin: bool = False) -> int:
        """A user whose password is ``PASSWORD``."""
        with self.services.database.write() as connection:
            return create_user(connection, name, _hashed(), self.services.clock(), admin=admin).id

    def make_token(self, user: str, account: str, *scopes: str, cluster: str = "", expires_us: int = 0) -> str:
        """A token, with every scope unless some are named."""
        with self.services.database.write() as connection:
            owner, of = find_user(connection, user), find_account(connection, account)
            assert owner is not None
            assert of is not None
            _, secret = tokens.create_token(
                connection,
                account=of.id,
                user=owner.id,
                scopes=frozenset(scopes or tokens.SCOPES),
                now_us=self.services.clock(),
                label="made by a test",
                expires_us=expires_us,
                cluster=cluster,
            )
        return secret

    def make_session(self, user: str) -> str:
        """A browser session: what its cookie holds."""
        with self.services.database.write() as connection:
            known = find_user(connection, user)
            assert known is not None
            return sessions.open_session(connection, known.id, "a test", self.services.clock())

    # ---------------------------------------------------------------- asking

    def ask(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        token: str = "",
        session: str = "",
        headers: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> Answer:
        """One request; a session's are made as a page of the server makes them. Without ``whole``, the head of the answer."""
        sent = dict(headers or {})
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if session:
            sent.setdefault("Cookie", f"{COOKIE}={session}")
            if method not in ("GET", "HEAD"):
                sent.setdefault("Origin", self.origin)
        data: Any = body
        if isinstance(body, Mapping):
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, data, sent, encode_chunked=hasattr(data, "__next__"))
            response = connection.getresponse()
            # A stream has no end; a refusal has.
            text = response.read() if whole or response.status != 200 else b""
            return Answer(response.status, response.headers, text)
        finally:
            connection.close()

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def send(self, *frames: bytes, token: str = "") -> Answer:
        """Frames to the ingest route."""
        return self.ask(
            "POST", "/api/v1/ingest", b"".join(frames), token=token, headers={"Content-Type": FRAMES}
        )  # fmt: skip
