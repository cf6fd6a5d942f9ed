"""Builds of documents in progress, so that servers do not build one twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "builds",
        sa.Column("run_id", Id, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("builder", sa.Text(), server_default="", nullable=False),
        sa.Column("until_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_builds_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "subject", name="pk_builds"),
    )
