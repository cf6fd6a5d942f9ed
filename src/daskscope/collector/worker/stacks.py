"""Intern stacks, so that a sample costs a few dictionary look-ups, and find the thread that a waiting task waits for."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Mapping
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

    def add(self, frame: FrameType | None, base: int = ROOT) -> int | None:
        """Return the node of a thread's current stack, below another node if one is given; None if the table is full."""
        path: list[tuple[CodeType, int]] = []
        while frame is not None and len(path) < MAX_STACK:
            path.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        nodes, carriers = self._nodes, self._carriers
        node = base
        for code, position in reversed(path):
            address = id(code)
            if node == base and address in carriers:
                continue
            found = nodes.get((node, address, position))
            if found is None:
                found = self._grow(node, code, position, base)
                if found is None:
                    return None
            node = found
        return node

    def mark(self, parent: int, text: str) -> int | None:
        """Return the node of a frame that is no code, below another node; None if the table is full."""
        place = (parent, hash(text), -1)
        node = self._nodes.get(place)
        if node is None and len(self._texts) <= self._max_nodes:
            node = self._nodes[place] = len(self._texts)
            self._parents.append(parent)
            self._texts.append(text)
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

    def _grow(self, parent: int, code: CodeType, position: int, base: int) -> int | None:
        address = id(code)
        if parent == base and _carries_tasks(code.co_filename):
            self._codes[address] = code
            self._carriers.add(address)
            return base
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


# ---------------------------------------------------------------- threads that work for a task

#: Names of threads, beside the main thread, that work for no task: event loops, Dask's own threads and ours.
NOT_HELPERS = ("Dask-", "IO loop", "Profile", "AsyncProcess", "TCP-Executor", "daskscope-")
#: Innermost frames of a thread that tell whether it waits for a pool, and the frames that tell what kind of thread it is.
MAX_WAIT = 6
MAX_DEPTH = 60
#: Threads of a process that are looked at.
MAX_THREADS = 200
#: Kinds of threads that work for others: of ``concurrent.futures``, of ``multiprocessing.pool``, an event loop, any other.
FUTURES, POOL, LOOP, PLAIN = "futures", "pool", "loop", "plain"
#: Kinds of threads by the module and name of the function that they execute. A thread whose innermost frame is that function has
#: nothing to do.
TARGETS = {("concurrent.futures.thread", "_worker"): FUTURES, ("multiprocessing.pool", "worker"): POOL}
STARTS = (("/concurrent/futures/thread.py", "_worker"), ("/multiprocessing/pool.py", "worker"))


def awaited_kinds(frame: FrameType) -> tuple[str, ...]:
    """Return the kinds of threads that a blocked thread may wait for, most likely first; none if it waits for something else."""
    if not _file(frame).endswith("/threading.py"):
        return ()
    is_joining = False
    current: FrameType | None = frame
    for _ in range(MAX_WAIT):
        if current is None:
            break
        file = _file(current)
        if file.endswith("/concurrent/futures/_base.py"):
            return (FUTURES, LOOP)
        if file.endswith("/concurrent/futures/thread.py") and current.f_code.co_name == "shutdown":
            return (FUTURES,)
        if file.endswith("/multiprocessing/pool.py"):
            return (POOL,)
        is_joining = is_joining or (file.endswith("/threading.py") and current.f_code.co_name == "join")
        current = current.f_back
    return (PLAIN,) if is_joining else ()


def working_threads(frames: Mapping[int, FrameType], active: Container[int]) -> dict[str, list[int]]:
    """Return the threads that have something to do and execute no task themselves, by kind."""
    found: dict[str, list[int]] = {}
    main = threading.main_thread()
    for thread in threading.enumerate()[:MAX_THREADS]:
        frame = frames.get(thread.ident or 0)
        if frame is None or thread is main or thread.ident in active or thread.name.startswith(NOT_HELPERS):
            continue
        kind = _kind(thread, frame)
        if kind and thread.ident is not None:
            found.setdefault(kind, []).append(thread.ident)
    return found


def may_be_in_coroutine(frame: FrameType, version: tuple[int, ...]) -> bool:
    """Return whether the frames of an event loop must not be read from another thread now.

    See ``must_sample_from_loop``. A loop that waits has called ``select`` itself, so no coroutine is among its frames.
    """
    return (3, 11) <= version[:2] < (3, 13) and not _selects(frame)


def rests(frame: FrameType) -> bool:
    """Return whether the innermost frame is of an event loop that waits for a time or another thread, but for no connection."""
    if not _selects(frame):
        return False
    try:
        # One is the loop's own, by which other threads wake it.
        return len(frame.f_locals["self"].get_map()) <= 1
    except Exception:  # noqa: BLE001 - a selector of another kind
        return False


def _selects(frame: FrameType) -> bool:
    return frame.f_code.co_name == "select" and _file(frame).endswith("/selectors.py")


def _kind(thread: threading.Thread, frame: FrameType) -> str:
    """Return the kind of a thread; empty if it has nothing to do, or works for a pool itself.

    Follows from what the thread was started with: its frames may be of coroutines.
    """
    target = getattr(thread, "_target", None)
    name = str(getattr(target, "__name__", ""))
    if name.startswith("_handle_") and getattr(target, "__module__", "") == "multiprocessing.pool":
        return ""
    if any(frame.f_code.co_name == start and _file(frame).endswith(file) for file, start in STARTS):
        return ""
    if name == "run_forever" or (_selects(frame) and _runs_loop(frame)):
        return LOOP
    # Threads that only wait for a signal, such as timers and monitors, work for nobody.
    is_signalled = _file(frame).endswith(("/threading.py", "/queue.py"))
    return TARGETS.get((getattr(target, "__module__", ""), name)) or ("" if is_signalled else PLAIN)


def _runs_loop(frame: FrameType) -> bool:
    return any(outer.f_code.co_name == "run_forever" for outer in _outwards(frame))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(MAX_DEPTH):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.replace("\\", "/")
