"""The catalog of 0.1.0, which ``create_all`` makes."""

from __future__ import annotations

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
