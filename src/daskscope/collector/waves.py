"""Computations, their task groups and spans: followed while they change, written when they did.

The graph hook only notes which computation is current; groups are looked at in rounds that may be interrupted after each of
them, because one graph may have thousands of groups and one second thousands of graphs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
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
    #: The group its tasks belong to, where Dask counts that for an earlier computation.
    borrowed: Any = None
    signatures: dict[Any, int] = field(default_factory=dict)
    written: tuple[Any, ...] = ()


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
        if not computation.groups and keys:
            # Dask counts a group for the computation that made it only; ``submit`` of the same function goes on using it.
            task = self.scheduler.tasks.get(keys[0])
            wave.borrowed = task.group if task is not None else None
        return wave.id

    def failed(self) -> None:
        """A task failed for good; its state may be forgotten before anybody looks."""
        if self.current is not None:
            self.current.failed += 1

    def cancelled(self) -> None:
        if self.current is not None:
            self.current.cancelled = True

    def touched(self, chunk: Chunk) -> None:
        """Tasks ran; a finished computation they belong to is followed again."""
        if not self.closed:
            return
        groups = chunk.groups()
        for wave in list(self.closed.values()):
            if not groups.isdisjoint(wave.computation.groups):
                self.open[wave.id] = self.closed.pop(wave.id)

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
        groups = list(wave.computation.groups)
        if not groups and wave.borrowed is not None:
            groups = [wave.borrowed]
        states: dict[str, int] = {}
        for group in groups:
            self._write_group(wave, group, now_us)
            for state, count in group.states.items():
                states[state] = states.get(state, 0) + count
            yield
        unfinished = sum(count for state, count in states.items() if state not in FINISHED)
        state = self._state(wave, states, unfinished, ended=ended)
        self._write(wave, groups, states, unfinished, state, now_us)
        # A graph may have arrived while the groups were looked at; then it goes on.
        if (not unfinished and len(groups) >= len(wave.computation.groups)) or ended:
            self._set_aside(wave)

    def _set_aside(self, wave: Wave) -> None:
        self.open.pop(wave.id, None)
        self.closed[wave.id] = wave
        groups = sum(len(other.signatures) for other in self.closed.values())
        while len(self.closed) > REMEMBERED or (groups > GROUPS_REMEMBERED and len(self.closed) > 1):
            groups -= len(self.closed.pop(next(iter(self.closed))).signatures)

    def _state(self, wave: Wave, states: dict[str, int], unfinished: int, *, ended: bool) -> str:
        if unfinished:
            return "lost" if ended else "running"
        if states.get("erred") or wave.failed:
            return "erred"
        return "cancelled" if wave.cancelled else "done"

    def _write(
        self, wave: Wave, groups: list[Any], states: dict[str, int], unfinished: int, state: str, now_us: int
    ) -> None:
        stop_us = 0 if unfinished else int(max((group.stop for group in groups), default=0.0) * 1e6)
        own = bool(wave.computation.groups)
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
            stop_us=max(stop_us, wave.start_us) if not unfinished else 0,
            state=state,
            client=wave.client,
            span=next((group.span_id for group in groups if getattr(group, "span_id", None)), "") or "",
            code=code,
            code_line=line,
            code_file=file,
            submissions=wave.submissions,
            groups=len(groups),
            tasks=sum(states.values()) if own else wave.submitted,
            memory=states.get("memory", 0),
            erred=max(states.get("erred", 0), wave.failed),
            released=states.get("released", 0),
            forgotten=states.get("forgotten", 0),
            unfinished=unfinished,
        )

    def _write_group(self, wave: Wave, group: Any, now_us: int) -> None:
        states = {state: count for state, count in group.states.items() if count}
        durations = group_durations_us(group)
        # Its hash, not the tuple itself: a computation may have 100,000 groups.
        signature = hash((tuple(states.items()), tuple(durations.items()), group.nbytes_total))
        if wave.signatures.get(group) == signature:
            return
        wave.signatures[group] = signature
        span = getattr(group, "span_id", None) or ""
        self._note_span(span)
        self.add(
            "groups",
            group=group.name,
            start_us=int(group.start * 1e6),
            computation=wave.id,
            seen_us=now_us,
            prefix=group.prefix.name,
            span=span,
            stop_us=int(group.stop * 1e6),
            states=json.dumps(states),
            durations_us=json.dumps(durations),
            nbytes=int(group.nbytes_total),
            types=[type_[:200] for type_ in islice(sorted(map(str, group.types)), 20)],
            dependencies=[dependency.name for dependency in islice(group.dependencies, MAX_DEPENDENCIES)],
        )

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
