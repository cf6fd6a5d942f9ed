"""A worker, or the scheduler, at a moment: one row of ``samples``. Reading a worker takes 2.5 µs."""

from __future__ import annotations

from typing import Any

from .compat import worker_memory


def worker_sample(worker: Any, time_us: int, children: dict[str, Any] | None) -> dict[str, Any]:
    """What the last heartbeat said, plus what the scheduler knows itself."""
    metrics = worker.metrics
    net = metrics.get("host_net_io") or {}
    disk = metrics.get("host_disk_io") or {}
    counts = metrics.get("task_counts") or {}
    if "executing" not in counts and "executing" in metrics:
        counts = {**counts, "executing": metrics["executing"], "ready": metrics.get("ready", 0)}
    return {
        "time_us": time_us,
        "worker": worker.address,
        "cpu_percent": float(metrics.get("cpu", 0.0)),
        **worker_memory(worker),
        "net_read_bps": float(net.get("read_bps", 0.0)),
        "net_write_bps": float(net.get("write_bps", 0.0)),
        "disk_read_bps": float(disk.get("read_bps", 0.0)),
        "disk_write_bps": float(disk.get("write_bps", 0.0)),
        "executing": int(counts.get("executing", 0)),
        "ready": int(counts.get("ready", 0)),
        "processing": len(worker.processing),
        "stored": len(worker.has_what),
        "loop_lag_us": int(float(metrics.get("event_loop_interval", 0.0)) * 1e6),
        "gil_contention": float(metrics.get("gil_contention", -1.0)),
        "fds": int(metrics.get("num_fds", 0)),
        "occupancy_us": int(float(getattr(worker, "occupancy", 0.0)) * 1e6),
        **(children or {"children": -1}),
    }


def scheduler_sample(scheduler: Any, time_us: int, lag_us: int) -> dict[str, Any]:
    """The scheduler's own process, from its system monitor."""
    recent = scheduler.monitor.recent() if getattr(scheduler, "monitor", None) is not None else {}
    return {
        "time_us": time_us,
        "worker": "scheduler",
        "cpu_percent": float(recent.get("cpu", 0.0)),
        "memory": int(recent.get("memory", 0)),
        "net_read_bps": float(recent.get("host_net_io.read_bps", 0.0)),
        "net_write_bps": float(recent.get("host_net_io.write_bps", 0.0)),
        "disk_read_bps": float(recent.get("host_disk_io.read_bps", 0.0)),
        "disk_write_bps": float(recent.get("host_disk_io.write_bps", 0.0)),
        "executing": 0,
        "ready": len(scheduler.queued) if hasattr(scheduler, "queued") else 0,
        "processing": sum(len(worker.processing) for worker in scheduler.workers.values()),
        "stored": 0,
        "loop_lag_us": lag_us,
        "gil_contention": float(recent.get("gil_contention", -1.0)),
        "fds": int(recent.get("num_fds", 0)),
        "children": -1,
    }
