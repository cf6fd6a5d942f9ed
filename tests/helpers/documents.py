"""Fetch documents from a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.helpers.hosted import HostedServer

SECOND = 1_000_000


@dataclass
class Documents:
    """Fetch documents, with times in seconds since the cluster began."""

    server: HostedServer
    start_us: int

    def __call__(self, path: str) -> tuple[float, float, dict[str, Any]]:
        report: dict[str, Any] = self.server.ask("GET", f"{path}/document/report.json").json()
        begin, end = ((report[name] - self.start_us) / SECOND for name in ("start_us", "stop_us"))
        return begin, end, report
