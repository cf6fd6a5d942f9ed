"""Divide compute time into CPU time and waiting, and waiting by reason.

Dask's fine metrics say how much CPU time a task prefix used. Why its tasks waited follows from the profile: for each stack the
agent measured CPU time, time without a core and switches between threads; what is left is time in which the thread was blocked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import flat_strings, steps, sums, where
from daskscope.analysis.executions import call_names, cancelled_until_us
from daskscope.model.recording import Array, Recording, Strings, Table

#: Where the agent could not measure the CPU time of event loops and helpers, this much of a core counts as theirs.
OWN_CPU_SHARE = 0.25
#: Less than this share of a core is noise: the kernel counts the CPU time of a process in steps of 10 ms.
NOISE_SHARE = 0.02


@dataclass(frozen=True)
class Processes:
    """Worker processes; workers of a cluster without processes share one."""

    #: For each worker its process.
    of_worker: Array
    #: For each process the CPU time of threads that belong neither to Dask nor to a task.
    library_us: Array


def processes(recording: Recording, workers: Sequence[str], prefixes: Strings, cpu_share: Array) -> Processes:
    """Return the processes of workers; ``cpu_share`` is the share of CPU time in the compute time of each prefix.

    It is computed for each process: spare CPU time of one worker says nothing about what tasks of another waited for.
    """
    of_worker, size = _of_workers(recording, workers)
    table = recording["processes"]
    names = {address: code for code, address in enumerate(workers)}
    reader = _codes(table.strings("worker"), names)
    known = np.flatnonzero(reader >= 0)

    def measured(column: str) -> Array:
        """Return a total for each process. Workers that share a process all read the same values."""
        by_worker = sums(reader[known], table[column][known], len(workers)).astype(np.float64)
        totals = np.zeros(size)
        np.maximum.at(totals, of_worker, by_worker)
        return totals

    wall, own = measured("wall_us"), measured("own_cpu_us")
    allowed = np.where(own > 0, own + NOISE_SHARE * wall, OWN_CPU_SHARE * wall)
    beside = measured("cpu_us") - _of_tasks(recording, of_worker, names, size, prefixes, cpu_share)
    return Processes(of_worker, np.maximum(beside - allowed, 0.0))


def _of_workers(recording: Recording, workers: Sequence[str]) -> tuple[Array, int]:
    """Return the process of each worker, and the number of processes."""
    table = recording["workers"]
    places = {
        str(address): (str(host), int(pid)) if pid else (str(address), 0)
        for address, host, pid in table.records("worker", "host", "pid")
    }
    keys = [places.get(address, (address, 0)) for address in workers]
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    return np.array([codes[key] for key in keys], dtype=np.int64), max(1, len(codes))


def _of_tasks(
    recording: Recording, of_worker: Array, names: dict[str, int], size: int, prefixes: Strings, cpu_share: Array
) -> Array:
    """Return the CPU time of the executions of each process. Failed ones count in full: Dask does not measure their CPU time."""
    tasks = recording["tasks"]
    owner = _codes(tasks.strings("worker"), names)
    stops, ok = cancelled_until_us(recording), where(tasks.strings("status"), "ok")
    result = np.zeros(size)
    for some in steps(tasks.rows):
        rows = np.flatnonzero(owner[some] >= 0)
        lengths = np.maximum(stops[some] - tasks["start_us"][some], 0)
        share = np.where(ok[some], cpu_share[prefixes.codes[some]], 1.0)
        np.add.at(result, of_worker[owner[some][rows]], (lengths * share)[rows])
    return result


def _codes(texts: Strings, names: dict[str, int]) -> Array:
    result: Array = np.array([names.get(str(text), -1) for text in texts.values] or [-1], dtype=np.int32)[texts.codes]
    return result


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
#: Parts of file names, and what a thread that is blocked below them waits for. If several match, the first counts.
PLACES: tuple[tuple[str, int], ...] = (
    ("/subprocess.py", SUBPROCESS),
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
    ("/threading.py", LOCK),
    ("/queue.py", LOCK),
    ("/multiprocessing/", LOCK),
    ("/concurrent/futures/", LOCK),
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


def cpu_share(recording: Recording, prefixes: Strings) -> Array:
    """Return the CPU share of the compute time of each prefix.

    Meters of libraries and users inside a task take their time away from Dask's own. Labels ending in ``-cpu`` and ``-noncpu``
    say what they measured; the time of others is divided as the profile measured the prefix. Without any metrics, as in a part of a
    recording, all of it is.
    """
    table = recording["activities"]
    values = np.nan_to_num(np.maximum(table["value"], 0.0), posinf=0.0)
    inside = where(table.strings("context"), "execute") & where(table.strings("unit"), "seconds")
    owner = _places(table.strings("prefix"), prefixes)
    labels = table.strings("activity")

    def seconds(chosen: Sequence[str]) -> Array:
        rows = np.flatnonzero(inside & where(labels, *chosen) & (owner >= 0))
        result: Array = np.bincount(owner[rows], weights=values[rows], minlength=len(prefixes.values))
        return result

    texts = [str(text) for text in labels.values]
    cpu = seconds([text for text in texts if text.endswith("-cpu")])
    noncpu = seconds([text for text in texts if text.endswith("-noncpu")])
    other = seconds([text for text in texts if text not in OUTSIDE and not text.endswith(("-cpu", "-noncpu"))])
    called, called_cpu = _actor_seconds(recording, prefixes)
    cpu, noncpu = cpu + called_cpu, noncpu + called - called_cpu
    total = cpu + noncpu + other
    sampled = _sampled_share(recording["profiles"], prefixes)
    share = (cpu + other * sampled) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, np.clip(share, 0.0, 1.0), sampled)


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


def waiting_us(recording: Recording, waits: Waits, prefixes: Strings, process: Processes) -> dict[str, int]:
    """Return waiting time by reason; the reasons add up to the sum of ``waits``."""
    found = _sampled_reasons(recording["profiles"], prefixes)
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
    # A thread that waits for a helper thread is blocked in native code (BLAS) or at a lock (a thread pool, ``Thread.join``).
    may_be_native = by_reason[:, BLOCKED] + by_reason[:, LOCK]
    native = np.minimum(may_be_native, process.library_us)
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
    wall = sums(owner[rows], np.maximum(profiles["wall_us"][rows], 0), len(prefixes.values))
    result: Array = _sampled_reasons(profiles, prefixes) / np.maximum(wall, 1)[:, None]
    return np.clip(result, 0.0, 1.0)


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


def _sampled_reasons(profiles: Table, prefixes: Strings) -> Array:
    """Return the sampled waiting time by prefix (a row) and reason (a column)."""
    owner = _places(profiles.strings("prefix"), prefixes)
    rows = np.flatnonzero((owner >= 0) & (profiles["wall_us"] > 0) & where(profiles.strings("kind"), "compute"))
    wall, cpu, queued, switches = (
        profiles[name][rows].astype(np.float64) for name in ("wall_us", "cpu_us", "runqueue_us", "switches")
    )
    queued = np.clip(queued, 0.0, np.maximum(wall - cpu, 0.0))
    blocked = np.maximum(wall - cpu - queued, 0.0)
    reasons = _reasons(profiles, rows)
    busy = switches >= GIL_SWITCHES_PER_S * (wall - cpu) / 1e6
    reasons = np.where((reasons == BLOCKED) & busy, GIL, reasons)
    found = np.zeros((len(prefixes.values), len(REASONS)))
    np.add.at(found, (owner[rows], reasons), blocked)
    # A thread that is woken to try for the GIL queues for a core first; unless it mostly queues, it waits for the GIL.
    np.add.at(found, (owner[rows], np.where((reasons == GIL) & (queued < blocked), GIL, CORE)), queued)
    return found


def _reasons(profiles: Table, rows: Array) -> Array:
    """Return the reason why a blocked thread waits, by the innermost frames of each stack."""
    stacks = profiles.lists("stack").take(rows)
    frames = flat_strings(stacks)
    places = np.array([_place(str(text)) for text in frames.values] or [len(PLACES)], dtype=np.int64)
    found = np.full(len(rows), len(PLACES), dtype=np.int64)
    for depth in range(DEPTH):
        deep = np.flatnonzero(stacks.lengths > depth)
        found[deep] = np.minimum(found[deep], places[frames.codes[stacks.offsets[1:][deep] - 1 - depth]])
    result: Array = np.array([*(reason for _, reason in PLACES), BLOCKED])[found]
    return result


def _place(frame: str) -> int:
    file = frame.partition("\t")[0].replace("\\", "/")
    return next((number for number, (part, _) in enumerate(PLACES) if part in file), len(PLACES))


def _places(texts: Strings, among: Strings) -> Array:
    """Return for each row of one column the code of the same text in another column; -1 if it has none."""
    codes = {text: code for code, text in enumerate(among.values)}
    result: Array = np.array([codes.get(text, -1) for text in texts.values], dtype=np.int64)[texts.codes]
    return result
