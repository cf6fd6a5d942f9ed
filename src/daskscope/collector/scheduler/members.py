"""Track workers and clients: when they joined and left, and why a worker left.

Dask does not say why a worker left. ``Members`` collects traces from its events, and ``judge`` turns them into a verdict with
evidence.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from dask.utils import format_bytes

from ...model.states import Verdict
from ..aliases import PLAIN, Aliases
from ..compat import known_since

#: Processing keys listed in a worker's last row; the count is always exact.
MAX_PROCESSING_KEYS = 100
#: Workers that left at most this long before the scheduler closes left because of that.
CLOSING_US = 10_000_000
#: A client's row is written again when its ``last_seen_us`` is older than this.
CLIENT_SEEN_US = 30_000_000
#: Keys of one client that are checked; with more, all its keys count as in memory, and their bytes are written as -1.
MAX_HELD_KEYS = 200_000
#: Collection types in which an event may name several things.
_COLLECTIONS = (list, tuple, set, frozenset, dict)


#: Results that a cluster has made so far, and its last computation: if both are the same later, it did nothing in between. Not
#: times: tasks are timed by their workers, whose estimate of the scheduler's clock is up to seconds off on a busy host.
Work = tuple[int, str | None]


@dataclass
class Traces:
    """Evidence about one worker, collected before it was removed."""

    #: Reason in the worker's own ``closing-worker`` event; a killed worker has no time to send one.
    closing: str | None = None
    #: Resident bytes in the nanny's ``worker-restart-memory`` event.
    memory_kill: int | None = None
    #: Whether the scheduler decided to retire it.
    retired: bool = False
    #: The ``worker-ttl`` in seconds, if the worker sent no heartbeat for longer than that.
    ttl: float | None = None
    restarted: bool = False
    scheduler_closing: bool = False
    stimulus: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Member:
    """A worker the recorder tracks."""

    row: dict[str, Any]
    #: Dask's state of the worker, which the scheduler drops before it logs the removal.
    state: Any = None
    traces: Traces = field(default_factory=Traces)
    #: Tasks it was processing when it was removed.
    processing: Collection[Any] = ()
    #: Number of results that were lost with it.
    lost: int = 0
    #: Work of the cluster until it left.
    work: Work = (0, None)


class Members:
    """Tracks workers and clients and writes their rows."""

    def __init__(self, scheduler: Any, add: Callable[..., None], *, hostnames: bool, aliases: Aliases = PLAIN) -> None:
        self.scheduler = scheduler
        self.add = add
        self.hostnames = hostnames
        self.aliases = aliases
        self.workers: dict[str, Member] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.is_closing = False
        #: Workers that left recently: if the cluster closes soon, that is why they left.
        self._recently_left: deque[Member] = deque(maxlen=1000)

    def add_worker(self, address: str, now_us: int, since_us: int | None = None) -> None:
        """Add a worker that joined now or at ``since_us``: the last row counts, so it must not cut off an earlier recording."""
        worker = self.scheduler.workers[address]
        row = {
            "worker": address,
            "server_id": str(getattr(worker, "server_id", "") or address),
            "name": self._worker_name(worker),
            "host": worker.host if self.hostnames else "",
            "pid": int(getattr(worker, "pid", 0) or 0),
            "nthreads": int(worker.nthreads),
            "memory_limit": int(worker.memory_limit or 0),
            "nanny": str(worker.nanny or ""),
            "start_us": now_us if since_us is None else since_us,
            "versions": _json((worker.versions or {}).get("packages", worker.versions)),
        }
        self.workers[address] = Member(row, worker)
        self._write(row, now_us)

    def _worker_name(self, worker: Any) -> str:
        """Return its name; an alias of a chosen one, if names are not recorded. Dask names workers by number or address."""
        name = str(worker.name)
        return name if name.isdigit() or name == worker.address else self.aliases.name(name)

    def set_agent_state(self, address: str, state: str, now_us: int) -> None:
        """Write the state of a worker's agent if it changed."""
        member = self.workers.get(address)
        if member is not None and member.row.get("agent") != state:
            member.row["agent"] = state[:500]
            self._write(member.row, now_us)

    def add_versions(self, address: str, versions: Mapping[str, str], now_us: int) -> None:
        """Add versions of packages to a worker's row; those that Dask reported stay."""
        member = self.workers.get(address)
        if member is None or not versions:
            return
        known = json.loads(member.row["versions"])
        reported = {name: text for name, text in known.items() if text} if isinstance(known, dict) else {}
        both = _json({**versions, **reported})
        if both != member.row["versions"]:
            member.row["versions"] = both
            self._write(member.row, now_us)

    def remove_worker(self, address: str, stimulus: str, now_us: int, work: Work) -> None:
        """Write the last row of a worker that left, with its verdict."""
        member = self.workers.pop(address, None)
        if member is None:
            return
        member.traces.stimulus = stimulus
        member.traces.scheduler_closing |= self.is_closing
        member.work = work
        self._recently_left.append(member)
        keys = [_text(key) for key in islice(member.processing, MAX_PROCESSING_KEYS)] if self.aliases.keys else []
        member.row.update(
            end_us=now_us,
            processing=keys,
            processing_count=len(member.processing),
            lost_count=member.lost,
        )
        self._judge(member, now_us)

    def note_closing(self, now_us: int, work: Work) -> None:
        """Note that the scheduler is closing, and judge workers again that left just before.

        A LocalCluster closes its workers first, which until now looked like a scale-down. A worker was not part of the closing if
        the cluster did any work since, or if it sent no ``closing-worker`` event.
        """
        self.is_closing = True
        for member in self._recently_left:
            sent_event = member.traces.closing is not None
            if sent_event and member.work == work and now_us - CLOSING_US <= member.row["end_us"]:
                member.traces.scheduler_closing = True
                self._judge(member, now_us)

    def _judge(self, member: Member, now_us: int) -> None:
        verdict, evidence = judge(member.traces)
        if (member.row.get("verdict"), member.row.get("evidence")) != (verdict, evidence):
            member.row.update(verdict=verdict, evidence=evidence)
            self._write(member.row, now_us)

    def note_event(self, topic: str, message: Mapping[Any, Any]) -> None:
        """Keep the traces in an event. Any code may log events, so every field is checked."""
        action = message.get("action")
        if topic == "worker-restart-memory":
            for member in self._find_workers(message.get("worker")):
                member.traces.memory_kill = _number(message.get("rss"), int)
        elif not isinstance(action, str):
            return
        elif action == "remove-worker":
            self._apply_removal(message.get("worker", topic), message)
        elif action == "closing-worker":
            self._apply_closing(topic, str(message.get("reason") or "")[:500])
        elif action == "retire-workers":
            for member in self._find_workers(message.get("retired") or message.get("workers")):
                member.traces.retired = True
        elif action == "worker-ttl-timed-out":
            for member in self._find_workers(message.get("workers")):
                member.traces.ttl = _number(message.get("ttl"), float)
        elif action == "restart-workers":
            for member in self._find_workers(message.get("workers") or self.workers):
                member.traces.restarted = True

    def _apply_closing(self, address: Any, reason: str) -> None:
        for member in self._find_workers(address):
            member.traces.closing = reason
            member.traces.restarted |= reason.startswith(("client-restart", "restart"))

    def _apply_removal(self, address: Any, message: Mapping[Any, Any]) -> None:
        for member in self._find_workers(address):
            processing, lost = message.get("processing-tasks"), message.get("lost-computed-tasks")
            member.processing = processing if isinstance(processing, _COLLECTIONS) else ()
            member.lost = len(lost) if isinstance(lost, _COLLECTIONS) else 0
            member.traces.retired |= message.get("expected") is True and not self.is_closing

    def _find_workers(self, addresses: Any) -> list[Member]:
        """Return the tracked workers that an event names, by address or as objects with an ``address``."""
        several = addresses if isinstance(addresses, _COLLECTIONS) else (addresses,)
        names = [item if isinstance(item, str) else getattr(item, "address", None) for item in several]
        return [self.workers[name] for name in names if isinstance(name, str) and name in self.workers]

    def add_client(self, client: str, now_us: int, since_us: int | None = None) -> None:
        """Add a client that connected now, or at ``since_us``."""
        state = self.scheduler.clients.get(client)
        versions = getattr(state, "versions", None) or {}
        row = {
            "client": client,
            "connect_us": now_us if since_us is None else since_us,
            "versions": _json(versions.get("packages", versions)),
        }
        self.clients[client] = row
        self._write_client(row, now_us)

    def remove_client(self, client: str, now_us: int) -> None:
        """Write the last row of a client that disconnected."""
        row = self.clients.pop(client, None)
        if row is not None:
            row["disconnect_us"] = now_us
            self.add("clients", seen_us=now_us, **row)

    def write_changes(self, now_us: int) -> Iterator[None]:
        """Write clients whose number or size of held results changed: these often explain why a cluster is still running.

        Yields after every hundred keys: a client may hold a million.
        """
        for client, row in list(self.clients.items()):
            state = self.scheduler.clients.get(client)
            if state is None or client not in self.clients:
                continue
            facts = (len(state.wants_what), -1)
            if facts[0] <= MAX_HELD_KEYS:
                keys = held = 0
                for number, task in enumerate(list(state.wants_what)):
                    # Clients also want tasks that failed, still run or cannot run; these hold no memory.
                    if task.state == "memory":
                        keys, held = keys + 1, held + max(task.nbytes, 0)
                    if not number % 100:
                        yield
                facts = (keys, held)
            changed = (row.get("held_keys"), row.get("held_nbytes")) != facts
            # Without this, a client that only sends heartbeats would look disconnected.
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


def judge(traces: Traces) -> tuple[Verdict, str]:
    """Return the verdict and its evidence."""
    if traces.memory_kill is not None:
        return (
            "memory kill",
            f"its nanny killed it at {format_bytes(traces.memory_kill)} of resident memory, over the terminate limit",
        )
    if traces.ttl is not None:
        return "lost connection", f"no heartbeat for more than {traces.ttl:.0f} s (worker-ttl)"
    if traces.retired:
        return "retired", "the scheduler retired it (scale-down or retire_workers)"
    if traces.restarted:
        return "restarted", "the client restarted the workers"
    if traces.closing == "nanny-close" and not traces.scheduler_closing:
        # LocalCluster.scale sends the scheduler no other sign of a scale-down (2026.8).
        return "retired", "its nanny closed it while the cluster kept running (scale-down)"
    if traces.closing is not None:
        return "closed", f"it reported that it was closing: {traces.closing or 'no reason given'}"
    if traces.scheduler_closing:
        return "closed", "the cluster was closing"
    if traces.stimulus.startswith("handle-worker-cleanup"):
        return (
            "vanished",
            "the connection dropped without a goodbye: it was killed, it crashed, or its host went down",
        )
    if traces.stimulus.startswith("worker-send-comm-fail"):
        return "lost connection", "a message to it could not be delivered"
    return "vanished", f"the scheduler removed it without giving a reason ({traces.stimulus or 'unknown stimulus'})"


def known_since_us(scheduler: Any, name: str, action: str, now_us: int) -> int:
    """Return when a worker or client connected before recording began; ``now_us`` if that is not known."""
    return min(int(known_since(scheduler, name, action) * 1e6) or now_us, now_us)


def _text(key: Any) -> str:
    return (key if isinstance(key, str) else str(key))[:500]


def _json(value: Any) -> str:
    return json.dumps(value, default=str)


def _number(value: Any, kind: Callable[[Any], Any]) -> Any:
    return kind(value) if isinstance(value, (int, float)) and value == value else kind(0)
