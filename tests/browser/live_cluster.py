"""A real cluster in a subprocess, registered as documented. It runs commands from stdin, one per line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from types import TracebackType
from typing import Any

import dask.config
import distributed

from daskscope import analytics


class LiveCluster:
    """A cluster and a client in a subprocess. ``tell`` returns after the command has finished."""

    def __init__(self, server: str, token: str, name: str, **settings: str) -> None:
        environment = {
            **os.environ,
            **settings,
            "DASKSCOPE_TOKEN": token,
            "DASK_DASKSCOPE__SERVER": server,
            "DASK_DASKSCOPE__NAME": name,
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> LiveCluster:
        self._expect("registered")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def tell(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == f"{word}\n", line


def rest(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def wait_until_let_go(number: int) -> int:
    event: Any = distributed.Event("let-go")
    event.wait(timeout=300)
    return number


def divide(number: int) -> float:
    return number / 0


def end(code: int = 9) -> None:
    os._exit(code)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    # The second worker is forked, and Dask imports no dashboard: together 0.8 s of CPU time less.
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    cluster: Any = distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None)
    client: Any = distributed.Client(cluster)
    # Standard output is for the test.
    with contextlib.redirect_stdout(sys.stderr):
        analytics.register(client)
    say("registered")
    held: list[Any] = []
    for line in sys.stdin:
        word, *numbers = line.split()
        count = int(numbers[0]) if numbers else 1
        if word == "run":
            client.gather(client.map(rest, [0.01] * count, pure=False))
        elif word == "hold":
            held += client.map(rest, [0.01] * count, pure=False)
            distributed.wait(held)
        elif word == "begin":
            held += client.map(wait_until_let_go, range(count), pure=False)
        elif word == "begin-resting":
            held += client.map(rest, [0.2] * count, pure=False)
        elif word == "begin-impossible":
            held += client.map(rest, [0.01] * count, pure=False, resources={"GPU": 1})
        elif word == "forget":
            held.clear()
        elif word == "let-go":
            distributed.Event("let-go").set()
            distributed.wait(held)
            held.clear()
        elif word == "fail":
            distributed.wait(client.map(divide, range(count), pure=False))
        elif word == "kill":
            client.run(end, workers=[min(client.scheduler_info()["workers"])], on_error="ignore")
        else:
            raise ValueError(line)
        say("done")
    client.close()
    cluster.close()


if __name__ == "__main__":
    main()
