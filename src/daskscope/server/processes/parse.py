"""Check and roll up frames, in the server or in a process of its own.

A busy server starts such a process (``parsing.py``). Requests and replies follow each other on a socket, which is its standard
input. Each is preceded by its length.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Iterable, Iterator

import msgspec

from daskscope.analysis.running.rollup import ROLLED_UP, RollUp, roll_up
from daskscope.errors import NewerFormat, WireError
from daskscope.server.processes.child import limit_memory
from daskscope.wire.decode import Frame, read_frame

#: Maximum characters of a body, counting shared texts once per row: a thousand errors have 8 million.
MAX_TEXT = 32_000_000
#: Bytes of the length before a request or reply.
LENGTH_NBYTES = 4
#: Maximum memory of the process. Decoding the largest frame takes 500 MB.
MEMORY_NBYTES = 1024 * 1024 * 1024


class TooMuchText(Exception):
    """The texts of a body are too long in all."""


class RollUpFailed(Exception):
    """The roll-up of valid frames failed, which is a bug."""


ERRORS = {
    "invalid": WireError,
    "newer": NewerFormat,
    "text": TooMuchText,
    "memory": MemoryError,
    "failed": RollUpFailed,
}


class Reply(msgspec.Struct, frozen=True):
    """The roll-ups of the frames of a request, or the error."""

    roll_ups: list[RollUp] = []
    #: ``invalid``, ``newer``, ``text``, ``memory`` or ``failed``.
    error: str = ""
    message: str = ""
    #: CPU time of this request.
    cpu_s: float = 0.0

    def result(self) -> list[RollUp]:
        """Return the roll-ups, or raise the error as ``roll_up_frames`` does."""
        if self.error:
            raise ERRORS[self.error](self.message)
        return self.roll_ups


def roll_up_frames(frames: Iterable[Frame]) -> list[RollUp]:
    """Check frames and return the roll-up of each. Raise an error if one is invalid."""
    roll_ups, texts = list[RollUp](), 0
    for frame in frames:
        roll_ups.append(_rolled_up(frame))
        texts += roll_ups[-1].text_length
        if texts > MAX_TEXT:
            raise TooMuchText
    return roll_ups


def _rolled_up(frame: Frame) -> RollUp:
    """Check a frame, and roll up the columns of it that are added up."""
    names = ROLLED_UP.get(frame.header.table)
    if names is None:
        frame.check()
        return RollUp(rows=frame.header.rows)
    if frame.header.table == "exceptions":
        # Keys of errors are searched in the catalog; keys of tasks are read from their batches.
        return roll_up(frame.table())
    is_small_part = 2 * len(names) < len(frame.header.definition.columns)
    return roll_up(frame.only(names) if is_small_part else frame.without_keys())


def reply_to(body: bytes) -> Reply:
    """Return the reply to a request, which consists of frames."""
    began = time.process_time()
    roll_ups, error, message = list[RollUp](), "", ""
    try:
        roll_ups = roll_up_frames(_frames_of(body))
    except NewerFormat as newer:
        error, message = "newer", str(newer)
    except WireError as invalid:
        error, message = "invalid", str(invalid)
    except TooMuchText:
        error = "text"
    except MemoryError:
        error = "memory"
    except Exception as other:  # noqa: BLE001 (the server reports it; the process serves other accounts as well)
        error, message = "failed", repr(other)
    return Reply(roll_ups, error, message, time.process_time() - began)


def _frames_of(body: bytes) -> Iterator[Frame]:
    offset, view = 0, memoryview(body)
    while offset < len(body):
        frame = read_frame(view, offset)
        yield frame
        offset += frame.size


def serve(connection: socket.socket) -> None:
    """Reply to requests until the other end closes the connection."""
    with connection.makefile("rb") as requests:
        while head := requests.read(LENGTH_NBYTES):
            length = int.from_bytes(head, "little")
            body = requests.read(length)
            if len(body) < length:
                return
            reply = msgspec.msgpack.encode(reply_to(body))
            connection.sendall(len(reply).to_bytes(LENGTH_NBYTES, "little") + reply)


def main() -> None:
    # Ctrl+C in a terminal reaches all of its processes. This one ends when the server closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_memory(MEMORY_NBYTES)
    # The server may end while it waits for a reply.
    with socket.socket(fileno=0) as connection, contextlib.suppress(OSError):
        serve(connection)


if __name__ == "__main__":
    main()
