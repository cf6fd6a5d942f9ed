"""Child processes of a worker: how many, and what they use."""

from __future__ import annotations

from typing import Any

import psutil


class ChildWatcher:
    """Walks the child processes. It reads /proc for each of them: call it off the event loop."""

    def __init__(self, pid: int | None = None) -> None:
        self._parent: Any = psutil.Process(pid)
        # psutil gives the CPU since the previous call on the same object, so the objects are kept.
        self._known: dict[tuple[int, float], Any] = {}

    def sample(self) -> dict[str, float]:
        """The ``children`` columns of a sample; the CPU of a child counts from the second time it is seen."""
        self._refresh()
        count, cpu, memory = 0, 0.0, 0
        for child in self._known.values():
            try:
                with child.oneshot():
                    usage, rss = child.cpu_percent(None), child.memory_info().rss
            except psutil.Error:  # gone, or a zombie, or not ours any more
                continue
            count, cpu, memory = count + 1, cpu + usage, memory + rss
        return {"children": count, "children_cpu_percent": cpu, "children_memory": memory}

    def _refresh(self) -> None:
        try:
            found = self._parent.children(recursive=True)
        except psutil.Error:
            found = []
        present = {identity: child for child in found if (identity := _identity(child)) is not None}
        self._known = {identity: self._known.get(identity, child) for identity, child in present.items()}


def _identity(child: Any) -> tuple[int, float] | None:
    """A process id may be given out again, so the time of its start is part of it."""
    try:
        return child.pid, child.create_time()
    except psutil.Error:
        return None
