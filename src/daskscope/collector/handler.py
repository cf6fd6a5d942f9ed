"""The one RPC the recorder adds to a scheduler: agents push through it, clients read through it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..model.tables import TABLES
from ..wire.encode import Body
from .outbox import FrameQueue
from .settings import Settings

if TYPE_CHECKING:
    from .plugin import ClusterPlugin

#: Spoken between client and scheduler; a client refuses a scheduler that speaks another.
PROTOCOL = 1
TAKE_LIMIT = 8 * 1024 * 1024
FLUSH_TIMEOUT = 5.0
#: What works after recording was switched off: readers still get what there is, and leave.
AFTER_THE_BREAKER = frozenset(("take", "flush", "window", "unsubscribe"))


class Handler:
    """Answers ``scheduler.daskscope(action=…)``. An answer is a dict with a ``status``."""

    def __init__(self, plugin: ClusterPlugin) -> None:
        self.plugin = plugin
        self.readers: dict[str, FrameQueue] = {}
        #: The client behind an owner; a cluster registered for its whole life has none.
        self.clients: dict[str, str] = {}
        self._leaving: asyncio.Task[None] | None = None

    async def handle(self, action: str = "", **arguments: Any) -> dict[str, Any]:
        plugin = self.plugin
        method = getattr(self, f"on_{action}", None)
        if method is None:
            return {"status": "refused", "why": f"no action {action}"}
        if plugin.guard.open and action not in AFTER_THE_BREAKER:
            why = "recording was switched off on this scheduler after repeated failures"
            return {"status": "refused", "why": why}
        if plugin.closed:
            return {"status": "leaving", "why": "another recording is just ending"}
        try:
            answer = method(**arguments)
            if asyncio.iscoroutine(answer):
                answer = await answer
            return {"status": "OK", **(answer or {})}
        except (KeyError, TypeError, ValueError) as error:
            # What the caller sent cannot be used: its fault, and no reason to open the breaker for everybody.
            return {"status": "refused", "why": repr(error)[:500]}
        except Exception as error:  # noqa: BLE001 (a handler's exception would be logged with a traceback each time)
            plugin.guard.caught(f"on_{action}", error)
            return {"status": "refused", "why": repr(error)[:500]}

    def on_hello(self, owner: str = "", client: str = "", settings: dict[str, Any] | None = None) -> dict[str, Any]:
        """Claim the recorder for an owner; a recorder that writes nowhere yet begins to write where the settings say."""
        if owner:
            self.plugin.owners.add(owner)
            if client:
                self.clients[owner] = client
        if settings is not None:
            self._write_to(Settings.of(settings))
        return {
            "protocol": PROTOCOL,
            "cluster": self.plugin.outbox.cluster,
            "time_ns": time.time_ns(),
            "records": self.plugin.settings.private(),
        }

    def _write_to(self, settings: Settings) -> None:
        """Only where it goes is taken over: what may be recorded was said by whoever came first."""
        plugin = self.plugin
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
        plugin.recorder.repeat_entities()

    def on_push(
        self,
        worker: str,
        bodies: Sequence[dict[str, Any]] = (),
        causes: Sequence[dict[str, Any]] = (),
        dropped: dict[str, int] | None = None,
        children: dict[str, Any] | None = None,
        quality: dict[str, Any] | None = None,
    ) -> None:
        """A worker's agent sends what it collected; its bodies are passed on as they are."""
        recorder = self.plugin.recorder
        known = [item for item in bodies if item["table"] in TABLES]
        # All of them first: a push that is refused comes again, and must not be counted or forwarded in part.
        made = [Body(i["table"], i["rows"], i["t0"], i["t1"], i["raw"], bytes(i["data"])) for i in known]
        lost = {table: int(rows) for table, rows in (dropped or {}).items() if table in TABLES}
        for table, rows in lost.items():
            self.plugin.outbox.count_dropped(table, rows)
        for body in made:
            self.plugin.writer.forward(body)
        for cause in causes:
            recorder.failures.cause(worker, cause)
        if children is not None:
            recorder.children[worker] = {name: value for name, value in children.items() if name != "time_us"}
        recorder.members.agent(worker, _agent_state(quality or {}), recorder.now_us())

    async def on_subscribe(self, reader: str) -> None:
        """Keep every frame from now on for this reader; living entities are written again for it."""
        plugin = self.plugin
        # What was collected before belongs to nobody's stretch of work: published before the reader is there.
        plugin.flush_rows()
        await self._written()
        queue = FrameQueue(plugin.settings.queue_limit)
        self.readers[reader] = queue
        plugin.outbox.subscribe(reader, queue.put)
        plugin.recorder.repeat_entities()

    def on_take(self, reader: str, acknowledged: int = -1) -> dict[str, Any]:
        """The oldest frames this reader has not acknowledged."""
        if reader not in self.readers:
            return {"frames": [], "last": acknowledged, "gone": True}
        queue = self.readers[reader]
        queue.acknowledge(acknowledged)
        frames = queue.peek(TAKE_LIMIT)
        last = frames[-1].sequence if frames else acknowledged
        return {"frames": [sealed.frame for sealed in frames], "last": last, "more": len(queue) > len(frames)}

    async def on_flush(self, reader: str = "") -> None:
        """Everything up to this moment, from all workers, becomes frames; the end of the recording too, if it ends here."""
        plugin = self.plugin
        if not plugin.guard.open:
            await plugin.agents.flush()
            now = plugin.recorder.now_us()
            plugin.recorder.tick_samples(now, 0)
            await plugin.settle()
            plugin.recorder.failures.ripen(now, everything=True)
            if plugin.owners == {reader}:
                plugin.recorder.end("recording ended")
        plugin.flush_rows()
        await self._written()

    async def on_unsubscribe(self, reader: str) -> None:
        """The reader is done; when nobody else wants the recorder, it leaves the scheduler."""
        self._forget(reader)
        if not self.plugin.owners:
            await self.plugin.remove()

    def on_window(self, **message: Any) -> None:
        """A stretch of time begins or ends; however short it is, it has a sample at both ends."""
        self.plugin.sample(0)
        self.plugin.recorder.window(message)

    def client_left(self, client: str) -> None:
        """A client that disconnected will not come back for its frames."""
        gone = [owner for owner, mine in self.clients.items() if mine == client]
        for owner in gone:
            self._forget(owner)
        if gone and not self.plugin.owners:
            self._leaving = asyncio.get_running_loop().create_task(self.plugin.remove())

    def _forget(self, owner: str) -> None:
        self.plugin.outbox.unsubscribe(owner)
        self.readers.pop(owner, None)
        self.clients.pop(owner, None)
        self.plugin.owners.discard(owner)

    async def _written(self) -> None:
        """Wait until everything collected so far is published."""
        reached = self.plugin.writer.barrier()
        await asyncio.get_running_loop().run_in_executor(None, reached.wait, FLUSH_TIMEOUT)


def _agent_state(quality: dict[str, Any]) -> str:
    """What a worker's row says of its agent."""
    troubles = [f"{part} failed: {why}" for part, why in (quality.get("errors") or {}).items()]
    if quality.get("causes_lost"):
        troubles.append(f"{quality['causes_lost']} causes of failures were lost")
    return f"running, but {'; '.join(troubles)}" if troubles else "running"
