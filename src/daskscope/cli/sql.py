"""Ask questions about recordings in SQL."""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daskscope import units
from daskscope.cli.output import open_output, write, write_json, write_message
from daskscope.cli.terminal import Column, escape
from daskscope.client.analyse import find_recording
from daskscope.client.server import ask_sql
from daskscope.errors import DaskscopeError
from daskscope.report.exports import escape_formula
from daskscope.storage.runs.parquet import to_parquet
from daskscope.storage.sql.query import SqlFiles, SqlLimits, parse_query, run_query

SUFFIX = ".daskscope"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="one SELECT over the recorded tables, in DuckDB's dialect")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="recordings, reports, or directories of recordings (default: all clusters of your account on the server)",
    )
    parser.add_argument("--cluster", metavar="ID", default="", help="only this cluster of the server")
    parser.add_argument("--days", metavar="N", type=float, default=0.0, help="only clusters of the last N days")
    parser.add_argument("--account", metavar="NAME", help="account (default: your own)")
    parser.add_argument("--limit", metavar="N", type=int, default=1_000, help="maximum rows (default: 1000)")
    parser.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise DaskscopeError("--limit is at least 1.")
    if args.paths and (args.cluster or args.days or args.account):
        raise DaskscopeError(
            "--cluster, --days and --account choose clusters on a server. Leave them out, or the paths."
        )
    if args.paths:
        result = query_paths(args.query, args.paths, args.limit)
    else:
        result = ask_sql(args.query, args.cluster, days=args.days, account=args.account)
        is_cut = result["is_cut"] or len(result["rows"]) > args.limit
        result = {**result, "rows": result["rows"][: args.limit], "is_cut": is_cut}
    _print(result, args)
    return 0


def query_paths(query: str, paths: list[str], limit: int) -> dict[str, Any]:
    """Run a query over recordings: paths, IDs or URLs of clusters."""
    checked = parse_query(query)
    files = SqlFiles()
    with tempfile.TemporaryDirectory(prefix="daskscope-sql-") as name:
        directory, count = Path(name), 0
        for source in recordings_at(paths):
            recording = find_recording(source)
            count += 1
            clusters = recording["clusters"]
            cluster = str(clusters["cluster"][0]) if clusters.rows else Path(recording.source).stem
            for table in checked.tables:
                if recording[table].rows:
                    path = directory / files.add(table, cluster)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(to_parquet(recording[table]))
        found = run_query(checked, directory, files, SqlLimits(seconds=3600, memory_nbytes=4 * 1024**3, rows=limit))
    columns = [{"name": column.name, "type": column.type} for column in found.columns]
    counts = {"clusters": count, "all_clusters": count, "skipped": [], "skipped_clusters": 0}
    return {"columns": columns, "rows": found.rows, "is_cut": found.is_cut, **counts}


def recordings_at(paths: list[str]) -> Iterator[str]:
    """Yield the recordings in directories that have some, and every other path as it is."""
    for path in paths:
        inside = sorted(Path(path).glob(f"*{SUFFIX}")) if Path(path).is_dir() else []
        yield from map(str, inside) if inside else [path]


def _print(result: dict[str, Any], args: argparse.Namespace) -> None:
    names = [column["name"] for column in result["columns"]]
    if args.json:
        write_json(result)
    elif args.csv:
        text = io.StringIO()
        csv.writer(text).writerows([names, *([escape_formula(cell) for cell in row] for row in result["rows"])])
        write(text.getvalue())
    else:
        columns = [
            Column(escape(c["name"]), right=not _is_text(c["type"]), name=_is_text(c["type"]))
            for c in result["columns"]
        ]
        open_output().table(columns, [[_cell(value) for value in row] for row in result["rows"]])
    if result["is_cut"]:
        write_message(f"Only the first {units.counted(len(result['rows']), 'row')}. Use --limit for more.")
    if result["clusters"] < result["all_clusters"]:
        write_message(
            f"Only the newest {units.count(result['clusters'])} of {units.count(result['all_clusters'])} clusters."
        )
    if result["skipped_clusters"]:
        write_message(
            f"Without {units.counted(result['skipped_clusters'], 'cluster')} whose files are missing or damaged: "
            f"{', '.join(map(escape, result['skipped']))}. On the server, daskscope doctor finds them."
        )


def _is_text(type_: str) -> bool:
    return type_ not in ("BIGINT", "DOUBLE", "HUGEINT", "INTEGER", "FLOAT") and not type_.startswith("DECIMAL")


def _cell(value: Any) -> str:
    if value is None:
        return units.NOTHING
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
