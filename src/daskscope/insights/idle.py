"""Rules about idle threads: no task, no worker, or tasks that wait somewhere else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.executions import EXECUTED, inputs_of
from daskscope.analysis.workers import worker_rows
from daskscope.insights.facts import IDLE, MIN_US, RELEVANT, Facts, Finding, Rule
from daskscope.insights.python_code import loop_stalls_s, process_name, stalled_us
from daskscope.insights.waiting import full_hosts
from daskscope.model.untrusted import parse_object

WHEN = f"From {RELEVANT}."


def _idle_finding(facts: Facts, reason: str, advice: str, rank: int = 2) -> Iterator[Finding]:
    """Yield the finding for a reason to be idle, if it is worth one."""
    us = facts.split.idle.us.get(reason, 0)
    if facts.is_relevant(us):
        title = f"Threads were idle for {units.percent(us / facts.split.thread_us)} of their time: {IDLE[reason]}"
        evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
        saved = facts.idle_time(us, f"thread time in which {IDLE[reason]}")
        yield facts.finding("idle", title, evidence, advice, "stream", saved, rank)


def _idle_rule(id: str, title: str, why: str, reason: str, advice: str, rank: int = 2) -> Rule:
    """Return the rule about a reason to be idle."""
    return Rule(id, title, why, WHEN, lambda facts: _idle_finding(facts, reason, advice, rank))


NOTHING_SUBMITTED = _idle_rule(
    "nothing-submitted",
    "Threads are idle because nothing is submitted",
    "An idle cluster costs as much as a busy one.",
    "nothing submitted",
    "The client was busy or waiting. Submit work without waiting for each result, or use a smaller cluster.",
)
TOO_FEW_TASKS = _idle_rule(
    "too-few-tasks",
    "Threads are idle because too few tasks can run in parallel",
    "Threads without a task cost as much as busy ones.",
    "too few tasks",
    "Split the work into more and smaller tasks, or use fewer threads.",
)


#: The part of late starts before the first tasks from which it explains them: it was 47 to 83 % where workers imported modules.
MIN_EARLY = 0.4


def _slow_starts(facts: Facts) -> Iterator[Finding]:
    """A stall that Dask logged explains late starts on all threads of its worker."""
    known = {worker.worker for worker in facts.workers}
    stalls_s = {worker: sum(each) for worker, each in loop_stalls_s(facts).items() if worker in known}
    if stalls_s and 2 * stalled_us(facts) >= facts.split.idle.us["not started"]:
        worst = max(stalls_s, key=lambda worker: stalls_s[worker])
        advice = (
            f"Event loops of workers were blocked, the one of {process_name(facts, worst)} for "
            f"{units.duration(1e6 * stalls_s[worst])}. Code that holds the interpreter lock does that, such as imports for the "
            "first tasks or a large pickle. Import in advance (--preload)."
        )
    elif (early_us := _before_first_tasks_us(facts)) >= MIN_EARLY * facts.split.idle.us["not started"]:
        advice = (
            f"{units.duration(early_us)} of it passed before the first recorded task of each worker. A worker imports what tasks "
            "need before it runs the first one: import in advance (--preload), and keep workers between computations."
        )
    elif load := full_hosts(facts):
        advice = (
            f"{load.sentence} Event loops wait for a core like tasks do, so workers start tasks late. Use fewer workers and "
            "threads per host, or look for other programs on it."
        )
    else:
        moved = facts.recording["transfers"].rows > 0
        advice = (
            f"Workers were busy {'fetching or ' if moved else ''}deserializing inputs, or their event loops were blocked. Look at "
            f"{'transfers and ' if moved else ''}worker logs."
        )
    yield from _idle_finding(facts, "not started", advice)


def _before_first_tasks_us(facts: Facts) -> int:
    """Return for how long tasks of all workers had been assigned when the first one started, at most one task a thread.

    Workers that fetched inputs in that time are left out.
    """
    tasks, table, transfers = facts.recording["tasks"], facts.recording["workers"], facts.recording["transfers"]
    owner = worker_rows(tasks.strings("worker"), tasks["start_us"], table)
    rows = np.flatnonzero((owner >= 0) & (tasks["assigned_us"] > 0) & (tasks["start_us"] > 0))
    owner, got, start = owner[rows], tasks["assigned_us"][rows], tasks["start_us"][rows]
    began = np.full(table.rows, np.iinfo(np.int64).max)
    np.minimum.at(began, owner, start)
    fetcher = worker_rows(transfers.strings("destination"), transfers["start_us"], table)
    fetches = np.flatnonzero(fetcher >= 0)
    began[fetcher[fetches[transfers["start_us"][fetches] < began[fetcher[fetches]]]]] = 0
    waited = np.maximum(began[owner] - got, 0)
    order = np.lexsort((-waited, owner))
    owner, waited = owner[order], waited[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
    total = int(waited[rank < table["nthreads"][owner]].sum())
    return min(total, facts.split.idle.us["not started"])


SLOW_STARTS = Rule(
    "slow-starts",
    "Tasks are assigned, but start late",
    "The scheduler has done its part: the worker fetches inputs, or its event loop is blocked.",
    WHEN,
    _slow_starts,
)
#: CPU usage of a scheduler that has no time left for tasks, in percent of a core.
BUSY_SCHEDULER = 50.0


def _scheduler_queue(facts: Facts) -> Iterator[Finding]:
    samples = facts.recording["samples"]
    cpu = samples["cpu_percent"][where(samples.strings("worker"), "scheduler")]
    used = float(np.median(cpu)) if len(cpu) else BUSY_SCHEDULER
    if used >= BUSY_SCHEDULER:
        advice = "The scheduler did not send them in time. Look at its CPU usage, and use fewer, larger tasks."
    else:
        advice = (
            f"The scheduler was not busy (median {units.percent(used / 100)} of a core), so workers asked late for more. Code that "
            "holds the interpreter lock, such as imports, delays their messages: look at the profile of their event loops."
        )
    yield from _idle_finding(facts, "queued", advice)


SCHEDULER_QUEUE = Rule(
    "scheduler-queue",
    "Tasks wait at the scheduler",
    "The scheduler is one process. Very many small tasks keep it busier than the workers.",
    WHEN,
    _scheduler_queue,
)
PAUSED_WORKERS = _idle_rule(
    "paused-workers",
    "Workers are paused to save memory",
    "A paused worker starts no tasks, and may stay paused until others take its data.",
    "paused",
    "Use smaller chunks or workers with more memory, and keep fewer results in memory.",
)
STARTING_WORKERS = _idle_rule(
    "starting-workers",
    "Workers have just joined",
    "Starting a worker and importing libraries takes seconds, in which its threads do nothing.",
    "starting",
    "Start workers before submitting work, or keep them between computations.",
)
UNRUNNABLE_TASKS = _idle_rule(
    "unrunnable-tasks",
    "The remaining tasks need a worker that does not exist",
    "Such tasks wait forever, and keep the cluster running.",
    "cannot run",
    "Add a worker with the resources these tasks ask for, or cancel them.",
    rank=1,
)
UNEXPLAINED_IDLE = _idle_rule(
    "unexplained-idle",
    "Threads are idle, and the recording does not say why",
    "It is listed last, because the cause is not known.",
    "unknown",
    "The scheduler may have been busy with a graph, or the client with the next one. Look at the logs at that time.",
    rank=3,
)


# ---------------------------------------------------------------- tasks wait at other workers

#: Tasks per thread of their workers: fewer may have found a free thread where they were.
MIN_PER_THREAD = 3
#: Dask does not move shorter tasks to idle workers.
MIN_STOLEN_US = 5_000
#: Share of all workers that the tasks ran on.
MAX_PINNED = 0.5


def _unbalanced_work(facts: Facts) -> Iterator[Finding]:
    if not _pinned_prefixes(facts):
        advice = (
            "Restrictions or the location of data kept tasks on other workers. Remove restrictions, or spread the data."
        )
        yield from _idle_finding(facts, "elsewhere", advice)


UNBALANCED_WORK = Rule(
    "unbalanced-work",
    "Tasks wait at other workers",
    "Restrictions, or data that is in one place, keep tasks away from free threads.",
    f"{WHEN} Not if restrictions are known to be the cause.",
    _unbalanced_work,
)


def _pinned_work(facts: Facts) -> Iterator[Finding]:
    us = facts.split.idle.us.get("elsewhere", 0)
    names = _pinned_prefixes(facts)
    if not names:
        return
    (prefix, workers), more = names[0], len(names) - 1
    others = f", and so did {units.counted(more, 'other prefix', 'other prefixes')}" if more else ""
    yield facts.finding(
        "idle",
        f"Threads were idle for {units.percent(us / facts.split.thread_us)} of their time while {prefix or 'unnamed'} tasks "
        f"waited for {'one worker' if workers == 1 else units.counted(workers, 'worker')}",
        f"They have no inputs that keep them there, and ran on {units.count(workers)} of "
        f"{units.counted(len(facts.workers), 'worker')} only{others}.",
        "Leave out workers= and resources= of these tasks, name more workers, or set allow_other_workers=True. If they need a "
        "resource, give it to more workers.",
        "stream",
        facts.idle_time(us, "thread time that was idle while tasks waited at other workers"),
    )


def _pinned_prefixes(facts: Facts) -> list[tuple[str, int]]:
    """Return prefixes that only a restriction can have kept on few workers, longest first, with the number of these workers.

    Restrictions are not recorded. But the scheduler gives tasks without inputs to any worker, and moves waiting ones to idle
    workers unless stealing is off.
    """
    if not facts.is_relevant(facts.split.idle.us.get("elsewhere", 0)) or not _has_stealing(facts):
        return []
    tasks, groups = facts.recording["tasks"], facts.recording["groups"]
    depends = {str(one) for one in groups["prefix"][groups.lists("dependencies").lengths > 0].tolist()}
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    ran = where(tasks.strings("status"), *EXECUTED)
    found = []
    for one in facts.longest_prefixes:
        if one.p50_us < MIN_STOLEN_US or one.prefix in depends or not facts.is_relevant(one.total_us):
            continue
        rows = np.flatnonzero(ran & where(prefix, one.prefix))
        used = set(worker.values[np.unique(worker.codes[rows])].tolist())
        start_us, stop_us = int(tasks["start_us"][rows].min()), int(tasks["stop_us"][rows].max())
        there = [w for w in facts.workers if w.start_us <= start_us and (not w.end_us or w.end_us >= stop_us)]
        threads = sum(w.threads for w in there if w.worker in used)
        free = [w for w in there if w.worker not in used]
        if len(used) > MAX_PINNED * len(there) or not free or len(rows) < MIN_PER_THREAD * threads:
            continue
        # Inputs that the client scattered are in edges, too.
        if not len(inputs_of(facts.recording, rows)[0]):
            found.append((one.prefix, len(used)))
    return found


def _has_stealing(facts: Facts) -> bool:
    """Return whether the recording says that idle workers take tasks from others."""
    configs = [parse_object(text) for text in facts.recording["clusters"]["config"].tolist()]
    return any(config.get("distributed.scheduler.work-stealing") is True for config in configs)


PINNED_WORK = Rule(
    "pinned-work",
    "Tasks are pinned to few workers",
    "Tasks with workers= or resources= wait for their workers while others are idle.",
    f"From {RELEVANT}, for prefixes without inputs that ran on at most half of the workers, with {MIN_PER_THREAD} tasks per "
    "thread. Silent if work stealing is off.",
    _pinned_work,
)


# ---------------------------------------------------------------- there is no worker


def _no_workers(facts: Facts) -> Iterator[Finding]:
    us = facts.split.idle.no_workers_us
    if us >= MIN_US:
        title = f"Work waited {units.duration(us)} for a worker"
        evidence = f"{units.duration(us)} of {units.duration(facts.run_us)} passed without a worker."
        advice = "Check why workers did not start. Keep a minimum number of workers if the cluster scales by itself."
        yield facts.finding("idle", title, evidence, advice, "workers", facts.wall_time(us, "time without workers"), 1)


NO_WORKERS = Rule(
    "no-workers",
    "Work waits for a worker",
    "Without a worker, nothing runs, and a cluster that scales by itself may not start one.",
    "From 1 s.",
    _no_workers,
)
