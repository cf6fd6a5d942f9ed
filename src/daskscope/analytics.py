"""Record a cluster for its whole lifetime, and query a server.

From a client: ``daskscope.analytics.register()``. On the scheduler's machine, without touching any client::

    dask scheduler --preload daskscope.analytics
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import distributed

from daskscope.client.config import option, settings
from daskscope.client.connection import ask, calling_code, can_send, find_client, install, is_recorded, user_digest
from daskscope.client.listing import Listing
from daskscope.client.server import (
    Server,
    ask_sql,
    chosen_account,
    configured_url,
    download_recording,
    find_server,
    find_token,
)
from daskscope.client.server_address import check_address
from daskscope.client.token_exchange import TokenExchange, forget, shares_process
from daskscope.collector.delivery.spool import spool_directory
from daskscope.collector.scheduler.claims import PRELOAD, REGISTER, Claim
from daskscope.collector.scheduler.plugin import ClusterPlugin
from daskscope.collector.settings import Settings
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.states import RunState

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "close",
    "create_api_token",
    "dask_setup",
    "explain",
    "list_api_tokens",
    "list_clusters",
    "list_computations",
    "list_errors",
    "list_events",
    "list_exceptions",
    "register",
    "revoke_api_token",
    "sql",
    "tasks",
    "unregister",
]

logger = logging.getLogger("daskscope")

#: Clusters whose page has been printed in this process.
_announced: set[str] = set()
#: Owners of claims in this process whose clients send code.
_owners_sending_code: set[str] = set()

NO_DESTINATION = (
    "There is nowhere to record to. Set a server with dask.config.set({'daskscope.server': 'http://…'}) or "
    "DASK_DASKSCOPE__SERVER=http://…, or a directory on the scheduler's machine with "
    "dask.config.set({'daskscope.directory': '/path'}) or DASK_DASKSCOPE__DIRECTORY=/path."
)


# ---------------------------------------------------------------- recording


def register(client: distributed.Client | None = None, *, account: str | None = None) -> Awaitable[str] | str:
    """Record this client's cluster from now on, until it closes or ``unregister()``. Further calls have no effect.

    It belongs to ``account``; by default to the account in Dask's configuration, else to the default account of your sign-in.
    Prints and returns the URL of the cluster's page, or the directory on the scheduler's machine.
    With an asynchronous client, await the result.
    """
    client = find_client(client)
    chosen = chosen_settings(account)
    return client.sync(_register, client, chosen)  # type: ignore[no-any-return]


def chosen_settings(account: str | None = None) -> Settings:
    """Return the settings of a recording that this process starts; raise if there is nowhere to record to."""
    return _settings(name=option("daskscope.name") or _default_name(), account=account)


async def _register(client: distributed.Client, chosen: Settings) -> str:
    place = await start_recording(client, chosen, _owner(client), REGISTER)
    cluster = str(client.scheduler_info().get("id", ""))
    if cluster not in _announced:
        _announced.add(cluster)
        sys.stdout.write(f"daskscope records this cluster: {place}\n")
    return place


def _owner(client: distributed.Client) -> str:
    """Return the name of a registered client's claim on the recorder."""
    return f"register-{client.id}"


async def start_recording(client: distributed.Client, chosen: Settings, owner: str, kind: str) -> str:
    """Claim the recorder of a cluster, and start it if there is none. Return where to look at the recording."""
    cluster = str(client.scheduler_info().get("id", ""))
    if chosen.server:
        chosen = await asyncio.get_running_loop().run_in_executor(None, _with_ingest_token, chosen, cluster)
    hello = await install(client, chosen, owner, kind)
    if chosen.code and can_send(client) and owner not in _owners_sending_code:
        # Dask reads this setting at each submission, and sends no code without it.
        _owners_sending_code.add(owner)
        calling_code.acquire()
    return page(hello)


def page(hello: dict[str, Any]) -> str:
    """Return where to look at the recording of a recorder, from its reply. A cluster has one destination: the first one."""
    server, account = hello["server"].rstrip("/"), hello["account"]
    if not server:
        return str(hello["directory"])
    return f"{server}/{quote(account)}/clusters/{quote(hello['cluster'])}" if account else str(server)


def _with_ingest_token(chosen: Settings, cluster: str) -> Settings:
    """Exchange the user's token for one that can only write to this cluster; only the latter is sent to the scheduler."""
    server = Server(chosen.server, chosen.account, find_token(chosen.server, chosen.account))
    try:
        answer = server.call("POST", "ingest-tokens", body={"cluster": cluster})
    except ServerError as error:
        if error.status:
            raise
        # Never send a user's own token to a scheduler: anyone who can run code there could read it.
        raise ServerError(
            f"{error} Registering needs the server once to get a token; recording does not need it."
        ) from None
    return Settings.of({**chosen.plain(), "token": answer["token"], "account": answer["account"]})


def unregister(client: distributed.Client | None = None) -> Awaitable[None] | None:
    """Take back ``register()``. The recording ends, unless somebody else still records the cluster; then it says so.

    It also takes back the registrations of your earlier clients that have left. With an asynchronous client, await the result.
    """
    client = find_client(client)
    return client.sync(_unregister, client)  # type: ignore[no-any-return]


async def _unregister(client: distributed.Client) -> None:
    left = await stop_recording(client, _owner(client), user_digest())
    if PRELOAD in left:
        sys.stdout.write(
            "This cluster is still recorded: its scheduler was started with --preload daskscope.analytics.\n"
        )
    elif left:
        sys.stdout.write("This cluster is still recorded: another client registered, records or watches it.\n")


async def stop_recording(client: distributed.Client, owner: str, user: str = "") -> list[str]:
    """Release a claim, and with a user the registrations of clients that have left. Return the kinds of the remaining claims."""
    if owner in _owners_sending_code:
        _owners_sending_code.discard(owner)
        calling_code.release()
    if not await is_recorded(client):
        return []
    answer = await ask(client, "unsubscribe", reader=owner, user=user) or {}
    return list(answer.get("claims") or ())


async def dask_setup(scheduler: Any) -> None:
    """Start recording a scheduler: the entry point of ``dask scheduler --preload daskscope.analytics``.

    Never raises, because an exception would end the scheduler.
    """
    try:
        if option("daskscope.analytics.disabled"):
            return
        if not isinstance(scheduler, distributed.Scheduler):
            raise DaskscopeError(
                "Preload daskscope.analytics only in the scheduler: the recorder reaches the workers from there."
            )
        plugin = await _preloaded_plugin(
            _settings(name=option("daskscope.name") or _preloaded_name()), str(scheduler.id)
        )
        plugin.claims.add(PRELOAD, Claim(PRELOAD))
        await plugin.start(scheduler)
        if plugin.scheduler is not None:
            scheduler.add_plugin(plugin, idempotent=True)
    except Exception as error:  # noqa: BLE001 (see above)
        text = str(error) if isinstance(error, DaskscopeError) else repr(error)
        logger.warning("daskscope: this cluster is not recorded. %s", text)


async def _preloaded_plugin(chosen: Settings, cluster: str) -> ClusterPlugin:
    """Return the plugin of a preload, which never has the token of this machine, but one for this cluster only.

    If the server is down, the exchange of the token is left to the plugin's sender.
    """
    if not chosen.server:
        return ClusterPlugin(chosen)
    token = find_token(chosen.server, chosen.account)
    is_dedicated = not shares_process()
    if is_dedicated:
        forget(token)
    server = Server(chosen.server, chosen.account, token)
    exchange = TokenExchange(server, cluster, spool_directory(chosen.spool), only_ingest=is_dedicated)
    del token, server
    try:
        await asyncio.get_running_loop().run_in_executor(None, exchange.attempt)
    except ServerError as error:
        # A refusal is final; the recorder reports it once, and keeps what it records on disk.
        logger.debug("daskscope: %s", error)
    plugin = ClusterPlugin(replace(chosen, account=exchange.account))
    plugin.post = exchange
    return plugin


def _default_name() -> str:
    """Return the default name of a cluster: the file name of the notebook or the script."""
    if "ipykernel" in sys.modules:
        # Jupyter tells its kernels the path of the notebook.
        return Path(os.environ.get("JPY_SESSION_NAME", "")).name or "notebook"
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return "" if name.startswith("-") else name


def _preloaded_name() -> str:
    """Return the default name of a cluster that nobody registered: the scheduler's host and start time."""
    return f"{socket.gethostname()} {datetime.now().astimezone():%Y-%m-%d %H:%M}"


def _settings(name: str, account: str | None = None) -> Settings:
    server, directory = configured_url(), option("daskscope.directory")
    if not server and not directory:
        raise DaskscopeError(NO_DESTINATION)
    if server:
        check_address(server)
    account = chosen_account(server, account)
    return settings(server=server, account=account, directory=str(directory or ""), name=str(name))


# ---------------------------------------------------------------- querying a server


def list_clusters(
    account: str | None = None,
    since: str | None = "7 days",
    user: str | None = None,
    *,
    state: RunState | Sequence[RunState] | None = None,
) -> Listing:
    """List the clusters of an account, newest first; ``since=None`` lists all of them.

    ``state`` is one or several of running, idle, finished, failed, unfinished, interrupted and lost.
    """
    states = state if isinstance(state, str) else ",".join(state or ())
    items = find_server(account).items("clusters", since=since or "all", user=user, state=states or None)
    columns = ("name", "user", "state", "start", "duration", "n_tasks", "n_exceptions", "workers", "url")
    return Listing(items, columns, "No clusters yet. Connect one: daskscope.analytics.register()")


def list_computations(
    cluster_id: str | None = None, scheduler_id: str | None = None, account: str | None = None
) -> Listing:
    """List the computations of a cluster, newest first; give one of the two IDs."""
    cluster = _cluster(cluster_id, scheduler_id)
    items = find_server(account).items("computations", cluster_id=cluster)
    return Listing(items, ("state", "start", "duration", "n_tasks", "n_errors", "call"), "No computations.")


def list_events(cluster_id: str, account: str | None = None) -> Listing:
    """List the events of a cluster: workers that joined and left, scaling, stalls, and allowed topics."""
    items = find_server(account).items(f"clusters/{quote(cluster_id, safe='')}/events")
    return Listing(items, ("time", "topic", "kind", "worker", "detail"), "No events.")


def list_exceptions(
    account: str | None = None,
    since: str | None = "7 days",
    user: str | None = None,
    cluster_id: str | None = None,
    scheduler_id: str | None = None,
) -> Listing:
    """List the failures of an account or a cluster, newest first, with their tracebacks."""
    cluster = cluster_id or scheduler_id
    items = find_server(account).items("exceptions", since=since or "all", user=user, cluster_id=cluster)
    return Listing(items, ("time", "user", "type", "message", "prefix", "count"), "No failures.")


def list_errors(account: str | None = None, since: str | None = None, state: str | None = None) -> Listing:
    """List error groups: failures with the same cause, with their count, first and last time, and clusters."""
    items = find_server(account).items("errors", since=since, state=state)
    return Listing(
        items, ("state", "type", "message", "count", "n_clusters", "first_seen", "last_seen"), "No failures."
    )


def explain(cluster_id: str, account: str | None = None) -> dict[str, Any]:
    """Explain why a cluster is still running: ``answer`` (a sentence), ``evidence`` and ``advice``."""
    result: dict[str, Any] = find_server(account).get(f"clusters/{quote(cluster_id, safe='')}/explain")
    return result


def sql(query: str, cluster_id: str | None = None, *, days: float = 0.0, account: str | None = None) -> Listing:
    """Return the rows of a SQL query over the recorded tables of all your account's clusters, or of one.

    ``days`` leaves out clusters that were last heard from earlier. The dialect is DuckDB's.
    """
    found = ask_sql(query, cluster_id, days=days, account=account)
    names = tuple(column["name"] for column in found["columns"])
    rows = [dict(zip(names, row, strict=True)) for row in found["rows"]]
    return Listing(rows, names, "No rows.")


def tasks(cluster_id: str, account: str | None = None) -> pd.DataFrame:
    """Return every execution of a cluster as a pandas DataFrame.

    For many clusters as a Dask DataFrame: ``dask.dataframe.from_map(analytics.tasks, cluster_ids)``.
    """
    return download_recording(cluster_id, account)["tasks"].to_pandas()


def close(cluster_id: str, account: str | None = None) -> None:
    """Ask a cluster to shut down. Its recorder gets the request with its next batch, within a few seconds.

    Best effort: a cluster with ``daskscope.analytics.close.allow`` off ignores the request.
    """
    find_server(account).call("POST", f"clusters/{quote(cluster_id, safe='')}/close", body={})


def create_api_token(
    *,
    label: str | None = None,
    days_to_expire: int | None = None,
    scopes: list[str] | None = None,
    account: str | None = None,
) -> dict[str, Any]:
    """Create a token. Its secret is in ``token`` and cannot be retrieved later.

    It expires after ``days_to_expire`` days (90 by default; 0 means never), and no later than the token you use now, which
    needs the scope ``tokens``: sign in with ``daskscope login --create-tokens``.
    """
    body = {"label": label or "", "days_to_expire": days_to_expire}
    result: dict[str, Any] = find_server(account).call(
        "POST", "tokens", body={**body, **({"scopes": scopes} if scopes else {})}
    )
    return result


def list_api_tokens(
    include_inactive: bool = False,  # noqa: FBT001, FBT002 (the known order)
    *,
    account: str | None = None,
) -> dict[str, dict[str, Any]]:
    """List your tokens of an account, by identifier."""
    items = find_server(account).get("tokens", include_inactive=str(include_inactive).lower())["items"]
    return {str(item["id"]): item for item in items}


def revoke_api_token(
    *, identifier: str | None = None, label: str | None = None, account: str | None = None
) -> dict[str, Any]:
    """Revoke one token, given by its identifier or its label.

    All tokens created with it are revoked too: ``recorders`` and ``tokens`` in the result count them.
    """
    if (identifier is None) == (label is None):
        raise DaskscopeError("Give either identifier= or label=.")
    if identifier is None:
        matching = [key for key, item in list_api_tokens(account=account).items() if item["label"] == label]
        if len(matching) != 1:
            raise DaskscopeError(f"{len(matching)} tokens have the label {label!r}. Give identifier= instead.")
        identifier = matching[0]
    result: dict[str, Any] = find_server(account).call("DELETE", f"tokens/{quote(identifier, safe='')}")
    return result


def _cluster(cluster_id: str | None, scheduler_id: str | None) -> str:
    if not (cluster_id or scheduler_id):
        raise ValueError("Give a cluster: cluster_id= or scheduler_id=.")
    return str(cluster_id or scheduler_id)
