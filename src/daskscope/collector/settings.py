"""The collector's settings: what it may record, and where it sends the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

#: Topics whose events are kept by default: Dask's own reports of failures. Not ``print`` and ``warn``, which carry user data.
DEFAULT_TOPICS = (
    "all",
    "scheduler",
    "worker-fail-hard",
    "invalid-worker-transition",
    "invalid-worker-task-state",
    "transitions",
    "worker-restart-memory",
)

#: Every privacy switch, in the position that records no text.
NO_TEXT: Mapping[str, Any] = {
    "code": False,
    "profile": False,
    "exception_text": False,
    "keys": False,
    "names": False,
    "hostnames": False,
    "logs": "",
    "files": False,
    "topics": (),
}


@dataclass(frozen=True)
class Settings:
    """Every setting of the collector, with its default."""

    # The identity of the cluster, which the scheduler does not know.
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
    names: bool = True
    hostnames: bool = True
    #: Loggers whose lines are recorded: "dask" (Dask's own), "all" (also the user's), or none if empty.
    logs: str = "dask"
    #: Paths and URLs of the files that coffea and uproot read. The names of datasets and columns follow ``keys``.
    files: bool = False
    topics: tuple[str, ...] = DEFAULT_TOPICS
    # What is recorded.
    edges: bool = True
    transfers: bool = True
    chunks: bool = True
    children: bool = False
    # Whether a member of the account may shut the cluster down from the server.
    close: bool = True
    # How often, in seconds.
    flush_interval: float = 2.0
    sample_interval: float = 2.0
    state_interval: float = 5.0
    push_interval: float = 5.0
    profile_floor: float = 0.01
    # Where it goes.
    server: str = ""
    token: str = ""
    directory: str = ""
    spool: str = ""
    spool_limit: int = 64 * 1024 * 1024
    queue_limit: int = 32 * 1024 * 1024

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Create settings from a plain dict; names that this version does not know are ignored."""
        known = {item.name for item in fields(cls)}
        kept = {name: value for name, value in values.items() if name in known}
        if "topics" in kept:
            kept["topics"] = tuple(kept["topics"])
        return cls(**kept)

    def plain(self) -> dict[str, Any]:
        """Return the settings as a plain dict."""
        return {**asdict(self), "topics": list(self.topics)}

    def recorded_text(self) -> dict[str, bool]:
        """Return which classes of text are recorded, by switch; ``user_logs`` and ``logs`` share one."""
        switches = {name: bool(getattr(self, name)) for name in NO_TEXT}
        return {**switches, "user_logs": self.logs == "all"}

    def for_agent(self) -> dict[str, Any]:
        """Return the settings that an agent needs; the token is not among them."""
        return {
            "profile": self.profile,
            "profile_floor_s": self.profile_floor,
            "transfers": self.transfers,
            "chunks": self.chunks,
            "files": self.files,
            "logs": self.logs,
            "causes": True,
            "exception_text": self.exception_text,
            "keys": self.keys,
            "account": self.account,
            "children": self.children,
            "push_interval_s": self.push_interval,
        }
