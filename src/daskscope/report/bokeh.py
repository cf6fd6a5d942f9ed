"""Bokeh documents inside of HTML pages: the panels and the data behind their plots, of Bokeh 2 and 3."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskscope.errors import RecordingError

#: What Bokeh escapes in its JSON, the ampersand last.
ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&#x60;", "`"), ("&amp;", "&"))
DOCUMENT = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


@dataclass
class Panel:
    """A tab of the page: its title, the columns behind its plots, its texts."""

    title: str
    sources: list[dict[str, list[Any]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def panels(page: str) -> list[Panel]:
    """The tabs of the first Bokeh document in the page."""
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
    raise RecordingError(
        "This page holds no Bokeh document. Give a report that distributed.performance_report() wrote."
    )


def _panels(document: dict[str, Any]) -> list[Panel]:
    roots = document["roots"]
    objects = {item["id"]: item for item in _objects(roots)}
    found = []
    for item in objects.values():
        if _type(item) in ("Panel", "TabPanel"):
            attributes = item.get("attributes", {})
            panel = Panel(str(attributes.get("title", "")))
            for part in _below(attributes.get("child"), objects, set()):
                _keep(panel, part)
            found.append(panel)
    return found


def _keep(panel: Panel, item: dict[str, Any]) -> None:
    attributes = item.get("attributes", {})
    if _type(item) == "ColumnDataSource":
        panel.sources.append(_columns(attributes.get("data")))
    elif _type(item) in ("Div", "Paragraph", "PreText"):
        panel.texts.append(str(attributes.get("text", "")))


def _type(item: dict[str, Any]) -> str:
    """Bokeh 3 has the class as ``name`` of an ``object``, Bokeh 2 as ``type``."""
    return str(item.get("name") if item.get("type") == "object" else item.get("type"))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object with an id and attributes, wherever it is. Not recursive: pages are somebody else's."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("id"), str) and "attributes" in item:
                yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _below(value: Any, objects: dict[str, dict[str, Any]], seen: set[str]) -> Iterator[dict[str, Any]]:
    """An object and all it refers to, each once; whole or by its id alone."""
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
    """A column as a list, also where Bokeh wrote it as bytes."""
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
