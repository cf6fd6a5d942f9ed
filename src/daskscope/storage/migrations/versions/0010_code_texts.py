"""Code texts are stored once per content. The server moves those of earlier computations in the background."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "code_texts",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_code_texts_account_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("account_id", "digest", name="pk_code_texts"),
    )
    op.add_column("computations", sa.Column("code_text", sa.Text(), server_default="", nullable=False))
    op.create_index("ix_computations_account_id_code_text", "computations", ["account_id", "code_text"])
