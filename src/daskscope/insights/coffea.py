"""Rules about runs of coffea: files that were skipped or failed, the size of chunks, and the number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun, fit
from daskscope.analysis.what_if.chunks import makespan_us
from daskscope.insights.facts import Facts, Finding, Rule, error_line
from daskscope.insights.scaling import wanted_workers

#: Dask places this few chunks per thread badly (see ``_coffea_few_chunks``).
CHUNKS_PER_THREAD = 2


def _count_workers(facts: Facts, run: CoffeaRun) -> int:
    """Return how many workers were there during a run."""
    return sum(w.start_us < run.stop_us and (w.end_us or run.stop_us) > run.start_us for w in facts.workers)


def _coffea_skipped(facts: Facts) -> Iterator[Finding]:
    """Find files or chunks that were skipped.

    With ``skipbadfiles``, coffea leaves out files that it cannot read. Its metrics do not say so, and its number of chunks counts
    them.
    """
    for run in facts.coffea:
        parts = [
            f"{units.count(skipped)} of {units.counted(total, noun)}"
            for skipped, total, noun in (
                (run.files_skipped, run.files, "file"),
                (run.chunks_skipped, run.chunks, "chunk"),
            )
            if skipped
        ]
        if parts:
            yield Finding(
                "coffea",
                f"{run.name} skipped {' and '.join(parts)}",
                "The result lacks their events. coffea's own metrics do not count them.",
                "Check these files. The worker's warnings name them.",
                "coffea",
                run.start_us,
                run.stop_us,
                rank=1,
            )


COFFEA_SKIPPED = Rule(
    "coffea-skipped",
    "Files were skipped",
    "A skipped file is missing in the result, and nothing else says so.",
    "Always.",
    _coffea_skipped,
)


def _coffea_same_error(facts: Facts) -> Iterator[Finding]:
    """Find chunks that failed in the same way on every try.

    coffea asks Dask to retry failed chunks three times. An error of the code or of a file does not go away: four executions are
    lost instead of one. In one run they took 22 % of the thread time.
    """
    for run in facts.coffea:
        prefixes = {run.name}
        for failure in facts.errors:
            if not (failure.retried and failure.count > failure.retried and {*failure.prefixes} & prefixes):
                continue
            if not facts.is_relevant(run.failed_us):
                continue
            yield Finding(
                "coffea",
                f"Retries of {run.name} failed again",
                f"{error_line(failure)}: {units.counted(failure.count, 'execution')} failed, "
                f"{units.count(failure.retried)} of them were retried. They took {units.duration(run.failed_us)}.",
                "Retries help against unreliable storage only. For an error of the code, set DaskExecutor(retries=0).",
                "errors",
                failure.first_us,
                failure.last_us,
                facts.thread_time(run.failed_us, "time of the executions that failed"),
                1,
            )


COFFEA_SAME_ERROR = Rule(
    "coffea-same-error",
    "All chunks fail with the same error",
    "An error in the processor fails every chunk, after the whole time of each.",
    "Always.",
    _coffea_same_error,
)


# ---------------------------------------------------------------- chunks

#: Share of the task time besides ``process()``.
MIN_OPENING = 0.5


def _coffea_opening(facts: Facts) -> Iterator[Finding]:
    """Find runs in which opening files takes more time than the user's code.

    coffea opens the file for every chunk, and reads its description again: 0.4 s of CPU time for 914 branches. Only larger chunks
    are suggested. In 16 runs of known workloads, larger chunks did no harm in any of 8 cases, smaller ones in 3 of 8.
    """
    for run in facts.coffea:
        if run.useful_share is None or run.kind != "Runner":
            continue
        besides_us = round(run.task_us * (1 - run.useful_share))
        if 1 - run.useful_share <= MIN_OPENING or not facts.is_relevant(besides_us):
            continue
        title = f"Each chunk of {run.name} took {units.duration(run.overhead_us)} besides your code"
        evidence = (
            f"process() took {units.percent(run.useful_share)} of the task time of {units.counted(run.chunks, 'chunk')}. "
            "The rest opens the file and reads its description, again for every chunk."
        )
        saved = facts.thread_time(besides_us, "task time of the chunks besides process()")
        yield Finding("coffea", title, evidence, _larger_chunks(run), "coffea", run.start_us, run.stop_us, saved, 1)


def _larger_chunks(run: CoffeaRun) -> str:
    room = run.chunks / max(CHUNKS_PER_THREAD * run.threads + 1, 1)
    if room < 1.5 or run.events <= 0:
        return "Larger chunks would leave threads idle. Files with fewer branches open faster: skim them once."
    size = run.events / run.chunks
    return (
        f"Use larger chunks: chunksize={units.count(round(min(room, 4) * size))} instead of about "
        f"{units.count(round(size))}. Keep more than {units.count(CHUNKS_PER_THREAD * run.threads)} chunks for "
        f"{units.counted(run.threads, 'thread')}."
    )


COFFEA_OPENING = Rule(
    "coffea-opening",
    "Opening files takes long",
    "Every chunk opens its file again, and reads the metadata of all branches.",
    "Measured with files of 914 branches.",
    _coffea_opening,
)


MIN_GAIN = 1.25
#: Sizes up to this factor away from those seen are considered.
MAX_REACH = 4.0
#: With so few chunks, the run takes 1.5 times as long (1.3 to 2.2 with 8 workers).
FEW_CHUNKS_FACTOR = 1.5
#: Work of the scheduler for a task.
TASK_US = 1_000


@dataclass(frozen=True)
class Prediction:
    """A chunk size and the predicted time of the process phase."""

    size: int
    us: float


def _coffea_chunk_size(facts: Facts) -> Iterator[Finding]:
    """Find runs that would be faster with another chunk size.

    The duration of a chunk is nearly a line: a fixed part, and a part per event. Two clearly different sizes, in one run or in
    two runs of the same processor, are enough to fit it. The chunks of other sizes are made with coffea's own rule and scheduled
    on the threads of the run. In 45 cases with known results the rule spoke 26 times, and none of its sizes was slower; but in 11
    of them it had promised more than 1.25 times what came, so it gives a range. It is silent below a gain of 1.25, and beyond
    four times the sizes that were seen.
    """
    latest: dict[tuple[str, tuple[str, ...]], list[CoffeaRun]] = {}
    for run in facts.coffea:
        if run.kind == "Runner" and run.events > 0 and run.threads > 0:
            latest.setdefault((run.name, run.columns), []).append(run)
    for runs in latest.values():
        yield from _chunk_size_finding(facts, runs)


def _chunk_size_finding(facts: Facts, runs: list[CoffeaRun]) -> Iterator[Finding]:
    run = runs[-1]
    points = [point for other in runs for point in other.points]
    line = fit(points)
    if line is None or not run.chunks:
        return
    files = [part.events for part in run.file_parts if part.events > 0]
    now = round(run.events / run.chunks)
    known = [events for events, _ in points]

    def predict(size: int, chunks: Sequence[int]) -> Prediction:
        us = makespan_us([line.fixed_us + line.us_per_event * events + TASK_US for events in chunks], run.threads)
        return Prediction(size, us * (FEW_CHUNKS_FACTOR if len(chunks) <= CHUNKS_PER_THREAD * run.threads else 1.0))

    present = predict(now, [chunk.events for chunk in run.records])
    sizes = _candidates(now, min(known) / MAX_REACH, max(known) * MAX_REACH)
    candidates = [predict(size, chunk_sizes(files, size)) for size in sizes]
    best = min(candidates, key=lambda prediction: prediction.us, default=present)
    if best.us <= 0 or present.us / best.us < MIN_GAIN:
        return
    gain = present.us / best.us
    fixed = min(line.fixed_us * run.chunks / max(run.task_us, 1), 1.0)
    saved_us = round(run.wall_us * (1 - 1 / gain))
    yield Finding(
        "coffea",
        f"Another chunk size may be faster for {run.name}",
        f"A chunk takes {units.duration(line.fixed_us)} and {units.duration(1e6 * line.us_per_event)} per million events. "
        f"With about {units.count(now)} events per chunk, {units.percent(fixed)} "
        "of that is the fixed part.",
        f"Try chunksize={units.count(best.size)}. Predicted: {1 + (gain - 1) / 2:.1f} to {gain:.1f} times as fast.",
        "coffea",
        run.start_us,
        run.stop_us,
        facts.wall_time(saved_us, "difference to the predicted time of the run with that chunk size"),
    )


def _candidates(now: int, least: float, most: float) -> list[int]:
    """Return round sizes on both sides of the present one."""
    sizes = (round(now * factor) for factor in (0.25, 0.5, 2, 4, 8, 16))
    return [_rounded(size) for size in sizes if least <= size <= most and size > 0]


def _rounded(size: int) -> int:
    """Round to one or two digits, as people write chunk sizes."""
    unit = int(10 ** max(len(str(size)) - 2, 0))
    return max(round(size / unit) * unit, 1)


def chunk_sizes(files: Sequence[int], size: int) -> list[int]:
    """Return the sizes of the chunks that coffea makes of files with these numbers of events."""
    sizes = []
    for events in files:
        count = max(round(events / size), 1)
        each = -(-events // count)
        sizes += [min(each, events - start) for start in range(0, events, each)]
    return sizes


COFFEA_CHUNK_SIZE = Rule(
    "coffea-chunk-size",
    "Another chunk size would be faster",
    "A chunk has a fixed cost; a few large ones leave threads idle.",
    "A fit of fixed cost and cost per event predicts at least 1.25 times less time.",
    _coffea_chunk_size,
)


#: The busiest worker has this many times the mean number of chunks.
MIN_IMBALANCE = 1.5


def _coffea_few_chunks(facts: Facts) -> Iterator[Finding]:
    """Find runs with too few chunks for the threads.

    All chunks of a run depend on the same task, the one that broadcasts the processor. Dask spreads such tasks only if there are
    more than two per thread; fewer go to the worker that holds the processor, and are stolen from there one by one. With 4 and 8
    workers the busiest had 1.5 to 4 times the mean number of chunks then, and at most 1.25 times above.
    """
    for run in facts.coffea:
        workers = _count_workers(facts, run)
        if run.kind != "Runner" or run.chunks > CHUNKS_PER_THREAD * run.threads or workers < 2:
            continue
        most = max((tasks for _, tasks in run.tasks_by_worker), default=0)
        imbalance = most * workers / max(run.chunks, 1)
        if imbalance < MIN_IMBALANCE:
            continue
        yield Finding(
            "coffea",
            f"{run.name} had only {units.counted(run.chunks, 'chunk')} for {units.counted(run.threads, 'thread')}",
            f"The busiest of {units.count(workers)} workers processed {units.counted(most, 'chunk')}, "
            f"{imbalance:.1f} times the mean. Dask spreads chunks evenly only if there are more than two per thread.",
            f"Use a smaller chunksize, so that there are at least {units.count(3 * run.threads)} chunks, or fewer workers.",
            "coffea",
            run.start_us,
            run.stop_us,
            facts.wall_time(
                round(run.wall_us * (1 - 1 / imbalance)), "time of the run beyond that with evenly spread chunks"
            ),
        )


COFFEA_FEW_CHUNKS = Rule(
    "coffea-few-chunks",
    "There are fewer chunks than threads",
    "Threads without a chunk are idle.",
    "Always.",
    _coffea_few_chunks,
)


MIN_AMPLIFICATION = 1.5


def _coffea_rereading(facts: Facts) -> Iterator[Finding]:
    """Find runs whose chunks read the same parts of a file again.

    ROOT stores a branch in baskets of some thousand events. A chunk that begins inside a basket reads and decompresses all of it.
    With baskets of 20,000 events, chunks of 10,000 read 2.1 times as many bytes as chunks of 200,000, and chunks of 2,500 8
    times.
    """
    for run in facts.coffea:
        factor = run.read_amplification
        if factor is None or factor < MIN_AMPLIFICATION:
            continue
        least = run.least_bytes_per_event or 0.0
        yield Finding(
            "coffea",
            f"{run.name} read {factor:.1f} times as many bytes as necessary",
            f"{run.bytes_per_event:.0f} bytes per event; another run with the same columns read {least:.0f}. "
            f"Chunks of about {units.count(round(run.events / max(run.chunks, 1)))} events are smaller than the baskets of "
            "the files.",
            "Use larger chunks, or Runner(align_clusters=True).",
            "coffea",
            run.start_us,
            run.stop_us,
        )


COFFEA_REREADING = Rule(
    "coffea-rereading",
    "The same bytes are read again",
    "Columns that are read more often than needed cost time and bandwidth.",
    "Measured against the size of the columns.",
    _coffea_rereading,
)


# ---------------------------------------------------------------- scaling

#: Workers wanted, by workers there were.
MIN_WANTED = 1.5
#: Factors of the predicted time: the ends of the range.
PREDICTED_RANGE = (0.5, 1.8)


def _coffea_scaling(facts: Facts) -> Iterator[Finding]:
    """Find runs for which adaptive scaling wanted more workers than it could have.

    The chunks are scheduled on the threads that were wanted. In 24 pairs of runs the prediction was 0.97 of the measured time in
    the median, but between 0.46 and 1.81, so it is given as a range.
    """
    requests = wanted_workers(facts)
    for run in facts.coffea:
        wanted = max((count for time_us, count in requests if run.start_us <= time_us <= run.stop_us), default=0)
        there = _count_workers(facts, run)
        if not there or wanted < MIN_WANTED * there or not run.records:
            continue
        us = _predicted_us(run, wanted / there)
        low, high = (us * factor for factor in PREDICTED_RANGE)
        if high >= run.wall_us:
            continue
        yield Finding(
            "coffea",
            f"Scaling wanted {units.counted(wanted, 'worker')} for {run.name}, but had {units.count(there)}",
            f"The run took {units.duration(run.wall_us)} on {units.counted(run.threads, 'thread')}.",
            f"Allow more workers. Predicted with {units.count(wanted)}: {units.duration(low)} to {units.duration(high)}.",
            "coffea",
            run.start_us,
            run.stop_us,
            facts.wall_time(round(run.wall_us - us), "difference to the predicted time with the wanted workers"),
        )


def _predicted_us(run: CoffeaRun, ratio: float) -> float:
    return makespan_us([chunk.task_us for chunk in run.records], round(run.threads * ratio))


COFFEA_SCALING = Rule(
    "coffea-scaling",
    "Adaptive scaling wanted more workers than it could have",
    "More workers would finish sooner.",
    "Scaling wanted 1.5 times the workers, and the prediction is below the measured time in its whole range.",
    _coffea_scaling,
)
