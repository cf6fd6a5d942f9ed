"""The one transaction that makes batches durable and counts them once.

A batch is known by its run, epoch and number. The runs' rows are locked first, in their order, so that of two servers that
get the same batch one waits and then finds it there. Whatever else changes a run (a compaction, a deletion) takes the same
lock before any other. A batch below its epoch's floor was compacted long ago. Whatever is fresh is stored as
it came, and its roll-up added to the sums, in the same transaction: after the commit it is all there, before it nothing is.

Statements are by table, never by cluster: a group of a hundred clusters takes as many as one of a single cluster.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.rollup import BUCKET_FIELDS, DAY_FIELDS, RollUp
from daskscope.storage import schema
from daskscope.storage.capacity import update_capacity, update_peaks
from daskscope.storage.database import in_steps, insert
from daskscope.storage.failures import record_failures
from daskscope.storage.sums import saturated
from daskscope.storage.upsert import Row, accumulate, replace_older
from daskscope.storage.vault import Vault
from daskscope.units import DAY
from daskscope.wire.decode import Header

#: Tables whose batches hold code, tracebacks or lines of logs: stored sealed.
SECRET = frozenset({"computations", "exceptions", "logs", "windows", "events"})

#: The difference of two clocks is thought to grow by at most one part in so many: a second in a quarter of an hour.
DRIFT = 1_000

#: Workers, or clients, that are kept of a run; adding up 50,000 takes a third of a second. Further ones are not listed.
MOST_ENTITIES = 50_000
#: How far ahead of ours a scheduler's clock may be. A row from beyond would be the newest for ever.
MOST_AHEAD_US = DAY

#: The largest number a column holds; a header's counters may be as large.
MOST = 2**63 - 1

RunKey = tuple[int, str]
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Batch:
    """A checked batch on its way in."""

    account: int
    #: The user of the token; empty in local mode, where the recorder's word is taken.
    user: str
    header: Header
    frame: bytes
    roll_up: RollUp
    #: When it came on our clock less when it was sent on the scheduler's; 0: a recorder that does not say when it sends.
    delay_us: int = 0

    @property
    def run_key(self) -> RunKey:
        return self.account, self.header.cluster


@dataclass
class Arrival:
    """What is fresh of one run."""

    run: int
    account: int
    user: str
    batches: list[Batch]
    total: RollUp

    @property
    def nbytes(self) -> int:
        return sum(len(batch.frame) for batch in self.batches)

    @property
    def delay_us(self) -> int:
        """The least delay, which is nearest to the difference of the clocks; 0 where none is known."""
        return min((batch.delay_us for batch in self.batches if batch.delay_us), default=0)


def take(connection: Connection, vault: Vault, batches: Sequence[Batch], now_us: int) -> list[bool]:
    """Store what is fresh among ``batches`` and add it up; for each whether it was."""
    runs = _runs(connection, batches, now_us)
    places = [(runs[b.run_key], b.header.epoch, b.header.sequence) for b in batches]
    known = _known(connection, places)
    fresh: list[bool] = []
    arrivals: dict[int, Arrival] = {}
    for batch, place in zip(batches, places, strict=True):
        fresh.append(place not in known)
        if fresh[-1]:
            known.add(place)
            arrival = arrivals.setdefault(place[0], Arrival(place[0], batch.account, batch.user, [], RollUp()))
            arrival.batches.append(batch)
            arrival.total.add(batch.roll_up)
    _epochs(connection, [place for place, new in zip(places, fresh, strict=True) if new])
    if arrivals:
        _store(connection, vault, list(arrivals.values()), now_us)
    # A batch that is a duplicate is a sign of life all the same.
    silent = sorted(set(runs.values()) - arrivals.keys())
    for part in in_steps(silent):
        connection.execute(sa.update(schema.runs).where(schema.runs.c.id.in_(part)).values(received_us=now_us))
    return fresh


def _runs(connection: Connection, batches: Sequence[Batch], now_us: int) -> dict[RunKey, int]:
    """The numbers of the batches' runs, locked; a run is made by its first batch."""
    runs = schema.runs
    wanted = {batch.run_key: batch.user for batch in reversed(batches)}

    def found() -> dict[RunKey, int]:
        mine = _locked().where(runs.c.account_id.in_(sorted({account for account, _ in wanted})))
        clusters = sorted({cluster for _, cluster in wanted})
        rows = [row for part in in_steps(clusters) for row in connection.execute(mine.where(runs.c.cluster.in_(part)))]
        return {(row.account_id, row.cluster): row.id for row in rows}

    known = found()
    new = [
        {"account_id": account, "cluster": cluster, "user": user, "created_us": now_us, "received_us": now_us}
        for (account, cluster), user in sorted(wanted.items())
        if (account, cluster) not in known
    ]
    if new:
        # Another server may just have made one of them.
        connection.execute(insert(connection, runs).on_conflict_do_nothing(), new)
        known = found()
    return {key: known[key] for key in wanted}


def _locked() -> sa.Select[tuple[int, int, str]]:
    """Runs, kept from being changed by others until the transaction ends."""
    runs = schema.runs
    return sa.select(runs.c.id, runs.c.account_id, runs.c.cluster).order_by(runs.c.id).with_for_update(key_share=True)


def lock_run(connection: Connection, run: int) -> bool:
    """Keep others from changing a run until the transaction ends; whether it is still there."""
    return connection.execute(_locked().where(schema.runs.c.id == run)).one_or_none() is not None


def _known(connection: Connection, places: Sequence[Place]) -> set[Place]:
    """Of the given batches those that were taken before."""
    epochs, stored = schema.epochs, schema.batches
    numbers = sorted({run for run, _, _ in places})
    floors: dict[tuple[int, int], int] = {}
    query = sa.select(epochs.c.run_id, epochs.c.epoch, epochs.c.floor)
    for part in in_steps(numbers):
        for row in connection.execute(query.where(epochs.c.run_id.in_(part))):
            floors[row.run_id, row.epoch] = row.floor
    known = {place for place in places if place[2] < floors.get(place[:2], 0)}
    taken = sa.select(stored.c.run_id, stored.c.epoch, stored.c.sequence)
    for part in in_steps(numbers):
        mine = set(part)
        for sequences in in_steps(sorted({sequence for run, _, sequence in places if run in mine})):
            where = stored.c.run_id.in_(part) & stored.c.sequence.in_(sequences)
            known |= {(row.run_id, row.epoch, row.sequence) for row in connection.execute(taken.where(where))}
    return known


def _epochs(connection: Connection, places: Sequence[Place]) -> None:
    rows: dict[tuple[int, int], Row] = {}
    for run, epoch, sequence in places:
        empty = {"run_id": run, "epoch": epoch, "highest": 0, "lowest": 0, "taken": 0, "from_start": 0}
        row = rows.setdefault((run, epoch), empty)
        row["taken"] += 1
        row["highest"] = max(row["highest"], sequence)
        row["lowest"] = min(row["lowest"] or MOST, sequence + 1, MOST)
        row["from_start"] |= int(sequence == 0)
    accumulate(connection, schema.epochs, list(rows.values()), least=("lowest",), greatest=("highest", "from_start"))


def _store(connection: Connection, vault: Vault, arrivals: list[Arrival], now_us: int) -> None:
    rows = [_batch_row(connection, vault, a.run, batch, now_us) for a in arrivals for batch in a.batches]
    connection.execute(sa.insert(schema.batches), rows)
    _streams(connection, arrivals)
    _sums(connection, arrivals)
    _entities(connection, vault, arrivals)
    _clusters(connection, arrivals, now_us)
    users = _users(connection, [a.run for a in arrivals if a.total.exceptions])
    failures = record_failures(connection, vault, [(a.account, a.run, users.get(a.run, ""), a.total) for a in arrivals])
    _totals(connection, arrivals, failures, now_us)
    update_capacity(
        connection,
        [a.run for a in arrivals if a.total.entities.keys() & {"workers", "clusters"} or a.total.memories],
        [a.run for a in arrivals if a.total.entities.get("computations")],
    )
    update_peaks(connection, [a.run for a in arrivals if a.total.entities.get("workers")])


def _batch_row(connection: Connection, vault: Vault, run: int, batch: Batch, now_us: int) -> Row:
    header = batch.header
    frame = vault.seal(connection, batch.account, batch.frame) if header.table in SECRET else batch.frame
    return {
        "run_id": run,
        "epoch": header.epoch,
        "sequence": header.sequence,
        "name": header.table,
        "rows": header.rows,
        "t0": header.t0,
        "t1": header.t1,
        "kept": header.kept,
        "dropped": header.dropped,
        "received_us": now_us,
        "frame": frame,
    }


def _streams(connection: Connection, arrivals: list[Arrival]) -> None:
    streams: dict[tuple[int, int, str], Row] = {}
    for run, header in ((a.run, batch.header) for a in arrivals for batch in a.batches):
        empty = {
            "run_id": run,
            "epoch": header.epoch,
            "name": header.table,
            "rows": 0,
            "kept": 0,
            "dropped": 0,
            "first": 0,
            "dropped_before": 0,
        }
        row = streams.setdefault((run, header.epoch, header.table), empty)
        first = header.kept - header.rows + 1
        row["first"] = min(row["first"] or first, first)
        row["dropped_before"] = min(row["dropped_before"] or MOST, header.dropped + 1, MOST)
        row["rows"] += header.rows
        row["kept"], row["dropped"] = max(row["kept"], header.kept), max(row["dropped"], header.dropped)
    least, greatest = ("first", "dropped_before"), ("kept", "dropped")
    accumulate(connection, schema.streams, list(streams.values()), least=least, greatest=greatest)


def _sums(connection: Connection, arrivals: list[Arrival]) -> None:
    prefixes: list[Row] = []
    days: list[Row] = []
    buckets: list[Row] = []
    activities: list[Row] = []
    for a in arrivals:
        for (computation, prefix), sums in a.total.prefixes.items():
            prefixes.append({"run_id": a.run, "computation": computation, "prefix": prefix, **vars(sums)})
        for (day, prefix), values in a.total.days.items():
            key = {"run_id": a.run, "account_id": a.account, "day": day, "prefix": prefix}
            days.append({**key, **dict(zip(DAY_FIELDS, values))})
        for bucket, values in a.total.timeline.items():
            buckets.append({"run_id": a.run, "bucket": bucket, **dict(zip(BUCKET_FIELDS, values))})
        for names, value in a.total.activities.items():
            activities.append({"run_id": a.run, **dict(zip(ACTIVITY, names)), "value": value})
    accumulate(connection, schema.prefixes, prefixes, least=("first_us",), greatest=("last_us", "longest_us"))
    accumulate(connection, schema.days, days, keep=("account_id",))
    accumulate(connection, schema.timeline, buckets)
    accumulate(connection, schema.activities, activities)


def replace_sums(connection: Connection, account: int, run: int, total: RollUp) -> None:
    """Put the sums over a run's tasks anew, from all of its rows."""
    for table in (schema.prefixes, schema.days, schema.timeline):
        connection.execute(sa.delete(table).where(table.c.run_id == run))
    only_tasks = RollUp(prefixes=total.prefixes, days=total.days, timeline=total.timeline)
    _sums(connection, [Arrival(run, account, "", [], only_tasks)])
    sums, runs = total.total(), schema.runs
    names = ("tasks", "errors", "compute_us", "transfer_us", "disk_us", "nbytes")
    values = {name: getattr(sums, name) for name in names}
    connection.execute(sa.update(runs).where(runs.c.id == run).values(values))


ACTIVITY = ("span", "context", "prefix", "activity", "unit")


def _entities(connection: Connection, vault: Vault, arrivals: list[Arrival]) -> None:
    for table in (schema.workers, schema.clients):
        rows = [{"run_id": a.run, **row} for a in arrivals for row in a.total.entities.get(table.name, {}).values()]
        replace_older(connection, table, _within(connection, table, rows))
    computations = [
        _computation(connection, vault, a, row)
        for a in arrivals
        for row in a.total.entities.get("computations", {}).values()
    ]
    replace_older(connection, schema.computations, computations)
    memories = [
        {"run_id": a.run, "worker": worker, "time_us": time, "memory": memory, "cpu_percent": cpu}
        for a in arrivals
        for worker, (time, memory, cpu) in a.total.memories.items()
    ]
    replace_older(connection, schema.memories, _within(connection, schema.memories, memories), newer="time_us")


def _within(connection: Connection, table: sa.Table, rows: list[Row]) -> list[Row]:
    """Rows of entities without the new ones of runs that have as many as are kept: all of them are added up with every batch."""
    runs, (_, name) = sorted({row["run_id"] for row in rows}), [column.name for column in table.primary_key]
    full: set[int] = set()
    for part in in_steps(runs):
        counted = sa.select(table.c.run_id).where(table.c.run_id.in_(part)).group_by(table.c.run_id)
        full |= set(connection.execute(counted.having(sa.func.count() >= MOST_ENTITIES)).scalars())
    if not full:
        return rows
    known: set[tuple[int, str]] = set()
    for part in in_steps(sorted({row[name] for row in rows if row["run_id"] in full})):
        there = sa.select(table.c.run_id, table.c[name]).where(table.c.run_id.in_(full), table.c[name].in_(part))
        known |= {(row[0], row[1]) for row in connection.execute(there)}
    return [row for row in rows if row["run_id"] not in full or (row["run_id"], row[name]) in known]


def _computation(connection: Connection, vault: Vault, arrival: Arrival, row: Mapping[str, Any]) -> Row:
    kept = {name: value for name, value in row.items() if name != "code"}
    code = vault.seal_text(connection, arrival.account, row["code"])
    mine = {"run_id": arrival.run, "account_id": arrival.account}
    return {**mine, "sealed_code": code, "code_digest": code_digest(row["code"], row["code_line"]), **kept}


def code_digest(code: str, line: int) -> str:
    """The same for the same call in the same code; empty where the code is not known."""
    return hashlib.sha256(f"{line} {code.strip()}".encode()).hexdigest()[:16] if code.strip() else ""


#: Columns of a cluster's row that are not believed: it is named by the batch, and the clocks are compared here.
NOT_TAKEN = frozenset({"cluster", "clock_offset_us"})


def _clusters(connection: Connection, arrivals: list[Arrival], now_us: int) -> None:
    """The runs' own rows, where they are newer than what is known."""
    rows: dict[tuple[str, ...], list[Row]] = {}
    for a in arrivals:
        # A row about another cluster than the one it was sent for is nobody's.
        row = a.total.entities.get("clusters", {}).get((a.batches[0].header.cluster,))
        if row is None:
            continue
        # Whoever sent the first batch is the user, whoever sends others; without login there is the recorder's word alone.
        refused = NOT_TAKEN | {"user"} if a.user else NOT_TAKEN
        values = {f"new_{name}": value for name, value in row.items() if name not in refused}
        values["new_seen_us"] = min(row["seen_us"], now_us + MOST_AHEAD_US)
        rows.setdefault(tuple(values), []).append({**values, "this": a.run})
    for names, mine in rows.items():
        connection.execute(_renewing(names), mine)


@functools.cache
def _renewing(names: tuple[str, ...]) -> sa.Update:
    runs = schema.runs
    return (
        sa.update(runs)
        .where(runs.c.id == sa.bindparam("this"), runs.c.seen_us <= sa.bindparam("new_seen_us"))
        .values({name.removeprefix("new_"): sa.bindparam(name) for name in names})
    )


def _users(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    runs = schema.runs
    query = sa.select(runs.c.id, runs.c.user)
    rows = [row for part in in_steps(numbers) for row in connection.execute(query.where(runs.c.id.in_(part)))]
    return {row.id: row.user for row in rows}


def _totals(connection: Connection, arrivals: list[Arrival], failures: Mapping[int, int], now_us: int) -> None:
    rows = []
    for a in arrivals:
        sums = a.total.total()
        rows.append(
            {
                "this": a.run,
                "add_tasks": sums.tasks,
                "add_errors": sums.errors,
                "add_compute_us": sums.compute_us,
                "add_transfer_us": sums.transfer_us,
                "add_disk_us": sums.disk_us,
                "add_nbytes": sums.nbytes,
                "add_exceptions": failures.get(a.run, 0),
                "add_rows": a.total.rows,
                "add_wire_nbytes": a.nbytes,
                "add_buffered_nbytes": a.nbytes,
                "work": sums.last_us,
                "delay": a.delay_us,
                "now": now_us,
            }
        )
    connection.execute(_adding(tuple(name for name in rows[0] if name.startswith("add_"))), rows)


@functools.cache
def _adding(names: tuple[str, ...]) -> sa.Update:
    """Put together once: that takes longer than running it."""
    runs = schema.runs
    work = sa.bindparam("work", type_=sa.BigInteger)
    values: dict[str, Any] = {}
    for name in names:
        column = runs.c[name.removeprefix("add_")]
        values[column.name] = saturated(column, sa.bindparam(name, type_=sa.BigInteger))
    values["received_us"] = sa.bindparam("now", type_=sa.BigInteger)
    delay, offset = sa.bindparam("delay", type_=sa.BigInteger), runs.c.clock_offset_us
    # The least delay is nearest to the difference of the clocks; but clocks drift, and are set: it may grow again, slowly.
    since = sa.bindparam("now", type_=sa.BigInteger) - runs.c.received_us
    grown = offset + sa.case((since > 0, since // DRIFT), else_=0)
    values["clock_offset_us"] = sa.case((delay == 0, offset), (sa.or_(offset == 0, delay < grown), delay), else_=grown)
    values["last_work_us"] = sa.case((runs.c.last_work_us < work, work), else_=runs.c.last_work_us)
    return sa.update(runs).where(runs.c.id == sa.bindparam("this")).values(values)
