"""Look whether what a server keeps is whole, and mend it."""

from __future__ import annotations

import argparse
import os
import time

from daskscope.cli.escape import escape
from daskscope.cli.output import open_output
from daskscope.cli.show import write_json
from daskscope.errors import MissingExtra


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="mend what can be mended")
    parser.add_argument(
        "--rotate-keys", action="store_true", help="seal with new keys from now on, and wrap the old ones anew"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    try:
        from daskscope.server.settings import add_storage_flags
    except ImportError:
        return
    add_storage_flags(parser)


def run(args: argparse.Namespace) -> int:
    try:
        from daskscope.server.settings import settings_of
        from daskscope.storage.blobs import open_store
        from daskscope.storage.database import Database
        from daskscope.storage.doctor import Patient, examine
        from daskscope.storage.vault import KEPT_KEYS, Vault, add_master_key, load_master_keys, write_master_keys
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "daskscope doctor") from None
    settings = settings_of(vars(args), os.environ)
    database = Database(settings.database_url)
    keys = add_master_key(settings.master_key) if args.rotate_keys else load_master_keys(settings.master_key)
    vault = Vault(keys)
    output = open_output()
    if args.rotate_keys:
        with database.write() as connection:
            wrapped = vault.rotate(connection)
        # Only now: until every key is wrapped by the new master key, all of the old ones are needed.
        write_master_keys(settings.master_key, keys[:KEPT_KEYS])
        output.line(f"rotated: {wrapped} keys wrapped by a new master key. Restart the server.")
    store = open_store(settings.store_url, endpoint=settings.store_endpoint)
    patient = Patient(database, vault, store, time.time_ns() // 1000)
    found = []
    for name, findings in examine(patient):
        if not args.json:
            output.line(f"{name:<12} {'ok' if not findings else f'{len(findings)} found'}")
        for finding in findings:
            mended = False
            if args.repair and finding.mend is not None:
                finding.mend()
                mended = True
            found.append(
                {"check": name, "text": finding.text, "can_be_mended": finding.mend is not None, "mended": mended}
            )
            if not args.json:
                state = "mended" if mended else "--repair mends it" if finding.mend is not None else "cannot be mended"
                output.line(f"  {escape(finding.text)} ({state})")
    database.close()
    if args.json:
        write_json(found)
    return 1 if any(not item["mended"] for item in found) else 0
