"""Runs have the number of tasks being executed and of paused workers, and since when no task has started."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("tasks_executing", "workers_paused", "stalled_since_us"):
        op.add_column("runs", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
