"""The parts of a report document for a made-up run. The real encoder is Python's; this one only has to look alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from run import ACTIONS, STATUSES, THREADS, Run
from words import errors, events, findings, flame_tree, groups, tables

START = 1_794_000_000_000_000
CATEGORIES = ["cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle"]
LABELS = ["CPU", "Waiting in task", "Serialize", "Disk", "Transfer", "Lost or failed", "Idle"]
ACTION_CATEGORY = np.array([0, 4, 3, 3, 2])
LIMIT = 16 * 2**30
Encode = Callable[..., dict[str, object]]


def zigzag(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.int64)
    return np.where(values < 0, -2 * values - 1, 2 * values)


def spread(start: np.ndarray, stop: np.ndarray, width: float, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, bin and overlap of intervals with the bins."""
    first = np.clip((start // width).astype(int), 0, bins - 1)
    last = np.clip((stop // width).astype(int), 0, bins - 1)
    row = np.repeat(np.arange(len(start)), last - first + 1)
    at = np.arange(len(row)) - np.repeat(np.cumsum(last - first + 1) - (last - first + 1), last - first + 1)
    b = first[row] + at
    over = np.minimum(stop[row], (b + 1) * width) - np.maximum(start[row], b * width)
    return row, b, np.maximum(over, 0)


def cube(encode: Encode, keys: dict[str, tuple[list[str], np.ndarray]], bins: np.ndarray, measures: dict[str, np.ndarray]) -> dict[str, object]:
    """Sums of rows with the same codes and bin."""
    code = np.zeros(len(bins), np.int64)
    sizes = [len(labels) or 1 for labels, _ in keys.values()]
    for (_, codes), size in zip(keys.values(), sizes, strict=True):
        code = code * size + codes
    full = code * (int(bins.max()) + 1 if len(bins) else 1) + bins
    unique, inverse = np.unique(full, return_inverse=True)
    top = int(bins.max()) + 1 if len(bins) else 1
    columns: dict[str, object] = {"bin": encode(unique % top)}
    rest = unique // top
    for (name, _), size in zip(reversed(keys.items()), reversed(sizes), strict=True):
        columns[name] = encode(rest % size)
        rest = rest // size
    for name, values in measures.items():
        columns[name] = encode(np.bincount(inverse, values, len(unique)).round(3), "f64") if name == "value" else encode(np.bincount(inverse, values, len(unique)).round(), "u32" if len(values) == 0 or np.bincount(inverse, values, len(unique)).max() < 2**32 else "f64")
    return {"keys": {k: v[0] for k, v in keys.items()}, "measures": list(measures), "rows": len(unique), "columns": columns}


def series(encode: Encode, run: Run, bins: int, width: float) -> dict[str, object]:
    t = (np.arange(bins) + 0.5) * width / run.length
    rng = np.random.default_rng(3)
    out: dict[str, list[np.ndarray]] = {k: [] for k in ("process", "managed", "unmanaged", "spilled", "cpu_percent", "gil_contention")}
    for i, (_, a, b, lost) in enumerate(run.workers):
        shape = 0.25 + 0.4 * np.sin(np.pi * np.clip((t * run.length - a) / max(run.length - a, 1), 0, 1)) + rng.normal(0, 0.012, bins).cumsum() * 0.1
        managed = np.clip(shape * (0.8 + 0.05 * (i % 5)), 0.05, 0.9) * LIMIT
        if lost:
            managed = managed * np.where(t * run.length > b - 30, 1.3, 1)
        unmanaged = LIMIT * (0.06 + 0.1 * rng.random(bins).cumsum() / bins)
        spilled = np.where(managed > 0.55 * LIMIT, (managed - 0.55 * LIMIT) * 0.8, 0)
        alive = (t * run.length >= a) & (t * run.length <= b)
        for name, v in (("process", managed + unmanaged), ("managed", managed), ("unmanaged", unmanaged), ("spilled", spilled), ("cpu_percent", 300 * rng.random(bins)), ("gil_contention", rng.random(bins) * 0.4)):
            out[name].append(np.where(alive, v, np.nan))
    flat = {k: np.concatenate(v) if v else np.zeros(0) for k, v in out.items()}
    return {"workers": [address(i) for i in range(len(run.workers))], "measures": {k: encode(np.round(v / 2**20) * 2**20 if k in ("process", "managed", "unmanaged", "spilled") else np.round(v, 2), "f32") for k, v in flat.items()}}


def address(i: int) -> str:
    return f"tcp://10.0.{i // 250}.{i % 250 + 1}:40001"


def stream(encode: Encode, run: Run, rank: np.ndarray, key: Callable[[int], str]) -> tuple[dict[str, object], np.ndarray]:
    tasks, bars = run.columns()
    task = bars[:, 0].astype(int)
    lane = tasks[task, 1].astype(int) if len(bars) else np.zeros(0, int)
    order = np.lexsort((bars[:, 2], lane))
    bars, task, lane = bars[order], task[order], lane[order]
    start, stop = (bars[:, 2] * 1e6).round().astype(np.int64), (bars[:, 3] * 1e6).round().astype(np.int64)
    tick = max(1, int(np.ceil(run.length * 1e6 / 2**31)))
    start, stop = start // tick, np.maximum(stop // tick, start // tick)
    before = np.concatenate([[0], stop[:-1]]) if len(stop) else np.zeros(0, int)
    first = np.concatenate([[True], lane[1:] != lane[:-1]]) if len(lane) else np.zeros(0, bool)
    before[first] = 0
    action = bars[:, 1].astype(int)
    number = np.full(len(tasks), -1)
    executed = task[action == 0]
    number[executed] = np.arange(len(executed))
    nexts = np.cumsum(action == 0) - (action == 0)
    owner = (number[task] - nexts)[action != 0]
    lanes = []
    for i in range(len(run.workers) * THREADS):
        at = np.searchsorted(lane, [i, i + 1])
        n = int((action[at[0] : at[1]] == 0).sum())
        lanes.append({"worker": i // THREADS, "thread": i % THREADS, "first": int(at[0]), "count": int(at[1] - at[0]), "tasks": n})
    t = tasks[executed] if len(tasks) else tasks
    rng = np.random.default_rng(5)
    columns = {
        "gap": encode(zigzag(start - before), "u32"),
        "duration": encode((stop - start) * tick, "u32"),
        "action": encode(action, "u8"),
        "owner": encode(zigzag(owner), "u32"),
        "prefix": encode(rank[t[:, 0].astype(int)] if len(t) else [], "u8"),
        "status": encode(t[:, 4], "u8"),
        "type": encode(t[:, 0] % 3, "u8"),
        "nbytes": encode(t[:, 5].round(), "u32"),
        "wait": encode(rng.exponential(2e5 / tick, len(t)).round(), "u32"),
        "computation": encode(np.minimum(t[:, 0] // 3 + 1, 3), "u8"),
        "queue": encode(rng.exponential(9e5 / tick, len(t)).round(), "u32"),
        "key": encode([key(i) for i in range(len(t))], "utf8"),
    }
    head = {"tick_us": tick, "templates": [], "lanes": lanes, "actions": ACTIONS, "statuses": STATUSES, "types": ["pandas.DataFrame", "numpy.ndarray", "dict"]}
    return {**head, "bars": len(bars), "tasks": len(t), "of": len(t) + (31_000 if len(t) > 900_000 else 0), "columns": columns}, executed


def document(run: Run, encode: Encode, *, evil: str) -> dict[str, object]:
    tasks, bars = run.columns()
    length_us = round(run.length * 1e6)
    width_us = max(1, -(-length_us // 500))
    bins, width = -(-length_us // width_us), width_us / 1e6
    total = np.bincount(tasks[:, 0].astype(int), tasks[:, 3] - tasks[:, 2], len(run.prefixes)) if len(tasks) else np.zeros(0)
    order = np.argsort(-total)
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    names = [run.prefixes[i] for i in order]
    owner = bars[:, 0].astype(int)
    prefix = rank[tasks[owner, 0].astype(int)] if len(bars) else np.zeros(0, int)
    worker = (tasks[owner, 1] // THREADS).astype(int) if len(bars) else np.zeros(0, int)
    category = ACTION_CATEGORY[bars[:, 1].astype(int)]
    bad = (tasks[owner, 4] != 0) | (tasks[owner, 6] != 0) if len(bars) else np.zeros(0, bool)
    category = np.where(bad, 5, category)
    row, b, over = spread(bars[:, 2], bars[:, 3], width, bins)
    p, w, c, us = prefix[row], worker[row], category[row], over * 1e6
    cpu = np.array([run.cpu[i] for i in order]) if len(order) else np.zeros(0)
    share = cpu[p] if len(p) else np.zeros(0)
    computing = c == 0
    p, w, b2 = np.concatenate([p, p[computing]]), np.concatenate([w, w[computing]]), np.concatenate([b, b[computing]])
    c2 = np.concatenate([c, np.ones(int(computing.sum()), int)])
    us = np.concatenate([np.where(computing, us * share, us), us[computing] * (1 - share[computing])])
    addresses = [address(i) for i in range(len(run.workers))]
    # idle: what is left of each worker's threads in each bin
    life = [spread(np.array([a]), np.array([z]), width, bins) for _, a, z, _ in run.workers]
    busy = np.zeros((max(len(run.workers), 1), bins))
    np.add.at(busy, (w, b2), us)
    iw, ib, iv = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
    for i, (_, at, much) in enumerate(life):
        iw.append(np.full(len(at), i)), ib.append(at), iv.append(np.maximum(much * 1e6 * THREADS - busy[i, at], 0))
    wi, bi, vi = np.concatenate(iw), np.concatenate(ib), np.concatenate(iv)
    by_worker = cube(encode, {"worker": (addresses, np.concatenate([w, wi])), "category": (CATEGORIES, np.concatenate([c2, np.full(len(wi), 6)]))}, np.concatenate([b2, bi]), {"us": np.concatenate([us, vi])})
    spans = ["", "load", "shuffle", "aggregate"] if len(tasks) else []
    span_of = np.array([{"read": 1, "str-": 1, "shuf": 2}.get(n[:4], 3) for n in names] or [0])
    split = np.bincount(c2, us, 7)
    split[6] = vi.sum()
    split = split.round().astype(int)
    n = len(tasks)
    key = lambda i: f"('{names[i % max(len(names), 1)]}-9f1c{i % 97:02x}', {i}){evil if i % 50 == 3 else ''}"  # noqa: E731
    doc_stream, executed = stream(encode, run, rank, key)
    stop_bin = np.clip((tasks[:, 3] // width).astype(int), 0, bins - 1)
    prefixes = []
    for r, i in enumerate(order):
        mine = tasks[tasks[:, 0] == i]
        d = np.sort(mine[:, 3] - mine[:, 2]) * 1e6
        q = [int(x) for x in np.quantile(d, [0.5, 0.95, 0.99, 1])]
        prefixes.append({"prefix": names[r], "count": len(mine), "total_us": int(d.sum()), "mean_us": int(d.mean()), "std_us": int(d.std()), "p50_us": q[0], "p95_us": q[1], "p99_us": q[2], "max_us": q[3], "nbytes": int(mine[:, 5].sum()), "peak_memory": int(mine[:, 5].max() * 2.2), "errors": int((mine[:, 4] == 2).sum()), "retries": int((mine[:, 4] == 2).sum()), "killed": int((mine[:, 4] == 3).sum()), "recomputed_us": int((mine[mine[:, 6] > 0, 3] - mine[mine[:, 6] > 0, 2]).sum() * 1e6), "intervals_us": {}})
    workers = []
    for i, (name, a, z, lost) in enumerate(run.workers):
        mine = tasks[(tasks[:, 1] // THREADS) == i]
        used = int(busy[i].sum())
        workers.append({"worker": addresses[i], "name": name, "host": f"node-{i // 2}", "threads": THREADS, "memory_limit": LIMIT, "start_us": START + round(a * 1e6), "stop_us": START + round(z * 1e6), "verdict": "memory kill" if lost else "", "evidence": "the nanny logged \"Worker exceeded 95% memory budget\" 0.4 s before" if lost else "", "tasks": len(mine), "busy_us": used, "utilisation": used / max((z - a) * 1e6 * THREADS, 1), "peak_memory": int(LIMIT * (0.95 if lost else 0.6 + 0.03 * (i % 5))), "spilled": int(1.5 * 2**30) if i % 3 == 0 else 0, "processing": [key(5), key(9)] if lost else [], "processing_count": 9 if lost else 0, "lost_count": 46 if lost else 0, "recomputed_us": 71_000_000 if lost else 0})
    rng = np.random.default_rng(9)
    nt = 20 * min(len(run.workers), 40) ** 2 // 4 if n else 0
    src, dst = rng.integers(0, min(len(run.workers), 40) or 1, (2, nt))
    tb = np.clip(rng.normal(bins * 0.33, bins * 0.08, nt), 0, bins - 1).astype(int)
    nbytes = rng.exponential(4e7, nt)
    frames, parents, nodes, ends = flame_tree(evil)
    kinds = ["compute", "worker", "scheduler"]
    fn = 6000 if n else 0
    fk = rng.choice(3, fn, p=[0.9, 0.07, 0.03])
    fs = rng.choice([e[0] for e in ends], fn, p=np.array([e[1] for e in ends]) / sum(e[1] for e in ends)) if fn else np.zeros(0, int)
    fp = rng.integers(0, max(len(names), 1), fn)
    an = ["thread-cpu", "thread-noncpu", "deserialize", "serialize", "disk-read", "disk-write", "memory-read", "network", "decompress", "shard-partition" + evil]
    ac, ap, aa, au, ab, av = [], [], [], [], [], []
    for i in range(6 * bins if n else 0):
        a = i % len(an)
        ac.append(0 if a < 7 else 1 + i % 3), ap.append(i % len(names)), aa.append(a), au.append(i % 5 == 4), ab.append(i % bins)
        av.append(float(rng.exponential(2.0 if not au[-1] else 8e6)))
    units = ["seconds", "bytes", "count"]
    steps = [{"key": key(i * 7), "prefix": names[min(i, len(names) - 1)], "worker": addresses[i % len(addresses)], "start_us": START + int(i / 8 * length_us), "stop_us": START + int((i + 0.8) / 8 * length_us), "wait_us": int(0.2 / 8 * length_us)} for i in range(8)] if n else []
    lost = [w for w in run.workers if w[3]]
    total_us = int(split.sum())
    en = min(n * 2, 200_000)
    et = np.sort(rng.integers(0, max(n, 1), en))
    ed = np.maximum(et - rng.integers(1, 400, en), 0)
    return {
        "schema": 1, "generator": "daskscope sample", "title": ("trips.groupby(\"zone\").agg(fares).to_parquet(out)" + evil) if n else "Empty run", "made_us": START + length_us + 5_000_000, "start_us": START, "stop_us": START + length_us,
        "answer": {"status": "finished" if n else "idle", "headline": "Finished in 4 min 10 s." if n else "Nothing ran.", "reason": "Threads computed 65 % of the time, moved data 17 % and stood idle 16 %, most of it in the last 27 s." if n else "No task was executed while this was recorded."},
        "totals": {"duration_us": length_us, "tasks": n, "errors": int((tasks[:, 4] == 2).sum()), "retries": int((tasks[:, 4] == 2).sum()), "killed": int((tasks[:, 4] == 3).sum()), "recomputed": int(tasks[:, 6].sum()), "workers": len(run.workers), "workers_lost": len(lost), "threads": max(len(run.workers) - 1, 0) * THREADS, "thread_us": total_us, "compute_us": int(split[0] + split[1]), "idle_us": int(split[6]), "fully_idle_us": 3_100_000 if n else 0, "nbytes": int(tasks[:, 5].sum()), "peak_memory": 108 * 2**30 if n else 0, "memory_limit": LIMIT * max(len(run.workers) - 1, 0), "spilled": 14 * 2**30 if n else 0, "transferred": int(nbytes.sum()), "parallelism": float(split[:6].sum() / max(length_us, 1))},
        "split": [{"category": k, "label": lab, "us": int(v)} for k, lab, v in zip(CATEGORIES, LABELS, split, strict=True)],
        "findings": findings(START, evil) if n else [], "facts": [{"label": "Dask", "text": "2026.8.0"}, {"label": "Python", "text": "3.13.1"}, {"label": "Cluster", "text": "LocalCluster, 8 workers"}, {"label": "Client", "text": "notebook " + evil}], "statement": f"{n:,} of {n:,} tasks, nothing dropped" if n < 900_000 else "Samples were dropped twice: 31,000 tasks have no bar", "complete": n < 900_000, "view": "overview", "calling_code": "trips = load(src)\nwrite(trips, dst)" + evil, "failure": ("Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    boom()\nRuntimeError: " + evil) if evil else "",
        "prefixes": prefixes, "workers": workers,
        "computations": [{"computation": f"c{i}", "state": s, "start_us": START + int(a * length_us), "stop_us": START + int(z * length_us), "tasks": k, "errors": e, "span": "", "code": code, "code_line": line, "code_file": "features.py"} for i, (s, a, z, k, e, code, line) in enumerate([("finished", 0, 0.45, 1260, 0, "trips = dd.read_parquet(src)\ntrips = trips[trips.note.str.contains('zone')]\ntrips = trips.shuffle('zone')\ntrips = trips.persist()", 3), ("erred", 0.45, 0.7, 466, 3, "clean = trips.map_partitions(normalize_address)" + evil + "\nclean.compute(retries=3)", 1), ("finished", 0.7, 1, 546, 0, "out = clean.groupby('zone').agg(fares)\nout.to_parquet(dst)", 1)])] if n else [],
        "groups": groups(names, START, length_us), "spans": [{"span": s, "name": s or "default", "parent": "", "start_us": START, "stop_us": START + length_us} for s in spans],
        "errors": errors(START, addresses, names, evil) if n else [], "events": events(START, length_us, addresses, evil) if n else [], "events_of": 41 if n else 0,
        "critical_path": {"known": bool(n), "length_us": int(0.96 * length_us) if n else 0, "compute_us": int(0.77 * length_us) if n else 0, "wait_us": int(0.19 * length_us) if n else 0, "bound_us": int(0.77 * length_us) if n else 0, "by_prefix": [[x, int(0.77 * length_us / 2**i)] for i, x in enumerate(names[:5], 1)], "steps": steps, "of": 34 if n else 0},
        "bins": {"count": int(bins), "width_us": width_us},
        "time_by_prefix": cube(encode, {"prefix": (names, p), "category": (CATEGORIES, c2)}, b2, {"us": us}),
        "time_by_worker": by_worker,
        "time_by_span": cube(encode, {"span": (spans, span_of[p] if len(p) else p), "category": (CATEGORIES, c2)}, b2, {"us": us}),
        "counts": cube(encode, {"prefix": (names, rank[tasks[:, 0].astype(int)] if n else np.zeros(0, int)), "status": (STATUSES, tasks[:, 4].astype(int))}, stop_bin, {"count": np.ones(n), "us": (tasks[:, 3] - tasks[:, 2]) * 1e6, "nbytes": tasks[:, 5]}),
        "activities": cube(encode, {"context": (["execute", "gather-dep", "get-data", "p2p"], np.array(ac, int)), "span": (spans or [""], np.array(ap, int) % max(len(spans), 1)), "prefix": (names, np.array(ap, int)), "activity": (an, np.array(aa, int)), "unit": (units, np.array(au, int))}, np.array(ab, int), {"value": np.array(av)}),
        "transfers": cube(encode, {"source": (addresses, src), "destination": (addresses, dst)}, tb, {"count": np.ones(nt), "nbytes": nbytes, "compressed": nbytes * 0.6, "us": nbytes / (2e8 / (1 + 2 * (src == 2))) * 1e6}),
        "series": series(encode, run, int(bins), width),
        "flame": {"frames": frames, "parents": encode(np.array(parents) + 1, "u32"), "nodes": encode(nodes, "u32"), "cube": cube(encode, {"kind": (kinds, fk), "prefix": (names, fp), "span": (spans or [""], fp % max(len(spans), 1)), "worker": (addresses, rng.integers(0, max(len(addresses), 1), fn)), "stack": ([], np.zeros(fn, int))} | {}, rng.integers(0, bins, fn), {"count": np.ones(fn)}) if not fn else flame_cube(encode, kinds, fk, names, fp, spans, addresses, rng, fs, len(nodes), int(bins)), "seconds_per_sample": split[0] / 1e6 / max(fn, 1), "got": fn, "expected": int(fn * 1.03)},
        "stream": doc_stream, "edges": {"tasks": encode(np.diff(et, prepend=0), "u32"), "dependencies": encode(zigzag(et - ed), "u32"), "rows": int(en), "of": int(n * 2)},
        "tables": tables(START, names, addresses, n, evil, encode),
    }


def flame_cube(encode: Encode, kinds: list[str], fk: np.ndarray, names: list[str], fp: np.ndarray, spans: list[str], addresses: list[str], rng: np.random.Generator, fs: np.ndarray, size: int, bins: int) -> dict[str, object]:
    found = cube(encode, {"kind": (kinds, fk), "prefix": (names, fp), "span": (spans, fp % len(spans)), "worker": (addresses, rng.integers(0, len(addresses), len(fs))), "stack": ([""] * size, fs)}, rng.integers(0, bins, len(fs)), {"count": np.ones(len(fs))})
    del found["keys"]["stack"]  # type: ignore[attr-defined]
    return found
