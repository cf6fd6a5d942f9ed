"""Errors, and error groups: errors with the same fingerprint."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.running.rollup import RollUp
from daskscope.model.states import ErrorState
from daskscope.model.untrusted import LARGEST
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.bulk import Row, accumulate, summed
from daskscope.storage.base.database import in_steps, of_row
from daskscope.storage.catalog.error_search import forget_words, index_words, with_words

#: Errors without a known type share a group.
UNKNOWN = "unknown"
PLAIN = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of an error, which are stored encrypted."""

    message: str = ""
    traceback: str = ""
    cause_message: str = ""


TEXTS = tuple(item.name for item in fields(Texts))


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, and the cluster it occurred in."""

    id: int
    time_us: int
    cluster: str
    cluster_name: str
    user: str
    type: str
    cause_type: str
    key: str
    prefix: str
    computation: str
    worker: str
    fingerprint: str
    will_retry: int
    count: int
    texts: Texts


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """An error group, and the clusters and users affected."""

    fingerprint: str
    type: str
    first_us: int
    last_us: int
    count: int
    state: ErrorState
    state_us: int
    state_by: str
    sample: Texts
    clusters: int
    users: Sequence[str]
    #: Errors that were not retried, and the computations they failed.
    fatal: int
    computations: int


def record_failures(tx: Transaction, arrivals: Sequence[tuple[int, int, str, RollUp]]) -> dict[int, int]:
    """Store the errors of the given runs and count them by group. Return the number of errors per run."""
    counts = {run: total.uncounted for _, run, _, total in arrivals if total.uncounted}
    rows: list[Row] = []
    groups: dict[tuple[int, str], Row] = {}
    for account, run, user, total in arrivals:
        for failure in total.exceptions:
            row = {**_row(tx, account, run, failure), "user": user}
            rows.append(row)
            counts[run] = counts.get(run, 0) + row["count"]
            _count(groups, account, row, sample=bool(failure["traceback"]))
    if rows:
        tx.execute(sa.insert(schema.exceptions), rows)
        for account in sorted({account for account, _ in groups}):
            mine = {name: row for (owner, name), row in groups.items() if owner == account}
            _regress(tx, account, mine)
        accumulate(
            tx,
            schema.error_groups,
            list(groups.values()),
            least=("first_us",),
            greatest=("last_us",),
            keep=("type", "sealed_sample"),
        )
    return counts


def _count(groups: dict[tuple[int, str], Row], account: int, row: Row, *, sample: bool) -> None:
    empty = {
        "account_id": account,
        "fingerprint": row["fingerprint"],
        "type": row["cause_type"] or row["type"],
        "sealed_sample": None,
        "first_us": row["time_us"],
        "last_us": 0,
        "count": 0,
    }
    group = groups.setdefault((account, row["fingerprint"]), empty)
    group["count"] += row["count"]
    group["first_us"] = min(group["first_us"] or row["time_us"], row["time_us"] or group["first_us"])
    group["last_us"] = max(group["last_us"], row["time_us"])
    if group["sealed_sample"] is None and sample:
        group["sealed_sample"] = row["sealed_text"]


def _row(tx: Transaction, account: int, run: int, row: dict[str, Any]) -> Row:
    texts = {name: row[name] for name in TEXTS}
    plain = {name: value for name, value in row.items() if name not in TEXTS}
    fingerprint = _name(row["fingerprint"])
    sealed = tx.seal_text(account, json.dumps(texts), error_place(fingerprint))
    return {
        **plain,
        "account_id": account,
        "run_id": run,
        "fingerprint": fingerprint,
        "sealed_text": sealed,
    }


def _name(fingerprint: str) -> str:
    """Return the group's name in URLs: the recorder's fingerprint, unless it is not a plain word."""
    if not fingerprint:
        return UNKNOWN
    return fingerprint if PLAIN.fullmatch(fingerprint) else hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _regress(tx: Transaction, account: int, happened: dict[str, Row]) -> None:
    """Reopen groups that were resolved and occurred again."""
    groups = schema.error_groups
    # Lock them in order: runs of one account share groups, and several servers count them.
    known = (
        sa.select(groups.c.fingerprint, groups.c.state, groups.c.state_us)
        .where(groups.c.account_id == account)
        .order_by(groups.c.fingerprint)
        .with_for_update()
    )
    for part in in_steps(sorted(happened)):
        again = [
            row.fingerprint
            for row in tx.execute(known.where(groups.c.fingerprint.in_(part)))
            # A late batch from before the group was resolved does not reopen it.
            if row.state == "resolved" and happened[row.fingerprint]["last_us"] > row.state_us
        ]
        if again:
            mine = (groups.c.account_id == account) & groups.c.fingerprint.in_(again)
            tx.execute(sa.update(groups).where(mine).values(state="regressed"))


# ---------------------------------------------------------------- reading


def list_exceptions(
    tx: Transaction,
    account: int,
    *,
    run: int | None = None,
    user: str = "",
    since_us: int = 0,
    fingerprint: str = "",
    limit: int = 100,
    after: tuple[int, int] | None = None,
) -> list[Failure]:
    """Return errors with their texts, newest first."""
    table, runs = schema.exceptions, schema.runs
    query = (
        sa.select(
            *(column for column in table.c if column.name != "user"),
            runs.c.cluster,
            runs.c.name.label("cluster_name"),
            runs.c.user,
        )
        .join(runs, runs.c.id == table.c.run_id)
        .where(table.c.account_id == account)
        .order_by(table.c.time_us.desc(), table.c.id.desc())
        .limit(limit)
    )
    if run is not None:
        query = query.where(table.c.run_id == run)
    if user:
        query = query.where(runs.c.user == user)
    if since_us:
        query = query.where(table.c.time_us >= since_us)
    if fingerprint:
        query = query.where(table.c.fingerprint == fingerprint)
    if after is not None:
        time, number = after
        query = query.where(sa.or_(table.c.time_us < time, sa.and_(table.c.time_us == time, table.c.id < number)))
    rows = tx.execute(query).mappings().all()
    return [of_row(Failure, row, texts=texts_of(tx, account, row["fingerprint"], row["sealed_text"])) for row in rows]


def texts_of(tx: Transaction, account: int, fingerprint: str, sealed: bytes | None) -> Texts:
    return Texts(**json.loads(tx.open_text(account, sealed, error_place(fingerprint)) or "{}"))


def error_place(fingerprint: str) -> str:
    """Return where a text belongs: to its group, which may show it as a sample."""
    return f"error {fingerprint}"


#: The most recent groups, whose texts are read to find parts of words.
RECENT = 200


def list_error_groups(
    tx: Transaction,
    account: int,
    *,
    states: tuple[str, ...] = (),
    fingerprint: str = "",
    find: str = "",
    since_us: int = 0,
    limit: int = 100,
    after: tuple[int, str] | None = None,
) -> list[ErrorGroup]:
    """Return error groups, most recent first, with the clusters and users affected and the computations that failed."""
    groups = schema.error_groups
    query = sa.select(groups).where(groups.c.account_id == account)
    if states:
        query = query.where(groups.c.state.in_(states))
    if fingerprint:
        query = query.where(groups.c.fingerprint == fingerprint)
    if since_us:
        query = query.where(groups.c.last_us >= since_us)
    if find:
        recent = itertools.islice(_opened(tx, account, query, None, RECENT), RECENT)
        named = [row.fingerprint for row in recent if _says(row, find)]
        query = query.where(sa.or_(groups.c.fingerprint.in_(named), with_words(tx, account, find)))
    rows = list(itertools.islice(_opened(tx, account, query, after, limit), limit))
    names = [row.fingerprint for row in rows]
    spread, impact = _spread(tx, account, names), _impact(tx, account, names)
    return [replace(row, **spread.get(row.fingerprint, {}), **impact.get(row.fingerprint, {})) for row in rows]


def _opened(
    tx: Transaction, account: int, query: sa.Select[Any], after: tuple[int, str] | None, step: int
) -> Iterator[ErrorGroup]:
    """Yield groups with their texts, most recent first, reading ``step`` at a time."""
    groups = schema.error_groups
    query = query.order_by(groups.c.last_us.desc(), groups.c.fingerprint.desc()).limit(step)
    while True:
        older = query
        if after is not None:
            time, name = after
            same = sa.and_(groups.c.last_us == time, groups.c.fingerprint < name)
            older = query.where(sa.or_(groups.c.last_us < time, same))
        rows = tx.execute(older).mappings().all()
        without = _latest(tx, account, [row["fingerprint"] for row in rows if row["sealed_sample"] is None])
        for row in rows:
            sealed = row["sealed_sample"] or without.get(row["fingerprint"])
            sample = texts_of(tx, account, row["fingerprint"], sealed)
            yield of_row(ErrorGroup, row, sample=sample, clusters=0, users=(), fatal=0, computations=0)
        if len(rows) < step:
            return
        after = rows[-1]["last_us"], rows[-1]["fingerprint"]


#: Groups to index in one transaction, which takes 0.1 s.
STEP = 100


def index_errors(archive: Archive) -> int:
    """Index all groups that are not indexed yet, in short transactions, and return how many there were."""
    total = 0
    while True:
        with archive.write() as tx:
            found = _texts_to_index(tx, STEP)
            for account, texts in found.items():
                index_words(tx, account, texts)
        count = sum(map(len, found.values()))
        total += count
        if count < STEP:
            return total


def _texts_to_index(tx: Transaction, limit: int) -> dict[int, list[tuple[str, str]]]:
    """Return the texts of the given groups that are not indexed, by account, each with its fingerprint."""
    groups = schema.error_groups
    query = sa.select(groups).where(groups.c.is_indexed == 0).limit(limit)
    rows = tx.execute(query).mappings().all()
    found: dict[int, list[tuple[str, str]]] = {}
    for account in sorted({row["account_id"] for row in rows}):
        mine = [row for row in rows if row["account_id"] == account]
        without = _latest(tx, account, [row["fingerprint"] for row in mine if row["sealed_sample"] is None])
        for row in mine:
            fingerprint = row["fingerprint"]
            texts = texts_of(tx, account, fingerprint, row["sealed_sample"] or without.get(fingerprint))
            found.setdefault(account, []).append((fingerprint, "\n".join((row["type"], *astuple(texts)))))
    return found


def _latest(tx: Transaction, account: int, fingerprints: list[str]) -> dict[str, bytes]:
    """Return the encrypted texts of one error per group. Errors that never came with a traceback have no sample."""
    table = schema.exceptions
    if not fingerprints:
        return {}
    mine = (table.c.account_id == account) & table.c.fingerprint.in_(fingerprints)
    newest = sa.select(sa.func.max(table.c.id)).where(mine).group_by(table.c.fingerprint)
    found = sa.select(table.c.fingerprint, table.c.sealed_text).where(table.c.id.in_(newest))
    return {row.fingerprint: row.sealed_text for row in tx.execute(found) if row.sealed_text}


def _says(row: ErrorGroup, find: str) -> bool:
    """Return whether a group's type, messages or traceback contain the words."""
    text = " ".join((row.type, *astuple(row.sample))).casefold()
    return all(word in text for word in find.casefold().split())


def _spread(tx: Transaction, account: int, fingerprints: list[str]) -> dict[str, dict[str, Any]]:
    """Return the number of clusters and the users affected, by group."""
    table = schema.exceptions
    mine = (table.c.account_id == account) & table.c.fingerprint.in_(fingerprints)
    # Not count(DISTINCT): it sorts each group, while an index has the runs in order (25 ms less for 20,000 errors).
    runs = sa.select(table.c.fingerprint, table.c.user, table.c.run_id).where(mine).distinct().subquery()
    query = sa.select(runs.c.fingerprint, runs.c.user, sa.func.count().label("clusters")).group_by(
        runs.c.fingerprint, runs.c.user
    )
    spread: dict[str, dict[str, Any]] = {}
    for row in tx.execute(query):
        group = spread.setdefault(row.fingerprint, {"clusters": 0, "users": []})
        group["clusters"] += row.clusters
        group["users"].append(row.user)
    return spread


def _impact(tx: Transaction, account: int, fingerprints: list[str]) -> dict[str, dict[str, Any]]:
    """Return how many errors were not retried and the number of computations they failed, by group."""
    table = schema.exceptions
    mine = (table.c.account_id == account) & table.c.fingerprint.in_(fingerprints) & (table.c.will_retry == 0)
    key = (table.c.fingerprint, table.c.run_id, table.c.computation)
    failed = sa.select(*key, summed(table.c.count).label("n")).where(mine).group_by(*key).subquery()
    named = sa.func.sum(sa.case((failed.c.computation != "", 1), else_=0))
    query = sa.select(failed.c.fingerprint, named.label("computations"), summed(failed.c.n).label("fatal"))
    return {
        row.fingerprint: {"fatal": int(row.fatal), "computations": int(row.computations)}
        for row in tx.execute(query.group_by(failed.c.fingerprint))
    }


#: Maximum clusters to read versions from for one group.
MAX_RUNS = 500


def versions_of(tx: Transaction, account: int, fingerprint: str) -> list[str]:
    """Return the package versions of the clusters with this error, one JSON text per distinct set."""
    table, runs = schema.exceptions, schema.runs
    mine = (table.c.account_id == account) & (table.c.fingerprint == fingerprint)
    recent = sa.select(table.c.run_id).where(mine).group_by(table.c.run_id)
    recent = recent.order_by(sa.func.max(table.c.time_us).desc()).limit(MAX_RUNS)
    return list(tx.execute(sa.select(runs.c.versions).distinct().where(runs.c.id.in_(recent))).scalars())


@dataclass(frozen=True)
class Occurrences:
    """Errors per step of time: all of them, and the ones that were not retried."""

    counts: list[int]
    fatal: list[int]


def occurrences(
    tx: Transaction, account: int, fingerprints: list[str], first: int, step_us: int, steps: int
) -> dict[str, Occurrences]:
    """Count the errors of each group by step of time; ``first`` is the number of the first step since the epoch."""
    table = schema.exceptions
    step, start, stop = (table.c.time_us // step_us).label("step"), first * step_us, (first + steps) * step_us
    key = (table.c.fingerprint, step, table.c.will_retry)
    inside = (table.c.time_us >= start) & (table.c.time_us < stop)
    query = (
        sa.select(*key, summed(table.c.count).label("n"))
        .where(table.c.account_id == account, table.c.fingerprint.in_(fingerprints), inside)
        .group_by(*key)
    )
    result = {name: Occurrences([0] * steps, [0] * steps) for name in fingerprints}
    for row in tx.execute(query):
        found, place = result[row.fingerprint], row.step - first
        found.counts[place] = min(found.counts[place] + int(row.n), LARGEST)
        if not row.will_retry:
            found.fatal[place] = int(row.n)
    return result


def set_group_state(tx: Transaction, account: int, fingerprint: str, state: str, user: str) -> bool:
    """Set a group's state to open, resolved or ignored. Return whether the group exists."""
    groups = schema.error_groups
    mine = (groups.c.account_id == account) & (groups.c.fingerprint == fingerprint)
    values = {"state": state, "state_us": tx.now_us, "state_by": user}
    return bool(tx.execute(sa.update(groups).where(mine).values(values)).rowcount)


def remove_errors(tx: Transaction, account: int, run: int, limit: int) -> int:
    """Delete up to ``limit`` of a run's errors, subtract them from their groups, and return how many there were.

    Texts used as a group's sample are replaced. An empty group is deleted unless a user set its state: an ignored group
    stays ignored when it returns.
    """
    table, groups = schema.exceptions, schema.error_groups
    oldest = sa.select(table.c.id).where(table.c.run_id == run).order_by(table.c.id).limit(limit)
    last, total = tx.execute(sa.select(sa.func.max(oldest.subquery().c.id), sa.func.count())).one()
    if not total:
        return 0
    removed = (table.c.run_id == run) & (table.c.id <= last)
    counted = sa.select(table.c.fingerprint, summed(table.c.count).label("n")).where(removed)
    lost = {row.fingerprint: row.n for row in tx.execute(counted.group_by(table.c.fingerprint))}
    locked = sa.select(groups).where(groups.c.account_id == account).order_by(groups.c.fingerprint).with_for_update()
    for part in in_steps(sorted(lost)):
        for group in tx.execute(locked.where(groups.c.fingerprint.in_(part))).all():
            mine = (groups.c.account_id == account) & (groups.c.fingerprint == group.fingerprint)
            others = (table.c.account_id == account) & (table.c.fingerprint == group.fingerprint) & ~removed
            query = sa.select(table.c.time_us, table.c.sealed_text).where(others)
            newest = tx.execute(query.order_by(table.c.time_us.desc()).limit(20)).all()
            if not newest and group.state in ("open", "regressed"):
                tx.execute(sa.delete(groups).where(mine))
                continue
            values = {
                "count": max(0, group.count - lost[group.fingerprint]),
                "last_us": newest[0].time_us if newest else 0,
                # The longest text has a traceback; repeated errors are sent without one.
                "sealed_sample": max((row.sealed_text or b"" for row in newest), key=len, default=None) or None,
            }
            tx.execute(sa.update(groups).where(mine).values(values))
            # Words of the deleted text must not stay.
            forget_words(tx, account, group.fingerprint)
    tx.execute(sa.delete(table).where(removed))
    return int(total)
