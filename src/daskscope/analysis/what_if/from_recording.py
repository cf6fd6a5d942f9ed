"""Prepare a recorded computation for a replay: its graph, the cluster it ran on, and the reasons why it can't be replayed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskscope.analysis.columns.grouping import sums, where
from daskscope.analysis.columns.intervals import task_intervals
from daskscope.analysis.executions import EXECUTED, edge_rows, seceded_at_us
from daskscope.analysis.time.critical_path import longest_computation
from daskscope.analysis.time.idle import sending_us
from daskscope.analysis.time.processes import processes
from daskscope.analysis.time.waiting import (
    BLOCKED,
    CORE,
    GIL,
    LOCK,
    NATIVE,
    cpu_share,
    mutex_shares,
    python_loop_shares,
    waiting_shares,
)
from daskscope.analysis.what_if.graph import MIN_CPU_SHARE, Graph, Overheads, Setup, Submission, build_graph
from daskscope.analysis.what_if.overheads import measure_overheads
from daskscope.analysis.what_if.warm_up import WarmUp, find_warm_up
from daskscope.analysis.workers import MAX_THREADS
from daskscope.model.recording import Array, Recording, Table
from daskscope.model.untrusted import LARGEST, parse_object

#: Dask's default of ``distributed.scheduler.worker-saturation``.
SATURATION = 1.1
#: A client needs some milliseconds to submit tasks after others have ended; clocks of workers and scheduler differ by as much.
CLOCK_NOISE_US = 20_000
#: From this share of samples at backward jumps, a prefix is Python code that holds the interpreter lock (see ``python_loops``).
MIN_JUMPS = 0.02
#: The least share of an execution that is its own work, whatever it waited for.
MIN_OWN = 0.05
#: From this share of time waiting for a lock of all workers, a replay has that lock.
MIN_LOCK_WAIT = 0.02
#: From this share of time waiting for the interpreter lock, what a task holds of it follows from the waiting time.
MIN_GIL_WAIT = 0.05
#: Threads of libraries that use less than this share of a core during a task do not count.
MIN_LIBRARY_CORES = 0.1
#: From this share of its cores, a host has none left for more threads of libraries.
BUSY_HOST = 0.85
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost", "")


#: Largest accepted difference between the replay of the recorded cluster and the run.
MAX_DEVIATION = 0.2


class CannotReplay(Exception):
    """The recording is not enough for a replay; the message is a sentence that says why."""


@dataclass(frozen=True)
class Replayable:
    """A computation that can be replayed."""

    computation: str
    graph: Graph
    setup: Setup
    overheads: Overheads
    #: From the arrival of its graph to the end of its last execution; and the part of it before the first task was there.
    wall_us: int
    before_us: int
    #: Estimated time of the client to build and send the graph, before it arrived.
    sending_us: int
    #: Row in ``tasks`` of each execution of the graph.
    rows: Array
    #: Prefix of each execution of the graph, as a code, and the names.
    prefix: Array
    prefixes: tuple[str, ...]
    #: Part of each execution's time that its thread spent with spilled inputs.
    disk_us: Array
    #: Part of each execution's time in which threads of a library work for it, on cores that other tasks want, too: with fewer of
    #: those, they may be faster.
    library_us: Array
    warm_up: WarmUp
    #: Whether executions competed for cores. Durations are without that waiting.
    shares_cores: bool
    #: Whether tasks of each group waited for a lock of all workers, and how long all of them did. Durations are without it.
    has_lock: tuple[bool, ...]
    lock_wait_us: float
    #: Names of the overheads that the recording has too few measurements of.
    assumed: frozenset[str]
    #: Whether all workers were on one machine and its cores are known, so that more workers share them.
    is_local: bool
    workers_per_host: int
    memory_limit: int

    @property
    def workers(self) -> int:
        return len(self.setup.threads)

    @property
    def threads(self) -> int:
        """Return the threads of a worker; the most common number if they differ."""
        return int(np.bincount(np.array(self.setup.threads)).argmax())


def recorded_graph(recording: Recording, computation: str | None = None) -> Replayable:
    """Return a computation, by default the one that took longest; raise ``CannotReplay`` if parts are missing."""
    tasks = recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    name = longest_computation(tasks, ran) if computation is None else computation
    rows = np.flatnonzero(ran & where(tasks.strings("computation"), name))
    _check(recording, name, rows)
    rows = rows[np.lexsort((tasks["id"][rows], tasks["start_us"][rows]))]
    place = np.full(tasks.rows, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    dependents, inputs = edge_rows(recording)
    # Executions are numbered as they ended: no input comes after its dependent, whatever the recording says.
    inside = (place[dependents] >= 0) & (place[inputs] >= 0) & (tasks["id"][inputs] < tasks["id"][dependents])
    again, failed = _retries(tasks, rows)
    dependents, inputs = np.append(dependents[inside], again), np.append(inputs[inside], failed)
    released = _released_us(tasks, rows)
    first_us, last_us = int(released.min()), int(tasks["stop_us"][rows].max())
    begin_us = min(_begin_us(recording["computations"], name) or first_us, first_us)
    workers = _workers(recording, begin_us, last_us)
    setup = _setup(recording, workers, first_us)
    is_local = len(set(setup.hosts)) == 1 and workers.strings("host").to_numpy().tolist()[0] in LOCAL_HOSTS
    measured = measure_overheads(recording, rows, dependents, inputs, is_local=is_local)
    durations = _durations(recording, rows, setup)
    us, disk_us, shares = durations.us, durations.disk_us, durations.shares
    prefixes = tasks.strings("prefix")
    locked = mutex_shares(recording, prefixes)
    locked = np.where(locked >= MIN_LOCK_WAIT, locked, 0.0)[prefixes.codes[rows]]
    waited_us = np.clip(tasks["stop_us"][rows] - tasks["start_us"][rows], 0, LARGEST) * locked
    us = np.maximum(us - waited_us, MIN_OWN * us)
    graph = _graph(tasks, rows, us, shares, place[dependents], place[inputs], released)
    has_lock = np.bincount(np.array(graph.group), weights=locked, minlength=len(graph.groups)) > 0
    return Replayable(
        computation=name,
        graph=graph,
        setup=setup,
        overheads=measured.overheads,
        wall_us=last_us - begin_us,
        before_us=first_us - begin_us,
        sending_us=_sending_us(recording["computations"], name),
        rows=rows,
        prefix=prefixes.codes[rows],
        prefixes=tuple(map(str, prefixes.values)),
        disk_us=disk_us,
        library_us=durations.library_us,
        warm_up=find_warm_up(recording, rows, us),
        shares_cores=durations.shares_cores,
        has_lock=tuple(has_lock.tolist()),
        lock_wait_us=float(waited_us.sum()),
        assumed=measured.assumed,
        is_local=is_local,
        workers_per_host=max(np.bincount(np.array(setup.hosts)).tolist()),
        memory_limit=int(workers["memory_limit"].max()),
    )


def _check(recording: Recording, computation: str, rows: Array) -> None:
    """Raise if the recording lacks something that the replay needs."""
    if recording.partial:
        raise CannotReplay(
            f"This is not a full recording: {recording.partial}. Use the recording itself (.daskscope), or the URL of the "
            "cluster's page."
        )
    if not len(rows):
        raise CannotReplay("No task of this computation has finished.")
    lost = sum(
        recording.completeness[table].dropped + recording.completeness[table].missing
        for table in ("tasks", "edges")
        if table in recording.completeness
    )
    if lost or recording.damage or recording.missing_batches:
        count = f"{lost:,} tasks or dependencies" if lost else "some rows"
        raise CannotReplay(f"The recording is incomplete: {count} are missing.")
    groups = recording["groups"]
    of_groups = groups.lists("dependencies").lengths[where(groups.strings("computation"), computation)]
    if not recording["edges"].rows and (of_groups > 0).any():
        raise CannotReplay("Dependencies between tasks were not recorded.")
    computations = recording["computations"]
    state = computations["state"][where(computations.strings("computation"), computation)].tolist()
    if "running" in state:
        raise CannotReplay("The computation is still running.")
    tasks = recording["tasks"]
    if where(tasks.strings("status"), "killed").any() and _has(tasks, "killed", computation):
        raise CannotReplay("A worker was lost while it ran, and a replay loses none.")
    if (seceded_at_us(recording)[rows] > 0).any():
        raise CannotReplay("Its tasks start other tasks and wait for them, which a replay can't follow.")


def _has(tasks: Table, status: str, computation: str) -> bool:
    return bool(
        (where(tasks.strings("status"), status) & where(tasks.strings("computation"), computation)).any()
    )  # fmt: skip


def _begin_us(computations: Table, name: str) -> int:
    found = computations["start_us"][where(computations.strings("computation"), name)].tolist()
    return int(found[0]) if found else 0


def _sending_us(computations: Table, name: str) -> int:
    return int(sending_us(computations.take(where(computations.strings("computation"), name))).sum())


def _retries(tasks: Table, rows: Array) -> tuple[Array, Array]:
    """Return executions that retry another one, and the ones that had failed: a retry starts when that has ended."""
    keys = tasks.strings("key").codes[rows]
    order = np.lexsort((tasks["start_us"][rows], keys))
    before, after = order[:-1], order[1:]
    failed = where(tasks.strings("status"), "retried")[rows[before]] & (keys[before] == keys[after])
    return rows[after[failed]], rows[before[failed]]


def _released_us(tasks: Table, rows: Array) -> Array:
    """Return when the scheduler could assign each execution; it did so at once unless it queued the task."""
    queued, assigned, start = (tasks[name][rows] for name in ("queued_us", "assigned_us", "start_us"))
    known = np.where(queued > 0, queued, np.where(assigned > 0, assigned, start))
    return np.minimum(known, start)


def _workers(recording: Recording, start_us: int, stop_us: int) -> Table:
    workers = recording["workers"]
    there = (workers["start_us"] < stop_us) & ((workers["end_us"] == 0) | (workers["end_us"] > start_us))
    if not there.any():
        raise CannotReplay("The recording does not say which workers there were.")
    left = there & (workers["end_us"] > 0) & (workers["end_us"] < stop_us)
    if left.any():
        raise CannotReplay("A worker left while it ran, and in a replay all stay.")
    return workers.take(there)


def _setup(recording: Recording, workers: Table, first_us: int) -> Setup:
    hosts = {host: code for code, host in enumerate(dict.fromkeys(workers["host"].tolist()))}
    cores, others = _cores(recording["processes"], workers.rows / len(hosts))
    config: dict[str, Any] = {}
    for text in recording["clusters"]["config"].tolist():
        config.update(parse_object(text))
    return Setup(
        threads=np.clip(workers["nthreads"], 1, MAX_THREADS).tolist(),
        joins_us=np.maximum(workers["start_us"] - first_us, 0).astype(float).tolist(),
        hosts=[hosts[host] for host in workers["host"].tolist()],
        cores=cores,
        others=others,
        saturation=_saturation(config.get("distributed.scheduler.worker-saturation")),
        has_stealing=config.get("distributed.scheduler.work-stealing") is not False,
    )


def _saturation(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return SATURATION
    return number if number > 0 else SATURATION


def _cores(processes: Table, workers_per_host: float) -> tuple[float, float]:
    """Return the cores of a host, infinite if not known, and how many of them programs other than its workers used."""
    known = processes.take((processes["cores"] > 0) & (processes["wall_us"] > 0))
    if not known.rows:
        return math.inf, 0.0
    # All workers of a host read the same CPU time of the host.
    host, own = (float(known[name].sum() / known["wall_us"].sum()) for name in ("host_cpu_us", "cpu_us"))
    cores = float(known["cores"].max())
    return cores, min(max(host - own * workers_per_host, 0.0), cores)


@dataclass(frozen=True)
class OwnTime:
    """The own time of executions, parts of it, and the shares of a ``Group`` by prefix."""

    us: Array
    disk_us: Array
    library_us: Array
    shares: Array
    shares_cores: bool


def _durations(recording: Recording, rows: Array, setup: Setup) -> OwnTime:
    """Return the own time of executions.

    While a task waits for a core or the lock that other tasks of the same worker or host have, it does not do its own work. The
    replay adds that time again, for the cluster that it replays.
    """
    tasks = recording["tasks"]
    prefixes = tasks.strings("prefix")
    codes = prefixes.codes[rows]
    us = np.clip(tasks["stop_us"][rows] - tasks["start_us"][rows], 0, LARGEST).astype(np.float64)
    cpu, waits = cpu_share(recording, prefixes), waiting_shares(recording, prefixes)
    loops = python_loop_shares(recording, prefixes)
    threads = max(setup.threads)
    # Without other threads in its process, nothing but Dask and the agent competes for the lock.
    gil_wait = waits[:, GIL] if threads > 1 else np.zeros(len(cpu))
    per_host = max(np.bincount(np.array(setup.hosts), weights=np.array(setup.threads)).tolist())
    # If everything fits into the cores, waiting for one has other causes, such as the host of a virtual machine. What tasks use of
    # full cores is never more than there are: what they wanted is what they used and waited for.
    library = library_cores(recording, cpu, waits)
    wanted = per_host * float(
        (np.minimum(cpu + waits[:, CORE] + library, 1.0 + library)[codes] * us).sum() / max(us.sum(), 1.0)
    )
    is_full = wanted + setup.others > setup.cores
    core_wait = waits[:, CORE] if is_full else np.zeros(len(cpu))
    own = np.clip(1.0 - gil_wait - core_wait, MIN_OWN, 1.0)
    measured = np.minimum(1.0, 1.0 / (threads * (1.0 - np.minimum(gil_wait, 0.99))))
    own_cpu = np.clip(cpu / own, 0.0, 1.0)
    # A thread that waits for a core keeps the lock: Python loops on a busy host had 0.52 to 0.77 of a core, and all of the lock.
    holding = np.clip(own_cpu + (waits[:, CORE] - core_wait) / own, 0.0, 1.0)
    gil = np.where(gil_wait >= MIN_GIL_WAIT, measured, np.where(loops >= MIN_JUMPS, holding, 0.0))
    shares = np.column_stack((own_cpu + library, np.minimum(gil, holding), holding + library))
    owners, actions, start, stop = task_intervals(tasks, rows)
    disk = where(actions, "disk-read", "disk-write")
    all_disk = sums(owners[disk], np.clip(stop - start, 0, LARGEST)[disk], tasks.rows)
    own_us = us * own[codes]
    is_busy = wanted + setup.others > BUSY_HOST * setup.cores
    with_library = (waits[:, NATIVE] + waits[:, BLOCKED] + waits[:, LOCK]) * (library > 0) * is_busy
    library_us = np.minimum(own_us, us * with_library[codes])
    return OwnTime(own_us + all_disk[rows], all_disk[rows], library_us, shares, is_full)


def library_cores(recording: Recording, cpu_share: Array, waits: Array) -> Array:
    """Return how many cores threads of libraries use while a task of each prefix runs; ``waits`` are shares by reason."""
    tasks = recording["tasks"]
    prefixes = tasks.strings("prefix")
    addresses = list(dict.fromkeys(recording["workers"]["worker"].tolist()))
    used_us = float(processes(recording, addresses, prefixes, cpu_share).library_us.sum())
    all_us = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)
    wall = sums(prefixes.codes, all_us, len(prefixes.values)).astype(np.float64)
    # A task waits for such threads in native code, or at a lock of a pool.
    waited = wall * (waits[:, NATIVE] + waits[:, BLOCKED] + waits[:, LOCK])
    result: Array = used_us * waited / max(float(waited.sum()), 1.0) / np.maximum(wall, 1.0)
    return np.where(result >= MIN_LIBRARY_CORES, result, 0.0)


def _graph(
    tasks: Table, rows: Array, us: Array, shares: Array, dependents: Array, inputs: Array, released: Array
) -> Graph:
    used, group = np.unique(tasks.strings("group").codes[rows], return_inverse=True)
    prefix = np.zeros(len(used), dtype=np.int64)
    prefix[group] = tasks.strings("prefix").codes[rows]
    is_root = np.bincount(dependents, minlength=len(rows)) == 0
    return build_graph(
        us,
        np.clip(tasks["nbytes"][rows], 0, LARGEST),
        group,
        dependents,
        inputs,
        shares[prefix].tolist(),
        _submissions(tasks, rows, is_root, released),
    )


def _submissions(tasks: Table, rows: Array, is_root: Array, released: Array) -> list[Submission]:
    """Divide tasks without inputs where everything before had ended when the client submitted more."""
    order = np.argsort(released, kind="stable")
    ended = np.concatenate(([0], np.maximum.accumulate(tasks["stop_us"][rows][order])[:-1]))
    may_begin = np.flatnonzero(is_root[order] & (released[order] + CLOCK_NOISE_US >= ended))
    begins, pauses = [int(released.min())], [0]
    for place in may_begin.tolist():
        at = int(released[order[place]])
        # Tasks of one submission arrive within microseconds, and short ones may end within the noise of the clocks.
        if at > begins[-1] and at + min(CLOCK_NOISE_US, (at - begins[-1]) // 2) >= ended[place]:
            begins.append(at)
            pauses.append(max(0, at - int(ended[place])))
    roots = order[is_root[order]]
    cuts = np.searchsorted(released[roots], np.array(begins[1:], dtype=np.int64)).tolist()
    found, start = [], 0
    for begin, pause, stop in zip(begins, pauses, [*cuts, len(roots)]):
        part = roots[start:stop]
        found.append(Submission(float(pause), part.tolist(), (released[part] - begin).astype(float).tolist()))
        start = stop
    return found


def without_disk(recorded: Replayable) -> Replayable:
    """Return the computation without the time of spilled inputs."""
    return with_us(recorded, np.array(recorded.graph.us) - recorded.disk_us)


def with_us(recorded: Replayable, us: Array) -> Replayable:
    """Return the computation with other durations."""
    return replace(recorded, graph=replace(recorded.graph, us=np.maximum(us, 0.0).tolist()))


def one_native_thread(recorded: Replayable) -> Replayable:
    """Return the computation with native code that runs on one thread of a worker at a time.

    Threads of a process share its address space: allocating and freeing large arrays waits for the other threads, and so may a
    library's own locks. A recording of fewer threads does not tell how much.
    """
    groups = [
        replace(group, gil_share=min(1.0, group.busy_share))
        if group.busy_share >= MIN_CPU_SHARE and group.gil_share < group.busy_share
        else group
        for group in recorded.graph.groups
    ]
    if groups == recorded.graph.groups:
        return recorded
    return replace(recorded, graph=replace(recorded.graph, groups=groups))


def balancing(recorded: Replayable, workers: int) -> float:
    """Return an upper bound of the work of balancing in a replay: simulated seconds times workers.

    A replay balances work once in a simulated second, which takes 0.15 µs per worker. Anybody may upload times of a million years.
    """
    graph, overheads = recorded.graph, recorded.overheads
    each_us = overheads.link_us + overheads.gap_us + overheads.scheduler_us + overheads.transfer_us
    moved_us = max(graph.nbytes, default=0) / max(overheads.bandwidth, 1e-9)
    delays_us = sum(part.pause_us + max(part.delays_us, default=0.0) for part in graph.submissions)
    transfers = len(graph.us) + len(graph.inputs)
    # Everything one after the other.
    total_us = sum(graph.us) + delays_us + max(recorded.setup.joins_us, default=0.0) + transfers * (each_us + moved_us)
    return max(recorded.wall_us, total_us) / 1e6 * workers
