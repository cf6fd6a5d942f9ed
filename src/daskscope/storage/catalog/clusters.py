"""Clusters: filtered lists, one cluster by ID, its workers, clients and prefixes, and its history."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import sqlalchemy as sa

from daskscope.analysis.running.rollup import BUCKET_FIELDS, Sums
from daskscope.analysis.running.still_running import ClientStatus, RunStatus
from daskscope.analysis.timeline import Steps
from daskscope.model.recording import Array
from daskscope.model.states import LIVE_STATES, LOST_VERDICTS, RunState
from daskscope.model.untrusted import clean_text
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import of_row
from daskscope.storage.catalog.code_texts import remove_unused_codes
from daskscope.storage.catalog.error_groups import remove_errors


@dataclass(frozen=True, slots=True)
class Cluster(RunStatus):
    """A run and the sums over its batches."""

    id: int = 0
    cluster: str = ""
    name: str = ""
    user: str = ""
    host: str = ""
    address: str = ""
    #: JSON, as the recorder sent it or a user changed it.
    tags: str = ""
    prices: str = ""
    dropped: str = ""
    platform: str = ""
    versions: str = ""
    config: str = ""
    state: RunState = "running"
    created_us: int = 0
    recording_us: int = 0
    memory: int = 0
    memory_limit: int = 0
    tasks: int = 0
    errors: int = 0
    exceptions: int = 0
    computations: int = 0
    thread_us: int = 0
    memory_byte_s: float = 0.0
    compute_us: int = 0
    transfer_us: int = 0
    disk_us: int = 0
    nbytes: int = 0
    #: JSON array: the tasks that have been running longest.
    longest_running: str = ""
    stacks_asked_us: int = 0
    stacks_asked_of: str = ""

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_STATES


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker with its last sample."""

    server_id: str
    worker: str
    name: str
    host: str
    nthreads: int
    memory_limit: int
    start_us: int
    end_us: int
    verdict: str
    evidence: str
    processing_count: int
    lost_count: int
    #: None if it was not sampled.
    memory: int | None
    cpu_percent: float | None


@dataclass(frozen=True)
class ClusterFilter:
    """Filters for the clusters of an account. They apply before the limit."""

    since_us: int = 0
    user: str = ""
    states: tuple[str, ...] = ()
    search: str = ""
    tag: str = ""
    #: The name must be equal; None: any name.
    name: str | None = None
    #: Only clusters that lost workers.
    lost_workers: bool = False
    limit: int = 100
    #: An integer column, largest first unless ``up``.
    sort: str = "start_us"
    up: bool = False
    #: Where the previous page ended: the sort value and the number of its last run.
    after: tuple[int, int] | None = None


#: States of runs that have not ended, as far as the server knows.
OPEN_STATES = frozenset((*LIVE_STATES, "lost"))


def state_of(lost_before_us: Any) -> Any:
    """Return the SQL expression for a run's current state. No update is needed for a run to become lost.

    A cluster that was closed in order may have failed: its computations say how its work ended.
    """
    runs, recorded = schema.runs, schema.computations.c.state
    is_live = runs.c.end_us == 0
    return sa.case(
        (sa.and_(is_live, runs.c.received_us < lost_before_us), "lost"),
        (sa.and_(is_live, runs.c.idle_since_us > 0), "idle"),
        (is_live, "running"),
        (runs.c.errors > 0, "failed"),
        # Most runs. To look for the other states first would read all computations several times.
        (~_has_computation(recorded != "done"), "finished"),
        (_has_computation(recorded == "erred"), "failed"),
        # A computation that still ran at the end did not finish.
        (_has_computation(recorded.in_(("lost", "running"))), "unfinished"),
        else_="interrupted",
    )


def _has_computation(condition: Any) -> Any:
    """Return the SQL condition that a run has a computation with a condition."""
    runs, table = schema.runs, schema.computations
    return sa.exists().where(table.c.run_id == runs.c.id, condition).correlate(runs)


def list_clusters(tx: Transaction, account: int, wanted: ClusterFilter) -> list[Cluster]:
    """Return the clusters of an account, newest first unless sorted otherwise."""
    runs, state = schema.runs, state_of(tx.lost_before_us)
    query = sa.select(runs, state.label("state")).where(runs.c.account_id == account)
    query = query.where(*conditions_of(wanted, state))
    key = runs.c[wanted.sort]
    if wanted.after is not None:
        value, number = wanted.after
        beyond = (key > value, runs.c.id > number) if wanted.up else (key < value, runs.c.id < number)
        query = query.where(sa.or_(beyond[0], sa.and_(key == value, beyond[1])))
    order = (key.asc(), runs.c.id.asc()) if wanted.up else (key.desc(), runs.c.id.desc())
    return tx.rows(Cluster, query.order_by(*order).limit(wanted.limit))


def conditions_of(wanted: ClusterFilter, state: Any) -> list[Any]:
    """Return the SQL conditions of a filter."""
    runs, workers = schema.runs, schema.workers
    conditions = []
    if wanted.since_us:
        # A run that started earlier but was still running counts.
        conditions.append(runs.c.received_us >= wanted.since_us)
    if wanted.user:
        conditions.append(runs.c.user == wanted.user)
    if wanted.states:
        conditions.append(state.in_(wanted.states))
        if set(wanted.states) <= OPEN_STATES:
            # An index finds these few among thousands that ended.
            conditions.append(runs.c.end_us == 0)
    if wanted.search:
        columns = (runs.c.name, runs.c.cluster, runs.c.user, runs.c.host)
        conditions.append(sa.or_(*(has(column, wanted.search) for column in columns)))
    if wanted.tag:
        conditions.append(runs.c.tags.contains(json.dumps(wanted.tag), autoescape=True))
    if wanted.name is not None:
        conditions.append(runs.c.name == wanted.name)
    if wanted.lost_workers:
        conditions.append(runs.c.id.in_(sa.select(workers.c.run_id).where(workers.c.verdict.in_(LOST_VERDICTS))))
    return conditions


def has(column: Any, search: str) -> Any:
    """Return the SQL condition that a column contains a text, ignoring case."""
    wanted = clean_text(search, len(search)).lower()
    return sa.func.lower(column).contains(wanted, autoescape=True)


def count_clusters(tx: Transaction, account: int, wanted: ClusterFilter | None = None) -> dict[str, int]:
    """Count the clusters of an account, or the ones that a filter selects, by state."""
    state = state_of(tx.lost_before_us).label("state")
    query = sa.select(state, sa.func.count().label("n")).where(schema.runs.c.account_id == account)
    query = query.where(*conditions_of(wanted or ClusterFilter(), state)).group_by(state)
    return {row.state: row.n for row in tx.execute(query)}


def find_cluster(tx: Transaction, account: int, cluster: str) -> Cluster | None:
    wanted = {"account": account, "cluster": cluster, "lost_before": tx.lost_before_us}
    return tx.row(Cluster, _by_name(), wanted)


def recording_user(tx: Transaction, account: int, cluster: str) -> str | None:
    """Return the user who records a cluster; None if the cluster is unknown."""
    user: str | None = tx.execute(_user_of(), {"account": account, "cluster": cluster}).scalar()
    return user


@functools.cache
def _user_of() -> Any:
    runs = schema.runs
    mine = (runs.c.account_id == sa.bindparam("account")) & (runs.c.cluster == sa.bindparam("cluster"))
    return sa.select(runs.c.user).where(mine)


@functools.cache
def _by_name() -> Any:
    """Build the statement once: that takes longer than running it, and every page of a cluster needs it."""
    runs, lost_before = schema.runs, sa.bindparam("lost_before", type_=sa.BigInteger)
    query = sa.select(runs, state_of(lost_before).label("state"))
    return query.where(runs.c.account_id == sa.bindparam("account"), runs.c.cluster == sa.bindparam("cluster"))


def change_cluster(tx: Transaction, run: int, values: dict[str, Any]) -> None:
    """Change the name or tags; ``values`` are columns."""
    tx.execute(sa.update(schema.runs).where(schema.runs.c.id == run).values(values))


def clients_of(tx: Transaction, run: int) -> list[ClientStatus]:
    clients = schema.clients
    return tx.rows(ClientStatus, sa.select(clients).where(clients.c.run_id == run).order_by(clients.c.connect_us))


def workers_of(tx: Transaction, run: int) -> list[Worker]:
    workers, memories = schema.workers, schema.memories
    query = (
        sa.select(workers, memories.c.memory, memories.c.cpu_percent)
        .outerjoin(memories, (memories.c.run_id == workers.c.run_id) & (memories.c.worker == workers.c.worker))
        .where(workers.c.run_id == run)
        .order_by(workers.c.start_us, workers.c.server_id)
    )
    return tx.rows(Worker, query)


def prefixes_of(tx: Transaction, run: int, computation: str | None = None) -> list[tuple[str, Sums]]:
    """Return every prefix of a computation or of the whole run, with its sums."""
    prefixes = schema.prefixes
    names = [item.name for item in fields(Sums)]
    # 0 means no time.
    first = sa.func.coalesce(sa.func.min(sa.func.nullif(prefixes.c.first_us, 0)), 0)
    extremes = {"first_us": first} | {name: sa.func.max(prefixes.c[name]) for name in ("last_us", "longest_us")}
    sums = [extremes[name].label(name) if name in extremes else summed(prefixes.c[name]).label(name) for name in names]
    query = sa.select(prefixes.c.prefix, *sums).where(prefixes.c.run_id == run).group_by(prefixes.c.prefix)
    if computation is not None:
        query = query.where(prefixes.c.computation == computation)
    query = query.order_by(sa.desc("compute_us"), prefixes.c.prefix)
    return [(row["prefix"], of_row(Sums, row)) for row in tx.execute(query).mappings()]


def activities_of(tx: Transaction, run: int) -> list[dict[str, Any]]:
    activities = schema.activities
    query = sa.select(activities).where(activities.c.run_id == run).order_by(activities.c.value.desc())
    return [{k: v for k, v in row.items() if k != "run_id"} for row in tx.execute(query).mappings()]


#: Rows to delete in one transaction, and errors, each of which may be the last of its group. Deleting 60,000 error groups
#: at once kept all other writes waiting for 8 s.
STEP_ROWS, STEP_ERRORS = 5_000, 500


def remove_cluster(archive: Archive, run: int, record: Callable[[Transaction], None] = lambda _: None) -> None:
    """Delete a run in many short transactions, and then its blobs. It is listed until the last of them.

    ``record`` is called in the last transaction.
    """
    while True:
        with archive.write() as tx:
            if not _delete_step(tx, run):
                break
    with archive.write() as tx:
        paths = delete_cluster(tx, run)
        record(tx)
    # After the commit: a file without a row is swept later, a row without a file is a loss.
    for path in paths:
        archive.store.delete(path)


def _delete_step(tx: Transaction, run: int) -> bool:
    """Delete some rows of a run. Return whether there may be more."""
    account = _locked_account(tx, run)
    if account is None:
        return False
    if remove_errors(tx, account, run, STEP_ERRORS) == STEP_ERRORS:
        return True
    for table in _tables_of_runs():
        key = sa.tuple_(*table.primary_key)
        some = sa.select(*table.primary_key).where(table.c.run_id == run).limit(STEP_ROWS)
        # A file is deleted with its row at the end.
        if "path" not in table.c and tx.execute(sa.delete(table).where(key.in_(some))).rowcount == STEP_ROWS:
            return True
    return False


def delete_cluster(tx: Transaction, run: int) -> list[str]:
    """Delete a run from the catalog and return the paths of the blobs it named."""
    account = _locked_account(tx, run)
    if account is None:
        return []
    while remove_errors(tx, account, run, STEP_ERRORS):
        pass
    paths = [
        path for table in (schema.files, schema.documents, schema.replaced_files) for path in _paths(tx, table, run)
    ]
    for table in _tables_of_runs():
        tx.execute(sa.delete(table).where(table.c.run_id == run))
    tx.execute(sa.delete(schema.runs).where(schema.runs.c.id == run))
    remove_unused_codes(tx, account)
    return paths


def _locked_account(tx: Transaction, run: int) -> int | None:
    """Lock a run first, as everywhere, to wait for a batch or compaction in progress. Return its account if it exists."""
    locked = sa.select(schema.runs.c.account_id).where(schema.runs.c.id == run).with_for_update()
    return tx.execute(locked).scalar()


def _tables_of_runs() -> list[sa.Table]:
    return [table for table in reversed(schema.metadata.sorted_tables) if "run_id" in table.c]


def _paths(tx: Transaction, table: sa.Table, run: int) -> list[str]:
    return list(tx.execute(sa.select(table.c.path).where(table.c.run_id == run)).scalars())


def sums_of(tx: Transaction, run: int, steps: Steps) -> dict[str, Array]:
    """Return the sums of what ended in each step."""
    table, start, stop = schema.timeline, steps.start_us, int(steps.edges[-1])
    number = ((table.c.bucket - start) // steps.step_us).label("step")
    query = (
        sa.select(number, *(summed(table.c[name]).label(name) for name in BUCKET_FIELDS))
        .where(table.c.run_id == run, table.c.bucket >= start, table.c.bucket < stop)
        .group_by(number)
    )
    result = {name: np.zeros(steps.count) for name in BUCKET_FIELDS}
    for row in tx.execute(query).mappings():
        for name in BUCKET_FIELDS:
            result[name][row["step"]] = row[name]
    return result


def life_of(run: Cluster) -> tuple[int, int]:
    """Return when the recording of a run began, as in its document, and when it ended or was last seen."""
    start = run.recording_us or run.start_us or run.created_us
    return start, max(start, run.end_us or run.seen_us)


SECOND = 1_000_000
#: Executions arrive more often than the row of their cluster, which comes every ten seconds. Far newer ones have another clock.
MAX_NEWER_US = 60 * SECOND


def is_newer_work(seen_us: Any, last_work_us: Any) -> Any:
    """Return whether executions say for how long a run is known, and not the row of its cluster: of numbers, and of columns."""
    return (last_work_us > seen_us) & (last_work_us - MAX_NEWER_US <= seen_us)


def known_until_us(run: Cluster) -> int:
    """Return the time up to which rows of a run have arrived. Its capacity and its executions count until then."""
    return run.last_work_us if is_newer_work(run.seen_us, run.last_work_us) else run.seen_us


#: A request for stacks is repeated in responses to batches for this long. A recorder answers it once.
STACKS_WAIT_US = 30 * SECOND
#: The shortest time between two requests for the stacks of a cluster.
STACKS_PAUSE_US = 3 * SECOND
#: Columns of a run that ``requests_of`` reads.
COLUMNS = ("cluster", "close_us", "end_us", "stacks_asked_us", "stacks_asked_of")


@dataclass(frozen=True)
class UserRequests:
    """What users ask of a cluster: to close, and when they asked for the stacks of which worker (empty: all)."""

    cluster: str
    is_closing: bool
    #: 0 without a request for stacks.
    stacks_asked_us: int
    stacks_asked_of: str


def requests_of(row: Any, now_us: int) -> UserRequests | None:
    """Return the requests in a row of ``runs``; None if there are none."""
    if row.end_us:
        return None
    stacks_asked_us = row.stacks_asked_us if row.stacks_asked_us > now_us - STACKS_WAIT_US else 0
    if not (row.close_us or stacks_asked_us):
        return None
    return UserRequests(row.cluster, row.close_us > 0, stacks_asked_us, row.stacks_asked_of)


def ask_to_close(tx: Transaction, run: int) -> None:
    """Ask a cluster to shut down."""
    tx.execute(sa.update(schema.runs).where(schema.runs.c.id == run).values(close_us=tx.now_us))


def ask_for_stacks(tx: Transaction, run: int, worker: str) -> int:
    """Ask for the current stacks. Return the request; 0 if the last one is too recent."""
    runs = schema.runs
    is_due = runs.c.stacks_asked_us <= tx.now_us - STACKS_PAUSE_US
    values = {"stacks_asked_us": tx.now_us, "stacks_asked_of": worker}
    is_asked = tx.execute(sa.update(runs).where(runs.c.id == run, is_due).values(values)).rowcount
    return tx.now_us if is_asked else 0
