"""Install the recorder in a scheduler, and call it."""

from __future__ import annotations

import asyncio
import functools
import getpass
import hashlib
import pickle
import socket
import threading
from collections.abc import Awaitable
from importlib.metadata import version
from typing import Any

import dask.config
import distributed

from daskscope.collector.bundle import NAME, ShippedPlugin
from daskscope.collector.scheduler.claims import RECORD
from daskscope.collector.scheduler.rpc import PROTOCOL
from daskscope.collector.settings import Settings
from daskscope.errors import ClusterError, NoClient
from daskscope.model.libraries import module_patterns

#: A scheduler may be busy with a large graph for many seconds.
CALL_TIMEOUT = 30.0
#: Interval between checks of the connection during a call.
CHECK_S = 0.2
#: Time limit for a recorder that is leaving the scheduler, and the interval between checks.
LEAVE_TIMEOUT = 10.0
LEAVE_POLL_S = 0.1

RECONNECT = "Connect a new distributed.Client."


def find_client(client: distributed.Client | None) -> distributed.Client:
    """Return the given client, else Dask's default client."""
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise NoClient(
                "No Dask client to record. Create one with client = distributed.Client(...), or pass client=."
            ) from None
    if not isinstance(client, distributed.Client):
        raise NoClient(f"client= must be a distributed.Client, not {type(client).__name__}.")
    if client.status not in ("running", "connecting", "newly-created"):
        raise ClusterError(f"The client is {client.status}. {RECONNECT}")
    return client


async def call(
    client: distributed.Client, action: str, /, timeout: float = CALL_TIMEOUT, **arguments: Any
) -> dict[str, Any]:
    """Call the recorder; raise ``ClusterError`` if it cannot be reached or refuses."""
    answer = await ask(client, action, timeout, **arguments)
    if answer is None:
        raise ClusterError("This scheduler is no longer recorded. Enter daskscope.record() again.")
    if answer.get("status") != "OK":
        raise ClusterError(f"The scheduler refused to record: {answer.get('why', 'no reason given')}")
    return answer


async def ask(
    client: distributed.Client, action: str, /, timeout: float = CALL_TIMEOUT, **arguments: Any
) -> dict[str, Any] | None:
    """Return the recorder's answer; None if there is no recorder."""
    scheduler = _scheduler(client)
    answer = await _bounded(client, scheduler.daskscope(action=action, **arguments), timeout)
    return answer if isinstance(answer, dict) else None


class _HasRecorder:
    """Pickles to a function that says whether a scheduler has a recorder; unpickling needs nothing of daskscope there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (f"lambda dask_scheduler: {NAME!r} in dask_scheduler.handlers", {})


async def is_recorded(client: distributed.Client) -> bool:
    """Return whether the client's scheduler has a recorder. Calling one that is not there logs a traceback in the scheduler."""
    scheduler = _scheduler(client)
    question = scheduler.run_function(function=pickle.dumps(_HasRecorder(), protocol=4))
    answer = await _bounded(client, question, CALL_TIMEOUT)
    return isinstance(answer, dict) and answer.get("result") is True


def _scheduler(client: distributed.Client) -> Any:
    """Return the RPC to the scheduler; raise ``ClusterError`` without a connection."""
    # An RPC of a client that lost its scheduler would try to connect for half a minute; Dask already does that.
    if client.status != "running" or client.scheduler is None:
        raise ClusterError(f"The scheduler cannot be reached, the client is {client.status}. {RECONNECT}")
    return client.scheduler


async def _bounded(client: distributed.Client, call: Awaitable[Any], timeout: float) -> Any:
    """Wait for an answer while the connection is up, at most ``timeout`` seconds."""
    task = asyncio.ensure_future(call)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    try:
        while not (await asyncio.wait({task}, timeout=CHECK_S))[0]:
            _scheduler(client)
            if loop.time() >= deadline:
                raise ClusterError(f"The scheduler did not answer within {timeout:.0f} s. Check its log.")
        return task.result()
    except OSError as error:
        raise ClusterError(f"The scheduler cannot be reached ({error!r}). {RECONNECT}") from error
    finally:
        task.cancel()


async def install(client: distributed.Client, settings: Settings, owner: str, kind: str = RECORD) -> dict[str, Any]:
    """Start the recorder in the client's scheduler if needed, and claim it for ``owner``. Return its reply.

    A recorder that runs already adopts the destination in the settings if it has none.
    """
    plain = settings.plain()
    claim: dict[str, Any] = {"client": client.id, "user": user_digest(), "kind": kind, "settings": plain}
    plugin = pickle.dumps(ShippedPlugin(plain))
    deadline = asyncio.get_running_loop().time() + LEAVE_TIMEOUT
    while True:
        await _register(client, plugin)
        hello = await ask(client, "hello", owner=owner, **claim)
        if hello is not None and hello.get("status") != "leaving":
            break
        # Another recording is ending: its recorder must leave before the next one can start.
        if asyncio.get_running_loop().time() >= deadline:
            raise ClusterError("The scheduler did not start a recorder. Check its log for lines with daskscope.")
        await asyncio.sleep(LEAVE_POLL_S)
    if hello.get("status") != "OK":
        raise ClusterError(f"The scheduler refused to record: {hello.get('why', 'no reason given')}")
    if hello["protocol"] != PROTOCOL:
        raise ClusterError(
            f"The scheduler runs a recorder of another daskscope version (protocol {hello['protocol']}, here {PROTOCOL}). "
            "Use the same version on both sides."
        )
    if not (settings.server or settings.directory):
        _check_switches(settings, hello["records"])
    return hello


def user_digest() -> str:
    """Return a digest of this user and machine, which tells the scheduler neither."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        return ""
    return hashlib.sha256(f"{user}@{socket.gethostname()}".encode()).hexdigest()[:16]


def _check_switches(settings: Settings, running: dict[str, bool]) -> None:
    """Raise ``ClusterError`` if the running recorder collects data that this recording must not have."""
    # A recorder that does not know a switch records what it would switch off.
    refused = [name for name, on in settings.recorded_text().items() if not on and running.get(name, True)]
    if refused:
        raise ClusterError(
            f"Another recording of this cluster has {', '.join(refused)} switched on, which cannot be removed from yours. "
            "Record without switching that off, or after the other recording has ended."
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
            f"The scheduler does not accept plugins from clients ({error!r}). "
            "Record it from the scheduler: dask scheduler --preload daskscope.analytics"
        ) from error


# Dask sends the code around each call to the scheduler while a recording runs.
#
# Dask does so if ``distributed.diagnostics.computations.nframes`` is not 0. Frames of libraries that call Dask for their users
# are left out by ``ignore-modules``, which costs 8 µs per submission; each further frame would cost 70 to 100 µs. The settings
# are global to the process, so overlapping recordings share one change of them, and the last of them reverts it.

NFRAMES = "distributed.diagnostics.computations.nframes"
IGNORED = "distributed.diagnostics.computations.ignore-modules"

#: Before this version, sending code to a scheduler in the same process fails at the second call.
MIN_IN_PROCESS_VERSION = (2025, 3)


def can_send(client: distributed.Client) -> bool:
    """Return whether the client can safely send code to its scheduler."""
    address = str(getattr(client.scheduler, "address", ""))
    return not address.startswith("inproc:") or _version() >= MIN_IN_PROCESS_VERSION


@functools.cache
def _version() -> tuple[int, ...]:
    # Once: the search goes over all of sys.path, to which distributed adds a directory per worker in this process.
    return tuple(int(part) for part in version("distributed").split(".")[:2] if part.isdigit())


def _changes() -> dict[str, Any]:
    changes: dict[str, Any] = {}
    # Keep a number of frames that the user chose.
    if not dask.config.get(NFRAMES, 0):
        changes[NFRAMES] = 1
    known = dask.config.get(IGNORED, None)
    # Dask refuses anything but a list at each submission.
    if isinstance(known, list):
        changes[IGNORED] = list(dict.fromkeys([*known, *module_patterns()]))
    return changes


class CallingCode:
    """Counts the recordings that need the code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._change: dask.config.set | None = None

    def acquire(self) -> None:
        """Start sending code, unless another recording already did."""
        with self._lock:
            self._users += 1
            if self._change is None:
                self._change = dask.config.set(_changes())

    def release(self) -> None:
        """Stop sending code after the last recording."""
        with self._lock:
            self._users -= 1
            if not self._users and self._change is not None:
                self._change.__exit__(None, None, None)
                self._change = None


calling_code = CallingCode()
