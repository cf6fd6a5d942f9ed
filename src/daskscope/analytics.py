"""Record a cluster for its whole life.

From a client: ``daskscope.analytics.register()``. On the scheduler's machine, without touching any client::

    dask scheduler --preload daskscope.analytics
"""

from __future__ import annotations

import logging
from typing import Any

import dask.config
import distributed

from daskscope.client.config import settings
from daskscope.client.connection import call, find_client, install
from daskscope.client.record import NFRAMES
from daskscope.collector.plugin import ClusterPlugin
from daskscope.collector.settings import Settings
from daskscope.errors import DaskscopeError

__all__ = ["dask_setup", "register", "unregister"]

logger = logging.getLogger("daskscope")

OWNER = "register"
NOWHERE = (
    "There is nowhere to record to. Set a directory on the scheduler's machine, "
    "dask.config.set({'daskscope.directory': '/path'}) or DASK_DASKSCOPE__DIRECTORY=/path."
)


def register(client: distributed.Client | None = None) -> Any:
    """Record this client's cluster from now on, until it closes. Calling it again changes nothing."""
    client = find_client(client)
    chosen = _settings()
    if not dask.config.get(NFRAMES, 0) and chosen.code:
        # Read by this process at each submission; without it no code is ever sent to the scheduler.
        dask.config.set({NFRAMES: 1})
    return client.sync(install, client, chosen, OWNER)


def unregister(client: distributed.Client | None = None) -> Any:
    """Stop recording this client's cluster."""
    client = find_client(client)
    return client.sync(call, client, "unsubscribe", reader=OWNER)


async def dask_setup(scheduler: Any) -> None:
    """Entry point of ``dask scheduler --preload daskscope.analytics``. Never raises: that would end the scheduler."""
    if dask.config.get("daskscope.analytics.disabled"):
        return
    try:
        plugin = ClusterPlugin(_settings())
    except Exception as error:  # noqa: BLE001 (see above)
        logger.warning("daskscope: this cluster is not recorded. %s", error)
        return
    plugin.owners.add(OWNER)
    await plugin.start(scheduler)
    scheduler.add_plugin(plugin, idempotent=True)


def _settings() -> Settings:
    server, directory = dask.config.get("daskscope.server"), dask.config.get("daskscope.directory")
    if not server and not directory:
        raise DaskscopeError(NOWHERE)
    return settings(server=server or "", directory=str(directory or ""))
