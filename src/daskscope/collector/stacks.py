"""Interned stacks: a sample costs a few dictionary look-ups instead of a list of strings."""

from __future__ import annotations

from types import CodeType, FrameType

#: Files that carry a task to its thread. They are cut off at the outer end of a stack only: the user may call them, too.
_BELOW_TASK = (
    "/threading.py",
    "/concurrent/futures/thread.py",
    "/distributed/threadpoolexecutor.py",
    "/distributed/_concurrent_futures_thread.py",
    "/distributed/utils.py",
    "/distributed/worker.py",
)

#: Deeper stacks are cut at the outer end; Python's own recursion limit is 1,000.
MAX_STACK = 500

ROOT = 0


class StackTable:
    """Stacks as nodes of a tree, each naming its frame and the node of its caller.

    A frame is found by the address of its code and its position in it: 0.03 to 0.06 us, where asking for the line walks a table
    (0.08 us in a short function, 2.6 us at the end of 200 lines). The code objects are kept, or another could get the same
    address; so a table must not live long, or it keeps the user's functions alive.
    """

    def __init__(self, max_nodes: int = 20_000) -> None:
        self._max_nodes = max_nodes
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._parents: list[int] = [ROOT]
        self._texts: list[str] = [""]
        self._codes: dict[int, CodeType] = {}
        self._carriers: set[int] = set()

    def __len__(self) -> int:
        return len(self._texts) - 1

    def add(self, frame: FrameType | None) -> int | None:
        """The node of a thread's current stack; None where the table is full."""
        path: list[tuple[CodeType, int]] = []
        while frame is not None and len(path) < MAX_STACK:
            path.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        nodes, carriers = self._nodes, self._carriers
        node = ROOT
        for code, position in reversed(path):
            address = id(code)
            if node == ROOT and address in carriers:
                continue
            found = nodes.get((node, address, position))
            if found is None:
                found = self._grow(node, code, position)
                if found is None:
                    return None
            node = found
        return node

    def stack(self, node: int) -> tuple[str, ...]:
        """The frames of a node, outermost first."""
        frames = []
        while node != ROOT:
            frames.append(self._texts[node])
            node = self._parents[node]
        return tuple(reversed(frames))

    def _grow(self, parent: int, code: CodeType, position: int) -> int | None:
        address = id(code)
        if parent == ROOT and _carries_tasks(code.co_filename):
            self._codes[address] = code
            self._carriers.add(address)
            return ROOT
        if len(self._texts) > self._max_nodes:
            return None
        node = len(self._texts)
        self._codes[address] = code
        self._parents.append(parent)
        self._texts.append(f"{_clean(code.co_filename)}\t{_clean(code.co_name)}\t{line_at(code, position)}")
        self._nodes[(parent, address, position)] = node
        return node


def line_at(code: CodeType, position: int) -> int:
    """The line of a position. Not ``frame.f_lineno``: the thread may have gone on since its position was read."""
    line = None
    for start, stop, candidate in code.co_lines():
        if start <= position < stop:
            line = candidate
            break
    return code.co_firstlineno if line is None else line


def _carries_tasks(filename: str) -> bool:
    return filename.replace("\\", "/").endswith(_BELOW_TASK)


def _clean(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")
