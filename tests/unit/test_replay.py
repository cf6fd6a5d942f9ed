"""A replay takes as long as the graph must take on a cluster, to the microsecond where that is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.graphs import Task, make_graph

from daskscope.analysis.what_if.graph import Overheads, Replayed, Setup, Submission
from daskscope.analysis.what_if.replay import is_rootish, replay

S = 1_000_000.0
FREE = Overheads()


def wall_us(
    tasks: list[Task], workers: int = 1, threads: int = 1, overheads: Overheads = FREE, *, saturation: float = 1.1
) -> float:
    return replay(make_graph(tasks), Setup.uniform(workers, threads, saturation=saturation), overheads).wall_us


def test_a_chain_takes_the_sum_of_its_tasks_and_messages() -> None:
    chain = [Task(10.0), Task(20.0, (0,)), Task(30.0, (1,))]

    assert wall_us(chain, workers=3) == 60.0
    assert wall_us(chain, workers=3, overheads=Overheads(link_us=4.0)) == 2.0 + 60.0 + 2 * 4.0
    assert wall_us(chain, overheads=Overheads(gap_us=1.0, scheduler_us=5.0)) == 60.0 + 3 * 1.0 + 2 * 5.0


def test_a_fan_out_is_divided_among_the_threads() -> None:
    # Seven tasks of one group: root tasks on up to three threads.
    fan = [Task(10.0) for _ in range(7)]

    assert [wall_us(fan, workers) for workers in (1, 2, 3, 7)] == [70.0, 40.0, 30.0, 10.0]
    assert [wall_us(fan, 1, threads) for threads in (2, 7)] == [40.0, 10.0]
    assert wall_us(fan, 2, saturation=math.inf) == 40.0


def test_a_fan_in_waits_for_the_slowest_input() -> None:
    graph = [Task(10.0), Task(50.0), Task(20.0), Task(5.0, (0, 1, 2), "sum")]

    assert wall_us(graph, workers=3) == 55.0
    assert wall_us(graph, workers=1) == 85.0


def test_a_diamond_moves_one_result_to_run_both_sides_at_once() -> None:
    # Both sides depend on the same result, so that both go to its worker; the second thread runs the other side.
    graph = [Task(10.0, nbytes=100), Task(30.0, (0,), "left"), Task(40.0, (0,), "right"), Task(5.0, (1, 2), "join")]

    assert wall_us(graph, 1, 2) == 55.0
    assert wall_us(graph, 1, 1) == 85.0


def test_inputs_are_moved_to_the_worker_where_the_task_starts_first() -> None:
    graph = [Task(10.0, nbytes=100), Task(10.0, nbytes=900), Task(5.0, (0, 1), "join")]
    found = replay(make_graph(graph), Setup.uniform(2, 1), Overheads(bandwidth=10.0, transfer_us=3.0))

    assert found == Replayed(
        wall_us=10.0 + 100 / 10.0 + 3.0 + 5.0, busy_us=25.0, peak_worker_nbytes=1000, peak_nbytes=1100,
        transferred=100, stolen=0,
    )  # fmt: skip
    still = Setup.uniform(2, 1, has_transfers=False)
    assert replay(make_graph(graph), still, Overheads(bandwidth=10.0, transfer_us=3.0)).wall_us == 15.0


def test_a_result_that_two_tasks_need_is_moved_once() -> None:
    graph = [
        Task(10.0, nbytes=10),
        Task(10.0, nbytes=500),
        Task(5.0, (0, 1), "join", nbytes=500),
        Task(5.0, (0, 2), "join again"),
    ]
    found = replay(make_graph(graph), Setup.uniform(2, 1), Overheads(bandwidth=10.0))

    assert found == Replayed(10.0 + 1.0 + 5.0 + 5.0, 30.0, 1010, 1020, 10, 0)


def test_results_are_in_memory_until_their_last_use() -> None:
    # Depth first: a pair of loads is summed before the next is loaded, because queued tasks wait for a slot.
    pairs: list[Task] = []
    for pair in range(6):
        pairs += [Task(10.0, group="load", nbytes=100), Task(1.0, (2 * pair,), "sum", nbytes=1)]
    found = replay(make_graph(pairs), Setup.uniform(1, 1, saturation=1.0), FREE)

    assert (found.peak_worker_nbytes, found.peak_nbytes) == (106, 106)
    # Without queuing all loads are assigned at once, and the sums come after them by the order of priority only.
    wide = [Task(10.0, group="load", nbytes=100) for _ in range(6)] + [Task(1.0, (i,), "sum") for i in range(6)]
    assert replay(make_graph(wide), Setup.uniform(1, 1, saturation=math.inf), FREE).peak_nbytes == 600


def test_queued_tasks_go_to_the_worker_with_a_free_slot() -> None:
    # The long task keeps one worker busy: a queue gives the seven short ones to the other, blocks divide them by number.
    tasks = [Task(70.0), *(Task(10.0) for _ in range(7))]

    assert wall_us(tasks, 2, saturation=1.0) == 70.0
    assert wall_us(tasks, 2, saturation=math.inf) == 100.0


def test_an_idle_worker_steals_from_a_busy_one() -> None:
    # All 20 tasks depend on one result, so that all go to its worker. With five tasks before them they are not root tasks.
    tasks = [Task(1.0, group="load", nbytes=8) for _ in range(5)] + [Task(S, (0,), "use") for _ in range(20)]
    graph = make_graph(tasks)
    stolen = replay(graph, Setup.uniform(2, 1), Overheads(bandwidth=100.0))
    alone = replay(graph, Setup.uniform(2, 1, has_stealing=False), Overheads(bandwidth=100.0))

    assert alone.wall_us >= 20 * S
    assert (alone.stolen, alone.transferred) == (0, 0)
    # The first second passes with one thread, and then a few tasks at a time are taken.
    assert stolen.transferred == 8
    assert 5 <= stolen.stolen <= 10
    assert 10 * S < stolen.wall_us < 13 * S


def test_queued_tasks_with_an_input_go_to_all_workers() -> None:
    # Twenty tasks with one input are root tasks for Dask, and don't follow their input.
    tasks = [Task(1.0, group="load", nbytes=8), *(Task(10.0, (0,), "use") for _ in range(20))]

    assert wall_us(tasks, 2) == 101.0


def test_tasks_share_the_cores_of_their_host() -> None:
    graph = make_graph([Task(10.0, cpu=1.0) for _ in range(4)])

    assert replay(graph, Setup.uniform(4, 1, per_host=4, cores=2), FREE).wall_us == pytest.approx(20.0)
    assert replay(graph, Setup.uniform(4, 1, per_host=2, cores=2), FREE).wall_us == pytest.approx(10.0)
    # The short task ends after 2 × 10, and the long one has the core for itself from then on.
    uneven = make_graph([Task(10.0, cpu=1.0), Task(50.0, cpu=1.0)])
    assert replay(uneven, Setup.uniform(1, 2, cores=1), FREE).wall_us == pytest.approx(60.0)


def test_tasks_that_sleep_do_not_share_a_core() -> None:
    graph = make_graph([Task(10.0, cpu=0.3) for _ in range(4)])

    assert replay(graph, Setup.uniform(1, 4, cores=1), FREE).wall_us == pytest.approx(10.0)


def test_python_code_runs_on_one_thread_of_a_worker_at_a_time() -> None:
    graph = make_graph([Task(10.0, cpu=1.0, gil=1.0) for _ in range(4)])

    assert replay(graph, Setup.uniform(1, 2, cores=8), FREE).wall_us == pytest.approx(40.0)
    assert replay(graph, Setup.uniform(2, 1, cores=8), FREE).wall_us == pytest.approx(20.0)
    # One thread at a time competes for the core with another program.
    assert replay(graph, Setup.uniform(1, 2, cores=1, others=1), FREE).wall_us == pytest.approx(80.0)
    # It keeps the lock while it waits for a core, and then wants no more of the core than one thread does.
    slowed = make_graph([Task(10.0, cpu=0.4, gil=1.0) for _ in range(4)])
    assert replay(slowed, Setup.uniform(1, 2, cores=1, others=0.6), FREE).wall_us == pytest.approx(40.0)


def test_the_client_submits_more_after_everything_has_ended() -> None:
    tasks = [Task(10.0), Task(10.0), Task(10.0), Task(10.0)]
    graph = make_graph(tasks, [Submission(0.0, [0, 1], [0.0, 0.0]), Submission(7.0, [2, 3], [0.0, 4.0])])

    assert replay(graph, Setup.uniform(1, 1), FREE).wall_us == 47.0
    assert replay(graph, Setup.uniform(2, 1), FREE).wall_us == 10.0 + 7.0 + 4.0 + 10.0


def test_a_worker_that_joins_late_gets_tasks_from_then_on() -> None:
    graph = make_graph([Task(10.0) for _ in range(8)])

    assert replay(graph, Setup([1, 1], [0.0, 40.0], [0, 1], saturation=1.0), FREE).wall_us == 60.0
    assert replay(graph, Setup([1], [5.0], [0]), FREE).wall_us == 85.0


def test_a_group_is_rootish_by_its_size_and_inputs() -> None:
    assert [is_rootish(size, 0, 0, 4) for size in (8, 9)] == [False, True]
    assert [is_rootish(9, 1, inputs, 4) for inputs in (4, 5)] == [True, False]


@st.composite
def graphs(draw: st.DrawFn) -> list[Task]:
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 25))):
        inputs = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        cpu = draw(st.sampled_from((0.0, 1.0)))
        tasks.append(
            Task(
                us=draw(st.integers(0, 2_000_000)),
                inputs=tuple(sorted(inputs)),
                group=f"{draw(st.sampled_from('abc'))}{cpu}",
                nbytes=draw(st.integers(0, 1000)),
                cpu=cpu,
            )
        )
    return tasks


def longest_chain(tasks: list[Task]) -> float:
    ends: list[float] = []
    for task in tasks:
        ends.append(task.us + max((ends[given] for given in task.inputs), default=0.0))
    return max(ends)


@settings(max_examples=200, deadline=None)
@given(
    tasks=graphs(),
    workers=st.integers(1, 5),
    threads=st.integers(1, 3),
    saturation=st.sampled_from((1.0, 1.1, math.inf)),
    cores=st.sampled_from((1.0, 2.0, math.inf)),
    overheads=st.builds(Overheads, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.just(10.0)),
)
def test_no_replay_is_faster_than_its_longest_chain_and_its_work(
    tasks: list[Task], workers: int, threads: int, saturation: float, cores: float, overheads: Overheads
) -> None:
    setup = Setup.uniform(workers, threads, per_host=workers, cores=cores, saturation=saturation)
    found = replay(make_graph(tasks), setup, overheads)

    work = sum(task.us for task in tasks)
    cpu = sum(task.us for task in tasks if task.cpu)
    nbytes = sum(task.nbytes for task in tasks)
    assert found.wall_us >= max(longest_chain(tasks), work / workers / threads, cpu / cores) * (1 - 1e-9)
    assert found.busy_us == work
    assert found.peak_worker_nbytes <= found.peak_nbytes <= nbytes * workers
    # A worker is never idle while all tasks wait for it, so that one thread is busy from start to end.
    if workers == threads == 1:
        spent = work + len(tasks) * (overheads.link_us + overheads.gap_us + overheads.scheduler_us) + overheads.link_us
        assert found.wall_us <= spent + 1e-6
