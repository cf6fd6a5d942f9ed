"""daskscope's part of dask's configuration: the keys, their defaults, and the collector settings they amount to.

The tree below ``daskscope.analytics`` has the names people know from hosted analytics, so that an existing configuration
carries over. Tokens never live here: dask's configuration is printed in bug reports.
"""

from __future__ import annotations

import getpass
import socket
from dataclasses import fields
from typing import Any

import dask.config
from dask.utils import parse_bytes, parse_timedelta

from daskscope.collector.settings import DEFAULT_TOPICS, Settings
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
            "computation": {"interval": "5s", "code": {"transmit": True}},
            "profile": {"transmit": True, "interval": "5s", "floor": "20ms"},
            "events": {"interval": "2s", "allow": list(DEFAULT_TOPICS)},
            "exceptions": {"transmit": True},
            "keys": {"transmit": True},
            "hostnames": {"transmit": True},
            "samples": {"interval": "2s"},
            "edges": True,
            "transfers": True,
            "logs": True,
            "children": False,
            "close": {"allow": True},
        },
    }
}

dask.config.update_defaults(DEFAULTS)


def settings(**overrides: Any) -> Settings:
    """The collector's settings according to dask's configuration, and who is asking."""
    get = dask.config.get
    values: dict[str, Any] = {
        "user": _user(),
        "host": socket.gethostname(),
        "account": get("daskscope.account") or "",
        "prices": dict(get("daskscope.prices") or {}),
        "code": bool(get("daskscope.analytics.computation.code.transmit")),
        "profile": bool(get("daskscope.analytics.profile.transmit")),
        "exception_text": bool(get("daskscope.analytics.exceptions.transmit")),
        "keys": bool(get("daskscope.analytics.keys.transmit")),
        "hostnames": bool(get("daskscope.analytics.hostnames.transmit")),
        "topics": tuple(get("daskscope.analytics.events.allow") or ()),
        "edges": bool(get("daskscope.analytics.edges")),
        "transfers": bool(get("daskscope.analytics.transfers")),
        "logs": bool(get("daskscope.analytics.logs")),
        "children": bool(get("daskscope.analytics.children")),
        "close": bool(get("daskscope.analytics.close.allow")),
        "flush_interval": _seconds("daskscope.analytics.events.interval"),
        "sample_interval": _seconds("daskscope.analytics.samples.interval"),
        "state_interval": _seconds("daskscope.analytics.computation.interval"),
        "push_interval": _seconds("daskscope.analytics.profile.interval"),
        "profile_floor": _seconds("daskscope.analytics.profile.floor"),
        "spool": get("daskscope.spool.directory") or "",
        "spool_limit": int(parse_bytes(get("daskscope.spool.limit"))),
    }
    known = [item.name for item in fields(Settings)]
    unknown = [name for name in overrides if name not in known]
    if unknown:
        switches = ", ".join(name for name, value in values.items() if isinstance(value, bool))
        raise DaskscopeError(f"There is no switch {unknown[0]!r}. The switches are {switches}.")
    return Settings.of({**values, **overrides})


def _seconds(key: str) -> float:
    return float(parse_timedelta(dask.config.get(key)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
