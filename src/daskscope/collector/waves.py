"""Computations, their task groups and spans: followed while they change, written when they did.

The graph hook only notes which computation is current and whose groups it goes on using; groups are looked at in rounds that may
be interrupted after each of them, because one graph may have thousands of groups and one second thousands of graphs.

Dask counts a group for the computation that made it only, but ``submit`` and ``map`` of the same function go on using it. So a
group has one holder, the computation that submitted to it last: it reports what the group has gained since, and the one before
what the group had by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from .compat import current_computation, group_durations_us, sources, spans
from .executions import Chunk
from .privacy import Scrubber, bounded

#: Finished computations that are remembered in case a lost worker makes their tasks run again, and the groups of all of them.
REMEMBERED = 200
GROUPS_REMEMBERED = 50_000
#: Groups named as dependencies of one group.
MAX_DEPENDENCIES = 100
#: Lines kept around the calling line: at module level Dask sends the whole file with every submit.
CONTEXT_LINES = 15
CODE_LIMIT = 8_000

FINISHED = frozenset(("memory", "erred", "released", "forgotten"))


@dataclass(frozen=True)
class Counters:
    """What Dask counts for a group: tasks by state (those there are), end of its last success, microseconds by action, bytes."""

    states: dict[str, int]
    stop: float
    durations: dict[str, int]
    nbytes: int

    @classmethod
    def of(cls, group: Any, fresh: int = 0) -> Counters:
        """The group as it is; without its ``fresh`` tasks, which nothing has happened to yet."""
        states = {state: count for state, count in group.states.items() if count}
        if fresh:
            states["released"] = max(0, states.get("released", 0) - fresh)
        return cls(states, group.stop, group_durations_us(group), group.nbytes_total)

    def since(self, before: Counters) -> Counters:
        """What came to it since; never less than nothing."""
        states = {state: count - before.states.get(state, 0) for state, count in self.states.items()}
        # Tasks from before may have changed their state since: as many are too many where tasks end up.
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

    def settled(self) -> Counters:
        """As if all of it were finished. It was: a computation begins when all others are, and what runs again had a result."""
        states = {state: count for state, count in self.states.items() if state in FINISHED}
        running = sum(self.states.values()) - sum(states.values())
        if running:
            states["memory"] = states.get("memory", 0) + running
        return Counters(states, self.stop, self.durations, self.nbytes)


@dataclass
class Share:
    """A computation's part of a group that it shares: after what was there before, until the next one took it over."""

    before: Counters | None = None
    after: Counters | None = None


@dataclass
class Wave:
    """One computation being followed."""

    id: str
    computation: Any
    client: str
    start_us: int
    submissions: int = 0
    submitted: int = 0
    failed: int = 0
    cancelled: bool = False
    #: When something last failed, was killed or was given up: the ends that Dask's groups do not know of.
    troubled_us: int = 0
    #: Its parts of the groups it shares: those it took over, and those of its own that were taken over.
    shares: dict[Any, Share] = field(default_factory=dict)
    #: The groups that are known to be held by it.
    held: set[Any] = field(default_factory=set)
    signatures: dict[Any, int] = field(default_factory=dict)
    written: tuple[Any, ...] = ()

    def groups(self) -> list[Any]:
        own = self.computation.groups
        return [*own, *(group for group in self.shares if group not in own)]

    def size(self) -> tuple[int, int]:
        return len(self.computation.groups), len(self.shares)

    def holds(self, group: Any) -> bool:
        """Whether it is the last that submitted to this group."""
        share = self.shares.get(group)
        return share.after is None if share is not None else group in self.computation.groups

    def part(self, group: Any) -> Counters:
        """What of this group is its own."""
        share = self.shares.get(group)
        if share is None:
            return Counters.of(group)
        counters = share.after or Counters.of(group)
        return counters.since(share.before) if share.before is not None else counters


@dataclass
class OpenSpan:
    """A span whose tasks are not all finished, as far as we have seen."""

    span: Any
    written: tuple[int, int] | None = None


class Waves:
    """Follows computations through their lives."""

    def __init__(self, scheduler: Any, add: Callable[..., None], scrubber: Scrubber, *, code: bool) -> None:
        self.scheduler = scheduler
        self.add = add
        self.scrubber = scrubber
        self.code = code
        self.current: Wave | None = None
        self.open: dict[str, Wave] = {}
        self.closed: dict[str, Wave] = {}
        self._open_spans: dict[str, OpenSpan] = {}
        #: Who holds a group, as far as somebody asked; not longer than the computation is remembered.
        self._holders: dict[Any, Wave] = {}

    def submitted(self, client: str, keys: Sequence[Any] = ()) -> str:
        """A graph of these tasks arrived; returns the id of the computation it belongs to."""
        computation = current_computation(self.scheduler)
        if computation is None:
            return ""
        wave = self.current
        if wave is None or wave.computation is not computation:
            wave = Wave(str(computation.id), computation, client, int(computation.start * 1e6))
            self.current = wave
        self.open[wave.id] = wave
        self.closed.pop(wave.id, None)
        wave.submissions += 1
        wave.submitted += len(keys)
        for group, count in self._fresh(keys).items():
            if group not in computation.groups and group not in wave.shares:
                self._take_over(wave, group, count)
        return wave.id

    def _fresh(self, keys: Sequence[Any]) -> dict[Any, int]:
        """The groups of the tasks that are to run, and how many: new ones, or results that were released and are needed again.

        All keys are looked at, at 0.2 to 0.8 µs each: Dask itself has just held the loop for 50 µs for each of them.
        """
        fresh: dict[Any, int] = {}
        get = self.scheduler.tasks.get
        for key in keys:
            task = get(key)
            if task is not None and task.state == "released":
                group = task.group
                fresh[group] = fresh.get(group, 0) + 1
        return fresh

    def _take_over(self, wave: Wave, group: Any, fresh: int) -> None:
        before, previous = Counters.of(group, fresh), self._holder(group)
        if previous is not None:
            previous.shares.setdefault(group, Share()).after = before.settled()
        wave.shares[group] = Share(before)
        self._hold(wave, group)

    def _holder(self, group: Any) -> Wave | None:
        """The computation that submitted to this group last, if it is remembered; looked for once."""
        holder = self._holders.get(group)
        if holder is None:
            known = chain(self.open.values(), self.closed.values())
            holder = next((wave for wave in known if wave.holds(group)), None)
            if holder is not None:
                self._hold(holder, group)
        return holder

    def _hold(self, wave: Wave, group: Any) -> None:
        self._holders[group] = wave
        wave.held.add(group)

    def of(self, group: Any) -> Wave | None:
        """The computation a task of this group runs for: the last that submitted to the group, or else the last there is."""
        current = self.current
        return current if current is None or current.holds(group) else self._holder(group) or current

    def troubled(self, group: Any, now_us: int) -> Wave | None:
        """Something of this group failed, was killed or was given up, and its computation is not over before that."""
        wave = self.of(group)
        if wave is not None:
            wave.troubled_us = now_us
        return wave

    def failed(self, group: Any, now_us: int) -> None:
        """A task failed for good; its state may be forgotten before anybody looks."""
        wave = self.troubled(group, now_us)
        if wave is not None:
            wave.failed += 1
            # What failed with a task it depends on has no execution that would say so.
            self._reopen(wave)

    def cancelled(self, group: Any, now_us: int) -> None:
        """A task was given up while it ran; not in a computation that was over: there it ran for the second time."""
        wave = self.of(group)
        if wave is not None and wave.id in self.open:
            wave.troubled_us, wave.cancelled = now_us, True

    def touched(self, chunk: Chunk) -> None:
        """Tasks ran; a finished computation they belong to is followed again.

        Those that ran again after others had been submitted are given back to the computation that alone has their group.
        """
        if not self.closed and len(self.open) < 2:
            return
        groups = chunk.groups()
        for wave in [*self.closed.values(), *self.open.values()]:
            own = groups & wave.computation.groups
            if any(map(wave.holds, own)) or (wave.shares and any(map(wave.holds, groups.intersection(wave.shares)))):
                self._reopen(wave)
            if wave is not self.current:
                chunk.owners.update((group, wave.id) for group in own if group not in wave.shares)

    def _reopen(self, wave: Wave) -> None:
        if self.closed.pop(wave.id, None) is not None:
            self.open[wave.id] = wave

    def round(self, now_us: int) -> Iterator[None]:
        """Write what changed; computations whose tasks are all finished are written a last time and set aside.

        A group or a span at a time (3 to 30 µs each): there may be 100,000 of them.
        """
        for wave in list(self.open.values()):
            yield from self._follow(wave, now_us)
        yield from self._write_spans(now_us)

    def repeat(self) -> None:
        """Write what is still running again, whether it changed or not: a reader joins."""
        for wave in self.open.values():
            wave.signatures, wave.written = {}, ()
        for mine in self._open_spans.values():
            mine.written = None

    def lost(self, now_us: int) -> Iterator[None]:
        """The scheduler closes: what still runs will never be seen to finish. A group at a time, as in a round."""
        for wave in list(self.open.values()):
            yield from self._follow(wave, now_us, ended=True)

    def _follow(self, wave: Wave, now_us: int, *, ended: bool = False) -> Iterator[None]:
        groups, size = wave.groups(), wave.size()
        states: dict[str, int] = {}
        stop = 0.0
        for group in groups:
            part = wave.part(group)
            self._write_group(wave, group, part, now_us)
            stop = max(stop, part.stop)
            for state, count in part.states.items():
                states[state] = states.get(state, 0) + count
            yield
        unfinished = sum(count for state, count in states.items() if state not in FINISHED)
        if states.keys() == {"forgotten"} and not (stop or wave.troubled_us):
            # It is over, and nothing of it ever ran: given up while it waited, some time before now. (What is only released may
            # never have been needed, as the results it leads to were there.)
            wave.troubled_us, wave.cancelled = now_us, True
        state = self._state(wave, states, unfinished, ended=ended)
        stop_us = 0 if unfinished else max(int(stop * 1e6), wave.troubled_us, wave.start_us)
        self._write(wave, groups, states, unfinished, state, stop_us, now_us)
        # A graph may have arrived while the groups were looked at; then it goes on.
        if (not unfinished and size == wave.size()) or ended:
            self._set_aside(wave)

    def _set_aside(self, wave: Wave) -> None:
        self.open.pop(wave.id, None)
        self.closed[wave.id] = wave
        groups = sum(len(other.signatures) for other in self.closed.values())
        while len(self.closed) > REMEMBERED or (groups > GROUPS_REMEMBERED and len(self.closed) > 1):
            forgotten = self.closed.pop(next(iter(self.closed)))
            groups -= len(forgotten.signatures)
            for group in forgotten.held:
                if self._holders.get(group) is forgotten:
                    del self._holders[group]

    def _state(self, wave: Wave, states: dict[str, int], unfinished: int, *, ended: bool) -> str:
        if unfinished:
            return "lost" if ended else "running"
        if states.get("erred") or wave.failed:
            return "erred"
        return "cancelled" if wave.cancelled else "done"

    def _write(
        self,
        wave: Wave,
        groups: list[Any],
        states: dict[str, int],
        unfinished: int,
        state: str,
        stop_us: int,
        now_us: int,
    ) -> None:
        written = (state, stop_us, wave.submissions, wave.failed, len(groups), *sorted(states.items()))
        if written == wave.written:
            return
        wave.written = written
        code, line, file = self._code(wave.computation)
        self.add(
            "computations",
            computation=wave.id,
            seen_us=now_us,
            start_us=wave.start_us,
            stop_us=stop_us,
            state=state,
            client=wave.client,
            span=next((group.span_id for group in groups if getattr(group, "span_id", None)), "") or "",
            code=code,
            code_line=line,
            code_file=file,
            submissions=wave.submissions,
            groups=len(groups),
            # Of a graph of nothing but known results Dask keeps no group.
            tasks=sum(states.values()) if groups else wave.submitted,
            memory=states.get("memory", 0),
            erred=max(states.get("erred", 0), wave.failed),
            released=states.get("released", 0),
            forgotten=states.get("forgotten", 0),
            unfinished=unfinished,
        )

    def _write_group(self, wave: Wave, group: Any, part: Counters, now_us: int) -> None:
        # Its hash, not the tuple itself: a computation may have 100,000 groups.
        signature = hash((tuple(part.states.items()), tuple(part.durations.items()), part.nbytes))
        if wave.signatures.get(group) == signature:
            return
        wave.signatures[group] = signature
        span = getattr(group, "span_id", None) or ""
        self._note_span(span)
        self.add(
            "groups",
            group=group.name,
            start_us=self._started_us(wave, group, part),
            computation=wave.id,
            seen_us=now_us,
            prefix=group.prefix.name,
            span=span,
            stop_us=int(part.stop * 1e6),
            states=json.dumps(part.states),
            durations_us=json.dumps(part.durations),
            nbytes=int(part.nbytes),
            types=[type_[:200] for type_ in islice(sorted(map(str, group.types)), 20)],
            dependencies=[dependency.name for dependency in islice(group.dependencies, MAX_DEPENDENCIES)],
        )

    def _started_us(self, wave: Wave, group: Any, part: Counters) -> int:
        share = wave.shares.get(group)
        if share is None or share.before is None:
            return int(group.start * 1e6)
        # Dask knows when the tasks of those before began; its own did not before it.
        return wave.start_us if part.stop else 0

    def _note_span(self, span_id: str) -> None:
        extension = spans(self.scheduler)
        while extension is not None and span_id and span_id not in self._open_spans:
            span = extension.spans.get(span_id)
            if span is None:
                return
            self._open_spans[span_id] = OpenSpan(span)
            span_id = span.parent.id if span.parent is not None else ""

    def _write_spans(self, now_us: int) -> Iterator[None]:
        for span_id, mine in list(self._open_spans.items()):
            span = mine.span
            done, start, stop = True, 0.0, 0.0
            # What Span.done, start and stop say, in one pass that may be interrupted: a span may have 100,000 groups.
            for group in [group for child in span.traverse_spans() for group in child.groups]:
                done = done and group.done
                start = min(start, group.start) if start and group.start else start or group.start
                stop = max(stop, group.stop)
                yield
            enqueued = span.enqueued
            start_us = int(max(start, enqueued) * 1e6) if start else 0
            written = (int(max(stop, enqueued) * 1e6) if done else 0, start_us)
            if mine.written != written:
                mine.written = written
                self._write_span(span, now_us, written)
            if done:
                # A group that changes again brings its span back (see _write_group).
                self._open_spans.pop(span_id, None)
            yield

    def _write_span(self, span: Any, now_us: int, written: tuple[int, int]) -> None:
        stop_us, start_us = written
        self.add(
            "spans",
            span=span.id,
            seen_us=now_us,
            tags=list(map(str, span.name)),
            parent=span.parent.id if span.parent is not None else "",
            enqueued_us=int(span.enqueued * 1e6),
            start_us=start_us,
            stop_us=stop_us,
            active_cpu_us=int(span.active_cpu_seconds * 1e6),
        )

    def _code(self, computation: Any) -> tuple[str, int, str]:
        if not self.code:
            return "", 0, ""
        for text, line, file in sources(computation):
            lines = text.splitlines()
            first = max(0, line - CONTEXT_LINES)
            kept = lines[first : line + CONTEXT_LINES + 1]
            return bounded(self.scrubber.scrub("\n".join(kept)), CODE_LIMIT), line - first, file
        return "", 0, ""
