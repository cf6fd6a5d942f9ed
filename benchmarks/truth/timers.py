"""The truth about a generated program, from its own timers: what threads did, and why they did nothing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.truth.program import Program

#: Steps that use a core. Their time off it is a wait for the interpreter lock or for a core.
COMPUTING = frozenset({"loop", "held", "free", "blas"})
#: A task that could run, but starts within this time, is on its way.
ON_ITS_WAY_S = 0.02


@dataclass(frozen=True)
class Execution:
    """One execution of a task, as it timed itself."""

    number: int
    start: float
    stop: float
    cpu: float
    ended: str
    #: Kind, wall time, CPU time, and wait for a lock.
    steps: tuple[tuple[str, float, float, float], ...]

    @property
    def wall(self) -> float:
        return self.stop - self.start


@dataclass(frozen=True)
class Timers:
    """The times of a run, by the clocks of its client and of its tasks."""

    program: Program
    executions: tuple[Execution, ...]
    #: When the client submitted each task, and the whole run.
    submitted: dict[int, float]
    start: float
    stop: float

    @classmethod
    def read(cls, program: Program, directory: Path, submitted: dict[int, float], start: float, stop: float) -> Timers:
        path = directory / "executions.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = (json.loads(line) for line in lines)
        executions = tuple(
            Execution(e["number"], e["start"], e["stop"], e["cpu"], e["ended"], tuple(map(tuple, e["steps"])))
            for e in found
        )
        return cls(program, executions, submitted, start, stop)

    @property
    def run_s(self) -> float:
        return self.stop - self.start

    @property
    def thread_s(self) -> float:
        return self.run_s * self.program.slots

    @cached_property
    def compute_s(self) -> float:
        """The time of all executions."""
        return sum(one.wall for one in self.executions)

    @cached_property
    def cpu_s(self) -> float:
        return sum(one.cpu for one in self.executions)

    @cached_property
    def by_kind(self) -> dict[str, tuple[float, float]]:
        """Wall and CPU time by kind of step, of executions that succeeded; the wait for a lock apart from the time with it.

        The others are wasted as a whole, whatever they did (``failed_s`` and ``wasted_s``).
        """
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for one in self.executions:
            for kind, wall, cpu, waited in one.steps if one.ended == "ok" else ():
                if kind == "lock":
                    sums["waited for a lock"][0] += waited
                    kind, wall = "sleep", wall - waited
                sums[kind][0] += wall
                sums[kind][1] += cpu
        return {kind: (wall, cpu) for kind, (wall, cpu) in sums.items()}

    def off_cpu_s(self, kinds: Iterable[str]) -> float:
        """Time of these kinds of steps without a core."""
        return sum(max(0.0, wall - cpu) for kind, (wall, cpu) in self.by_kind.items() if kind in kinds)

    def wall_s(self, kind: str) -> float:
        return self.by_kind.get(kind, (0.0, 0.0))[0]

    @cached_property
    def failed_s(self) -> float:
        return sum(one.wall for one in self.executions if one.ended == "error")

    @cached_property
    def wasted_s(self) -> float:
        """Time of executions that ended with their worker, or were executed again because their result was lost with one."""
        good: Counter[int] = Counter()
        total = 0.0
        for one in sorted(self.executions, key=lambda e: e.start):
            if one.ended == "killed" or (one.ended == "ok" and good[one.number]):
                total += one.wall
            good[one.number] += one.ended == "ok"
        return total

    @cached_property
    def graph_s(self) -> float:
        """Wall time from submitting a graph until its first task started."""
        if self.program.style != "graph":
            return 0.0
        first = {task.number: task.batch for task in self.program.tasks}
        begun: dict[int, float] = {}
        for one in self.executions:
            begun[first[one.number]] = min(one.start, begun.get(first[one.number], one.start))
        sent = {first[number]: when for number, when in self.submitted.items()}
        return sum(max(0.0, start - sent[batch]) for batch, start in begun.items() if batch in sent)

    @cached_property
    def alone_s(self) -> float:
        """Wall time in which exactly one execution ran."""
        return sum(length for length, running, _, _ in self._sections if running == 1)

    @cached_property
    def idle(self) -> dict[str, float]:
        """Idle thread time: nothing was submitted, too few tasks could run, or tasks could run and did not."""
        sums = {"nothing": 0.0, "few": 0.0, "ready": 0.0}
        for length, running, ready, outstanding in self._sections:
            idle = max(0, self.program.slots - running)
            # As many threads as there are ready tasks wait for those; the others have no task.
            late = min(idle, ready)
            sums["ready"] += late * length
            sums["few" if outstanding else "nothing"] += (idle - late) * length
        return sums

    @cached_property
    def _sections(self) -> list[tuple[float, int, int, int]]:
        """Length of each section of the run, with the running, ready and outstanding tasks in it."""
        tasks = {task.number: task for task in self.program.tasks}
        stopped: dict[int, float] = {}
        started: dict[int, float] = {}
        for one in sorted(self.executions, key=lambda e: e.start):
            started.setdefault(one.number, one.start)
            if one.ended == "ok":
                stopped.setdefault(one.number, one.stop)
        changes: list[tuple[float, int, int, int]] = []
        for one in self.executions:
            changes += [(one.start, 1, 0, 0), (one.stop, -1, 0, 0)]
        for number, task in tasks.items():
            begun = self.submitted.get(number)
            if begun is None:
                continue
            ended = stopped.get(number) or max(
                (e.stop for e in self.executions if e.number == number), default=self.stop
            )
            changes += [(begun, 0, 0, 1), (max(begun, ended), 0, 0, -1)]
            inputs = [stopped.get(i, self.stop) for i in task.inputs]
            ready = max([begun, *inputs])
            start = started.get(number, self.stop)
            if start - ready > ON_ITS_WAY_S:
                changes += [(ready, 0, 1, 0), (start, 0, -1, 0)]
        changes.sort()
        sections: list[tuple[float, int, int, int]] = []
        at, running, ready_now, outstanding = self.start, 0, 0, 0
        for when, more_running, more_ready, more_outstanding in changes:
            moment = min(max(when, self.start), self.stop)
            if moment > at:
                sections.append((moment - at, running, ready_now, outstanding))
                at = moment
            running, ready_now, outstanding = (
                running + more_running,
                ready_now + more_ready,
                outstanding + more_outstanding,
            )
        if self.stop > at:
            sections.append((self.stop - at, running, ready_now, outstanding))
        return sections
