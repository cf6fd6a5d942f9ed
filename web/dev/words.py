"""Texts of the made-up run: findings, errors, events, stacks, groups and tables."""

from __future__ import annotations

import json
from collections.abc import Callable

STACKS = """_execute_task d 97
 normalize_address u 42
  Series.map l 40
   map_infer l 39
    clean_one u 38
     re.sub d 26.5
      Pattern.sub n 21
      re._compile d 3.6
     str.strip n 4.2
     str.title n 3.4
     unidecode l 2.6
 shuffle_transfer d 21
  split_by_worker l 14
   DataFrame.take l 9
    take_nd n 8.2
   concat l 3.8
  serialize_table l 6
   RecordBatch.to_ipc n 5.4
 unpack_partition d 15
  read_ipc l 9
   pa.ipc.open n 8
  to_pandas l 5
   table_to_blocks n 4.5
 groupby_chunk d 17
  GroupBy.agg l 15.5
   _cython_agg l 12.6
    group_mean n 6.2
    group_sum n 5.2
   factorize l 2.2
    hashtable n 2
deserialize d 2.6
 pickle.loads n 2.3"""
FILES = {"d": "distributed/worker.py", "u": "features/clean.py", "l": "pandas/core/frame.py", "n": "<native>"}
KINDS = {"d": "dask", "u": "user", "l": "lib", "n": "native"}


def flame_tree(evil: str) -> tuple[list[list[object]], list[int], list[int], list[tuple[int, float]]]:
    frames: list[list[object]] = []
    parents: list[int] = []
    weights: list[float] = []
    stack: list[tuple[int, int]] = []
    for i, text in enumerate(STACKS.splitlines()):
        depth = len(text) - len(text.lstrip())
        name, kind, weight = text.split()
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parent = stack[-1][1] if stack else -1
        frames.append([FILES[kind], name + (evil if name == "str.title" else ""), 10 + i * 7, KINDS[kind]])
        parents.append(parent)
        weights.append(float(weight))
        if parent >= 0:
            weights[parent] -= float(weight)
        stack.append((depth, i))
    return frames, parents, list(range(len(frames))), [(i, max(w, 0)) for i, w in enumerate(weights)]


def findings(start: int, evil: str) -> list[dict[str, object]]:
    s = 1_000_000
    return [
        {"kind": "Straggler", "title": "Two groupby-agg tasks kept 30 threads waiting", "evidence": "They ran 26.5 s after everything else was done. Their inputs are 6.3 to 8.4 × the median: zones 132 and 138 hold 31 % of all rows.", "advice": "Split the skewed zones, or use split_out=8.", "view": "stream", "start_us": start + 196 * s, "stop_us": start + 215 * s},
        {"kind": "Python loop", "title": "normalize_address spends 63 % in re.sub per row" + evil, "evidence": "It is 22 % of thread time and holds the interpreter lock: 4 threads of a worker gave 2.1 × the work of one.", "advice": "Use Series.str.replace on Arrow strings.", "view": "profile", "start_us": start + 112 * s, "stop_us": start + 175 * s},
        {"kind": "Lost worker", "title": "Worker w-5 was killed at 95 % of its memory", "evidence": "At 2:21.6 it held 15.2 of 16 GiB, 6.7 GiB of it unmanaged. 46 tasks ran again; 4 threads were missing for 16 s.", "advice": "Read in smaller partitions: 96 MiB instead of 180.", "view": "workers", "start_us": start + 130 * s, "stop_us": start + 160 * s},
        {"kind": "Idle", "title": "No task ran for 3.1 s at the start", "evidence": "The graph was being sent.", "advice": "", "view": "stream", "start_us": start, "stop_us": start + 4 * s},
        {"kind": "Spill", "title": "Six workers wrote 14 GiB to disk", "evidence": "Disk took 4 % of thread time.", "advice": "Use more memory or smaller partitions.", "view": "memory", "start_us": 0, "stop_us": 0},
    ]


def errors(start: int, addresses: list[str], names: list[str], evil: str) -> list[dict[str, object]]:
    trace = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.13/site-packages/distributed/worker.py", line 2298, in execute
    result = await self.loop.run_in_executor(
  File "/opt/venv/lib/python3.13/site-packages/dask/_task_spec.py", line 744, in __call__
    return self.func(*new_argspec)
  File "/home/user/features/clean.py", line 41, in clean_partition
    return frame.assign(amount=frame.amount.map(parse_amount))
  File "/opt/venv/lib/python3.13/site-packages/pandas/core/series.py", line 4719, in map
    new_values = self._map_values(func)
  File "/opt/venv/lib/python3.13/site-packages/pandas/core/algorithms.py", line 1743, in map_array
    return lib.map_infer(values, mapper)
  File "/home/user/features/clean.py", line 88, in parse_amount
    return float(text)
ValueError: could not convert string to float: '1.204,50'""" + evil
    s = 1_000_000
    return [
        {"fingerprint": "ab12", "type": "ValueError", "message": "could not convert string to float: '1.204,50'" + evil, "traceback": trace, "count": 5, "retried": 5, "first_us": start + 118 * s, "last_us": start + 150 * s, "prefixes": names[:2], "workers": addresses[:3], "keys": [f"('clean-partition-9f1c', {i})" for i in range(5)]},
        {"fingerprint": "cd34", "type": "KilledWorker", "message": "Attempted to run task on 4 different workers, but all those workers died while running it.", "traceback": "", "count": 1, "retried": 0, "first_us": start + 142 * s, "last_us": start + 142 * s, "prefixes": names[:1], "workers": addresses[:1], "keys": ["('normalize_address-77aa', 3)"]},
    ]


def events(start: int, length: int, addresses: list[str], evil: str) -> list[dict[str, object]]:
    rows = [
        ("scheduler", "worker-added", "Worker joined"), ("log", "WARNING", "Unresponsive for 3.2 s" + evil), ("log", "ERROR", "Worker exceeded 95% memory budget. Restarting..."),
        ("scheduler", "worker-removed", "Worker left: killed by the nanny"), ("client", "computation", "compute() of 420 tasks"), ("user", "checkpoint", "epoch 3"),
    ]
    return [{"time_us": start + int(i / 41 * length), "source": rows[i % 6][0], "kind": rows[i % 6][1], "worker": addresses[i % len(addresses)] if i % 6 != 4 else "", "text": rows[i % 6][2], "repeats": 3 if i % 6 == 1 else 1} for i in range(41)]


def groups(names: list[str], start: int, length: int) -> list[dict[str, object]]:
    stages = ["read-parquet", "str-contains", "shuffle-transfer", "shuffle-p2p", "normalize_address", "groupby-chunk", "groupby-agg", "to-parquet"]
    found = [n for n in stages if n in names] or list(names)
    kinds = ["noncpu", "cpu", "transfer", "disk", "cpu", "cpu", "transfer", "noncpu"]
    out: list[dict[str, object]] = []
    for i, n in enumerate(found):
        out.append({"group": f"{n}-9f1c{i}", "prefix": n, "computation": "c0", "span": "", "start_us": start + i * length // 9, "stop_us": start + (i + 2) * length // 9, "tasks": 420 - 40 * i, "nbytes": int(60 * 2**30 / (1 + i * i)), "errors": 3 if i == 4 else 0, "durations_us": {"compute": 10**9 // (i + 1), "transfer": 10**8}, "dominant": kinds[i % 8], "dependencies": [i - 1] if i == 1 or i > 2 else [0] if i == 2 else []})
    if len(out) > 6:
        out[6]["dependencies"] = [5, 1]
    return out


def tables(start: int, names: list[str], addresses: list[str], n: int, evil: str, encode: Callable[..., dict[str, object]]) -> list[dict[str, object]]:
    rows = min(n, 5000)
    tasks = [
        {"name": "key", "kind": "str", "meaning": "the task's key", "values": [f"('{names[i % len(names)]}-9f', {i})" + (evil if i == 4 else "") for i in range(rows)]},
        {"name": "prefix", "kind": "str", "meaning": "task prefix", "values": [names[i % len(names)] for i in range(rows)]},
        {"name": "start_us", "kind": "time", "meaning": "when it started to compute", "values": [start + i * 45_000 for i in range(rows)]},
        {"name": "nbytes", "kind": "int", "meaning": "size of the result", "values": [i * 7919 % 180_000_000 for i in range(rows)]},
        {"name": "score", "kind": "float", "meaning": "a number", "values": [i * 0.37 % 11 for i in range(rows)]},
    ]
    workers = [{"name": "worker", "kind": "str", "meaning": "address", "values": addresses}, {"name": "threads", "kind": "int", "meaning": "threads", "values": [4] * len(addresses)}]
    def packed(columns: list[dict[str, object]]) -> dict[str, object]:
        data = encode([json.dumps(c.pop("values")) for c in columns], "utf8")
        return {"columns": columns, "data": data}

    return [
        {"name": "tasks", "row": "one execution of one task", "rows": rows, "of": n, "dropped": 0, **packed(tasks)},
        {"name": "workers", "row": "a worker's life", "rows": len(addresses), "of": len(addresses), "dropped": 0, **packed(workers)},
    ]
