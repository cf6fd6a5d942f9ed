"""Read Bokeh documents (Bokeh 2 and 3) from HTML pages: the panels and the data of their plots."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
