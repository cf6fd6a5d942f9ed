"""Warm-up: each worker imports modules and compiles code once, in its first executions. More workers do it more often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import rows_by_group, where
from daskscope.analysis.executions import EXECUTED, first_on_worker
from daskscope.model.recording import Array, Recording

#: First executions take this many times the median of later ones (as in the rule ``warm-up``), on this share of the workers.
WARM_UP_RATIO, WARM_UP_WORKERS = 3.0, 0.75


@dataclass(frozen=True)
class WarmUp:
    """Executions that take longer because they are the first ones of their worker."""

    #: Their places in the graph, the worker of each, numbered by its first one, and what they take beyond the usual.
    places: Array
    worker: Array
    extra_us: Array
    #: Places of the executions of the same prefixes that followed, in order of time.
    next_places: Array

    def left_out(self, us: Array, workers: int) -> Array:
        """Return the durations on fewer workers: only so many have a first execution."""
        result = us.copy()
        gone = self.worker >= workers
        result[self.places[gone]] = np.maximum(us[self.places[gone]] - self.extra_us[gone], 0.0)
        return result

    def added(self, us: Array, workers: int, recorded: int) -> Array:
        """Return the durations on more workers: the next executions of the same prefix are first ones, too."""
        result = us.copy()
        result[self.next_places[: max(0, workers - recorded)]] += (
            float(np.median(self.extra_us)) if len(self.places) else 0.0
        )
        return result


def find_warm_up(recording: Recording, rows: Array, us: Array) -> WarmUp:
    """Return the warm-up in the executions of a graph; ``rows`` are their rows in ``tasks``, and ``us`` their own time."""
    tasks = recording["tasks"]
    prefix, worker = tasks.strings("prefix").codes, tasks.strings("worker").codes
    place = np.full(tasks.rows, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    ran, first = where(tasks.strings("status"), *EXECUTED), first_on_worker(tasks)
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)
    places: list[int] = []
    extra: list[float] = []
    following: list[int] = []
    for _, mine in rows_by_group(prefix[rows]):
        of_prefix = rows[mine]
        of_prefix = of_prefix[ran[of_prefix]]
        firsts, later = of_prefix[first[of_prefix]], of_prefix[~first[of_prefix]]
        if not len(firsts) or len(later) < 2 * len(firsts):
            continue
        usual = max(float(np.median(durations[later])), 1.0)
        slow = firsts[durations[firsts] > WARM_UP_RATIO * usual]
        if len(slow) < WARM_UP_WORKERS * len(firsts):
            continue
        # Other threads of the worker that need the same module wait for it.
        stops = np.zeros(int(worker.max()) + 1, dtype=np.int64)
        stops[worker[slow]] = tasks["stop_us"][slow]
        among = of_prefix[durations[of_prefix] > WARM_UP_RATIO * usual]
        late = among[tasks["start_us"][among] < stops[worker[among]]]
        places += place[late].tolist()
        following += place[np.setdiff1d(later, late)].tolist()
        extra += np.maximum(us[place[late]] - float(np.median(us[place[later]])), 0.0).tolist()
    found = np.array(places, dtype=np.int64)
    order = np.argsort(tasks["start_us"][rows[found]], kind="stable") if len(found) else found
    found = found[order]
    workers = worker[rows[found]] if len(found) else found
    numbers = {code: number for number, code in enumerate(dict.fromkeys(workers.tolist()))}
    return WarmUp(
        found,
        np.array([numbers[code] for code in workers.tolist()], dtype=np.int64),
        np.array(extra, dtype=np.float64)[order],
        np.sort(np.array(following, dtype=np.int64)),
    )
