"""Record a cluster for its whole life.

From a client: ``daskscope.analytics.register()``. On the scheduler's machine, without touching any client::

    dask scheduler --preload daskscope.analytics
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import dask.config
import distributed

from daskscope.client.calling_code import calling_code, can_send
from daskscope.client.config import settings
from daskscope.client.connection import ask, find_client, install
from daskscope.collector.plugin import ClusterPlugin
from daskscope.collector.settings import Settings
from daskscope.errors import DaskscopeError

__all__ = ["dask_setup", "register", "unregister"]

logger = logging.getLogger("daskscope")

OWNER = "register"
#: Clients of this process that send code because they registered.
_sending: set[str] = set()

NOWHERE = (
    "There is nowhere to record to. Set a directory on the scheduler's machine, "
    "dask.config.set({'daskscope.directory': '/path'}) or DASK_DASKSCOPE__DIRECTORY=/path."
)


def register(client: distributed.Client | None = None) -> Awaitable[None] | None:
    """Record this client's cluster from now on, until it closes. Calling it again changes nothing.

    With an asynchronous client the result has to be awaited.
    """
    client = find_client(client)
    chosen = _settings()
    return client.sync(_register, client, chosen)  # type: ignore[no-any-return]


async def _register(client: distributed.Client, chosen: Settings) -> None:
    await install(client, chosen, OWNER, lasting=True)
    if chosen.code and can_send(client) and client.id not in _sending:
        # Read by this process at each submission; without it no code is ever sent to the scheduler.
        _sending.add(client.id)
        calling_code.acquire()


def unregister(client: distributed.Client | None = None) -> Awaitable[None] | None:
    """Stop recording this client's cluster; harmless where it is not recorded."""
    client = find_client(client)
    return client.sync(_unregister, client)  # type: ignore[no-any-return]


async def _unregister(client: distributed.Client) -> None:
    if client.id in _sending:
        _sending.discard(client.id)
        calling_code.release()
    await ask(client, "unsubscribe", reader=OWNER)


async def dask_setup(scheduler: Any) -> None:
    """Entry point of ``dask scheduler --preload daskscope.analytics``. Never raises: that would end the scheduler."""
    try:
        if dask.config.get("daskscope.analytics.disabled"):
            return
        if not isinstance(scheduler, distributed.Scheduler):
            raise DaskscopeError(
                "Preload daskscope.analytics in the scheduler only: it reaches the workers from there."
            )
        plugin = ClusterPlugin(_settings())
        plugin.owners.add(OWNER)
        await plugin.start(scheduler)
        if plugin.scheduler is not None:
            scheduler.add_plugin(plugin, idempotent=True)
    except Exception as error:  # noqa: BLE001 (see above)
        text = str(error) if isinstance(error, DaskscopeError) else repr(error)
        logger.warning("daskscope: this cluster is not recorded. %s", text)


def _settings() -> Settings:
    server, directory = dask.config.get("daskscope.server"), dask.config.get("daskscope.directory")
    if not server and not directory:
        raise DaskscopeError(NOWHERE)
    return settings(server=server or "", directory=str(directory or ""))
