"""Runs, their batches as they came, and the files made of them."""

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
    # The user of the token in login mode, the user the recorder names otherwise.
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
    # The server's clock minus the scheduler's, at most: the least of what batches took to arrive; 0: not known.
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
    # Executions among ``tasks`` whose rows were deleted: sums are kept longer.
    number("tasks_removed"),
    number("rows"),
    number("wire_nbytes"),
    # Σ threads × time and Σ memory limit × time of its workers up to ``seen_us``.
    number("thread_us"),
    real("memory_byte_s"),
    number("memory"),
    number("memory_limit"),
    number("computations"),
    # Bytes of batches not compacted yet, and when a compaction last looked at it.
    number("buffered_nbytes"),
    number("compacted_us"),
    # Somebody asked the cluster to stop; the recorder is told in the answer to its next batch.
    number("close_us"),
    # Long texts come last: SQLite reads a row from its beginning, and a list reads ten thousand.
    text("prices"),
    text("unrunnable_needs"),
    text("dropped"),
    text("platform"),
    text("versions"),
    text("config"),
    # The most it had at once; ``workers``, ``threads`` and ``memory_limit`` say what it has now, and nothing once it is over.
    number("peak_workers"),
    number("peak_threads"),
    number("peak_memory_limit"),
    UniqueConstraint("account_id", "cluster"),
    Index(None, "account_id", "start_us"),
    # With all that a run's state depends on, so that counting them does not read them.
    Index("ix_runs_state", "account_id", "received_us", "end_us", "idle_since_us"),
    Index(None, "buffered_nbytes"),
    sqlite_autoincrement=True,
)

#: One recorder's sequence of batches. ``floor``: every batch below it was taken and compacted; its row is gone.
epochs = Table(
    "epochs",
    metadata,
    run_id(primary=True),
    Column("epoch", BigInteger, primary_key=True),
    number("floor"),
    number("highest"),
    # The lowest number that was taken, plus one.
    number("lowest"),
    number("taken"),
    # 1 once its first batch was taken: nothing before it is missing.
    number("from_start"),
)

#: What the recorder's counters say of each table, against what arrived: how complete a run is.
streams = Table(
    "streams",
    metadata,
    run_id(primary=True),
    Column("epoch", BigInteger, primary_key=True),
    key("name"),
    number("rows"),
    number("kept"),
    number("dropped"),
    # The recorder's count of the first row that arrived, from 1: a run may be registered long after its recorder began.
    number("first"),
    # What the first batch that arrived says was dropped before, plus one.
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
    # The frame as it came, sealed where the table holds code or tracebacks; null once compacted.
    Column("frame", LargeBinary),
    # Why it could not be compacted; such a batch stays as it is.
    text("damage"),
    UniqueConstraint("run_id", "epoch", "sequence"),
    sqlite_autoincrement=True,
)

#: Parquet: one a run and table once the run is over, a few while it lives.
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

#: Finished documents for the viewer, made from a run's rows once: opening it again reads them.
renderings = Table(
    "renderings",
    metadata,
    run_id(primary=True),
    # A computation's id, ``report:<number>``, or empty for the whole run.
    key("subject"),
    Column("path", Words, nullable=False, unique=True),
    number("nbytes"),
    number("created_us"),
    # The newest batch it was made from: a run that went on needs another.
    number("upto"),
    text("version"),
)
