"""The clusters and users of a group of failures are read in the order in which they are counted."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_exceptions_account_id_fingerprint_run_id_user", "exceptions")
    columns = ["account_id", "fingerprint", "user", "run_id"]
    op.create_index("ix_exceptions_account_id_fingerprint_user_run_id", "exceptions", columns)
