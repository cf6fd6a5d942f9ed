"""The progress of running computations: tasks by prefix, the time left, and why one is stuck.

The time left is the work that is left (tasks × the mean duration of their prefix) over the threads that work on it: at best all
threads of the cluster, at worst as many as the computation has used so far. Prefixes that have not run yet take their durations
from earlier runs of the same code. If the result would be a guess, there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from daskscope import units
from daskscope.analysis.running.rollup import Sums
from daskscope.analysis.running.still_running import RunStatus, find_obstacle, list_needs
from daskscope.model.untrusted import OTHER, clean, clean_name, parse_json, parse_object
from daskscope.units import DAY, MINUTE, SECOND

#: Finished tasks that a computation, and each of its prefixes, needs for an estimate of its own.
MIN_FINISHED, MIN_FINISHED_PREFIX = 5, 3
#: If a task runs for longer than this, and than this many times as long as usual, its end cannot be predicted.
UNPREDICTABLE_US, UNPREDICTABLE = 5_000_000, 4
#: Share of the tasks left that may be of prefixes with unknown durations.
MAX_UNKNOWN = 0.1
#: A wider range is not shown, unless it is short.
MAX_RATIO, SHORT_US = 4.0, MINUTE
MAX_LEFT_US = 30 * DAY
#: Earlier runs count if they had about as many tasks, and predict something if they took about equally long.
SIMILAR_TASKS, SIMILAR_DURATION = 1.25, 1.5
#: Durations vary: the range is widened by this share at both ends.
SPREAD = 0.1
#: A task is too long if it runs for so many times the usual duration of its prefix, and for so long at least.
LONG_FACTOR, LONG_US = 20, 10 * SECOND
#: Transfers block a computation if no task has run for this long.
NO_WORK_US = 30 * SECOND


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that a worker was executing at its last heartbeat."""

    key: str
    prefix: str
    computation: str
    worker: str
    start_us: int


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run of the same code that finished, with the mean duration of each prefix."""

    duration_us: int
    tasks: int
    means_us: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunningComputation:
    """What a server knows about a running computation; times are on the scheduler's clock."""

    id: str
    start_us: int
    tasks: int
    erred: int
    unfinished: int
    #: When these counts were true.
    seen_us: int = 0
    #: JSON object: tasks by state of each prefix; empty if the recorder did not send it.
    prefix_states: str = ""
    #: Sums over the executions so far, by prefix.
    sums: Mapping[str, Sums] = field(default_factory=dict)
    earlier: Sequence[EarlierRun] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Tasks of a prefix or of a computation. ``unrunnable`` tasks are among the waiting ones."""

    done: int = 0
    running: int = 0
    waiting: int = 0
    failed: int = 0
    unrunnable: int = 0

    @property
    def total(self) -> int:
        return self.done + self.running + self.waiting + self.failed

    @property
    def left(self) -> int:
        return self.running + self.waiting

    @property
    def is_done(self) -> bool:
        """Whether no task is left. The recorder closes a computation some seconds later."""
        return self.total > 0 and not self.left


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """An estimate: at least and at most."""

    low_us: float
    high_us: float


@dataclass(frozen=True)
class Progress:
    """The progress of a computation."""

    id: str
    counts: Counts
    prefixes: Mapping[str, Counts]
    left: TimeLeft | None
    #: Why nothing of it can run; empty if something can.
    stuck: str = ""
    #: What is wrong although it goes on.
    note: str = ""

    @property
    def summary(self) -> str:
        """Return the counts and the time left as text."""
        done = f"{self.counts.done:,} of {units.counted(self.counts.total, 'task')}"
        if self.counts.is_done:
            return (
                f"all {self.counts.total:,} tasks done" if self.counts.done == self.counts.total > 1 else f"{done} done"
            )
        if self.left is None:
            return done
        text = units.duration_range(self.left.low_us, self.left.high_us)
        return f"{done}, {text} left" if text.startswith("less") else f"{done}, about {text} left"


def parse_running(text: str) -> list[RunningTask]:
    """Return the longest-running tasks that a recorder sent; rows of any other form are left out."""
    try:
        rows = parse_json(text or "[]")
    except ValueError:
        return []
    kinds = [str, str, str, str, int]
    return [
        RunningTask(clean_name(row[0]), clean_name(row[1]), clean_name(row[2]), clean_name(row[3]), clean(row[4]))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, list) and [type(value) for value in row] == kinds
    ]


def track(
    run: RunStatus,
    computations: Sequence[RunningComputation],
    longest: Sequence[RunningTask],
    now_us: int,
    failed_transfers: int = 0,
) -> list[Progress]:
    """Return the progress of all running computations of a cluster.

    ``failed_transfers`` is how many transfers failed within the last minute, if no task runs.
    """
    assigned = [_counts(one, run.threads) for one in computations]
    total = sum(counts.running for counts, _ in assigned)
    # A worker executes as many tasks as it has threads; others that are assigned to it wait there.
    obstacle = find_obstacle(run, now_us)
    room = run.tasks_executing if obstacle else max(run.threads, run.tasks_executing)
    result = []
    for one, (counts, prefixes) in zip(computations, assigned, strict=True):
        share = counts.running / total if total else 1 / len(computations)
        by_prefix = {name: _limited(part, room / total if total else 1.0) for name, part in prefixes.items()}
        counts = _sum(by_prefix.values()) if by_prefix else _limited(counts, room / total if total else 1.0)
        mine = [task for task in longest if task.computation == one.id]
        stuck, note = _judge(run, one, counts, mine, now_us, failed_transfers)
        is_unsure = any(_is_unpredictable(task, one, now_us) for task in mine)
        left = None if stuck or is_unsure else _time_left(one, counts, by_prefix, run.threads, share, now_us)
        result.append(Progress(one.id, counts, by_prefix, left, stuck, note))
    return result


# ---------------------------------------------------------------- counts


def _counts(one: RunningComputation, threads: int = 0) -> tuple[Counts, dict[str, Counts]]:
    """Return the tasks of a computation and of its prefixes; all tasks that are assigned to workers count as running."""
    prefixes = {
        clean_name(name): _updated(_of_states(states), one.sums.get(clean_name(name)), one.seen_us, threads)
        for name, states in parse_object(one.prefix_states).items()
        if isinstance(states, dict)
    }
    if prefixes:
        return _sum(prefixes.values()), prefixes
    failed = min(one.erred, one.tasks)
    left = min(one.unfinished, one.tasks - failed)
    return Counts(one.tasks - failed - left, left, 0, failed), {}


def _of_states(states: Mapping[str, object]) -> Counts:
    def number(*names: str) -> int:
        return sum(clean(value) for name in names if type(value := states.get(name)) is int)

    return Counts(
        done=number("memory", "released", "forgotten"),
        running=number("processing"),
        waiting=number("waiting", "queued", "no-worker"),
        failed=number("erred"),
        unrunnable=number("no-worker"),
    )


def _updated(counts: Counts, sums: Sums | None, seen_us: int, threads: int) -> Counts:
    """Return counts with tasks that finished since: executions arrive every two seconds, states every five.

    Not if some are known to have run more than once: then there are more executions than tasks. If results were lost, it is not
    known, so no more count than the threads can have finished since.
    """
    if sums is None or sums.killed or sums.retried or sums.last_us <= seen_us:
        return counts
    finished = sums.tasks - sums.errors
    room = (sums.last_us - seen_us) * threads * max(1, _finished(sums)) / max(1, sums.compute_us)
    new = min(finished - counts.done, ceil(room))
    if new <= 0 or finished > counts.total - counts.failed:
        return counts
    running = max(0, counts.running - new)
    waiting = counts.left - new - running
    # Those that ran are followed by others, as long as there are any that can run.
    started = min(counts.running - running, max(0, waiting - counts.unrunnable))
    return replace(counts, done=counts.done + new, running=running + started, waiting=waiting - started)


def _limited(counts: Counts, share: float) -> Counts:
    """Return counts with only a share of the assigned tasks running; the others wait."""
    running = min(counts.running, round(counts.running * min(share, 1.0)))
    return replace(counts, running=running, waiting=counts.waiting + counts.running - running)


def _sum(parts: Iterable[Counts]) -> Counts:
    total = Counts()
    for part in parts:
        total = Counts(
            total.done + part.done,
            total.running + part.running,
            total.waiting + part.waiting,
            total.failed + part.failed,
            total.unrunnable + part.unrunnable,
        )
    return total


# ---------------------------------------------------------------- time left


def _time_left(
    one: RunningComputation, counts: Counts, prefixes: Mapping[str, Counts], threads: int, share: float, now_us: int
) -> TimeLeft | None:
    if not counts.left or not threads:
        return None
    finished = sum(_finished(sums) for sums in one.sums.values())
    found = _from_work(one, prefixes, threads, share, now_us) if prefixes and finished >= MIN_FINISHED else None
    found = found or (_from_earlier(one, counts, now_us) if finished < MIN_FINISHED else None)
    if found is None or found.high_us > MAX_LEFT_US:
        return None
    return found if found.high_us < SHORT_US or found.high_us <= MAX_RATIO * found.low_us else None


def _is_unpredictable(task: RunningTask, one: RunningComputation, now_us: int) -> bool:
    """Return whether a task runs for much longer than its prefix or, if that is unknown, the computation usually does."""
    finished = sum(map(_finished, one.sums.values()))
    overall = sum(sums.compute_us for sums in one.sums.values()) / finished if finished else 0.0
    usual = _mean_us(one.sums.get(task.prefix)) or _earlier_mean(one.earlier, task.prefix) or overall
    return now_us - task.start_us > max(UNPREDICTABLE_US, UNPREDICTABLE * usual)


def needs_earlier(one: RunningComputation) -> bool:
    """Return whether earlier runs would help to estimate the time left: this one has not run all its prefixes yet."""
    _, prefixes = _counts(one)
    return sum(map(_finished, one.sums.values())) < MIN_FINISHED or any(
        counts.left and _mean_us(one.sums.get(name)) is None for name, counts in prefixes.items()
    )


def _finished(sums: Sums) -> int:
    return max(0, sums.tasks - sums.killed)


def _mean_us(sums: Sums | None) -> float | None:
    """Return the mean duration of a prefix; None if too few have finished."""
    finished = _finished(sums) if sums else 0
    return sums.compute_us / finished if sums and finished >= MIN_FINISHED_PREFIX else None


def _from_work(
    one: RunningComputation, prefixes: Mapping[str, Counts], threads: int, share: float, now_us: int
) -> TimeLeft | None:
    """Return the time left from the durations of the tasks that are left."""
    finished = sum(_finished(sums) for sums in one.sums.values())
    overall = sum(sums.compute_us for sums in one.sums.values()) / finished
    low = high = in_flight = longest = 0.0
    unknown = left = 0
    for name, counts in prefixes.items():
        left += counts.left
        mean = _mean_us(one.sums.get(name)) or _earlier_mean(one.earlier, name)
        if mean is None:
            # Of some final tasks nothing is known; they may take no time, or as long as others.
            unknown += counts.left
            high += counts.left * overall
            continue
        # Tasks that run are half done on average.
        work = (counts.waiting + counts.running / 2) * mean
        low, high, in_flight = low + work, high + work, in_flight + mean * counts.running / 2
        longest = max(longest, mean if counts.left else 0.0)
    if unknown > MAX_UNKNOWN * left:
        return None
    began = min((sums.first_us for sums in one.sums.values() if sums.first_us), default=one.start_us)
    # Until the last execution that arrived: executions of the last seconds are still missing.
    last = max(sums.last_us for sums in one.sums.values())
    elapsed = max(1, min(last, now_us) - max(began, one.start_us))
    used = (sum(sums.compute_us for sums in one.sums.values()) + in_flight) / elapsed
    used = min(max(used, 0.01), threads * share)
    # Nothing ends before its longest task, and that one may start last.
    return TimeLeft(
        max(low / threads, longest / 2) * (1 - SPREAD),
        (high / used + longest) * (1 + SPREAD),
    )


def _earlier_mean(earlier: Sequence[EarlierRun], prefix: str) -> float | None:
    known = [run.means_us[prefix] for run in earlier if prefix in run.means_us and prefix != OTHER]
    return sum(known) / len(known) if known else None


def _from_earlier(one: RunningComputation, counts: Counts, now_us: int) -> TimeLeft | None:
    """Return the time left from how long at least two earlier runs took, if they agree."""
    durations = [
        run.duration_us
        for run in one.earlier
        if run.duration_us and counts.total / SIMILAR_TASKS <= run.tasks <= counts.total * SIMILAR_TASKS
    ]
    if len(durations) < 2 or max(durations) > SIMILAR_DURATION * min(durations):
        return None
    elapsed = now_us - one.start_us
    low, high = min(durations) * (1 - SPREAD) - elapsed, max(durations) * (1 + SPREAD) - elapsed
    return TimeLeft(low, high) if low > 0 else None


# ---------------------------------------------------------------- stuck


def _judge(
    run: RunStatus,
    one: RunningComputation,
    counts: Counts,
    longest: Sequence[RunningTask],
    now_us: int,
    failed_transfers: int,
) -> tuple[str, str]:
    """Return why nothing of a computation can run, and what is wrong although it goes on."""
    obstacle = find_obstacle(run, now_us)
    if obstacle == "no workers":
        return "the cluster has no workers", ""
    if obstacle == "paused":
        return f"{_all_workers(run)} paused, because {'its' if run.workers == 1 else 'their'} memory is nearly full", ""
    if failed_transfers and is_without_work(run, now_us):
        return f"transfers between workers fail ({failed_transfers:,} in the last minute)", ""
    if obstacle == "stalled":
        return f"no worker has executed anything for {units.duration(now_us - run.stalled_since_us)}", ""
    unrunnable = counts.unrunnable or (
        run.tasks_unrunnable if obstacle == "unrunnable" and not one.prefix_states else 0
    )
    misfit = f"no worker fits {units.counted(unrunnable, 'task')}{_needs(run)}" if unrunnable else ""
    if misfit and (obstacle == "unrunnable" or not counts.running):
        return misfit, ""
    long = [task for task in longest if _is_long(task, one.sums.get(task.prefix), now_us)]
    if not long:
        return "", misfit
    text = _long_text(long, one.sums, now_us)
    return (text, "") if len(long) >= counts.running else ("", text)


def _all_workers(run: RunStatus) -> str:
    return "the only worker is" if run.workers == 1 else f"all {run.workers:,} workers are"


def _needs(run: RunStatus) -> str:
    needs = list_needs(run)
    return f": none offers {needs}" if needs else ""


def is_without_work(run: RunStatus, now_us: int) -> bool:
    """Return whether tasks are assigned to workers, but none has run for a while: they may wait for transfers."""
    if find_obstacle(run, now_us) == "stalled":
        return True
    last = max(run.last_work_us, run.start_us)
    return run.tasks_processing > 0 and not run.tasks_executing and now_us - last >= NO_WORK_US


def usual_us(sums: Sums | None) -> float | None:
    """Return the usual duration of a prefix, without its longest execution; None if too few have finished."""
    finished = _finished(sums) if sums else 0
    return (sums.compute_us - sums.longest_us) / (finished - 1) if sums and finished >= MIN_FINISHED else None


def _is_long(task: RunningTask, sums: Sums | None, now_us: int) -> bool:
    usual = usual_us(sums)
    return usual is not None and now_us - task.start_us >= max(LONG_US, LONG_FACTOR * usual)


def _long_text(tasks: Sequence[RunningTask], sums: Mapping[str, Sums], now_us: int) -> str:
    first = tasks[0]
    usual = units.duration(usual_us(sums[first.prefix]) or 0.0)
    age = units.duration(now_us - first.start_us)
    if len(tasks) == 1:
        return f"{first.key} has been running for {age}, {first.prefix} usually takes {usual}"
    return f"{len(tasks):,} tasks have been running for up to {age}, {first.prefix} usually takes {usual}"
