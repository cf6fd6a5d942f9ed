"""Intern stacks, so that a sample costs a few dictionary look-ups instead of a list of strings."""

from __future__ import annotations

from opcode import opname
from types import CodeType, FrameType

#: Files whose frames call a task. They are removed at the outer end of a stack only: tasks may use these files, too.
_BELOW_TASK = (
    "/threading.py",
    "/concurrent/futures/thread.py",
    "/distributed/threadpoolexecutor.py",
    "/distributed/_concurrent_futures_thread.py",
    "/distributed/utils.py",
    "/distributed/worker.py",
    "/collector/worker/actors.py",
    ".collector.worker.actors>",  # the same, shipped as source
)

#: Deeper stacks are cut at the outer end; Python's own recursion limit is 1,000.
MAX_STACK = 500

ROOT = 0

#: Instructions that repeat a loop. The interpreter changes threads there, so a thread in a loop of Python code is often sampled at
#: one. CPython before 3.11 jumps back by ``JUMP_ABSOLUTE``.
BACKWARD_JUMPS = frozenset(("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"))


class StackTable:
    """Stacks as nodes of a tree; each node has its frame and the node of its caller.

    A frame is looked up by the address of its code and the position in it: 0.03 to 0.06 µs, where computing the line walks a
    table (0.08 µs in a short function, 2.6 µs at the end of 200 lines). The code objects are kept alive, because another one
    could get the same address. So a table must be short-lived, or it keeps the user's functions in memory.
    """

    def __init__(self, max_nodes: int = 20_000) -> None:
        self._max_nodes = max_nodes
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._parents: list[int] = [ROOT]
        self._texts: list[str] = [""]
        self._codes: dict[int, CodeType] = {}
        self._carriers: set[int] = set()
        #: Nodes whose frame is at a backward jump.
        self._looping: set[int] = set()

    def add(self, frame: FrameType | None) -> int | None:
        """Return the node of a thread's current stack; None if the table is full."""
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
        """Return the frames of a node, outermost first."""
        frames = []
        while node != ROOT:
            frames.append(self._texts[node])
            node = self._parents[node]
        return tuple(reversed(frames))

    def is_looping(self, node: int) -> bool:
        """Return whether the innermost frame of a node is at a jump backwards, which ends every round of a loop."""
        return node in self._looping

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
        if is_backward_jump(code, position):
            self._looping.add(node)
        return node


def line_at(code: CodeType, position: int) -> int:
    """Return the line of a position. Not ``frame.f_lineno``: the thread may have moved on since its position was read."""
    line = None
    for start, stop, candidate in code.co_lines():
        if start <= position < stop:
            line = candidate
            break
    return code.co_firstlineno if line is None else line


def is_backward_jump(code: CodeType, position: int) -> bool:
    """Return whether the instruction at a position of the code jumps backwards."""
    instructions = code.co_code
    return 0 <= position < len(instructions) and opname[instructions[position]] in BACKWARD_JUMPS


def _carries_tasks(filename: str) -> bool:
    return filename.replace("\\", "/").endswith(_BELOW_TASK)


def _clean(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")
