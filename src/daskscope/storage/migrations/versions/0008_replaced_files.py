"""Replaced files are kept for a while."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "replaced_files",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("run_id", Id, nullable=False),
        sa.Column("delete_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_replaced_files_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("path", name="pk_replaced_files"),
    )
    op.create_index("ix_replaced_files_delete_us", "replaced_files", ["delete_us"])
    op.create_index("ix_replaced_files_run_id", "replaced_files", ["run_id"])
