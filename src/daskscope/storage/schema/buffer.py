"""Tables of runs, their batches, and the files made of them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, UniqueConstraint

from daskscope.storage.schema.base import Id, Words, account_id, key, metadata, number, real, run_id, text

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    # The scheduler's id, as the recorder sends it.
    Column("cluster", Words, nullable=False),
    text("name"),
    # The user of the token if sign-in is on, else the user that the recorder names.
    text("user"),
    text("host"),
    text("address"),
    text("tags"),
    number("created_us"),
    number("received_us"),
    number("seen_us"),
    number("start_us"),
    number("recording_us"),
    number("end_us"),
    text("end_reason"),
    # The server's clock minus the scheduler's, at most: the smallest delay of a batch; 0 if unknown.
    number("clock_offset_us"),
    number("idle_since_us"),
    real("idle_timeout_s"),
    number("tasks_queued"),
    number("tasks_processing"),
    number("tasks_unrunnable"),
    number("workers"),
    number("threads"),
    # Sums over its batches.
    number("tasks"),
    number("errors"),
    number("compute_us"),
    number("transfer_us"),
    number("disk_us"),
    number("nbytes"),
    number("exceptions"),
    number("last_work_us"),
    # Executions among ``tasks`` whose rows were deleted; sums are kept longer.
    number("tasks_removed"),
    number("rows"),
    number("wire_nbytes"),
    # Σ threads × time and Σ memory limit × time of its workers up to ``seen_us``.
    number("thread_us"),
    real("memory_byte_s"),
    number("memory"),
    number("memory_limit"),
    number("computations"),
    # Bytes of batches that are not compacted yet, and the time of the last compaction attempt.
    number("buffered_nbytes"),
    number("compacted_us"),
    # A user asked to close the cluster; the recorder gets this in the response to its next batch.
    number("close_us"),
    # Long texts come last: SQLite reads a row from its start, and a list reads ten thousand rows.
    text("prices"),
    text("unrunnable_needs"),
    text("dropped"),
    text("platform"),
    text("versions"),
    text("config"),
    # Peaks. ``workers``, ``threads`` and ``memory_limit`` are current values, and 0 once the run is over.
    number("peak_workers"),
    number("peak_threads"),
    number("peak_memory_limit"),
    # At the last update: tasks being executed, paused workers, and since when tasks wait although nothing runs.
    number("tasks_executing"),
    number("workers_paused"),
    number("stalled_since_us"),
    # The tasks that have been running longest, as the recorder sent them.
    text("longest_running"),
    # When a user last asked for the current stacks, and of which worker (empty: all). The recorder gets this in the response
    # to its next batch.
    number("stacks_asked_us"),
    text("stacks_asked_of"),
    UniqueConstraint("account_id", "cluster"),
    Index(None, "account_id", "start_us"),
    # Contains everything that a run's state depends on, so that counting does not read the rows.
    Index("ix_runs_state", "account_id", "received_us", "end_us", "idle_since_us"),
    Index(None, "buffered_nbytes"),
    sqlite_autoincrement=True,
)

#: One recorder's sequence of batches. Every batch below ``floor`` was stored and compacted, and its row deleted.
epochs = Table(
    "epochs",
    metadata,
    run_id(primary=True),
    Column("epoch", BigInteger, primary_key=True),
    number("floor"),
    number("highest"),
    # The lowest sequence number received, plus one.
    number("lowest"),
    number("taken"),
    # 1 once its first batch was received: nothing before it is missing.
    number("from_start"),
)

#: The recorder's counters per table, against what arrived: how complete a run is.
streams = Table(
    "streams",
    metadata,
    run_id(primary=True),
    Column("epoch", BigInteger, primary_key=True),
    key("name"),
    number("rows"),
    number("kept"),
    number("dropped"),
    # The recorder's count of the first row that arrived, from 1: a run may be registered long after its recorder
    # started.
    number("first"),
    # Rows dropped before the first batch that arrived, plus one.
    number("dropped_before"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", Id, primary_key=True),
    run_id(),
    Column("epoch", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("name", Words, nullable=False),
    number("rows"),
    number("t0"),
    number("t1"),
    number("kept"),
    number("dropped"),
    number("received_us"),
    # The frame as it came, encrypted if the table contains code or tracebacks; null once compacted.
    Column("frame", LargeBinary),
    # Why it could not be compacted; such a batch is kept as it is.
    text("damage"),
    UniqueConstraint("run_id", "epoch", "sequence"),
    sqlite_autoincrement=True,
)

#: Parquet files: one per run and table once the run is over, a few while it is running.
files = Table(
    "files",
    metadata,
    Column("id", Id, primary_key=True),
    run_id(),
    Column("name", Words, nullable=False),
    Column("path", Words, nullable=False, unique=True),
    number("rows"),
    number("nbytes"),
    number("t0"),
    number("t1"),
    number("created_us"),
    Index(None, "run_id", "name"),
    sqlite_autoincrement=True,
)

#: Stored documents for the viewer, made from a run's rows once.
documents = Table(
    "documents",
    metadata,
    run_id(primary=True),
    # A computation's id, ``report:<number>``, or empty for the whole run.
    key("subject"),
    Column("path", Words, nullable=False, unique=True),
    number("nbytes"),
    number("created_us"),
    # The newest batch it was made from; a run with newer batches needs a new document.
    number("upto"),
    text("version"),
)

#: Documents that are being built. Other servers wait for them.
builds = Table(
    "builds",
    metadata,
    run_id(primary=True),
    key("subject"),
    # A random name of the build. A server that finds another one there has lost it.
    text("builder"),
    # Renewed while the build lives; after this time anyone may begin anew.
    number("until_us"),
    # Why the last build failed. Nobody tries again before ``until_us``.
    text("problem"),
)

#: Files that were replaced, until they are deleted.
replaced_files = Table(
    "replaced_files",
    metadata,
    key("path"),
    run_id(),
    number("delete_us"),
    Index(None, "delete_us"),
    Index(None, "run_id"),
)
