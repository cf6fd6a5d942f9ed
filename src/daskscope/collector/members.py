"""Workers and clients: who is there, who left, and why."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .verdict import Traces, judge

#: Keys named in a worker's last row; the count is always exact.
KEYS_KEPT = 100
#: Workers that left this long before the scheduler closes left because of that.
CLOSING_US = 10_000_000
#: How old the last sign of a client may be in its row.
CLIENT_SEEN_US = 30_000_000
#: Keys of one client that are looked at; beyond, all it wants are taken to be in memory, and -1 is written for their bytes.
HELD_LIMIT = 200_000


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
        #: Workers that left in the last moments: when the cluster closes, they were the beginning of it.
        self._just_left: deque[Member] = deque(maxlen=1000)

    def joined(self, address: str, now_us: int, since_us: int | None = None) -> None:
        """A worker is there, since now or before: the last row counts, so it must not cut off what an earlier recording saw."""
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
            "start_us": now_us if since_us is None else since_us,
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
        self._just_left.append(member)
        named = [_text(key) for key in islice(member.processing, KEYS_KEPT)] if self.keys else []
        member.row.update(
            end_us=now_us,
            processing=named,
            processing_count=len(member.processing),
            lost_count=member.lost,
        )
        self._judge(member, now_us)

    def cluster_closes(self, now_us: int, worked_us: int) -> None:
        """The scheduler is closing; a LocalCluster has closed its workers by then, which until now looked like a scale-down.

        ``worked_us`` is when the cluster last did anything: a worker that left before was not part of the closing. One that did not
        announce its end was not closed by anybody, however soon the cluster was.
        """
        self.closing = True
        for member in self._just_left:
            announced = member.traces.closing is not None
            if announced and max(worked_us, now_us - CLOSING_US) <= member.row["end_us"]:
                member.traces.scheduler_closing = True
                self._judge(member, now_us)

    def _judge(self, member: Member, now_us: int) -> None:
        verdict, evidence = judge(member.traces)
        if (member.row.get("verdict"), member.row.get("evidence")) != (verdict, evidence):
            member.row.update(verdict=verdict, evidence=evidence)
            self._write(member.row, now_us)

    def event(self, topic: str, message: Mapping[Any, Any]) -> None:
        """Keep what an event says about a worker's end. Anybody may log one, so nothing is taken for granted."""
        action = message.get("action")
        if topic == "worker-restart-memory":
            for member in self._named(message.get("worker")):
                member.traces.memory_kill = _number(message.get("rss"), int)
        elif not isinstance(action, str):
            return
        elif action == "remove-worker":
            self._removed(message.get("worker", topic), message)
        elif action == "closing-worker":
            self._announced(topic, str(message.get("reason") or "")[:500])
        elif action == "retire-workers":
            for member in self._named(message.get("retired") or message.get("workers")):
                member.traces.retired = True
        elif action == "worker-ttl-timed-out":
            for member in self._named(message.get("workers")):
                member.traces.ttl = _number(message.get("ttl"), float)
        elif action == "restart-workers":
            for member in self._named(message.get("workers") or self.workers):
                member.traces.restarted = True

    def _announced(self, address: Any, reason: str) -> None:
        for member in self._named(address):
            member.traces.closing = reason
            member.traces.restarted |= reason.startswith(("client-restart", "restart"))

    def _removed(self, address: Any, message: Mapping[Any, Any]) -> None:
        for member in self._named(address):
            processing, lost = message.get("processing-tasks"), message.get("lost-computed-tasks")
            member.processing = processing if isinstance(processing, _SEVERAL) else ()
            member.lost = len(lost) if isinstance(lost, _SEVERAL) else 0
            member.traces.retired |= message.get("expected") is True and not self.closing

    def _named(self, addresses: Any) -> list[Member]:
        """The workers we follow among those an event names, by address or as objects that have one."""
        several = addresses if isinstance(addresses, _SEVERAL) else (addresses,)
        names = [item if isinstance(item, str) else getattr(item, "address", None) for item in several]
        return [self.workers[name] for name in names if isinstance(name, str) and name in self.workers]

    def connected(self, client: str, now_us: int, since_us: int | None = None) -> None:
        """A client is there, since now or before."""
        state = self.scheduler.clients.get(client)
        versions = getattr(state, "versions", None) or {}
        row = {
            "client": client,
            "connect_us": now_us if since_us is None else since_us,
            "versions": _json(versions.get("packages", versions)),
        }
        self.clients[client] = row
        self._write_client(row, now_us)

    def disconnected(self, client: str, now_us: int) -> None:
        row = self.clients.pop(client, None)
        if row is not None:
            row["disconnect_us"] = now_us
            self.add("clients", seen_us=now_us, **row)

    def round(self, now_us: int) -> Iterator[None]:
        """Clients hold results; how many and how large is half the answer to 'why is it still running'.

        A piece at a time: a client may hold a million keys.
        """
        for client, row in list(self.clients.items()):
            state = self.scheduler.clients.get(client)
            if state is None or client not in self.clients:
                continue
            facts = (len(state.wants_what), -1)
            if facts[0] <= HELD_LIMIT:
                keys = held = 0
                for number, task in enumerate(list(state.wants_what)):
                    # It also wants what failed, still runs or cannot run, and keeps nothing in memory by that.
                    if task.state == "memory":
                        keys, held = keys + 1, held + max(task.nbytes, 0)
                    if not number % 100:
                        yield
                facts = (keys, held)
            changed = (row.get("held_keys"), row.get("held_nbytes")) != facts
            # A client that only sends heartbeats would look as if it had gone.
            stale = int(getattr(state, "last_seen", 0) * 1e6) - row.get("last_seen_us", 0) > CLIENT_SEEN_US
            if (changed or stale) and client in self.clients:
                row["held_keys"], row["held_nbytes"] = facts
                self._write_client(row, now_us)
            yield

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


#: What an event may name several things in.
_SEVERAL = (list, tuple, set, frozenset, dict)


def _number(value: Any, kind: Callable[[Any], Any]) -> Any:
    return kind(value) if isinstance(value, (int, float)) and value == value else kind(0)
