"""Services: what every request needs."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from daskscope.client.local_server import with_secret
from daskscope.collector.delivery.private_directory import NotPrivate, check_private
from daskscope.server.build_document import Subject
from daskscope.server.caches import ClusterUsers, EarlierRuns, Outdated, Shared, TokenCache
from daskscope.server.errors import public_message
from daskscope.server.ingest.limits import Arriving, InFlight, NewNames, Quotas, StorageQuota
from daskscope.server.ingest.parsing import Parsing
from daskscope.server.ingest.writer import Writer
from daskscope.server.live import Live
from daskscope.server.monitoring import Check, Counters
from daskscope.server.pools import Pools
from daskscope.server.processes.child import ChildProcesses, MemoryBudget
from daskscope.server.processes.job import Runner
from daskscope.server.settings import Settings, SettingsError, Storage
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import open_store
from daskscope.storage.base.database import Database, StorageError, detail_of, explained_damage
from daskscope.storage.base.migrate import prepare
from daskscope.storage.base.vault import MasterKeys, open_vault
from daskscope.storage.people.accounts import open_account, set_member
from daskscope.storage.people.users import disable_tokens, open_user
from daskscope.units import HOUR

if TYPE_CHECKING:
    from daskscope.server.relay import Relay


# A server without sign-in has a secret, which is part of the URL it prints.
#
# Every user of a machine can reach a loopback port, so the port alone identifies nobody. The secret is in the URL that the
# server prints, and in a file of the data directory, so that bookmarks survive a restart.

#: 256 bits, in 43 characters.
SIZE = 32
SHORTEST = 22


@dataclass(frozen=True)
class LocalSecret:
    """The secret, and the two values that a browser gets for it, as for a session: a cookie and a page secret.

    They are derived, so that neither reveals the secret, and all tabs of a browser have the same.
    """

    value: str = field(repr=False)

    @property
    def cookie(self) -> str:
        return self._derived("cookie")

    @property
    def page(self) -> str:
        return self._derived("page")

    def is_value(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.value.encode())

    def is_cookie(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.cookie.encode())

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.value.encode(), f"daskscope {purpose}".encode(), hashlib.sha256).hexdigest()


def load_secret(path: Path) -> LocalSecret:
    """Return the secret in a file. Create the file if it does not exist."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = _create(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"The secret in {path} cannot be read: {error}.") from None
    value = text.strip()
    if len(value) < SHORTEST or not value.replace("-", "").replace("_", "").isalnum() or not value.isascii():
        raise SettingsError(f"{path} contains no secret. Delete it, and the server creates a new one.")
    return LocalSecret(value)


def _create(path: Path) -> str:
    """Create the file, or return the secret that another server created at the same time."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secrets.token_urlsafe(SIZE)}\n")
    try:
        # Unlike a rename, a link does not replace a file; unlike exclusive creation, it is never seen half written.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_text()


logger = logging.getLogger("daskscope.server")

#: Maximum bytes of recorded data that wait to be stored. A core stores 10 MB a second, so the last of them waits for 7 s;
#: a recorder waits for a minute.
IN_FLIGHT_NBYTES = 64 * 1024 * 1024
#: Connections for the short reads of ingest. Each takes a millisecond.
INGEST_CONNECTIONS = 4
#: Maximum bytes of increments of live runs in memory. Pages that are equally far share one.
INCREMENTS_NBYTES = 16 * 1024 * 1024
COMPLAIN_EVERY_US = 60 * 1_000_000
MASTER_KEY = "DASKSCOPE_SERVER_MASTER_KEY"
#: The only account and user of a server without sign-in.
LOCAL = "local"


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass
class Services:
    """The parts of a running server."""

    settings: Settings
    archive: Archive
    writer: Writer
    pools: Pools
    parsing: Parsing
    quotas: Quotas
    new_names: NewNames
    storage_quota: StorageQuota
    build_memory: MemoryBudget
    in_flight: InFlight
    live: Live
    counters: Counters
    #: The archive with connections of its own for ingest and for identifying callers. Requests that read large runs hold the others
    #: for minutes.
    ingest_archive: Archive
    #: What was done to the catalog at the start; empty if it was up to date.
    prepared: str = ""
    #: The public URL; known once the server listens.
    url: str = ""
    #: Other servers on the same PostgreSQL.
    relay: Relay | None = None
    local_account: int = 0
    local_user: int = 0
    #: None with sign-in.
    local_secret: LocalSecret | None = None
    #: Problems found by jobs, by job. /readyz shows them.
    problems: dict[str, str] = field(default_factory=dict)
    #: Rows in files that are missing or cut off, by run; found by a job.
    lost_rows: dict[int, int] = field(default_factory=dict)
    #: Checks of the parts for /readyz; made by its first call.
    checks: list[Check] = field(default_factory=list)
    token_cache: TokenCache = field(default_factory=TokenCache)
    recorded: ClusterUsers = field(default_factory=ClusterUsers)
    earlier_runs: EarlierRuns = field(default_factory=EarlierRuns)
    arriving: Arriving = field(default_factory=Arriving)
    child_processes: ChildProcesses = field(default_factory=ChildProcesses)
    #: Documents of earlier versions, which a job builds anew.
    outdated: Outdated[Subject] = field(default_factory=Outdated)
    increments: Shared[memoryview] = field(default_factory=lambda: Shared(INCREMENTS_NBYTES))

    _complained: dict[str, int] = field(default_factory=dict)
    _out: dict[str, str] = field(default_factory=dict)

    @property
    def entry_url(self) -> str:
        """Return the URL that people open: with the secret if there is no sign-in."""
        return self.url if self.local_secret is None else with_secret(f"{self.url}/", self.local_secret.value)

    @property
    def runner(self) -> Runner:
        """Return a runner of jobs in other processes, which reach the storage of this server."""
        settings = self.settings
        storage = Storage(
            settings.database_url,
            settings.database_timeout,
            settings.store_url,
            settings.store_endpoint,
            self.archive.vault.masters,
        )
        return Runner(self.child_processes, self.build_memory, storage)

    def complain(self, text: str) -> None:
        """Log an external problem at most once a minute, however many requests meet it."""
        now = self.archive.clock()
        if now - self._complained.get(text, 0) > COMPLAIN_EVERY_US:
            self._complained = {text: now}
            logger.warning("%s", text)

    def record_health(self, what: str, error: Exception | None) -> str:
        """Record the health of a part.

        Return a public message, empty if it is healthy; log the details once per outage.
        """
        words = public_message(error) if error is not None else ""
        if words == self._out.get(what, ""):
            return words
        self._out[what] = words
        if error is None:
            logger.info("the %s works again", what)
        else:
            logger.error("the %s does not work: %s", what, detail_of(error))
        return words

    def abort(self) -> None:
        """End every wait for PostgreSQL and for other processes, because the server must stop now."""
        self.child_processes.close()
        self.parsing.close()
        for archive in self._archives:
            archive.database.abort()

    def close(self) -> None:
        self.child_processes.close()
        self.writer.stop()
        self.abort()
        if self.relay is not None:
            self.relay.stop()
        self.live.close()
        for archive in self._archives:
            archive.close()

    @property
    def _archives(self) -> tuple[Archive, ...]:
        return self.writer.archive, self.ingest_archive, self.archive


def open_services(settings: Settings, clock: Callable[[], int] = now_us) -> Services:
    """Open the archive and start the writer."""
    settings.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        check_private(settings.directory)
    except NotPrivate as error:
        raise StorageError(f"The data directory is not safe: {error}. Choose another one with --data.") from None
    with explained_damage(settings.database_url):
        return _open_services(settings, clock)


def _open_services(settings: Settings, clock: Callable[[], int]) -> Services:
    with closing(Database(settings.database_url)) as unlimited:
        # A migration may take longer than any other statement.
        prepared = prepare(unlimited)
    database = open_database(settings, settings.database_connections)
    vault = open_vault(database, master_keys(settings))
    counters, live, pools = Counters(), Live(), Pools(settings.busy_account_percent / 100)
    store = open_store(settings.store_url, endpoint=settings.store_endpoint)
    archive = Archive(
        database, vault, store, clock, settings.lost_after * 1_000_000, settings.keep_replaced_hours * HOUR
    )
    services = Services(
        settings=settings,
        archive=archive,
        writer=Writer(_with_connections(settings, archive, 1), counters, live.announce, charge=pools.shares.charge),
        pools=pools,
        parsing=Parsing(pools),
        quotas=Quotas(settings.rows_per_minute, settings.bytes_per_minute),
        new_names=NewNames(),
        storage_quota=StorageQuota(settings.max_storage),
        build_memory=MemoryBudget(settings.build_memory),
        in_flight=InFlight(IN_FLIGHT_NBYTES),
        live=live,
        counters=counters,
        ingest_archive=_with_connections(settings, archive, INGEST_CONNECTIONS),
        prepared=prepared,
    )
    if settings.login:
        # While sign-in was off, anyone with its secret could create tokens with every scope.
        with archive.write() as tx:
            disable_tokens(tx, LOCAL)
    else:
        _open_local(services)
    if not database.is_sqlite:
        from daskscope.server.relay import Relay

        services.relay = Relay(database, live, services.token_cache)
        services.relay.start()
    services.writer.start()
    return services


def open_database(settings: Settings, connections: int) -> Database:
    return Database(settings.database_url, connections=connections, statement_s=settings.database_timeout)


def _with_connections(settings: Settings, archive: Archive, connections: int) -> Archive:
    """Return the archive with connections of its own: requests and jobs that use up the others must not stop ingest.

    SQLite has a connection for every thread.
    """
    return archive if archive.database.is_sqlite else replace(archive, database=open_database(settings, connections))


def master_keys(settings: Settings) -> MasterKeys:
    """Return where the master keys of a server are. A flag for the key itself would show it in the list of processes."""
    return MasterKeys(settings.master_key_file, os.environ.get(MASTER_KEY, ""), settings.key_command)


def _open_local(services: Services) -> None:
    with services.archive.write() as tx:
        account = open_account(tx, LOCAL)
        user = open_user(tx, LOCAL, admin=True)
        set_member(tx, account.id, user.id, "owner")
    services.local_account, services.local_user = account.id, user.id
    services.local_secret = load_secret(services.settings.local_secret_file)
