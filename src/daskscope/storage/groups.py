"""Groups of failures lose the failures of a run that is deleted."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import in_steps
from daskscope.storage.sums import summed


def uncount(connection: Connection, account: int, run: int) -> None:
    """Take a run's failures out of their groups, and with them any text of theirs that stands for a group.

    A group without failures goes, unless somebody decided about it: what was ignored stays ignored when it comes back.
    """
    table, groups = schema.exceptions, schema.error_groups
    counted = (
        sa.select(table.c.fingerprint, summed(table.c.count).label("n"))
        .where(table.c.run_id == run)
        .group_by(table.c.fingerprint)
    )
    lost = {row.fingerprint: row.n for row in connection.execute(counted)}
    locked = sa.select(groups).where(groups.c.account_id == account).order_by(groups.c.fingerprint).with_for_update()
    for part in in_steps(sorted(lost)):
        for group in connection.execute(locked.where(groups.c.fingerprint.in_(part))).all():
            mine = (groups.c.account_id == account) & (groups.c.fingerprint == group.fingerprint)
            others = (
                (table.c.account_id == account) & (table.c.fingerprint == group.fingerprint) & (table.c.run_id != run)
            )
            query = sa.select(table.c.time_us, table.c.sealed_text).where(others)
            newest = connection.execute(query.order_by(table.c.time_us.desc()).limit(20)).all()
            if not newest and group.state in ("open", "regressed"):
                connection.execute(sa.delete(groups).where(mine))
                continue
            values = {
                "count": max(0, group.count - lost[group.fingerprint]),
                "last_us": newest[0].time_us if newest else 0,
                # The longest has a traceback, which repeats of a failure are sent without.
                "sealed_sample": max((row.sealed_text or b"" for row in newest), key=len, default=None) or None,
            }
            connection.execute(sa.update(groups).where(mine).values(values))
