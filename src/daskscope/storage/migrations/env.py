"""Alembic's entry point: run migrations on the connection that ``migrate`` passes."""

from __future__ import annotations

from alembic import context

from daskscope.storage import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    # SQLite cannot alter a column: Alembic copies the table.
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
