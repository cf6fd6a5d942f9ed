"""Graphs for replays, from a list of tasks and their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daskscope.analysis.what_if.graph import Graph, Group, Submission


@dataclass(frozen=True)
class Task:
    """A task; ``inputs`` are positions in the list of tasks. Its group has all tasks of that name."""

    us: float
    inputs: tuple[int, ...] = ()
    group: str = "task"
    nbytes: int = 0
    cpu: float = 0.0
    gil: float = 0.0


def make_graph(tasks: Sequence[Task], submissions: Sequence[Submission] | None = None) -> Graph:
    """Return a graph whose tasks without inputs are submitted at once, or as given."""
    names = list(dict.fromkeys(task.group for task in tasks))
    inputs_from, dependents_from = [0], [0]
    inputs: list[int] = []
    dependents: list[int] = []
    for number, task in enumerate(tasks):
        inputs += task.inputs
        inputs_from.append(len(inputs))
        dependents += [other for other, candidate in enumerate(tasks) if number in candidate.inputs]
        dependents_from.append(len(dependents))
    roots = [number for number, task in enumerate(tasks) if not task.inputs]
    return Graph(
        us=[task.us for task in tasks],
        nbytes=[task.nbytes for task in tasks],
        group=[names.index(task.group) for task in tasks],
        inputs_from=inputs_from,
        inputs=inputs,
        dependents_from=dependents_from,
        dependents=dependents,
        groups=[_group(tasks, name) for name in names],
        submissions=submissions or [Submission(0.0, roots, [0.0] * len(roots))],
    )


def _group(tasks: Sequence[Task], name: str) -> Group:
    mine = [task for task in tasks if task.group == name]
    above = {tasks[given].group for task in mine for given in task.inputs}
    return Group(
        size=len(mine),
        input_groups=len(above),
        input_tasks=sum(task.group in above for task in tasks),
        mean_us=sum(task.us for task in mine) / len(mine),
        cpu_share=mine[0].cpu,
        gil_share=mine[0].gil,
    )
