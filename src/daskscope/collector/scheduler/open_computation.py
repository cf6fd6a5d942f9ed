"""A computation that the recorder tracks: its groups, and its part of Dask's counters of groups that it shares with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..compat import group_durations_us

FINISHED = frozenset(("memory", "erred", "released", "forgotten"))


@dataclass(frozen=True)
class Counters:
    """Dask's counters of a group: tasks by state (non-zero only), end of its last success, microseconds by action, bytes."""

    states: dict[str, int]
    stop: float
    durations: dict[str, int]
    nbytes: int

    @classmethod
    def read(cls, group: Any, fresh: int = 0) -> Counters:
        """Read the group's counters, leaving out ``fresh`` tasks that were just submitted and have not started."""
        states = {state: count for state, count in group.states.items() if count}
        if fresh:
            states["released"] = max(0, states.get("released", 0) - fresh)
        return cls(states, group.stop, group_durations_us(group), group.nbytes_total)

    def since(self, before: Counters) -> Counters:
        """Return the growth since ``before``; never negative."""
        states = {state: count - before.states.get(state, 0) for state, count in self.states.items()}
        # Tasks counted in `before` may have changed state since. Subtract them from the states in which tasks end up.
        gone = sum(max(0, count - self.states.get(state, 0)) for state, count in before.states.items())
        for state in ("forgotten", "released", "memory", "erred"):
            surplus = min(gone, max(0, states.get(state, 0)))
            gone -= surplus
            if surplus:
                states[state] -= surplus
        return Counters(
            {state: count for state, count in states.items() if count > 0},
            self.stop if self.stop > before.stop else 0.0,
            {name: us - before.durations.get(name, 0) for name, us in self.durations.items()},
            max(0, self.nbytes - before.nbytes),
        )

    def as_finished(self) -> Counters:
        """Return the counters with every task finished.

        They were finished: Dask starts a new computation only once all others are done, and tasks that run again had a result.
        """
        states = {state: count for state, count in self.states.items() if state in FINISHED}
        running = sum(self.states.values()) - sum(states.values())
        if running:
            states["memory"] = states.get("memory", 0) + running
        return Counters(states, self.stop, self.durations, self.nbytes)


@dataclass
class Share:
    """A computation's part of a shared group: its counters when the computation took over, and when the next one did."""

    before: Counters | None = None
    after: Counters | None = None


@dataclass(frozen=True)
class Arrival:
    """When a graph arrived at the scheduler, and how large it was."""

    time_us: int
    nbytes: int

    @classmethod
    def of(cls, message: Mapping[str, Any], now_us: int) -> Arrival:
        """Return the arrival of a client's message; before 2025.4, the graph had a name of its own in it."""
        frames = getattr(message.get("expr_ser"), "frames", None) or message.get("graph_frames")
        known = frames if isinstance(frames, (list, tuple)) else ()
        parts = [frame for frame in known if isinstance(frame, (bytes, bytearray, memoryview))]
        return cls(now_us, sum(memoryview(part).nbytes for part in parts))


@dataclass(eq=False)
class ClientPart:
    """What a second client submitted while the computation of a first one was running: Dask makes one computation of both."""

    id: str
    start: float
    code: list[Any]
    groups: set[Any] = field(default_factory=set)


@dataclass
class OpenComputation:
    """A computation the recorder tracks, and what it has written about it."""

    id: str
    dask_computation: Any
    client: str
    start_us: int
    submissions: int = 0
    submitted: int = 0
    #: How long the scheduler took to accept its graphs.
    graph_us: int = 0
    #: Bytes of its graphs as they arrived.
    graph_nbytes: int = 0
    failed: int = 0
    is_cancelled: bool = False
    #: Tasks that never ran because no client wanted them any longer.
    abandoned: int = 0
    #: Groups of Dask's computation that another client submitted.
    of_others: set[Any] = field(default_factory=set)
    #: When a task last failed, was killed or was cancelled: Dask's groups do not record these ends.
    last_failure_us: int = 0
    #: Its parts of shared groups: those it took over from others, and its own that others took over.
    shares: dict[Any, Share] = field(default_factory=dict)
    #: Groups that ``Computations._holders`` maps to this computation.
    held: set[Any] = field(default_factory=set)
    #: Hash of the last row written for each group.
    signatures: dict[Any, int] = field(default_factory=dict)
    #: Values of the last row written for the computation.
    written: tuple[Any, ...] = ()

    def own(self) -> Any:
        """Return the set of groups that it created."""
        groups = self.dask_computation.groups
        return groups - self.of_others if self.of_others else groups

    def groups(self) -> list[Any]:
        """Return its own groups, then those it shares."""
        own = self.own()
        return [*own, *(group for group in self.shares if group not in own)]

    def size(self) -> tuple[int, int]:
        """Return the number of own and shared groups, to detect a graph that arrives during a round."""
        return len(self.own()), len(self.shares)

    def holds(self, group: Any) -> bool:
        """Return whether this computation was the last to submit to the group."""
        share = self.shares.get(group)
        return share.after is None if share is not None else group in self.own()

    def counters(self, group: Any) -> Counters:
        """Return this computation's part of the group's counters."""
        share = self.shares.get(group)
        if share is None:
            return Counters.read(group)
        counters = share.after or Counters.read(group)
        return counters.since(share.before) if share.before is not None else counters
