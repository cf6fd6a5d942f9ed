"""Why a worker left, from what the scheduler saw of it.

Dask's own ``expected`` flag is False even for scale-down and restarts, so the verdict rests on the events around the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Traces:
    """What was seen of one worker before it was removed."""

    #: Reason of its own ``closing-worker`` event; a worker that is killed has no time to send one.
    closing: str | None = None
    #: Resident bytes in the nanny's ``worker-restart-memory`` event.
    memory_kill: int | None = None
    #: The scheduler decided to retire it.
    retired: bool = False
    #: It sent no heartbeat for this many seconds.
    ttl: float | None = None
    restarted: bool = False
    scheduler_closing: bool = False
    stimulus: str = ""
    notes: list[str] = field(default_factory=list)


def judge(traces: Traces) -> tuple[str, str]:
    """The verdict and, in words, what it rests on."""
    if traces.memory_kill is not None:
        return (
            "memory kill",
            f"its nanny stopped it at {traces.memory_kill} bytes of resident memory, over the terminate limit",
        )
    if traces.ttl is not None:
        return "lost connection", f"no heartbeat for more than {traces.ttl:.0f} s (worker-ttl)"
    if traces.retired:
        return "retired", "the scheduler retired it (scale-down or retire_workers)"
    if traces.restarted:
        return "restarted", "the client restarted the workers"
    if traces.closing == "nanny-close" and not traces.scheduler_closing:
        # All the scheduler is told of a scale-down by LocalCluster.scale (2026.8).
        return "retired", "its nanny closed it while the cluster went on (scale-down)"
    if traces.closing is not None:
        return "closed", f"it announced its end: {traces.closing or 'no reason given'}"
    if traces.scheduler_closing:
        return "closed", "the cluster was closing"
    if traces.stimulus.startswith("handle-worker-cleanup"):
        return "vanished", "its connection broke without a word: killed from outside, crashed, or its host is gone"
    if traces.stimulus.startswith("worker-send-comm-fail"):
        return "lost connection", "a message to it could not be delivered"
    return "vanished", f"removed without any announcement ({traces.stimulus or 'unknown stimulus'})"
