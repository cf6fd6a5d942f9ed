"""Compare what daskscope says about workloads with what really happened, and write its section of ``docs/accuracy.md``.

The truth comes from outside: timers inside the tasks (wall and thread CPU time, written to a file), pauses of known length, signals
sent by the workload, and Dask's own result. Nothing is compared with daskscope's own tables.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

import daskscope
from benchmarks.accuracy_page import STATEMENTS, machine, write_section
from benchmarks.result import Result
from benchmarks.task_log import LOG
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.insights.story import Outcome, outcome
from daskscope.model.recording import Recording

#: The longest workload takes 30 s. Without a deadline, one that hangs keeps the others from being measured.
DEADLINE_S = 180

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Said:
    """What daskscope says about a run."""

    recording: Recording
    facts: Facts
    outcome: Outcome
    findings: tuple[Finding, ...]

    def seconds(self, *categories: str) -> float:
        return sum(self.facts.split.split[category] for category in categories) / 1e6

    def idle(self, *reasons: str) -> float:
        us = self.facts.split.idle.us
        return sum(us[reason] for reason in reasons) / 1e6

    def waiting(self, *reasons: str) -> float:
        return sum(self.facts.split.waiting_us[reason] for reason in reasons) / 1e6

    @property
    def first(self) -> str:
        return self.findings[0].kind if self.findings else "none"


@dataclass(frozen=True)
class Statement:
    """One comparison."""

    workload: str
    statement: str
    truth: str
    said: str
    difference: str
    #: The largest difference that counts as right.
    within: str
    is_right: bool
    #: Whether both sides come from daskscope: its parts add up, which proves nothing about the run.
    is_internal: bool = False


@dataclass
class Lab:
    """A cluster with a client, the log of its tasks, and the statements about them."""

    name: str
    client: Client
    cluster: LocalCluster
    log: Path
    statements: list[Statement] = field(default_factory=list)
    said: Said | None = None

    def timed(self, what: str = "") -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in lines if not what or line["what"] == what]

    def begun(self, pid: int) -> list[float]:
        """Return when tasks began in a process, also those that never ended."""
        lines = map(json.loads, Path(f"{self.log}.begun").read_text().splitlines())
        return [line["start"] for line in lines if line["pid"] == pid]

    def wall(self, what: str = "") -> float:
        return float(sum(line["stop"] - line["start"] for line in self.timed(what)))

    def cpu(self, what: str = "") -> float:
        return float(sum(line["cpu"] for line in self.timed(what)))

    def queued(self, what: str = "") -> float:
        return float(sum(line["queued"] for line in self.timed(what)))

    def number(
        self, statement: str, truth: float, said: float, within: float, unit: str = "s", *, is_internal: bool = False
    ) -> None:
        """Compare two numbers; ``within`` is the allowed difference."""
        difference = said - truth
        form = "{:,.0f}" if not unit else "{:.2f} " + unit
        self.statements.append(
            Statement(
                self.name,
                statement,
                form.format(truth),
                form.format(said),
                ("+" if difference >= 0 else "−") + form.format(abs(difference)),
                form.format(within),
                abs(difference) <= within,
                is_internal,
            )
        )

    def text(self, statement: str, truth: str, said: str) -> None:
        self.statements.append(Statement(self.name, statement, truth, said, "", "", truth == said))


#: Runs the workload, and returns the comparisons to make afterwards.
Workload = Callable[[Lab], Callable[[Said], None]]
WORKLOADS: dict[str, tuple[Workload, dict[str, Any]]] = {}


def workload(**options: Any) -> Callable[[Workload], Workload]:
    def register(function: Workload) -> Workload:
        WORKLOADS[function.__name__.replace("_", " ")] = (function, options)
        return function

    return register


def load_workloads() -> dict[str, tuple[Workload, dict[str, Any]]]:
    # Imported here, because the workloads register themselves with this module.
    from benchmarks import observed_workloads, workloads  # noqa: F401

    return WORKLOADS


def run(names: tuple[str, ...] = ()) -> list[Result]:
    chosen = [name for name in load_workloads() if not names or name in names]
    statements: list[Statement] = []
    for name in chosen:
        statements += measure_apart(name)
        wrong = [s for s in statements if s.workload == name and not s.is_right]
        print(f"    {name}: {'ok' if not wrong else ''}", flush=True)
        for s in wrong:
            print(f"        {s.statement}: truth {s.truth}, said {s.said} ({s.difference})", flush=True)
    if not names:
        write_section(STATEMENTS, section(statements))
    proven, sums = split(statements)
    return [
        _result("accuracy: statements that are right", proven),
        _result("accuracy: internal sums that are right", sums),
        Result("accuracy: workloads", str(len(chosen)), "≥ 25", len(chosen) >= 25 or bool(names)),
    ]


def split(statements: list[Statement]) -> tuple[list[Statement], list[Statement]]:
    """Return the statements with a truth from outside, and those about daskscope's own sums."""
    return [s for s in statements if not s.is_internal], [s for s in statements if s.is_internal]


def _result(what: str, statements: list[Statement]) -> Result:
    right = sum(statement.is_right for statement in statements)
    return Result(what, f"{right} of {len(statements)}", "all", right == len(statements))


def measure_apart(name: str, deadline_s: float = DEADLINE_S) -> list[Statement]:
    """Measure a workload in a process of its own; one that fails or does not end is one wrong statement."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        answer, errors = Path(directory) / "statements.json", Path(directory) / "errors"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.accuracy_workload", name, str(answer)],
                cwd=ROOT,
                stderr=stderr,
                env={**os.environ, "TMPDIR": directory},
                # Its workers, and programs that it started, are killed with it.
                start_new_session=True,
            )
            try:
                process.wait(deadline_s)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    return [_failure(name, f"no end after {deadline_s:.0f} s")]
                raise
        if process.returncode:
            said = errors.read_text(errors="replace").splitlines()
            return [_failure(name, said[-1] if said else f"exit status {process.returncode}")]
        return [Statement(**fields) for fields in json.loads(answer.read_bytes())]


def _failure(name: str, said: str) -> Statement:
    return Statement(name, "the workload ends", "yes", said.replace("|", "/"), "", "", is_right=False)


def measure(name: str, function: Workload, options: dict[str, Any]) -> list[Statement]:
    settings = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": ":0", **options}
    config = settings.pop("config", {})
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings(), dask.config.set(config):
        warnings.simplefilter("ignore")
        os.environ[LOG] = str(Path(directory) / "log")
        path = Path(directory) / "run.daskscope"
        with LocalCluster(processes=True, silence_logs=60, **settings) as cluster, Client(cluster) as client:
            lab = Lab(name, client, cluster, Path(os.environ[LOG]))
            with daskscope.record(path, client) as made:
                compare = function(lab)
        said = listen(made.recording)
        lab.said = said
        compare(said)
        _check_sum(lab, said)
    return lab.statements


def listen(recording: Recording) -> Said:
    """Return what daskscope says about a recording."""
    facts = Facts.of(recording, *extent(recording))
    return Said(recording, facts, outcome(facts), findings(facts))


def _check_sum(lab: Lab, said: Said) -> None:
    split = said.facts.split
    total, threads = sum(split.split.values()) / 1e6, split.thread_us / 1e6
    idle, waiting = sum(split.idle.us.values()) / 1e6, sum(split.waiting_us.values()) / 1e6
    lab.number("parts of thread time add up to threads × time", threads, total, 0.01 * threads, is_internal=True)
    lab.number("idle reasons add up to idle time", said.seconds("idle"), idle, 0.01, is_internal=True)
    lab.number("waiting reasons add up", said.seconds("noncpu"), waiting, 0.01, is_internal=True)


def section(statements: list[Statement]) -> str:
    """Return the section of the docs."""
    proven, sums = split(statements)
    right = sum(statement.is_right for statement in proven)
    added = sum(statement.is_right for statement in sums)
    workloads_ = len({statement.workload for statement in statements})
    lines = [
        "Fixed workloads. The truth comes from timers inside the tasks, the kernel, psutil, counters in the workers, pauses of",
        "known length, signals that the workload sends, and Dask's own results. A statement is right if the difference is at",
        "most the tolerance; wrong ones are in bold.",
        "",
        f"`scripts/bench accuracy` ran {workloads_} workloads on a local cluster ({machine()}): "
        f"{right} of {len(proven)} statements are right. The table shows one run.",
        "",
        "| workload | statement | daskscope (truth ± tolerance) |",
        "|---|---|---:|",
    ]
    for before, s in zip([None, *proven], proven, strict=False):
        # A workload is named in the first of its rows.
        name = "" if before and before.workload == s.workload else s.workload
        said = s.said if s.is_right else f"**{s.said}**"
        lines.append(f"| {name} | {s.statement} | {said} ({_truth(s)}) |")
    lines += [
        "",
        f"The internal sums are checked, too: {'; '.join(_kinds(sums))}. {added} of {len(sums)} are right. Both sides come",
        "from daskscope, so this proves nothing about the run, and is not counted above.",
        *(f"\n**{s.workload}**: {s.statement} ({s.truth}, parts {s.said})." for s in sums if not s.is_right),
    ]
    return "\n".join(lines) + "\n"


def _kinds(sums: list[Statement]) -> list[str]:
    return list(dict.fromkeys(s.statement for s in sums))


def _truth(statement: Statement) -> str:
    """Return the truth with its tolerance, such as ``4.81 ± 0.24``; a truth without a tolerance must be met exactly."""
    if statement.within in ("", "0"):
        return statement.truth
    return f"{statement.truth.split(' ')[0]} ± {statement.within.split(' ')[0]}"
