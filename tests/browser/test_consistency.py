"""One quantity, and one label of a strip, has one value on all pages of a run, and parts add up to their whole as shown.

Numbers carry ``data-quantity``, a path (see ``web/src/model/quantity.ts``). Numbers inside sentences are read by ``SENTENCES``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.browser.support import VIEWS, ReportFile, Visit, go, write_report

from daskscope.wire.file import read_recording

INSIGHTS = Path(__file__).parent.parent / "data" / "insights"
#: Recordings with failures, lost workers, spilled data and transfers.
RECORDED = ("failed-tasks", "lost-workers", "spilling", "transfers")
#: In microseconds, bytes and percent.
UNITS = {
    "d": 86_400e6, "h": 3_600e6, "min": 60e6, "s": 1e6, "ms": 1e3, "µs": 1.0, "%": 1.0,
    **{unit: 1024.0**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))},
}  # fmt: skip
NUMBER = re.compile(r"([<>]?)([\d,]+(?:\.\d+)?)(?: (%|\w+))?")
COMPUTING, WAITING, IDLE = "thread-share:computing", "thread-share:waiting", "thread-share/by-activity/idle"
#: Sentences with numbers: a test ID, and a pattern whose groups are the quantities.
SENTENCES = (
    ("answer", r"Threads spent ([\d.]+ %) of the time computing", (COMPUTING,)),
    ("answer", r"([\d.]+ %) waiting in tasks", (WAITING,)),
    ("answer", r"and ([\d.]+ %) idle", (IDLE,)),
    ("selection-text", r"Whole run\s+(.+?)\s+([\d,]+) of ([\d,]+) task runs", ("duration", "task-runs", "task-runs")),
    ("nav-workers", r"(\d+)", ("workers",)),
)
#: What the pages of the real run must show, so that no name of a quantity is lost.
EXPECTED = {
    "busy-share", "label", "duration", "failed-tasks", "fetched", "idle-share", "line-share", "lost-workers", "noncpu-share",
    "occurrences", "path-time", "peak-memory", "prefix-share", "task-runs", "thread-share", "thread-time", "threads",
    "transfer-time", "transferred", "workers",
}  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A number on a page. It was rounded by less than ``by``; NaN if it is called not recorded."""

    value: float
    by: float
    view: str
    text: str

    def agrees(self, other: Shown) -> bool:
        if math.isnan(self.value) or math.isnan(other.value):
            return math.isnan(self.value) and math.isnan(other.value)
        return self.value == other.value or abs(self.value - other.value) < self.by + other.by


def parsed(text: str, view: str) -> Shown | None:
    """Return a number with its unit, of which there may be two; None if there is none."""
    if text.strip() == "not recorded":
        return Shown(math.nan, 0, view, text.strip())
    found = NUMBER.findall(re.sub(r" of [\d,.]+(?= \w)", "", text.strip()))
    if not found:
        return None
    value = by = 0.0
    for sign, digits, unit in found:
        scale = UNITS.get(unit, 1.0)
        if unit not in UNITS and value:
            break
        places = len(digits.partition(".")[2])
        by = 0.5 * 10.0**-places * scale if unit in UNITS else 0.0
        value += float(digits.replace(",", "")) * scale + {"<": -by, ">": by, "": 0.0}[sign]
        if unit not in UNITS or unit in ("%", "s", "ms", "µs") or unit.endswith("B"):
            break
    return Shown(value, by, view, text.strip())


def walk(page: Page) -> dict[str, list[Shown]]:
    """Return every number of every view by the name of its quantity."""
    found: dict[str, list[Shown]] = defaultdict(list)
    for view in VIEWS:
        go(page, view)
        if view == "workers" and page.get_by_test_id("worker-row").count():
            page.get_by_test_id("worker-row").first.click(position={"x": 5, "y": 5})
        texts = page.locator("[data-quantity]").evaluate_all("all => all.map(e => [e.dataset.quantity, e.innerText])")
        # A label of a strip has one value, too, whether or not its quantity has a name.
        strips = page.locator(".metric").evaluate_all(
            "all => all.map(e => ['label:' + e.querySelector('dt').innerText, e.querySelector('.v').innerText])"
        )
        for name, text in [*texts, *strips, *sentences(page)]:
            if (shown := parsed(text, view)) is not None:
                found[name].append(shown)
    return found


def sentences(page: Page) -> Iterator[tuple[str, str]]:
    for testid, pattern, names in SENTENCES:
        for text in page.get_by_test_id(testid).all_inner_texts():
            if match := re.search(pattern, " ".join(text.split())):
                yield from zip(names, match.groups(), strict=True)


def differing(found: dict[str, list[Shown]]) -> list[tuple[str, Shown, Shown]]:
    """Return two values of one quantity."""
    pairs = ((name, *pair) for name, values in found.items() for pair in combinations(dict.fromkeys(values), 2))
    return [(name, one, other) for name, one, other in pairs if not one.agrees(other)]


def unequal_sums(found: dict[str, list[Shown]]) -> list[tuple[str, str]]:
    """Return wholes that are not the sum of their parts."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in found:
        # The part of a part counts for both.
        path = name.split("/")
        for end in range(len(path), 0, -2):
            if end >= 3 and "/".join(path[:end]) not in groups["/".join(path[: end - 1])]:
                groups["/".join(path[: end - 1])].append("/".join(path[:end]))

    def total(name: str) -> tuple[float, float]:
        if name in found:
            return found[name][0].value, found[name][0].by
        inner = [total(part) for group, parts in groups.items() if group.startswith(f"{name}/by-") for part in parts]
        return sum(value for value, _ in inner), sum(by for _, by in inner)

    problems = []
    for group, parts in groups.items():
        whole = group.rpartition("/by-")[0]
        if whole not in found and not whole.endswith("-share"):
            continue
        value, by = total(whole) if whole in found else (100.0, 0.0)
        values, roundings = zip(*(total(part) for part in parts), strict=True)
        # Parts of which one is not known have no sum.
        if abs(sum(values) - value) > by + sum(roundings) + 1e-6:
            problems.append((group, f"{' + '.join(map(str, values))} = {sum(values)}, not {value}"))
    return problems


@pytest.fixture(scope="module")
def recorded(directory: Path) -> dict[str, ReportFile]:
    return {name: write_report(directory, name, read_recording(INSIGHTS / f"{name}.daskscope")) for name in RECORDED}


def test_one_quantity_has_one_value(
    visit: Visit,
    real: ReportFile,
    hostile: ReportFile,
    empty: ReportFile,
    many: ReportFile,
    recorded: dict[str, ReportFile],
) -> None:
    problems = {}
    for name, report in {"real": real, "hostile": hostile, "empty": empty, "many": many, **recorded}.items():
        page = visit(report)
        found = walk(page)
        page.close()
        problems[name] = [*differing(found), *unequal_sums(found)]
        if name == "real":
            assert {re.split("[:/]", quantity)[0] for quantity in found} >= EXPECTED
    assert not any(problems.values()), "\n".join(f"{n}: {p}" for n, some in problems.items() for p in some)


def test_numbers_are_read_with_their_unit_and_rounding() -> None:
    def read(text: str) -> tuple[float, float] | None:
        shown = parsed(text, "")
        return None if shown is None else (round(shown.value, 6), round(shown.by, 6))

    assert read("1 min 26 s") == (86e6, 0.5e6)
    assert read("2 h 5 min") == (7_500e6, 30e6)
    assert read("4.03 s") == (4.03e6, 5_000)
    assert read("361 of 700 MiB") == read("361 MiB") == (361 * 2**20, 2**19)
    assert read("228 MiB of 7.85 GiB") == (228 * 2**20, 2**19)
    assert read("<0.1 %") == (0.05, 0.05)
    assert read("1,234 tasks") == read("1,234") == (1_234, 0)
    assert read("6 at peak") == (6, 0)
    assert read("") is None


def test_differences_and_sums_are_found() -> None:
    def values(**texts: str) -> dict[str, list[Shown]]:
        return {name.replace("__", "/by-x/"): [s for s in [parsed(text, "")] if s] for name, text in texts.items()}

    two = [Shown(14, 0.5, "a", "14 %"), Shown(15, 0.5, "b", "15 %")]
    unknown = Shown(math.nan, 0, "c", "not recorded")
    assert differing({"x": [two[0], unknown]}) and not differing({"x": [unknown, unknown]})
    assert differing({"x": two}) and not differing({"x": two[:1] * 2})
    assert not unequal_sums(values(t="10.0 s", t__a="3.33 s", t__b="6.67 s"))
    assert unequal_sums(values(t="49.1 s", t__a="40.0 s", t__b="9.50 s"))
    assert unequal_sums(values(c="3", c__a="1", c__b="1"))
    # The part b is only shown by its own parts.
    assert not unequal_sums(values(t="10 s", t__a="4 s", t__b__c="5 s", t__b__d="1 s"))
    assert unequal_sums(values(**{"p-share__a": "56 %", "p-share__b": "34 %"}))
