"""What the collector may record and where it goes: one plain record that travels with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

#: Topics whose events are kept by default: Dask's own failure reports and ours. ``print`` and ``warn`` carry user data.
DEFAULT_TOPICS = (
    "all",
    "scheduler",
    "worker-fail-hard",
    "invalid-worker-transition",
    "invalid-worker-task-state",
    "transitions",
    "worker-restart-memory",
)


@dataclass(frozen=True)
class Settings:
    """Every switch of the collector, with its default."""

    # Who and what the cluster is; the scheduler knows none of it.
    name: str = ""
    user: str = ""
    host: str = ""
    account: str = ""
    prices: dict[str, float] = field(default_factory=dict)
    # Privacy: each class of text has a switch. Function inputs are never read.
    code: bool = True
    profile: bool = True
    exception_text: bool = True
    keys: bool = True
    hostnames: bool = True
    topics: tuple[str, ...] = DEFAULT_TOPICS
    # What is recorded.
    edges: bool = True
    transfers: bool = True
    logs: bool = True
    children: bool = False
    # Whether a member of the account may shut the cluster down from the server.
    close: bool = True
    # How often, in seconds.
    flush_interval: float = 2.0
    sample_interval: float = 2.0
    state_interval: float = 5.0
    push_interval: float = 5.0
    profile_floor: float = 0.02
    # Where it goes.
    server: str = ""
    token: str = ""
    directory: str = ""
    spool: str = ""
    spool_limit: int = 64 * 1024 * 1024
    queue_limit: int = 32 * 1024 * 1024

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Settings from plain values; what this version does not know is ignored."""
        known = {item.name for item in fields(cls)}
        kept = {name: value for name, value in values.items() if name in known}
        if "topics" in kept:
            kept["topics"] = tuple(kept["topics"])
        return cls(**kept)

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "topics": list(self.topics)}

    def private(self) -> dict[str, bool]:
        """The switches that keep a class of text out."""
        return {name: getattr(self, name) for name in ("code", "profile", "exception_text", "keys", "hostnames")}

    def agent(self) -> dict[str, Any]:
        """The part a worker needs; no token among it."""
        return {
            "profile": self.profile,
            "profile_floor_s": self.profile_floor,
            "transfers": self.transfers,
            "logs": self.logs,
            "causes": True,
            "exception_text": self.exception_text,
            "keys": self.keys,
            "children": self.children,
            "push_interval_s": self.push_interval,
        }
