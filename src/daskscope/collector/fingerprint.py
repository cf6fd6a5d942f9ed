"""Find the innermost cause of a failure, and a fingerprint of it that is the same on every machine."""

from __future__ import annotations

import ast
import hashlib
import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: (file, function) of a frame; without the line, so that an edit above it does not change the fingerprint.
Frame = tuple[str, str]

#: Longer chains do not occur, but a broken ``__getattribute__`` could return an endless one.
MAX_DEPTH = 20

#: Only this much of a message counts; a message may contain a whole array.
MAX_MESSAGE = 2_000

#: Innermost frames that count: a runaway recursion has 1,000.
MAX_FRAMES = 30

_LIBRARY = ("dask/", "distributed/", "tornado/", "concurrent/", "asyncio/")

# No two alternatives start at the same place, and none runs past another's start, so the scan is linear.
_VARIABLE = re.compile(
    r"""
      (?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)
    | (?P<address>\b[a-z][a-z0-9+]{0,15}://[^\s'"<>]*)
    | (?P<quoted>(?<!\w)(?:'[^'\n]*'|"[^"\n]*"|`[^`\n]*`)(?!\w))
    | (?P<path>(?<![\w.])(?:[A-Za-z]:)?(?:[\\/][\w.@+~-]+){2,})
    | (?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b)
    | (?P<number>\d+(?:[._]\d+)*(?:[eE][+-]?\d+)?)
    """,
    re.VERBOSE,
)
_FRAME = re.compile(r'^ *(?:\| *)?File "(?P<file>[^"\n]*)", line \d+, in (?P<function>.*)$', re.MULTILINE)
_CALL = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)\((?P<args>.*)\)$", re.DOTALL)
_COLON = re.compile(r"^(?P<type>[A-Za-z_][\w.]*): (?P<message>.*)$", re.DOTALL)
_WORD = re.compile(r"<?(?P<type>[A-Za-z_][\w.]*)")
_INSTALLED = re.compile(r"(?<![^/])(?:site-packages|dist-packages|lib/python3\.\d+t?)/")
_CELL = re.compile(r"ipykernel_\d+/|<ipython-input-")


@dataclass(frozen=True)
class Cause:
    """The innermost cause of a failure."""

    type: str
    message: str
    fingerprint: str


def fingerprint(type_name: str, message: str, frames: Iterable[Frame]) -> str:
    """Return 16 hex digits of a hash of the type, the message without its variable parts, and the user's frames without lines."""
    parts = [type_name, normalise_message(message)]
    parts += [f"{file}:{function}" for file, function in relevant_frames(frames)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def normalise_message(message: str) -> str:
    """Return the message with numbers, addresses, paths and quoted text replaced by placeholders."""
    return _VARIABLE.sub(lambda found: f"<{found.lastgroup}>", message[:MAX_MESSAGE])


def relevant_frames(frames: Iterable[Frame]) -> list[Frame]:
    """Return the frames that count: no library frames, no repeats, and file names without machine-specific parts."""
    short = [(short_file(file), function) for file, function in frames]
    user_frames = [frame for frame in short if not frame[0].startswith(_LIBRARY)]
    kept: list[Frame] = []
    # A failure inside Dask itself has library frames only: keep its last one.
    for frame in user_frames or short[-1:]:
        if not kept or kept[-1] != frame:
            kept.append(frame)
    return kept[-MAX_FRAMES:]


def short_file(file: str) -> str:
    """Return a file name without the part that differs between machines."""
    path = file.replace("\\", "/")
    if _CELL.search(path):
        return "<cell>"
    ends = [found.end() for found in _INSTALLED.finditer(path)]
    return path[ends[-1] :] if ends else "/".join(path.split("/")[-2:])


def from_text(exception_text: str, traceback_text: str) -> Cause:
    """Return the cause from ``repr(exception)`` and ``traceback.format_tb``, which is all the scheduler receives."""
    type_name, message = _split_repr(exception_text)
    frames = [(found["file"], found["function"]) for found in _FRAME.finditer(traceback_text)]
    return Cause(type_name, message, fingerprint(type_name, message, frames))


def from_exception(exc: BaseException) -> Cause:
    """Return the innermost cause of an exception object."""
    inner = innermost(exc)
    type_name, message = type(inner).__name__, message_of(inner)
    return Cause(type_name, message, fingerprint(type_name, message, _frames_of(inner)))


def innermost(exc: BaseException) -> BaseException:
    """Return the end of the chain of causes, which a traceback prints first."""
    seen = {id(exc)}
    for _ in range(MAX_DEPTH):
        following = _next_cause(exc)
        if following is None or id(following) in seen:
            break
        seen.add(id(following))
        exc = following
    return exc


def message_of(exc: BaseException) -> str:
    """Return ``str(exc)``, or a substitute if that raises."""
    for text in (str, repr):
        try:
            return str(text(exc))
        except Exception:  # noqa: BLE001 - a user's exception class may raise anything
            continue
    return "<no text: str() and repr() of this exception raise>"


def _next_cause(exc: BaseException) -> BaseException | None:
    if exc.__cause__ is not None:
        return exc.__cause__
    if exc.__context__ is not None and not exc.__suppress_context__:
        return exc.__context__
    # ExceptionGroup is new in Python 3.11; the backport has the same attribute.
    members = getattr(exc, "exceptions", None)
    if isinstance(members, (list, tuple)) and members and isinstance(members[0], BaseException):
        return members[0]
    return None


def _frames_of(exc: BaseException) -> list[Frame]:
    walked = traceback.walk_tb(exc.__traceback__)
    return [(frame.f_code.co_filename, frame.f_code.co_name) for frame, _ in walked]


def _split_repr(text: str) -> tuple[str, str]:
    text = text.strip()
    if call := _CALL.match(text):
        name = call["type"].rpartition(".")[2]
        return name, _message_of_args(name, call["args"])
    if colon := _COLON.match(text):
        return colon["type"].rpartition(".")[2], colon["message"]
    word = _WORD.match(text)
    return (word["type"].rpartition(".")[2] if word else "Exception"), text


def _message_of_args(name: str, text: str) -> str:
    """Return ``str(exc)`` from the arguments in its ``repr``; the text itself if they are not literals."""
    if not text:
        return ""
    try:
        args: Sequence[object] = ast.literal_eval(f"({text.rstrip().rstrip(',')},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError, SystemError):
        # SystemError: on CPython 3.11, if another thread parses at the same time (gh-106905).
        return text
    if len(args) != 1:
        return str(args)
    return repr(args[0]) if name == "KeyError" else str(args[0])
