"""Run a server that records every cluster of a team."""

from __future__ import annotations

import argparse
import os
import sys

from daskscope.errors import MissingExtra


def configure(parser: argparse.ArgumentParser) -> None:
    try:
        from daskscope.server.settings import add_flags
    except ImportError:
        return
    add_flags(parser)


def run(args: argparse.Namespace) -> int:
    try:
        from daskscope.server.run import serve
        from daskscope.server.settings import settings_of
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "daskscope serve") from None
    serve(settings_of(vars(args), os.environ), _print_url)
    return 0


def _print_url(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
