"""Check a server's data and repair it."""

from __future__ import annotations

import argparse
import os
import time

from daskscope.cli.output import open_output, write_json
from daskscope.cli.terminal import escape
from daskscope.errors import MissingExtra


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired")
    parser.add_argument(
        "--rotate-keys", action="store_true", help="create new encryption keys and re-wrap the old ones"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    try:
        from daskscope.server.settings import add_storage_flags
    except ImportError:
        return
    add_storage_flags(parser)


def run(args: argparse.Namespace) -> int:
    try:
        from daskscope.server.services import master_keys
        from daskscope.server.settings import settings_of
        from daskscope.storage.base.archive import Archive
        from daskscope.storage.base.blobs import open_store
        from daskscope.storage.base.database import Database
        from daskscope.storage.base.vault import Vault
        from daskscope.storage.doctor import examine
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "daskscope doctor") from None
    settings = settings_of(vars(args), os.environ)
    database = Database(settings.database_url)
    source = master_keys(settings)
    keys = source.add() if args.rotate_keys else source.load()
    vault = Vault(keys)
    output = open_output()
    if args.rotate_keys:
        with database.write() as connection:
            wrapped = vault.rotate(connection)
        # Drop old master keys only now: they are needed until every key is wrapped by the new one.
        source.drop_old(keys)
        output.line(f"Rotated: {wrapped} keys are wrapped by a new master key. Restart the server.")
    store = open_store(settings.store_url, endpoint=settings.store_endpoint)
    archive = Archive(database, vault, store, lambda: time.time_ns() // 1000, settings.lost_after * 1_000_000)
    found = []
    for name, problems in examine(archive):
        if not args.json:
            output.line(f"{name:<12} {'ok' if not problems else f'{len(problems)} found'}")
        for problem in problems:
            repaired = False
            if args.repair and problem.repair is not None:
                problem.repair()
                repaired = True
            found.append(
                {
                    "check": name,
                    "text": problem.text,
                    "can_be_repaired": problem.repair is not None,
                    "repaired": repaired,
                }
            )
            if not args.json:
                can_repair = "run with --repair" if problem.repair is not None else "cannot be repaired"
                output.line(f"  {escape(problem.text)} ({'repaired' if repaired else can_repair})")
    database.close()
    if args.json:
        write_json(found)
    return 1 if any(not item["repaired"] for item in found) else 0
