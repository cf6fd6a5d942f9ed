"""Say why a cluster is still running."""

from __future__ import annotations

import argparse

from daskscope import analytics
from daskscope.cli.escape import escape
from daskscope.cli.output import open_output
from daskscope.cli.show import write_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="ID", help="the cluster's id, as daskscope ls prints it")
    parser.add_argument("--account", metavar="NAME", help="the account, where it is not the usual one")
    parser.add_argument("--json", action="store_true", help="print as JSON")


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
