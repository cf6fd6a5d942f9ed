"""The single RPC the recorder adds to a scheduler: agents push data through it, clients read frames through it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...model.tables import TABLES
from ...wire.encode import Body
from ..bundle import NAME
from ..delivery.outbox import FrameQueue
from ..delivery.poster import StackRequest, poster
from ..delivery.sender import Sender
from ..guard import guarded, guarded_async
from ..rows import WorkerRows, checked
from ..settings import Settings
from ..versions import known as known_versions
from .claims import RECORD, Claim
from .earlier import recall

if TYPE_CHECKING:
    from .plugin import ClusterPlugin


class StackAnswers:
    """Answers each request once: replies of the server repeat it."""

    def __init__(self, plugin: ClusterPlugin) -> None:
        self.plugin = plugin
        self.guard = plugin.guard
        self._last = 0
        self._task: asyncio.Task[None] | None = None

    @guarded
    def answer(self, asked: StackRequest) -> None:
        """Begin to answer a request, on the event loop."""
        plugin = self.plugin
        is_mine = plugin.scheduler is not None and not plugin.is_closed and asked.cluster == plugin.outbox.cluster
        if is_mine and asked.request > self._last:
            self._last = asked.request
            self._task = asyncio.get_running_loop().create_task(self._answer(asked))

    @guarded_async
    async def _answer(self, asked: StackRequest) -> None:
        plugin = self.plugin
        if plugin.settings.profile:
            result = await plugin.agents.push_stacks(asked.request, asked.worker)
        else:
            result = {"workers": 0, "asked": 0, "answered": 0, "why": "profiles are switched off"}
        if not plugin.is_closed:
            now_us, note = plugin.recorder.now_us(), json.dumps(result)
            plugin.recorder.rows.add("stacks", time_us=now_us, request=asked.request, worker="scheduler", note=note)
            # A user waits for it.
            plugin.flush()


#: Protocol version between client and scheduler; a client refuses a scheduler with another version.
PROTOCOL = 1
#: Pushes of all agents together: 200 agents that each push every 5 s are 40 a second. With ten, recording 200 workers costs the
#: scheduler 114 instead of 131 µs of CPU time per task, and half of the bytes are sent while the cluster is idle.
PUSHES_PER_S = 10.0
#: Bytes of frames in one reply to ``fetch``.
MAX_REPLY_BYTES = 8 * 1024 * 1024
FLUSH_TIMEOUT = 5.0
#: Time limit for agents to start before a new owner gets its reply.
AGENTS_TIMEOUT = 2.0
#: Actions allowed after the breaker switched recording off: readers can still fetch the remaining frames and leave.
ALLOWED_WHEN_OFF = frozenset(("fetch", "flush", "window", "unsubscribe"))


#: How long a recorder that has left still answers.
FAREWELL_S = 60.0
LEAVING = {"status": "leaving", "why": "a recording of this scheduler is ending"}


def farewell(**_: Any) -> dict[str, Any]:
    """Reply for a recorder that has left: distributed logs a traceback if a client or an agent asks for no handler."""
    return LEAVING


farewell.is_farewell = True  # type: ignore[attr-defined]


def is_recorded(scheduler: Any) -> bool:
    """Return whether a recorder runs in a scheduler, or is leaving it."""
    handler = scheduler.handlers.get(NAME)
    return handler is not None and not getattr(handler, "is_farewell", False)


def say_farewell(scheduler: Any) -> None:
    """Replace the handler of a recorder that has left, for a minute."""
    scheduler.handlers[NAME] = farewell

    def forget() -> None:
        if scheduler.handlers.get(NAME) is farewell:
            del scheduler.handlers[NAME]

    asyncio.get_running_loop().call_later(FAREWELL_S, forget)


class RecorderRpc:
    """Answers ``scheduler.daskscope(action=…)``; ``on_<action>`` implements an action. Every reply is a dict with a ``status``."""

    def __init__(self, plugin: ClusterPlugin) -> None:
        self.plugin = plugin
        self.readers: dict[str, FrameQueue] = {}
        self._leaving: asyncio.Task[None] | None = None
        #: Rows of agents that wait for the next hand-over.
        self.worker_rows = WorkerRows()

    async def handle(self, action: str = "", **arguments: Any) -> dict[str, Any]:
        plugin = self.plugin
        method = getattr(self, f"on_{action}", None)
        if method is None:
            return {"status": "refused", "why": f"no action {action}"}
        if plugin.guard.is_open and action not in ALLOWED_WHEN_OFF:
            why = "recording was switched off on this scheduler after repeated failures"
            return {"status": "refused", "why": why}
        if plugin.is_closed:
            return LEAVING
        try:
            reply = method(**arguments)
            if asyncio.iscoroutine(reply):
                reply = await reply
            return {"status": "OK", **(reply or {})}
        except (KeyError, TypeError, ValueError) as error:
            # The caller sent invalid arguments: not a reason to open the breaker for all users of this scheduler.
            return {"status": "refused", "why": repr(error)[:500]}
        except Exception as error:  # noqa: BLE001 (distributed would log a handler's exception with a traceback each time)
            plugin.guard.caught(f"on_{action}", error)
            return {"status": "refused", "why": repr(error)[:500]}

    async def on_hello(
        self,
        owner: str = "",
        client: str = "",
        user: str = "",
        kind: str = RECORD,
        settings: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Note a claim on the recorder. If frames have no destination yet, start sending them where the settings say.

        Reply once the agents run, so that the first tasks of the caller are sampled and the causes of its first errors known.
        Without an owner, only say where frames go.
        """
        if owner:
            self.plugin.claims.add(owner, Claim(kind, client, user))
            self._set_destination(Settings.of(settings or {}))
            await self.plugin.agents.wait_started(AGENTS_TIMEOUT)
        return {
            "protocol": PROTOCOL,
            "cluster": self.plugin.outbox.cluster,
            "time_ns": time.time_ns(),
            "records": self.plugin.settings.recorded_text(),
            "server": self.plugin.settings.server,
            # A preload whose server was down at the start learns the account later.
            "account": self.plugin.settings.account or getattr(self.plugin.post, "account", ""),
            "directory": self.plugin.settings.directory,
        }

    def _set_destination(self, settings: Settings) -> None:
        """Adopt the destination only: the first owner's settings decide what may be recorded."""
        plugin = self.plugin
        if plugin.sender is not None and settings.server == plugin.settings.server:
            self._retry(plugin.sender, settings)
        if plugin.spool is not None or plugin.sender is not None or not (settings.directory or settings.server):
            return
        plugin.settings = replace(
            plugin.settings,
            directory=settings.directory,
            server=settings.server,
            token=settings.token,
            spool=settings.spool,
            spool_limit=settings.spool_limit,
        )
        plugin.subscribe()
        plugin.recorder.continue_recording(recall(plugin.scheduler, plugin.settings))
        plugin.recorder.repeat_entities()

    def _retry(self, sender: Sender, settings: Settings) -> None:
        """Send to a server again that refused the recorder or was down. A new token helps if the old one was revoked."""
        known = self.plugin.settings.account
        same_account = not known or known == settings.account
        sender.retry(poster(settings.server, settings.token) if settings.token and same_account else None)

    def on_push(
        self,
        worker: str,
        bodies: Sequence[dict[str, Any]] = (),
        rows: Sequence[dict[str, Any]] = (),
        causes: Sequence[dict[str, Any]] = (),
        dropped: dict[str, int] | None = None,
        children: dict[str, Any] | None = None,
        quality: dict[str, Any] | None = None,
    ) -> dict[str, float]:
        """Accept the data a worker's agent collected: bodies are forwarded unchanged, rows of all agents are merged.

        Return how many seconds the agent should wait until its next push.
        """
        recorder = self.plugin.recorder
        known = [item for item in bodies if item["table"] in TABLES]
        # Check everything first: the agent repeats a refused push, so none of it may have been counted or forwarded.
        made = [Body(i["table"], i["rows"], i["t0"], i["t1"], i["raw"], bytes(i["data"])) for i in known]
        few = [(item["table"], checked(item["table"], item["columns"])) for item in rows if item["table"] in TABLES]
        lost = {table: int(count) for table, count in (dropped or {}).items() if table in TABLES}
        for table, count in lost.items():
            self.plugin.outbox.count_dropped(table, count)
        for body in made:
            self.plugin.encoder.forward(body)
        for table, columns in few:
            self.worker_rows.extend(table, columns)
        for cause in causes:
            recorder.failures.add_cause(worker, cause)
        if children is not None:
            recorder.children[worker] = {name: value for name, value in children.items() if name != "time_us"}
        versions = known_versions((quality or {}).get("versions"))
        if versions:
            recorder.members.add_versions(worker, versions, recorder.now_us())
        recorder.members.set_agent_state(worker, _agent_state(quality or {}), recorder.now_us())
        return {"push_s": self._push_s()}

    def _push_s(self) -> float:
        """Return the seconds between two pushes of an agent: more on large clusters, unless somebody follows them live."""
        interval_s = self.plugin.settings.push_interval
        if self.plugin.is_followed or self.plugin.scheduler is None:
            return interval_s
        return max(interval_s, len(self.plugin.scheduler.workers) / PUSHES_PER_S)

    async def on_subscribe(self, reader: str) -> None:
        """Queue every frame from now on for this reader, beginning with all current entities."""
        plugin = self.plugin
        # Publish earlier rows first, so that the reader only gets rows from after its start.
        plugin.flush_rows()
        await self._wait_written()
        queue = FrameQueue(plugin.settings.queue_limit)
        self.readers[reader] = queue
        plugin.outbox.subscribe(reader, queue.put)
        plugin.recorder.repeat_entities()

    def on_fetch(self, reader: str, acknowledged: int = -1) -> dict[str, Any]:
        """Return the oldest frames this reader has not acknowledged."""
        if reader not in self.readers:
            return {"frames": [], "last": acknowledged, "gone": True}
        queue = self.readers[reader]
        queue.acknowledge(acknowledged)
        frames = queue.peek(MAX_REPLY_BYTES)
        last = frames[-1].sequence if frames else acknowledged
        return {"frames": [sealed.frame for sealed in frames], "last": last, "more": len(queue) > len(frames)}

    async def on_flush(self, reader: str = "") -> None:
        """Publish everything collected so far, from all workers; also the end of the recording if this reader is its only owner."""
        plugin = self.plugin
        if not plugin.guard.is_open:
            await plugin.agents.flush()
            now = plugin.recorder.now_us()
            plugin.recorder.tick_samples(now, 0)
            await plugin.settle()
            plugin.recorder.failures.flush_ready(now, everything=True)
            if plugin.claims.is_held_only_by(reader):
                plugin.recorder.end("recording ended")
        plugin.flush_rows()
        await self._wait_written()

    async def on_unsubscribe(self, reader: str, user: str = "") -> dict[str, Any]:
        """Release a claim, and remove the recorder from the scheduler once nobody holds one. Reply with the kinds of those left.

        With a user, also release the registrations of the user's clients that have left.
        """
        claims = self.plugin.claims
        self._forget(reader)
        claims.release_abandoned(user, self.plugin.scheduler.clients)
        if not claims:
            await self.plugin.remove()
        return {"claims": claims.kinds()}

    def on_window(self, **message: Any) -> None:
        """Record that a window begins or ends, with a sample at both ends so that even a short window has some."""
        self.plugin.recorder.forget_heartbeats()
        self.plugin.sample(0)
        self.plugin.recorder.window(message)

    def client_left(self, client: str) -> None:
        """Release the claims of a disconnected client: it will not come back for its frames."""
        gone = self.plugin.claims.of_client(client)
        for owner in gone:
            self._forget(owner)
        if gone and not self.plugin.claims:
            self._leaving = asyncio.get_running_loop().create_task(self.plugin.remove())

    def _forget(self, owner: str) -> None:
        self.plugin.outbox.unsubscribe(owner)
        self.readers.pop(owner, None)
        self.plugin.claims.release(owner)

    async def _wait_written(self) -> None:
        """Wait until all rows handed to the encoder so far are published."""
        reached = self.plugin.encoder.barrier()
        await asyncio.get_running_loop().run_in_executor(None, reached.wait, FLUSH_TIMEOUT)


def _agent_state(quality: dict[str, Any]) -> str:
    """Return the ``agent`` column of a worker's row."""
    problems = [f"{part} failed: {why}" for part, why in (quality.get("errors") or {}).items()]
    problems += [str(why) for why in quality.get("refused") or ()]
    if quality.get("causes_lost"):
        problems.append(f"{quality['causes_lost']} causes of failures were lost")
    return f"running, but {'; '.join(problems)}" if problems else "running"
