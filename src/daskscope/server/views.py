"""From records of the storage to responses of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

import numpy as np

from daskscope import units
from daskscope.analysis.columns.intervals import day_shares
from daskscope.analysis.compare.history import Usual
from daskscope.analysis.cost import Cost, choose_prices, estimate
from daskscope.analysis.failures import raised_in
from daskscope.analysis.running.rollup import Sums
from daskscope.analysis.running.still_running import describe_state
from daskscope.analysis.summary import call_line
from daskscope.insights.facts import describe_losses, error_line
from daskscope.model.recording import Array
from daskscope.model.untrusted import encodable, parse_json
from daskscope.server import contract, live_contract
from daskscope.server.contract import HostedReport, Money, Prefix
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog.clusters import Cluster
from daskscope.storage.catalog.computations import Computation
from daskscope.storage.catalog.error_groups import ErrorGroup, Failure
from daskscope.storage.catalog.overview import PaidRun, progress
from daskscope.storage.catalog.reports import Report
from daskscope.storage.catalog.run_groups import RecentRun, fatal_errors, lost_workers
from daskscope.storage.people.accounts import Account

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The last time a datetime can hold; a hostile recording may claim any.
_LAST_US = 253_402_300_799_000_000


def moment(us: int) -> str | None:
    """Return a time as ISO 8601 in UTC; None if unknown."""
    if not 0 < us <= _LAST_US:
        return None
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def seconds(us: float) -> float:
    return round(us / 1e6, 6)


def parsed(text: str, default: Any) -> Any:
    """Parse JSON that a recorder sent; return the default if it is invalid."""
    try:
        value = parse_json(text) if text else default
        value = _plain(value) if "\\u" in text else value
    except ValueError:
        return default
    return value if isinstance(value, type(default)) else default


def _plain(value: Any) -> Any:
    """Replace lone surrogates, which JSON can escape and UTF-8 cannot encode."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def tags_of(row: Cluster | PaidRun) -> list[str]:
    return [tag for tag in parsed(row.tags, []) if isinstance(tag, str)]


def cost_of(row: Cluster | PaidRun, account: Account) -> Cost:
    names = [*tags_of(row), row.name]
    # Not asdict: it copies deeply, which was half of the time of a bill over 10,000 clusters.
    prices = choose_prices(vars(account.preferences), parsed(row.prices, {}), names)
    return estimate(
        prices,
        thread_s=row.thread_us / 1e6,
        memory_byte_s=row.memory_byte_s,
        compute_s=row.compute_us / 1e6,
        threads=row.threads,
        memory_limit=row.memory_limit,
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


def cluster_view(
    row: Cluster, account: Account, base: str, now_us: int, lost_rows: Mapping[int, int]
) -> contract.Cluster:
    """Return a cluster as lists show it."""
    live, idle = row.is_live, row.idle_since_us
    return {
        "id": row.cluster,
        "scheduler_id": row.cluster,
        "name": row.name,
        "user": row.user,
        "host": row.host,
        "address": row.address,
        "account": account.name,
        "state": row.state,
        "status": "running" if live else "stopped",
        "reason": describe_state(row, row.state, scheduler_now_us(row, now_us)),
        "created": moment(row.start_us or row.created_us),
        "start": moment(row.start_us),
        "end": moment(row.end_us),
        "last_seen": moment(row.seen_us),
        "last_work": moment(row.last_work_us),
        "idle_since": moment(idle),
        "duration": seconds(recorded_us(row, now_us)),
        "workers": row.workers if live else 0,
        "threads": row.threads if live else 0,
        "memory": row.memory if live else 0,
        # For an ended cluster, its peak.
        "memory_limit": row.memory_limit if live else row.peak_memory_limit,
        "peak_workers": row.peak_workers,
        "peak_threads": row.peak_threads,
        "peak_memory_limit": row.peak_memory_limit,
        "clock_offset": seconds(row.clock_offset_us),
        "tasks_processing": row.tasks_processing,
        "tasks_queued": row.tasks_queued,
        "tasks_unrunnable": row.tasks_unrunnable,
        "n_tasks": row.tasks,
        "n_errors": row.errors,
        "n_exceptions": row.exceptions,
        "n_computations": row.computations,
        "thread_seconds": seconds(row.thread_us),
        "compute_seconds": seconds(row.compute_us),
        "transfer_seconds": seconds(row.transfer_us),
        "disk_seconds": seconds(row.disk_us),
        "idle_seconds": seconds(max(0, scheduler_now_us(row, now_us) - idle)) if live and idle else 0.0,
        "nbytes": row.nbytes,
        "tags": tags_of(row),
        "versions": parsed(row.versions, {}),
        "platform": parsed(row.platform, {}),
        "dropped": parsed(row.dropped, {}),
        "missing_rows": lost_rows.get(row.id, 0),
        "cost": cost_view(cost_of(row, account), live=live),
        "url": f"{base}/{account.name}/clusters/{quote(row.cluster, safe='')}",
    }


def listed_clusters(
    tx: Transaction, rows: Sequence[Cluster], account: Account, base: str, now_us: int, lost_rows: Mapping[int, int]
) -> list[contract.ListedCluster]:
    """Return clusters, each with what went wrong in it."""
    errors = fatal_errors(tx, account.id, [row.id for row in rows if row.state == "failed"])
    lost = lost_workers(tx, [row.id for row in rows])
    tasks = progress(tx, [row.id for row in rows if row.state == "running"])
    items: list[contract.ListedCluster] = []
    for row in rows:
        error, workers = errors.get((row.id, "")), lost.get(row.id, [])
        # The recorder did not send the errors of all failed tasks.
        unnamed = f"{units.counted(row.errors, 'task')} failed" if row.state == "failed" and row.errors else ""
        view = cluster_view(row, account, base, now_us, lost_rows)
        done, total = tasks.get(row.id, (0, 0))
        is_counted = total > 0 and (row.tasks_processing + row.tasks_queued > 0 or not row.tasks_unrunnable)
        items.append(
            {
                **view,
                "reason": f"{units.count(done)} of {units.counted(total, 'task')} done"
                if is_counted
                else view["reason"],
                "lost_workers": len(workers),
                "problem": error_line(error) if error else unnamed or (describe_losses(workers) if workers else ""),
            }
        )
    return items


def scheduler_now_us(row: Cluster, now_us: int) -> int:
    """Return the current time on a scheduler's clock.

    Without a clock offset, assume that the last batch was sent when it arrived.
    """
    offset, seen = row.clock_offset_us, row.seen_us
    return max(seen, now_us - offset if offset or not seen else seen + max(0, now_us - row.received_us))


def recorded_us(row: Cluster, now_us: int) -> int:
    """Return how long a cluster has been recorded: the duration of its document."""
    begin = row.recording_us or row.start_us
    if not begin:
        return 0
    seen = scheduler_now_us(row, now_us) if row.is_live else row.seen_us
    return max(0, (row.end_us or seen) - begin)


def computation_view(row: Computation, account: Account, base: str, now_us: int) -> contract.Computation:
    sums = row.sums
    # A running computation counts until now on the scheduler's clock, a lost one until its cluster was last seen.
    last = now_us - row.clock_offset_us if row.state == "running" else max(row.seen_us, row.cluster_seen_us)
    stop = row.stop_us or last
    cluster = quote(row.cluster, safe="")
    return {
        "id": row.computation,
        "cluster_id": row.cluster,
        "scheduler_id": row.cluster,
        "cluster_name": row.cluster_name,
        "user": row.user,
        "state": row.state,
        "code": row.code,
        "call": call_line(row.code, row.code_line),
        "code_file": row.code_file,
        "code_line": row.code_line,
        "start": moment(row.start_us),
        "stop": moment(row.stop_us),
        "duration": seconds(max(0, stop - row.start_us)),
        "n_tasks": row.tasks,
        "states": {name: getattr(row, name) for name in ("memory", "erred", "released", "forgotten", "unfinished")},
        "n_executions": sums.tasks,
        # Dask's counter also has tasks that could not run because of a failed one.
        "n_errors": sums.errors or row.erred,
        "durations": {
            "compute": seconds(sums.compute_us),
            "transfer": seconds(sums.transfer_us),
            "disk": seconds(sums.disk_us),
            "deserialize": seconds(sums.deserialize_us),
        },
        "nbytes": sums.nbytes,
        "n_groups": row.groups,
        "n_submissions": row.submissions,
        "span": row.span,
        "client": row.client,
        "url": f"{base}/{account.name}/clusters/{cluster}/computations/{quote(row.computation, safe='')}",
    }


def usual_view(usual: Usual | None) -> live_contract.UsualDuration | None:
    if usual is None:
        return None
    left = usual.left
    return {
        "runs": usual.runs,
        "median": seconds(usual.median_us),
        "low": seconds(usual.low_us),
        "high": seconds(usual.high_us),
        "left": {"low": seconds(left.low_us), "high": seconds(left.high_us)} if left else None,
        "state": usual.state,
        "sentence": usual.sentence,
    }


def exception_view(row: Failure, account: Account, base: str) -> contract.Failure:
    return {
        "id": row.id,
        "time": moment(row.time_us),
        "cluster_id": row.cluster,
        "scheduler_id": row.cluster,
        "cluster_name": row.cluster_name,
        "user": row.user,
        "type": row.type,
        "message": row.texts.message,
        "traceback": row.texts.traceback,
        "cause_type": row.cause_type,
        "cause_message": row.texts.cause_message,
        "key": row.key,
        "prefix": row.prefix,
        "computation_id": row.computation,
        "worker": row.worker,
        "fingerprint": row.fingerprint,
        "will_retry": bool(row.will_retry),
        "count": row.count,
        "url": f"{base}/{account.name}/errors/{quote(row.fingerprint, safe='')}",
    }


def error_group_view(row: ErrorGroup, account: Account, base: str) -> contract.ErrorGroup:
    place = raised_in(row.sample.traceback)
    return {
        "fingerprint": row.fingerprint,
        "type": row.type,
        "message": row.sample.cause_message or row.sample.message,
        "first_seen": moment(row.first_us),
        "last_seen": moment(row.last_us),
        "count": row.count,
        "n_fatal": row.fatal,
        "n_computations": row.computations,
        "n_clusters": row.clusters,
        "users": sorted(row.users),
        "function": place.function,
        "file": place.file,
        "line": place.line,
        "state": row.state,
        "state_since": moment(row.state_us),
        "state_by": row.state_by,
        "url": f"{base}/{account.name}/errors/{quote(row.fingerprint, safe='')}",
    }


def prefix_views(prefixes: list[tuple[str, Sums]], of_cluster: list[tuple[str, Sums]]) -> list[Prefix]:
    """Return prefixes with their order in the whole cluster, so that a computation has the colours of its cluster."""
    first = sorted(of_cluster, key=lambda item: (item[1].first_us, item[0]))
    order = {name: position for position, (name, _) in enumerate(first)}
    return [_prefix_view(name, sums, order.get(name, len(order))) for name, sums in prefixes]


def _prefix_view(prefix: str, sums: Sums, order: int) -> Prefix:
    compute, timed = seconds(sums.compute_us), sums.tasks - sums.killed
    return {
        "prefix": prefix,
        "tasks": sums.tasks,
        "errors": sums.errors,
        "retried": sums.retried,
        "killed": sums.killed,
        "nbytes": sums.nbytes,
        "compute": compute,
        "transfer": seconds(sums.transfer_us),
        "disk": seconds(sums.disk_us),
        "deserialize": seconds(sums.deserialize_us),
        "longest": seconds(sums.longest_us),
        # Executions killed with their worker have no duration.
        "mean": round(compute / timed, 6) if timed > 0 else 0.0,
        "order": order,
    }


def report_view(row: Report, base: str) -> HostedReport:
    url = f"{base}/{row.account}/reports/{row.number}"
    public = row.visibility == "public" and row.share
    return {
        "id": row.number,
        "filename": row.filename,
        "title": row.title,
        "private": not public,
        "url": f"{url}/{row.share}" if public else url,
        "kind": row.kind,
        "account": row.account,
        "user": row.user,
        "created": moment(row.created_us),
        "expires": moment(row.expires_us),
        "size": row.nbytes,
        "duration": seconds(row.duration_us),
        "n_tasks": row.tasks,
        "n_errors": row.errors,
        "state": row.status,
        "cluster_id": row.cluster,
        "tags": [encodable(tag) for tag in row.tags],
    }


EPOCH = date(1970, 1, 1)


def paid_by_day(runs: Sequence[PaidRun], account: Account, first_day: int, days: int) -> tuple[Array, Array]:
    """Return the amounts of each run (as in ``Paid``) and the share of each that falls on each day."""
    costs = [cost_of(run, account) for run in runs]
    amounts = np.array(
        [[run.thread_us / 1e6, cost.total, cost.busy, cost.idle] for run, cost in zip(runs, costs, strict=True)],
        dtype=np.float64,
    ).reshape(-1, 4)
    start = np.array([run.start_us or run.created_us for run in runs], dtype=np.float64)
    stop = np.array([run.end_us or run.seen_us for run in runs], dtype=np.float64)
    return amounts, day_shares(start, stop, first_day, days)


def date_of(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()


def recent_view(run: RecentRun, lost: int) -> contract.RecentRun:
    """Return a run as a dot in the strip of its name; ``lost`` is the number of workers that it lost."""
    begin, stop = run.recording_us or run.start_us, run.end_us or run.seen_us
    return {
        "id": run.cluster,
        "start": moment(run.start_us),
        "duration": seconds(max(0, stop - begin)) if begin else 0.0,
        "state": run.state,
        "lost_workers": lost,
    }
