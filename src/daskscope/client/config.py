"""daskscope's keys in Dask's configuration, their defaults, and the collector settings made from them.

The keys below ``daskscope.analytics`` have the names known from hosted analytics, so that an existing configuration carries
over. Tokens are never stored here, because Dask's configuration is printed in bug reports.
"""

from __future__ import annotations

import getpass
import socket
from dataclasses import fields
from typing import Any

import dask.config
from dask.utils import parse_bytes, parse_timedelta

from daskscope.collector.settings import DEFAULT_TOPICS, NO_TEXT, Settings
from daskscope.collector.worker.sampler import MIN_INTERVAL_S
from daskscope.errors import DaskscopeError

DEFAULTS: dict[str, Any] = {
    "daskscope": {
        "server": None,
        "account": None,
        "name": None,
        "directory": None,
        "spool": {"directory": None, "limit": "64 MiB"},
        "prices": {},
        "analytics": {
            "disabled": False,
            "private": False,
            "computation": {"interval": "5s", "code": {"transmit": True}},
            "profile": {"transmit": True, "interval": "5s", "floor": "10ms"},
            "events": {"interval": "2s", "allow": list(DEFAULT_TOPICS)},
            "exceptions": {"transmit": True},
            "keys": {"transmit": True},
            "names": {"transmit": True},
            "hostnames": {"transmit": True},
            "samples": {"interval": "2s"},
            "edges": True,
            "transfers": True,
            "chunks": True,
            "files": {"transmit": False},
            "logs": "dask",
            "children": False,
            "close": {"allow": True},
        },
    }
}

dask.config.update_defaults(DEFAULTS)


def option(key: str) -> Any:
    """Return a setting of Dask's configuration, or its default: programs and test suites may clear the configuration."""
    default: Any = DEFAULTS
    for name in key.split("."):
        default = default[name]
    return dask.config.get(key, default)


def settings(*, private: bool | None = None, **overrides: Any) -> Settings:
    """Return the collector's settings from Dask's configuration, with user and host.

    With ``private``, no switch is on that records text, whatever else is given. Its default is in Dask's configuration.
    """
    get = option
    if private is None:
        private = bool(get("daskscope.analytics.private"))
    values: dict[str, Any] = {
        "user": _user(),
        "host": socket.gethostname(),
        "account": get("daskscope.account") or "",
        "prices": dict(get("daskscope.prices") or {}),
        "code": bool(get("daskscope.analytics.computation.code.transmit")),
        "profile": bool(get("daskscope.analytics.profile.transmit")),
        "exception_text": bool(get("daskscope.analytics.exceptions.transmit")),
        "keys": bool(get("daskscope.analytics.keys.transmit")),
        "names": bool(get("daskscope.analytics.names.transmit")),
        "hostnames": bool(get("daskscope.analytics.hostnames.transmit")),
        "topics": tuple(get("daskscope.analytics.events.allow") or ()),
        "edges": bool(get("daskscope.analytics.edges")),
        "transfers": bool(get("daskscope.analytics.transfers")),
        "chunks": bool(get("daskscope.analytics.chunks")),
        "files": bool(get("daskscope.analytics.files.transmit")),
        "logs": get("daskscope.analytics.logs"),
        "children": bool(get("daskscope.analytics.children")),
        "close": bool(get("daskscope.analytics.close.allow")),
        "flush_interval": _seconds("daskscope.analytics.events.interval"),
        "sample_interval": _seconds("daskscope.analytics.samples.interval"),
        "state_interval": _seconds("daskscope.analytics.computation.interval"),
        "push_interval": _seconds("daskscope.analytics.profile.interval"),
        "profile_floor": _sampling_floor("daskscope.analytics.profile.floor"),
        "spool": get("daskscope.spool.directory") or "",
        "spool_limit": int(parse_bytes(get("daskscope.spool.limit"))),
    }
    known = [item.name for item in fields(Settings)]
    unknown = [name for name in overrides if name not in known]
    if unknown:
        switches = ", ".join(["private", "logs", *(name for name, value in values.items() if isinstance(value, bool))])
        raise DaskscopeError(f"Unknown switch {unknown[0]!r}. Choose from: {switches}.")
    values.update(overrides)
    if private:
        values.update(NO_TEXT)
    values["logs"] = _logs(values["logs"])
    if not values["names"]:
        values.update(name="", user="")
    return Settings.of(values)


def _logs(value: Any) -> str:
    """Return whose log lines are recorded; an environment variable sets a text, code may set a boolean."""
    known = {"": "", "none": "", "false": "", "true": "dask", "dask": "dask", "all": "all"}
    text = str(value or "").strip().lower()
    if text not in known:
        raise DaskscopeError(f"logs is {value!r}. Choose 'dask', 'all' or False.")
    return known[text]


def _seconds(key: str) -> float:
    return float(parse_timedelta(option(key)))


def _sampling_floor(key: str) -> float:
    """Return the shortest interval between two samples of stacks."""
    value = option(key)
    if value is None:
        return MIN_INTERVAL_S
    try:
        seconds = _seconds(key)
    except (ValueError, KeyError, TypeError):
        raise DaskscopeError(f"{key} is {value!r}, which is not a duration. Set one such as '20ms'.") from None
    # A duration such as 10ms is parsed with a rounding error.
    if not seconds > MIN_INTERVAL_S - 1e-9:
        least = f"{1000 * MIN_INTERVAL_S:.0f}"
        raise DaskscopeError(f"{key} is {value!r}, shorter than {least} ms. Set '{least}ms' or longer.")
    return seconds


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
