"""Tokens know which token they were made with, runs the most they had at once, and what ended lately is found by its time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

#: As ``storage.capacity`` adds it up. In doubles and cut at 2⁵³: what hostile rows claim need not fit into 64 bits.
PEAK = """
UPDATE runs SET {peak} = coalesce((
    SELECT CASE WHEN max(there) > 9007199254740992 THEN 9007199254740992 ELSE CAST(max(there) AS BIGINT) END FROM (
        SELECT sum(change) OVER (ORDER BY at_us, change ROWS UNBOUNDED PRECEDING) AS there FROM (
            SELECT start_us AS at_us, CAST({amount} AS DOUBLE PRECISION) AS change FROM workers WHERE run_id = runs.id
            UNION ALL
            SELECT end_us, -CAST({amount} AS DOUBLE PRECISION) FROM workers WHERE run_id = runs.id AND end_us > 0
        ) AS changes
    ) AS sums
), 0)
"""


def upgrade() -> None:
    # Recorders' tokens of before have none: they end with their 90 days.
    op.add_column("tokens", sa.Column("parent", sa.BigInteger(), server_default="0", nullable=False))
    op.create_index("ix_tokens_parent", "tokens", ["parent"])
    op.create_index("ix_computations_account_id_seen_us", "computations", ["account_id", "seen_us"])
    for peak, amount in (("peak_workers", "1"), ("peak_threads", "nthreads"), ("peak_memory_limit", "memory_limit")):
        op.add_column("runs", sa.Column(peak, sa.BigInteger(), server_default="0", nullable=False))
        op.execute(PEAK.format(peak=peak, amount=amount))
