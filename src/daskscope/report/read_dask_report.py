"""Read a report written by Dask into the tables of a recording: the task stream, the profiles and the summary.

A report has less than a recording: bars instead of executions, rectangles instead of samples, and at most the last 100,000
bars. Columns it lacks stay empty.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask.utils import key_split, parse_timedelta

from daskscope.errors import RecordingError

#: Escape sequences in Bokeh's JSON; the ampersand must be last.
ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&#x60;", "`"), ("&amp;", "&"))
DOCUMENT = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


@dataclass
class Panel:
    """A tab of the page: its title, the columns of its plots, and its texts."""

    title: str
    sources: list[dict[str, list[Any]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def panels(page: str) -> list[Panel]:
    """Return the tabs of the first Bokeh document in the page."""
    for found in DOCUMENT.finditer(page):
        text = found.group(1)
        for escape, character in ESCAPES:
            text = text.replace(escape, character)
        try:
            documents = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for document in documents.values() if isinstance(documents, dict) else ():
            if isinstance(document, dict) and "roots" in document:
                return _panels(document)
    raise RecordingError("This page has no Bokeh document. Give a report written by distributed.performance_report().")


def _panels(document: dict[str, Any]) -> list[Panel]:
    roots = document["roots"]
    objects = {item["id"]: item for item in _objects(roots)}
    found = []
    for item in objects.values():
        if _type(item) in ("Panel", "TabPanel"):
            attributes = item.get("attributes", {})
            panel = Panel(str(attributes.get("title", "")))
            for part in _reachable(attributes.get("child"), objects, set()):
                _add(panel, part)
            found.append(panel)
    return found


def _add(panel: Panel, item: dict[str, Any]) -> None:
    attributes = item.get("attributes", {})
    if _type(item) == "ColumnDataSource":
        panel.sources.append(_columns(attributes.get("data")))
    elif _type(item) in ("Div", "Paragraph", "PreText"):
        panel.texts.append(str(attributes.get("text", "")))


def _type(item: dict[str, Any]) -> str:
    """Return the class of an object: its ``name`` in Bokeh 3, its ``type`` in Bokeh 2."""
    return str(item.get("name") if item.get("type") == "object" else item.get("type"))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object with an ID and attributes, at any depth. Not recursive, because the page is not trusted."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("id"), str) and "attributes" in item:
                yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _reachable(value: Any, objects: dict[str, dict[str, Any]], seen: set[str]) -> Iterator[dict[str, Any]]:
    """Yield an object and all objects it refers to, inline or by ID, each once."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            id_ = item.get("id")
            if isinstance(id_, str) and id_ in objects:
                if id_ in seen:
                    continue
                seen.add(id_)
                item = objects[id_]
                yield item
            stack.extend(item.values())


def _columns(data: Any) -> dict[str, list[Any]]:
    if not isinstance(data, dict):
        return {}
    pairs = data.get("entries", []) if data.get("type") == "map" else data.items()
    return {str(name): _values(values) for name, values in pairs}


def _values(values: Any) -> list[Any]:
    """Return a column as a list; Bokeh may have written it as bytes."""
    if isinstance(values, list):
        return values
    if not isinstance(values, dict):
        return []
    inner = values.get("__ndarray__") or values.get("array")
    encoded = inner.get("data") if isinstance(inner, dict) else inner
    if isinstance(encoded, list):
        return encoded
    if not isinstance(encoded, str):
        return []
    kind = np.dtype(str(values.get("dtype"))).newbyteorder("<" if values.get("order", "little") == "little" else ">")
    if kind.hasobject:
        return []
    flat = np.frombuffer(base64.b64decode(encoded), dtype=kind).tolist()
    return list(flat)


Rows = dict[str, list[dict[str, Any]]]

ACTIONS = ("transfer", "disk-write", "disk-read", "deserialize")
FAILED = "black"
KINDS = {
    "Worker Profile (compute)": "compute",
    "Worker Profile (administrative)": "worker event loop",
    "Scheduler Profile (administrative)": "scheduler",
}
#: Dask's profiler samples every 10 ms.
SAMPLE_S = 0.01
#: Rounding error of the shared edge of two rectangles.
TOLERANCE = 1e-9


def read_dask_report(page: str) -> Rows:
    """Return the tables of a report written by ``distributed.performance_report``."""
    try:
        return _tables(panels(page))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordingError(
            f"This page is damaged ({type(error).__name__}: {error}). Give a report written by performance_report()."
        ) from None


def _tables(found: list[Panel]) -> Rows:
    streams = [source for panel in found for source in panel.sources if "worker_thread" in source]
    if not streams:
        raise RecordingError("This page has no task stream. Give a report written by distributed.performance_report().")
    tasks = _tasks(streams[0])
    facts = _facts(found)
    start = min((task["start_us"] for task in tasks), default=0)
    stop = max((task["stop_us"] for task in tasks), default=0)
    workers = sorted({task["worker"] for task in tasks})
    threads = {worker: len({task["thread"] for task in tasks if task["worker"] == worker}) for worker in workers}
    return {
        "clusters": [_cluster(facts, start, stop)],
        "workers": [
            {"worker": w, "server_id": w, "seen_us": stop, "start_us": start, "nthreads": threads[w]} for w in workers
        ],
        "tasks": tasks,
        "profiles": [row for panel in found for row in _profile(panel, start, stop)],
        "computations": _computation(facts, start, stop, len(tasks)),
    }


def _tasks(source: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    names = ("start", "duration", "key", "name", "color", "worker", "worker_thread")
    bars = list(zip(*(source[name] for name in names), strict=True))
    tasks = []
    others: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for middle, length, written, name, color, worker, lane in bars:
        key = _key(written)
        # Bokeh places rectangles by their middle, in milliseconds.
        start, stop = round((middle - length / 2) * 1000), round((middle + length / 2) * 1000)
        prefix = key_split(key)
        action = next((action for action in ACTIONS if name == f"{action}-{prefix}"), None)
        if action is not None:
            others.setdefault((str(key), lane), []).append((action, start, stop))
            continue
        tasks.append(
            {
                "key": str(key),
                "group": prefix,
                "prefix": prefix,
                "worker": worker,
                "thread": _thread(lane),
                "start_us": start,
                "stop_us": stop,
                "status": "error" if color == FAILED else "ok",
                "lane": lane,
            }
        )
    for number, task in enumerate(sorted(tasks, key=lambda task: task["start_us"])):
        mine = others.pop((task["key"], task.pop("lane")), [])
        task["id"] = number
        task["interval_action"] = [action for action, _, _ in mine]
        task["interval_start_us"] = [start for _, start, _ in mine]
        task["interval_stop_us"] = [stop for _, _, stop in mine]
        task["interval_source"] = [""] * len(mine)
    return sorted(tasks, key=lambda task: int(task["id"]))


def _key(written: Any) -> Any:
    """Return the key of a bar; JSON has lists instead of tuples, such as ``["sum-1234", 0, 1]``."""
    return tuple(map(_key, written)) if isinstance(written, list) else written


def _thread(lane: str) -> int:
    """Return the thread of a lane, which is named ``tcp://10.0.0.1:4000-1403``."""
    number = lane.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _cluster(facts: Mapping[str, str], start: int, stop: int) -> dict[str, Any]:
    versions = {
        name: facts[label]
        for name, label in (("dask", "Dask Version"), ("distributed", "Dask.Distributed Version"))
        if label in facts
    }
    return {
        "cluster": "imported",
        "name": "imported report",
        "address": facts.get("Address", ""),
        "seen_us": stop,
        "start_us": start,
        "recording_us": start,
        "end_us": stop,
        "end_reason": "recording ended",
        "versions": json.dumps(versions),
    }


def _computation(facts: Mapping[str, str], start: int, stop: int, tasks: int) -> list[dict[str, Any]]:
    """Return one computation for all tasks, with the calling code of the report."""
    code = facts.get("Calling Code", "")
    row = {"computation": "imported", "seen_us": stop, "start_us": start, "stop_us": stop, "state": "done"}
    return [{**row, "code": code, "tasks": tasks}] if code else []


def _facts(found: list[Panel]) -> dict[str, str]:
    """Return the ``label: text`` items of the summary and the calling code."""
    text = next((text for panel in found if panel.title == "Summary" for text in panel.texts), "")
    items = re.findall(r"<li>\s*([^:<]+):\s*(.*?)\s*</li>", text, re.DOTALL)
    facts = {html.unescape(label.strip()): html.unescape(value) for label, value in items}
    code = re.search(r"<h2>\s*Calling Code\s*</h2>\s*<pre>\n?(.*?)\s*</pre>", text, re.DOTALL)
    if code:
        facts["Calling Code"] = html.unescape(code.group(1))
    return facts


def _profile(panel: Panel, start: int, stop: int) -> Iterator[dict[str, Any]]:
    kind = KINDS.get(panel.title)
    for source in panel.sources if kind else ():
        if "filename" not in source or not source["left"]:
            continue
        names = ("left", "right", "bottom", "filename", "name", "line_number", "time")
        boxes = list(zip(*(source[name] for name in names), strict=True))
        samples = parse_timedelta(str(boxes[0][6])) / SAMPLE_S
        for stack, width in _stacks(boxes):
            count = round(width * samples)
            if stack and count:
                row = {"start_us": start, "stop_us": stop, "kind": kind, "source": "dask", "stack": stack}
                yield {**row, "worker": "scheduler" if kind == "scheduler" else "", "count": count}


def _stacks(boxes: list[tuple[Any, ...]]) -> Iterator[tuple[list[str], float]]:
    """Yield the stack of each box and the part of its width that no box above it covers."""
    levels: dict[float, list[int]] = {}
    for number, box in enumerate(boxes):
        levels.setdefault(box[2], []).append(number)
    stacks: dict[int, list[str]] = {}
    own = [box[1] - box[0] for box in boxes]
    for number, box in sorted(enumerate(boxes), key=lambda item: item[1][2]):
        left, right, bottom, file, name, line, _ = box
        parent = next(
            (
                below
                for below in levels.get(bottom - 1, ())
                if boxes[below][0] <= left + TOLERANCE and boxes[below][1] >= right - TOLERANCE
            ),
            None,
        )
        if parent is not None:
            own[parent] -= right - left
        stacks[number] = [
            *stacks.get(-1 if parent is None else parent, []),
            *([f"{file}\t{name}\t{line}"] if name else []),
        ]
    for number, stack in stacks.items():
        yield stack, max(0.0, own[number])
