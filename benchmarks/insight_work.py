"""What the workloads of ``insights`` submit. Each is called with a client; the functions of the tasks are in ``insight_tasks``."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dask.delayed import delayed
from distributed import TimeoutError as DaskTimeoutError
from distributed import wait

from benchmarks import insight_tasks as tasks

MB = 1_000_000


def map_tasks(client: Any, function: Callable[..., Any], count: int, *args: Any, **options: Any) -> None:
    wait(client.map(lambda n: function(*args, n), range(count), key=function.__name__, pure=False, **options))


def pauses(client: Any, seconds: Sequence[float], **options: Any) -> None:
    wait(client.map(tasks.pause, seconds, pure=False, **options))


def reduce_parts(client: Any, merges: int) -> None:
    parts = client.map(tasks.pause, [0.1] * 40, pure=False)
    merged = [client.submit(tasks.pause, 3.0 / merges, parts[n::merges], key=f"merge-{n}") for n in range(merges)]
    wait(merged)


def read_twice(client: Any, *, together: bool) -> None:
    source = [delayed(tasks.pause)(0.3, dask_key_name=f"read-{n}") for n in range(16)]
    total, largest = delayed(sum)(source), delayed(max)(source)
    if together:
        client.gather(client.compute([total, largest]))
    else:
        total.compute(scheduler=client)
        largest.compute(scheduler=client)


def warm_up(client: Any) -> None:
    map_tasks(client, tasks.load_then_pause, 40, 0.05)


def rounds(client: Any, between_s: float) -> None:
    for _ in range(4):
        pauses(client, [0.1] * 40)
        time.sleep(between_s)


def unpack_graph(client: Any, seconds: float) -> None:
    """Compute a graph with an object in it that takes long to unpack."""
    delayed(tasks.size_of)(tasks.Unpacked(seconds)).compute(scheduler=client)
    pauses(client, [0.1] * 20)


def fail(client: Any, retries: int) -> None:
    wait(client.map(tasks.always_fail, range(3), retries=retries, pure=False))
    pauses(client, [0.1] * 20)


def fail_first(client: Any, *, is_reliable: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        if is_reliable:
            pauses(client, [0.1] * 30)
        else:
            map_tasks(client, tasks.fail_once, 30, 0.1, directory, retries=2)


def lose(client: Any, count: int) -> None:
    kept = client.map(tasks.pause, [0.1] * 20, pure=False)
    wait(kept)
    wait([client.submit(tasks.end_worker, 0, pure=False, retries=0) for _ in range(count)])


def move(client: Any, *, apart: bool) -> None:
    """Make blocks on both workers, and use each on the other or on the same."""
    places = sorted(client.scheduler_info()["workers"])
    for _ in range(6):
        made = [
            (client.submit(tasks.make_block, 80_000_000, n, workers=[at], pure=False), at)
            for n in (0, 1)
            for at in places
        ]
        wait([block for block, _ in made])
        other = dict(zip(places, reversed(places)))
        wait([client.submit(len, block, workers=[other[at] if apart else at], pure=False) for block, at in made])


def spill(client: Any) -> None:
    """Make results of 1.2 GB by their own account, and use each again."""
    made = client.map(lambda n: tasks.make_spilled(60_000_000, 0.15, n), range(20), pure=False)
    wait(made)
    wait(client.map(lambda result: tasks.look_at(0.05, result), made, pure=False))


def read_files(client: Any, delay_s: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        map_tasks(client, tasks.read_slow_file, 40, delay_s, directory)


def read_from_server(client: Any, delay_s: float) -> None:
    with slow_server(delay_s) as port:
        map_tasks(client, tasks.ask_server, 40, port)


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


def beside_other_programs(client: Any, count: int) -> None:
    """Compute while other programs use the cores, for at most 20 s."""
    code = "import time\nstop = time.time() + 20\nwhile time.time() < stop: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        map_tasks(client, tasks.digest, 12, 150)
    finally:
        for other in others:
            other.kill()
            other.wait()


def block_workers(client: Any, seconds: float, *, busy_s: float = 0.1, count: int = 60) -> None:
    """Block the event loops of workers while they have tasks: a function of ``run`` is called there."""
    futures = client.map(tasks.pause, [busy_s] * count, pure=False)
    time.sleep(0.5)
    client.run(time.sleep, seconds)
    wait(futures)


def block_scheduler(client: Any, seconds: float) -> None:
    """Block the scheduler while it has tasks to send."""
    futures = client.map(tasks.pause, [0.1] * 60, pure=False)
    time.sleep(0.5)
    client.run_on_scheduler(time.sleep, seconds)
    wait(futures)


def block_scheduler_in_a_chain(client: Any, seconds: float) -> None:
    """Block the scheduler while a task runs that all others wait for."""
    future = client.submit(tasks.pause, 0.5, pure=False)
    for _ in range(3):
        future = client.submit(lambda *_: time.sleep(0.5), future, pure=False)
    time.sleep(0.2)
    client.run_on_scheduler(time.sleep, seconds)
    wait(future)


def restrict(client: Any, *, pinned: bool) -> None:
    first = min(client.scheduler_info()["workers"])
    pauses(client, [0.2] * 40, **({"workers": [first]} if pinned else {}))


def use_parts(client: Any, *, everywhere: bool) -> None:
    """Let tasks go where their inputs are: at one worker, or at all."""
    places = sorted(client.scheduler_info()["workers"])
    places = places if everywhere else places[:1]
    parts = [client.submit(tasks.make_part, MB, n, workers=[places[n % len(places)]], pure=False) for n in range(40)]
    wait(parts)
    wait(client.map(tasks.size_of, parts, [0.2] * 40, pure=False))


def fill_memory(client: Any, nbytes: int) -> None:
    """Fill the memory of a worker for some seconds, while there are tasks for it."""
    client.run(tasks.fill_memory, nbytes, 4.0)
    time.sleep(0.3)
    pauses(client, [0.2] * 30)


def join_late(client: Any) -> None:
    """Start a worker when all tasks have been assigned to the only other one."""
    futures = client.map(tasks.pause, [0.2] * 60, pure=False)
    client.cluster.scale(2)
    wait(futures)


def need_resources(client: Any) -> None:
    """Submit tasks that need a GPU, and give up after some seconds."""
    pauses(client, [0.1] * 20)
    futures = client.map(tasks.pause, [0.1] * 20, pure=False, resources={"GPU": 1})
    with contextlib.suppress(DaskTimeoutError):
        wait(futures, timeout=4)


def wait_for_workers(client: Any, *, late: bool) -> None:
    if late:
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)
    futures = client.map(tasks.pause, [0.1] * 20, pure=False)
    if late:
        time.sleep(2.0)
        client.cluster.scale(2)
    wait(futures)


def depend_on_many(client: Any, count: int) -> None:
    """Compute something of so many inputs that their edges are not recorded."""
    inputs = client.scatter(list(range(count)), hash=False)
    wait(client.submit(sum, inputs, pure=False))
    pauses(client, [0.1] * 40)


def adapt(client: Any, bounds: tuple[int, int], work: Callable[[Any], None], **options: Any) -> None:
    """Let the cluster scale by itself while it works."""
    minimum, maximum = bounds
    scaling = {"interval": "200ms", "target_duration": "1s", "wait_count": 50, **options}
    client.cluster.adapt(minimum=minimum, maximum=maximum, **scaling)
    work(client)


def bursts(client: Any) -> None:
    """Work and wait in turn."""
    for _ in range(4):
        pauses(client, [0.3] * 50)
        time.sleep(2.0)


def process_parts(client: Any, sizes: Sequence[int]) -> None:
    parts = client.map(tasks.make_part, sizes, pure=False)
    wait(client.map(lambda part: tasks.process_part(100.0, part), parts, key="process", pure=False))


def slow_worker(client: Any, times: float) -> None:
    first = min(client.scheduler_info()["workers"])
    client.run(tasks.slow_down, times, workers=[first])
    map_tasks(client, tasks.pause_by_worker, 80, 0.15)


def exchange(client: Any, delay_s: float) -> None:
    """Let every worker use results of every other one, in rounds; one of them sends late to another."""
    workers = sorted(client.scheduler_info()["workers"])
    client.run(tasks.delay_sending, delay_s, workers[1], workers=[workers[0]])
    used: dict[str, Any] = dict.fromkeys(workers)
    for _ in range(8):
        made = [client.submit(tasks.make_part, 2_000_000, used[at], workers=[at], pure=False) for at in workers]
        used = {at: client.submit(tasks.pause, 0.4, made, workers=[at], pure=False) for at in workers}
    wait(list(used.values()))


def read_parts(client: Any, sizes: Sequence[int]) -> None:
    wait(client.map(lambda size: tasks.read_part(0.3, 20.0, size), sizes, key="read", pure=False))


def close_a_worker(client: Any, *, retire: bool) -> None:
    """End a worker that has results: with or without moving them first."""
    kept = client.map(tasks.pause, [0.25] * 40, pure=False)
    wait(kept)
    first = min(client.scheduler_info()["workers"])
    if retire:
        client.retire_workers([first], close_workers=True)
    else:
        client.run(tasks.close_worker, workers=[first])
        while first in client.scheduler_info()["workers"]:
            time.sleep(0.05)
    wait(kept)
