"""Python and the page compute the same sums and texts: both are compared with one file.

``tests/data/cubes.json`` has cubes of a report as a page reads them, their sums over stretches of time, and numbers with their
texts; ``web/test/golden.test.ts`` reads the same file. Update it with: python -m tests.contract.test_cubes
"""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cubes import cube_totals

from daskscope import units
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.executions import counts
from daskscope.analysis.summary import extent
from daskscope.model.recording import Recording
from daskscope.report.blocks import decode
from daskscope.report.document import build
from daskscope.report.schema import Cube
from daskscope.testing import make_recording

DATA = Path(__file__).parents[1] / "data"
FILE = DATA / "cubes.json"
T = 1_700_000_000_000_000
#: Cube, key, measure, and a key that must have a value.
SUMS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("time_by_prefix", "prefix", "us", {}),
    ("time_by_prefix", "category", "us", {}),
    ("time_by_prefix", "prefix", "us", {"category": "cpu"}),
    ("time_by_worker", "worker", "us", {}),
    ("counts", "prefix", "count", {}),
    ("counts", "prefix", "nbytes", {}),
    ("activities", "activity", "value", {"unit": "seconds"}),
)
DURATIONS = (
    0,
    0.4,
    0.5,
    1,
    12,
    999,
    999.5,
    999.6,
    1_000,
    1_125,
    1_375,
    1_234,
    9_995,
    83_000,
    99_950,
    999_499,
    999_500,
    1e6,
)
SIZES = (
    0,
    1,
    1_023,
    1_023.5,
    1_024,
    1_152,
    1_408,
    1_536,
    10_235,
    102_348,
    1_024_000,
    1_048_575,
    1_048_576,
    2**40,
    2**63,
)
SHARES = (0, 0.00009, 0.001, 0.00125, 0.0994, 0.0995, 0.105, 0.125, 0.42, 0.994, 0.995, 0.9999, 1, 1.005, 12.5)
AGES = (-5, 0, 1_999_999, 2_000_000, 9_999_999, 59_999_999, 3_599_000_000, 3_600_000_000,
        86_399_000_000, 86_400_000_000, 172_800_000_000, 1_209_600_000_000, 5_184_000_000_000, 200_000_000_000_000)  # fmt: skip
AMOUNTS = (0, 0.001, 0.005, 0.0149, 1, 1.236, 12.5, 999.99, 999.996, 1240.4, 1234567.5, -3.21)
MOMENTS = (0, 1, 1_700_000_000_123_456, 1_699_999_999_999_999, 4_102_444_800_000_000)
QUANTITIES = (
    (1.5, "seconds"),
    (0, "count"),
    (1234567, "count"),
    (2.5, "furlongs"),
    (0.00012345, ""),
    (123.456, "x"),
    (2**31, "bytes"),
)


def recording() -> Recording:
    """Return tasks of four prefixes on two workers, made by arithmetic: random numbers differ between Python versions."""
    tasks = []
    activities = []
    for i in range(90):
        start = T + (i * 7_919_003) % 20_000_000
        length = 50_000 + (i * i * 12_345) % 900_000
        prefix = ("load", "add", "sum", "naïve <b>")[i % 4]
        row: dict[str, Any] = {
            "id": i,
            "key": f"{prefix}-{i}",
            "prefix": prefix,
            "worker": f"tcp://10.0.0.{i % 2}:1",
            "thread": i % 4,
            "assigned_us": start,
            "start_us": start,
            "stop_us": start + length,
            "nbytes": i * 4_099,
            "status": "error" if i % 29 == 7 else "ok",
        }
        if i % 3 == 0:
            row |= {"interval_action": ["transfer"], "interval_start_us": [start - 40_000], "interval_stop_us": [start]}
        tasks.append(row)
        common = {"time_us": start + length, "context": "execute", "prefix": prefix}
        activities.append({**common, "activity": "thread-cpu", "unit": "seconds", "value": length / 3e6})
        activities.append({**common, "activity": "my-reader", "unit": "events", "value": float(i)})
    workers = [
        {"worker": f"tcp://10.0.0.{i}:1", "server_id": f"s{i}", "name": f"w{i}", "nthreads": 2, "start_us": T}
        for i in range(2)
    ]
    clusters = [{"cluster": "c", "recording_us": T, "end_us": T + 22_000_000, "end_reason": "closed"}]
    return make_recording({"clusters": clusters, "workers": workers, "tasks": tasks, "activities": activities})


def made() -> dict[str, Any]:
    """Return the current content of the file."""
    report, blocks = build(recording(), *extent(recording()))
    every: dict[str, Cube] = {name: report[name] for name, *_ in SUMS}  # type: ignore[literal-required]
    bins = report["bins"]["count"]
    stretches = [None, [0, bins], [0, bins // 3], [bins // 3, bins // 3 + 7], [bins - 1, bins], [5, 5]]
    used = {column["block"] for cube in every.values() for column in cube["columns"].values()}
    sums = []
    for name, key, measure, where in SUMS:
        for stretch in stretches:
            found = sums_of(every[name], blocks, key, measure, where, stretch)
            one = {"cube": name, "key": key, "measure": measure, "where": where, "bins": stretch, "sums": found}
            sums.append(one)
    return {
        "bins": report["bins"],
        "cubes": every,
        "blocks": {name: b64encode(data).decode() for name, data in blocks.items() if name in used},
        "sums": sums,
        "texts": texts(),
    }


def sums_of(
    cube: Cube, blocks: dict[str, bytes], key: str, measure: str, where: dict[str, str], stretch: list[int] | None
) -> list[float]:
    """Sum row by row, in the simplest way."""
    columns = {name: list(decode(block, blocks[block["block"]])) for name, block in cube["columns"].items()}
    wanted = {name: cube["keys"][name].index(text) for name, text in where.items()}
    sums = [0.0] * len(cube["keys"][key])
    for row in range(cube["rows"]):
        if stretch and not stretch[0] <= columns["bin"][row] < stretch[1]:
            continue
        if all(columns[name][row] == code for name, code in wanted.items()):
            sums[int(columns[key][row])] += float(columns[measure][row])
    return sums


def texts() -> dict[str, list[list[Any]]]:
    rng = random.Random(7)
    lengths = [round(10 ** rng.uniform(0, 13)) for _ in range(150)] + [125 * n for n in range(1, 200, 7)]
    sizes = [round(10 ** rng.uniform(0, 17)) for _ in range(150)] + [128 * n for n in range(1, 200, 7)]
    shares = [rng.random() for _ in range(60)] + [rng.random() / 20 for _ in range(60)] + [n / 800 for n in range(90)]
    whole = [round(10 ** rng.uniform(0, 9)) for _ in range(20)]
    return {
        "duration": [[us, units.duration(us)] for us in (*DURATIONS, *lengths)],
        "nbytes": [[n, units.nbytes(n)] for n in (*SIZES, *sizes)],
        "frequency": [[n, units.frequency(n)] for n in (0, 0.5, 999.4, 999.6, 71_000, 999_499, 999_600, 1.25e6, 3e9)],
        "percent": [[x, units.percent(x)] for x in (*SHARES, *shares)],
        "count": [[n, units.count(n)] for n in (0, 999, 1_000, *whole)],
        "moment": [[us, units.moment(us)] for us in MOMENTS],
        "ago": [[us, units.ago(us)] for us in AGES],
        "dollars": [[x, units.dollars(x)] for x in AMOUNTS],
        "quantity": [[value, unit, units.quantity(value, unit)] for value, unit in QUANTITIES],
    }


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return made()


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return held


def test_the_cubes_are_those_of_the_file(now: dict[str, Any], golden: dict[str, Any]) -> None:
    assert now["bins"] == golden["bins"]
    assert now["cubes"] == golden["cubes"]
    blocks = {b["block"]: b for cube in golden["cubes"].values() for b in cube["columns"].values()}
    # Compressed bytes may differ between zlib versions.
    for name, block in blocks.items():
        mine, theirs = (list(decode(block, b64decode(held["blocks"][name]))) for held in (now, golden))
        assert mine == theirs, name


def test_the_sums_are_those_of_the_file(now: dict[str, Any], golden: dict[str, Any]) -> None:
    assert len(now["sums"]) == len(golden["sums"])
    for mine, theirs in zip(now["sums"], golden["sums"], strict=True):
        assert {**mine, "sums": pytest.approx(mine["sums"])} == theirs


def test_the_texts_are_those_of_the_file(golden: dict[str, Any]) -> None:
    assert texts() == golden["texts"]


def test_the_sums_are_those_of_the_analysis(golden: dict[str, Any]) -> None:
    report, _ = build(recording(), *extent(recording()))
    bins = Bins(report["start_us"], report["bins"]["width_us"], report["bins"]["count"])
    cube = counts(recording(), bins)
    where = list(cube.codes).index("prefix")
    found: dict[str, float] = dict.fromkeys(report["counts"]["keys"]["prefix"], 0)
    for keys, value in cube_totals(cube, "count").items():
        found[keys[where]] += value
    held = next(s for s in golden["sums"] if s["cube"] == "counts" and s["measure"] == "count" and s["bins"] is None)
    assert list(found.values()) == held["sums"]


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
