"""Opening files takes more time than the user's code.

coffea opens the file for every chunk, and reads its description again: 0.4 s of CPU time for 914 branches. Only larger chunks are
suggested. In 16 runs of known workloads, larger chunks did no harm in any of 8 cases, smaller ones in 3 of 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun
from daskscope.insights.facts import Facts, Finding, Rule

#: Share of the task time besides ``process()``.
MIN_SHARE = 0.5
#: With fewer chunks than this per thread, Dask places them badly (see ``coffea_few_chunks``).
CHUNKS_PER_THREAD = 2


def check(facts: Facts) -> Iterator[Finding]:
    for run in facts.coffea:
        if run.useful_share is None or run.kind != "Runner":
            continue
        besides_us = round(run.task_us * (1 - run.useful_share))
        if 1 - run.useful_share <= MIN_SHARE or not facts.is_relevant(besides_us):
            continue
        title = f"Each chunk of {run.name} took {units.duration(run.overhead_us)} besides your code"
        evidence = (
            f"process() took {units.percent(run.useful_share)} of the task time of {units.counted(run.chunks, 'chunk')}. "
            "The rest opens the file and reads its description, again for every chunk."
        )
        saved = facts.thread_time(besides_us, "task time of the chunks besides process()")
        yield Finding("coffea", title, evidence, _advice(run), "coffea", run.start_us, run.stop_us, saved, 1)


def _advice(run: CoffeaRun) -> str:
    room = run.chunks / max(CHUNKS_PER_THREAD * run.threads + 1, 1)
    if room < 1.5 or run.events <= 0:
        return "Larger chunks would leave threads idle. Files with fewer branches open faster: skim them once."
    size = run.events / run.chunks
    return (
        f"Use larger chunks: chunksize={units.count(round(min(room, 4) * size))} instead of about "
        f"{units.count(round(size))}. Keep more than {units.count(CHUNKS_PER_THREAD * run.threads)} chunks for "
        f"{units.counted(run.threads, 'thread')}."
    )


RULE = Rule(
    "coffea-opening",
    "Opening files takes long",
    "Every chunk opens its file again, and reads the metadata of all branches.",
    "Measured with files of 914 branches.",
    check,
)
