"""What-if predictions: checked against the recorded run, and declined where the recording is not enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.eight_tasks import MS, S, T, eight_task_rows, row, worker
from tests.helpers.samples import write_frames

import daskscope
from daskscope.analysis.cost import Prices
from daskscope.analysis.what_if.from_recording import recorded_graph
from daskscope.analysis.what_if.predict import Options, Prediction, WhatIf, knee, what_if
from daskscope.cli.main import main
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Completeness, Recording
from daskscope.report.document import report_page
from daskscope.testing import make_frames, make_recording
from daskscope.wire.file import read_recording


def eight_tasks(**tables: Any) -> Recording:
    return make_recording({**eight_task_rows(), **tables})


def seconds(found: WhatIf) -> dict[int, float]:
    return {prediction.workers: round(prediction.wall_us / S, 1) for prediction in found.predictions}


def test_more_workers_divide_the_tasks_and_not_the_chain() -> None:
    found = what_if(eight_tasks(), workers=[8, 1, 2, 4, 4, 16])

    assert seconds(found) == {1: 8.5, 2: 4.5, 4: 2.5, 8: 1.5, 16: 1.5}
    assert found.knee == 8
    assert found.bound_us == 1500 * MS
    assert found.check == "The replay of the recorded run takes 8.51 s; the run took 8.50 s."
    assert found.prefixes == ("load", "sum")
    assert found.assumptions == (
        "All workers are there from the start, and tasks do the same work as in the run.",
        "A host has 1 worker and 4 cores.",
        "Too few transfers were recorded to measure them: 100 MB/s and 5 ms each are assumed.",
        "Too little was recorded to measure some overheads. Assumed: 4 ms between a task and its dependent, 150 µs of the "
        "scheduler per task.",
    )
    assert repr(found) == (
        "<WhatIf 1 × 1: 8.51 s, 2 × 1: 4.51 s, 4 × 1: 2.51 s, 8 × 1: 1.51 s, 16 × 1: 1.51 s. "
        "The replay of the recorded run takes 8.51 s; the run took 8.50 s.>"
    )


def test_a_prediction_has_the_cost_and_the_memory_of_its_cluster() -> None:
    (found,) = what_if(eight_tasks(), workers=[2], prices=Prices(3600.0, 0.0, "test")).predictions

    assert found.cost == pytest.approx(2 * found.wall_us / S)
    assert found == Prediction(
        workers=2, threads=1, wall_us=found.wall_us, max_wall_us=found.wall_us, speedup=round(8500 * MS / found.wall_us, 3),
        efficiency=round(8.5 * S / 2 / found.wall_us, 3), cost=found.cost,
        # Half of the results, copies of the other half, and the sum.
        peak_worker_nbytes=9000, peak_nbytes=13_000, transferred_nbytes=4000, exceeds_memory=False,
    )  # fmt: skip


def test_threads_and_faster_prefixes_change_the_prediction() -> None:
    run = eight_tasks()

    assert seconds(what_if(run, workers=[1], threads=4)) == {1: 2.5}
    assert seconds(what_if(run, workers=[1], options=Options({"load": 2.0}))) == {1: 4.5}
    assert seconds(what_if(run, workers=[4], options=Options({"sum": 0.5}))) == {4: 3.0}


def test_a_retry_starts_when_the_failed_attempt_has_ended() -> None:
    """Two tasks fail after a second and succeed after another one: four threads need two seconds, and one thread four."""
    rows = [
        row(0, 0, 1000, status="retried"), row(1, 1000, 2000, status="retried", key="load-1"),
        row(2, 2000, 3000, key="load-0", queued_us=T + 1000 * MS, assigned_us=T + 1000 * MS),
        row(3, 3000, 4000, key="load-1", queued_us=T + 2000 * MS, assigned_us=T + 2000 * MS),
    ]  # fmt: skip
    run = make_recording({"tasks": rows, "workers": [worker()]})

    assert seconds(what_if(run, workers=[1, 4])) == {1: 4.0, 4: 2.0}


def locked_tasks(threads: int, held_ms: int) -> Recording:
    """Tasks that use no lock for 100 ms and hold the lock of all workers for some time, as they ran on a number of threads."""
    free_us, lock_us, waited = [0] * threads, 0, 0
    rows = []
    for number in range(20):
        thread = min(range(threads), key=free_us.__getitem__)
        begin = free_us[thread]
        has = max(begin + 100, lock_us)
        waited += has - begin - 100
        free_us[thread] = lock_us = has + held_ms
        rows.append({**row(number, begin, lock_us), "thread": thread + 1})
    total = sum(task["stop_us"] - task["start_us"] for task in rows)
    stack = ["/code.py\tload\t1", "/site-packages/distributed/lock.py\tacquire\t2"]
    waits = {"wall_us": waited * MS, "stack": stack}
    works = {"wall_us": total - waited * MS, "stack": stack[:1]}
    profiles = [
        {"worker": "a", "kind": "compute", "source": "daskscope", "prefix": "load", "count": 100, **one}
        for one in (waits, works)
    ]
    return make_recording({"tasks": rows, "workers": [{**worker(), "nthreads": threads}], "profiles": profiles})


def test_tasks_that_hold_a_lock_run_one_after_the_other_on_any_cluster() -> None:
    run = locked_tasks(threads=4, held_ms=50)

    found = what_if(run, workers=[1, 8], threads=4)

    # 20 tasks hold the lock for 50 ms each. More workers do not help.
    assert seconds(found) == {1: pytest.approx(1.1, abs=0.15), 8: pytest.approx(1.1, abs=0.15)}
    assert any(note.startswith("Tasks waited") for note in found.assumptions)
    assert seconds(what_if(run, workers=[1], threads=1)) == {1: pytest.approx(3.0, abs=0.3)}


def test_waits_that_no_lock_explains_are_not_replayed() -> None:
    alone = make_recording(
        {
            "tasks": [row(0, 0, 1000)],
            "workers": [worker()],
            "profiles": [
                {
                    "worker": "a",
                    "kind": "compute",
                    "source": "daskscope",
                    "prefix": "load",
                    "count": 100,
                    "wall_us": 1000 * MS,
                    "stack": ["/site-packages/distributed/lock.py\tacquire\t2"],
                }
            ],
        }
    )

    assert "for locks" in what_if(alone, workers=[2]).reason


def test_without_stragglers_the_slowest_twentieth_is_as_fast_as_the_others() -> None:
    rows = [row(i, 100 * i, 100 * i + 100) for i in range(39)] + [row(39, 3900, 7900)]
    run = make_recording({"tasks": rows, "workers": [worker()]})

    assert seconds(what_if(run, workers=[2])) == {2: 5.9}
    assert seconds(what_if(run, workers=[2], options=Options(no_stragglers=True))) == {2: 2.0}


def test_without_spilling_inputs_are_not_read_from_disk() -> None:
    read = {"interval_action": ["disk-read"], "interval_start_us": [T + S], "interval_stop_us": [T + 2 * S]}
    rows = [row(0, 0, 1000), row(1, 2000, 3000, **{**read, "interval_source": [""]})]
    run = make_recording({"tasks": rows, "workers": [worker()]})

    assert seconds(what_if(run, workers=[1])) == {1: 3.0}
    assert seconds(what_if(run, workers=[1], options=Options(no_spill=True))) == {1: 2.0}


def test_without_transfers_inputs_are_everywhere() -> None:
    big = [row(i, 1000 * i, 1000 * i + 1000, nbytes=400_000_000) for i in range(8)]
    last = row(8, 8000, 8500, key="sum", group="sum", prefix="sum", queued_us=0, assigned_us=T + 8 * S)
    run = eight_tasks(tasks=[*big, last])

    assert seconds(what_if(run, workers=[2])) == {2: 4.5 + 16.0}
    assert seconds(what_if(run, workers=[2], options=Options(no_transfers=True))) == {2: 4.5}
    assert what_if(run, workers=[2]).predictions[0].exceeds_memory


def test_workers_on_one_machine_share_its_cores() -> None:
    metrics = [
        {"time_us": T, "context": "execute", "prefix": name, "activity": "thread-cpu", "unit": "seconds", "value": 8.0}
        for name in ("load", "sum")
    ]
    run = eight_tasks(workers=[worker(host="127.0.0.1")], activities=metrics)

    assert seconds(what_if(run, workers=[4, 8])) == {4: 2.5, 8: 2.5}
    assert "All workers share the 4 cores of one machine." in what_if(run).assumptions


def sampled(**columns: Any) -> list[dict[str, Any]]:
    """Return ten samples of each prefix, over a second."""
    base = {"start_us": T, "stop_us": T + S, "kind": "compute", "source": "daskscope", "count": 10, "wall_us": S}
    stack = ["work.py\tload\t3"]
    return [
        {**base, "worker": "tcp://10.0.0.1:1", "prefix": name, "stack": stack, **columns} for name in ("load", "sum")
    ]


def test_python_code_that_waits_for_a_core_keeps_the_gil() -> None:
    run = eight_tasks(profiles=sampled(cpu_us=S * 6 // 10, runqueue_us=S * 4 // 10, looping=5))
    found = what_if(run, workers=[1], threads=2)

    assert seconds(found) == {1: 8.5}
    assert found.predictions[0].max_wall_us == found.predictions[0].wall_us
    assert found.assumptions[2] == (
        "Tasks in Python loops hold the GIL, and run one after the other on the threads of a worker."
    )


def test_more_threads_with_native_code_are_predicted_as_a_range() -> None:
    run = eight_tasks(profiles=sampled(cpu_us=S))
    found = what_if(run, workers=[1], threads=2)

    assert (seconds(found), round(found.predictions[0].max_wall_us / S, 1)) == ({1: 4.5}, 8.5)
    assert repr(found).startswith("<WhatIf 1 × 2: 4.51 s to 8.51 s. ")
    assert found.assumptions[-1] == (
        "The recording does not say how much native code, such as numpy's, slows down the other threads of its worker. "
        "The longer wall time assumes threads that run it one after the other."
    )


def test_there_is_no_range_for_recorded_threads_or_for_tasks_that_wait() -> None:
    native, waiting = eight_tasks(profiles=sampled(cpu_us=S)), eight_tasks(profiles=sampled(cpu_us=S // 10))

    for found in (what_if(native, workers=[1, 2]), what_if(waiting, workers=[1], threads=2)):
        assert [prediction.max_wall_us for prediction in found.predictions] == [
            prediction.wall_us for prediction in found.predictions
        ]


def test_measured_overheads_are_not_said_to_be_assumed() -> None:
    # Each task follows its only input on the same thread; the scheduler uses a tenth of a core.
    rows = [row(i, 1000 * i, 1000 * i + 990, queued_us=0, assigned_us=T) for i in range(5)]
    run = make_recording({
        "tasks": rows,
        "edges": [{"task": i + 1, "dependency": i, "seen_us": T} for i in range(4)],
        "workers": [worker()],
        "samples": [{"time_us": T + S, "worker": "scheduler", "cpu_percent": 10.0}],
        "transfers": [
            {"direction": "incoming", "start_us": T, "stop_us": T + 1000 + nbytes // 200, "nbytes": nbytes}
            for nbytes in (10, 10, 10, 2_000_000, 2_000_000, 2_000_000)
        ],
    })  # fmt: skip

    assert what_if(run).assumptions == (
        "All workers are there from the start, and tasks do the same work as in the run.",
        "The number of cores is not known: each thread has one.",
    )


def test_a_p2p_shuffle_is_said_to_send_data_besides_the_graph() -> None:
    rows = [row(i, 1000 * i, 1000 * i + 1000) for i in range(4)]
    barrier = row(4, 4000, 4100, key="shuffle-barrier-1", group="shuffle-barrier", prefix="shuffle-barrier")
    run = make_recording({"tasks": [*rows, barrier], "workers": [worker()]})
    text = "What workers send each other in a P2P shuffle is not part of the graph, and takes no time here."

    assert text in what_if(run).assumptions
    assert text not in what_if(run, options=Options(no_transfers=True)).assumptions
    assert text not in what_if(eight_tasks()).assumptions


def test_a_client_that_waits_between_submissions_waits_again() -> None:
    rows = [row(i, 1000 * i, 1000 * i + 1000) for i in range(4)]
    late = {"queued_us": T + 5 * S, "assigned_us": T + 5 * S}
    rows += [row(4 + i, 5000 + 1000 * i, 6000 + 1000 * i, **late) for i in range(4)]
    run = make_recording({"tasks": rows, "workers": [worker()]})

    assert seconds(what_if(run, workers=[1, 2, 4])) == {1: 9.0, 2: 5.0, 4: 3.0}


def test_other_programs_use_some_of_the_cores() -> None:
    metrics = [
        {"time_us": T, "context": "execute", "prefix": name, "activity": "thread-cpu", "unit": "seconds", "value": 8.0}
        for name in ("load", "sum")
    ]
    usage = {"cores": 4, "wall_us": 10 * S, "cpu_us": 9 * S, "host_cpu_us": 29 * S}
    run = eight_tasks(
        workers=[worker(host="127.0.0.1")],
        activities=metrics,
        processes=[{"time_us": T, "worker": "tcp://10.0.0.1:1", **usage}],
    )

    # Two cores are left, and the system gives four workers and the others the same share: two thirds of a core each.
    assert seconds(what_if(run, workers=[2, 4])) == {2: 4.5, 4: 3.5}
    # If they keep the two cores, four workers are no faster than two.
    ranges = {prediction.workers: prediction.max_wall_us for prediction in what_if(run, workers=[1, 2, 4]).predictions}
    assert {workers: round(us / S, 1) for workers, us in ranges.items()} == {1: 8.5, 2: 4.5, 4: 4.5}
    assert what_if(run).assumptions[1] == "All workers share the 4 cores of one machine, of which other programs use 2."
    assert what_if(run).assumptions[-1] == (
        "Other programs may share their cores with more workers, or keep them. In the longer wall time they keep them."
    )
    assert "Other programs" not in what_if(run, workers=[1, 2]).assumptions[-1]


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"tasks": []}, "No task of this computation has finished."),
        ({"workers": []}, "The recording does not say which workers there were."),
        ({"workers": [worker(end_us=T + S)]}, "A worker left while it ran, and in a replay all stay."),
        (
            {"edges": [], "groups": [{"computation": "c", "group": "sum", "dependencies": ["load"]}]},
            "Dependencies between tasks were not recorded.",
        ),
        ({"computations": [{"computation": "c", "state": "running"}]}, "The computation is still running."),
        (
            {"tasks": [row(0, 0, 1000), row(1, 1000, 1000, status="killed")]},
            "A worker was lost while it ran, and a replay loses none.",
        ),
        (
            {"events": [{"time_us": T + S // 2, "kind": "seceded", "detail": "load-0"}]},
            "Its tasks start other tasks and wait for them, which a replay can't follow.",
        ),
        (
            # Nobody knows why the second one waited.
            {"tasks": [row(0, 0, 1000), row(1, 5000, 6000)]},
            "The replay of the recorded run takes 2.00 s; the run took 6.00 s. They differ by more than 20 %, so that a "
            "prediction would not be reliable.",
        ),
    ],
)
def test_there_is_no_prediction_without_the_whole_story(tables: dict[str, Any], reason: str) -> None:
    found = what_if(eight_tasks(**tables), computation="c")

    assert (found.reason, found.predictions, found.knee) == (reason, (), 0)
    assert repr(found) == f"<WhatIf: {reason}>"


def test_there_is_no_prediction_if_rows_are_missing() -> None:
    whole = eight_tasks()
    parts = Recording(whole.source, whole.tables, {"edges": Completeness(rows=5, dropped=3)})

    assert what_if(parts).reason == "The recording is incomplete: 3 tasks or dependencies are missing."


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"workers": [0]}, "0 workers can't be replayed. Give a number from 1 to 10,000."),
        ({"workers": []}, "Give 1 to 20 numbers of workers."),
        ({"threads": 2000}, "2000 threads can't be replayed. Give a number from 1 to 1,000."),
        ({"options": Options({"lod": 2.0})}, "No task has the prefix 'lod'. The prefixes are load, sum."),
        ({"options": Options({"load": 0.0})}, "load can't be 0.0 times faster. Give a number above 0."),
    ],
)
def test_impossible_questions_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(DaskscopeError) as refused:
        what_if(eight_tasks(), **options)

    assert str(refused.value) == problem


def test_the_knee_is_where_more_workers_stop_to_pay_off() -> None:
    def points(*walls: tuple[int, int]) -> list[Prediction]:
        return [Prediction(n, 1, wall, wall, 1.0, 1.0, None, 0, 0, 0, False) for n, wall in walls]

    assert knee(points((1, 100), (2, 50), (4, 30), (8, 25), (16, 12))) == 4
    assert knee(points((4, 100), (8, 90))) == 4
    assert knee(points((4, 100))) == 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.daskscope"
    write_frames(path, make_frames(eight_task_rows()))
    return path


def test_a_file_is_predicted_by_its_name(path: Path) -> None:
    found = daskscope.what_if(path, workers=[2], faster={"sum": 5.0}, no_transfers=True)

    assert seconds(found) == {2: 4.1}


def test_the_command_prints_a_table_and_its_assumptions(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(path), "--workers", "1,2,16", "--faster", "load=2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "workers  threads  wall time  speed-up  efficiency  memory of a worker  transferred",
        "      1        1     4.51 s    1.89 ×       >99 %            8.79 KiB          0 B",
        "      2        1     2.51 s    3.38 ×        90 %            8.79 KiB     3.91 KiB",
        "     16        1     1.01 s    8.40 ×        28 %            8.79 KiB     6.84 KiB",
        "",
        "The replay of the recorded run takes 8.51 s; the run took 8.50 s. It had 1 worker with 1 thread.",
        "Beyond 2 workers, more of them give less than half of the speed-up they could.",
        "With any number of workers it takes at least 1.00 s.",
        "- All workers are there from the start, and tasks do the same work as in the run.",
        "- A host has 1 worker and 4 cores.",
        "- Too few transfers were recorded to measure them: 100 MB/s and 5 ms each are assumed.",
        "- Too little was recorded to measure some overheads. Assumed: 4 ms between a task and its dependent, 150 µs of the "
        "scheduler per task.",
    ]


def test_the_command_prints_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(path), "--workers", "2", "--threads", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["check"] == "The replay of the recorded run takes 8.51 s; the run took 8.50 s."
    assert [(item["workers"], item["threads"]) for item in found["predictions"]] == [(2, 2)]


def test_the_command_says_why_there_is_no_prediction(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(path), "--computation", "none"]) == 1
    assert capsys.readouterr().out == (
        "No prediction. No task of this computation has finished.\nTry another computation:\n  --computation c  8.50 s\n"
    )


def test_the_command_names_other_computations_that_it_can_predict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = eight_task_rows()
    rows["computations"][0]["code"] = "total.compute()"
    rows["tasks"] += [row(9, 9000, 20_000, computation="d", status="killed"), row(10, 9000, 29_000, computation="d")]
    # No task of it was recorded.
    rows["computations"].append({"computation": "e", "start_us": T, "stop_us": T + 9 * S, "state": "done", "tasks": 1})
    write_frames(tmp_path / "run.daskscope", make_frames(rows))

    assert main(["what-if", str(tmp_path / "run.daskscope")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "No prediction. A worker was lost while it ran, and a replay loses none.",
        "Try another computation:",
        "  --computation c  8.50 s  total.compute()",
    ]


def test_the_command_asks_for_the_recording_of_a_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = path.with_suffix(".html")
    report.write_bytes(report_page(read_recording(path), title="run"))

    assert main(["what-if", str(report)]) == 1
    assert capsys.readouterr().out == (
        "No prediction. This is not a full recording: read from a report, which rounds durations to three digits. "
        "Use the recording itself (.daskscope), or the URL of the cluster's page.\n"
    )


@pytest.mark.parametrize("arguments", [("--workers", "2,x"), ("--faster", "load"), ("--faster", "load=fast")])
def test_the_command_refuses_arguments_that_make_no_sense(path: Path, arguments: tuple[str, str]) -> None:
    with pytest.raises(SystemExit):
        main(["what-if", str(path), *arguments])


def test_times_of_a_million_years_are_not_replayed() -> None:
    tasks = [{**one, "stop_us": 2**62} if one["id"] == 3 else one for one in eight_task_rows()["tasks"]]
    assert what_if(eight_tasks(tasks=tasks), workers=[1_000]).reason.startswith("The tasks take too long in total")


def test_a_task_from_a_broken_clock_is_replayed_too() -> None:
    """The last submission has all tasks that are left, also those at the largest time that fits into a column."""
    task = {"id": 1, "key": "a", "computation": "c", "status": "ok", "worker": "w", "start_us": 2**63 - 1, "stop_us": T}
    rows = {"tasks": [task], "workers": [{"worker": "w", "nthreads": 1}]}

    assert recorded_graph(make_recording(rows)).graph.submissions[-1].roots == [0]
