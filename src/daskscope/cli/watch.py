"""Open the live page of a running cluster, without a server set up."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

import dask.config
import distributed

from daskscope.cli.output import write_message
from daskscope.errors import DaskscopeError
from daskscope.live_page import watch

CONNECT_S = 10


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "address",
        nargs="?",
        default="",
        metavar="ADDRESS",
        help="scheduler, such as tcp://host:8786 (default: DASK_SCHEDULER_ADDRESS)",
    )
    parser.add_argument(
        "--scheduler-file", default="", metavar="FILE", help="file that the scheduler wrote its address to"
    )
    parser.add_argument("--data", default="", metavar="DIR", help="start a server with its data in this directory")
    parser.add_argument("--no-browser", action="store_true", help="print the URL instead of opening it")


def run(args: argparse.Namespace) -> int:
    client = _connect(args.address, args.scheduler_file)
    # Ctrl-C and SIGTERM end the watch in order: the last batches arrive before the server stops.
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    watched = watch(client, open_browser=not args.no_browser, data=args.data, say=_say)
    try:
        sys.stdout.write(f"{watched.url}\n")
        sys.stdout.flush()
        _say("press Ctrl-C to stop watching; what is recorded is kept")
        while not stop.wait(0.5):
            if client.status == "closed":
                _say("the cluster closed")
                break
    finally:
        watched.close()
        client.close(timeout=5)
    if watched.is_still_recorded:
        _say(f"the cluster is still recorded: {watched.url}")
    else:
        _say("look at the recording again with: daskscope serve" + (f" --data {args.data}" if args.data else ""))
    return 0


def _connect(address: str, scheduler_file: str) -> distributed.Client:
    if not (address or scheduler_file or dask.config.get("scheduler-address", None)):
        raise DaskscopeError(
            "Which cluster? Give the address of its scheduler (print(client.scheduler.address) shows it), or --scheduler-file."
        )
    # Dask would wait for the file forever.
    if scheduler_file and not Path(scheduler_file).is_file():
        raise DaskscopeError(f"There is no file {scheduler_file}. Start the scheduler with --scheduler-file first.")
    where = {"scheduler_file": scheduler_file} if scheduler_file else {"address": address or None}
    try:
        return distributed.Client(**where, timeout=CONNECT_S, set_as_default=True, name="daskscope-watch")
    except (OSError, ValueError) as error:
        place = scheduler_file or address or "the configured address"
        raise DaskscopeError(f"No scheduler answers at {place}: {error}. Check the address and try again.") from None


def _say(text: str) -> None:
    write_message(text, "daskscope watch")
