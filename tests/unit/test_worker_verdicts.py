"""Each trace gives its own verdict on why a worker left, and the stronger trace wins."""

from __future__ import annotations

import pytest

from daskscope.collector.scheduler.members import Traces, judge


@pytest.mark.parametrize(
    ("traces", "verdict", "evidence"),
    [
        (Traces(memory_kill=1_000_000), "memory kill", "0.95 MiB of resident memory"),
        (Traces(ttl=300.0), "lost connection", "300 s"),
        (Traces(retired=True), "retired", "retired it"),
        (Traces(restarted=True), "restarted", "restarted the workers"),
        (Traces(closing="nanny-close"), "retired", "while the cluster kept running"),
        (Traces(closing="nanny-close", scheduler_closing=True), "closed", "nanny-close"),
        (Traces(closing="worker-close"), "closed", "worker-close"),
        (Traces(closing=""), "closed", "no reason given"),
        (Traces(scheduler_closing=True), "closed", "cluster was closing"),
        (Traces(stimulus="handle-worker-cleanup-1.2"), "vanished", "without a goodbye"),
        (Traces(stimulus="worker-send-comm-fail-1"), "lost connection", "could not be delivered"),
        (Traces(stimulus="something-else"), "vanished", "something-else"),
        (Traces(), "vanished", "unknown stimulus"),
    ],
)
def test_each_trace_has_its_verdict(traces: Traces, verdict: str, evidence: str) -> None:
    found, words = judge(traces)
    assert found == verdict
    assert evidence in words


@pytest.mark.parametrize(
    ("traces", "verdict"),
    [
        # A nanny that kills a worker for its memory restarts it, and the worker sends a closing event.
        (Traces(memory_kill=1, closing="nanny", restarted=True, stimulus="handle-worker-cleanup-1"), "memory kill"),
        # A retired worker sends a closing event, too.
        (Traces(retired=True, closing="nanny-close"), "retired"),
        (Traces(restarted=True, closing="client-restart-1"), "restarted"),
        (Traces(ttl=1.0, stimulus="handle-worker-cleanup-1"), "lost connection"),
        (Traces(closing="worker-close", scheduler_closing=True), "closed"),
    ],
)
def test_the_stronger_trace_wins(traces: Traces, verdict: str) -> None:
    assert judge(traces)[0] == verdict
