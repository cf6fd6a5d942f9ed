"""The catalog: every SQL table of a server, the same on SQLite and PostgreSQL.

Three sorts of table exist. *Accounts*: who may see what. *The buffer*: batches as they came, until they are compacted into
Parquet. *Roll-ups*: what every list and overview reads; entity rows (the newest wins) and sums (batches add to them).

Times are integer microseconds since the epoch: ``…_us`` on the scheduler's clock where a recording says so, ``received_us``
and everything about accounts on the server's. JSON is kept as text. What a person may not read from a stolen disk (code,
tracebacks) is in ``sealed_…`` columns, see ``vault``.
"""

from __future__ import annotations

from daskscope.storage.schema.accounts import (
    account_keys,
    accounts,
    attempts,
    facts,
    logins,
    members,
    sessions,
    tokens,
    users,
)
from daskscope.storage.schema.base import metadata
from daskscope.storage.schema.buffer import batches, epochs, files, renderings, runs, streams
from daskscope.storage.schema.reports import reports
from daskscope.storage.schema.rollups import (
    activities,
    clients,
    computations,
    days,
    error_groups,
    exceptions,
    memories,
    prefixes,
    timeline,
    workers,
)

#: The catalog's version: the name of the newest migration. Bumped with every change of these tables.
HEAD = "0004"

__all__ = [
    "HEAD",
    "account_keys",
    "accounts",
    "activities",
    "attempts",
    "batches",
    "clients",
    "computations",
    "days",
    "epochs",
    "error_groups",
    "exceptions",
    "facts",
    "files",
    "logins",
    "members",
    "memories",
    "metadata",
    "prefixes",
    "renderings",
    "reports",
    "runs",
    "sessions",
    "streams",
    "timeline",
    "tokens",
    "users",
    "workers",
]
