"""Why rules speak about recordings of other workloads, and why some rules have no workload.

Recordings are named by their rule; that of the twin ends in ``.twin``. Imports nothing: a unit test reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Rules without a workload, and why.
NOT_PROVOKED: Mapping[str, str] = dict.fromkeys(
    (
        "coffea-skipped",
        "coffea-same-error",
        "coffea-opening",
        "coffea-chunk-size",
        "coffea-few-chunks",
        "coffea-rereading",
        "coffea-scaling",
    ),
    "Needs coffea and uproot, which are not installed for tests; scripts/coffea runs them in environments of their own.",
)

#: Most workloads sleep in place of work, so that they need no cores and take the same time everywhere.
_SLEEPS = {"off-cpu": "Its tasks sleep in place of work."}
_LAST = {"too-few-tasks": "All other threads wait for the last task."}

#: For each recording, the rules that speak about it besides its own, and why they are right.
REASONS: Mapping[str, Mapping[str, str]] = {
    "failed-tasks": _SLEEPS,
    "retries-in-vain": {**_SLEEPS, "failed-tasks": "Its tasks fail for good after their retries."},
    "lost-workers": {
        "failed-tasks": "The task that ends its workers fails with KilledWorker.",
        "no-workers": "It ends both workers, and new ones have to start.",
    },
    "retried-failures": _SLEEPS,
    "incomplete-recording": {**_SLEEPS, "nothing-submitted": "The client scatters 5,001 inputs first."},
    "short-tasks": {
        "slow-starts": "Workers have thousands of tasks that wait for messages.",
        "nothing-submitted": "The client makes the graph of 4,000 tasks first.",
    },
    "stragglers": {**_SLEEPS, **_LAST},
    "serial-sections": {**_SLEEPS, **_LAST},
    "data-skew": {**_SLEEPS, **_LAST},
    "large-graphs": {**_SLEEPS, "slow-starts": "While the scheduler unpacks a graph, it sends no messages."},
    "gil": {"slow-starts": "Event loops wait for the interpreter lock, too."},
    "spilling": {**_SLEEPS, "slow-starts": "Workers read spilled inputs before tasks start."},
    "slow-pairs": {**_SLEEPS, "too-few-tasks": "All workers wait for the input that comes late."},
    "slow-starts": {**_SLEEPS, "scheduler-queue": "Workers whose event loops are blocked ask for no more tasks."},
    "scheduler-queue": {**_SLEEPS, "slow-starts": "Messages to workers are late, too."},
    "paused-workers": {**_SLEEPS, "nothing-submitted": "The client waits until the worker is paused."},
    "slow-workers": {**_SLEEPS, **_LAST},
    "scaling-flaps": {**_SLEEPS, "nothing-submitted": "Work comes in bursts, which makes scaling flap."},
    "scaling-flaps.twin": {**_SLEEPS, "nothing-submitted": "Work comes in bursts, and all workers are kept between them."},
    **dict.fromkeys(
        (
            "chunk-size", "locks", "loop-stalls", "memory-growth", "no-workers", "nothing-submitted", "pinned-work",
            "recomputed-results", "repeated-work",
            "scaling-capped", "scaling-lags", "spare-memory", "starting-workers", "too-few-tasks", "unbalanced-work",
            "unexplained-idle", "unrunnable-tasks", "warm-up",
            "chunk-size.twin", "data-skew.twin", "failed-tasks.twin", "incomplete-recording.twin", "large-graphs.twin",
            "locks.twin", "loop-stalls.twin", "lost-workers.twin", "memory-growth.twin", "no-workers.twin",
            "nothing-submitted.twin", "paused-workers.twin", "pinned-work.twin", "recomputed-results.twin",
            "repeated-work.twin", "retried-failures.twin", "retries-in-vain.twin", "scaling-capped.twin",
            "scaling-lags.twin", "scheduler-queue.twin", "serial-sections.twin", "slow-pairs.twin", "slow-starts.twin",
            "slow-workers.twin", "spare-memory.twin", "spilling.twin", "starting-workers.twin", "stragglers.twin",
            "too-few-tasks.twin", "transfers.twin", "unbalanced-work.twin", "unexplained-idle.twin",
            "unrunnable-tasks.twin", "warm-up.twin",
        ),
        _SLEEPS,
    ),
}  # fmt: skip
