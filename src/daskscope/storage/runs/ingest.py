"""Ingest: the one transaction that stores batches and counts each once.

A batch is identified by its run, epoch and sequence number. The rows of the runs are locked first, in order: if two
servers receive the same batch, one waits and then finds it stored. Everything else that changes a run (compaction,
deletion) takes the same lock first. A batch below its epoch's floor was compacted long ago. New batches are stored as
they came and their roll-ups are added to the sums in the same transaction.

There is one statement per table, not per cluster: a group of a hundred clusters takes as many statements as a single
one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.running.rollup import BUCKET_FIELDS, DAY_FIELDS, RollUp
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import Row, accumulate, among, given, insert_rows, replace_older, saturated
from daskscope.storage.base.database import in_steps, insert
from daskscope.storage.catalog.clusters import COLUMNS, UserRequests, requests_of
from daskscope.storage.catalog.code_texts import store_codes, text_digest
from daskscope.storage.catalog.error_groups import record_failures
from daskscope.storage.runs.capacity import update_capacity, update_peaks
from daskscope.units import DAY
from daskscope.wire.decode import Header

#: Tables whose batches contain code, tracebacks or log lines. They are stored encrypted.
SECRET = frozenset({"computations", "exceptions", "logs", "windows", "events"})

#: Clocks are assumed to drift by at most one part in this many: a second per quarter of an hour.
DRIFT = 1_000

#: Maximum workers, or clients, stored per run; summing 50,000 takes a third of a second. Further ones are not listed.
MAX_ENTITIES = 50_000
#: How far a scheduler's clock may be ahead of the server's. A row from beyond would stay the newest forever.
MAX_AHEAD_US = DAY

#: The largest integer a column holds. A header's counters may be as large.
MOST = 2**63 - 1

RunKey = tuple[int, str]
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Batch:
    """A validated batch."""

    account: int
    #: The user of the token. Empty in local mode, where the recorder names the user.
    user: str
    header: Header
    frame: bytes
    roll_up: RollUp
    #: Time received on the server's clock minus time sent on the scheduler's; 0 if the recorder does not send the time.
    delay_us: int = 0

    @property
    def run_key(self) -> RunKey:
        return self.account, self.header.cluster


@dataclass
class Arrival:
    """The new batches of one run."""

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
        """Return the smallest delay, which is closest to the difference of the clocks; 0 if unknown."""
        return min((batch.delay_us for batch in self.batches if batch.delay_us), default=0)


@dataclass(frozen=True)
class Stored:
    """The result of storing some batches."""

    #: Whether each batch was new.
    fresh: list[bool]
    #: What users ask of runs that have not ended.
    requests: dict[RunKey, UserRequests]


def store_batches(tx: Transaction, batches: Sequence[Batch]) -> Stored:
    """Store the new batches and add up their roll-ups."""
    found = _runs(tx, batches)
    runs = {key: run for key, (run, _) in found.items()}
    places = [(runs[b.run_key], b.header.epoch, b.header.sequence) for b in batches]
    known = _known(tx, places)
    fresh: list[bool] = []
    arrivals: dict[int, Arrival] = {}
    for batch, place in zip(batches, places, strict=True):
        fresh.append(place not in known)
        if fresh[-1]:
            known.add(place)
            arrival = arrivals.setdefault(place[0], Arrival(place[0], batch.account, batch.user, [], RollUp()))
            arrival.batches.append(batch)
            arrival.total.add(batch.roll_up)
    _epochs(tx, [place for place, new in zip(places, fresh, strict=True) if new])
    if arrivals:
        _store(tx, list(arrivals.values()))
    # A duplicate batch shows that the cluster is alive too.
    silent = sorted(set(runs.values()) - arrivals.keys())
    for part in in_steps(silent):
        tx.execute(sa.update(schema.runs).where(schema.runs.c.id.in_(part)).values(received_us=tx.now_us))
    ended = {a.run for a in arrivals.values() for row in a.total.entities.get("clusters", {}).values() if row["end_us"]}
    return Stored(fresh, {key: asked for key, (run, asked) in found.items() if asked and run not in ended})


def known_batches(tx: Transaction, account: int, headers: Sequence[Header]) -> list[bool]:
    """Return for each header whether its batch is stored, without locks: ``store_batches`` decides."""
    runs = schema.runs
    clusters = sorted({header.cluster for header in headers})
    query = sa.select(runs.c.cluster, runs.c.id).where(runs.c.account_id == account, runs.c.cluster.in_(clusters))
    numbers = {row.cluster: row.id for row in tx.execute(query)}
    places = [(numbers.get(h.cluster, 0), h.epoch, h.sequence) for h in headers]
    known = _known(tx, [place for place in places if place[0]])
    return [place in known for place in places]


def _runs(tx: Transaction, batches: Sequence[Batch]) -> dict[RunKey, tuple[int, UserRequests | None]]:
    """Return the numbers of the batches' runs, locked, and what users ask of them. The first batch creates a run."""
    runs = schema.runs
    wanted = {batch.run_key: batch.user for batch in reversed(batches)}

    def found() -> dict[RunKey, tuple[int, UserRequests | None]]:
        accounts, clusters = sorted({account for account, _ in wanted}), sorted({cluster for _, cluster in wanted})
        mine = _of_clusters(tx.connection.dialect.name)
        rows = [
            row for part in in_steps(clusters) for row in tx.execute(mine, {"accounts": accounts, "clusters": part})
        ]
        return {(row.account_id, row.cluster): (row.id, requests_of(row, tx.now_us)) for row in rows}

    known = found()
    new = [
        {"account_id": account, "cluster": cluster, "user": user, "created_us": tx.now_us, "received_us": tx.now_us}
        for (account, cluster), user in sorted(wanted.items())
        if (account, cluster) not in known
    ]
    if new:
        # Another server may just have created one of them.
        tx.execute(insert(tx.connection, runs).on_conflict_do_nothing(), new)
        known = found()
    return {key: known[key] for key in wanted}


def _locked() -> Any:
    """Select runs and lock them until the transaction ends."""
    runs = schema.runs
    columns = (runs.c.id, runs.c.account_id, *(runs.c[name] for name in COLUMNS))
    return sa.select(*columns).order_by(runs.c.id).with_for_update(key_share=True)


@functools.cache
def _of_clusters(dialect: str) -> Any:
    """Select the runs of the given accounts and clusters, and lock them."""
    runs = schema.runs
    return _locked().where(among(dialect, runs.c.account_id, "accounts"), among(dialect, runs.c.cluster, "clusters"))


def lock_run(tx: Transaction, run: int) -> bool:
    """Lock a run until the transaction ends. Return whether it still exists."""
    return tx.execute(_locked().where(schema.runs.c.id == run)).one_or_none() is not None


def _known(tx: Transaction, places: Sequence[Place]) -> set[Place]:
    """Return the batches that were stored before."""
    sequences: dict[tuple[int, int], set[int]] = {}
    for run, epoch, sequence in places:
        sequences.setdefault((run, epoch), set()).add(sequence)
    numbers, dialect = sorted({run for run, _ in sequences}), tx.connection.dialect.name
    floors: dict[tuple[int, int], int] = {}
    for part in in_steps(numbers):
        for row in tx.execute(_floors(dialect), {"runs": part}):
            floors[row.run_id, row.epoch] = row.floor
    known = {place for place in places if place[2] < floors.get(place[:2], 0)}
    # A recorder's batches follow each other, and the index has this order.
    spans = [{"run": r, "epoch": e, "first": min(mine), "last": max(mine)} for (r, e), mine in sequences.items()]
    for row in _stored_within(tx, spans):
        if row.sequence in sequences[row.run_id, row.epoch]:
            known.add((row.run_id, row.epoch, row.sequence))
    return known


def _stored_within(tx: Transaction, spans: list[Row]) -> Iterator[Any]:
    """Yield the stored batches of the given spans of sequence numbers: one statement on PostgreSQL, where each is a round trip."""
    if tx.connection.dialect.name == "sqlite":
        for span in spans:
            yield from tx.execute(_of_span(), span)
    elif spans:
        yield from tx.execute(_of_spans(), {f"{name}s": [span[name] for span in spans] for name in spans[0]})


@functools.cache
def _floors(dialect: str) -> Any:
    epochs = schema.epochs
    query = sa.select(epochs.c.run_id, epochs.c.epoch, epochs.c.floor)
    return query.where(among(dialect, epochs.c.run_id, "runs"))


@functools.cache
def _of_span() -> Any:
    stored = schema.batches
    mine = (stored.c.run_id == sa.bindparam("run")) & (stored.c.epoch == sa.bindparam("epoch"))
    mine &= stored.c.sequence.between(sa.bindparam("first"), sa.bindparam("last"))
    return sa.select(stored.c.run_id, stored.c.epoch, stored.c.sequence).where(mine)


@functools.cache
def _of_spans() -> Any:
    stored, span = schema.batches, given({name: sa.BigInteger() for name in ("runs", "epochs", "firsts", "lasts")})
    mine = (stored.c.run_id == span.c.runs) & (stored.c.epoch == span.c.epochs)
    query = sa.select(stored.c.run_id, stored.c.epoch, stored.c.sequence)
    return query.join_from(span, stored, mine & stored.c.sequence.between(span.c.firsts, span.c.lasts))


def _epochs(tx: Transaction, places: Sequence[Place]) -> None:
    rows: dict[tuple[int, int], Row] = {}
    for run, epoch, sequence in places:
        empty = {"run_id": run, "epoch": epoch, "highest": 0, "lowest": 0, "taken": 0, "from_start": 0}
        row = rows.setdefault((run, epoch), empty)
        row["taken"] += 1
        row["highest"] = max(row["highest"], sequence)
        row["lowest"] = min(row["lowest"] or MOST, sequence + 1, MOST)
        row["from_start"] |= int(sequence == 0)
    accumulate(tx, schema.epochs, list(rows.values()), least=("lowest",), greatest=("highest", "from_start"))


def _store(tx: Transaction, arrivals: list[Arrival]) -> None:
    rows = [_batch_row(tx, a.run, batch) for a in arrivals for batch in a.batches]
    insert_rows(tx.connection, schema.batches, rows)
    _streams(tx, arrivals)
    _sums(tx, arrivals)
    _entities(tx, arrivals)
    _clusters(tx, arrivals)
    users = _users(tx, [a.run for a in arrivals if a.total.exceptions])
    failures = record_failures(tx, [(a.account, a.run, users.get(a.run, ""), a.total) for a in arrivals])
    _totals(tx, arrivals, failures)
    update_capacity(
        tx,
        [a.run for a in arrivals if _has_capacity(a.total)],
        [a.run for a in arrivals if a.total.entities.get("computations")],
    )
    update_peaks(tx, [a.run for a in arrivals if a.total.entities.get("workers")])


def _has_capacity(total: RollUp) -> bool:
    """Return whether some rows change the workers, their memory, or the time up to which they count."""
    return bool(total.entities.keys() & {"workers", "clusters"} or total.memories or total.prefixes)


def _batch_row(tx: Transaction, run: int, batch: Batch) -> Row:
    header = batch.header
    frame = batch.frame
    if header.table in SECRET:
        frame = tx.seal(batch.account, frame, batch_place(run, header.epoch, header.sequence))
    return {
        "run_id": run,
        "name": header.table,
        "epoch": header.epoch,
        "sequence": header.sequence,
        "rows": header.rows,
        "t0": header.t0,
        "t1": header.t1,
        "kept": header.kept,
        "dropped": header.dropped,
        "received_us": tx.now_us,
        "frame": frame,
    }


def batch_place(run: int, epoch: int, sequence: int) -> str:
    """Return the place that the text of a batch is bound to."""
    return f"batch {run} {epoch} {sequence}"


def _streams(tx: Transaction, arrivals: list[Arrival]) -> None:
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
    accumulate(tx, schema.streams, list(streams.values()), least=least, greatest=greatest)


def _sums(tx: Transaction, arrivals: list[Arrival]) -> None:
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
    accumulate(tx, schema.prefixes, prefixes, least=("first_us",), greatest=("last_us", "longest_us"))
    accumulate(tx, schema.days, days, keep=("account_id",))
    accumulate(tx, schema.timeline, buckets)
    accumulate(tx, schema.activities, activities)


def replace_sums(tx: Transaction, account: int, run: int, total: RollUp) -> None:
    """Replace the sums over a run's tasks by new ones, computed from all of its rows."""
    for table in (schema.prefixes, schema.days, schema.timeline):
        tx.execute(sa.delete(table).where(table.c.run_id == run))
    only_tasks = RollUp(prefixes=total.prefixes, days=total.days, timeline=total.timeline)
    _sums(tx, [Arrival(run, account, "", [], only_tasks)])
    sums, runs = total.total(), schema.runs
    names = ("tasks", "errors", "compute_us", "transfer_us", "disk_us", "nbytes")
    values = {name: getattr(sums, name) for name in names}
    tx.execute(sa.update(runs).where(runs.c.id == run).values(values))


ACTIVITY = ("span", "context", "prefix", "activity", "unit")


def _entities(tx: Transaction, arrivals: list[Arrival]) -> None:
    for table in (schema.workers, schema.clients):
        rows = [{"run_id": a.run, **row} for a in arrivals for row in a.total.entities.get(table.name, {}).values()]
        replace_older(tx, table, _within(tx, table, rows))
    computations = [_computation(a, row) for a in arrivals for row in a.total.entities.get("computations", {}).values()]
    for account in sorted({a.account for a in arrivals}):
        mine = [a.total.entities.get("computations", {}) for a in arrivals if a.account == account]
        store_codes(tx, account, {str(row["code"]) for rows in mine for row in rows.values()})
    replace_older(tx, schema.computations, computations)
    memories = [
        {"run_id": a.run, "worker": worker, "time_us": time, "memory": memory, "cpu_percent": cpu}
        for a in arrivals
        for worker, (time, memory, cpu) in a.total.memories.items()
    ]
    replace_older(tx, schema.memories, _within(tx, schema.memories, memories), newer="time_us")


def _within(tx: Transaction, table: sa.Table, rows: list[Row]) -> list[Row]:
    """Drop new entities of runs that are at the maximum: every batch adds all of them up."""
    runs, (_, name) = sorted({row["run_id"] for row in rows}), [column.name for column in table.primary_key]
    full: set[int] = set()
    for part in in_steps(runs):
        asked = {"runs": part, "limit": MAX_ENTITIES}
        full |= set(tx.execute(_full(tx.connection.dialect.name, table.name), asked).scalars())
    if not full:
        return rows
    known: set[tuple[int, str]] = set()
    for part in in_steps(sorted({row[name] for row in rows if row["run_id"] in full})):
        there = sa.select(table.c.run_id, table.c[name]).where(table.c.run_id.in_(full), table.c[name].in_(part))
        known |= {(row[0], row[1]) for row in tx.execute(there)}
    return [row for row in rows if row["run_id"] not in full or (row["run_id"], row[name]) in known]


@functools.cache
def _full(dialect: str, name: str) -> Any:
    table = schema.metadata.tables[name]
    counted = sa.select(table.c.run_id).where(among(dialect, table.c.run_id, "runs")).group_by(table.c.run_id)
    return counted.having(sa.func.count() >= sa.bindparam("limit"))


def _computation(arrival: Arrival, row: Mapping[str, Any]) -> Row:
    kept = {name: value for name, value in row.items() if name != "code"}
    mine = {"run_id": arrival.run, "account_id": arrival.account, "code_text": text_digest(row["code"])}
    return {**mine, "code_digest": code_digest(row["code"], row["code_line"]), **kept}


def code_digest(code: str, line: int) -> str:
    """Return a digest that is equal for the same call in the same code; empty if the code is unknown."""
    return hashlib.sha256(f"{line} {code.strip()}".encode()).hexdigest()[:16] if code.strip() else ""


#: Columns of a cluster's row to ignore: the batch names the cluster, and the server compares the clocks.
IGNORED_COLUMNS = frozenset({"cluster", "clock_offset_us"})


def _clusters(tx: Transaction, arrivals: list[Arrival]) -> None:
    """Update the rows of the runs from newer cluster rows."""
    rows: dict[tuple[str, ...], list[Row]] = {}
    for a in arrivals:
        # Ignore a row about another cluster than the batch's.
        row = a.total.entities.get("clusters", {}).get((a.batches[0].header.cluster,))
        if row is None:
            continue
        # The user of the first batch stays the user. Without sign-in, the recorder names the user.
        refused = IGNORED_COLUMNS | {"user"} if a.user else IGNORED_COLUMNS
        values = {f"new_{name}": value for name, value in row.items() if name not in refused}
        values["new_seen_us"] = min(row["seen_us"], tx.now_us + MAX_AHEAD_US)
        rows.setdefault(tuple(values), []).append({**values, "this": a.run})
    for names, mine in rows.items():
        tx.execute(_renewing(names), mine)


@functools.cache
def _renewing(names: tuple[str, ...]) -> sa.Update:
    runs = schema.runs
    return (
        sa.update(runs)
        .where(runs.c.id == sa.bindparam("this"), runs.c.seen_us <= sa.bindparam("new_seen_us"))
        .values({name.removeprefix("new_"): sa.bindparam(name) for name in names})
    )


def _users(tx: Transaction, numbers: Sequence[int]) -> dict[int, str]:
    runs = schema.runs
    query = sa.select(runs.c.id, runs.c.user)
    rows = [row for part in in_steps(numbers) for row in tx.execute(query.where(runs.c.id.in_(part)))]
    return {row.id: row.user for row in rows}


def _totals(tx: Transaction, arrivals: list[Arrival], failures: Mapping[int, int]) -> None:
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
                "now": tx.now_us,
            }
        )
    tx.execute(_adding(tuple(name for name in rows[0] if name.startswith("add_"))), rows)


@functools.cache
def _adding(names: tuple[str, ...]) -> sa.Update:
    """Build the statement once: that takes longer than running it."""
    runs = schema.runs
    work = sa.bindparam("work", type_=sa.BigInteger)
    values: dict[str, Any] = {}
    for name in names:
        column = runs.c[name.removeprefix("add_")]
        values[column.name] = saturated(column, sa.bindparam(name, type_=sa.BigInteger))
    values["received_us"] = sa.bindparam("now", type_=sa.BigInteger)
    delay, offset = sa.bindparam("delay", type_=sa.BigInteger), runs.c.clock_offset_us
    # The smallest delay is closest to the difference of the clocks. Clocks drift and are set, so let it grow again
    # slowly.
    since = sa.bindparam("now", type_=sa.BigInteger) - runs.c.received_us
    grown = offset + sa.case((since > 0, since // DRIFT), else_=0)
    values["clock_offset_us"] = sa.case((delay == 0, offset), (sa.or_(offset == 0, delay < grown), delay), else_=grown)
    values["last_work_us"] = sa.case((runs.c.last_work_us < work, work), else_=runs.c.last_work_us)
    return sa.update(runs).where(runs.c.id == sa.bindparam("this")).values(values)
