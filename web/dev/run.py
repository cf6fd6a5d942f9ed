"""A made-up run: workers of four threads, one lost to memory and replaced, eight stages of tasks."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

import numpy as np

HOSTILE = "</script><img src=x onerror=alert(1)>"
ACTIONS = ["compute", "transfer", "disk-read", "disk-write", "deserialize"]
STATUSES = ["ok", "error", "retried", "killed"]
THREADS = 4


@dataclass
class Run:
    """Columns of tasks and bars; times in seconds since the start."""

    prefixes: list[str] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    workers: list[tuple[str, float, float, bool]] = field(default_factory=list)
    length: float = 0.0
    #: prefix, lane, start, stop, status, nbytes, recomputed
    task_rows: list[tuple[int, int, float, float, int, float, bool]] = field(default_factory=list)
    #: task, action, start, stop
    bar_rows: list[tuple[int, int, float, float]] = field(default_factory=list)

    @staticmethod
    def nothing() -> Run:
        return Run(length=1.0)

    @property
    def tasks(self) -> int:
        return len(self.task_rows)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.array(self.task_rows, float).reshape(-1, 7),
            np.array(self.bar_rows, float).reshape(-1, 4),
        )


STAGES: list[tuple[str, int, dict[str, float]]] = [
    ("read-parquet", 420, {"at": 0, "c": 3.4, "s": 0.7, "cpu": 0.42, "ser": 0.06, "nb": 180e6, "gap": 0.1}),
    ("str-contains", 420, {"at": 22, "c": 0.52, "cpu": 0.96, "nb": 3e6, "gap": 0.06}),
    ("shuffle-transfer", 420, {"at": 52, "transfer": 1.5, "de": 0.12, "c": 1.05, "cpu": 0.83, "nb": 150e6, "gap": 0.22}),
    ("shuffle-p2p", 420, {"at": 92, "disk": 0.75, "de": 0.1, "c": 0.75, "cpu": 0.7, "nb": 150e6, "gap": 0.25, "lag": 3}),
    ("normalize_address", 420, {"at": 112, "c": 3.85, "s": 0.5, "cpu": 0.97, "nb": 140e6, "gap": 0.12, "fail": 0.014, "lag": 4}),
    ("shuffle-p2p", 46, {"at": 158, "transfer": 0.9, "disk": 0.6, "c": 0.9, "cpu": 0.7, "nb": 150e6, "re": 1, "lag": 3}),
    ("groupby-chunk", 420, {"at": 176, "transfer": 0.12, "c": 1.32, "cpu": 0.93, "nb": 8e6, "gap": 0.15, "lag": 5}),
    ("groupby-agg", 64, {"at": 196, "transfer": 1.6, "de": 0.2, "c": 2.1, "cpu": 0.9, "nb": 30e6, "lag": 3, "skew": 1}),
    ("to-parquet", 62, {"at": 204, "c": 1.9, "ser": 0.15, "cpu": 0.35, "nb": 2e3, "lag": 6}),
]


def simulate(tasks: int, *, hostile: bool = False) -> Run:
    """About ``tasks`` executions; more of them mean more workers first, then a longer run."""
    rnd = random.Random(7)
    scale = tasks / sum(n for _, n, _ in STAGES)
    widen = min(scale, 25 if tasks < 500_000 else 50)
    stretch = scale / widen
    count = max(2, round(8 * widen))
    loss = 141.6 * stretch
    workers = [[f"w-{i}", rnd.random() * 1.2, math.inf, False] for i in range(count)]
    workers[min(5, count - 1)][2:] = [loss, True]
    workers.append([f"w-{count}", loss + 16.2, math.inf, False])
    if hostile:
        workers[2][0] = HOSTILE
    run = Run()
    free = [w[1] + rnd.random() * 0.4 for w in workers for _ in range(THREADS)]
    names: dict[str, int] = {}

    def draw(m: float, s: float = 0.5) -> float:
        return m * math.exp(s * (rnd.random() + rnd.random() + rnd.random() - 1.5) * 1.15)

    for name, n, o in STAGES:
        if hostile and name == "str-contains":
            name = HOSTILE
        code = names.setdefault(name, len(names))
        if code == len(run.cpu):
            run.cpu.append(o["cpu"])
        begin = o["at"] * stretch
        heap = [(max(t, begin), lane) for lane, t in enumerate(free)]
        heapq.heapify(heap)
        left = round(n * scale)
        while left > 0:
            t, lane = heapq.heappop(heap)
            end_of_worker = workers[lane // THREADS][2]
            if t >= end_of_worker:
                continue
            t += o.get("lag", 0) * rnd.random() * (0.2 if t > begin + 1 else 1) if t < begin + 2 else 0
            t += o.get("gap", 0.05) * rnd.random() * (9 if rnd.random() < 0.12 else 1)
            slow = 1.5 if "transfer" in o and lane // THREADS in (2, 3) else 1.0
            if "skew" in o and left in (3, 4):
                slow = 7.0
            bars = []
            for action, mean in ((1, o.get("transfer", 0)), (4, o.get("de", 0)), (2, o.get("disk", 0))):
                if mean:
                    d = draw(mean, 0.7) * (slow if action == 1 else 1)
                    bars.append((action, t, t + d))
                    t += d
            start = t
            t += draw(o["c"], o.get("s", 0.45)) * slow
            stop = t
            if o.get("ser"):
                d = draw(o["ser"])
                bars.append((3, t, t + d))
                t += d
            status = 2 if rnd.random() < o.get("fail", 0) else 0
            if t > end_of_worker:
                status, t = 3, end_of_worker
                stop, start = min(stop, t), min(start, t)
                bars = [(a, min(x, t), min(y, t)) for a, x, y in bars if x < t]
            else:
                left -= status == 0
            task = len(run.task_rows)
            run.task_rows.append((code, lane, start, stop, status, draw(o["nb"]), bool(o.get("re"))))
            run.bar_rows.append((task, 0, start, stop))
            run.bar_rows.extend((task, a, x, y) for a, x, y in bars)
            free[lane] = t
            heapq.heappush(heap, (t, lane))
    run.prefixes = list(names)
    run.length = max(r[3] for r in run.task_rows) + 0.6
    run.workers = [(w[0], w[1], min(w[2], run.length), w[3]) for w in workers]
    return run
