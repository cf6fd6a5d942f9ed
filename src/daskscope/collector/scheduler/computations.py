"""Track computations, their task groups and spans, and write a row whenever one changes.

The graph hook only notes which computation is current and which existing groups it reuses. Groups are read in rounds that can
pause after each group, because one graph may have thousands of groups and one second may bring thousands of graphs.

Dask counts a group only for the computation that created it, but ``submit`` and ``map`` of the same function keep using it. So
each group has one holder, the computation that submitted to it last. The holder reports the group's growth since it took over;
the previous holder keeps the counts up to that point.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from ..aliases import PLAIN, Aliases
from ..compat import current_computation, sources, spans
from ..privacy import Scrubber, bounded
from .executions import Executed
from .open_computation import FINISHED, Arrival, ClientPart, Counters, OpenComputation, Share

#: Finished computations to remember, in case a lost worker makes their tasks run again; and the limit on all their groups.
MAX_CLOSED = 200
MAX_CLOSED_GROUPS = 50_000
#: Dependencies listed in the row of a group.
MAX_DEPENDENCIES = 100
#: Lines kept before and after the calling line: at module level Dask sends the whole file with every submit.
CONTEXT_LINES = 15
CODE_LIMIT = 8_000
#: Prefixes whose states are in the row of a running computation, the name of the sum of the others, and the length of a name.
MAX_PREFIXES, OTHER, MAX_PREFIX = 50, "(other)", 200
#: Longer durations are invalid.
MAX_GRAPH_S = 1e6


@dataclass
class OpenSpan:
    """A span with unfinished tasks, as of the last round."""

    span: Any
    written: tuple[int, int] | None = None


class Computations:
    """Tracks computations from submission to their last task."""

    def __init__(
        self,
        scheduler: Any,
        add: Callable[..., None],
        scrubber: Scrubber,
        *,
        code: bool,
        aliases: Aliases = PLAIN,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.scheduler = scheduler
        self.clock = clock
        self.add = add
        self.scrubber = scrubber
        self.aliases = aliases
        self.code = code
        #: The one that got the last graph.
        self.current: OpenComputation | None = None
        #: The computation of the client that began Dask's current one, and the computations of all its clients.
        self._first: OpenComputation | None = None
        self._parts: dict[str, OpenComputation] = {}
        self._code_seen: set[Any] = set()
        self.open: dict[str, OpenComputation] = {}
        self.closed: dict[str, OpenComputation] = {}
        self._open_spans: dict[str, OpenSpan] = {}
        #: Holder of a group, cached on first lookup and dropped with the computation.
        self._holders: dict[Any, OpenComputation] = {}

    def add_graph(self, client: str, keys: Sequence[Any] = (), arrival: Arrival | None = None) -> str:
        """Note that a graph of these tasks arrived, and return the ID of its computation."""
        dask_computation = current_computation(self.scheduler)
        if dask_computation is None:
            return ""
        first = self._first
        if first is None or first.dask_computation is not dask_computation:
            # Dask's computation begins when its tasks exist.
            start_us = arrival.time_us if arrival else int(dask_computation.start * 1e6)
            first = self._first = OpenComputation(str(dask_computation.id), dask_computation, client, start_us)
            self._parts = {client: first}
        fresh = self._count_fresh(keys)
        computation = self._parts.get(client) or self._add_part(first, client)
        if computation is not first:
            # A group whose tasks are all new came with this graph.
            new = (group for group, count in fresh.items() if count == sum(group.states.values()))
            theirs = dask_computation.groups.intersection(new)
            computation.dask_computation.groups |= theirs
            first.of_others |= theirs
        self.current = computation
        self._code_seen = set(getattr(dask_computation, "code", ()))
        self.open[computation.id] = computation
        self.closed.pop(computation.id, None)
        computation.submissions += 1
        computation.graph_nbytes += arrival.nbytes if arrival else 0
        computation.submitted += len(keys)
        for group, count in fresh.items():
            if group not in dask_computation.groups and group not in computation.shares:
                self._take_over(computation, group, count)
        return computation.id

    def _add_part(self, first: OpenComputation, client: str) -> OpenComputation:
        """Return a new computation for a client whose graph Dask adds to the computation of another client."""
        code = [item for item in getattr(first.dask_computation, "code", ()) if item not in self._code_seen]
        part = ClientPart(f"{first.id}-{len(self._parts)}", self.clock(), code)
        self._parts[client] = OpenComputation(part.id, part, client, int(part.start * 1e6))
        return self._parts[client]

    def note_graph_time(self, metrics: Any) -> None:
        """Add the time that the scheduler took to accept the graph that just arrived; Dask logs it after the graph hook."""
        seconds = metrics.get("duration_seconds") if type(metrics) is dict else None
        if self.current is not None and type(seconds) is float and 0 <= seconds < MAX_GRAPH_S:
            self.current.graph_us += round(seconds * 1e6)

    def _count_fresh(self, keys: Sequence[Any]) -> dict[Any, int]:
        """Count the tasks that will run by group: new tasks, and released results that are needed again.

        Every key is checked, at 0.2 to 0.8 µs each: Dask itself has just held the event loop for 50 µs per key.
        """
        fresh: dict[Any, int] = {}
        get = self.scheduler.tasks.get
        note = None if self.aliases.keys else self.aliases.note
        for key in keys:
            if note is not None:
                note(key)
            task = get(key)
            if task is not None and task.state == "released":
                group = task.group
                fresh[group] = fresh.get(group, 0) + 1
        return fresh

    def _take_over(self, computation: OpenComputation, group: Any, fresh: int) -> None:
        before, previous = Counters.read(group, fresh), self._find_holder(group)
        if previous is not None:
            previous.shares.setdefault(group, Share()).after = before.as_finished()
        computation.shares[group] = Share(before)
        self._set_holder(computation, group)

    def _find_holder(self, group: Any) -> OpenComputation | None:
        """Return the computation that submitted to this group last, if it is still remembered. A found holder is cached."""
        holder = self._holders.get(group)
        if holder is None:
            known = chain(self.open.values(), self.closed.values())
            holder = next((computation for computation in known if computation.holds(group)), None)
            if holder is not None:
                self._set_holder(holder, group)
        return holder

    def _set_holder(self, computation: OpenComputation, group: Any) -> None:
        self._holders[group] = computation
        computation.held.add(group)

    def find(self, group: Any) -> OpenComputation | None:
        """Return the computation that tasks of this group run for: the group's holder, or else the current computation."""
        current = self.current
        return current if current is None or current.holds(group) else self._find_holder(group) or current

    def note_failure(self, group: Any, now_us: int) -> OpenComputation | None:
        """Note that a task of this group failed or was killed now: its computation cannot have ended earlier."""
        computation = self.find(group)
        if computation is not None:
            computation.last_failure_us = now_us
        return computation

    def count_failure(self, group: Any, now_us: int) -> None:
        """Count a task that failed for good: Dask may forget the task before the next round reads its state."""
        computation = self.note_failure(group, now_us)
        if computation is not None:
            computation.failed += 1
            # A task that failed because of a dependency has no execution that would reopen the computation.
            self._reopen(computation)

    def count_abandoned(self, group: Any, now_us: int) -> None:
        """Count a task that no client wants any longer, and that has not run."""
        computation = self.find(group)
        if computation is not None and computation.id in self.open:
            computation.abandoned += 1
            computation.last_failure_us, computation.is_cancelled = now_us, True

    def note_cancelled(self, group: Any, now_us: int) -> None:
        """Note that a running task was cancelled, unless its computation was over: then the task was only being recomputed."""
        computation = self.find(group)
        if computation is not None and computation.id in self.open:
            computation.last_failure_us, computation.is_cancelled = now_us, True

    def reopen_executed(self, chunk: Executed) -> None:
        """Reopen finished computations whose tasks ran again.

        Tasks recomputed after another computation was submitted are attributed to the only computation that has their group.
        """
        if not self.closed and len(self.open) < 2:
            return
        groups = chunk.groups()
        for computation in [*self.closed.values(), *self.open.values()]:
            own = groups & computation.own()
            if any(map(computation.holds, own)) or (
                computation.shares and any(map(computation.holds, groups.intersection(computation.shares)))
            ):
                self._reopen(computation)
            if computation is not self.current:
                chunk.owners.update((group, computation.id) for group in own if group not in computation.shares)

    def _reopen(self, computation: OpenComputation) -> None:
        if self.closed.pop(computation.id, None) is not None:
            self.open[computation.id] = computation

    def write_changes(self, now_us: int) -> Iterator[None]:
        """Write computations, groups and spans that changed, and close computations whose tasks are all finished.

        Yields after each group or span (3 to 30 µs each): there may be 100,000 of them.
        """
        for computation in list(self.open.values()):
            yield from self._update(computation, now_us)
        yield from self._write_spans(now_us)

    def mark_unwritten(self) -> None:
        """Write everything open again in the next round, changed or not: a reader joins."""
        for computation in self.open.values():
            computation.signatures, computation.written = {}, ()
        for open_span in self._open_spans.values():
            open_span.written = None

    def write_lost(self, now_us: int) -> Iterator[None]:
        """Close all open computations, because the scheduler closes. Yields after each group, as in a round."""
        for computation in list(self.open.values()):
            yield from self._update(computation, now_us, ended=True)

    def _update(self, computation: OpenComputation, now_us: int, *, ended: bool = False) -> Iterator[None]:
        groups, size = computation.groups(), computation.size()
        states: dict[str, int] = {}
        prefixes: dict[str, dict[str, int]] = {}
        stop = 0.0
        for group in groups:
            part = computation.counters(group)
            self._write_group(computation, group, part, now_us)
            stop = max(stop, part.stop)
            for sums in (states, prefixes.setdefault(group.prefix.name, {})):
                _add_counts(sums, part.states)
            yield
        unfinished = sum(count for state, count in states.items() if state not in FINISHED)
        if states.keys() == {"forgotten"} and not (stop or computation.last_failure_us):
            # All tasks are forgotten and none ever ran: cancelled while waiting, some time before now. (Tasks that are only
            # released may never have been needed, because the results that depend on them already existed.)
            computation.last_failure_us, computation.is_cancelled = now_us, True
        state = self._state(computation, states, unfinished, ended=ended)
        stop_us = 0 if unfinished else max(int(stop * 1e6), computation.last_failure_us, computation.start_us)
        self._write(computation, groups, states, prefixes, unfinished, state, stop_us, now_us)
        # A graph may have arrived while this round was paused; then the computation stays open.
        if (not unfinished and size == computation.size()) or ended:
            self._close(computation)

    def _close(self, computation: OpenComputation) -> None:
        self.open.pop(computation.id, None)
        self.closed[computation.id] = computation
        groups = sum(len(other.signatures) for other in self.closed.values())
        while len(self.closed) > MAX_CLOSED or (groups > MAX_CLOSED_GROUPS and len(self.closed) > 1):
            forgotten = self.closed.pop(next(iter(self.closed)))
            groups -= len(forgotten.signatures)
            for group in forgotten.held:
                if self._holders.get(group) is forgotten:
                    del self._holders[group]

    def _state(self, computation: OpenComputation, states: dict[str, int], unfinished: int, *, ended: bool) -> str:
        if unfinished and ended:
            return "cancelled" if _is_interrupted() else "lost"
        if unfinished:
            return "running"
        if states.get("erred") or computation.failed:
            return "erred"
        return "cancelled" if computation.is_cancelled else "done"

    def _write(
        self,
        computation: OpenComputation,
        groups: list[Any],
        states: dict[str, int],
        prefixes: dict[str, dict[str, int]],
        unfinished: int,
        state: str,
        stop_us: int,
        now_us: int,
    ) -> None:
        counts = (computation.submissions, computation.graph_us, computation.failed, computation.abandoned, len(groups))
        written = (state, stop_us, *counts, *sorted(states.items()))
        if written == computation.written:
            return
        computation.written = written
        code, line, file = self._code(computation.dask_computation)
        self.add(
            "computations",
            computation=computation.id,
            seen_us=now_us,
            start_us=computation.start_us,
            stop_us=stop_us,
            state=state,
            client=computation.client,
            span=next((group.span_id for group in groups if getattr(group, "span_id", None)), "") or "",
            code=code,
            code_line=line,
            code_file=file,
            submissions=computation.submissions,
            groups=len(groups),
            # Dask keeps no group for a graph of known results only.
            tasks=sum(states.values()) if groups else computation.submitted,
            memory=states.get("memory", 0),
            erred=max(states.get("erred", 0), computation.failed),
            released=states.get("released", 0),
            forgotten=states.get("forgotten", 0),
            unfinished=unfinished,
            abandoned=computation.abandoned,
            graph_us=computation.graph_us,
            graph_nbytes=computation.graph_nbytes,
            prefix_states=self._prefix_states(prefixes) if unfinished else "",
        )

    def _prefix_states(self, prefixes: dict[str, dict[str, int]]) -> str:
        """Return the states of the prefixes with most tasks as JSON, and the sums of the other prefixes."""
        largest = sorted(prefixes, key=lambda name: -sum(prefixes[name].values()))
        listed: dict[str, dict[str, int]] = {}
        for number, name in enumerate(largest):
            shown = self.aliases.group(name)[:MAX_PREFIX] if number < MAX_PREFIXES else OTHER
            _add_counts(listed.setdefault(shown, {}), prefixes[name])
        return json.dumps(listed)

    def _write_group(self, computation: OpenComputation, group: Any, part: Counters, now_us: int) -> None:
        # Keep the hash, not the tuple itself: a computation may have 100,000 groups.
        signature = hash((tuple(part.states.items()), tuple(part.durations.items()), part.nbytes))
        if computation.signatures.get(group) == signature:
            return
        computation.signatures[group] = signature
        span = getattr(group, "span_id", None) or ""
        self._note_span(span)
        self.add(
            "groups",
            group=self.aliases.group(group.name),
            start_us=self._started_us(computation, group, part),
            computation=computation.id,
            seen_us=now_us,
            prefix=self.aliases.group(group.prefix.name),
            span=span,
            stop_us=int(part.stop * 1e6),
            states=json.dumps(part.states),
            durations_us=json.dumps(part.durations),
            nbytes=int(part.nbytes),
            types=[type_[:200] for type_ in islice(sorted(map(str, group.types)), 20)],
            dependencies=[self.aliases.group(other.name) for other in islice(group.dependencies, MAX_DEPENDENCIES)],
        )

    def _started_us(self, computation: OpenComputation, group: Any, part: Counters) -> int:
        share = computation.shares.get(group)
        if share is None or share.before is None:
            return int(group.start * 1e6)
        # The group started with the tasks of an earlier computation; tasks of this one started no earlier than it did.
        return computation.start_us if part.stop else 0

    def _note_span(self, span_id: str) -> None:
        extension = spans(self.scheduler)
        while extension is not None and span_id and span_id not in self._open_spans:
            span = extension.spans.get(span_id)
            if span is None:
                return
            self._open_spans[span_id] = OpenSpan(span)
            span_id = span.parent.id if span.parent is not None else ""

    def _write_spans(self, now_us: int) -> Iterator[None]:
        for span_id, open_span in list(self._open_spans.items()):
            span = open_span.span
            done, start, stop = True, 0.0, 0.0
            # Compute Span.done, start and stop in one pass that can pause: a span may have 100,000 groups.
            for group in [group for child in span.traverse_spans() for group in child.groups]:
                done = done and group.done
                start = min(start, group.start) if start and group.start else start or group.start
                stop = max(stop, group.stop)
                yield
            enqueued = span.enqueued
            start_us = int(max(start, enqueued) * 1e6) if start else 0
            written = (int(max(stop, enqueued) * 1e6) if done else 0, start_us)
            if open_span.written != written:
                open_span.written = written
                self._write_span(span, now_us, written)
            if done:
                # _write_group adds the span again when one of its groups changes.
                self._open_spans.pop(span_id, None)
            yield

    def _write_span(self, span: Any, now_us: int, written: tuple[int, int]) -> None:
        stop_us, start_us = written
        self.add(
            "spans",
            span=span.id,
            seen_us=now_us,
            tags=[tag if tag == "default" else self.aliases.name(tag) for tag in map(str, span.name)],
            parent=span.parent.id if span.parent is not None else "",
            enqueued_us=int(span.enqueued * 1e6),
            start_us=start_us,
            stop_us=stop_us,
            active_cpu_us=int(span.active_cpu_seconds * 1e6),
        )

    def _code(self, dask_computation: Any) -> tuple[str, int, str]:
        if not self.code:
            return "", 0, ""
        for text, line, file in sources(dask_computation):
            lines = text.splitlines()
            first = max(0, line - CONTEXT_LINES)
            kept = lines[first : line + CONTEXT_LINES + 1]
            return bounded(self.scrubber.scrub("\n".join(kept)), CODE_LIMIT), line - first, file
        return "", 0, ""


def _is_interrupted() -> bool:
    """Return whether Ctrl-C ended the program that runs this scheduler, as with a LocalCluster.

    An interactive session goes on after it, so its last exception means nothing.
    """
    return getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")


def _add_counts(sums: dict[str, int], counts: dict[str, int]) -> None:
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
