"""Runs as people ask for them: lists with filters, one by its id, and what they were doing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.rollup import clean_text
from daskscope.storage import schema
from daskscope.storage.groups import uncount
from daskscope.storage.sums import summed

STATES = ("running", "idle", "finished", "lost")
Row = dict[str, Any]


@dataclass(frozen=True)
class ClusterFilter:
    """Which runs of an account; filters come before the limit."""

    since_us: int = 0
    user: str = ""
    states: tuple[str, ...] = ()
    search: str = ""
    tag: str = ""
    limit: int = 100
    #: A column with whole numbers, the largest first unless ``up``.
    sort: str = "start_us"
    up: bool = False
    #: Where the page before ended: of its last run what is sorted by, and the number.
    after: tuple[int, int] | None = None


def state_of(now_us: int, lost_after_us: int) -> Any:
    """A run's state at this moment, as SQL. Nothing has to be updated for a run to become lost."""
    runs = schema.runs
    return sa.case(
        (runs.c.end_us > 0, "finished"),
        (runs.c.received_us < now_us - lost_after_us, "lost"),
        (runs.c.idle_since_us > 0, "idle"),
        else_="running",
    )


def list_clusters(
    connection: Connection, account: int, wanted: ClusterFilter, now_us: int, lost_after_us: int
) -> list[Row]:
    """Runs of an account, in the order that is wanted: the newest first, unless something else is."""
    runs, state = schema.runs, state_of(now_us, lost_after_us)
    query = sa.select(runs, state.label("state")).where(runs.c.account_id == account)
    query = query.where(*_conditions(wanted, state))
    key = runs.c[wanted.sort]
    if wanted.after is not None:
        value, number = wanted.after
        beyond = (key > value, runs.c.id > number) if wanted.up else (key < value, runs.c.id < number)
        query = query.where(sa.or_(beyond[0], sa.and_(key == value, beyond[1])))
    order = (key.asc(), runs.c.id.asc()) if wanted.up else (key.desc(), runs.c.id.desc())
    query = query.order_by(*order).limit(wanted.limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def _conditions(wanted: ClusterFilter, state: Any) -> list[Any]:
    runs = schema.runs
    conditions = []
    if wanted.since_us:
        # A run that started earlier but was still there counts.
        conditions.append(runs.c.received_us >= wanted.since_us)
    if wanted.user:
        conditions.append(runs.c.user == wanted.user)
    if wanted.states:
        conditions.append(state.in_(wanted.states))
    if wanted.search:
        columns = (runs.c.name, runs.c.cluster, runs.c.user, runs.c.host)
        conditions.append(sa.or_(*(has(column, wanted.search) for column in columns)))
    if wanted.tag:
        conditions.append(runs.c.tags.contains(json.dumps(wanted.tag), autoescape=True))
    return conditions


def has(column: Any, search: str) -> Any:
    """Whether a column has a text in it, in whichever case."""
    wanted = clean_text(search, len(search)).lower()
    return sa.func.lower(column).contains(wanted, autoescape=True)


def count_clusters(connection: Connection, account: int, now_us: int, lost_after_us: int) -> dict[str, int]:
    """Runs of an account by state."""
    state = state_of(now_us, lost_after_us).label("state")
    query = sa.select(state, sa.func.count().label("n")).where(schema.runs.c.account_id == account).group_by(state)
    return {row.state: row.n for row in connection.execute(query)}


def find_cluster(connection: Connection, account: int, cluster: str, now_us: int, lost_after_us: int) -> Row | None:
    runs = schema.runs
    query = sa.select(runs, state_of(now_us, lost_after_us).label("state")).where(
        runs.c.account_id == account, runs.c.cluster == cluster
    )
    row = connection.execute(query).mappings().one_or_none()
    return dict(row) if row is not None else None


def close_asked(connection: Connection, account: int, clusters: set[str]) -> bool:
    """Whether somebody asked one of the clusters to shut down."""
    runs = schema.runs
    mine = (runs.c.account_id == account) & runs.c.cluster.in_(sorted(clusters)) & (runs.c.close_us > 0)
    return connection.execute(sa.select(runs.c.id).where(mine, runs.c.end_us == 0).limit(1)).scalar() is not None


def change_cluster(connection: Connection, run: int, values: dict[str, Any]) -> None:
    """Put a name or tags in place of what they were; ``values`` are columns."""
    connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run).values(values))


def ask_to_close(connection: Connection, run: int, now_us: int) -> None:
    """Have the cluster told, in the answer to its next batch, to shut down."""
    connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run).values(close_us=now_us))


def clients_of(connection: Connection, run: int) -> list[Row]:
    clients = schema.clients
    query = sa.select(clients).where(clients.c.run_id == run).order_by(clients.c.connect_us)
    return [dict(row) for row in connection.execute(query).mappings()]


def workers_of(connection: Connection, run: int) -> list[Row]:
    workers, memories = schema.workers, schema.memories
    query = (
        sa.select(workers, memories.c.memory, memories.c.cpu_percent)
        .outerjoin(memories, (memories.c.run_id == workers.c.run_id) & (memories.c.worker == workers.c.worker))
        .where(workers.c.run_id == run)
        .order_by(workers.c.start_us, workers.c.server_id)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def prefixes_of(connection: Connection, run: int, computation: str | None = None) -> list[Row]:
    """Sums by prefix of a computation, or of the whole run."""
    prefixes = schema.prefixes
    names = [c.name for c in prefixes.c if c.name not in ("run_id", "computation", "prefix")]
    # 0 is no time.
    first = sa.func.coalesce(sa.func.min(sa.func.nullif(prefixes.c.first_us, 0)), 0)
    extremes = {"first_us": first} | {name: sa.func.max(prefixes.c[name]) for name in ("last_us", "longest_us")}
    sums = [extremes[name].label(name) if name in extremes else summed(prefixes.c[name]).label(name) for name in names]
    query = sa.select(prefixes.c.prefix, *sums).where(prefixes.c.run_id == run).group_by(prefixes.c.prefix)
    if computation is not None:
        query = query.where(prefixes.c.computation == computation)
    query = query.order_by(sa.desc("compute_us"), prefixes.c.prefix)
    return [dict(row) for row in connection.execute(query).mappings()]


def activities_of(connection: Connection, run: int) -> list[Row]:
    activities = schema.activities
    query = sa.select(activities).where(activities.c.run_id == run).order_by(activities.c.value.desc())
    return [{k: v for k, v in row.items() if k != "run_id"} for row in connection.execute(query).mappings()]


def delete_cluster(connection: Connection, run: int) -> list[str]:
    """Delete everything of a run from the catalog; the paths of the blobs that nobody names any more."""
    # First of all, as everywhere: a batch or a compaction of it that is under way is waited for.
    locked = sa.select(schema.runs.c.account_id).where(schema.runs.c.id == run).with_for_update()
    account = connection.execute(locked).scalar()
    if account is None:
        return []
    uncount(connection, account, run)
    paths = [*_paths(connection, schema.files, run), *_paths(connection, schema.renderings, run)]
    for table in reversed(schema.metadata.sorted_tables):
        if "run_id" in table.c:
            connection.execute(sa.delete(table).where(table.c.run_id == run))
    connection.execute(sa.delete(schema.runs).where(schema.runs.c.id == run))
    return paths


def _paths(connection: Connection, table: sa.Table, run: int) -> list[str]:
    return list(connection.execute(sa.select(table.c.path).where(table.c.run_id == run)).scalars())
