"""Record benchmarks in pytest, keep their measurements as baselines, and fail on a proven slowdown.

``daskscope_pytest`` has the options, and registers this plugin with ``--daskscope``.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from daskscope import units
from daskscope.analysis.compare.changes import Changes, compare_runs
from daskscope.analysis.compare.comparison import headline, to_markdown
from daskscope.analysis.compare.measurements import Measured, is_baseline_name, measure
from daskscope.analysis.compare.verdicts import repeats_needed
from daskscope.analysis.summary import extent
from daskscope.client.baselines import Baselines, LocalBaselines, ServerBaselines
from daskscope.client.connection import find_client
from daskscope.client.record import record
from daskscope.client.server import find_server, server_at
from daskscope.errors import DaskscopeError
from daskscope.report.document import report_page
from daskscope.wire.file import read_recording

DEFAULT_WARMUP = 1
#: Name of the lines for the summary among the properties of a test; pytest-xdist sends them to the main process.
PROPERTY = "daskscope"

T = TypeVar("T")


@dataclass
class Benchmark:
    """The recordings of one test."""

    name: str
    recordings: list[Path] = field(default_factory=list)


#: The benchmark of a test that recorded something.
RECORDED = pytest.StashKey[Benchmark]()
#: The number of benchmarks that a test has recorded so far.
COUNT = pytest.StashKey[int]()


@dataclass(frozen=True)
class Plugin:
    """Records tests, and keeps and compares their measurements."""

    directory: Path
    baselines: Baselines
    #: Names of the baselines to write and to compare with; empty for none.
    save: str = ""
    compare: str = ""
    #: Proven slowdowns of more than this fail the test; None: none does.
    fail_over: float | None = None

    @classmethod
    def from_options(cls, config: pytest.Config) -> Plugin:
        """Return the plugin as the command line asks for it."""
        save, compare = (_checked_name(config.getoption(f"--daskscope-{name}") or "") for name in ("save", "compare"))
        limit = config.getoption("--daskscope-fail-over")
        if limit is not None and not compare:
            raise pytest.UsageError("--daskscope-fail-over needs --daskscope-compare NAME.")
        directory = config.invocation_params.dir / Path(config.getoption("--daskscope"))
        baselines = _server_baselines(config, save, compare) or LocalBaselines(directory / "baselines")
        return cls(directory, baselines, save, compare, None if limit is None else _percent(limit))

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run a test with the marker as often as it says, and record it."""
        marker = pyfuncitem.get_closest_marker("daskscope")
        if marker is None or "daskscope_record" in pyfuncitem.fixturenames:
            return None
        if inspect.iscoroutinefunction(pyfuncitem.obj):
            pytest.fail("The marker daskscope is for tests that are plain functions.", pytrace=False)
        # As pytest itself calls a test.
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        self.record(pyfuncitem, lambda: pyfuncitem.obj(**arguments))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Write the report of a failed test, and name it in the summary."""
        report = yield
        benchmark = item.stash.get(RECORDED, None)
        if call.when == "call" and report.failed and benchmark is not None and benchmark.recordings:
            path = self._write_report(benchmark)
            report.sections.append(("daskscope", f"Report: {path}"))
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one line for each recorded test."""
        found = [
            f"{report.nodeid}: {text}"
            for reports in terminalreporter.stats.values()
            for report in reports
            if getattr(report, "when", "") == "call"
            for name, text in report.user_properties
            if name == PROPERTY
        ]
        if found:
            terminalreporter.section("daskscope")
        for line in found:
            terminalreporter.write_line(line)

    def record(
        self,
        item: pytest.Item,
        call: Callable[[], T],
        *,
        repeats: int | None = None,
        warmup: int | None = None,
        client: Any = None,
    ) -> T:
        """Record repeated calls, keep and compare their measurements, and return the last result."""
        marked = _marked(item)
        repeats = marked.get("repeats", repeats_needed()) if repeats is None else repeats
        warmup = marked.get("warmup", DEFAULT_WARMUP) if warmup is None else warmup
        if repeats < 1 or warmup < 0:
            pytest.fail("A benchmark needs at least one repeat, and no less than 0 for its warm-up.", pytrace=False)
        try:
            client = find_client(client)
        except DaskscopeError as error:
            pytest.fail(
                f"{error} A benchmark needs it before it starts: in a fixture, or in daskscope_record(function, client=client).",
                pytrace=False,
            )
        count = item.stash[COUNT] = item.stash.get(COUNT, 0) + 1
        # The second benchmark of a test has its own recordings and baseline.
        benchmark = Benchmark(_file_name(item.nodeid) + (f"-{count}" if count > 1 else ""))
        item.stash[RECORDED] = benchmark
        directory = self.directory / "recordings"
        directory.mkdir(parents=True, exist_ok=True)
        # The warm-up is recorded for the report: a test that fails does so in its first run.
        for number in range(-warmup, repeats):
            path = directory / f"{benchmark.name}-{number if number >= 0 else 'warmup'}.daskscope"
            benchmark.recordings.append(path)
            with record(path, client, name=item.name):
                result = call()
        self._judge(item, benchmark, [_measured(path, item.nodeid) for path in benchmark.recordings[warmup:]])
        return result

    def _judge(self, item: pytest.Item, benchmark: Benchmark, runs: list[Measured]) -> None:
        """Compare with the baseline, fail on a proven slowdown, and keep the measurements."""
        if self.compare:
            before = _read(self.baselines, self.compare, benchmark)
            if before is None:
                _note(item, f"no baseline {self.compare} yet; --daskscope-save {self.compare} keeps one")
            else:
                changes = compare_runs(before, runs)
                _note(item, headline(changes))
                self._fail_if_slower(benchmark, changes)
        if self.save:
            try:
                self.baselines.write(self.save, benchmark.name, runs)
            except DaskscopeError as error:
                pytest.fail(f"Baseline {self.save} was not kept. {error}", pytrace=False)
            _note(item, f"{units.counted(len(runs), 'repeat')} kept as baseline {self.save}")
        if not self.compare and not self.save:
            _note(item, f"{units.counted(len(runs), 'repeat')} recorded")

    def _fail_if_slower(self, benchmark: Benchmark, changes: Changes) -> None:
        slower = () if self.fail_over is None else changes.slowdowns(self.fail_over)
        if not slower:
            return
        path = self.directory / "reports" / f"{benchmark.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_markdown(changes))
        names = ", ".join(f"{change.name} by {units.percent(change.ratio or 0.0)}" for change in slower)
        pytest.fail(
            f"Slower than baseline {self.compare}: {names}.\n{headline(changes)}\nComparison: {path}", pytrace=False
        )

    def _write_report(self, benchmark: Benchmark) -> Path:
        path = self.directory / "reports" / f"{benchmark.name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(report_page(read_recording(benchmark.recordings[-1]), title=benchmark.name))
        return path


def _server_baselines(config: pytest.Config, save: str, compare: str) -> ServerBaselines | None:
    """Return the server that keeps the baselines, if the command line asks for it and it can be used."""
    url = config.getoption("--daskscope-server")
    if url is None:
        return None
    if not save and not compare:
        raise pytest.UsageError("--daskscope-server needs --daskscope-save NAME or --daskscope-compare NAME.")
    if url and not url.startswith(("http://", "https://")):
        # The option took the path of a test as its URL.
        raise pytest.UsageError(
            f"{url} is not the URL of a server. Write --daskscope-server=URL, or put the option after the paths of tests."
        )
    try:
        found = ServerBaselines(server_at(url) if url else find_server())
        # Once: not in each process of pytest-xdist.
        if not hasattr(config, "workerinput"):
            found.check(saves=bool(save))
    except DaskscopeError as error:
        raise pytest.UsageError(str(error)) from None
    return found


def _read(baselines: Baselines, name: str, benchmark: Benchmark) -> list[Measured] | None:
    try:
        return baselines.read(name, benchmark.name)
    except DaskscopeError as error:
        pytest.fail(str(error), pytrace=False)


def _measured(path: Path, test: str) -> Measured:
    recording = read_recording(path)
    found = measure(recording, *extent(recording))
    # A path of this machine means nothing to those who read the baseline.
    return Measured(**{**vars(found), "source": test})


def _marked(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker("daskscope")
    if marker is None:
        return {}
    if marker.args or set(marker.kwargs) - {"repeats", "warmup"}:
        pytest.fail("Write @pytest.mark.daskscope(repeats=5, warmup=1).", pytrace=False)
    return dict(marker.kwargs)


def _note(item: pytest.Item, text: str) -> None:
    item.user_properties.append((PROPERTY, text))


def _file_name(test: str) -> str:
    """Return a file name for a test: readable, and different for each test."""
    digest = hashlib.sha256(test.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', test)[-80:].strip('-')}-{digest}"


def _checked_name(name: str) -> str:
    if name and not is_baseline_name(name):
        raise pytest.UsageError(f"{name!r} cannot name a baseline. Use letters, digits, dots, dashes and underscores.")
    return name


def _percent(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError:
        raise pytest.UsageError(f"--daskscope-fail-over {text} is not a percentage such as 20%.") from None
