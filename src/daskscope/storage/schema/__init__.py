"""The catalog: every SQL table of a server, the same on SQLite and PostgreSQL.

There are three kinds of table. *Accounts*: users, members, tokens. *The buffer*: batches as they came, until they are
compacted into Parquet. *Roll-ups*: what every list and overview reads; entity rows (the newest wins) and sums (batches
add to them).

Times are integer microseconds since the epoch: ``…_us`` on the scheduler's clock where a recording says so;
``received_us`` and everything about accounts on the server's. JSON is stored as text. Code and tracebacks are encrypted
in ``sealed_…`` columns, see ``vault``.
"""

from __future__ import annotations

from daskscope.storage.schema.accounts import (
    account_keys,
    accounts,
    attempts,
    audit_events,
    baselines,
    facts,
    logins,
    members,
    reports,
    sessions,
    sign_in_links,
    tokens,
    users,
)
from daskscope.storage.schema.base import metadata
from daskscope.storage.schema.buffer import batches, builds, documents, epochs, files, replaced_files, runs, streams
from daskscope.storage.schema.rollups import (
    activities,
    clients,
    code_texts,
    computations,
    days,
    error_groups,
    error_words,
    exceptions,
    memories,
    prefixes,
    timeline,
    workers,
)

#: The catalog's version: the name of the newest migration. Change it with every change of these tables.
HEAD = "0001"

__all__ = [
    "HEAD",
    "account_keys",
    "accounts",
    "activities",
    "attempts",
    "audit_events",
    "baselines",
    "batches",
    "builds",
    "clients",
    "code_texts",
    "computations",
    "days",
    "documents",
    "epochs",
    "error_groups",
    "error_words",
    "exceptions",
    "facts",
    "files",
    "logins",
    "members",
    "memories",
    "metadata",
    "prefixes",
    "replaced_files",
    "reports",
    "runs",
    "sessions",
    "sign_in_links",
    "streams",
    "timeline",
    "tokens",
    "users",
    "workers",
]
