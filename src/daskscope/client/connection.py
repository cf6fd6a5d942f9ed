"""Talking to the recorder inside a scheduler."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable
from typing import Any

import distributed

from daskscope.collector.bundle import NAME, ShippedPlugin
from daskscope.collector.handler import PROTOCOL
from daskscope.collector.settings import Settings
from daskscope.errors import ClusterError, NoClient

#: A scheduler may be busy with a large graph for many seconds.
CALL_TIMEOUT = 30.0
#: How often we look whether the connection still stands while a call takes its time.
LOOK_S = 0.2
#: How long a recorder that is just leaving the scheduler may take, and how often to ask.
LEAVE_TIMEOUT = 10.0
LEAVE_POLL_S = 0.1

RECONNECT = "Connect a new distributed.Client."


def find_client(client: distributed.Client | None) -> distributed.Client:
    """The given client, or the one Dask would use."""
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise NoClient(
                "There is no Dask client to record. Create one first, client = distributed.Client(...), or pass client=."
            ) from None
    if not isinstance(client, distributed.Client):
        raise NoClient(f"client= must be a distributed.Client, not {type(client).__name__}.")
    if client.status not in ("running", "connecting", "newly-created"):
        raise ClusterError(f"The client is {client.status}: its scheduler is gone. {RECONNECT}")
    return client


async def call(
    client: distributed.Client, action: str, /, timeout: float = CALL_TIMEOUT, **arguments: Any
) -> dict[str, Any]:
    """Call the recorder; raises ``ClusterError`` where it cannot be reached or refuses."""
    answer = await ask(client, action, timeout, **arguments)
    if answer is None:
        raise ClusterError("This scheduler is not being recorded any more. Enter daskscope.record() again.")
    if answer.get("status") != "OK":
        raise ClusterError(f"The scheduler refused to record: {answer.get('why', 'no reason given')}")
    return answer


async def ask(
    client: distributed.Client, action: str, /, timeout: float = CALL_TIMEOUT, **arguments: Any
) -> dict[str, Any] | None:
    """The recorder's answer as it is; None where there is no recorder."""
    scheduler = _scheduler(client)
    answer = await _bounded(client, scheduler.daskscope(action=action, **arguments), timeout)
    return answer if isinstance(answer, dict) else None


def _scheduler(client: distributed.Client) -> Any:
    """The RPC to the scheduler, where there is a connection."""
    # Asked of a client that lost its scheduler, an RPC tries to connect for half a minute; Dask itself is at it already.
    if client.status != "running" or client.scheduler is None:
        raise ClusterError(f"The scheduler cannot be reached, the client is {client.status}. {RECONNECT}")
    return client.scheduler


async def _bounded(client: distributed.Client, call: Awaitable[Any], timeout: float) -> Any:
    """Wait for an answer, but no longer than the connection stands."""
    task = asyncio.ensure_future(call)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    try:
        while not (await asyncio.wait({task}, timeout=LOOK_S))[0]:
            _scheduler(client)
            if loop.time() >= deadline:
                raise ClusterError(f"The scheduler did not answer within {timeout:.0f} s. Look at its log.")
        return task.result()
    except OSError as error:
        raise ClusterError(f"The scheduler cannot be reached ({error!r}). {RECONNECT}") from error
    finally:
        task.cancel()


async def install(
    client: distributed.Client, settings: Settings, owner: str, *, lasting: bool = False
) -> dict[str, Any]:
    """Make sure the recorder runs in the client's scheduler, and claim it for ``owner``.

    A ``lasting`` claim outlives the client, and also tells a recorder that is there already where to write to.
    """
    plain = settings.plain()
    claim = {"settings": plain} if lasting else {"client": client.id}
    plugin = pickle.dumps(ShippedPlugin(plain))
    deadline = asyncio.get_running_loop().time() + LEAVE_TIMEOUT
    while True:
        await _register(client, plugin)
        hello = await ask(client, "hello", owner=owner, **claim)
        if hello is not None and hello.get("status") != "leaving":
            break
        # Another recording is just ending: its recorder must have left before the next can begin.
        if asyncio.get_running_loop().time() >= deadline:
            raise ClusterError("The scheduler started no recorder. Look at its log for lines with daskscope.")
        await asyncio.sleep(LEAVE_POLL_S)
    if hello.get("status") != "OK":
        raise ClusterError(f"The scheduler refused to record: {hello.get('why', 'no reason given')}")
    if hello["protocol"] != PROTOCOL:
        raise ClusterError(
            f"The scheduler runs a recorder of another daskscope (protocol {hello['protocol']}, this one speaks {PROTOCOL}). "
            "Use the same version on both sides."
        )
    if not lasting:
        _check_switches(settings, hello.get("records") or {})
    return hello


def _check_switches(settings: Settings, running: dict[str, bool]) -> None:
    """A recorder that was there before us may record what this recording must not have."""
    refused = [name for name, on in settings.private().items() if not on and running.get(name)]
    if refused:
        raise ClusterError(
            f"This cluster is already being recorded with {', '.join(refused)} switched on, which cannot be taken out again for "
            "you. Record without that switch, or after the other recording has ended."
        )


async def _register(client: distributed.Client, plugin: bytes) -> None:
    scheduler = _scheduler(client)
    try:
        await _bounded(
            client,
            scheduler.register_scheduler_plugin(plugin=plugin, name=NAME, idempotent=True),
            CALL_TIMEOUT,
        )
    except ClusterError:
        raise
    except Exception as error:
        raise ClusterError(
            f"The scheduler does not take plugins from clients ({error!r}). "
            "Record it from its own side: dask scheduler --preload daskscope.analytics"
        ) from error
