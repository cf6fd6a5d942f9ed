"""The standalone page: whole, offline, and inert whatever names say."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import Any

import pytest

from daskscope.report.blocks import decode
from daskscope.report.document import build
from daskscope.report.html import PLACEHOLDER, render, viewer
from daskscope.testing import make_recording

T = 1_700_000_000_000_000
HOSTILE = "</script><img src=x onerror=alert(1)><!--"


def hostile_tables() -> dict[str, list[dict[str, Any]]]:
    """The same hostile text everywhere a text may stand."""
    who = {"worker": HOSTILE, "prefix": HOSTILE, "key": HOSTILE, "group": HOSTILE}
    return {
        "clusters": [{"cluster": "c", "name": HOSTILE, "address": HOSTILE, "recording_us": T, "end_us": T + 10**6}],
        "workers": [{"worker": HOSTILE, "server_id": "s", "name": HOSTILE, "nthreads": 1, "start_us": T}],
        "tasks": [{**who, "start_us": T + 1, "stop_us": T + 500, "type": HOSTILE, "status": "ok"}],
        "computations": [{"computation": "x", "code": HOSTILE, "start_us": T, "stop_us": T + 9, "state": "done"}],
        "groups": [{"group": HOSTILE, "prefix": HOSTILE, "computation": "x", "start_us": T}],
        "exceptions": [
            {**who, "time_us": T + 5, "type": HOSTILE, "message": HOSTILE, "traceback": HOSTILE, "count": 1}
        ],
        "logs": [
            {"time_us": T + 3, "worker": HOSTILE, "message": HOSTILE, "logger": HOSTILE, "level": 40, "repeats": 1}
        ],
        "profiles": [{"start_us": T, "stop_us": T + 9, "kind": "compute", "stack": [f"{HOSTILE}\tf\t1"], "count": 1}],
    }


def page(tables: dict[str, list[dict[str, Any]]]) -> str:
    report, blocks = build(make_recording(tables), title=HOSTILE, code=HOSTILE, failure=HOSTILE)
    return render(report, blocks)


def test_the_page_names_nothing_outside_of_itself() -> None:
    text = page(hostile_tables())
    # Namespaces of SVG and the like are names, not addresses that are fetched.
    outside = [url for url in re.findall(r"https?://[^\s\"'<>)]+", viewer()) if "www.w3.org" not in url]
    assert not [url for url in outside if not url.startswith("http://127.0.0.1")], outside
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"'](?!data:|#)", text)


def test_hostile_names_stay_texts() -> None:
    text = page(hostile_tables())
    data = text[len(viewer().partition(PLACEHOLDER)[0]) :]
    assert "<img" not in data and "<!--" not in data
    json_text = re.search(r'id="daskscope-report">(.*?)</script>', data, re.DOTALL)
    assert json_text is not None
    report = json.loads(json_text.group(1))
    assert report["title"] == report["prefixes"][0]["prefix"] == report["calling_code"] == HOSTILE


def test_the_data_can_be_read_by_a_machine() -> None:
    text = page(hostile_tables())
    found = dict(re.findall(r'<script type="text/plain" id="daskscope-block-([\w.]+)">([\w+/=]*)</script>', text))
    report = json.loads(re.search(r'id="daskscope-report">(.*?)</script>', text, re.DOTALL).group(1))  # type: ignore[union-attr]
    assert report["schema"] == 1
    (template,) = report["stream"]["templates"]
    (block,) = (report["stream"]["columns"][name] for name in report["stream"]["columns"] if name.startswith("number"))
    (number,) = decode(block, b64decode(found[block["block"]]))
    assert template.replace("\0", str(number)) == HOSTILE


@pytest.mark.parametrize("tables", [{}, {"tasks": []}], ids=["no table", "no task"])
def test_nothing_recorded_is_a_page_too(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert "daskscope-report" in page(tables)
