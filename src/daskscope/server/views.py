"""Rows of the catalog as the API answers them: times as ISO strings with a zone, seconds and bytes as numbers."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from daskscope import units
from daskscope.analysis.cost import Cost, choose_prices, estimate
from daskscope.server.contract import Cluster, Computation, ErrorGroup, Failure, Money
from daskscope.storage.accounts import Account

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The last moment a datetime can name; a hostile recording may claim any.
_LAST_US = 253_402_300_799_000_000
Row = dict[str, Any]


def moment(us: int) -> str | None:
    """A time as ISO 8601 in UTC; None where it is not known."""
    if not 0 < us <= _LAST_US:
        return None
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def seconds(us: float) -> float:
    return round(us / 1e6, 6)


def parsed(text: str, default: Any) -> Any:
    """JSON a recorder sent; what is none is not worth failing for."""
    try:
        value = json.loads(text) if text else default
        value = _plain(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return default
    return value if isinstance(value, type(default)) else default


def _plain(value: Any) -> Any:
    """Without halves of surrogate pairs, which JSON can write and no text has."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def tags_of(row: Row) -> list[str]:
    return [tag for tag in parsed(row["tags"], []) if isinstance(tag, str)]


def cost_of(row: Row, account: Account) -> Cost:
    names = [*tags_of(row), row["name"]]
    # Not asdict: it copies deeply, which was half of the time of a bill over 10,000 clusters.
    prices = choose_prices(vars(account.preferences), parsed(row["prices"], {}), names)
    return estimate(
        prices,
        thread_s=row["thread_us"] / 1e6,
        memory_byte_s=row["memory_byte_s"],
        compute_s=row["compute_us"] / 1e6,
        threads=row["threads"],
        memory_limit=row["memory_limit"],
    )


def cost_view(cost: Cost, *, live: bool) -> Money:
    return {
        "total": round(cost.total, 6),
        "busy": round(cost.busy, 6),
        "idle": round(cost.idle, 6),
        "per_hour": round(cost.per_hour, 6) if live else 0.0,
        "currency": "USD",
        "estimate": True,
        "formula": cost.formula,
    }


def cluster_view(row: Row, account: Account, base: str, now_us: int) -> Cluster:
    """One cluster as lists show it."""
    live = row["state"] in ("running", "idle")
    idle = row["idle_since_us"]
    return {
        "id": row["cluster"],
        "scheduler_id": row["cluster"],
        "name": row["name"],
        "user": row["user"],
        "host": row["host"],
        "address": row["address"],
        "account": account.name,
        "state": row["state"],
        "status": "running" if live else "stopped",
        "reason": reason(row, now_us),
        "created": moment(row["start_us"] or row["created_us"]),
        "start": moment(row["start_us"]),
        "end": moment(row["end_us"]),
        "last_seen": moment(row["seen_us"]),
        "last_work": moment(row["last_work_us"]),
        "idle_since": moment(idle),
        "duration": seconds(lived_us(row, now_us)),
        "workers": row["workers"] if live else 0,
        "threads": row["threads"] if live else 0,
        "memory": row["memory"] if live else 0,
        # Of one that is over: what it had.
        "memory_limit": row["memory_limit"] if live else row["peak_memory_limit"],
        "peak_workers": row["peak_workers"],
        "peak_threads": row["peak_threads"],
        "peak_memory_limit": row["peak_memory_limit"],
        "clock_offset": seconds(row["clock_offset_us"]),
        "tasks_processing": row["tasks_processing"],
        "tasks_queued": row["tasks_queued"],
        "tasks_unrunnable": row["tasks_unrunnable"],
        "n_tasks": row["tasks"],
        "n_errors": row["errors"],
        "n_exceptions": row["exceptions"],
        "n_computations": row["computations"],
        "thread_seconds": seconds(row["thread_us"]),
        "compute_seconds": seconds(row["compute_us"]),
        "transfer_seconds": seconds(row["transfer_us"]),
        "disk_seconds": seconds(row["disk_us"]),
        "idle_seconds": seconds(max(0, there_us(row, now_us) - idle)) if live and idle else 0.0,
        "nbytes": row["nbytes"],
        "tags": tags_of(row),
        "versions": parsed(row["versions"], {}),
        "platform": parsed(row["platform"], {}),
        "dropped": parsed(row["dropped"], {}),
        "cost": cost_view(cost_of(row, account), live=live),
        "url": f"{base}/{account.name}/clusters/{quote(row['cluster'], safe='')}",
    }


def reason(row: Row, now_us: int) -> str:
    """Why a cluster is in the state it is in."""
    if row["state"] == "finished":
        return str(row["end_reason"] or "closed")
    if row["state"] == "lost":
        return f"nothing heard for {max(0, now_us - row['received_us']) // 1_000_000} s: killed, or it cannot reach this server"
    if row["state"] == "idle":
        return "no task is running or waiting"
    busy, stuck = row["tasks_processing"] + row["tasks_queued"], row["tasks_unrunnable"]
    if busy:
        return f"{units.counted(busy, 'task')} running or waiting"
    return (
        f"{units.counted(stuck, 'task')} cannot run: no worker has what is asked for"
        if stuck
        else "it just finished something"
    )


def there_us(row: Row, now_us: int) -> int:
    """What time it is on a scheduler's clock.

    A recorder that does not say when it sends is believed to have said its last word when its last batch came.
    """
    offset, seen = int(row["clock_offset_us"]), int(row["seen_us"])
    return max(seen, now_us - offset if offset or not seen else seen + max(0, now_us - int(row["received_us"])))


def lived_us(row: Row, now_us: int) -> int:
    """How long a cluster has been there."""
    if not row["start_us"]:
        return 0
    seen = there_us(row, now_us) if row["state"] in ("running", "idle") else int(row["seen_us"])
    return max(0, int(row["end_us"] or seen) - int(row["start_us"]))


def computation_view(row: Row, account: Account, base: str, now_us: int) -> Computation:
    sums = row["sums"]
    # One that runs, until now on the scheduler's clock.
    # One that was lost, until the last that was heard of its cluster.
    last = now_us - row["clock_offset_us"] if row["state"] == "running" else max(row["seen_us"], row["cluster_seen_us"])
    stop = row["stop_us"] or last
    cluster = quote(row["cluster"], safe="")
    return {
        "id": row["computation"],
        "cluster_id": row["cluster"],
        "scheduler_id": row["cluster"],
        "cluster_name": row["cluster_name"],
        "user": row["user"],
        "state": row["state"],
        "code": row["code"],
        "code_file": row["code_file"],
        "code_line": row["code_line"],
        "start": moment(row["start_us"]),
        "stop": moment(row["stop_us"]),
        "duration": seconds(max(0, stop - row["start_us"])),
        "n_tasks": row["tasks"],
        "states": {name: row[name] for name in ("memory", "erred", "released", "forgotten", "unfinished")},
        "n_executions": sums.get("tasks", 0),
        # Those that raised, and those that could not run because of it.
        "n_errors": max(sums.get("errors", 0), row["erred"]),
        "durations": {
            name: seconds(sums.get(f"{name}_us", 0)) for name in ("compute", "transfer", "disk", "deserialize")
        },
        "nbytes": sums.get("nbytes", 0),
        "n_groups": row["groups"],
        "n_submissions": row["submissions"],
        "span": row["span"],
        "client": row["client"],
        "url": f"{base}/{account.name}/clusters/{cluster}/computations/{quote(row['computation'], safe='')}",
    }


def exception_view(row: Row, account: Account, base: str) -> Failure:
    return {
        "id": row["id"],
        "time": moment(row["time_us"]),
        "cluster_id": row["cluster"],
        "scheduler_id": row["cluster"],
        "cluster_name": row["cluster_name"],
        "user": row["user"],
        "type": row["type"],
        "message": row["message"],
        "traceback": row["traceback"],
        "cause_type": row["cause_type"],
        "cause_message": row["cause_message"],
        "key": row["key"],
        "prefix": row["prefix"],
        "computation_id": row["computation"],
        "worker": row["worker"],
        "fingerprint": row["fingerprint"],
        "will_retry": bool(row["will_retry"]),
        "count": row["count"],
        "url": f"{base}/{account.name}/errors/{quote(row['fingerprint'], safe='')}",
    }


def error_group_view(row: Row, account: Account, base: str) -> ErrorGroup:
    return {
        "fingerprint": row["fingerprint"],
        "type": row["type"],
        "message": row["sample"]["cause_message"] or row["sample"]["message"],
        "first_seen": moment(row["first_us"]),
        "last_seen": moment(row["last_us"]),
        "count": row["count"],
        "n_clusters": row["clusters"],
        "users": sorted(row["users"]),
        "state": row["state"],
        "state_since": moment(row["state_us"]),
        "state_by": row["state_by"],
        "url": f"{base}/{account.name}/errors/{quote(row['fingerprint'], safe='')}",
    }
