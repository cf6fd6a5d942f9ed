"""Failed executions, and the groups of those that are the same failure."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.rollup import RollUp
from daskscope.storage import schema
from daskscope.storage.database import in_steps
from daskscope.storage.sums import summed
from daskscope.storage.upsert import Row, accumulate
from daskscope.storage.vault import Vault
from daskscope.units import HOUR

#: Rows that failed with something nobody could name share a group.
UNKNOWN = "unknown"
PLAIN = re.compile(r"[0-9A-Za-z_-]{1,64}")
TEXTS = ("message", "traceback", "cause_message")


def record_failures(
    connection: Connection, vault: Vault, arrivals: Sequence[tuple[int, int, str, RollUp]]
) -> dict[int, int]:
    """Store the failures of some runs (account, run, user, roll-up) and count them by group; by run how many there were."""
    counts = {run: total.uncounted for _, run, _, total in arrivals if total.uncounted}
    rows: list[Row] = []
    groups: dict[tuple[int, str], Row] = {}
    for account, run, user, total in arrivals:
        for failure in total.exceptions:
            row = {**_row(connection, vault, account, run, failure), "user": user}
            rows.append(row)
            counts[run] = counts.get(run, 0) + row["count"]
            _count(groups, account, row, sample=bool(failure["traceback"]))
    if rows:
        connection.execute(sa.insert(schema.exceptions), rows)
        for account in sorted({account for account, _ in groups}):
            mine = {name: row for (owner, name), row in groups.items() if owner == account}
            _regress(connection, account, mine)
        accumulate(
            connection,
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


def _row(connection: Connection, vault: Vault, account: int, run: int, row: dict[str, Any]) -> Row:
    texts = {name: row[name] for name in TEXTS}
    plain = {name: value for name, value in row.items() if name not in TEXTS}
    sealed = vault.seal_text(connection, account, json.dumps(texts))
    return {
        **plain,
        "account_id": account,
        "run_id": run,
        "fingerprint": _name(row["fingerprint"]),
        "sealed_text": sealed,
    }


def _name(fingerprint: str) -> str:
    """What a group is called in addresses: as the recorder says, unless that is no plain word."""
    if not fingerprint:
        return UNKNOWN
    return fingerprint if PLAIN.fullmatch(fingerprint) else hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _regress(connection: Connection, account: int, happened: dict[str, Row]) -> None:
    """A failure somebody called resolved that happened again since is no longer resolved."""
    groups = schema.error_groups
    # Locked in their order, all that are there: runs of one account share groups, and several servers count them.
    known = (
        sa.select(groups.c.fingerprint, groups.c.state, groups.c.state_us)
        .where(groups.c.account_id == account)
        .order_by(groups.c.fingerprint)
        .with_for_update()
    )
    for part in in_steps(sorted(happened)):
        again = [
            row.fingerprint
            for row in connection.execute(known.where(groups.c.fingerprint.in_(part)))
            # What was sent late, from before it was resolved, is no news.
            if row.state == "resolved" and happened[row.fingerprint]["last_us"] > row.state_us
        ]
        if again:
            mine = (groups.c.account_id == account) & groups.c.fingerprint.in_(again)
            connection.execute(sa.update(groups).where(mine).values(state="regressed"))


# ---------------------------------------------------------------- reading


def list_exceptions(
    connection: Connection,
    vault: Vault,
    account: int,
    *,
    run: int | None = None,
    user: str = "",
    since_us: int = 0,
    fingerprint: str = "",
    limit: int = 100,
    after: tuple[int, int] | None = None,
) -> list[Row]:
    """Failures, the newest first, with their texts."""
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
    rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        row |= _texts(connection, vault, account, row.pop("sealed_text"))
    return rows


def _texts(connection: Connection, vault: Vault, account: int, sealed: bytes | None) -> dict[str, str]:
    text = vault.open_text(connection, account, sealed)
    return {**dict.fromkeys(TEXTS, ""), **(json.loads(text) if text else {})}


STATES = ("open", "resolved", "ignored", "regressed")


#: Groups read at a time while their texts, which are sealed, are searched.
READ = 200


def list_error_groups(
    connection: Connection,
    vault: Vault,
    account: int,
    *,
    states: tuple[str, ...] = (),
    fingerprint: str = "",
    find: str = "",
    since_us: int = 0,
    limit: int = 100,
    after: tuple[int, str] | None = None,
) -> list[Row]:
    """Groups of failures, the most recent first, with how many clusters and users had them."""
    groups = schema.error_groups
    query = sa.select(groups).where(groups.c.account_id == account)
    if states:
        query = query.where(groups.c.state.in_(states))
    if fingerprint:
        query = query.where(groups.c.fingerprint == fingerprint)
    if since_us:
        query = query.where(groups.c.last_us >= since_us)
    every = _opened(connection, vault, account, query, after, READ if find else limit)
    rows = list(itertools.islice((row for row in every if _says(row, find)), limit))
    spread = _spread(connection, account, [row["fingerprint"] for row in rows])
    return [{**row, **spread.get(row["fingerprint"], {"clusters": 0, "users": []})} for row in rows]


def _opened(
    connection: Connection, vault: Vault, account: int, query: sa.Select[Any], after: tuple[int, str] | None, step: int
) -> Iterator[Row]:
    """Groups with their texts, the most recent first, read ``step`` at a time."""
    groups = schema.error_groups
    query = query.order_by(groups.c.last_us.desc(), groups.c.fingerprint.desc()).limit(step)
    while True:
        older = query
        if after is not None:
            time, name = after
            same = sa.and_(groups.c.last_us == time, groups.c.fingerprint < name)
            older = query.where(sa.or_(groups.c.last_us < time, same))
        rows = [dict(row) for row in connection.execute(older).mappings()]
        without = _latest(connection, account, [row["fingerprint"] for row in rows if row["sealed_sample"] is None])
        for row in rows:
            sealed = row.pop("sealed_sample") or without.get(row["fingerprint"])
            yield {**row, "sample": _texts(connection, vault, account, sealed)}
        if len(rows) < step:
            return
        after = rows[-1]["last_us"], rows[-1]["fingerprint"]


def _latest(connection: Connection, account: int, fingerprints: list[str]) -> dict[str, bytes]:
    """The sealed texts of a failure of each of some groups: those that never came with a traceback have no sample."""
    table = schema.exceptions
    if not fingerprints:
        return {}
    mine = (table.c.account_id == account) & table.c.fingerprint.in_(fingerprints)
    newest = sa.select(sa.func.max(table.c.id)).where(mine).group_by(table.c.fingerprint)
    found = sa.select(table.c.fingerprint, table.c.sealed_text).where(table.c.id.in_(newest))
    return {row.fingerprint: row.sealed_text for row in connection.execute(found) if row.sealed_text}


def _says(row: Row, find: str) -> bool:
    """Whether a group's type, messages or traceback (which ends with the type it was raised as) have some words in them."""
    text = " ".join((row["type"], *row["sample"].values())).casefold()
    return all(word in text for word in find.casefold().split())


def _spread(connection: Connection, account: int, fingerprints: list[str]) -> dict[str, dict[str, Any]]:
    """By group: how many clusters had it, and which users."""
    table = schema.exceptions
    mine = (table.c.account_id == account) & table.c.fingerprint.in_(fingerprints)
    # Not count(DISTINCT): that sorts each group, where an index has the runs in order (of 20,000 failures, 25 ms less).
    runs = sa.select(table.c.fingerprint, table.c.user, table.c.run_id).where(mine).distinct().subquery()
    query = sa.select(runs.c.fingerprint, runs.c.user, sa.func.count().label("clusters")).group_by(
        runs.c.fingerprint, runs.c.user
    )
    spread: dict[str, dict[str, Any]] = {}
    for row in connection.execute(query):
        group = spread.setdefault(row.fingerprint, {"clusters": 0, "users": []})
        group["clusters"] += row.clusters
        group["users"].append(row.user)
    return spread


#: Clusters whose versions are looked at for one group.
MOST_RUNS = 500


def versions_of(connection: Connection, account: int, fingerprint: str) -> list[str]:
    """The packages of the clusters that had a failure, as the recorder sent them: one JSON text for each kind of cluster."""
    table, runs = schema.exceptions, schema.runs
    mine = (table.c.account_id == account) & (table.c.fingerprint == fingerprint)
    recent = sa.select(table.c.run_id).where(mine).group_by(table.c.run_id)
    recent = recent.order_by(sa.func.max(table.c.time_us).desc()).limit(MOST_RUNS)
    return list(connection.execute(sa.select(runs.c.versions).distinct().where(runs.c.id.in_(recent))).scalars())


def hours_of(
    connection: Connection, account: int, fingerprints: list[str], now_us: int, hours: int
) -> dict[str, list[int]]:
    """Failures of some groups in each of the last hours."""
    table = schema.exceptions
    first = now_us // HOUR - hours + 1
    hour = (table.c.time_us // HOUR).label("hour")
    query = (
        sa.select(table.c.fingerprint, hour, summed(table.c.count).label("n"))
        .where(table.c.account_id == account, table.c.fingerprint.in_(fingerprints), table.c.time_us >= first * HOUR)
        .group_by(table.c.fingerprint, hour)
    )
    result = {name: [0] * hours for name in fingerprints}
    for row in connection.execute(query):
        if 0 <= row.hour - first < hours:
            result[row.fingerprint][row.hour - first] = row.n
    return result


def set_group_state(connection: Connection, account: int, fingerprint: str, state: str, user: str, now_us: int) -> bool:
    """Call a group open, resolved or ignored; whether there is such a group."""
    groups = schema.error_groups
    mine = (groups.c.account_id == account) & (groups.c.fingerprint == fingerprint)
    values = {"state": state, "state_us": now_us, "state_by": user}
    return bool(connection.execute(sa.update(groups).where(mine).values(values)).rowcount)
