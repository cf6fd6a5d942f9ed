"""A worker, or the scheduler, at a moment: one row of ``samples``. Reading a worker takes 2.5 µs."""

from __future__ import annotations

from typing import Any

from .compat import worker_memory


def worker_sample(worker: Any, time_us: int, children: dict[str, Any] | None) -> dict[str, Any]:
    """What the last heartbeat said, plus what the scheduler knows itself."""
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
        **(children or {"children": -1}),
    }


def scheduler_sample(scheduler: Any, time_us: int, lag_us: int) -> dict[str, Any]:
    """The scheduler's own process, from its system monitor."""
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
        "children": -1,
    }


def _float(value: Any, otherwise: float = 0.0) -> float:
    """A number of a heartbeat; users may add metrics of their own, under any name."""
    finite = isinstance(value, (int, float)) and value - value == 0
    return float(value) if finite else otherwise


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
