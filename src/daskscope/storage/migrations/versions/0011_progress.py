"""Running computations have the states of their prefixes, runs the longest-running tasks and the last request for stacks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("longest_running", sa.Text(), server_default="", nullable=False))
    op.add_column("computations", sa.Column("prefix_states", sa.Text(), server_default="", nullable=False))
    op.add_column("runs", sa.Column("stacks_asked_us", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("stacks_asked_of", sa.Text(), server_default="", nullable=False))
