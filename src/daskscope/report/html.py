"""One file that opens anywhere: the viewer with the report's data inside.

Data is inert: JSON and base64 in script elements of types no browser runs, every ``<`` of the JSON escaped, so that a key or a line
of code that says ``</script>`` stays a text.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib.resources import files

from daskscope.errors import DaskscopeError
from daskscope.report.schema import Report

PLACEHOLDER = "<!--DASKSCOPE-DATA-->"
#: How the report and a block begin; ``report/page.py`` looks for them.
REPORT_TAG = '<script type="application/json" id="daskscope-report">'
BLOCK_TAG = '<script type="text/plain" id="daskscope-block-{name}">'
END_TAG = "</script>"


def viewer() -> str:
    """The built viewer, as it comes with the package."""
    page = files("daskscope.report").joinpath("viewer.html")
    if not page.is_file():
        raise DaskscopeError(
            "The viewer is not built. In a checkout run scripts/build-web; an installed package has it."
        )
    return page.read_text(encoding="utf-8")


def render(report: Report, blocks: Mapping[str, bytes]) -> str:
    """The whole page."""
    before, _, after = viewer().partition(PLACEHOLDER)
    return "".join([before, *_data(report, blocks), after])


def report_json(report: Report) -> str:
    """The report as JSON that can stand inside of HTML."""
    # ASCII only: names may hold halves of surrogate pairs, which no encoding has.
    return json.dumps(report, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _data(report: Report, blocks: Mapping[str, bytes]) -> Iterator[str]:
    yield f"{REPORT_TAG}{report_json(report)}{END_TAG}\n"
    for name, data in blocks.items():
        yield f"{BLOCK_TAG.format(name=name)}{b64encode(data).decode()}{END_TAG}\n"
