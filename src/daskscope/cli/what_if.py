"""Predict a recorded computation with more or fewer workers, other threads, faster tasks, or other chunks."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from daskscope import units
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.summary import summarise
from daskscope.analysis.time.critical_path import longest_computation
from daskscope.analysis.what_if.predict import Options, Prediction, WhatIf, wall_time, what_if
from daskscope.cli.output import open_output, write, write_json
from daskscope.cli.terminal import HELP, Column, escape
from daskscope.client.analyse import find_recording
from daskscope.model.recording import Recording

#: Computations that are tried if there is no prediction; a large one takes seconds.
MAX_TRIED = 4


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument(
        "--workers",
        type=_counts,
        metavar="N,N,…",
        help="numbers of workers (default: from a quarter to eight times as many as recorded)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of each worker (default: as recorded)")
    parser.add_argument(
        "--faster",
        type=_faster,
        action="append",
        default=[],
        metavar="PREFIX=TIMES",
        help="make the tasks of a prefix faster, such as load=2 (repeatable)",
    )
    parser.add_argument("--no-transfers", action="store_true", help="move no results between workers")
    parser.add_argument("--no-spill", action="store_true", help="read no inputs from disk")
    parser.add_argument(
        "--no-stragglers", action="store_true", help="let no task take longer than 95 %% of its prefix do"
    )
    parser.add_argument(
        "--chunks",
        type=float,
        default=1.0,
        metavar="TIMES",
        help="chunks of this many times the size, such as 2 or 0.5 (default: as recorded)",
    )
    parser.add_argument("--computation", metavar="ID", help="computation (default: the one that took longest)")
    parser.add_argument("--json", action="store_true", help="print JSON; times are integer microseconds (…_us)")


def run(args: argparse.Namespace) -> int:
    recording = find_recording(args.path)
    options = Options.from_attributes(dict(args.faster), args)
    found = what_if(
        recording, workers=args.workers, threads=args.threads, options=options, computation=args.computation
    )
    if args.json:
        write_json({**asdict(found), "check": found.check})
    else:
        _print(found)
        if found.reason and not recording.partial:
            _print_other_computations(recording, args.computation)
    return 1 if found.reason else 0


def _print(found: WhatIf) -> None:
    output = open_output()
    if found.reason:
        output.line(f"No prediction. {escape(found.reason)}")
        return
    has_cost = any(prediction.cost is not None for prediction in found.predictions)
    columns = [
        Column("workers"),
        Column("threads"),
        Column("wall time"),
        Column("speed-up"),
        Column("efficiency"),
        *([Column("cost")] if has_cost else []),
        Column("memory of a worker", optional=True),
        Column("transferred", optional=True),
    ]
    output.table(columns, [_cells(prediction, has_cost=has_cost) for prediction in found.predictions])
    output.line()
    output.line(f"{found.check} It had {_cluster(found.workers, found.threads)}.")
    if found.advice:
        output.line(found.advice)
    output.line(f"With any number of workers it takes at least {units.duration(found.bound_us)}.")
    for text in found.assumptions:
        output.line(f"- {escape(text)}")


def _print_other_computations(recording: Recording, computation: str | None) -> None:
    """Name the longest of the other computations that have a prediction."""
    tasks = recording["tasks"]
    chosen = computation or longest_computation(tasks, where(tasks.strings("status"), *EXECUTED))
    others = [one for one in summarise(recording).computations if one.state == "finished" and one.computation != chosen]
    longest = sorted(others, key=lambda one: -one.wall_us)[:MAX_TRIED]
    found = [one for one in longest if not what_if(recording, workers=[1], computation=one.computation).reason]
    if found:
        write("Try another computation:\n")
    for one in found:
        code = f"  {escape(one.code)}" if one.code else ""
        write(f"  --computation {escape(one.computation)}  {units.duration(one.wall_us)}{code}\n")


def _cells(prediction: Prediction, *, has_cost: bool) -> list[str]:
    limit = " (too much)" if prediction.exceeds_memory else ""
    return [
        units.count(prediction.workers),
        units.count(prediction.threads),
        wall_time(prediction),
        f"{prediction.speedup:.2f} ×",
        units.percent(prediction.efficiency),
        *([units.dollars(prediction.cost or 0.0)] if has_cost else []),
        units.nbytes(prediction.peak_worker_nbytes) + limit,
        units.nbytes(prediction.transferred_nbytes),
    ]


def _cluster(workers: int, threads: int) -> str:
    each = " each" if workers > 1 else ""
    return f"{units.counted(workers, 'worker')} with {units.counted(threads, 'thread')}{each}"


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers, such as 1,2,4,8") from None


def _faster(text: str) -> tuple[str, float]:
    prefix, _, times = text.rpartition("=")
    try:
        return prefix, float(times)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a prefix and a number, such as load=2") from None
