"""The page of a report is complete, works offline, and cannot run hostile names."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

import pytest
from tests.helpers.hostile import HOSTILE, hostile_tables

from daskscope.report.blocks import decode
from daskscope.report.document import build
from daskscope.report.html import PLACEHOLDER, render, viewer
from daskscope.report.read_page import find_page
from daskscope.testing import make_recording


def page(tables: dict[str, list[dict[str, Any]]]) -> str:
    report, blocks = build(make_recording(tables), 0, 1, title=HOSTILE, code=HOSTILE, failure=HOSTILE)
    return render(report, blocks)


def test_the_page_refers_to_nothing_outside() -> None:
    text = page(hostile_tables())
    # XML namespaces are names and not fetched.
    outside = [url for url in re.findall(r"https?://[^\s\"'<>)]+", viewer()) if "www.w3.org" not in url]
    assert not [url for url in outside if not url.startswith("http://127.0.0.1")], outside
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"'](?!data:|#)", text)


def test_hostile_names_remain_text() -> None:
    text = page(hostile_tables())
    data = text[len(viewer().partition(PLACEHOLDER)[0]) :]
    # The data is base64, so it cannot contain a tag.
    assert re.fullmatch(
        r'(?:<script type="text/plain" id="[\w.-]+">[\w+/=]*</script>\n)+', data[: data.rindex("</script>\n") + 10]
    )
    report = find_page(text.encode()).report
    assert report["title"] == report["prefixes"][0]["prefix"] == report["calling_code"] == HOSTILE


def test_the_data_can_be_parsed() -> None:
    text = page(hostile_tables())
    found = dict(re.findall(r'<script type="text/plain" id="daskscope-block-([\w.]+)">([\w+/=]*)</script>', text))
    report = find_page(text.encode()).report
    assert report["schema"] == 2
    (template,) = report["stream"]["templates"]
    (block,) = (report["stream"]["columns"][name] for name in report["stream"]["columns"] if name.startswith("number"))
    (number,) = decode(block, b64decode(found[block["block"]]))
    assert template.replace("\0", str(number)) == HOSTILE


@pytest.mark.parametrize("tables", [{}, {"tasks": []}], ids=["no table", "no task"])
def test_an_empty_recording_has_a_page(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert "daskscope-report" in page(tables)
