"""Tables that lists and overviews read."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, ForeignKeyConstraint, Index, Integer, LargeBinary, Table

from daskscope.storage.schema.base import Id, Words, account_id, key, metadata, number, real, run_id, text

workers = Table(
    "workers",
    metadata,
    run_id(primary=True),
    key("server_id"),
    text("worker"),
    text("name"),
    text("host"),
    number("seen_us"),
    number("nthreads"),
    number("memory_limit"),
    number("start_us"),
    number("end_us"),
    text("verdict"),
    text("evidence"),
    number("processing_count"),
    number("lost_count"),
    # For clusters that lost workers: few among thousands.
    Index(None, "verdict", "run_id"),
)

#: The last sample of each worker address.
memories = Table(
    "memories",
    metadata,
    run_id(primary=True),
    key("worker"),
    number("time_us"),
    number("memory"),
    real("cpu_percent"),
)

clients = Table(
    "clients",
    metadata,
    run_id(primary=True),
    key("client"),
    number("seen_us"),
    number("connect_us"),
    number("last_seen_us"),
    number("disconnect_us"),
    number("held_keys"),
    number("held_nbytes"),
)

computations = Table(
    "computations",
    metadata,
    run_id(primary=True),
    key("computation"),
    account_id(),
    number("seen_us"),
    number("start_us"),
    number("stop_us"),
    text("state"),
    text("client"),
    text("span"),
    number("code_line"),
    text("code_file"),
    number("submissions"),
    number("groups"),
    number("tasks"),
    number("memory"),
    number("erred"),
    number("released"),
    number("forgotten"),
    number("unfinished"),
    # Identifies equal code across runs without containing it.
    text("code_digest"),
    # The text of its code in ``code_texts``.
    text("code_text"),
    # Tasks by state of each prefix while it runs, as the recorder sent them.
    text("prefix_states"),
    Index(None, "account_id", "start_us"),
    # For recently ended computations: without it, the home page of a team scanned all of its 200,000 computations in
    # 0.4 s.
    Index(None, "account_id", "seen_us"),
    Index(None, "run_id", "start_us"),
    Index(None, "account_id", "code_digest", "start_us"),
    # For texts that no computation has.
    Index(None, "account_id", "code_text"),
)

#: Code of computations, once per content.
code_texts = Table(
    "code_texts",
    metadata,
    Column(
        "account_id",
        Id,
        ForeignKey("accounts.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        nullable=False,
    ),
    key("digest"),
    Column("sealed", LargeBinary, nullable=False),
)

#: Executions of a computation by prefix.
prefixes = Table(
    "prefixes",
    metadata,
    run_id(primary=True),
    key("computation"),
    key("prefix"),
    number("tasks"),
    number("errors"),
    number("retried"),
    number("killed"),
    number("compute_us"),
    number("transfer_us"),
    number("disk_us"),
    number("deserialize_us"),
    number("nbytes"),
    number("first_us"),
    number("last_us"),
    number("longest_us"),
)

#: Executions by day, for usage over time; the day belongs to the stop time and is counted from the epoch.
days = Table(
    "days",
    metadata,
    run_id(primary=True),
    Column("day", Integer, primary_key=True),
    key("prefix"),
    account_id(),
    number("tasks"),
    number("errors"),
    number("compute_us"),
    number("transfer_us"),
    number("nbytes"),
    Index(None, "account_id", "day"),
)

#: Sums of a run per ten seconds.
timeline = Table(
    "timeline",
    metadata,
    run_id(primary=True),
    Column("bucket", BigInteger, primary_key=True),
    number("tasks"),
    number("errors"),
    number("compute_us"),
    number("transfer_us"),
)

#: Fine performance metrics, summed.
activities = Table(
    "activities",
    metadata,
    run_id(primary=True),
    key("span"),
    key("context"),
    key("prefix"),
    key("activity"),
    key("unit"),
    real("value"),
)

exceptions = Table(
    "exceptions",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    run_id(),
    text("fingerprint"),
    number("time_us"),
    text("key"),
    text("prefix"),
    text("span"),
    text("computation"),
    text("worker"),
    text("type"),
    text("cause_type"),
    Column("sealed_text", LargeBinary),
    number("will_retry"),
    number("count"),
    # The run's user at ingest.
    text("user"),
    Index(None, "account_id", "time_us"),
    Index(None, "run_id", "time_us"),
    Index(None, "account_id", "fingerprint", "time_us"),
    # Lists the users of a group without reading its errors or their runs.
    Index(None, "account_id", "fingerprint", "user", "run_id"),
    sqlite_autoincrement=True,
)

#: Errors with the same fingerprint.
error_groups = Table(
    "error_groups",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    key("fingerprint"),
    text("type"),
    Column("sealed_sample", LargeBinary),
    number("first_us"),
    number("last_us"),
    number("count"),
    # open, resolved, ignored, regressed
    Column("state", Words, nullable=False, server_default="open"),
    number("state_us"),
    text("state_by"),
    # Whether its words are in ``error_words``.
    number("is_indexed"),
    Index(None, "account_id", "last_us"),
    Index(None, "is_indexed"),
)

#: Keyed hashes of the words of error groups.
error_words = Table(
    "error_words",
    metadata,
    Column("account_id", Id, primary_key=True, autoincrement=False),
    Column("word", BigInteger, primary_key=True, autoincrement=False),
    key("fingerprint"),
    ForeignKeyConstraint(
        ["account_id", "fingerprint"], ["error_groups.account_id", "error_groups.fingerprint"], ondelete="CASCADE"
    ),
    Index(None, "account_id", "fingerprint"),
)
