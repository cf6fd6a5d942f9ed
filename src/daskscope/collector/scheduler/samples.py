"""Rows of ``samples``: the state of a worker or the scheduler at one time. Reading a worker takes 2.5 µs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..aliases import PLAIN, Aliases
from ..compat import worker_memory


def worker_sample(worker: Any, time_us: int, children: dict[str, Any] | None) -> dict[str, Any]:
    """Return a sample of a worker from its last heartbeat and the scheduler's own state."""
    metrics = worker.metrics
    net, disk, counts = (_dict(metrics.get(name)) for name in ("host_net_io", "host_disk_io", "task_counts"))
    if "executing" not in counts and "executing" in metrics:
        counts = {**counts, "executing": metrics["executing"], "ready": metrics.get("ready", 0)}
    return {
        "time_us": time_us,
        "worker": worker.address,
        "cpu_percent": _float(metrics.get("cpu")),
        **worker_memory(worker),
        "net_read_bps": _float(net.get("read_bps")),
        "net_write_bps": _float(net.get("write_bps")),
        "disk_read_bps": _float(disk.get("read_bps")),
        "disk_write_bps": _float(disk.get("write_bps")),
        "executing": int(_float(counts.get("executing"))),
        "ready": int(_float(counts.get("ready"))),
        "processing": len(worker.processing),
        "stored": len(worker.has_what),
        "loop_lag_us": int(_float(metrics.get("event_loop_interval")) * 1e6),
        "gil_contention": _float(metrics.get("gil_contention"), -1.0),
        "fds": int(_float(metrics.get("num_fds"))),
        "occupancy_us": int(_float(getattr(worker, "occupancy", 0.0)) * 1e6),
        "status": worker_status(worker),
        "heartbeat_age_us": max(0, time_us - int(_float(getattr(worker, "last_seen", 0.0)) * 1e6)),
        **(children or {"children": -1}),
    }


class Heartbeats:
    """Remembers the last heartbeat of each worker: without a new one, the values of the previous sample still hold."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    def is_new(self, worker: Any) -> bool:
        """Return whether a worker sent a heartbeat since this was last asked."""
        seen = _float(getattr(worker, "last_seen", 0.0))
        before = self._seen.get(worker.address)
        self._seen[worker.address] = seen
        return not seen or seen != before

    def keep_only(self, workers: Mapping[str, Any]) -> None:
        """Forget workers that left, if there are any."""
        if len(self._seen) > len(workers):
            self._seen = {address: seen for address, seen in self._seen.items() if address in workers}


def worker_status(worker: Any) -> str:
    """Return Dask's status of a worker: running, paused, closing_gracefully …"""
    return str(getattr(getattr(worker, "status", None), "name", ""))


def is_fetching(worker: Any) -> bool:
    """Return whether a worker was fetching results from other workers at its last heartbeat."""
    return _float(_dict(worker.metrics.get("transfer")).get("incoming_count")) > 0


def scheduler_sample(scheduler: Any, time_us: int, lag_us: int) -> dict[str, Any]:
    """Return a sample of the scheduler's own process from its system monitor."""
    recent = scheduler.monitor.recent() if getattr(scheduler, "monitor", None) is not None else {}
    return {
        "time_us": time_us,
        "worker": "scheduler",
        "cpu_percent": _float(recent.get("cpu")),
        "memory": int(_float(recent.get("memory"))),
        "net_read_bps": _float(recent.get("host_net_io.read_bps")),
        "net_write_bps": _float(recent.get("host_net_io.write_bps")),
        "disk_read_bps": _float(recent.get("host_disk_io.read_bps")),
        "disk_write_bps": _float(recent.get("host_disk_io.write_bps")),
        "executing": 0,
        "ready": len(scheduler.queued) if hasattr(scheduler, "queued") else 0,
        "processing": sum(len(worker.processing) for worker in scheduler.workers.values()),
        "stored": 0,
        "loop_lag_us": lag_us,
        "gil_contention": _float(recent.get("gil_contention"), -1.0),
        "fds": int(_float(recent.get("num_fds"))),
        "unrunnable": len(scheduler.unrunnable),
        "children": -1,
    }


def _float(value: Any, otherwise: float = 0.0) -> float:
    """Return a heartbeat's value as a float. Users may add their own metrics under any name, so it can be any type."""
    finite = isinstance(value, (int, float)) and value - value == 0
    return float(value) if finite else otherwise


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def unrunnable_needs(unrunnable: Any, aliases: Aliases = PLAIN) -> str:
    """Return the requirements of up to 1,000 unrunnable tasks as JSON: counts by requirement."""
    needs: dict[str, int] = {}
    for task, _ in zip(unrunnable, range(1000)):
        wants = [f"{aliases.name(str(name))}={amount}" for name, amount in (task.resource_restrictions or {}).items()]
        if task.worker_restrictions or task.host_restrictions:
            wants.append("certain workers")
        name = ", ".join(sorted(wants)) or "any worker"
        needs[name] = needs.get(name, 0) + 1
    return json.dumps(needs) if needs else ""
