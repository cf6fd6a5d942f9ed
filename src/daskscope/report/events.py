"""What happened besides tasks: events and log lines in one list."""

from __future__ import annotations

import logging

from daskscope.model.recording import Recording
from daskscope.report.schema import Event

MOST_EVENTS = 2_000


def events(recording: Recording) -> tuple[list[Event], int]:
    """Events and log lines in the order of time, the latest where there are too many, and how many there were."""
    found = sorted([*_events(recording), *_logs(recording)], key=lambda event: event["time_us"])
    return found[-MOST_EVENTS:], len(found)


def _events(recording: Recording) -> list[Event]:
    names = ("time_us", "topic", "kind", "worker", "detail")
    rows = zip(*(recording["events"][name].tolist() for name in names), strict=True)
    return [
        {"time_us": time, "source": topic, "kind": kind, "worker": worker, "text": detail, "repeats": 1}
        for time, topic, kind, worker, detail in rows
    ]


def _logs(recording: Recording) -> list[Event]:
    names = ("time_us", "level", "logger", "worker", "message", "repeats")
    rows = zip(*(recording["logs"][name].tolist() for name in names), strict=True)
    return [
        {
            "time_us": time,
            "source": logger,
            "kind": logging.getLevelName(level).lower(),
            "worker": worker,
            "text": message,
            "repeats": repeats,
        }
        for time, level, logger, worker, message, repeats in rows
    ]
