"""Limit the CPU time of processes with control groups of Linux: each group is like a machine with part of a core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PERIOD_US = 20_000
#: Version 1 has a directory per controller, version 2 one for all.
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_ENDED_S = 5.0


def can_limit() -> bool:
    """Return whether this process may make control groups that limit CPU time."""
    try:
        with limited(1.0):
            return True
    except OSError:
        return False


@contextmanager
def limited(cores: float) -> Iterator[list[str]]:
    """Yield the beginning of a command line: it starts the rest in a new group with this many cores."""
    is_v1 = (V1 / "cpu.cfs_quota_us").exists()
    group = (V1 if is_v1 else V2) / f"daskscope-bench-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        if is_v1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(round(cores * PERIOD_US)))
        else:
            (group / "cpu.max").write_text(f"{round(cores * PERIOD_US)} {PERIOD_US}")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        # A group can be removed once its last process has ended.
        give_up = time.monotonic() + _ENDED_S
        while group.exists() and time.monotonic() < give_up:
            with suppress(OSError):
                group.rmdir()
            time.sleep(0.05)
