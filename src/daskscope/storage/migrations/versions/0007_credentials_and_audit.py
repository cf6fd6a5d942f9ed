"""Sessions are bound to a page's secret, device sign-ins say who asks, and there are sign-in links and an audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # A session without a page secret cannot be used: everyone signs in again.
    op.execute("DELETE FROM sessions")
    for name in ("page_digest", "address"):
        op.add_column("sessions", sa.Column(name, sa.Text(), server_default="", nullable=False))
    op.add_column("sessions", sa.Column("by_link", sa.BigInteger(), server_default="0", nullable=False))
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    for name in ("address", "host", "scopes"):
        op.add_column("logins", sa.Column(name, sa.Text(), server_default="", nullable=False))
    op.create_table(
        "sign_in_links",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("sets_password", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("expires_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sign_in_links_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name="pk_sign_in_links"),
    )
    op.create_table(
        "audit_events",
        sa.Column("id", Id, nullable=False),
        sa.Column("time_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("account_id", sa.BigInteger(), server_default="0", nullable=False),
        *(
            sa.Column(name, sa.Text(), server_default="", nullable=False)
            for name in ("user", "action", "subject", "address", "details")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_account_id_id", "audit_events", ["account_id", "id"])
    op.create_index("ix_audit_events_time_us", "audit_events", ["time_us"])
