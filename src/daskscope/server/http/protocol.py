"""HTTP/1.1 with limits on headers, their size and how long they may take, and on readers that stop."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Maximum bytes of a request line and its headers.
MAX_HEADERS = 64 * 1024
#: How long they may take. A connection that sends a byte now and then would otherwise stay open forever.
HEADERS_S = 10.0
#: How long a client may take to read 48 kB of a response.
READ_S = 60.0
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class StrictConnection(h11.Connection):
    """Refuses a request with two lengths: h11 uses one of them, and a proxy in front may use the other."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request) and {b"content-length", b"transfer-encoding"} <= dict(event.headers).keys():
            raise h11.RemoteProtocolError("Content-Length together with Transfer-Encoding")
        return event


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol on h11, with deadlines. uvicorn only times connections between two requests."""

    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.conn = StrictConnection(h11.SERVER, MAX_HEADERS)
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)
        # Also resumes writing.
        self.resume_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _set_deadline(self) -> None:
        # Idle: the headers of a request are not complete.
        if self.conn.their_state is not h11.IDLE:
            self._clear_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_S, self._close_slow)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()
