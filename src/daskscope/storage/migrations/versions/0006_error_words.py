"""Error groups are searched by hashes of their words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("error_groups", sa.Column("is_indexed", sa.BigInteger(), server_default="0", nullable=False))
    op.create_index("ix_error_groups_is_indexed", "error_groups", ["is_indexed"])
    op.create_table(
        "error_words",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("word", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "fingerprint"],
            ["error_groups.account_id", "error_groups.fingerprint"],
            name="fk_error_words_account_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", "word", "fingerprint", name="pk_error_words"),
    )
    op.create_index("ix_error_words_account_id_fingerprint", "error_words", ["account_id", "fingerprint"])
