"""Starts an agent on every worker, from a background task, through the ``run`` RPC.

Never through a worker plugin: one that a worker cannot unpickle stops every new worker from starting. And never awaited in a
hook: the worker that is being added does not answer before the hook returns. A worker that refuses is noted, nothing else.
"""

from __future__ import annotations

import asyncio
import io
import pickle
from typing import Any

from distributed.protocol.serialize import Serialized

from .bundle import PresentFunction, ShippedFunction
from .recorder import Recorder

START_TIMEOUT = 20.0
STOP_TIMEOUT = 1.5
FLUSH_TIMEOUT = 2.5
#: Workers asked at the same time: a cluster of a thousand must not get a thousand 70 KB messages in one moment.
AT_ONCE = 20


class Agents:
    """The agents of one cluster, seen from the scheduler."""

    def __init__(self, scheduler: Any, recorder: Recorder, settings: dict[str, Any]) -> None:
        self.scheduler = scheduler
        self.recorder = recorder
        self.settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._start = pickle.dumps(ShippedFunction("collector.agent:start_agent"))
        self._stop = pickle.dumps(PresentFunction("collector.agent:stop_agent"))
        self._flush = pickle.dumps(PresentFunction("collector.agent:flush_agent"))
        self._stopping = False

    def add(self, address: str) -> None:
        if self._stopping:
            return
        task = asyncio.get_running_loop().create_task(self._add(address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        """Ask every agent for what it has; those that do not answer in time are not waited for."""
        await asyncio.gather(*(self._run(w, self._flush, FLUSH_TIMEOUT) for w in list(self.scheduler.workers)))

    async def stop(self) -> None:
        """Take the agents out again. One that is being started is waited for: it would start after it was stopped."""
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
        # Let the scheduler answer the worker first.
        await asyncio.sleep(0.05)
        async with self._turn:
            if self._stopping:
                return
            state = await self._run(address, self._start, START_TIMEOUT, settings=self.settings)
        if address in self.scheduler.workers:
            self.recorder.members.agent(address, str(state), self.recorder.now_us())

    async def _run(self, address: str, function: bytes, timeout: float, **kwargs: Any) -> Any:
        try:
            call = self.scheduler.rpc(address).run(function=function, kwargs=pickle.dumps(kwargs), wait=True)
            reply = await asyncio.wait_for(call, timeout)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever a worker answers, it is the worker's business)
            return f"refused: {error!r}"[:300]
        if not isinstance(reply, dict) or reply.get("status") != "OK":
            return f"refused: {reply.get('exception_text') if isinstance(reply, dict) else reply}"[:300]
        result = reply.get("result")
        # The scheduler leaves payloads packed; this one is the short text our own function returned.
        if isinstance(result, Serialized):
            return _text_of(result)
        return getattr(result, "data", result)


class _Texts(pickle.Unpickler):
    """Loads plain text; nothing that would have to be imported."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no text")


def _text_of(packed: Serialized) -> str:
    try:
        return str(_Texts(io.BytesIO(bytes(packed.frames[0]))).load())[:300]
    except Exception as error:  # noqa: BLE001 (a worker may answer anything)
        return f"refused: an answer that cannot be read ({error!r})"[:300]
