"""Baselines of benchmarks, for CI machines that are thrown away."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "baselines",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("repeats", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("changed_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("user", sa.Text(), server_default="", nullable=False),
        sa.Column("nbytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sealed_runs", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_baselines_account_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("account_id", "name", "test", name="pk_baselines"),
    )
