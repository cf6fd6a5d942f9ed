"""The first catalog."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def ids(*names: str) -> list[sa.Column[Any]]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return [sa.Column(name, kind, nullable=False) for name in names]


def numbers(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), server_default="0", nullable=False) for name in names]


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), server_default="", nullable=False) for name in names]


def required_texts(*names: str) -> list[sa.Column[Any]]:
    """Return columns of texts that every row must have."""
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def reference(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=name, ondelete="CASCADE")


def index(table: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns, unique=False)


def upgrade() -> None:
    op.create_table(
        "accounts",
        *ids("id"),
        *required_texts("name"),
        *numbers("created_us"),
        *texts("preferences"),
        *numbers("last_report"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("name", name=op.f("uq_accounts_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "attempts",
        *required_texts("subject"),
        *numbers("tries", "since_us"),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_attempts")),
    )
    op.create_table(
        "facts",
        *required_texts("name"),
        *texts("value"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )
    op.create_table(
        "users",
        *ids("id"),
        *required_texts("name"),
        *texts("email", "password"),
        *numbers("created_us", "disabled_us", "admin"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "account_keys",
        *ids("id", "account_id"),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        *numbers("created_us"),
        reference("account_keys", "account_id", "accounts"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_keys")),
        sqlite_autoincrement=True,
    )
    index("account_keys", "account_id")
    op.create_table(
        "error_groups",
        *ids("account_id"),
        *required_texts("fingerprint"),
        *texts("type"),
        sa.Column("sealed_sample", sa.LargeBinary(), nullable=True),
        *numbers("first_us", "last_us", "count"),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        *numbers("state_us"),
        *texts("state_by"),
        reference("error_groups", "account_id", "accounts"),
        sa.PrimaryKeyConstraint("account_id", "fingerprint", name=op.f("pk_error_groups")),
    )
    index("error_groups", "account_id", "last_us")
    op.create_table(
        "logins",
        *required_texts("device_digest", "user_code"),
        *texts("label"),
        *numbers("created_us", "expires_us"),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("account_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        *texts("state"),
        reference("logins", "account_id", "accounts"),
        reference("logins", "user_id", "users"),
        sa.PrimaryKeyConstraint("device_digest", name=op.f("pk_logins")),
        sa.UniqueConstraint("user_code", name=op.f("uq_logins_user_code")),
    )
    op.create_table(
        "members",
        *ids("account_id", "user_id"),
        *texts("role"),
        *numbers("since_us"),
        reference("members", "account_id", "accounts"),
        reference("members", "user_id", "users"),
        sa.PrimaryKeyConstraint("account_id", "user_id", name=op.f("pk_members")),
    )
    index("members", "user_id")
    op.create_table(
        "reports",
        *ids("id", "account_id"),
        *numbers("number"),
        *texts("share"),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        *texts("filename", "title", "tags", "visibility", "kind", "path", "html_path"),
        *numbers("nbytes", "created_us", "expires_us"),
        *texts("cluster", "status"),
        *numbers("duration_us", "tasks", "errors"),
        reference("reports", "account_id", "accounts"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_reports_user_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reports")),
        sa.UniqueConstraint("account_id", "number", name=op.f("uq_reports_account_id_number")),
        sqlite_autoincrement=True,
    )
    index("reports", "share")
    op.create_table(
        "runs",
        *ids("id", "account_id"),
        *required_texts("cluster"),
        *texts("name", "user", "host", "address", "tags"),
        *numbers("created_us", "received_us", "seen_us", "start_us", "recording_us", "end_us"),
        *texts("end_reason"),
        *numbers("clock_offset_us", "idle_since_us"),
        sa.Column("idle_timeout_s", sa.Float(), server_default="0", nullable=False),
        *numbers(
            "tasks_queued",
            "tasks_processing",
            "tasks_unrunnable",
            "workers",
            "threads",
            "tasks",
            "errors",
            "compute_us",
            "transfer_us",
            "disk_us",
            "nbytes",
            "exceptions",
            "last_work_us",
            "tasks_removed",
            "rows",
            "wire_nbytes",
            "thread_us",
        ),
        sa.Column("memory_byte_s", sa.Float(), server_default="0", nullable=False),
        *numbers("memory", "memory_limit", "computations", "buffered_nbytes", "compacted_us", "close_us"),
        *texts("prices", "unrunnable_needs", "dropped", "platform", "versions", "config"),
        reference("runs", "account_id", "accounts"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("account_id", "cluster", name=op.f("uq_runs_account_id_cluster")),
        sqlite_autoincrement=True,
    )
    index("runs", "account_id", "start_us")
    index("runs", "buffered_nbytes")
    op.create_index("ix_runs_state", "runs", ["account_id", "received_us", "end_us", "idle_since_us"], unique=False)
    op.create_table(
        "sessions",
        *required_texts("digest"),
        *ids("user_id"),
        *numbers("created_us", "expires_us"),
        *texts("agent"),
        reference("sessions", "user_id", "users"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
    )
    op.create_table(
        "tokens",
        *ids("id", "account_id", "user_id"),
        *required_texts("digest"),
        *texts("hint", "label", "scopes", "cluster"),
        *numbers("created_us", "expires_us", "used_us", "revoked_us"),
        reference("tokens", "account_id", "accounts"),
        reference("tokens", "user_id", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
        sqlite_autoincrement=True,
    )
    index("tokens", "account_id", "user_id")
    op.create_table(
        "activities",
        *ids("run_id"),
        *required_texts("span", "context", "prefix", "activity", "unit"),
        sa.Column("value", sa.Float(), server_default="0", nullable=False),
        reference("activities", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "span", "context", "prefix", "activity", "unit", name=op.f("pk_activities")),
    )
    op.create_table(
        "batches",
        *ids("id", "run_id"),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        *required_texts("name"),
        *numbers("rows", "t0", "t1", "kept", "dropped", "received_us"),
        sa.Column("frame", sa.LargeBinary(), nullable=True),
        *texts("damage"),
        reference("batches", "run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("run_id", "epoch", "sequence", name=op.f("uq_batches_run_id_epoch_sequence")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "clients",
        *ids("run_id"),
        *required_texts("client"),
        *numbers("seen_us", "connect_us", "last_seen_us", "disconnect_us", "held_keys", "held_nbytes"),
        reference("clients", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "client", name=op.f("pk_clients")),
    )
    op.create_table(
        "computations",
        *ids("run_id"),
        *required_texts("computation"),
        *ids("account_id"),
        *numbers("seen_us", "start_us", "stop_us"),
        *texts("state", "client", "span"),
        sa.Column("sealed_code", sa.LargeBinary(), nullable=True),
        *numbers("code_line"),
        *texts("code_file"),
        *numbers("submissions", "groups", "tasks", "memory", "erred", "released", "forgotten", "unfinished"),
        reference("computations", "account_id", "accounts"),
        reference("computations", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "computation", name=op.f("pk_computations")),
    )
    index("computations", "account_id", "start_us")
    index("computations", "run_id", "start_us")
    op.create_table(
        "days",
        *ids("run_id"),
        sa.Column("day", sa.Integer(), nullable=False),
        *required_texts("prefix"),
        *ids("account_id"),
        *numbers("tasks", "errors", "compute_us", "transfer_us", "nbytes"),
        reference("days", "account_id", "accounts"),
        reference("days", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "day", "prefix", name=op.f("pk_days")),
    )
    index("days", "account_id", "day")
    op.create_table(
        "epochs",
        *ids("run_id"),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        *numbers("floor", "highest", "lowest", "taken", "from_start"),
        reference("epochs", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "epoch", name=op.f("pk_epochs")),
    )
    op.create_table(
        "exceptions",
        *ids("id", "account_id", "run_id"),
        *texts("fingerprint"),
        *numbers("time_us"),
        *texts("key", "prefix", "span", "computation", "worker", "type", "cause_type"),
        sa.Column("sealed_text", sa.LargeBinary(), nullable=True),
        *numbers("will_retry", "count"),
        *texts("user"),
        reference("exceptions", "account_id", "accounts"),
        reference("exceptions", "run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exceptions")),
        sqlite_autoincrement=True,
    )
    index("exceptions", "account_id", "fingerprint", "run_id", "user")
    index("exceptions", "account_id", "fingerprint", "time_us")
    index("exceptions", "account_id", "time_us")
    index("exceptions", "run_id", "time_us")
    op.create_table(
        "files",
        *ids("id", "run_id"),
        *required_texts("name", "path"),
        *numbers("rows", "nbytes", "t0", "t1", "created_us"),
        reference("files", "run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sa.UniqueConstraint("path", name=op.f("uq_files_path")),
        sqlite_autoincrement=True,
    )
    index("files", "run_id", "name")
    op.create_table(
        "memories",
        *ids("run_id"),
        *required_texts("worker"),
        *numbers("time_us", "memory"),
        sa.Column("cpu_percent", sa.Float(), server_default="0", nullable=False),
        reference("memories", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "worker", name=op.f("pk_memories")),
    )
    op.create_table(
        "prefixes",
        *ids("run_id"),
        *required_texts("computation", "prefix"),
        *numbers(
            "tasks",
            "errors",
            "retried",
            "killed",
            "compute_us",
            "transfer_us",
            "disk_us",
            "deserialize_us",
            "nbytes",
            "first_us",
            "last_us",
            "longest_us",
        ),
        reference("prefixes", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "computation", "prefix", name=op.f("pk_prefixes")),
    )
    op.create_table(
        "renderings",
        *ids("run_id"),
        *required_texts("subject", "path"),
        *numbers("nbytes", "created_us", "upto"),
        *texts("version"),
        reference("renderings", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "subject", name=op.f("pk_renderings")),
        sa.UniqueConstraint("path", name=op.f("uq_renderings_path")),
    )
    op.create_table(
        "streams",
        *ids("run_id"),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        *required_texts("name"),
        *numbers("rows", "kept", "dropped", "first", "dropped_before"),
        reference("streams", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "epoch", "name", name=op.f("pk_streams")),
    )
    op.create_table(
        "timeline",
        *ids("run_id"),
        sa.Column("bucket", sa.BigInteger(), nullable=False),
        *numbers("tasks", "errors", "compute_us", "transfer_us"),
        reference("timeline", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "bucket", name=op.f("pk_timeline")),
    )
    op.create_table(
        "workers",
        *ids("run_id"),
        *required_texts("server_id"),
        *texts("worker", "name", "host"),
        *numbers("seen_us", "nthreads", "memory_limit", "start_us", "end_us"),
        *texts("verdict", "evidence"),
        *numbers("processing_count", "lost_count"),
        reference("workers", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", "server_id", name=op.f("pk_workers")),
    )
