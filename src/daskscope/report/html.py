"""Render a report as one HTML file: the viewer with the data inside.

The data cannot run: it is compressed, as base64, in script elements of a type that browsers do not execute.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from daskscope.errors import DaskscopeError
from daskscope.report.schema import Report

PLACEHOLDER = "<!--DASKSCOPE-DATA-->"
#: Opening tags of the report and of a block; ``report/page.py`` searches for them.
REPORT_TAG = '<script type="text/plain" id="daskscope-report">'
#: The first versions wrote plain JSON.
PLAIN_REPORT_TAG = '<script type="application/json" id="daskscope-report">'
BLOCK_TAG = '<script type="text/plain" id="daskscope-block-{name}">'
COMPARISON_TAG = '<script type="text/plain" id="daskscope-comparison">'
END_TAG = "</script>"


def viewer() -> str:
    """Return the built viewer, which is part of the package."""
    page = files("daskscope.report").joinpath("viewer.html")
    if not page.is_file():
        raise DaskscopeError(
            "The viewer is not built. Run scripts/build-web in a checkout; an installed package includes it."
        )
    return page.read_text(encoding="utf-8")


def render(report: Report, blocks: Mapping[str, bytes]) -> str:
    """Return the whole page."""
    before, _, after = viewer().partition(PLACEHOLDER)
    return "".join([before, *_data(report, blocks), after])


def render_comparison(comparison: Mapping[str, Any]) -> str:
    """Return a page that shows a comparison: the same viewer, with other data."""
    before, _, after = viewer().partition(PLACEHOLDER)
    data = b64encode(zlib.compress(report_json(comparison).encode(), 9)).decode()
    return f"{before}{COMPARISON_TAG}{data}{END_TAG}\n{after}"


def report_json(report: Report | Mapping[str, Any]) -> str:
    """Return the data of a page as JSON that is safe inside HTML."""
    # ASCII only: names may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(report, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _data(report: Report, blocks: Mapping[str, bytes]) -> Iterator[str]:
    # 124 kB of 100,000 tasks on 200 workers become 16.
    parts = {REPORT_TAG: zlib.compress(report_json(report).encode(), 9)}
    parts |= {BLOCK_TAG.format(name=name): data for name, data in blocks.items()}
    for tag, data in parts.items():
        yield f"{tag}{b64encode(data).decode()}{END_TAG}\n"
