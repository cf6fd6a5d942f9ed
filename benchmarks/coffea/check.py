"""Compare daskscope's chunks with coffea's own metrics and with the known behaviour of processors; print a table."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import awkward as ak
import dask.base
import distributed
import numpy as np
from coffea.nanoevents import NanoAODSchema

import daskscope
from benchmarks.coffea import data, processors
from coffea import __version__ as coffea_version
from coffea import processor
from daskscope.analysis.coffea import CoffeaRun, coffea_runs
from daskscope.analysis.summary import extent
from daskscope.client.connection import can_send as can_send_code
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings

LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
compute: Any = dask.base.compute
#: Columns of newer versions have the name of a buffer behind that of the branch.
SUFFIXES = ("-data", "-offsets")


@dataclass
class Row:
    """One compared statement."""

    workload: str
    statement: str
    truth: Any
    found: Any
    right: bool


class Table:
    """Collects rows and prints each at once, because closing a cluster may take long."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, workload: str, statement: str, truth: Any, found: Any, *, right: bool | None = None) -> None:
        row = Row(workload, statement, truth, found, truth == found if right is None else right)
        self.rows.append(row)
        print(
            f"{workload:<34} {statement:<34} {_short(truth):>22} {_short(found):>22}  {'yes' if row.right else 'NO'}",
            flush=True,
        )


def _short(value: Any) -> str:
    if isinstance(value, (set, list, tuple)):
        return f"{len(value)}: {','.join(sorted(map(str, value)))}"[:22]
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)[:60]


@contextmanager
def client(*, processes: bool = True, workers: int = 2) -> Iterator[Any]:
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as made,
    ):
        yield made


def call(made: Any, made_processor: Any, fileset: Any, **options: Any) -> Any:
    """Run a processor; all versions accept this call."""
    executor = processor.DaskExecutor(client=made, status=False, **options.pop("executor", {}))
    run = processor.Runner(executor=executor, schema=NanoAODSchema, **options)
    return run(fileset, processor_instance=made_processor, treename="Events")


def branches(columns: Any) -> set[str]:
    found = set()
    for column in columns:
        for suffix in SUFFIXES:
            column = str(column).removesuffix(suffix)
        found.add(column)
    return found


def compare(table: Table, workload: str, run: CoffeaRun, metrics: dict[str, Any]) -> None:
    table.add(workload, "events", int(metrics["entries"]), run.events)
    table.add(workload, "bytes read", int(metrics["bytesread"]), run.bytes_read)
    table.add(workload, "chunks", int(metrics["chunks"]), run.chunks)
    table.add(workload, "columns", branches(metrics["columns"]), set(run.columns))
    truth, found = float(metrics["processtime"]), run.process_us / 1e6
    table.add(workload, "process time (5 ms a chunk)", truth, found, right=abs(found - truth) <= 0.005 * run.chunks)


def check_metrics(table: Table, fileset: dict[str, list[str]]) -> None:
    metrics: dict[str, Any] = {}
    for processes in (True, False):
        for label, options in (
            ("", {"savemetrics": True}),
            (", no savemetrics", {}),
            (", no compression", {"savemetrics": True, "executor": {"compression": None}}),
        ):
            workload = ("processes" if processes else "threads") + label
            with client(processes=processes) as made:
                with daskscope.record("coffea.daskscope", made, files=True) as record:
                    result = call(made, processors.PairProcessor(), fileset, chunksize=50_000, **options)
                if "savemetrics" in options:
                    metrics = result[1]
                (run,) = coffea_runs(_recording(record))
                if options.get("savemetrics"):
                    compare(table, workload, run, metrics)
                else:
                    _, known = run, metrics
                    table.add(workload, "events", int(known["entries"]), run.events)
                    table.add(workload, "bytes read", int(known["bytesread"]), run.bytes_read)
                    table.add(workload, "columns", branches(known["columns"]), set(run.columns))
                if can_send_code(made):
                    table.add(workload, "calling code is the user's", True, _is_our_code(_recording(record)))
                left = made.run(_wrapped) if processes else {"": _wrapped()}
                table.add(workload, "wrapped afterwards", 0, sum(left.values()))


def check_other_file(table: Table, fileset: dict[str, list[str]], other: Path) -> None:
    os.environ["DASKSCOPE_OTHER_FILE"] = str(other)
    with client() as made:
        made.run(os.environ.__setitem__, "DASKSCOPE_OTHER_FILE", str(other))
        with daskscope.record("coffea.daskscope", made) as record:
            _, metrics = call(made, processors.OtherFileProcessor(), fileset, chunksize=100_000, savemetrics=True)
        (run,) = coffea_runs(_recording(record))
        compare(table, "another file inside process()", run, metrics)


def check_opening(table: Table, wide: dict[str, list[str]]) -> None:
    with client() as made:
        with daskscope.record("coffea.daskscope", made) as record:
            _, metrics = call(made, processors.MuonProcessor(), wide, chunksize=10_000, savemetrics=True)
        recording = _recording(record)
        (run,) = coffea_runs(recording)
        compare(table, "914 branches", run, metrics)
        found = findings(Facts.of(recording, *extent(recording)))
        title = found[0].title if found else "none"
        table.add("914 branches", "first finding", "besides your code", title, right="besides your code" in title)
        profiled = coffea_runs(_without_chunks(recording))[0].useful_share
        truth = float(metrics["processtime"]) * 1e6 / run.task_us
        table.add(
            "914 branches", "useful share", truth, run.useful_share, right=abs((run.useful_share or 0) - truth) < 0.02
        )
        table.add(
            "914 branches",
            "useful share from the profile",
            truth,
            profiled,
            right=profiled is not None and abs(profiled - truth) < 0.05,
        )


def check_skipped(table: Table, fileset: dict[str, list[str]], directory: Path) -> None:
    bad = directory / "bad.root"
    bad.write_bytes(b"not a ROOT file")
    files = {"data": [next(iter(fileset.values()))[0], str(bad), str(directory / "missing.root")]}
    with client() as made:
        with daskscope.record("coffea.daskscope", made) as record:
            call(made, processors.MuonProcessor(), files, chunksize=50_000, skipbadfiles=True)
        recording = _recording(record)
        (run,) = coffea_runs(recording)
        table.add("bad and missing file", "files skipped", "2 of 3", f"{run.files_skipped} of {run.files}")
        titles = [finding.title for finding in findings(Facts.of(recording, *extent(recording)))]
        table.add(
            "bad and missing file", "it is a finding", True, any("skipped 2 of 3 files" in title for title in titles)
        )


def check_failure(table: Table, fileset: dict[str, list[str]]) -> None:
    secret = "mark-of-the-user"
    files = {"failing": {"files": [fileset["A"][0]], "metadata": {"owner": secret}}}
    with client() as made:
        with daskscope.record("coffea.daskscope", made) as record:
            try:
                call(made, processors.FailingProcessor(), files, chunksize=50_000)
            except Exception as error:  # noqa: BLE001 - it fails on purpose
                table.add(
                    "a failing chunk",
                    "the exception reaches the user",
                    True,
                    "second half" in str(error) + str(error.__cause__),
                )
        recording = _recording(record)
        facts = Facts.of(recording, *extent(recording))
        table.add("a failing chunk", "kinds of errors", 1, len(facts.errors))
        table.add("a failing chunk", "its type", "ValueError", facts.errors[0].cause_type if facts.errors else "none")
        text = repr({name: recording[name][column].tolist() for name in recording for column in recording[name]})
        table.add("a failing chunk", "the user's metadata is recorded", False, secret in text)
        table.add("a failing chunk", "file paths are recorded", False, "nano" in text)


def check_history(table: Table, fileset: dict[str, list[str]]) -> None:
    with client() as made:
        with daskscope.record("coffea.daskscope", made) as record:
            call(made, processors.PairProcessor(), fileset, chunksize=100_000)
            call(made, processors.MuonProcessor(), fileset, chunksize=100_000)
        runs = coffea_runs(_recording(record))
        table.add("two processors", "runs", ["PairProcessor", "MuonProcessor"], [run.name for run in runs])
        table.add(
            "two processors", "computations in common", 0, len({*runs[0].computations} & {*runs[-1].computations})
        )


def check_cost(table: Table, fileset: dict[str, list[str]]) -> None:
    """Time the hooks themselves: an interleaved run with and without them drowns in the noise of the machine."""
    with client(workers=1) as made, daskscope.record("coffea.daskscope", made) as record:
        made.run(_time_hooks)
        call(made, processors.MuonProcessor(), fileset, chunksize=10_000)
        spent = sum(made.run(_spent).values())
    (run,) = coffea_runs(_recording(record))
    table.add(
        "chunks of 10,000 events",
        "CPU of the hooks, µs a chunk",
        "<= 200",
        spent / run.chunks * 1e6,
        right=spent / run.chunks <= 200e-6,
    )


def _module() -> Any:
    """The module of the agent in this process, which was shipped as source."""
    return next(
        module
        for name, module in list(sys.modules.items())
        if name.endswith(".collector.worker.chunks") and name.startswith("_daskscope")
    )


def _time_hooks() -> None:
    module = _module()
    module.spent = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                module.spent += time.thread_time() - began

        return wrapper

    for name in ("_begin", "_end"):
        setattr(module, name, timed(getattr(module, name)))


def _spent() -> float:
    return float(_module().spent)


def _wrapped() -> int:
    """Return how many functions of coffea and uproot are wrapped in this process."""
    import coffea.nanoevents.factory
    import uproot.reading

    functions: list[Any] = [
        coffea.nanoevents.factory.NanoEventsFactory.from_root.__func__,
        coffea.nanoevents.factory.NanoEventsFactory.events,
        uproot.reading.ReadOnlyDirectory.__exit__,
    ]
    return sum("daskscope" in function.__code__.co_filename for function in functions)


def _is_our_code(recording: daskscope.Recording) -> bool:
    files = {Path(str(name)).name for name in recording["computations"]["code_file"].tolist() if name}
    return files == {Path(__file__).name}


def _recording(record: Any) -> daskscope.Recording:
    recording: daskscope.Recording = record.recording
    return recording


def _without_chunks(recording: daskscope.Recording) -> daskscope.Recording:
    return replace(recording, tables={name: table for name, table in recording.tables.items() if name != "chunks"})


def check_partitions(table: Table, fileset: dict[str, list[str]]) -> None:
    """dask-awkward: compare with the report of uproot, and without one."""
    from coffea.dataset_tools import apply_to_fileset, preprocess

    files = {name: {"files": dict.fromkeys(paths, "Events")} for name, paths in fileset.items()}
    with client() as made:
        available, _ = preprocess(files, step_size=50_000)
        for with_report in (True, False):
            workload = "dask-awkward" + ("" if with_report else ", no report")
            options = {"uproot_options": {"allow_read_errors_with_report": True}} if with_report else {}
            made_of = apply_to_fileset(
                lambda events: {"pt": ak.sum(events.Muon.pt)}, available, schemaclass=NanoAODSchema, **options
            )
            with daskscope.record("coffea.daskscope", made) as record:
                result = compute(made_of)[0]
            (run,) = coffea_runs(_recording(record))
            if with_report:
                reports = [part for report in result[1].values() for part in report]
                known = {
                    "events": sum(int(part["args"][3]) - int(part["args"][2]) for part in reports),
                    "bytes": sum(int(part["performance_counters"]["num_requested_bytes"]) for part in reports),
                    "chunks": len(reports),
                }
            table.add(workload, "events", known["events"], run.events)
            table.add(workload, "bytes read", known["bytes"], run.bytes_read)
            table.add(workload, "partitions", known["chunks"], len(run.records))


def make_data(directory: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    narrow = [directory / f"nano_{number}.root" for number in range(4)]
    wide = [directory / f"wide_{number}.root" for number in range(2)]
    for number, path in enumerate(narrow):
        if not path.exists():
            data.make_narrow(path, 200_000, number)
    for number, path in enumerate(wide):
        if not path.exists():
            data.make_wide(path, 100_000, 10 + number)
    return {"A": [str(path) for path in narrow[:2]], "B": [str(narrow[2])]}, {"wide": [str(path) for path in wide]}


def main() -> int:
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    directory = Path(sys.argv[1]).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    os.chdir(directory)
    print(
        f"coffea {coffea_version}, distributed {version('distributed')}, Python {sys.version.split()[0]}, numpy {np.__version__}"
    )
    narrow, wide = make_data(directory)
    table = Table()
    wanted = set(sys.argv[2:])
    parts: dict[str, Callable[[], None]] = {
        "metrics": lambda: check_metrics(table, narrow),
        "other": lambda: check_other_file(table, narrow, Path(wide["wide"][0])),
        "opening": lambda: check_opening(table, wide),
        "skipped": lambda: check_skipped(table, narrow, directory),
        "failure": lambda: check_failure(table, narrow),
        "history": lambda: check_history(table, narrow),
        "cost": lambda: check_cost(table, narrow),
    }
    if find_spec("dask_awkward") is not None:
        parts["partitions"] = lambda: check_partitions(table, narrow)
    for name, part in parts.items():
        if not wanted or name in wanted:
            part()
    right = sum(row.right for row in table.rows)
    print(f"{right} of {len(table.rows)} statements are right.")
    return int(right != len(table.rows))


if __name__ == "__main__":
    sys.exit(main())
