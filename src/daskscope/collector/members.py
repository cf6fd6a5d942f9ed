"""Workers and clients: who is there, who left, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from .verdict import Traces, judge

#: Keys named in a worker's last row; the count is always exact.
KEYS_KEPT = 100


@dataclass
class Member:
    """A worker being followed."""

    row: dict[str, Any]
    traces: Traces = field(default_factory=Traces)
    processing: Collection[Any] = ()
    lost: int = 0


class Members:
    """Follows workers and clients."""

    def __init__(self, scheduler: Any, add: Callable[..., None], *, hostnames: bool, keys: bool) -> None:
        self.scheduler = scheduler
        self.add = add
        self.hostnames = hostnames
        self.keys = keys
        self.workers: dict[str, Member] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.closing = False

    def joined(self, address: str, now_us: int) -> None:
        """A worker is there."""
        worker = self.scheduler.workers[address]
        row = {
            "worker": address,
            "server_id": str(getattr(worker, "server_id", "") or address),
            "name": str(worker.name),
            "host": worker.host if self.hostnames else "",
            "pid": int(getattr(worker, "pid", 0) or 0),
            "nthreads": int(worker.nthreads),
            "memory_limit": int(worker.memory_limit or 0),
            "nanny": str(worker.nanny or ""),
            "start_us": now_us,
            "versions": _json((worker.versions or {}).get("packages", worker.versions)),
        }
        self.workers[address] = Member(row)
        self._write(row, now_us)

    def agent(self, address: str, state: str, now_us: int) -> None:
        """How the agent on a worker is doing."""
        member = self.workers.get(address)
        if member is not None and member.row.get("agent") != state:
            member.row["agent"] = state[:500]
            self._write(member.row, now_us)

    def left(self, address: str, stimulus: str, now_us: int) -> None:
        """A worker is gone: the time for a verdict."""
        member = self.workers.pop(address, None)
        if member is None:
            return
        member.traces.stimulus = stimulus
        member.traces.scheduler_closing |= self.closing
        verdict, evidence = judge(member.traces)
        named = [_text(key) for key in list(member.processing)[:KEYS_KEPT]] if self.keys else []
        member.row.update(
            end_us=now_us,
            verdict=verdict,
            evidence=evidence,
            processing=named,
            processing_count=len(member.processing),
            lost_count=member.lost,
        )
        self._write(member.row, now_us)

    def event(self, topic: str, message: dict[str, Any]) -> None:
        """Keep what an event says about a worker's end."""
        action = message.get("action")
        if action == "remove-worker":
            self._removed(message.get("worker", topic), message)
        elif action == "closing-worker" and topic in self.workers:
            traces = self.workers[topic].traces
            traces.closing = str(message.get("reason") or "")
            traces.restarted |= traces.closing.startswith(("client-restart", "restart"))
        elif action == "retire-workers":
            self._retired(message.get("retired") or message.get("workers") or ())
        elif action == "worker-ttl-timed-out":
            for address in message.get("workers", ()):
                if address in self.workers:
                    self.workers[address].traces.ttl = float(message.get("ttl") or 0)
        elif action == "restart-workers":
            for address in message.get("workers") or self.workers:
                if address in self.workers:
                    self.workers[address].traces.restarted = True
        elif topic == "worker-restart-memory" and message.get("worker") in self.workers:
            self.workers[message["worker"]].traces.memory_kill = int(message.get("rss") or 0)

    def _removed(self, address: str, message: dict[str, Any]) -> None:
        member = self.workers.get(address)
        if member is not None:
            member.processing = message.get("processing-tasks") or ()
            member.lost = len(message.get("lost-computed-tasks") or ())
            member.traces.retired |= bool(message.get("expected")) and not self.closing

    def _retired(self, retired: Any) -> None:
        for item in retired:
            address = item if isinstance(item, str) else getattr(item, "address", "")
            if address in self.workers:
                self.workers[address].traces.retired = True

    def connected(self, client: str, now_us: int) -> None:
        """A client is there."""
        state = self.scheduler.clients.get(client)
        versions = getattr(state, "versions", None) or {}
        row = {"client": client, "connect_us": now_us, "versions": _json(versions.get("packages", versions))}
        self.clients[client] = row
        self._write_client(row, now_us)

    def disconnected(self, client: str, now_us: int) -> None:
        row = self.clients.pop(client, None)
        if row is not None:
            row["disconnect_us"] = now_us
            self.add("clients", seen_us=now_us, **row)

    def tick(self, now_us: int) -> None:
        """Clients hold results; how many and how large is half the answer to 'why is it still running'."""
        for client, row in self.clients.items():
            state = self.scheduler.clients.get(client)
            if state is None:
                continue
            wanted = state.wants_what
            # A client may hold a million keys: their bytes are added up only while that is cheap (20 ns a key).
            held = sum(max(task.nbytes, 0) for task in wanted) if len(wanted) <= 20_000 else -1
            facts = (len(wanted), held)
            if (row.get("held_keys"), row.get("held_nbytes")) != facts:
                row["held_keys"], row["held_nbytes"] = facts
                self._write_client(row, now_us)

    def _write_client(self, row: dict[str, Any], now_us: int) -> None:
        state = self.scheduler.clients.get(row["client"])
        row["last_seen_us"] = int(getattr(state, "last_seen", 0) * 1e6)
        self.add("clients", seen_us=now_us, **row)

    def _write(self, row: dict[str, Any], now_us: int) -> None:
        self.add("workers", seen_us=now_us, **row)


def _text(key: Any) -> str:
    return (key if isinstance(key, str) else str(key))[:500]


def _json(value: Any) -> str:
    return json.dumps(value, default=str)
