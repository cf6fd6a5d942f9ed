"""Divide compute time into CPU time and waiting, and waiting by reason.

Dask's fine metrics say how much CPU time a task prefix used. Why its tasks waited follows from the profile: for each stack the
agent measured CPU time, time without a core and switches between threads; what is left is time in which the thread was blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import flat_strings, sums, where
from daskscope.analysis.executions import call_names, seceded_at_us
from daskscope.analysis.time.processes import NOISE_SHARE, Processes
from daskscope.model.recording import Array, Recording, Strings, Table
from daskscope.model.tables import COMPUTING, OTHER_THREAD

#: Why a task waited, in display order. ``unknown``: the profile has no measurements of it.
REASONS = ("core", "gil", "lock", "network", "file", "subprocess", "native", "blocked", "unknown")
CORE, GIL, LOCK, NETWORK, FILE, SUBPROCESS, NATIVE, BLOCKED, UNKNOWN = range(9)

#: Activities of context ``execute`` outside of the task's function.
OUTSIDE = frozenset(
    ("executor", "other", "failed", "cancelled", "busy", "missing", "offload", "network", "memory-read")
) | frozenset(("disk-read", "disk-write", "serialize", "deserialize", "compress", "decompress"))
#: A thread that waits for the GIL wakes up every 5 ms (``sys.getswitchinterval``), which is 200 switches a second: 140 to 205 were
#: measured, and below 10 in threads that sleep or wait for a lock.
GIL_SWITCHES_PER_S = 50.0
#: Innermost frames that tell what a thread waits for.
DEPTH = 8
#: Innermost frames in which the frame between two threads is looked for.
MAX_OTHER = 100
#: Parts of file names (and functions), and what a thread that is blocked below them waits for. If several match, the first counts.
PLACES: tuple[tuple[str, int], ...] = (
    ("/distributed/shuffle/", NETWORK),
    ("/subprocess.py", SUBPROCESS),
    ("/concurrent/futures/process.py", SUBPROCESS),
    ("/fsspec/asyn.py", NETWORK),
    ("/fsspec/implementations/http", NETWORK),
    ("/s3fs/", NETWORK),
    ("/gcsfs/", NETWORK),
    ("/adlfs/", NETWORK),
    ("/botocore/", NETWORK),
    ("/urllib3/", NETWORK),
    ("/requests/", NETWORK),
    ("/aiohttp/", NETWORK),
    ("/http/client.py", NETWORK),
    ("/socket.py", NETWORK),
    ("/ssl.py", NETWORK),
    ("/selectors.py", NETWORK),
    ("/sqlalchemy/", NETWORK),
    ("/psycopg", NETWORK),
    ("/XRootD/", NETWORK),
    # Whatever the threads of a pool do: they were asked to.
    ("/concurrent/futures/", NATIVE),
    ("/threading.py\tjoin", NATIVE),
    ("/threading.py", LOCK),
    ("/queue.py", LOCK),
    ("/multiprocessing/", LOCK),
    ("/distributed/lock.py", LOCK),
    ("/distributed/semaphore.py", LOCK),
    ("/distributed/event.py", LOCK),
    ("/distributed/queues.py", LOCK),
    ("/distributed/variable.py", LOCK),
    ("/filelock/", LOCK),
    ("/fsspec/implementations/local.py", FILE),
    ("/pyarrow/parquet/", FILE),
    ("/pandas/io/", FILE),
    ("/zarr/", FILE),
    ("/h5py/", FILE),
    ("/netCDF4/", FILE),
    ("/uproot/source/", FILE),
    ("/gzip.py", FILE),
    ("/shutil.py", FILE),
    ("/pathlib.py", FILE),
    ("/tempfile.py", FILE),
)
#: Code of a task that waits for other tasks, or to get a thread of its worker back.
BESIDE = ("/distributed/client.py\t", "/distributed/threadpoolexecutor.py\trejoin")
#: Code that waits until no other task of the cluster has the same lock.
MUTEXES = ("/distributed/lock.py", "/distributed/semaphore.py", "/filelock/")


def cpu_share(recording: Recording, prefixes: Strings) -> Array:
    """Return the CPU share of the compute time of each prefix.

    Meters of libraries and users inside a task take their time away from Dask's own. Labels ending in ``-cpu`` and ``-noncpu``
    say what they measured; the time of others is divided as the profile measured the prefix. Without any metrics, as in a part of a
    recording, all of it is.
    """
    texts, seconds = _execute_seconds(recording, prefixes)
    cpu = seconds([text for text in texts if text.endswith("-cpu")])
    noncpu = seconds([text for text in texts if text.endswith("-noncpu")])
    other = seconds([text for text in texts if text not in OUTSIDE and not text.endswith(("-cpu", "-noncpu"))])
    called, called_cpu = _actor_seconds(recording, prefixes)
    cpu, noncpu = cpu + called_cpu, noncpu + called - called_cpu
    total = cpu + noncpu + other
    sampled = _sampled_share(recording["profiles"], prefixes)
    share = (cpu + other * sampled) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, np.clip(share, 0.0, 1.0), sampled)


def _execute_seconds(recording: Recording, prefixes: Strings) -> tuple[list[str], Callable[[Sequence[str]], Array]]:
    """Return the activities of executions, and a function that adds up the seconds of some of them by prefix."""
    table = recording["activities"]
    values = np.nan_to_num(np.maximum(table["value"], 0.0), posinf=0.0)
    inside = where(table.strings("context"), "execute") & where(table.strings("unit"), "seconds")
    owner, labels = _places(table.strings("prefix"), prefixes), table.strings("activity")

    def seconds(chosen: Sequence[str]) -> Array:
        rows = np.flatnonzero(inside & where(labels, *chosen) & (owner >= 0))
        result: Array = np.bincount(owner[rows], weights=values[rows], minlength=len(prefixes.values))
        return result

    return [str(text) for text in labels.values], seconds


def p2p_shares(recording: Recording, prefixes: Strings) -> Array:
    """Return the share of the non-CPU time of each prefix in which it waited for the transfers and files of a P2P shuffle.

    Dask measures these waits inside of the tasks. Waiting for a core or the GIL there is not part of them.
    """
    texts, seconds = _execute_seconds(recording, prefixes)
    waits = [text for text in texts if text.endswith("-noncpu")]
    moving = seconds([text for text in waits if text.startswith("p2p-")])
    if not moving.any():
        return moving
    found = _sampled_reasons(recording, prefixes)
    sampled = found / np.maximum(found.sum(axis=1), 1.0)[:, None]
    all_waits = seconds(waits)
    labelled = moving / np.where(all_waits > 0, all_waits, 1.0) * (1.0 - sampled[:, (CORE, GIL)].sum(axis=1))
    # Dask's labels leave out the first wait of a task, for the scheduler to start the shuffle.
    return np.where(moving > 0, np.clip(np.maximum(labelled, sampled[:, NETWORK]), 0.0, 1.0), 0.0)


def coroutines(recording: Recording) -> frozenset[str]:
    """Return the prefixes whose tasks are coroutines: Dask measures only their duration, and no thread that executes them."""
    table = recording["activities"]
    execute = where(table.strings("context"), "execute") & where(table.strings("unit"), "seconds")
    prefix, activity = table.strings("prefix"), table.strings("activity")

    def with_activity(*names: str) -> set[str]:
        return {str(name) for name in prefix.take(np.flatnonzero(execute & where(activity, *names))).to_numpy()}

    return frozenset(with_activity("thread-noncpu") - with_activity("thread-cpu", "executor"))


def _actor_seconds(recording: Recording, prefixes: Strings) -> tuple[Array, Array]:
    """Return the duration and the CPU time of actor calls by prefix; Dask has no metrics of them."""
    calls, size = recording["actor_calls"], len(prefixes.values)
    owner = _places(call_names(recording), prefixes)
    rows = np.flatnonzero(owner >= 0)
    wall = np.maximum(calls["stop_us"] - calls["start_us"], 0)
    cpu = np.clip(calls["cpu_us"], 0, wall)
    return sums(owner[rows], wall[rows], size) / 1e6, sums(owner[rows], cpu[rows], size) / 1e6


@dataclass(frozen=True)
class Waits:
    """Waiting time by worker and prefix: codes of both, and microseconds."""

    worker: Array
    prefix: Array
    us: Array


def waiting_us(
    recording: Recording, waits: Waits, prefixes: Strings, process: Processes, moving: Array
) -> dict[str, int]:
    """Return waiting time by reason; the reasons add up to the sum of ``waits``.

    ``moving`` is the share of the waits of each prefix that counts as transfers, and is not in ``waits``.
    """
    found = _sampled_reasons(recording, prefixes)
    found[moving > 0, NETWORK] = 0.0
    measured = found.sum(axis=1)
    parts = np.where(measured[:, None] > 0, found / np.where(measured > 0, measured, 1.0)[:, None], 0.0)
    parts[measured <= 0, UNKNOWN] = 1.0
    by_reason = np.column_stack(
        [
            np.bincount(
                process.of_worker[waits.worker], waits.us * parts[waits.prefix, reason], len(process.library_us)
            )
            for reason in range(len(REASONS))
        ]
    ).astype(np.float64)
    gil = np.minimum(by_reason[:, GIL], process.max_gil_us)
    by_reason[:, BLOCKED] += by_reason[:, GIL] - gil
    by_reason[:, GIL] = gil
    # A thread that waits for a helper thread is blocked in native code (BLAS) or at a lock (a thread pool, ``Thread.join``).
    may_be_native = by_reason[:, BLOCKED] + by_reason[:, LOCK]
    # A pool that tasks are known to wait for may use all cores meanwhile.
    unknown = process.library_us - by_reason[:, NATIVE] * process.cores
    native = np.minimum(may_be_native, np.maximum(unknown, 0.0))
    for reason in (BLOCKED, LOCK):
        by_reason[:, reason] *= 1.0 - native / np.where(may_be_native > 0, may_be_native, 1.0)
    by_reason[:, NATIVE] += native
    totals = by_reason.sum(axis=0)
    whole = np.floor(totals).astype(np.int64)
    whole[int(np.argmax(totals))] += int(waits.us.sum()) - int(whole.sum())
    return dict(zip(REASONS, whole.tolist(), strict=True))


def waiting_shares(recording: Recording, prefixes: Strings) -> Array:
    """Return the share of each reason (a column) in the sampled time of each prefix (a row); 0 if it was not measured."""
    profiles = recording["profiles"]
    owner = _places(profiles.strings("prefix"), prefixes)
    rows = np.flatnonzero((owner >= 0) & where(profiles.strings("kind"), "compute"))
    wall, cpu, queued = (
        sums(owner[rows], np.maximum(profiles[name][rows], 0), len(prefixes.values))
        for name in ("wall_us", "cpu_us", "runqueue_us")
    )
    found = _sampled_reasons(recording, prefixes)
    # As in ``processes``: a thread that has the GIL uses a core or queues for one.
    most = (_most_threads(recording) - 1) * float(cpu.sum() + queued.sum() + NOISE_SHARE * wall.sum())
    kept = min(1.0, most / max(float(found[:, GIL].sum()), 1.0))
    found[:, BLOCKED] += (1.0 - kept) * found[:, GIL]
    found[:, GIL] *= kept
    result: Array = found / np.maximum(wall, 1)[:, None]
    return np.clip(result, 0.0, 1.0)


def mutex_shares(recording: Recording, prefixes: Strings) -> Array:
    """Return the share of the sampled time of each prefix in which it waited for a lock that all workers share."""
    profiles = recording["profiles"]
    owner = _places(profiles.strings("prefix"), prefixes)
    rows = np.flatnonzero((owner >= 0) & where(profiles.strings("kind"), "compute"))
    wall, cpu = (np.maximum(profiles[name][rows], 0) for name in ("wall_us", "cpu_us"))
    stacks = profiles.lists("stack").take(rows)
    frames = flat_strings(stacks)
    is_mutex = np.array([any(part in str(text) for part in MUTEXES) for text in frames.values] or [False])
    before = np.concatenate(([0], np.cumsum(is_mutex[frames.codes])))
    inside = before[stacks.offsets[1:]] > before[stacks.offsets[:-1]]
    size = len(prefixes.values)
    waited = sums(owner[rows][inside], np.maximum(wall - cpu, 0)[inside], size)
    result: Array = np.clip(waited / np.maximum(sums(owner[rows], wall, size), 1), 0.0, 1.0)
    return result


def python_loop_shares(recording: Recording, prefixes: Strings) -> Array:
    """Return the share of samples at a backward jump of Python code in the samples of each prefix."""
    profiles = recording["profiles"]
    owner = _places(profiles.strings("prefix"), prefixes)
    own = where(profiles.strings("kind"), "compute") & where(profiles.strings("source"), "daskscope")
    rows = np.flatnonzero((owner >= 0) & own)
    count, looping = (sums(owner[rows], profiles[name][rows], len(prefixes.values)) for name in ("count", "looping"))
    result: Array = np.clip(looping / np.maximum(count, 1), 0.0, 1.0)
    return result


def _sampled_share(profiles: Table, prefixes: Strings) -> Array:
    """Return the share of CPU time in the sampled time of each prefix; 1 if it was not measured."""
    owner = _places(profiles.strings("prefix"), prefixes)
    rows = np.flatnonzero((owner >= 0) & (profiles["wall_us"] > 0))
    size = len(prefixes.values)
    wall, cpu = (sums(owner[rows], profiles[name][rows], size) for name in ("wall_us", "cpu_us"))
    return np.where(wall > 0, np.minimum(cpu, wall) / np.where(wall > 0, wall, 1), 1.0)


def _most_threads(recording: Recording) -> int:
    """Return the most tasks that run at the same time in a process. The only one cannot wait for another one's GIL."""
    table = recording["workers"]
    threads: dict[tuple[str, int, str], int] = {}
    for address, host, pid, count in table.records("worker", "host", "pid", "nthreads"):
        key = (host, pid, "") if pid else ("", 0, address)
        threads[key] = threads.get(key, 0) + count
    return max(threads.values(), default=2)


@dataclass(frozen=True)
class SampledWaits:
    """Rows of the profile of tasks with the time in which their threads were blocked or queued for a core, and why."""

    rows: Array
    blocked_us: Array
    reason: Array
    queued_us: Array
    queued_reason: Array

    def of(self, reason: str) -> Array:
        """Return the time of each row that was spent waiting for this reason."""
        code = REASONS.index(reason)
        result: Array = self.blocked_us * (self.reason == code) + self.queued_us * (self.queued_reason == code)
        return result


def sampled_waits(recording: Recording) -> SampledWaits:
    """Return the sampled waiting time of each stack of a task."""
    profiles = recording["profiles"]
    rows = np.flatnonzero((profiles["wall_us"] > 0) & where(profiles.strings("kind"), "compute"))
    rows = rows[~_beside_threads(recording, rows)]
    wall, cpu, queued, switches = (
        profiles[name][rows].astype(np.float64) for name in ("wall_us", "cpu_us", "runqueue_us", "switches")
    )
    queued = np.clip(queued, 0.0, np.maximum(wall - cpu, 0.0))
    blocked = np.maximum(wall - cpu - queued, 0.0)
    reasons = _reasons(profiles, rows)
    busy = (switches >= GIL_SWITCHES_PER_S * (wall - cpu) / 1e6) & (_most_threads(recording) > 1)
    reasons = np.where((reasons == BLOCKED) & busy, GIL, reasons)
    # A thread that is woken to try for the GIL queues for a core first; unless it mostly queues, it waits for the GIL.
    return SampledWaits(rows, blocked, reasons, queued, np.where((reasons == GIL) & (queued < blocked), GIL, CORE))


def _beside_threads(recording: Recording, rows: Array) -> Array:
    """Return which samples are waits of seceded tasks for other tasks or for a free thread: no thread of a worker waits there."""
    profiles, found = recording["profiles"], np.zeros(len(rows), dtype=bool)
    seceded = np.flatnonzero(seceded_at_us(recording) > 0)
    if not len(seceded) or not len(rows):
        return found
    names = set(recording["tasks"].strings("prefix").take(seceded).to_numpy().tolist())
    mine = np.flatnonzero(where(profiles.strings("prefix").take(rows), *names))
    stacks = profiles.lists("stack").take(rows[mine])
    frames = flat_strings(stacks)
    waits = [any(part in str(text).replace("\\", "/") for part in BESIDE) for text in frames.values]
    before = np.concatenate(([0], np.cumsum(np.array([*waits, False], dtype=bool)[frames.codes])))
    found[mine] = before[stacks.offsets[1:]] > before[stacks.offsets[:-1]]
    return found


def _sampled_reasons(recording: Recording, prefixes: Strings) -> Array:
    """Return the sampled waiting time by prefix (a row) and reason (a column)."""
    waits = sampled_waits(recording)
    owner = _places(recording["profiles"].strings("prefix"), prefixes)[waits.rows]
    known = owner >= 0
    found = np.zeros((len(prefixes.values), len(REASONS)))
    np.add.at(found, (owner[known], waits.reason[known]), waits.blocked_us[known])
    np.add.at(found, (owner[known], waits.queued_reason[known]), waits.queued_us[known])
    return found


def _reasons(profiles: Table, rows: Array) -> Array:
    """Return the reason why a blocked thread waits, by the innermost frames of each stack.

    A thread that waits for one of a pool waits for what that one waits for, whose frames are the innermost ones.
    """
    stacks = profiles.lists("stack").take(rows)
    frames = flat_strings(stacks)
    texts = [str(text) for text in frames.values]
    places = np.array([_place(text) for text in texts] or [len(PLACES)], dtype=np.int64)
    is_other = np.array([text.startswith(f"{OTHER_THREAD}\t") for text in texts] or [False])
    computes = np.array([text.startswith(f"{OTHER_THREAD}\t{COMPUTING}\t") for text in texts] or [False])
    found = np.full(len(rows), len(PLACES), dtype=np.int64)
    # Frames outside of the other thread do not count.
    is_inner, is_native = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    for depth in range(MAX_OTHER if is_other.any() else DEPTH):
        deep = np.flatnonzero((stacks.lengths > depth) & is_inner)
        codes = frames.codes[stacks.offsets[1:][deep] - 1 - depth]
        is_inner[deep] = ~is_other[codes]
        is_native[deep] |= computes[codes]
        if depth < DEPTH:
            found[deep] = np.minimum(found[deep], places[codes])
    result: Array = np.array([*(reason for _, reason in PLACES), BLOCKED])[found]
    return np.where(is_native, NATIVE, result)


def _place(frame: str) -> int:
    text = frame.replace("\\", "/")
    return next((number for number, (part, _) in enumerate(PLACES) if part in text), len(PLACES))


def _places(texts: Strings, among: Strings) -> Array:
    """Return for each row of one column the code of the same text in another column; -1 if it has none."""
    codes = {text: code for code, text in enumerate(among.values)}
    result: Array = np.array([codes.get(text, -1) for text in texts.values], dtype=np.int64)[texts.codes]
    return result
