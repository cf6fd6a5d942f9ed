"""The tasks that run now in a cluster, and their stacks on request.

A recorder only pushes. A request for stacks waits in the catalog until any server answers the recorder's next batch, and
the stacks come back as rows of the recording.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from daskscope.analysis.profiles import owner
from daskscope.analysis.progress import parse_running, usual_us
from daskscope.analysis.stacks import NO_STACKS, Stacks, answer_of
from daskscope.analysis.stacks import TaskStack as StoredStack
from daskscope.server.building import LISTED
from daskscope.server.errors import conflict, too_many
from daskscope.server.http.parameters import find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.live_contract import CurrentStacks, LongTask, RunningTasks, StackRequest, StacksState, TaskStack
from daskscope.server.serializers import moment, scheduler_now_us, seconds
from daskscope.storage.clusters import Cluster, workers_of
from daskscope.storage.computations import prefix_sums
from daskscope.storage.runs import Part, read_snapshot
from daskscope.storage.user_requests import STACKS_PAUSE_US, STACKS_WAIT_US, ask_for_stacks

#: Length of an address of a worker.
Address = Annotated[str, msgspec.Meta(max_length=500)]


class StacksWanted(msgspec.Struct, forbid_unknown_fields=True):
    #: Address of a worker; empty for all that are busy.
    worker: Address = ""


def list_running(call: Call) -> RunningTasks:
    row = find_cluster(call)
    if not row.is_live:
        return {"items": [], "total": 0}
    now_us, tasks = scheduler_now_us(row, call.now_us), parse_running(row.longest_running)
    with call.services.archive.read() as tx:
        sums = prefix_sums(tx, [(row.id, task.computation) for task in tasks])
        names = {worker.worker: worker.name for worker in workers_of(tx, row.id)}
    items: list[LongTask] = []
    for task in tasks:
        usual = usual_us(sums.get((row.id, task.computation), {}).get(task.prefix))
        items.append(
            {
                "key": task.key,
                "prefix": task.prefix,
                "computation_id": task.computation,
                "worker": task.worker,
                "worker_name": names.get(task.worker, ""),
                "start": moment(task.start_us),
                "age": seconds(max(0, now_us - task.start_us)),
                "usual": None if usual is None else seconds(usual),
            }
        )
    return {
        "items": items,
        "total": max(row.tasks_executing, len(tasks)),
    }


def ask(call: Call) -> StackRequest:
    """Ask for the current stacks. The recorder is told in the response to its next batch."""
    row, wanted = find_cluster(call), call.body
    if not row.is_live:
        raise conflict(f"This cluster is {row.state}: there is nobody to ask.")
    with call.services.archive.write() as tx:
        request = ask_for_stacks(tx, row.id, wanted.worker)
    if not request:
        raise too_many("Stacks were requested a moment ago. Try again in a few seconds.", STACKS_PAUSE_US / 1e6)
    return {"request": request}


def get_stacks(call: Call) -> CurrentStacks:
    """Return the answer to the last request, as far as it has arrived."""
    row = find_cluster(call)
    request = row.stacks_asked_us
    found = _answer(call, row) if request else NO_STACKS
    with call.services.archive.read() as tx:
        names = {worker.worker: worker.name for worker in workers_of(tx, row.id)}
    return {
        "request": request,
        "asked_at": moment(request),
        "of": row.stacks_asked_of,
        "state": _state(row, found, call.now_us),
        "workers": found.workers,
        "asked": found.asked,
        "answered": found.answered,
        "why": found.why,
        "frames": [(file, function, line, owner(file)) for file, function, line in found.frames],
        "items": [_stack(item, names) for item in found.items],
        "nodes": found.tree.nodes,
        "parents": [parent + 1 for parent in found.tree.parents],
        "counts": found.tree.counts,
    }


def _answer(call: Call, row: Cluster) -> Stacks:
    part = Part(("stacks",))
    recording = read_snapshot(call.services.archive, call.account.id, row.id, row.name, part, LISTED)
    return answer_of(recording["stacks"], row.stacks_asked_us)


def _state(row: Cluster, found: Stacks, now_us: int) -> StacksState:
    if not row.stacks_asked_us:
        return "not requested"
    if found.is_complete:
        return "done"
    return "waiting" if row.is_live and now_us - row.stacks_asked_us <= STACKS_WAIT_US else "no answer"


def _stack(item: StoredStack, names: dict[str, str]) -> TaskStack:
    return {
        "key": item.key,
        "prefix": item.prefix,
        "worker": item.worker,
        "worker_name": names.get(item.worker, ""),
        "thread": item.thread,
        "time": moment(item.time_us),
        "age": seconds(max(0, item.time_us - item.start_us)) if item.start_us else None,
        "frames": list(item.frames),
    }


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/running",
        list_running,
        "read",
        "List the tasks that have been running longest",
    ),
    Route(
        "POST",
        "/api/v1/clusters/{cluster}/stacks",
        ask,
        "write",
        "Request the current stacks of running tasks",
        body=StacksWanted,
        status=202,
    ),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/stacks",
        get_stacks,
        "read",
        "Return the stacks that were requested last",
        heavy=True,
    ),
]
