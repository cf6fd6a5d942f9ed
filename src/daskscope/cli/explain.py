"""Explain why a cluster is still running."""

from __future__ import annotations

import argparse

from daskscope import analytics
from daskscope.cli.output import open_output, write_json
from daskscope.cli.terminal import escape


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="ID", help="cluster ID, as printed by daskscope ls")
    parser.add_argument("--account", metavar="NAME", help="account (default: your own)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    explanation = analytics.explain(args.cluster, args.account)
    if args.json:
        write_json(explanation)
        return 0
    output = open_output()
    output.line(escape(explanation["answer"]), style="bold")
    for line in explanation["evidence"]:
        output.line(f"  {escape(line)}")
    for line in explanation["advice"]:
        output.line(f"→ {escape(line)}")
    return 0
