"""``daskscope show``: the page it prints, in a pipe and on a terminal, and what it never prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.samples import write_frames

from daskscope.cli import output
from daskscope.cli.main import main
from daskscope.model.tables import TABLES
from daskscope.testing import make_columns, make_frames
from daskscope.wire.encode import encode_body, seal

T = 1_763_244_000_000_000
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe [bold]x[/bold]\r\n\ud800"
EVERYTHING: dict[str, list[dict[str, Any]]] = {
    "clusters": [
        {
            "cluster": "Scheduler-1",
            "name": "nightly",
            "user": "anna",
            "address": "tcp://s:8786",
            "seen_us": T,
            "start_us": T - 400_000_000,
            "recording_us": T,
            "end_us": T + 95_000_000,
            "end_reason": "closed",
            "versions": '{"python": "3.11.7", "dask": "2026.8.0", "secret": "x"}',
        }
    ],
    "computations": [
        {
            "computation": "c-1",
            "state": "erred",
            "start_us": T,
            "stop_us": T + 1_240_000,
            "tasks": 1_200,
            "erred": 2,
            "code": "df.sum().compute()",
        }
    ],
    "tasks": [
        {"prefix": "sum", "worker": "tcp://a:1", "start_us": T, "stop_us": T + 83_000, "nbytes": 2**30, "status": "ok"},
        {"prefix": "sum", "worker": "tcp://a:1", "start_us": T, "stop_us": T + 12, "status": "error"},
    ],
    "activities": [
        {"context": "execute", "prefix": "sum", "activity": "thread-cpu", "unit": "seconds", "value": 1.5},
        {"context": "gather-dep", "activity": "network", "unit": "bytes", "value": 2**20},
    ],
    "workers": [
        {
            "worker": "tcp://a:1",
            "server_id": "W1",
            "name": "one",
            "nthreads": 4,
            "start_us": T,
            "end_us": T + 200_000_000,
            "verdict": "memory kill",
            "evidence": "at 95 % of its limit",
            "processing": ["k1", "k2"],
            "processing_count": 7,
            "lost_count": 1,
        },
        {"worker": "tcp://b:1", "server_id": "W2", "nthreads": 4, "start_us": T + 1},
    ],
    "samples": [{"worker": "tcp://a:1", "time_us": T, "memory": 2**31}],
    "exceptions": [
        {
            "time_us": T,
            "key": "('sum', 3)",
            "prefix": "sum",
            "worker": "tcp://a:1",
            "type": "ValueError",
            "message": "negative energy",
            "fingerprint": "f",
            "count": 12,
            "will_retry": 1,
            "cause_type": "OSError",
            "cause_message": "disk",
            "traceback": "\n".join(f"line {i}" for i in range(8)),
        }
    ],
}
PAGE = """\
nightly of anna
ID        Scheduler-1
address   tcp://s:8786
recorded  2025-11-15T22:00:00Z to 2025-11-15T22:01:35Z, 1 min 35 s
end       closed
          recording began 6 min 40 s after the scheduler started; earlier tasks are unknown
versions  python 3.11.7, dask 2026.8.0

Failed after 1 min 35 s: OSError: disk. It was raised 12 times in sum. 1 of 1,200 tasks finished.

Findings
--------
1. Worker one was killed for exceeding its memory limit
   At 95 % of its limit; 1 result lost with it, 0 recomputed.
   Use smaller chunks, or workers with more memory or fewer threads.
2. Threads were idle for 99 % of their time: nothing was submitted
   12 min 30 s of 12 min 40 s of thread time.
   The client was busy or waiting. Submit work without waiting for each result, or use a smaller cluster.
3. OSError: disk
   12 failures were retried in sum.
   If the error recurs, look for an unreliable resource such as storage or the network.

Computations
------------
started               state     wall  tasks  errors  code or span        id
2025-11-15T22:00:00Z  failed  1.24 s  1,200       2  df.sum().compute()  c-1

Task prefixes
-------------
prefix  count  total     mean    p50    p95    max  bytes  errors  retries  transfer  disk
sum         2  83 ms  41.5 ms  12 µs  83 ms  83 ms  1 GiB       1        0       0 s   0 s

Activities
----------
 total  context     activity    prefix
1.50 s  execute     thread-cpu  sum
 1 MiB  gather-dep  network     –

Workers
-------
worker     name  threads  tasks   busy      uptime  peak memory  left
tcp://a:1  one         4      2  83 ms  3 min 20 s        2 GiB  memory kill
tcp://b:1  –           4      0    0 s  1 min 35 s            –  connected
  tcp://a:1: memory kill: at 95 % of its limit
    was processing 7 tasks: k1, k2 …; 1 result lost with it

Errors
------
ValueError 12 times, 12 retried, in sum
  negative energy
  caused by OSError: disk
  2025-11-15T22:00:00Z, for example ('sum', 3) on tcp://a:1
    … 2 lines above; --errors shows them
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7

Completeness
------------
Complete: 10 rows, none dropped or missing.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.daskscope"


def show(path: Path, capsys: pytest.CaptureFixture[str], tables: dict[str, list[dict[str, Any]]], *options: str) -> str:
    write_frames(path, make_frames(tables))
    capsys.readouterr()
    assert main(["show", str(path), *options]) == 0
    return capsys.readouterr().out


def use_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr("daskscope.cli.show.is_terminal", lambda: True)
    monkeypatch.setattr(output, "terminal_width", lambda: columns)
    monkeypatch.setenv("TERM", "xterm")


def test_the_whole_page_in_a_pipe(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(path, capsys, EVERYTHING) == PAGE


def test_an_empty_recording_says_what_is_absent_and_why_that_may_be(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(path, capsys, {}) == (
        f"""\
{path}: this recording has no row about a cluster.
It may have been cut off before that row was written.

Nothing ran. No worker joined during the recording.

Computations
------------
None. Nothing was computed during the recording, or the rows were lost.

Task prefixes
-------------
None. No task finished during the recording, or task rows are missing (see Completeness).

Activities
----------
None. Fine performance metrics were not recorded, or the workers did nothing.

Workers
-------
None. No worker joined during the recording, or the rows were lost.

Errors
------
None. No task failed during the recording.

Completeness
------------
The recording has no rows.
"""
    )


def test_json_is_the_summary(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(show(path, capsys, EVERYTHING, "--json"))

    assert (found["cluster"]["name"], found["duration_us"], found["prefixes"][0]["total_us"]) == (
        "nightly",
        95_000_000,
        83_012,
    )


def test_a_running_cluster_is_said_to_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = show(path, capsys, {"clusters": [{"cluster": "c"}, {"cluster": "d"}]})

    assert "end       still running when this recording stopped\n" in page
    assert "and 1 other cluster merged into this recording\n" in page


def test_top_limits_every_section_and_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "computations": [{"computation": f"c{i}", "start_us": T + i} for i in range(3)],
        "tasks": [{"prefix": f"p{i}", "status": "ok"} for i in range(3)],
        "activities": [{"activity": f"a{i}", "value": i, "unit": u} for i in range(3) for u in ("bytes", "x")],
        "workers": [
            {"server_id": f"w{i}", "worker": f"w{i}", "verdict": "vanished" if i == 2 else ""} for i in range(3)
        ],
        "exceptions": [{"fingerprint": f"f{i}", "type": f"E{i}", "count": i} for i in range(1, 4)],
    }

    page = show(path, capsys, tables, "--top", "1")
    assert [line for line in page.splitlines() if line.endswith("shows all.")] == [
        "1 of 3 computations (the latest); --top 0 shows all.",
        "1 of 3 prefixes (the longest compute time); --top 0 shows all.",
        "2 of 6 activities (the largest of each unit); --top 0 shows all.",
        "1 of 3 workers (lost workers first); --top 0 shows all.",
        "1 of 3 error groups (the most frequent); --top 0 shows all.",
    ]
    assert "  w2: lost: no evidence was recorded\n" in page
    assert "shows all" not in show(path, capsys, tables, "--top", "0")


def test_a_negative_top_is_a_usage_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", str(path), "--top", "-1"])

    assert "-1 is negative" in capsys.readouterr().err


def test_errors_alone_come_with_whole_tracebacks(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = show(path, capsys, EVERYTHING, "--errors")

    assert page.startswith("\nErrors\n------\nValueError 12 times")
    assert page.endswith("".join(f"    line {i}\n" for i in range(8)))


def test_an_error_without_a_traceback_says_so_and_shows_when_it_happened(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"type": "E", "message": "m", "time_us": T + i * 2_000_000, "count": 1} for i in range(2)]

    assert show(path, capsys, {"exceptions": rows}, "--errors") == (
        "\nErrors\n------\nE 2 times, in –\n  m\n"
        "  2025-11-15T22:00:00Z to 2025-11-15T22:00:02Z, for example  on an unknown worker\n"
        "  no traceback was recorded\n"
    )


def test_failed_executions_without_their_exceptions_are_not_called_none(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = show(path, capsys, {"tasks": [{"prefix": "p", "status": "error"}]}, "--errors")

    assert page.endswith("1 execution failed, but their errors are not in this recording.\n")


def test_a_cut_off_file_is_shown_with_a_warning(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = make_frames({"logs": [{"message": "a"}], "exceptions": [{"type": "E"}]})
    write_frames(path, frames)
    path.write_bytes(path.read_bytes()[:-10])

    assert main(["show", str(path)]) == 0
    page = capsys.readouterr().out
    ignored = len(frames[1]) - 10
    assert page.endswith(
        f"Incomplete, 1 row read: the file is cut off: {ignored} bytes after the last whole batch were ignored.\n"
    )
    assert "None in this recording, but it is incomplete (see Completeness).\n" in page


def test_missing_rows_are_counted_on_the_page(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = encode_body("logs", make_columns("logs", [{}]))
    write_frames(path, [seal(body, cluster="c", epoch=1, sequence=0, kept=41, dropped=2)])

    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().out.endswith(
        "Incomplete, 1 row read: 2 of 43 rows of logs dropped inside the cluster; 40 of 43 rows of logs not in the file.\n"
    )


def hostile_tables() -> dict[str, list[dict[str, Any]]]:
    """Every text of every row is an attack."""
    texts = ("str", "str[]")
    return {
        table: [
            {**row, **{name: HOSTILE if kind == "str" else [HOSTILE] for name, kind in _texts(table) if kind in texts}}
        ]
        for table, (row, *_) in EVERYTHING.items()
    }


def _texts(table: str) -> list[tuple[str, str]]:
    return [(column.name, column.kind) for column in TABLES[table].columns if column.name not in ("unit", "status")]


@pytest.mark.parametrize("options", [(), ("--errors",), ("--table", "exceptions"), ("--json",)])
@pytest.mark.parametrize("terminal", [False, True])
def test_no_text_of_a_recording_can_control_the_terminal(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    terminal: bool,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    if terminal:
        use_terminal(monkeypatch, 120)

    page = show(path, capsys, hostile_tables(), *options)
    visible = page.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert not set(visible) & set("\x1b\x07\r\u202e\ud800")
    assert "[bold]x[/bold]" in page or terminal


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_on_a_terminal_nothing_is_wider_than_it(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    use_terminal(monkeypatch, columns)
    monkeypatch.setenv("TERM", "dumb")
    long = {"prefix": "a-very-long-prefix-" * 9, "start_us": T, "stop_us": T + 10**9, "nbytes": 10**12, "status": "ok"}

    page = show(path, capsys, {**EVERYTHING, "tasks": [{**long, "worker": "tcp://a:1"}]})
    assert max(map(len, page.splitlines())) <= columns
    assert "16 min 40 s" in page
    assert "931 GiB" in page


def test_rich_colours_only_how_things_ended(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch, 120)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    page = show(path, capsys, EVERYTHING)
    assert "\x1b[31mfailed\x1b[0m" in page
    assert "\x1b[31mmemory kill\x1b[0m" in page
    assert "\x1b[1mWorkers\x1b[0m" in page


def test_a_terminal_without_rich_gets_plain_text_that_fits(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch, 80)
    monkeypatch.setitem(sys.modules, "rich.console", None)

    page = show(path, capsys, EVERYTHING)
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) <= 80


def test_a_table_in_a_pipe_is_tab_separated(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [{"span": "a", "tags": ["x", "y"], "start_us": 5}, {"span": "tab\tnewline\n"}]

    assert show(path, capsys, {"spans": rows}, "--table", "spans") == (
        "span\tseen_us\ttags\tparent\tenqueued_us\tstart_us\tstop_us\tactive_cpu_us\n"
        'a\t0\t["x", "y"]\t\t0\t5\t0\t0\n'
        "tab\\tnewline\\n\t0\t[]\t\t0\t0\t0\t0\n"
    )


def test_a_table_on_a_terminal_is_one_block_a_row(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch, 80)

    rows: list[dict[str, Any]] = [{"span": "a", "tags": ["x"]}, {"start_us": 7}]
    page = show(path, capsys, {"spans": rows}, "--table", "spans")
    assert page == 'spans row 1\n  span           a\n  tags           ["x"]\nspans row 2\n  start_us       7\n'


def test_an_empty_table_on_a_terminal_says_what_is_absent(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch, 80)

    assert show(path, capsys, {}, "--table", "spans") == "The recording has no spans (a distributed.span).\n"


def test_a_table_is_limited_and_says_so_beside_the_data(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_frames(path, make_frames({"edges": [{"task": i} for i in range(30)]}))

    assert main(["show", str(path), "--table", "edges", "--limit", "2"]) == 0
    assert capsys.readouterr() == (
        "task\tdependency\tseen_us\n0\t0\t0\n1\t0\t0\n",
        "daskscope: 2 of 30 rows; --limit 0 prints all.\n",
    )
    assert len(show(path, capsys, {"edges": [{"task": 1}] * 30}, "--table", "edges", "--limit", "0").splitlines()) == 31


@pytest.mark.parametrize("options", [(), ("--json",), ("--errors",)])
def test_a_recording_of_extreme_values_can_be_shown(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    golden = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"

    assert main(["show", str(golden), *options]) == 0
    assert capsys.readouterr().err == ""


def test_a_table_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = show(path, capsys, {"edges": [{"task": 4}]}, "--table", "edges", "--json")

    assert json.loads(page) == {"table": "edges", "total": 1, "rows": [{"task": 4, "dependency": 0, "seen_us": 0}]}
