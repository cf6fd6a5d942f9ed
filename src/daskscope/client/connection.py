"""Talking to the recorder inside a scheduler."""

from __future__ import annotations

import pickle
from typing import Any

import distributed

from daskscope.collector.bundle import NAME, ShippedPlugin
from daskscope.collector.handler import PROTOCOL
from daskscope.collector.settings import Settings
from daskscope.errors import ClusterError, NoClient


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
        raise ClusterError(f"The client is {client.status}: its scheduler is gone. Connect a new distributed.Client.")
    return client


async def call(client: distributed.Client, action: str, /, **arguments: Any) -> dict[str, Any]:
    """Call the recorder; raises ``ClusterError`` where it cannot be reached or refuses."""
    try:
        answer = await _scheduler(client).daskscope(action=action, **arguments)
    except (OSError, AttributeError) as error:
        raise ClusterError(f"The scheduler cannot be reached ({error!r}). Connect a new distributed.Client.") from error
    if not isinstance(answer, dict):
        raise ClusterError("This scheduler is not being recorded any more. Enter daskscope.record() again.")
    if answer.get("status") != "OK":
        raise ClusterError(f"The scheduler refused to record: {answer.get('why', 'no reason given')}")
    return answer


def _scheduler(client: distributed.Client) -> Any:
    """The RPC to the scheduler; None after the connection was lost, which callers see as AttributeError."""
    return client.scheduler


async def install(client: distributed.Client, settings: Settings, owner: str) -> dict[str, Any]:
    """Make sure the recorder runs in the client's scheduler, and claim it for ``owner``."""
    plugin = pickle.dumps(ShippedPlugin(settings.plain()))
    try:
        await _scheduler(client).register_scheduler_plugin(plugin=plugin, name=NAME, idempotent=True)
    except (OSError, AttributeError) as error:
        raise ClusterError(f"The scheduler cannot be reached ({error!r}). Connect a new distributed.Client.") from error
    except Exception as error:
        raise ClusterError(
            f"The scheduler does not take plugins from clients ({error!r}). "
            "Record it from its own side: dask scheduler --preload daskscope.analytics"
        ) from error
    hello = await call(client, "hello", owner=owner)
    if hello["protocol"] != PROTOCOL:
        raise ClusterError(
            f"The scheduler runs a recorder of another daskscope (protocol {hello['protocol']}, this one speaks {PROTOCOL}). "
            "Use the same version on both sides."
        )
    return hello
