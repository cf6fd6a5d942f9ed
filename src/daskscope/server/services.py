"""What every request needs: the storage, the writer, the clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from daskscope.server.arriving import Arriving
from daskscope.server.counters import Counters
from daskscope.server.live import Live
from daskscope.server.pools import Pools
from daskscope.server.quota import Quotas
from daskscope.server.settings import Settings
from daskscope.server.trouble import in_our_words
from daskscope.server.writer import Writer
from daskscope.storage.accounts import open_account, set_member
from daskscope.storage.blobs import BlobStore, open_store
from daskscope.storage.database import Database, detail_of
from daskscope.storage.migrate import prepare
from daskscope.storage.users import open_user, shut_out
from daskscope.storage.vault import Vault, load_master_keys

if TYPE_CHECKING:
    from daskscope.server.relay import Relay

logger = logging.getLogger("daskscope.server")

COMPLAIN_EVERY_US = 60 * 1_000_000
#: The only account and user of a server without login.
LOCAL = "local"


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass
class Services:
    """Everything a running server is made of."""

    settings: Settings
    database: Database
    vault: Vault
    store: BlobStore
    writer: Writer
    quotas: Quotas
    live: Live
    counters: Counters
    clock: Callable[[], int] = now_us
    #: What was done to the catalog at the start; empty where it was up to date.
    prepared: str = ""
    #: The address people reach the server under; known once it listens.
    url: str = ""
    #: Other servers on the same PostgreSQL.
    relay: Relay | None = None
    local_account: int = 0
    local_user: int = 0
    #: Problems found by jobs, by job; shown by /readyz.
    problems: dict[str, str] = field(default_factory=dict)
    pools: Pools = field(default_factory=Pools)
    arriving: Arriving = field(default_factory=Arriving)

    _complained: dict[str, int] = field(default_factory=dict)
    _out: dict[str, str] = field(default_factory=dict)

    def complain(self, text: str) -> None:
        """Log what is wrong outside of us: once a minute, however many requests meet it."""
        now = self.clock()
        if now - self._complained.get(text, 0) > COMPLAIN_EVERY_US:
            self._complained = {text: now}
            logger.warning("%s", text)

    def looked_at(self, what: str, error: Exception | None) -> str:
        """What anybody may know of how a part is, empty where it is well; the log gets the details once per outage."""
        words = in_our_words(error) if error is not None else ""
        if words == self._out.get(what, ""):
            return words
        self._out[what] = words
        if error is None:
            logger.info("the %s is well again", what)
        else:
            logger.error("the %s is not well: %s", what, detail_of(error))
        return words

    def close(self) -> None:
        self.writer.stop()
        if self.relay is not None:
            self.relay.stop()
        self.live.close()
        self.database.close()


def open_services(settings: Settings, clock: Callable[[], int] = now_us) -> Services:
    """Open the storage and start the writer."""
    settings.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(settings.database_url)
    prepared = prepare(database)
    vault = Vault(load_master_keys(settings.master_key), settings.master_key)
    counters, live = Counters(), Live()
    services = Services(
        settings=settings,
        database=database,
        vault=vault,
        store=open_store(settings.store_url, endpoint=settings.store_endpoint),
        writer=Writer(database, vault, counters, clock, live.announce),
        quotas=Quotas(settings.rows_per_minute, settings.bytes_per_minute),
        live=live,
        counters=counters,
        clock=clock,
        prepared=prepared,
    )
    if settings.login:
        # Whoever reached the server while it asked for no login could make tokens that do everything.
        with database.write() as connection:
            shut_out(connection, LOCAL, clock())
    else:
        _open_local(services)
    if not database.is_sqlite:
        from daskscope.server.relay import Relay

        services.relay = Relay(database, live)
        services.relay.start()
    services.writer.start()
    return services


def _open_local(services: Services) -> None:
    now = services.clock()
    with services.database.write() as connection:
        account = open_account(connection, services.vault, LOCAL, now)
        user = open_user(connection, LOCAL, now, admin=True)
        set_member(connection, account.id, user.id, "owner", now)
    services.local_account, services.local_user = account.id, user.id
