"""Queries see the recorded tables and nothing else, and have limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskscope.cli.main import main
from daskscope.storage.runs.parquet import to_parquet
from daskscope.storage.sql.check import SqlError
from daskscope.storage.sql.query import SqlColumn, SqlFiles, SqlLimits, SqlResult, parse_query, run_query
from daskscope.testing import make_recording
from daskscope.wire.file import Row, frames_of_rows
from daskscope.wire.layout import FILE_MAGIC

#: Longer than a file name may be, and with characters that mean something in SQL and in paths.
LONG_ID = "two/x'" + 190 * "ü"
SECRET_TEXT = "the content of another file"


def task(number: int, prefix: str) -> Row:
    return {"key": f"{prefix}-{number}", "prefix": prefix, "start_us": 1_000, "stop_us": 1_000 + 10 * number}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the tasks of two clusters, and a file that no query may read."""
    files = SqlFiles()
    for cluster, prefix in (("one", "inc"), (LONG_ID, "sum")):
        path = tmp_path / "job" / files.add("tasks", cluster)
        path.parent.mkdir(parents=True)
        tables = make_recording({"tasks": [task(number, prefix) for number in (1, 2, 3)]})
        path.write_bytes(to_parquet(tables["tasks"]))
    (tmp_path / "job" / "secret.txt").write_text(SECRET_TEXT)
    (tmp_path / "outside.parquet").write_bytes(path.read_bytes())
    return tmp_path / "job"


def ask(directory: Path, query: str, **limits: Any) -> SqlResult:
    files = SqlFiles()
    for cluster in ("one", LONG_ID):
        files.add("tasks", cluster)
    return run_query(parse_query(query), directory, files, SqlLimits(**limits))


def test_a_query_reads_the_tables_of_all_clusters(directory: Path) -> None:
    found = ask(
        directory, "select cluster, prefix, sum(stop_us - start_us) as us from tasks group by all order by cluster"
    )
    assert found.columns == (
        SqlColumn("cluster", "VARCHAR"),
        SqlColumn("prefix", "VARCHAR"),
        SqlColumn("us", "HUGEINT"),
    )
    assert found.rows == [["one", "inc", 60], [LONG_ID, "sum", 60]]
    assert not found.is_cut


def test_a_table_without_files_is_empty_and_has_all_columns(directory: Path) -> None:
    assert ask(directory, "select worker, cpu_percent from samples").rows == []
    assert ask(directory, "select count(*) from clusters where name = 'x'").rows == [[0]]


def test_of_an_entity_the_last_row_counts(tmp_path: Path) -> None:
    rows = [{"worker": "w", "server_id": "s", "seen_us": seen, "name": name} for seen, name in ((1, "old"), (2, "new"))]
    files = SqlFiles()
    for row in rows:
        path = tmp_path / files.add("workers", "c")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_parquet(make_recording({"workers": [row]})["workers"]))
    assert run_query(parse_query("select name from workers"), tmp_path, files, SqlLimits()).rows == [["new"]]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{directory}/secret.txt')",
        "select * from read_blob('{directory}/secret.txt')",
        "select * from read_csv('{directory}/secret.txt')",
        "select * from '{directory}/secret.txt'",
        "select * from sniff_csv('{directory}/secret.txt')",
        "select * from read_text('secret.txt')",
        "select * from glob('{directory}/*')",
        "select * from glob('/etc/*')",
        "select * from read_parquet('{directory}/../outside.parquet')",
        "select * from read_parquet('{directory}/tasks/**/*.parquet')",
        "select * from read_json('/proc/self/environ')",
        "select * from read_text('/proc/self/environ')",
        "select * from 'http://127.0.0.1:1/x.csv'",
        "select * from read_parquet('s3://bucket/x.parquet')",
        "select getenv('PATH')",
        "select * from os",
        "select * from directory",
        "copy (select 1) to '{directory}/out.csv'",
        "copy tasks from '{directory}/secret.txt'",
        "attach '{directory}/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma enable_profiling",
        "call pragma_version()",
        "export database '{directory}/out'",
        "import database '{directory}'",
        "create table x as select 1",
        "drop view tasks",
        "insert into tasks select * from tasks",
        "select * from query_table('tasks')",
        "select * from query('select * from tasks')",
        "select " + "1+" * 5000 + "1",
        "select 1; copy (select 1) to '{directory}/out.csv'",
        "",
        ";",
    ],
)
def test_a_query_cannot_leave_the_tables(query: str, directory: Path) -> None:
    before = sorted(directory.iterdir())
    with pytest.raises(SqlError) as refused:
        ask(directory, query.format(directory=directory))
    assert SECRET_TEXT not in str(refused.value)
    assert sorted(directory.iterdir()) == before


def test_more_rows_than_the_limit_are_cut(directory: Path) -> None:
    found = ask(directory, "select key from tasks order by key", rows=4)
    assert (len(found.rows), found.is_cut) == (4, True)


def test_a_result_with_too_many_bytes_is_refused(directory: Path) -> None:
    with pytest.raises(SqlError, match="The result is larger than"):
        ask(directory, "select repeat('x', 400000) from range(5)", nbytes=1024 * 1024)


def test_a_query_ends_at_its_limit_of_time(directory: Path) -> None:
    with pytest.raises(SqlError, match="longer than 0 s"):
        ask(directory, "select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)", seconds=0.3)


def test_a_query_ends_at_its_limit_of_memory(directory: Path) -> None:
    with pytest.raises(SqlError, match="more than 100 MiB of memory"):
        ask(directory, "select list(i) from range(100000000) t(i)", memory_nbytes=100 * 1024 * 1024)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
        ("9007199254740993", "9007199254740993"),
        ("5::decimal(10, 2)", 5),
        ("1.5::decimal(10, 2)", 1.5),
        ("'nan'::double", None),
        ("'inf'::double", None),
        ("[1, null]", [1, None]),
        ("{'a': 'x'}", {"a": "x"}),
        ("date '2026-01-02'", "2026-01-02"),
        ("timestamp '2026-01-02 03:04:05'", "2026-01-02T03:04:05"),
        ("interval 90 second", 90.0),
        ("'\\xAB'::blob", "ab"),
        ("true", True),
    ],
)
def test_values_become_json(value: str, shown: Any, directory: Path) -> None:
    assert ask(directory, f"select {value}").rows == [[shown]]


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("select 1", set()),
        ("SELECT * FROM Tasks", {"tasks"}),
        ("with t as (select * from tasks) select * from t join samples using (worker)", {"tasks", "samples"}),
        ("select * from range(3)", set()),
    ],
)
def test_the_tables_of_a_query(query: str, tables: set[str]) -> None:
    assert parse_query(query).tables == tables


class TestCommand:
    @pytest.fixture
    def recordings(self, tmp_path: Path) -> Path:
        """A directory with two recordings."""
        for cluster, prefix in (("one", "inc"), ("two", "=sum")):
            rows: dict[str, list[Row]] = {
                "clusters": [{"cluster": cluster, "name": cluster}],
                "tasks": [task(number, prefix) for number in (1, 2)],
            }
            frames = frames_of_rows(rows, cluster=cluster, epoch=1)
            (tmp_path / f"{cluster}.daskscope").write_bytes(FILE_MAGIC + b"".join(frames))
        return tmp_path

    def test_a_directory_of_recordings(self, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = "select cluster, count(*) as n, sum(stop_us - start_us) / 1000 as ms from tasks group by 1 order by 1"
        assert main(["sql", query, str(recordings)]) == 0
        assert capsys.readouterr().out == "cluster  n    ms\none      2  0.03\ntwo      2  0.03\n"

    def test_one_recording_as_csv_without_formulas(self, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = "select prefix, count(*) as n from tasks group by 1"
        assert main(["sql", query, str(recordings / "two.daskscope"), "--csv"]) == 0
        assert capsys.readouterr().out.split() == ["prefix,n", "'=sum,2"]

    def test_rows_beyond_the_limit_are_mentioned(self, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["sql", "select key from tasks order by key", str(recordings), "--limit", "1", "--json"]) == 0
        printed = capsys.readouterr()
        assert '"is_cut": true' in printed.out
        assert printed.err == "daskscope: Only the first 1 row. Use --limit for more.\n"

    def test_a_wrong_query_is_one_line(self, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["sql", "select nope from tasks", str(recordings)]) == 1
        message = capsys.readouterr().err
        assert message.startswith("daskscope: Binder Error: Referenced column")
        assert message.count("\n") == 1

    def test_paths_and_clusters_of_a_server_exclude_each_other(
        self, recordings: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["sql", "select 1", str(recordings), "--days", "3"]) == 1
        assert "Leave them out, or the paths" in capsys.readouterr().err
