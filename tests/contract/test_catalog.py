"""Every batch is stored once and counted once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.archive import NOW, Archive, frame, frames_of_file, numbered, task

from daskscope.analysis.running.rollup import BUCKET
from daskscope.model.recording import Table
from daskscope.model.tables import TABLES
from daskscope.model.untrusted import LARGEST, MAX_EXCEPTIONS, MAX_NAMES, NAME_NBYTES, OTHER
from daskscope.storage import schema
from daskscope.storage.base.blobs import LocalStore
from daskscope.storage.base.database import STEP, Database
from daskscope.storage.catalog.clusters import delete_cluster, known_until_us
from daskscope.storage.runs import ingest
from daskscope.storage.runs.ingest import MAX_AHEAD_US
from daskscope.units import DAY as DAY_US
from daskscope.units import SECOND
from daskscope.wire.decode import read_frame
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

GOLDEN = Path(__file__).parents[1] / "data" / "recordings" / "v1.daskscope"

SUMS = ("tasks", "errors", "retried", "killed", "compute_us", "transfer_us", "disk_us", "deserialize_us", "nbytes")


# ---------------------------------------------------------------- exactly once


def test_a_batch_sent_twice_in_one_group_counts_once(archive: Archive) -> None:
    first, second = numbered([[task(0)], [task(1)]])
    assert archive.ingest([first, first, second, first]) == [True, False, True, False]
    assert (archive.run()["tasks"], archive.run()["rows"], archive.count(schema.batches)) == (2, 2, 2)


def test_a_batch_sent_again_later_counts_once(archive: Archive) -> None:
    frames = numbered([[task(n)] for n in range(3)])
    assert archive.ingest(frames) == [True] * 3
    assert archive.ingest(reversed(frames)) == [False] * 3
    assert archive.run()["tasks"] == 3


def test_batches_may_arrive_in_any_order_and_with_gaps(archive: Archive) -> None:
    frames = numbered([[task(n)] for n in range(6)])
    assert archive.ingest([frames[5], frames[1]]) == [True, True]
    assert archive.ingest([frames[0], frames[5], frames[3]]) == [True, False, True]
    (epoch,) = archive.rows(schema.epochs, "highest", "lowest", "taken", "from_start")
    assert epoch == {"highest": 5, "lowest": 1, "taken": 4, "from_start": 1}
    recording = archive.recording(archive.run()["id"])
    assert (recording["tasks"].rows, recording.missing_batches) == (4, 2)
    assert recording.completeness["tasks"].missing == 2


def test_a_duplicate_updates_when_the_run_was_last_seen(archive: Archive) -> None:
    archive.ingest(numbered([[task(0)]]))
    archive.now_us += 1000
    archive.ingest(numbered([[task(0)]]))
    assert archive.run()["received_us"] == NOW + 1000


def test_a_compacted_batch_is_not_stored_again(archive: Archive) -> None:
    frames = numbered([[task(n)] for n in range(5)])
    archive.ingest(frames)
    run = archive.run()["id"]
    assert archive.compact(run) is not None
    assert archive.rows(schema.epochs, "floor") == [{"floor": 5}]
    assert archive.count(schema.batches) == 0
    assert archive.ingest(frames) == [False] * 5
    assert archive.run()["tasks"] == archive.recording(run)["tasks"].rows == 5


def test_a_gap_keeps_the_floor_below_it_and_is_filled_later(archive: Archive) -> None:
    frames = numbered([[task(n)] for n in range(5)])
    archive.ingest([frames[0], frames[1], frames[4]])
    run = archive.run()["id"]
    archive.compact(run)
    assert archive.rows(schema.epochs, "floor") == [{"floor": 2}]
    assert archive.ingest(frames) == [False, False, True, True, False]
    archive.compact(run)
    assert archive.rows(schema.epochs, "floor") == [{"floor": 5}]
    assert archive.run()["tasks"] == archive.recording(run)["tasks"].rows == 5


def test_the_same_cluster_of_two_accounts_is_two_runs(archive: Archive) -> None:
    other = archive.new_account("others")
    frames = numbered([[task(0)], [task(1)]])
    assert archive.ingest(frames) == [True, True]
    assert archive.ingest(frames[:1], account=other) == [True]
    assert archive.run()["tasks"] == 2
    assert archive.run(account=other)["tasks"] == 1


def test_epochs_number_their_batches_independently(archive: Archive) -> None:
    frames = [*numbered([[task(0)], [task(1)]], epoch=7), *numbered([[task(2)], [task(3)]], epoch=8)]
    assert archive.ingest(frames) == [True] * 4
    assert archive.ingest(frames) == [False] * 4
    run = archive.run()["id"]
    archive.compact(run)
    assert archive.ingest(frames) == [False] * 4
    assert archive.run()["tasks"] == archive.recording(run)["tasks"].rows == 4


def test_a_group_may_have_more_batches_than_a_statement_has_parameters(sqlite_archive: Archive) -> None:
    small = frame("metrics", [{"time_us": NOW, "name": "x", "value": 1.0}])
    read = read_frame(small)
    size = STEP + 10
    frames = [small_frame(read.header.table, n) for n in range(size)]
    assert sqlite_archive.ingest(frames) == [True] * size
    assert sqlite_archive.ingest(frames[-3:] + frames[:3]) == [False] * 6


def small_frame(table: str, number: int) -> bytes:
    return frame(table, [{"time_us": NOW}], number)


def test_a_failed_transaction_stores_nothing(archive: Archive) -> None:
    class Broken(Exception):
        pass

    @contextmanager
    def failing() -> Iterator[None]:
        with archive.write() as tx:
            from tests.helpers.archive import batch_of

            from daskscope.storage.runs.ingest import store_batches

            batches = [batch_of(item, archive.account) for item in numbered([[task(0)]])]
            store_batches(tx, batches)
            yield
            raise Broken

    with pytest.raises(Broken), failing():
        pass
    assert [archive.count(table) for table in (schema.runs, schema.batches, schema.prefixes)] == [0, 0, 0]
    assert archive.ingest(numbered([[task(0)]])) == [True]


# ---------------------------------------------------------------- sums


def expected_sums(tables: list[Table]) -> dict[tuple[str, str], Counter[str]]:
    """Compute sums by computation and prefix, row by row in plain Python."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    actions = {
        "transfer": "transfer_us",
        "disk-read": "disk_us",
        "disk-write": "disk_us",
        "deserialize": "deserialize_us",
    }
    statuses = {"error": "errors", "retried": "retried", "killed": "killed"}
    for table in tables:
        names = ("computation", "prefix", "status", "start_us", "stop_us", "nbytes")
        intervals = ("interval_action", "interval_start_us", "interval_stop_us")
        for row in zip(*(table[name].tolist() for name in (*names, *intervals)), strict=True):
            computation, prefix, status, start, stop, nbytes, *lists = row
            mine = sums.setdefault((computation, prefix), Counter())
            mine["tasks"] += 1
            mine["compute_us"] += max(0, stop - start) if start > 0 else 0
            mine["nbytes"] += nbytes
            if status in statuses:
                mine[statuses[status]] += 1
            for action, begin, end in zip(*lists, strict=True):
                if action in actions:
                    mine[actions[action]] += max(0, end - begin)
    return sums


def stored_sums(archive: Archive) -> dict[tuple[str, str], Counter[str]]:
    rows = archive.rows(schema.prefixes, "computation", "prefix", *SUMS)
    return {(row["computation"], row["prefix"]): Counter({n: row[n] for n in SUMS if row[n]}) for row in rows}


def plausible_task(**changed: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Generate a row of ``tasks`` as a recorder might write it."""
    times = st.integers(NOW, NOW + 3 * DAY_US)

    def row(draw: Any) -> dict[str, Any]:
        start = draw(st.one_of(st.just(0), times))
        actions = draw(
            st.lists(st.sampled_from(["transfer", "disk-read", "disk-write", "deserialize", "else"]), max_size=3)
        )
        begins = [draw(times) for _ in actions]
        return {
            "key": "k",
            "computation": draw(st.sampled_from(["", "a", "b"])),
            "prefix": draw(st.sampled_from(["inc", "sum", "größe"])),
            "status": draw(st.sampled_from(["ok", "error", "retried", "killed", ""])),
            "start_us": start,
            "stop_us": (start or draw(times)) + draw(st.integers(0, 10**9)),
            "nbytes": draw(st.integers(0, 10**12)),
            "interval_action": actions,
            "interval_start_us": begins,
            "interval_stop_us": [begin + draw(st.integers(0, 10**7)) for begin in begins],
        }

    return st.composite(row)()


@given(
    st.lists(st.lists(plausible_task(), min_size=1, max_size=6), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_sums_are_the_same_in_any_order_and_any_grouping(archive: Archive, parts: list[list[Any]], random: Any) -> None:
    cluster = f"c{next(NUMBERS)}"
    frames = numbered(parts, cluster=cluster)
    tables = [read_frame(item).table() for item in frames]
    expected = expected_sums(tables)
    random.shuffle(frames)
    while frames:
        size = random.randint(1, len(frames))
        archive.ingest(frames[:size])
        frames = frames[size:]
    run = archive.run(cluster)
    total = sum(expected.values(), Counter())
    assert {name: run[name] for name in ("tasks", "errors", "compute_us", "transfer_us", "disk_us", "nbytes")} == {
        name: total[name] for name in ("tasks", "errors", "compute_us", "transfer_us", "disk_us", "nbytes")
    }
    mine = [row for row in archive.rows(schema.prefixes) if row["run_id"] == run["id"]]
    found = {(r["computation"], r["prefix"]): Counter({n: r[n] for n in SUMS if r[n]}) for r in mine}
    assert found == {key: Counter({n: v for n, v in sums.items() if v}) for key, sums in expected.items()}
    starts = [t for table in tables for t in table["start_us"].tolist() if t]
    stops = np.concatenate([table["stop_us"] for table in tables])
    assert min((row["first_us"] for row in mine if row["first_us"]), default=0) == min(starts, default=0)
    assert max(row["last_us"] for row in mine) == run["last_work_us"] == int(stops.max())
    for table, width, name in ((schema.timeline, BUCKET, "bucket"), (schema.days, DAY_US, "day")):
        steps = Counter((stops // width).tolist())
        counted: Counter[int] = Counter()
        for row in archive.rows(table):
            if row["run_id"] == run["id"]:
                counted[row[name] // width if name == "bucket" else row[name]] += row["tasks"]
        assert counted == steps


NUMBERS = itertools.count()


def test_sums_of_the_golden_recording_match_its_rows(archive: Archive) -> None:
    frames = list(frames_of_file(GOLDEN.read_bytes(), len(FILE_MAGIC)))
    archive.ingest(frames)
    archive.ingest(frames)
    (cluster,) = {read_frame(item).header.cluster for item in frames}
    tasks = read_recording(GOLDEN)["tasks"]
    assert archive.run(cluster)["tasks"] == tasks.rows
    assert sum(sums["tasks"] for sums in stored_sums(archive).values()) == tasks.rows


def test_activities_add_up(archive: Archive) -> None:
    row = {
        "time_us": NOW,
        "context": "execute",
        "span": "s",
        "prefix": "inc",
        "activity": "thread-cpu",
        "unit": "seconds",
    }
    archive.ingest([frame("activities", [{**row, "value": 0.5}, {**row, "value": 0.25}], 0)])
    archive.ingest([frame("activities", [{**row, "value": 1.25}, {**row, "unit": "bytes", "value": 7.0}], 1)])
    rows = archive.rows(schema.activities, "unit", "value", order=("unit",))
    assert rows == [{"unit": "bytes", "value": 7.0}, {"unit": "seconds", "value": 2.0}]


# ---------------------------------------------------------------- entities: the newest row wins


def worker(seen: int, **values: Any) -> dict[str, Any]:
    return {"server_id": "w1", "worker": "tcp://1", "seen_us": seen, "start_us": NOW, "nthreads": 2, **values}


def test_the_newest_row_of_an_entity_wins_in_any_order(archive: Archive) -> None:
    rows = [worker(NOW + n, name=f"at {n}", memory_limit=n) for n in range(4)]
    for number, order in enumerate(itertools.permutations(range(4))):
        cluster = f"c{number}"
        frames = [frame("workers", [rows[n]], n, cluster=cluster) for n in order]
        archive.ingest(frames[:2])
        archive.ingest(frames[2:])
    assert {(row["name"], row["memory_limit"]) for row in archive.rows(schema.workers)} == {("at 3", 3)}
    assert archive.count(schema.workers) == 24


def test_the_newest_row_of_an_entity_wins_within_one_batch(archive: Archive) -> None:
    archive.ingest([frame("workers", [worker(NOW + 5, name="new"), worker(NOW + 1, name="old")])])
    assert archive.rows(schema.workers, "name") == [{"name": "new"}]


def test_a_run_uses_the_newest_row_of_its_own_cluster(archive: Archive) -> None:
    row = {"cluster": "c", "seen_us": NOW, "start_us": NOW - 5, "name": "first", "user": "ann", "workers": 1}
    archive.ingest([frame("clusters", [{**row, "seen_us": NOW + 9, "name": "second"}], 1)])
    archive.ingest([frame("clusters", [row, {**row, "cluster": "another", "name": "stolen", "seen_us": NOW + 99}], 0)])
    run = archive.run()
    assert (run["name"], run["user"], run["start_us"], run["seen_us"]) == ("second", "ann", NOW - 5, NOW + 9)


def test_a_run_belongs_to_the_user_of_its_first_batch(archive: Archive) -> None:
    row = {"cluster": "c", "seen_us": NOW, "start_us": NOW, "user": "says the recorder"}
    archive.ingest([frame("clusters", [row], 0)], user="ann")
    archive.ingest([frame("clusters", [{**row, "seen_us": NOW + 1, "name": "new"}], 1)], user="bob")
    assert (archive.run()["user"], archive.run()["name"]) == ("ann", "new")


def test_a_row_from_the_far_future_is_replaced_by_later_rows(archive: Archive) -> None:
    row = {"cluster": "c", "seen_us": 2**53, "start_us": NOW, "end_us": 2**53}
    archive.ingest([frame("clusters", [row], 0)])
    assert archive.run()["seen_us"] == NOW + MAX_AHEAD_US
    archive.now_us += MAX_AHEAD_US
    archive.ingest([frame("clusters", [{**row, "seen_us": NOW + MAX_AHEAD_US, "end_us": 0}], 1)])
    assert archive.run()["state"] == "running"


def test_workers_above_the_limit_are_not_stored(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MAX_ENTITIES", 3)
    archive.ingest([frame("workers", [worker(NOW, server_id=f"w{n}") for n in range(3)], 0)])
    archive.ingest([frame("workers", [worker(NOW + 1, server_id=f"w{n}", name="again") for n in range(2, 5)], 1)])
    archive.ingest([frame("workers", [worker(NOW, server_id="w")], 0, cluster="other")])
    found = [(row["server_id"], row["name"]) for row in archive.rows(schema.workers)]
    assert sorted(found) == [("w", ""), ("w0", ""), ("w1", ""), ("w2", "again")]


def test_a_late_batch_does_not_bring_back_an_old_row_after_compaction(archive: Archive) -> None:
    archive.ingest([frame("workers", [worker(NOW + 5, name="new")], 1)])
    run = archive.run()["id"]
    archive.compact(run)
    archive.ingest([frame("workers", [worker(NOW + 1, name="old")], 0)])
    assert archive.recording(run)["workers"]["name"].tolist() == ["new"]
    archive.compact(run)
    assert archive.recording(run)["workers"]["name"].tolist() == ["new"]
    assert archive.rows(schema.workers, "name") == [{"name": "new"}]


def test_capacity_counts_workers_while_they_are_up(archive: Archive) -> None:
    second, gib = 1_000_000, 1 << 30
    archive.ingest([
        frame("clusters", [{"cluster": "c", "seen_us": NOW + 100 * second, "start_us": NOW}], 0),
        frame("workers", [
            worker(NOW, memory_limit=gib),
            worker(NOW, server_id="w2", worker="tcp://2", end_us=NOW + 10 * second, memory_limit=2 * gib, nthreads=4),
        ], 1),
        frame("samples", [{"time_us": NOW, "worker": f"tcp://{n}", "memory": memory} for n, memory in ((1, 7), (2, 5))], 2),
    ])  # fmt: skip
    run = archive.run()
    assert run["thread_us"] == (2 * 100 + 4 * 10) * second
    assert run["memory_byte_s"] == pytest.approx(gib * 100 + 2 * gib * 10)
    assert (run["memory_limit"], run["memory"]) == (gib, 7)


def test_capacity_counts_until_the_newest_executions(archive: Archive) -> None:
    """Otherwise threads would be busy for longer than they were there."""
    cluster = {"cluster": "c", "seen_us": NOW + 2 * SECOND, "start_us": NOW}
    archive.ingest([frame("clusters", [cluster], 0), frame("workers", [worker(NOW, nthreads=2)], 1)])
    assert (archive.run()["thread_us"], known_until_us(archive.cluster("c"))) == (4 * SECOND, NOW + 2 * SECOND)
    archive.ingest([frame("tasks", [task(0, stop_us=NOW + 5 * SECOND)], 2)])
    assert (archive.run()["thread_us"], known_until_us(archive.cluster("c"))) == (10 * SECOND, NOW + 5 * SECOND)
    # The clock of a worker is an hour ahead.
    archive.ingest([frame("tasks", [task(1, stop_us=NOW + 3_600 * SECOND)], 3)])
    assert (archive.run()["thread_us"], known_until_us(archive.cluster("c"))) == (4 * SECOND, NOW + 2 * SECOND)


# ---------------------------------------------------------------- hostile input

TEXT = "nul \0 lone \ud800 smile 🦆 " + "x" * 2_000
EXTREMES = (-(2**63), -1, 0, 1, 2**63 - 1)


def hostile(table: str, number: int, text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for column in TABLES[table].columns:
        if column.kind == "str":
            values[column.name] = f"{number} {text}"
        elif column.kind == "float":
            values[column.name] = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308][number % 5]
        elif column.kind in ("int", "time"):
            values[column.name] = EXTREMES[(number + len(column.name)) % len(EXTREMES)]
        elif column.kind == "str[]":
            values[column.name] = ["transfer", text[:100]]
        else:
            values[column.name] = [EXTREMES[number % 5], EXTREMES[(number + 1) % 5]]
    return values


def test_any_valid_frame_is_stored_or_truncated_without_an_error(archive: Archive) -> None:
    for table in TABLES:
        batches = [[hostile(table, n + shift, TEXT) for n in range(10)] for shift in range(2)]
        frames = [frame(table, rows, n, cluster=table) for n, rows in enumerate(batches)]
        assert archive.ingest(frames) == [True] * 2
        assert archive.ingest([frame(table, batches[0], 2, cluster=table)]) == [True]
        run = archive.run(table)["id"]
        assert archive.compact(run) is not None
        assert archive.ingest(frames) == [False] * 2
        assert archive.recording(run).damage == ""


def test_sums_are_capped_before_they_overflow(archive: Archive) -> None:
    rows = [task(n, nbytes=2**63 - 1, start_us=1, stop_us=2**63 - 1) for n in range(300)]
    for number in range(4):
        archive.ingest([frame("tasks", rows, 2 * number), frame("tasks", rows, 2 * number + 1)])
    run = archive.run()
    assert (run["tasks"], run["nbytes"], run["compute_us"]) == (2400, LARGEST, LARGEST)
    (prefix,) = archive.rows(schema.prefixes, "nbytes", "tasks")
    assert prefix == {"nbytes": LARGEST, "tasks": 2400}


def test_counters_of_a_header_may_be_arbitrarily_large(archive: Archive) -> None:
    most = 2**63 - 1
    archive.ingest([frame("tasks", [task(0)], most, epoch=most, kept=most, dropped=most - 1)])
    archive.ingest([frame("tasks", [task(0)], most - 1, epoch=most, kept=most, dropped=most - 1)])
    assert archive.run()["tasks"] == 2
    archive.compact(archive.run()["id"])
    assert archive.recording(archive.run()["id"]).completeness["tasks"].rows == 2


def test_names_above_the_limit_are_counted_as_other(archive: Archive) -> None:
    rows = [task(0, prefix=f"p{n}", computation=f"c{n}") for n in range(MAX_NAMES + 500)]
    archive.ingest([frame("tasks", rows)])
    prefixes = archive.rows(schema.prefixes, "prefix", "tasks")
    assert len(prefixes) == MAX_NAMES + 1
    assert [row["tasks"] for row in prefixes if row["prefix"] == OTHER] == [500]


def test_names_too_long_for_an_index_are_truncated_by_bytes(archive: Archive) -> None:
    """PostgreSQL refuses a key above 2,704 bytes, and cannot compress random text."""
    random = np.random.default_rng(1)
    names = ["".join(map(chr, random.integers(0x4E00, 0x9FFF, 900))) for _ in range(5)]
    columns = ("context", "span", "prefix", "activity", "unit")
    archive.ingest([frame("activities", [{"time_us": NOW, "value": 1.0, **dict(zip(columns, names))}])])
    (row,) = archive.rows(schema.activities, *columns)
    assert {len(value.encode()) for value in row.values()} == {NAME_NBYTES // 3 * 3}
    assert all(name.startswith(row[column]) for column, name in zip(columns, names))
    failure = {"time_us": NOW, "fingerprint": names[0], "type": names[1], "key": names[2], "count": 1}
    archive.ingest([frame("exceptions", [failure], 1)])
    assert archive.count(schema.error_groups) == 1


def test_a_text_shared_by_many_rows_does_not_fill_the_catalog(archive: Archive) -> None:
    failure = {"time_us": NOW, "fingerprint": "f", "message": "m" * 90_000, "traceback": "t" * 90_000, "count": 1}
    archive.ingest([frame("exceptions", [failure] * (MAX_EXCEPTIONS + 50))])
    run = archive.run()
    assert run["exceptions"] == MAX_EXCEPTIONS + 50
    assert archive.count(schema.exceptions) == MAX_EXCEPTIONS
    stored = sum(
        len(row["sealed_text"] or b"") for row in archive.rows(schema.exceptions, "sealed_text", order=("id",))
    )
    assert 1_000_000 < stored < 10_000_000


# ---------------------------------------------------------------- several servers


def servers(url: str, directory: Path, account: int, number: int = 2) -> list[Archive]:
    return [Archive(Database(url), LocalStore(directory), account=account) for _ in range(number)]


def run_concurrently(*actions: Any) -> None:
    """Run actions concurrently; raise the exception of any of them."""
    barrier, failures = threading.Barrier(len(actions)), []

    def act(action: Any) -> None:
        barrier.wait(10)
        try:
            action()
        except BaseException as error:  # noqa: BLE001 (raised again in the main thread)
            failures.append(error)

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def failure(number: int, **values: Any) -> dict[str, Any]:
    return {"time_us": NOW + number, "fingerprint": f"f{number % 7}", "type": "ValueError", "count": 1, **values}


def busy_frames(cluster: str, batches: int) -> list[bytes]:
    frames = []
    for n in range(0, batches, 4):
        frames += [
            frame("tasks", [task(n, prefix=f"p{n % 3}"), task(n + 1)], n, cluster=cluster),
            frame("exceptions", [failure(n), failure(n + 1), failure(6 - n % 7)], n + 1, cluster=cluster),
            frame("workers", [worker(NOW + n)], n + 2, cluster=cluster),
            frame(
                "computations",
                [{"computation": f"comp{n % 5}", "seen_us": NOW + n, "start_us": NOW}],
                n + 3,
                cluster=cluster,
            ),
        ]
    return frames


def test_two_servers_with_the_same_batches_count_each_once(postgres_url: str, tmp_path: Path) -> None:
    """Both ingest the same 200 batches of several clusters, in opposite orders, while they compact."""
    setup = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    a, b = servers(postgres_url, tmp_path / "blobs", setup.account)
    clusters = [f"c{n}" for n in range(4)]
    groups = [busy_frames(cluster, 48) for cluster in clusters]
    frames = [item for rows in zip(*groups, strict=True) for item in rows]
    taken: Counter[bool] = Counter()

    def send(server: Archive, mine: list[bytes]) -> None:
        for first in range(0, len(mine), 6):
            taken.update(server.ingest(mine[first : first + 6]))
            for row in server.rows(schema.runs, "id")[: first % 3]:
                server.compact(row["id"], over=first % 2 == 0)

    run_concurrently(lambda: send(a, frames), lambda: send(b, frames[::-1]))
    assert taken == {True: 192, False: 192}
    for cluster in clusters:
        run = setup.run(cluster)
        assert (run["tasks"], run["exceptions"]) == (24, 36)
        assert sum(row["tasks"] for row in setup.rows(schema.prefixes) if row["run_id"] == run["id"]) == 24
        assert setup.recording(run["id"])["tasks"].rows == 24
        setup.compact(run["id"])
        assert setup.recording(run["id"])["exceptions"].rows == 36
    assert sum(row["count"] for row in setup.rows(schema.error_groups, "count", order=("fingerprint",))) == 4 * 36
    named = [row["path"] for row in setup.rows(schema.files, "path", order=("path",))]
    assert setup.blobs() == named
    for server in (setup, a, b):
        server.database.close()


def test_a_run_may_be_deleted_while_its_batches_arrive(postgres_url: str, tmp_path: Path) -> None:
    """There is no deadlock, and no row is left without a run."""
    setup = Archive(Database(postgres_url), LocalStore(tmp_path / "blobs"))
    a, b = servers(postgres_url, tmp_path / "blobs", setup.account)
    frames = busy_frames("c", 80)

    def send() -> None:
        for first in range(0, len(frames), 2):
            a.ingest(frames[first : first + 2])

    def delete() -> None:
        for _ in range(25):
            for row in b.rows(schema.runs, "id"):
                b.compact(row["id"], over=False)
                with b.write() as tx:
                    paths = delete_cluster(tx, row["id"])
                for path in paths:
                    b.store.delete(path)

    run_concurrently(send, delete)
    for row in setup.rows(schema.runs, "id"):
        with setup.write() as tx:
            for path in delete_cluster(tx, row["id"]):
                setup.store.delete(path)
    assert setup.blobs() == []
    assert setup.count(schema.error_groups) == 0
    for server in (setup, a, b):
        server.database.close()
