"""Provoke each rule on a real cluster, and follow its advice: the rule speaks about the one, and about no other twin.

A workload has the problem; its twin does the same work after following the advice. The gain is the time that the twin saved, by
the clock of the client, and compared with the wall time that the finding promised at most.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask.delayed import delayed
from distributed import Client, LocalCluster, wait

import daskscope
from benchmarks import insight_tasks as tasks
from benchmarks.result import Result, at_most
from daskscope.analysis.facts import Facts, Finding
from daskscope.analysis.summary import extent
from daskscope.insights.rules import findings

Work = Callable[[Any], object]


@dataclass(frozen=True)
class Pair:
    """A rule, a workload that provokes it, and a twin that follows the advice."""

    rule: str
    problem: Work
    twin: Work
    #: Clusters that differ: workers and threads of the problem and of the twin.
    sizes: tuple[tuple[int, int], tuple[int, int]] = ((2, 2), (2, 2))
    options: dict[str, Any] = field(default_factory=dict)
    #: Whether the advice saves time that can be measured.
    has_gain: bool = True


@dataclass(frozen=True)
class Run:
    """What was found about a run, and how long it took."""

    found: dict[str, Finding]
    seconds: float


def _map(client: Any, function: Callable[..., Any], count: int, *args: Any, **options: Any) -> list[Any]:
    futures = client.map(lambda n: function(*args, n), range(count), pure=False, **options)
    wait(futures)
    return list(futures)


def _straggler(client: Any, long: list[float]) -> None:
    wait(client.map(tasks.pause, [0.05] * 60 + long, pure=False))


def _reduce(client: Any, merges: int) -> None:
    parts = client.map(tasks.pause, [0.1] * 40, pure=False)
    merged = [client.submit(tasks.pause, 3.0 / merges, parts[n::merges], key=f"merge-{n}") for n in range(merges)]
    wait(merged)


def _read_twice(client: Any, *, together: bool) -> None:
    source = [delayed(tasks.pause)(0.3, dask_key_name=f"read-{n}") for n in range(16)]
    total, largest = delayed(sum)(source), delayed(max)(source)
    if together:
        client.gather(client.compute([total, largest]))
    else:
        total.compute(scheduler=client)
        largest.compute(scheduler=client)


def _warm_up(client: Any, *, preload: bool) -> None:
    if preload:
        client.run(tasks.load_model)
    _map(client, tasks.load_then_pause, 40, 0.05, 2.0)


def _pauses(client: Any, between_s: float) -> None:
    for _ in range(4):
        wait(client.map(tasks.pause, [0.1] * 40, pure=False))
        time.sleep(between_s)


def _graph(client: Any, seconds: float) -> None:
    """Compute a graph with an object in it that takes long to unpack."""
    delayed(tasks.size_of)(tasks.Unpacked(seconds)).compute(scheduler=client)
    wait(client.map(tasks.pause, [0.1] * 20, pure=False))


def _fail(client: Any, retries: int) -> None:
    wait(client.map(tasks.always_fail, range(3), retries=retries, pure=False))
    wait(client.map(tasks.pause, [0.1] * 20, pure=False))


def _lose(client: Any, count: int) -> None:
    kept = client.map(tasks.pause, [0.1] * 20, pure=False)
    wait(kept)
    wait([client.submit(tasks.end_worker, 0, pure=False, retries=0) for _ in range(count)])


def _move(client: Any, *, apart: bool) -> None:
    first, second = sorted(client.scheduler_info()["workers"])
    for _ in range(6):
        blocks = client.map(lambda n: tasks.make_block(80_000_000, n), range(4), workers=[first], pure=False)
        wait(blocks)
        where = second if apart else first
        wait([client.submit(len, block, workers=[where], pure=False) for block in blocks])


def _server_reads(client: Any, delay_s: float) -> None:
    with slow_server(delay_s) as port:
        _map(client, tasks.ask_server, 40, port)


@contextmanager
def slow_server(delay_s: float) -> Iterator[int]:
    """Serve connections that are answered late."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            time.sleep(delay_s)
            connection.recv(1_000)
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.close()


PAIRS = (
    Pair(
        "short-tasks",
        lambda client: wait(client.map(tasks.nothing, range(4_000), pure=False)),
        lambda client: wait(
            client.map(tasks.many_nothings, [list(range(n, n + 100)) for n in range(0, 4_000, 100)], pure=False)
        ),
    ),
    Pair(
        "stragglers", lambda client: _straggler(client, [4.0]), lambda client: _straggler(client, [0.1] * 40)
    ),
    Pair("serial-sections", lambda client: _reduce(client, 1), lambda client: _reduce(client, 8)),
    Pair(
        "repeated-work",
        lambda client: _read_twice(client, together=False),
        lambda client: _read_twice(client, together=True),
    ),
    Pair("warm-up", lambda client: _warm_up(client, preload=False), lambda client: _warm_up(client, preload=True)),
    Pair(
        "gil",
        lambda client: _map(client, tasks.count_with_lock_held, 40, 8_000_000),
        lambda client: _map(client, tasks.count_with_lock_held, 40, 8_000_000),
        ((1, 4), (2, 1)),
    ),
    Pair(
        "python-loops",
        lambda client: _map(client, tasks.count_in_python, 60, 2_000_000),
        lambda client: _map(client, tasks.count_in_numpy, 60, 2_000_000),
        ((2, 1), (2, 1)),
    ),
    Pair(
        "locks",
        lambda client: _map(client, tasks.with_lock, 40, 0.1),
        lambda client: wait(client.map(tasks.pause, [0.1] * 40, pure=False)),
    ),
    Pair("network-reads", lambda client: _server_reads(client, 0.3), lambda client: _server_reads(client, 0.0)),
    Pair(
        "too-few-tasks",
        lambda client: wait(client.map(tasks.pause, [4.0], pure=False)),
        lambda client: wait(client.map(tasks.pause, [0.1] * 40, pure=False)),
    ),
    Pair("nothing-submitted", lambda client: _pauses(client, 2.0), lambda client: _pauses(client, 0.0)),
    Pair("transfers", lambda client: _move(client, apart=True), lambda client: _move(client, apart=False), ((2, 1), (2, 1))),
    Pair("large-graphs", lambda client: _graph(client, 2.0), lambda client: _graph(client, 0.0)),
    Pair("failed-tasks", lambda client: _fail(client, 0), lambda client: _pauses(client, 0.0), has_gain=False),
    Pair("retries-in-vain", lambda client: _fail(client, 3), lambda client: _pauses(client, 0.0), has_gain=False),
    Pair("lost-workers", lambda client: _lose(client, 1), lambda client: _lose(client, 0), has_gain=False),
    Pair(
        "memory-growth",
        lambda client: _map(client, tasks.keep_more, 120, 4_000_000, 1.0),
        lambda client: _map(client, tasks.keep_more, 120, 4_000, 1.0),
        options={"memory_limit": 900_000_000},
        has_gain=False,
    ),
)  # fmt: skip


def observe(work: Work, size: tuple[int, int], options: dict[str, Any]) -> Run:
    """Run a workload on a new cluster and return what its recording says."""
    workers, threads = size
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            dashboard_address=":0",
            silence_logs=50,
            **{"memory_limit": 0, **options},
        ) as cluster,
        Client(cluster) as client,
    ):
        wait(client.map(tasks.nothing, range(-20, 0)))
        with daskscope.record(Path(directory) / "run.daskscope", client) as recorded:
            began = time.monotonic()
            work(client)
            seconds = time.monotonic() - began
        recording = recorded.recording
    assert recording is not None
    made = findings(Facts.of(recording, *extent(recording)))
    return Run({finding.rule: finding for finding in reversed(made)}, seconds)


def run(pairs: Sequence[Pair] = PAIRS) -> list[Result]:
    missed: list[str] = []
    wrong: list[str] = []
    broken: list[str] = []
    provoked = {pair.rule for pair in PAIRS}
    for pair in pairs:
        sides = zip((pair.problem, pair.twin), pair.sizes, strict=True)
        problem, twin = (observe(work, size, pair.options) for work, size in sides)
        finding = problem.found.get(pair.rule)
        missed += [] if finding else [pair.rule]
        wrong += [f"{rule} about the twin of {pair.rule}" for rule in sorted(provoked & twin.found.keys())]
        saved = problem.seconds - twin.seconds
        promised = finding.gain.wall_high_us / 1e6 if finding and finding.gain else 0.0
        if pair.has_gain and finding and not 0 <= saved <= 1.15 * promised + 0.3:
            broken.append(f"{pair.rule} (saved {saved:.2f} s, promised at most {promised:.2f} s)")
        others, of_twin = (", ".join(sorted(one.found.keys() - {pair.rule})) or "none" for one in (problem, twin))
        print(
            f"    {pair.rule}: {'found' if finding else 'MISSED'}; {problem.seconds:.2f} s, twin {twin.seconds:.2f} s, promised at "
            f"most {promised:.2f} s; others: {others}; twin: {of_twin}",
            file=sys.stderr,
            flush=True,
        )
    gains = sum(pair.has_gain for pair in pairs)
    return [
        at_most("insights: rules that miss their workload", len(missed), 0, f" of {len(pairs)}", ", ".join(missed)),
        at_most("insights: findings of these rules about twins", len(wrong), 0, "", "; ".join(wrong)),
        at_most(
            "insights: advice that saved nothing, or more than promised",
            len(broken),
            0,
            f" of {gains}",
            "; ".join(broken),
        ),
    ]
