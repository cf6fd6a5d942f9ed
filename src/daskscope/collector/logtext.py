"""The text of a log record, without what a task was given to work on."""

from __future__ import annotations

import logging
import traceback

#: Dask prints the arguments of the task (2023.12: ``args:`` and ``kwargs:``; 2026.8: ``Task:``) or of the function into these.
_WITH_INPUTS = ("Compute Failed", "Run Failed")
_KEPT_FIELDS = ("Key", "Exception", "Function")
#: And the very data into these.
_WITH_DATA = ("Failed to serialize ", "Failed to deserialize ", "truncated data stream")


def text_of(record: logging.LogRecord, *, exception_text: bool = True, keys: bool = True) -> str:
    """Message and traceback of a record.

    Without ``exception_text``, of an exception only its type; without ``keys``, nothing in Dask's own lines that may be one.
    """
    template = record.msg if isinstance(record.msg, str) else ""
    if template.startswith(_WITH_INPUTS):
        text = _fields(record, exception_text=exception_text, keys=keys)
    elif template.startswith(_WITH_DATA):
        text = _types_only(template, record.args)
    elif not keys and record.name.startswith("distributed") and record.args:
        text = _no_keys(template, record.args)
    else:
        text = record.getMessage()
    return text + _exception(record, exception_text=exception_text)


def _fields(record: logging.LogRecord, *, exception_text: bool, keys: bool) -> str:
    """The harmless fields of a message made of lines ``Name: value``."""
    head, *lines = str(record.msg).split("\n")
    values = list(record.args) if isinstance(record.args, tuple) else []
    fields = [line for line in lines if ":" in line]
    if values and len(fields) != len(values):
        return head  # a layout we do not know: say no more than what happened
    text = [head]
    for number, field in enumerate(fields):
        name, _, rest = field.partition(":")
        if name in _KEPT_FIELDS and (exception_text or name != "Exception") and (keys or name != "Key"):
            text.append(f"{name}: {values[number] if values else rest.strip()}")
    return "\n".join(text)


def _no_keys(template: str, args: object) -> str:
    """Dask's line with its numbers and addresses; whatever else it names may be a key."""
    values = args if isinstance(args, tuple) else (args,)
    shown = tuple(
        value if isinstance(value, (int, float)) or (isinstance(value, str) and "://" in value) else "<...>"
        for value in values
    )
    try:
        return template % shown
    except (TypeError, ValueError):
        return template


def _types_only(template: str, args: object) -> str:
    values = args if isinstance(args, tuple) else (args,) if args else ()
    names = tuple(f"<{type(value).__name__}>" for value in values)
    try:
        return template.replace("%d", "%s").replace("%r", "%s") % names
    except (TypeError, ValueError):
        return template


def _exception(record: logging.LogRecord, *, exception_text: bool) -> str:
    info = record.exc_info
    if not isinstance(info, tuple) or info[1] is None:
        return ""
    if not exception_text:
        return f"\n{type(info[1]).__name__}"
    return "\n" + "".join(traceback.format_exception(*info)).rstrip()
