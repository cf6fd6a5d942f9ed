"""Reduce a run to the measurements that are compared with other runs; small enough to keep as a baseline."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from daskscope.analysis import resources
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import percentile, rows_by_group, where
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.summary import inside_block
from daskscope.analysis.time.breakdown import CATEGORIES, Breakdown, breakdown
from daskscope.analysis.time.waiting import cpu_share
from daskscope.model.recording import Recording
from daskscope.model.untrusted import parse_object

#: Format of a stored baseline. A reader refuses later formats.
FORMAT = 1
#: Points of the memory curve, at equal parts of the run, so that runs of different length can be drawn over each other.
POINTS = 60
#: Workers × bins of the breakdown; see ``report.document``.
MAX_SUMS = 200_000
#: Categories of a span's compute time.
COMPUTE = ("cpu", "noncpu")


@dataclass(frozen=True)
class PrefixTimes:
    """The executions of one task prefix in one run. Failed executions count; killed ones have no duration."""

    count: int
    total_us: int
    median_us: int
    #: Quartiles: how much the executions of one run differ.
    low_us: int
    high_us: int
    #: Bytes of all results.
    nbytes: int
    #: Mean CPU time of an execution; 0 if unknown.
    cpu_us: int = 0


@dataclass(frozen=True)
class Measured:
    """The measurements of one run: one repeat of a benchmark, one computation, or one stretch of time."""

    source: str
    start_us: int
    wall_us: int
    prefixes: Mapping[str, PrefixTimes]
    #: Thread time by category; see ``analysis.breakdown``.
    thread_us: Mapping[str, int]
    #: Compute time by span, named by its tags.
    spans_us: Mapping[str, int]
    #: Memory of all worker processes at equal parts of the run; -1 where it was not sampled.
    memory: tuple[int, ...]
    peak_memory: int
    transferred: int
    workers: int
    threads: int
    errors: int
    #: Cores that programs other than the workers used on their hosts, in total; -1 if not measured.
    other_cores: float = -1.0
    versions: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    #: Source code around the calls, each once, in the order of the calls.
    code: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; ``measured_of`` reads it."""
        return {"format": FORMAT, **asdict(self), "memory": list(self.memory), "code": list(self.code)}


def measured_of(data: Mapping[str, Any]) -> Measured:
    """Return the measurements that ``to_dict`` wrote; raise ``ValueError`` for anything else."""
    try:
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}")
        fields = {name: data[name] for name in Measured.__dataclass_fields__}
        prefixes = {str(name): PrefixTimes(**times) for name, times in fields.pop("prefixes").items()}
        found = Measured(
            **{**fields, "prefixes": prefixes, "memory": tuple(fields["memory"]), "code": tuple(fields["code"])}
        )
        _check_values(found)
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a measured run ({error!r})") from None
    return found


def _check_values(run: Measured) -> None:
    """Raise ``TypeError`` unless a comparison can compute with all values: a stored baseline may contain anything."""
    whole = (run.start_us, run.wall_us, run.peak_memory, run.transferred, run.workers, run.threads, run.errors)
    times = (value for prefix in run.prefixes.values() for value in vars(prefix).values())
    for number in (*whole, *times, *run.memory, *run.thread_us.values(), *run.spans_us.values()):
        if type(number) is not int or abs(number) >= 1 << 63:
            raise TypeError(f"{number!r:.60} is not a 64-bit integer")
    if type(run.other_cores) not in (int, float) or not math.isfinite(run.other_cores):
        raise TypeError(f"{run.other_cores!r:.60} is not a number of cores")
    names = (*run.thread_us, *run.spans_us, *run.versions, *run.config)
    for text in (run.source, *names, *run.versions.values(), *run.config.values(), *run.code):
        if type(text) is not str:
            raise TypeError(f"{text!r:.60} is not a text")


def is_baseline_name(text: str) -> bool:
    """Return whether a text can name a baseline, and so be a part of a path: in a directory or a URL."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text) is not None


def measure(recording: Recording, start_us: int, stop_us: int) -> Measured:
    """Return the measurements of a recording between two times."""
    recording = inside_block(recording)
    bins = _bins(recording, start_us, stop_us)
    split = breakdown(recording, bins)
    curve = _memory(recording, start_us, stop_us)
    tasks, clusters, workers = recording["tasks"], recording["clusters"], recording["workers"]
    return Measured(
        source=recording.source,
        start_us=start_us,
        wall_us=max(0, stop_us - start_us),
        prefixes=_prefixes(recording),
        thread_us=dict(split.split),
        spans_us=_spans(recording, split),
        memory=curve,
        peak_memory=max(0, *curve),
        transferred=int(resources.transfers(recording, bins).measures["nbytes"].sum()) + resources.shuffled(recording),
        workers=len(set(workers["worker"].tolist())),
        threads=int(np.clip(workers["nthreads"], 0, 2**31).sum()),
        errors=int(where(tasks.strings("status"), "error").sum()),
        other_cores=_other_cores(recording),
        versions=_texts(clusters["versions"].tolist()),
        config=_texts(clusters["config"].tolist()),
        code=tuple(dict.fromkeys(filter(None, map(str, recording["computations"]["code"].tolist())))),
    )


def _bins(recording: Recording, start_us: int, stop_us: int) -> Bins:
    return Bins.over(start_us, stop_us, max(1, min(100, MAX_SUMS // max(1, recording["workers"].rows))))


def _prefixes(recording: Recording) -> dict[str, PrefixTimes]:
    tasks = recording["tasks"]
    rows = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    names = tasks.strings("prefix")
    durations = np.maximum(tasks["stop_us"][rows] - tasks["start_us"][rows], 0)
    nbytes = np.maximum(tasks["nbytes"][rows], 0)
    cpu, found = cpu_share(recording, names), {}
    for code, of_prefix in rows_by_group(names.codes[rows]):
        ordered = np.sort(durations[of_prefix])
        low, median, high = (percentile(ordered, share) for share in (0.25, 0.5, 0.75))
        total = int(ordered.sum())
        mean_cpu = round(float(cpu[code]) * total / len(ordered))
        sizes = int(nbytes[of_prefix].sum())
        found[str(names.values[code])] = PrefixTimes(len(ordered), total, median, low, high, sizes, mean_cpu)
    return found


def _other_cores(recording: Recording) -> float:
    """Return the cores that other programs used on the hosts of the workers, as the kernel counted them.

    Every worker of a host reads the same counter. The scheduler is not another program: more tasks make it work more. The client
    is, unless it shares a process with the scheduler, as with a ``LocalCluster``.
    """
    table, workers = recording["processes"], recording["workers"]
    hosts = dict(zip(workers["worker"].tolist(), workers["host"].tolist(), strict=True))
    used, readings = dict[str, float](), dict[str, list[float]]()
    names = table.strings("worker")
    for code, rows in rows_by_group(names.codes):
        name = str(names.values[code])
        wall, cpu, all_cpu = (float(table[column][rows].sum()) for column in ("wall_us", "cpu_us", "host_cpu_us"))
        if wall > 0 and all_cpu > 0:
            host = hosts.get(name, name)
            used[host] = used.get(host, 0.0) + cpu / wall
            readings.setdefault(host, []).append(all_cpu / wall)
    if not readings:
        return -1.0
    samples = recording["samples"]
    scheduler = samples["cpu_percent"][where(samples.strings("worker"), resources.SCHEDULER)]
    addresses = {_host(str(address)) for address in recording["clusters"]["address"].tolist()}
    for host in addresses & set(used):
        used[host] += float(np.nan_to_num(scheduler).mean()) / 100 if len(scheduler) else 0.0
    return sum(max(0.0, float(np.mean(values)) - used[host]) for host, values in readings.items())


def _host(address: str) -> str:
    """Return the host of an address such as ``tcp://10.0.0.1:8786``."""
    return address.partition("://")[2].rpartition(":")[0]


def _spans(recording: Recording, split: Breakdown) -> dict[str, int]:
    spans = recording["spans"]
    tags = dict(zip(spans["span"].tolist(), map(" / ".join, spans["tags"].tolist()), strict=True))
    cube, found = split.by_span, dict[str, int]()
    computed = np.isin(cube.codes["category"], [CATEGORIES.index(name) for name in COMPUTE])
    for span, us in zip(cube.codes["span"][computed].tolist(), cube.measures["us"][computed].tolist(), strict=True):
        name = tags.get(cube.keys["span"][span], "")
        if name and name != "default":
            found[name] = found.get(name, 0) + us
    return found


def _memory(recording: Recording, start_us: int, stop_us: int) -> tuple[int, ...]:
    interval = max(1, (stop_us - start_us) // (POINTS - 1))
    values = resources.cluster(recording, "process", start_us, stop_us, interval)[1][:POINTS]
    return tuple(-1 if np.isnan(value) else int(value) for value in values.tolist())


def _texts(objects: list[str]) -> dict[str, str]:
    """Return the values of JSON objects as texts; nested ones with dotted names."""
    found = dict[str, str]()
    pending = [("", parse_object(text)) for text in objects]
    while pending:
        above, values = pending.pop()
        for name, value in values.items():
            if isinstance(value, dict):
                pending.append((f"{above}{name}.", value))
            else:
                found[above + name] = str(value)
    return dict(sorted(found.items()))
