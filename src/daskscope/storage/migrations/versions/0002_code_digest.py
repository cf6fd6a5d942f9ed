"""Computations know the digest of their code, so that earlier runs of the same code are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from daskscope.storage.schema.base import Words

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INDEX = "ix_computations_account_id_code_digest_start_us"


def upgrade() -> None:
    # Computations of before have none: their code is sealed, and they are told apart by nothing.
    op.add_column("computations", sa.Column("code_digest", Words(), server_default="", nullable=False))
    op.create_index(INDEX, "computations", ["account_id", "code_digest", "start_us"])
