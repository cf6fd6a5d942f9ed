"""A made-up next version, whose only difference is one more migration: upgrades are tested before there is one."""

from __future__ import annotations

import shutil
from pathlib import Path

from daskscope.storage import schema
from daskscope.storage.base.migrate import MIGRATIONS

ROOT = Path(__file__).parents[2]
NEXT = f"{int(schema.HEAD) + 1:04}"
#: On the table of runs, which the migration locks.
MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{schema.HEAD}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("made_up", sa.BigInteger(), server_default="7", nullable=False))
'''


def write_migrations(directory: Path) -> Path:
    """Copy the migrations to a new directory, and add the made-up one."""
    shutil.copytree(MIGRATIONS, directory, ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "versions" / f"{NEXT}_made_up.py").write_text(MIGRATION)
    return directory


def write_source(directory: Path) -> Path:
    """Copy the package to a new directory, as the next version. Return what to add to PYTHONPATH."""
    package = directory / "daskscope"
    shutil.copytree(ROOT / "src" / "daskscope", package, ignore=shutil.ignore_patterns("__pycache__", "migrations"))
    write_migrations(package / "storage" / "migrations")
    head = package / "storage" / "schema" / "__init__.py"
    text = head.read_text()
    assert text.count(f'HEAD = "{schema.HEAD}"') == 1
    head.write_text(text.replace(f'HEAD = "{schema.HEAD}"', f'HEAD = "{NEXT}"'))
    return directory
