"""Start an agent on every worker, from a background task, through the ``run`` RPC.

Never through a worker plugin: one that a worker cannot unpickle stops every new worker from starting. And never awaited in a
hook: the worker that is being added does not reply before the hook returns. If a worker refuses, its row says so and nothing
else happens.
"""

from __future__ import annotations

import asyncio
import io
import pickle
from typing import Any

from distributed.protocol.serialize import Serialized

from ..bundle import PresentFunction, ShippedFunction
from .recorder import Recorder

START_TIMEOUT = 20.0
STOP_TIMEOUT = 1.5
FLUSH_TIMEOUT = 2.5
STACKS_TIMEOUT = 6.0
#: Workers asked for stacks by one request.
MAX_STACK_WORKERS = 200
#: Agents started at the same time: a cluster of a thousand workers must not get a thousand 70 KB messages at once.
MAX_CONCURRENT = 20


class Agents:
    """Starts, flushes and stops the agents of one cluster, from its scheduler."""

    def __init__(self, scheduler: Any, recorder: Recorder, settings: dict[str, Any]) -> None:
        self.scheduler = scheduler
        self.recorder = recorder
        self.settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._start = pickle.dumps(ShippedFunction("collector.worker.agent:start_agent"))
        self._stop = pickle.dumps(PresentFunction("collector.worker.agent:stop_agent"))
        self._push_stacks = pickle.dumps(PresentFunction("collector.worker.agent:push_stacks"))
        self._flush = pickle.dumps(PresentFunction("collector.worker.agent:flush_agent"))
        self._stopping = False

    def add(self, address: str) -> None:
        """Start an agent on a worker, in the background."""
        if self._stopping:
            return
        task = asyncio.get_running_loop().create_task(self._add(address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait_started(self, timeout: float) -> None:
        """Wait until the agents that are being started run, at most ``timeout`` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    async def flush(self) -> None:
        """Ask every agent to push its data; return once all have, or after ``FLUSH_TIMEOUT``."""
        await asyncio.gather(*(self._run(w, self._flush, FLUSH_TIMEOUT) for w in list(self.scheduler.workers)))

    async def push_stacks(self, request: int, worker: str = "") -> dict[str, Any]:
        """Ask the agent of a worker, or of all busy workers, to push the current stacks.

        Return how many did, and why others did not.
        """
        workers = self.scheduler.workers
        wanted = [worker] if worker else [address for address, state in workers.items() if state.processing]
        asked = [address for address in wanted[:MAX_STACK_WORKERS] if address in workers]
        slots = asyncio.Semaphore(MAX_CONCURRENT)

        async def ask(address: str) -> str:
            async with slots:
                return str(await self._run(address, self._push_stacks, STACKS_TIMEOUT, request=request))

        replies = await asyncio.gather(*map(ask, asked))
        refusals = [reply for reply in replies if reply != "pushed"]
        why = refusals[0].removeprefix("refused: ") if refusals else "" if asked else "no task is running"
        return {"workers": len(wanted), "asked": len(asked), "answered": len(asked) - len(refusals), "why": why[:300]}

    async def stop(self) -> None:
        """Stop all agents. Wait first for agents that are being started, which would otherwise start after the stop."""
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT)
        self.cancel()
        await asyncio.gather(*(self._run(w, self._stop, STOP_TIMEOUT) for w in list(self.scheduler.workers)))

    def cancel(self) -> None:
        """Start no more agents."""
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()

    async def _add(self, address: str) -> None:
        # Let the scheduler reply to the worker first.
        await asyncio.sleep(0.05)
        async with self._slots:
            if self._stopping:
                return
            state = await self._run(address, self._start, START_TIMEOUT, settings=self.settings)
        if address in self.scheduler.workers:
            self.recorder.members.set_agent_state(address, str(state), self.recorder.now_us())

    async def _run(self, address: str, function: bytes, timeout: float, **kwargs: Any) -> Any:
        try:
            call = self.scheduler.rpc(address).run(function=function, kwargs=pickle.dumps(kwargs), wait=True)
            reply = await asyncio.wait_for(call, timeout)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 (a worker's reply may raise anything, and must not harm the scheduler)
            return f"refused: {error!r}"[:300]
        if not isinstance(reply, dict) or reply.get("status") != "OK":
            return f"refused: {reply.get('exception_text') if isinstance(reply, dict) else reply}"[:300]
        result = reply.get("result")
        # The scheduler leaves payloads serialized; this one is the short text that the agent's function returned.
        if isinstance(result, Serialized):
            return _text_of(result)
        return getattr(result, "data", result)


class _TextUnpickler(pickle.Unpickler):
    """Loads plain text, and refuses anything that would import a class."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not text")


def _text_of(packed: Serialized) -> str:
    try:
        return str(_TextUnpickler(io.BytesIO(bytes(packed.frames[0]))).load())[:300]
    except Exception as error:  # noqa: BLE001 (a worker may reply with anything)
        return f"refused: unreadable reply ({error!r})"[:300]
