"""Run the benchmarks and print a table; ``--quick`` skips those that take minutes."""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path

import daskscope
from benchmarks import (
    accuracy,
    agent_cost,
    app,
    change_points,
    compare,
    fleet,
    giant,
    ingest,
    insights,
    large_clusters,
    live,
    many_clusters,
    neighbours,
    outage,
    overhead,
    readers,
    replay,
    replicas,
    report,
    sql,
    traffic,
    volume,
    what_if,
    wire_size,
)
from benchmarks.result import Result
from benchmarks.truth import bench as truth

RESULTS = Path(__file__).parent / "results"

Measurement = Callable[[], list[Result]]
QUICK: dict[str, Measurement] = {
    "overhead": overhead.run,
    "wire_size": wire_size.run,
    "agent_cost": agent_cost.run,
}
LONG: dict[str, Measurement] = {
    "accuracy": accuracy.run,
    "compare": compare.run,
    "ingest": ingest.run,
    "insights": insights.run,
    "neighbours": neighbours.run,
    "outage": outage.run,
    "readers": readers.run,
    "fleet": fleet.run,
    "giant": giant.run,
    "app": app.run,
    "change_points": change_points.run,
    "large_clusters": large_clusters.run,
    "live": live.run,
    "many_clusters": many_clusters.run,
    "replay": replay.run,
    "replicas": replicas.run,
    "traffic": traffic.run,
    "truth": truth.run,
    "report": report.run,
    "sql": sql.run,
    "volume": volume.run,
    "what_if": what_if.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which measurements: {', '.join([*QUICK, *LONG])}")
    parser.add_argument("--quick", action="store_true", help="leave out the ones that take minutes")
    parser.add_argument("--tasks", type=int, default=volume.TASKS, help="tasks of the volume run")
    parser.add_argument("--minutes", type=float, default=outage.MINUTES, help="minutes of outage")
    parser.add_argument(
        "--posts", default="", help="replay the captured posts in this file instead of capturing new ones"
    )
    parser.add_argument("--rules", nargs="*", default=[], help="provoke only these rules, or record these cases")
    parser.add_argument("--keep", default="", help="directory for the recordings of insights and truth")
    parser.add_argument(
        "--seeds", type=_seeds, default=truth.SEEDS, metavar="A:B", help="odd seeds of truth; A:B:S with a step"
    )
    parser.add_argument("--beside", type=int, default=0, help="programs that use a core each beside those of truth")
    arguments = parser.parse_args()
    # Shuffles, lost workers and a failing recorder are part of the measurements; their log lines would tear the table apart.
    for name in ("distributed", "daskscope"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    chosen = {
        "insights": partial(insights.run, arguments.rules, arguments.keep),
        "truth": partial(truth.run, arguments.seeds, beside=arguments.beside, keep=arguments.keep),
        "volume": partial(volume.run, arguments.tasks),
        "outage": partial(outage.run, minutes=arguments.minutes),
        "traffic": partial(traffic.run, arguments.posts),
        "replicas": partial(replicas.run, arguments.posts),
    }
    known: dict[str, Measurement] = {**QUICK, **LONG, **chosen}
    names = arguments.names or list(QUICK if arguments.quick else known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"there is no measurement {unknown[0]}; there are {', '.join(known)}")
    results: list[Result] = []
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", file=sys.stderr, flush=True)
        started = time.monotonic()
        results += known[name]()
        print(f"    {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    _print(results)
    _save(results)
    return 1 if any(result.met is False for result in results) else 0


def _seeds(text: str) -> range:
    """Return the odd seeds of a range, or those with another step."""
    start, stop, *step = (int(part) for part in text.split(":"))
    return range(start, stop, step[0]) if step else range(start | 1, stop, 2)


def _print(results: list[Result]) -> None:
    width = max(len(result.what) for result in results)
    for result in results:
        verdict = {True: "ok", False: "MISSED", None: ""}[result.met]
        print(f"{result.what:{width}}  {result.figure:>12}  {result.bar:>12}  {verdict}")
        if result.note:
            print(f"    {result.note}")


def _save(results: list[Result]) -> None:
    RESULTS.mkdir(exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    document = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {
            "cpus": os.cpu_count(),
            "load": os.getloadavg(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
        "versions": {
            "python": platform.python_version(),
            "distributed": version("distributed"),
            "daskscope": daskscope.__version__,
        },
        "results": [asdict(result) for result in results],
    }
    path = RESULTS / f"{now:%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(f"\nwritten to {path.relative_to(RESULTS.parent.parent)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
